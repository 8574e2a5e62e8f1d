"""The applications of the DRS paper, with rates that we assume, since it gives none.

VLD, video logo detection: extract -> match -> aggregate. FPD, frequent patterns: two spouts -> generate -> detect,
which feeds itself -> report. All rates below are ours; comments say why each was chosen.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from sluicegate.domain import Edge, Operator, Topology
from sluicegate.lab.simulate.arrivals import Arrivals, trace
from sluicegate.lab.simulate.distributions import constant

Split = tuple[int, ...]
"""Processors by operator, in the order of the operators."""


def _video(extract: Operator, match: Operator, aggregate_per_s: float) -> Topology:
    operators = (extract, match, Operator("aggregate", aggregate_per_s))
    return Topology("vld", operators, (Edge("source", "extract"), Edge("extract", "match"), Edge("match", "aggregate")))


# 13 frames/s: 0.60 s and 0.68 s a frame. Chosen so that algorithm 1 gives 10:11:1 and the paper's other splits keep up.
VLD = _video(Operator("extract", 1.66), Operator("match", 1.48), 60.0)
VLD_FRAMES_PER_S = 13.0
VLD_BEST: Split = (10, 11, 1)
VLD_SPLITS: tuple[Split, ...] = (VLD_BEST, (9, 12, 1), (11, 10, 1), (9, 11, 2), (11, 9, 2), (8, 12, 2))

# 320 tweets/s enter the window and 320 leave it. These six splits of 22 are all that keep up.
FPD = Topology(
    "fpd",
    (Operator("generate", 128.0), Operator("detect", 128.0), Operator("report", 320.0)),
    (
        Edge("source:plus", "generate"),
        Edge("source:minus", "generate"),
        Edge("generate", "detect", 1.6),
        Edge("detect", "detect", 0.3),
        Edge("detect", "report", 0.4),
    ),
    {"source:plus": 0.5, "source:minus": 0.5},
)
FPD_ROWS_PER_S = 640.0
FPD_BEST: Split = (6, 13, 3)
FPD_SPLITS: tuple[Split, ...] = (FPD_BEST, (6, 14, 2), (7, 13, 2), (7, 12, 3), (6, 12, 4), (8, 12, 2))

# Fig 9, 6 to 18 frames/s: other videos, as 4 extractors at 12 frames/s must do. Service alone takes 0.43 s, as T_min is
# 0.45 s; chosen so that 3:3:1 stays between T_min and T_max at 6 frames/s and is hardly enough at 12.
VLD_FIG9 = _video(Operator("extract", 4.3, service_scv=0.3), Operator("match", 5.2, service_scv=0.3), 200.0)
FIG9_START: Split = (3, 3, 1)

# Fig 10, 5 and 6 frames/s: both operators vary more than an exponential time, the matcher most.
VLD_FIG10 = _video(Operator("extract", 3.7, service_scv=2.5), Operator("match", 2.5, service_scv=6.0), 100.0)


def frames(seconds: int, seed: int) -> Arrivals:
    """Frames at a rate drawn uniformly from 1 to 25 per second for each second, evenly spaced within it.

    >>> round(frames(60_000, seed=1).mean_per_s(60_000.0))
    13
    """
    return trace(1.0, np.random.default_rng(seed).uniform(1.0, 25.0, seconds).tolist(), constant())


def named(topology: Topology, split: Split) -> dict[str, int]:
    """
    >>> named(VLD, (10, 11, 1))
    {'extract': 10, 'match': 11, 'aggregate': 1}
    """
    return dict(zip(topology.names, split, strict=True))


def split_of(topology: Topology, processors: Mapping[str, int]) -> Split:
    return tuple(processors[name] for name in topology.names)


def shown(split: Iterable[int]) -> str:
    """
    >>> shown((10, 11, 1))
    '10:11:1'
    """
    return ":".join(str(count) for count in split)
