"""The built page in a real Chromium: one server under a sub-path, one browser, one booted page for the tests that only edit.

Any console error, uncaught exception or request to another origin fails the test, unless it says that it breaks things on purpose.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
import server
from steps import DIST, FLAGS, booted, settled, watched



def _chromium() -> str | None:
    named = os.environ.get("ROOFLINE_CHROMIUM")
    return named or next((p for p in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if p), None)


def pytest_collection_modifyitems(items):
    for item in items:
        if Path(__file__).parent in Path(item.fspath).parents:
            item.add_marker("browser")


@pytest.fixture(scope="session")
def site():
    """Address of the built page, under a sub-path as on a project's page of a static host."""
    if not (DIST / "index.html").exists():
        pytest.skip("dist/ is not built; `python3 build.py test` builds it first")
    running, url = server.start(DIST, "/some/where/")
    yield url
    running.shutdown()


@pytest.fixture(scope="session")
def browser():
    api = pytest.importorskip("playwright.sync_api")
    if not _chromium():
        pytest.skip("no Chromium; `python3 build.py test` finds or installs one")
    with api.sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=_chromium(), args=FLAGS)
        yield found
        found.close()


@pytest.fixture(scope="session")
def _shared(browser, site):
    context = browser.new_context(viewport={"width": 1280, "height": 900}, service_workers="block")
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = context.new_page()
    watch = watched(page)
    booted(page, site)
    yield page, watch
    context.close()


@pytest.fixture
def page(_shared, site):
    """The one booted page, back at the first example, on its first tab."""
    page, watch = _shared
    page.keyboard.press("Escape")
    page.evaluate("roofline.state.page = {}; roofline.state.replace(roofline.state.default); document.getElementById('tab-operators').click(); document.getElementById('toast').hidden = true")
    settled(page)
    watch.faults.clear()
    yield page
    assert not watch.faults, watch.faults
    assert "[object" not in page.inner_text("body")  # an element written as text


@pytest.fixture
def fresh(browser, request):
    """Makes new pages, each in its own context; they are watched too."""
    opened = []

    def make(hosts=(), **options):
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, "service_workers": "block", **options})
        page = context.new_page()
        opened.append((context, watched(page, hosts)))
        return page

    yield make
    broken = request.node.get_closest_marker("console_errors_expected")
    faults = [f for _, w in opened for f in w.faults if not (broken and not f.startswith("foreign"))]
    for context, _ in opened:
        context.close()
    assert not faults, faults
