"""A run's folder as the runtime leaves it, written by hand: a load that triples and falls back, in three moves."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

BEGAN_S = 1_790_000_000.0
Line = dict[str, Any]
_NODES = (("read+price+count", "events", "count", 8), ("rank", "count", "rank", 4), ("merge", "rank", "merge", 1))


def load_per_s(at_s: float) -> float:
    return 300.0 + 600.0 * max(0.0, min((at_s - 40.0) / 10.0, (80.0 - at_s) / 10.0, 1.0))


def processors(at_s: float) -> dict[str, int]:
    first = 2 if at_s < 44 else 5 if at_s < 82 else 3 if at_s < 94 else 2
    return {"read+price+count": first, "rank": 1, "merge": 1}


def tick(at_s: float) -> Line:
    came, running = load_per_s(at_s), processors(at_s)
    mean_s = 2.0 + came / 600.0 + 0.3 * math.sin(at_s) + (2.0 if 44 <= at_s <= 46 else 0.0)
    steps = [load_per_s(at_s + 2.0 * i) for i in range(1, 6)]
    return {
        "at_s": BEGAN_S + at_s,
        "arrivals_per_s": came,
        "throughput_per_s": came,
        "backlog_rows": came * 1.5,
        "sojourn": {"mean_s": mean_s, "p50_s": 0.9 * mean_s, "p95_s": 1.5 * mean_s, "p99_s": None} if at_s else None,
        "running": running,
        "pace_s": dict.fromkeys(running, 0.4),
        "refusals": [{"rule": "window", "why": "read+price+count: 3 wanted, but 5 were within the last 6 s"}],
        "predicted_mean_s": 2.2 + came / 700.0,
        "forecast": {
            "step_s": 2.0,
            "mean_per_s": steps,
            "low_per_s": [0.9 * s for s in steps],
            "high_per_s": [1.15 * s for s in steps],
            "level": 0.9,
        },
        "executors": 2,
        "nodes": [],
        "operators": {name: _operator(name, came, k) for name, k in running.items()},
    }


def _operator(name: str, came: float, k: int) -> Line:
    first = name.startswith("read")
    return {
        "arrivals_per_s": came if first else 60.0,
        "queue_rows": came if first else None,
        "sojourn_s": 1.1,
        "utilisation": min(came / (260.0 * k), 1.0) if first else 0.2,
        "service_per_s": 260.0 if first else 5000.0,
        "arrival_scv": 1.0,
        "service_scv": 1.0,
        "batch": {"overhead_s": 0.42, "per_task_s": 0.03, "commit_s": 0.03} if first else None,
    }


def decision(number: int, at_s: float, have: int, want: int) -> Line:
    moved = {"operator": "read+price+count", "have": have, "want": want, "reason": f"{have} -> {want} at 88% busy"}
    return {
        "number": number,
        "at_s": BEGAN_S + at_s,
        "running": {**processors(at_s), "read+price+count": want},
        "rescales": [moved],
        "reasons": [
            f"load: {load_per_s(at_s):.0f} rows/s, the 95% forecast of the next 4 s (now {load_per_s(at_s):.0f})",
            f"read+price+count: {want} processors carry it <well>",
        ],
        "refusals": [{"rule": "window", "why": "rank: 1 wanted, but 2 were within the last 6 s"}],
        "arrivals_per_s": load_per_s(at_s),
        "predicted_mean_s": 2.9,
    }


DECISIONS = (decision(1, 44.0, 2, 5), decision(2, 82.0, 5, 3), decision(3, 94.0, 3, 2))


def write_run(folder: Path, *, ended: bool = True, pid: int | None = None) -> Path:
    """The folder of such a run; of one that goes on there is no outcome."""
    folder.mkdir(parents=True, exist_ok=True)
    _write(folder / "pipeline.json", _pipeline())
    _write(folder / "control.json", _control(os.getpid() if pid is None else pid))
    _lines(folder / "ticks.jsonl", [tick(2.0 * i) for i in range(61)])
    _lines(folder / "decisions.jsonl", list(DECISIONS))
    _lines(folder / "fleet.jsonl", [_fleet(0.0, 1), _fleet(46.0, 3), _fleet(100.0, 1)])
    _write(folder / "what_if.json", {"at_s": BEGAN_S + 118.0, "points": [_point(75.0 * i) for i in range(1, 25)]})
    if ended:
        _write(folder / "outcome.json", _outcome())
    return folder


def attach_to(folder: Path, *, active: bool) -> Path:
    """Make it the run of an attached application, without an outcome; ``active``: its queries are marked as running."""
    told = json.loads((folder / "pipeline.json").read_text())
    nodes = [{**node, "active": active} for node in told["nodes"]]
    _write(folder / "pipeline.json", {**told, "attached": True, "nodes": nodes})
    (folder / "outcome.json").unlink(missing_ok=True)
    return folder


def _pipeline() -> Line:
    nodes = [
        {
            "name": name,
            "reads": [reads],
            "writes": [writes],
            "stateful": True,
            "key_groups": groups,
            "terminal": name == "merge",
            "source": None,
        }
        for name, reads, writes, groups in _NODES
    ]
    return {"name": "shop", "sources": ["events"], "kept": ["merge"], "nodes": nodes}


def _control(pid: int) -> Line:
    told: Line = {"app": "shop", "policy": "sluicegate", "slo": ["mean=5s"], "bounds": {"mean": 5.0}, "budget": 16}
    return told | {"interval_s": 2.0, "dry_run": False, "started_s": BEGAN_S, "pid": pid}


def _fleet(at_s: float, executors: int) -> Line:
    return {
        "at_s": BEGAN_S + at_s,
        "what": f"executors -> {executors}: the processors need them",
        "executors": executors,
        "nodes": executors,
    }


def _point(rate_per_s: float) -> Line:
    needed = {"read+price+count": math.ceil(rate_per_s / 200.0), "rank": 1, "merge": 1}
    told: Line = {"rate_per_s": rate_per_s, "processors": needed, "total": sum(needed.values()), "why": ""}
    return told | {"mean_s": 3.0 if rate_per_s < 1600 else None, "feasible": rate_per_s < 1600}


def _outcome() -> Line:
    return {
        "app": "shop",
        "policy": "sluicegate",
        "goal": {"mean": 5.0},
        "rows_in": 60_300,
        "rows_out": 610,
        "lost": 0,
        "duplicated": 0,
        "answer_exact": True,
        "answer_note": "",
        "slo_kept": 0.967,
        "slot_seconds": 560.0,
        "slot_seconds_static_peak": 980.0,
        "rescales": 3,
        "mean_s": 2.7,
        "p95_s": 4.4,
        "seconds": 122.5,
        "decisions": list(DECISIONS),
        "queries": ["read, price, count: one query: no edge to count's shuffle; saves 0.27 s at least"],
        "restarts": [],
        "began_s": BEGAN_S,
    }


def _write(path: Path, document: Line) -> None:
    path.write_text(json.dumps(document), encoding="utf-8")


def _lines(path: Path, lines: list[Line]) -> None:
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
