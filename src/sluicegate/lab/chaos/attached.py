"""Fault injection for an attached query: damage to sluicegate's folder, plan and controller must not change its result.

At the end the same checkpoint is continued without sluicegate, and the result must still be exact.
"""

from __future__ import annotations

import contextlib
import random
import shutil
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path

from sluicegate.errors import BadInput
from sluicegate.lab.chaos.driver import Driver
from sluicegate.lab.chaos.hurt import Hurt, failed, hurt_in, slowed, stepped
from sluicegate.lab.chaos.processes import Process, below, java_of
from sluicegate.lab.chaos.queries import ROWS, QueryKind, fed_rows, kind_named, row, sink_rows, write_file
from sluicegate.lab.chaos.spoiling import plan_overwritten
from sluicegate.lab.chaos.topic import FedTopic, fed_topic
from sluicegate.lab.chaos.verdict import RECOVERS_WITHIN_S, ChaosVerdict, FaultSeen, Progress
from sluicegate.lab.running.app import compare
from sluicegate.runlog.files import owner_only_folder
from sluicegate.spark.edges.offsets import last_batch, last_committed

PREFIX = "attach:"
_FEED_S = (0.2, 1.0)
_WAIT_S = (0.1, 1.0)
_TOLD_WITHIN_S = 300.0
_MORE_FILES = 3
"""Files fed after the last attached driver has ended; a driver without sluicegate reads them from that checkpoint."""


@dataclass(slots=True)
class AttachedVictim:
    """The target of faults: a driver with an attached query, and the folder in which sluicegate records it."""

    driver: Driver
    base: Path
    record: Path
    files: int = 0
    topic: FedTopic | None = None
    """Set if the query reads Kafka records instead of files."""
    hurt: Hurt | None = None
    """Clock and disk faults of the driver; ``None`` if they are not available (no C compiler)."""
    ended: threading.Event = field(default_factory=threading.Event)

    @property
    def checkpoint(self) -> Path:
        return self.base / "checkpoint"

    def feed(self, seed: int) -> None:
        rng = random.Random(f"{seed} files")
        while not self.ended.wait(rng.uniform(*_FEED_S)):
            self.feed_one()

    def feed_one(self) -> None:
        if self.topic is None:
            write_file(self.base / "in", self.files)
        else:
            self.topic.send([row(self.files * ROWS + place) for place in range(ROWS)])
        self.files += 1

    def controllers(self) -> list[Process]:
        return [p for p in below(self.driver.pid) if "sluicegate.spark.attach.controller" in p.command]


Do = Callable[[AttachedVictim, random.Random], str | None]


def _signalled(find: Callable[[AttachedVictim], list[Process]], what: signal.Signals) -> Do:
    def do(query: AttachedVictim, rng: random.Random) -> str | None:
        found = find(query)
        if not found:
            return None
        query.driver.look()
        found[0].send(what)
        if what == signal.SIGSTOP:
            time.sleep(rng.uniform(0.5, 4.0))
            found[0].send(signal.SIGCONT)
        return f"process {found[0].pid}"

    return do


def _driver(query: AttachedVictim) -> list[Process]:
    return [Process(query.driver.pid, 0, "", "driver")]


def _folder_gone(query: AttachedVictim, rng: random.Random) -> str | None:
    if not query.record.is_dir():
        return None
    shutil.rmtree(query.record, ignore_errors=True)
    return "the record's folder deleted"


def _folder_a_file(query: AttachedVictim, rng: random.Random) -> str:
    shutil.rmtree(query.record, ignore_errors=True)
    with contextlib.suppress(OSError):
        query.record.write_text("not a folder")
    time.sleep(rng.uniform(0.5, 3.0))
    with contextlib.suppress(OSError):
        query.record.unlink(missing_ok=True)
        query.record.mkdir(exist_ok=True)
    return "the record's folder a file for a while"


def _plan_spoiled(query: AttachedVictim, rng: random.Random) -> str | None:
    with contextlib.suppress(OSError):
        return plan_overwritten(query.record / "plan.json", ("counts", "first", "windows", "kafka"), rng)
    return None


def _record_spoiled(query: AttachedVictim, rng: random.Random) -> str | None:
    found = sorted(p for p in query.record.rglob("*") if p.is_file()) if query.record.is_dir() else []
    if not found:
        return None
    path = rng.choice(found)
    with contextlib.suppress(OSError):
        path.write_bytes(rng.randbytes(200))
        return f"{path.relative_to(query.record)} overwritten"
    return None


