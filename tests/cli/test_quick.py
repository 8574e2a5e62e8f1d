"""The command line answers at once: what is not computed with is not imported."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import get_type_hints

import pytest
from tests.report.recorded import write_run

from sluicegate.cli.app import run
from sluicegate.cli.commands import COMMANDS, GROUPS, command_of

HEAVY = ("fastapi", "pyspark", "numba", "scipy", "numpy", "pandas", "pyarrow")
QUICK = (["--help"], ["--version"], ["apps"], ["policies"], ["status"], ["explain"])


@pytest.mark.parametrize("words", QUICK, ids=" ".join)
def test_a_command_that_computes_nothing_loads_neither_spark_nor_compiled_code(
    words: list[str], tmp_path: Path
) -> None:
    folder = [] if words[0] in ("--help", "--version", "apps", "policies") else [str(write_run(tmp_path / "run"))]
    given = ["--folder", *folder] if words == ["explain"] else folder
    code = (
        "import sys\nfrom sluicegate.cli.app import run\n"
        f"code = run({[*words, *given]!r})\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)\nsys.exit(code)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout
    assert done.stderr.strip() == "[]"


def test_the_version_takes_at_most_three_times_what_the_parser_alone_takes() -> None:
    """The least of several, in turns: whatever else the machine does slows both."""
    took = [
        (_cpu_s("import typer"), _cpu_s("from sluicegate.cli.app import run; run(['--version'])")) for _ in range(5)
    ]
    assert min(ours for _, ours in took) <= 3 * min(bare for bare, _ in took)


def _cpu_s(code: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, env=dict(os.environ))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@pytest.mark.parametrize("name", sorted(set(COMMANDS) - GROUPS))
def test_the_list_of_commands_says_what_each_command_says_of_itself(name: str) -> None:
    assert " ".join((command_of(name).__doc__ or "").split("\n\n")[0].split()) == COMMANDS[name]


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_that_is_listed_can_be_called(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([name, "--help"]) == 0
    assert f"sluicegate {name}" in capsys.readouterr().out


@pytest.mark.parametrize("name", sorted(set(COMMANDS) - GROUPS))
def test_help_shows_every_word_of_an_option(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page of help is Rich markup: a default in square brackets, [a file], would vanish from it."""
    monkeypatch.setenv("COLUMNS", "500")
    run([name, "--help"])
    shown = capsys.readouterr().out
    assert [text for text in _helps(name) if text not in shown] == []


def _helps(name: str) -> list[str]:
    hints = get_type_hints(command_of(name), include_extras=True)
    options = [one for hint in hints.values() for one in getattr(hint, "__metadata__", ())]
    return [one.help for one in options if one.help and not one.hidden]
