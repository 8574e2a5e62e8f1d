"""A clock that is set forth or back keeps nobody waiting: not a controller, a failed operator, nor a batch's record."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import NoReturn

import pytest

from sluicegate.lab.chaos.hurt import hurt_in
from sluicegate.runlog.failures import read_failures
from sluicegate.spark.looks import Looks, tick_until
from sluicegate.spark.pipeline.failures import Failure, Fault
from sluicegate.spark.pipeline.recovery import Recovery


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


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EIO, errno.ESTALE])
def test_a_controller_goes_on_once_a_disk_that_takes_nothing_does_again(
    error: int, capsys: pytest.CaptureFixture[str]
) -> None:
    tried = list[float]()

    class Controller:
        def step(self, now_s: float) -> None:
            tried.append(now_s)
            if len(tried) < 3:
                raise OSError(error, os.strerror(error))

    made = iter([Controller()])  # what it learned is kept: no second one
    tick_until(lambda: len(tried) == 5, 0.01, lambda: next(made))
    said = capsys.readouterr().err.splitlines()
    assert said == [
        f"sluicegate: the record cannot be written ({os.strerror(error)}): the plan in force stays until it can"
    ]


def test_a_controller_whose_folder_is_gone_ends() -> None:
    def made() -> NoReturn:
        raise FileNotFoundError(errno.ENOENT, "No such file")

    with pytest.raises(FileNotFoundError):
        tick_until(lambda: False, 0.01, made)


@pytest.mark.parametrize("step_s", [-3600.0, 3600.0])
def test_a_clock_that_is_set_while_an_operator_fails_changes_neither_its_tries_nor_its_story(
    step_s: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recovery, real = Recovery(tmp_path / "failures.json", {"call": 60.0}), time.time
    refused = Failure("ConnectionError: refused", Fault.SERVICE)
    recovery.failed("call", 3, refused, 100.0)
    monkeypatch.setattr(time, "time", lambda: real() + step_s)
    assert not recovery.failed("call", 3, refused, 104.0).stopped, "within its limit of 60 s"
    assert not recovery.is_due("call", 104.1)
    assert recovery.is_due("call", 104.5)
    recovery.succeeded("call", 105.0)
    assert recovery.past == ["call: batch 3 failed (ConnectionError: refused) 2 times in 5 s, goes on"]


def test_the_file_of_failures_is_dated_by_the_wall_clock(tmp_path: Path) -> None:
    path = tmp_path / "failures.json"
    Recovery(path, {}).failed("call", 3, Failure("ConnectionError: refused", Fault.SERVICE), time.monotonic() - 12.0)
    (failing,) = read_failures(path)
    assert time.time() - failing.since_s == pytest.approx(12.0, abs=1.0)


def test_the_clock_and_the_disk_of_a_process_are_hurt_and_of_no_other(tmp_path: Path) -> None:
    hurt = hurt_in(tmp_path, tmp_path / "disk")
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
    (tmp_path / "disk").mkdir()
    there = [*words[:3], *(str(tmp_path / "disk" / name) for name in "ab")]
    hurt.fail(errno.EROFS)
    done = subprocess.run(there, env=environment, capture_output=True, text=True, check=False)
    assert "Read-only file system" in done.stderr
    told()  # elsewhere nothing fails
    hurt.fail(0)
    subprocess.run(there, env=environment, capture_output=True, check=True)
