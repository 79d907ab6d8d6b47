"""Every state is a link: what a view keeps, what a hostile address holds, what is typed while a link opens."""

from __future__ import annotations

import pytest
from steps import booted, edit, sentence, settled, until

STATES = [
    ("#p=one&view=sweep&sweep.axis=prompt&sweep.scale=linear", "#panel-sweep [aria-pressed=true]", ["Prompt", "Linear"]),
    ("#p=one&operators.as=graph&operators.phase=prefill", "#panel-operators [aria-pressed=true]", ["Prefill", "One layer"]),
    ("#p=one&view=levers&levers.goal=cost", "#panel-levers [aria-pressed=true]", ["Cost, with prompts"]),
    ("#p=one&view=measured&measured.axes=residuals&measured.basis=limit&measured.chip=h100-sxm&measured.pick=m0002", "#panel-measured [aria-pressed=true]", None),
    ("#p=one&view=compare&compare.p=chat", "#panel-compare .sides dd", ["Llama-3.1-8B in Q4_K_M on 1 × GeForce RTX 4090, 1 request"]),
    ("#p=one&view=compare&compare.batch=7&compare.hardware=h100-sxm&compare.model=llama-3.1-8b", "#panel-compare .sides dd", ["Llama-3.1-8B in auto on 1 × H100"]),
]


def opened(page, fragment):
    page.evaluate("(f) => { location.hash = f; }", fragment)
    until(page, "(f) => location.hash === f && !document.documentElement.classList.contains('asking')", fragment)
    settled(page)


@pytest.mark.parametrize("fragment,place,words", STATES, ids=[s[0][6:30] for s in STATES])
def test_what_a_view_keeps_is_in_its_link(page, fragment, place, words):
    opened(page, fragment)
    seen = "(p) => [...document.querySelectorAll(p)].map((e) => e.innerText).join('|')"
    for word in words or []:
        until(page, f"([p, w]) => ({seen})(p).includes(w)", [place, word])
    if "measured" in fragment:
        until(page, "document.getElementById('measured-chip')?.value === 'h100-sxm' && document.getElementById('measured-open')")
    until(page, "(f) => location.hash === f", fragment)  # nothing of it is taken away
    page.click("#tab-memory")
    assert "sweep." not in page.url and "compare." not in page.url and "measured." not in page.url  # it is only that view's


def test_a_pinned_question_is_kept_by_its_link(page, fresh, site):
    page.click("#tab-compare")
    edit(page, "#f-batch", "77")
    page.click("#panel-compare .solid")
    edit(page, "#f-batch", "5")
    until(page, "location.hash.includes('compare.batch=77') && location.hash.includes('&batch=5')")
    table = "document.querySelector('#panel-compare table')?.innerText"
    until(page, table)
    other = fresh()
    booted(other, site + page.url[page.url.index("#") :])
    until(page, f"{table} !== null && !document.querySelector('#panel-compare.busy')")
    sides = "[...document.querySelectorAll('#panel-compare .sides dd')].map((e) => e.innerText).join()"
    until(page, f"{sides}.includes('77 requests') && {sides}.includes(' 5 requests')")
    until(other, f"(same) => {table} === same", page.evaluate(table))


@pytest.mark.parametrize("fragment", ["view=%E0%A4%A&s=1&batch=7", "s=1&batch=7&x.tpot=%zz", "s=1&batch=7&lang=%", "s=1&batch=7&sweep.axis=__proto__&view=constructor&measured.by=toString"])
def test_a_badly_written_part_of_the_page_loses_nothing_of_the_question(page, fragment):
    page.evaluate("(f) => { location.hash = f; }", fragment)
    until(page, "roofline.state.get('batch') === '7' && roofline.sentence.text().includes('7 requests')")


def test_an_example_with_a_change_beside_it(page):
    page.evaluate("location.hash = 'p=chat&batch=3&batch=5'")
    until(page, "roofline.sentence.text().includes('5 requests') && document.documentElement.dataset.answered")
    settled(page)
    assert "RTX 4090" in sentence(page) and page.inner_text("#said") == ""


