"""A run as a user asked for it, and the folder it lives in."""

from __future__ import annotations

import math
import re
import shlex
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from sluicegate.errors import EnvironmentLacks
from sluicegate.runlog.redacted import redacted

if TYPE_CHECKING:
    from sluicegate.lab.running.app import App
    from sluicegate.lab.running.load import Load

LOCAL = "local[16]"
BUNDLED_LENGTH = "120"
"""How long a bundled application is fed by default."""
CYCLE = "60s"
"""Between two decisions of a policy that decides in cycles (S)."""
REAL_TIME_POLICY = "drs-gigk"
"""Default policy in real-time mode: its stages are the queues with servers that DRS models."""


@dataclass(frozen=True, slots=True)
class GroundAsked:
    """Where it runs: Spark's master, executors that come and go there, and Spark's own settings."""

    master: str = LOCAL
    executors: str | None = None
    executor_cores: int = 1
    conf: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RealTimeAsked:
    """Real-time mode; ``kafka`` is where topics are made, each with so many partitions."""

    kafka: str | None = None
    partitions: int = 1


@dataclass(frozen=True, slots=True)
class SlotsAsked:
    """Profiles of operators; with a mapper, executors of ``tasks`` task slots are the slots that threads go to."""

    profiles: Path | None = None
    mapper: str | None = None
    routing: str = "even"
    tasks: int = 8
    app: str = ""

    @property
    def conf(self) -> dict[str, str]:
        """Spark settings with a mapper: how long a task waits for its own executor before it runs elsewhere."""
        return {"spark.locality.wait": "10s"} if self.mapper else {}

    def notes(self) -> tuple[str, ...]:
        """Notes on profiles that were measured elsewhere."""
        if self.profiles is None:
            return ()
        from sluicegate.config.profile_file import read_profiles, strange

        found = read_profiles(self.profiles, needed=False)
        other = [
            f"profile of {name}: measured in a slot of {one.slot_tasks} task slots, this run has {self.tasks}"
            for name, one in found.items()
            if self.mapper and one.slot_tasks not in (None, self.tasks)
        ]
        apps = {name: str(one.measured.get("app", self.app)) for name, one in found.items()}
        elsewhere = [
            f"profiles of {', '.join(name for name in apps if apps[name] == app)}: measured with {app}, this run is of "
            f"{self.app}"
            for app in dict.fromkeys(apps.values())
            if self.app and app != self.app
        ]
        return (*strange(found), *other, *elsewhere)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What runs, for how long, under which load, promise and policy. ``dry_run`` only advises.

    ``length_s`` is infinite for a run until it is stopped. ``again`` is the command that runs the same again, without
    the folder.
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
    slots: SlotsAsked = field(default_factory=SlotsAsked)
    by_machine: bool = False
    """Whether the promise may be relaxed on a machine that needs long for a batch."""
    processors: Mapping[str, int] = field(default_factory=dict)
    """The allocation that the run begins with; operators that are not named begin with one task."""
    cycle_s: float = 60.0
    capacity: Path | None = None
    """The capacity file of this application."""
    policy_options: tuple[str, ...] = ()
    """NAME=VALUE, of the policy."""
    real_time: RealTimeAsked | None = None
    """Set in real-time mode."""
    history: Path | None = None
    """The load before the run."""

    @property
    def endless(self) -> bool:
        return math.isinf(self.length_s)


@dataclass(frozen=True, slots=True)
class Home:
    """The folder of a run.

    ``temporary``: created for this run, its rows are deleted at the end. ``typed``: given by the user; otherwise the
    next run chooses the same folder again, or another temporary one.
    """

    folder: Path
    temporary: bool = False
    typed: bool = True

    def and_how(self) -> str:
        """What happens to the rows, for the line at the start."""
        if self.temporary:
            return "rows and checkpoints are deleted at the end (`sluicegate run APP --folder DIR` keeps them)"
        if (self.folder / "pipeline.json").exists():
            return "it continues where it was stopped; rows and checkpoints stay there"
        return "rows and checkpoints stay there; a later start in this folder resumes it"

    def resume(self, again: Sequence[str]) -> str:
        """The command that resumes the run here; secrets in it are redacted, and must be given again."""
        return shlex.join(
            [*map(redacted, again), *(["--folder", str(self.folder)] if self.temporary or self.typed else [])]
        )


def the_home(app: App, typed: Path | None, own: bool) -> Home:
    """The given folder; else, for a user's file, one in the current folder named after the pipeline, which is kept.

    Else a temporary one.
    """
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