def _broker_killed(query: AttachedVictim, rng: random.Random) -> str | None:
    """SIGKILL the broker and restart the same one some seconds later."""
    if query.topic is None:
        return None
    pause_s = rng.uniform(0.5, 5.0)
    query.topic.broker.kill()
    time.sleep(pause_s)
    query.topic.broker.up()
    return f"the broker away for {pause_s:.1f} s and its start"


def _broker_stopped(query: AttachedVictim, rng: random.Random) -> str | None:
    process = query.topic.broker.process if query.topic is not None else None
    if process is None:
        return None
    pause_s = rng.uniform(0.5, 6.0)
    process.send_signal(signal.SIGSTOP)
    try:
        time.sleep(pause_s)
    finally:
        process.send_signal(signal.SIGCONT)
    return f"the broker stopped for {pause_s:.1f} s"


def _clock_step(query: AttachedVictim, rng: random.Random) -> str | None:
    """Step the clock, unless the query reads Kafka: its client times waits by the wall clock, which we cannot fix."""
    return stepped(query.hurt, rng) if query.hurt and query.topic is None else None


def _slow_disk(query: AttachedVictim, rng: random.Random) -> str | None:
    return slowed(query.hurt, rng) if query.hurt else None


def _failing_disk(query: AttachedVictim, rng: random.Random) -> str | None:
    """Let the disk of the record fail; that of the user's checkpoint is the user's."""
    return failed(query.hurt, rng) if query.hurt else None


def _everything(query: AttachedVictim, rng: random.Random) -> str:
    query.driver.look()
    found = [*_driver(query), *below(query.driver.pid)]
    for process in found:
        process.send(signal.SIGKILL)
    return f"{len(found)} processes"


FAULTS: Mapping[str, Do] = {
    "nothing": lambda query, rng: "nothing: how long a batch takes anyway",
    "attached-controller": _signalled(AttachedVictim.controllers, signal.SIGKILL),
    "attached-controller-stop": _signalled(AttachedVictim.controllers, signal.SIGSTOP),
    "attached-driver": _signalled(_driver, signal.SIGKILL),
    "attached-java-stop": _signalled(lambda query: java_of(query.driver.pid), signal.SIGSTOP),
    "attached-folder-deleted": _folder_gone,
    "attached-folder-a-file": _folder_a_file,
    "attached-plan": _plan_spoiled,
    "attached-record": _record_spoiled,
    "attached-broker": _broker_killed,
    "attached-broker-stop": _broker_stopped,
    "attached-clock-step": _clock_step,
    "attached-slow-disk": _slow_disk,
    "attached-failing-disk": _failing_disk,
    "attached-everything": _everything,
}
_SELDOM = frozenset(("nothing", "attached-driver", "attached-everything"))
_OFTEN = 4
"""Rounds of the others for one with these, since a driver restart takes long."""


ABOUT: Mapping[str, str] = {
    "nothing": "no fault, for comparison",
    "attached-controller": "SIGKILL of the controller",
    "attached-controller-stop": "SIGSTOP of the controller",
    "attached-driver": "SIGKILL of the user's driver, started again",
    "attached-java-stop": "SIGSTOP of the user's Java process",
    "attached-folder-deleted": "the record's folder deleted",
    "attached-folder-a-file": "the record's folder a file for some seconds",
    "attached-plan": "the plan emptied, torn, overwritten, absurd, or changed by hand",
    "attached-record": "a file of the record overwritten",
    "attached-broker": "SIGKILL of the Kafka broker that it reads, started again",
    "attached-broker-stop": "SIGSTOP of the Kafka broker that it reads",
    "attached-clock-step": "the clock of the user's driver stepped by up to two hours, forth or back",
    "attached-slow-disk": "every file takes up to 0.4 s longer for some seconds",
    "attached-failing-disk": "files of the record cannot be made, renamed or synced for some seconds",
    "attached-everything": "SIGKILL of the user's driver and all its processes at once, started again",
}


def attached_faults(names: str) -> list[str]:
    wanted = list(FAULTS) if names == "all" else [name.strip() for name in names.split(",") if name.strip()]
    for name in wanted:
        if name not in FAULTS:
            raise BadInput(f"no fault {name!r} for an attached query: there is {', '.join(FAULTS)}, or all")
    return wanted


def attached_chaos(
    name: str,
    seconds: float,
    seed: int,
    faults: list[str],
    folder: Path,
    master: str = "local[2]",
    most: int | None = None,
    progress: Progress = lambda line: None,
) -> ChaosVerdict:
    """Inject faults for ``seconds``, then drain the query and compare its sink with the right answer.

    Before the comparison some more files are fed and processed by a driver that is not attached.
    """
    kind, base = kind_named(name), folder.absolute()
    logs, record = base / "drivers", base / "record"
    for needed in (base / "in", logs):
        owner_only_folder(needed)
    with fed_topic(base / "kafka") if kind.kafka else nullcontext() as topic:
        return _judged(kind, base, record, master, topic, seconds, seed, faults, most, progress)


