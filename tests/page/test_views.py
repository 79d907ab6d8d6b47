"""The views that are loaded when first opened: what each shows, by hand and by keyboard, in both languages."""

from __future__ import annotations

from pathlib import Path

import pytest
from steps import booted, sentence, settled, until
from test_everybody import _axe

VIEWS = ["serving", "levers", "explore", "measured", "learn"]


def opened(page, view: str):
    """Open a view and wait until its code has come and its first answer stands."""
    page.click(f"#tab-{view}")
    page.wait_for_selector(f"#panel-{view}[data-view=ready]", timeout=15_000)
    settled(page)
    return page.locator(f"#panel-{view}")


def answered(page, view: str):
    """Wait until the open view has no answer outstanding."""
    until(
        page,
        f"!document.getElementById('panel-{view}').classList.contains('busy') && !document.querySelector('#panel-{view} .wait')",
        timeout=20_000,
    )


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_in_any_view(page, view, theme):
    page.evaluate(f"document.documentElement.dataset.theme = '{theme}'")
    panel = opened(page, view)
    found = []
    for i in range(panel.locator(".segmented").first.locator("button").count()):
        panel.locator(".segmented").first.locator("button").nth(i).click()
        answered(page, view)
        page.wait_for_timeout(400)  # colours fade
        found += _axe(page)
    page.evaluate("delete document.documentElement.dataset.theme; roofline.state.page = {}")
    assert not found, found


@pytest.mark.parametrize("width", [320, 360, 768, 2560])
def test_no_view_is_wider_than_the_screen(page, width):
    page.set_viewport_size({"width": width, "height": 800})
    try:
        for view in VIEWS:
            opened(page, view)
            answered(page, view)
            page.wait_for_timeout(200)
            assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0, view
    finally:
        page.set_viewport_size({"width": 1280, "height": 900})


@pytest.mark.parametrize("width", [320, 360])
@pytest.mark.parametrize(("view", "columns"), [("operators", ["Operator", "Bound by", "Time"]), ("sweep", ["Requests", "Bound by", "Per user"]), ("levers", ["Change", "Time per token"])])
def test_a_phone_shows_what_matters_of_a_table_without_scrolling(page, width, view, columns):
    page.set_viewport_size({"width": width, "height": 800})
    try:
        page.click(f"#tab-{view}")
        until(page, f"document.querySelector('#panel-{view}:not(.busy) table')", timeout=15_000)
        table = page.locator(f"#panel-{view}").locator("table").first
        assert [h.split(" ▼")[0].split(" ▲")[0] for h in table.locator("thead th").all_inner_texts()][: len(columns)] == columns
        rights = table.evaluate("(t, n) => [...t.rows].flatMap((r) => [...r.cells].slice(0, n).map((c) => c.getBoundingClientRect().right))", len(columns))
        assert max(rights) <= page.evaluate("document.documentElement.clientWidth")
        if view == "operators":
            first = lambda: table.locator("tbody th").first.inner_text()
            before = first()
            table.get_by_role("button", name="Operator").click()
            assert table.locator("thead th").first.get_attribute("aria-sort") == "ascending" and first() != before
            table.get_by_role("button", name="Share").click()
    finally:
        page.set_viewport_size({"width": 1280, "height": 900})


# ---- Learn ----------------------------------------------------------------------------------------------------------


def test_a_lesson_takes_the_question_and_gives_it_back(page):
    page.fill("#f-batch", "48")
    settled(page)
    own = sentence(page)
    panel = opened(page, "learn")
    panel.locator(".course button").first.click()  # the lesson that was read last is the one that opens
    until(page, "document.querySelector('#panel-learn .live')")
    assert "TFLOP" in panel.inner_text()
    assert sentence(page) == own  # reading a lesson changes nothing
    page.click("#lesson-start")
    page.wait_for_selector(".lesson.on")
    settled(page)
    assert "Llama-3.1-8B" in sentence(page) and page.inner_text("#lesson-back") == "Back to my question"
    until(page, "location.hash.includes('lesson=flop') && location.hash.includes('llama-3.1-8b')")
    shown = lambda: panel.locator(".watch dd").first.inner_text()
    before = shown()
    panel.locator(".knob button", has_text="4,096").click()
    until(page, f"document.querySelector('#panel-learn .watch dd').textContent !== {before!r}")
    assert page.input_value("#f-prompt") == "4096"
    panel.get_by_role("button", name="Next").click()
    until(page, "document.querySelector('.lesson h3').textContent.includes('chef')")
    page.wait_for_selector(".lesson.on")
    until(page, "location.hash.includes('lesson=chef')")
    page.click("#lesson-back")
    settled(page)
    assert sentence(page) == own
    assert page.locator(".lesson.on").count() == 0


