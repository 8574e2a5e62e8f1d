from __future__ import annotations

import json
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
import typer

from sluicegate.cli.replay import replay
from sluicegate.errors import BadInput, SluicegateError
from sluicegate.lab.replay.players import Facts, settings_of
from sluicegate.lab.replay.world import PROTOCOLS, measured_sizes, truth_of

Run = Callable[..., tuple[int, dict[str, object]]]


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "load.csv"
    rows = "".join(f"{i},{100 + (i * 7) % 40}\n" for i in range(120))
    path.write_text("minute,rows_per_min\n" + rows, encoding="utf-8")
    return path


@pytest.fixture
def run(trace: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    app = typer.Typer()
    app.command()(replay)

    def call(*arguments: str) -> tuple[int, dict[str, object]]:
        given = [str(trace), "--cores", "1", "--runs", "1", *arguments]
        try:
            code = app(args=given, standalone_mode=False)
        except SluicegateError as problem:
            return problem.exit_code, {"error": str(problem)}
        out = capsys.readouterr().out
        return code, json.loads(out) if "--json" in arguments else {"text": out}

    return call


def test_json_has_the_keys_of_the_contract(run: Run) -> None:
    code, document = run("--policies", "recent-peak,uncertainty-0,hindsight", "--json")
    assert code == 0
    traces = document["traces"]
    assert isinstance(traces, list)
    assert traces[0]["trace"] == "load.csv"
    keys = {"policy", "qos", "cost_vs_hindsight", "cost_vs_static", "rescales", "backlog_peak", "coverage"}
    assert all(keys <= result.keys() for result in traces[0]["results"])
    assert [result["policy"] for result in traces[0]["results"]] == ["recent-peak", "uncertainty-0", "hindsight"]
    assert traces[0]["results"][0]["coverage"] is None


def test_the_table_names_every_policy_and_what_was_assumed(run: Run) -> None:
    code, shown = run("--policies", "ds2,static-peak", "--protocol", "free")
    assert code == 0
    assert all(
        text in str(shown["text"])
        for text in ("ds2", "static-peak", "1000 m/(1 + 0.1 ln m) rows/s", "needs 32 machines")
    )


def test_a_capacity_file_and_a_peak_are_used(run: Run, tmp_path: Path) -> None:
    capacity = tmp_path / "capacity.toml"
    capacity.write_text("[[points]]\nmachines = 3\nrate_per_s = 300.0\nsd_per_s = 0.0\n", encoding="utf-8")
    _, document = run("--policies", "static-peak", "--capacity", str(capacity), "--peak", "750", "--json")
    traces = document["traces"]
    assert isinstance(traces, list)
    assert traces[0]["peak_per_s"] == pytest.approx(750.0)
    assert "needs 8 machines on average, beyond the 3 measured" in traces[0]["notes"][0]


@pytest.mark.parametrize(
    ("arguments", "code", "problem"),
    [
        (("--policies", "no-such"), 2, "unknown policy"),
        (("--protocol", "weekly"), 2, "unknown protocol"),
        (("--column", "nope"), 2, "no column 'nope'"),
        (("--train", "a,b"), 2, "training sizes"),
        (("--capacity", "no-such.toml"), 2, "no such file"),
        (("--cores", "0"), 2, "cores is 0"),
    ],
)
def test_mistakes_are_one_line_with_the_right_code(
    run: Run, arguments: tuple[str, ...], code: int, problem: str
) -> None:
    found, said = run(*arguments)
    assert found == code
    assert problem in str(said["error"])
    assert "\n" not in str(said["error"])


class _Outside(HTMLParser):
    """Collects whatever a page would fetch."""

    def __init__(self) -> None:
        super().__init__()
        self.fetched: list[str] = []
        self.tags: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.fetched += [f"{tag} {key}" for key, _ in attrs if key in ("src", "href", "xlink:href", "data", "srcset")]


def test_the_page_is_whole_in_itself(run: Run, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    run("--policies", "recent-peak,uncertainty-7,hindsight", "--html", str(page))
    text = page.read_text(encoding="utf-8")
    reader = _Outside()
    reader.feed(text)
    assert reader.fetched == []
    assert "url(" not in text
    assert "@import" not in text
    assert reader.tags.count("svg") == 5  # cost against violations, three policies over time, machines
    assert reader.tags.count("circle") == 3


def test_a_page_that_cannot_be_written_is_an_error(run: Run, tmp_path: Path) -> None:
    code, said = run("--policies", "hindsight", "--html", str(tmp_path / "no" / "page.html"))
    assert code == 2
    assert "cannot be written" in str(said["error"])


def test_no_measurement_to_train_on_is_one_line() -> None:
    truth = truth_of([(4, 4000.0, 3000.0)])
    run_without = next(n for n in range(100) if not measured_sizes(truth, (4,), 0, n))
    rates = np.full(30, 100.0)
    facts = Facts(PROTOCOLS["cycle"], truth, 0.99, 0.95, measured_sizes(truth, (4,), 0, run_without), rates, rates * 0)
    with pytest.raises(BadInput, match="no training size"):
        settings_of("ds2", facts)
