"""Command templates: a user's command line with placeholders for our values.

The template is split into words before it is filled in, and no shell parses the result, so a value always stays one
word. A template may itself call a shell (``sh -c '...'``); values are therefore limited to characters without special
meaning in a shell.
"""

from __future__ import annotations

import re
import shlex
import subprocess
from dataclasses import dataclass
from tempfile import TemporaryFile
from typing import IO

from sluicegate.errors import BadInput, EnvironmentLacks

_HARMLESS = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._:/,@+=-]*")


def is_harmless(value: str) -> bool:
    """Whether a value is a single word in every shell, and not an option.

    >>> is_harmless("spark://host:7077"), is_harmless("a;b"), is_harmless("-rf")
    (True, False, False)
    """
    return _HARMLESS.fullmatch(value) is not None


@dataclass(frozen=True, slots=True)
class CommandTemplate:
    """A command with ``{placeholders}``; ``what`` names it in errors. Other braces are left as they are.

    >>> CommandTemplate("start command", "echo '{name} of' {master}").filled(name="n-1", master="yarn")
    ['echo', 'n-1 of', 'yarn']
    """

    what: str
    text: str

    def __post_init__(self) -> None:
        try:
            words = shlex.split(self.text)
        except ValueError as problem:
            raise BadInput(f"{self.what} {self.text!r}: {problem}; give it as one would type it") from None
        if not words:
            raise BadInput(f"{self.what} is empty: give a command")

    def uses(self, gap: str) -> bool:
        """Whether the template has this placeholder."""
        return f"{{{gap}}}" in self.text

    def filled(self, **values: str) -> list[str]:
        """The words of the command with the placeholders filled in."""
        for gap, value in values.items():
            if self.uses(gap) and not is_harmless(value):
                raise BadInput(f"{gap} is {value!r}: {self.what} takes letters, digits and ._:/,@+=- only")
        words = shlex.split(self.text)
        pattern = re.compile(r"\{(" + "|".join(map(re.escape, values)) + r")\}") if values else None
        return [pattern.sub(lambda gap: values[gap[1]], word) for word in words] if pattern else words

    def run(self, limit_s: float, **values: str) -> str:
        """Run the command and return its output; a failure raises with the last line of its standard error."""
        words = self.filled(**values)
        # Files, not pipes: a background process left by the command could keep a pipe open for ever.
        with TemporaryFile("w+", errors="replace") as out, TemporaryFile("w+", errors="replace") as problems:
            try:
                code = subprocess.run(
                    words, stdin=subprocess.DEVNULL, stdout=out, stderr=problems, timeout=limit_s, check=False
                ).returncode
            except OSError as problem:
                raise EnvironmentLacks(f"{self.what} cannot run {words[0]!r}: {problem.strerror or problem}") from None
            except subprocess.TimeoutExpired:
                raise EnvironmentLacks(f"{self.what} took more than {limit_s:g} s: {shlex.join(words)}") from None
            if code != 0:
                raise EnvironmentLacks(
                    f"{self.what} ended with {code}: {_last_line(problems)} (it was: {shlex.join(words)})"
                )
            out.seek(0)
            return out.read()


def _last_line(file: IO[str]) -> str:
    file.seek(0)
    lines = [line.strip() for line in file if line.strip()]
    return lines[-1] if lines else "it printed nothing"
