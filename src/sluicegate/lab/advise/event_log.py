"""Reads Spark's event logs as a stream of the few events that describe streaming queries.

A log is one file, or a folder of rolled files (``eventlog_v2_...``); each may be compressed by Spark's codecs. Task
events, nine tenths of a log, are skipped without parsing: their sums are in the event of their stage.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import struct
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa

from sluicegate.errors import BadInput

Event = Mapping[str, Any]
_EVENT = re.compile(rb'\{"Event":"([^"]+)"')
_STREAMING = "org.apache.spark.sql.streaming.StreamingQueryListener$"
WANTED = frozenset(
    {
        "SparkListenerApplicationStart",
        "SparkListenerApplicationEnd",
        "SparkListenerEnvironmentUpdate",
        "SparkListenerExecutorAdded",
        "SparkListenerExecutorRemoved",
        "SparkListenerJobStart",
        "SparkListenerStageCompleted",
        f"{_STREAMING}QueryStartedEvent",
        f"{_STREAMING}QueryProgressEvent",
        f"{_STREAMING}QueryIdleEvent",
        f"{_STREAMING}QueryTerminatedEvent",
    }
)
_BLOCK_BYTES = 2**20
_ZSTD = b"\x28\xb5\x2f\xfd"
_MOST_LINE_BYTES = 64 * 2**20
"""Longer lines are skipped to bound memory; no event that is needed here is that long."""

Progress = Callable[[int, int], None]
"""Called with the bytes read so far and the total bytes."""


def events(log: Path, progress: Progress | None = None) -> Iterator[Event]:
    """The ``WANTED`` events of a log, in order; an incomplete last line, left by a killed driver, is ignored."""
    files, spark = _files(log), False
    total, before = sum(file.stat().st_size for file in files), 0
    for file in files:
        with file.open("rb") as raw:
            for line in _lines(_plain(raw, file)):
                spark = spark or _EVENT.match(line) is not None
                found = _event(line, file)
                if found is not None:
                    yield found
                if progress is not None:
                    progress(before + raw.tell() if not raw.closed else before, total)
        before += file.stat().st_size
    if not spark:
        raise BadInput(f"{log} holds no event of Spark: give an event log, which spark.eventLog.dir has")


def name_of(event: Event) -> str:
    """The event's name without Spark's package."""
    return str(event["Event"]).removeprefix(_STREAMING)


def _files(log: Path) -> list[Path]:
    if log.is_file():
        return [log]
    if not log.is_dir():
        raise BadInput(f"no event log {log}: give a file or a folder that spark.eventLog.dir has")
    rolled = [path for path in log.iterdir() if path.name.startswith("events_")]
    if not rolled:
        raise BadInput(f"{log} holds no rolled event log (events_1_...): give one application's log, not their folder")
    return _current(rolled)


def _current(rolled: list[Path]) -> list[Path]:
    """The rolled files in order, without those that the history server has compacted and not yet deleted."""
    placed = sorted((_number(path), _is_compacted(path), path) for path in rolled)
    first = max((at for at, (_, compacted, _) in enumerate(placed) if compacted), default=0)
    return [path for _, _, path in placed[first:]]


def _number(path: Path) -> int:
    number = path.name.split("_")[1]
    return int(number) if number.isdigit() else 0


def _is_compacted(path: Path) -> bool:
    return path.name.endswith(".compact")


def _event(line: bytes, file: Path) -> Event | None:
    named = _EVENT.match(line)
    if named is None or named[1].decode("utf-8", errors="replace") not in WANTED:
        return None
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        if line.endswith(b"\n"):
            raise BadInput(f"{file} holds a damaged line ({line[:60]!r} ...): is it an event log of Spark?") from None
        return None  # the driver was killed while writing this line
    return found if isinstance(found, dict) else None


def _lines(file: BinaryIO) -> Iterator[bytes]:
    """The lines of a file; of a line that is too long only its first part."""
    while line := file.readline(_MOST_LINE_BYTES):
        yield line
        while not line.endswith(b"\n") and (line := file.readline(_MOST_LINE_BYTES)):
            pass


def _plain(raw: BinaryIO, file: Path) -> BinaryIO:
    """The decompressed log; the suffix of the file name gives the codec."""
    codec = next((s.lstrip(".") for s in reversed(file.suffixes) if s not in (".inprogress", ".compact")), "")
    if codec in ("zstd", "zst"):
        return io.BufferedReader(_Unpacked(_zstd(raw, file)), 2**20)
    if codec == "lz4":
        return io.BufferedReader(_Unpacked(_lz4_blocks(raw, file)), 2**20)
    if codec == "snappy":
        return io.BufferedReader(_Unpacked(_snappy_blocks(raw, file)), 2**20)
    if codec == "lzf":
        raise BadInput(f"{file} is compressed by lzf, which is not read here: unpack it first")
    return raw


class _Unpacked(io.RawIOBase):
    """A readable file over an iterator of blocks."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks, self._left = blocks, b""

    def readable(self) -> bool:
        return True

    def readinto(self, into: Any) -> int:
        while not self._left:
            block = next(self._blocks, None)
            if block is None:
                return 0
            self._left = block
        count = min(len(into), len(self._left))
        into[:count], self._left = self._left[:count], self._left[count:]
        return count


