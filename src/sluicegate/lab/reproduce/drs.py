"""DRS, dynamic resource scheduling for real-time analytics over fast streams: Fig 6 to 10 and Table II.

The paper gives none of its rates, so order and shape are reproduced, with rates that we state (``drs_apps``).
"""

from __future__ import annotations

from collections.abc import Iterator

from sluicegate.lab.reproduce import drs_convergence, drs_model, drs_rates, drs_speed, drs_variability
from sluicegate.lab.reproduce.row import Progress, Row


def rows(progress: Progress) -> Iterator[Row]:
    """Yield one row per claim, computed lazily."""
    for figures in (drs_model, drs_convergence, drs_rates, drs_variability, drs_speed):
        yield from figures.rows(progress)
