"""What PySpark's bridge to Java logs when Java is gone stays out of the lines that a user sees."""

from __future__ import annotations

import subprocess
import sys

CODE = """
import logging
from sluicegate.spark.session import quiet_bridge
{before}
quiet_bridge()
try:
    raise EOFError("gone")
except EOFError:
    logging.exception("a message under no name")  # Python sets logging up here, if nobody has
    logging.getLogger("py4j.clientserver").error("There was an exception", exc_info=True)
"""


def said(before: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", CODE.format(before=before)], capture_output=True, text=True, check=True
    )
    return done.stderr


def test_a_trace_of_the_bridge_is_not_shown_where_nobody_set_up_logging() -> None:
    assert "There was an exception" not in said("")


def test_who_set_up_logging_sees_it() -> None:
    assert "There was an exception" in said("logging.basicConfig()")