def test_what_is_typed_while_a_link_opens_is_kept(fresh, site):
    page = fresh()
    held = []
    page.route("**/snapshot.bin", lambda route: held.append(route))
    page.goto(site + "#s=1&model=llama-3.1-8b&hardware=h100-sxm&prompt=3000")
    until(page, "globalThis.roofline?.state && document.querySelector('#f-batch')")
    page.fill("#f-batch", "5")
    page.click("#tab-time")
    until(page, "location.hash.includes('prompt=3000')")  # a reload now would still open the link
    for _ in range(400):
        if held:
            break
        page.wait_for_timeout(25)
    held[0].continue_()
    until(page, "roofline.sentence.text().includes('5 requests') && roofline.state.get('prompt') === '3000'", timeout=90_000)
    assert page.input_value("#f-batch") == "5"


def test_a_link_that_cannot_be_read_stays_in_the_address(page):
    page.evaluate("location.hash = 's=1&batch=minus'")
    until(page, "document.getElementById('said').innerText.includes('minus')")
    page.wait_for_timeout(700)
    page.click("#tab-time")
    assert "batch=minus" in page.url and "minus" in page.inner_text("#said")
    edit(page, "#f-batch", "6")
    until(page, "location.hash.includes('batch=6')")


def test_a_refusal_right_after_an_answer_stays_on_show(page):
    """The rest of an answer is drawn a moment later: by then the next question may have been refused."""
    page.evaluate("""async () => {
      const { state } = roofline, next = () => new Promise((done) => { const n = document.documentElement.dataset.answered, look = () => (document.documentElement.dataset.answered === n ? setTimeout(look, 1) : done()); look(); });
      for (const batch of ["40", "41", "42x"]) { const soon = next(); state.set({ batch }); await soon; }
    }""")
    page.wait_for_timeout(400)
    assert "42x" in page.inner_text("#said") and page.evaluate("document.documentElement.classList.contains('stale')")


def test_going_back_changes_a_field_that_is_being_typed_in(page):
    page.click("#presets [data-preset=one]")
    settled(page)
    page.fill("#s-batch", "9")
    settled(page)
    page.click("#presets [data-preset=chat]")
    settled(page)
    page.focus("#s-batch")
    page.evaluate("history.back()")
    until(page, "roofline.state.get('batch') === '9'")
    assert page.input_value("#s-batch") == page.input_value("#f-batch") == "9"


def test_a_slider_can_be_undone_where_it_stands(page):
    slider = page.locator("input.slide[data-for=batch]")
    slider.scroll_into_view_if_needed()
    slider.click(position={"x": slider.bounding_box()["width"] * 0.9, "y": 5})
    settled(page)
    assert int(page.input_value("#f-batch")) > 500
    page.keyboard.press("Control+z")
    settled(page)
    assert page.input_value("#f-batch") == "32" and float(slider.input_value()) == 5


def test_what_is_said_over_a_dialog_is_not_under_its_veil(page):
    page.click("#share")
    page.wait_for_selector("#share-cli")
    page.locator("#sheet button:has-text('Copy')").first.click()
    until(page, """(() => { const { x, y, width, height } = document.getElementById("toast").getBoundingClientRect(); return width && document.elementFromPoint(x + width / 2, y + height / 2).closest("#toast"); })()""")
    page.keyboard.press("Escape")
    until(page, "document.getElementById('toast').parentElement === document.body")


def test_a_pinned_question_that_cannot_be_is_said(page):
    page.evaluate("location.hash = 'p=one&view=compare&compare.batch=-5'")
    until(page, "document.querySelector('#panel-compare .error')?.innerText.includes('-5')")
    settled(page)
    assert page.locator("#panel-compare .solid").is_visible() and "compare.batch" not in page.url


def test_a_refused_question_leaves_the_lesson(page):
    page.click("#tab-learn")
    page.wait_for_selector("#lesson-title")
    title = page.inner_text("#lesson-title")
    edit(page, "#f-prompt", "8k1")
    page.click("#tab-time")
    page.click("#tab-learn")
    page.wait_for_timeout(400)
    assert page.inner_text("#lesson-title") == title


