"""A number opens the working of its own question, in every view: the working's last result is the number clicked."""

from __future__ import annotations

import re

import pytest
from steps import booted, settled, until

# Click a number, wait for its working; the text clicked, the results that stand in it and the question it says it is for.
WORKING = """async ([selector, index]) => {
  const button = document.querySelectorAll(selector)[index];
  document.getElementById("sheet-body").replaceChildren();
  button.click();
  while (!document.querySelector("#sheet .steps li, #sheet .error")) await new Promise((done) => setTimeout(done, 10));
  const sheet = document.getElementById("sheet"), steps = [...sheet.querySelectorAll(".steps li:not(.head)")];
  const found = { clicked: button.textContent, key: button.dataset.explain, title: document.getElementById("sheet-title").textContent, of: sheet.querySelector(".of")?.textContent ?? "", last: steps.at(-1)?.textContent ?? "",
    strong: [...(steps.at(-1)?.querySelectorAll("strong") ?? [])].map((e) => e.textContent), whole: sheet.innerText, error: sheet.querySelector(".error")?.textContent ?? "" };
  sheet.close();
  return found;
}"""
# Every twentieth number would be as good: those of a view that have a key not seen yet, and the last of each.
CHOSEN = """([selector, most]) => {
  const all = [...document.querySelectorAll(selector)].map((e, i) => [e, i]).filter(([e]) => e.checkVisibility());
  const seen = {};
  for (const [e, i] of all) (seen[e.dataset.explain] ??= []).push(i);
  return Object.values(seen).flatMap((list) => [...new Set([list[0], list.at(-1)])]).slice(0, most);
}"""


QUANTITY = re.compile(r"[+−±]?\$?\d[\d,.]*(?:[\s\u2009](?:[nµmkMGTPE]?(?:B|s|J|W|FLOP)|%|×|[kMGTP])(?![\w/]))?")


def plain(text: str) -> str:
    return re.sub(r"[\s\u2009\u202f]+", " ", text).strip()


