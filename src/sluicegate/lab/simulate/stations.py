"""Queues and servers: first come, first served; a free server takes the next row of its queue at once.

An operator has either one queue shared by all its servers (M/M/k and similar) or one queue per server, to which rows
are routed on arrival: in turn (shuffle), or by shares (weighted: at random; spread: evenly). Rows of an operator
that runs in batches wait in one queue for the next batch.

Threads that share a slot slow each other down, by their profiles (model-driven scheduling). A slot's threads of one
operator are a group. With q of them busy the group works at I(q), each thread at I(q)/q, so a full group works at the
rate of its profile. Groups of different operators share the slot's CPU: if their demands C(q) add up to more than the
whole slot, all are slowed by that sum. A row's service time is fixed when its service starts, from the threads busy at
that moment.

    service time = draw x (q / I(q)) x max(1, sum of C over the slot's groups)

With pooled CPU the sum is over all groups of the machine, divided by its slots.
"""

from __future__ import annotations

import math

import numpy as np

from sluicegate.lab.simulate import rng
from sluicegate.lab.simulate.agenda import schedule
from sluicegate.lab.simulate.compiled import compiled, inlined
from sluicegate.lab.simulate.distributions import EXPONENTIAL, draw
from sluicegate.lab.simulate.records import BATCHED, CYCLIC, DUE, IDLE, SPREAD, WEIGHTED, Net


@compiled
def join(net: Net, index: int) -> float:
    """Mark one more thread of a group as busy; return the factor on its service time."""
    group = net.groups[index]
    host = net.hosts[group["host"]]
    busy = group["busy"] + 1
    group["busy"] = busy
    host["demand"] += net.numbers[group["cpu"] + busy] - net.numbers[group["cpu"] + busy - 1]
    slower: float = net.numbers[group["pace"] + busy] * max(host["demand"] / host["slots"], 1.0)
    return slower


@compiled
def leave(net: Net, index: int) -> None:
    """Mark one thread of a group as idle."""
    group = net.groups[index]
    busy = group["busy"]
    net.hosts[group["host"]]["demand"] -= net.numbers[group["cpu"] + busy] - net.numbers[group["cpu"] + busy - 1]
    group["busy"] = busy - 1


GOLDEN = 0.6180339887498949
"""The fractional parts of its multiples fill 0 to 1 evenly (low discrepancy), however many there are."""


@inlined
def time_of(net: Net, index: int) -> float:
    """Draw a gap, a service time or the noise of a batch for this node, of mean 1."""
    node = net.nodes[index]
    if node["kind"] == EXPONENTIAL:
        return rng.exponential(net.streams, index)
    return draw(node["kind"], node["a"], node["b"], node["c"], net.streams, index)


@inlined
def begin(net: Net, server: int, row: int, now: float) -> None:
    """Start serving a row."""
    slot = net.slots[server]
    slot["row"] = row
    slot["started"] = now
    slot["counted"] = now
    service_s = time_of(net, slot["node"]) * net.nodes[slot["node"]]["mean"]
    if slot["group"]:
        service_s *= join(net, slot["group"])
    schedule(net.agenda, server, now + service_s)


@inlined
def account(net: Net, server: int, now: float) -> None:
    """Add a completed service to the totals."""
    slot = net.slots[server]
    node = net.nodes[slot["node"]]
    whole = now - slot["started"]
    node["busy"] += now - slot["counted"]
    node["busy_squares"] += whole * whole
    node["done"] += 1
    if slot["group"]:
        leave(net, slot["group"])


@inlined
def append(net: Net, queue: int, row: int, now: float) -> None:
    """Append a row to a queue."""
    slot = net.slots[queue]
    _count_waiting(net, slot["node"], 1, now)
    net.rows[row]["next"] = 0
    if slot["waiting"] == 0:
        slot["head"] = row
    else:
        net.rows[slot["tail"]]["next"] = row
    slot["tail"] = row
    slot["waiting"] += 1


