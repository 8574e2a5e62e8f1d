"""Reads all records of a run from its folder; what an older version did not write is treated as missing.

Imports neither Spark nor compiled code: displaying a run should not take memory from it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sluicegate.domain.figures import promise
from sluicegate.errors import BadInput
from sluicegate.runlog.failures import Failing, read_failures
from sluicegate.runlog.files import read_if_there
from sluicegate.runlog.process_birth import born
from sluicegate.runlog.runs import driver_lives, no_run_in
from sluicegate.runlog.shape import Fits, anything, by_name, each, entry, maybe, number, text, whole

FIGURES = ("arrivals_per_s", "utilisation", "queue_rows", "sojourn_s", "service_per_s")
"""Figures of an operator in a tick."""
Line = dict[str, Any]
_figure = maybe(number)
_changed = each(entry({"what": text, "have": anything, "want": anything}, {"reason": text}))
_refused = each(entry({"rule": text, "why": text}))
_batch = maybe(by_name(_figure))
_TICK = entry(
    {"at_s": number, "running": by_name(number)},
    {
        **dict.fromkeys(
            ("arrivals_per_s", "throughput_per_s", "backlog_rows", "predicted_mean_s", "executors"), _figure
        ),
        "sojourn": maybe(by_name(_figure)),
        "operators": maybe(by_name(maybe(entry({}, {**dict.fromkeys(FIGURES, _figure), "batch": _batch})))),
        "forecast": maybe(
            entry(
                {}, {**dict.fromkeys(("low_per_s", "mean_per_s", "high_per_s"), maybe(each(number))), "step_s": _figure}
            )
        ),
        "pace_s": maybe(by_name(number)),
        "advice": each(text),
        "changes": _changed,
        "refusals": _refused,
        "nodes": maybe(each(entry({"name": text}, {"cpu": _figure, "memory": _figure, "io": _figure}))),
        "failing": each(text),
        "own_promises": maybe(by_name(by_name(entry({"bound_s": number}, {"took_s": _figure})))),
    },
)
_DECISION = entry(
    {
        "at_s": number,
        "rescales": each(entry({"operator": text, "have": number, "want": number})),
        "reasons": each(text),
    },
    {
        **dict.fromkeys(("arrivals_per_s", "predicted_mean_s", "executors", "nodes"), _figure),
        "number": whole,
        "changes": _changed,
        "refusals": _refused,
        "failing": each(text),
    },
)
_FLEET = entry({"at_s": number}, {"executors": _figure, "nodes": _figure})
_streams = maybe(each(text))
_PIPELINE = entry(
    {"name": text, "nodes": each(entry({"name": text}, {"reads": _streams, "writes": _streams, "given": maybe(text)}))},
    {"sources": _streams, "kept": _streams},
)
_CONTROL = entry(
    {},
    {
        "started_s": _figure,
        "bounds": maybe(by_name(number)),
        "app": maybe(text),
        "policy": maybe(text),
        "pid": whole,
        "unknown_settings": each(text),
        "query_slo": maybe(by_name(text)),
    },
)
_OUTCOME = entry(
    {},
    {
        **dict.fromkeys(("began_s", "seconds", "slo_kept", "slot_seconds", "slot_seconds_static_peak"), _figure),
        **dict.fromkeys(("rows_in", "rows_out", "lost", "duplicated", "mean_s", "p95_s", "rescales"), _figure),
        **dict.fromkeys(("queries", "restarts"), each(text)),
        "goal": maybe(by_name(number)),
        "app": maybe(text),
        "policy": maybe(text),
    },
)
_WHAT_IF = entry({}, {"points": each(entry({"rate_per_s": number}, {"total": _figure}))})


@dataclass(frozen=True, slots=True)
class RunRecord:
    """One run as read from its files; times are seconds since the epoch."""

    folder: Path
    pipeline: Line
    control: Line
    ticks: tuple[Line, ...]
    decisions: tuple[Line, ...]
    fleet: tuple[Line, ...]
    what_if: Line
    outcome: Line
    failing: tuple[Failing, ...] = ()
    """The operators that fail now or have stopped; of a run that has ended, those that did at its end."""

    @property
    def app(self) -> str:
        return str(self.outcome.get("app") or self.control.get("app") or self.pipeline["name"])

    @property
    def policy(self) -> str:
        return str(self.outcome.get("policy") or self.control.get("policy") or "-")

    @property
    def bounds(self) -> Mapping[str, float]:
        """The latency promise in seconds, by "mean", "p95" and so on."""
        found = self.outcome.get("goal") or self.control.get("bounds") or {}
        return {str(what): float(bound) for what, bound in found.items()}

    @property
    def promised(self) -> str:
        """The promise in words; where queries of an attached application have their own, those too."""
        told = (self.control.get("query_slo") or {}).items()
        own = [f"{name} {slo.replace('=', ' <= ')}" for name, slo in told if slo != "none"]
        return ", ".join([promise(self.bounds)] * bool(self.bounds or not own) + own)

    @property
    def operators(self) -> tuple[str, ...]:
        return tuple(node["name"] for node in self.pipeline["nodes"])

    @property
    def moves(self) -> int:
        """How many decisions changed the processors of an operator; others changed a pace or executors only."""
        return sum(bool(decision["rescales"]) for decision in self.decisions)

    @property
    def last(self) -> Line:
        """The last tick of the controller; empty before the first."""
        return self.ticks[-1] if self.ticks else {}

    @property
    def began_s(self) -> float:
        told = self.outcome.get("began_s") or self.control.get("started_s")
        return float(told) if told is not None else float(self.ticks[0]["at_s"]) if self.ticks else 0.0

    @property
    def controlled(self) -> bool | None:
        """Whether the controller's process exists; ``None`` if its process id is not recorded."""
        pid = self.control.get("pid")
        return None if pid is None else born(int(pid)) is not None

    @property
    def ended(self) -> bool:
        """Whether the run is over; a driver that was killed leaves its queries marked as running."""
        if self.outcome or not self.pipeline.get("attached") or self.controlled is not False:
            return bool(self.outcome)
        return not any(node.get("active") for node in self.pipeline["nodes"]) or not driver_lives(self.folder)

    @property
    def broken(self) -> bool | None:
        """Whether the promise is broken now: rows are late, or an operator fails and its rows do not come at all."""
        return True if self.failing and self.bounds and not self.outcome else self.late(self.last)

    def late(self, tick: Line) -> bool | None:
        """Whether the promise was broken at a tick; ``None`` if no row came out or nothing was promised."""
        seen = [(measured_s(tick, what), bound_s) for what, bound_s in self.bounds.items()]
        seen += [(took_s, bound_s) for _, _, bound_s, took_s in own_promises(tick)]
        known = [value > bound_s for value, bound_s in seen if value is not None]
        return any(known) if known else None


