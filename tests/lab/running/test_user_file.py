from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark import cloudpickle

from sluicegate.errors import BadInput
from sluicegate.lab.running.user_file import app_from

PIPELINE = """
from sluicegate.spark.pipeline.declaration import Pipeline

def make():
    made = Pipeline("mine")
    made.sink("out", made.operator("same", lambda rows: rows, made.source("lines", "text string")))
    return made
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "my_app.py"
    path.write_text(text)
    return path


@pytest.mark.parametrize("last", ["pipeline = make()", "pipeline = make"])
def test_a_file_gives_a_pipeline_or_a_function_that_makes_one(tmp_path: Path, last: str) -> None:
    app = app_from(written(tmp_path, PIPELINE + last))
    assert app.name == "mine"
    app.build().check()


def test_a_file_may_give_a_whole_application(tmp_path: Path) -> None:
    text = PIPELINE + "from sluicegate.lab.running.app import App\napp = App('whole', make, slo='mean=1s')"
    assert app_from(written(tmp_path, text)).slo == "mean=1s"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "defines no pipeline"),
        ("pipeline = 7", "defines no pipeline"),
        ("pipeline = lambda: 7", "defines no pipeline"),
        ("1 / 0", "does not load: ZeroDivisionError: division by zero"),
        ("def (", "does not load: SyntaxError"),
        ("import surely_nowhere", "does not load: ModuleNotFoundError"),
        (PIPELINE + "pipeline = Pipeline('a b')", "does not load: BadInput: pipeline name 'a b'"),
    ],
)
def test_a_file_that_cannot_be_used_says_why(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(BadInput, match=told):
        app_from(written(tmp_path, text))


def test_a_file_that_is_not_there_or_no_python_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no file"):
        app_from(tmp_path / "none.py")
    (tmp_path / "app.txt").write_text("")
    with pytest.raises(BadInput, match=r"should end in \.py"):
        app_from(tmp_path / "app.txt")


def test_a_file_does_not_stand_in_for_a_module_of_its_name(tmp_path: Path) -> None:
    known = sys.modules.get("statistics")
    path = tmp_path / "statistics.py"
    path.write_text("from sluicegate import Pipeline\npipeline = Pipeline('p')\n")
    try:
        assert app_from(path).name == "p"
        assert sys.modules.get("statistics") is known
    finally:
        if known is not None:
            sys.modules["statistics"] = known


def test_functions_of_modules_beside_the_file_reach_workers_that_cannot_import_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "rates_of_mine").mkdir()
    (tmp_path / "rates_of_mine" / "__init__.py").write_text("from rates_of_mine.euro import in_euro\n")
    (tmp_path / "rates_of_mine" / "euro.py").write_text("def in_euro(dollars):\n    return dollars / 2\n")
    (tmp_path / "words_of_mine.py").write_text(
        "import rates_of_mine\ndef price(n):\n    return rates_of_mine.in_euro(n)\n"
    )
    text = "from words_of_mine import price\nfrom sluicegate.lab.running.app import App\n"
    app = app_from(written(tmp_path, PIPELINE + text + "app = App('two files', make, rows=price)"))
    pickled: Callable[[object], bytes] = cloudpickle.dumps
    load = "import pickle, sys; print(pickle.load(sys.stdin.buffer)(7))"
    done = subprocess.run([sys.executable, "-c", load], input=pickled(app.rows), capture_output=True, check=True)
    assert done.stdout.split() == [b"3.5"]
