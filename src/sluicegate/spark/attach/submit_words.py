"""The words that attach an application, joined with what its user has set already.

Four of the settings are lists that a second setting of the same key replaces: the user's jars, plugins, extensions and
class path stay in front of ours. What they set is found in ``spark-defaults.conf``, in the file of
``--properties-file`` and among the options for spark-submit that they hand over.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sluicegate.errors import BadInput

_LISTS: Mapping[str, str] = {
    "spark.jars": ",",
    "spark.plugins": ",",
    "spark.sql.extensions": ",",
    "spark.driver.extraClassPath": os.pathsep,
}
"""Settings that are lists, with what stands between two."""
_OPTIONS: Mapping[str, str] = {"--jars": "spark.jars", "--driver-class-path": "spark.driver.extraClassPath"}
"""Options of spark-submit that go before the setting of the same meaning, so that ours would be lost."""
_UNSAFE = re.compile(r"[\s*?\[]")
"""Characters at which a shell cuts or changes the words of an unquoted $(...)."""
_IN_A_KEY, _ESCAPED = re.compile(r"([\\\s=:#!])"), r"\\\1"
_LINE = re.compile(r"([^\s=:]+)[\s=:]\s*(.*)")


@dataclass(frozen=True, slots=True)
class Given:
    """What the user has set: settings that are lists, and their other words for spark-submit as they are."""

    lists: Mapping[str, str]
    words: tuple[str, ...] = ()

    @classmethod
    def of(cls, words: Sequence[str], environ: Mapping[str, str]) -> Given:
        """From options for spark-submit, and the defaults that spark-submit will read.

        >>> Given.of(["--jars", "a.jar", "--conf", "spark.plugins=P", "--name", "x"], {}).lists
        {'spark.jars': 'a.jar', 'spark.plugins': 'P'}
        """
        found: dict[str, str] = {}
        kept: list[str] = []
        file: str | None = None
        for option, value in _options(words):
            key, _, setting = (value or "").partition("=")
            if option in _OPTIONS and value is not None:
                found[_OPTIONS[option]] = value
            elif option in ("--conf", "-c") and key in _LISTS:
                found.setdefault(key, setting)
            else:
                kept += [option] if value is None else [option, value]
                file = value if option == "--properties-file" else file
        defaults = file is None or "--load-spark-defaults" in words
        for path in (*([Path(file)] if file else []), *(_defaults(environ) if defaults else [])):
            for key, value in _settings_in(path).items():
                found.setdefault(key, value)
        return cls(found, tuple(kept))


def joined(ours: Mapping[str, str], given: Given) -> dict[str, str]:
    """Our settings, behind what the user has of the same lists.

    >>> joined({"spark.plugins": "ours"}, Given({"spark.plugins": "theirs"}))
    {'spark.plugins': 'theirs,ours'}
    """
    found = dict(ours)
    for key, theirs in given.lists.items():
        between = _LISTS[key]
        parts = [part for part in (*theirs.split(between), *ours.get(key, "").split(between)) if part.strip()]
        found[key] = between.join(dict.fromkeys(part.strip() for part in parts))
    return found


def as_words(settings: Mapping[str, str], given: Given) -> str:
    """One line for $(...) behind spark-submit: a shell takes it apart at blanks, so none may be within a word."""
    words = [*given.words, *(word for key, value in settings.items() for word in ("--conf", f"{key}={value}"))]
    for word in words:
        if _UNSAFE.search(word):
            raise BadInput(
                f"{word!r} does not pass through $(sluicegate conf), which a shell cuts at blanks: "
                "sluicegate conf --properties ... > FILE, spark-submit --properties-file FILE --load-spark-defaults"
            )
    return " ".join(words)


def as_properties(settings: Mapping[str, str]) -> str:
    """A file for ``spark-submit --properties-file``, as Java reads properties."""
    lines = (f"{_IN_A_KEY.sub(_ESCAPED, key)} {_value(value)}" for key, value in settings.items())
    return "\n".join(["# spark-submit --properties-file THIS --load-spark-defaults ...", *lines])


def _value(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def _options(words: Sequence[str]) -> Iterator[tuple[str, str | None]]:
    """Options with their values; ``--name=value`` is one too, as for spark-submit."""
    left = list(words)
    while left:
        option = left.pop(0)
        name, equals, value = option.partition("=")
        if equals and name.startswith("--"):
            yield name, value
        elif option in ("--conf", "-c", "--properties-file", *_OPTIONS):
            if not left:
                raise BadInput(f"{option} stands last: give what it is set to")
            yield option, left.pop(0)
        else:
            yield option, None


def _defaults(environ: Mapping[str, str]) -> list[Path]:
    """The file that spark-submit reads by itself."""
    home = environ.get("SPARK_HOME")
    folder = environ.get("SPARK_CONF_DIR") or (str(Path(home) / "conf") if home else None)
    path = Path(folder) / "spark-defaults.conf" if folder else None
    return [path] if path is not None and path.is_file() else []


def _settings_in(path: Path) -> dict[str, str]:
    """Those of a properties file that are lists."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError as problem:
        raise BadInput(f"cannot read {path}: {problem.strerror}") from None
    lines = (line.strip() for line in re.sub(r"\\\n\s*", "", text).splitlines())
    found = [match for line in lines if line[:1] not in ("#", "!") and (match := _LINE.match(line))]
    return {match[1]: match[2].strip() for match in found if match[1] in _LISTS and match[2].strip()}