def _zstd(raw: Any, file: Path) -> Iterator[bytes]:
    """Decompressed blocks; a truncated or still growing log may end inside a frame, which is not an error."""
    stream, done = pa.CompressedInputStream(pa.PythonFile(raw, mode="r"), "zstd"), 0
    try:
        while block := stream.read(_BLOCK_BYTES):
            done += 1
            yield block
    except OSError as problem:
        with file.open("rb") as again:
            if not _ZSTD.startswith(again.read(len(_ZSTD))):
                raise BadInput(f"{file} is not compressed by zstd as its name says: {problem}") from None
        yield _zstd_end(file, done)


def _zstd_end(file: Path, blocks: int) -> bytes:
    """What a frame that does not end holds after this many blocks: the failed read has lost what it had unpacked."""
    found = bytearray()
    with pa.CompressedInputStream(pa.OSFile(str(file), "rb"), "zstd") as stream:
        for _ in range(blocks):
            stream.read(_BLOCK_BYTES)
        with contextlib.suppress(OSError):
            while byte := stream.read(1):
                found += byte
    return bytes(found)


def _lz4_blocks(raw: BinaryIO, file: Path) -> Iterator[bytes]:
    """Decompress lz4-java blocks: magic, token, compressed and plain length, checksum, data."""
    codec = pa.Codec("lz4_raw")
    while len(head := raw.read(21)) == 21:
        magic, token, packed, plain, _ = struct.unpack("<8sBiii", head)
        if magic != b"LZ4Block":
            raise BadInput(f"{file} is not compressed by lz4 as its name says")
        body = raw.read(max(packed, 0))
        if len(body) < packed:
            return
        if plain:
            yield body if token & 0xF0 == 0x10 else _unpacked(codec, body, plain, file)


def _snappy_blocks(raw: BinaryIO, file: Path) -> Iterator[bytes]:
    """Decompress snappy-java blocks: one header, then blocks with their length; each begins with its plain length."""
    codec = pa.Codec("snappy")
    if not raw.read(16).startswith(b"\x82SNAPPY\x00"):
        raise BadInput(f"{file} is not compressed by snappy as its name says")
    while len(head := raw.read(4)) == 4:
        (packed,) = struct.unpack(">i", head)
        body = raw.read(max(packed, 0))
        if len(body) < packed:
            return
        yield _unpacked(codec, body, _varint(body), file)


def _unpacked(codec: pa.Codec, body: bytes, plain: int, file: Path) -> bytes:
    if not 0 <= plain <= _MOST_LINE_BYTES:
        raise BadInput(f"{file} is damaged: a block of it claims to hold {plain:,} bytes")
    try:
        found: bytes = codec.decompress(body, plain, asbytes=True)
    except OSError as problem:
        raise BadInput(f"{file} is damaged: {problem}") from None
    return found


def _varint(body: bytes) -> int:
    value = shift = 0
    for byte in body:
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
    return value
