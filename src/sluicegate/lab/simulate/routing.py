"""Where a row goes next: over the edges of the node that is done with it, and into a queue once there is room.

If the selectivities of a node's edges, including those to sinks, add up to at most 1, a row takes one of the edges with
these probabilities, and leaves with the remaining probability. If they add up to more, every edge emits independently:
floor(selectivity) copies, and one more with the probability of the fraction.

Rows and inputs come from a pool. Two times of an input are recorded, which are equal if a row never splits:

    total        sum of the sojourns of all its rows at all operators: its mean is DRS Eq 4
    completion   from its birth until its last row is done

Bounded queues hold back their senders: one whose row finds its queue full is blocked until there is room. This is
blocking after service: a server holds the rows it has produced and starts no other; rows of a source wait outside, and
their waiting time counts from their birth. Blocked senders are served first come, first served. The bound applies to
waiting rows; the one in service does not count. Edges that lead back in a loop never block, otherwise the senders of a
loop could deadlock.
"""

from __future__ import annotations

import math

from sluicegate.lab.simulate import rng, statistics
from sluicegate.lab.simulate.agenda import schedule
from sluicegate.lab.simulate.compiled import compiled, inlined
from sluicegate.lab.simulate.records import COPIES, NOWHERE, SURE, Net
from sluicegate.lab.simulate.stations import admit, queue_for, rest_or_next


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


@inlined
def new_input(net: Net, now: float) -> int:
    """Allocate an input born now, without rows."""
    totals = net.totals[0]
    index: int = totals["free_input"]
    born = net.inputs[index]
    totals["free_input"] = born["next"]
    totals["inputs"] += 1
    born["birth"] = now
    born["total"] = 0.0
    born["live"] = 0
    return index


@inlined
def new_row(net: Net, index: int) -> int:
    """Allocate one more row of an input."""
    totals = net.totals[0]
    row: int = totals["free_row"]
    totals["free_row"] = net.rows[row]["next"]
    totals["spare"] -= 1
    net.rows[row]["input"] = index
    net.inputs[index]["live"] += 1
    return row


@inlined
def end_row(net: Net, row: int, now: float) -> None:
    """Free a row that is done; record and free its input if it was the last row."""
    totals = net.totals[0]
    index = net.rows[row]["input"]
    net.rows[row]["next"] = totals["free_row"]
    totals["free_row"] = row
    totals["spare"] += 1
    whole = net.inputs[index]
    whole["live"] -= 1
    if whole["live"] == 0:
        completion = now - whole["birth"]
        statistics.count_time(net.histogram, completion)
        totals["completed"] += 1
        totals["completion"] += completion
        totals["total"] += whole["total"]
        whole["next"] = totals["free_input"]
        totals["free_input"] = index


@inlined
def emit(net: Net, index: int, sender: int, row: int, now: float) -> None:
    """Node ``index`` is done with ``row``: it moves on, multiplies, or leaves."""
    node = net.nodes[index]
    if node["routing"] == NOWHERE:
        end_row(net, row, now)
        return
    if node["routing"] == COPIES:
        _copy(net, index, sender, row, now)
        return
    edge = node["first_edge"] + 0  # signed, since it is incremented below
    if node["routing"] != SURE:
        u = rng.uniform(net.streams, index)
        while edge < node["end_edge"] and u >= net.edges[edge]["share"]:
            edge += 1
        if edge >= node["end_edge"] or net.edges[edge]["target"] >= net.totals[0]["operators"]:
            end_row(net, row, now)
            return
    _send(net, edge, sender, row, now)


@compiled
def _copy(net: Net, index: int, sender: int, row: int, now: float) -> None:
    node = net.nodes[index]
    origin = net.rows[row]["input"]
    for edge in range(node["first_edge"], node["end_edge"]):
        way = net.edges[edge]
        copies = way["copies"] + 0  # signed too
        if way["extra"] > 0.0 and rng.uniform(net.streams, index) < way["extra"]:
            copies += 1
        for _ in range(copies):
            _send(net, edge, sender, new_row(net, origin), now)
    end_row(net, row, now)


@inlined
def _send(net: Net, edge: int, sender: int, row: int, now: float) -> None:
    """Send a row over an edge, or hold it at the sender if the target queue is full."""
    way = net.edges[edge]
    target = way["target"]
    queue = queue_for(net, target)
    bounded = net.totals[0]["bounded"] and not way["back"]
    if bounded and (net.slots[sender]["pending"] or not has_room(net, queue)):
        hold(net, sender, row, queue, now)
        return
    admit(net, target, queue, row, now)
