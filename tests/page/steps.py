"""What the page tests share: where the page is, how it is opened, edited and read."""

from __future__ import annotations

import os
import time
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DIST = Path(os.environ.get("ROOFLINE_DIST", ROOT / "dist"))
BOOT_MS, STEP_MS = 90_000, 15_000  # a step is quick on a quiet machine; continuous integration is not always one
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"]


class Watch:
    """Everything a page should not do. hosts: the other origins a test lets it ask, because it presses the button that does."""

    def __init__(self, page, hosts=()):
        self.faults = []
        here = ("http://127.0.0.1:", *hosts)
        page.on("console", lambda m: m.type == "error" and self.faults.append(f"console: {m.text}"))
        page.on("pageerror", lambda e: self.faults.append(f"exception: {e}"))
        page.on("request", lambda r: r.url.startswith(("http", "ws")) and not r.url.startswith(here) and self.faults.append(f"foreign request: {r.url}"))


def watched(page, hosts=()) -> Watch:
    page.set_default_timeout(STEP_MS)
    return Watch(page, hosts)


def booted(page, url: str, mode: str = ""):
    """Open and wait until Python answers and the chart stands."""
    page.goto(url)
    page.wait_for_selector(f'html[data-ready{f"={mode!r}" if mode else ""}]', state="attached", timeout=BOOT_MS)
    return charted(page)


def charted(page):
    """Stir, as a visitor does who reaches for the mouse: Bokeh's chart takes the place of the still one."""
    page.mouse.move(2, 2)
    page.mouse.move(4, 4)
    page.wait_for_selector("html[data-chart]", state="attached", timeout=BOOT_MS)
    return page


def until(page, expression: str, arg=None, timeout: int = STEP_MS):
    """Wait until a JavaScript expression holds. Playwright's own wait_for_function evaluates strings, which the page's policy forbids."""
    end = time.monotonic() + timeout / 1000
    while not page.evaluate(expression, arg):
        if time.monotonic() > end:
            raise AssertionError(f"after {timeout} ms still not so: {expression}")
        page.wait_for_timeout(25)


def settled(page):
    """Wait until the newest question is answered and shown."""
    until(page, "!document.documentElement.classList.contains('asking') && roofline.drawn()")
    page.evaluate("new Promise((done) => requestAnimationFrame(() => setTimeout(() => setTimeout(done, 0), 0)))")


def edit(page, selector: str, value: str):
    """Type a value and wait for what comes of it."""
    page.fill(selector, value)
    settled(page)


def sentence(page) -> str:
    return " ".join(page.evaluate("roofline.sentence.text()").split())


def column(page, source: str, name: str):
    """A column of the chart as Bokeh holds it."""
    return page.evaluate(f"Array.from(roofline.chart.model('{source}').data['{name}'])")


TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


def axe_finds(page, part: str = "body", without: str = "") -> list:
    """Run axe on a part of the page; what it finds, as text."""
    package = find_spec("axe_playwright_python")
    if not package:
        pytest.skip("axe is not installed; `python3 build.py test` installs it")
    if not page.evaluate("Boolean(globalThis.axe)"):
        page.evaluate(next(Path(package.origin).parent.rglob("axe.min.js")).read_text("utf-8"))
    found = page.evaluate("([part, without, tags]) => axe.run(without ? {include: part, exclude: without} : part, {runOnly: tags, resultTypes: ['violations']})", [part, without, TAGS])
    return [f"{v['id']}: {[n['target'] for n in v['nodes']][:3]} {v['nodes'][0].get('failureSummary', '')[:300]}" for v in found["violations"]]
