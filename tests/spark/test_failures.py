from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException

from sluicegate.spark.pipeline.failures import Failure, Fault, OperatorFailed, failure_of, told
from sluicegate.spark.pipeline.recovery import Recovery
from sluicegate.spark.session import spark_is_gone

OURS = """An exception was raised by the Python Proxy. Return Message: Traceback (most recent call last):
  File "clientserver.py", line 644, in _call_proxy
    return_value = getattr(self.pool[obj_id], method)(*params)
                   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
  File "captured.py", line 262, in deco
    raise converted from None
"""
SPARKS = """
=== Streaming Query ===
Identifier: p.op [id = 1, runId = 2]
Current State: ACTIVE
Logical Plan:
  +- something
ValueError: not this one
"""
IN_A_WORKER = (
    OURS
    + """pyspark.errors.exceptions.captured.PythonException: An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "app.py", line 55, in work
    raise shop.errors.Unpaid("order 7 is not paid")
shop.errors.Unpaid: order 7 is not paid
second line of the message
"""
)
BY_SPARK = (
    OURS
    + """pyspark.errors.exceptions.captured.ArithmeticException: [DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012
== SQL (line 1, position 6) ==
cast(1/(id-1) as long)
     ^^^^^^^^
"""
)

BY_JAVA = (
    OURS
    + """py4j.protocol.Py4JJavaError: An error occurred while calling o533.parquet.
: org.apache.spark.SparkException: Job aborted due to stage failure
\tat org.apache.spark.scheduler.DAGScheduler.abortStage(DAGScheduler.scala:1)
Caused by: org.apache.hadoop.fs.FSError: java.io.IOException: No space left on device
\tat org.apache.hadoop.fs.RawLocalFileSystem.write(RawLocalFileSystem.java:545)
\t... 41 more
Caused by: java.io.IOException: No space left on device
\tat java.base/java.io.FileOutputStream.writeBytes(Native Method)
\t... 42 more
"""
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (IN_A_WORKER, "Unpaid: order 7 is not paid"),
        (BY_SPARK, "ArithmeticException: [DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012"),
        (BY_JAVA, "IOException: No space left on device"),
        (
            OURS + "sluicegate.errors.BadInput: operator 'o' sent rows to 'x'\n",
            "BadInput: operator 'o' sent rows to 'x'",
        ),
        (OURS + "OSError: [Errno 28] No space left on device\n", "OSError: [Errno 28] No space left on device"),
        (OURS + "AssertionError\n", "AssertionError"),
        ("Python worker failed to connect back.\n", "Python worker failed to connect back."),
        ("", "no reason given"),
    ],
)
def test_a_failure_is_told_by_what_the_innermost_code_said(text: str, expected: str) -> None:
    assert told(StreamingQueryException(message=text + SPARKS)) == expected


def test_a_long_message_is_cut() -> None:
    assert len(told(StreamingQueryException(message=OURS + "ValueError: " + "x" * 5000))) == 300


def test_the_error_names_operator_batch_and_reason_in_one_line() -> None:
    text = str(OperatorFailed("count", 7, "ValueError: bad"))
    assert text.startswith("operator 'count' failed at batch 7: ValueError: bad; nothing is lost")
    assert "\n" not in text


WORKER = OURS + "pyspark.errors.PythonException: An exception was thrown:\nTraceback (most recent call last):\n"
IN_CODE = '  File "app.py", line 5, in work\n    call()\n'
REFUSED_THEN = (
    WORKER
    + IN_CODE
    + """ConnectionRefusedError: [Errno 111] Connection refused

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "app.py", line 7, in work
    raise shop.Unpriced("no price") from problem
shop.Unpriced: no price
"""
)
TORN = (
    OURS
    + """Traceback (most recent call last):
  File "/opt/lib/sluicegate/spark/edges/manifest.py", line 60, in from_json
    read = json.loads(text)
  File "/usr/lib/python3.11/json/decoder.py", line 355, in raw_decode
    raise JSONDecodeError("Expecting value", s, err.value) from None
json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)
"""
)
DISK = (
    OURS
    + """Traceback (most recent call last):
  File "/opt/lib/sluicegate/runlog/files.py", line 39, in write_whole
    with owner_only_file(draft).open("w", encoding="utf-8") as file:
{}
"""
)
GONE = (
    OURS
    + """py4j.protocol.Py4JJavaError: An error occurred while calling o533.parquet.
\tat org.apache.spark.scheduler.DAGScheduler.abortStage(DAGScheduler.scala:1)
Caused by: java.io.FileNotFoundException: File file:/runs/shop/edges/lines/data/3-ab/part-0.parquet does not exist
\tat org.apache.hadoop.fs.RawLocalFileSystem.open(RawLocalFileSystem.java:545)
"""
)


LOST = """[STREAM_FAILED] Query [id = 1] terminated with exception: [KAFKA_DATA_LOSS.PARTITION_OFFSET_CHANGED] \
Some data may have been lost because they are not available in Kafka any more;
either the data was aged out by Kafka or the topic may have been deleted before all the data in the
topic was processed.
If you don't want your streaming query to fail on such cases, set the source option failOnDataLoss to false.
Reason:
Partition orders-0 offset was changed from 90 to 12.
"""


def test_a_topic_that_was_made_anew_is_neither_the_code_nor_a_service_that_is_away() -> None:
    """Spark plans a batch up to the smaller offset and never gets over it: trying on for ever would not help."""
    found = failure_of(StreamingQueryException(message=LOST + SPARKS), Path("/runs/shop"))
    assert found == Failure(
        "rows are not in Kafka any more (Partition orders-0 offset was changed from 90 to 12)", Fault.GONE
    )
    assert "failOnDataLoss" in str(OperatorFailed("read", 7, found.why, found.fault))


