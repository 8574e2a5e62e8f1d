"""The jar that is committed is the one that its sources give."""

from __future__ import annotations

import shutil
import subprocess
import zipfile
from pathlib import Path

import pyspark
import pytest

from sluicegate.spark.cluster.java import JAR


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("javac") is None, reason="no Java compiler here")
def test_the_jar_has_the_classes_of_its_sources_and_no_others(tmp_path: Path) -> None:
    sources = sorted(str(path) for path in Path(JAR).parent.rglob("*.java"))
    classes = f"{Path(pyspark.__file__).parent / 'jars'}/*"
    command = ["javac", "--release", "17", "-nowarn", "-cp", classes, "-d", str(tmp_path), *sources]
    subprocess.run(command, check=True, capture_output=True)
    built = {str(p.relative_to(tmp_path)): p.read_bytes() for p in tmp_path.rglob("*.class")}
    with zipfile.ZipFile(JAR) as jar:
        committed = {name: jar.read(name) for name in jar.namelist() if name.endswith(".class")}
        others = [name for name in jar.namelist() if not name.endswith((".class", "/"))]
    assert others == []
    assert committed.keys() == built.keys()
    version = subprocess.run(["javac", "-version"], capture_output=True, text=True, check=True).stdout
    if version.startswith("javac 17."):  # other compilers write other bytes for the same source
        assert [name for name in built if built[name] != committed[name]] == []
