"""Locates Java and pip's Spark, and builds the command lines of Spark's daemons.

Daemons are started through ``spark-class``, which adds the module options Java needs and then replaces itself by Java
(``exec``), so that its pid stays valid.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from sluicegate.errors import EnvironmentLacks

LOOPBACK = "127.0.0.1"
JAR = str(Path(__file__).parents[1] / "jvm" / "sluicegate.jar")
# A master or worker holds no rows, only lists of names: a quarter of Spark's default of 1 GB is enough.
DAEMON_MEMORY = "256m"
# C1 compiler and serial collector: starting a process takes half the CPU time. For daemons, which compute little, and
# for executors that start on a machine whose cores the pipeline already uses.
QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def find_java() -> Path:
    """The Java executable to use: from ``JAVA_HOME`` if set, else the first one on the path."""
    home = os.environ.get("JAVA_HOME")
    if home:
        java = Path(home) / "bin" / "java"
        if not os.access(java, os.X_OK):
            raise EnvironmentLacks(
                f"JAVA_HOME is {home}, which has no bin/java: let it name a Java 17 or 21, or unset it"
            )
        return java
    found = shutil.which("java")
    if found is None:
        raise EnvironmentLacks("no Java found: install Java 17 or 21 and put it on the path, or set JAVA_HOME")
    return Path(found)


def spark_home() -> Path:
    """The Spark of pip's PySpark, ignoring ``SPARK_HOME``: driver and workers must have the same version."""
    found = find_spec("pyspark")
    if found is None or found.origin is None:
        raise EnvironmentLacks("no PySpark found: install it with `pip install pyspark`")
    return Path(found.origin).parent


def daemon_command(main_class: str, *arguments: str) -> list[str]:
    """The command that runs one of Spark's daemons in the foreground."""
    return [str(spark_home() / "bin" / "spark-class"), main_class, *arguments]


def daemon_environment(host: str, settings: Mapping[str, str]) -> dict[str, str]:
    """This process's environment, with Spark bound to ``host`` and ``settings`` as the daemon's Spark settings."""
    find_java()
    ours = " ".join(f"-D{key}={value}" for key, value in settings.items())
    theirs = os.environ.get("SPARK_DAEMON_JAVA_OPTS", "")
    return {
        **os.environ,
        "SPARK_HOME": str(spark_home()),
        "SPARK_LOCAL_IP": host,
        "SPARK_PUBLIC_DNS": host,
        "SPARK_DAEMON_MEMORY": DAEMON_MEMORY,
        "SPARK_DAEMON_CLASSPATH": JAR,
        "SPARK_DAEMON_JAVA_OPTS": f"{QUICK_JAVA} {theirs} {ours}",
    }
