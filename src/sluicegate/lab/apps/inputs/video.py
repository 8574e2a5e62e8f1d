"""Generates a video with logos: frame i, and the logos it shows, are formulas of i.

Scenes have ``SCENE`` frames. Each has a backdrop, more or less clutter, and up to two logos, which move, rotate and
change in size from frame to frame. Some logos are shown far more often than others. Noise is added to everything.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from sluicegate.lab.apps.extra import extra

Image = np.ndarray[tuple[int, ...], np.dtype[np.uint8]]
Pattern = np.ndarray[tuple[int, ...], np.dtype[np.int16]]

LOGOS = 16
SCENE = 10
WIDTH, HEIGHT = 160, 120
_LOGO_SIDE = 64
_HALF = WIDTH // 2
_BACKDROPS = 8
_PRIME = 1_000_003


@dataclass(frozen=True, slots=True)
class Shown:
    """One logo in a frame, centred at (``x``, ``y``)."""

    logo: int
    x: float
    y: float
    scale: float
    turned_degrees: float


@cache
def logo(number: int) -> Image:
    """Draw a logo: blocks, discs, strokes and letters on a light background, the same on every machine."""
    cv2, dice = extra("cv2"), np.random.default_rng(7000 + number)
    image = np.full((_LOGO_SIDE, _LOGO_SIDE), 235, dtype=np.uint8)
    for _ in range(6):
        (x, y), size, ink = dice.integers(6, 56, 2).tolist(), int(dice.integers(5, 14)), int(dice.integers(0, 170))
        cv2.rectangle(image, (x - size, y - size // 2), (x + size, y + size // 2), ink, -1)
        (x, y), ink = dice.integers(6, 56, 2).tolist(), int(dice.integers(0, 256))
        cv2.circle(image, (x, y), size // 2 + 2, ink, -1)
        (x, y), (to_x, to_y) = dice.integers(0, 64, 2).tolist(), dice.integers(0, 64, 2).tolist()
        cv2.line(image, (x, y), (to_x, to_y), int(dice.integers(0, 256)), 2)
    letters = "".join(chr(65 + letter) for letter in dice.integers(0, 26, 3).tolist())
    cv2.putText(image, letters, (4, 42), cv2.FONT_HERSHEY_SIMPLEX, 0.8, 10, 2)
    return image


@cache
def _backdrop(number: int) -> Pattern:
    """Draw a backdrop with soft shading; the higher the number, the more clutter."""
    cv2, dice = extra("cv2"), np.random.default_rng(8000 + number)
    image = cv2.resize(dice.integers(60, 200, (4, 5)).astype(np.uint8), (WIDTH, HEIGHT), interpolation=cv2.INTER_CUBIC)
    for _ in range(8 * number):
        x, y = int(dice.integers(0, WIDTH)), int(dice.integers(0, HEIGHT))
        cv2.circle(image, (x, y), int(dice.integers(2, 7)), int(dice.integers(40, 220)), -1)
    return np.asarray(image, dtype=np.int16)


@cache
def _noise() -> Pattern:
    return np.random.default_rng(9000).normal(0.0, 5.0, (2 * HEIGHT, 2 * WIDTH)).astype(np.int16)


def _drawn(number: int, salt: int) -> float:
    """A pseudo-random number in [0, 1)."""
    mixed = (number * 2654435761 + salt * 40503 + 12345) % _PRIME
    return mixed * mixed % _PRIME / _PRIME


def shown_in(frame: int) -> list[Shown]:
    """The logos of a frame: none, one or two, each in its own half."""
    scene, at = divmod(frame, SCENE)
    halves = [half for half in (0, 1) if _drawn(scene, half) < 0.6]
    picked = [int(LOGOS ** _drawn(scene, 2 + half)) - 1 for half in halves]
    return [
        Shown(
            logo=(number + 5 * scene * half) % LOGOS,
            x=_HALF * (half + 0.5) + 4.0 * np.sin(at / 3 + scene),
            y=HEIGHT / 2 + 14.0 * np.cos(at / 4 + 2.0 * scene + half),
            scale=0.85 + 0.3 * _drawn(scene, 4 + half) + 0.01 * at,
            turned_degrees=60.0 * (_drawn(scene, 6 + half) - 0.5) + 2.0 * at,
        )
        for half, number in zip(halves, picked, strict=True)
    ]


def frame(number: int) -> Image:
    image = _backdrop(int(_BACKDROPS * _drawn(number // SCENE, 8))).copy()
    for one in shown_in(number):
        _paste(image, one)
    x, y = number * 31 % WIDTH, number * 17 % HEIGHT
    image += _noise()[y : y + HEIGHT, x : x + WIDTH]
    return np.clip(image, 0, 255).astype(np.uint8)


def _paste(image: Pattern, shown: Shown) -> None:
    cv2 = extra("cv2")
    turn = cv2.getRotationMatrix2D((_LOGO_SIDE / 2, _LOGO_SIDE / 2), shown.turned_degrees, shown.scale)
    turn[:, 2] += (shown.x - _LOGO_SIDE / 2, shown.y - _LOGO_SIDE / 2)
    pasted = cv2.warpAffine(logo(shown.logo), turn, (WIDTH, HEIGHT), flags=cv2.INTER_LINEAR)
    covered = cv2.warpAffine(np.full((_LOGO_SIDE, _LOGO_SIDE), 255, np.uint8), turn, (WIDTH, HEIGHT), flags=0)
    np.copyto(image, pasted, where=covered > 0)
