"""The page in a real browser."""

from __future__ import annotations

import json
import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright
from tests.dashboard.sample_run import SampleRun, write_run

from sluicegate.dashboard.child import Dashboard
from sluicegate.runlog.failures import Failing, write_failures
from sluicegate.spark.cluster.waiting import wait_until

CHROMIUM = shutil.which("chromium")
pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine: the page cannot be looked at"),
    pytest.mark.slow,
]
TICKS = 300
expect.set_options(timeout=30_000)  # browsers come back after seconds, and machines are busy
DESKTOP = (1440, 1000)
PHONE = (390, 844)
INK_SHARE = """(id) => {
  const canvas = document.querySelector(`#${id} canvas`);
  const {data} = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  return data.filter((value, n) => n % 4 === 3 && value > 0).length / (data.length / 4);
}"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playing:
        running = playing.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield running
        running.close()


@pytest.fixture(scope="module")
def live_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, SampleRun]:
    """A run up to this moment, and who writes its next ticks."""
    began_s = time.time() - 2 * TICKS
    return write_run(tmp_path_factory.mktemp("live"), TICKS, began_s=began_s), SampleRun(began_s)


@pytest.fixture(scope="module")
def url(live_run: tuple[Path, SampleRun]) -> Iterator[str]:
    with Dashboard(live_run[0]) as beside:
        yield beside.url


class Visit:
    """A page that was opened, with what it asked for and complained about."""

    def __init__(self, browser: Browser, url: str, size: tuple[int, int], scheme: str) -> None:
        width, height = size
        self._context = browser.new_context(
            viewport={"width": width, "height": height}, color_scheme="dark" if scheme == "dark" else "light"
        )
        self._context.set_default_timeout(30_000)
        self.page: Page = self._context.new_page()
        self.complaints: list[str] = []
        self.hosts: set[str | None] = set()
        self.page.on("console", lambda said: self.complaints.append(said.text) if said.type == "error" else None)
        self.page.on("pageerror", lambda problem: self.complaints.append(str(problem)))
        self.page.on("request", lambda asked: self.hosts.add(urlsplit(asked.url).hostname))
        self.page.goto(url)
        expect(self.page.locator("#processors canvas")).to_be_visible()

    def close(self) -> None:
        self._context.close()


@pytest.fixture(scope="module")
def visit(browser: Browser, url: str) -> Iterator[Visit]:
    opened = Visit(browser, url, DESKTOP, "light")
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def phone(browser: Browser, url: str) -> Iterator[Visit]:
    opened = Visit(browser, url, PHONE, "dark")
    yield opened
    opened.close()


def is_drawn(page: Page, name: str) -> bool:
    """Whether a plot is painted; it is visible before that."""
    return wait_until(lambda: page.evaluate(INK_SHARE, name) > 0.005, 30.0, 0.05)


def test_everything_is_drawn(visit: Visit) -> None:
    page = visit.page
    for name in ("latency", "load", "processors", "cpu"):
        expect(page.locator(f"#{name} canvas")).to_be_visible()
        assert is_drawn(page, name), name
    expect(page.locator("#topology .box")).to_have_count(3)
    expect(page.locator("#topology .arrow")).to_have_count(4)
    expect(page.locator("#topology .box").first).to_contain_text("read+count")
    expect(page.locator("#topology .box").first).to_contain_text("rows waiting")
    assert page.locator("#feed details").count() > 2


def test_every_figure_has_a_unit_and_every_picture_a_sentence(visit: Visit) -> None:
    page = visit.page
    expect(page.locator("#tiles .tile").nth(0)).to_contain_text("promised")
    expect(page.locator("#tiles .tile").nth(2)).to_contain_text("rows/s")
    for name, said in (("latency", "95th percentile"), ("load", "rows/s"), ("processors", "merge")):
        expect(page.locator(f"#{name}")).to_have_attribute("aria-label", re.compile(said))
    label = page.locator("#topology .box").first.get_attribute("aria-label") or ""
    assert all(part in label for part in ("read+count, stateful", "processors", "rows/s", "busy", "waiting"))


def test_a_tick_and_a_decision_that_are_added_appear_by_themselves(
    visit: Visit, live_run: tuple[Path, SampleRun]
) -> None:
    folder, run = live_run
    page = visit.page
    before = page.evaluate("document.querySelector('#feed details').dataset.number")
    tick = run.append(folder, TICKS)
    expect(page.locator("#tiles .tile").nth(3)).to_contain_text(f"{round(tick['backlog_rows']):,}")
    for number in range(TICKS + 1, TICKS + 6):
        run.append(folder, number)
    expect(page.locator("#feed details").first).not_to_have_attribute("data-number", before)


def test_the_slider_tells_the_plan_before_it_happens(visit: Visit) -> None:
    page = visit.page
    slider = page.locator("#rate")
    slider.focus()
    page.keyboard.press("End")
    expect(page.locator("#what-if")).to_contain_text("times now")
    expect(page.locator("#what-if")).to_contain_text("cannot be kept")
    expect(page.locator("#what-if")).to_contain_text("the budget is 16")
    assert "rows/s" in (slider.get_attribute("aria-valuetext") or "")
    expect(page.locator("#topology .then").first).to_contain_text("→")
    page.keyboard.press("Home")
    expect(page.locator("#what-if .pill")).to_have_text("promise kept")


def test_a_decision_opens_with_enter_and_tells_its_reasons(visit: Visit) -> None:
    page = visit.page
    page.keyboard.press("d")
    page.keyboard.press("Enter")
    expect(page.locator("#feed details").first).to_have_attribute("open", "")
    expect(page.locator("#feed .more").first).to_contain_text("rows/s are coming")


def test_an_operator_opens_with_the_keyboard_and_closes_again(visit: Visit) -> None:
    page = visit.page
    page.keyboard.press("o")
    page.keyboard.press("Enter")
    expect(page.locator("#operator")).to_be_visible()
    expect(page.locator("#operator")).to_contain_text("one processor serves")
    expect(page.locator("#operator-busy canvas")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#operator")).to_be_hidden()


def test_shortcuts_are_listed_and_work(visit: Visit) -> None:
    page = visit.page
    page.keyboard.press("?")
    expect(page.locator("#shortcuts")).to_contain_text("to the what-if slider")
    page.keyboard.press("Escape")
    page.keyboard.press("1")
    expect(page.get_by_role("button", name="5 min", exact=True)).to_have_attribute("aria-pressed", "true")


def test_tab_reaches_every_part_and_the_focus_is_seen(visit: Visit) -> None:
    page = visit.page
    page.locator(".skip").focus()
    reached: list[str] = []
    for _ in range(30):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.id || document.activeElement.dataset.operator || ''"))
        if page.evaluate("document.activeElement.matches('#feed summary')"):
            break
    wanted = ["theme", "help", "read+count", "latency", "load", "processors", "rate"]
    assert [name for name in reached if name in wanted] == wanted
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"


def test_the_theme_follows_the_system_until_it_is_toggled(visit: Visit, phone: Visit) -> None:
    ground = "getComputedStyle(document.body).backgroundColor"
    light, dark = visit.page.evaluate(ground), phone.page.evaluate(ground)
    assert light != dark
    visit.page.keyboard.press("t")
    assert visit.page.evaluate(ground) == dark
    assert is_drawn(visit.page, "latency")
    visit.page.reload()
    assert visit.page.evaluate(ground) == dark
    visit.page.get_by_role("button", name="Light or dark").click()
    assert visit.page.evaluate(ground) == light


def test_a_phone_shows_one_column_that_never_scrolls_sideways(phone: Visit) -> None:
    page = phone.page
    expect(page.locator("#feed details").first).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE[0]
    lefts = page.evaluate("[...document.querySelectorAll('.card')].map((card) => card.getBoundingClientRect().left)")
    assert len(set(lefts)) == 1
    boxes = page.evaluate("[...document.querySelectorAll('#topology .box')].map((b) => b.getBoundingClientRect().y)")
    assert boxes == sorted(boxes)
    assert boxes[-1] - boxes[0] > 100


def test_a_server_that_comes_back_is_followed_again(browser: Browser, tmp_path: Path) -> None:
    began_s = time.time() - 20
    folder, run = write_run(tmp_path, 10, began_s=began_s), SampleRun(began_s)
    with Dashboard(folder) as first:
        port = urlsplit(first.url).port or 0
        opened = Visit(browser, first.url, DESKTOP, "light")
    expect(opened.page.locator("#state")).to_have_text("reconnecting")
    tick = run.append(folder, 10)
    with Dashboard(folder, port):
        expect(opened.page.locator("#tiles .tile").nth(3)).to_contain_text(f"{round(tick['backlog_rows']):,}")
        expect(opened.page.locator("#state")).not_to_have_text("reconnecting")
        opened.close()


def test_an_old_folder_and_one_without_a_tick_are_shown_without_a_complaint(browser: Browser, tmp_path: Path) -> None:
    for folder in (write_run(tmp_path / "old", 20, old=True), write_run(tmp_path / "young", 0)):
        with Dashboard(folder) as beside:
            opened = Visit(browser, beside.url, DESKTOP, "light")
            expect(opened.page.locator("#tiles")).to_contain_text("nodes not measured")
            expect(opened.page.locator("#nodes")).to_be_hidden()
            assert opened.complaints == []
            opened.close()


def test_an_operator_that_fails_and_executors_that_move_appear_by_themselves(browser: Browser, tmp_path: Path) -> None:
    began_s = time.time() - 20
    folder = write_run(tmp_path, 10, began_s=began_s)
    moved = {"what": "executors", "have": "1", "want": "3", "reason": "6 processors need 3 executors"}
    decision = {"number": 1, "at_s": began_s + 19, "running": {}, "rescales": [], "changes": [moved], "reasons": []}
    with Dashboard(folder) as beside:
        opened = Visit(browser, beside.url, DESKTOP, "light")
        expect(opened.page.locator("#failures")).to_be_hidden()
        failing = Failing("rank", 17, began_s + 15, 5, 5, "TimeoutError: timed out", "service", time.time() + 100)
        write_failures(folder / "failures.json", [failing])
        expect(opened.page.locator("#failures")).to_contain_text("rank: batch 17 fails")
        write_failures(folder / "failures.json", [])
        expect(opened.page.locator("#failures")).to_be_hidden()
        with (folder / "decisions.jsonl").open("a") as log:
            log.write(json.dumps(decision) + "\n")
        expect(opened.page.locator("#feed summary").first).to_contain_text("executors 1 → 3")
        opened.page.locator("#feed summary").first.click()
        expect(opened.page.locator("#feed .more").first).to_contain_text("6 processors need 3 executors")
        assert opened.complaints == []
        opened.close()


def test_a_run_that_goes_on_in_its_folder_is_no_longer_shown_as_ended(browser: Browser, tmp_path: Path) -> None:
    began_s = time.time() - 20
    folder, run = write_run(tmp_path, 10, began_s=began_s), SampleRun(began_s)
    control = json.loads((folder / "control.json").read_text())
    (folder / "control.json").write_text(json.dumps({**control, "bounds": {"p99": 9.0}}))
    outcome = {"began_s": began_s, "seconds": 18.0, "slo_kept": 1.0, "answer_exact": True, "rescales": 0, "mean_s": 1.0}
    (folder / "outcome.json").write_text(json.dumps(outcome))
    with Dashboard(folder) as beside:
        opened = Visit(browser, beside.url, DESKTOP, "light")
        expect(opened.page.locator("#state")).to_have_text("ended")
        expect(opened.page.locator("#outcome")).to_contain_text("ended after 18 s")
        expect(opened.page.locator("#tiles")).to_contain_text("99th percentile")
        (folder / "control.json").write_text(json.dumps({**control, "started_s": time.time()}))
        run.append(folder, 10)
        expect(opened.page.locator("#outcome")).to_be_hidden()
        expect(opened.page.locator("#state")).not_to_have_text("ended")
        assert opened.complaints == []
        opened.close()


def test_names_from_outside_never_become_markup(browser: Browser, tmp_path: Path) -> None:
    folder = write_run(tmp_path, 3)
    path = folder / "pipeline.json"
    path.write_text(path.read_text().replace("top_n", "<img src=x onerror=alert(1)>"))
    with Dashboard(folder) as beside:
        opened = Visit(browser, beside.url, DESKTOP, "light")
        expect(opened.page.locator("h1")).to_have_text("<img src=x onerror=alert(1)>")
        opened.close()


def test_nothing_was_asked_of_another_host_and_nothing_complained(visit: Visit, phone: Visit) -> None:
    for opened in (visit, phone):
        assert opened.hosts == {"127.0.0.1"}
        assert opened.complaints == []
