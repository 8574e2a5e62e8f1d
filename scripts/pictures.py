"""Makes docs/images/*.png: the dashboard of a sample run, and the tab in Spark's UI of the quickstart's application.

    python scripts/pictures.py [dashboard] [spark_tab]

It needs a Chromium (`bash scripts/browser.sh`) and, for the tab, two minutes of Spark on this machine.
"""

from __future__ import annotations

import os
import runpy
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import sync_playwright

from sluicegate.dashboard.child import Dashboard

ROOT = Path(__file__).parents[1]

_PORT = 14_040
_STARTS_S = 12.0
"""The dashboard and a browser take about this long to start; a run whose last tick is older is shown as silent."""
_RUNS_S = 75.0
"""By then the quickstart's application has had its first decisions."""


def dashboard(folder: Path) -> None:
    write_run = runpy.run_path(str(ROOT / "tests" / "dashboard" / "sample_run.py"))["write_run"]
    with Dashboard(write_run(folder / "run", began_s=time.time() - 2 * 450 + _STARTS_S)) as beside:
        _shoot(beside.url, "dashboard", 1440, 1180)


def spark_tab(folder: Path) -> None:
    page = (ROOT / "docs" / "quickstart.md").read_text(encoding="utf-8")
    (folder / "app.py").write_text(page.partition("```python\n")[2].partition("```")[0], encoding="utf-8")
    environment = {**os.environ, "SLUICEGATE_HOME": str(folder / "home")}
    attached = subprocess.run(
        ["sluicegate", "conf", "--slo", "p95=10s"], check=True, capture_output=True, text=True, env=environment
    ).stdout.split()
    words = ["spark-submit", "--master", "local[4]", "--conf", f"spark.ui.port={_PORT}", *attached, "app.py"]
    with subprocess.Popen(
        words, cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as application:
        time.sleep(_RUNS_S)
        _shoot(f"http://127.0.0.1:{_PORT}/sluicegate/", "spark_tab", 1200, 640)
        application.terminate()


def _shoot(address: str, name: str, width: int, height: int) -> None:
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": width, "height": height})
        page.goto(address)
        page.wait_for_timeout(3000)  # until the plots are drawn
        page.screenshot(path=ROOT / "docs" / "images" / f"{name}.png")
        browser.close()


PICTURES: dict[str, Callable[[Path], None]] = {"dashboard": dashboard, "spark_tab": spark_tab}


def main() -> None:
    for name in sys.argv[1:] or PICTURES:
        with tempfile.TemporaryDirectory() as folder:
            PICTURES[name](Path(folder))


if __name__ == "__main__":
    main()
