"""What the README shows, runs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from sluicegate.cli.app import run

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.fixture(autouse=True)
def in_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


@pytest.mark.parametrize("line", re.findall(r"^\.venv/bin/sluicegate (.+)$", README, flags=re.MULTILINE))
def test_every_command_of_the_readme_works(line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rates = "".join(f"{minute},{1000 + minute % 60}\n" for minute in range(180))
    (tmp_path / "TRACE.csv").write_text("minute,requests\n" + rates, encoding="utf-8")
    own = {name: str(tmp_path / name) for name in ("TRACE.csv", "out.html")}
    assert run([own.get(word, word) for word in line.split()]) == 0
    assert capsys.readouterr().out


@pytest.mark.slow
def test_the_readmes_pipeline_runs(tmp_path: Path) -> None:
    """In a process of its own: it makes a session and leaves it to the process's end."""
    (code,) = re.findall(r"```python\n(.+?)```", README, flags=re.DOTALL)
    ran = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stderr[-2000:]
    assert re.search(r"\|\s*be\|\s*2\|", ran.stdout), ran.stdout


def test_the_two_commands_are_there() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in ("demo", "test"):
        assert f"make {target}" in README
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE)
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
