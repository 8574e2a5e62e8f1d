"""A driver that is ended is followed by the one that stood by; nobody is left at the end."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sluicegate.lab.chaos.driver import Driver, DriverEnded

WAITS = """
import json, os, sys
print("ready", flush=True)
if not sys.stdin.readline():
    sys.exit(0)
if os.path.exists(os.environ["REFUSED"]):
    sys.stderr.write("sluicegate: a file is missing\\n")
    sys.exit(2)
print("running", flush=True)
print(json.dumps({"fed": json.loads(sys.stdin.readline()), "pid": os.getpid()}), flush=True)
"""


@pytest.fixture
def driver(tmp_path: Path) -> Iterator[Driver]:
    (tmp_path / "waits.py").write_text(WAITS)
    environment = {"PYTHONPATH": str(tmp_path), "REFUSED": str(tmp_path / "refused")}
    made = Driver(("waits",), tmp_path, tmp_path / "points", environment, waits=True)
    yield made
    made.end()


def test_the_one_that_stands_by_takes_over_and_answers(driver: Driver) -> None:
    driver.start()
    first = driver.pid
    driver.stand_by()
    driver.stand_by()
    next_one = driver._next
    assert next_one is not None
    driver.kill()
    assert not driver.runs
    driver.start()
    assert driver.pid == next_one.pid != first
    assert driver.starts == 2
    assert driver.answer({"rows": 3}, 30.0) == {"fed": {"rows": 3}, "pid": next_one.pid}
    driver.reap()
    assert [one.code for one in driver.ended] == [-9, 0]


def test_one_that_died_while_it_stood_by_is_told_and_another_starts(driver: Driver) -> None:
    driver.start()
    driver.stand_by()
    assert driver._next is not None
    driver._next.kill()
    driver._next.wait()
    driver.kill()
    with pytest.raises(DriverEnded, match="exit code -9"):
        driver.start()
    driver.start()
    assert driver.runs


def test_one_that_refuses_its_folder_says_why(driver: Driver, tmp_path: Path) -> None:
    (tmp_path / "refused").touch()
    with pytest.raises(DriverEnded, match="a file is missing"):
        driver.start()
    (tmp_path / "refused").unlink()
    driver.start()


def test_the_standby_driver_is_killed_at_the_end(driver: Driver) -> None:
    driver.start()
    driver.stand_by()
    waiting = driver._next
    assert waiting is not None
    driver.end()
    assert waiting.returncode == -9
