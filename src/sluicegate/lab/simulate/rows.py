"""Allocates and frees rows and inputs from a pool, and records an input when its last row is done.

Two times of an input are recorded, which are equal if a row never splits:

    total        sum of the sojourns of all its rows at all operators: its mean is DRS Eq 4
    completion   from its birth until its last row is done
"""

from __future__ import annotations

from sluicegate.lab.simulate import histogram
from sluicegate.lab.simulate.compiled import inlined
from sluicegate.lab.simulate.records import Net


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
        histogram.count(net.histogram, completion)
        totals["completed"] += 1
        totals["completion"] += completion
        totals["total"] += whole["total"]
        whole["next"] = totals["free_input"]
        totals["free_input"] = index
