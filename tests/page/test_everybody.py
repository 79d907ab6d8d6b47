"""For everybody: any width, keyboard only, dark, reduced motion, print."""

from __future__ import annotations

import pytest
from steps import axe_finds as _axe  # noqa: F401 (test_views takes it from here)
from steps import booted, sentence, settled, until

VIEWS = ["operators", "time", "memory", "sweep", "levers", "method"]


@pytest.mark.parametrize("width", [320, 360, 768, 1280, 2560])
def test_nothing_is_wider_than_the_screen(page, width):
    page.set_viewport_size({"width": width, "height": 800})
    try:
        for view in VIEWS:
            page.click(f"#tab-{view}")
            settled(page)
            wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
            assert wide <= 0, view
        assert page.evaluate("roofline.chart.plot.inner_width") > width * 0.35
    finally:
        page.set_viewport_size({"width": 1280, "height": 900})


def test_keyboard_alone(page):
    page.focus("#f-model")
    page.keyboard.press("Enter")
    page.wait_for_selector("dialog.picker[open]")
    page.keyboard.type("mixtral 8x7b")
    until(page, "document.querySelectorAll('.picker [role=option]').length < 5")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    settled(page)
    assert "8x7B" in sentence(page)
    assert page.evaluate("document.activeElement.id") == "f-model"
    page.keyboard.press("Enter")
    page.keyboard.press("Escape")
    assert page.locator("dialog.picker").count() == 0
    page.focus("#tab-operators")
    page.keyboard.press("ArrowRight")
    assert page.get_attribute("#tab-time", "aria-selected") == "true"
    assert page.evaluate("document.activeElement.id") == "tab-time"
    page.keyboard.press("Control+z")
    settled(page)
    assert "8x7B" not in sentence(page)


def test_every_control_can_be_reached_and_seen(page):
    page.evaluate("document.querySelector('.skip').focus(); window.scrollTo(0, 0)")  # where Tab begins again, whatever stood before
    seen = set()
    for _ in range(120):
        page.keyboard.press("Tab")
        seen.add(page.evaluate("document.activeElement.id"))
    assert {"s-model", "s-weights", "s-batch", "language", "theme", "share", "f-model", "f-hardware", "f-weights", "f-batch"} <= seen


def test_themes_repaint_the_chart(page):
    light = page.evaluate("roofline.chart.model('roofs').data.color[0]")
    page.click("#theme")
    settled(page)
    dark = page.evaluate("roofline.chart.model('roofs').data.color[0]")
    page.click("#theme")
    page.evaluate("delete document.documentElement.dataset.theme; localStorage.removeItem('roofline-theme')")
    assert light != dark


def test_reduced_motion_moves_at_once(fresh, site):
    page = fresh(reduced_motion="reduce")
    booted(page, site)
    page.evaluate("roofline.state.set({batch: '128'})")
    settled(page)
    assert page.evaluate("Math.abs(roofline.chart.model('phases').data.x[1] - roofline.latest().chart.phases.x[1]) < 1e-9")


def test_the_chart_says_what_it_shows(page):
    assert "waits for memory" in page.inner_text("#finding")
    page.click("text=The chart as a table")
    settled(page)
    assert "Bound by" in page.inner_text("#chart-table")
    page.click("text=The chart as a table")


def test_print_shows_the_answer(page):
    wide = page.evaluate("document.getElementById('roofline').clientWidth")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    fit = float(page.evaluate("document.documentElement.style.getPropertyValue('--paper-fit')"))
    assert 500 < fit * wide <= 680.5  # an A4 sheet has 717 pixels between the browsers' margins; the chart is not drawn anew for it
    assert page.text_content("#printed") == page.url
    page.emulate_media(media="print")
    assert page.is_visible("#sentence") and not page.is_visible("#share")
    page.emulate_media(media="screen")


def test_embed_shows_the_chart_alone(fresh, site):
    page = fresh(viewport={"width": 720, "height": 520})
    booted(page, f"{site}#embed")
    assert page.is_visible("#roofline") and not page.is_visible("#question") and not page.is_visible(".foot")
