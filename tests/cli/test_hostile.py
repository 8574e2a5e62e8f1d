"""What a careless or hostile user may type: one line on standard error, the documented exit code, no traceback."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from sluicegate.cli.app import one_line, run
from sluicegate.cli.checked_options import the_app, the_load, the_rate
from sluicegate.cli.explain import asked_for
from sluicegate.config.typed import executors_from
from sluicegate.errors import BadInput

CHAIN = """
[[operators]]
name = "parse"
service_rate_per_s = 310.0
[[edges]]
from = "source"
to = "parse"
"""
LONG = "a" * 5000


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SLUICEGATE_HOME", str(tmp_path / "home"))
    (tmp_path / "chain.toml").write_text(CHAIN)
    (tmp_path / "lines.toml").write_text(CHAIN.replace('"parse"', '"par\\nse"'))
    (tmp_path / "odd" / "pipeline.json").mkdir(parents=True)
    return tmp_path


def refused(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 2) -> str:
    assert run(list(arguments)) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("sluicegate: ")
    assert err.count("\n") == 1
    return err


@pytest.mark.parametrize("command", ["status", "top", "explain", "report", "dashboard", "verify", "advise"])
def test_a_path_that_the_system_refuses_is_one_line(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert "File name too long" in refused(capsys, command, LONG)


@pytest.mark.parametrize("command", ["status", "top", "explain", "report"])
def test_a_folder_where_a_file_should_be_is_one_line(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    refused(capsys, command, "odd")


def test_a_folder_where_a_file_should_be_is_a_fault_that_verify_finds(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["verify", "odd"]) == 1
    out, err = capsys.readouterr()
    assert err == ""
    fault, total = out.splitlines()
    assert "pipeline.json cannot be read (Is a directory)" in fault
    assert total.startswith("odd: 1 fault")


@pytest.mark.parametrize(
    "arguments",
    [
        ["status", "a\nb"],
        ["plan", "a\nb.toml", "--rate", "5"],
        ["plan", "lines.toml", "--rate", "5"],
        ["plan", "chain.toml", "--rate", "5", "--budget", "9" * 30],
        ["simulate", "chain.toml", "--rate", "5", "--allocation", "parse=1e300"],
        ["simulate", "chain.toml", "--rate", "5", "--allocation", "parse=100000000"],
        ["simulate", "chain.toml", "--rate", "5", "--policy", "drs", "--interval", "1e-9"],
        ["simulate", "chain.toml", "--rate", "5", "--policy", "drs", "--seconds", "1e300"],
        ["conf", "--executors", "1:²"],
        ["conf", "--executors", ""],
        ["conf", "--executors", "1:" + "9" * 400],
        ["conf", "--query", "x=p95=2s", "--query", "x=p95=3s"],
        ["run", "shop", "--executors", "1:²"],
        ["run", "shop", "--seconds", ""],
        ["run", "shop", "--rate", "inf"],
        ["run", "shop", "--rate", "1e300"],
        ["run", "shop", "--budget", "9" * 30],
        ["run", "shop", "--processors", "price=1e9"],
        ["run", "shop", "--master", "nowhere"],
        ["run", "shop", "--executors", "1:4"],
        ["demo", "--rate", "inf"],
        ["demo", "--executors", "x"],
        ["chaos", "shop", "--rate", "nan"],
        ["chaos", "shop", "--rate", "inf"],
        ["chaos", "shop", "--executors", "1:²"],
        ["chaos", "shop", "--folder", "chain.toml"],
        ["fidelity", "shop", "--rate", "inf"],
        ["fidelity", "shop", "--most", "1e300"],
        ["profile", "shop", "price", "--minutes", "inf"],
        ["reproduce", "drs", "--html", "odd"],
        ["replay", "none.csv", "--html", "odd"],
    ],
)
def test_bad_input_is_one_line(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    refused(capsys, *arguments)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["plam"], "sluicegate: No such command 'plam'. Did you mean 'plan', 'replay'? See `sluicegate --help`"),
        (["plan"], "sluicegate: Missing argument 'FILE'; see `sluicegate plan --help`"),
        (["cluster"], "sluicegate: Missing command; see `sluicegate cluster --help`"),
        (["conf", "--nope"], "see `sluicegate conf --help`"),
        (
            ["run", "nope"],
            "no application 'nope': `sluicegate apps` lists them; or give a file such as app.py",
        ),
        (["run", "wordcont"], "did you mean 'wordcount'? `sluicegate apps` lists them"),
        (["status", "nofolder"], "give a run's folder, or none for the newest run"),
    ],
)
def test_a_clumsy_command_is_told_where_to_look(
    arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments) == 2
    captured = capsys.readouterr()
    assert told in captured.err
    assert captured.err.count("\n") == 1
    assert captured.out == ""


@pytest.mark.parametrize("command", ["plan", "replay", "advise"])
def test_a_file_without_rights_is_named_with_what_to_check(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (locked := tmp_path / "locked").write_text("")
    monkeypatch.setattr(os, "access", lambda *_, **__: False)  # root may read everything
    assert run([command, str(locked)]) == 2
    assert capsys.readouterr().err.endswith("is not readable; check its rights\n")


def test_no_command_shows_the_help_and_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([]) == 2
    out, err = capsys.readouterr()
    assert "demo" in out
    assert err.startswith("sluicegate: no command")
    assert err.count("\n") == 1


def test_chaos_without_its_cluster_lacks_something(capsys: pytest.CaptureFixture[str]) -> None:
    assert "cluster up" in refused(capsys, "chaos", "shop", "--master", "cluster:none", code=3)


def test_a_full_disk_is_the_machines_fault(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def full(path: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("sluicegate.cli.status.find_run", full)
    assert "No space left" in refused(capsys, "status", code=3)


def test_stopping_a_cluster_that_never_was_makes_no_folder(place: Path) -> None:
    assert run(["cluster", "down", "--folder", "none", "--json"]) == 0
    assert not (place / "none").exists()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("import sys; sys.exit(5)", "SystemExit"),
        ("raise RuntimeError('a')", "RuntimeError"),
        ("def pipeline(): return 1 / 0", "ZeroDivisionError"),
    ],
)
def test_a_users_file_that_fails_is_named(
    text: str, told: str, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (place / "mine.py").write_text(text)
    assert told in refused(capsys, "run", "./mine.py")


@pytest.mark.parametrize("words", [(), ("one",), ("--mst",)])
def test_a_users_application_that_cannot_be_built_is_not_measured(
    words: tuple[str, ...], place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    build = "from sluicegate.lab.running.app import App\ndef build():\n    raise KeyError('gone')\n"
    (place / "mine.py").write_text(f"{build}app = App('mine', build, rows=lambda *which: None)\n")
    assert "mine cannot be built: KeyError" in refused(capsys, "profile", "mine.py", *words)
    assert not (place / "profiles").exists()


def test_a_port_that_is_in_use_is_refused_before_the_demo_starts(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert "is in use" in refused(capsys, "demo", "--port", port, "--master", "nowhere", code=3)


def test_words_of_explain_are_a_decision_and_a_run_in_either_order() -> None:
    assert asked_for([], None) == (None, None)
    assert asked_for(["7"], None) == (7, None)
    assert asked_for(["words"], None) == (None, Path("words"))
    assert asked_for(["7", "words"], None) == asked_for(["words", "7"], None) == (7, Path("words"))
    assert asked_for(["7"], Path("words")) == (7, Path("words"))
    for words, folder in ((["1", "2"], None), (["a", "b"], None), (["a"], Path("b"))):
        with pytest.raises(BadInput):
            asked_for(words, folder)


def test_a_line_stays_one_line() -> None:
    assert one_line("é\n\x1b[31m\u202e\udcff") == "é\\n\\x1b[31m\\u202e\\udcff"


def test_rates_and_executors_are_checked() -> None:
    assert executors_from("3") == (3, 3)
    assert the_rate(5.0) == 5.0
    for text in ("1:2:3", "-1:2", " ", "1:1000000"):
        with pytest.raises(BadInput):
            executors_from(text)
    with pytest.raises(BadInput):
        the_load(the_app("shop"), float("inf"), None)


def test_what_a_users_file_prints_is_not_in_the_answer(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "mine.py").write_text("print('hello')\nraise ValueError('no')\n")
    for command in ("run", "profile", "chaos", "fidelity"):
        assert run([command, "./mine.py"]) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert err == "hello\nsluicegate: mine.py does not load: ValueError: no\n"


def test_fidelity_refuses_before_it_says_that_spark_starts(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    refused(capsys, "fidelity", "shop", "--master", "nowhere")
    (place / "mine.py").write_text("from sluicegate import Pipeline\npipeline = Pipeline('e')\n")
    refused(capsys, "fidelity", "./mine.py")


@pytest.mark.parametrize(
    ("was", "typed", "told"),
    [
        ("service_rate_per_s", "service_rate_per_sec", "did you mean 'service_rate_per_s'?"),
        ("[[operators]]", "[[operator]]", "unknown key 'operator': did you mean 'operators'?"),
        ("to =", "too =", "unknown key 'too': did you mean 'to'?"),
    ],
)
def test_a_key_that_is_needed_and_misspelt_is_named_with_the_right_one(
    was: str, typed: str, told: str, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (place / "typo.toml").write_text(CHAIN.replace(was, typed))
    assert told in refused(capsys, "plan", "typo.toml", "--rate", "5")


def test_a_number_that_is_too_large_to_compute_with_is_one_line(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    loop = '[[edges]]\nfrom = "parse"\nto = "more"\nselectivity = 1e12\n'
    (place / "many.toml").write_text(f'{CHAIN}[[operators]]\nname = "more"\nservice_rate_per_s = 1.0\n{loop}')
    refused(capsys, "simulate", "many.toml", "--rate", "5", "--allocation", "parse=1,more=1", "--seconds", "10")
