"""Classifies operator failures; each is one line: operator, batch, error, who or what is at fault, and the remedy."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from pathlib import Path

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import SparkSession

from sluicegate.errors import EnvironmentLacks, SluicegateError
from sluicegate.runlog.redacted import redacted
from sluicegate.spark.edges.spoiled import EdgeSpoiled
from sluicegate.spark.session import spark_is_gone

_ERROR = re.compile(r"(?:Caused by: )?(?:[\w.$]*[.$])?([A-Za-z_]\w*)(?::\s*(.*))?")
_FRAME = re.compile(r"\s+\S")
_OUR_FILES = re.compile(r'File "[^"]*sluicegate/(?:spark/edges|runlog)/')
_SPARKS_OWN = "=== Streaming Query ==="
_MOST = 300
ROW_NOTE = "sluicegate: at "
"""Prefix of the exception note that names the failing row."""
_ROW = re.compile(rf"^{ROW_NOTE}(row \d+ of task \d+)$", re.MULTILINE)
_SPOILED = re.compile(r"\bEdgeSpoiled: (.+)")
"""Matches the Python and the Java exception: they share the class name, and their text is one line."""


class Fault(StrEnum):
    """What is at fault: decides whether a retry can help, and which remedy is shown."""

    CODE = "code"
    OURS = "refused"
    """Sluicegate itself refused something; its text says what and what to do."""
    SPOILED = "spoiled"
    """A file of an edge or a checkpoint is missing or was changed; the text says which and how to restore it."""
    FOLDER = "folder"
    SOURCE = "source"
    """A file of a native Spark source cannot be read, or has other columns."""
    GONE = "gone"
    """A Kafka source no longer has rows from where this pipeline is to read on."""
    SERVICE = "service"
    MACHINE = "machine"

    @property
    def most_tries(self) -> int | None:
        """Tries with the same error before the operator stops; ``None``: it is retried forever.

        Seven tries take 15 s: a shorter outage of a service never stops an operator, whatever its client raises. A
        broker that has just started may say for a moment that rows are gone.
        """
        return {Fault.CODE: 7, Fault.GONE: 7, Fault.OURS: 3, Fault.FOLDER: 3, Fault.SOURCE: 3, Fault.SPOILED: 1}.get(
            self
        )

    @property
    def remedy(self) -> str:
        return {
            Fault.CODE: "nothing is lost: fix its code and start again in the same folder, it resumes with that batch",
            Fault.OURS: "it resumes with that batch once that is done and the pipeline is started again",
            Fault.SPOILED: "nothing else is at fault",
            Fault.FOLDER: (
                "a file of the pipeline's folder is missing or damaged, the operator's code is not at fault: restore "
                "the folder from a copy and start again, or start in a new folder"
            ),
            Fault.SOURCE: (
                "a file of its source is not as its schema says: replace or repair that file and start again in the "
                "same folder, nothing is lost"
            ),
            Fault.GONE: (
                "its topic was made anew, or deleted rows before they were read: nothing is skipped; bring them back, "
                "or start in a new folder, or set the source's option failOnDataLoss to false to go on without them"
            ),
            Fault.SERVICE: (
                "a service that it calls does not answer: restore that service and start again in the same folder, "
                "nothing is lost"
            ),
            Fault.MACHINE: (
                "the machine lacks something (disk space, memory, a file): fix that and start again in the same "
                "folder, nothing is lost"
            ),
        }[self]


class OperatorFailed(SluicegateError):
    """An operator has stopped: a retry cannot help, or did not help within the retry limit."""

    exit_code = 1

    def __init__(self, operator: str, batch: int | None, why: str, fault: Fault = Fault.CODE, place: str = "") -> None:
        """``place`` says where the rows of that batch are, to find the one that the code fails on."""
        where = f" (its rows: {place})" if place and fault is Fault.CODE else ""
        super().__init__(f"operator {operator!r} failed at batch {batch}: {why}{where}; {fault.remedy}")
        self.operator = operator
        if fault is Fault.MACHINE:
            self.exit_code = 3


@dataclass(frozen=True, slots=True)
class Failure:
    """The error in one line, and what is at fault."""

    why: str
    fault: Fault

    def like(self, why: str) -> bool:
        """Whether this is the same error as ``why``, ignoring numbers such as addresses and times."""
        return _without_numbers(self.why) == _without_numbers(why)


ENDED = Failure("its query ended by itself", Fault.MACHINE)


def failure_of(problem: StreamingQueryException, folder: Path) -> Failure:
    """The failure behind the exception of a query, for the pipeline in ``folder``."""
    if (lost := spoiled(problem)) is not None:
        return Failure(str(lost), Fault.SPOILED)
    lines = _lines(problem)
    errors = list(_errors(lines))
    why, outside = told(problem), _file_outside(lines, folder)
    if any(map(_GONE_SAYS.search, lines)):
        which = next((f" ({match[0].strip()})" for line in lines if (match := _GONE_WHERE.search(line))), "")
        return Failure(redacted(f"rows are not in Kafka any more{which}")[:_MOST], Fault.GONE)
    if outside is not None:
        return Failure(f"{why} (reading {outside})", Fault.SOURCE)
    return Failure(why, _fault(lines, errors, why, folder))


def _file_outside(lines: list[str], folder: Path) -> str | None:
    """The file that Spark could not read or parse, if it lies outside the pipeline's folder."""
    found = [match[1] for line in lines if (match := _READING.search(line))]
    return found[-1] if found and not Path(found[-1]).is_relative_to(folder) else None


