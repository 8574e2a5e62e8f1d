"""The forecasters by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from inspect import signature
from types import MappingProxyType
from typing import Any

from sluicegate.errors import BadInput
from sluicegate.forecast.arma import Arma
from sluicegate.forecast.calibrated import Calibrated
from sluicegate.forecast.forecaster import Forecaster
from sluicegate.forecast.recent_peak import RecentPeakForecast
from sluicegate.forecast.seasonal import Seasonal
from sluicegate.forecast.trend import Trend


@dataclass(frozen=True, slots=True)
class ForecasterEntry:
    """One forecaster: ``factory`` takes ``step_s`` and its options. Memory types differ by forecaster, hence Any."""

    factory: Callable[..., Forecaster[Any]]
    summary: str
    source: str


FORECASTERS: Mapping[str, ForecasterEntry] = MappingProxyType(
    {
        "arma": ForecasterEntry(
            Arma,
            "ARMA(p, q), order by AIC, refitted by maximum likelihood on a sliding window",
            "uncertainty-aware VM scheduling, Eq 9 to 13",
        ),
        "calibrated": ForecasterEntry(
            Calibrated,
            "regressions for mean and scale, with quantiles calibrated on past forecast errors",
            "sluicegate; adaptive conformal inference",
        ),
        "recent-peak": ForecasterEntry(RecentPeakForecast, "the largest recent rate with a margin", "peer"),
        "trend": ForecasterEntry(Trend, "a damped trend, for seconds to a minute ahead", "Holt; Gardner and McKenzie"),
        "seasonal": ForecasterEntry(
            Seasonal, "the same time of the season before, at today's level", "seasonal naive, textbook"
        ),
    }
)


def forecaster(name: str, step_s: float = 60.0, **options: object) -> Forecaster[Any]:
    """The forecaster called ``name``, learning one rate every ``step_s``.

    >>> forecaster("recent-peak", step_s=30.0, margin=0.1).step_s
    30.0
    """
    entry = FORECASTERS.get(name)
    if entry is None:
        raise BadInput(f"unknown forecaster {name!r}: choose one of {', '.join(sorted(FORECASTERS))}")
    known = [option for option in signature(entry.factory).parameters if option != "step_s"]
    for option in options:
        if option not in known:
            raise BadInput(f"forecaster {name!r} has no option {option!r}: it takes {', '.join(known)}")
    return entry.factory(step_s=step_s, **options)
