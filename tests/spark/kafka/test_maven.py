from __future__ import annotations

from pathlib import Path

import pytest

from sluicegate.errors import BadInput, EnvironmentLacks
from sluicegate.spark.kafka.connector import COORDINATES, connector_jars
from sluicegate.spark.kafka.maven import jars_of


def test_without_maven_and_jars_one_line_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLUICEGATE_JARS", str(tmp_path / "none"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EnvironmentLacks, match=r"install Maven, or put .*spark-sql-kafka.* there") as told:
        connector_jars()
    assert "\n" not in str(told.value)


def test_jars_that_are_there_need_no_maven(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLUICEGATE_JARS", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EnvironmentLacks) as told:
        connector_jars()
    folder = Path(str(told.value).split(" are not in ")[1].split(" and Maven")[0])
    folder.mkdir()
    (folder / "one.jar").touch()
    assert connector_jars() == [folder / "one.jar"]


def test_other_versions_are_other_jars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLUICEGATE_JARS", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("SLUICEGATE_KAFKA_CONNECTOR", COORDINATES[0].replace("4.2.0", "9.9.9"))
    with pytest.raises(EnvironmentLacks, match=r"put org\.apache\.spark:spark-sql-kafka-0-10_2\.13:9\.9\.9 there"):
        connector_jars()


@pytest.mark.parametrize("text", ["kafka", "a:b", "a::c", "a:b:c:d"])
def test_coordinates_that_are_none_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("SLUICEGATE_JARS", str(tmp_path))
    with pytest.raises(BadInput, match="group:artifact:version"):
        jars_of("x", (text,))
