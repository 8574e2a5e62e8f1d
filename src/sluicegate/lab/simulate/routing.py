"""Where a row goes when a node is done with it.

If the selectivities of a node's edges, those to sinks included, add up to at most 1, a row takes one of the edges
with these probabilities, and leaves with what is missing to 1. If they add up to more, every edge emits of its own:
floor(selectivity) copies, and one more with probability of the fraction.
"""

from __future__ import annotations

from sluicegate.lab.simulate import rng
from sluicegate.lab.simulate.backpressure import has_room, hold
from sluicegate.lab.simulate.compiled import compiled, inlined
from sluicegate.lab.simulate.records import COPIES, NOWHERE, SURE, Net
from sluicegate.lab.simulate.rows import end_row, new_row
from sluicegate.lab.simulate.stations import admit, queue_for


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
    edge = node["first_edge"] + 0  # signed, as it is counted up below
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
    """A row goes over an edge, if the queue at its end has room (or must take it)."""
    way = net.edges[edge]
    target = way["target"]
    queue = queue_for(net, target)
    bounded = net.totals[0]["bounded"] and not way["back"]
    if bounded and (net.slots[sender]["pending"] or not has_room(net, queue)):
        hold(net, sender, row, queue, now)
        return
    admit(net, target, queue, row, now)
