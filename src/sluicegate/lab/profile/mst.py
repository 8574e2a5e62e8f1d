"""`profile APP --mst`: measures the maximum sustainable throughput of an application on m nodes and fits a curve.

The sources are filled ahead and the application runs flat out on 1, 2, 4, ... nodes (``mst_bench``). The throughput of
the slowest operator is sampled over the duration of three batches; a size is done once K of the last N samples are
within delta of the one before, or the mean of 2 N is known that well (``model.mst_samples``). Both models are fitted
to the samples of all sizes; if they differ by more than 5% at a size that was not measured, the size where they differ
most is measured too and decides between them. Measured sizes are appended to OUT/APP.mst.jsonl, so that the same
command resumes after an interruption.
"""

from __future__ import annotations

import math
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean

from sluicegate.config.capacity_file import CapacityFile, CapacityPoint, Use, capacity_text
from sluicegate.config.machine import machine_facts, version_facts
from sluicegate.domain.figures import rate
from sluicegate.errors import BadInput, SluicegateError
from sluicegate.lab.profile.mst_bench import SAMPLE_BATCHES, MstBench, Starting, bench
from sluicegate.lab.profile.mst_trials import MstTrial, MstTrialFile
from sluicegate.lab.running.app import App
from sluicegate.model.mst import MstModel, choose_model, fit_model, most_disagreeing
from sluicegate.model.mst_samples import converged, mean_known, samples_of
from sluicegate.runlog.files import write_whole

Progress = Callable[[str], None]
LATEST, STEADY = 5, 4
"""N and K of the paper."""
_MOST_NODES = 64
_LEAST_SAMPLES = 2 * LATEST + 2
"""Once its nodes have started, a size gets time for at least this many samples, however little is left: on a busy
machine the start of the nodes may have used up its share. Enough for the mean of 2 N; fewer, and a throughput that
scatters could only settle by chance."""
_OVERHEAD = 1.6
"""Duration of a batch including its overhead, relative to ``batch_s``."""
_SLOWEST = 2.0
"""Where batches take longer than that, a size gets more time for its samples, up to this factor: half leaves a busy
machine without a result, double may take minutes longer than asked for."""
_CLEARLY = 0.9
_95 = 1.96


class NotConverged(SluicegateError):
    """The throughput of a size did not settle."""

    exit_code = 1


@dataclass(frozen=True, slots=True)
class MstSettings:
    """Settings of the measurement. Sizes measured with other settings, on another machine or version are not reused.

    ``batch_s`` is the target duration of a batch flat out; longer batches pay their overhead less often. ``delta`` is
    the allowed relative difference between consecutive samples. ``source`` distinguishes versions of a user's file.
    """

    slots_per_node: int = 4
    batch_s: float = 2.0
    delta: float = 0.05
    validate: bool = True
    source: str = ""

    @property
    def least_s(self) -> float:
        """Least time for measuring one size."""
        return _LEAST_SAMPLES * SAMPLE_BATCHES * self.batch_s * _OVERHEAD

    def __post_init__(self) -> None:
        if self.slots_per_node < 1:
            raise BadInput(f"{self.slots_per_node} slots a node: give at least 1")
        if not self.batch_s > 0 or not 0 < self.delta < 1:
            raise BadInput(
                f"batches of {self.batch_s:g} s, --delta {self.delta:g}: give a time above 0, a share from 0 to 1"
            )


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """Both models at one size, and the 95% interval of the chosen one."""

    nodes: int
    form_1_per_s: float
    form_2_per_s: float
    low_per_s: float
    high_per_s: float
    measured: bool
    extrapolated: bool


@dataclass(frozen=True, slots=True)
class MstMeasured:
    """The result: the capacity file and its path, the curve, and how its model was chosen."""

    file: CapacityFile
    path: Path
    model: MstModel
    curve: tuple[CurvePoint, ...]
    chosen: str
    notes: tuple[str, ...] = ()

    def document(self) -> dict[str, object]:
        """The output of `profile --mst --json`."""
        return {
            "app": self.file.app,
            "mst": [
                {"nodes": p.machines, "rate_per_s": p.rate_per_s, "sd_per_s": p.sd_per_s, "use": p.use}
                for p in self.file.points
            ],
            "model": self.model.form,
            "sd_per_s": self.model.sd_per_s,
            "chosen": self.chosen,
            "startup_s": self.file.startup_s,
            "curve": [asdict(point) for point in self.curve],
            "file": str(self.path),
            "notes": list(self.notes),
        }


