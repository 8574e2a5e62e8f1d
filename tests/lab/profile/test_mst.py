"""Measuring sustainable throughput: what is quick to see here; the cluster itself is in test_mst_measured."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import SimpleNamespace

import pytest

from sluicegate.config.capacity_file import read_capacity, read_capacity_file
from sluicegate.domain import FleetSeen, Shape
from sluicegate.errors import BadInput
from sluicegate.lab.apps import chain
from sluicegate.lab.profile.mst import MstSettings, NotConverged, _conditions, checked_sizes, measure_mst
from sluicegate.lab.profile.mst_trials import MstTrial
from sluicegate.report.mst_page import mst_page

SETTINGS = MstSettings(slots_per_node=2)


def trial(nodes: int, rate: float, use: str = "training") -> MstTrial:
    samples = tuple(rate * (1 + 0.01 * step) for step in (-2, -1, 0, 1, 2))
    return MstTrial(
        nodes, samples, "parse", {"parse": 2}, "validation" if use == "validation" else "training", 12.5, 30.0
    )


def logged(folder: Path, *trials: MstTrial, app: str = "chain") -> None:
    conditions = {**_conditions(chain.APP, SETTINGS), "app": app}
    lines = [json.dumps({"conditions": conditions, "trial": asdict(one)}) for one in trials]
    (folder / "chain.mst.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


def test_sizes_that_were_measured_before_are_not_measured_again(tmp_path: Path) -> None:
    """Nothing is started: with all sizes there, a cluster would take far longer than this."""
    logged(tmp_path, trial(1, 100.0), trial(2, 190.0), trial(4, 340.0), trial(8, 520.0, "validation"))
    said: list[str] = []
    found = measure_mst(chain.APP, (1, 2, 4), 0.001, tmp_path, said.append, SETTINGS)
    assert [text.split(":")[0] for text in said] == ["1 node", "2 nodes", "4 nodes"]
    assert [(p.machines, p.use) for p in found.file.points] == [
        (1, "training"),
        (2, "training"),
        (4, "training"),
        (8, "validation"),
    ]
    assert found.chosen == "by validation at 8 nodes"
    assert found.file.startup_s == 12.5


def test_what_is_written_is_a_capacity_file_that_replay_reads_too(tmp_path: Path) -> None:
    logged(tmp_path, trial(1, 100.0), trial(2, 190.0), trial(4, 340.0), trial(8, 520.0, "validation"))
    found = measure_mst(chain.APP, (1, 2, 4), 1.0, tmp_path, None, SETTINGS)
    assert read_capacity_file(found.path) == found.file
    assert [(m, round(rate)) for m, rate, _ in read_capacity(found.path)] == [(1, 100), (2, 190), (4, 340), (8, 520)]
    assert found.file.machine["cores"]
    assert found.file.versions["spark"]
    assert len(found.file.samples("training")) == 15


def test_sizes_beyond_the_largest_are_marked_as_extrapolated(tmp_path: Path) -> None:
    logged(tmp_path, trial(1, 100.0), trial(2, 190.0), trial(4, 340.0), trial(8, 520.0, "validation"))
    found = measure_mst(chain.APP, (1, 2, 4), 1.0, tmp_path, None, SETTINGS)
    assert [point.nodes for point in found.curve if not point.extrapolated] == [1, 2, 3, 4]
    assert all(point.low_per_s <= point.high_per_s for point in found.curve)
    document = found.document()
    assert document["model"] in (1, 2)
    text = mst_page(found.file)
    assert "model 1" in text
    assert "model 2" in text
    assert "extrapolated" in text


def test_validation_samples_choose_the_model(tmp_path: Path) -> None:
    """Three sizes fit both forms; at eight the saturating one says 210, the parabola 72: what was seen decides."""
    for rate, form in ((200.0, 1), (80.0, 2)):
        logged(tmp_path, *(trial(m, 1 / (0.004 + 0.006 / m)) for m in (1, 2, 4)), trial(8, rate, "validation"))
        assert measure_mst(chain.APP, (1, 2, 4), 1.0, tmp_path, None, SETTINGS).model.form == form


@pytest.mark.parametrize("nodes", [[], [0], [1, 65]])
def test_sizes_that_cannot_be_are_refused(nodes: list[int]) -> None:
    with pytest.raises(BadInput, match="--nodes"):
        checked_sizes(nodes)


def test_no_time_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="--minutes"):
        measure_mst(chain.APP, (1,), 0.0, tmp_path)


def test_sizes_of_another_application_or_machine_are_not_taken_over(tmp_path: Path) -> None:
    """Stopped before it starts anything, it says what it would have measured."""
    logged(tmp_path, trial(1, 100.0), app="grep")
    leave = threading.Event()
    leave.set()
    said: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        measure_mst(chain.APP, (1,), 1.0, tmp_path, said.append, SETTINGS, leave)
    assert said == []


def test_half_a_line_of_a_run_that_was_killed_does_no_harm(tmp_path: Path) -> None:
    logged(tmp_path, trial(1, 100.0), trial(2, 190.0), trial(4, 340.0), trial(8, 520.0, "validation"))
    with (tmp_path / "chain.mst.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"conditions": {"app"')
    assert measure_mst(chain.APP, (1, 2, 4), 1.0, tmp_path, None, SETTINGS).model.samples.number == 15


@dataclass
class Scattering:
    """A bench whose clock is its own: each sample comes ``sample_s`` after the one before, 10% above or below 100 a
    node in turn, so that no two in a row are close and only the mean of ten is known."""

    sample_s: float
    off: float = 0.1
    now_s: float = 0.0
    nodes: int = 1
    fed_s: float = 0.0
    doors: tuple[str, ...] = ("parse",)
    starts_s: float = 30.0
    started: list[int] = field(default_factory=list)

    def set_nodes(self, nodes: int) -> FleetSeen:
        self.nodes, self.now_s = nodes, self.now_s + self.starts_s
        self.started.append(nodes)
        return FleetSeen(Shape(2, 1, 4), (), (), nodes, startup_s=self.starts_s)

    def spread_over(self, slots: int) -> dict[str, int]:
        self.fed_s = self.now_s
        return {"parse": slots}

    def rates(self) -> dict[str, list[float]]:
        count = math.floor((self.now_s - self.fed_s) / self.sample_s)
        return {"parse": [100.0 * self.nodes * (1 + self.off * (-1) ** number) for number in range(count)]}

    def wait(self, done: Callable[[], bool], timeout_s: float) -> bool:
        until_s = self.now_s + timeout_s
        while not done():
            if self.now_s >= until_s:
                return False
            self.now_s += 0.25
        return True


@pytest.fixture
def at_work(monkeypatch: pytest.MonkeyPatch) -> Callable[[float, float], Scattering]:
    def made(sample_s: float, off: float) -> Scattering:
        found = Scattering(sample_s, off)

        @contextmanager
        def bench(*_: object) -> Iterator[Scattering]:
            yield found

        monkeypatch.setattr("sluicegate.lab.profile.mst.bench", bench)
        monkeypatch.setattr("sluicegate.lab.profile.mst.time", SimpleNamespace(monotonic=lambda: found.now_s))
        return found

    return made


@pytest.mark.parametrize("sample_s", [4.0, 8.0])
def test_a_size_gets_time_for_the_samples_that_a_scattering_throughput_needs(
    at_work: Callable[[float, float], Scattering], tmp_path: Path, sample_s: float
) -> None:
    """Starting the nodes takes all of its share, and on a busy machine batches take twice as long as they should."""
    at_work(sample_s, 0.1)
    settings = MstSettings(2, 1.0, 0.1, validate=False)
    found = measure_mst(chain.APP, (1, 2, 4), 0.5, tmp_path, None, settings)
    assert [(p.machines, len(p.samples_per_s)) for p in found.file.points] == [(1, 10), (2, 10), (4, 10)]
    assert [round(p.rate_per_s) for p in found.file.points] == [100, 200, 400]


def test_a_size_that_never_settles_ends_and_those_before_it_are_kept(
    at_work: Callable[[float, float], Scattering], tmp_path: Path
) -> None:
    restless = at_work(4.0, 0.5)
    settings = MstSettings(2, 1.0, 0.1, validate=False)
    logged(tmp_path, trial(1, 100.0))
    with pytest.raises(NotConverged, match="did not settle: the last 6 samples are"):
        measure_mst(chain.APP, (1, 2), 0.5, tmp_path, None, settings)
    assert restless.now_s < 240.0
