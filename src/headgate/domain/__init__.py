"""The vocabulary every stage speaks: frozen values, no behaviour beyond validation."""

from headgate.domain.allocation import Bundle, OperatorPrediction, Placement, Prediction, Proposal, Vm
from headgate.domain.decision import Decision, Refusal, Rescale
from headgate.domain.forecast import Forecast
from headgate.domain.goal import Goal, Limits
from headgate.domain.observation import Batch, NodeObservation, Observation, OperatorObservation, Sojourn
from headgate.domain.profile import ProfilePoint, TaskProfile
from headgate.domain.situation import Situation
from headgate.domain.topology import SINK, SOURCE, BatchCosts, Edge, Graph, Operator, Topology, is_sink, is_source

__all__ = [
    "SINK",
    "SOURCE",
    "Batch",
    "BatchCosts",
    "Bundle",
    "Decision",
    "Edge",
    "Forecast",
    "Goal",
    "Graph",
    "Limits",
    "NodeObservation",
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
    "Situation",
    "Sojourn",
    "TaskProfile",
    "Topology",
    "Vm",
    "is_sink",
    "is_source",
]