def test_undo_brings_the_question_back_from_a_lesson(page):
    own = sentence(page)
    opened(page, "learn")
    page.click("#lesson-start")
    page.wait_for_selector(".lesson.on")
    settled(page)
    assert sentence(page) != own
    page.click("#undo")
    settled(page)
    until(page, "!document.querySelector('.lesson.on')")
    assert sentence(page) == own


def test_a_link_opens_its_lesson(fresh, site):
    page = fresh()
    booted(page, f"{site}#view=learn&lesson=kv")
    page.wait_for_selector("#panel-learn[data-view=ready]")
    until(page, "document.querySelector('.lesson h3')?.textContent === 'The KV cache'")
    assert "70B" in sentence(page)  # the visitor's own question is untouched
    assert "kB" in page.inner_text(".lesson .prose")
    page.click("#lesson-start")
    until(page, "location.hash.includes('llama-3.1-8b')")
    other = fresh()
    booted(other, page.url)  # a link into the middle of the lesson
    other.wait_for_selector(".lesson.on", timeout=20_000)
    assert other.inner_text("#lesson-back") == "Leave the lesson"  # whoever opens it has no question of their own
    other.click("#lesson-back")
    until(other, "document.getElementById('toast').innerText.includes('first example')")
    settled(other)
    assert "70B" in sentence(other)


def test_terms_have_a_gloss_on_hover_and_on_focus(page):
    opened(page, "learn")
    page.click("#panel-learn .course button >> nth=3")
    until(page, "document.querySelector('#panel-learn .term[data-term=ridge]')")
    page.hover("#panel-learn .term[data-term=ridge]")
    until(page, "!document.getElementById('gloss').hidden")
    assert "peak divided by bandwidth" in page.inner_text("#gloss")
    page.mouse.move(5, 5)
    until(page, "document.getElementById('gloss').hidden")
    page.focus("#panel-learn .term[data-term=intensity]")
    until(page, "!document.getElementById('gloss').hidden")
    assert page.get_attribute("#panel-learn .term[data-term=intensity]", "aria-describedby") == "gloss"
    page.mouse.wheel(0, 60)  # as when the focus brings its element into view: the gloss goes along
    page.wait_for_timeout(200)
    apart = page.evaluate("() => { const at = document.activeElement.getBoundingClientRect(), box = document.getElementById('gloss').getBoundingClientRect(); return Math.max(box.top - at.bottom, at.top - box.bottom); }")
    assert page.is_visible("#gloss") and 0 <= apart <= 8, apart
    page.keyboard.press("Escape")
    assert page.is_hidden("#gloss")


def test_a_field_tells_what_it_is_to_one_who_comes_with_tab(page):
    page.click("#f-prompt")
    assert page.is_hidden("#gloss")  # a pointer has the title
    page.keyboard.press("Tab")
    until(page, "!document.getElementById('gloss').hidden")
    assert page.inner_text("#gloss") == page.evaluate("document.activeElement.title")
    assert page.evaluate("document.activeElement.getAttribute('aria-describedby')").startswith("e-")
    page.keyboard.press("1")
    assert page.is_hidden("#gloss")
    page.keyboard.press("Control+z")


def test_the_glossary_is_a_list(page):
    panel = opened(page, "learn")
    panel.get_by_role("button", name="Glossary").click()
    page.wait_for_selector("#panel-learn .glossary dt")
    assert panel.locator("dt").count() > 20
    assert "TTFT" in panel.inner_text()
    panel.get_by_role("button", name="Lessons").click()


# ---- Serving ----------------------------------------------------------------------------------------------------------

HEAVY = "model=deepseek-v3&hardware=h200-sxm&devices=8&batch=32&prompt=4096&output=512&draft=2&rate=4&chunk=512&prefill_hardware=h100-sxm&prefill_devices=16&api_usd_per_million=2"


