"""Computes a profile from trials: I, C and M of tau, the law of the operator's batches, and its processor time."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from scipy.optimize import nnls

from sluicegate.config.profile_file import Plain, ProfileFile
from sluicegate.domain import BatchCosts, ProfilePoint, TaskProfile
from sluicegate.errors import Infeasible
from sluicegate.lab.profile.batch_law import BatchFigures, batch_figures
from sluicegate.lab.profile.operator import LONGEST_S, TRIAL_S, Idle, OperatorMeasured
from sluicegate.lab.profile.slot import SlotSize
from sluicegate.lab.profile.trials import Trial
from sluicegate.model.task_profile import net_share

_LARGEST_IDLE = 0.9


def profile_from(
    operator: str, measured: OperatorMeasured, size: SlotSize, about: Mapping[str, Plain]
) -> tuple[ProfileFile, BatchFigures]:
    """The profile file of an operator; an error if no trial with 1 task was stable."""
    points, highest = points_from(measured, size)
    if not points or points[0].threads != 1:
        raise Infeasible(
            f"no trial of {operator!r} with 1 task was stable so far ({measured.ended}): run it again with more "
            "--minutes, what was measured is kept"
        )
    law = batch_figures(operator, measured.trials)
    told: dict[str, object] = {
        **about,
        "slot_tasks": size.tasks,
        "slot_memory_mb": size.memory_mb,
        "idle_cpu": round(measured.idle.cpu, 4),
        "idle_memory": round(measured.idle.memory_bytes / size.memory_bytes, 4),
        "trials": len(measured.trials),
        "complete": measured.complete,
        "ended": measured.ended,
        "assumed": assumptions(measured),
    }
    profile = TaskProfile(operator, tuple(points), law.service_per_s)
    costs = BatchCosts(law.overhead_s, law.per_task_s)
    return ProfileFile(profile, costs, processor_time(measured), highest, told), law


def points_from(measured: OperatorMeasured, size: SlotSize) -> tuple[list[ProfilePoint], dict[int, float]]:
    """For each thread count the highest stable rate with its CPU and memory shares; and the lowest unstable rate."""
    points, highest = [], {}
    for one in measured.known:
        best = max(
            (t for t in measured.trials if t.threads == one.threads and t.stable),
            key=lambda t: t.rate_per_s,
            default=None,
        )
        if best is not None:
            points.append(
                ProfilePoint(one.threads, best.rate_per_s, *shares_of(best, measured.idle, size.memory_bytes))
            )
            if math.isfinite(one.high_per_s):
                highest[one.threads] = one.high_per_s
    return points, highest


def shares_of(trial: Trial, idle: Idle, slot_bytes: int) -> tuple[float, float]:
    """Shares of the slot's CPU and memory that a trial used above the idle base."""
    idle_memory, idle_cpu = min(idle.memory_bytes / slot_bytes, _LARGEST_IDLE), min(max(idle.cpu, 0.0), _LARGEST_IDLE)
    memory = net_share(min(trial.memory_bytes / slot_bytes, 1.0), idle_memory)
    return net_share(min(trial.cpu, 1.0), idle_cpu), memory


def processor_time(measured: OperatorMeasured) -> dict[str, float]:
    """Executor CPU seconds per batch, task and row, by non-negative least squares over trials.

    The idle CPU over the length of the trial is subtracted first.
    """
    rows, right = [], []
    for trial in measured.trials:
        spent = trial.cpu_s - measured.idle.cpu * trial.seconds
        if trial.batches and spent > 0:
            rows.append(
                [len(trial.batches), sum(k for _, k, _ in trial.batches), sum(float(n) for n, _, _ in trial.batches)]
            )
            right.append(spent)
    if len(rows) < 3:
        return {}
    matrix = np.array(rows, dtype=np.float64)
    scale = np.maximum(matrix.max(axis=0), 1e-9)
    found, _ = nnls(matrix / scale, np.array(right))
    return dict(zip(("per_batch_s", "per_task_s", "per_row_s"), (found / scale).tolist(), strict=True))


def assumptions(measured: OperatorMeasured) -> list[str]:
    rows = "rows that reach it were recorded once and fed again" if measured.recorded else "rows are the application's"
    return [
        f"one executor held to one core (number {measured.core}), the driver on the others",
        f"a trial lasts {TRIAL_S:g} s and begins with {LONGEST_S:g} s of its load waiting; stable is a slope of 0.001",
        f"so rates hold for batches of up to {LONGEST_S:g} s; memory is the most seen, Java's heap never shrinks",
        rows,
    ]
