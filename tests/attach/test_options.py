"""What a user asks for, as words for spark-submit and back."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from sluicegate.cli.app import run
from sluicegate.errors import BadInput
from sluicegate.spark.attach.options import EXTENSION, PLUGIN, PREFIX, Options, plain_name
from sluicegate.spark.attach.submit_words import Given

MANIFEST = Path(__file__).parents[2] / "docs" / "kubernetes" / "attached.yaml"


def words(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, str]:
    assert run(["conf", *arguments]) == 0
    out = capsys.readouterr().out
    assert out.count("\n") == 1
    parts = shlex.split(out)
    assert set(parts[::2]) == {"--conf"}
    return dict(part.split("=", 1) for part in parts[1::2])


def test_conf_prints_one_line_that_attaches(capsys: pytest.CaptureFixture[str]) -> None:
    found = words(capsys, "--slo", "p95=10s", "--executors", "1:4")
    assert (found["spark.plugins"], found["spark.sql.extensions"]) == (PLUGIN, EXTENSION)
    assert found["spark.jars"].endswith("sluicegate.jar")
    assert (found[f"{PREFIX}slo"], found[f"{PREFIX}executors"]) == ("p95=10s", "1:4")
    assert (found["spark.executor.instances"], found["spark.decommission.enabled"]) == ("1", "true")
    assert f"{PREFIX}observe" not in found


def test_pace_and_split_need_the_user_s_word(capsys: pytest.CaptureFixture[str]) -> None:
    assert not {f"{PREFIX}pace", f"{PREFIX}split"} & words(capsys, "--slo", "p95=10s").keys()
    found = words(capsys, "--slo", "p95=10s", "--pace", "--split")
    assert (found[f"{PREFIX}pace"], found[f"{PREFIX}split"]) == ("true", "true")


def test_without_a_promise_it_observes_and_sizes_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    found = words(capsys, "--executors", "1:4")
    assert found[f"{PREFIX}observe"] == "true"
    assert "spark.executor.instances" not in found


def test_conf_as_a_properties_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["conf", "--slo", "mean=2s", "--policy", "ds2", "--observe", "--properties"]) == 0
    lines = dict(line.split(" ", 1) for line in capsys.readouterr().out.splitlines())
    assert "--properties-file" in lines.pop("#")
    assert (lines[f"{PREFIX}slo"], lines[f"{PREFIX}policy"], lines[f"{PREFIX}observe"]) == ("mean=2s", "ds2", "true")


@pytest.mark.parametrize(
    "arguments",
    [
        ("--slo", "p95"),
        ("--slo", "p96=2s"),
        ("--executors", "4:1"),
        ("--executors", "few"),
        ("--policy", "nobody"),
        ("--query", "p"),
    ],
)
def test_bad_words_are_one_line_and_code_2(arguments: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["conf", *arguments]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_options_read_back_what_was_written() -> None:
    asked = Options(("p95=10s", "mean=3s"), (2, 8), "ds2", query_slo={"clicks": ("p95=2s",)}, folder="/x", pace=True)
    written = {key.removeprefix(PREFIX): value for key, value in asked.settings().items()}
    assert Options.of(written) == asked


def test_a_query_has_its_own_promise_or_that_of_all_or_none() -> None:
    told = {"slo": "p95=10s", "query.a.b.slo": "mean=1s", "query.left.slo": "none", "query.two words.slo": "p95=3s"}
    options = Options.of(told)
    assert (options.slo_of("a.b"), options.slo_of("c"), options.slo_of("left")) == (("mean=1s",), ("p95=10s",), ())
    assert options.slo_of("two_words") == ("p95=3s",)
    assert Options.of({"query.left.slo": "none"}).observes_only


def test_long_names_and_those_that_lose_letters_stay_apart_and_short() -> None:
    names = ["клики", "клика", "x" * 150, "x" * 151, "q-_____"]
    found = [plain_name(name) for name in names]
    assert len(set(found)) == len(names)
    assert all(len(name) <= 100 and name.isascii() for name in found)


def test_what_the_user_has_set_stays_in_front_of_ours(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "spark-defaults.conf").write_text(
        "# spark.jars no.jar\nspark.sql.extensions  io.delta.Extension\nspark.driver.extraClassPath=/etc/hadoop\n"
    )
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    assert (
        run(["conf", "--", "--jars", "a.jar,b.jar", "--conf", "spark.plugins=com.example.Plugin", "--name", "x"]) == 0
    )
    parts = shlex.split(capsys.readouterr().out)
    found = dict(part.split("=", 1) for part in parts if "=" in part)
    assert parts[:2] == ["--name", "x"]
    assert "--jars" not in parts
    assert found["spark.jars"].startswith("a.jar,b.jar,/")
    assert found["spark.plugins"] == f"com.example.Plugin,{PLUGIN}"
    assert found["spark.sql.extensions"] == f"io.delta.Extension,{EXTENSION}"
    assert found["spark.driver.extraClassPath"].startswith("/etc/hadoop:")


def test_the_defaults_of_the_spark_on_the_path_stay_too(tmp_path: Path) -> None:
    """Spark unpacked to /opt/spark, its bin on PATH and no SPARK_HOME: spark-submit reads /opt/spark/conf."""
    submit = tmp_path / "spark" / "bin" / "spark-submit"
    submit.parent.mkdir(parents=True)
    submit.touch(mode=0o755)
    defaults = tmp_path / "spark" / "conf" / "spark-defaults.conf"
    defaults.parent.mkdir()
    defaults.write_text("spark.jars /opt/own.jar\nspark.plugins com.example.Plugin\n")
    found = Given.of((), {"PATH": f"/nowhere:{submit.parent}"})
    assert found.lists == {"spark.jars": "/opt/own.jar", "spark.plugins": "com.example.Plugin"}
    assert Given.of((), {"PATH": str(submit.parent), "SPARK_HOME": str(tmp_path)}).lists == {}


def test_a_blank_passes_through_a_properties_file_only(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["conf", "--folder", "/a b"]) == 2
    assert "--properties" in capsys.readouterr().err
    assert run(["conf", "--folder", "/a b", "--query", "two words=p95=2s", "--properties"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert {f"{PREFIX}folder /a b", f"{PREFIX}query.two\\ words.slo p95=2s"} <= set(lines)


def test_executors_without_a_promise_are_said_to_stay(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["conf", "--executors", "1:4"]) == 0
    assert "only observes" in capsys.readouterr().err


def test_a_promise_that_is_none_is_refused_before_anything_starts() -> None:
    with pytest.raises(BadInput, match="p95"):
        Options.of({"query.clicks.slo": "p95"})


@pytest.mark.parametrize("key", ["observe", "pace", "split"])
def test_a_word_that_is_neither_yes_nor_no_is_refused(key: str) -> None:
    with pytest.raises(BadInput, match=f"spark.sluicegate.{key} is 'on': give true or false"):
        Options.of({"slo": "p95=10s", key: "on"})
    assert not getattr(Options.of({"slo": "p95=10s", key: "False"}), key)


def test_an_interval_without_end_is_refused() -> None:
    with pytest.raises(BadInput, match="interval is inf s"):
        Options.of({"interval_s": "inf"})


def test_the_manifest_for_kubernetes_sets_what_conf_prints(capsys: pytest.CaptureFixture[str]) -> None:
    told = dict(re.findall(r'^ {4}(spark\.[\w.]+): "?([^"\n]+)"?$', MANIFEST.read_text(), re.MULTILINE))
    found = words(capsys, "--slo", "p95=10s", "--executors", "1:4", "--folder", "/record/clicks")
    of_the_image = {"spark.jars", "spark.driver.extraClassPath", f"{PREFIX}python"}
    assert told.keys() == found.keys()
    assert {key: told[key] for key in told.keys() - of_the_image} == {
        key: found[key] for key in found.keys() - of_the_image
    }