def test_serving_tells_users_queue_chunks_drafts_and_pools(fresh, site):
    page = fresh()
    booted(page, f"{site}#{HEAVY}&view=serving")
    until(page, "document.querySelector('#panel-serving .better')", timeout=20_000)
    text = page.inner_text("#panel-serving")
    assert "4.00 requests/s" in text and "2.19 tokens a step" in text and "1 prefill to" in text and "mixed steps" in text
    assert "An estimate" in text
    until(page, "document.querySelector('#serving-queue.live')", timeout=20_000)
    until(page, "document.querySelectorAll('#serving-arrivals-section tbody tr').length > 8", timeout=20_000)
    page.fill("#v-rate", "1000")
    until(page, "document.querySelector('#panel-serving .error')", timeout=20_000)
    assert "grows without end" in page.inner_text("#panel-serving .error")
    assert page.evaluate("document.activeElement.id") == "v-rate" and page.input_value("#f-rate") == "1000"


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        ("memory", "KV cache pool"),
        ("money", "the API is cheaper"),
        ("layouts", "requests in flight"),
        ("experts", "163 of 256 experts"),
        ("turns", "first stops paying"),
    ],
)
def test_the_other_parts_of_serving(fresh, site, part, expected):
    page = fresh()
    booted(page, f"{site}#{HEAVY}&view=serving&part={part}")
    page.wait_for_selector("#panel-serving[data-view=ready]", timeout=15_000)
    until(page, f"document.getElementById('panel-serving').innerText.includes({expected!r})", timeout=20_000)
    assert page.locator("#panel-serving [aria-pressed=true]").first.inner_text()
    if part == "layouts":
        page.locator("#panel-serving tbody button").first.click()
        settled(page)
        page.click("#undo")
        settled(page)


def test_serving_in_chinese_has_no_english_sentence(fresh, site):
    page = fresh()
    booted(page, f"{site}#{HEAVY}&view=serving&part=memory&lang=zh")
    until(page, "document.getElementById('panel-serving').innerText.includes('假设')", timeout=20_000)
    assert page.locator("#panel-serving [lang=en]").count() == 0


# ---- Measured -----------------------------------------------------------------------------------------------------------

TABLE = """| model | size | params | backend | ngl | test | t/s |
|-|-|-|-|-|-|-|
| llama 8B Q4_0 | 4.33 GiB | 8.03 B | CUDA | 99 | pp512 | 12000.00 ± 10.00 |
| llama 8B Q4_0 | 4.33 GiB | 8.03 B | CUDA | 99 | tg128 | 160.00 ± 0.42 |
"""


def test_measurements_are_filtered_picked_and_opened(page):
    panel = opened(page, "measured")
    until(page, "document.querySelector('#measured-measured.live')", timeout=15_000)
    assert "0 are faster than their limit" in panel.inner_text()
    count = lambda: page.evaluate("roofline.charts.find((c) => c.name === 'measured').model('points').data.x.length")
    every = count()
    page.select_option("#measured-engine", "vllm")
    until(page, f"roofline.charts.find((c) => c.name === 'measured').model('points').data.x.length < {every}")
    assert 10 < count() < every
    page.evaluate("roofline.charts.find((c) => c.name === 'measured').model('points').selected.indices = [0]")
    page.wait_for_selector("#measured-open")
    assert page.locator("#panel-measured .picked a[href^='https://github.com/']").count() == 1
    before = sentence(page)
    page.click("#measured-open")
    until(page, f"roofline.sentence.text().replace(/\\s+/g, ' ').trim() !== {before!r}")
    page.get_by_role("button", name="Ratio").click()
    until(page, "document.querySelector('#measured-residuals.live')", timeout=15_000)
    page.select_option("#measured-engine", "")


def test_errors_lead_to_their_points(page):
    panel = opened(page, "measured")
    panel.get_by_role("button", name="Errors").click()
    assert "never saw" in panel.inner_text() and "all engines" in panel.inner_text()
    panel.get_by_role("button", name="Engine", exact=True).click()
    panel.get_by_role("button", name="llama.cpp").click()
    until(page, "document.getElementById('measured-engine')?.value === 'llama.cpp'")
    page.select_option("#measured-engine", "")


