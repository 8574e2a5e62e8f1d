"""Nexmark on Spark in local mode, plain and attached, in turns; every sink compared with the independent answer.

    python benchmarks/nexmark/run.py [--queries q0,q5] [--events N] [--plain] [--attached] [--slo p95=10s]

Two Spark drivers live side by side, one plain and one started with the words of `sluicegate conf`; while one runs a
query the other is idle. Each query is run once to warm up and then ``--turns`` times, who begins changes by the turn.
Wall and processor seconds are from the start of a query until all its rows are written; processor time is that of the
driver and all it started, sluicegate's controller included. A line of JSON a run, and a table of medians at the end.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # run as a script: where the package is

from cpu import command, cpu_s, tree
from nexmark.answers import Answers, Row
from nexmark.events import write
from nexmark.queries import QUERIES, Nexmark

SETTINGS = {
    "spark.master": "local[2]",
    "spark.driver.memory": "1g",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
"""Of both drivers; the attached one has sluicegate's beside them."""
WAYS = ("plain", "attached")


@dataclass(frozen=True, slots=True)
class Run:
    """One query from its start to its end; ``wrong`` says how its rows differ from the answer."""

    query: str
    way: str
    turn: int
    events: int
    rows: int
    wall_s: float
    cpu_s: float
    controller_cpu_s: float
    wrong: str | None


def run_query(spark: SparkSession, name: str, events: Path, out: Path, timeout_s: float = 600.0) -> None:
    """Run a query over all events that there are; its rows go to ``out``/rows as Parquet."""
    writer = QUERIES[name](Nexmark(spark, events)).writeStream.format("parquet").outputMode("append").queryName(name)
    writer = writer.option("path", str(out / "rows")).option("checkpointLocation", str(out / "checkpoint"))
    query = writer.trigger(availableNow=True).start()
    if not query.awaitTermination(int(timeout_s)):
        query.stop()
        raise TimeoutError(f"{name} did not end in {timeout_s:g} s")


def rows_of(spark: SparkSession, out: Path) -> list[Row]:
    """The rows of a sink, sorted; times in milliseconds."""
    table = spark.read.parquet(str(out / "rows")).toArrow()
    rows: list[Row] = sorted(zip(*map(_values, table.columns), strict=True))
    return rows


def difference(rows: Sequence[Row], answer: Sequence[Row]) -> str | None:
    """How a sink differs from the answer, both sorted; ``None`` if it does not.

    >>> difference([(1, 2), (3, 4)], [(1, 2), (3, 5)])
    '2 rows for 2: first difference (3, 4) for (3, 5)'
    """
    if rows == answer:
        return None
    pairs = zip([*rows, None], [*answer, None], strict=False)
    got, wanted = next(((a, b) for a, b in pairs if a != b), (None, None))
    return f"{len(rows)} rows for {len(answer)}: first difference {got} for {wanted}"


