"""Routes a row over the edges of a node that is done with it, and records an input when its last row is done.

If the selectivities of a node's edges, including those to sinks, add up to at most 1, a row takes one of the edges with
these probabilities, and leaves with the remaining probability. If they add up to more, every edge emits independently:
floor(selectivity) copies, and one more with the probability of the fraction.

Rows and inputs come from a pool. Two times of an input are recorded, which are equal if a row never splits:

    total        sum of the sojourns of all its rows at all operators: its mean is DRS Eq 4
    completion   from its birth until its last row is done
"""

from __future__ import annotations

from sluicegate.lab.simulate import rng, statistics
from sluicegate.lab.simulate.backpressure import has_room, hold
from sluicegate.lab.simulate.compiled import compiled, inlined
from sluicegate.lab.simulate.records import COPIES, NOWHERE, SURE, Net
from sluicegate.lab.simulate.stations import admit, queue_for


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
