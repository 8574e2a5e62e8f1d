"""Every policy by name, with one line on what it does and where it comes from.

A policy's module is imported only when the policy is built, so that listing them loads no compiled code.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from sluicegate.errors import BadInput

if TYPE_CHECKING:
    from sluicegate.policy.policy import Policy

    AnyPolicy: TypeAlias = Policy[Any]

Moves = Literal["governed", "spaced", "own", "steps", "cycles"]
"""What decides when a policy's proposals are applied.

    governed  the governor alone: window, dead band, cool-down, does it pay
    spaced    the policy's T_ra alone, the least time between two moves
    own       the policy's own windows, triggers and waits: the governor only checks metrics, bounds, one at a time
    steps     as own; the policy is called once a step of its forecaster
    cycles    as own; the policy is called once a cycle S, U before it starts
"""


@dataclass(frozen=True, slots=True)
class PolicyEntry:
    """One policy: ``build`` makes it from the future load, which only a ``clairvoyant`` one uses.

    A ``reactive`` policy finds its size by trial on a running pipeline; the others compute it in one call. ``mapper``
    and ``forecaster`` name its placer and forecaster, ``moves`` says what decides when proposals are applied. A policy
    with ``nodes`` decides the number of nodes, where nodes can be started and stopped.
    """

    build: Callable[[tuple[float, ...]], AnyPolicy]
    summary: str
    origin: str
    reactive: bool = False
    clairvoyant: bool = False
    mapper: str = "dsm"
    forecaster: str | None = None
    moves: Moves = "own"
    nodes: bool = False


def _of(module: str, policy: str, **settings: object) -> Callable[[tuple[float, ...]], AnyPolicy]:
    """A builder for ``policy`` of a module below this package that ignores the future load."""

    def build(load: tuple[float, ...]) -> AnyPolicy:
        made: AnyPolicy = getattr(import_module(f"sluicegate.policy.{module}"), policy)(**settings)
        return made

    return build


def _static_peak(load: tuple[float, ...]) -> AnyPolicy:
    from sluicegate.policy.peers.static_peak import StaticPeak

    return StaticPeak(max(load))


def _hindsight(load: tuple[float, ...]) -> AnyPolicy:
    from sluicegate.policy.peers.hindsight import Hindsight

    return Hindsight(load)


_UNCERTAINTY = (
    "fewest machines whose modelled throughput exceeds the load now",
    "the same with the model's uncertainty",
    "the same with the model learned online",
    "uncertainty and online learning",
    "fewest machines for the forecast peak of the next cycle",
    "forecast and model uncertainty",
    "forecast, model learned online",
    "forecast, uncertainty and online learning",
)


def _uncertainty(number: int) -> PolicyEntry:
    return PolicyEntry(
        _of("papers.uncertainty", "Uncertainty", number=number),
        _UNCERTAINTY[number],
        "uncertainty-aware VM scheduling",
        forecaster="arma" if number >= 4 else None,
        moves="cycles",
        nodes=True,
    )


POLICIES: dict[str, PolicyEntry] = {
    "sluicegate": PolicyEntry(
        _of("sluicegate", "SluicegatePolicy"),
        "forecast quantile, learned capacity, greedy under the batch law, whole nodes",
        "sluicegate",
        mapper="sam",
        forecaster="calibrated",
        moves="governed",
    ),
    "on-time": PolicyEntry(
        _of("sluicegate_on_time", "OnTimePolicy"),
        "fewest machines for a share of steps on time, by a price on late steps",
        "sluicegate",
        mapper="sam",
        forecaster="calibrated",
        moves="steps",
    ),
    "drs": PolicyEntry(
        _of("papers.drs", "Drs"), "queueing-optimal processors per operator, M/M/k", "DRS", moves="spaced"
    ),
    "drs-gigk": PolicyEntry(
        _of("papers.drs", "Drs", general=True, name="drs-gigk"),
        "DRS with measured variability, GI/G/k",
        "DRS",
        moves="spaced",
    ),
    "drs-batch": PolicyEntry(
        _of("papers.drs", "Drs", general=True, batch=True, name="drs-batch"),
        "DRS planned by the micro-batch law",
        "DRS",
        moves="spaced",
    ),
    "es-stream": PolicyEntry(
        _of("papers.es_stream", "EsStream"),
        "marginal analysis of instances against queue length",
        "Es-Stream",
        mapper="es-stream",
    ),
    "lsa": PolicyEntry(
        _of("papers.lsa", "Lsa"),
        "threads and slots, scaling one thread linearly",
        "model-driven scheduling",
        mapper="rsm",
        moves="governed",
    ),
    "mba": PolicyEntry(
        _of("papers.mba", "Mba"),
        "threads and slots by measured profiles",
        "model-driven scheduling",
        mapper="sam",
        moves="governed",
    ),
    "mc-stream": PolicyEntry(
        _of("papers.mc_stream", "McStream"),
        "instances in proportion to computing demand",
        "Mc-Stream",
        mapper="mc-stream",
    ),
    **{f"uncertainty-{number}": _uncertainty(number) for number in range(8)},
    "ds2": PolicyEntry(_of("peers.ds2", "Ds2"), "arrivals over the true rate, in topological order", "DS2"),
    "flink-autoscaler": PolicyEntry(
        _of("peers.flink_autoscaler", "FlinkAutoscaler"),
        "70% utilisation and time to catch up",
        "Apache Flink",
        reactive=True,
    ),
    "dstreams": PolicyEntry(
        _of("peers.dstreams_allocation", "DStreamsAllocation"),
        "processing time over batch interval",
        "Spark DStreams",
        reactive=True,
    ),
    "spark-core": PolicyEntry(
        _of("peers.spark_core_allocation", "SparkCoreAllocation"),
        "pending and running tasks, doubling",
        "Spark dynamic allocation",
        reactive=True,
    ),
    "hpa": PolicyEntry(
        _of("peers.hpa", "Hpa"), "replicas in proportion to utilisation", "Kubernetes HPA", reactive=True
    ),
    "keda": PolicyEntry(_of("peers.keda", "Keda"), "replicas in proportion to lag", "KEDA", reactive=True),
    "dhalion": PolicyEntry(
        _of("peers.dhalion", "Dhalion"), "grows what causes back-pressure", "Dhalion", reactive=True
    ),
    "recent-peak": PolicyEntry(
        _of("peers.recent_peak", "RecentPeak"), "the largest recent rate and a margin", "common practice"
    ),
    "static-peak": PolicyEntry(_static_peak, "sized once for the peak", "common practice", clairvoyant=True),
    "hindsight": PolicyEntry(_hindsight, "the fewest for the future load", "a bound, not a policy", clairvoyant=True),
}


def policy_entry(name: str) -> PolicyEntry:
    """The entry of a policy; raises an error that lists the known names for an unknown one."""
    try:
        return POLICIES[name]
    except KeyError:
        raise BadInput(unknown("policy", name, POLICIES)) from None


def live_policy_entry(name: str) -> PolicyEntry:
    """The entry of a policy for a running pipeline, whose future load is unknown."""
    entry = policy_entry(name)
    if entry.clairvoyant:
        raise BadInput(
            f"policy {name!r} needs the future load, which is unknown while a pipeline runs: "
            "choose another, or compare with it in sluicegate replay"
        )
    return entry


def unknown(what: str, name: str, known: dict[str, Any]) -> str:
    """The one-line error for a name that is not in a catalogue."""
    close = get_close_matches(name, known, n=1)
    hint = f"did you mean {close[0]!r}? " if close else ""
    return f"unknown {what} {name!r}: {hint}known are {', '.join(known)}"
