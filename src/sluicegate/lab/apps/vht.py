"""A streaming decision tree: each applicant is first classified, then used for training.

    parse  (stateless)  a line of text -> the applicant's figures and whether the loan was paid back
    learn  (stateful)   region -> a Hoeffding tree; processes applicants in order of turn: predicts, then learns

A tree's predictions depend on the order in which it learns, so applicants carry their turn in their region
(``sluicegate.lab.apps.turns``) and an early one waits in the state. The output is then the sequence of predictions that
river makes, whatever the batches are.

After the Vertical Hoeffding Tree of SAMOA that the paper on uncertain VMs runs. SAMOA spreads the statistics of one
tree over processors by attribute; here each region has a tree, and regions are spread. Needs river, for the tree.
Applicant i is a formula of i; some regions have far more of them than others.
"""

from __future__ import annotations

import pickle
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout

from sluicegate.lab.apps.extra import extra
from sluicegate.lab.apps.turns import Event, Queue, Turns, zipf_round
from sluicegate.lab.running.app import Answer, App, compare
from sluicegate.spark.pipeline.declaration import Pipeline

FIGURES = ("age", "salary", "savings", "loan", "years_employed", "children", "cards", "years_at_address")
_LIMITS = np.array([60, 120_000, 80_000, 200_000, 30, 5, 8, 25])
_REGIONS = Turns(zipf_round(range(8), 400))
_NOISE = 0.05
_STATE = "tree binary, queue string"
_PREDICTED = "number long, region int, label int, predicted int"

Prediction = tuple[int, int, int, int]
"""Number, region, label and prediction of an applicant; the prediction of an untrained tree is -1."""


def parse(lines: DataFrame) -> DataFrame:
    part = F.split("line", ",")
    figures = F.transform(F.slice(part, 4, len(FIGURES)), lambda figure: figure.cast("long"))
    return lines.select(
        part[0].cast("long").alias("number"),
        part[1].cast("int").alias("region"),
        part[2].cast("long").alias("turn"),
        figures.alias("figures"),
        part[3 + len(FIGURES)].cast("int").alias("label"),
    )


def learn(applicants: DataFrame) -> DataFrame:
    extra("river.tree")
    return applicants.groupBy("region").applyInPandasWithState(
        learned, _PREDICTED, _STATE, "update", GroupStateTimeout.NoTimeout
    )


def learned(key: tuple[int], applicants: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
    """Process one batch of one region; the tree is kept as a pickle."""
    kept, waiting = state.getOption or (None, None)
    tree, queue = pickle.loads(kept) if kept else new_tree(), Queue.of(waiting)
    arrived: list[Event] = []
    for some in applicants:
        known = [[int(figure) for figure in figures] for figures in some["figures"]]
        arrived += map(
            list, zip(some["turn"].tolist(), some["number"].tolist(), known, some["label"].tolist(), strict=True)
        )
    told = [
        (number, key[0], label, foretold(tree, figures, label)) for _, number, figures, label in queue.take(arrived)
    ]
    state.update((pickle.dumps(tree), queue.text()))
    if told:
        yield pd.DataFrame(told, columns=["number", "region", "label", "predicted"])


def new_tree() -> Any:
    return extra("river.tree").HoeffdingTreeClassifier(grace_period=50, delta=1e-4)


def foretold(tree: Any, figures: list[int], label: int) -> int:
    """Predict an applicant's label, then train the tree with the true label."""
    known = dict(zip(FIGURES, figures, strict=True))
    predicted = tree.predict_one(known)
    tree.learn_one(known, label)
    return -1 if predicted is None else int(predicted)


def build(key_groups: int = 4) -> Pipeline:
    pipeline = Pipeline("vht")
    applicants = pipeline.operator("parse", parse, pipeline.source("applicants", "line string"))
    predictions = pipeline.operator("learn", learn, applicants, stateful=True, key_groups=key_groups)
    pipeline.sink("predictions", predictions)
    return pipeline


def applicants_of(first: int, count: int) -> list[tuple[int, int, int, list[int], int]]:
    """Number, region, turn, figures and label (paid back: enough income for the loan, or savings)."""
    at = np.arange(first, first + count, dtype=np.int64)
    spread = (at[:, None] * 2654435761 + np.arange(len(FIGURES) + 1) * 97_003 + 12345) % 1_000_003
    drawn = spread * spread % 1_000_003 / 1_000_003
    figures = np.floor(drawn[:, :-1] * _LIMITS).astype(np.int64)
    _, salary, savings, loan, years, *_ = figures.T
    pays = (salary * (1 + years // 20) > loan) | (savings > loan // 2)
    label = pays ^ (drawn[:, -1] < _NOISE)
    owners = [_REGIONS.of(number) for number in at.tolist()]
    each = zip(at.tolist(), owners, figures.tolist(), label.astype(int).tolist(), strict=True)
    return [(number, region, turn, known, paid) for number, (region, turn), known, paid in each]


def rows(source: str, first: int, count: int) -> pa.Table:
    applicants = applicants_of(first, count)
    lines = [
        ",".join(map(str, (number, region, turn, *known, paid))) for number, region, turn, known, paid in applicants
    ]
    return pa.table({"line": pa.array(lines, pa.string())})


def predictions_of(count: int) -> list[Prediction]:
    """Predictions for the first ``count`` applicants by river alone, one by one, independently of the operators."""
    classifier = extra("river.tree").HoeffdingTreeClassifier
    trees: defaultdict[int, Any] = defaultdict(lambda: classifier(grace_period=50, delta=1e-4))
    told: list[Prediction] = []
    for number, region, _, figures, label in applicants_of(0, count):
        tree, known = trees[region], {name: figures[at] for at, name in enumerate(FIGURES)}
        guess = tree.predict_one(known)
        told.append((number, region, label, int(guess) if guess is not None else -1))
        tree.learn_one(known, label)
    return told


def check(fed: Mapping[str, int], sinks: Mapping[str, DataFrame]) -> Answer:
    found = sinks["predictions"].select("number", "region", "label", "predicted").collect()
    return judged(fed["applicants"], [tuple(map(int, row)) for row in found])


def judged(count: int, told: list[tuple[int, ...]]) -> Answer:
    """Check that every applicant comes out once, with the prediction of the plain run."""
    return compare(Counter[object](predictions_of(count)), Counter[object](told), len(told))


APP = App(
    name="vht",
    about="a Hoeffding tree for each region, tested on every applicant and then taught (stateful, in order)",
    paper="uncertainty-aware VMs",
    build=build,
    rows=rows,
    check=check,
    calm_per_s=200.0,
    slo="mean=5s",
)
