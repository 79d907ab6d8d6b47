"""The page in Firefox, if there is one (Debian: firefox-esr): it boots from the snapshot, answers, draws, shares, and works offline."""

from __future__ import annotations

import shutil

import pytest
import server
from bidi import Firefox
from steps import DIST, until

PROGRAM = next((p for p in map(shutil.which, ("firefox-esr", "firefox")) if p), None)
pytestmark = pytest.mark.skipif(not PROGRAM, reason="no Firefox; on Debian: apt-get install firefox-esr")


@pytest.fixture(scope="module")
def firefox():
    browser = Firefox(PROGRAM)
    yield browser
    browser.close()


@pytest.fixture(scope="module")
def opened(firefox, site):
    firefox.open(site)
    assert firefox.evaluate("document.getElementById('sentence').textContent.includes('memory-bound')")
    firefox.until("document.documentElement.dataset.ready", 90)
    firefox.evaluate("dispatchEvent(new PointerEvent('pointermove'))")
    firefox.until("document.documentElement.dataset.chart", 30)
    return firefox


def edit(firefox, batch: str):
    firefox.evaluate(f"(() => {{ const e = document.getElementById('f-batch'); e.value = '{batch}'; e.dispatchEvent(new Event('input', {{ bubbles: true }})); }})()")
    firefox.until(f"roofline.sentence.text().includes('{batch} requests') && !document.documentElement.classList.contains('asking')")


def test_it_boots_from_the_snapshot_and_answers(opened):
    assert opened.evaluate("document.documentElement.dataset.ready") == "snapshot"
    before = opened.evaluate("roofline.chart.model('phases').data.x[1]")
    edit(opened, "128")
    opened.until(f"roofline.chart.model('phases').data.x[1] > {before}")


def test_it_gives_chromium_the_same_answer(opened, page):
    opened.evaluate("roofline.state.replace(roofline.state.default)")
    edit(opened, "33")
    page.evaluate("roofline.state.replace(roofline.state.default)")
    page.fill("#f-batch", "33")
    until(page, "roofline.sentence.text().includes('33 requests') && !document.documentElement.classList.contains('asking')", timeout=15_000)
    page.wait_for_timeout(500)
    assert opened.evaluate("document.getElementById('figures').innerText").split() == page.inner_text("#figures").split()


def test_views_words_and_pictures(opened):
    for view in opened.evaluate("[...document.querySelectorAll('[role=tab]')].map((e) => e.id)"):
        opened.evaluate(f"document.getElementById('{view}').click()")
        panel = view.replace("tab-", "panel-")
        opened.until(f"document.getElementById('{panel}').textContent.length > 60 && !document.querySelector('#{panel}.busy, #{panel} .busy, #{panel} .wait')", 60)
        assert not opened.evaluate(f"document.querySelector('#{panel} .error:not([hidden])')?.textContent"), view
    opened.evaluate("(() => { const e = document.getElementById('language'); e.value = 'zh'; e.dispatchEvent(new Event('change')); })()")
    opened.until("document.documentElement.lang === 'zh-Hans'")
    assert "受限于内存带宽" in opened.evaluate("roofline.sentence.text()")
    opened.evaluate("(() => { const e = document.getElementById('language'); e.value = 'en'; e.dispatchEvent(new Event('change')); })()")
    opened.until("document.documentElement.lang === 'en'")
    assert opened.evaluate("roofline.chart.view.export('svg', false).ctx.get_serialized_svg(true).length") > 5000
    assert opened.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0


def test_nothing_is_complained_of_and_nothing_asked_elsewhere(opened, site):
    faults = [e["params"].get("text") for e in opened.events if e["method"] == "log.entryAdded" and e["params"]["level"] == "error"]
    asked = {e["params"]["request"]["url"] for e in opened.events if e["method"] == "network.beforeRequestSent"}
    assert not faults, faults
    assert len(asked) > 20 and all(url.startswith((site, "data:", "blob:", "about:")) for url in asked), asked


def test_it_works_offline_after_the_first_visit(firefox):
    running, url = server.start(DIST, "/fire/fox/")
    firefox.open(url)
    firefox.until("document.documentElement.dataset.offline === 'yes'", 120)
    edit(firefox, "5")
    firefox.until("location.hash.includes('batch=5')")
    running.shutdown()
    running.server_close()
    firefox.command("browsingContext.reload", context=firefox.tab, wait="complete")
    firefox.until("document.documentElement.dataset.ready === 'snapshot'", 90)
    firefox.until("roofline.sentence.text().includes('5 requests')")
