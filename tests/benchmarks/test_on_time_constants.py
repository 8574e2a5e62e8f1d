"""Claims about the study of the on-time rule's constants."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "on_time_constants.py"


@pytest.mark.slow
def test_every_setting_has_a_row_and_more_patience_costs_more(tmp_path: Path) -> None:
    t = np.arange(10_080)
    rates = 100 + 60 * np.sin(2 * np.pi * t / 1440) + np.random.default_rng(3).normal(0, 8, len(t))
    (tmp_path / "week.csv").write_text("minute,rows\n" + "".join(f"{i},{rate}\n" for i, rate in enumerate(rates)))
    asked = [sys.executable, str(SCRIPT), str(tmp_path / "week.csv"), "--only", "PATIENCE", "--runs", "1"]
    asked += ["--minutes", "4320"]
    printed = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.splitlines()[2:]
    cells = [[cell.strip() for cell in row.split("|")[1:-1]] for row in printed]
    assert [row[0] for row in cells] == ["as it is", "PATIENCE 0.3", "PATIENCE 1.2"]
    costs = [float(row[2].split()[0]) for row in cells]
    assert costs[2] > costs[0] > costs[1]