def measure_mst(
    app: App,
    nodes: Sequence[int],
    minutes: float,
    out: Path,
    progress: Progress | None = None,
    settings: MstSettings | None = None,
    leave: threading.Event | None = None,
    starting: Starting = nullcontext,
) -> MstMeasured:
    """Measure the sizes ``nodes`` within about ``minutes`` once Spark is warm, and write OUT/APP.mst.toml.

    Setting ``leave`` acts like Ctrl-C: measured sizes are kept, and no process is left running.
    """
    sizes, settings, say = checked_sizes(nodes), settings or MstSettings(), progress or (lambda text: None)
    if not minutes > 0 or not math.isfinite(minutes):
        raise BadInput(f"--minutes is {minutes}: give a time above 0")
    log = MstTrialFile(out / f"{app.name}.mst.jsonl", _conditions(app, settings))
    known = {trial.nodes: trial for trial in log.read()}
    for size in sizes:
        if size in known:
            say(f"{_count(size)}: {rate(known[size].rate_per_s)}, measured before and kept")
    run = _Run(app, settings, log, say, leave or threading.Event(), 60 * minutes, known, starting)
    try:
        run.measure(sizes)
    except BaseException:  # also on Ctrl-C: write the sizes measured so far
        so_far = tuple(size for size in sizes if size in known)
        if so_far:
            say(f"what was measured is in {_written(app, settings, run, so_far, out).path}")
        raise
    return _written(app, settings, run, sizes, out)


def checked_sizes(nodes: Sequence[int]) -> tuple[int, ...]:
    """The sizes in ascending order, without duplicates.

    >>> checked_sizes([4, 1, 2, 2])
    (1, 2, 4)
    """
    if not nodes:
        raise BadInput("--nodes is empty: give sizes such as 1,2,4")
    for size in nodes:
        if not 1 <= size <= _MOST_NODES:
            raise BadInput(f"--nodes has {size}: give sizes from 1 to {_MOST_NODES}, such as 1,2,4")
    return tuple(sorted(set(nodes)))


def _conditions(app: App, settings: MstSettings) -> dict[str, object]:
    own = {key: value for key, value in asdict(settings).items() if key != "validate"}
    return {"app": app.name, **own, "machine": machine_facts(), "versions": version_facts()}


