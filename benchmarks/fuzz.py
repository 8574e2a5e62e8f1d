"""Malformed input for everything that is parsed: a value or one line of error, never a trace, never a hang.

    python benchmarks/fuzz.py [INPUTS] [SEED] [PARSER...]

Each input is a sound one that was spoiled: bytes flipped, cut, repeated or put in, values replaced by hostile ones. The
same seed gives the same inputs, for some of the parsers too. Exits with 1 where a parser raised anything but an error
of ours, or took too long.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from sluicegate.cli.app import run
from sluicegate.config.capacity_file import read_capacity
from sluicegate.config.topology_file import read_profile, read_topology
from sluicegate.config.trace_file import read_trace
from sluicegate.config.typed import duration_s, goal_from, pairs_from
from sluicegate.dashboard.guard import LOOPBACK, Access, Guard
from sluicegate.dashboard.record import Record
from sluicegate.dashboard.routes import application
from sluicegate.dashboard.watching import News, Watching
from sluicegate.domain.births import Births
from sluicegate.errors import SluicegateError
from sluicegate.report.run_page import run_page
from sluicegate.runlog.batch_log import BatchRecord, Tail, records_of
from sluicegate.runlog.failures import read_failures
from sluicegate.runlog.layout import Layout
from sluicegate.runlog.plan_file import OperatorPlan, PlanFile, PlanInForce
from sluicegate.runlog.run_record import read_record
from sluicegate.spark.act.fleet import read_fleet
from sluicegate.spark.attach.application import Application, ApplicationGround, queries_in
from sluicegate.spark.edges.folder import FolderEdge
from sluicegate.spark.edges.manifest import DataFile, Manifest
from sluicegate.spark.edges.offsets import check_checkpoint_files, offset_of
from sluicegate.spark.observe.node_loads import read_nodes
from sluicegate.spark.pipeline.graph import Node, RunningGraph, read_graph

HANGS_S = 5
"""Of processor time: others may use the machine too."""
WAITS_S = 60
"""For whoever waits without using any."""
_HOSTILE = (
    b"1e999", b"-1", b"NaN", b"Infinity", b"null", b"true", b'""', b"[]", b"{}", b'"\\ud800"', b"\x00", b"\xff\xfe",
    b"99999999999999999999999999", b"9" * 5000, b"[" * 3000, b'{"a":' * 1500, b"\n", b"\r\n", b'"', b"'", b"=", b",",
    b"../../etc/passwd", b"%s%n", b"1e-400", b"-0.0", b"\xf0\x9f\x92\xa9", b"[[operators]]\n", b"2026-01-01", b"1_000",
)  # fmt: skip


def spoiled(text: bytes, rng: random.Random) -> bytes:
    """A sound input with one to four things wrong."""
    for _ in range(rng.randint(1, 4)):
        at, to = sorted((rng.randrange(len(text) + 1), rng.randrange(len(text) + 1)))
        way = rng.randrange(7)
        if way == 0 and text:
            place = rng.randrange(len(text))
            text = text[:place] + bytes([text[place] ^ (1 << rng.randrange(8))]) + text[place + 1 :]
        elif way == 1:
            text = text[:at]
        elif way == 2:
            text = text[:at] + text[to:]
        elif way == 3:
            text = text[:at] + rng.choice(_HOSTILE) + text[at:]
        elif way == 4:
            text = text[:to] + text[at:to] * rng.randint(1, 3) + text[to:]
        elif way == 5:
            text = _replaced(text, rng)
        else:
            text = text[:at] + rng.randbytes(rng.randint(1, 30)) + text[at:]
    return text


def _replaced(text: bytes, rng: random.Random) -> bytes:
    """One number or quoted word, at random, by something hostile."""
    ends = b' ,:=}]\n"'
    starts = [i for i, c in enumerate(text) if chr(c).isalnum() and (i == 0 or text[i - 1] in ends)]
    if not starts:
        return text
    start = rng.choice(starts)
    end = next((i for i in range(start, len(text)) if text[i] in ends), len(text))
    return text[:start] + rng.choice(_HOSTILE) + text[end:]


@dataclass(frozen=True, slots=True)
class Target:
    """A parser: a sound input, and what is done with one in a folder of its own."""

    sound: bytes
    parse: Callable[[bytes, Path], object]


def _file(name: str, read: Callable[[Path], object]) -> Callable[[bytes, Path], object]:
    def parse(text: bytes, folder: Path) -> object:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text)
        return read(path)

    return parse


def _text(read: Callable[[str], object]) -> Callable[[bytes, Path], object]:
    return lambda text, folder: read(text.decode("utf-8", errors="replace"))


TOPOLOGY = b"""name = "linear"
mode = "micro-batch"
[[operators]]
name = "parse"
service_rate_per_s = 310.0
arrival_scv = 1.0
stateful = false
[[operators]]
name = "count"
service_rate_per_s = 120.0
[[edges]]
from = "source"
to = "parse"
[[edges]]
from = "parse"
to = "count"
selectivity = 1.5
"""
PROFILE = b"""task = "xml_parse"
[[points]]
threads = 1
rate_per_s = 310.0
cpu = 0.95
memory = 0.24
[[points]]
threads = 2
rate_per_s = 400.0
"""
CAPACITY = (
    b"[[points]]\nmachines = 3\nrate_per_s = 5200.0\nsd_per_s = 260.0\n[[points]]\nmachines = 6\nrate_per_s = 9e3"
)
TRACE = b"time,rate\n" + b"".join(b"2026-01-01T00:%02d:00Z,%d.5\n" % (m, 100 + m) for m in range(12))
GRAPH = RunningGraph("shop", ("lines",), (Node("count", ("lines",), ("count",), True, 4, True, None),), ("count",))
_TICK = {
    "at_s": 1000.0, "arrivals_per_s": 10.0, "running": {"count": 2}, "sojourn": {"mean_s": 1.0, "p95_s": 2.0},
    "operators": {"count": {"queue_rows": 3.0}}, "pace_s": {"count": 0.0}, "nodes": [{"name": "a", "cpu": 0.5}],
    "refusals": [{"rule": "window", "why": "too soon"}], "forecast": {"mean": [1.0]},
}  # fmt: skip
_DECISION = {
    "number": 1, "at_s": 1001.0, "rescales": [{"operator": "count", "have": 1, "want": 2}],
    "reasons": ["count: 1 -> 2"], "processors": {"count": 2},
}  # fmt: skip
_BATCH = BatchRecord(1, 10.0, 11.0, 1.5, 7, 8, 2, 9.5, Births(((9.0, 7.0),)), True, 0.75, (0.5, 0.25), (4, 3))
_PLAN = PlanInForce(3, {"count": OperatorPlan(4, 0.5, (1.0, 2.0), groups=(0, 1, 2, 3), hosts=("a", "b"))}, 2, 1)
_MANIFEST = Manifest(0, (DataFile("data/0-aa/part-0.parquet", 3, 100, "00000000"),), 0, Births(((9.0, 3.0),)), 10.0)
_EVENTS = b"".join(
    json.dumps(event, separators=(",", ":")).encode() + b"\n"
    for event in (
        {"Event": "SparkListenerApplicationStart", "App Name": "a", "App ID": "1", "Timestamp": 1000, "User": "u"},
        {"Event": "SparkListenerExecutorAdded", "Timestamp": 1, "Executor ID": "", "Executor Info": {"Total Cores": 2}},
        {
            "Event": "org.apache.spark.sql.streaming.StreamingQueryListener$QueryStartedEvent",
            "id": "q", "runId": "r", "name": "counts", "timestamp": "2026-01-01T00:00:00.000Z",
        },
        {
            "Event": "SparkListenerJobStart", "Job ID": 0, "Submission Time": 1002, "Stage IDs": [0],
            "Properties": {"sql.streaming.queryId": "q", "streaming.sql.batchId": "0"},
        },
        {
            "Event": "SparkListenerStageCompleted",
            "Stage Info": {
                "Stage ID": 0, "Number of Tasks": 2, "Submission Time": 1003, "Completion Time": 1009,
                "Accumulables": [{"Name": "internal.metrics.executorRunTime", "Value": 5}],
            },
        },
        {
            "Event": "org.apache.spark.sql.streaming.StreamingQueryListener$QueryProgressEvent",
            "progress": {
                "id": "q", "runId": "r", "name": "counts", "timestamp": "2026-01-01T00:00:00.000Z", "batchId": 0,
                "numInputRows": 10, "durationMs": {"triggerExecution": 100, "addBatch": 50}, "stateOperators": [],
                "sources": [{"numInputRows": 10, "startOffset": None, "endOffset": {"t": {"0": 10}}}],
            },
        },
    )
)  # fmt: skip


def _run_folder(changed: str) -> Callable[[bytes, Path], object]:
    """The record of a run with one of its files changed: what status, report and the dashboard read."""

    def parse(text: bytes, folder: Path) -> object:
        whole = {
            "pipeline.json": GRAPH.to_json().encode(),
            "control.json": b'{"policy": "sluicegate", "bounds": {"mean": 3.0}, "started_s": 999.0, "app": "shop"}',
            "ticks.jsonl": json.dumps(_TICK).encode() + b"\n",
            "decisions.jsonl": json.dumps(_DECISION).encode() + b"\n",
            changed: text,
        }
        for name, content in whole.items():
            (folder / name).write_bytes(content)
        with contextlib.suppress(SluicegateError):
            record = read_record(folder)
            told = (record.app, record.policy, record.bounds, record.operators, record.began_s, record.broken)
            run_page(record)
            assert told
        with contextlib.suppress(SluicegateError):
            seen = Record(folder)
            while seen.look():
                pass
        return _command("status", str(folder), "--json")

    return parse


def _command(*words: str) -> int:
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        code = run(list(words))
    if code not in (0, 1, 2, 3):
        raise AssertionError(f"exit code {code}")
    return code


def _manifest(text: bytes, folder: Path) -> object:
    edge = FolderEdge(folder)
    path = edge.manifest_path(0)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text)
    return edge.whole()


def _checkpoint(text: bytes, folder: Path) -> object:
    for name in ("offsets", "commits"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "metadata").write_bytes(b'{"id":"0a1b2c3d-0000-4000-8000-00000000000a"}')
    (folder / "commits" / "0").write_bytes(b'v1\n{"nextBatchWatermarkMs":0}')
    (folder / "offsets" / "0").write_bytes(text)
    check_checkpoint_files(folder)
    return None


class _Dashboard:
    """The dashboard's application without a socket; one for all requests."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="sluicegate-fuzz-"))
        (self.folder / "pipeline.json").write_text(GRAPH.to_json())
        (self.folder / "ticks.jsonl").write_text(json.dumps(_TICK) + "\n")
        record = Record(self.folder)
        while record.look():
            pass
        self._app = Guard(application(Watching(record, News(), None)), Access(LOOPBACK, None))

    def __call__(self, text: bytes, folder: Path) -> object:
        head, _, rest = text.partition(b"\n")
        path, _, query = head.partition(b"?")
        headers = [tuple(line.partition(b": ")[::2]) for line in rest.split(b"\n") if line]
        scope: dict[str, object] = {
            "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "GET", "scheme": "http",
            "path": path.decode("latin-1"), "raw_path": path, "query_string": query, "headers": headers,
            "server": ("127.0.0.1", 1), "client": ("127.0.0.1", 2), "root_path": "",
        }  # fmt: skip
        if path.rstrip(b"/") == b"/api/events":
            return None  # never ends, by design
        return asyncio.run(self._ask(scope))

    async def _ask(self, scope: dict[str, object]) -> int:
        status: list[int] = []
        asked = False

        async def receive() -> dict[str, object]:
            nonlocal asked
            if asked:
                await asyncio.sleep(HANGS_S)  # whoever waits for the end of the connection
                return {"type": "http.disconnect"}
            asked = True
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: Mapping[str, object]) -> None:
            if message["type"] == "http.response.start":
                status.append(int(str(message["status"])))

        await self._app(scope, receive, send)
        if not status or status[0] >= 500:
            raise AssertionError(f"answered {status}")
        return status[0]


