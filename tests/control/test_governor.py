from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.control.governor import govern
from sluicegate.control.rules import Ledger, Request, Rules, Verdict
from sluicegate.control.settings import Timing, rules_for
from sluicegate.domain import Goal, Limits
from sluicegate.errors import BadInput
from sluicegate.policy.catalogue import policy_entry

READY = Ledger(moved_at_s=0.0)


def ask(have: Mapping[str, int], want: Mapping[str, int], now_s: float = 1000.0) -> Request:
    busy = dict.fromkeys(have, 0.9)
    return Request(
        now_s, now_s, 100.0, False, have, want, busy, sojourns_s=lambda: (2.0, 1.0), capacity_want_per_s=200.0
    )


def decide(
    request: Request, rules: Rules | None = None, ledger: Ledger = READY, limits: Limits | None = None
) -> Verdict:
    return govern(ledger, request, rules or Rules(), limits or Limits())[1]


def rule(verdict: Verdict) -> str:
    return verdict.refusals[-1].rule


def test_a_move_that_pays_is_made_and_says_from_what_to_what() -> None:
    verdict = decide(ask({"a": 2}, {"a": 4}))
    assert verdict.running == {"a": 4}
    assert verdict.rescales[0].reason == "2 -> 4 at 90% busy"


def test_no_metrics_no_move() -> None:
    verdict = decide(replace(ask({"a": 2}, {"a": 4}), arrivals_per_s=None))
    assert (verdict.running, rule(verdict)) == ({"a": 2}, "metrics")


def test_a_stale_observation_moves_nothing() -> None:
    verdict = decide(replace(ask({"a": 2}, {"a": 4}), observed_at_s=900.0))
    assert verdict.refusals[0].why == "the observation is 100 s old, at most 60 s is trusted"


def test_one_rescale_at_a_time() -> None:
    assert rule(decide(replace(ask({"a": 2}, {"a": 4}), rescaling=True))) == "one at a time"


def test_bounds_cut_a_proposal_and_say_so() -> None:
    verdict = decide(ask({"a": 2}, {"a": 40}), limits=Limits(most=8))
    assert verdict.running == {"a": 8}
    assert verdict.refusals[0].why == "a: 40 processors wanted, 8 is the bound"


def test_a_budget_is_never_exceeded() -> None:
    verdict = decide(ask({"a": 2, "b": 2}, {"a": 5, "b": 5}), limits=Limits(budget=6))
    assert verdict.running == {"a": 2, "b": 2}


def test_the_dead_band_does_not_break_a_budget_by_keeping_what_should_go() -> None:
    verdict = decide(ask({"a": 8, "b": 40}, {"a": 10, "b": 38}), limits=Limits(budget=48))
    assert verdict.running == {"a": 10, "b": 38}


def test_a_change_within_the_dead_band_is_not_worth_making() -> None:
    verdict = decide(ask({"a": 20}, {"a": 21}))
    assert verdict.refusals[0].why == "a: 20 -> 21 is 5.0%, within 10%"


def test_the_dead_band_never_holds_back_an_operator_that_cannot_keep_up() -> None:
    assert decide(replace(ask({"a": 20}, {"a": 21}), utilisation={"a": 1.01})).running == {"a": 21}


def test_on_the_way_down_the_largest_recent_wish_counts() -> None:
    rules = Rules(settle_down_s=300.0, cooldown_s=0.0)
    ledger, _ = govern(READY, ask({"a": 10}, {"a": 8}, now_s=1000.0), replace(rules, horizon_s=0.0), Limits())
    verdict = decide(ask({"a": 10}, {"a": 2}, now_s=1100.0), rules, ledger)
    assert verdict.running == {"a": 8}
    assert verdict.refusals[0].why == "a: 2 wanted, but 8 were within the last 100 s: 8"
    assert decide(ask({"a": 10}, {"a": 2}, now_s=1400.0), rules, ledger).running == {"a": 2}


def test_never_twice_within_the_cool_down() -> None:
    rules = Rules(cooldown_s=30.0)
    ledger, first = govern(READY, ask({"a": 2}, {"a": 4}), rules, Limits())
    assert first.rescales
    assert rule(decide(ask({"a": 4}, {"a": 8}, now_s=1029.0), rules, ledger)) == "cool-down"
    assert decide(ask({"a": 4}, {"a": 8}, now_s=1030.0), rules, ledger).running == {"a": 8}


