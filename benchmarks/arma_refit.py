"""One ARMA refit of a window of 100 values: ours beside statsmodels, on the same windows in the same run.

python benchmarks/arma_refit.py
"""

from __future__ import annotations

import time
import warnings

import numpy as np
from statsmodels.tsa.arima.model import ARIMA

from sluicegate.forecast.arma import choose_order, fit
from sluicegate.forecast.arma_likelihood import Floats

WINDOW, REFIT_EVERY, REFITS = 100, 10, 20


def series(rng: np.random.Generator, count: int) -> Floats:
    """Rates around 200 a second that an ARMA(1, 2) with a slow swing makes."""
    noise = rng.normal(0.0, 10.0, count + 2)
    x = np.zeros(count + 2)
    for t in range(2, count + 2):
        x[t] = 0.92 * x[t - 1] + noise[t] - 0.2 * noise[t - 1] - 0.4 * noise[t - 2]
    return 200.0 + 50.0 * np.sin(np.arange(count) / 120.0) + x[2:]


def main() -> None:
    rates = series(np.random.default_rng(7), WINDOW + REFIT_EVERY * REFITS)
    began = time.perf_counter()
    choose_order(rates[:WINDOW])
    choosing_cold = time.perf_counter() - began
    began = time.perf_counter()
    chosen = choose_order(rates[:WINDOW])
    print(f"order by AIC {chosen}: {1e3 * (time.perf_counter() - began):.1f} ms (first call {choosing_cold:.1f} s)")
    for order in ((1, 1), (1, 2), (1, 3)):
        compare(rates, order)


def compare(rates: Floats, order: tuple[int, int]) -> None:
    ours_s = theirs_s = 0.0
    ahead: list[float] = []
    previous = fit(rates[:WINDOW], order)
    for end in range(WINDOW + REFIT_EVERY, len(rates) + 1, REFIT_EVERY):
        window = rates[end - WINDOW : end]
        began = time.perf_counter()
        previous = fit(window, order, previous)
        ours_s += time.perf_counter() - began
        began = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            theirs = ARIMA(window - window.mean(), order=(order[0], 0, order[1]), trend="n").fit()
        theirs_s += time.perf_counter() - began
        ahead.append((previous.log_likelihood or 0.0) - theirs.llf)
    print(
        f"ARMA{order}: ours {1e3 * ours_s / REFITS:.2f} ms, statsmodels {1e3 * theirs_s / REFITS:.1f} ms a refit, "
        f"ratio {theirs_s / ours_s:.0f}; log likelihood ours - theirs from {min(ahead):+.4f} to {max(ahead):+.4f}"
    )


if __name__ == "__main__":
    main()
