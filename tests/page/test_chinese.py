"""The Chinese page: no English sentence stands in it, save what is cited (titles of sources, names, keys of files) and marked as English."""

from __future__ import annotations

import re

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
            for part in opened(page, view):
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


# Chinese that a visitor meets on the English page; the choice of language is written in its own.
CHINESE = r"""() => {
  const found = [], see = (element, text) => { if (/[\u4e00-\u9fff，。；：]/.test(text ?? "") && !element.closest("[lang=zh-Hans]")) found.push(text.slice(0, 60)); };
  for (const details of document.querySelectorAll("details")) details.open = true;
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node; (node = walk.nextNode());) if (node.parentElement.checkVisibility()) see(node.parentElement, node.data);
  for (const name of ["title", "aria-label", "placeholder"]) for (const element of document.querySelectorAll(`[${name}]`)) if (element.checkVisibility()) see(element, element.getAttribute(name));
  return found;
}"""
WALKERS = {"zh": ENGLISH, "en": CHINESE}
# Words in the charts, which are painted rather than written: axes, labels, what a hover says.
PAINTED = r"""() => roofline.charts.filter((chart) => chart.doc && chart.box.checkVisibility()).flatMap((chart) => [chart.model("below").axis_label, chart.model("left").axis_label,
  ...Object.values(chart.shown).flatMap((columns) => ["text", "label", "title", "tip"].flatMap((name) => [...(columns[name] ?? [])]))]).map((text) => text ?? "")"""
LANGUAGE = "name => { const select = document.getElementById('language'); select.value = name; select.dispatchEvent(new Event('change')); }"


def speak(page, name: str):
    """Change the language, and wait only until the page has changed it."""
    page.evaluate(f"name => {{ window.turned = false; document.addEventListener('language', () => {{ window.turned = true; }}, {{ once: true }}); ({LANGUAGE})(name); }}", name)
    until(page, "window.turned")
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 0))))")


def opened(page, view: str):
    """Open a view and each of its parts in turn; gives the parts' numbers."""
    page.click(f"#tab-{view}")
    if view in ("serving", "levers", "explore", "measured", "learn"):
        page.wait_for_selector(f"#panel-{view}[data-view=ready]")
    buttons = page.locator(f"#panel-{view} .segmented").first.locator("button")
    for part in range(max(1, buttons.count())):
        if buttons.count():
            buttons.nth(part).click()
        until(page, "!document.querySelector('.panel:not([hidden]).busy, .panel:not([hidden]) .wait, .panel:not([hidden]) .trying:not([hidden])')", timeout=30_000)
        yield part


def test_a_change_of_language_leaves_nothing_in_the_old_one(fresh, site):
    page, left = booted(fresh(), site), []

    def look(where: str, name: str):
        left.extend(f"{where} in {name}: {run}" for run in page.evaluate(WALKERS[name]))
        wrong = r"[a-z]{3,} [a-z]{3,} [a-z]{3,}" if name == "zh" else "[\u4e00-\u9fff]"
        left.extend(f"{where} painted in {name}: {text}" for text in page.evaluate(PAINTED) if re.search(wrong, text))

    settled(page)
    page.evaluate("form => roofline.state.replace({...roofline.state.default, ...form})", {"model": "mixtral-8x7b", "draft": "2", "rate": "1", "chunk": "512", "prefill_hardware": "h100-sxm"})
    settled(page)
    views = page.eval_on_selector_all("#tabs [role=tab]", "tabs => tabs.map((tab) => tab.id.slice(4))")
    page.click("#tab-compare")
    page.click("#panel-compare .solid")
    page.click("#tab-measured")
    page.wait_for_selector("#panel-measured[data-view=ready]")
    page.locator("#panel-measured .segmented").first.locator("button").nth(2).click()
    page.fill("#own-value", "40")
    page.click("#own-number")
    page.wait_for_selector("#own-result table")
    for view in views:
        for part in opened(page, view):
            for name in ("zh", "en"):
                speak(page, name)
                look(f"{view} {part}", name)
    # Views that were opened before the change say it anew when they are come back to, before any new answer.
    speak(page, "zh")
    for view in views:
        page.click(f"#tab-{view}")
        page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 0))))")
        look(f"back to {view}", "zh")
    assert page.evaluate("document.documentElement.lang") == "zh-Hans"
    assert re.search("[\u4e00-\u9fff]", page.title()) and re.search("[\u4e00-\u9fff]", page.get_attribute("meta[name=description]", "content"))
    assert not left, "\n".join(sorted(set(left)))


def test_what_is_open_changes_its_language_too(fresh, site):
    page, left = booted(fresh(), site), []
    settled(page)

    def both(where: str, kept=lambda: None):
        held = kept()
        for name in ("zh", "en"):
            speak(page, name)
            until(page, "!document.querySelector('#sheet[open] .hint')?.textContent.match(/^(Waiting|Python 还)/)")
            left.extend(f"{where} in {name}: {run}" for run in page.evaluate(WALKERS[name]))
            assert kept() == held, where

    page.click("#reset")
    assert page.is_visible("#toast")
    both("toast")
    assert page.is_visible("#toast")
    page.evaluate("document.getElementById('toast').hidden = true")
    page.click("#share")
    page.wait_for_selector("#share-cli")
    both("share", lambda: page.is_visible("#sheet[open]"))
    page.keyboard.press("Escape")
    page.click("[data-figure=user]")
    page.wait_for_selector("#sheet .steps")
    both("working", lambda: page.is_visible("#sheet[open]"))
    page.keyboard.press("Escape")
    page.click("#paste")
    page.wait_for_selector("#paste-use")
    page.fill("#paste-text", '{"model_type": }')
    page.click("#paste-use")
    page.wait_for_selector("#paste-error:not(:empty)")
    both("paste", lambda: (page.input_value("#paste-text"), bool(page.inner_text("#paste-error"))))
    page.keyboard.press("Escape")
    page.click("#f-hardware")
    page.wait_for_selector("dialog.picker[open]")
    page.fill("dialog.picker input", "h200")
    both("picker", lambda: page.input_value("dialog.picker input"))
    page.keyboard.press("Escape")
    page.evaluate("document.getElementById('fold-money').open = true")
    page.fill("#f-batch", "0")
    page.wait_for_selector("#e-batch:not([hidden])")
    both("refusal", lambda: (page.evaluate("document.getElementById('fold-money').open"), page.is_visible("#e-batch"), page.input_value("#f-batch")))
    page.context.set_offline(True)
    until(page, "!document.getElementById('net').hidden")
    both("offline")
    page.context.set_offline(False)
    assert not left, "\n".join(sorted(set(left)))
