"""What a run begins with, and what the demo promises on a slow machine."""

from __future__ import annotations

import pytest

from sluicegate.cli.one_run import _by_machine
from sluicegate.lab.apps import shop
from sluicegate.lab.running.run_app import _begin_with


@pytest.mark.parametrize("fuse", [True, False])
def test_an_operator_begins_with_what_its_application_says_fused_or_not(fuse: bool) -> None:
    begun = _begin_with(shop.APP, shop.build(), fuse)
    ((name, processors),) = begun.items()
    assert "price" in name.split("+")
    assert processors == 4


def test_a_quick_machine_is_promised_what_the_application_says() -> None:
    assert _by_machine(("mean=5s",), None, 0.3) == ("mean=5s",)


def test_a_slow_machine_is_promised_a_multiple_of_its_batches() -> None:
    assert _by_machine(("mean=5s", "p95=20s"), None, 0.72) == ("mean=7.5s", "p95=20s")
