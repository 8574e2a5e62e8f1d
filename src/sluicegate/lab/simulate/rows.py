"""Rows and the inputs they stem from: taken from a pool, given back, and counted when an input's last row is done.

Two times of an input are kept, equal where a row never splits:

    total        sojourns of all its rows at all operators, added up: its mean is DRS Eq 4
    completion   from its birth until its last row is done
"""

from __future__ import annotations

from sluicegate.lab.simulate import histogram
from sluicegate.lab.simulate.compiled import inlined
from sluicegate.lab.simulate.records import Net


@inlined
def new_input(net: Net, now: float) -> int:
    """An input born now, with no row yet."""
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
    """One more row of an input."""
    totals = net.totals[0]
    row: int = totals["free_row"]
    totals["free_row"] = net.rows[row]["next"]
    totals["spare"] -= 1
    net.rows[row]["input"] = index
    net.inputs[index]["live"] += 1
    return row


@inlined
def end_row(net: Net, row: int, now: float) -> None:
    """A row is done; with the last of its input, the input is."""
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
