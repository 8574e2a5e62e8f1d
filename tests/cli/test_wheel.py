"""The wheel, as `make wheel` builds it, works where nothing of this repository is.

The virtual environment is made for the test and gets sluicegate from the wheel alone. Its dependencies are shared with
the environment that runs the tests, by a path file, so that the test needs no network; what pyproject.toml declares of
them is therefore not tested here.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("wheel")
    words = ["wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", str(made), str(ROOT)]
    subprocess.run([sys.executable, "-m", "pip", *words], check=True, capture_output=True)
    (found,) = made.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def bin_folder(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("clean") / "venv"
    venv.create(home, with_pip=False, symlinks=True)
    python = home / "bin" / "python"
    words = ["install", "--quiet", "--no-deps", "--no-index", str(wheel)]
    subprocess.run([sys.executable, "-m", "pip", "--python", str(python), *words], check=True, capture_output=True)
    (packages,) = home.glob("lib/python*/site-packages")
    # a path alone: what makes this repository importable in the shared folder is a path file there, and is not read
    (packages / "shared.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    return home / "bin"


def said(bin_folder: Path, command: str, *words: str) -> str:
    env = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    done = subprocess.run(
        [str(bin_folder / command), *words], cwd=bin_folder, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_an_installed_wheel_tells_its_version_and_plans(bin_folder: Path) -> None:
    where = said(bin_folder, "python", "-c", "import sluicegate; print(sluicegate.__file__)").strip()
    assert Path(where).is_relative_to(bin_folder.parent)
    assert said(bin_folder, "sluicegate", "--version").startswith("sluicegate ")
    example = str(ROOT / "examples" / "word_count.toml")
    plan = json.loads(said(bin_folder, "sluicegate", "plan", example, "--rate", "500", "--json"))
    assert plan["feasible"] is True


def test_the_wheel_holds_what_is_not_python(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    held = {
        str(path.relative_to(ROOT / "src"))
        for path in (ROOT / "src" / "sluicegate").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert {"sluicegate/spark/jvm/sluicegate.jar", "sluicegate/lab/chaos/hurt.c"} <= held
    assert held <= names
    assert not [name for name in names if "__pycache__" in name or name.endswith((".nbi", ".nbc"))]


def test_the_wheel_holds_the_licences_of_all_that_is_in_it(wheel: Path) -> None:
    licences = {name.rpartition("/")[2] for name in zipfile.ZipFile(wheel).namelist() if "/licenses/" in name}
    assert licences == {"LICENSE", "uPlot-LICENSE.txt"}