def test_the_cool_down_counts_from_the_start_too() -> None:
    ledger, verdict = govern(Ledger(), ask({"a": 2}, {"a": 4}), Rules(cooldown_s=30.0), Limits())
    assert rule(verdict) == "cool-down"
    assert ledger.moved_at_s == 1000.0
    later = decide(ask({"a": 2}, {"a": 4}, now_s=1018.0), Rules(cooldown_s=30.0), ledger)
    assert later.refusals[0].why == "begun 18 s ago, the cool-down is 30 s", "nothing has moved yet"


def test_the_cool_down_does_not_hold_back_growth_for_a_load_that_has_risen_since() -> None:
    rules = Rules(cooldown_s=30.0, risen_share=0.1)
    ledger, _ = govern(READY, ask({"a": 2}, {"a": 4}), rules, Limits())
    soon = ask({"a": 4}, {"a": 8}, now_s=1002.0)
    assert rule(decide(soon, rules, ledger)) == "cool-down", "the load is that of the last move: its effect is awaited"
    assert decide(replace(soon, arrivals_per_s=150.0), rules, ledger).running == {"a": 8}
    less = replace(soon, want={"a": 2}, arrivals_per_s=150.0)
    assert rule(decide(less, replace(rules, settle_down_s=0.0), ledger)) == "cool-down", "only growth is let through"
    assert rule(decide(replace(soon, arrivals_per_s=150.0), Rules(cooldown_s=30.0), ledger)) == "cool-down", "T_ra"


def test_a_cool_down_that_the_user_set_holds_for_growth_too() -> None:
    entry = policy_entry("sluicegate")
    assert rules_for(entry, Timing(2.0), Goal(mean_s=3.0)).risen_share < math.inf
    assert rules_for(entry, Timing(2.0, cooldown_s=30.0), Goal(mean_s=3.0)).risen_share == math.inf
    assert rules_for(policy_entry("drs"), Timing(2.0), Goal(mean_s=3.0)).risen_share == math.inf


def test_an_infinite_cool_down_only_recommends() -> None:
    assert rule(decide(ask({"a": 2}, {"a": 4}), Rules(cooldown_s=math.inf))) == "cool-down"


def test_no_escalation_when_more_did_not_help() -> None:
    rules = Rules(cooldown_s=0.0)
    late = replace(ask({"a": 2}, {"a": 4}), late=1.5)
    ledger, _ = govern(READY, late, rules, Limits())
    again = replace(ask({"a": 4}, {"a": 8}, now_s=1100.0), late=1.5)
    refused = decide(again, rules, ledger)
    assert rule(refused) == "no escalation"
    assert "raised to 4 processors 100 s ago and latency stayed at 1.50x its bound" in refused.refusals[-1].why
    assert decide(replace(again, late=1.2), rules, ledger).rescales, "it helped: go on"
    assert decide(replace(again, arrivals_per_s=150.0), rules, ledger).rescales, "the load grew: go on"
    assert decide(replace(again, want={"a": 3}), replace(rules, settle_down_s=0), ledger).rescales, (
        "less may always be tried"
    )


def test_nothing_is_taken_away_while_rows_come_out_late() -> None:
    rules, late = Rules(calm_share=0.8), replace(ask({"a": 4, "b": 4}, {"a": 2, "b": 4}), late=0.9)
    slower = replace(late, sojourns_s=lambda: (1.0, 1.5))
    assert rule(decide(slower, rules)) == "calm"
    assert (
        decide(slower, rules).refusals[0].why == "latency is at 0.90x its bound: 2 processors are taken only below 0.8x"
    )
    assert decide(replace(late, late=0.7), rules).running == {"a": 2, "b": 4}
    assert decide(replace(late, want={"a": 2, "b": 6}), rules).running == {"a": 2, "b": 6}  # moved, not taken away


def test_a_move_must_pay_for_its_pause_and_catching_up() -> None:
    dear = Rules(pause_s=100.0, horizon_s=60.0)
    refused = decide(ask({"a": 10}, {"a": 8}), dear)
    assert rule(refused) == "it pays"
    assert refused.refusals[-1].why == (
        "gain 120 slot-seconds over 60 s, cost 2000 (100 s pause, 100 s catching up, 10 slots)"
    )


def test_a_broken_promise_is_worth_the_whole_horizon() -> None:
    rules = Rules(pause_s=10.0, horizon_s=60.0)
    same = replace(ask({"a": 2}, {"a": 4}), sojourns_s=lambda: (2.0, 1.99))
    assert rule(decide(same, rules)) == "it pays"
    assert decide(replace(same, late=1.1), rules).rescales


