"""Formats one setting of a fidelity report as table cells, for the terminal and the HTML page."""

from __future__ import annotations

from sluicegate.lab.fidelity.settings import Compared
from sluicegate.report.figures import rate, seconds

HEADINGS = (
    "rows/s",
    "processors",
    "predicted",
    "law alone",
    "measured",
    "error",
    "p95",
    "measured",
    "burst",
    "measured",
)


def cells(one: Compared) -> tuple[str, ...]:
    """Cells in the order of ``HEADINGS``; processors in the order of the operators."""
    return (
        f"{one.rate_per_s:,.0f}",
        "/".join(map(str, one.processors.values())),
        seconds(one.predicted.mean_s),
        seconds(one.law_mean_s),
        seconds(one.measured.mean_s),
        f"{one.error:+.1%}",
        seconds(one.predicted.p95_s),
        seconds(one.measured.p95_s),
        rate(one.predicted.rate_per_s),
        rate(one.measured.rate_per_s),
    )
