"""Faults by the hundred: applications and attached queries in turn, a line of JSON a run, and the page made of them.

    python benchmarks/chaos.py [--minutes 60] [--seed 0] [--seconds 600] [--at-once 2] [--only a,b] [--faults a,b]
                               [--anew] [--page]

Lines are added to benchmarks/results/chaos.jsonl, each when its run has ended, and docs/reliability.md is written from
all of them then (``--page``: only that), so that whoever stops it loses the runs under way alone. What runs on the
machine besides makes recoveries longer; each line says how busy it was. Exits with 1 where any run was not exact, broke
an invariant, or did not recover.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from chaos_page import reliability_page
from sluicegate.errors import SluicegateError
from sluicegate.spark.cluster.standalone import Cluster

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "chaos.jsonl"
PAGE = ROOT / "docs" / "reliability.md"
APPS = ("wordcount", "data_clean", "page_view", "chain", "top_n", "grep", "unique_visitor")
ATTACHED = ("attach:counts", "attach:first", "attach:windows", "attach:kafka")
DISK_MB = "300"
"""Of the small disk that an application's folder has for itself, where one can be mounted."""
ON_A_CLUSTER = "cluster:wordcount"
ON_NAMESPACES = "netns:wordcount"
"""On two nodes that can be cut off; for root, with iproute2."""
ON_POSTGRES = "postgres"
ORDER = (
    *(name for pair in zip(ATTACHED, APPS, strict=False) for name in pair),
    ON_A_CLUSTER,
    *((ON_NAMESPACES,) if os.geteuid() == 0 and shutil.which("ip") else ()),
    ON_POSTGRES,
    *APPS[len(ATTACHED) :],
)
RATE_PER_S = "40"
"""Low, so that recovering is not working off a backlog on two busy cores."""
LEAST_S = 60.0
"""With less time left no run is begun."""
RUNNING: set[subprocess.Popen[str]] = set()
STOPPED = threading.Event()


def one(name: str, seconds: int, seed: int, faults: str = "all") -> dict[str, object]:
    """One run of the command, as its JSON document."""
    with tempfile.TemporaryDirectory(prefix="sluicegate-cluster-") as home:
        if name == ON_A_CLUSTER:
            cluster = Cluster(Path(home) / "cluster")
            cluster.up(2, cores=2, memory="1g")
            try:
                where = ("--master", f"cluster:{cluster.folder}", "--executors", "2:3")
                return _called(("wordcount", *where, "--rate", RATE_PER_S), seconds, seed, faults)
            finally:
                cluster.down()
        if name == ON_NAMESPACES:
            words = ("wordcount", "--master", "netns", "--executors", "2:2", "--rate", RATE_PER_S)
            return _called(words, seconds, seed, faults)
        disk = ("--disk", DISK_MB) if os.geteuid() == 0 else ()
        words = (name, "--master", "local[2]", *(() if name in ATTACHED else ("--rate", RATE_PER_S, *disk)))
        return _called(words, seconds, seed, faults)


def without_places(text: str) -> str:
    """A text without the folders of this machine: paths begin in the folder of the run, others are a name alone.

    >>> without_places("no run/a in /tmp/sluicegate-chaos-x1/run/a/b.json (cwd=file:/any/where/benchmarks)")
    'no run/a in run/a/b.json (cwd=benchmarks)'
    >>> without_places("spark://127.0.0.1:7077 at 40 rows/s, /any/where/python")
    'spark://127.0.0.1:7077 at 40 rows/s, python'
    """
    inside = re.sub(r"[^\s\"']*/sluicegate-chaos-[^/\s\"']+/", "", text)
    return re.sub(r"(?<![\w.:/-])(?:file:/*)?/(?:[^\s/\"'(),]+/)+", "", inside)


