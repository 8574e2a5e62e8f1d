"""Video logo detection: which of 16 logos does a frame show?

    extract    (stateless)  a frame -> its SIFT features, in parts of at most ``PART``
    match      (stateless)  a part -> how many of its features match each logo
    aggregate  (stateful)   adds up the parts of a frame; a logo with at least ``ENOUGH`` matches is in it

Each part carries the number of parts of its frame, so the aggregator knows when a frame is complete, emits it once and
drops its state: the result does not depend on batch boundaries.

The VLD application of DRS, with a generated video (``lab.apps.inputs.video``) in place of a real one. DRS bounds the
distance of a match; the ratio test used here needs no such bound. Needs OpenCV.

``vld_waiting`` is the same, with a sleep per frame (fetched from a camera) and per part (looked up at a service):
sleeping needs no core, so that throughput depends on k even with few cores.

A feature is 128 whole numbers from 0 to 255. It matches the logo feature nearest to it by L2 distance, if that one is
clearly nearer than the second nearest: Lowe's ratio test, d1 < 0.8 d2, here as 25 d1^2 < 16 d2^2. All these numbers are
whole and below 2^24, so 32 bits hold them exactly and no rounding decides a match.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout

from sluicegate.lab.apps.extra import extra
from sluicegate.lab.apps.inputs.video import HEIGHT, LOGOS, WIDTH, Image, frame, logo, shown_in
from sluicegate.lab.apps.waits import later
from sluicegate.lab.running.app import Answer, App, compare
from sluicegate.spark.pipeline.declaration import Pipeline

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


PART = 64
ENOUGH = 6
RECALL = 0.95
"""Share of the logos in the video that must be found, independently of SIFT and the matcher."""
_FRAME = pa.schema([pa.field("frame", pa.int64()), pa.field("parts", pa.int32())])
_PARTS = _FRAME.append(pa.field("features", pa.binary()))
_MATCHES = _FRAME.append(pa.field("matched", pa.list_(pa.int32())))
_STATE = "parts int, matched binary"

Row = dict[str, Any]
Found = tuple[int, str]
"""A frame's number and its logos, such as "0 2"."""


def extract(frames: DataFrame) -> DataFrame:
    extra("cv2")
    return _each_row(frames, _extracted, _PARTS)


def match(parts: DataFrame) -> DataFrame:
    return _each_row(parts, _matched, _MATCHES)


def aggregate(matches: DataFrame) -> DataFrame:
    return matches.groupBy("frame").applyInPandasWithState(
        added_up, "frame long, logos string", _STATE, "update", GroupStateTimeout.NoTimeout
    )


def _each_row(rows: DataFrame, work: Callable[[Row], list[Row]], schema: pa.Schema) -> DataFrame:
    def worked(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield pa.RecordBatch.from_pylist([made for row in batch.to_pylist() for made in work(row)], schema)

    return rows.mapInArrow(worked, from_arrow_schema(schema))


def _extracted(row: Row) -> list[Row]:
    image = np.frombuffer(row["image"], dtype=np.uint8).reshape(HEIGHT, WIDTH)
    found = features_of(image).astype(np.uint8)
    parts = [found[at : at + PART] for at in range(0, len(found), PART)] or [found]
    return [{"frame": row["frame"], "parts": len(parts), "features": part.tobytes()} for part in parts]


def _matched(row: Row) -> list[Row]:
    found = np.frombuffer(row["features"], dtype=np.uint8).reshape(-1, LENGTH).astype(np.float32)
    return [{"frame": row["frame"], "parts": row["parts"], "matched": matches_by_logo(found).tolist()}]


def added_up(key: tuple[int], matches: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
    """Add up parts of one frame; emit its logos with the last part."""
    seen, kept = state.getOption or (0, bytes(8 * LOGOS))
    matched, parts = np.frombuffer(kept, dtype=np.int64), 0
    for some in matches:
        seen, parts = seen + len(some), int(some["parts"].iloc[0])
        matched = matched + np.stack(some["matched"].to_list()).sum(axis=0, dtype=np.int64)
    if seen < parts:
        state.update((seen, matched.tobytes()))
        return
    if state.exists:
        state.remove()
    yield pd.DataFrame({"frame": [key[0]], "logos": [named(matched)]})


def named(matched: Numbers) -> str:
    """
    >>> named(np.array([7, 0, 6, 5]))
    '0 2'
    """
    return " ".join(str(number) for number in np.flatnonzero(matched >= ENOUGH).tolist())


def build(key_groups: int = 4, fetch_ms: float = 0.0, look_up_ms: float = 0.0) -> Pipeline:
    """The pipeline. The aggregator has its own query, so that its key groups do not cap the feature extraction.

    ``fetch_ms`` is a sleep per frame and ``look_up_ms`` per part, each in an operator with its own k.
    """
    waits = fetch_ms > 0 or look_up_ms > 0
    pipeline = Pipeline("vld_waiting" if waits else "vld")
    frames = pipeline.source("frames", "frame long, image binary")
    features = pipeline.operator("extract", later(extract, fetch_ms), frames)
    matches = pipeline.operator("match", later(match, look_up_ms), features, fuse=not waits)
    found = pipeline.operator("aggregate", aggregate, matches, stateful=True, fuse=False, key_groups=key_groups)
    pipeline.sink("found", found)
    return pipeline


def rows(source: str, first: int, count: int) -> pa.Table:
    numbers = range(first, first + count)
    images = pa.array([frame(number).tobytes() for number in numbers], pa.binary())
    return pa.table({"frame": pa.array(numbers, pa.int64()), "image": images})


def logos_in(image: Image) -> str:
    return named(matches_by_formula(features_of(image)))


def check(fed: Mapping[str, int], sinks: Mapping[str, DataFrame]) -> Answer:
    return judged(fed["frames"], [(int(row["frame"]), str(row["logos"])) for row in sinks["found"].collect()])


def judged(frames: int, told: list[Found]) -> Answer:
    """Check that each frame comes out once with the logos found by the formula, and that recall is high enough."""
    wanted: Counter[object] = Counter((number, logos_in(frame(number))) for number in range(frames))
    answer, recall = compare(wanted, Counter[object](told), len(told)), recall_of(told)
    return answer if recall >= RECALL else replace(answer, exact=False, note=f"only {recall:.0%} of the logos found")


def recall_of(told: list[Found]) -> float:
    """The share of the logos really present in the reported frames that were found."""
    there = [str(one.logo) in logos.split() for number, logos in told for one in shown_in(number)]
    return sum(there) / len(there) if there else 1.0


APP = App(
    name="vld",
    about="logos in a video: SIFT features, matched with those of 16 logos, added up by frame (stateful)",
    paper="DRS",
    build=build,
    rows=rows,
    check=check,
    calm_per_s=10.0,
    slo="mean=5s",
)

FETCH_MS, LOOK_UP_MS = 50.0, 20.0
WAITING = replace(
    APP,
    name="vld_waiting",
    about=f"vld whose frames are fetched ({FETCH_MS:g} ms) and logos looked up ({LOOK_UP_MS:g} ms a part): k matters "
    "where cores are few",
    build=partial(build, fetch_ms=FETCH_MS, look_up_ms=LOOK_UP_MS),
    calm_per_s=8.0,
    slo="mean=8s",
)
