"""One policy on one run of a replay, minute by minute, through the very loop that drives a live pipeline.

The pipeline is one operator whose processors are machines. At the start of minute t the policy is shown minute t - 1:

    arrivals      the trace's rate               service rate   capacity/machines, as drawn
    utilisation   rows done/capacity             saturated      the capacity, where the pipeline was never idle
    queue         rows that wait: b <- max(0, b + (arrivals - capacity) x 60)

The loop is the one that Spark runs (``control.settings``), with the replay's timing.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sluicegate.control.loop import start, tick
from sluicegate.domain import Forecast, Observation, OperatorObservation
from sluicegate.lab.replay.players import OPERATOR, Facts, Player
from sluicegate.lab.replay.protocol import STEP_S
from sluicegate.lab.replay.truth import Ints


class Feed:
    """A forecaster that hands out what another one made: one forecast a step serves every lane."""

    name = "replayed"
    step_s = 1e-9  # every tick is a step

    def __init__(self) -> None:
        self.now: Forecast | None = None

    def start(self) -> None:
        return None

    def learn(self, memory: None, rate_per_s: float) -> None:
        return None

    def forecast(self, memory: None, steps: int) -> Forecast | None:
        return self.now


class Lane:
    """The state of one policy on one run; ``asked`` fills up as minutes pass."""

    def __init__(self, player: Player, facts: Facts, feed: Feed | None) -> None:
        truth = facts.truth
        self.player, self.protocol = player, facts.protocol
        self.rates, self.draws = facts.rates_per_s.tolist(), facts.draws.tolist()
        self.mean, self.sd = truth.mean_per_s.tolist(), truth.sd_per_s.tolist()
        settings = player.settings
        self.state = start(settings if feed is None else replace(settings, forecaster=feed))
        self.target = self.coming = min(truth.needs(self.rates[0] * 1.2), truth.most)
        self.asked: list[int] = []
        self.backlog_rows = 0.0
        self.serving = self.target
        self.capacity = self.done = 0.0
        self.saturated: tuple[int, float] | None = None

    def step(self, t: int) -> None:
        """Minute ``t``: decide at its start on what was seen, then let its rows come."""
        decides = self.protocol.decides(t, self.player.lead_steps)
        if t >= 1 and (decides or self.player.watches):
            wanted = self._look(t)
            self.coming = wanted if decides else self.coming
        if t >= self.protocol.cycle_steps and t % self.protocol.cycle_steps == 0:
            self.target = self.coming
        self.asked.append(self.target)
        self._pass(t)

    def _look(self, t: int) -> int:
        now_s = t * STEP_S
        self.state, decision = tick(self.state, self._observation(t, now_s), now_s)
        self.saturated = None
        return min(max(decision.running[OPERATOR], 1), len(self.mean) - 1)

    def _observation(self, t: int, now_s: float) -> Observation:
        rate, capacity = self.rates[t - 1], self.capacity
        limit = self.saturated[1] if self.saturated and self.saturated[0] == self.serving else None
        held = max(0.0, 1 - capacity / rate) if rate > 0 else 0.0
        operator = OperatorObservation(
            arrivals_per_s=rate,
            service_per_s=capacity / self.serving if capacity > 0 else None,
            utilisation=self.done / capacity if capacity > 0 else 1.0,
            queue_rows=self.backlog_rows,
            backpressure=held,
            saturated_per_s=limit,
        )
        return Observation(
            now_s,
            rate,
            {OPERATOR: self.serving},
            {OPERATOR: operator},
            throughput_per_s=self.done,
            backlog_rows=self.backlog_rows,
            requested={OPERATOR: self.coming},
        )

    def _pass(self, t: int) -> None:
        self.serving = min(self.asked[max(0, t - self.player.late_steps) :])
        self.capacity = max(self.mean[self.serving] + self.sd[self.serving] * self.draws[t], 0.0)
        offered = self.rates[t] + self.backlog_rows / STEP_S
        self.done = min(offered, self.capacity)
        waiting = (offered - self.capacity) * STEP_S
        self.backlog_rows = max(waiting, 0.0)
        if waiting >= 0 and self.capacity > 0:
            self.saturated = (self.serving, self.capacity)

    def asked_for(self) -> Ints:
        return np.array(self.asked, dtype=np.int64)
