"""The value types that all stages share: frozen dataclasses with no behaviour beyond validation."""

from sluicegate.domain.decision import (
    Bundle,
    Change,
    Decision,
    OperatorPrediction,
    Placement,
    Prediction,
    Proposal,
    Refusal,
    Rescale,
    Vm,
)
from sluicegate.domain.fleet import ExecutorSeen, FleetSeen, NodeSeen, Shape
from sluicegate.domain.goal import Goal, Limits
from sluicegate.domain.observation import Batch, HotKey, NodeObservation, Observation, OperatorObservation, Sojourn
from sluicegate.domain.profile import ProfilePoint, TaskProfile
from sluicegate.domain.situation import Cores, Forecast, Situation
from sluicegate.domain.topology import SINK, SOURCE, BatchCosts, Edge, Graph, Operator, Topology, is_sink, is_source

__all__ = [
    "SINK",
    "SOURCE",
    "Batch",
    "BatchCosts",
    "Bundle",
    "Change",
    "Cores",
    "Decision",
    "Edge",
    "ExecutorSeen",
    "FleetSeen",
    "Forecast",
    "Goal",
    "Graph",
    "HotKey",
    "Limits",
    "NodeObservation",
    "NodeSeen",
    "Observation",
    "Operator",
    "OperatorObservation",
    "OperatorPrediction",
    "Placement",
    "Prediction",
    "ProfilePoint",
    "Proposal",
    "Refusal",
    "Rescale",
    "Shape",
    "Situation",
    "Sojourn",
    "TaskProfile",
    "Topology",
    "Vm",
    "is_sink",
    "is_source",
]
