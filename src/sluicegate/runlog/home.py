"""Where sluicegate keeps what is not in a run's own folder: the list of runs, the cluster it started."""

from __future__ import annotations

import os
from pathlib import Path


def home_folder() -> Path:
    """``$SLUICEGATE_HOME``, or ``~/.sluicegate``."""
    home = os.environ.get("SLUICEGATE_HOME")
    return Path(home) if home else Path.home() / ".sluicegate"
