"""Builds the spark-submit arguments that attach an application, merged with what the user has set already.

Four of the settings are lists, and setting a key again replaces the whole list: so the user's jars, plugins, extensions
and class path are kept in front of ours. The user's values are read from ``spark-defaults.conf``, from the file given
with ``--properties-file``, and from the given spark-submit options.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from sluicegate.errors import BadInput

_LISTS: Mapping[str, str] = {
    "spark.jars": ",",
    "spark.plugins": ",",
    "spark.sql.extensions": ",",
    "spark.driver.extraClassPath": os.pathsep,
}
"""Settings that are lists, with their separators."""
_OPTIONS: Mapping[str, str] = {"--jars": "spark.jars", "--driver-class-path": "spark.driver.extraClassPath"}
"""Options of spark-submit that override the setting of the same meaning, so that ours would be lost."""
_UNSAFE = re.compile(r"[\s*?\[]")
"""Characters on which a shell splits or expands the words of an unquoted $(...)."""
_IN_A_KEY, _ESCAPED = re.compile(r"([\\\s=:#!])"), r"\\\1"
_LINE = re.compile(r"([^\s=:]+)[\s=:]\s*(.*)")


@dataclass(frozen=True, slots=True)
class Given:
    """What the user has set: list settings, and all other spark-submit arguments unchanged."""

    lists: Mapping[str, str]
    words: tuple[str, ...] = ()

    @classmethod
    def of(cls, words: Sequence[str], environ: Mapping[str, str]) -> Given:
        """Parse spark-submit options, and the defaults files that spark-submit will read.

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
    """Our settings, with the user's list entries in front of ours.

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
    """One line for ``spark-submit $(...)``: the shell splits it at blanks, so no word may contain one."""
    words = [*given.words, *(word for key, value in settings.items() for word in ("--conf", f"{key}={value}"))]
    for word in words:
        if _UNSAFE.search(word):
            raise BadInput(
                f"{word!r} does not pass through $(sluicegate conf), which a shell cuts at blanks: "
                "sluicegate conf --properties ... > FILE, spark-submit --properties-file FILE --load-spark-defaults"
            )
    return " ".join(words)


def as_properties(settings: Mapping[str, str]) -> str:
    """The text of a ``spark-submit --properties-file`` in Java's properties format."""
    lines = (f"{_IN_A_KEY.sub(_ESCAPED, key)} {_value(value)}" for key, value in settings.items())
    return "\n".join(["# spark-submit --properties-file THIS --load-spark-defaults ...", *lines])


def _value(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def _options(words: Sequence[str]) -> Iterator[tuple[str, str | None]]:
    """Options with their values, including the ``--name=value`` form, as spark-submit parses them."""
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
    """The ``spark-defaults.conf`` that spark-submit reads by default, if there is one."""
    home = _home(environ)
    folder = environ.get("SPARK_CONF_DIR") or (home / "conf" if home else None)
    path = Path(folder) / "spark-defaults.conf" if folder else None
    return [path] if path is not None and path.is_file() else []


def _home(environ: Mapping[str, str]) -> Path | None:
    """``SPARK_HOME``; without it spark-submit takes the folder that it lies in, or, if pip installed it, PySpark's."""
    if home := environ.get("SPARK_HOME"):
        return Path(home)
    command = shutil.which("spark-submit", path=environ.get("PATH", ""))
    if command is None:
        return None
    if (Path(command).parent / "find_spark_home.py").is_file():
        package = find_spec("pyspark")
        return Path(package.origin).parent if package and package.origin else None
    return Path(command).absolute().parent.parent


def _settings_in(path: Path) -> dict[str, str]:
    """The list settings of a properties file."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError as problem:
        raise BadInput(f"cannot read {path}: {problem.strerror}") from None
    lines = (line.strip() for line in re.sub(r"\\\n\s*", "", text).splitlines())
    found = [match for line in lines if line[:1] not in ("#", "!") and (match := _LINE.match(line))]
    return {match[1]: match[2].strip() for match in found if match[1] in _LISTS and match[2].strip()}
