"""The command line as people and scripts use it: what it prints where, and with which exit code."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from sluicegate.cli.app import run
from sluicegate.policy.catalogue import POLICIES

CHAIN = """
name = "chain"
[[operators]]
name = "parse"
service_rate_per_s = 310.0
[[operators]]
name = "pi"
service_rate_per_s = 105.0
[[edges]]
from = "source"
to = "parse"
[[edges]]
from = "parse"
to = "pi"
selectivity = 0.5
"""


@pytest.fixture
def chain(tmp_path: Path) -> str:
    path = tmp_path / "chain.toml"
    path.write_text(CHAIN)
    return str(path)


def document(capsys: pytest.CaptureFixture[str]) -> dict[str, object]:
    out, err = capsys.readouterr()
    assert err == ""
    found = json.loads(out)
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize("policy", sorted(POLICIES))
def test_every_policy_plans_by_name_with_the_contracts_keys(
    policy: str, chain: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code = run(["plan", chain, "--rate", "500", "--policy", policy, "--json"])
    found = document(capsys)
    assert code in (0, 1)
    assert {"policy", "operators", "slots", "extra_slots", "vms", "mapping", "predicted", "feasible", "reasons"} <= set(
        found
    )
    operators, predicted = found["operators"], found["predicted"]
    assert isinstance(operators, dict)
    assert {"processors", "arrivals_per_s", "utilisation", "mean_s"} <= set(operators["parse"])
    assert operators["pi"]["arrivals_per_s"] == 250.0
    assert isinstance(predicted, dict)
    assert {"mean_s", "p95_s", "rate_per_s"} <= set(predicted)


@pytest.mark.parametrize("mapper", ["dsm", "rsm", "sam", "mc-stream", "es-stream"])
def test_every_mapper_places_every_thread_once(mapper: str, chain: str, capsys: pytest.CaptureFixture[str]) -> None:
    run(["plan", chain, "--rate", "500", "--policy", "drs", "--mapper", mapper, "--json"])
    found = document(capsys)
    mapping, operators = found["mapping"], found["operators"]
    assert isinstance(mapping, dict)
    assert isinstance(operators, dict)
    for name in ("parse", "pi"):
        placed = sum(threads for groups in mapping.values() for operator, threads in groups if operator == name)
        assert placed == operators[name]["processors"]


def test_a_kept_promise_exits_0_and_a_broken_one_1(chain: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plan", chain, "--rate", "500", "--slo", "mean=2s"]) == 0
    assert run(["plan", chain, "--rate", "500", "--slo", "mean=1ms"]) == 1
    out = capsys.readouterr().out
    assert "does not keep its goals" in out
    assert "why" in out
    assert "predictions" not in out, "nothing has run, so none was right"


@pytest.mark.parametrize(
    "arguments",
    [
        ["plan", "none.toml", "--rate", "5"],
        ["plan", "CHAIN"],
        ["plan", "CHAIN", "--rate", "fast"],
        ["plan", "CHAIN", "--rate", "-5"],
        ["plan", "CHAIN", "--rate", "nan"],
        ["plan", "CHAIN", "--rate", "x=5"],
        ["plan", "CHAIN", "--rate", "5", "--policy", "magic"],
        ["plan", "CHAIN", "--rate", "5", "--mapper", "magic"],
        ["plan", "CHAIN", "--rate", "5", "--slo", "soon"],
        ["plan", "CHAIN", "--rate", "5", "--budget", "0"],
        ["plan", "CHAIN", "--rate", "5", "--vm-sizes", "0"],
        ["plan", "CHAIN", "--rate", "5", "--vm-sizes", "a,b"],
        ["plan", "CHAIN", "--rate", "5", "--colour", "red"],
        ["simulate", "CHAIN", "--rate", "5"],
        ["simulate", "CHAIN", "--rate", "5", "--allocation", "parse=1,pi=1", "--policy-option", "t_ra_s=3"],
        ["simulate", "CHAIN", "--rate", "5", "--policy", "static-peak"],
        ["simulate", "CHAIN", "--rate", "5//6", "--policy", "drs"],
        ["simulate", "CHAIN", "--rate", "5", "--policy", "drs", "--policy-option", "speed=3"],
        ["simulate", "CHAIN", "--rate", "5", "--allocation", "parse=1"],
        ["simulate", "CHAIN", "--rate", "5", "--allocation", "parse=1,pi=0"],
        ["simulate", "CHAIN", "--rate", "5", "--allocation", "parse=1,pi=1", "--seconds", "soon"],
        ["simulate", "CHAIN", "--rate", "5", "--allocation", "parse=1,pi=1", "--mode", "magic"],
        ["magic"],
    ],
)
def test_bad_input_is_one_line_on_standard_error_and_exit_code_2(
    arguments: list[str], chain: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code = run([chain if argument == "CHAIN" else argument for argument in arguments])
    out, err = capsys.readouterr()
    assert code == 2
    assert out == ""
    assert err.startswith("sluicegate: ")
    assert err.count("\n") == 1


def test_a_simulation_agrees_with_the_plan(chain: str, capsys: pytest.CaptureFixture[str]) -> None:
    run(["plan", chain, "--rate", "500", "--policy", "drs", "--slo", "mean=20ms", "--json"])
    plan = document(capsys)
    operators, predicted = plan["operators"], plan["predicted"]
    assert isinstance(operators, dict)
    assert isinstance(predicted, dict)
    allocation = ",".join(f"{name}={found['processors']}" for name, found in operators.items())
    arguments = [
        "simulate",
        chain,
        "--rate",
        "500",
        "--allocation",
        allocation,
        "--seconds",
        "2000",
        "--seed",
        "3",
        "--json",
    ]
    assert run(arguments) == 0
    first = document(capsys)
    assert first["mean_s"] == pytest.approx(predicted["mean_s"], rel=0.03)
    assert first["p95_s"] == pytest.approx(predicted["p95_s"], rel=0.05)
    assert {"mean_s", "ci95_s", "p95_s", "operators", "events", "wall_s"} <= set(first)
    run(arguments)
    again = document(capsys)
    assert {**first, "wall_s": 0} == {**again, "wall_s": 0}


def test_drs_is_simulated_with_the_options_that_a_plan_and_a_run_take(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """T_ra, w and the time between two looks act: a smaller window answers sooner, an infinite T_ra only recommends."""
    path = tmp_path / "chain.toml"
    path.write_text(CHAIN.replace("selectivity = 0.5\n", "").replace("105.0", "100.0"))
    asked = [
        "simulate",
        str(path),
        "--rate",
        "100/200/100",
        "--policy",
        "drs",
        "--slo",
        "mean=20ms",
        "--seconds",
        "1800",
    ]
    first: dict[str, list[dict[str, float]]] = {}
    for options in ("t_ra_s=30,w=2,t_m_s=10", "t_ra_s=30,w=12,t_m_s=10", "t_ra_s=inf"):
        run([*asked, "--allocation", "parse=2,pi=2", "--policy-option", options, "--json"])
        found = document(capsys)
        assert found["rows_in"] == found["rows_out"] + found["rows_inside"]  # type: ignore[operator]
        first[options] = found["moves"]  # type: ignore[assignment]
    quick, slow, never = first.values()
    after = [next(move["at_s"] for move in moves if move["at_s"] > 600) for moves in (quick, slow)]
    assert after[0] < after[1]
    assert min(move["at_s"] for move in quick) > 30
    assert never == []


def test_named_sources_may_have_rates_of_their_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "two.toml"
    path.write_text(
        CHAIN.replace('from = "source"', 'from = "source:x"', 1) + '[[edges]]\nfrom = "source:y"\nto = "pi"\n'
    )
    run(["plan", str(path), "--rate", "x=200,y=100", "--policy", "drs", "--budget", "8", "--json"])
    found = document(capsys)
    operators, predicted = found["operators"], found["predicted"]
    assert isinstance(operators, dict)
    assert isinstance(predicted, dict)
    assert operators["parse"]["arrivals_per_s"] == 200.0
    assert operators["pi"]["arrivals_per_s"] == 200.0
    each = [operators[name]["mean_s"] * 200.0 / 300.0 for name in ("parse", "pi")]
    assert predicted["mean_s"] == pytest.approx(sum(each))
    allocation = ",".join(f"{name}={o['processors']}" for name, o in operators.items())
    run(["simulate", str(path), "--rate", "x=200,y=100", "--allocation", allocation, "--seconds", "2000", "--json"])
    assert document(capsys)["mean_s"] == pytest.approx(predicted["mean_s"], rel=0.05)


def test_a_simulation_runs_in_the_mode_of_the_file_unless_told_another(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "batches.toml"
    path.write_text(CHAIN.replace('name = "chain"', 'name = "chain"\nmode = "micro-batch"'))
    asked = ["simulate", str(path), "--rate", "50", "--allocation", "parse=1,pi=1", "--seconds", "500", "--json"]
    means = []
    for mode in ([], ["--mode", "micro-batch"], ["--mode", "queue"]):
        run([*asked, *mode])
        means.append(document(capsys)["mean_s"])
    as_told, batches, queue = means
    assert as_told == batches
    assert isinstance(queue, float)
    assert queue < 0.1


def test_in_batches_the_mean_shown_is_of_a_rows_way_as_the_model_has_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Not what all the rows that it became spent, which is more than their 95th percentile."""
    path = tmp_path / "batches.toml"
    fanned = CHAIN.replace("selectivity = 0.5", "selectivity = 5.0")
    path.write_text(fanned.replace('name = "chain"', 'name = "chain"\nmode = "micro-batch"'))
    run(["simulate", str(path), "--rate", "5", "--allocation", "parse=1,pi=1", "--seconds", "500"])
    said = capsys.readouterr().out.replace("\n", " ")
    found = re.search(r"mean ([\d.]+) ms \(model ([\d.]+) ms\), p95 ([\d.]+) ms .* added up ([\d.]+) s \+-", said)
    assert found is not None
    mean, model, p95, added_up = map(float, found.groups())
    assert mean == pytest.approx(model, rel=0.3)
    assert mean < p95 < 1000 * added_up


