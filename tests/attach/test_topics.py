"""What is known of a query's topics from the lines that the driver writes of the broker's answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sluicegate.runlog.batch_log import Tail
from sluicegate.spark.attach.topics import TopicsSeen


class Driver:
    """Writes a line a second, as the plugin does."""

    def __init__(self, folder: Path) -> None:
        self.log = folder / "source.jsonl"
        self.topics = TopicsSeen(Tail(self.log))

    def tell(self, at_s: float, latest: list[int], taken: list[int] | None, **more: Any) -> None:
        ends = {f"0/t/{p}": n for p, n in enumerate(latest)}
        done = {f"0/t/{p}": n for p, n in enumerate(taken or [])}
        self._line({"at_s": at_s, "latest": ends, "taken": done, "tasks": len(latest), **more})

    def fail(self, at_s: float) -> None:
        self._line({"at_s": at_s, "problem": "the broker does not answer"})

    def _line(self, line: dict[str, Any]) -> None:
        with self.log.open("a") as file:
            file.write(json.dumps(line) + "\n")
        self.topics.look()

    def states(self, batch_s: float = 1.0) -> list[str]:
        return [one.state for one in self.topics.seen(batch_s)]


@pytest.fixture
def driver(tmp_path: Path) -> Driver:
    return Driver(tmp_path)


def test_an_idle_partition_has_no_rows_and_a_stuck_one_has_rows_that_nobody_takes(driver: Driver) -> None:
    for second in range(60):
        driver.tell(float(second), [10 * second, 5, 40], [10 * second, 5, 30])
    assert driver.states() == ["flowing", "idle", "stuck"]
    assert [one.lag for one in driver.topics.seen(1.0)] == [0, 0, 10]
    assert driver.topics.behind(59.0) == 10


def test_a_partition_is_not_stuck_while_a_batch_may_still_take_its_rows(driver: Driver) -> None:
    for second in range(60):
        driver.tell(float(second), [40], [30])
    assert driver.states(batch_s=60.0) == ["flowing"]


def test_rows_that_begin_to_wait_are_not_stuck_since_before_they_came(driver: Driver) -> None:
    driver.tell(0.0, [30], [30])
    driver.tell(100.0, [31], [30])
    assert driver.states() == ["flowing"]


def test_only_tasks_of_partitions_with_rows_help(driver: Driver) -> None:
    for second in range(40):
        driver.tell(float(second), [second, second, 5, 5], [second, second, 5, 5])
    assert driver.topics.helpful_tasks(1.0) == 2


def test_a_connector_that_splits_partitions_sets_no_bound(driver: Driver) -> None:
    driver.tell(0.0, [5, 5], [5, 5], tasks=0)
    assert driver.topics.helpful_tasks(1.0) is None


def test_partitions_that_are_added_count_at_once(driver: Driver) -> None:
    driver.tell(0.0, [5], [5])
    driver.tell(1.0, [5, 7], [5])
    assert driver.topics.helpful_tasks(1.0) == 2
    assert driver.topics.behind(1.0) is None, "no batch has been planned for it yet"
    driver.tell(2.0, [5, 7], [5, 3])
    assert driver.topics.behind(2.0) == 4


def test_load_is_known_while_no_batch_takes_the_rows(driver: Driver) -> None:
    for second in range(10):
        driver.tell(float(second), [100 * second], [0])
    assert driver.topics.per_s(9.0) == pytest.approx(100.0)


def test_a_broker_that_is_away_leaves_nothing_known_until_it_answers(driver: Driver) -> None:
    for second in range(4):
        driver.tell(float(second), [100 * second], [0])
    driver.fail(4.0)
    assert (driver.topics.behind(4.0), driver.topics.per_s(4.0)) == (None, None)
    driver.tell(5.0, [500], [500])
    assert driver.topics.behind(5.0) == 0


def test_old_answers_of_the_broker_are_not_used(driver: Driver) -> None:
    driver.tell(0.0, [5], [0])
    assert driver.topics.behind(60.0) is None


def test_what_waited_before_the_first_look_is_dated(driver: Driver) -> None:
    driver.tell(0.0, [0], None, dated=True)
    driver.tell(50.0, [100], None, dated=True)
    assert not driver.topics.known
    driver.tell(100.0, [200], [0])
    assert driver.topics.curve.lines["t/0"].stretches(0, 200, 100.0) == [(0.0, 50.0, 100.0), (50.0, 100.0, 100.0)]


def test_a_line_that_a_full_disk_has_cut_is_passed_over(driver: Driver) -> None:
    driver.log.write_text('{"at_s": 1.0, "lat{"at_s": 2.0}\n"text"\n')
    driver.tell(3.0, [5], [2])
    assert driver.topics.behind(3.0) == 3
