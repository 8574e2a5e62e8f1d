"""A run as a user asked for it: checked before anything starts."""

from __future__ import annotations

import math
import re
import shlex
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from sluicegate.config.goal_text import duration_s, goal_from
from sluicegate.errors import BadInput, EnvironmentLacks
from sluicegate.policy.catalogue import live_policy_entry

if TYPE_CHECKING:
    from sluicegate.lab.running.app import App
    from sluicegate.lab.running.load import Load

LOCAL = "local[16]"
BUNDLED_LENGTH = "120"
"""How long a bundled application is fed where nothing else is said."""


@dataclass(frozen=True, slots=True)
class GroundAsked:
    """Where it runs: Spark's master, executors that come and go there, and Spark's own settings."""

    master: str = LOCAL
    executors: str | None = None
    executor_cores: int = 1
    conf: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What runs, for how long, under which load, promise and policy. ``dry_run`` only advises.

    ``length_s`` is infinite for a run until it is stopped. ``again`` are the words that run the same again, but for the
    folder.
    """

    app: App
    policy: str
    promise: tuple[str, ...]
    load: Load
    length_s: float
    ground: GroundAsked
    budget: int | None = None
    fuse: bool = True
    dry_run: bool = False
    again: tuple[str, ...] = ()
    by_machine: bool = False
    """Whether a machine that needs long for a batch is promised more time than ``promise`` says."""

    @property
    def endless(self) -> bool:
        return math.isinf(self.length_s)


@dataclass(frozen=True, slots=True)
class Home:
    """The folder of a run. ``temporary``: made for this run, its rows are deleted at the end. ``typed``: by the user;
    who gave none gets the same folder again, or another temporary one."""

    folder: Path
    temporary: bool = False
    typed: bool = True

    def and_how(self) -> str:
        """What becomes of the rows, for the line at the start."""
        if self.temporary:
            return "rows and checkpoints are deleted at the end (`sluicegate run APP --folder DIR` keeps them)"
        if (self.folder / "pipeline.json").exists():
            return "it goes on where it was stopped; rows and checkpoints stay there"
        return "rows and checkpoints stay there; started again in it, it goes on"

    def resume(self, again: Sequence[str]) -> str:
        """The command that goes on here."""
        return shlex.join([*again, *(["--folder", str(self.folder)] if self.temporary or self.typed else [])])


def the_home(app: App, typed: Path | None, own: bool) -> Home:
    """The folder that was given; else for a file of the user's one named after the pipeline, which stays, in the
    current folder; else a temporary one."""
    if typed is not None:
        return Home(typed)
    name = re.sub(r"[^A-Za-z0-9_-]", "_", app.name)
    if own:
        return Home(Path.cwd() / f"sluicegate-{name}", typed=False)
    try:
        return Home(Path(tempfile.mkdtemp(prefix=f"sluicegate-{name}-")), temporary=True, typed=False)
    except OSError as problem:
        raise EnvironmentLacks(
            f"{tempfile.gettempdir()} cannot be written ({problem.strerror}): set TMPDIR, or give --folder"
        ) from None


def is_file(name: str) -> bool:
    """Whether APP names a file of the user's and not a bundled application.

    >>> is_file("app.py"), is_file("jobs/app"), is_file("shop")
    (True, True, False)
    """
    return name.endswith(".py") or "/" in name


def options(**given: object) -> tuple[str, ...]:
    """Options as typed; what was left out is left out.

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
    """By name or from a file of the user's, fed with the records of ``given`` where there is one."""
    from sluicegate.lab.apps.catalogue import app_named
    from sluicegate.lab.running.user_file import app_from

    app = app_from(Path(name)) if is_file(name) else app_named(name)
    if given is None:
        return app
    if app.given is None:
        raise BadInput(f"application {app.name!r} reads no file: leave --input out")
    return app.given(given)


def the_promise(app: App, slo: Sequence[str] | None) -> tuple[str, ...]:
    """What the user promises, else what the application does."""
    texts = tuple(slo) if slo else (app.slo,)
    goal_from(texts)
    return texts


def the_load(app: App, calm_per_s: float | None, trace: Path | None) -> Load:
    """It triples and falls back, or follows a trace."""
    from sluicegate.lab.running.load import from_file, triples

    calm = calm_per_s if calm_per_s is not None else app.calm_per_s
    if not calm > 0:
        raise BadInput(f"--rate is {calm:g}: give rows a second, above 0")
    return from_file(trace, calm) if trace else triples(calm)


def the_length_s(text: str | None) -> float:
    """Without a text for ever."""
    if text is None:
        return math.inf
    length_s = duration_s(text)
    if not length_s > 0:
        raise BadInput(f"--seconds is {text}: give a time above 0, such as 60 or 3min")
    return length_s


def the_policy(name: str) -> str:
    live_policy_entry(name)
    return name


def the_settings(conf: Sequence[str]) -> dict[str, str]:
    pairs = [text.partition("=") for text in conf]
    if any(not key or not equals for key, equals, _ in pairs):
        raise BadInput("--conf takes KEY=VALUE, for example spark.executor.memory=2g")
    return {key: value for key, _, value in pairs}
