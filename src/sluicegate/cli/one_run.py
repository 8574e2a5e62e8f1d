"""Runs an application: starts Spark, feeds the load, checks the answer, prints and stores the outcome."""

from __future__ import annotations

import json
import logging
import math
import shutil
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, redirect_stdout
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape

from sluicegate.cli.ctrl_c import CtrlC
from sluicegate.cli.out import console, finite, print_json, write_page
from sluicegate.cli.outcome import ProgressLines, as_document, show
from sluicegate.cli.wanted import Home, Wanted
from sluicegate.config.capacity_file import read_capacity_file
from sluicegate.config.machine import machine_facts
from sluicegate.config.typed import goal_from
from sluicegate.errors import INTERRUPTED, BadInput, SluicegateError
from sluicegate.report.run_page import run_page
from sluicegate.runlog.files import write_whole
from sluicegate.runlog.lock import check_free
from sluicegate.runlog.run_record import read_record
from sluicegate.runlog.runs import registered
from sluicegate.spark.spark_log import quiet_spark

if TYPE_CHECKING:
    from sluicegate.lab.running.outcome import Outcome
    from sluicegate.spark.ground import Ground

Beside = Callable[[Path], AbstractContextManager[object]]
"""Given the run's folder, a context manager of what runs next to it."""
_BATCHES_PROMISED = 10
"""The least promise, in batches. A row waits at several hops, for a batch to end and then in one: with half as many one
slow batch breaks the promise, with twice as many nothing could.
"""


@dataclass(frozen=True, slots=True)
class Telling:
    """How a run is reported: as JSON or as text, and as a page if one is wanted."""

    json_out: bool = False
    html: Path | None = None

    @property
    def progress(self) -> Console | None:
        return None if self.json_out else Console(stderr=True, highlight=False)


def run_and_tell(
    wanted: Wanted,
    home: Home,
    telling: Telling,
    beside: Beside | None = None,
) -> int:
    """Run an application and report it; returns the exit code. ``beside`` runs next to the pipeline while it is fed."""
    check_free(home.folder)
    out = telling.progress
    try:
        with registered(home.folder, wanted.app.name, temporary=home.temporary) as unlisted:
            _say(out, unlisted)
            # what the application's code prints does not belong to the document
            with redirect_stdout(sys.stderr) if telling.json_out else nullcontext():
                outcome = carry_out(wanted, home, out, beside)
    except BaseException as problem:
        _tell_what_is_left(home, wanted, telling, refused=isinstance(problem, SluicegateError))
        if isinstance(problem, KeyboardInterrupt) and out is not None:  # that was all there is to say
            return INTERRUPTED
        raise
    if home.temporary and not outcome.interrupted:
        _only_the_record(home.folder)
    _tell(outcome, home.folder, telling)
    _say(out, _what_stays(home, wanted, outcome.interrupted))
    if outcome.interrupted and not wanted.endless:
        return INTERRUPTED
    return 0 if outcome.answer is None or outcome.answer.exact else 1


def carry_out(wanted: Wanted, home: Home, out: Console | None, beside: Beside | None) -> Outcome:
    """Start Spark, run, stop Spark; the outcome is also written to the folder."""
    from sluicegate.lab.running.run_app import Surroundings, run_app
    from sluicegate.lab.running.run_realtime import Kafka, run_realtime
    from sluicegate.spark.controller import Control
    from sluicegate.spark.ground import ground_of
    from sluicegate.spark.pipeline.failures import ended_by
    from sluicegate.spark.session import spark_session, stop_spark

    asked, folder = wanted.ground, home.folder
    ground = ground_of(asked.master, asked.executors, asked.executor_cores)
    startup_s = _measured_on(wanted.capacity, ground, out) or ground.startup_s
    _say(out, f"starting Spark ({asked.master}) and {wanted.app.name} in {folder}: {home.and_how()}")
    for note in wanted.slots.notes():
        _say(out, note)
    if wanted.endless:
        _say(out, "it runs until it is stopped: press Ctrl-C, or give --seconds")
    ctrl_c = CtrlC(out)
    ctrl_c.listen()
    with quiet_spark(folder / "spark.log"):
        spark = spark_session(ground.master, {**ground.settings, **asked.conf}, f"sluicegate {wanted.app.name}")
    ctrl_c.listen()
    try:
        slots = wanted.budget or ground.slots or spark.sparkContext.defaultParallelism
        control = Control(
            wanted.policy,
            wanted.promise,
            slots,
            dry_run=wanted.dry_run,
            mapper=wanted.slots.mapper,
            routing=wanted.slots.routing,
            profiles=None if wanted.slots.profiles is None else str(wanted.slots.profiles.absolute()),
            startup_s=startup_s,
            cycle_s=wanted.cycle_s,
            slots_per_node=ground.slots_per_node,
            capacity=None if wanted.capacity is None else str(wanted.capacity),
            options=wanted.policy_options,
            history=None if wanted.history is None else str(wanted.history),
        )
        lines = ProgressLines(out, folder, wanted.endless) if out else None
        if lines is not None:  # they print what the log would: once is enough
            logging.getLogger("sluicegate.pipeline").addHandler(logging.NullHandler())
        promised = partial(_by_machine, wanted.promise, out) if wanted.by_machine else None
        around = Surroundings(ground.fleet(spark), beside, lines, ctrl_c.leave, promised)
        if wanted.real_time is not None:
            kafka = Kafka(wanted.real_time.kafka, wanted.real_time.partitions)
            outcome = run_realtime(
                wanted.app, spark, folder, wanted.load, wanted.length_s, control, around, wanted.processors, kafka
            )
        else:
            outcome = run_app(
                wanted.app, spark, folder, wanted.load, wanted.length_s, control, wanted.fuse, around, wanted.processors
            )
    except SluicegateError:
        raise
    except Exception as problem:  # a changed data file, or whatever was running when Java ended
        raise ended_by(problem, spark) or problem from None
    finally:
        stop_spark(spark)
        ctrl_c.forget()
    write_whole(folder / "outcome.json", json.dumps(finite(as_document(outcome))))
    return outcome


