"""Existing autoscalers as policies for comparison, each from its published formula.

Ds2, the Flink autoscaler, Spark's two dynamic allocations, Kubernetes' HPA, KEDA and Dhalion; also simple baselines
(recent peak, static peak) and bounds that know the future load (hindsight, and recent peak with its parameters chosen
in hindsight). Storm's own schedulers place threads and do not size operators, so they are placers: its even scheduler
is DSM, R-Storm is RSM.
"""

from sluicegate.policy.peers.dhalion import Dhalion
from sluicegate.policy.peers.ds2 import Ds2
from sluicegate.policy.peers.dstreams_allocation import DStreamsAllocation
from sluicegate.policy.peers.flink_autoscaler import FlinkAutoscaler
from sluicegate.policy.peers.hindsight import Hindsight
from sluicegate.policy.peers.hpa import Hpa
from sluicegate.policy.peers.keda import Keda
from sluicegate.policy.peers.recent_peak import RecentPeak
from sluicegate.policy.peers.recent_peak_grid import GridAnswer, GridPoint, cheapest_recent_peak
from sluicegate.policy.peers.spark_core_allocation import SparkCoreAllocation
from sluicegate.policy.peers.static_peak import StaticPeak

__all__ = [
    "DStreamsAllocation",
    "Dhalion",
    "Ds2",
    "FlinkAutoscaler",
    "GridAnswer",
    "GridPoint",
    "Hindsight",
    "Hpa",
    "Keda",
    "RecentPeak",
    "SparkCoreAllocation",
    "StaticPeak",
    "cheapest_recent_peak",
]