def told(problem: Exception) -> str:
    """The innermost error of an exception, as the user's code raised it, else Spark's own first line.

    An error line follows a traceback's indented lines (Python or Java); the last one is the innermost: Spark appends
    the worker's traceback to its own, Java prints causes after their effects.
    """
    lines = _lines(problem)
    errors = list(_errors(lines))
    if errors:
        name, text = errors[-1]
        rows = _ROW.findall("\n".join(lines))
        where = f" ({rows[-1]})" if rows else ""
        return (redacted(f"{name}: {text}")[:_MOST] if text else name) + where
    return redacted(next((line.strip() for line in lines if line.strip()), "no reason given"))[:_MOST]


def spoiled(problem: object) -> EdgeSpoiled | None:
    """The ``EdgeSpoiled`` error (a missing or changed file) in an exception, if any; a retry cannot help then."""
    found = _SPOILED.findall(str(problem))
    return EdgeSpoiled(found[-1].strip()) if found else None


def ended_by(problem: Exception, spark: SparkSession) -> SluicegateError | None:
    """The one line for an exception that ends a run: a file, Spark that is gone, or what Spark said; else ``None``."""
    if isinstance(problem, Py4JError | PySparkException | OSError) or spoiled(problem):
        return spoiled(problem) or spark_is_gone(spark) or _spark_failed(problem)
    return spark_is_gone(spark)


def _spark_failed(problem: Exception) -> EnvironmentLacks | None:
    if isinstance(problem, OSError):
        return None
    return EnvironmentLacks(f"Spark failed ({told(problem)}): start again in the same folder, nothing is lost")


def is_a_rows_fault(problem: BaseException) -> bool:
    """Whether an error of a user function may be caused by the row, not by a service, the machine or the code.

    >>> [is_a_rows_fault(one) for one in (ValueError("unavailable"), KeyError("id"), TypeError("None"))]
    [True, True, True]
    >>> [is_a_rows_fault(one) for one in (TimeoutError(), MemoryError(), RuntimeError("it said 503"), NameError("x"))]
    [False, False, False, False]
    """
    chain: BaseException | None = problem
    seen = set[int]()
    while chain is not None and id(chain) not in seen:
        seen.add(id(chain))
        if isinstance(chain, OSError | MemoryError | ImportError | NameError | SyntaxError):
            return False
        told = _SERVICES.search(type(chain).__name__) or _SERVICE_SAYS.search(str(chain))
        if told and not isinstance(chain, _OF_VALUES):  # the text of these may quote the row, so it is no evidence
            return False
        chain = chain.__cause__ or chain.__context__
    return True


def _lines(problem: Exception) -> list[str]:
    return str(problem).partition(_SPARKS_OWN)[0].splitlines()


def _errors(lines: list[str]) -> Iterator[tuple[str, str]]:
    """Name and text of every error of the chain, outermost first."""
    ends = (line for before, line in pairwise(lines) if _FRAME.match(before))
    for line in ends:
        if match := _ERROR.fullmatch(line):
            yield match[1], (match[2] or "").strip()


