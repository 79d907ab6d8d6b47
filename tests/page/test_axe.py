"""axe finds nothing: in every view and dialog, light, dark and with forced colours, wide and on a phone."""

from __future__ import annotations

import pytest
from steps import axe_finds, edit, settled, until

LOOKS = [("light", 1280), ("dark", 360), ("forced", 1280)]  # test_views.py looks into each part of the views


@pytest.fixture
def looks(page):
    """Give the page a theme and a width; both are taken back afterwards."""

    def set_(theme: str, width: int):
        page.set_viewport_size({"width": width, "height": 800})
        page.emulate_media(forced_colors="active" if theme == "forced" else "none", reduced_motion="reduce")  # colours do not fade
        if theme != "forced":
            page.evaluate("(theme) => { document.documentElement.dataset.theme = theme; roofline.repaint(); }", theme)

    yield set_
    page.emulate_media(forced_colors="none", reduced_motion="no-preference")
    page.evaluate("delete document.documentElement.dataset.theme; roofline.repaint()")
    page.set_viewport_size({"width": 1280, "height": 900})


def shown(page, view: str):
    page.evaluate("(id) => document.getElementById(`tab-${id}`).click()", view)
    until(page, "(id) => { const panel = document.getElementById(`panel-${id}`); return panel.childElementCount && !panel.classList.contains('busy') && !panel.querySelector('.busy, .wait'); }", view, timeout=30_000)
    settled(page)


@pytest.mark.parametrize(("theme", "width"), LOOKS)
def test_every_view(page, looks, theme, width):
    looks(theme, width)
    page.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")
    found = {"page": axe_finds(page, "body", "#panels")}
    for view in page.evaluate("[...document.querySelectorAll('[role=tab]')].map((tab) => tab.id.slice(4))"):
        shown(page, view)
        found[view] = axe_finds(page, f"#panel-{view}")
    page.evaluate("for (const each of document.querySelectorAll('details')) each.open = false")
    assert not {k: v for k, v in found.items() if v}


@pytest.mark.parametrize(("theme", "width"), [("light", 1280), ("dark", 360), ("forced", 1280)])
def test_every_state(page, looks, theme, width):
    """A pinned comparison, errors, warnings, a toast, and the dialogs."""
    looks(theme, width)
    found = {}
    page.click("#tab-operators")
    page.locator("#panel-operators").get_by_role("button", name="One layer").click()
    page.wait_for_selector(".layer-graph")
    found["layer"] = axe_finds(page, "#panel-operators")
    assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0
    page.locator("#panel-operators").get_by_role("button", name="Table").click()
    page.evaluate("""() => {
      document.getElementById('tab-compare').click();
      for (const each of document.querySelectorAll('#panel-compare button')) if (each.classList.contains('solid')) each.click(); // pinned before: stays so
    }""")
    edit(page, "#f-batch", "64")
    shown(page, "compare")
    found["pinned"] = axe_finds(page, "#panel-compare")
    page.evaluate("document.querySelectorAll('#panel-compare .panel-top button')[2].click()")  # unpinned again
    edit(page, "#f-batch", "lots")
    found["error"] = axe_finds(page, "body", "#panels")
    page.evaluate("roofline.state.replace({...roofline.state.default, model: 'llama-3.1-405b', weights: 'bf16'})")
    settled(page)
    found["misfit"] = axe_finds(page, "body", "#panels")
    page.evaluate("document.getElementById('reset').click()")
    settled(page)
    found["toast"] = axe_finds(page, "#toast")
    for name, opener, ready in (("share", "#share", "#share-cli"), ("models", "#f-model", "dialog.picker[open]"), ("paste", "#paste", "#paste-text"), ("working", "[data-figure=user]", "#sheet .steps li")):
        page.evaluate("(s) => document.querySelector(s).click()", opener)
        page.wait_for_selector(ready)
        found[name] = axe_finds(page, "dialog[open]")
        page.keyboard.press("Escape")
    assert not {k: v for k, v in found.items() if v}


def test_the_embedded_chart(page):
    page.evaluate("location.hash = 'p=chat&embed'")
    until(page, "document.documentElement.classList.contains('embed')")
    settled(page)
    found = axe_finds(page, "body")
    page.evaluate("location.hash = 'p=serve'")
    until(page, "!document.documentElement.classList.contains('embed')")
    assert not found
