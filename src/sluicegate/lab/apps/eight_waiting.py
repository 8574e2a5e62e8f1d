"""The eight applications of uncertainty-aware scheduling, whose rows are fetched from somewhere before they are used.

The first operator waits for each row, as for a call to a service, and then does what it does; the others compute as
they always do. Waiting needs no core, so that on a machine of few cores more nodes carry more, as on a cluster of real
ones; the applications themselves would only measure the cores that all nodes share. The operator that waits has a query
of its own: fused with a stateful one its k could not pass the key groups. The answers are those of the applications.
"""

from __future__ import annotations

from dataclasses import replace

from sluicegate.lab.apps import (
    data_clean,
    flight_distances,
    grep,
    hashtags,
    page_view,
    rolling_count,
    unique_visitor,
    vht,
)
from sluicegate.lab.apps.waits import later
from sluicegate.lab.running.app import App
from sluicegate.spark.pipeline.declaration import Pipeline, Step

WAIT_MS = 20.0
"""One slot does at most 50 rows/s, four nodes of four slots some 500: what comes after it then computes for a small
part of two cores. At half, a stateful operator after it may bound four nodes; at double, a run has few rows."""


def waiting(app: App, wait_ms: float = WAIT_MS) -> App:
    """The application with a first operator that waits ``wait_ms`` a row."""

    def build() -> Pipeline:
        pipeline = app.build()
        pipeline.name = f"{app.name}_waiting"
        pipeline.steps = {name: _waits(step, pipeline, wait_ms) for name, step in pipeline.steps.items()}
        return pipeline

    return replace(
        app,
        name=f"{app.name}_waiting",
        about=f"{app.name} whose rows are fetched first ({wait_ms:g} ms each), so that nodes matter where cores are "
        "few",
        build=build,
        calm_per_s=60.0,
        slo="mean=8s",
        given=None,
    )


def _waits(step: Step, pipeline: Pipeline, wait_ms: float) -> Step:
    """A step that reads the source, made to wait; others as they are."""
    if not set(step.inputs) & set(pipeline.sources):
        return step
    return replace(step, function=later(step.function, wait_ms), fuse=False)


APPS = tuple(
    waiting(module.APP)
    for module in (
        grep,
        rolling_count,
        unique_visitor,
        page_view,
        data_clean,
        vht,
        hashtags,
        flight_distances,
    )
)
