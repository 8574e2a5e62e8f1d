"""A table of what the policy would run under other loads, from what was learned so far; rewritten periodically.

The controller computes it, because it has the learned models in memory, and writes it to a file for dashboards to read.
It takes at most a two-hundredth of the time.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sluicegate.control.loop import LoopState
from sluicegate.control.planning import proposal_at
from sluicegate.domain import Forecast, Situation
from sluicegate.model.traffic import outside_rate
from sluicegate.policy.demand import stations_of
from sluicegate.runlog.files import write_whole

if TYPE_CHECKING:
    from sluicegate.policy.catalogue import AnyPolicy

_FACTORS = np.geomspace(0.25, 5.0, 24)
_EVERY_S = 10.0
_REST = 200.0


@dataclass(slots=True)
class WhatIf:
    """Rewrites the table in ``path`` when it is due."""

    path: Path
    due_s: float = 0.0

    def renew(self, state: LoopState, situation: Situation | None, now_s: float) -> None:
        if situation is None or now_s < self.due_s:
            return
        began = time.perf_counter()
        write_whole(self.path, json.dumps({"at_s": round(now_s, 3), **table(state, situation)}))
        self.due_s = now_s + max(_EVERY_S, _REST * (time.perf_counter() - began))


def table(state: LoopState, situation: Situation) -> dict[str, object]:
    """One entry per load, from a quarter of the present load to five times as much."""
    if situation.arrivals_per_s <= 0:
        return {"points": [], "note": "no load yet"}
    return {"points": [_point(state.settings.policy, _under(situation, f)) for f in _FACTORS.tolist()]}


def _under(situation: Situation, factor: float) -> Situation:
    """The same pipeline under a steady load: no backlog, no forecast."""
    arrivals = {name: rate * factor for name, rate in situation.operator_arrivals_per_s.items()}
    seen = replace(situation.observation, sojourn=None, backlog_rows=None, operators={})
    return replace(
        situation,
        arrivals_per_s=situation.arrivals_per_s * factor,
        operator_arrivals_per_s=arrivals,
        forecast=None,
        observation=seen,
    )


def _point(policy: AnyPolicy, situation: Situation) -> dict[str, object]:
    proposal = proposal_at(policy, situation)
    k = np.array([proposal.processors[name] for name in situation.topology.names], dtype=np.int64)
    mean_s = stations_of(situation).total_mean_s(k)
    return {
        "rate_per_s": outside_rate(situation.topology, situation.arrivals_per_s),
        "processors": dict(proposal.processors),
        "total": int(k.sum()),
        "mean_s": mean_s if np.isfinite(mean_s) else None,
        "feasible": bool(proposal.feasible and np.isfinite(mean_s)),
        "why": "; ".join(proposal.reasons[:2]),
    }


def band(forecast: Forecast | None, level: float = 0.9) -> dict[str, object] | None:
    """A forecast as the log shows it: the mean, and the band that holds each step's rate with probability ``level``."""
    if forecast is None:
        return None
    low, high = (forecast.upper_per_s(q).round(3).tolist() for q in ((1 - level) / 2, (1 + level) / 2))
    mean = forecast.mean_per_s.round(3).tolist()
    return {"step_s": forecast.step_s, "mean_per_s": mean, "low_per_s": low, "high_per_s": high, "level": level}
