"""The table of all applications by name; the module of an application is imported on first use.

The table repeats facts of the modules, so that listing applications does not load Spark; a test compares the two.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module
from typing import TYPE_CHECKING

from sluicegate.errors import BadInput

if TYPE_CHECKING:
    from sluicegate.lab.running.app import App


@dataclass(frozen=True, slots=True)
class Listed:
    """The listed facts of an application, and the module in this package that defines it."""

    module: str
    about: str
    paper: str
    slo: str
    calm_per_s: float


LISTED: Mapping[str, Listed] = {
    "wordcount": Listed(
        "wordcount",
        "lines split into words, words counted (stateful)",
        "Es-Stream, Mc-Stream",
        "mean=3s",
        500.0,
    ),
    "wordcount_prose": Listed(
        "wordcount",
        "lines as long as a book's, of a vocabulary of 20,000 words: split, counted (stateful, 16 key groups)",
        "Es-Stream, Mc-Stream",
        "mean=5s",
        500.0,
    ),
    "chain": Listed(
        "chain",
        "three operators in a row that wait for each row (2, 4 and 1 ms)",
        "model-driven (linear), DRS",
        "mean=5s",
        150.0,
    ),
    "top_n": Listed(
        "top_n",
        "the most bought items of a shop: parse, count, rank by bucket, merge (three stateful operators)",
        "Es-Stream, Mc-Stream",
        "mean=5s",
        300.0,
    ),
    "shop": Listed(
        "top_n",
        "top_n with a look-up at a service before the count (8 ms a purchase): what the demo runs",
        "Es-Stream, Mc-Stream",
        "mean=5s",
        300.0,
    ),
    "payments": Listed(
        "payments",
        "cards hidden by a hash, payments scored: screen, score; SQL alone, so it runs in real-time mode too",
        "DRS (real-time mode)",
        "mean=3s",
        300.0,
    ),
    "fpd": Listed(
        "fpd",
        "maximal frequent patterns in a sliding window: generate, detect (stateful, with a loop to itself), report",
        "DRS",
        "mean=8s",
        50.0,
    ),
    "fpd_50000": Listed(
        "fpd",
        "fpd with a window of 50,000 transactions, as in the paper",
        "DRS",
        "mean=8s",
        50.0,
    ),
    "fpd_waiting": Listed(
        "fpd",
        "fpd whose transactions are fetched (5 ms) and patterns looked up (0.6 ms), so that k matters where "
        "cores are few",
        "DRS",
        "mean=8s",
        50.0,
    ),
    "linear": Listed(
        "dataflows",
        "five tasks in a row: blob, table, pi, XML parse, batch file write",
        "model-driven (linear)",
        "mean=6s",
        40.0,
    ),
    "diamond": Listed(
        "dataflows",
        "four tasks side by side, then pi for what all of them give",
        "model-driven (diamond)",
        "mean=6s",
        20.0,
    ),
    "star": Listed(
        "dataflows",
        "blob and table into a hub (pi), which gives to XML parse and batch file write",
        "model-driven (star)",
        "mean=6s",
        25.0,
    ),
    "linear_waiting": Listed(
        "dataflows",
        "five tasks in a row: blob, table, pi, XML parse, batch file write, none of which computes",
        "model-driven (linear)",
        "mean=6s",
        100.0,
    ),
    "diamond_waiting": Listed(
        "dataflows",
        "four tasks side by side, then pi for what all of them give, none of which computes",
        "model-driven (diamond)",
        "mean=6s",
        80.0,
    ),
    "star_waiting": Listed(
        "dataflows",
        "blob and table into a hub (pi), which gives to XML parse and batch file write, none of which computes",
        "model-driven (star)",
        "mean=6s",
        60.0,
    ),
    "commodity_count": Listed(
        "commodity_count",
        "views per item of a shop, from user behaviour: read, count (stateful), report",
        "Es-Stream",
        "mean=3s",
        500.0,
    ),
    "grep": Listed(
        "grep",
        "lines that match patterns, counted per pattern: match, count (stateful)",
        "uncertainty-aware",
        "mean=3s",
        500.0,
    ),
    "rolling_count": Listed(
        "rolling_count",
        "events per category in a window of a minute that moves by 10 s: read, count (stateful, by event time)",
        "uncertainty-aware",
        "mean=3s",
        300.0,
    ),
    "unique_visitor": Listed(
        "unique_visitor",
        "different visitors of each page, exactly: view, first (stateful), count (stateful)",
        "uncertainty-aware",
        "mean=4s",
        400.0,
    ),
    "page_view": Listed(
        "page_view",
        "views per page, and per minute and network: view, then pages and minutes side by side (both stateful)",
        "uncertainty-aware",
        "mean=4s",
        400.0,
    ),
    "data_clean": Listed(
        "data_clean",
        "dirty lines parsed, repaired and judged: clean records here, the others there with the reason",
        "uncertainty-aware",
        "mean=3s",
        400.0,
    ),
    "hashtags_60s": Listed(
        "hashtags",
        "the most frequent tags of the last 60 s, every 5 s, as in the paper: extract, count, top (both stateful)",
        "uncertainty-aware",
        "mean=5s",
        100.0,
    ),
    "hashtags": Listed(
        "hashtags",
        "the most frequent tags of the last hour: extract, count (stateful, by event time), top (stateful)",
        "uncertainty-aware",
        "mean=5s",
        100.0,
    ),
    "vld": Listed(
        "vld",
        "logos in a video: SIFT features, matched with those of 16 logos, added up by frame (stateful)",
        "DRS",
        "mean=5s",
        10.0,
    ),
    "vld_waiting": Listed(
        "vld",
        "vld whose frames are fetched (50 ms) and logos looked up (20 ms a part): k matters where cores are few",
        "DRS",
        "mean=8s",
        8.0,
    ),
    "vht": Listed(
        "vht",
        "a Hoeffding tree for each region, tested on every applicant and then taught (stateful, in order)",
        "uncertainty-aware VMs",
        "mean=5s",
        200.0,
    ),
    "traffic": Listed(
        "traffic",
        "the speed on each road: taxi trips parsed, matched to roads, averaged by ten minutes (stateful)",
        "model-driven",
        "mean=4s",
        300.0,
    ),
    "finance": Listed(
        "finance",
        "offers below the volume-weighted average price of a share's last trades (two sources, stateful, in order)",
        "model-driven",
        "mean=5s",
        200.0,
    ),
    "grid": Listed(
        "grid",
        "the load of houses and their outliers by minute: plugs averaged, compared by house (two stateful)",
        "model-driven",
        "mean=5s",
        300.0,
    ),
    "traffic_tasks": Listed(
        "task_dataflows",
        "the 11 operators of the paper's traffic dataflow, each one of five tasks",
        "model-driven (traffic)",
        "mean=20s",
        10.0,
    ),
    "finance_tasks": Listed(
        "task_dataflows",
        "the 7 operators of the paper's finance dataflow, each one of five tasks",
        "model-driven (finance)",
        "mean=20s",
        10.0,
    ),
    "grid_tasks": Listed(
        "task_dataflows",
        "the 15 operators of the paper's grid dataflow, each one of five tasks",
        "model-driven (grid)",
        "mean=20s",
        10.0,
    ),
    "traffic_tasks_waiting": Listed(
        "task_dataflows",
        "the 11 operators of the paper's traffic dataflow, each one of five tasks, none of which computes",
        "model-driven (traffic)",
        "mean=20s",
        20.0,
    ),
    "finance_tasks_waiting": Listed(
        "task_dataflows",
        "the 7 operators of the paper's finance dataflow, each one of five tasks, none of which computes",
        "model-driven (finance)",
        "mean=20s",
        20.0,
    ),
    "grid_tasks_waiting": Listed(
        "task_dataflows",
        "the 15 operators of the paper's grid dataflow, each one of five tasks, none of which computes",
        "model-driven (grid)",
        "mean=20s",
        20.0,
    ),
    "flight_distances": Listed(
        "flight_distances",
        "distance flown by each aircraft, and pairs that come near, from ADS-B messages (two stateful, in order)",
        "uncertainty-aware VMs",
        "mean=6s",
        150.0,
    ),
    **{
        f"{name}_waiting": Listed(
            "eight_waiting",
            f"{name} whose rows are fetched first (20 ms each), so that nodes matter where cores are few",
            paper,
            "mean=8s",
            60.0,
        )
        for name, paper in (
            ("grep", "uncertainty-aware"),
            ("rolling_count", "uncertainty-aware"),
            ("unique_visitor", "uncertainty-aware"),
            ("page_view", "uncertainty-aware"),
            ("data_clean", "uncertainty-aware"),
            ("vht", "uncertainty-aware VMs"),
            ("hashtags", "uncertainty-aware"),
            ("flight_distances", "uncertainty-aware VMs"),
        )
    },
}


class Apps(Mapping[str, "App"]):
    """The applications by name, each imported on first use."""

    def __getitem__(self, name: str) -> App:
        from sluicegate.lab.running.app import App

        module = import_module(f"sluicegate.lab.apps.{LISTED[name].module}")
        defined = (value if isinstance(value, tuple) else (value,) for value in vars(module).values())
        return next(app for group in defined for app in group if isinstance(app, App) and app.name == name)

    def __iter__(self) -> Iterator[str]:
        return iter(LISTED)

    def __len__(self) -> int:
        return len(LISTED)


APPS = Apps()


def app_named(name: str) -> App:
    """
    >>> app_named("wordcount").slo
    'mean=3s'
    """
    if name in LISTED:
        return APPS[name]
    close = get_close_matches(name, LISTED, n=1)
    hint = f"did you mean {close[0]!r}? " if close else ""
    raise BadInput(f"no application {name!r}: {hint}`sluicegate apps` lists them; or give a file such as app.py")