def _measured_on(capacity: Path | None, ground: Ground, out: Console | None) -> float | None:
    """The start-up time in the capacity file, if it holds for nodes like these; differences are printed."""
    if capacity is None:
        return None
    file, here = read_capacity_file(capacity), machine_facts()
    slots = ground.slots_per_node
    if slots is not None and file.slots_per_node not in (None, slots):
        raise BadInput(
            f"{capacity} was measured on nodes of {file.slots_per_node} slots, those of the cluster have {slots}: "
            f"start it with `sluicegate cluster up --cores {file.slots_per_node}`, or measure anew"
        )
    other = [what for what in ("processor", "cores") if file.machine.get(what, here[what]) != here[what]]
    if other:
        told = ", ".join(f"{what} {file.machine[what]}, here {here[what]}" for what in other)
        _say(out, f"the capacity file is of another machine ({told}): only policies that learn online correct it")
    return file.startup_s


def _by_machine(promise: tuple[str, ...], out: Console | None, batch_s: float) -> tuple[str, ...]:
    """The promise, or a multiple of the batch time if this machine needs longer; prints that it does so."""
    bounds = goal_from(promise).latency_bounds
    least_s = math.ceil(2 * _BATCHES_PROMISED * batch_s) / 2
    if not bounds or least_s <= min(bounds.values()):
        return promise
    slower = tuple(f"{what}={max(bound, least_s):g}s" for what, bound in bounds.items())
    _say(
        out, f"this machine needs {batch_s:.2g} s a batch: promised {', '.join(slower)} (usually {', '.join(promise)})"
    )
    return slower


def _only_the_record(home: Path) -> None:
    """Delete rows and checkpoints; what `explain` and `report` read stays until newer runs replace it."""
    for name in ("edges", "operators"):
        shutil.rmtree(home / name, ignore_errors=True)


def _tell(outcome: Outcome, home: Path, telling: Telling) -> None:
    if telling.json_out:
        print_json(as_document(outcome))
    else:
        show(outcome, console())
    if telling.html is not None:
        write_page(telling.html, run_page(read_record(home)))
        _say(None if telling.json_out else console(), f"The whole run as a page: {telling.html}")


def _tell_what_is_left(home: Home, wanted: Wanted, telling: Telling, refused: bool) -> None:
    """After an interrupted or failed run: write the page of what there is; a folder without a tick is not kept.

    ``refused``: the error has a line of its own, which is all there is to say before anything was fed.
    """
    if (home.folder / "ticks.jsonl").exists():
        if telling.html is not None:
            write_page(telling.html, run_page(read_record(home.folder)))
            _say(telling.progress, f"the run so far as a page: {telling.html}")
        _say(telling.progress, _what_stays(home, wanted, interrupted=True))
    elif home.temporary:
        shutil.rmtree(home.folder, ignore_errors=True)
        if not refused:
            _say(telling.progress, "stopped before anything was fed")


def _what_stays(home: Home, wanted: Wanted, interrupted: bool) -> str:
    if home.temporary and not interrupted:
        return (
            f"rows and checkpoints were deleted; `sluicegate explain` and `report` still find the run in {home.folder}"
        )
    return f"rows and checkpoints are kept in {home.folder}; go on with: {home.resume(wanted.again)}"


def _say(out: Console | None, text: str) -> None:
    if out is not None and text:
        out.print(escape(text), soft_wrap=True)
