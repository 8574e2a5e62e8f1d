"""The user's options for an attached application, converted to and from Spark settings."""

from __future__ import annotations

import math
import re
import sys
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from sluicegate.config.typed import executors_from, goal_from
from sluicegate.errors import BadInput
from sluicegate.policy.catalogue import live_policy_entry
from sluicegate.spark.act.executors import DECOMMISSION_CONF
from sluicegate.spark.cluster.java import JAR

PREFIX = "spark.sluicegate."
PLUGIN = "sluicegate.attach.SluicegatePlugin"
EXTENSION = "sluicegate.attach.Extension"
_OF_A_QUERY = re.compile(r"query\.(.+)\.slo")
_YES, _NO = ("true", "1", "yes"), ("false", "0", "no", "")
NO_PROMISE = "none"
"""The SLO text of a query that is not to be controlled although all others are."""
KEYS = ("slo", "executors", "policy", "observe", "pace", "split", "folder", "python", "controller", "interval_s")
"""All keys that may follow the prefix, besides the SLOs of single queries."""
_MOST_NAME, _CUT_NAME = 100, 60


@dataclass(frozen=True, slots=True)
class Options:
    """SLOs of all queries and of single ones, the least and most executors, and the policy that decides.

    Without any SLO there is no target, so it only observes. ``pace`` allows changing trigger intervals and read limits,
    ``split`` reading a source in more tasks than it provides; otherwise both stay as the user set them.
    """

    slo: tuple[str, ...] = ()
    executors: tuple[int, int] | None = None
    policy: str = "sluicegate"
    observe: bool = False
    query_slo: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    interval_s: float = 2.0
    folder: str | None = None
    pace: bool = False
    split: bool = False

    def __post_init__(self) -> None:
        live_policy_entry(self.policy)
        for texts in (self.slo, *self.query_slo.values()):
            goal_from(texts)
        if self.executors is not None and not 1 <= self.executors[0] <= self.executors[1]:
            raise BadInput(
                f"executors {self.executors[0]}:{self.executors[1]}: give LEAST:MOST with 1 <= LEAST <= MOST"
            )
        if not 0 < self.interval_s < math.inf:
            raise BadInput(f"interval is {self.interval_s:g} s: give more than 0, and not without end")

    @property
    def observes_only(self) -> bool:
        return self.observe or not (self.slo or any(self.query_slo.values()))

    @property
    def own_slo(self) -> dict[str, tuple[str, ...]]:
        """SLOs of single queries, by the names that queries have in the run folder."""
        return {plain_name(name): texts for name, texts in self.query_slo.items()}

    def slo_of(self, query: str) -> tuple[str, ...]:
        """A query's own SLO, else the common one."""
        return self.own_slo.get(query, self.slo)

    @classmethod
    def of(cls, settings: Mapping[str, str]) -> Options:
        """Parse Spark settings, given without their prefix.

        >>> Options.of({"slo": "p95=10s", "executors": "1:4", "query.clicks.slo": "mean=2s"}).slo_of("clicks")
        ('mean=2s',)
        >>> Options.of({"executors": "1:4"}).observes_only
        True
        """
        own = {found[1]: _texts(value) for key, value in settings.items() if (found := _OF_A_QUERY.fullmatch(key))}
        own = {name: () if texts == (NO_PROMISE,) else texts for name, texts in own.items()}
        return cls(
            slo=_texts(settings.get("slo", "")),
            executors=executors_from(settings["executors"]) if settings.get("executors") else None,
            policy=settings.get("policy") or "sluicegate",
            observe=_yes("observe", settings),
            query_slo=own,
            interval_s=_seconds(settings.get("interval_s", "2")),
            folder=settings.get("folder"),
            pace=_yes("pace", settings),
            split=_yes("split", settings),
        )

    def settings(self) -> dict[str, str]:
        """The options as Spark settings with the prefix; defaults are left out."""
        found = {
            "slo": ",".join(self.slo),
            "executors": f"{self.executors[0]}:{self.executors[1]}" if self.executors else "",
            "policy": self.policy if self.policy != "sluicegate" else "",
            "observe": "true" if self.observes_only else "",
            "folder": self.folder or "",
            "pace": "true" if self.pace else "",
            "split": "true" if self.split else "",
            **{f"query.{name}.slo": ",".join(texts) or NO_PROMISE for name, texts in self.query_slo.items()},
        }
        return {f"{PREFIX}{key}": value for key, value in found.items() if value}


def spark_settings(options: Options) -> dict[str, str]:
    """All Spark settings that attach an application: jar, plugin, extension, the options, and decommissioning."""
    found = {
        "spark.jars": JAR,
        "spark.driver.extraClassPath": JAR,  # finds the plugin where --jars replaces spark.jars
        "spark.plugins": PLUGIN,
        "spark.sql.extensions": EXTENSION,
        f"{PREFIX}python": sys.executable,
        **options.settings(),
    }
    if options.executors is not None and not options.observes_only:
        found |= {"spark.executor.instances": str(options.executors[0]), **DECOMMISSION_CONF}
    return found


def unknown(settings: Mapping[str, str]) -> tuple[str, ...]:
    """Full names of ``spark.sluicegate.*`` settings that nothing reads, so that a typo is reported.

    >>> unknown({"sol": "p95=10s", "slo": "p95=10s", "query.clicks.slo": "mean=1s"})
    ('spark.sluicegate.sol',)
    """
    read = (key for key in settings if key in KEYS or key.startswith("test.") or _OF_A_QUERY.fullmatch(key))
    return tuple(f"{PREFIX}{key}" for key in sorted(settings.keys() - set(read)))


def plain_name(given: str) -> str:
    """A query's name in the run folder, safe as a folder name; the same rule as in Queries.java.

    >>> plain_name("clicks per page"), plain_name("клики")
    ('clicks_per_page', 'q-_____-dd28a37e')
    """
    plain = re.sub(r"[^\w.+\-]", "_", given, flags=re.ASCII)
    starts = re.match(r"[A-Za-z]", plain) and not plain.startswith(("source", "sink"))
    name = plain if starts else f"q-{plain}"
    if given.isascii() and len(name) <= _MOST_NAME:
        return name
    return f"{name[:_CUT_NAME]}-{zlib.crc32(given.encode()):08x}"


def own_promise(text: str) -> tuple[str, tuple[str, ...]]:
    """
    >>> own_promise("clicks=p95=2s")
    ('clicks', ('p95=2s',))
    """
    name, equals, promise = text.partition("=")
    if not (name and equals and promise):
        raise BadInput(f"query {text!r}: write NAME=GOAL, for example clicks=p95=2s, or NAME=none to leave it alone")
    return name, () if promise == NO_PROMISE else _texts(promise)


def _texts(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in re.split(r"[,;|]", text) if part.strip())


def _yes(key: str, settings: Mapping[str, str]) -> bool:
    """Whether a setting is on; a misspelt word is refused, since one for ``observe`` would let everything be moved."""
    text = settings.get(key, "").strip().lower()
    if text not in (*_YES, *_NO):
        raise BadInput(f"{PREFIX}{key} is {settings[key]!r}: give true or false")
    return text in _YES


def _seconds(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise BadInput(f"{PREFIX}interval_s is {text!r}: give seconds, such as 2") from None
