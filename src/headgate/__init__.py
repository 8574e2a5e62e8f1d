"""headgate: an elasticity control plane for Spark Structured Streaming.

Names are imported when first used: Spark's Python workers import this package for an edge's reader alone, and must not
pay for the compiled models.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headgate.config.topology_file import read_topology
    from headgate.domain import Goal, Limits, Topology
    from headgate.loop import LoopState, Settings, start, tick
    from headgate.planning import Plan, make_plan
    from headgate.spark.pipeline import Pipeline

__version__ = "0.1.0"

__all__ = [
    "Goal",
    "Limits",
    "LoopState",
    "Pipeline",
    "Plan",
    "Settings",
    "Topology",
    "make_plan",
    "read_topology",
    "start",
    "tick",
]

_HOMES = {
    "headgate.config.topology_file": ("read_topology",),
    "headgate.domain": ("Goal", "Limits", "Topology"),
    "headgate.loop": ("LoopState", "Settings", "start", "tick"),
    "headgate.planning": ("Plan", "make_plan"),
    "headgate.spark.pipeline": ("Pipeline",),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'headgate' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)
