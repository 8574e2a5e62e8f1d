"""The run as Prometheus metrics; what was not measured is left out.

Of a run that has ended the last figures are left out too: an alert on them would never end. Of one whose controller
is silent they stay, and ``sluicegate_last_tick_seconds`` says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from sluicegate.dashboard.history import number
from sluicegate.dashboard.record import Record
from sluicegate.runlog.batch_log import DAMAGE
from sluicegate.runlog.run_record import own_promises

_QUANTILES = {"0.5": "p50_s", "0.95": "p95_s", "0.99": "p99_s"}
_OF_OPERATORS = {
    "sluicegate_queue_rows": ("queue_rows", "Rows waiting before an operator"),
    "sluicegate_utilisation_ratio": ("utilisation", "Share of time an operator's processors are busy, 0 to 1"),
}
Samples = Iterable[tuple[Mapping[str, str], object]]


def metrics_text(record: Record) -> bytes:
    """All metrics in Prometheus' text format."""
    registry = CollectorRegistry()
    registry.register(_Run(record))
    return generate_latest(registry)


class _Run(Collector):
    def __init__(self, record: Record) -> None:
        self._record = record

    def collect(self) -> Iterator[Metric]:
        ended = self._record.over or self._record.outcome is not None
        tick = {} if ended else self._record.tick or {}
        yield from _of_the_run(tick, self._record)
        yield from _of_operators(tick)
        yield _lags(tick)
        yield _failing(self._record)
        yield from _totals(self._record)


def _of_the_run(tick: Mapping[str, Any], record: Record) -> Iterator[Metric]:
    sojourn, control = tick.get("sojourn") or {}, record.documents["control"] or {}
    latency = [({"quantile": q}, sojourn.get(name)) for q, name in _QUANTILES.items()]
    yield _gauge("sluicegate_arrivals_rows_per_second", "Rows that arrive, a second", _one(tick.get("arrivals_per_s")))
    yield _gauge("sluicegate_latency_seconds", "Seconds from source to sink, by quantile", latency)
    yield _gauge("sluicegate_latency_mean_seconds", "Mean seconds from source to sink", _one(sojourn.get("mean_s")))
    yield from _of_queries(tick)
    promised = [({"of": what}, bound) for what, bound in (control.get("bounds") or {}).items()]
    yield _gauge("sluicegate_promise_seconds", "Seconds of latency promised at most, by what is promised", promised)
    yield _gauge("sluicegate_backlog_rows", "Rows in flight: taken in and not yet out", _one(tick.get("backlog_rows")))
    yield _gauge("sluicegate_executors", "Executors that run", _one(tick.get("executors")))
    nodes = tick.get("nodes") or []
    yield _gauge("sluicegate_nodes", "Nodes that run", _one(len(nodes) if nodes else None))
    yield _gauge("sluicegate_forecast_rows_per_second", "Rows a second expected at the next step", _next(tick))
    looked = "When the controller observed last, in seconds since the epoch"
    yield _gauge("sluicegate_last_tick_seconds", looked, _one(tick.get("at_s")))


def _of_queries(tick: Mapping[str, Any]) -> Iterator[Metric]:
    """For attached queries with a promise of their own."""
    told = []
    with suppress(*DAMAGE):  # a line of another version
        told = own_promises(dict(tick))
    took = [({"operator": name, "of": what}, took_s) for name, what, _, took_s in told]
    text = "Seconds from source to sink of a query with its own promise, by what is promised"
    yield _gauge("sluicegate_query_latency_seconds", text, took)
    bounds = [({"operator": name, "of": what}, bound_s) for name, what, bound_s, _ in told]
    yield _gauge("sluicegate_query_promise_seconds", "Seconds of latency that a query promises at most", bounds)


def _of_operators(tick: Mapping[str, Any]) -> Iterator[Metric]:
    running = [({"operator": name}, k) for name, k in (tick.get("running") or {}).items()]
    yield _gauge("sluicegate_processors", "Processors in force, by operator", running)
    for name, (key, text) in _OF_OPERATORS.items():
        told = [({"operator": o}, one.get(key)) for o, one in (tick.get("operators") or {}).items()]
        yield _gauge(name, text, told)


def _lags(tick: Mapping[str, Any]) -> Metric:
    """Topic lag of attached queries; partitions without lag are left out."""
    told = [
        ({"operator": query, "topic": name.rpartition("/")[0], "partition": name.rpartition("/")[2]}, rows)
        for query, one in (tick.get("topics") or {}).items()
        for name, rows in (one.get("lag") or {}).items()
    ]
    return _gauge("sluicegate_topic_lag_rows", "Rows of a partition that no batch has taken, where there are any", told)


def _failing(record: Record) -> Metric:
    """Failing operators, labelled by what is at fault, so that alerts can be routed."""
    told = (record.documents["failures"] or {}).get("operators") or []
    named = [one for one in told if isinstance(one, dict)]
    samples = [({key: str(one.get(key, "")) for key in ("operator", "fault")}, one.get("since_s")) for one in named]
    text = "When an operator began to fail that has not worked since, in seconds since the epoch"
    return _gauge("sluicegate_operator_failing_since_seconds", text, samples)


def _totals(record: Record) -> Iterator[Metric]:
    decisions = CounterMetricFamily("sluicegate_decisions", "Moves decided since the run began")
    decisions.add_metric((), record.decisions_made)
    yield decisions
    slots = CounterMetricFamily(
        "sluicegate_slot_seconds", "Processors in force times seconds, since the first tick read"
    )
    slots.add_metric((), record.slot_seconds)
    yield slots


def _next(tick: Mapping[str, Any]) -> Samples:
    forecast = tick.get("forecast") or {}
    return [({"bound": b}, (forecast.get(f"{b}_per_s") or [None])[0]) for b in ("low", "mean", "high")]


def _one(value: object) -> Samples:
    return [({}, value)]


def _gauge(name: str, text: str, samples: Samples) -> GaugeMetricFamily:
    told = [(labels, value) for labels, given in samples if (value := number(given)) == value]
    family = GaugeMetricFamily(name, text, labels=list(told[0][0]) if told else ())
    for labels, value in told:
        family.add_metric(list(labels.values()), value)
    return family