def targets() -> dict[str, Target]:
    tick, decision = json.dumps(_TICK).encode() + b"\n", json.dumps(_DECISION).encode() + b"\n"
    failing = b'{"operators": [{"operator": "count", "batch": 1, "since_s": 1.0, "tries": 1, "alike": 1, "why": "x", '
    return {
        "topology": Target(TOPOLOGY, _file("t.toml", read_topology)),
        "profile": Target(PROFILE, _file("p.toml", read_profile)),
        "capacity": Target(CAPACITY, _file("c.toml", read_capacity)),
        "trace": Target(TRACE, _file("t.csv", read_trace)),
        "plan": Target(_PLAN.to_json().encode(), _file("plan.json", lambda p: PlanFile(p).read().of("count"))),
        "slo": Target(b"mean=2s,p95=500ms,on_time=0.995", _text(lambda text: goal_from([text]))),
        "duration": Target(b"1.5min", _text(duration_s)),
        "allocation": Target(b"parse=3, pi=4", _text(lambda text: pairs_from(text, "allocation"))),
        "pipeline": Target(GRAPH.to_json().encode(), _file("pipeline.json", lambda p: read_graph(Layout(p.parent)))),
        "manifest": Target(_MANIFEST.to_json().encode(), _manifest),
        "offsets": Target(b'v1\n{"batchWatermarkMs":0}\n' + offset_of("lines", 3).encode(), _checkpoint),
        "batches": Target(
            _BATCH.to_json().encode() + b"\n", _file("b.jsonl", lambda p: list(records_of(Tail(p).lines())))
        ),
        "nodes": Target(
            b'{"at_s": 5.0, "executors": 2, "nodes": [{"name": "a", "cpu": 0.5, "memory": 0.1, "io": 0.0}]}',
            _file("nodes.json", lambda p: read_nodes(p, 6.0, {"count": 2})),
        ),
        "fleet": Target(
            b'{"at_s": 5.0, "shape": {"cores": 1, "least": 1, "most": 4}, "executors": [], "nodes": [], "requested": 2'
            b', "requested_at_s": 4.0, "problem": ""}',
            _file("fleet.json", lambda p: read_fleet(p, 6.0)),
        ),
        "attached: application": Target(
            b'{"name": "a", "settings": {"slo": "p95=5s", "executors": "1:4"}, "touches": true, "no_executors": null}',
            _file("application.json", lambda p: Application.read(Layout(p.parent))),
        ),
        "attached: queries": Target(
            b'{"nodes": [{"name": "q", "active": true, "stateful": true, "key_groups": 4, "reads": [], "writes": []}]}',
            _file("pipeline.json", lambda p: queries_in(Layout(p.parent))),
        ),
        "attached: nodes": Target(
            b'{"at_s": 5.0, "slots": 2, "executors": 1, "executor_cores": 2, "busy": {"q": true}, "loads": []}',
            _file("nodes.json", lambda p: ApplicationGround.read(Layout(p.parent), 6.0)),
        ),
        "failures": Target(
            failing + b'"fault": "service", "next_try_s": 2.0}]}',
            _file("f.json", lambda p: [one.line(5.0) for one in read_failures(p)]),
        ),
        "run: pipeline": Target(GRAPH.to_json().encode(), _run_folder("pipeline.json")),
        "run: ticks": Target(tick * 2, _run_folder("ticks.jsonl")),
        "run: decisions": Target(decision * 2, _run_folder("decisions.jsonl")),
        "run: control": Target(b'{"policy": "drs", "bounds": {"mean": 3.0}, "pid": 1}', _run_folder("control.json")),
        "run: outcome": Target(
            b'{"app": "shop", "goal": {"mean": 3.0}, "began_s": 999.0, "seconds": 60, "slo_kept": 0.9, "lost": 0}',
            _run_folder("outcome.json"),
        ),
        "event log": Target(_EVENTS, _file("log", lambda p: _command("advise", str(p), "--json"))),
        "http": Target(b"/api/series?from=1&to=2&points=100\nhost: localhost\norigin: http://localhost", _Dashboard()),
    }


