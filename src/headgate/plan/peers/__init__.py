"""What a user would pick instead, each from its published formula, as policies to run side by side.

Ds2, the Flink autoscaler, Spark's two dynamic allocations, Kubernetes' HPA, KEDA and Dhalion; beside them the plain
ones (recent peak, static peak) and the bounds that know the future (hindsight, and recent peak with its parameters
chosen in hindsight). Storm's own schedulers place threads and do not size operators, so they are placers: its even
scheduler is DSM, R-Storm is RSM.
"""

from headgate.plan.peers.dhalion import Dhalion
from headgate.plan.peers.ds2 import Ds2
from headgate.plan.peers.dstreams_allocation import DStreamsAllocation
from headgate.plan.peers.flink_autoscaler import FlinkAutoscaler, FlinkSettings
from headgate.plan.peers.hindsight import Hindsight
from headgate.plan.peers.hpa import Hpa
from headgate.plan.peers.keda import Keda
from headgate.plan.peers.recent_peak import RecentPeak
from headgate.plan.peers.recent_peak_grid import GridAnswer, GridPoint, cheapest_recent_peak
from headgate.plan.peers.spark_core_allocation import SparkCoreAllocation
from headgate.plan.peers.static_peak import StaticPeak

__all__ = [
    "DStreamsAllocation",
    "Dhalion",
    "Ds2",
    "FlinkAutoscaler",
    "FlinkSettings",
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
