"""Predicted against measured."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from sections.section import Column, Line, Section, percent, ratio
from sluicegate.lab.agreement import median_error, pairs_in_order


def _nodes(lines: Sequence[Line]) -> str:
    """Median error, and pairs of settings in the predicted order, of their medians over runs."""
    runs: dict[tuple[Any, ...], list[Line]] = {}
    for line in lines:
        runs.setdefault((line["k"], line["per_s"], line["pace_s"]), []).append(line)
    found = [
        (statistics.median(line["predicted"] for line in of), statistics.median(line["measured"] for line in of))
        for of in runs.values()
    ]
    right, pairs = pairs_in_order(found)
    return f"Median error {median_error(found):.1%}; {right} of {pairs} pairs in the predicted order."


SECTIONS: tuple[Section, ...] = (
    Section(
        "fidelity",
        "Predicted against measured",
        "The models learn from one short run of an application and predict allocations that have not run, which "
        "then run. Median error of the mean, and pairs of allocations in the predicted order.",
        "fidelity_of_apps.py --rounds 1",
        (Column("application", "app"),),
        (
            Column("allocations", "settings"),
            Column("median error of the mean", "error_mean", percent),
            Column("median error of p95", "error_p95", percent),
            Column("median error of the burst rate", "error_burst", percent),
            Column("pairs in order", "in_order", percent),
        ),
    ),
    Section(
        "node_fidelity",
        "Predicted against measured: operators that compute and share cores",
        "[The law of a node](models/node_law.md) learns the processor time of batches, tasks and rows of two "
        "computing operators from three settings, and predicts the cores of six others, which then run.",
        "fidelity_of_nodes.py",
        (Column("k", "k"), Column("rows/s", "per_s"), Column("a batch every, s", "pace_s")),
        (
            Column("cores predicted", "predicted", ratio),
            Column("cores measured", "measured", ratio),
            Column("more than are free", lambda line: "yes" if line["beyond"] else ""),
        ),
        _nodes,
    ),
)
