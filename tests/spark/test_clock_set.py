"""A clock that is set forth or back keeps nobody waiting: not a controller, a failed operator, nor a batch's record."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sluicegate.lab.chaos.hurt import hurt_in
from sluicegate.spark.looks import Looks
from sluicegate.spark.pipeline.failures import Failure, Fault
from sluicegate.spark.pipeline.recovery import Recovery

NOW_S = 1_800_000_000.0


@pytest.mark.parametrize("step_s", [-3600.0, -60.0, 60.0, 3600.0])
def test_a_controller_is_told_of_a_step_once_and_looks_on_time(step_s: float, monkeypatch: pytest.MonkeyPatch) -> None:
    looks, real = Looks(0.1), time.time
    assert looks.wait() == 0.0
    monkeypatch.setattr(time, "time", lambda: real() + step_s)
    began_s = time.monotonic()
    assert looks.wait() == pytest.approx(step_s, abs=1.0)
    assert looks.wait() == 0.0, "once"
    assert time.monotonic() - began_s < 5.0


def test_a_clock_that_is_slewed_is_no_step(monkeypatch: pytest.MonkeyPatch) -> None:
    looks, real = Looks(0.05), time.time
    monkeypatch.setattr(time, "time", lambda: real() + 1.0)
    assert looks.wait() == 0.0


def test_an_operator_that_failed_before_the_clock_was_set_back_is_tried_again(tmp_path: Path) -> None:
    recovery = Recovery(tmp_path / "failures.json", {})
    for _ in range(2):  # the first try is made at once
        recovery.failed("call", 3, Failure("ConnectionError: refused", Fault.SERVICE), NOW_S)
    assert not recovery.is_due("call", NOW_S + 0.1)
    assert recovery.is_due("call", NOW_S + 1.0)
    assert recovery.is_due("call", NOW_S - 3600.0)


def test_the_clock_and_the_disk_of_a_process_are_hurt_and_of_no_other(tmp_path: Path) -> None:
    hurt = hurt_in(tmp_path)
    if hurt is None:
        pytest.skip("needs a C compiler")
    environment = {**os.environ, **hurt.environment}
    code = (
        "import os, sys, time; a, b = sys.argv[1:]; t = time.monotonic(); open(a, 'w').close(); os.rename(a, b);"
        "u = time.monotonic(); time.sleep(0.2); print(time.time(), u - t, time.monotonic() - u)"
    )
    words = [sys.executable, "-c", code, str(tmp_path / "a"), str(tmp_path / "b")]

    def told() -> list[float]:
        done = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
        return [float(number) for number in done.stdout.split()]

    hurt.step(-3600.0)
    hurt.slow(0.3)
    clock_s, files_s, slept_s = told()
    assert clock_s == pytest.approx(time.time() - 3600.0, abs=60.0)
    assert files_s >= 0.6, "opened and renamed"
    assert 0.2 <= slept_s < 5.0, "sleeping goes by another clock"
    hurt.step(0.0)
    hurt.slow(0.0)
    assert told()[0] == pytest.approx(time.time(), abs=60.0)