class Hang(BaseException):
    """A parser that takes too long; no parser catches it."""


def _too_long(number: int, frame: FrameType | None) -> None:
    raise Hang


@contextlib.contextmanager
def _limited() -> Iterator[None]:
    signal.setitimer(signal.ITIMER_PROF, HANGS_S)
    signal.setitimer(signal.ITIMER_REAL, WAITS_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)


def fuzz(target: Target, name: str, inputs: int, seed: int, folder: Path) -> list[str]:
    """What went wrong, a line each, with the number that gives the input again."""
    wrong: list[str] = []
    for expired in (signal.SIGALRM, signal.SIGPROF):
        signal.signal(expired, _too_long)
    with contextlib.suppress(Exception):  # without a limit: what is compiled at the first use is no hang
        target.parse(target.sound, folder)
    for number in range(inputs):
        text = spoiled(target.sound, random.Random(f"{seed} {name} {number}"))
        try:
            with _limited(), contextlib.suppress(SluicegateError):
                target.parse(text, folder)
        except Hang:
            wrong.append(f"{name} {number}: took more than {HANGS_S} s")
        except Exception as problem:
            wrong.append(f"{name} {number}: {type(problem).__name__}: {problem}"[:300])
    return wrong


def main(inputs: int, seed: int, only: list[str]) -> int:
    found, folder, began_s = targets(), Path(tempfile.mkdtemp(prefix="sluicegate-fuzz-")), time.monotonic()
    each, wrong = -(-inputs // len(found)), list[str]()
    for name, target in ((name, target) for name, target in found.items() if not only or name in only):
        shutil.rmtree(folder)
        folder.mkdir()
        at_s = time.monotonic()
        new = fuzz(target, name, each, seed, folder)
        wrong += new
        print(f"{name:22} {each:7,} inputs  {len(new):5} wrong  {time.monotonic() - at_s:6.1f} s", flush=True)
    shutil.rmtree(folder)
    for kind, times in Counter((line.rsplit(" ", 1)[0], line.split(": ", 1)[1][:90]) for line in wrong).most_common(9):
        print(f"{times:6} x {kind[1]}")
    for line in wrong[:40]:
        print(line)
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    parsers = len(only or found)
    print(
        f"{each * parsers:,} inputs over {parsers} parsers, seed {seed}: {len(wrong)} traces or hangs; "
        f"{time.monotonic() - began_s:.0f} s, peak memory {peak_mb:.0f} MB"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    given = sys.argv[1:]
    sys.exit(main(int(given[0]) if given else 100_000, int(given[1]) if len(given) > 1 else 0, given[2:]))
