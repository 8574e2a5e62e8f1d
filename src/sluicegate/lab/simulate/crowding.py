"""Threads that share a slot of a machine slow each other by their profiles (model-driven scheduling).

A slot's threads of one operator are a group. With q of them busy the group works at I(q), each thread at I(q)/q, so a
full group does what its profile says. Groups of different operators share the slot's CPU: with demands C(q) that add
up to more than the whole slot, every one is slowed by that sum. A row's service time is set when it starts, by who is
busy at that moment.

    service time = draw x (q / I(q)) x max(1, sum of C over the slot's groups)

Where CPU is pooled, that is the sum over all groups of the machine divided by its slots.
"""

from __future__ import annotations

from sluicegate.lab.simulate.compiled import compiled
from sluicegate.lab.simulate.records import Net


@compiled
def join(net: Net, index: int) -> float:
    """One more thread of a group is busy; how much longer than alone its row takes."""
    group = net.groups[index]
    host = net.hosts[group["host"]]
    busy = group["busy"] + 1
    group["busy"] = busy
    host["demand"] += net.numbers[group["cpu"] + busy] - net.numbers[group["cpu"] + busy - 1]
    slower: float = net.numbers[group["pace"] + busy] * max(host["demand"] / host["slots"], 1.0)
    return slower


@compiled
def leave(net: Net, index: int) -> None:
    """A thread of a group falls idle."""
    group = net.groups[index]
    busy = group["busy"]
    net.hosts[group["host"]]["demand"] -= net.numbers[group["cpu"] + busy] - net.numbers[group["cpu"] + busy - 1]
    group["busy"] = busy - 1
