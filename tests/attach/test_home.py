"""Where the record of an attached application is without `--folder`, by `sluicegate conf` and spark-submit alone."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

pytestmark = pytest.mark.slow

SUBMIT = [str(Path(pyspark.__file__).parent / "bin" / "spark-submit"), "--master", "local[1]"]
SETTINGS = ["--conf", "spark.ui.enabled=false", "--conf", "spark.sluicegate.controller=none"]


def test_the_record_is_in_the_home_that_the_commands_look_in_and_the_log_names_it(tmp_path: Path) -> None:
    """Java takes its user.home from the password file, Python's commands take $HOME."""
    app = tmp_path / "app.py"
    app.write_text("from pyspark.sql import SparkSession\nSparkSession.builder.getOrCreate().stop()\n")
    command = [sys.executable, "-c", "from sluicegate.cli import main; main()", "conf"]
    words = shlex.split(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    environment = {key: value for key, value in os.environ.items() if key != "SLUICEGATE_HOME"}
    environment |= {"HOME": str(tmp_path), "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    submit = [*SUBMIT, *SETTINGS, *words, str(app)]
    told = subprocess.run(submit, env=environment, capture_output=True, text=True, check=True)
    (record,) = (tmp_path / ".sluicegate" / "attached").iterdir()
    assert f"attached, watch it with: sluicegate status {record}" in told.stderr
