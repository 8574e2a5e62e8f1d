"""Chooses numba's cache folder: numba fails at import if it finds no writable place for compiled functions.

It tries the folder of the module, then the user's cache. In a container that runs as a user without a home neither is
writable, and nothing would start.
"""

from __future__ import annotations

import os
from pathlib import Path


def keep_compiled_code() -> None:
    """Set ``NUMBA_CACHE_DIR`` to a temporary folder of this user if numba has no writable default."""
    if "NUMBA_CACHE_DIR" in os.environ or os.access(Path(__file__).parent, os.W_OK) or _user_cache_is_writable():
        return
    os.environ["NUMBA_CACHE_DIR"] = _own_temporary_folder()


def _user_cache_is_writable() -> bool:
    base = os.environ.get("XDG_CACHE_HOME") or str(Path("~").expanduser() / ".cache")
    try:
        Path(base, "numba").mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(Path(base, "numba"), os.W_OK)


def _own_temporary_folder() -> str:
    """The same folder at every start, so that code is compiled once; a fresh one if that name is not safely ours.

    Cached code is executed: the folder must belong to this user and be closed to others.
    """
    import tempfile  # only where it is needed: every Python worker of Spark imports this file

    folder = Path(tempfile.gettempdir()) / f"sluicegate-compiled-{os.getuid()}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError:
        return tempfile.mkdtemp(prefix="sluicegate-compiled-")
    ours = folder.is_dir() and not folder.is_symlink() and found.st_uid == os.getuid() and not found.st_mode & 0o077
    return str(folder) if ours else tempfile.mkdtemp(prefix="sluicegate-compiled-")
