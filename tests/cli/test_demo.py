"""The demo on real Spark: what it tells and leaves, and what Ctrl-C in the middle does."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path

import pytest
from tests.ctrl_c import sluicegate_in, wait_in

from sluicegate.spark.cluster.waiting import wait_until

KEYS = {
    "app",
    "policy",
    "rows_in",
    "rows_out",
    "lost",
    "duplicated",
    "answer_exact",
    "slo_kept",
    "slot_seconds",
    "slot_seconds_static_peak",
    "rescales",
    "mean_s",
    "p95_s",
    "decisions",
}


def demo(folder: Path, *arguments: str) -> AbstractContextManager[subprocess.Popen[str]]:
    return sluicegate_in(folder, "demo", "--no-browser", "--no-dashboard", *arguments)


def is_gone(group: int) -> bool:
    """Whether no process of the group is left."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return True
    return False


def the_run(folder: Path) -> Path:
    (entry,) = (folder / "home" / "runs").glob("*.json")
    return Path(json.loads(entry.read_text())["folder"])


def is_fed(folder: Path) -> bool:
    """Whether two ticks have seen rows arrive: the load has begun."""
    ticks = [json.loads(line) for line in (folder / "ticks.jsonl").read_text().split("\n")[:-1]]
    return sum(bool(tick["arrivals_per_s"]) for tick in ticks) >= 2


@pytest.mark.slow
def test_a_demo_is_exact_and_leaves_a_page_and_its_record(tmp_path: Path) -> None:
    with demo(tmp_path, "--seconds", "15", "--json") as process:
        out, err = process.communicate(timeout=900)
    assert (process.returncode, err) == (0, "")
    found = json.loads(out)
    assert set(found) >= KEYS
    assert found["answer_exact"] is True
    assert found["lost"] == found["duplicated"] == 0
    assert found["rows_in"] > 1000
    assert "exact" in (tmp_path / "sluicegate-demo.html").read_text()
    kept = the_run(tmp_path)
    assert (kept / "ticks.jsonl").exists()
    assert not (kept / "edges").exists()


@pytest.mark.slow
def test_ctrl_c_lets_out_what_was_fed_and_says_how_to_go_on(tmp_path: Path) -> None:
    with demo(tmp_path, "--seconds", "600", "--app", "wordcount") as process:
        wait_in(process, lambda: any((tmp_path / "home" / "runs").glob("*.json")))
        wait_in(process, (the_run(tmp_path) / "ticks.jsonl").exists)
        wait_in(process, partial(is_fed, the_run(tmp_path)))
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=900)
        kept = the_run(tmp_path)
        assert process.returncode == 130, err
        assert "The answer is exact" in out
        assert f"go on with: sluicegate run wordcount --folder {kept}" in err
        assert "ended early, by hand" in (tmp_path / "sluicegate-demo.html").read_text()
        assert (kept / "edges").exists()
        assert wait_until(lambda: is_gone(process.pid), 60.0, 0.2), "Java takes a moment to end"


@pytest.mark.slow
def test_ctrl_c_before_the_first_row_leaves_nothing(tmp_path: Path) -> None:
    with demo(tmp_path, "--app", "wordcount") as process:
        wait_in(process, lambda: any((tmp_path / "home" / "runs").glob("*.json")))
        home = the_run(tmp_path)
        wait_in(process, (home / "spark.log").exists)
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=900)
        assert (process.returncode, out) == (130, "")
        assert "stopping once" in err
        assert err.endswith("stopped before anything was fed\n")
        assert not home.exists()
        assert wait_until(lambda: is_gone(process.pid), 60.0, 0.2), "Java takes a moment to end"