def test_a_strangers_benchmark_is_pasted_and_placed(fresh, site):
    page = fresh()
    booted(page, f"{site}#hardware=rtx-4090&view=measured&part=own")
    page.wait_for_selector("#own-text")
    page.fill("#own-text", "this is no benchmark")
    page.click("#own-place")
    until(page, "document.getElementById('own-error').textContent.includes('not recognised')", timeout=60_000)
    page.fill("#own-text", TABLE)
    page.click("#own-place")
    until(page, "document.querySelectorAll('#own-result tbody tr').length === 2", timeout=60_000)
    text = page.inner_text("#own-result")
    assert "llama-bench" in text and "taken as llama-3.1-8b" in text and "rtx-4090 of the question" in text
    until(page, "document.querySelector('#own-chart.live')")
    page.fill("#own-value", "100")
    page.click("#own-number")
    until(page, "document.querySelectorAll('#own-result tbody tr').length === 1", timeout=20_000)
    # The question changes: the number is placed anew.
    shown = page.inner_text("#own-result tbody")
    page.evaluate("roofline.state.set({hardware: 'rtx-3090'})")
    until(page, f"document.querySelector('#own-result tbody')?.innerText !== {shown!r}", timeout=20_000)


def test_a_dropped_file_is_placed(page):
    opened(page, "measured")
    page.get_by_role("button", name="Your own").click()
    page.set_input_files("#own-file", files=[{"name": "bench.md", "mimeType": "text/plain", "buffer": TABLE.encode("utf-16")}])
    until(page, "document.querySelectorAll('#own-result tbody tr').length === 2", timeout=60_000)


# ---- Explore ------------------------------------------------------------------------------------------------------------


def found(page):
    """Wait until the space is tried and its front stands."""
    until(
        page,
        "document.querySelector('#explore-front.live') && document.querySelector('#panel-explore[aria-busy=false]') && document.querySelectorAll('#panel-explore .best tbody tr').length > 0",
        timeout=90_000,
    )


def test_a_design_space_is_tried_and_its_winner_opened(fresh, site):
    page = fresh()
    booted(page, f"{site}#view=explore")
    found(page)
    text = page.inner_text("#panel-explore")
    assert "Which chips run Meta-Llama-3.1-70B, 8k tokens in and 512 out, at the least cost, with a token within 33" in text
    assert "meet the limits" in text and "is cheapest: $" in text and "Next: " in text and "Why not the others" in text
    many = page.locator("#panel-explore .best tbody tr").count()
    # A tighter limit on the time of a token leaves no more chips than before, at once, and stands in the link.
    page.evaluate(
        "(() => { const s = document.getElementById('x-tpot'); s.value = '0'; s.dispatchEvent(new Event('input', {bubbles: true})); })()"
    )
    until(page, f"document.querySelectorAll('#panel-explore .best tbody tr').length < {many}", timeout=20_000)
    assert "x.tpot=5%20ms" in page.url
    page.evaluate(
        "(() => { const s = document.getElementById('x-tpot'); s.value = '6'; s.dispatchEvent(new Event('input', {bubbles: true})); })()"
    )
    until(page, f"document.querySelectorAll('#panel-explore .best tbody tr').length === {many}", timeout=20_000)
    page.fill("#explore-filter", "h200")
    until(page, "document.querySelectorAll('#panel-explore .best tbody tr').length === 1")
    page.locator("#panel-explore .best tbody .link").click()
    until(page, "roofline.state.form.hardware === 'h200-sxm' && roofline.state.form.tp === '2'", timeout=20_000)
    assert "H200" in sentence(page)


def front_of(page) -> dict:
    """What the chart of the front holds."""
    return page.evaluate(
        """() => { for (const d of Bokeh.documents) { const s = d.get_model_by_name("front.points"); if (s) return {x: [...s.data.x], marker: [...s.data.marker]}; } return null; }"""
    )


def slide(page, name: str, at: int):
    """Move a limit's slider to one of its stops."""
    page.evaluate("([id, v]) => { const s = document.getElementById(id); s.value = v; s.dispatchEvent(new Event('input', {bubbles: true})); }", [f"x-{name}", str(at)])


