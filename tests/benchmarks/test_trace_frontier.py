"""Claims about the study of traces: its figures survive a kill, and its tables say what holds."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "trace_frontier.py"
CELLS = 34


def command(folder: Path) -> list[str]:
    return [sys.executable, str(SCRIPT), str(folder / "wave.csv"), "--runs", "1", "--json", str(folder / "kept.json")]


def cells_in(folder: Path) -> int:
    kept = folder / "kept.json"
    return len(json.loads(kept.read_text())["cells"]) if kept.exists() else 0


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rates = 100 + 50 * np.sin(np.arange(150) / 20) + np.random.default_rng(1).normal(0, 5, 150)
    (tmp_path / "wave.csv").write_text("minute,rows\n" + "".join(f"{t},{rate}\n" for t, rate in enumerate(rates)))
    return tmp_path


@pytest.mark.slow
def test_a_study_that_was_killed_goes_on_where_it_was(folder: Path) -> None:
    killed = subprocess.Popen(command(folder), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while cells_in(folder) < 2 and killed.poll() is None:
        time.sleep(0.05)
    killed.kill()
    killed.wait()
    had = cells_in(folder)
    again = subprocess.run(command(folder), capture_output=True, text=True, check=True)
    assert again.stderr.startswith(f"{CELLS} cells, {had} of them in ")
    assert f"{CELLS - had}/{CELLS - had} after" in again.stderr
    assert re.search(r"Of 4 cases: target reached \d", again.stdout)
    assert re.search(r"Means over all traces run \(1\), cycle: 7 [\d.]+%, 6 .*; order (kept|broken)\.", again.stdout)
    assert subprocess.run(command(folder), capture_output=True, text=True, check=True).stdout == again.stdout


@pytest.mark.slow
def test_in_brief_there_is_the_first_table_only(folder: Path) -> None:
    said = subprocess.run([*command(folder), "--brief"], capture_output=True, text=True, check=True)
    assert said.stderr.startswith("8 cells, 0 of them in ")
    assert said.stdout.count("| wave | ") == 4
    assert re.search(r"Of 4 cases: target reached \d", said.stdout)
    assert "Means over all traces" not in said.stdout


def test_a_file_of_something_else_is_refused_in_one_line(folder: Path) -> None:
    (folder / "kept.json").write_text("[]")
    refused = subprocess.run(command(folder), capture_output=True, text=True, check=False)
    assert refused.returncode == 2
    assert refused.stderr.count("\n") == 1
    assert "move it away or name another with --json" in refused.stderr
