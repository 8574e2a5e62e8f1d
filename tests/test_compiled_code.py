"""Compiled code finds a place of its user's own where neither the package nor the home can be written."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sluicegate.compiled_code import keep_compiled_code


@pytest.fixture
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installation of somebody else's, a home that cannot be made, and a folder for what is temporary."""
    monkeypatch.setattr("os.access", lambda path, mode: False)
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null/none")
    monkeypatch.setenv("NUMBA_CACHE_DIR", "as it was")
    monkeypatch.delenv("NUMBA_CACHE_DIR")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def test_without_any_other_place_it_is_a_closed_temporary_folder_and_the_same_at_every_start(nowhere: Path) -> None:
    keep_compiled_code()
    folder = Path(os.environ.pop("NUMBA_CACHE_DIR"))
    assert folder.parent == nowhere
    assert folder.stat().st_mode & 0o777 == 0o700
    keep_compiled_code()
    assert os.environ["NUMBA_CACHE_DIR"] == str(folder)


def test_a_folder_of_that_name_that_others_can_write_is_not_used(nowhere: Path) -> None:
    name = nowhere / f"sluicegate-compiled-{os.getuid()}"
    name.mkdir()
    name.chmod(0o777)
    keep_compiled_code()
    assert Path(os.environ["NUMBA_CACHE_DIR"]) != name
    assert Path(os.environ["NUMBA_CACHE_DIR"]).stat().st_mode & 0o777 == 0o700


def test_a_link_of_that_name_is_not_followed(nowhere: Path) -> None:
    other = nowhere / "other"
    other.mkdir(mode=0o700)
    (nowhere / f"sluicegate-compiled-{os.getuid()}").symlink_to(other)
    keep_compiled_code()
    assert Path(os.environ["NUMBA_CACHE_DIR"]).resolve() != other


def test_a_place_that_was_given_stays(nowhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", "given")
    keep_compiled_code()
    assert os.environ["NUMBA_CACHE_DIR"] == "given"


def test_importing_the_package_sets_a_folder_for_compiled_code(tmp_path: Path) -> None:
    """As a user for whom nothing can be written: numba itself would fail at the import of a model."""
    code = (
        "import os; os.access = lambda *_, **__: False\n"
        "import sluicegate, numba.core.caching as caching\n"
        "def refuse(self): raise OSError('read-only')\n"
        "for place in (caching.InTreeCacheLocator, caching.UserWideCacheLocator): place.ensure_cache_path = refuse\n"
        "import sluicegate.model.erlang\n"
        "print(os.environ['NUMBA_CACHE_DIR'])"
    )
    env = {**os.environ, "TMPDIR": str(tmp_path), "XDG_CACHE_HOME": "/dev/null/none"}
    env.pop("NUMBA_CACHE_DIR", None)
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip().startswith(str(tmp_path))