@dataclass(slots=True)
class _Run:
    """A measurement: the sizes known so far; starts the bench only if one has to be measured."""

    app: App
    settings: MstSettings
    log: MstTrialFile
    say: Progress
    leave: threading.Event
    measure_s: float
    known: dict[int, MstTrial]
    starting: Starting = nullcontext
    notes: list[str] = field(default_factory=list)
    fresh: int = 0
    slowest_s: float = 0.0
    """Time of the slowest size so far."""
    until_s: float = 0.0
    """Deadline of the measurement; its time starts once Spark is warm."""

    def measure(self, sizes: tuple[int, ...]) -> None:
        """Measure all unknown sizes, then the one that decides between the models."""
        missing = [size for size in sizes if size not in self.known]
        if not missing and (not self.settings.validate or self._deciding(sizes) is None):
            return
        if self.leave.is_set():
            raise KeyboardInterrupt
        self.say("starting Spark on a cluster of one local worker")
        with (
            tempfile.TemporaryDirectory(prefix="sluicegate-mst-") as folder,
            bench(
                self.app,
                2 * sizes[-1],
                self.settings.slots_per_node,
                self.settings.batch_s,
                Path(folder),
                self.leave,
                self.starting,
            ) as at_work,
        ):
            self.until_s = time.monotonic() + self.measure_s  # on a busy machine Spark's start alone may take minutes
            for done, size in enumerate(missing):
                self._one(at_work, size, "training", len(missing) - done - 1)
            deciding = self._deciding(sizes) if self.settings.validate else None
            if deciding is not None:
                self._validate(at_work, deciding)

    def _deciding(self, sizes: tuple[int, ...]) -> int | None:
        """The size where the models differ most; ``None`` if a validation size was measured already."""
        if any(trial.use == "validation" and trial.nodes not in sizes for trial in self.known.values()):
            return None
        if not all(size in self.known for size in sizes):
            return sizes[-1]  # not ``None``: training sizes are still missing
        training = samples_of((size, rate) for size in sizes for rate in self.known[size].samples_per_s)
        return most_disagreeing(fit_model(training, 1, 2 * sizes[-1]), fit_model(training, 2, 2 * sizes[-1]))

    def _validate(self, at_work: MstBench, size: int) -> None:
        """Measure the validation size; if that fails the training error chooses the model."""
        try:
            self._one(at_work, size, "validation", 0)
        except SluicegateError as problem:
            self.notes.append(f"no validation at {_count(size)}: {problem}")

    def _one(self, at_work: MstBench, size: int, use: Use, left: int) -> None:
        """Measure one size; ``left`` training sizes come after it."""
        began_s = time.monotonic()
        share_s = self._time_for_one(began_s, left)
        self.say(f"{_count(size)}: starting, {left} sizes after it, at most {share_s:.0f} s for this one")
        fleet = at_work.set_nodes(size)
        slots = size * self.settings.slots_per_node
        until_s = max(began_s + share_s, time.monotonic() + self.settings.least_s)
        fed_s = time.monotonic()
        at_work.spread_over(slots)
        self._until_told(at_work, size, 1, until_s)
        told_s = time.monotonic()
        samples_s = min(_LEAST_SAMPLES * (told_s - fed_s), _SLOWEST * self.settings.least_s)
        until_s = max(until_s, told_s + samples_s)
        processors = at_work.spread_over(slots)  # again, with row costs measured flat out instead of from the warm-up
        limit, samples = self._until_steady(at_work, size, until_s, left)
        took_s = time.monotonic() - began_s
        trial = MstTrial(size, tuple(samples), limit, processors, use, fleet.startup_s, round(took_s, 1))
        self.known[size] = trial
        self.fresh += 1
        self.slowest_s = max(self.slowest_s, took_s)
        self.log.add(trial)
        self.say(f"{_count(size)}: {rate(trial.rate_per_s)}, sd {rate(trial.sd_per_s)}, limited by {limit}")

    def _time_for_one(self, now_s: float, left: int) -> float:
        """An equal share of the time left, or more if the sizes so far took less than theirs.

        Validation uses what remains; without it the training error chooses the model.
        """
        there_s, least_s = self.until_s - now_s, self.settings.least_s
        return max(there_s / (left + 1), there_s - left * max(self.slowest_s, least_s) if self.fresh else 0.0, least_s)

    def _until_told(self, at_work: MstBench, size: int, samples: int, until_s: float) -> None:
        """Wait until the slowest operator has this many samples; ``NotConverged`` at the deadline."""
        if not at_work.wait(lambda: len(_slowest(at_work)[1]) >= samples, until_s - time.monotonic()):
            raise NotConverged(_no_batches(size))

    def _until_steady(self, at_work: MstBench, size: int, until_s: float, left: int) -> tuple[str, list[float]]:
        told = 0

        def steady() -> bool:
            nonlocal told
            samples = _slowest(at_work)[1]
            if len(samples) > told:
                told = len(samples)
                left_s = max(until_s - time.monotonic(), 0.0)
                self.say(
                    f"{_count(size)}: {told} samples, the last {rate(samples[-1])}; at most {left_s:.0f} s, "
                    f"{left} sizes after it"
                )
            return self._settled(samples) > 0

        if not at_work.wait(steady, until_s - time.monotonic()):
            samples = _slowest(at_work)[1]
            if len(samples) <= LATEST:
                raise NotConverged(_no_batches(size))
            raise NotConverged(
                f"the throughput of {_count(size)} did not settle: the last {LATEST + 1} samples are "
                f"{', '.join(f'{one:.4g}' for one in samples[-LATEST - 1 :])} rows/s, wanted are {STEADY} of {LATEST} "
                f"within {self.settings.delta:.0%} of the one before, or a mean of {2 * LATEST} known that well; give "
                "more --minutes, a larger --delta, or a machine with less else to do; sizes measured before are kept"
            )
        limit, samples = _slowest(at_work)
        return limit, samples[-max(self._settled(samples), LATEST) :]

    def _settled(self, samples: Sequence[float]) -> int:
        """How many of the last samples give the throughput; 0 while it has not settled."""
        if converged(samples, LATEST, STEADY, self.settings.delta):
            return LATEST
        return 2 * LATEST if mean_known(samples, LATEST, self.settings.delta) else 0


