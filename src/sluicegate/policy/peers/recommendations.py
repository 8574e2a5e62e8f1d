"""A window of past recommendations: a decrease goes no lower than the largest of them (Kubernetes' stabilisation)."""

from __future__ import annotations

from collections.abc import Mapping

Recommendations = tuple[tuple[float, Mapping[str, int]], ...]


def noted(past: Recommendations, now_s: float, best: Mapping[str, int], window_s: float) -> Recommendations:
    """The recommendations younger than the window, with the newest.

    >>> noted(((0.0, {"a": 5}), (10.0, {"a": 3})), 300.0, {"a": 2}, window_s=300.0)
    ((10.0, {'a': 3}), (300.0, {'a': 2}))
    """
    return (*((at_s, sizes) for at_s, sizes in past if at_s > now_s - window_s), (now_s, best))


def largest_of(recommended: Recommendations, name: str) -> int:
    """The largest size recommended for one operator."""
    return max(sizes.get(name, 0) for _, sizes in recommended)
