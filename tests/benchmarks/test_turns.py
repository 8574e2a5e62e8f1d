"""What a long benchmark plays next, when it ends, and that nothing it started is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

import bench
from sluicegate.errors import BadInput
from turns import Turns


class Clock:
    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def played(turns: Turns, clock: Clock, each_s: float, fails: str = "") -> list[str]:
    found = []
    for cell in turns:
        with turns.playing(cell):
            found.append(cell)
            clock.now_s += each_s
            if cell == fails:
                raise BadInput("does not work")
    return found


def test_what_was_measured_fewest_times_is_first_and_a_round_is_whole_before_the_next() -> None:
    clock = Clock()
    turns = Turns(("a", "b", "c"), Counter({"a": 2, "b": 1, "c": 1}), rounds=2, clock=clock)
    assert played(turns, clock, 1.0) == ["b", "c", "a", "b", "c", "a"]


def test_no_cell_is_begun_that_would_not_end_within_the_minutes(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    turns = Turns(("a", "b", "c"), Counter(), minutes=2.5, each_s=10.0, clock=clock)
    assert played(turns, clock, 60.0) == ["a", "b"]
    said = capsys.readouterr().out
    assert "a; 3 left, about 0.5 min" in said
    assert "b; 2 left, about 1.5 min" in said
    assert "1 of the cells are left for another call" in said


def test_a_cell_that_fails_is_named_and_the_others_go_on() -> None:
    clock = Clock()
    turns = Turns(("a", "b", "c"), Counter(), rounds=2, clock=clock)
    assert played(turns, clock, 1.0, fails="b") == ["a", "b", "c", "a", "c"]
    with pytest.raises(SystemExit, match="b: does not work"):
        turns.end()


def test_an_interrupt_ends_all_even_if_what_it_stops_fails() -> None:
    turns = Turns(("a", "b"), Counter())

    def interrupted() -> None:
        try:
            raise KeyboardInterrupt
        finally:
            raise BadInput("its queries were cancelled")

    with pytest.raises(KeyboardInterrupt), turns.playing(next(iter(turns))):
        interrupted()
    assert turns.failed == []


SCRIPT = """
import sys, time
from pathlib import Path
from turns import end_as_by_ctrl_c
end_as_by_ctrl_c()
here = Path(sys.argv[1])
try:
    (here / "begun").touch()
    time.sleep(60)
finally:
    time.sleep(1.5)  # as a cluster takes to be stopped
    (here / "cleaned").touch()
"""
PARENT = """
import sys
from pathlib import Path
import bench
from turns import end_as_by_ctrl_c
end_as_by_ctrl_c()
bench.HERE = Path(sys.argv[1])
sys.exit(bench.run([bench.Part("x", "g", 1.0, ("slow.py", sys.argv[1]))], keep=True))
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["ctrl-c", "terminated"])
def test_a_part_that_is_interrupted_may_stop_what_it_started(tmp_path: Path, number: signal.Signals) -> None:
    """Ctrl-C reaches all processes of a terminal; a plain kill only the first."""
    (tmp_path / "slow.py").write_text(SCRIPT)
    process = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(tmp_path)],
        env={**os.environ, "BENCH_RESULTS": str(tmp_path / "results"), "PYTHONPATH": _paths()},
        start_new_session=True,
        preexec_fn=_hears,
        stderr=subprocess.DEVNULL,
    )
    with process:
        until = time.monotonic() + 60
        while not (tmp_path / "begun").exists() and time.monotonic() < until:
            time.sleep(0.05)
        (os.killpg if number == signal.SIGINT else os.kill)(process.pid, number)
        assert process.wait(timeout=60) != 0
    assert (tmp_path / "cleaned").exists()


def _hears() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _paths() -> str:
    return os.pathsep.join([str(Path(bench.__file__).parent), *sys.path])