def test_nothing_to_change_is_no_refusal() -> None:
    verdict = decide(ask({"a": 2}, {"a": 2}))
    assert (verdict.rescales, verdict.refusals) == ((), ())


def test_rules_that_make_no_sense_are_refused() -> None:
    with pytest.raises(BadInput, match="cooldown_s"):
        Rules(cooldown_s=-1.0)
    with pytest.raises(BadInput, match="pause_s"):
        Rules(pause_s=math.nan)


COUNTS = st.fixed_dictionaries({"a": st.integers(1, 60), "b": st.integers(1, 60)})


@given(COUNTS, st.lists(COUNTS, min_size=1, max_size=12), st.floats(0, 100), st.integers(2, 100))
def test_whatever_is_asked_limits_hold_and_every_standstill_has_its_reason(
    have: dict[str, int], wishes: list[dict[str, int]], gap_s: float, budget: int
) -> None:
    limits, ledger = Limits(budget=budget, most=50), READY
    for step, want in enumerate(wishes):
        request = ask(have, want, now_s=1000.0 + step * gap_s)
        ledger, verdict = govern(ledger, request, Rules(), limits)
        if verdict.rescales:
            assert sum(verdict.running.values()) <= budget
            assert all(1 <= count <= 50 for count in verdict.running.values())
        elif dict(want) != have:
            assert verdict.refusals
            assert all(any(c.isdigit() for c in refusal.why) for refusal in verdict.refusals)
        have = dict(verdict.running)


def test_a_refusal_leaves_what_was_asked_for_as_it_is() -> None:
    """Asked for 4, of which 2 run yet: to refuse must not take the other two back."""
    ask = Request(100.0, 100.0, 50.0, True, {"a": 2}, {"a": 6}, {"a": 1.2}, asked={"a": 4})
    _, verdict = govern(Ledger(moved_at_s=0.0), ask, Rules(), Limits())
    assert verdict.running == {"a": 4}
    assert verdict.refusals[0].rule == "one at a time"


def test_on_crowded_cores_tasks_may_go_though_rows_come_out_late() -> None:
    ask = Request(100.0, 100.0, 50.0, False, {"a": 6}, {"a": 2}, {"a": 0.2}, late=3.0)
    rules = Rules(cooldown_s=0.0, settle_down_s=0.0, calm_share=0.8)
    _, calm = govern(Ledger(moved_at_s=0.0), ask, rules, Limits())
    _, crowded = govern(Ledger(moved_at_s=0.0), replace(ask, crowded=True), rules, Limits())
    assert calm.running == {"a": 6}
    assert crowded.running == {"a": 2}


def test_fewer_processors_that_were_asked_for_are_not_taken_back_before_they_came() -> None:
    """Decided at one look, in force from the next batch on: the look between the two must leave it."""
    request = Request(
        now_s=100.0,
        observed_at_s=100.0,
        arrivals_per_s=50.0,
        rescaling=True,
        starting=True,
        have={"a": 4},
        want={"a": 2},
        asked={"a": 2},
        utilisation={"a": 0.3},
    )
    _, verdict = govern(Ledger(moved_at_s=98.0), request, Rules(), Limits())
    assert verdict.running == {"a": 2}
    assert verdict.rescales == ()


def test_processors_whose_own_tasks_make_rows_late_are_taken_away() -> None:
    """Thirty tasks cost a second a batch: latency is high because of them, and would keep them for ever."""
    rules = Rules(calm_share=0.8)
    slow = replace(ask({"a": 9, "b": 30}, {"a": 2, "b": 7}), late=0.92, sojourns_s=lambda: (2.67, 2.08))
    assert govern(READY, slow, rules, Limits())[1].running == {"a": 2, "b": 7}
    alike = replace(slow, sojourns_s=lambda: (2.67, 2.6))
    assert govern(READY, alike, rules, Limits())[1].running == {"a": 9, "b": 30}


def test_the_budget_holds_while_an_operator_that_shrinks_is_awaited() -> None:
    """b stays at 3 until its request is in force, so a has no fourth slot to grow into."""
    request = replace(ask({"a": 1, "b": 2}, {"a": 2, "b": 2}), starting=True, rescaling=True, asked={"a": 1, "b": 3})
    running = govern(READY, request, Rules(), Limits(budget=4))[1].running
    assert running == {"a": 1, "b": 3}
    assert govern(READY, request, Rules(), Limits(budget=5))[1].running == {"a": 2, "b": 3}