_SURE = frozenset(
    (
        *("AttributeError", "TypeError", "NameError", "UnboundLocalError", "SyntaxError", "IndentationError"),
        *("ImportError", "ModuleNotFoundError", "NotImplementedError", "RecursionError", "ZeroDivisionError"),
        *("ArithmeticException", "AnalysisException", "ParseException"),
    )
)
"""Errors that the code causes, whatever their text mentions."""
_SERVICES = re.compile(
    "connect|timeout|timedout|unavailable|socket|gaierror|refused|brokenpipe|network(?!x)|unknownhost|noroute|throttl|"
    "toomanyrequests|ratelimit|transient|operationalerror|interfaceerror|http|urlerror|ssl(?:error|exception)|kafka|"
    "broker|servicedown",
    re.IGNORECASE,
)
_SERVICE_SAYS = re.compile(
    r"connection (?:was |is |has been )?(?:refused|reset|closed|aborted|lost|failed)|(?:not|fail\w*) (?:to )?connect|"
    r"timed? ?out|temporarily|try again|unavailable|too many requests|(?:http|status|code|said)\W+(?:429|50[234])\b|"
    r"50[234] (?:bad|service|gateway)|server closed|unreachable|no route to|service not known|deadlock",
    re.IGNORECASE,
)
_MACHINES = re.compile(
    r"(?:OS|IO|Memory|Permission|FileNotFound|BlockingIO|Interrupted|OutOfMemory|FileSystem|FS)(?:Error|Exception)"
)
_MACHINE_SAYS = re.compile(
    r"No space left|Cannot allocate memory|Too many open files|worker failed to connect back|CANNOT_OPEN_SOCKET|"
    r"\[Errno (?:5|13|30|116|122)\]|IOException: Input/output error|\(Permission denied\)|AccessDeniedException|"
    r"Read-only file system|Disk quota exceeded|Stale file handle|"
    r"ExecutorLost|Executor heartbeat timed out|executor \S+ (?:is )?(?:lost|exited|decommissioned|removed)|"
    r"FetchFailed|Could not find block|(?:Job|Stage) \d+ cancelled|SparkContext was shut ?down"
)
"""Errno: EIO, EACCES, EROFS, ESTALE, EDQUOT: the disk is at fault, and the files are there once it works again."""
_DAMAGE_SAYS = re.compile(
    r"not a Parquet file|FAILED_READ_FILE|CANNOT_LOAD_STATE_STORE|CANNOT_READ_STATE|Incomplete log file|"
    r"Malformed log|state store.*(?:missing|corrupt|checksum)|checksum",
    re.IGNORECASE,
)
_STATE_SAYS = re.compile(r"CANNOT_LOAD_STATE_STORE|StateStoreErrors\$\.cannotLoad")
"""Searched in all lines: for torn state the innermost error is only an unexpected end of file."""
_OF_VALUES = (ValueError, LookupError, TypeError, ArithmeticError, AttributeError, AssertionError)
_READING = re.compile(r"FAILED_READ_FILE.*? while reading file (?:file:/*(?=/))?(\S+?)\.?(?:\s|$)")
_GONE_SAYS = re.compile(r"KAFKA_DATA_LOSS|data may have been lost because they are not available in Kafka")
_GONE_WHERE = re.compile(
    r"(?:Added partition|Could not read|Cannot find|Partitions?|Starting offset) (?:[^.;]|[.](?=\S))*"
)
"""How Spark's reasons begin; the lines around them are the same for all."""
_CRASHED = "Python worker exited unexpectedly"


def _fault(lines: list[str], errors: list[tuple[str, str]], why: str, folder: Path) -> Fault:
    said = " ".join([*(f"{name}: {text}" for name, text in errors), why])
    names = {name for name, _ in errors}
    if _MACHINE_SAYS.search(said):
        return Fault.MACHINE
    if why.partition(":")[0] in _of_ours():
        return Fault.OURS
    if (
        any(map(_STATE_SAYS.search, lines))
        or _DAMAGE_SAYS.search(said)
        or str(folder) in said
        or any(map(_OUR_FILES.search, _last_traceback(lines)))
    ):
        return Fault.FOLDER
    if _CRASHED in said or (errors and errors[-1][0] in _SURE):
        return Fault.CODE
    if any(map(_SERVICES.search, names)) or _SERVICE_SAYS.search(said):
        return Fault.SERVICE
    return Fault.MACHINE if any(map(_MACHINES.fullmatch, names)) else Fault.CODE


def _last_traceback(lines: list[str]) -> list[str]:
    """The frames of the innermost Python error."""
    starts = [place for place, line in enumerate(lines) if line.startswith("Traceback ") or "Traceback (" in line]
    return lines[starts[-1] :] if starts else []


def _of_ours() -> set[str]:
    found, todo = set[str](), [SluicegateError]
    while todo:
        kind = todo.pop()
        found.add(kind.__name__)
        todo += kind.__subclasses__()
    return found


def _without_numbers(text: str) -> str:
    return re.sub(r"0x[0-9a-fA-F]+|\d+", "0", text)
