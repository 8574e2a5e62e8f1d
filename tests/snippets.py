"""What the pages show: their blocks of code, and every call of `sluicegate` in them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_CALL = re.compile(r"(?:^|[\s(/`])sluicegate ((?:[a-z]|--)[^\n`)#]*)")
_PROSE = re.compile(r" {2,}.*")


def text(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def blocks(page: str, language: str) -> list[str]:
    """The code of a page in one language, in order."""
    return [code for kind, code in _BLOCK.findall(text(page)) if kind == language]


def execute(code: str, **names: object) -> dict[str, Any]:
    """Run a page's code as a file of its own would run; gives its names."""
    made: dict[str, Any] = {"__name__": "__main__", **names}
    exec(compile(code, "a page", "exec", dont_inherit=True), made)
    return made


def shell_lines(page: Path) -> list[str]:
    """What a page tells people to type, a line each; a line that ends in a backslash goes on."""
    typed = "".join(blocks(str(page.relative_to(ROOT)), "sh")).replace("\\\n", " ")
    return [line.split(" # ")[0].strip() for line in typed.splitlines() if line.strip()]


def calls(page: Path) -> set[str]:
    """Every call of `sluicegate` that a page names: in blocks, in lines of code, in running text; its words alone.

    What stands behind two blanks in a line of code explains it.
    """
    prose = _BLOCK.sub(
        lambda found: "" if found[1] not in {"sh", "text"} else found[2], page.read_text(encoding="utf-8")
    )
    code = [*re.findall(r"`(sluicegate [^`]+)`", prose), *re.findall(r"^ {4}(sluicegate .+)$", prose, re.MULTILINE)]
    found = [*code, *(line for line in shell_lines(page) if "sluicegate" in line)]
    words = [call for line in found for call in _CALL.findall(" ".join(_PROSE.sub("", line.strip()).split()))]
    return {call.strip() for call in words}
