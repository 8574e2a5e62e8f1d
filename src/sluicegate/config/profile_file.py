"""Profile files: measured rates of an operator with tau tasks in one slot, as TOML that people read and write.

``task`` and ``[[points]]`` are enough. `sluicegate profile` writes more: the law of its batches (``[batch]``), its
processor time (``[cpu]``), and where and how it was measured (``[measured]``).
"""

from __future__ import annotations

import json
import math
import os
import platform
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from sluicegate.config.machine import usable_cores, version_facts
from sluicegate.config.table import Table, read_toml
from sluicegate.domain import BatchCosts, Operator, ProfilePoint, TaskProfile, Topology
from sluicegate.errors import BadInput

Plain = str | int | float | bool | list[str]
_MST = ".mst."
"""Part of the names of files that hold the capacity of a whole application."""


@dataclass(frozen=True, slots=True)
class ProfileFile:
    """A profile with what else was measured. ``highest`` are, by threads, the lowest rates that were not stable."""

    profile: TaskProfile
    batch: BatchCosts | None = None
    cpu_s: Mapping[str, float] = field(default_factory=dict)
    highest: Mapping[int, float] = field(default_factory=dict)
    measured: Mapping[str, object] = field(default_factory=dict)

    @property
    def slot_tasks(self) -> int | None:
        told = self.measured.get("slot_tasks")
        return told if isinstance(told, int) else None


def here() -> dict[str, Plain]:
    """The machine and the versions that a profile holds for."""
    return {
        "machine": f"{platform.machine()}, {usable_cores()} cores, {_processor()}",
        **version_facts(),
    }


def read_profile(path: Path) -> TaskProfile:
    """The measured rates of one task on one slot."""
    return read_profile_file(path).profile


def read_profile_file(path: Path) -> ProfileFile:
    """Read a profile file; every mistake is one line that says where and what to do."""
    table = read_toml(path)
    task = table.text("task", path.stem)
    entries = list(table.tables("points"))
    points = tuple(_point(entry) for entry in entries)
    highest = {
        point.threads: entry.number("unstable_per_s")
        for entry, point in zip(entries, points, strict=True)
        if entry.has("unstable_per_s")
    }
    for entry in entries:
        entry.refuse_unknown()
    law, cpu, measured = (_section(table, name) for name in ("batch", "cpu", "measured"))
    table.refuse_unknown()
    batch = _costs(Table(law, str(path), "batch")) if law else None
    service = Table(law, str(path), "batch").number("service_per_s") if law else None
    try:
        profile = TaskProfile(task, points, service)
    except BadInput as problem:
        raise BadInput(f"{path}: {problem}") from None
    seconds = Table(cpu, str(path), "cpu")
    times = {what: seconds.number(what) for what, s in cpu.items() if isinstance(s, int | float)}
    _check_numbers(path, {f"cpu: {what}": s for what, s in times.items()})
    _check_numbers(path, {f"unstable_per_s at {threads} threads": rate for threads, rate in highest.items()})
    return ProfileFile(profile, batch, times, highest, measured)


def _check_numbers(path: Path, values: Mapping[str, float]) -> None:
    for what, value in values.items():
        if not (math.isfinite(value) and value >= 0):
            raise BadInput(f"{path}: {what} is {value:g}: give a finite number, 0 or more")


def write_profile(found: ProfileFile) -> str:
    """The text of a profile file.

    >>> from sluicegate.domain import ProfilePoint
    >>> print(write_profile(ProfileFile(TaskProfile("parse", (ProfilePoint(1, 310.0, 0.95, 0.24),)))))
    task = "parse"
    <BLANKLINE>
    [[points]]
    threads = 1
    rate_per_s = 310.0
    cpu = 0.95
    memory = 0.24
    <BLANKLINE>
    """
    lines = [f"task = {_toml(found.profile.task)}", ""]
    for point in found.profile.points:
        lines += ["[[points]]", f"threads = {point.threads}", f"rate_per_s = {point.rate_per_s}"]
        high = found.highest.get(point.threads, math.inf)
        lines += [f"unstable_per_s = {high}"] if math.isfinite(high) else []
        lines += [f"cpu = {round(point.cpu, 4)}", f"memory = {round(point.memory, 4)}", ""]
    if found.batch is not None and found.profile.service_per_s is not None:
        law = {
            "overhead_s": found.batch.overhead_s,
            "per_task_s": found.batch.per_task_s,
            "commit_s": found.batch.commit_s,
            "service_per_s": found.profile.service_per_s,
        }
        lines += ["[batch]", *(f"{what} = {float(f'{value:.5g}')}" for what, value in law.items()), ""]
    if found.cpu_s:
        lines += ["[cpu]", *(f"{what} = {float(f'{value:.4g}')}" for what, value in found.cpu_s.items()), ""]
    if found.measured:
        lines += ["[measured]", *(f"{key} = {_toml(value)}" for key, value in found.measured.items()), ""]
    return "\n".join(lines)


