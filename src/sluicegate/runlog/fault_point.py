"""Points in the code at which a test may let the process or the disk fail: one lookup of a variable, unless it is set.

``SLUICEGATE_FAULT_POINTS`` names a folder. A process that reaches a point and finds a file of its name there deletes
the file and kills itself with SIGKILL, as a machine that fails at that very place would. If the file holds ``FAILS``
the call raises instead, as a disk that is full would.
"""

from __future__ import annotations

import errno
import os
import signal
from pathlib import Path

VARIABLE = "SLUICEGATE_FAULT_POINTS"
POINTS = (
    *("written", "between-manifests", "published"),
    *("regroup-begun", "regroup-rewritten", "regroup-verified", "regroup-put-back"),
    *("stopping", "draining"),
)
"""In this order: a batch's files are written; one of its outputs is published; all are, and Spark has not committed.
State is about to be repartitioned; Spark has done so, which is not recorded; it is recorded, and no batch has run
since; the old state is restored, which is not recorded. A pipeline that stops starts no more batches, and some have not
ended; executors were told to leave, and have not left.
"""


FAILS = "fails"


def fault_point(name: str) -> None:
    """
    >>> fault_point("published")
    """
    folder = os.environ.get(VARIABLE)
    if not folder:
        return
    armed = Path(folder) / name
    try:
        fails = armed.read_text(encoding="utf-8") == FAILS
        armed.unlink()
    except OSError:
        return
    if fails:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    os.kill(os.getpid(), signal.SIGKILL)
