"""The options of `run` and `demo` as values, each checked before anything starts."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from sluicegate.cli.wanted import GroundAsked, RealTimeAsked, SlotsAsked
from sluicegate.config.capacity_file import read_capacity_file
from sluicegate.config.trace_file import read_trace
from sluicegate.config.typed import duration_s, goal_from, pairs_from, policy_options
from sluicegate.control.settings import policy_for
from sluicegate.domain.topology import require_number
from sluicegate.errors import BadInput, SluicegateError
from sluicegate.policy.catalogue import live_policy_entry
from sluicegate.runlog.plan_file import MOST_PROCESSORS

if TYPE_CHECKING:
    from sluicegate.lab.running.app import App
    from sluicegate.lab.running.load import Load
    from sluicegate.spark.pipeline.declaration import Pipeline

MICRO_BATCH, REAL_TIME = "micro-batch", "real-time"
_MOST_NODES = 4
"""Most nodes that a policy may take if neither --executors nor a capacity file says."""


def is_file(name: str) -> bool:
    """Whether APP names a file of the user's and not a bundled application.

    >>> is_file("app.py"), is_file("jobs/app"), is_file("shop")
    (True, True, False)
    """
    return name.endswith(".py") or "/" in name


def options(**given: object) -> tuple[str, ...]:
    """Options as the user would type them; those not given are left out.

    >>> options(slo=["mean=3s"], executor_cores=2, no_fuse=True, dry_run=False, load=None)
    ('--slo', 'mean=3s', '--executor-cores', '2', '--no-fuse')
    """
    words: list[str] = []
    for name, value in given.items():
        option = f"--{name.replace('_', '-')}"
        if isinstance(value, list):
            words += [word for one in value for word in (option, str(one))]
        elif value is True:
            words.append(option)
        elif value is not None and value is not False:
            words += [option, str(value)]
    return tuple(words)


def the_app(name: str, given: Path | None = None) -> App:
    """The application, by name or from a user's file, fed with the records of ``given`` if there is one."""
    from sluicegate.lab.apps.catalogue import app_named
    from sluicegate.lab.running.user_file import app_from

    app = app_from(Path(name)) if is_file(name) else app_named(name)
    if given is None:
        return app
    if app.given is None:
        raise BadInput(f"application {app.name!r} reads no file: leave --input out")
    return app.given(given)


def the_promise(app: App, slo: Sequence[str] | None) -> tuple[str, ...]:
    """The user's promise, else that of the application."""
    texts = tuple(slo) if slo else (app.slo,)
    goal_from(texts)
    return texts


def the_load(app: App, calm_per_s: float | None, trace: Path | None) -> Load:
    """It triples and falls back, or follows a trace."""
    from sluicegate.lab.running.load import from_file, triples

    calm = calm_per_s if calm_per_s is not None else app.calm_per_s
    the_rate(calm)
    return from_file(trace, calm) if trace else triples(calm)


def the_rate(rate_per_s: float) -> float:
    """Rows a second as given by --rate."""
    if not rate_per_s > 0:
        raise BadInput(f"--rate is {rate_per_s:g}: give rows a second, above 0")
    require_number(rate_per_s, "--rate", above=True)
    return rate_per_s


def the_length_s(text: str | None) -> float:
    """A length in seconds; infinite without a text."""
    if text is None:
        return math.inf
    length_s = duration_s(text)
    if not length_s > 0:
        raise BadInput(f"--seconds is {text}: give a time above 0, such as 60 or 3min")
    return length_s


def the_processors(app: App, text: str | None, fuse: bool) -> dict[str, int]:
    """The initial allocation from ``a=2,b=1``, checked against the operators of the application."""
    from sluicegate.lab.running.run_app import begin_with

    given = pairs_from(text, "--processors") if text is not None else {}
    for name, count in given.items():
        if not 1 <= count <= MOST_PROCESSORS or count != int(count):
            raise BadInput(f"--processors of {name} is {count:g}: give a whole number, 1 to {MOST_PROCESSORS}")
    asked = {name: int(count) for name, count in given.items()}
    if app.beside is None:  # otherwise the pipeline is known, and checked, only once what it needs is up
        begin_with(asked, the_pipeline(app), fuse)
    return asked


def the_pipeline(app: App) -> Pipeline:
    """The pipeline of an application, refused if its code fails or it cannot run."""
    from sluicegate.spark.pipeline.declaration import Pipeline

    try:
        with redirect_stdout(sys.stderr):  # standard output belongs to the command's answer
            pipeline = app.build()
    except SluicegateError:
        raise
    except Exception as problem:  # raised by the code of the user's file
        raise BadInput(f"{app.name} cannot be built: {type(problem).__name__}: {problem}") from problem
    if not isinstance(pipeline, Pipeline):
        raise BadInput(f"{app.name}: its build gave {type(pipeline).__name__}: let it return a Pipeline")
    pipeline.check()
    return pipeline


def the_mode(
    mode: str, kafka: str | None, partitions: int, executors: str | None, mapper: str | None
) -> RealTimeAsked | None:
    """The options of real-time mode; ``None`` for micro-batches."""
    if mode not in (MICRO_BATCH, REAL_TIME):
        raise BadInput(f"--mode is {mode!r}: give {MICRO_BATCH} or {REAL_TIME}")
    if mode == REAL_TIME and (executors is not None or mapper is not None):
        which = "--executors" if executors is not None else "--mapper"
        raise BadInput(f"{which}: real-time mode holds its slots from start to end; leave out one of the two")
    if mode == REAL_TIME:
        return RealTimeAsked(kafka, partitions)
    if kafka is not None:
        raise BadInput("--kafka makes topics for real-time mode: give --mode real-time too, or leave it out")
    return None


