"""Runs a Java program of the tests against the jar, in its package, and reads what it prints."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pyspark

from sluicegate.spark.cluster.java import JAR, QUICK_JAVA, find_java

HERE, JARS = Path(__file__).parent, Path(pyspark.__file__).parent / "jars"


def told_by(name: str, classes: Path, *given: str) -> dict[str, list[str]]:
    """The words of every line by the first of them."""
    path, java = f"{JAR}:{JARS}/*", Path(find_java())
    compiler = [str(java.parent / "javac"), "-nowarn", "-cp", path, "-d", str(classes), str(HERE / f"{name}.java")]
    subprocess.run(compiler, check=True)
    command = [str(java), *QUICK_JAVA.split(), "-cp", f"{classes}:{path}", f"sluicegate.attach.{name}", *given]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return {line.split()[0]: line.split()[1:] for line in told.splitlines()}
