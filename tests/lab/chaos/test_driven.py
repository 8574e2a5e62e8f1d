"""The driver that chaos runs, on real Spark."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from sluicegate.lab.chaos.driven import application
from sluicegate.lab.chaos.driver import Driver
from sluicegate.runlog.layout import Layout
from sluicegate.spark.cluster.waiting import wait_until
from sluicegate.spark.edges.feed import Feed
from sluicegate.spark.edges.offsets import last_committed

pytestmark = pytest.mark.slow

NAME, SOURCE, STATEFUL, LUMP, PATIENCE_S = "unique_visitor", "requests", "view+first", 50, 240.0


def has_committed(checkpoint: Path, batch: int) -> bool:
    done = last_committed(checkpoint)
    return done is not None and done >= batch


def test_a_driver_ends_with_one_line_if_one_of_its_operators_stops_while_others_could_go_on(tmp_path: Path) -> None:
    layout, app = Layout(tmp_path / "run"), application(NAME)
    words = ("sluicegate.lab.chaos.driven", str(layout.folder), NAME, "local[2]", "")
    driver = Driver(words, tmp_path, tmp_path / "points", waits=True)
    assert app.rows is not None
    try:
        driver.start()
        feed, checkpoint = Feed(layout.edge(SOURCE)), layout.checkpoint(STATEFUL)
        for batch in range(2):
            feed.append(app.rows(SOURCE, feed.rows, LUMP))
            assert wait_until(partial(has_committed, checkpoint, batch), PATIENCE_S, 0.1)
        driver.kill()
        for path in checkpoint.rglob("*.changelog"):
            path.unlink()
        feed.append(app.rows(SOURCE, feed.rows, LUMP))
        driver.start()
        assert wait_until(lambda: not driver.runs, PATIENCE_S, 0.1)
        driver.reap()
        assert driver.ended[-1].code > 0
        assert driver.ended[-1].word.startswith(f"operator {STATEFUL!r} failed at batch ")
        assert driver.ended[-1].traces == 0
    finally:
        driver.end()
