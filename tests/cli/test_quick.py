"""The command line answers at once: what is not computed with is not imported."""

from __future__ import annotations

import json
import os
import re
import resource
import subprocess
import sys
from pathlib import Path
from typing import get_type_hints

import pytest
from tests.report.recorded import write_run

from sluicegate.cli.app import COMMANDS, GROUPS, command_of, run

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


TWO = """name = "two"
operators = [{name = "a", service_rate_per_s = 20.0}, {name = "b", service_rate_per_s = 10.0}]
edges = [{from = "source:x", to = "a"}, {from = "source:y", to = "b"}]
"""


@pytest.mark.parametrize("policy", ["sluicegate", "drs", "hpa"])
def test_a_plan_for_named_sources_carries_what_each_of_them_sends(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], policy: str
) -> None:
    (tmp_path / "two.toml").write_text(TWO)
    asked = ["plan", str(tmp_path / "two.toml"), "--rate", "x=100,y=1", "--policy", policy, "--json"]
    assert run(asked) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["feasible"]
    assert found["predicted"]["rate_per_s"] >= found["rate_per_s"]
    assert found["operators"]["a"]["processors"] > 5 > found["operators"]["b"]["processors"]


def test_the_model_beside_a_simulation_knows_the_rate_of_each_source(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "two.toml").write_text(TWO)
    given = ["--rate", "x=15,y=1", "--allocation", "a=1,b=1", "--seconds", "100"]
    assert run(["simulate", str(tmp_path / "two.toml"), *given]) == 0
    out = capsys.readouterr().out
    speed = re.search(r" events in \S+ \S+ \(([\d,]+) a second\)", out)
    assert speed is not None
    assert int(speed[1].replace(",", "")) > 0, "slow as it may be where the models are compiled first"
    shown = {line.split()[0]: line.split() for line in out.splitlines() if line.strip()}
    assert (shown["a"][-2:], shown["b"][-2:]) == (["200", "ms"], ["111", "ms"])
