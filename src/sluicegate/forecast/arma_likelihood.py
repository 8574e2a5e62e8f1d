"""Exact likelihood of an ARMA(p, q) series, by one Kalman filter pass in compiled code.

    x_t = phi_1 x_{t-1} + .. + phi_p x_{t-p} + e_t + theta_1 e_{t-1} + .. + theta_q e_{t-q}

(theta with Eq 9's sign; the series has zero mean.) In Harvey's state space of r = max(p, q + 1) elements the next
value is the first element, and

    T_i1 = phi_i,  T_i,i+1 = 1,  R = (1, theta_1, .., theta_{r-1}),  P_0 = T P_0 T' + R R'

With v_t the innovations and f_t their variances in units of sigma^2, sigma^2 = mean(v^2/f), and -2 log L is, up to a
constant, n log of a sum of squares: sum (g v_t/sqrt(f_t))^2 with g = (f_1 .. f_n)^(1/2n). So a least-squares solver
maximises it.

Unconstrained parameters are mapped to coefficients through partial autocorrelations u/sqrt(1 + u^2), so that every fit
is stationary and invertible.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_INSIDE = 1 - 1e-6  # bound on partial autocorrelations, so that P_0 is finite
_STEADY = 1e-10  # excess covariance below which the gain counts as constant
_LEAST_VARIANCE = 1e-300  # keeps the likelihood of a series predicted without error finite
_DOUBLINGS = 40  # T^(2^40): enough for every root _INSIDE allows


@njit(cache=True)
def bounded(free: Floats) -> Floats:
    """Coefficients a with 1 - a_1 z - .. - a_n z^n stable, from free parameters (Durbin and Levinson's recursion).

    >>> bounded(np.array([0.75])).round(3).tolist()
    [0.6]
    """
    n = len(free)
    a = np.zeros(n)
    longer = np.zeros(n)
    for k in range(n):
        partial = _INSIDE * free[k] / math.sqrt(1.0 + free[k] * free[k])
        for i in range(k):
            longer[i] = a[i] - partial * a[k - 1 - i]
        for i in range(k):
            a[i] = longer[i]
        a[k] = partial
    return a


@njit(cache=True)
def unbounded(coefficients: Floats) -> Floats:
    """Inverse of ``bounded``; partial autocorrelations are clipped to +-0.95, which makes unstable ones stable."""
    n = len(coefficients)
    a = coefficients.copy()
    shorter = np.zeros(n)
    free = np.zeros(n)
    for k in range(n - 1, -1, -1):
        partial = min(max(a[k], -0.95), 0.95)
        rest = 1.0 - partial * partial
        free[k] = partial / math.sqrt(rest)
        for i in range(k):
            shorter[i] = (a[i] + partial * a[k - 1 - i]) / rest
        for i in range(k):
            a[i] = shorter[i]
    return free


@njit(cache=True)
def _times(left: Floats, right: Floats, transposed: bool) -> Floats:
    # explicit loops: at 4 by 4 a BLAS call costs more than it saves
    n = len(left)
    product = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            for k in range(n):
                product[i, j] += left[i, k] * (right[j, k] if transposed else right[k, j])
    return product


@njit(cache=True)
def stationary_covariance(phi: Floats, noise: Floats) -> Floats:
    """P_0 = sum of T^k R R' T'^k, by doubling: each iteration sums twice as many terms.

    Padded with one row and one column of zeros, which the filter's shift reads.
    """
    r = len(noise)
    step = np.zeros((r + 1, r + 1))
    covariance = np.zeros((r + 1, r + 1))
    for i in range(r):
        if i < len(phi):
            step[i, 0] = phi[i]
        if i + 1 < r:
            step[i, i + 1] = 1.0
        for j in range(r):
            covariance[i, j] = noise[i] * noise[j]
    for _ in range(_DOUBLINGS):
        covariance = covariance + _times(_times(step, covariance, False), step, True)
        step = _times(step, step, False)
        largest = 0.0
        for entry in step.flat:
            largest = max(largest, abs(entry))
        if largest < 1e-12:
            break
    return covariance


@njit(cache=True)
def innovations(x: Floats, phi: Floats, theta: Floats) -> tuple[Floats, Floats, Floats]:
    """One-step errors v, their variances f in units of sigma^2, and the state expected next."""
    n, p, r = len(x), len(phi), max(len(phi), len(theta) + 1)
    noise = np.zeros(r)
    noise[0] = 1.0
    for i in range(len(theta)):
        noise[i + 1] = theta[i]
    covariance = stationary_covariance(phi, noise)
    state, gain = np.zeros(r + 1), np.zeros(r + 1)
    v, f = np.empty(n), np.empty(n)
    steady, variance = False, 1.0
    for t in range(n):
        if not steady:
            variance = max(covariance[0, 0], 1.0)
            excess = 0.0
            for i in range(r):
                gain[i] = covariance[i, 0] / variance
                excess += covariance[i, i] - noise[i] * noise[i]
            steady = excess < _STEADY
        v[t], f[t] = x[t] - state[0], variance
        for i in range(r):
            state[i] = (phi[i] * x[t] if i < p else 0.0) + state[i + 1] + gain[i + 1] * v[t]
        if not steady:
            # observing x_t makes the first element certain, so that T only shifts the remaining covariance
            ahead = np.zeros((r + 1, r + 1))
            for i in range(r):
                for j in range(r):
                    left = covariance[i + 1, j + 1] - gain[i + 1] * covariance[0, j + 1]
                    ahead[i, j] = left + noise[i] * noise[j]
            covariance = ahead
    return v, f, state[:r]


@njit(cache=True)
def scaled_errors(free: Floats, x: Floats, p: int) -> Floats:
    """The errors g v/sqrt(f), whose sum of squares is minimal at maximum likelihood."""
    v, f, _ = innovations(x, bounded(free[:p]), -bounded(free[p:]))
    logs = 0.0
    for variance in f:
        logs += math.log(variance)
    g = math.exp(logs / (2 * len(x)))
    for t in range(len(x)):
        v[t] *= g / math.sqrt(f[t])
    return v


@njit(cache=True)
def ahead_of(state: Floats, phi: Floats, steps: int) -> Floats:
    """Expected values of the next ``steps``: the state propagated without innovations (Eq 10)."""
    r = len(state)
    means, now = np.empty(steps), np.zeros(r + 1)
    for i in range(r):
        now[i] = state[i]
    for h in range(steps):
        means[h] = first = now[0]
        for i in range(r):
            now[i] = (phi[i] * first if i < len(phi) else 0.0) + now[i + 1]
    return means


def log_likelihood(x: Floats, phi: Floats, theta: Floats) -> float:
    """log L at its maximum over sigma^2, which is at mean(v^2/f).

    >>> round(log_likelihood(np.array([1.0, -1.0]), np.empty(0), np.empty(0)), 4)
    -2.8379
    """
    v, f, _ = innovations(x, phi, theta)
    variance = max(float(np.mean(v * v / f)), _LEAST_VARIANCE)
    return -0.5 * (len(x) * (math.log(2 * math.pi * variance) + 1.0) + float(np.log(f).sum()))
