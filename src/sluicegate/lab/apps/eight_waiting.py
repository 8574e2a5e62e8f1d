"""The eight applications of uncertainty-aware scheduling, with a first operator that sleeps for each row.

The first operator sleeps for each row, like a call to a service, and then does its work; the others are unchanged.
Sleeping needs no core, so that on a machine with few cores more nodes sustain more load, as on a real cluster; the
original applications would only measure the cores that all nodes share. The sleeping operator has its own query: fused
with a stateful one its k could not exceed the key groups. The answers are those of the applications.
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
from sluicegate.spark.pipeline.declaration import Pipeline
from sluicegate.spark.pipeline.elements import Step

WAIT_MS = 20.0
"""One slot does at most 50 rows/s, four nodes of four slots some 500, so that downstream operators use a small part of
two cores. At half, a downstream stateful operator may be the bottleneck of four nodes; at double, a run has few
rows."""


def waiting(app: App, wait_ms: float = WAIT_MS) -> App:
    """The application with a first operator that sleeps ``wait_ms`` per row."""

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
    """Add the sleep to a step that reads a source; return other steps unchanged."""
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
