"""Ten thousand random malformed topologies and configurations: a clear error or a valid plan, never a traceback."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from sluicegate.config.topology_file import read_topology
from sluicegate.config.typed import goal_from
from sluicegate.control.planning import Plan, make_plan
from sluicegate.domain import Limits
from sluicegate.errors import SluicegateError
from sluicegate.policy.catalogue import POLICIES

CASES = 10_000
VALUES = (
    "1.0", "0", "-1", "0.5", "1e308", "5e-324", "1e400", "nan", "inf", "-inf", "true", '"x"', '""', "[]", "{}", "3",
    "99999999999999999999999", "1979-05-27", '"source"', '"sink"', '"a"', '"\\u0000"', '"é"', "[1, 2]", '"source:s"',
)  # fmt: skip
KEYS = (
    "name", "arrival_scv", "service_scv", "stateful", "cpu", "memory", "mode", "batch_overhead_s", "batch_per_task_s",
    "service_rate_per_s", "selectivity", "profile", "share", "colour",
)  # fmt: skip
NAMES = ("a", "b", "c", "d", "source", "sink", "source:s", "A-1", "x y", "")
SLOS = (
    "mean=2s",
    "p95=5s",
    "mean=1ms",
    "cost=0.1",
    "mean=1s,p99=2s",
    "p50=nan",
    "mean=",
    "x=1",
    "on_time=0.99",
    "mean=1e9s",
)


def quoted(text: str) -> str:
    return f'"{text}"'


def topology_text(dice: random.Random) -> str:
    """A topology that is roughly right, with things wrong here and there."""
    wrong = dice.choice((0.0, 0.02, 0.1, 0.4))

    def line(key: str, right: str) -> str:
        return f"{key} = {dice.choice(VALUES) if dice.random() < wrong else right}"

    names = [dice.choice(NAMES) if dice.random() < wrong else f"o{i}" for i in range(dice.randint(0, 5))]
    lines = [line("name", quoted("t"))] if dice.random() < 0.8 else []
    if dice.random() < 0.3:
        lines.append(line("mode", quoted("micro-batch")))
    for name in names:
        lines += ["[[operators]]", line("name", quoted(name))]
        lines.append(line("service_rate_per_s", f"{dice.uniform(0.1, 500):.3f}"))
        if dice.random() < wrong + 0.2:
            lines.append(f"{dice.choice(KEYS)} = {dice.choice(VALUES)}")
    pairs = [(dice.choice(names[:i]) if i else "source", name) for i, name in enumerate(names)]
    if dice.random() < 0.3:
        pairs.append((dice.choice([*names, "source"]), dice.choice([*names, "sink"])))
    for origin, target in pairs:
        lines += ["[[edges]]", line("from", quoted(origin)), line("to", quoted(target))]
        lines.append(line("selectivity", f"{dice.uniform(0, 1.2):.3f}"))
    text = "\n".join(lines)
    if dice.random() < wrong / 2 and text:
        at = dice.randrange(len(text))
        text = text[:at] + dice.choice('"[]={}\n\x00,#') + text[at + 1 :]
    return text


@pytest.mark.slow
def test_ten_thousand_malformed_configurations_never_end_in_a_traceback(tmp_path: Path) -> None:
    dice = random.Random(20)
    path, policies, plans = tmp_path / "t.toml", sorted(POLICIES), 0
    errors: list[str] = []
    for _ in range(CASES):
        text = topology_text(dice)
        path.write_text(text, encoding="utf-8")
        rate, policy = dice.choice((0.0, 1.0, 50.0, 3000.0, 1e12)), dice.choice(policies)
        slo = dice.choice(SLOS)
        try:
            goal = goal_from([slo]) if dice.random() < 0.5 else None
            limits = Limits(budget=dice.choice((None, 1, 10, 200)), most=dice.choice((1, 20, 500)))
            plan = make_plan(read_topology(path), rate, policy, goal, limits)
        except SluicegateError as problem:
            errors.append(str(problem))
        else:
            assert_sound(plan, limits)
            plans += 1
    assert all(error.strip() and "\n" not in error for error in errors)
    assert len(errors) > CASES / 10
    assert plans > CASES / 10, "the dice should also leave some topologies whole"


def assert_sound(plan: Plan, limits: Limits) -> None:
    assert all(1 <= k <= limits.most for k in plan.proposal.processors.values())
    assert plan.slots >= 1
    assert plan.reasons
    assert all(p.mean_s >= 0 for p in plan.predicted.operators.values())
