from __future__ import annotations

import pytest
from pyspark.errors import StreamingQueryException

from sluicegate.spark.pipeline.failures import OperatorFailed, told

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
