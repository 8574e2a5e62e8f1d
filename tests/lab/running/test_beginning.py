"""What a run begins with, and what the demo promises on a slow machine."""

from __future__ import annotations

import pytest

from sluicegate.cli.one_run import _by_machine
from sluicegate.errors import BadInput
from sluicegate.lab.apps import top_n
from sluicegate.lab.running.run_app import begin_with


@pytest.mark.parametrize("fuse", [True, False])
def test_an_operator_begins_with_what_was_asked_for_it_fused_or_not_all_others_with_one(fuse: bool) -> None:
    begun = begin_with({"price": 4}, top_n.build_shop(), fuse)
    assert {k for name, k in begun.items() if "price" in name.split("+")} == {4}
    assert {k for name, k in begun.items() if "price" not in name.split("+")} == {1}


def test_a_query_that_operators_share_may_be_named_itself() -> None:
    assert begin_with({"read+price+count": 3}, top_n.build_shop(), True)["read+price+count"] == 3


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"prise": 2}, "no such operator; there is read, price"),
        ({"rank": 5}, "it has 4 key groups, give at most as many"),
    ],
)
def test_what_no_operator_can_begin_with_is_refused(asked: dict[str, int], said: str) -> None:
    with pytest.raises(BadInput, match=said):
        begin_with(asked, top_n.build_shop(), True)


def test_a_quick_machine_is_promised_what_the_application_says() -> None:
    assert _by_machine(("mean=5s",), None, 0.3) == ("mean=5s",)


def test_a_slow_machine_is_promised_a_multiple_of_its_batches() -> None:
    assert _by_machine(("mean=5s", "p95=20s"), None, 0.72) == ("mean=7.5s", "p95=20s")
