"""Announced against achieved coverage of sluicegate's forecast: ``python benchmarks/forecast_calibration.py TRACE...``.

A trace is a CSV file; the first column that holds only numbers and whose name ends in a unit of rate (``_per_...``) is
taken, or the last one. Every row counts as one step of a minute; coarser traces are not interpolated here.
"""

from __future__ import annotations

import csv
import sys
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sluicegate.forecast.calibrated import Calibrated

LEVELS = (0.5, 0.9, 0.99, 0.995, 0.999)
AHEAD = (1, 3, 12)
Floats = NDArray[np.float64]


def rates_of(path: Path) -> Floats:
    with path.open(newline="") as lines:
        header, *rows = list(csv.reader(lines))
    column = next((i for i, name in enumerate(header) if "_per_" in name), len(header) - 1)
    return np.array([float(row[column]) for row in rows])


def coverage(rates: Floats) -> tuple[Floats, float]:
    """The share of steps below each announced quantile, by steps ahead; and the seconds a step took."""
    forecaster = Calibrated()
    memory, began = forecaster.start(), time.perf_counter()
    held, judged = np.zeros((len(AHEAD), len(LEVELS))), np.zeros((len(AHEAD), 1))
    for t, rate in enumerate(rates.tolist()):
        memory = forecaster.learn(memory, rate)
        for i, ahead in enumerate(AHEAD):
            forecast = forecaster.forecast(memory, ahead)
            if forecast is not None and t + ahead < len(rates):
                held[i] += [rates[t + ahead] <= forecast.upper_per_s(level)[-1] for level in LEVELS]
                judged[i] += 1
    return held / np.maximum(judged, 1), (time.perf_counter() - began) / len(rates)


def main(paths: list[str]) -> None:
    print(f"{'trace':40} ahead " + " ".join(f"{level:>8.1%}" for level in LEVELS))
    for path in map(Path, paths):
        achieved, step_s = coverage(rates_of(path))
        for ahead, shares in zip(AHEAD, achieved, strict=True):
            print(f"{path.stem[:40]:40} {ahead:5d} " + " ".join(f"{share:8.2%}" for share in shares))
        print(f"{'':40} {1e6 * step_s:.0f} microseconds a step")


if __name__ == "__main__":
    main(sys.argv[1:])
