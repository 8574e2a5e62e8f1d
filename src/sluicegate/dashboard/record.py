"""A run's folder as read so far, and what is new in it. It only reads: the run is not affected."""

from __future__ import annotations

import json
import math
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict
from itertools import chain, islice
from pathlib import Path
from typing import Any

from sluicegate.dashboard.history import History, number
from sluicegate.drawing import Description, described, description_in, drawing_of
from sluicegate.runlog.batch_log import DAMAGE, Tail
from sluicegate.runlog.files import read_if_there
from sluicegate.runlog.joined import joined, neighbours
from sluicegate.runlog.layout import Layout
from sluicegate.runlog.plain_words import plain
from sluicegate.runlog.run_record import of_this_run
from sluicegate.runlog.runs import driver_lives

Document = dict[str, Any]
Publish = Callable[[str, Document], None]
DOCUMENTS = ("control", "what_if", "outcome", "failures")
_KEPT_DECISIONS = 500
_KEPT_FLEET = 200
_MAPPINGS = ("running", "operators", "sojourn", "pace_s", "forecast", "own_promises")


class Record:
    """The state of a run; ``publish`` is called with everything new once the existing files have been read."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.publish: Publish = lambda kind, document: None
        self._begin(description_in(Layout(folder)))

    def _begin(self, description: Description) -> None:
        """Read everything from the start."""
        folder, layout = self._folder, Layout(self._folder)
        self.description = description
        self.drawing = self._drawn()
        self.history = History(node.name for node in self.description.nodes)
        self.tick: Document | None = None
        self.slot_seconds = 0.0
        self.decisions: deque[Document] = deque(maxlen=_KEPT_DECISIONS)
        self.decisions_made = 0
        self.fleet: deque[Document] = deque(maxlen=_KEPT_FLEET)
        self.documents: dict[str, Document | None] = dict.fromkeys(DOCUMENTS)
        self.caught_up = False
        self._attached = self._active = False
        self._described = _Watched(layout.description, "pipeline")
        self._files = [_Watched(folder / f"{name}.json", name) for name in DOCUMENTS]
        self._lines = [
            (_Lines(layout.decisions), self._decided),
            (_Lines(layout.fleet), self._moved_fleet),
            (_Lines(layout.ticks), self._ticked),
        ]

    def _drawn(self) -> Document:
        """The drawing; for an attached application one graph with the applications it exchanges data with."""
        told = parsed(read_if_there(Layout(self._folder).description) or "")
        if told is None or not told.get("attached"):
            return asdict(drawing_of(self.description))
        return asdict(drawing_of(described(joined(told, neighbours(self._folder)))))

    @property
    def _started_s(self) -> float:
        """When the controller was started last: between an earlier run in this folder and it nothing was held."""
        told = number((self.documents["control"] or {}).get("started_s"))
        return told if told == told else -math.inf

    @property
    def outcome(self) -> Document | None:
        """The outcome, unless it is that of an earlier run in this folder, which was resumed since."""
        told = self.documents["outcome"]
        with suppress(*DAMAGE):
            return of_this_run(told, self.documents["control"] or {}) or None if told else None
        return None

    @property
    def over(self) -> bool:
        """Whether an attached application has ended: it has no outcome, and its driver may have been killed."""
        return self._attached and (not self._active or not driver_lives(self._folder))

    def look(self, most_lines: int = 16) -> bool:
        """Read some of what is new; returns whether there is more. Bounded, so that requests are not delayed."""
        if (described_as := self._described.fresh()) is not None:
            with suppress(*DAMAGE):  # the last valid description stays
                self._meet(described_as)
        for file in self._files:
            if (fresh := file.fresh()) is not None:
                self.documents[file.name] = fresh = in_words(fresh)
                if file.name != "outcome" or self.outcome:
                    self._tell(file.name, fresh)
        more = False
        for lines, take in self._lines:
            found = lines.some(most_lines)
            for document in found:
                with suppress(*DAMAGE):  # a damaged entry must not end the polling
                    take(document)
            more = more or len(found) == most_lines
        self.caught_up = self.caught_up or not more
        return more

    def _meet(self, document: Document) -> None:
        """Handle a new description: if the queries of an attached application changed, everything is read again."""
        nodes = [node for node in document.get("nodes") or [] if isinstance(node, dict)]
        names = [str(node.get("name")) for node in nodes]
        if names != [node.name for node in self.description.nodes]:
            self._begin(described(document))
        elif document.get("attached"):  # what a query reads and writes is known after its first batch
            self.drawing = self._drawn()
        self._attached, self._active = bool(document.get("attached")), any(node.get("active") for node in nodes)

    def _ticked(self, tick: Document) -> None:
        before_s = self.history.last_s
        if not self.history.add(tick):
            return
        if self.tick is not None and not before_s < self._started_s <= self.history.last_s:
            self.slot_seconds += (self.history.last_s - before_s) * _running(self.tick)
        self.tick = tidy(tick)
        self._tell("tick", self.tick)

    def _decided(self, decision: Document) -> None:
        self.decisions_made += 1
        told = number(decision.get("number"))
        # numbered decisions of an older file that is gone are counted too
        self.decisions_made = max(self.decisions_made, int(told)) if told == told else self.decisions_made
        numbered = {**in_words(decision), "number": self.decisions_made}
        self.decisions.append(numbered)
        self._tell("decision", numbered)

    def _moved_fleet(self, change: Document) -> None:
        self.fleet.append(change)
        self._tell("fleet", change)

    def _tell(self, kind: str, document: Document) -> None:
        if self.caught_up:
            self.publish(kind, in_words(document))


class _Lines:
    """The JSON documents of a growing file, those of the renamed file first. Damaged lines are skipped."""

    def __init__(self, path: Path) -> None:
        self._tail = Tail(path)
        self._iterator: Iterator[str] = chain(Tail(path.with_name(path.name + ".1")).lines(), self._tail.lines())

    def some(self, most: int) -> list[Document]:
        lines = list(islice(self._iterator, most))
        if len(lines) < most:
            self._iterator = self._tail.lines()
        return [document for line in lines if (document := parsed(line)) is not None]


class _Watched:
    """A small file that is replaced as a whole, read again only when it changed."""

    def __init__(self, path: Path, name: str) -> None:
        self._path, self.name = path, name
        self._known: tuple[int, int, int] | None = None

    def fresh(self) -> Document | None:
        try:
            there = self._path.stat()
            known = (there.st_ino, there.st_mtime_ns, there.st_size)
            if known == self._known:
                return None
            self._known = known
            return parsed(self._path.read_text(encoding="utf-8", errors="replace"))
        except FileNotFoundError:
            return None


def parsed(text: str) -> Document | None:
    """One JSON object, or ``None``; Infinity and NaN, which browsers do not read, become null."""
    try:
        found = json.loads(text, parse_constant=lambda _: None)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def tidy(tick: Document) -> Document:
    """A tick as the page shows it, without malformed entries; the learned batch costs are left out."""
    kept = {name: value for name, value in tick.items() if name not in _MAPPINGS or isinstance(value, dict)}
    operators = {name: one for name, one in kept.get("operators", {}).items() if isinstance(one, dict)}
    return {
        **kept,
        "operators": {name: {k: v for k, v in one.items() if k != "batch"} for name, one in operators.items()},
        "nodes": [node for node in tick.get("nodes") or [] if isinstance(node, dict)],
    }


def in_words(document: Document) -> Document:
    """A decision, a tick or the plans for other loads with their reasons and refusals in plain words."""
    found = dict(document)
    if isinstance(reasons := found.get("reasons"), list):
        found["reasons"] = [plain(one) if isinstance(one, str) else one for one in reasons]
    for what in ("refusals", "points"):
        if isinstance(entries := found.get(what), list):
            found[what] = [_why_in_words(one) for one in entries]
    return found


def _why_in_words(entry: Any) -> Any:
    why = entry.get("why") if isinstance(entry, dict) else None
    return {**entry, "why": plain(why)} if isinstance(why, str) else entry


def _running(tick: Document) -> float:
    told = [number(k) for k in tick.get("running", {}).values()]
    return sum(k for k in told if k == k)
