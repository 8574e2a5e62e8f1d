"""An operator's failure in one line: which operator, which batch, what its code said."""

from __future__ import annotations

import re
from itertools import pairwise

from pyspark.errors import StreamingQueryException

from sluicegate.errors import SluicegateError
from sluicegate.spark.edges.spoiled import EdgeSpoiled

_ERROR = re.compile(r"(?:Caused by: )?(?:[\w.$]*[.$])?([A-Za-z_]\w*)(?::\s*(.*))?")
_FRAME = re.compile(r"\s+\S")
_SPARKS_OWN = "=== Streaming Query ==="
_MOST = 300
_SPOILED = re.compile(r"\bEdgeSpoiled: (.+)")
"""Python's class and the jar's have one name, and their text is one line."""


class OperatorFailed(SluicegateError):
    """An operator's batch failed, and failed again when it was tried again."""

    exit_code = 1

    def __init__(self, operator: str, batch: int | None, why: str) -> None:
        super().__init__(
            f"operator {operator!r} failed at batch {batch}: {why}; nothing is lost: mend its code and start again in "
            "the same folder, it goes on with that batch"
        )


def told(problem: StreamingQueryException) -> str:
    """What the user's code said, or else Spark's own first line.

    An error stands where a traceback's indented lines end, Python's or Java's; the last one is the innermost: Spark
    puts the worker's traceback after its own, Java its causes after their effects.
    """
    lines = str(problem).partition(_SPARKS_OWN)[0].splitlines()
    ends = (line for before, line in pairwise(lines) if _FRAME.match(before))
    errors = [match for line in ends if (match := _ERROR.fullmatch(line))]
    if errors:
        name, text = errors[-1][1], (errors[-1][2] or "").strip()
        return f"{name}: {text}"[:_MOST] if text else name
    return next((line.strip() for line in lines if line.strip()), "no reason given")[:_MOST]


def spoiled(problem: object) -> EdgeSpoiled | None:
    """The file that is missing or was changed, where that is what stopped a query: no try can help then."""
    found = _SPOILED.findall(str(problem))
    return EdgeSpoiled(found[-1].strip()) if found else None


def slow_start(why: str) -> bool:
    """Whether a Python process of Spark's was not ready in time: nothing that the operator's code could help.

    >>> slow_start("Python worker failed to connect back."), slow_start("ValueError: connect back")
    (True, False)
    """
    return "Python worker failed to connect back" in why or "CANNOT_OPEN_SOCKET" in why
