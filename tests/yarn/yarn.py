"""A real YARN from Maven's jars, on loopback: a ResourceManager and NodeManagers in one process.

By hand: ``python tests/yarn/yarn.py DIR NODES``, until Ctrl-C. Its version is that of the Hadoop client in PySpark;
``$SLUICEGATE_HADOOP`` replaces it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from sluicegate.spark.cluster.java import LOOPBACK, QUICK_JAVA, find_java, spark_home
from sluicegate.spark.kafka.maven import jars_of

_UP_S, _DOWN_S = 180.0, 30.0


@dataclass(slots=True)
class Yarn:
    """Nodes of ``node_memory_mb`` each; containers, logs and addresses lie in ``folder``."""

    folder: Path
    nodes: int = 3
    node_memory_mb: int = 2048
    process: subprocess.Popen[bytes] | None = None

    @property
    def conf(self) -> Path:
        """``HADOOP_CONF_DIR`` of a client."""
        return self.folder / "conf"

    def up(self) -> None:
        """Start it, and wait until all nodes have registered."""
        site = self.conf / "yarn-site.xml"
        self.conf.mkdir(parents=True, exist_ok=True)
        site.unlink(missing_ok=True)
        main = Path(__file__).with_name("MiniYarn.java")
        command = [*_java(), str(main), str(self.conf), str(self.nodes), str(self.node_memory_mb)]
        # containers are started with the Java of the node
        environment = {**os.environ, "JAVA_HOME": str(find_java().resolve().parents[1])}
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=log, stderr=log, cwd=self.folder, env=environment
            )
        until = time.monotonic() + _UP_S
        while not site.exists():
            if self.process.poll() is not None or time.monotonic() > until:
                self.down()
                raise RuntimeError(f"YARN does not come up: see {self._log}")
            time.sleep(0.2)

    def down(self) -> None:
        """End it: by the end of its input, else by its number."""
        if self.process is None:
            return
        if self.process.stdin is not None:
            self.process.stdin.close()
        try:
            self.process.wait(_DOWN_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process = None

    def spark_settings(self) -> dict[str, str]:
        """What a client of this machine sets: Spark's jars are not copied, and nothing listens beyond loopback."""
        return {
            "spark.yarn.jars": f"local:{spark_home() / 'jars' / '*'}",
            "spark.yarn.stagingDir": (self.folder / "staging").as_uri(),
            "spark.yarn.am.memory": "512m",
            "spark.yarn.appMasterEnv.SPARK_LOCAL_IP": LOOPBACK,
            "spark.executorEnv.SPARK_LOCAL_IP": LOOPBACK,
        }

    @property
    def _log(self) -> Path:
        return self.folder / "yarn.log"


def hadoop_version() -> str:
    """``$SLUICEGATE_HADOOP``, else that of PySpark's own client."""
    client = next((spark_home() / "jars").glob("hadoop-client-api-*.jar"))
    return os.environ.get("SLUICEGATE_HADOOP", client.stem.removeprefix("hadoop-client-api-"))


def coordinates() -> tuple[str, ...]:
    """The cluster, and what it needs but does not name as needed at run time."""
    return (
        f"org.apache.hadoop:hadoop-client-minicluster:{hadoop_version()}",
        "org.junit.jupiter:junit-jupiter-api:5.13.3",
        "org.bouncycastle:bcpkix-jdk18on:1.82",
        "ch.qos.reload4j:reload4j:1.2.26",
        "org.slf4j:slf4j-simple:1.7.36",
    )


def _java() -> list[str]:
    classes = os.pathsep.join(map(str, jars_of("yarn", coordinates(), transitive=True)))
    quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
    return [str(find_java()), *QUICK_JAVA.split(), "-Xmx384m", quiet, "-cp", classes]


def main() -> None:
    yarn = Yarn(Path(sys.argv[1]).absolute(), int(sys.argv[2]))
    yarn.up()
    sys.stdout.write(f"YARN of {yarn.nodes} nodes: HADOOP_CONF_DIR={yarn.conf}\n")
    sys.stdout.flush()
    with contextlib.suppress(KeyboardInterrupt):
        signal.pause()
    yarn.down()


if __name__ == "__main__":
    main()