def _slowest(at_work: MstBench) -> tuple[str, list[float]]:
    """The operator with the lowest throughput, and its samples; none until all operators at the sources have some.

    Flat out all operators soon have the same throughput, since those at the sources wait for the others. So one at a
    source is used, as its batches are the most even, unless another one is clearly slower (below ``_CLEARLY``).
    """
    rates = {name: samples for name, samples in at_work.rates().items() if samples}
    if not all(door in rates for door in at_work.doors):
        return "", []
    means = {name: fmean(samples) for name, samples in rates.items()}
    name, door = min(means, key=means.__getitem__), min(at_work.doors, key=means.__getitem__)
    name = name if means[name] < _CLEARLY * means[door] else door
    return name, rates[name]


def _written(app: App, settings: MstSettings, run: _Run, sizes: tuple[int, ...], out: Path) -> MstMeasured:
    trials = [trial for size, trial in sorted(run.known.items()) if size in sizes or trial.use == "validation"]
    training = [(t.nodes, rate) for t in trials if t.nodes in sizes for rate in t.samples_per_s]
    judges = [(t.nodes, rate) for t in trials if t.nodes not in sizes for rate in t.samples_per_s]
    largest = 2 * sizes[-1]
    model = choose_model(training, judges, largest=largest)
    one, two = fit_model(samples_of(training), 1, largest), fit_model(samples_of(training), 2, largest)
    curve = tuple(_curve_point(m, one, two, model, sizes, judges) for m in range(1, largest + 1))
    deciding = sorted({m for m, _ in judges})
    chosen = (
        f"by validation at {', '.join(map(str, deciding))} nodes"
        if deciding
        else "by training error: the models differ by less than 5% at every other size, or none could be measured"
    )
    starts = [t.startup_s for t in trials if t.startup_s is not None]
    file = CapacityFile(
        tuple(
            CapacityPoint(
                t.nodes,
                round(t.rate_per_s, 3),
                round(t.sd_per_s, 3),
                tuple(round(rate, 3) for rate in t.samples_per_s),
                "training" if t.nodes in sizes else "validation",
            )
            for t in trials
        ),
        app=app.name,
        measured=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        slots_per_node=settings.slots_per_node,
        startup_s=round(starts[-1], 2) if starts else None,
        model=model.form,
        assumed=_assumed(settings, trials),
        machine=machine_facts(),
        versions=version_facts(),
    )
    path = out / f"{app.name}.mst.toml"
    write_whole(path, capacity_text(file))
    return MstMeasured(file, path, model, curve, chosen, tuple(run.notes))


def _curve_point(
    m: int, one: MstModel, two: MstModel, chosen: MstModel, sizes: tuple[int, ...], judges: list[tuple[int, float]]
) -> CurvePoint:
    mean, half = chosen.mean_per_s(m), _95 * chosen.sd_per_s
    measured = m in sizes or any(m == size for size, _ in judges)
    return CurvePoint(
        m, one.mean_per_s(m), two.mean_per_s(m), max(mean - half, 0.0), mean + half, measured, m > sizes[-1]
    )


def _assumed(settings: MstSettings, trials: list[MstTrial]) -> tuple[str, ...]:
    limits = ", ".join(dict.fromkeys(t.limit for t in trials))
    return (
        f"nodes are workers of a local cluster on one machine, each with one executor of {settings.slots_per_node} "
        "task slots: computing operators share the machine's cores, waiting ones do not need them",
        f"flat out, sources filled ahead, batches of about {settings.batch_s:g} s; limited by {limits}",
        f"converged when {STEADY} of the last {LATEST} samples were within {settings.delta:.0%} of the one before, or "
        f"the mean of {2 * LATEST} was known that well",
        "sizes beyond the largest training size are extrapolated",
    )


def _no_batches(size: int) -> str:
    return (
        f"{_count(size)}: fewer than {LATEST + 1} samples came in the time there was; give more --minutes; sizes "
        "measured before are kept"
    )


def _count(nodes: int) -> str:
    return f"{nodes} node" if nodes == 1 else f"{nodes} nodes"
