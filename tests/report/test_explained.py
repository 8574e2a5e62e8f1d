from __future__ import annotations

import re
from pathlib import Path

import sluicegate
from sluicegate.report.explained import meaning

SOURCE = Path(sluicegate.__file__).parent


def test_every_rule_that_may_refuse_has_a_meaning_for_whoever_is_on_call() -> None:
    files = (path for part in ("control", "spark/attach") for path in (SOURCE / part).glob("*.py"))
    source = "".join(path.read_text(encoding="utf-8") for path in files)
    rules = set(re.findall(r'Refusal\(\s*"([^"]+)"', source))
    rules |= set(re.findall(r'return "([^"]+)", f"', source))
    assert {"calm", "overdue", "window", "promise", "tasks"} <= rules
    assert [rule for rule in sorted(rules) if not meaning(rule)] == []
