"""A run as a user asked for it: checked before anything starts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from sluicegate.config.goal_text import duration_s, goal_from
from sluicegate.errors import BadInput
from sluicegate.policy.catalogue import live_policy_entry

if TYPE_CHECKING:
    from sluicegate.lab.running.app import App
    from sluicegate.lab.running.load import Load

LOCAL = "local[16]"


@dataclass(frozen=True, slots=True)
class Ground:
    """Where it runs: Spark's master, executors that come and go there, and Spark's own settings."""

    master: str = LOCAL
    executors: str | None = None
    executor_cores: int = 1
    conf: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What runs, for how long, under which load, promise and policy. ``dry_run`` only advises."""

    app: App
    policy: str
    promise: tuple[str, ...]
    load: Load
    length_s: float
    ground: Ground
    budget: int | None = None
    fuse: bool = True
    dry_run: bool = False


def the_app(name: str, given: Path | None = None) -> App:
    """By name or from a file of the user's, fed with the records of ``given`` where there is one."""
    from sluicegate.lab.apps.catalogue import app_named
    from sluicegate.lab.running.user_file import app_from

    app = app_from(Path(name)) if name.endswith(".py") or "/" in name else app_named(name)
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


def the_length_s(text: str) -> float:
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