def read_profiles(folder: Path, needed: bool = True) -> dict[str, ProfileFile]:
    """Every profile of a folder, by task; a single file counts as a folder with nothing else in it.

    Capacity files of whole applications (``*.mst.toml``) in the folder are skipped. With ``needed``, no profile at all
    is an error.
    """
    if folder.is_file():
        paths = [] if _MST in folder.name else [folder]
    else:
        try:
            paths = sorted(path for path in folder.iterdir() if path.suffix == ".toml" and _MST not in path.name)
        except OSError as problem:
            raise BadInput(f"--profiles {folder}: {problem.strerror}; give a folder of profile files") from None
    found: dict[str, ProfileFile] = {}
    for path in paths:
        one = read_profile_file(path)
        if one.profile.task in found:
            raise BadInput(f"{folder}: two profiles of {one.profile.task!r}; keep one of them there")
        found[one.profile.task] = one
    if not found and needed:
        raise BadInput(f"{folder} holds no profile (*.toml): measure some with `sluicegate profile APP OPERATOR`")
    return found


def with_profiles(topology: Topology, profiles: Mapping[str, ProfileFile], needed: bool = False) -> Topology:
    """Add profiles to the operators of a topology, and the batch costs that were measured with them.

    With ``needed``, an operator without a profile is an error; profiles none of which fits an operator always are.
    """
    if not profiles and not needed:
        return topology
    unknown = sorted(set(profiles) - set(topology.names))
    if unknown and not set(profiles) & set(topology.names):
        raise BadInput(
            f"profile of {unknown[0]!r}: {topology.name!r} has no such operator; it has {', '.join(topology.names)}"
        )
    missing = [name for name in topology.names if name not in profiles]
    if needed and missing:
        raise BadInput(
            f"no profile of {', '.join(missing[:5])}: measure it with `sluicegate profile {topology.name} {missing[0]}`"
        )
    operators = tuple(_profiled(o, profiles[o.name]) if o.name in profiles else o for o in topology.operators)
    return replace(topology, operators=operators)


def strange(profiles: Mapping[str, ProfileFile]) -> tuple[str, ...]:
    """Profiles that were measured on another machine or with other versions, a line each."""
    now = here()
    return tuple(
        f"profile of {name}: measured with {what} {one.measured[what]}, here it is {now[what]}: it may not fit, and "
        "is corrected by what is observed"
        for name, one in profiles.items()
        for what in ("machine", "spark", "sluicegate")
        if one.measured and one.measured.get(what) not in (None, now[what])
    )


def _profiled(operator: Operator, found: ProfileFile) -> Operator:
    first, profile = found.profile.points[0], found.profile
    batch = operator.batch if found.batch is None or operator.batch is None else found.batch
    rate = profile.service_per_s if profile.service_per_s is not None and batch is not None else first.rate_per_s
    if profile.service_per_s is not None:  # observations are compared with the rate that the operator begins with
        profile = replace(profile, service_per_s=rate)
    return replace(operator, service_per_s=rate, profile=profile, cpu=first.cpu, memory=first.memory, batch=batch)


def _point(entry: Table) -> ProfilePoint:
    threads, rate = entry.count("threads"), entry.number("rate_per_s")
    cpu, memory = entry.number("cpu", 1.0), entry.number("memory", 0.0)
    entry.asked.add("unstable_per_s")
    try:
        return ProfilePoint(threads, rate, cpu, memory)
    except BadInput as problem:
        entry.fail(str(problem))


def _section(table: Table, name: str) -> Mapping[str, object]:
    table.asked.add(name)
    value = table.values.get(name, {})
    if not isinstance(value, dict):
        table.fail(f"{name} must be a table: write [{name}] before it")
    return value


def _costs(law: Table) -> BatchCosts:
    try:
        return BatchCosts(law.number("overhead_s"), law.number("per_task_s", 0.0), law.number("commit_s", 0.0))
    except BadInput as problem:
        if str(problem).startswith(law.file):
            raise
        law.fail(str(problem))


def _toml(value: object) -> str:
    if isinstance(value, list | tuple):
        return f"[{', '.join(_toml(one) for one in value)}]"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str | bool) else str(value)


def _processor() -> str:
    try:
        with Path("/proc/cpuinfo").open(encoding="utf-8") as told:
            names: Iterable[str] = (line.partition(":")[2].strip() for line in told if line.startswith("model name"))
            return next(iter(names), platform.system())
    except OSError:
        return f"{platform.system()} {os.cpu_count()}"
