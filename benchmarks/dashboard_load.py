"""A day of a hundred operators in the dashboard: its memory, what answers take, how soon fifty listeners hear, and
whether the page stays smooth in a real browser while ticks come in and somebody moves over its plots.

    python benchmarks/dashboard_load.py [TICKS] [OPERATORS] [CLIENTS]

The server is a real one beside a folder whose ticks.jsonl holds the whole day in one file, far more than a controller
leaves (it puts the file aside at 8 MB), so that reading it is part of what is measured. Times depend on what else the
machine does: processor time of the server is told next to them. A page is smooth where no task of its script holds up
a frame for long; without chromium that part is left out.
"""

from __future__ import annotations

import http.client
import json
import shutil
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path
from urllib.parse import urlsplit

from playwright.sync_api import sync_playwright

from cpu import cpu_s, memory_mb
from sluicegate.dashboard.child import Dashboard

_BEGAN_S = 1_800_000_000.0
_QUESTIONS = {
    "the run": "/api/run",
    "a day in 600 points": "/api/series?points=600",
    "15 minutes": "/api/series?points=600&from={last_15_min}",
    "one operator, a day": "/api/series?points=400&operator=operator_50",
    "metrics": "/metrics",
}


def operator(number: int, name: str) -> dict[str, object]:
    """As long as the controller writes it."""
    return {
        "arrivals_per_s": 1000.12 + number,
        "queue_rows": 321.25,
        "sojourn_s": 0.1234,
        "utilisation": 0.6123,
        "service_per_s": 456.12,
        "arrival_scv": 1.1235,
        "service_scv": 0.7123,
        "batch": {"overhead_s": 0.2123, "per_task_s": 0.0212},
    }


def tick(number: int, operators: int) -> str:
    names = [f"operator_{n}" for n in range(operators)]
    told = {
        "at_s": _BEGAN_S + 2 * number,
        "arrivals_per_s": 1000.0 + number % 977,
        "throughput_per_s": 990.0,
        "backlog_rows": 5000,
        "sojourn": {"mean_s": 2.0 + number % 7, "p50_s": 1.9, "p95_s": 4.0, "p99_s": 5.0},
        "running": dict.fromkeys(names, 1 + number // 600 % 4),
        "pace_s": dict.fromkeys(names, 0.4),
        "refusals": [],
        "operators": {name: operator(n, name) for n, name in enumerate(names)},
    }
    return json.dumps(told)


def write_day(folder: Path, ticks: int, operators: int) -> None:
    nodes = [
        {"name": f"operator_{n}", "reads": [f"s{n}"], "writes": [f"s{n + 1}"], "stateful": n % 3 == 0}
        for n in range(operators)
    ]
    described = {"name": "day", "sources": ["s0"], "kept": [f"s{operators}"], "nodes": nodes}
    (folder / "pipeline.json").write_text(json.dumps(described))
    with (folder / "ticks.jsonl").open("w") as file:
        for number in range(ticks):
            file.write(tick(number, operators) + "\n")
    print(f"{ticks:,} ticks of {operators} operators: {(folder / 'ticks.jsonl').stat().st_size / 1e6:,.0f} MB")


def asked(url: str, path: str) -> bytes:
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)
    connection.request("GET", path)
    answer = connection.getresponse().read()
    connection.close()
    return answer


def read_past(beside: Dashboard) -> None:
    begin, longest_s = time.monotonic(), 0.0
    while True:
        asking = time.monotonic()
        run = json.loads(asked(beside.url, "/api/run"))
        longest_s = max(longest_s, time.monotonic() - asking)
        if run["caught_up"]:
            break
        time.sleep(0.5)
    print(f"the past read in {time.monotonic() - begin:.1f} s, {cpu_s(beside.pid):.1f} s of processor time")
    print(f"the slowest answer meanwhile {longest_s * 1e3:.0f} ms; {memory_mb(beside.pid):.0f} MB resident")