def test_limits_move_the_front_while_they_slide(fresh, site):
    page = fresh()
    booted(page, f"{site}#view=explore")
    found(page)
    before = front_of(page)
    assert "diamond" in before["marker"] and min(before["x"]) >= 1 / 0.033 - 1e-9
    for at, limit in ((3, 0.015), (2, 0.01), (9, 0.1)):
        slide(page, "tpot", at)
        until(page, f"document.querySelector('#x-tpot').getAttribute('aria-valuetext') && document.querySelector('#panel-explore[aria-busy=false]') && document.querySelector('.asked').innerText.includes('{limit * 1e3:g}')")
        now = front_of(page)
        assert now["x"] and min(now["x"]) >= 1 / limit - 1e-9 and now != before
        before = now
    slide(page, "ttft_alone", 0)
    until(page, "document.querySelector('#panel-explore[aria-busy=false]') && location.hash.includes('x.ttft_alone=50%20ms')")
    assert "the first token within 50" in page.inner_text("#panel-explore .asked")


def test_the_question_is_in_the_link(fresh, site):
    """Everything that the form asks, asked again by its link alone."""
    page = fresh()
    booted(page, f"{site}#view=explore")
    found(page)
    page.select_option("#x-objective", "latency")
    page.select_option("#x-vendors", "NVIDIA")
    page.select_option("#x-devices", "4")
    page.get_by_role("group", name="Weights").get_by_role("button", name="INT4").click()
    page.get_by_role("group", name="KV cache").get_by_role("button", name="FP8").click()
    slide(page, "tpot", 4)
    slide(page, "ttft_alone", 7)
    page.locator("#panel-explore summary", has_text="More to try").click()
    asked = {"budget": "40", "user": "60", "batches": "1,8,64", "prompts": "2k,8k", "outputs": "256", "hits": "0,0.5", "drafts": "0,3", "levers": "offload_kv=0.1", "prices": "h100-sxm=1.5", "most_chips": "4", "memory_share": "0.95"}
    for name, value in asked.items():
        page.fill(f"#x-{name}", value)
        page.press(f"#x-{name}", "Tab")
    page.get_by_role("button", name="+ Add a model").click()
    page.fill(".picker input", "qwen3-30b")
    page.keyboard.press("Enter")
    until(page, "document.querySelector('#explore-cell') && document.querySelector('#panel-explore[aria-busy=false]') && document.querySelectorAll('#explore-cell option').length === 8")
    page.select_option("#explore-cell", "5")
    until(page, "location.hash.includes('x.cell=5') && document.querySelector('#panel-explore[aria-busy=false]')")
    page.wait_for_timeout(400)
    told, lead, link = page.inner_text("#panel-explore .asked"), page.inner_text("#panel-explore .found"), page.url
    assert "Qwen3-30B-A3B" in told and "is fastest" in lead
    again = fresh()
    booted(again, link)
    until(again, "document.querySelector('#explore-cell') && document.querySelector('#panel-explore[aria-busy=false]')", timeout=90_000)
    until(again, "document.querySelector('#explore-cell').value === '5'")
    assert again.inner_text("#panel-explore .asked") == told and again.inner_text("#panel-explore .found") == lead
    assert {name: again.input_value(f"#x-{name}") for name in asked} == asked
    # The winner opens in the calculator with the model of the answer that is shown.
    again.locator("#panel-explore .found button.solid").click()
    until(again, "roofline.state.form.model === 'qwen3-30b-a3b' && roofline.state.form.kv", timeout=20_000)


def test_the_table_sorts_filters_and_is_saved(fresh, site):
    page = fresh()
    booted(page, f"{site}#view=explore")
    found(page)
    page.get_by_role("button", name="Tokens/s per user").click()
    read = "[...document.querySelectorAll('#panel-explore .best tbody tr')].map((r) => Number(r.children[3].innerText.replaceAll(',', '')))"
    speeds = page.evaluate(read)
    assert len(speeds) > 5 and speeds == sorted(speeds, reverse=True)
    page.get_by_role("button", name="Tokens/s per user").click()
    assert page.evaluate(read) == sorted(speeds)
    page.fill("#explore-filter", "nvidia")
    until(page, f"document.querySelectorAll('#panel-explore .best tbody tr').length < {len(speeds)}")
    with page.expect_download() as saved:
        page.click("#explore-csv")
    lines = Path(saved.value.path()).read_text().splitlines()
    assert saved.value.suggested_filename.endswith(".csv") and lines[0].startswith("model,hardware,") and len(lines) == 1 + len(speeds)