NUMBERS = "[...document.querySelectorAll('#tell, #figures, #roofline, #finding, #legend')].filter((e) => e.checkVisibility({ visibilityProperty: true })).map((e) => e.id)"


@pytest.mark.parametrize(("fragment", "why"), [("s=1&model=llama-3.1-70b&hardware=h100-sxm&devices=3", "3"), ("p=chat&batch=zzz", "zzz"), ("s=1&model=llama-3.1-8b&hardware=h100-sxm&prompt=1e400", "1e400")])
@pytest.mark.parametrize("embed", ["", "&embed"])
def test_a_refused_link_shows_why_and_no_other_questions_numbers(fresh, site, fragment, why, embed):
    page = fresh()
    booted(page, f"{site}#{fragment}{embed}")
    until(page, "document.documentElement.dataset.answered && !document.documentElement.classList.contains('asking')")
    until(page, "(why) => document.getElementById('said').innerText.includes(why)", why)
    assert page.is_visible("#said") and page.evaluate(NUMBERS) == []
    assert "last good answer" not in page.inner_text("#said")
    assert "in FP8 on" not in sentence(page) and page.inner_text("#hardware-facts") == page.inner_text("#model-facts") == ""  # nor what "auto" became for another
    if not embed:
        edit(page, "#f-devices", "4")
        edit(page, "#f-batch", "4")
        edit(page, "#f-prompt", "2k")
        assert len(page.evaluate(NUMBERS)) == 5


@pytest.mark.parametrize("fragment", ["p=nosuch", "s=1&config=zzz"])
def test_an_embedded_link_that_cannot_be_read_shows_why_and_no_numbers(fresh, site, fragment):
    page = fresh()
    booted(page, f"{site}#{fragment}&embed")
    until(page, "document.getElementById('said').innerText.includes('could not be read')")
    assert page.is_visible("#said") and page.evaluate(NUMBERS) == []


def test_an_embedded_link_shows_no_numbers_but_its_own_while_it_opens(fresh, site):
    page = fresh()
    page.route("**/worker.mjs", lambda route: None)  # never answered
    page.goto(f"{site}#s=1&model=llama-3.1-8b&hardware=h100-sxm&embed")
    until(page, "document.documentElement.classList.contains('unanswered')")
    assert page.evaluate(NUMBERS) == []


def test_names_in_a_link_are_not_the_languages(fresh, site):
    page = fresh()
    booted(page, f"{site}#s=1&model=__proto__&hardware=constructor")
    until(page, "document.getElementById('said').innerText.includes('__proto__')")
    assert "native code" not in page.inner_text("body") and "__proto__ in" in sentence(page)


def test_back_to_the_same_question_keeps_the_language_in_the_address(page):
    opened(page, "#p=chat")
    page.click("[data-preset=deepseek]")
    settled(page)
    page.click("#undo")
    settled(page)
    page.select_option("#language", "zh")
    until(page, "location.hash === '#p=chat&lang=zh'")
    page.go_back()
    until(page, "location.hash === '#p=chat&lang=zh'")
    page.select_option("#language", "en")
    until(page, "location.hash === '#p=chat'")


def test_a_refused_value_stays_marked_in_both_places_when_the_language_changes(page):
    edit(page, "#s-batch", "-3")
    marked = "[...document.querySelectorAll('#f-batch, #s-batch')].map((e) => [e.getAttribute('aria-invalid'), e.getAttribute('aria-describedby')])"
    assert page.evaluate(marked) == [["true", "e-batch"]] * 2
    for language in ("zh", "en"):
        page.select_option("#language", language)
        until(page, f"document.documentElement.lang.startsWith('{language}')")
        assert page.evaluate(marked) == [["true", "e-batch"]] * 2 and page.is_visible("#e-batch")
    edit(page, "#s-batch", "3")
    assert [m[0] for m in page.evaluate(marked)] == [None, None]
