"""What the pages tell people to type works: run where tests have what it needs, else held against the commands."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer
from tests.dashboard.sample_run import write_run
from tests.snippets import PAGES, ROOT, blocks, calls, execute, shell_lines

from sluicegate.cli.app import COMMANDS, GROUPS, commands, run
from sluicegate.config.profile_file import read_profile_file
from sluicegate.domain.births import Births
from sluicegate.policy.catalogue import POLICIES
from sluicegate.spark.edges.manifest import DataFile

EVERY_PAGE = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
AS_THEY_STAND = {"conf", "plan", "policies", "apps", "doctor"}
"""Commands that need neither Spark nor a run: run as the page has them."""
OF_A_RUN = {"status", "explain"}
"""Run on a recorded one."""
NOT_RUN_HERE = {
    r"^make (demo|test|setup)\b": "whole builds; tests/test_readme.py holds them against the Makefile",
    r"^pip install ": "tests/cli/test_wheel.py installs the wheel",
    r"^\.venv/bin/pytest ": "the tests themselves",
    r"^\.venv/bin/sluicegate ": "tests/test_readme.py runs them",
    r"^spark-submit --master yarn |^export HADOOP_CONF_DIR": "needs a YARN; tests/yarn submits such an application",
    r"^spark-submit .*k8s://|^docker |^kubectl ": "needs a Kubernetes, which there is none of",
    r"^spark-submit ": "needs an application; tests/attach/test_follow.py submits one with these words",
    r"^sluicegate cluster (up|status|down)\b": "tests/spark/test_cluster.py starts and stops one",
    r"^sluicegate advise EVENTLOG": "needs a log of a run; tests/lab/advise runs it on one",
    r"^sluicegate repartition CHECKPOINT": "needs a checkpoint; tests/spark/test_repartition.py has one",
    r"^sluicegate dashboard FOLDER": "serves until it is stopped; tests/dashboard/test_process.py does so",
    r"^sluicegate (run|demo|profile|chaos|fidelity|reproduce|verify)\b": "Spark or minutes; their own tests run them",
    r"^python benchmarks/": "takes minutes; its options are held against the file below",
}
IN_ORDER = {"docs/tutorial.md"}
"""Pages whose lines run one after the other, in tests of their own."""


def lines() -> list[tuple[str, str]]:
    pages = [(str(page.relative_to(ROOT)), page) for page in PAGES]
    return [(name, line) for name, page in pages if name not in IN_ORDER for line in shell_lines(page)]


def command(name: str) -> Any:
    group: Any = typer.main.get_command(commands([name]))
    return group.commands[name]


@pytest.mark.parametrize(("page", "line"), lines())
def test_a_line_runs_or_there_is_a_reason_why_not(
    page: str, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if any(re.search(pattern, line) for pattern in NOT_RUN_HERE):
        return
    words = shlex.split(line)
    assert words[0] == "sluicegate", f"{page}: {line}: run it, or say in NOT_RUN_HERE why not"
    monkeypatch.chdir(ROOT)
    if words[1] in OF_A_RUN:
        words += [*(["--folder"] if words[1] == "explain" else []), str(write_run(tmp_path / "run"))]
    else:
        assert words[1] in AS_THEY_STAND, f"{page}: {line}: run it, or say in NOT_RUN_HERE why not"
    assert run(words[1:]) == 0
    assert capsys.readouterr().out


@EVERY_PAGE
def test_every_call_that_a_page_names_has_its_command_and_its_options(page: Path) -> None:
    for call in calls(page):
        name, *rest = call.split(" -- ")[0].split()  # what follows is for spark-submit
        if name.startswith("--"):
            assert name in {"--help", "--version"}, call
            continue
        assert name in COMMANDS, f"sluicegate {call}"
        asked = [word.split("=")[0].strip("[]") for word in rest if word.strip("[").startswith("--")]
        one = command(name)
        if name in GROUPS and rest:
            subs = [sub for sub in re.split(r"[|]", rest[0]) if not sub.startswith("--")]
            assert set(subs) <= set(one.commands), f"sluicegate {call}"
            one = one.commands[subs[0]]
        known = {option for parameter in one.params for option in (*parameter.opts, *parameter.secondary_opts)}
        assert [option for option in asked if option not in known | {"--help"}] == [], f"sluicegate {call}"


@EVERY_PAGE
def test_every_benchmark_that_a_page_names_is_there_with_its_options(page: Path) -> None:
    for path, rest in re.findall(r"python (benchmarks/[\w/]+\.py)([^\n`#]*)", page.read_text(encoding="utf-8")):
        code = (ROOT / path).read_text(encoding="utf-8")
        assert [option for option in re.findall(r"--[\w-]+", rest) if f'"{option}"' not in code] == [], path


def test_the_policy_of_the_page_on_contributing_plans(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    policy, entry = (code for code in blocks("docs/contributing.md", "python") if "Sixty" in code)
    try:
        execute(policy + entry)
        monkeypatch.chdir(ROOT)
        assert run(["plan", "examples/word_count.toml", "--rate", "2000", "--policy", "sixty", "--json"]) == 0
    finally:
        POLICIES.pop("sixty", None)
    told = json.loads(capsys.readouterr().out)
    assert told["feasible"]
    assert 0 < max(operator["utilisation"] for operator in told["operators"].values()) <= 0.6


def test_the_edge_of_the_page_on_contributing_keeps_a_receipt_of_every_batch_once(tmp_path: Path) -> None:
    (code,) = (code for code in blocks("docs/contributing.md", "python") if "ReceiptEdge" in code)
    edge = execute(code)["ReceiptEdge"](tmp_path / "edge")
    edge.create(json.dumps({"type": "struct", "fields": []}))
    for number, rows in ((0, 3), (1, 5), (1, 5)):  # batch 1 is published again, as after a crash
        edge.publish(number, [DataFile(f"data/{number}.parquet", rows)], Births(()), 1.0)
    assert [manifest.rows for manifest in edge.whole()] == [3, 5]
    assert {path.name: path.read_text() for path in (edge.folder / "receipts").iterdir()} == {"0": "3\n", "1": "5\n"}


def test_the_node_provider_of_the_page_on_contributing_starts_stops_and_lists() -> None:
    (code,) = (code for code in blocks("docs/contributing.md", "python") if "ListedNodes" in code)
    provider = execute(code)["provider"]
    assert provider.start(2) == ["a", "b"]
    provider.stop(["a", "gone already"])
    assert [(vm.name, vm.slots) for vm in provider.running()] == [("b", 4)]
    assert provider.start(5) == ["c", "a"]
    assert provider.host("c") == "c"


def test_the_pipelines_of_the_page_on_spark_can_be_declared() -> None:
    declared = execute("\n".join(blocks("docs/spark.md", "python")))["pipeline"]
    assert {"lines", "clicks"} <= set(declared.sources)


def test_the_profile_of_the_page_on_profiles_can_be_read(tmp_path: Path) -> None:
    (shown,) = blocks("docs/profile.md", "toml")
    (tmp_path / "blob.toml").write_text(shown, encoding="utf-8")
    found = read_profile_file(tmp_path / "blob.toml")
    assert found.profile.task == "blob"
    assert found.highest == {1: 71.0}


def test_what_prometheus_is_told_is_where_the_dashboard_and_the_rules_are() -> None:
    shown = blocks("docs/operations.md", "yaml") + blocks("docs/dashboard.md", "yaml")
    ports = {int(port) for text in shown for port in re.findall(r"127\.0\.0\.1:(\d+)", text)}
    assert ports == {next(one.default for one in command("dashboard").params if one.name == "port")}
    rules = [name for text in shown for name in re.findall(r"rule_files: \[(.+?)\]", text)]
    assert rules
    assert all((ROOT / "docs" / "prometheus" / name).is_file() for name in rules)


def test_every_block_of_a_page_says_its_language_where_it_is_something_to_type() -> None:
    """A block without one is neither run nor checked here: formulas and pictures alone."""
    silent = [
        (str(page.relative_to(ROOT)), line)
        for page in PAGES
        for block in re.findall(r"^```\n(.*?)^```$", text_of(page), re.DOTALL | re.MULTILINE)
        for line in block.splitlines()
        if re.match(r"(sluicegate|spark-submit|make|python|pip|import|from) ", line)
    ]
    assert silent == []


def text_of(page: Path) -> str:
    """A page without its blocks that have a language."""
    return re.sub(r"^```\S.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


def test_the_dashboard_beside_a_run_of_ones_own_has_an_address(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (code,) = blocks("docs/dashboard.md", "python")
    execute(code, folder=write_run(tmp_path, ticks=3))
    assert capsys.readouterr().out.startswith("http://127.0.0.1:")
