"""The Chinese page: no English sentence stands in it, save what is cited (titles of sources, names, keys of files) and marked as English."""

from __future__ import annotations

from steps import booted, settled, until

# Runs of four or more English words, three of them common ones, that a visitor or a screen reader meets. Code in text fields is no language.
ENGLISH = r"""() => {
  const found = [], see = (element, text) => {
    for (const run of (text ?? "").match(/[A-Za-z][A-Za-z'’-]*(?:[ ,;:]+[A-Za-z][A-Za-z'’-]*){3,}/g) ?? [])
      if (run.split(/[ ,;:]+/).filter((word) => /^[a-z'’-]{2,}$/.test(word)).length > 2 && !element.closest("[lang=en]:not(.left), textarea, pre")) found.push(run);
  };
  for (const details of document.querySelectorAll("details")) details.open = true;
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node; (node = walk.nextNode());) if (node.parentElement.checkVisibility()) see(node.parentElement, node.data);
  for (const name of ["title", "aria-label", "placeholder"]) for (const element of document.querySelectorAll(`[${name}]`)) if (element.checkVisibility()) see(element, element.getAttribute(name));
  return found;
}"""
FORMS = [
    {},
    {"model": "deepseek-v3", "devices": "8", "draft": "2", "chunk": "512", "rate": "1", "prefill_hardware": "h100-sxm"},
    {"model": "gemma-3-12b", "hardware": "xeon-6980p", "devices": "1", "weights": "int8"},
]


def test_no_english_sentence_is_left(fresh, site):
    page, found = booted(fresh(), f"{site}#lang=zh"), {}

    def look(where: str):
        until(page, "!document.querySelector('.panel:not([hidden]).busy, .panel:not([hidden]) .wait, .panel:not([hidden]) .trying:not([hidden])')", timeout=30_000)
        for run in page.evaluate(ENGLISH):
            found.setdefault(run, where)

    until(page, "document.documentElement.lang === 'zh-Hans'")
    settled(page)
    for i, form in enumerate(FORMS):
        page.evaluate("form => roofline.state.replace({...roofline.state.default, ...form})", form)
        settled(page)
        for view in page.eval_on_selector_all("#tabs [role=tab]", "tabs => tabs.map((tab) => tab.id.slice(4))"):
            if i and view in ("explore", "measured", "learn", "sweep", "compare"):
                continue
            page.click(f"#tab-{view}")
            if view in ("serving", "levers", "explore", "measured", "learn"):
                page.wait_for_selector(f"#panel-{view}[data-view=ready]")
            parts = page.locator(f"#panel-{view} .segmented").first.locator("button")
            for part in range(max(1, parts.count())):
                if parts.count():
                    parts.nth(part).click()
                look(f"{form} {view} {part}")
        for key in ("user", "cost", "memory", "ridge"):
            page.evaluate("key => document.querySelector(`[data-figure=${key}], [data-explain=${key}]`)?.click()", key)
            until(page, "!document.querySelector('#sheet[open]') || document.querySelector('#sheet .steps')")
            look(f"{form} working of {key}")
            page.keyboard.press("Escape")
    for field, value in (("batch", "0"), ("tp", "3"), ("prompt", "8 kB"), ("weights", "fp7"), ("hardware", "h1oo"), ("acceptance", "2")):
        page.evaluate("form => roofline.state.replace({...roofline.state.default, ...form})", {field: value})
        settled(page)
        assert page.locator("#said").inner_text()
        look(f"{field} {value}")
    for control in ("#share", "#paste"):
        page.click(control)
        page.wait_for_selector("#sheet[open]")
        look(control)
        page.keyboard.press("Escape")
    assert not found
