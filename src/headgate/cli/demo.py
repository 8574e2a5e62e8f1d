"""`headgate demo`: a plan and a simulated run, in which a load triples and falls back and the pipeline follows."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from headgate.act.rules import Rules
from headgate.cli.out import console, print_json, progress_bar, rate, seconds
from headgate.cli.plan import show as show_plan
from headgate.config.goal_text import goal_from
from headgate.domain import BatchCosts, Decision, Edge, Goal, Operator, Topology
from headgate.forecast.catalogue import forecaster
from headgate.loop import Settings
from headgate.plan.catalogue import policy_entry
from headgate.planning import make_plan
from headgate.simulate.episode import Course, Episode, Moment, run_episode

# Figures of the order that small Spark operators have on two cores; the run is simulated, and says so.
_COSTS = BatchCosts(overhead_s=0.14, per_task_s=0.03, commit_s=0.04)
SHOP = Topology(
    "shop top-N",
    (
        Operator("read", 2200.0, batch=_COSTS),
        Operator("count", 900.0, stateful=True, batch=_COSTS),
        Operator("rank", 700.0, stateful=True, batch=_COSTS),
        Operator("merge", 1500.0, stateful=True, batch=_COSTS),
    ),
    (Edge("source", "read"), Edge("read", "count"), Edge("count", "rank", 0.4), Edge("rank", "merge", 0.1)),
)
CALM_PER_S, BUSY_PER_S = 1500.0, 4500.0
_STEPS = 144
_SHOWN = 24


def demo(
    length: Annotated[float, typer.Option("--seconds", min=120.0, help="Simulated time.")] = 1440.0,
    policy: Annotated[str, typer.Option(help="Who decides; see `headgate policies`.")] = "headgate",
    slo: Annotated[str, typer.Option(metavar="GOAL", help="The promise, for example mean=4s.")] = "mean=4s",
    seed: Annotated[int, typer.Option(help="The same seed gives the same run.")] = 1,
    browser: Annotated[bool, typer.Option(help="Open what there is to see in a browser (nothing yet).")] = True,
    json_out: Annotated[bool, typer.Option("--json", help="One JSON document.")] = False,
) -> int:
    """Show a shop's top-N pipeline follow a load that triples and falls back, on simulated micro-batches."""
    goal, out = goal_from([slo]), console()
    load = tuple(_load_per_s(i / _STEPS) for i in range(_STEPS))
    calm = make_plan(SHOP, CALM_PER_S, policy, goal)
    peak = make_plan(SHOP, BUSY_PER_S, policy, goal)
    entry = policy_entry(policy)
    settings = Settings(
        SHOP,
        entry.build(load),
        goal,
        rules=Rules(cooldown_s=20.0, settle_down_s=60.0, pause_s=0.5),
        forecaster=forecaster("trend", step_s=10.0) if entry.forecaster else None,
    )
    course = Course(load, length / _STEPS, interval_s=5.0, startup_s=5.0, mode="micro-batch")
    if not json_out:
        out.print("[bold]1. The plan before anything runs[/]\n")
        show_plan(calm, out)
        out.print(f"\n[bold]2. A simulated run: {rate(CALM_PER_S)}, then three times as much, then back[/]\n")
        typer.echo("(the first run on a machine compiles the simulator: half a minute)", err=True)
    with progress_bar("simulating", quiet=json_out) as progress:
        episode = run_episode(settings, course, calm.proposal.processors, seed, progress)
    static = peak.proposal.total * course.seconds
    if json_out:
        print_json(as_document(episode, policy, goal, static))
    else:
        _show(episode, policy, goal, static, course, out)
    return 0 if episode.rows_in == episode.rows_out + episode.rows_inside else 1


def _load_per_s(share: float) -> float:
    """Calm, up to three times as much within a sixth of the run, and back as fast."""
    ramp = min(max((share - 0.2) * 6, 0.0), max((0.8 - share) * 6, 0.0), 1.0)
    return CALM_PER_S + (BUSY_PER_S - CALM_PER_S) * ramp


