"""Maximum sustainable throughput (MST) of m machines, from few measured sizes (Eq 2 to 8, 18 and 21).

    form 1:  1/(w0 + w1/m + w2 m + w3 m^2)        form 2:  w0 + w1 m - w2 m^2        by linear regression
    sigma^2 = sum (tau_i - MST(m_i))^2 / (n - coefficients)                                        (Eq 6)
    fewest machines = least m with P(MST(m) > lambda) >= rho: MST(m) > lambda + z_rho sqrt(sigma^2 + sigma_lambda^2)

The residuals are in units of MST for form 1 too, though it is fitted to 1/MST. With rho = 0.5 this is Eq 4.

A fitted curve may be implausible. Our guards:
- n samples of d sizes carry at most min(d, n - 1) coefficients: higher terms are left out, down to MST = w m. With one
  sample sigma is unknown: 10% of the sample is assumed.
- Form 1 drops terms while it has a pole or is negative anywhere in the sizes predicted. (Five sizes leave it one degree
  of freedom: with 5% noise its last term often turns 1/MST negative before 128.)
- Beyond the largest measured size no curve may scale better than linearly: a fit that does approaches a pole.
- No size beyond the curve's maximum is ever chosen.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
from scipy.special import ndtr, ndtri

from sluicegate.errors import BadInput
from sluicegate.model.mst_samples import Floats, MstSamples, samples_of

Form = Literal[1, 2]
LARGEST = 128  # the paper measures up to 24 and predicts up to 128
_ASSUMED_RSD = 0.1
_APART = 0.05  # share of the larger rate from which on two forms differ: less is within the noise of a measurement
_TERMS: dict[Form, tuple[int, ...]] = {1: (-1, 0, 1, 2), 2: (1, 0, 2)}  # powers of m, the first to drop last


@dataclass(frozen=True, eq=False)
class MstModel:
    """A fitted curve over 1..``largest`` machines, and the standard deviation of measurements from it."""

    form: Form
    weights: Floats
    samples: MstSamples
    sd_per_s: float
    largest: int = LARGEST

    def mean_per_s(self, machines: int) -> float:
        """The rate that ``machines`` are expected to sustain."""
        if machines < 1:
            raise BadInput(f"throughput of {machines} machines: ask for at least 1")
        curve = self._curve if machines <= self.largest else _guarded(self, machines)
        return float(curve[machines - 1])

    def probability(self, machines: int, rate_per_s: float, extra_variance: float = 0.0) -> float:
        """P(MST(m) > lambda) for a load whose variance is ``extra_variance`` (Eq 8, 17 and 20)."""
        spare, sd = self.mean_per_s(machines) - rate_per_s, self._sd(extra_variance)
        return float(ndtr(spare / sd)) if sd > 0 else float(spare > 0)

    def fewest(
        self, rate_per_s: float, rho: float = 0.5, extra_variance: float = 0.0, most: int | None = None
    ) -> tuple[int, bool]:
        """The fewest machines, at most ``most``, with P(MST > rate) >= ``rho``; else the best size, and ``False``.

        >>> line = choose_model([(m, 10.0 * m) for m in (3, 4, 6, 8, 24)])
        >>> line.fewest(95.0), line.fewest(95.0, most=8)
        ((10, True), (8, False))
        """
        if not 0.5 <= rho < 1:
            raise BadInput(f"rho is {rho}: give a probability from 0.5 to below 1, such as 0.95")
        if not math.isfinite(rate_per_s):
            raise BadInput(f"rate is {rate_per_s}: give a finite rate per second")
        curve = self._best_so_far[: max(1, most if most is not None else self.largest)]
        need = rate_per_s + float(ndtri(rho)) * self._sd(extra_variance)
        enough = int(np.searchsorted(curve, need, side="right"))
        if enough < len(curve):
            return enough + 1, True
        return int(np.searchsorted(curve, curve[-1])) + 1, False

    def with_sample(self, machines: int, rate_per_s: float) -> MstModel:
        """The model refitted with one more sample. The form stays: online learning does not choose it again."""
        return fit_model(self.samples.with_one(machines, rate_per_s), self.form, self.largest)

    @cached_property
    def certain(self) -> MstModel:
        """The same curve taken as exact (Eq 4 and 18)."""
        return replace(self, sd_per_s=0.0)

    @cached_property
    def _curve(self) -> Floats:
        return _guarded(self, self.largest)

    @cached_property
    def _best_so_far(self) -> Floats:
        # sorted for searchsorted: its first element above a rate is the curve's first; flat beyond the maximum
        return np.maximum.accumulate(self._curve)

    def _sd(self, extra_variance: float) -> float:
        return math.sqrt(self.sd_per_s**2 + max(0.0, extra_variance))


def fit_model(samples: MstSamples, form: Form, largest: int = LARGEST) -> MstModel:
    """Least-squares fit of one form, with as many terms as the samples support."""
    if largest < 1:
        raise BadInput(f"largest is {largest}: predict at least 1 machine")
    terms = min(len(_TERMS[form]), len(samples.sizes), max(1, samples.number - 1))
    weights = _regressed(samples, form, terms)
    while terms > 1 and form == 1 and not _positive(weights, max(largest, samples.largest)):
        terms -= 1
        weights = _regressed(samples, form, terms)
    model = MstModel(form, weights, samples, 0.0, largest)
    return replace(model, sd_per_s=_residual_sd(model))


def choose_model(
    training: Iterable[tuple[int, float]],
    validation: Iterable[tuple[int, float]] = (),
    largest: int = LARGEST,
) -> MstModel:
    """Fit both forms to ``training`` and return the better one.

    Better is the smaller squared error over the ``validation`` samples of sizes at which the forms differ
    (``disagreeing_sizes``); without any, the smaller training error per degree of freedom (Eq 6), as the forms differ
    in coefficients. Form 2 wins a tie: it has fewer. Validation samples are not trained on.

    >>> choose_model([(m, 100.0 * m / (1 + 0.1 * m)) for m in (3, 4, 6, 8, 24)]).form
    1
    """
    samples = samples_of(training)
    models = (fit_model(samples, 2, largest), fit_model(samples, 1, largest))
    apart = set(disagreeing_sizes(*models))
    deciding = [pair for pair in validation if pair[0] in apart]
    errors = [_mean_error(model, deciding) if deciding else model.sd_per_s for model in models]
    rounding = 1e-9 * float(np.mean(samples.mean_per_s))
    return models[1] if errors[1] + rounding < errors[0] else models[0]


def disagreeing_sizes(one: MstModel, other: MstModel, threshold: float = _APART) -> tuple[int, ...]:
    """Unmeasured sizes at which two models differ by more than ``threshold`` of the larger: worth measuring."""
    size = min(one.largest, other.largest)
    a, b = _guarded(one, size), _guarded(other, size)
    apart = np.flatnonzero(np.abs(a - b) > threshold * np.maximum(a, b)) + 1
    return tuple(int(m) for m in apart if m not in one.samples.sizes)


def most_disagreeing(one: MstModel, other: MstModel) -> int | None:
    """The unmeasured size at which two models differ most, relative to the larger; ``None`` if below ``_APART``.

    >>> few = samples_of([(1, 90.0), (2, 150.0), (4, 200.0), (1, 91.0), (2, 151.0), (4, 201.0)])
    >>> most_disagreeing(fit_model(few, 1, largest=8), fit_model(few, 2, largest=8))
    8
    """
    size = min(one.largest, other.largest)
    a, b = _guarded(one, size), _guarded(other, size)
    apart = np.abs(a - b) / np.maximum(np.maximum(a, b), np.finfo(np.float64).tiny)
    sizes = disagreeing_sizes(one, other)
    return max(sizes, key=lambda m: float(apart[m - 1])) if sizes else None


def _regressed(samples: MstSamples, form: Form, terms: int) -> Floats:
    target = samples.mean_inverse_s if form == 1 else samples.mean_per_s
    columns = samples.sizes[:, None] ** np.array(_TERMS[form][:terms], dtype=np.float64)
    # columns range from 1/24 to 24^2: they are normalised, or rounding would determine the rank
    lengths = np.linalg.norm(columns, axis=0)
    root = np.sqrt(samples.counts)
    found = np.linalg.lstsq(root[:, None] * columns / lengths, root * target)[0]
    return np.asarray(found / lengths, dtype=np.float64)


def _polynomial(weights: Floats, form: Form, size: int) -> Floats:
    machines = np.arange(1.0, size + 1)[:, None]
    value: Floats = machines ** np.array(_TERMS[form][: len(weights)], dtype=np.float64) @ weights
    return value


def _positive(weights: Floats, size: int) -> bool:
    return bool(np.all(_polynomial(weights, 1, size) > 0))


def _guarded(model: MstModel, size: int) -> Floats:
    """The curve over 1..``size``: not negative, zero from a pole on, at most linear beyond the measured sizes."""
    measured = min(model.samples.largest, size)
    value = _polynomial(model.weights, model.form, size)
    if model.form == 1:
        sound = np.logical_and.accumulate(value > 0)
        value = np.where(sound, 1 / np.where(sound, value, 1.0), 0.0)
    value = np.maximum(value, 0.0)
    beyond = np.arange(measured + 1.0, size + 1) / measured
    value[measured:] = np.minimum(value[measured:], value[measured - 1] * beyond)
    return value


def _predicted(model: MstModel, samples: MstSamples) -> Floats:
    return _guarded(model, samples.largest)[samples.sizes.astype(np.int64) - 1]


def _mean_error(model: MstModel, pairs: list[tuple[int, float]]) -> float:
    judges = samples_of(pairs)
    return math.sqrt(judges.residual_squares(_predicted(model, judges)) / judges.number)


def _residual_sd(model: MstModel) -> float:
    samples = model.samples
    free = samples.number - len(model.weights)
    if free < 1:
        return _ASSUMED_RSD * float(np.mean(samples.mean_per_s))
    return math.sqrt(samples.residual_squares(_predicted(model, samples)) / free)
