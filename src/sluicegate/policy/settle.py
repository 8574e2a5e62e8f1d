"""Finds the allocation at which a policy, also a reactive one, converges under a constant load.

The policy is simulated step by step; each proposal takes effect at once, and the next step shows the measurements that
the queueing model predicts for it. It has converged when its proposal stays the same for 90 minutes (longer than any
peer's memory: the longest is Flink's, 20 minutes of measuring and an hour of waiting) and no backlog is being drained.
A planner without memory has converged as soon as it repeats its proposal. A policy that cycles never converges: the
largest allocation of the cycle is taken and the proposal says so.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeVar

from sluicegate.domain import Goal, Limits, Proposal, Situation, Topology
from sluicegate.domain.topology import require, require_number
from sluicegate.policy.policy import Policy
from sluicegate.policy.steady_load import SteadyLoad, steady_load

PlanMemory = TypeVar("PlanMemory")

_REST_S = 5400.0
"""Time without change that counts as converged. Half: less than Flink's hour of waiting, so that a policy that only
waits counts as converged. Double: planning takes longer."""


@dataclass(slots=True)
class _Run:
    """One allocation and the number of consecutive steps for which it was proposed."""

    running: dict[str, int]
    proposal: Proposal
    steps: int = 0


class _World:
    """The simulated pipeline: current allocation, backlog, and the next observation."""

    def __init__(self, load: SteadyLoad, running: dict[str, int]) -> None:
        self.load, self.running, self.now_s = load, running, 0.0
        self.backlog = dict.fromkeys(running, 0.0)
        self.seen = load.observe(0.0, running, self.backlog)
        self.runs: list[_Run] = []
        self.repeated = self.steady = self.draining = False

    def enact(self, proposal: Proposal) -> None:
        """Run the proposal for one step. Operators missing in it keep their processors."""
        wanted = {name: max(1, proposal.processors.get(name, have)) for name, have in self.running.items()}
        self.repeated = bool(self.runs) and self.runs[-1].running == wanted
        if not self.repeated:
            self.runs.append(_Run(wanted, proposal))
        self.runs[-1].proposal = proposal
        self.runs[-1].steps += 1
        left = self.load.backlog_after(wanted, self.backlog)
        self.draining = any(left[name] < self.backlog[name] for name in left)
        self.steady = left == self.backlog
        self.now_s += self.load.step_s
        unchanged = self.steady and wanted == self.running
        self.running, self.backlog = wanted, left
        fresh = replace(self.seen, at_s=self.now_s) if unchanged else self.load.observe(self.now_s, wanted, left)
        self.seen = fresh


def settle(
    policy: Policy[PlanMemory],
    topology: Topology,
    rate_per_s: float,
    goal: Goal,
    limits: Limits,
    step_s: float = 60.0,
    most_steps: int = 400,
) -> tuple[Proposal, int]:
    """The converged proposal and the number of steps it took, starting from the least of every operator.

    >>> from sluicegate.domain import Edge, Operator
    >>> from sluicegate.policy.peers.ds2 import Ds2
    >>> one = Topology("t", (Operator("a", 100.0),), (Edge("source", "a"),))
    >>> proposal, steps = settle(Ds2(), one, 450.0, Goal(), Limits())
    >>> proposal.total, steps
    (5, 2)
    """
    require_number(rate_per_s, "rate_per_s")
    require_number(step_s, "step_s", above=True)
    require(most_steps >= 1, f"most_steps is {most_steps}: give at least 1")
    load = steady_load(topology, rate_per_s, step_s)
    rest_steps = min(max(1, round(_REST_S / step_s)), max(1, most_steps // 2))
    memory = policy.start()
    world = _World(load, {name: min(limits.least, limits.most_for(name)) for name in topology.names})
    runs = world.runs
    for step in range(1, most_steps + 1):
        memory, proposal = policy.propose(
            memory,
            Situation(world.now_s, topology, world.seen, rate_per_s, load.arrivals_per_s, goal, limits),
        )
        world.enact(proposal)
        if memory is None and world.repeated and (world.steady or runs[-1].steps >= 3):
            return proposal, step
        if runs[-1].steps > rest_steps and not world.draining:
            return _told(proposal, f"converged after {step - rest_steps} steps of {step_s:g} s"), step
        if not world.repeated and (cycle := _cycle(runs[:-1])):
            return _restless(cycle, step_s), step
    return _unfinished(runs, most_steps, step_s, rest_steps), most_steps


def _cycle(runs: list[_Run]) -> list[_Run] | None:
    """The runs of a cycle that repeated exactly three times, or ``None``."""
    shape = [(run.running, run.steps) for run in runs]
    for period in range(2, len(runs) // 3 + 1):
        last = shape[-period:]
        if last == shape[-2 * period : -period] and last == shape[-3 * period : -2 * period]:
            return runs[-period:]
    return None


def _restless(runs: list[_Run], step_s: float) -> Proposal:
    totals = [sum(run.running.values()) for run in runs]
    chosen = runs[totals.index(max(totals))]
    round_s = sum(run.steps for run in runs) * step_s
    why = f"does not converge: {min(totals)} to {max(totals)} processors in turn within {round_s:g} s, the most taken"
    return replace(_told(chosen.proposal, why), feasible=False)


def _unfinished(runs: list[_Run], most_steps: int, step_s: float, rest_steps: int) -> Proposal:
    """Result when the steps are used up: converged but for a backlog, oscillating without a period, or still moving."""
    last = runs[-1]
    if last.steps > rest_steps:
        return _told(last.proposal, f"unchanged for {last.steps} steps of {step_s:g} s, a backlog is not drained yet")
    recent = runs[len(runs) // 2 :]
    if any(earlier.running == last.running for earlier in runs[:-1]):
        return _restless(recent, step_s)
    why = f"not converged after {most_steps} steps of {step_s:g} s: last changed {last.steps} steps ago"
    return replace(_told(last.proposal, why), feasible=False)


def _told(proposal: Proposal, why: str) -> Proposal:
    return replace(proposal, reasons=(*proposal.reasons, why))