def test_why_not_and_a_link_that_asks(fresh, site):
    page = fresh()
    booted(page, f"{site}#view=explore&x.vendors=NVIDIA&x.weights=bf16&x.devices=1")
    until(page, "document.querySelector('#explore-why')", timeout=90_000)
    assert page.input_value("#x-vendors") == "NVIDIA"
    if not page.is_visible("#explore-why"):
        page.locator("#panel-explore summary", has_text="Why not").click()
    page.fill("#explore-why", "l40s")
    until(page, "[...document.querySelectorAll('#panel-explore .fold')].at(-1).innerText.includes('does not fit')")


def test_nothing_that_meets_names_the_nearest(fresh, site):
    page = fresh()
    booted(page, f"{site}#view=explore&x.objective=latency&x.tpot=5%20ms&x.vendors=AMD&x.devices=2&x.weights=bf16")
    until(page, "document.querySelector('#panel-explore .lead')?.innerText.includes('Nothing meets')", timeout=90_000)
    text = page.inner_text("#panel-explore .found")
    assert "Nearest: " in text and "misses TPOT by" in text
    assert not page.is_visible("#explore-front")
    misses = page.evaluate("[...document.querySelectorAll('#panel-explore tbody tr')].map((r) => /misses TPOT by ([\\d.,]+)/.exec(r.innerText)?.[1]).filter(Boolean).map((v) => Number(v.replaceAll(',', '')))")
    assert len(misses) > 3 and misses == sorted(misses)
    page.locator("#panel-explore tbody button").first.click()  # the nearest opens in the calculator
    until(page, "roofline.state.form.hardware && roofline.state.form.weights === 'bf16'", timeout=20_000)


def test_an_exploration_can_be_stopped_and_calculating_goes_on(fresh, site):
    page = fresh()
    booted(page, f"{site}#view=explore&x.weights=bf16,fp8,int4-g128,nvfp4,mxfp4&x.kv=auto,fp8,int4&x.devices=64")
    until(
        page, "!document.querySelector('.trying')?.hidden && document.querySelector('.trying progress').value > 0", timeout=90_000
    )
    page.get_by_role("button", name="Stop").click()
    assert "Stopped" in page.inner_text("#panel-explore")
    page.fill("#f-batch", "64")
    settled(page)
    assert " 64 requests" in sentence(page)


def test_an_area_of_the_front_is_selected_by_hand(fresh, site):
    page = fresh()
    booted(page, f"{site}#view=explore")
    found(page)
    page.get_by_role("button", name="Select an area").click()
    page.locator("#explore-front").scroll_into_view_if_needed()
    box = page.locator("#explore-front").bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.3, box["y"] + 20)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.7, box["y"] + box["height"] * 0.6, steps=6)
    page.mouse.up()
    until(page, "document.querySelector('#panel-explore .picked').innerText.includes('selected')")
    page.get_by_role("button", name="Show all").click()
    until(page, "document.querySelectorAll('#panel-explore .best tbody tr').length > 3")


def test_scores_stand_beside_prices(fresh, site):
    page = fresh()
    booted(page, f"{site}#view=explore&part=capability")
    until(
        page,
        "document.querySelector('#explore-capability.live') && document.querySelectorAll('#panel-explore tbody tr').length > 10",
        timeout=90_000,
    )
    assert "MMLU-Pro" in page.inner_text("#panel-explore") and page.locator("#panel-explore tbody a[href^=https]").count() > 10
    page.get_by_role("button", name="Active parameters").click()
    until(page, "document.querySelector('#explore-capability-finding').innerText.includes('parameters that a token uses')")


