"""docs/reliability.md, written from the lines that runs of chaos left; every figure on it is one of theirs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import Any

from sluicegate.lab.chaos.attached import ABOUT as OF_ATTACHED
from sluicegate.lab.chaos.faults import FAULTS, NOTHING

Line = Mapping[str, Any]
_WHERE = {"cluster": " on a cluster", "netns": " on nodes that are cut off"}
_HEAD = """# Reliability

What is promised: whatever happens to its processes and files, a pipeline loses no row, doubles none and gives no
wrong key; what cannot go on says so in one line, and goes on exactly once that is mended. A query that is attached
goes on whatever happens to sluicegate beside it, and restarts from its checkpoint without it.

How it is tested: `sluicegate chaos APP --seconds S --seed N` runs an application in a process of its own while the
load jumps and numbers of tasks change, and does what the table below lists, in an order that the seed gives; half of
the faults come while the one before is not mended. Faults that end no driver come three to six times as often as
those that do: a driver that has to start again takes most of the time. A driver that ends is followed by another on
the same folder: by one that stood by with Java and Spark started, where there is one (not on a cluster, nor of an
attached query). A file that is refused is repaired (`sluicegate verify --repair`) where that is exact, else restored
as from a backup. At the end the sinks are compared with an answer that is worked out without Spark. `sluicegate chaos
attach:counts` does the same to an attached query; its answer is compared once more after a driver without sluicegate
went on from the checkpoint. `attach:kafka` reads a topic of a broker of its own, which is killed and stopped too; its
producer numbers what it sends, so that every row is in the topic once. `sluicegate chaos postgres` writes to a
PostgreSQL of its own, which is killed and stopped too. With `--master cluster` executors and worker nodes are
processes of their own, and a node is stopped with all that runs on it, for some seconds or until its executors count
as lost (Spark's timeout is set to 30 s for that); with `--master netns` (root) each of two nodes is a network
namespace, which is cut off for as long. With `--disk MB` (root) the run's folder is a small file system, which is
filled for some seconds; no other disk is ever filled. Where there is a C compiler, a small library is preloaded into
the driver and all that it starts: it steps their clock, by up to two hours at once, and makes opening, renaming and
syncing files slow, or lets them fail below the run's folder (no room, read-only, an error of the disk); the machine's
own clock and disk are left alone. A driver runs out of handles by a lower limit of open files of its Python process;
that of Java is left alone, as Spark hung there for good when its Python daemon was killed at the same time. A batch
that "fails" at a point raises "no room" there: the operator runs it again while everything else goes on. Files keep
the machine's times, and executors on a cluster go by its clock, so clocks differ between nodes then.

Besides the answer, after every run: `verify` finds the folder sound; offsets and commits have no gap; no batch is
logged as committed twice; what readers have taken, and what interrupted batches left, is deleted; neither drivers nor
controllers leave a trace; a driver that ends with an error says one line; no process outlives its driver. What
Spark's Java process logs goes to `spark.log`, as with `sluicegate run`, and is not judged: after its Python driver is
killed it may log a trace before it ends.

What clumsy hands do is a table of tests (`tests/spark/test_clumsy.py`): folders of operators swapped, a checkpoint
deleted under its query, the folder deleted, moved, linked, copied while it runs, a part or all of it from an old
backup, the lock file deleted as left over, the plan a folder: each is exact or one line. What `verify` says of files
that are swapped, copied, longer, a folder, a loop of links is a table too (`tests/spark/test_verify.py`).

Data that is not as it was: rows that code cannot take are dead letters, or stop their operator with their place
([Pipelines on Spark](spark.md)); other columns, types or nulls at a source, late and repeated events are a table of
tests (`tests/spark/test_data_faults.py`): each is exact or one line. `make fuzz` gives 100,000 malformed inputs to 25
parsers.

Not promised: that rows outlive a power failure or a crash of the machine. Manifests and plans are forced to the disk,
rows and Spark's checkpoints are left to the system to write; what is missing then is refused with one line, and has to
come from a backup.

This page is written by `make chaos` (`benchmarks/chaos.py`) from the lines in `benchmarks/results/chaos.jsonl`;
nothing on it is typed by hand. A line is there for every run that ended; runs that were broken off, and runs whose
labels or checks were wrong when they were made, were taken out of the first set of lines, before the program was as
it is now. `--anew` begins a new set of lines and keeps the old one beside it.
"""


def reliability_page(lines: Sequence[Line]) -> str:
    """The whole page."""
    return "\n".join([_HEAD, *_in_all(lines), "", *_by_kind(lines), "", *_by_app(lines), "", *_not_good(lines), ""])


def _in_all(lines: Sequence[Line]) -> Iterable[str]:
    faults = [fault for line in lines for fault in line["faults"] if fault["kind"] != NOTHING]
    missing = sum(fault["recovered_s"] is None for fault in faults)
    loads = [float(line["load"]) for line in lines if line.get("load") is not None]
    busy = f" (load average at their ends {min(loads):.0f} to {max(loads):.0f})" if loads else ""
    rows, apps = sum(line.get("rows_in") or 0 for line in lines), len({line["app"] for line in lines})
    found = (
        f"{_sum(lines, 'lost')} rows lost, {_sum(lines, 'duplicated')} doubled, {_sum(lines, 'wrong_keys')} wrong keys"
    )
    yield "## Measured\n"
    took_s = [float(line["took_s"]) for line in lines if line.get("took_s") is not None]
    pace = f" in {sum(took_s) / 3600:.1f} hours of runs, starts and ends included" if len(took_s) == len(lines) else ""
    yield (
        f"{len(faults):,} faults in {len(lines)} runs of {apps} applications and attached queries, {rows:,} rows, on "
        f"{_cores(lines)} cores that others used too{busy}{pace}: {found}; {missing} faults not recovered from; "
        f"{sum(not _good(line) for line in lines)} runs with anything broken."
    )


def _by_kind(lines: Sequence[Line]) -> Iterable[str]:
    by_kind: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    alone_s: dict[str, list[float]] = defaultdict(list)
    for line in lines:
        alone = _alone(line["faults"])
        for place, fault in enumerate(line["faults"]):
            kind = _of_attached(fault["kind"]) if _is_attached(line) else fault["kind"]
            by_kind[kind].append(fault)
            alone_s[kind] += [fault["recovered_s"]] if place in alone else []
    about = {fault.name: fault.about for fault in FAULTS}
    about |= {_of_attached(name): text for name, text in OF_ATTACHED.items()}
    order = list(about)
    yield "| fault | what is done | times | recovered in, median | worst |"
    yield "|---|---|---:|---:|---:|"
    for kind in sorted(by_kind, key=lambda name: order.index(name) if name in order else len(order)):
        times_s = alone_s[kind]
        told = f"{median(times_s):.1f} s | {max(times_s):.1f} s" if times_s else "- | -"
        yield f"| {kind} | {about.get(kind, '')} | {len(by_kind[kind])} | {told} |"
    yield ""
    yield (
        "Times are of faults that came alone. Recovered: a row of every source that was fed after the fault, and all "
        "before it, have been through every operator, and a controller that was hurt has looked again (of an attached "
        f"query: a batch planned after it is committed). The line `{NOTHING}` says how long that takes without any "
        "fault; a driver that is started again pays for Java and Spark starting on a busy machine."
    )


def _alone(faults: Sequence[Mapping[str, Any]]) -> set[int]:
    """The places of those that were recovered from by themselves: of several at once the moment is the same."""
    ends = [None if f["recovered_s"] is None else round(f["at_s"] + f["recovered_s"], 1) for f in faults]
    near = [sum(abs(end - other) < 0.2 for other in ends if other is not None) if end else 0 for end in ends]
    return {place for place, count in enumerate(near) if count == 1}


def _by_app(lines: Sequence[Line]) -> Iterable[str]:
    by_app: dict[str, list[Line]] = defaultdict(list)
    for line in lines:
        by_app[f"{line['app']}{_WHERE.get(str(line.get('master')).partition(':')[0], '')}"].append(line)
    yield "| application | runs | faults | rows | lost | doubled | wrong keys |"
    yield "|---|---:|---:|---:|---:|---:|---:|"
    for app, ones in sorted(by_app.items()):
        count = sum(fault["kind"] != NOTHING for line in ones for fault in line["faults"])
        rows = sum(line.get("rows_in") or 0 for line in ones)
        found = " | ".join(str(_sum(ones, what)) for what in ("lost", "duplicated", "wrong_keys"))
        yield f"| {app} | {len(ones)} | {count} | {rows:,} | {found} |"


def _not_good(lines: Sequence[Line]) -> Iterable[str]:
    wrong = [line for line in lines if not _good(line)]
    if not wrong:
        return
    yield "## Runs with anything broken\n"
    for line in wrong:
        since = lines[lines.index(line) + 1 :]
        again = any(_good(one) for one in since if (one["app"], one["seed"]) == (line["app"], line["seed"]))
        missing = [fault["kind"] for fault in line["faults"] if fault["recovered_s"] is None]
        said = [*line["broken"], *(f"{kind} not recovered from" for kind in missing), line.get("answer_note") or ""]
        told = "; ".join(text for text in said if text)
        since_then = " (the same seed again since then: nothing broken)" if again else ""
        yield f"- {line['app']}, seed {line['seed']}: {told}{since_then}"


def _good(line: Line) -> bool:
    recovered = all(fault["recovered_s"] is not None for fault in line["faults"])
    return line.get("answer_exact") is True and not line["broken"] and recovered


def _sum(lines: Iterable[Line], what: str) -> int:
    return sum(line.get(what) or 0 for line in lines)


def _cores(lines: Iterable[Line]) -> str:
    return " or ".join(str(n) for n in sorted({line["cores"] for line in lines if line.get("cores")})) or "unknown"


def _is_attached(line: Line) -> bool:
    return str(line["app"]).startswith("attach:")


def _of_attached(kind: str) -> str:
    return "attached: " + kind.removeprefix("attached-")
