"""Capacity files: the measured throughput of numbers of machines, as TOML.

[[points]]
machines = 3
rate_per_s = 5200.0
sd_per_s = 260.0        # of one draw; 5% of the rate where it is not given

`sluicegate profile APP --mst` writes such a file with everything below; by hand the points are enough.

app = "grep_waiting"    # what was measured; a run of another application refuses the file
measured = "2026-01-31T12:00:00Z"
slots_per_node = 4      # then a machine is a node with so many task slots
startup_s = 14.5        # from asking for a node to its first warm task
model = 1               # the form of the curve that was chosen
assumed = ["..."]       # what the figures hold for
[machine]               # where it was measured: texts and numbers
[versions]
[[points]]
samples_per_s = [..]    # the throughputs that the mean and the deviation are of
use = "validation"      # decides between the models, is not trained on; else "training"
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Literal

from sluicegate.config.profile_file import ProfileFile, read_profile_file
from sluicegate.config.table import Table, read_toml
from sluicegate.domain.topology import require, require_number
from sluicegate.errors import BadInput
from sluicegate.model.task_profile import peak

_RSD = 0.05
_MOST_MACHINES = 100_000
_SLOTS = (1, 2, 4, 8, 16, 32, 64)
Use = Literal["training", "validation"]
Samples = tuple[tuple[int, float], ...]


@dataclass(frozen=True, slots=True)
class CapacityPoint:
    """Measured throughput of one size; ``samples_per_s`` is empty if only the mean is known."""

    machines: int
    rate_per_s: float
    sd_per_s: float
    samples_per_s: tuple[float, ...] = ()
    use: Use = "training"


@dataclass(frozen=True, slots=True)
class CapacityFile:
    """Points by rising size, and how they were measured; what the file does not give is empty."""

    points: tuple[CapacityPoint, ...]
    app: str = ""
    measured: str = ""
    slots_per_node: int | None = None
    startup_s: float | None = None
    model: int | None = None
    assumed: tuple[str, ...] = ()
    machine: Mapping[str, str] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)

    def samples(self, use: Use) -> Samples:
        """(machines, rows/s) of every sample; the mean where a point has none."""
        return tuple(
            (point.machines, rate)
            for point in self.points
            if point.use == use
            for rate in point.samples_per_s or (point.rate_per_s,)
        )


def read_capacity(path: Path) -> tuple[tuple[int, float, float], ...]:
    """(machines, rows/s, deviation of one draw) by rising size; every mistake is one line that says where."""
    return tuple((point.machines, point.rate_per_s, point.sd_per_s) for point in read_capacity_file(path).points)


def read_capacity_file(path: Path) -> CapacityFile:
    """Read a capacity file with all its entries; a profile file is converted."""
    table = read_toml(path)
    if table.has("task"):
        return CapacityFile(_of_slots(read_profile_file(path)))
    points = sorted((_point(entry) for entry in table.tables("points")), key=lambda point: point.machines)
    found = CapacityFile(
        tuple(points),
        app=table.text("app") if table.has("app") else "",
        measured=table.text("measured") if table.has("measured") else "",
        slots_per_node=_at_least_1(table, "slots_per_node"),
        startup_s=_at_least_0(table, "startup_s"),
        model=_at_least_1(table, "model"),
        assumed=table.texts("assumed"),
        machine=table.facts("machine"),
        versions=table.facts("versions"),
    )
    table.refuse_unknown()
    if not points:
        table.fail("points is empty: add at least one [[points]] table")
    for one, other in pairwise(points):
        if one.machines == other.machines:
            table.fail(f"{one.machines} machines are there twice: keep one of the two")
    return found


def _of_slots(found: ProfileFile) -> tuple[CapacityPoint, ...]:
    """An operator's profile as capacity: m machines are m slots, each at the highest rate that one sustains.

    Its deviation is half the distance between that rate and the lowest rate that was not stable.
    """
    best = peak(found.profile)
    high = found.highest.get(best.threads)
    sd = (high - best.rate_per_s) / 2 if high is not None else _RSD * best.rate_per_s
    return tuple(CapacityPoint(m, m * best.rate_per_s, sd * m**0.5) for m in _SLOTS)


def capacity_text(file: CapacityFile) -> str:
    """The file as TOML.

    >>> print(capacity_text(CapacityFile((CapacityPoint(1, 95.0, 4.0, (91.0, 99.0)),), app="grep", model=2)))
    app = "grep"
    model = 2
    <BLANKLINE>
    [[points]]
    machines = 1
    rate_per_s = 95.0
    sd_per_s = 4.0
    samples_per_s = [91.0, 99.0]
    use = "training"
    <BLANKLINE>
    """
    lines = [
        *_line("app", file.app),
        *_line("measured", file.measured),
        *_line("slots_per_node", file.slots_per_node),
        *_line("startup_s", file.startup_s),
        *_line("model", file.model),
    ]
    if file.assumed:
        lines += ["assumed = [", *(f"  {_quoted(text)}," for text in file.assumed), "]"]
    for name, facts in (("machine", file.machine), ("versions", file.versions)):
        if facts:
            lines += ["", f"[{name}]", *(f"{key} = {_quoted(value)}" for key, value in facts.items())]
    for point in file.points:
        lines += ["", "[[points]]", f"machines = {point.machines}"]
        lines += [f"rate_per_s = {float(point.rate_per_s)!r}", f"sd_per_s = {float(point.sd_per_s)!r}"]
        if point.samples_per_s:
            lines.append(f"samples_per_s = [{', '.join(repr(float(one)) for one in point.samples_per_s)}]")
        lines.append(f"use = {_quoted(point.use)}")
    return "\n".join(lines) + "\n"


def _point(entry: Table) -> CapacityPoint:
    machines, rate = entry.count("machines"), entry.number("rate_per_s")
    sd = entry.number("sd_per_s", _RSD * rate)
    samples, use = entry.numbers("samples_per_s"), entry.text("use", "training")
    entry.refuse_unknown()
    try:
        require(1 <= machines <= _MOST_MACHINES, f"machines is {machines}: give 1 to {_MOST_MACHINES}")
        require_number(rate, "rate_per_s", above=True)
        require_number(sd, "sd_per_s")
        for sample in samples:
            require_number(sample, "a sample", above=True)
    except BadInput as problem:
        entry.fail(str(problem))
    if use == "training":
        return CapacityPoint(machines, rate, sd, samples)
    if use == "validation":
        return CapacityPoint(machines, rate, sd, samples, "validation")
    return entry.fail(f"use is {use!r}: give training or validation")


def _at_least_0(table: Table, key: str) -> float | None:
    if not table.has(key):
        return None
    value = table.number(key)
    try:
        require_number(value, key)
    except BadInput as problem:
        table.fail(str(problem))
    return value


def _at_least_1(table: Table, key: str) -> int | None:
    if not table.has(key):
        return None
    value = table.count(key)
    if value < 1:
        table.fail(f"{key} is {value}: give at least 1")
    return value


def _line(key: str, value: str | float | None) -> list[str]:
    if value is None or value == "":
        return []
    return [f"{key} = {_quoted(value) if isinstance(value, str) else value}"]


def _quoted(text: str) -> str:
    """A TOML string on one line.

    >>> _quoted('a "b" \\\\ c')
    '"a \\\\"b\\\\" \\\\\\\\ c"'
    """
    plain = " ".join(text.split())
    return '"' + plain.replace("\\", "\\\\").replace('"', '\\"') + '"'
