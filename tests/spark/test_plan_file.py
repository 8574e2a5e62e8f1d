from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from sluicegate.runlog.plan_file import OperatorPlan, PlanFile, PlanInForce

PLANS = st.builds(
    PlanInForce,
    st.integers(0, 10**6),
    st.dictionaries(
        st.text(min_size=1, max_size=10),
        st.builds(
            OperatorPlan,
            st.integers(1, 1000),
            st.floats(0, 60),
            st.lists(st.floats(0, 1), max_size=5).map(tuple),
            st.integers(1, 10**9),
        ),
        max_size=4,
    ),
)


@given(PLANS)
def test_a_plan_comes_back_as_it_was_written(plan: PlanInForce) -> None:
    assert PlanInForce.from_json(plan.to_json()) == plan


def test_an_operator_that_no_plan_names_has_one_processor_and_no_pace() -> None:
    assert PlanInForce().of("count") == OperatorPlan(processors=1, pace_s=0.0, shares=())


def test_a_plan_that_is_not_there_yet_is_the_plan_of_nothing(tmp_path: Path) -> None:
    assert PlanFile(tmp_path / "plan.json").read() == PlanInForce()


def test_every_reader_sees_the_newest_plan_however_fast_plans_follow(tmp_path: Path) -> None:
    writer, reader = PlanFile(tmp_path / "plan.json"), PlanFile(tmp_path / "plan.json")
    for version in range(1, 60):
        writer.write(PlanInForce(version, {"count": OperatorPlan(version)}))
        assert reader.read().of("count").processors == version


def test_a_plan_that_vanishes_leaves_the_last_one_in_force(tmp_path: Path) -> None:
    file = PlanFile(tmp_path / "plan.json")
    file.write(PlanInForce(1, {"count": OperatorPlan(3)}))
    assert file.read().version == 1
    (tmp_path / "plan.json").unlink()
    assert file.read().of("count").processors == 3


def test_a_plan_that_cannot_be_read_leaves_the_last_one_in_force_until_it_can(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    PlanFile(path).write(PlanInForce(3))
    reader = PlanFile(path)
    assert reader.read().version == 3
    path.unlink()
    path.mkdir()
    assert reader.read().version == 3
    path.rmdir()
    PlanFile(path).write(PlanInForce(4))
    assert reader.read().version == 4


def test_a_change_leaves_the_others_as_they_were_and_is_a_version_of_its_own(tmp_path: Path) -> None:
    file = PlanFile(tmp_path / "plan.json")
    file.add({"a": 2, "b": 3})
    file.change({"b": OperatorPlan(5, 0.5)})
    file.add({"b": 9, "c": 1})
    assert file.read() == PlanInForce(3, {"a": OperatorPlan(2), "b": OperatorPlan(5, 0.5), "c": OperatorPlan(1)})
