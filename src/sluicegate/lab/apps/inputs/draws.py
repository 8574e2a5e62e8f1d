"""Pseudo-random numbers by formula: the same row number always gives the same draw.

``salt`` separates the draws of one row: to draw a user and an item for row i use two salts.
"""

from __future__ import annotations

import numpy as np

Whole = np.ndarray[tuple[int, ...], np.dtype[np.int64]]
Real = np.ndarray[tuple[int, ...], np.dtype[np.float64]]


def uniform(numbers: Whole, salt: int) -> Real:
    """Between 0 and 1, by the finaliser of splitmix64; neighbouring numbers give unrelated draws.

    >>> uniform(np.arange(3), salt=1).round(3).tolist()
    [0.098, 0.045, 0.248]
    """
    mixed = numbers.astype(np.uint64) + np.uint64(1) + (np.uint64(salt) << np.uint64(40))
    mixed = mixed * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((mixed ^ (mixed >> np.uint64(31))) >> np.uint64(11)).astype(np.float64) / 2**53


def ranked(numbers: Whole, salt: int, most: int) -> Whole:
    """From 0 to ``most`` - 1, rank n with frequency about 1 / (n + 1): Zipf's law, as for words and visitors.

    >>> np.bincount(ranked(np.arange(9000), salt=1, most=100))[[0, 1, 9]].tolist()
    [1327, 803, 198]
    """
    drawn: Whole = np.floor((most + 1) ** uniform(numbers, salt)).astype(np.int64) - 1
    return drawn


def flatter(numbers: Whole, salt: int, most: int) -> Whole:
    """From 0 to ``most`` - 1, rank n with frequency about n to the power -2/3, as for items of a large shop.

    >>> np.bincount(flatter(np.arange(9000), salt=1, most=100))[[0, 1, 9]].tolist()
    [1929, 514, 141]
    """
    drawn: Whole = np.floor(most * uniform(numbers, salt) ** 3).astype(np.int64)
    return drawn
