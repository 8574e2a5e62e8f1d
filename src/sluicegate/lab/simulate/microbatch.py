"""Simulates operators that run in micro-batches, by the law of Spark's batches.

A batch takes all rows that are queued when it starts. With n rows on k tasks it lasts

    b(n) = o + c k + n/(k mu)          times noise of mean 1

Its rows are readable downstream ``commit_s`` before its end. The next batch starts at once if rows are queued, or, with
a pace T, T after the previous one began or was due (at once if that has passed), as on Spark: after a batch that was
late, by up to T, the next comes that much earlier. A due batch includes all rows published at the same moment. What a
batch publishes is sent on row by row (``routing.emit``).
"""

from __future__ import annotations

import math

from sluicegate.domain import BatchCosts
from sluicegate.lab.simulate.agenda import schedule
from sluicegate.lab.simulate.compiled import compiled, inlined
from sluicegate.lab.simulate.records import COMMITTING, DUE, IDLE, WORKING, Net
from sluicegate.lab.simulate.routing import emit
from sluicegate.lab.simulate.stations import plan_batch, time_of

SPARK_BATCH = BatchCosts(overhead_s=0.137, per_task_s=0.029, commit_s=0.04)
"""Default costs of an operator: fitted on Spark (R^2 0.992); the commit is the one fsync after publishing."""


@inlined
def batch_event(net: Net, server: int, now: float) -> bool:
    """Start, publish or commit a batch; ``False`` if the row pool ran out and the event must be repeated."""
    phase = net.slots[server]["phase"]
    if phase == DUE:
        _start(net, server, now)
    elif phase == WORKING:
        return _publish(net, server, now)
    else:
        _commit(net, server, now)
    return True


@compiled
def _start(net: Net, server: int, now: float) -> None:
    slot = net.slots[server]
    node = net.nodes[slot["node"]]
    node["waited"] += node["waiting"] * (now - node["since"])
    node["since"] = now
    node["waiting"] = 0
    noise = time_of(net, slot["node"])
    slot["size"] = slot["waiting"]
    slot["work"] = slot["size"] * node["per_row_s"] * (1.0 if node["steady_work"] else noise)
    slot["tasks"] = node["servers"]
    slot["batch"] = slot["head"]
    slot["waiting"] = 0
    slot["started"] = now
    slot["paced_from"] = max(slot["paced_from"] + node["pace_s"], now - node["pace_s"])
    slot["ends"] = now + node["overhead_s"] * noise + slot["work"]
    slot["phase"] = WORKING
    schedule(net.agenda, server, max(now, slot["ends"] - node["commit_s"]))


@compiled
def _publish(net: Net, server: int, now: float) -> bool:
    slot = net.slots[server]
    node = net.nodes[slot["node"]]
    totals = net.totals[0]
    while slot["batch"]:
        if totals["spare"] < totals["most_copies"]:
            return False
        row = slot["batch"]
        slot["batch"] = net.rows[row]["next"]
        sojourn = now - net.rows[row]["entered"]
        node["sojourn"] += sojourn
        node["done"] += 1
        net.inputs[net.rows[row]["input"]]["total"] += sojourn
        emit(net, slot["node"], server, row, now)
    slot["phase"] = COMMITTING
    schedule(net.agenda, server, slot["ends"])
    return True


@compiled
def _commit(net: Net, server: int, now: float) -> None:
    slot = net.slots[server]
    node = net.nodes[slot["node"]]
    node["busy"] += slot["work"] * slot["tasks"]
    node["batches"] += 1
    node["batch_time"] += now - slot["started"]
    _log(net, server, now)
    slot["phase"] = IDLE
    if slot["waiting"] and slot["open"]:
        plan_batch(net, server, now)
    else:
        schedule(net.agenda, server, math.inf)


@compiled
def _log(net: Net, server: int, now: float) -> None:
    """Log the batch for the observer, if the log has room (without an observer its size is 0)."""
    slot, totals = net.slots[server], net.totals[0]
    if totals["logged"] < net.log.size:
        seen = net.log[totals["logged"]]
        seen["node"] = slot["node"]
        seen["tasks"] = slot["tasks"]
        seen["rows"] = slot["size"]
        seen["duration"] = now - slot["started"]
        seen["work"] = slot["work"] * slot["tasks"]
        totals["logged"] += 1
