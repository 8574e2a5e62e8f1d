"""Commands that look at a run: status, top, explain, report, apps."""

from __future__ import annotations

import fcntl
import io
import json
import os
import pty
import re
import signal
import subprocess
import sys
import termios
import threading
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console
from tests.report.recorded import BEGAN_S, attach_to, write_run

from sluicegate.cli.app import run
from sluicegate.cli.outcome import ProgressLines
from sluicegate.runlog.failures import Failing, write_failures
from sluicegate.runlog.run_record import read_record
from sluicegate.runlog.runs import find_run, known_runs, registered


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SLUICEGATE_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "home"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_run(tmp_path / "shop")


def test_status_tells_promise_load_latency_processors_and_the_last_reason(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["status", str(folder)]) == 0
    out = capsys.readouterr().out
    for words in ("shop", "mean <= 5 s", "300 rows/s", "4 processors, 1 executor", "decision 3", "3 -> 2"):
        assert words in out


def test_status_as_json_has_null_for_what_nobody_measured(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["status", str(folder), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["promise_kept"] is True
    assert found["processors"] == {"read+price+count": 2, "rank": 1, "merge": 1}
    assert found["operators"]["rank"]["queue_rows"] is None
    assert found["last_decision"]["number"] == 3


def test_a_run_whose_controller_is_gone_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_run(tmp_path / "dead", ended=False, pid=2**30)
    run(["status", str(folder), "--json"])
    found = json.loads(capsys.readouterr().out)
    assert found["controller_alive"] is False
    assert "the last plan stays in force" in found["state"]


def test_an_application_whose_driver_was_killed_has_ended(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = attach_to(write_run(tmp_path / "killed", pid=2**30), active=True)
    run(["status", str(folder)])
    assert "shop  sluicegate  ended" in capsys.readouterr().out
    holder = "import fcntl, sys; f = open(sys.argv[1], 'w'); fcntl.lockf(f, fcntl.LOCK_EX); print(flush=True); input()"
    command = [sys.executable, "-c", holder, str(folder / "lock")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as driver:
        assert driver.stdout is not None
        driver.stdout.readline()
        run(["status", str(folder)])
        driver.communicate(b"\n")
    assert "no controller: the last plan stays in force" in capsys.readouterr().out


def test_a_controller_that_starts_is_not_reported_as_silent(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_run(tmp_path / "begun", ended=False)
    (folder / "ticks.jsonl").unlink()
    run(["status", str(folder)])
    out = capsys.readouterr().out
    assert "the controller has been starting for" in out
    assert "compiles its models once" in out


def test_an_operator_that_fails_breaks_the_promise_and_is_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write_run(tmp_path / "failing", ended=False)
    failing = Failing("rank", 17, 88.0, 5, 5, "TimeoutError: [late]", "service", 108.0)
    write_failures(folder / "failures.json", [failing])
    run(["status", str(folder), "--json"])
    found = json.loads(capsys.readouterr().out)
    assert (found["promise_kept"], found["failures"][0]["batch"]) == (False, 17)
    for command in ("status", "top"):
        run([command, str(folder)])
        out = capsys.readouterr().out
        assert "broken now" in out
        assert "tried 5 times: TimeoutError: [late], being tried again" in out


def test_the_lines_of_a_run_say_when_an_operator_fails_and_when_it_works_again(tmp_path: Path) -> None:
    out = Console(record=True, width=200, file=io.StringIO())
    lines, failing = ProgressLines(out, tmp_path), Failing("rank", 7, 88.0, 1, 1, "E: e", "service", 90.0)
    for now in ([], [failing], [failing], [replace(failing, tries=2)], [], []):
        write_failures(tmp_path / "failures.json", now)
        lines(0.5, None)
    told = [re.sub(r"\d{3,} s", "N s", line.strip()) for line in out.export_text().splitlines()]
    assert told == [
        "rank: batch 7 fails since N s, tried once: E: e, being tried again",
        "rank: batch 7 fails since N s, tried 2 times: E: e, being tried again",
        "rank: recovered after N s",
    ]


def test_a_line_of_a_run_has_the_last_latency_since_the_line_before_or_says_why_there_is_none(tmp_path: Path) -> None:
    out = Console(record=True, width=200, file=io.StringIO())
    lines, tick = ProgressLines(out, tmp_path), {"running": {"rank": 2}, "arrivals_per_s": 50.0, "sojourn": None}
    lines(0.1, {**tick, "at_s": 100.0, "predicted_mean_s": None})
    lines(0.2, {**tick, "at_s": 105.0, "predicted_mean_s": 1.25})
    lines(0.3, {**tick, "at_s": 107.0, "sojourn": {"mean_s": 3.0}})
    lines(0.4, {**tick, "at_s": 110.0})
    lines(0.5, {**tick, "at_s": 115.0})
    told = [re.sub(r" +", " ", line).strip() for line in out.export_text().splitlines()]
    assert told == [
        "10% 50 rows/s latency: no row is out yet processors: rank 2",
        "20% 50 rows/s latency: no row is out yet, 1.25 s expected processors: rank 2",
        "40% 50 rows/s latency 3 s processors: rank 2",
        "50% 50 rows/s latency: no row came out since processors: rank 2",
    ]


def test_top_without_a_terminal_prints_one_frame_without_colours(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["top", str(folder)]) == 0
    out = capsys.readouterr().out
    assert "\x1b[" not in out
    for words in ("read+price+count", "57.7%", "of 5 s promised", "3 -> 2"):
        assert words in out


def test_top_says_that_nothing_was_observed_yet_instead_of_no_processors(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "ticks.jsonl").unlink()
    assert run(["top", str(folder)]) == 0
    out = capsys.readouterr().out
    assert "no observation yet" in out
    assert "0 processors" not in out


def test_top_shows_the_latency_that_is_promised_against_its_promise(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, key in (("control.json", "bounds"), ("outcome.json", "goal")):
        told = json.loads((folder / name).read_text())
        (folder / name).write_text(json.dumps({**told, key: {"p95": 7.0}}))
    assert run(["top", str(folder)]) == 0
    out = capsys.readouterr().out
    assert "p95 latency" in out
    assert "of 7 s promised" in out


@pytest.mark.parametrize(("key", "colours"), [(b"q", True), (b"\x03", True), (b"q", False)])
def test_top_in_a_terminal_goes_on_until_q_or_ctrl_c(folder: Path, key: bytes, colours: bool) -> None:
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", **({} if colours else {"NO_COLOR": "1"})}
    command = [str(Path(sys.executable).parent / "sluicegate"), "top", str(folder)]
    process = subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment, start_new_session=True, preexec_fn=_own
    )
    os.close(theirs)
    shown = _until(ours, b"leaves")
    os.write(ours, key)
    # as a terminal does: one that is full would hold the last words back
    threading.Thread(target=_read_on, args=(ours,), daemon=True).start()
    assert process.wait(timeout=120) == 0
    assert (b"\x1b[32m" in shown) is colours


def test_top_ends_when_its_terminal_is_gone(folder: Path) -> None:
    ours, theirs = pty.openpty()
    command = [str(Path(sys.executable).parent / "sluicegate"), "top", str(folder)]
    environment = {**os.environ, "TERM": "xterm"}
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    _until(ours, b"leaves")
    os.close(ours)
    process.wait(timeout=120)


def _read_on(terminal: int) -> None:
    with suppress(OSError):  # closed at the other end
        while os.read(terminal, 4096):
            pass
    os.close(terminal)


def _own() -> None:
    """The terminal of this process, so that Ctrl-C typed there reaches it, also where a shell has tests ignore it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def _until(terminal: int, words: bytes) -> bytes:
    seen = b""
    while words not in seen:
        seen += os.read(terminal, 65536)
    return seen


def test_explain_tells_what_was_seen_why_and_what_came_of_it(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", "1", "--folder", str(folder)]) == 0
    out = capsys.readouterr().out
    for words in (
        "decision 1 of 3",
        "from 2 to 5 processors",
        "540 rows/s came in",
        "with 90% certainty",
        "removed only once fewer have sufficed",
        "predicted: a mean latency of 2.9 s",
        "observations after it",
    ):
        assert words in out


def test_explain_does_not_deny_forecasts_that_the_reasons_of_several_queries_name(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [json.loads(line) for line in (folder / "ticks.jsonl").read_text().splitlines()]
    (folder / "ticks.jsonl").write_text("".join(json.dumps({**line, "forecast": None}) + "\n" for line in lines))
    run(["explain", "1", "--folder", str(folder)])
    assert "forecast\n  - none" in capsys.readouterr().out
    moves = [json.loads(line) for line in (folder / "decisions.jsonl").read_text().splitlines()]
    moves[0]["reasons"] = ["rank: load: 9 rows/s, the forecast of the next 4 s (now 8)", "rank: 1 processors carry it"]
    (folder / "decisions.jsonl").write_text("".join(json.dumps(move) + "\n" for move in moves))
    run(["explain", "1", "--folder", str(folder)])
    out = capsys.readouterr().out
    assert "forecast\n  - of each query: in the reasons" in out
    assert "rank: planned for a load of 9 rows/s" in out
    assert "rank: 1 processor carries it" in out


def test_explain_as_json_holds_prediction_and_outcome_side_by_side(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(["explain", "--folder", str(folder), "--json"])
    found = json.loads(capsys.readouterr().out)
    assert found["number"] == found["of"] == 3
    assert found["predicted_mean_s"] == 2.9
    assert found["afterwards"]["mean_s"] == pytest.approx(2.5, abs=0.3)
    assert found["refusals"][0]["meaning"]


def test_report_writes_the_page_where_it_is_told(folder: Path, tmp_path: Path) -> None:
    assert run(["report", str(folder), "--html", "a.html"]) == 0
    assert run(["report", str(folder)]) == 0
    assert (tmp_path / "a.html").read_text() == (tmp_path / "sluicegate-shop.html").read_text()


def test_report_as_json_names_the_page_and_what_was_kept(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["report", str(folder), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["app"] == "shop"
    assert (found["kept"], found["kept_of"], found["moves"]) == (0.967, "of rows", 3)
    assert Path(found["file"]).is_file()


def test_apps_are_listed_with_their_paper(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["apps"]) == 0
    assert "Es-Stream" in capsys.readouterr().out
    run(["apps", "--json"])
    assert {"about", "paper", "slo"} <= set(json.loads(capsys.readouterr().out)["apps"]["shop"])


@pytest.mark.parametrize(
    "arguments",
    [
        ["status"],
        ["top"],
        ["explain"],
        ["report"],
        ["status", "nowhere"],
        ["explain", "99", "--folder", "SHOP"],
        ["explain", "soon", "--folder", "SHOP"],
        ["report", "SHOP", "--html", "no/such/folder.html"],
        ["demo", "--policy", "magic"],
        ["run", "fpd", "--policy", "static-peak"],
        ["run", "fpd", "--policy", "hindsight"],
        ["demo", "--app", "magic"],
        ["demo", "--slo", "soon"],
        ["demo", "--seconds", "0"],
        ["demo", "--rate", "0"],
        ["demo", "--port", "99999"],
        ["demo", "--html", "no/such/folder.html"],
        ["run", "wordcount", "--html", "no/such/folder.html"],
        ["demo", "--cluster", "--master", "local[2]"],
        ["run", "payments", "--mode", "continuous"],
        ["run", "payments", "--kafka", "127.0.0.1:9092"],
        ["run", "payments", "--mode", "real-time", "--executors", "1:2", "--master", "cluster"],
        ["run", "payments", "--mode", "real-time", "--processors", "scores=2"],
        ["run", "wordcount", "--mode", "real-time", "--kafka", "127.0.0.1:9092"],
        ["run", "fpd", "--mode", "real-time", "--kafka", "127.0.0.1:9092"],
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(
    arguments: list[str], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([str(folder) if argument == "SHOP" else argument for argument in arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("sluicegate: ")
    assert err.count("\n") == 1


def test_without_a_folder_the_newest_run_that_goes_on_is_meant(tmp_path: Path) -> None:
    old, new = write_run(tmp_path / "old"), write_run(tmp_path / "new")
    with registered(old, "shop", temporary=False):
        with registered(new, "shop", temporary=False):
            assert find_run() == new
        assert find_run() == old
    assert find_run() == new
    (new / "pipeline.json").unlink()
    assert find_run() == old


def test_a_run_that_was_killed_is_not_taken_for_one_that_goes_on(folder: Path, home: Path) -> None:
    with registered(folder, "shop", temporary=False):
        (entry,) = (home / "runs").iterdir()
        told = json.loads(entry.read_text())
        entry.write_text(json.dumps({**told, "born": "another process of that number"}))
        assert [known.running for known in known_runs()] == [False]
        entry.write_text("{ half a")
        assert known_runs() == []


def test_old_runs_are_forgotten_and_only_folders_of_our_own_removed(tmp_path: Path) -> None:
    ours, theirs = write_run(tmp_path / "ours"), write_run(tmp_path / "theirs")
    for path, temporary in ((ours, True), (theirs, False)):
        with registered(path, "shop", temporary=temporary):
            pass
    for number in range(12):
        with registered(tmp_path / f"later{number}", "shop", temporary=False):
            pass
    assert not ours.exists()
    assert theirs.exists()
    assert len(known_runs()) == 10


def test_a_home_that_is_a_file_does_not_stop_a_run(folder: Path, home: Path) -> None:
    home.write_text("")
    with registered(folder, "shop", temporary=False) as problem:
        assert "cannot be written" in problem


def test_only_the_end_of_long_logs_is_read_where_that_is_asked_for(folder: Path) -> None:
    record = read_record(folder, latest_bytes=5_000)
    assert 0 < len(record.ticks) < 10
    assert record.last["at_s"] == BEGAN_S + 120.0
