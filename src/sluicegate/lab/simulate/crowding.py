"""Models how threads that share a slot slow each other down, by their profiles (model-driven scheduling).

A slot's threads of one operator are a group. With q of them busy the group works at I(q), each thread at I(q)/q, so a
full group works at the rate of its profile. Groups of different operators share the slot's CPU: if their demands C(q)
add up to more than the whole slot, all are slowed by that sum. A row's service time is fixed when its service starts,
from the threads busy at that moment.

    service time = draw x (q / I(q)) x max(1, sum of C over the slot's groups)

With pooled CPU the sum is over all groups of the machine, divided by its slots.
"""

from __future__ import annotations

from sluicegate.lab.simulate.compiled import compiled
from sluicegate.lab.simulate.records import Net


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
