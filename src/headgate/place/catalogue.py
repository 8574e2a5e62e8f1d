"""Every placer by name."""

from __future__ import annotations

from headgate.errors import BadInput
from headgate.place.dsm import Dsm
from headgate.place.es_stream import EsStreamPlacer
from headgate.place.mc_stream import McStreamPlacer
from headgate.place.placer import Placer
from headgate.place.rsm import Rsm
from headgate.place.sam import Sam
from headgate.plan.catalogue import unknown

PLACERS: dict[str, Placer] = {
    "dsm": Dsm(),
    "rsm": Rsm(),
    "sam": Sam(),
    "mc-stream": McStreamPlacer(),
    "es-stream": EsStreamPlacer(),
}


def placer(name: str) -> Placer:
    """The placer of this name; an unknown one is an error that lists the known."""
    if name not in PLACERS:
        raise BadInput(unknown("mapper", name, PLACERS))
    return PLACERS[name]
