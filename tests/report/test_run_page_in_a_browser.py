"""The page of a run as a browser shows it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright
from tests.report.recorded import write_run

from sluicegate.report.run_page import run_page
from sluicegate.runlog.run_record import read_record

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("no chromium here: see `sluicegate doctor`")
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield found
        found.close()


@pytest.fixture
def address(tmp_path: Path) -> str:
    page = tmp_path / "page.html"
    page.write_text(run_page(read_record(write_run(tmp_path / "run"))), encoding="utf-8")
    return page.as_uri()


@pytest.mark.slow
@pytest.mark.parametrize("width", [360, 1100])
def test_a_browser_asks_for_the_page_alone_and_nothing_sticks_out(browser: Browser, address: str, width: int) -> None:
    page = browser.new_page(viewport={"width": width, "height": 800})
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(address)
    assert asked == [address]
    assert page.evaluate("document.documentElement.scrollWidth") == width
    page.close()


@pytest.mark.slow
def test_a_pointer_on_a_picture_tells_what_was_measured_then(browser: Browser, address: str) -> None:
    page = browser.new_page(viewport={"width": 1100, "height": 800})
    problems: list[str] = []
    page.on("pageerror", lambda problem: problems.append(str(problem)))
    page.goto(address)
    page.locator(".desk svg.time").nth(1).hover()
    assert "900 rows/s" in page.locator("#readout").inner_text()
    assert problems == []
    page.close()
