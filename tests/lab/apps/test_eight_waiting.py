"""The eight applications that wait: the same operators and answers, but for the first that waits."""

from __future__ import annotations

from functools import partial

import pytest

from sluicegate.lab.apps.catalogue import APPS, LISTED
from sluicegate.lab.apps.eight_waiting import APPS as EIGHT
from sluicegate.lab.running.app import App
from sluicegate.spark.pipeline.elements import Step
from sluicegate.spark.pipeline.fusion import groups_of


def function_of(step: Step) -> object:
    """The function of a step, whatever it was given beside rows."""
    return step.function.func if isinstance(step.function, partial) else step.function


@pytest.mark.parametrize("app", EIGHT, ids=lambda app: app.name)
def test_the_first_operator_waits_in_a_query_of_its_own_and_the_rest_is_as_it_was(app: App) -> None:
    waiting = APPS[app.name]
    plain = APPS[waiting.name.removesuffix("_waiting")]
    pipeline, before = waiting.build(), plain.build()
    doors = [name for name, step in before.steps.items() if set(step.inputs) & set(before.sources)]
    assert list(pipeline.steps) == list(before.steps)
    own = {name: function_of(step) for name, step in before.steps.items()}
    assert [name for name, step in pipeline.steps.items() if function_of(step) is not own[name]] == doors
    assert all((door,) in [tuple(s.name for s in g.steps) for g in groups_of(pipeline)] for door in doors)
    assert (LISTED[waiting.name].about, LISTED[waiting.name].slo) == (waiting.about, waiting.slo)