def _called(words: tuple[str, ...], seconds: int, seed: int, faults: str) -> dict[str, object]:
    command = [str(Path(sys.executable).with_name("sluicegate")), "chaos", *words]
    command += ["--seconds", str(seconds), "--seed", str(seed), "--faults", faults, "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, process_group=0)
    RUNNING.add(process)
    began_s = time.monotonic()
    out, said = process.communicate()
    RUNNING.discard(process)
    if not out.strip():
        said = without_places(said.strip()[-300:])
        return {"app": words[0], "seed": seed, "faults": [], "broken": [f"no answer: {said}"]}
    found: dict[str, object] = json.loads(without_places(out))
    found["master"] = str(found["master"]).partition(":")[0]
    took_s = round(time.monotonic() - began_s)
    return {
        **found,
        "took_s": took_s,
        "at_s": round(time.time()),
        "load": round(os.getloadavg()[0], 1),
        "cores": os.cpu_count(),
    }


@dataclass(slots=True)
class Lanes:
    """Some runs at a time, one after the other in each lane; the line of every run that ended is kept at once."""

    given: argparse.Namespace
    until_s: float
    begun: int = 0
    good: bool = True
    turn: threading.Lock = field(default_factory=threading.Lock)

    def lane(self) -> None:
        names = self.given.only.split(",") if self.given.only else ORDER
        while (left_s := self.until_s - time.monotonic()) > LEAST_S and not STOPPED.is_set():
            with self.turn:
                name, seed = names[self.begun % len(names)], self.given.seed + self.begun
                self.begun += 1
            try:
                line = one(name, min(self.given.seconds, round(left_s)), seed, self.given.faults)
            except (SluicegateError, OSError, ValueError) as problem:  # the other runs go on
                line = {"app": name, "seed": seed, "faults": [], "broken": [f"no answer: {problem}"]}
            if not STOPPED.is_set():  # or it was broken off
                with self.turn:
                    self.keep(name, line)

    def keep(self, name: str, line: dict[str, object]) -> None:
        faults = line["faults"] if isinstance(line["faults"], list) else []
        recovered = all(fault["recovered_s"] is not None for fault in faults)
        self.good = self.good and recovered and line.get("answer_exact") is True and not line["broken"]
        with self.given.results.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        write_page(self.given.results, self.given.page_file)
        pace = f"{60 * len(faults) / took:.1f} a minute, " if (took := float(str(line.get("took_s") or 0))) else ""
        said = f"{len(faults)} faults, {pace}exact: {line.get('answer_exact')}, broken: {line['broken']}"
        print(name, line["seed"], said, flush=True)


def write_page(results: Path, page: Path) -> None:
    lines = [json.loads(line) for line in results.read_text(encoding="utf-8").splitlines()]
    page.write_text(reliability_page(lines), encoding="utf-8")


def broken_off(number: int, frame: object) -> None:
    """Whoever stops this program stops the runs too, as Ctrl-C would: they unmount and end what they started."""
    STOPPED.set()
    for process in list(RUNNING):
        process.send_signal(signal.SIGINT)


def main() -> int:
    asked = argparse.ArgumentParser()
    asked.add_argument("--minutes", type=float, default=60.0)
    asked.add_argument("--seed", type=int, default=0)
    asked.add_argument("--seconds", type=int, default=600)
    asked.add_argument("--at-once", type=int, default=2)
    asked.add_argument("--only", default="")
    asked.add_argument("--faults", default="all")
    asked.add_argument("--results", type=Path, default=RESULTS)
    asked.add_argument("--page-file", type=Path, default=PAGE)
    asked.add_argument("--anew", action="store_true", help="begin a new set of lines; the old one is kept beside it")
    asked.add_argument("--page", action="store_true")
    given = asked.parse_args()
    given.results.parent.mkdir(parents=True, exist_ok=True)
    if given.anew and given.results.exists():
        given.results.replace(given.results.with_suffix(".old"))
    if given.page:
        write_page(given.results, given.page_file)
        return 0
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, broken_off)
    lanes = Lanes(given, time.monotonic() + 60.0 * given.minutes)
    threads = [threading.Thread(target=lanes.lane) for _ in range(given.at_once)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return 0 if lanes.good else 1


if __name__ == "__main__":
    sys.exit(main())
