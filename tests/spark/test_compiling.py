"""Models that are not compiled run as plain Python, and compiled from when another process has compiled them."""

from __future__ import annotations

import subprocess
import sys
import time

from numba import njit
from numba.core.dispatcher import Dispatcher

from sluicegate.control.rehearsal import rehearse
from sluicegate.control.settings import settings_for
from sluicegate.domain import BatchCosts, Decision, Edge, Goal, Limits, Operator, Topology
from sluicegate.spark.compiling import CompiledMeanwhile


def fresh() -> object:
    """Compiles a function that is in no cache."""
    return njit(lambda x: x + 1)(1)


def compiled() -> list[bool]:
    """Whether these names stand for compiled functions; the second is an import of the first."""
    places = (("erlang", "erlang_b"), ("stations", "erlang_b"), ("stations", "_moments"))
    return [isinstance(getattr(sys.modules[f"sluicegate.model.{one}"], name), Dispatcher) for one, name in places]


def rehearsed() -> Decision:
    costs = BatchCosts(overhead_s=0.2, per_task_s=0.02)
    one = Topology("t", (Operator("a", 100.0, batch=costs),), (Edge("source", "a"),))
    return rehearse(settings_for("sluicegate", one, Goal(p95_s=10.0), Limits(budget=8)), 2.0, looks=8)


def test_they_are_plain_python_until_the_compiler_has_ended_and_compiled_after() -> None:
    with CompiledMeanwhile(fresh, [sys.executable, "-c", ""]) as models:
        assert compiled() == [False] * 3
        until = time.monotonic() + 30
        while not all(compiled()) and time.monotonic() < until:
            models.renew()
            time.sleep(0.02)
        assert compiled() == [True] * 3


def test_after_a_compiler_that_failed_they_stay_plain_python_and_nothing_is_left_behind() -> None:
    with CompiledMeanwhile(fresh, [sys.executable, "-c", "raise SystemExit(1)"]) as models:
        assert models._compiler is not None
        models._compiler.wait()
        models.renew()
        assert compiled() == [False] * 3
    assert compiled() == [True] * 3


def test_a_compiler_that_still_runs_ends_with_its_controller() -> None:
    with CompiledMeanwhile(fresh, ["sleep", "60"]) as models:
        compiler = models._compiler
    assert isinstance(compiler, subprocess.Popen)
    assert compiler.returncode is not None


def test_models_that_are_in_the_cache_start_no_compiler() -> None:
    with CompiledMeanwhile(lambda: None, ["sleep", "60"]) as models:
        assert models._compiler is None
        assert compiled() == [True] * 3


def test_plain_python_decides_as_the_compiled_models_do() -> None:
    fast = rehearsed()
    with CompiledMeanwhile(fresh, ["sleep", "60"]):
        plain = rehearsed()
    assert plain.running == fast.running
    assert plain.reasons == fast.reasons
    assert plain.proposal == fast.proposal