@inlined
def put_back(net: Net, queue: int, row: int, now: float) -> None:
    """Put a row whose service was aborted at the front of a queue."""
    slot = net.slots[queue]
    _count_waiting(net, slot["node"], 1, now)
    net.rows[row]["next"] = slot["head"] if slot["waiting"] else 0
    if slot["waiting"] == 0:
        slot["tail"] = row
    slot["head"] = row
    slot["waiting"] += 1


@inlined
def take(net: Net, queue: int, now: float) -> int:
    """Remove and return the first row of a non-empty queue."""
    slot = net.slots[queue]
    _count_waiting(net, slot["node"], -1, now)
    row: int = slot["head"]
    slot["head"] = net.rows[row]["next"]
    slot["waiting"] -= 1
    return row


@inlined
def _count_waiting(net: Net, index: int, more: int, now: float) -> None:
    node = net.nodes[index]
    node["waited"] += node["waiting"] * (now - node["since"])
    node["since"] = now
    node["waiting"] += more


@inlined
def queue_for(net: Net, index: int) -> int:
    """Choose the queue for the next row of this operator."""
    node = net.nodes[index]
    first: int = node["first"]
    if node["discipline"] == CYCLIC:
        turn: int = node["turn"]
        node["turn"] = turn + 1 if turn + 1 < node["servers"] else 0
        return first + turn
    if node["discipline"] == WEIGHTED:
        return _by_share(net, index, rng.uniform(net.streams, index))
    if node["discipline"] == SPREAD:
        node["turn"] += 1
        return _by_share(net, index, (node["turn"] * GOLDEN) % 1.0)
    return first


@compiled
def _by_share(net: Net, index: int, u: float) -> int:
    """Find the instance for ``u`` in [0, 1) by bisection over the cumulative shares."""
    node = net.nodes[index]
    low, high = 0, node["servers"] - 1
    while low < high:
        middle = (low + high) >> 1
        if u < net.slots[node["first"] + middle]["share"]:
            high = middle
        else:
            low = middle + 1
    found: int = node["first"] + low
    return found


@inlined
def admit(net: Net, index: int, queue: int, row: int, now: float) -> None:
    """Admit a row to an operator: it is served at once if a server of the queue is free, else it waits."""
    node = net.nodes[index]
    gap = now - node["last_arrival"]
    node["last_arrival"] = now
    node["gap_squares"] += gap * gap
    node["arrivals"] += 1
    net.rows[row]["entered"] = now
    enqueue(net, queue, row, now)


@inlined
def enqueue(net: Net, queue: int, row: int, now: float) -> None:
    """Serve or queue a row that is already counted as arrived."""
    slot = net.slots[queue]
    free = slot["idle"]
    if free:
        slot["idle"] = net.slots[free]["next_idle"]
        begin(net, free, row, now)
        return
    append(net, queue, row, now)
    if net.nodes[slot["node"]]["discipline"] == BATCHED and slot["phase"] == IDLE and slot["open"]:
        plan_batch(net, queue, now)


@inlined
def plan_batch(net: Net, server: int, now: float) -> None:
    """Schedule the next batch: now, or, with a pace, when it is due.

    The start is a separate event even if it is due now, right after all others of that time, so that rows published
    together are in one batch, also those of several operators.
    """
    slot = net.slots[server]
    slot["phase"] = DUE
    at = max(slot["paced_from"] + net.nodes[slot["node"]]["pace_s"], now)
    schedule(net.agenda, server, np.nextafter(at, math.inf))


@inlined
def rest_or_next(net: Net, server: int, now: float) -> None:
    """Let a free server take the next row of its queue, or become idle; a closed one does neither."""
    slot = net.slots[server]
    queue = net.slots[slot["queue"]]
    if slot["open"] and queue["waiting"]:
        begin(net, server, take(net, slot["queue"], now), now)
        return
    slot["row"] = 0
    schedule(net.agenda, server, math.inf)
    if slot["open"]:
        slot["next_idle"] = queue["idle"]
        queue["idle"] = server
