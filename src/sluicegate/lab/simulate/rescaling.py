"""Changes to a running network: servers pause, are added, removed or fail, without losing or duplicating rows.

A pause extends services in progress by its length. A removed server finishes its row first; rows in its own queue are
rerouted. A row whose server fails goes back to the front of the queue and is served from the start; so do the rows of a
batch that was not published yet.
"""

from __future__ import annotations

import math

import numpy as np

from sluicegate.lab.simulate import records
from sluicegate.lab.simulate.agenda import due, empty_agenda, schedule, times
from sluicegate.lab.simulate.compiled import compiled
from sluicegate.lab.simulate.records import BATCHED, COMMITTING, DUE, IDLE, WORKING, Net
from sluicegate.lab.simulate.routing import deliver, let_in, resume
from sluicegate.lab.simulate.stations import enqueue, leave, plan_batch, put_back, queue_for, rest_or_next, take

_LINKS = ("queue", "next_idle", "idle", "sender", "sender_tail", "next_sender")


@compiled
def refresh(net: Net, index: int, now: float) -> None:
    """After servers were opened or closed: open and free ones take waiting rows or become idle."""
    for server in range(1, net.slots.size):
        if net.slots[server]["node"] == index:
            net.slots[server]["idle"] = 0
    if net.nodes[index]["discipline"] == BATCHED:
        slot = net.slots[net.nodes[index]["first"]]
        if slot["open"] and slot["phase"] == IDLE and slot["waiting"]:
            plan_batch(net, net.nodes[index]["first"], now)
        return
    for server in range(net.slots.size - 1, 0, -1):
        slot = net.slots[server]
        free = slot["node"] == index and slot["open"] and slot["row"] == 0 and slot["pending"] == 0
        if free:
            rest_or_next(net, server, now)
            if net.totals[0]["bounded"]:
                let_in(net, slot["queue"], now)


@compiled
def stretch(net: Net, index: int, seconds: float) -> None:
    """Delay all services in progress of an operator by ``seconds`` without work; totals must be settled."""
    for server in range(1, net.slots.size):
        slot = net.slots[server]
        if slot["node"] != index:
            continue
        if slot["row"] or slot["phase"] == WORKING or slot["phase"] == COMMITTING:
            schedule(net.agenda, server, due(net.agenda, server) + seconds)
            slot["started"] += seconds
            slot["counted"] += seconds
            slot["ends"] += seconds
        elif slot["phase"] == DUE:
            slot["phase"] = IDLE
            schedule(net.agenda, server, math.inf)


@compiled
def route_anew(net: Net, index: int, server: int, now: float) -> None:
    """Move the rows in the queue of a removed server to the remaining servers."""
    for _ in range(net.slots[server]["waiting"]):
        row = take(net, server, now)
        enqueue(net, queue_for(net, index), row, now)


@compiled
def redirect(net: Net, index: int, now: float) -> None:
    """Retarget rows held back from a removed server; then all blocked senders try to deliver again."""
    node = net.nodes[index]
    end = node["first"] + node["servers"]
    for sender in range(1, net.slots.size):
        row = net.slots[sender]["pending"]
        net.slots[sender]["sender"] = 0
        while row:
            queue = net.rows[row]["queue"]
            if net.slots[queue]["node"] == index and queue >= end:
                net.rows[row]["queue"] = queue_for(net, index)
            row = net.rows[row]["next"]
    for other in range(net.totals[0]["operators"]):
        if net.nodes[other]["held_senders"] > 0:
            net.nodes[other]["held"] += now - net.nodes[other]["held_since"]
            net.nodes[other]["held_senders"] = 0
    for sender in range(1, net.slots.size):
        if net.slots[sender]["pending"] and deliver(net, sender, now) and resume(net, sender, now):
            let_in(net, net.slots[sender]["queue"], now)


@compiled
def break_off(net: Net, server: int, now: float) -> None:
    """Fail a server: its row, or the rows of its batch, go back to the queue; its work is lost."""
    slot = net.slots[server]
    if slot["phase"] == WORKING:
        _put_batch_back(net, server, now)
    if slot["phase"] != IDLE:
        slot["phase"] = IDLE
        schedule(net.agenda, server, math.inf)
    if slot["row"]:
        net.nodes[slot["node"]]["busy"] += max(now - slot["counted"], 0.0)
        if slot["group"]:
            leave(net, slot["group"])
        put_back(net, slot["queue"], slot["row"], now)
        slot["row"] = 0
        schedule(net.agenda, server, math.inf)


@compiled
def _put_batch_back(net: Net, server: int, now: float) -> None:
    slot = net.slots[server]
    node = net.nodes[slot["node"]]
    last, rows = slot["batch"], 1
    while net.rows[last]["next"]:
        last = net.rows[last]["next"]
        rows += 1
    net.rows[last]["next"] = slot["head"] if slot["waiting"] else 0
    if slot["waiting"] == 0:
        slot["tail"] = last
    slot["head"] = slot["batch"]
    slot["batch"] = 0
    slot["waiting"] += rows
    node["waited"] += node["waiting"] * (now - node["since"])
    node["since"] = now
    node["waiting"] += rows


def with_more_slots(net: Net, index: int, room: int) -> Net:
    """The same network with ``room`` slots for one operator; every slot keeps its event and its links."""
    old = net.slots
    end = int(net.nodes["first"][index]) + int((old["node"][1:] == index).sum())
    extra = room - (end - int(net.nodes["first"][index]))
    moved = np.arange(len(old), dtype=np.uint32)
    moved[end:] += np.uint32(extra)
    slots = np.zeros(len(old) + extra, dtype=records.SLOT)
    slots[moved] = old
    slots["node"][end : end + extra] = index
    for link in _LINKS:
        slots[link][moved] = moved[old[link]]
    net.rows["queue"] = moved[net.rows["queue"]]
    net.nodes["first"] = moved[net.nodes["first"]]
    agenda = empty_agenda(len(slots))
    for slot, at in enumerate(times(net.agenda)[: len(old)]):
        if at < math.inf:
            schedule(agenda, int(moved[slot]), float(at))
    stack = np.zeros(len(slots) + 1, dtype=np.uint32)
    return net._replace(slots=slots, agenda=agenda, stack=stack)


def resize(net: Net, index: int, servers: int, shares: tuple[float, ...], own_queues: bool, now: float) -> Net:
    """Change the number of servers of an operator. The caller then opens and closes servers and refreshes."""
    node = net.nodes[index]
    have, first = int(node["servers"]), int(node["first"])
    node["servers"] = servers
    if node["discipline"] == BATCHED:
        return net
    room = int((net.slots["node"][1:] == index).sum())
    if servers > room:
        net = with_more_slots(net, index, max(servers, 2 * room))
    used = np.arange(first, first + servers)
    net.slots["queue"][used] = used if own_queues else first
    net.slots["share"][used] = np.cumsum(shares)
    node["turn"] = node["turn"] if node["turn"] < servers else 0
    for server in range(first + servers, first + have):
        net.slots["open"][server] = 0
        if own_queues:
            route_anew(net, index, server, now)
    if net.totals["bounded"][0] and own_queues and servers < have:
        redirect(net, index, now)
    return net
