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
    from headgate.spark.elastic import elastic
    from headgate.spark.pipeline import Pipeline
    from headgate.spark.session import spark_session

__version__ = "0.1.0"

__all__ = [
    "Goal",
    "Limits",
    "LoopState",
    "Pipeline",
    "Plan",
    "Settings",
    "Topology",
    "elastic",
    "make_plan",
    "read_topology",
    "spark_session",
    "start",
    "tick",
]

_HOMES = {
    "headgate.config.topology_file": ("read_topology",),
    "headgate.domain": ("Goal", "Limits", "Topology"),
    "headgate.loop": ("LoopState", "Settings", "start", "tick"),
    "headgate.planning": ("Plan", "make_plan"),
    "headgate.spark.elastic": ("elastic",),
    "headgate.spark.pipeline": ("Pipeline",),
    "headgate.spark.session": ("spark_session",),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'headgate' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)