def _values(column: pa.ChunkedArray[Any]) -> list[Any]:
    if pa.types.is_timestamp(column.type):
        whole = column.cast(pa.timestamp("ms", tz="UTC"))  # an error if that would lose something
        return whole.cast(pa.int64()).to_pylist()
    return column.to_pylist()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queries", default=",".join(QUERIES))
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--per-batch", type=int, default=10_000, help="events of a micro-batch")
    parser.add_argument("--turns", type=int, default=3, help="measured runs; 0: only whether rows are exact")
    parser.add_argument("--plain", action="store_true", help="only plain, unless --attached is given as well")
    parser.add_argument("--attached", action="store_true", help="only attached, unless --plain is given as well")
    parser.add_argument("--slo", default="", help="the promise of the attached queries; none: it only observes")
    parser.add_argument("--json", type=Path, help="append the lines of JSON here too")
    parser.add_argument("--driver", choices=WAYS, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.driver:
        drive(asked)
        return
    if unknown := [name for name in asked.queries.split(",") if name not in QUERIES]:
        parser.error(f"no query {', '.join(unknown)}: there are {', '.join(QUERIES)}")
    ways = [way for way in WAYS if getattr(asked, way)] or list(WAYS)
    runs = measured(asked, ways)
    print(table([run for run in runs if run.turn and not run.wrong]))
    if any(run.wrong for run in runs):
        sys.exit("rows differ from the answer: see the lines above")


def measured(asked: argparse.Namespace, ways: Sequence[str]) -> list[Run]:
    """All runs; turn 0 is to warm up."""
    runs = []
    with tempfile.TemporaryDirectory(prefix="nexmark-") as base:
        write(Path(base) / "events", asked.events, asked.per_batch)
        drivers = {way: _driver(way, Path(base)) for way in ways}
        try:
            for name in asked.queries.split(","):
                for turn in range(asked.turns + 1):
                    for way in ways if turn % 2 else list(reversed(ways)):
                        run = _ask(drivers[way], name, turn)
                        print(json.dumps(asdict(run)), flush=True)
                        _keep(asked.json, run)
                        runs.append(run)
        finally:
            for driver in drivers.values():
                driver.communicate()  # its input ends, and so does it
    return runs


def table(runs: Sequence[Run]) -> str:
    """Medians by query: thousand events a second, processor seconds, and attached over plain (more is better)."""
    lines = [
        "| query | rows | " + " | ".join(f"{way} k/s | {way} CPU s" for way in WAYS) + " | k/s ratio | CPU ratio |"
    ]
    lines.append("|---" * 8 + "|")
    for name in dict.fromkeys(run.query for run in runs):
        of = {way: [run for run in runs if (run.query, run.way) == (name, way)] for way in WAYS}
        wall = {way: statistics.median(run.wall_s for run in found) for way, found in of.items() if found}
        cpu = {way: statistics.median(run.cpu_s for run in found) for way, found in of.items() if found}
        found = next(found for found in of.values() if found)[0]
        cells = [name, f"{found.rows}"]
        for way in WAYS:
            cells += [f"{found.events / wall[way] / 1e3:.1f}", f"{cpu[way]:.2f}"] if way in wall else ["", ""]
        cells += [f"{each['plain'] / each['attached']:.3f}" if len(each) == 2 else "" for each in (wall, cpu)]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def drive(asked: argparse.Namespace) -> None:
    """A driver: runs the queries that its input names, a line each, and prints what they took."""
    base, answers = Path.cwd(), Answers(asked.events)
    folder = base / asked.driver
    builder = SparkSession.builder.appName(f"nexmark {asked.driver}")
    added = conf(asked.slo, folder / "record") if asked.driver == "attached" else {}
    for key, value in {**SETTINGS, **added}.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    for line in sys.stdin:
        name, turn = line.split()
        out = folder / f"{name}-{turn}"
        wall, cpu, beside = time.monotonic(), cpu_s(os.getpid()), controller_cpu_s()
        rows: list[Row] = []
        try:
            run_query(spark, name, base / "events", out)
            took = time.monotonic() - wall, cpu_s(os.getpid()) - cpu, controller_cpu_s() - beside
            rows = rows_of(spark, out)
            wrong = difference(rows, answers.of(name))
        except (PySparkException, TimeoutError) as problem:
            took, wrong = (0.0, 0.0, 0.0), str(problem)[:1000]
        wall_s, used_s, beside_s = (round(one, 3) for one in took)
        run = Run(name, asked.driver, int(turn), asked.events, len(rows), wall_s, used_s, beside_s, wrong)
        print(json.dumps(asdict(run)), flush=True)
    spark.stop()


def conf(slo: str, record: Path) -> Mapping[str, str]:
    """What attaches an application, as `sluicegate conf` says it."""
    words = [str(Path(sys.executable).with_name("sluicegate")), "conf", "--properties", "--folder", str(record)]
    said = subprocess.run(words + (["--slo", slo] if slo else []), capture_output=True, text=True, check=True).stdout
    return dict(line.split(maxsplit=1) for line in said.splitlines())


def controller_cpu_s() -> float:
    """Of the controller beside this driver."""
    return sum(cpu_s(pid) for pid in tree(os.getpid()) if "sluicegate.spark.attach.controller" in command(pid))


def _driver(way: str, base: Path) -> subprocess.Popen[str]:
    words = [sys.executable, str(Path(__file__).resolve()), *sys.argv[1:], "--driver", way]
    return subprocess.Popen(words, cwd=base, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def _ask(driver: subprocess.Popen[str], name: str, turn: int) -> Run:
    assert driver.stdin is not None
    assert driver.stdout is not None
    driver.stdin.write(f"{name} {turn}\n")
    driver.stdin.flush()
    while line := driver.stdout.readline():
        if line.startswith('{"query"'):
            return Run(**json.loads(line))
    raise RuntimeError(f"the driver ended at {name}: see above")


def _keep(path: Path | None, run: Run) -> None:
    if path is not None:
        with path.open("a", encoding="utf-8") as lines:
            lines.write(json.dumps(asdict(run)) + "\n")


if __name__ == "__main__":
    main()
