"""A run's folder as the controller would have left it: top_n, whose load triples for a while and falls back."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np

BEGAN_S = 1_800_000_000.0
INTERVAL_S = 2.0
OPERATORS = ("read+count", "rank", "merge")
_SERVICE_PER_S = {"read+count": 260.0, "rank": 150.0, "merge": 420.0}
_SELECTIVITY = {"read+count": 1.0, "rank": 0.45, "merge": 0.3}


def write_run(folder: Path, ticks: int = 450, old: bool = False, began_s: float = BEGAN_S) -> Path:
    """``old``: as versions before wrote it, without control, forecasts, nodes and what-if."""
    folder.mkdir(parents=True, exist_ok=True)
    _write(folder / "pipeline.json", pipeline())
    run = SampleRun(began_s)
    for number in range(ticks):
        run.append(folder, number, old)
    (folder / "ticks.jsonl").touch()
    if not old:
        _write(folder / "control.json", control(began_s))
        _write(folder / "what_if.json", what_if(began_s + INTERVAL_S * ticks, run.load(max(ticks - 1, 0))))
        _fleet(folder, began_s)
    return folder


def pipeline() -> dict[str, Any]:
    def node(name: str, reads: str, writes: str, terminal: bool = False) -> dict[str, Any]:
        return {
            "name": name,
            "reads": [reads],
            "writes": [writes],
            "stateful": True,
            "key_groups": 1 if terminal else 16,
            "terminal": terminal,
            "source": None,
        }

    nodes = [
        node("read+count", "events", "counts"),
        node("rank", "counts", "ranked"),
        node("merge", "ranked", "top", terminal=True),
    ]
    return {"name": "top_n", "sources": ["events"], "kept": ["top"], "nodes": nodes}


def control(began_s: float) -> dict[str, Any]:
    return {
        "app": "top_n",
        "policy": "sluicegate",
        "slo": ["mean=5s", "p95=9s"],
        "bounds": {"mean": 5.0, "p95": 9.0},
        "budget": 16,
        "interval_s": INTERVAL_S,
        "dry_run": False,
        "started_s": began_s,
        "pid": 1,
    }


def needed(name: str, rate_per_s: float) -> int:
    return max(math.ceil(rate_per_s * _SELECTIVITY[name] / _SERVICE_PER_S[name] / 0.8), 1)


class SampleRun:
    """Ticks in order: processors follow the load a few looks late, and latency suffers in between."""

    def __init__(self, began_s: float = BEGAN_S) -> None:
        self.began_s = began_s
        self._running = dict.fromkeys(OPERATORS, 1) | {"read+count": 2}
        self._latency_s, self._moves, self._short_looks = 2.4, 0, 0
        self._rng = np.random.default_rng(7)

    def load(self, number: int) -> float:
        share = number % 450 / 450
        rise = 1 / (1 + math.exp(-(share - 0.35) * 400)) - 1 / (1 + math.exp(-(share - 0.75) * 60))
        return 300.0 * (1 + 2 * rise) * (1 + 0.04 * math.sin(number / 9))

    def append(self, folder: Path, number: int, old: bool = False) -> dict[str, Any]:
        at_s, rate_per_s = self.began_s + INTERVAL_S * number, self.load(number)
        arrivals = rate_per_s * float(self._rng.uniform(0.96, 1.04))
        self._decide(folder, at_s, rate_per_s, old)
        load = max(arrivals * _SELECTIVITY[o] / _SERVICE_PER_S[o] / self._running[o] for o in OPERATORS)
        rest_s = 2.0 + 1.2 * min(load, 1.0) ** 4 + (2.2 * (load - 1) * 8 if load > 1 else 0.0)
        self._latency_s += 0.3 * (rest_s * float(self._rng.uniform(0.92, 1.08)) - self._latency_s)
        tick = self._tick(at_s, arrivals) | ({} if old else self._new_keys(at_s, rate_per_s, number))
        _append(folder / "ticks.jsonl", tick)
        return tick

    def _decide(self, folder: Path, at_s: float, rate_per_s: float, old: bool) -> None:
        want = {name: needed(name, rate_per_s) for name in OPERATORS}
        self._short_looks = self._short_looks + 1 if want != self._running else 0
        if self._short_looks < 4:
            return
        self._short_looks, self._moves = 0, self._moves + 1
        rescales = [
            {"operator": o, "have": k, "want": want[o], "reason": f"{k} -> {want[o]} for {rate_per_s:,.0f} rows/s"}
            for o, k in self._running.items()
            if k != want[o]
        ]
        grows = sum(want.values()) > sum(self._running.values())
        self._running = want
        decision = {
            "at_s": at_s,
            "running": want,
            "rescales": rescales,
            "reasons": [
                f"{rate_per_s:,.0f} rows/s are coming; {sum(want.values())} processors give 2.6 s, 5 s is promised",
                "the gain over 60 s is worth a pause of 0.5 s" if grows else "fewer keep the promise as well",
            ],
            "refusals": [] if grows else [{"rule": "dead band", "why": "merge 1 -> 1 is no change"}],
        }
        new = {"number": self._moves, "arrivals_per_s": rate_per_s, "predicted_mean_s": 2.6}
        _append(folder / "decisions.jsonl", decision if old else decision | new)

    def _tick(self, at_s: float, arrivals: float) -> dict[str, Any]:
        mean_s = self._latency_s
        return {
            "at_s": at_s,
            "arrivals_per_s": arrivals,
            "throughput_per_s": arrivals * float(self._rng.uniform(0.95, 1.02)),
            "backlog_rows": arrivals * mean_s * 0.6,
            "sojourn": {"mean_s": mean_s, "p50_s": 0.9 * mean_s, "p95_s": 1.6 * mean_s, "p99_s": 2.0 * mean_s},
            "running": dict(self._running),
            "pace_s": dict.fromkeys(OPERATORS, 0.4),
            "refusals": [{"rule": "dead band", "why": "rank 2 -> 2 is within 5%"}] if int(at_s) % 60 < 20 else [],
            "operators": {name: self._operator(name, arrivals, mean_s) for name in OPERATORS},
        }

    def _operator(self, name: str, arrivals: float, mean_s: float) -> dict[str, Any]:
        rate_per_s = arrivals * _SELECTIVITY[name]
        return {
            "arrivals_per_s": rate_per_s,
            "queue_rows": rate_per_s * mean_s * 0.2,
            "sojourn_s": mean_s / len(OPERATORS),
            "utilisation": min(rate_per_s / _SERVICE_PER_S[name] / self._running[name], 1.0),
            "service_per_s": _SERVICE_PER_S[name],
            "arrival_scv": 1.1,
            "service_scv": 0.7,
            "batch": {"overhead_s": 0.2, "per_task_s": 0.02},
        }

    def _new_keys(self, at_s: float, rate_per_s: float, number: int) -> dict[str, Any]:
        ahead = [self.load(number + step) for step in range(1, 16)]
        width = [0.05 + 0.012 * step for step in range(15)]
        total = sum(self._running.values())
        return {
            "predicted_mean_s": 2.6,
            "forecast": {
                "step_s": INTERVAL_S,
                "mean_per_s": ahead,
                "low_per_s": [rate * (1 - w) for rate, w in zip(ahead, width, strict=True)],
                "high_per_s": [rate * (1 + w) for rate, w in zip(ahead, width, strict=True)],
                "level": 0.9,
            },
            "executors": math.ceil(total / 2),
            "nodes": [
                {
                    "name": f"worker-{n}",
                    "cpu": min(0.25 + 0.06 * total + 0.05 * math.sin(number / 7 + n), 1.0),
                    "memory": 0.42 + 0.05 * n,
                    "io": 0.08 + 0.02 * n,
                    "hosts": {"rank": 1, "merge": 1} if n else {"read+count": self._running["read+count"]},
                }
                for n in range(1 if total < 6 else 2)
            ],
        }


def what_if(at_s: float, rate_per_s: float) -> dict[str, Any]:
    return {"at_s": at_s, "points": [_point(rate_per_s * 0.25 * 20 ** (n / 23)) for n in range(24)]}


def _point(rate_per_s: float) -> dict[str, Any]:
    plan = {name: needed(name, rate_per_s) for name in OPERATORS}
    total = sum(plan.values())
    feasible = total <= 16
    why = "below the 5 s promised" if feasible else f"{total} processors are needed, the budget is 16"
    mean_s = 1.9 + 0.05 * total if feasible else None
    return {
        "rate_per_s": rate_per_s,
        "processors": plan,
        "total": total,
        "mean_s": mean_s,
        "feasible": feasible,
        "why": why,
    }


def _fleet(folder: Path, began_s: float) -> None:
    _append(folder / "fleet.jsonl", {"at_s": began_s, "what": "2 executors asked for", "executors": 2, "nodes": 1})
    what = "a second node for 8 processors"
    _append(folder / "fleet.jsonl", {"at_s": began_s + 330, "what": what, "executors": 5, "nodes": 2})


def _append(path: Path, document: dict[str, Any]) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(document) + "\n")


def _write(path: Path, document: dict[str, Any]) -> None:
    path.write_text(json.dumps(document), encoding="utf-8")
