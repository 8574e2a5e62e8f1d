"""sluicegate: an elasticity control plane for Spark Structured Streaming.

Names are imported when first used: Spark's Python workers import this package for an edge's reader alone, and must not
pay for the compiled models.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from sluicegate.compiled_code import keep_compiled_code

if TYPE_CHECKING:
    from sluicegate.config.topology_file import read_topology
    from sluicegate.control.loop import LoopState, Settings, start, tick
    from sluicegate.control.planning import Plan, make_plan
    from sluicegate.domain import Goal, Limits, Topology
    from sluicegate.spark.attach.session import attach, detach
    from sluicegate.spark.elastic import elastic
    from sluicegate.spark.kafka.sink import kafka_sink
    from sluicegate.spark.pipeline.declaration import Pipeline
    from sluicegate.spark.pipeline.row_functions import by_row, in_pandas
    from sluicegate.spark.session import spark_session

keep_compiled_code()

__version__ = "0.1.0"

__all__ = [
    "Goal",
    "Limits",
    "LoopState",
    "Pipeline",
    "Plan",
    "Settings",
    "Topology",
    "attach",
    "by_row",
    "detach",
    "elastic",
    "in_pandas",
    "kafka_sink",
    "make_plan",
    "read_topology",
    "spark_session",
    "start",
    "tick",
]

_HOMES = {
    "sluicegate.config.topology_file": ("read_topology",),
    "sluicegate.domain": ("Goal", "Limits", "Topology"),
    "sluicegate.control.loop": ("LoopState", "Settings", "start", "tick"),
    "sluicegate.control.planning": ("Plan", "make_plan"),
    "sluicegate.spark.attach.session": ("attach", "detach"),
    "sluicegate.spark.elastic": ("elastic",),
    "sluicegate.spark.kafka.sink": ("kafka_sink",),
    "sluicegate.spark.pipeline.declaration": ("Pipeline",),
    "sluicegate.spark.pipeline.row_functions": ("by_row", "in_pandas"),
    "sluicegate.spark.session": ("spark_session",),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'sluicegate' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)
