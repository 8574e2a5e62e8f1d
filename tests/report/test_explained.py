from __future__ import annotations

import re
from pathlib import Path

import sluicegate
from sluicegate.report.explained import meaning

CONTROL = Path(sluicegate.__file__).parent / "control"


def test_every_rule_that_may_refuse_has_a_meaning_for_whoever_is_on_call() -> None:
    source = "".join(path.read_text(encoding="utf-8") for path in CONTROL.glob("*.py"))
    rules = set(re.findall(r'Refusal\(\s*"([^"]+)"', source))
    assert {"calm", "overdue", "window"} <= rules
    assert [rule for rule in sorted(rules) if not meaning(rule)] == []