class Unheard:
    """A session whose Java process runs, and no socket to it opens."""

    def __init__(self, problem: OSError) -> None:
        self.sparkContext, self._gateway, self.proc, self._problem = self, self, None, problem

    @property
    def _jsc(self) -> object:
        raise self._problem


def test_too_many_open_files_do_not_mean_that_java_has_ended() -> None:
    """The pipeline would end; instead its operators run again once there are handles."""
    told = [spark_is_gone(Unheard(OSError(n, os.strerror(n)))) for n in (errno.EMFILE, errno.ECONNREFUSED)]  # type: ignore[arg-type]
    assert told[0] is None
    assert "does not answer" in str(told[1])


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (WORKER + IN_CODE + "TypeError: 'NoneType' object is not iterable\n", Fault.CODE),
        (WORKER + IN_CODE + "shop.Unpaid: order 7\n", Fault.CODE),
        (WORKER + IN_CODE + "TypeError: timeout must be a number\n", Fault.CODE),
        (WORKER + IN_CODE + "KeyError: 503\n", Fault.CODE),
        (WORKER + IN_CODE + "shop.OverPassLimit: the parcel was lost, the order cancelled\n", Fault.CODE),
        (BY_SPARK, Fault.CODE),
        (WORKER + IN_CODE + "ConnectionRefusedError: [Errno 111] Connection refused\n", Fault.SERVICE),
        (WORKER + IN_CODE + "TimeoutError: timed out\n", Fault.SERVICE),
        (WORKER + IN_CODE + "socket.gaierror: [Errno -2] Name or service not known\n", Fault.SERVICE),
        (WORKER + IN_CODE + "psycopg.OperationalError: server closed the connection\n", Fault.SERVICE),
        (WORKER + IN_CODE + "RuntimeError: the service said 503\n", Fault.SERVICE),
        (REFUSED_THEN, Fault.SERVICE),
        (BY_JAVA, Fault.MACHINE),
        (OURS + "OSError: [Errno 28] No space left on device\n", Fault.MACHINE),
        (
            DISK.format("OSError: [Errno 30] Read-only file system: '/runs/shop/edges/a/.3'"),
            Fault.MACHINE,
        ),
        (DISK.format("OSError: [Errno 5] Input/output error"), Fault.MACHINE),
        (DISK.format("PermissionError: [Errno 13] Permission denied: '/runs/shop/plan.json'"), Fault.MACHINE),
        (DISK.format("OSError: [Errno 122] Disk quota exceeded"), Fault.MACHINE),
        (GONE.replace("does not exist", "(Permission denied)"), Fault.MACHINE),
        (WORKER + IN_CODE + "shop.Unpaid: Permission denied\n", Fault.CODE),
        (WORKER + IN_CODE + "MemoryError\n", Fault.MACHINE),
        ("Python worker failed to connect back.\n", Fault.MACHINE),
        (TORN, Fault.FOLDER),
        (GONE, Fault.FOLDER),
        (OURS + "sluicegate.errors.BadInput: edge 'a' lacks manifest 3\n", Fault.OURS),
    ],
)
def test_whose_fault_a_failure_is(text: str, fault: Fault) -> None:
    assert failure_of(StreamingQueryException(message=text + SPARKS), Path("/runs/shop")).fault is fault


@pytest.mark.parametrize("fault", [fault for fault in Fault if fault is not Fault.CODE])
def test_only_code_is_to_be_mended_in_the_code(fault: Fault) -> None:
    assert "fix its code" not in str(OperatorFailed("count", 7, "it fails", fault))
    assert "fix its code" in str(OperatorFailed("count", 7, "it fails", Fault.CODE))


def test_a_service_is_tried_for_ever_with_growing_pauses(tmp_path: Path) -> None:
    recovery, now_s, pauses = Recovery(tmp_path / "failures.json", {}), 100.0, list[float]()
    for _ in range(200):
        known = recovery.failed("call", 3, Failure("TimeoutError: timed out", Fault.SERVICE), now_s)
        assert known.next_try_s is not None
        pauses.append(known.next_try_s - now_s)
        now_s = known.next_try_s
    assert pauses[:8] == [0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0]
    assert set(pauses[8:]) == {30.0}
    recovery.succeeded("call", now_s)
    assert not recovery.failing


def test_the_users_limit_ends_it(tmp_path: Path) -> None:
    recovery = Recovery(tmp_path / "failures.json", {"call": 10.0})
    failure = Failure("TimeoutError: timed out", Fault.SERVICE)
    assert not recovery.failed("call", 3, failure, 100.0).stopped
    assert not recovery.failed("call", 3, failure, 109.0).stopped
    assert recovery.failed("call", 3, failure, 110.0).stopped
    assert "restore that service" in str(recovery.stopped["call"])


def test_the_same_error_at_the_same_batch_stops_and_others_do_not(tmp_path: Path) -> None:
    recovery = Recovery(tmp_path / "failures.json", {})

    def tries(operator: str, whys: list[str], batches: list[int]) -> list[bool]:
        given = zip(whys, batches, strict=True)
        return [recovery.failed(operator, batch, Failure(why, Fault.CODE), 1.0).stopped for why, batch in given]

    assert tries("same", [f"KeyError: 0x{n:x}" for n in range(7)], [1] * 7) == [False] * 6 + [True]
    assert not any(tries("other", ["KeyError: a", "IndexError: b"] * 5, [1] * 10))
    assert not any(tries("moves", ["KeyError: a"] * 10, list(range(10))))


def test_an_operator_that_is_down_without_a_failure_of_its_own_is_started(tmp_path: Path) -> None:
    assert Recovery(tmp_path / "failures.json", {}).is_due("count", 0.0)