def ask_all(beside: Dashboard, ticks: int, times: int = 20) -> None:
    print(f"\n{'question':22} {'median ms':>10} {'slowest ms':>11} {'server cpu ms':>14} {'KB':>7}")
    for name, path in _QUESTIONS.items():
        path, taken, before_s = path.format(last_15_min=_BEGAN_S + 2 * ticks - 900), [], cpu_s(beside.pid)
        for _ in range(times):
            begin = time.monotonic()
            size = len(asked(beside.url, path))
            taken.append((time.monotonic() - begin) * 1e3)
        used = (cpu_s(beside.pid) - before_s) / times * 1e3
        print(f"{name:22} {statistics.median(taken):10.1f} {max(taken):11.1f} {used:14.1f} {size / 1e3:7.1f}")


def listen(url: str, heard: list[float], ready: threading.Barrier) -> None:
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)
    connection.request("GET", "/api/events")
    answer = connection.getresponse()
    answer.readline()
    ready.wait()
    while not answer.readline().startswith(b"event: tick"):
        pass
    heard.append(time.monotonic())
    connection.close()


def tell_all(beside: Dashboard, folder: Path, ticks: int, operators: int, clients: int) -> None:
    heard: list[float] = []
    ready = threading.Barrier(clients + 1)
    threads = [threading.Thread(target=listen, args=(beside.url, heard, ready)) for _ in range(clients)]
    for thread in threads:
        thread.start()
    ready.wait()
    line = tick(ticks, operators)
    begin = time.monotonic()
    with (folder / "ticks.jsonl").open("a") as file:
        file.write(line + "\n")
    for thread in threads:
        thread.join()
    first, last = (min(heard) - begin) * 1e3, (max(heard) - begin) * 1e3
    print(f"\na tick reaches the first of {clients} listeners after {first:.0f} ms, the last after {last:.0f} ms")


_WATCH = """() => {
  window.frames_ms = []; window.tasks_ms = [];
  new PerformanceObserver(l => l.getEntries().forEach(e => tasks_ms.push(e.duration))).observe({type: "longtask"});
  let before = performance.now();
  const frame = now => { frames_ms.push(now - before); before = now; requestAnimationFrame(frame); };
  requestAnimationFrame(frame);
}"""


def look(beside: Dashboard, folder: Path, ticks: int, operators: int, seconds: int = 20) -> None:
    chromium = shutil.which("chromium")
    if chromium is None:
        print("\nno chromium here: how smooth the page is was left out")
        return
    with sync_playwright() as playing:
        browser = playing.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1440, "height": 1000})
        begin = time.monotonic()
        page.goto(beside.url)
        page.locator("#processors canvas").wait_for()
        drawn_s = time.monotonic() - begin
        page.evaluate(_WATCH)
        box = page.locator("#processors canvas").bounding_box()
        assert box is not None
        for second in range(seconds):
            if second % 2 == 0:
                with (folder / "ticks.jsonl").open("a") as file:
                    file.write(tick(ticks + 1 + second // 2, operators) + "\n")
            for place in range(10):
                x = box["x"] + box["width"] * (0.1 + 0.08 * place)
                page.mouse.move(x, box["y"] + box["height"] / 2)
                page.wait_for_timeout(100)
        frames, tasks = sorted(page.evaluate("frames_ms")), page.evaluate("tasks_ms")
        heap_mb = page.evaluate("performance.memory.usedJSHeapSize") / 1e6
        browser.close()
    p95 = frames[int(0.95 * len(frames))]
    print(
        f"\nin the browser: drawn after {drawn_s:.1f} s; over {seconds} s a frame each "
        f"{statistics.median(frames):.0f} ms"
    )
    print(f"95% of them within {p95:.0f} ms, the longest {frames[-1]:.0f} ms; {len(tasks)} tasks above 50 ms,")
    print(f"the longest {max(tasks, default=0):.0f} ms; {heap_mb:.0f} MB of script memory")


def main() -> None:
    ticks, operators, clients = (int(given) for given in (sys.argv[1:] + ["43200", "100", "50"][len(sys.argv) - 1 :]))
    with tempfile.TemporaryDirectory() as kept:
        folder = Path(kept)
        write_day(folder, ticks, operators)
        with Dashboard(folder) as beside:
            read_past(beside)
            ask_all(beside, ticks)
            tell_all(beside, folder, ticks, operators, clients)
            look(beside, folder, ticks, operators)
            print(f"{memory_mb(beside.pid):.0f} MB resident at the end")


if __name__ == "__main__":
    main()
