"""When something can be read and when the chart stands: this page beside a plain Chart.js calculator, alternating in one run.

    .venv/bin/python benchmarks/first_paint.py [--rounds 7]

The yardstick is benchmarks/plain: a form, two formulas and Chart.js out of its npm package, nothing else. Each page is opened in a fresh
browser context, on this machine's own speed and as on a phone (150 ms, 1.6 Mbit/s, a processor four times slower).
First contentful paint is the browser's own figure; the chart is drawn at the frame after the one in which its marks exist.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "site" / "build"))

from playwright.sync_api import sync_playwright  # noqa: E402

import fetch  # noqa: E402
import server  # noqa: E402
from common import run  # noqa: E402

CHARTJS = "chart.js@4.6.1"
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"]
PHONE = {"offline": False, "latency": 150, "downloadThroughput": 1.6e6 / 8, "uploadThroughput": 0.75e6 / 8}
# Watches from the very start of the page; `ready` says whether the chart's marks exist.
WATCH = """
globalThis.__chart = 0;
(function look() {
  requestAnimationFrame(() => (%s) ? requestAnimationFrame((at) => { globalThis.__chart = at; }) : look());
})();
"""
READY = {"Roofline": "document.querySelector('.still svg text[data-still^=phase]')", "Chart.js": "globalThis.drawn"}


def measure(browser, url: str, ready: str, phone: bool) -> dict:
    context = browser.new_context(viewport={"width": 412, "height": 823} if phone else {"width": 1280, "height": 900})
    page = context.new_page()
    page.add_init_script(WATCH % ready)
    if phone:
        session = context.new_cdp_session(page)
        session.send("Network.enable")
        session.send("Network.emulateNetworkConditions", PHONE)
        session.send("Emulation.setCPUThrottlingRate", {"rate": 4})
    page.wait_for_timeout(1000)  # in a tab that stands: what the last visit left behind is being thrown away meanwhile
    page.goto(url, wait_until="commit")
    end = {}
    while not end.get("chart") or not end.get("paint"):
        page.wait_for_timeout(50)
        end = page.evaluate("({ chart: globalThis.__chart, paint: performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0 })")
    context.close()
    return end


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--dist", type=Path, default=ROOT / "dist")
    options = parser.parse_args()
    python = Path(sys.executable)
    with tempfile.TemporaryDirectory() as temporary, sync_playwright() as playwright:
        folder = Path(temporary)
        run([*fetch._npm(python), "pack", CHARTJS, "--silent", "--pack-destination", folder], what="npm pack chart.js")
        with tarfile.open(next(folder.glob("*.tgz"))) as archive:
            (folder / "chart.umd.js").write_bytes(archive.extractfile("package/dist/chart.umd.js").read())
        for name in ("index.html", "style.css", "app.js"):
            (folder / name).write_bytes((ROOT / "benchmarks" / "plain" / name).read_bytes())
        pages = {"Roofline": server.start(options.dist, "/roofline/"), "Chart.js": server.start(folder, "/plain/")}
        browser = playwright.chromium.launch(executable_path=os.environ.get("ROOFLINE_CHROMIUM") or str(fetch.chromium(python)), args=FLAGS)
        for where in ("this machine", "as on a phone"):
            found = {name: [] for name in pages}
            for _ in range(options.rounds + 1):
                for name, (_, url) in pages.items():
                    found[name].append(measure(browser, url, READY[name], where != "this machine"))
            print(f"{where}, median of {options.rounds}")
            for what, words in (("paint", "first contentful paint"), ("chart", "chart drawn")):
                middle = {name: statistics.median(row[what] for row in rows[1:]) for name, rows in found.items()}  # the first round warms up
                print(f"  {words:24s} Roofline {middle['Roofline']:6.0f} ms, Chart.js {middle['Chart.js']:6.0f} ms   {middle['Roofline'] / middle['Chart.js']:.2f} x")
        browser.close()
        for running, _ in pages.values():
            running.shutdown()


if __name__ == "__main__":
    main()
