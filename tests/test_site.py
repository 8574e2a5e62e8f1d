"""The documentation as a site: it builds without a warning, its reference is the code's, its alerts name metrics."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from scripts import reference
from scripts.reference import ATTACH_KEYS, BATCH_FIELDS, DECISION_FIELDS, ENVIRONMENT, OPERATOR_FIELDS, TICK_FIELDS

from sluicegate.control.loop import start
from sluicegate.control.settings import settings_for
from sluicegate.domain import Decision, Edge, Observation, Operator, OperatorObservation, Topology
from sluicegate.domain.births import Births
from sluicegate.runlog.batch_log import BatchRecord
from sluicegate.spark.documents import decision_document, tick_document

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "sluicegate"
DOCS = ROOT / "docs"
RULES = DOCS / "prometheus" / "sluicegate.rules.yml"


def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    """Links and anchors that lead nowhere, and pages that no contents list names, are warnings."""
    words = ["-q", "-W", "--keep-going", "-d", str(tmp_path / "cache"), str(DOCS), str(tmp_path / "site")]
    done = subprocess.run([sys.executable, "-m", "sphinx", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for page in ("index", "quickstart", "concepts", "operations", "reference/cli", "papers/drs", "contributing"):
        assert (tmp_path / "site" / f"{page}.html").is_file()


def test_the_reference_is_what_the_code_makes() -> None:
    assert reference.stale() == [], "run scripts/reference.py"


def test_every_setting_that_the_code_reads_is_in_the_table_and_no_other() -> None:
    options = (SOURCE / "spark" / "attach" / "options.py").read_text(encoding="utf-8")
    read = set(re.findall(r'settings(?:\.get\(|\[)"([\w.]+)"', options)) | set(re.findall(r'_yes\("([\w.]+)"', options))
    java = "".join(path.read_text(encoding="utf-8") for path in (SOURCE / "spark" / "jvm" / "attach").glob("*.java"))
    read |= {name for name in re.findall(r'KEYS \+ "([\w.]+)"', java) if not name.startswith("test.")}
    assert read | {"query.NAME.slo"} == set(ATTACH_KEYS)


def test_every_variable_of_ours_that_the_code_reads_is_in_the_table_and_no_other() -> None:
    code = [path.read_text(encoding="utf-8") for path in SOURCE.rglob("*") if path.suffix in {".py", ".java"}]
    named = {name for text in code for name in re.findall(r"\b(SLUICEGATE_[A-Z_]+)\b", text)}
    assert named == {name for name in ENVIRONMENT if name.startswith("SLUICEGATE_")}


def test_every_field_of_a_decision_a_tick_and_a_batch_is_described_and_no_other() -> None:
    topology = Topology("t", (Operator("a", 100.0),), (Edge("source", "a"),))
    state = start(settings_for("sluicegate", topology))
    seen = Observation(0.0, 1.0, {"a": 1}, {"a": OperatorObservation()})
    tick = tick_document(state, seen, Decision(0.0, {"a": 1}))
    assert list(decision_document(Decision(0.0, {"a": 1}), 1)) == list(DECISION_FIELDS)
    assert set(tick) == set(TICK_FIELDS)
    operators = tick["operators"]
    assert isinstance(operators, dict)
    assert set(operators["a"]) == set(OPERATOR_FIELDS)
    batch = BatchRecord(1, 0.0, 0.0, 1.0, 1, 1, 1, None, Births(()))
    assert set(json.loads(batch.to_json())) == set(BATCH_FIELDS)


def test_every_alert_names_metrics_and_labels_that_are_served() -> None:
    rows = re.findall(r"^\| `(\w+)` \| \w+ \| (.*?) \|", reference.metrics(), re.MULTILINE)
    served = {name: set(re.findall(r"`(\w+)`", labels)) for name, labels in rows}
    expressions = re.findall(r"^\s+expr: (.+)$", RULES.read_text(encoding="utf-8"), re.MULTILINE)
    used = [found for text in expressions for found in re.findall(r"(sluicegate_\w+)(?:\{(\w+)=)?", text)]
    assert len(expressions) >= 6
    assert [(name, label) for name, label in used if name not in served or (label and label not in served[name])] == []


def test_the_page_on_operations_has_a_line_for_every_alert() -> None:
    alerts = re.findall(r"- alert: (\w+)", RULES.read_text(encoding="utf-8"))
    page = (DOCS / "operations.md").read_text(encoding="utf-8")
    assert len(alerts) >= 6
    assert [name for name in alerts if name not in page] == []


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md"])
def test_links_of_the_front_pages_lead_somewhere(page: str) -> None:
    """Anchors too: GitHub makes them of headings."""
    for target, anchor in re.findall(r"\]\(([^)#:]*)(?:#([^)]+))?\)", (ROOT / page).read_text(encoding="utf-8")):
        file = ROOT / (target or page)
        assert file.exists(), target
        assert not anchor or anchor in anchors(file), f"{target}#{anchor}"


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
