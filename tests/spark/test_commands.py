"""Command templates: values stay values, failures say why."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.errors import BadInput, EnvironmentLacks, SluicegateError
from sluicegate.spark.cluster.commands import CommandTemplate


@given(st.text(max_size=20))
def test_a_value_is_one_harmless_word_or_refused(value: str) -> None:
    template = CommandTemplate("start command", "run --name={name} {name}")
    try:
        words = template.filled(name=value)
    except BadInput:
        return
    assert words == ["run", f"--name={value}", value]
    assert not set(value) & set(" \t\n;&|$`'\"\\<>()*?[]{}!#~")
    assert not value.startswith("-")


def test_a_value_that_looks_like_a_gap_is_not_filled_in_again() -> None:
    with pytest.raises(BadInput, match="letters, digits"):
        CommandTemplate("start command", "run {name} {count}").filled(name="{count}", count="3")


def test_other_braces_are_left_alone() -> None:
    template = CommandTemplate("list command", "docker ps --format '{{.Names}} {other}'")
    assert template.filled(master="yarn") == ["docker", "ps", "--format", "{{.Names}} {other}"]


@pytest.mark.parametrize(("text", "said"), [("", "empty"), ("echo 'open", "No closing quotation")])
def test_a_template_that_cannot_be_read_is_refused(text: str, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        CommandTemplate("stop command", text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("sh -c 'echo first >&2; echo quota reached >&2; exit 7'", "start command ended with 7: quota reached"),
        ("false", "ended with 1: it printed nothing"),
        ("no-such-tool-anywhere --x", "cannot run 'no-such-tool-anywhere': No such file"),
        ("sleep 30", "took more than 0.2 s"),
    ],
)
def test_a_command_that_fails_says_why_in_one_line(text: str, said: str) -> None:
    with pytest.raises(EnvironmentLacks, match=said) as problem:
        CommandTemplate("start command", text).run(0.2 if "sleep" in text else 30.0)
    assert "\n" not in str(problem.value)
    assert isinstance(problem.value, SluicegateError)


def test_a_command_that_leaves_a_process_behind_is_not_waited_for(tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    flag.touch()
    left_behind = CommandTemplate("start command", f"sh -c 'while [ -e {flag} ]; do sleep 0.1; done & echo started'")
    try:
        assert left_behind.run(60.0) == "started\n"
    finally:
        flag.unlink()
