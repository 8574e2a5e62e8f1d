"""SIFT features of images, and how many of them match each logo.

A feature is 128 whole numbers from 0 to 255. It matches the logo feature nearest to it by L2 distance, if that one is
clearly nearer than the second nearest: Lowe's ratio test, d1 < 0.8 d2, here as 25 d1^2 < 16 d2^2. All these numbers are
whole and below 2^24, so 32 bits hold them exactly and no rounding decides a match.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from sluicegate.lab.apps.extra import extra
from sluicegate.lab.apps.inputs.video import LOGOS, Image, logo

LENGTH = 128
Features = np.ndarray[tuple[int, ...], np.dtype[np.float32]]
Numbers = np.ndarray[tuple[int, ...], np.dtype[np.int64]]


def features_of(image: Image) -> Features:
    """The SIFT features of an image, one row each."""
    _, found = _sift().detectAndCompute(image, None)
    return np.zeros((0, LENGTH), np.float32) if found is None else np.asarray(found, np.float32)


@cache
def _sift() -> Any:
    cv2 = extra("cv2")
    cv2.setNumThreads(1)  # sluicegate decides on parallelism
    return cv2.SIFT_create()


@cache
def logo_features() -> tuple[Features, Numbers]:
    """The features of all logos, and the logo of each."""
    each = [features_of(logo(number)) for number in range(LOGOS)]
    return np.vstack(each), np.repeat(np.arange(LOGOS), [len(one) for one in each])


def matches_by_logo(found: Features) -> Numbers:
    """Matches per logo, computed by OpenCV, which uses one thread, unlike numpy's matrix product."""
    known, owner = logo_features()
    matches = np.zeros(LOGOS, np.int64)
    for nearest, second in extra("cv2").BFMatcher().knnMatch(found, known, k=2):
        if 25 * round(nearest.distance**2) < 16 * round(second.distance**2):
            matches[owner[nearest.trainIdx]] += 1
    return matches


def matches_by_formula(found: Features) -> Numbers:
    """The same by |a - b|^2 = |a|^2 + |b|^2 - 2ab for all pairs at once, to check OpenCV's result."""
    known, owner = logo_features()
    squared = (found**2).sum(axis=1)[:, None] + (known**2).sum(axis=1) - 2 * found @ known.T
    nearest, second = np.partition(squared, 1, axis=1)[:, :2].T.astype(np.int64)
    clear = 25 * nearest < 16 * second
    return np.bincount(owner[squared.argmin(axis=1)[clear]], minlength=LOGOS)
