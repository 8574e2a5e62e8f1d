"""Nexmark on Spark in local mode, plain, attached and as pipelines, in turns; every sink compared with the answer.

    python benchmarks/nexmark/run.py [--queries q0,q5] [--events N] [--ways plain,attached,pipeline] [--slo p95=10s]

Three Spark drivers live side by side: a plain one, one started with the words of `sluicegate conf`, and one that runs
the queries as pipelines, taken apart into operators with edges between them; while one runs a query the others are
idle. Each query is run once to warm up and then ``--turns`` times, who begins changes by the turn. A batch is a file
of each stream in all three ways; a pipeline's first reader gets them by its feeds, which is part of its time.
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
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # run as a script: where the package is

import results
from cpu import command, cpu_s, tree
from nexmark.answers import Answers, Row
from nexmark.events import write
from nexmark.pipelines import OUT, pipeline_of
from nexmark.queries import QUERIES, Nexmark
from sluicegate.errors import SluicegateError
from sluicegate.runlog.plan_file import PlanFile
from sluicegate.spark.edges.kept import read_stream
from sluicegate.spark.pipeline.runtime import start
from sluicegate.spark.session import spark_session

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
WAYS = ("plain", "attached", "pipeline")


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


def run_pipeline(
    spark: SparkSession,
    name: str,
    events: Path,
    out: Path,
    k: Sequence[int] = (2,),
    timeout_s: float = 600.0,
) -> None:
    """The same as a pipeline, from start to stop; its rows stay in ``out``. With several k, operators get them in turn.

    A batch takes one file of every stream, and one batch of the operator before it.
    """
    with start(pipeline_of(name), spark, out / "run") as running:
        nodes = [node.name for node in running.graph.nodes]
        plan = running.plan()
        PlanFile(running.layout.plan).change({n: replace(plan.of(n), processors=k[0], most_rows=1) for n in nodes})
        feeds = {source: running.feed(source) for source in running.graph.sources}
        for number, file in enumerate(sorted(path.name for path in (events / "bid").iterdir())):
            for kind, feed in feeds.items():
                feed.append(pq.read_table(events / kind / file))
            if len(k) > 1:
                running.drain(timeout_s)
                running.set_processors(dict.fromkeys(nodes, k[(number + 1) % len(k)]))
        running.drain(timeout_s)


def rows_of(spark: SparkSession, out: Path) -> list[Row]:
    """The rows of a sink, sorted; times in milliseconds."""
    return rows_in(spark.read.parquet(str(out / "rows")))


def rows_of_pipeline(spark: SparkSession, out: Path) -> list[Row]:
    return rows_in(read_stream(spark, out / "run", OUT))


def rows_in(found: DataFrame) -> list[Row]:
    rows: list[Row] = sorted(zip(*map(_values, found.toArrow().columns), strict=True))
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
    parser.add_argument("--turns", type=int, default=2, help="measured runs; 0: only whether rows are exact")
    parser.add_argument("--ways", default=",".join(WAYS))
    parser.add_argument("--slo", default="", help="the promise of the attached queries; none: it only observes")
    parser.add_argument("--driver", choices=WAYS, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.driver:
        drive(asked)
        return
    if unknown := [name for name in asked.queries.split(",") if name not in QUERIES]:
        parser.error(f"no query {', '.join(unknown)}: there are {', '.join(QUERIES)}")
    ways = asked.ways.split(",")
    if unknown := [way for way in ways if way not in WAYS]:
        parser.error(f"no way {', '.join(unknown)}: there are {', '.join(WAYS)}")
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
                        results.record("nexmark", **asdict(run))
                        runs.append(run)
        finally:
            for driver in drivers.values():
                driver.communicate()  # its input ends, and so does it
    return runs


def table(runs: Sequence[Run]) -> str:
    """Medians by query: thousand events a second, processor seconds, and plain over each other way (1 is no loss)."""
    ratios = [f"{way}: {what} ratio" for way in WAYS[1:] for what in ("k/s", "CPU")]
    heads = ["query", "rows", *(f"{way} {what}" for way in WAYS for what in ("k/s", "CPU s")), *ratios]
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    for name in dict.fromkeys(run.query for run in runs):
        of = {way: [run for run in runs if (run.query, run.way) == (name, way)] for way in WAYS}
        wall = {way: statistics.median(run.wall_s for run in found) for way, found in of.items() if found}
        cpu = {way: statistics.median(run.cpu_s for run in found) for way, found in of.items() if found}
        found = next(found for found in of.values() if found)[0]
        cells = [name, f"{found.rows}"]
        for way in WAYS:
            cells += [f"{found.events / wall[way] / 1e3:.1f}", f"{cpu[way]:.2f}"] if way in wall else ["", ""]
        for way in WAYS[1:]:
            cells += [f"{each['plain'] / each[way]:.3f}" if {"plain", way} <= set(each) else "" for each in (wall, cpu)]
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
    spark = session(SETTINGS) if asked.driver == "pipeline" else builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    for line in sys.stdin:
        name, turn = line.split()
        out = folder / f"{name}-{turn}"
        wall, cpu, beside = time.monotonic(), cpu_s(os.getpid()), controller_cpu_s()
        rows: list[Row] = []
        try:
            if asked.driver == "pipeline":
                run_pipeline(spark, name, base / "events", out)
            else:
                run_query(spark, name, base / "events", out)
            took = time.monotonic() - wall, cpu_s(os.getpid()) - cpu, controller_cpu_s() - beside
            rows = rows_of_pipeline(spark, out) if asked.driver == "pipeline" else rows_of(spark, out)
            wrong = difference(rows, answers.of(name))
        except (PySparkException, SluicegateError, TimeoutError) as problem:
            took, wrong = (0.0, 0.0, 0.0), str(problem)[:1000]
        wall_s, used_s, beside_s = (round(one, 3) for one in took)
        told = Run(name, asked.driver, int(turn), asked.events, len(rows), wall_s, used_s, beside_s, wrong)
        print(json.dumps(asdict(told)), flush=True)
    spark.stop()


def session(settings: Mapping[str, str]) -> SparkSession:
    """Of a pipeline: the same sizes, with what sluicegate's edges need."""
    return spark_session(settings["spark.master"], {k: v for k, v in settings.items() if k != "spark.master"})


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


if __name__ == "__main__":
    main()
