"""`sluicegate profile`: measures an operator with tau tasks in one slot, or what an application sustains on m nodes."""

from __future__ import annotations

import logging
import math
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Table

from sluicegate.cli.checked_options import is_file, the_app, the_pipeline
from sluicegate.cli.ctrl_c import CtrlC
from sluicegate.cli.out import console, place_for, print_json, write_page
from sluicegate.domain.figures import rate
from sluicegate.errors import INTERRUPTED, BadInput, SluicegateError
from sluicegate.runlog.files import write_whole
from sluicegate.spark.spark_log import quiet_spark

if TYPE_CHECKING:
    from sluicegate.config.profile_file import ProfileFile
    from sluicegate.lab.profile.batch_law import BatchFigures
    from sluicegate.lab.profile.operator import OperatorMeasured, Watch
    from sluicegate.lab.profile.slot import SlotSize
    from sluicegate.lab.profile.trials import TrialFile
    from sluicegate.lab.running.app import App

_KEPT = "stopping after this trial; what was measured is kept (Ctrl-C again: at once)"
_SIZES_KEPT = "stopping; sizes that were measured are kept"
_SLOT_TASKS, _NODE_TASKS = 8, 4
Tell = Callable[[str, float], None]


def profile(
    app: Annotated[str, typer.Argument(metavar="APP", help="An application's name, or a file such as app.py.")],
    operator: Annotated[str | None, typer.Argument(metavar="OPERATOR", help="Which of its operators.")] = None,
    mst: Annotated[bool, typer.Option("--mst", help="What the whole application sustains on m nodes.")] = False,
    nodes: Annotated[str, typer.Option(metavar="M,M,...", help="With --mst: the numbers of nodes.")] = "1,2,4",
    minutes: Annotated[
        float, typer.Option(help="How long to measure once Spark is warm; run it again to go on.")
    ] = 5.0,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where the profile and its trials go.")] = Path("profiles"),
    slot_tasks: Annotated[
        int | None,
        typer.Option(
            min=1,
            help=f"Task slots of the one executor, on one core [{_SLOT_TASKS}]; with --mst of a node [{_NODE_TASKS}].",
        ),
    ] = None,
    slot_memory: Annotated[int, typer.Option(min=512, metavar="MB", help="Memory of the one executor.")] = 1536,
    delta: Annotated[
        float, typer.Option(help="With --mst: a size counts once 4 of 5 samples are this close to the one before.")
    ] = 0.05,
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Write a page with pictures.")] = None,
    json_out: Annotated[bool, typer.Option("--json", help="One JSON document.")] = False,
) -> int:
    """Measure the sustainable rate of an operator in one slot, or of an application on some nodes."""
    if not 0 < minutes < math.inf:
        raise BadInput(f"--minutes is {minutes:g}: give more than 0, and an end")
    page = html and place_for(html)
    chosen, source = the_app(app), _source(app)
    pipeline = the_pipeline(chosen)
    # the one line of the command says what the log would: once is enough
    logging.getLogger("sluicegate.pipeline").addHandler(logging.NullHandler())
    _make(out)
    if mst:
        if operator is not None:
            raise BadInput(f"--mst measures the whole application: leave {operator!r} out")
        return _mst(chosen, source, nodes, minutes, out, (slot_tasks or _NODE_TASKS, delta), page, json_out)
    if operator is None:
        names = ", ".join(name for name, step in pipeline.steps.items() if step.source is None)
        raise BadInput(f"name the operator to profile: {chosen.name} has {names}; or give --mst for all of it")
    return _operator(chosen, source, operator, minutes, out, (slot_tasks or _SLOT_TASKS, slot_memory), page, json_out)


def _source(app: str) -> str:
    """A hash of the user's file, to detect another version; empty for a bundled application.

    >>> _source("grep")
    ''
    """
    return sha256(Path(app).read_bytes()).hexdigest()[:12] if is_file(app) else ""