def test_what_moves_the_answer_and_a_fleet(fresh, site):
    page = fresh()
    booted(page, f"{site}#view=explore&part=tornado")
    until(page, "document.querySelectorAll('#panel-explore .tornado').length > 4", timeout=90_000)
    page.get_by_role("button", name="Energy").click()
    until(page, "document.querySelector('#panel-explore .lead').innerText.includes('per output token')")
    assert "x.goal=energy" in page.url
    page.get_by_role("button", name="Fleet").click()
    until(page, "document.getElementById('panel-explore').innerText.includes('requests/s with')", timeout=60_000)
    page.select_option("#fleet-mix", "own")
    page.fill("#fleet-csv", "name,prompt,output,requests_per_s\nonly class,3000,200,4")
    page.press("#fleet-csv", "Tab")
    until(page, "document.querySelector('#panel-explore .found').innerText.includes('only class')")
    page.fill("#fleet-headroom", "0.5")
    page.press("#fleet-headroom", "Tab")
    until(page, "document.querySelector('#panel-explore .lead').innerText.includes('50')")
    lead = page.inner_text("#panel-explore .lead")
    again = fresh()
    booted(again, page.url)
    until(again, "document.querySelector('#panel-explore .lead')", timeout=90_000)
    assert again.inner_text("#panel-explore .lead") == lead
    page.fill("#fleet-rate", "nothing")
    page.press("#fleet-rate", "Tab")
    until(page, "document.getElementById('fleet-error').textContent.length > 10")


def test_a_fleet_of_many_classes_shows_progress_and_can_be_stopped(fresh, site):
    page = fresh()
    booted(page, f"{site}#view=explore&part=fleet")
    until(page, "document.querySelector('#panel-explore .lead')", timeout=90_000)
    lead = page.inner_text("#panel-explore .lead")
    page.select_option("#fleet-mix", "own")
    page.fill("#fleet-csv", "prompt,output,requests_per_s\n" + "\n".join(f"{500 * (n + 1)},{100 + n},1" for n in range(64)))  # half a minute
    page.press("#fleet-csv", "Tab")
    until(page, "/^[1-9][\\d,]* of /.test(document.querySelector('#panel-explore .trying:not([hidden])')?.innerText)")
    assert page.locator("#panel-explore .trying progress").evaluate("(p) => p.value > 0 && p.value < 1")
    page.get_by_role("button", name="Stop").click()
    until(page, "document.querySelector('#panel-explore .error').innerText.includes('Stopped')")
    assert page.locator("#panel-explore .trying").is_hidden() and page.inner_text("#panel-explore .lead") == lead  # the last answer stays
    page.select_option("#fleet-mix", "chat")
    until(page, "!document.querySelector('#panel-explore .error').innerText && document.getElementById('panel-explore').getAttribute('aria-busy') === 'false'")


# ---- Levers -------------------------------------------------------------------------------------------------------------


def test_levers_are_arrows_that_can_be_tried(page):
    panel = opened(page, "levers")
    answered(page, "levers")
    until(page, "document.querySelector('#levers-chart.live')", timeout=15_000)
    arrows = lambda: page.evaluate(
        "(() => { const d = roofline.charts.find((c) => c.name === 'arrows').model('arrows').data; return Array.from(d.x0, (x, i) => [x, d.y0[i], d.x1[i], d.y1[i]]); })()"
    )
    drawn = arrows()
    assert 3 <= len(drawn) <= 8 and len({(a[0], a[1]) for a in drawn}) == 1  # all start at the decode point
    decode = page.evaluate("[roofline.latest().chart.phases.x[1], roofline.latest().chart.phases.y[1]]")
    assert abs(drawn[0][0] / decode[0] - 1) < 1e-6 and abs(drawn[0][1] / decode[1] - 1) < 1e-6
    assert "KV cache" in panel.inner_text() and "Already in use" in panel.inner_text()
    panel.get_by_role("button", name="Memory", exact=True).click()
    answered(page, "levers")
    panel.get_by_role("button", name="Time per token", exact=True).click()
    answered(page, "levers")
    panel.get_by_role("button", name="Try it: FP8 KV cache").click()
    settled(page)
    assert page.input_value("#f-kv") == "fp8"
    page.click("#undo")
    settled(page)


@pytest.mark.parametrize("view", ["serving", "levers"])
def test_a_view_opened_on_a_refused_question_says_why(fresh, site, view):
    page = fresh()
    booted(page, f"{site}#s=1&batch=0&view={view}")
    until(page, f"document.getElementById('panel-{view}').textContent.includes('must be from 1')")
    assert page.input_value("#f-batch") == "0"  # what cannot be stands in its field, and is refused there
    assert "must be from 1" in page.inner_text("#e-batch")
    page.fill("#f-batch", "8")
    until(page, f"document.querySelector('#panel-{view} table') && !document.getElementById('panel-{view}').textContent.includes('must be from 1')")
