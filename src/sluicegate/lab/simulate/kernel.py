"""The event loop: executes events in order of time up to a given time.

An event is an outside arrival, the end of a service, or a batch's start, publication or commit. The loop returns early
when the row pool may run out; the caller enlarges it and calls again. All state is in the ``Net`` that is passed in.
"""

from __future__ import annotations

import math

from sluicegate.lab.simulate.agenda import schedule
from sluicegate.lab.simulate.arrivals import after
from sluicegate.lab.simulate.compiled import compiled, inlined
from sluicegate.lab.simulate.microbatch import batch_event
from sluicegate.lab.simulate.records import BATCHED, Net, with_more_rows
from sluicegate.lab.simulate.routing import block, emit, let_in, new_input, new_row, wait_for_room
from sluicegate.lab.simulate.stations import account, rest_or_next, time_of


@compiled
def run(net: Net, until: float) -> bool:
    """Execute all events up to ``until``; ``False`` if the row pool ran out before."""
    totals = net.totals[0]
    operators = totals["operators"]
    while True:
        event = net.agenda[1]
        now = event["time"]
        if now > until:
            return True
        if totals["spare"] < totals["most_copies"]:
            return False
        slot = event["slot"]
        totals["events"] += 1
        index = net.slots[slot]["node"]
        if index >= operators:
            _arrive(net, slot, index, now)
        elif net.nodes[index]["discipline"] != BATCHED:
            _complete(net, slot, index, now)
        elif not batch_event(net, slot, now):
            totals["events"] -= 1
            return False


@inlined
def _arrive(net: Net, slot: int, index: int, now: float) -> None:
    """A row arrives from outside."""
    schedule_arrival(net, slot, index, now)
    held = net.slots[slot]["pending"]
    net.nodes[index]["arrivals"] += 1
    emit(net, index, slot, new_row(net, new_input(net, now)), now)
    if net.totals[0]["bounded"] and held == 0 and net.slots[slot]["pending"]:
        wait_for_room(net, slot, now)


@inlined
def schedule_arrival(net: Net, slot: int, index: int, now: float) -> None:
    """Schedule the next arrival of a source."""
    node = net.nodes[index]
    gap = time_of(net, index)
    schedule(net.agenda, slot, after(now, gap, net.numbers, node["rates"], node["steps"], node["step_s"]))


@inlined
def _complete(net: Net, server: int, index: int, now: float) -> None:
    """A server completes its row: emit it, then take the next row or block."""
    slot = net.slots[server]
    row = slot["row"]
    sojourn = now - net.rows[row]["entered"]
    net.nodes[index]["sojourn"] += sojourn
    net.inputs[net.rows[row]["input"]]["total"] += sojourn
    account(net, server, now)
    emit(net, index, server, row, now)
    if slot["pending"]:
        block(net, server, now)
        return
    rest_or_next(net, server, now)
    if net.totals[0]["bounded"]:
        let_in(net, slot["queue"], now)


@compiled
def start_sources(net: Net) -> None:
    """Schedule the first arrival of every source."""
    for slot in range(1, net.slots.size):
        index = net.slots[slot]["node"]
        if index >= net.totals[0]["operators"]:
            schedule_arrival(net, slot, index, 0.0)


@compiled
def settle(net: Net, now: float) -> None:
    """Bring time-integrated totals up to ``now``: waiting, busy, blocked and held-back time."""
    for index in range(net.totals[0]["operators"]):
        node = net.nodes[index]
        node["waited"] += node["waiting"] * (now - node["since"])
        node["since"] = now
        if node["held_senders"] > 0:
            node["held"] += now - node["held_since"]
            node["held_since"] = now
    for server in range(1, net.slots.size):
        slot = net.slots[server]
        if slot["node"] >= net.totals[0]["operators"]:
            continue
        if slot["counted"] >= now:  # paused: nothing counts until the pause is over
            continue
        if slot["row"]:
            net.nodes[slot["node"]]["busy"] += now - slot["counted"]
            slot["counted"] = now
        elif slot["pending"]:
            net.nodes[slot["node"]]["blocked"] += now - slot["counted"]
            slot["counted"] = now


def advance(net: Net, until: float, most_rows: float = math.inf) -> tuple[Net, bool]:
    """Run to ``until``, enlarging the row pool as needed, and settle totals; ``False`` beyond ``most_rows``."""
    while not run(net, until):
        if len(net.rows) > most_rows:
            return net, False
        net = with_more_rows(net)
    settle(net, until)
    return net, True
