"""headgate: an elasticity control plane for Spark Structured Streaming."""

from headgate.config.topology_file import read_topology
from headgate.domain import Goal, Limits, Topology
from headgate.loop import LoopState, Settings, start, tick
from headgate.planning import Plan, make_plan

__version__ = "0.1.0"

__all__ = ["Goal", "Limits", "LoopState", "Plan", "Settings", "Topology", "make_plan", "read_topology", "start", "tick"]
