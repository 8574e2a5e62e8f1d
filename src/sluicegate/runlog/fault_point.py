"""Points in the code at which a test may kill the process: costs one lookup of a variable, unless it is set.

``SLUICEGATE_FAULT_POINTS`` names a folder. A process that reaches a point and finds a file of its name there deletes
the file and kills itself with SIGKILL, as a machine that fails at that very place would.
"""

from __future__ import annotations

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


def fault_point(name: str) -> None:
    """
    >>> fault_point("published")
    """
    folder = os.environ.get(VARIABLE)
    if not folder:
        return
    try:
        (Path(folder) / name).unlink()
    except OSError:
        return
    os.kill(os.getpid(), signal.SIGKILL)
