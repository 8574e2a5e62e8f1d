"""Which faults come is the seed's doing alone, and every file that is spoiled can be put back."""

from __future__ import annotations

import errno
import os
import random
import subprocess
import sys
from itertools import islice
from pathlib import Path
from typing import IO

import pytest

from chaos_page import reliability_page
from sluicegate.cli.app import run
from sluicegate.errors import BadInput
from sluicegate.lab.chaos.faults import FAULTS, chosen
from sluicegate.lab.chaos.handles import out_of_handles
from sluicegate.lab.chaos.schedule import schedule
from sluicegate.lab.chaos.spoiling import WAYS, Spoiled
from sluicegate.runlog.fault_point import FAILS, POINTS, VARIABLE, fault_point


def test_the_same_seed_gives_the_same_faults_and_another_gives_others() -> None:
    told = [[(p.fault.name, p.wait_s, p.together, p.seed) for p in islice(schedule(FAULTS, n), 60)] for n in (4, 4, 5)]
    assert told[0] == told[1]
    assert [one[0] for one in told[0]] != [one[0] for one in told[2]]


def test_faults_of_executors_need_a_cluster_and_unknown_ones_are_refused() -> None:
    assert {fault.name for fault in chosen("all", cluster=True, network=True)} == {fault.name for fault in FAULTS}
    assert "executor" not in {fault.name for fault in chosen("all", cluster=False)}
    with pytest.raises(BadInput, match="needs executors"):
        chosen("driver,executor", cluster=False)
    with pytest.raises(BadInput, match="no fault 'flood': there is nothing, python-worker"):
        chosen("flood", cluster=False)


def test_a_process_without_handles_opens_nothing_for_a_while_and_keeps_what_it_has_open() -> None:
    code = "import os,sys\nfor line in sys.stdin:\n try:\n  os.close(os.open('/dev/null', 0))\n"
    code += "  print('opened', flush=True)\n except OSError as problem: print(problem.errno, flush=True)\n"
    words = [sys.executable, "-c", code]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None

        def told(goes_in: IO[str] = process.stdin, comes_out: IO[str] = process.stdout) -> str:
            print("go", file=goes_in, flush=True)
            return comes_out.readline().strip()

        assert told() == "opened"
        with out_of_handles([process.pid]):
            assert told() == str(errno.EMFILE)
        assert told() == "opened"
        process.stdin.close()


@pytest.mark.parametrize("way", WAYS)
def test_a_spoiled_file_is_put_back_unless_somebody_wrote_it_since(way: str, tmp_path: Path) -> None:
    path, before = tmp_path / "file", b"some bytes of a file"
    after = WAYS[way](before, random.Random(1))
    for written in (after, b"written since"):
        path.unlink(missing_ok=True) if written is None else path.write_bytes(written)
        assert Spoiled(path, way, "data", before, after).restore() is (written == after)
        assert path.read_bytes() == (before if written == after else b"written since")


@pytest.mark.parametrize("point", POINTS)
def test_a_fault_point_ends_a_process_only_where_its_own_name_is_armed(point: str, tmp_path: Path) -> None:
    code = f"from sluicegate.runlog.fault_point import fault_point; fault_point({point!r}); print('went on')"
    for armed, ended in (("", 0), ("another", 0), (point, -9), (point, -9)):
        (tmp_path / armed).touch() if armed else None
        environment = {**os.environ, VARIABLE: str(tmp_path) if armed else ""}
        assert subprocess.run([sys.executable, "-c", code], env=environment, check=False).returncode == ended
        assert not (tmp_path / point).exists(), "it ends one process, not all that come there"


def test_a_fault_point_that_is_to_fail_raises_once_and_ends_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    (tmp_path / "written").write_text(FAILS)
    fault_point("published")
    with pytest.raises(OSError, match="No space left on device"):
        fault_point("written")
    fault_point("written")


def test_what_is_asked_wrongly_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    for words in (
        ["nonsense"],
        ["wordcount", "--faults", "flood"],
        ["wordcount", "--seconds", "0"],
        ["wordcount", "--folder", str(tmp_path)],
        ["attach:nonsense"],
        ["attach:counts", "--faults", "flood"],
        ["attach:counts", "--master", "cluster"],
    ):
        assert run(["chaos", *words]) == 2, words
        assert capsys.readouterr().err.count("\n") == 1


def test_the_page_has_every_figure_from_the_lines_and_tells_of_runs_that_are_not_sound() -> None:
    fault = {"at_s": 1.0, "kind": "driver", "target": "process 1", "recovered_s": 8.0, "lines": []}
    slow, gone = {**fault, "recovered_s": 20.0}, {**fault, "kind": "node", "recovered_s": None}
    sound = {
        "app": "shop",
        "seed": 1,
        "faults": [fault, slow],
        "rows_in": 10,
        "lost": 0,
        "answer_exact": True,
        "broken": [],
    }
    wrong = {
        **sound,
        "seed": 2,
        "faults": [gone],
        "lost": 3,
        "answer_exact": False,
        "answer_note": "'a': 1 instead of 4",
    }
    page = reliability_page([{**sound, "seed": 2}, wrong])
    assert "3 faults in 2 runs of 1 applications" in page
    assert "| driver | SIGKILL of the driver (Python), started again | 2 | 14.0 s | 20.0 s |" in page
    assert "3 rows lost" in page
    assert "- shop, seed 2: node not recovered from; 'a': 1 instead of 4" in page
    assert "nothing broken" not in page
    page = reliability_page([wrong, sound, {**sound, "seed": 2}])
    assert "instead of 4 (the same seed again since then: nothing broken)" in page
    assert "seed 1:" not in page
