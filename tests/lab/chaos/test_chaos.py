"""A dozen faults on a pipeline with a split, and half a dozen on an attached query: exact, recovered, nothing left.

`make chaos` does the same by the hundred, over more applications and kinds.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from sluicegate.lab.chaos.attached import attached_chaos
from sluicegate.lab.chaos.faults import chosen
from sluicegate.lab.chaos.run import Asked, chaos
from sluicegate.lab.chaos.verdict import ChaosVerdict

pytestmark = pytest.mark.slow

KINDS = (
    "controller,controller-stop,driver-stop,java-stop,published,between-manifests,spoiled-file",
    "attached-controller,attached-controller-stop,attached-folder-deleted,attached-folder-a-file,attached-plan,attached-record",
)


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory: pytest.TempPathFactory) -> ChaosVerdict:
    quick = {"controller": 2, "controller-stop": 2, "driver-stop": 3, "java-stop": 2}
    faults = tuple(replace(fault, often=quick.get(fault.name, 1)) for fault in chosen(KINDS[0], cluster=False))
    asked = Asked("data_clean", 3600.0, 11, faults, "local[2]", calm_per_s=30.0, most=12)
    return chaos(asked, tmp_path_factory.mktemp("chaos"))


@pytest.fixture(scope="module")
def query(tmp_path_factory: pytest.TempPathFactory) -> ChaosVerdict:
    return attached_chaos("counts", 3600.0, 3, KINDS[1].split(","), tmp_path_factory.mktemp("attached"), most=6)


@pytest.mark.parametrize("which", ["pipeline", "query"])
def test_the_answer_is_exact_whatever_was_done(which: str, request: pytest.FixtureRequest) -> None:
    verdict: ChaosVerdict = request.getfixturevalue(which)
    assert verdict.rows_in > 0
    assert (verdict.lost, verdict.duplicated, verdict.wrong_keys, verdict.exact) == (0, 0, 0, True), verdict.note


@pytest.mark.parametrize("which", ["pipeline", "query"])
def test_every_fault_is_recovered_from_and_breaks_nothing_else(which: str, request: pytest.FixtureRequest) -> None:
    verdict: ChaosVerdict = request.getfixturevalue(which)
    assert [one for one in verdict.faults if one.recovered_s is None] == []
    assert verdict.broken == ()


def test_every_kind_was_done_and_the_driver_came_back_as_often_as_it_was_ended(
    pipeline: ChaosVerdict, query: ChaosVerdict
) -> None:
    assert len(pipeline.faults) == 12
    assert {one.kind for one in pipeline.faults} == set(KINDS[0].split(","))
    assert pipeline.starts >= 4
    assert pipeline.moves > 0, "tasks moved meanwhile"
    assert len(query.faults) == 6
    assert len({one.kind for one in query.faults}) >= 4, "a kind that finds nothing to hurt is left out"
    assert query.starts == 2, "once attached, once without"