def worth(text: str) -> float:
    """What a written quantity is worth: "16.4 ms", "$0.75", "+113 %"."""
    value, _, unit = plain(text).replace(",", "").replace("−", "-").replace("±", "").replace("$", "").partition(" ")
    scale = {"n": 1e-9, "µ": 1e-6, "m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18, "%": 1e-2}
    return float(value) * (1.0 if unit in ("", "s", "B", "J", "W", "×", "FLOP") else scale[unit[0]])


def same(shown: str, said: str) -> bool:
    """Whether two writings are of one number: what fewer figures leave open is open."""
    digits = re.sub(r"[^\d.]", "", plain(shown).partition(" ")[0]).rstrip(".")
    last = 10.0 ** -len(digits.partition(".")[2]) * abs(worth(shown)) / float(digits) if float(digits) else 0.0
    return worth(said) == pytest.approx(worth(shown), rel=0.012, abs=0.51 * last)


def check(page, scope: str, most: int = 60) -> dict:
    """Open workings of a view and hold the last result against the number; {key: working}."""
    selector = f"{scope} .explain"
    found = {}
    for index in page.evaluate(CHOSEN, [selector, most]):
        w = page.evaluate(WORKING, [selector, index])
        assert not w["error"], w
        assert "{" not in w["whole"] and "explain." not in w["whole"] and "figure." not in w["title"], w
        said = [part for text in w["strong"] for part in QUANTITY.findall(text)]
        assert any(same(shown, x) for shown in w["clicked"].split(", ") for x in said), (w["clicked"], said, w)
        found[w["key"]] = w
    return found


def opened(page, view: str):
    page.click(f"#tab-{view}")
    panel = f"#panel-{view}"
    until(page, f"document.querySelectorAll('{panel} .explain').length > 0 && !document.querySelector('{panel}.busy')", timeout=30_000)
    return panel


def test_sweep_numbers_open_the_point_they_are_of(page):
    panel = opened(page, "sweep")
    found = check(page, panel)
    assert set(found) == {"user", "total", "ttft", "tpot", "utilisation", "memory"}
    assert any("Requests" in w["of"] for w in found.values())
    page.get_by_role("button", name="Chips", exact=True).first.click()
    until(page, "document.querySelector('#panel-sweep caption')?.textContent === 'Chips' && !document.querySelector('#panel-sweep.busy')")
    assert any("Chips" in w["of"] and "TP" in w["of"] for w in check(page, panel).values())


def test_gains_of_levers_show_both_sides(page):
    found = check(page, opened(page, "levers"))
    assert {"tpot", "ttft", "sustained", "sustained_per_chip", "bill", "chip_memory"} <= set(found)
    assert all(w["of"] for w in found.values())
    # From there the side it is held against opens, and the way back leads to where it was opened.
    page.click("#panel-levers .explain")
    page.wait_for_selector("#sheet .steps li")
    page.locator("#sheet .steps .explain").last.click()
    page.wait_for_selector("#sheet .link")
    assert page.evaluate("document.activeElement.textContent").startswith("Back to: ")
    assert page.locator("#sheet .of").count() == 0  # the question as it stands
    page.keyboard.press("Enter")
    until(page, "document.querySelector('#sheet .of')")
    page.keyboard.press("Escape")


def test_compare_opens_either_side_and_what_lies_between(page):
    page.click("#tab-compare")
    page.click("#panel-compare .solid")
    page.evaluate("roofline.state.set({batch: '64', hardware: 'b200-sxm'})")
    settled(page)
    until(page, "document.querySelectorAll('#panel-compare tbody .explain').length > 20 && !document.querySelector('#panel-compare.busy')")
    found = check(page, "#panel-compare", 80)
    assert {"ttft", "tpot", "total", "per_chip", "cost", "memory", "max_batch", "phase.prefill", "phase.decode", "group.decode.mlp"} <= set(found)
    page.evaluate("roofline.state.page = {}")


def test_layouts_open_their_own_working(page):
    page.evaluate("roofline.state.replace({...roofline.state.default, devices: '8'})")
    settled(page)
    page.click("#tab-serving")
    page.get_by_role("button", name="Layouts", exact=True).click()
    until(page, "document.querySelectorAll('#panel-serving table .explain').length > 3")
    found = check(page, "#panel-serving")
    assert set(found) == {"tpot", "ttft", "user", "total"}
    assert any("TP" in w["of"] for w in found.values())


FULL = {"rate": "0.6", "chunk": "512", "draft": "3", "usd_per_hour": "3", "usd_per_kwh": "0.2", "api_usd_per_million": "2", "pue": "1.2"}


def test_serving_money_and_energy_open_theirs(page):
    page.evaluate("(more) => roofline.state.replace({...roofline.state.default, ...more})", FULL)
    settled(page)
    page.click("#tab-serving")
    until(page, "document.querySelectorAll('#panel-serving .table-behind tbody tr').length >= 12", timeout=60_000)
    page.evaluate("for (const each of document.querySelectorAll('#panel-serving details')) each.open = true")
    found = check(page, "#panel-serving", 80)
    assert {"requests", "per_chip", "arrivals.capacity", "arrivals.utilisation", "arrivals.batch", "arrivals.prefill_share", "arrivals.mean", "arrivals.p50", "arrivals.p90", "arrivals.p99", "arrivals.tpot", "arrivals.e2e",
            "mixed.step", "mixed.saved", "mixed.ttft", "speedup", "accepted", "draft", "plain"} <= set(found)
    page.get_by_role("button", name="Money and energy", exact=True).click()
    until(page, "document.querySelectorAll('#serving-energy-section .explain').length > 5")
    found = check(page, "#panel-serving", 80)
    assert {"price.input", "cost", "all_in", "hour", "bought.flops", "bought.bytes", "even.rate", "even.share", "energy.output", "energy.input", "energy.watts", "energy.dram", "energy.compute", "energy.rest",
            "per_joule.flops", "per_joule.bytes", "energy.dram.mlp", "energy.compute.mlp"} <= set(found)


def test_pools_open_theirs(page):
    page.evaluate("roofline.state.replace({...roofline.state.default, prefill_hardware: 'h100-sxm', prefill_devices: '4'})")
    settled(page)
    page.click("#tab-serving")
    until(page, "document.querySelectorAll('#serving-pools-section .explain').length > 6")
    assert {"pool.prefill", "pool.transfer", "pool.hidden", "ttft", "pool.per_device", "pool.rate", "pool.ratio", "pool.chips"} == set(check(page, "#serving-pools-section"))


def test_what_explore_found_opens_its_own_working(fresh, site):
    page = fresh()
    booted(page, f"{site}#view=explore")
    until(page, "document.querySelector('#panel-explore[aria-busy=false]') && document.querySelectorAll('#panel-explore .best tbody tr').length > 0", timeout=90_000)
    found = check(page, "#panel-explore", 40)
    assert {"all_in", "user", "tpot", "ttft_alone", "served", "all_hour", "energy.all_in", "memory_share"} <= set(found)
    assert sum(bool(w["of"]) for w in found.values()) >= 6


def test_numbers_of_a_row_are_one_stop_and_arrows_lead_on(page):
    panel = opened(page, "sweep")
    row = f"{panel} tbody tr:nth-child(2)"
    assert page.evaluate(f"[...document.querySelectorAll('{row} .explain')].map((e) => e.tabIndex)") == [0, -1, -1, -1, -1, -1]
    page.focus(f"{row} .explain")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    assert page.evaluate("[document.activeElement.dataset.explain, document.activeElement.closest('tr').rowIndex]") == ["total", 3]
    page.keyboard.press("Enter")
    page.wait_for_selector("#sheet[open] .steps li")
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.dataset.explain") == "total"


@pytest.mark.parametrize("width", [1280, 360])
def test_a_working_moves_nothing(page, width):
    """Opening one lays nothing out anew, and no view grows wider than the screen for its numbers."""
    page.set_viewport_size({"width": width, "height": 900})
    try:
        for view in ("sweep", "levers"):
            panel = opened(page, view)
            before = page.evaluate(f"JSON.stringify(document.querySelector('{panel} table').getBoundingClientRect())")
            page.evaluate(WORKING, [f"{panel} .explain", 0])
            assert page.evaluate(f"JSON.stringify(document.querySelector('{panel} table').getBoundingClientRect())") == before
            assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    finally:
        page.set_viewport_size({"width": 1280, "height": 900})


def test_workings_of_views_are_told_in_chinese(page):
    page.evaluate("(more) => roofline.state.replace({...roofline.state.default, ...more})", FULL)
    page.select_option("#language", "zh")
    until(page, "document.documentElement.lang.startsWith('zh')")
    settled(page)
    page.click("#tab-serving")
    until(page, "document.querySelectorAll('#panel-serving .table-behind tbody tr').length >= 12 && !document.querySelector('#panel-serving.busy')", timeout=60_000)
    for w in [*check(page, "#serving-figures-section").values(), *check(page, "#serving-mixed-section").values(), *check(page, "#serving-speculation-section").values()]:
        assert re.search("[一-鿿]", w["title"]) and re.search("[一-鿿]", w["whole"]), w
    page.select_option("#language", "en")
    until(page, "document.documentElement.lang === 'en'")
