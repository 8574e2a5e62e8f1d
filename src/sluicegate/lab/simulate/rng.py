"""Random numbers inside compiled code: xoshiro256++ streams, seeded by splitmix64, and an exponential by ziggurat.

Each source and each operator has its own stream, so the same seed gives the same arrivals whatever the allocation: two
plans can be compared on exactly the same load. Streams are rows of an array that the caller owns; there is no global
state, so threads do not interfere.

The ziggurat covers exp(-x) by 256 layers of equal area v, the lowest reaching from 0 to r and beyond as the tail:

    x_1 = r,  x_{i+1} = -log(v/x_i + exp(-x_i)),  x_0 = v exp(r)

A draw u x_i below x_{i+1} certainly lies under the curve (98.9% of all), which avoids the logarithm.
"""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from sluicegate.lab.simulate.compiled import compiled, inlined

Streams: TypeAlias = NDArray[np.uint64]
"""One row of four words per stream."""

_LAYERS = 256
_TAIL = 7.69711747013104972
_AREA = 0.0039496598225815571993
_TO_UNIT = 2.0**-53
_MASK = (1 << 64) - 1


def seeded(seed: int, streams: int) -> Streams:
    """Streams from one seed that do not overlap in practice.

    >>> seeded(7, 2).shape, bool((seeded(7, 2) == seeded(7, 2)).all()), bool((seeded(7, 2) == seeded(8, 2)).any())
    ((2, 4), True, False)
    """
    state = seed & _MASK
    words: list[int] = []
    for _ in range(4 * streams):
        state = (state + 0x9E3779B97F4A7C15) & _MASK
        z = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
        words.append(z ^ (z >> 31))
    return np.array(words, dtype=np.uint64).reshape(streams, 4)


def _layers() -> NDArray[np.float64]:
    edges = np.zeros(_LAYERS + 1)
    edges[0], edges[1] = _AREA * math.exp(_TAIL), _TAIL
    for i in range(2, _LAYERS):
        edges[i] = -math.log(_AREA / edges[i - 1] + math.exp(-edges[i - 1]))
    return edges


_EDGES = _layers()
_HEIGHTS = np.exp(-_EDGES)


@inlined
def next_word(streams: Streams, i: int) -> np.uint64:
    """64 random bits of stream ``i``."""
    s = streams[i]
    s0, s1, s2, s3 = s[0], s[1], s[2], s[3]
    total = s0 + s3
    word: np.uint64 = ((total << np.uint64(23)) | (total >> np.uint64(41))) + s0
    s2 ^= s0
    s3 ^= s1
    s[1] = s1 ^ s2
    s[0] = s0 ^ s3
    s[2] = s2 ^ (s1 << np.uint64(17))
    s[3] = (s3 << np.uint64(45)) | (s3 >> np.uint64(19))
    return word


@inlined
def uniform(streams: Streams, i: int) -> float:
    """A number from 0 up to, not including, 1."""
    return np.float64(next_word(streams, i) >> np.uint64(11)) * _TO_UNIT


@inlined
def exponential(streams: Streams, i: int) -> float:
    """A draw with mean 1."""
    word = next_word(streams, i)
    layer = np.int64(word & np.uint64(_LAYERS - 1))
    x: float = np.float64(word >> np.uint64(11)) * _TO_UNIT * _EDGES[layer]
    if x < _EDGES[layer + 1]:
        return x
    return _near_the_curve(streams, i, layer, x)


@compiled
def _near_the_curve(streams: Streams, i: int, layer: np.int64, x: float) -> float:
    """The rare draw that may not lie under the curve: sample the tail, or test against the curve."""
    while True:
        if layer == 0:
            return _TAIL - math.log(1.0 - uniform(streams, i))
        height = _HEIGHTS[layer] + uniform(streams, i) * (_HEIGHTS[layer + 1] - _HEIGHTS[layer])
        if height < math.exp(-x):
            return x
        word = next_word(streams, i)
        layer = np.int64(word & np.uint64(_LAYERS - 1))
        x = np.float64(word >> np.uint64(11)) * _TO_UNIT * _EDGES[layer]
        if x < _EDGES[layer + 1]:
            return x


@compiled
def normal(streams: Streams, i: int) -> float:
    """A standard normal draw, by Marsaglia's polar method; the second of the pair is not kept."""
    while True:
        u = 2.0 * uniform(streams, i) - 1.0
        v = 2.0 * uniform(streams, i) - 1.0
        s = u * u + v * v
        if 0.0 < s < 1.0:
            return u * math.sqrt(-2.0 * math.log(s) / s)