def _operator(
    app: App,
    source: str,
    operator: str,
    minutes: float,
    out: Path,
    slot: tuple[int, int],
    page: Path | None,
    json_out: bool,
) -> int:
    from sluicegate.config.profile_file import here, write_profile
    from sluicegate.lab.profile.bench import the_step
    from sluicegate.lab.profile.operator import Watch
    from sluicegate.lab.profile.page import profile_page
    from sluicegate.lab.profile.result import profile_from
    from sluicegate.lab.profile.slot import SlotSize
    from sluicegate.lab.profile.trials import TrialFile

    the_step(app, operator)
    size = SlotSize(*slot)
    what = {"app": app.name, "operator": operator, **here(), "slot_tasks": slot[0], "slot_memory_mb": slot[1]}
    if source:
        what["source"] = source
    file = TrialFile(out / f"{operator}.trials.jsonl", what)
    before = len(file.read())
    said = None if json_out else Console(stderr=True, highlight=False)
    if before and said is not None:
        said.print(f"going on from {before} trials in {out}")
    ctrl_c = CtrlC(said, _KEPT)
    with _progress(said, minutes) as tell:
        measured = _measured(app, operator, size, file, Watch(minutes, tell, ctrl_c.leave), ctrl_c)
    about = {"app": app.name, "date": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"), **here()}
    found, law = profile_from(operator, measured, size, about)
    path = out / f"{operator}.toml"
    write_whole(path, write_profile(found))
    if page is not None:
        write_page(page, profile_page(found, measured))
    if json_out:
        print_json(as_document(found, law, measured, path))
    else:
        show(found, law, path, console())
    return INTERRUPTED if ctrl_c.leave.is_set() else 0


def _measured(
    app: App, operator: str, size: SlotSize, file: TrialFile, watch: Watch, ctrl_c: CtrlC
) -> OperatorMeasured:
    """Start Spark, run the trials, stop Spark; no process or file is left behind."""
    from sluicegate.lab.profile.operator import measure_operator
    from sluicegate.lab.profile.slot import executor_folder
    from sluicegate.spark.session import spark_is_gone, spark_session, stop_spark

    folder = Path(tempfile.mkdtemp(prefix="sluicegate-profile-"))
    ctrl_c.listen()
    try:
        watch.tell("starting Spark")
        try:
            with quiet_spark(folder / "spark.log"):
                spark = spark_session(size.master, size.settings, f"sluicegate profile {app.name} {operator}")
        except SluicegateError:
            if ctrl_c.leave.is_set():  # Java received the signal too
                raise KeyboardInterrupt from None
            raise
        ctrl_c.listen()
        work = executor_folder(spark)
        try:
            return measure_operator(app, operator, spark, size, folder, file, watch)
        except SluicegateError:
            raise
        except Exception as problem:  # whatever was running when Java ended raises an error of its own
            raise spark_is_gone(spark) or problem from None
        finally:
            stop_spark(spark)
            shutil.rmtree(work, ignore_errors=True)
    finally:
        ctrl_c.forget()
        shutil.rmtree(folder, ignore_errors=True)


def _mst(
    app: App,
    source: str,
    nodes: str,
    minutes: float,
    out: Path,
    how: tuple[int, float],
    page: Path | None,
    json_out: bool,
) -> int:
    """Measure a whole application with `lab.profile.mst`, which writes the file. ``how`` are slots a node and delta."""
    from sluicegate.lab.profile.mst import MstSettings, measure_mst
    from sluicegate.report.mst_page import mst_page

    settings = MstSettings(how[0], delta=how[1], source=source)
    try:
        sizes = tuple(int(part) for part in nodes.split(","))
    except ValueError:
        raise BadInput(f"--nodes is {nodes!r}: give whole numbers with commas, such as 1,2,4") from None
    said = None if json_out else Console(stderr=True, highlight=False)
    ctrl_c = CtrlC(said, _SIZES_KEPT)
    began_s = time.monotonic()
    with _progress(said, minutes) as tell, tempfile.TemporaryDirectory(prefix="sluicegate-profile-") as logs:
        ctrl_c.listen()
        try:
            found = measure_mst(
                app,
                sizes,
                minutes,
                out,
                lambda text: tell(text, min((time.monotonic() - began_s) / (60 * minutes), 1.0)),
                settings,
                ctrl_c.leave,
                lambda: quiet_spark(Path(logs) / "spark.log"),
            )
        finally:
            ctrl_c.forget()
    if page is not None:
        write_page(page, mst_page(found.file))
    document = found.document()
    if json_out:
        print_json(document)
    else:
        _show_mst(document, console())
    return 0


def _show_mst(told: Mapping[str, Any], out: Console) -> None:
    table = Table("nodes", box=None, pad_edge=False)
    table.add_column("sustains", justify="right")
    table.add_column("+-", justify="right")
    for point in told["mst"]:
        table.add_row(str(point["nodes"]), rate(point["rate_per_s"]), rate(point["sd_per_s"]))
    out.print(table)
    out.print(f"model {told['model']}: {escape(str(told['chosen']))}")
    for note in told["notes"]:
        out.print(escape(str(note)))
    out.print(f"written to {told['file']}")


def _make(out: Path) -> None:
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise BadInput(f"--out {out}: {problem.strerror}; give a folder that can be written") from None


@contextmanager
def _progress(said: Console | None, minutes: float) -> Iterator[Tell]:
    """A bar with the time left on standard error; lines where it is no terminal; nothing for JSON."""
    if said is None:
        yield lambda what, share: None
    elif not said.is_terminal:
        last = [""]

        def line(what: str, share: float) -> None:
            if what != last[0]:
                last[0] = what
                said.print(f"{share:4.0%}, {_left(minutes, share)}  {escape(what)}")

        yield line
    else:
        columns = (BarColumn(), TextColumn("{task.percentage:3.0f}%, {task.fields[left]}  {task.description}"))
        with Progress(*columns, console=said) as bar:
            task = bar.add_task("", total=1.0, left=_left(minutes, 0.0))
            yield lambda what, share: bar.update(
                task, completed=share, description=escape(what), left=_left(minutes, share)
            )


def _left(minutes: float, share: float) -> str:
    """The time left of the minutes there are.

    >>> _left(5.0, 0.25), _left(2.0, 0.9)
    ('3 min 45 s left', '12 s left')
    """
    whole, seconds = divmod(round(60 * minutes * max(1 - share, 0.0)), 60)
    return f"{f'{whole} min ' if whole else ''}{seconds} s left"


def as_document(found: ProfileFile, law: BatchFigures, measured: OperatorMeasured, path: Path) -> dict[str, object]:
    """The JSON of the command-line contract."""
    return {
        "operator": found.profile.task,
        "points": [
            {
                "threads": point.threads,
                "rate_per_s": point.rate_per_s,
                "unstable_per_s": found.highest.get(point.threads),
                "cpu": point.cpu,
                "memory": point.memory,
            }
            for point in found.profile.points
        ],
        "batch": {
            "o_s": law.overhead_s,
            "c_s": law.per_task_s,
            "service_per_s": law.service_per_s,
            "r2": law.r2,
            "batches": law.batches,
        },
        "cpu_s": dict(found.cpu_s),
        "trials": len(measured.trials),
        "complete": measured.complete,
        "ended": measured.ended,
        "measured": dict(found.measured),
        "file": str(path),
    }


def show(found: ProfileFile, law: BatchFigures, path: Path, out: Console) -> None:
    """Tables for a person."""
    told = found.measured
    out.print(
        f"[bold]{escape(found.profile.task)}[/] of {escape(str(told['app']))} in one slot of {told['slot_tasks']} task "
        f"slots, {told['slot_memory_mb']} MB and one core: {told['trials']} trials, {escape(str(told['ended']))}\n"
    )
    table = Table("tasks", box=None, pad_edge=False)
    for heading in ("sustains", "not stable at", "CPU", "memory"):
        table.add_column(heading, justify="right")
    for point in found.profile.points:
        high = found.highest.get(point.threads)
        cells = (rate(point.rate_per_s), rate(high) if high else "-", f"{point.cpu:.0%}", f"{point.memory:.0%}")
        table.add_row(str(point.threads), *cells)
    out.print(table)
    out.print(
        f"\na batch of n rows in k tasks: {law.overhead_s:.3g} s + {law.per_task_s:.3g} s k "
        f"+ n/(k {law.service_per_s:,.4g}) "
        f"(R2 {law.r2:.2f} over {law.batches} batches)"
    )
    if found.cpu_s:
        costs = ", ".join(f"{1e3 * s:.3g} ms a {what.split('_')[1]}" for what, s in found.cpu_s.items())
        out.print(f"processor time of the executor: {costs}")
    if not told["complete"]:
        out.print("run it again to measure on: the trials are kept")
    out.print(f"written to {path}")