def _judged(
    kind: QueryKind,
    base: Path,
    record: Path,
    master: str,
    topic: FedTopic | None,
    seconds: float,
    seed: int,
    faults: list[str],
    most: int | None,
    progress: Progress,
) -> ChaosVerdict:
    source = (topic.broker.address, topic.name) if topic is not None else ()

    def command(where: str) -> tuple[str, ...]:
        return ("sluicegate.lab.chaos.attached_app", str(base), kind.name, master, where, *source)

    hurt = hurt_in(base, record)
    driver = Driver(command(str(record)), base / "drivers", base / "points", hurt.environment if hurt else {})
    query = AttachedVictim(driver, base, record, topic=topic, hurt=hurt)
    feeder = threading.Thread(target=query.feed, args=(seed,), daemon=True)
    try:
        query.feed_one()
        query.driver.start()
        feeder.start()
        seen = _hurt(query, seconds, seed, faults, most, progress)
        query.ended.set()
        feeder.join()
        ended = _drained(query)
        if hurt is not None:
            hurt.step(0.0)
        for _ in range(_MORE_FILES):
            query.feed_one()
        query.driver.command = command("")
        ended = _drained(query) and ended
    finally:
        query.ended.set()
        query.driver.end()
    judged = compare(kind.answer(fed_rows(query.files)), kind.found(sink_rows(base / "out")), 0)
    wrong = [f"outlived its driver: {line}" for line in query.driver.left()]
    wrong += [] if ended else ["a driver did not end by itself"]
    wrong += [f"driver {n + 1}: {line}" for n, one in enumerate(query.driver.ended) for line in one.lines]
    kept = (path.read_bytes() for path in query.checkpoint.rglob("*") if path.is_file())
    if any(
        b"sluicegate" in text.replace(str(base).encode(), b"") for text in kept
    ):  # paths of the input contain the base folder
        wrong.append("the checkpoint holds something of sluicegate's")
    return ChaosVerdict(
        tuple(seen),
        query.files * ROWS,
        judged.lost,
        judged.duplicated,
        judged.wrong_keys,
        judged.exact,
        judged.note,
        tuple(wrong),
        query.driver.starts,
        0,
    )


def _hurt(
    query: AttachedVictim, seconds: float, seed: int, faults: list[str], most: int | None, progress: Progress
) -> list[FaultSeen]:
    rng, began_s, seen, order = random.Random(f"{seed} attached"), time.monotonic(), list[FaultSeen](), list[str]()
    skipped: Counter[str] = Counter()
    rounds = 0
    while time.monotonic() - began_s < seconds and len(seen) < (most or len(seen) + 1):
        if not order:
            order = [fault for fault in faults if rounds % _OFTEN == 0 or fault not in _SELDOM] or list(faults)
            rng.shuffle(order)
            rounds += 1
        kind, at_s = order.pop(), time.monotonic() - began_s
        target = FAULTS[kind](query, random.Random(f"{seed} {kind} {len(seen)} {skipped[kind]}"))
        if target is None:
            skipped[kind] += 1
            continue
        progress(f"{at_s:7.1f} s  {kind}: {target}")
        seen.append(FaultSeen(at_s, kind, target))
        if not _goes_on(query):
            progress(f"{'':9}  no batch within {RECOVERS_WITHIN_S:g} s")
            return seen
        seen[-1].recovered_s = time.monotonic() - began_s - at_s
        progress(f"{'':9}  {kind}: the query went on after {seen[-1].recovered_s:.1f} s")
        time.sleep(rng.uniform(*_WAIT_S))
    return seen


def _goes_on(query: AttachedVictim) -> bool:
    """Wait for the commit of a batch planned after the fault, restarting an ended driver; ``False`` at the deadline."""
    planned, until_s = last_batch(query.checkpoint), time.monotonic() + RECOVERS_WITHIN_S
    while (done := last_committed(query.checkpoint)) is None or (planned is not None and done <= planned):
        if time.monotonic() > until_s:
            return False
        if not query.driver.runs:
            query.driver.start()
        time.sleep(0.1)
    return True


def _drained(query: AttachedVictim) -> bool:
    if not query.driver.runs:
        query.driver.start()
    done = query.driver.answer({}, _TOLD_WITHIN_S) is not None
    query.driver.reap()
    return done
