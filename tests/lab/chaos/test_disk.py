from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from sluicegate.errors import EnvironmentLacks
from sluicegate.lab.chaos.disk import full, is_small, out_of_files, small_disk


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    try:
        with small_disk(folder, 16):
            yield folder
    except EnvironmentLacks as problem:
        pytest.skip(str(problem))


def test_a_small_disk_is_full_for_a_while_and_then_has_room_again(disk: Path) -> None:
    assert is_small(disk)
    with full(disk), pytest.raises(OSError, match="No space left"):
        (disk / "new").write_bytes(os.urandom(4096))
    (disk / "new").write_bytes(os.urandom(4096))
    assert sorted(path.name for path in disk.iterdir()) == ["new"]


def test_a_small_disk_can_run_out_of_files_with_room_left(disk: Path) -> None:
    with out_of_files(disk):
        with pytest.raises(OSError, match="No space left"):
            (disk / "new").touch()
        assert shutil.disk_usage(disk).free > 2**20
    (disk / "new").touch()
    assert sorted(path.name for path in disk.iterdir()) == ["new"]


def test_the_disk_of_others_is_never_taken_for_a_small_one(tmp_path: Path) -> None:
    assert not is_small(tmp_path)