def as_document(episode: Episode, policy: str, goal: Goal, static_slot_s: float) -> dict[str, object]:
    """The JSON of the command-line contract; nothing computes answers here, so whether they are exact is not known."""
    means, rows = _weighted(episode)
    missing = episode.rows_in - episode.rows_out - episode.rows_inside
    return {
        "app": SHOP.name,
        "simulated": True,
        "policy": policy,
        "goal": goal.latency_bounds,
        "rows_in": episode.rows_in,
        "rows_out": episode.rows_out,
        "rows_inside": episode.rows_inside,
        "lost": max(missing, 0),
        "duplicated": max(-missing, 0),
        "answer_exact": None,
        "slo_kept": episode.kept_share,
        "slot_seconds": episode.slot_seconds,
        "slot_seconds_static_peak": static_slot_s,
        "rescales": episode.rescales,
        "mean_s": means / rows if rows else None,
        "p95_s": _p95(episode),
        "decisions": [_decision(moment.decision) for moment in episode.moments if moment.decision.moves],
    }


def _decision(decision: Decision) -> dict[str, object]:
    return {
        "at_s": decision.at_s,
        "running": dict(decision.running),
        "rescales": [asdict(rescale) for rescale in decision.rescales],
        "reasons": list(decision.reasons),
    }


def _weighted(episode: Episode) -> tuple[float, float]:
    """Sum of row-seconds and of rows over the intervals in which rows came out."""
    seen = [(m.observation.sojourn, m.observation.throughput_per_s) for m in episode.moments]
    pairs = [(s.mean_s, r) for s, r in seen if s is not None and r]
    return sum(mean * r for mean, r in pairs), sum(r for _, r in pairs)


def _p95(episode: Episode) -> float | None:
    """The largest p95 of an interval but for the worst twentieth of them."""
    found = sorted(m.observation.sojourn.p95_s or 0.0 for m in episode.moments if m.observation.sojourn is not None)
    return found[int(0.95 * (len(found) - 1))] if found else None


def _show(episode: Episode, policy: str, goal: Goal, static_slot_s: float, course: Course, out: Console) -> None:
    out.print(_timeline(episode, course))
    out.print("\n[bold]every move and why[/]")
    for moment in episode.moments:
        if moment.decision.moves:
            moves = ", ".join(f"{r.operator} {r.have} -> {r.want}" for r in moment.decision.rescales)
            out.print(f"  {moment.decision.at_s:6.0f} s  {moves}: {escape('; '.join(moment.decision.reasons[:2]))}")
    promise = ", ".join(f"{what} <= {seconds(bound)}" for what, bound in goal.latency_bounds.items())
    kept = f"{episode.kept_share:.1%}" if episode.kept_share is not None else "-"
    out.print(
        f"\n[bold]{policy}[/] kept {promise or 'no promise'} for {kept} of {episode.rows_in:,} rows with "
        f"{episode.slot_seconds / static_slot_s:.0%} of static peak's slot-seconds, in {episode.rescales} moves.\n"
        f"{episode.rows_in:,} rows in, {episode.rows_out:,} out, {episode.rows_inside:,} still inside, "
        f"{episode.rows_in - episode.rows_out - episode.rows_inside} lost."
    )


def _timeline(episode: Episode, course: Course) -> Table:
    table = Table(box=None, pad_edge=False)
    for heading in ("time", "load", "latency", "processors", "read/count/rank/merge", ""):
        table.add_column(heading, justify="left" if heading == "" else "right")
    every = max(len(episode.moments) // _SHOWN, 1)
    for moment in episode.moments[every - 1 :: every]:
        table.add_row(*_row(moment))
    return table


def _row(moment: Moment) -> tuple[str, ...]:
    seen = moment.observation
    total = sum(seen.running.values())
    split = "/".join(str(seen.running[name]) for name in SHOP.names)
    latency = seconds(seen.sojourn.mean_s) if seen.sojourn else "-"
    return f"{seen.at_s:.0f} s", rate(seen.arrivals_per_s or 0.0), latency, str(total), split, "#" * total
