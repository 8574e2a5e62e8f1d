"""Parses Kafka offsets from Spark's offset log and from the broker: one number per partition of each source."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sluicegate.runlog.files import read_if_there

Offsets = dict[str, int]
"""Offsets by "source/topic/partition"; sources are numbered as in the offset log."""


@dataclass(frozen=True, slots=True)
class BrokerOffsets:
    """The broker's answer: offsets, and the most tasks of a batch over all partitions (0: no limit)."""

    offsets: Offsets
    tasks: int


def told(text: str) -> BrokerOffsets:
    r"""
    >>> told("2\ta\t0\t17\ta\t1\t4\n\n1\tb\t0\t5\n")
    BrokerOffsets(offsets={'0/a/0': 17, '0/a/1': 4, '2/b/0': 5}, tasks=3)
    """
    offsets: Offsets = {}
    tasks = []
    for source, line in enumerate(text.splitlines()):
        if line:
            most, *triples = line.split("\t")
            tasks.append(int(most))
            for topic, partition, offset in zip(*[iter(triples)] * 3, strict=True):
                offsets[f"{source}/{topic}/{partition}"] = int(offset)
    return BrokerOffsets(offsets, sum(tasks) if all(tasks) else 0)


def planned(checkpoint: Path, batch: int) -> Offsets:
    """One past the last offset of each partition as of ``batch``; with -1, the offsets at which the query begins."""
    if batch < 0:
        return _begun(checkpoint)
    text = read_if_there(checkpoint / "offsets" / str(batch), "replace")
    lines = (text or "").splitlines()[2:]
    return {key: offset for source, line in enumerate(lines) for key, offset in _read(source, line).items()}


def taken_by(checkpoint: Path, batch: int) -> dict[str, tuple[int, int]]:
    """For each partition: the first offset of a batch, and one past its last; a new partition begins at 0."""
    before, after = {**_begun(checkpoint), **planned(checkpoint, batch - 1)}, planned(checkpoint, batch)
    return {key: (before.get(key, 0), end) for key, end in after.items()}


def behind(latest: Mapping[str, int], taken: Mapping[str, int]) -> Offsets:
    """Rows of each partition that no batch has read."""
    return {key: max(offset - taken.get(key, 0), 0) for key, offset in latest.items()}


def _begun(checkpoint: Path) -> Offsets:
    found: Offsets = {}
    for path in sorted((checkpoint / "sources").glob("*/0")):
        for line in (read_if_there(path, "replace") or "").replace("\0", "").splitlines():
            found |= _read(int(path.parent.name), line)
    return found


def _read(source: int, line: str) -> Offsets:
    """Parse one source's line; empty if it is of another kind of source."""
    try:
        topics = json.loads(line) if line.startswith("{") else {}
        return {f"{source}/{t}/{p}": int(o) for t, parts in topics.items() for p, o in parts.items()}
    except (ValueError, AttributeError, TypeError):
        return {}
