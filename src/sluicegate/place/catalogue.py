"""Every placer by name."""

from __future__ import annotations

from sluicegate.errors import BadInput
from sluicegate.place.dsm import Dsm
from sluicegate.place.es_stream_live import EsStreamMoving
from sluicegate.place.mc_stream_live import McStreamMoving
from sluicegate.place.placer import Placer
from sluicegate.place.rsm import Rsm
from sluicegate.place.sam import Sam
from sluicegate.policy.catalogue import unknown

PLACERS: dict[str, Placer] = {
    "dsm": Dsm(),
    "rsm": Rsm(),
    "sam": Sam(),
    "mc-stream": McStreamMoving(),
    "es-stream": EsStreamMoving(),
}
COMPARES_EVERY_NODE = frozenset({"mc-stream", "es-stream"})
"""Placers that scan every node for every thread, as in their papers; the others pass over the nodes once."""


def placer(name: str) -> Placer:
    """The placer of this name; raises an error that lists the known names for an unknown one."""
    if name not in PLACERS:
        raise BadInput(unknown("mapper", name, PLACERS))
    return PLACERS[name]
