"""Bounded queues: a sender whose row finds its queue full is blocked until there is room.

This is blocking after service: a server holds the rows it has produced and starts no other; rows of a source wait
outside, and their waiting time counts from their birth. Blocked senders are served first come, first served. The bound
applies to waiting rows; the one in service does not count. Edges that lead back in a loop never block, otherwise the
senders of a loop could deadlock.
"""

from __future__ import annotations

import math

from sluicegate.lab.simulate.agenda import schedule
from sluicegate.lab.simulate.compiled import compiled, inlined
from sluicegate.lab.simulate.records import Net
from sluicegate.lab.simulate.stations import admit, rest_or_next


@inlined
def has_room(net: Net, queue: int) -> bool:
    """Whether a queue can accept one more row."""
    slot = net.slots[queue]
    room: bool = slot["idle"] != 0 or slot["waiting"] < net.nodes[slot["node"]]["capacity"]
    return room


@compiled
def hold(net: Net, sender: int, row: int, queue: int, now: float) -> None:
    """Keep a row that cannot enter ``queue`` at its sender."""
    slot = net.slots[sender]
    net.rows[row]["queue"] = queue
    net.rows[row]["entered"] = now
    net.rows[row]["next"] = 0
    if slot["pending"] == 0:
        slot["pending"] = row
    else:
        net.rows[slot["pending_tail"]]["next"] = row
    slot["pending_tail"] = row


@compiled
def wait_for_room(net: Net, sender: int, now: float) -> None:
    """Line the sender up for the target queue of its first held row."""
    queue = net.rows[net.slots[sender]["pending"]]["queue"]
    slot = net.slots[queue]
    net.slots[sender]["next_sender"] = 0
    if slot["sender"] == 0:
        slot["sender"] = sender
    else:
        net.slots[slot["sender_tail"]]["next_sender"] = sender
    slot["sender_tail"] = sender
    node = net.nodes[slot["node"]]
    if node["held_senders"] == 0:
        node["held_since"] = now
    node["held_senders"] += 1


@compiled
def block(net: Net, server: int, now: float) -> None:
    """Block a server whose rows could not be delivered."""
    slot = net.slots[server]
    slot["row"] = 0
    slot["counted"] = now
    schedule(net.agenda, server, math.inf)
    wait_for_room(net, server, now)


@compiled
def _next_sender(net: Net, queue: int, now: float) -> int:
    """Remove and return the sender that has waited longest for room in ``queue``."""
    slot = net.slots[queue]
    sender: int = slot["sender"]
    slot["sender"] = net.slots[sender]["next_sender"]
    node = net.nodes[slot["node"]]
    node["held_senders"] -= 1
    if node["held_senders"] == 0:
        node["held"] += now - node["held_since"]
    return sender


@compiled
def deliver(net: Net, sender: int, now: float) -> bool:
    """Deliver held rows while there is room; return whether none is left. Their held time counts at the sender."""
    slot = net.slots[sender]
    while slot["pending"]:
        row = slot["pending"]
        held = net.rows[row]
        queue = held["queue"]
        if not has_room(net, queue):
            wait_for_room(net, sender, now)
            return False
        slot["pending"] = held["next"]
        waited = now - held["entered"]
        net.nodes[slot["node"]]["sojourn"] += waited
        net.inputs[held["input"]]["total"] += waited
        admit(net, net.slots[queue]["node"], queue, row, now)
    return True


@compiled
def resume(net: Net, sender: int, now: float) -> bool:
    """Unblock a sender without held rows; return whether it is a server, whose own queue may have room now."""
    slot = net.slots[sender]
    if slot["node"] >= net.totals[0]["operators"]:
        return False
    net.nodes[slot["node"]]["blocked"] += now - slot["counted"]
    rest_or_next(net, sender, now)
    return True


@compiled
def let_in(net: Net, queue: int, now: float) -> None:
    """Admit blocked senders to ``queue`` while it has room; unblocked ones may in turn make room upstream."""
    stack = net.stack
    stack[0] = queue
    depth = 1
    while depth > 0:
        here = stack[depth - 1]
        if net.slots[here]["sender"] == 0 or not has_room(net, here):
            depth -= 1
            continue
        sender = _next_sender(net, here, now)
        if deliver(net, sender, now) and resume(net, sender, now):
            stack[depth] = net.slots[sender]["queue"]
            depth += 1
