"""What a user asks of an attached application: as Spark settings, as words for spark-submit, and back."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from sluicegate.config.goal_text import goal_from
from sluicegate.errors import BadInput
from sluicegate.policy.catalogue import live_policy_entry
from sluicegate.spark.act.executors import DECOMMISSION_CONF
from sluicegate.spark.cluster.java import JAR

PREFIX = "spark.sluicegate."
PLUGIN = "sluicegate.attach.SluicegatePlugin"
EXTENSION = "sluicegate.attach.Extension"
_OF_A_QUERY = re.compile(r"query\.(.+)\.slo")
_YES = ("true", "1", "yes")


@dataclass(frozen=True, slots=True)
class Options:
    """The promise of all queries and of single ones, executors between least and most, and who decides.

    Without any promise it only observes: nobody said what is good enough.
    """

    slo: tuple[str, ...] = ()
    executors: tuple[int, int] | None = None
    policy: str = "sluicegate"
    observe: bool = False
    query_slo: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    interval_s: float = 2.0
    folder: str | None = None

    def __post_init__(self) -> None:
        live_policy_entry(self.policy)
        for texts in (self.slo, *self.query_slo.values()):
            goal_from(texts)
        if self.executors is not None and not 1 <= self.executors[0] <= self.executors[1]:
            raise BadInput(
                f"executors {self.executors[0]}:{self.executors[1]}: give LEAST:MOST with 1 <= LEAST <= MOST"
            )
        if not self.interval_s > 0:
            raise BadInput(f"interval is {self.interval_s:g} s: give more than 0")

    @property
    def observes_only(self) -> bool:
        return self.observe or not (self.slo or self.query_slo)

    def slo_of(self, query: str) -> tuple[str, ...]:
        """A query's own promise, else that of all."""
        return self.query_slo.get(query, self.slo)

    @classmethod
    def of(cls, settings: Mapping[str, str]) -> Options:
        """From Spark settings without their prefix.

        >>> Options.of({"slo": "p95=10s", "executors": "1:4", "query.clicks.slo": "mean=2s"}).slo_of("clicks")
        ('mean=2s',)
        >>> Options.of({"executors": "1:4"}).observes_only
        True
        """
        own = {found[1]: _texts(value) for key, value in settings.items() if (found := _OF_A_QUERY.fullmatch(key))}
        return cls(
            slo=_texts(settings.get("slo", "")),
            executors=range_from(settings["executors"]) if settings.get("executors") else None,
            policy=settings.get("policy") or "sluicegate",
            observe=settings.get("observe", "").lower() in _YES,
            query_slo=own,
            interval_s=_seconds(settings.get("interval_s", "2")),
            folder=settings.get("folder"),
        )

    def settings(self) -> dict[str, str]:
        """As Spark settings, prefix and all; what is as by default is left out."""
        found = {
            "slo": ",".join(self.slo),
            "executors": f"{self.executors[0]}:{self.executors[1]}" if self.executors else "",
            "policy": self.policy if self.policy != "sluicegate" else "",
            "observe": "true" if self.observes_only else "",
            "folder": self.folder or "",
            **{f"query.{name}.slo": ",".join(texts) for name, texts in self.query_slo.items()},
        }
        return {f"{PREFIX}{key}": value for key, value in found.items() if value}


def spark_settings(options: Options) -> dict[str, str]:
    """All that attaches an application: the jar, the plugin, the extension, what was asked, and draining."""
    found = {
        "spark.jars": JAR,
        "spark.plugins": PLUGIN,
        "spark.sql.extensions": EXTENSION,
        f"{PREFIX}python": sys.executable,
        **options.settings(),
    }
    if options.executors is not None and not options.observes_only:
        found |= {"spark.executor.instances": str(options.executors[0]), **DECOMMISSION_CONF}
    for key, value in found.items():
        if re.search(r"\s", value):
            raise BadInput(f"{key} is {value!r}: blanks do not pass through $(sluicegate conf); use --properties")
    return found


def range_from(text: str) -> tuple[int, int]:
    """
    >>> range_from("1:4"), range_from("3")
    ((1, 4), (3, 3))
    """
    least, colon, most = text.strip().partition(":")
    if not (least.isdigit() and (most.isdigit() or not colon)):
        raise BadInput(f"executors is {text!r}: give LEAST:MOST, such as 1:4")
    return int(least), int(most or least)


def jar_is_there() -> bool:
    return Path(JAR).exists()


def _texts(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in re.split(r"[,;|]", text) if part.strip())


def _seconds(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise BadInput(f"{PREFIX}interval_s is {text!r}: give seconds, such as 2") from None
