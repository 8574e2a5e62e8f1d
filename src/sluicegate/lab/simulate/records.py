"""The state of a simulated network: arrays of records that compiled code changes in place.

    node     an operator or, after the operators, a source: its law, its edges, its running totals
    slot     anything with a next event: a source, a server, or an operator that runs in batches
    queue    identified by a slot: a shared queue by the operator's first server, an own queue by its server
    row      one row at one operator
    input    the outside row that rows descend from; alive while any of its rows is

Index 0 of slots, rows and inputs means "none", so that records hold unsigned numbers and lists end at 0. Nothing is
kept of a row once it is done: memory depends on the rows inside, not on the rows that have passed.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sluicegate.lab.simulate.agenda import Agenda
from sluicegate.lab.simulate.rng import Streams

Records: TypeAlias = NDArray[np.void]
Floats: TypeAlias = NDArray[np.float64]
Counts: TypeAlias = NDArray[np.int64]

_U, _I, _F = np.uint32, np.int64, np.float64

# how rows of an operator are assigned to a server
SHARED, CYCLIC, WEIGHTED, BATCHED, SPREAD = 0, 1, 2, 3, 4
# how rows leave a node: nowhere, over the one sure edge, over one of its edges, as copies over every edge
NOWHERE, SURE, ONE_OF, COPIES = 0, 1, 2, 3
# phase of a batch: none, scheduled, working until its rows are published, committing
IDLE, DUE, WORKING, COMMITTING = 0, 1, 2, 3

UNBOUNDED = 1 << 62

ROW = np.dtype([("input", _U), ("next", _U), ("queue", _U), ("entered", _F)], align=True)
INPUT = np.dtype([("birth", _F), ("total", _F), ("live", _U), ("next", _U)], align=True)
EDGE = np.dtype([("target", _U), ("back", _U), ("share", _F), ("copies", _U), ("extra", _F)], align=True)
"""Exclusive edges have a cumulative probability ``share``; others emit ``copies``, one more with chance ``extra``."""

NODE = np.dtype(
    [
        # where rows go
        ("routing", _U),
        ("first_edge", _U),
        ("end_edge", _U),
        # times: the gaps of a source, the service of a server, the noise of a batch
        ("kind", _U),
        ("mean", _F),
        ("a", _F),
        ("b", _F),
        ("c", _F),
        # its servers
        ("discipline", _U),
        ("first", _U),
        ("servers", _U),
        ("turn", _I),
        ("capacity", _I),
        # a source's rates
        ("rates", _U),
        ("steps", _U),
        ("step_s", _F),
        # what a batch takes: overhead + rows x per_row
        ("overhead_s", _F),
        ("per_row_s", _F),
        ("commit_s", _F),
        ("steady_work", _U),
        ("pace_s", _F),
        # current: waiting rows and time of their last change; blocked senders
        ("waiting", _I),
        ("since", _F),
        ("held_senders", _I),
        ("held_since", _F),
        # totals since the start
        ("arrivals", _I),
        ("done", _I),
        ("batches", _I),
        ("waited", _F),
        ("sojourn", _F),
        ("busy", _F),
        ("busy_squares", _F),
        ("last_arrival", _F),
        ("gap_squares", _F),
        ("blocked", _F),
        ("held", _F),
        ("batch_time", _F),
    ],
    align=True,
)

SLOT = np.dtype(
    [
        ("node", _U),
        ("row", _U),
        ("queue", _U),
        ("next_idle", _U),
        ("open", _U),
        ("group", _U),
        ("started", _F),
        ("counted", _F),
        # the queue named by this slot, and its instance's cumulative share of the operator's rows
        ("idle", _U),
        ("head", _U),
        ("tail", _U),
        ("waiting", _U),
        ("share", _F),
        # back-pressure: undelivered rows of this slot, senders that wait for room in its queue
        ("pending", _U),
        ("pending_tail", _U),
        ("sender", _U),
        ("sender_tail", _U),
        ("next_sender", _U),
        # the current batch
        ("phase", _U),
        ("batch", _U),
        ("tasks", _U),
        ("size", _I),
        ("work", _F),
        ("ends", _F),
        # when it began, or was due if it began late for lack of rows: the pace counts from here
        ("paced_from", _F),
    ],
    align=True,
)

GROUP = np.dtype([("host", _U), ("pace", _U), ("cpu", _U), ("busy", _I)], align=True)
"""Threads of one operator on one slot; ``pace`` and ``cpu`` index tables in ``numbers`` by busy threads."""

HOST = np.dtype([("demand", _F), ("slots", _F)], align=True)

BATCH = np.dtype([("node", _U), ("tasks", _U), ("rows", _I), ("duration", _F), ("work", _F)], align=True)

TOTALS = np.dtype(
    [
        ("operators", _U),
        ("bounded", _U),
        ("free_row", _U),
        ("free_input", _U),
        ("spare", _I),
        ("most_copies", _I),
        ("events", _I),
        ("inputs", _I),
        ("completed", _I),
        ("total", _F),
        ("completion", _F),
        ("logged", _I),
    ],
    align=True,
)


class Net(NamedTuple):
    """All of a network's state."""

    rows: Records
    inputs: Records
    nodes: Records
    slots: Records
    agenda: Agenda
    edges: Records
    groups: Records
    hosts: Records
    numbers: Floats
    streams: Streams
    totals: Records
    histogram: Counts
    log: Records
    stack: NDArray[np.uint32]


def empty_rows(size: int) -> Records:
    rows = np.zeros(size, dtype=ROW)
    rows["next"][1:-1] = np.arange(2, size)
    return rows


def empty_inputs(size: int) -> Records:
    inputs = np.zeros(size, dtype=INPUT)
    inputs["next"][1:-1] = np.arange(2, size)
    return inputs


def with_more_rows(net: Net) -> Net:
    """The same network with room for twice as many rows; inputs grow too, as each live input has at least one row."""
    have = len(net.rows)
    rows, inputs = empty_rows(2 * have), empty_inputs(2 * have)
    totals = net.totals
    rows[:have], inputs[:have] = net.rows, net.inputs
    for pool, free in ((rows, "free_row"), (inputs, "free_input")):
        pool["next"][-1] = totals[free][0]
        totals[free][0] = have
    totals["spare"] += have
    return net._replace(rows=rows, inputs=inputs)


def rows_inside(net: Net) -> int:
    """Rows in the network, including those that wait outside bounded queues."""
    return int(len(net.rows) - 1 - net.totals["spare"][0])