def test_an_overloaded_simulation_says_so_and_exits_1(chain: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["simulate", chain, "--rate", "500", "--allocation", "parse=1,pi=1", "--seconds", "100"]
    assert run([*arguments, "--json"]) == 1
    assert document(capsys)["mean_s"] is None
    assert run(arguments) == 1


def test_policies_are_listed_with_their_origin(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["policies"]) == 0
    out = capsys.readouterr().out
    assert all(name in out for name in POLICIES)
    run(["policies", "--json"])
    assert set(POLICIES) == set(json.loads(capsys.readouterr().out)["policies"])


def test_the_installed_command_answers() -> None:
    command = Path(sys.executable).parent / "sluicegate"
    done = subprocess.run([str(command), "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("sluicegate ")
    empty = subprocess.run([str(command)], capture_output=True, text=True, check=False)
    assert empty.returncode == 2
    assert "plan" in empty.stdout


@pytest.mark.parametrize("words", ["plan CHAIN --rate 500 --json", "plan CHAIN --rate 500", "plan --help"])
def test_a_reader_that_leaves_early_is_no_error(words: str, chain: str) -> None:
    command = Path(sys.executable).parent / "sluicegate"
    line = f"set -o pipefail; {command} {words.replace('CHAIN', chain)} | head -c 10"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("words", "closed", "code"),
    [
        ("plan CHAIN --rate 500 --json", ">&-", 0),
        ("plan CHAIN --rate 500", ">&-", 0),
        ("plan none --rate 5", "2>&-", 2),
        ("plan CHAIN --rate 500", "<&-", 0),
    ],
)
def test_a_standard_stream_that_is_closed_is_no_error(words: str, closed: str, code: int, chain: str) -> None:
    command = Path(sys.executable).parent / "sluicegate"
    line = f"{command} {words.replace('CHAIN', chain)} {closed}"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (code, "")


def test_a_user_without_a_home_and_without_an_entry_can_look_for_runs() -> None:
    code = "import pwd; pwd.getpwuid = lambda uid: {}[uid]; from sluicegate.cli import main; main()"
    environment = {key: value for key, value in os.environ.items() if key not in ("HOME", "SLUICEGATE_HOME")}
    command = [sys.executable, "-c", code, "status"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "no run is known here" in done.stderr