def own_promises(tick: Line) -> list[tuple[str, str, float, float | None]]:
    """Query, what is bounded, the bound and the latency against it, of queries with a promise of their own."""
    told = tick.get("own_promises") or {}
    return [
        (name, what, float(one["bound_s"]), one.get("took_s"))
        for name, bounds in told.items()
        for what, one in bounds.items()
    ]


def measured_s(tick: Line, what: str = "mean") -> float | None:
    """The latency in a tick: its mean, or a quantile such as "p95"."""
    value = (tick.get("sojourn") or {}).get(f"{what}_s")
    return None if value is None else float(value)


def read_record(folder: Path, latest_bytes: int | None = None) -> RunRecord:
    """Read everything since the run in this folder began; what an earlier run left there is skipped.

    With ``latest_bytes`` only that much of the end of each log is read: enough for a poll every second.
    """
    pipeline = _document(folder / "pipeline.json", _PIPELINE)
    control = _document(folder / "control.json", _CONTROL)
    if not pipeline:
        raise no_run_in(folder)
    outcome = of_this_run(_document(folder / "outcome.json", _OUTCOME), control)
    began_s = float(outcome.get("began_s") or control.get("started_s") or 0.0)
    return RunRecord(
        folder,
        pipeline,
        control,
        tuple(_since(began_s, _lines(folder / "ticks.jsonl", _TICK, latest_bytes))),
        tuple(_numbered(_since(began_s, _lines(folder / "decisions.jsonl", _DECISION, latest_bytes)))),
        tuple(_since(began_s, _lines(folder / "fleet.jsonl", _FLEET, latest_bytes))),
        _document(folder / "what_if.json", _WHAT_IF),
        outcome,
        read_failures(folder / "failures.json"),
    )


def of_this_run(outcome: Line, control: Line) -> Line:
    """The outcome if it is of this run: after a resume, that of the run before stays in the folder until the end."""
    ended_s = float(outcome.get("began_s") or 0.0) + float(outcome.get("seconds") or 0.0)
    return outcome if ended_s >= float(control.get("started_s") or 0.0) else {}


def _since(began_s: float, lines: Iterable[Line]) -> Iterator[Line]:
    return (line for line in lines if line["at_s"] >= began_s - 1.0)


def _numbered(decisions: Iterable[Line]) -> Iterator[Line]:
    return ({"number": place, **decision} for place, decision in enumerate(decisions, 1))


def _document(path: Path, fits: Fits) -> Line:
    try:
        read = read_if_there(path)
        found = json.loads(read) if read else {}
    except (ValueError, RecursionError) as problem:
        what = "no text" if isinstance(problem, UnicodeError) else f"no JSON ({str(problem)[:100]})"
        raise BadInput(f"{path} is {what}: remove it, or give another run's folder") from None
    if found and not fits(found):
        raise BadInput(f"{path} is damaged: remove it, or give another run's folder")
    return found if isinstance(found, dict) else {}


def _lines(path: Path, fits: Fits, latest_bytes: int | None) -> Iterator[Line]:
    """Entries of the renamed file and of the current one; a line that is incomplete or damaged is skipped."""
    for part in (path.with_name(f"{path.name}.1"), path):
        for line in _text(part, latest_bytes).split("\n"):
            try:
                found = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if fits(found):
                yield found


def _text(path: Path, latest_bytes: int | None) -> str:
    try:
        with path.open("rb") as file:
            if latest_bytes is not None:
                file.seek(max(file.seek(0, os.SEEK_END) - latest_bytes, 0))
            return file.read().decode("utf-8", errors="replace")
    except FileNotFoundError:
        return ""
