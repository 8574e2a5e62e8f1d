"""A folder is taken, or one line says why it is not: full, not to be written, open to everybody, or in use."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from sluicegate.errors import BadInput, EnvironmentLacks
from sluicegate.lab.chaos.disk import full
from sluicegate.runlog.layout import Layout
from sluicegate.runlog.lock import check_free, kept_free, locked


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 KB."""
    folder = tmp_path / "small"
    folder.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", "size=64k,mode=0700", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(words, capture_output=True, check=False).returncode:
        pytest.skip("needs root, to mount a small file system")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def refused(folder: Path) -> str:
    with pytest.raises((BadInput, EnvironmentLacks)) as told:
        locked(Layout(folder)).close()
    assert "\n" not in str(told.value)
    assert str(folder) in str(told.value)
    return str(told.value)


def test_a_full_disk_is_one_line(small: Path) -> None:
    run = small / "run"
    locked(Layout(run)).close()
    (run / "lock").write_bytes(b"")
    with full(small):
        assert "No space left on device; make room" in refused(run)


def test_a_disk_that_cannot_be_written_is_one_line(small: Path) -> None:
    subprocess.run(["mount", "-o", "remount,ro", str(small)], check=True)
    assert "Read-only file system" in refused(small / "run")


def test_a_folder_that_every_user_can_write_to_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    assert "every user can write to" in refused(tmp_path)
    with pytest.raises(BadInput, match=r"every user can write to .*0777.*choose another folder"):
        check_free(tmp_path)
    tmp_path.chmod(0o770)
    locked(Layout(tmp_path)).close()


def test_a_second_process_is_told_who_has_the_folder(tmp_path: Path) -> None:
    with locked(Layout(tmp_path)):
        assert f"already (process {os.getpid()})" in refused(tmp_path)
    locked(Layout(tmp_path)).close()


@pytest.mark.parametrize("ran", [False, True])
def test_no_pipeline_starts_in_a_folder_that_is_being_repaired(tmp_path: Path, ran: bool) -> None:
    if ran:
        locked(Layout(tmp_path)).close()
    with kept_free(tmp_path):
        assert "stop it, or choose another folder" in refused(tmp_path)
    with locked(Layout(tmp_path)), pytest.raises(BadInput, match="a pipeline runs in"), kept_free(tmp_path):
        pass
    with kept_free(tmp_path):
        pass


def test_a_lock_file_deleted_as_left_over_lets_no_second_pipeline_in(tmp_path: Path) -> None:
    with locked(Layout(tmp_path)):
        (tmp_path / "lock").unlink()
        with pytest.raises(BadInput, match=r"runs in .* already, and its file `lock` was deleted"):
            check_free(tmp_path)
        assert "already, and its file `lock` was deleted: stop it" in refused(tmp_path)
        with pytest.raises(BadInput, match="already"):  # with the file that the refused one left
            check_free(tmp_path)
    check_free(tmp_path)
    locked(Layout(tmp_path)).close()


def test_a_folder_that_is_deleted_moved_or_replaced_under_its_pipeline_is_noticed(tmp_path: Path) -> None:
    folder, aside = tmp_path / "run", tmp_path / "aside"
    with locked(Layout(folder)) as lock:
        lock.check()
        folder.rename(aside)
        with pytest.raises(BadInput, match="run was deleted or moved while its pipeline ran: stopped"):
            lock.check()
        folder.mkdir()  # as writers of this pipeline make missing folders anew
        with pytest.raises(BadInput, match="run was deleted or moved while its pipeline ran: stopped"):
            lock.check()
        Layout(folder).description.write_text("{}")
        with pytest.raises(BadInput, match="run was replaced by another folder while"):
            lock.check()
        shutil.rmtree(folder)
        aside.rename(folder)
        lock.check()


@pytest.mark.parametrize("planted", ["a file", "a loop", "a link to nowhere"])
def test_what_is_planted_where_folders_have_to_be_is_one_line(tmp_path: Path, planted: str) -> None:
    edges = tmp_path / "edges"
    edges.write_text("x") if planted == "a file" else edges.symlink_to("edges" if "loop" in planted else "/none/there")
    refused(tmp_path)
