"""Fits the micro-batch law of an operator to all batches of all trials, and derives the overhead of a batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sluicegate.domain import Batch, BatchCosts, Operator
from sluicegate.lab.profile.trials import Trial
from sluicegate.model.batch_fit import BatchFits
from sluicegate.model.microbatch import batch_s

_GUESSED_PER_S = 1000.0
_GUESSED = BatchCosts(0.14, 0.03)
_ENOUGH_BATCHES, _ENOUGH_R2 = 10, 0.8


@dataclass(frozen=True, slots=True)
class BatchFigures:
    """The law b = overhead + per_task k + rows/(k service), and how well it fits the batches of all trials."""

    overhead_s: float
    per_task_s: float
    service_per_s: float
    r2: float
    batches: int


def batch_figures(operator: str, trials: Sequence[Trial]) -> BatchFigures:
    """Fit the micro-batch law to all batches of all trials."""
    seen = [Batch(float(rows), k, seconds) for trial in trials for rows, k, seconds in trial.batches]
    guess = Operator(operator, _GUESSED_PER_S, batch=_GUESSED)
    law = BatchFits.start((guess,), forget=1.0).learn({operator: tuple(seen)}).laws()[operator]
    costs = BatchCosts(law.overhead_s, law.per_task_s)
    expected = np.array([batch_s(b.rows, b.processors, law.service_per_s, costs) for b in seen])
    took = np.array([b.duration_s for b in seen])
    spread = float(np.sum((took - took.mean()) ** 2)) if len(seen) else 0.0
    r2 = 1 - float(np.sum((took - expected) ** 2)) / spread if spread > 0 else 0.0
    return BatchFigures(law.overhead_s, law.per_task_s, law.service_per_s, r2, len(seen))


def overhead_of(operator: str, trials: Sequence[Trial], threads: int, idle_s: float) -> float:
    """Overhead of a batch with ``threads`` tasks: by the law if it fits, else the time of a nearly empty batch.

    Nearly empty batches are few; if the machine was busy during them, every capacity would be overestimated.
    """
    law = batch_figures(operator, trials)
    if law.batches < _ENOUGH_BATCHES or law.r2 < _ENOUGH_R2:
        return idle_s
    return law.overhead_s + law.per_task_s * threads
