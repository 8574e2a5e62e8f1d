from __future__ import annotations

import json
import re
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families
from tests.dashboard.sample_run import BEGAN_S, INTERVAL_S, write_run

from sluicegate.dashboard.metrics import metrics_text
from sluicegate.dashboard.record import Record

GRAFANA = Path(__file__).parents[2] / "docs" / "grafana" / "sluicegate.json"
NAMED = {
    "sluicegate_arrivals_rows_per_second",
    "sluicegate_latency_seconds",
    "sluicegate_promise_seconds",
    "sluicegate_processors",
    "sluicegate_queue_rows",
    "sluicegate_utilisation_ratio",
    "sluicegate_backlog_rows",
    "sluicegate_executors",
    "sluicegate_nodes",
    "sluicegate_decisions_total",
    "sluicegate_slot_seconds_total",
    "sluicegate_forecast_rows_per_second",
}


def samples(folder: Path) -> dict[str, dict[tuple[str, ...], float]]:
    record = Record(folder)
    while record.look():
        pass
    found: dict[str, dict[tuple[str, ...], float]] = {}
    for family in text_string_to_metric_families(metrics_text(record).decode()):
        for sample in family.samples:
            found.setdefault(sample.name, {})[tuple(sample.labels.values())] = sample.value
    return found


def test_every_metric_is_there_with_its_labels(tmp_path: Path) -> None:
    found = samples(write_run(tmp_path))
    assert set(found) >= NAMED
    assert set(found["sluicegate_processors"]) == {("read+count",), ("rank",), ("merge",)}
    assert set(found["sluicegate_latency_seconds"]) == {("0.5",), ("0.95",), ("0.99",)}
    assert set(found["sluicegate_forecast_rows_per_second"]) == {("low",), ("mean",), ("high",)}
    assert found["sluicegate_promise_seconds"] == {("mean",): 5.0, ("p95",): 9.0}


def test_counters_count(tmp_path: Path) -> None:
    found = samples(write_run(tmp_path))
    moves = (tmp_path / "decisions.jsonl").read_text().count("\n")
    assert found["sluicegate_decisions_total"] == {(): moves}
    ticks = [json.loads(line) for line in (tmp_path / "ticks.jsonl").read_text().splitlines()]
    assert found["sluicegate_slot_seconds_total"][()] == sum(2.0 * sum(t["running"].values()) for t in ticks[:-1])


def test_what_was_not_measured_is_left_out(tmp_path: Path) -> None:
    old = samples(write_run(tmp_path, ticks=3, old=True))
    assert not {"sluicegate_executors", "sluicegate_nodes", "sluicegate_promise_seconds"} & set(old)
    assert "sluicegate_arrivals_rows_per_second" in old


def test_a_run_that_has_told_nothing_yet_has_metrics(tmp_path: Path) -> None:
    assert samples(write_run(tmp_path, ticks=0))["sluicegate_decisions_total"] == {(): 0.0}


def test_of_a_run_that_has_ended_only_the_counters_are_served_so_that_no_alert_outlasts_it(tmp_path: Path) -> None:
    folder = write_run(tmp_path, ticks=3)
    assert samples(folder)["sluicegate_last_tick_seconds"] == {(): BEGAN_S + 2 * INTERVAL_S}
    (folder / "outcome.json").write_text(json.dumps({"app": "top_n", "began_s": BEGAN_S, "seconds": 9.0}))
    assert set(samples(folder)) == {
        "sluicegate_promise_seconds",
        "sluicegate_decisions_total",
        "sluicegate_slot_seconds_total",
    }


def test_names_with_quotes_stay_one_label(tmp_path: Path) -> None:
    folder = write_run(tmp_path, ticks=1)
    strange = {"at_s": 4e9, "running": {'a"b\n\\': 2}}
    with (folder / "ticks.jsonl").open("a") as file:
        file.write(json.dumps(strange) + "\n")
    assert samples(folder)["sluicegate_processors"] == {('a"b\n\\',): 2.0}


def test_every_expression_of_the_grafana_file_names_metrics_that_exist(tmp_path: Path) -> None:
    found = set(samples(write_run(tmp_path)))
    panels = json.loads(GRAFANA.read_text())["panels"]
    expressions = [target["expr"] for panel in panels for target in panel.get("targets", [])]
    assert len(expressions) >= 12
    used = {name for text in expressions for name in re.findall(r"sluicegate_\w+", text)}
    assert used == used & found
    assert used >= NAMED


def test_every_metric_says_its_unit(tmp_path: Path) -> None:
    record = Record(write_run(tmp_path, ticks=3))
    while record.look():
        pass
    for family in text_string_to_metric_families(metrics_text(record).decode()):
        units = ("rows", "seconds", "executors", "nodes", "processors", "share", "moves")
        assert any(unit in family.documentation.lower() for unit in units)


def test_failures_of_another_version_do_not_end_the_metrics(tmp_path: Path) -> None:
    (tmp_path / "pipeline.json").write_text('{"name": "p", "nodes": []}')
    (tmp_path / "failures.json").write_text('{"operators": [{"operator": "rank", "since_s": 5.0}, 7]}')
    record = Record(tmp_path)
    record.look()
    assert b'sluicegate_operator_failing_since_seconds{fault="",operator="rank"} 5.0' in metrics_text(record)