def the_stages(app: App, text: str | None) -> dict[str, int]:
    """Tasks of the stages of a real-time query, from ``a=2,b=1``; impossible ones are refused before Spark starts."""
    from sluicegate.spark.realtime.stages import sink_of, stages_of

    pipeline = the_pipeline(app)
    steps = stages_of(pipeline)
    sink_of(pipeline, steps)
    given = pairs_from(text, "--processors") if text is not None else {}
    for name, count in given.items():
        known = name in [step.name for step in steps]
        if not known or not 1 <= count <= MOST_PROCESSORS or count != int(count):
            names = ", ".join(step.name for step in steps)
            raise BadInput(
                f"--processors of {name} is {count:g}: give whole numbers, 1 to {MOST_PROCESSORS}, of {names}"
            )
    return {name: int(count) for name, count in given.items()}


def the_cycle_s(text: str) -> float:
    """The length of a policy's cycle."""
    cycle_s = duration_s(text)
    if not cycle_s > 0:
        raise BadInput(f"--cycle is {text}: give a time above 0, such as 60s or 5min")
    return cycle_s


def the_capacity(app: App, policy: str, profiles: Path | None) -> Path | None:
    """The capacity file in a folder of profiles, or the one named, for a policy that decides nodes."""
    if profiles is None or not live_policy_entry(policy).nodes:
        return None
    path = profiles / f"{app.name}.mst.toml" if profiles.is_dir() else profiles
    how = f"sluicegate profile {app.name} --mst --nodes 1,2,4 --out {path.parent}"
    if not path.exists():
        raise BadInput(f"{path}: no such file; measure it with `{how}`")
    found = read_capacity_file(path)
    if found.app and found.app != app.name:
        raise BadInput(f"{path} was measured with {found.app!r}, not with {app.name!r}: measure it with `{how}`")
    return path.absolute()


def the_history(path: Path | None, policy: str) -> Path | None:
    """A trace for the forecaster of a policy that has one; read here once, to report its mistakes early."""
    if path is None:
        return None
    if live_policy_entry(policy).forecaster is None:
        raise BadInput(f"--history is for the forecaster of a policy, and {policy!r} has none: leave it out")
    read_trace(path)
    return path.absolute()


def whole_nodes(asked: GroundAsked, policy: str, capacity: Path | None) -> GroundAsked:
    """Executors for a policy that decides nodes of a cluster of ours, if the user gave none: one a node.

    As many nodes as were measured, with as many slots; beyond that the curve is only extrapolated.
    """
    if asked.executors is not None or not live_policy_entry(policy).nodes or not asked.master.startswith("cluster"):
        return asked
    file = read_capacity_file(capacity) if capacity is not None else None
    most = max((point.machines for point in file.points), default=_MOST_NODES) if file else _MOST_NODES
    cores = file.slots_per_node if file and file.slots_per_node else asked.executor_cores
    return replace(asked, executors=f"1:{most}", executor_cores=cores)


def the_policy(name: str) -> str:
    live_policy_entry(name)
    return name


def the_slots(
    app: App,
    policy: str,
    profiles: Path | None,
    mapper: str | None,
    routing: str,
    tasks: int,
    executors: str | None,
) -> SlotsAsked:
    """Profiles, mapper and routing of a run; impossible combinations are refused before anything starts."""
    from sluicegate.config.profile_file import read_profiles
    from sluicegate.model.mapping_rate import Routing
    from sluicegate.place.catalogue import placer

    if routing not in [one.value for one in Routing]:
        raise BadInput(f"--routing is {routing!r}: give one of {', '.join(one.value for one in Routing)}")
    packs = policy in ("lsa", "mba")
    known = read_profiles(profiles, needed=packs) if profiles is not None else {}
    if known:
        _check_profiles(app, set(known), mapper is not None)
    if mapper is None:
        return SlotsAsked(profiles, None, routing, tasks, app.name)
    placer(mapper)
    if not packs:
        raise BadInput(f"--mapper maps the threads of lsa and mba, policy {policy!r} has none: leave it out")
    if executors is None:
        raise BadInput("--mapper puts threads on executors: give --master cluster and --executors LEAST:MOST")
    if profiles is None:
        raise BadInput("--mapper needs --profiles DIR: measure them with `sluicegate profile APP OPERATOR`")
    return SlotsAsked(profiles, mapper, routing, tasks, app.name)


def _check_profiles(app: App, known: set[str], needed: bool) -> None:
    names = [name for name, step in the_pipeline(app).steps.items() if step.source is None]
    missing = [name for name in names if name not in known]
    if len(missing) == len(names):
        raise BadInput(f"--profiles has {', '.join(sorted(known)[:5])}; {app.name!r} has {', '.join(names)}: none fits")
    if needed and missing:
        raise BadInput(
            f"no profile of {', '.join(missing[:5])}: measure it with `sluicegate profile {app.name} {missing[0]}`"
        )


def the_policy_options(policy: str, texts: Sequence[str] | None) -> tuple[str, ...]:
    """Options of a policy, refused if it does not have them."""
    policy_for(policy, options=policy_options(texts or ()))
    return tuple(texts or ())


def the_settings(conf: Sequence[str]) -> dict[str, str]:
    pairs = [text.partition("=") for text in conf]
    if any(not key or not equals for key, equals, _ in pairs):
        raise BadInput("--conf takes KEY=VALUE, for example spark.executor.memory=2g")
    return {key: value for key, _, value in pairs}
