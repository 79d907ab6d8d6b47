"""What a visitor does: sees an answer, edits it, brings a model of their own, shares it."""

from __future__ import annotations

import json
import re

import pytest
from steps import ROOT, STEP_MS, booted, charted, column, edit, sentence, settled, until

LLAMA = {"model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336,
         "vocab_size": 128256, "architectures": ["LlamaForCausalLM"]}
# A key of a word that is missing shows itself.
KEY = r"\b(?:" + "|".join(sorted({key.split(".")[0] for name in ("en", "views-en") for key in json.loads((ROOT / "site" / "i18n" / f"{name}.json").read_text("utf-8")) if "." in key} - {"model", "config"})) + r")\.[a-z]\w*"


def per_user(page) -> float:
    return float(page.inner_text("[data-figure=user]").split()[0].replace(",", ""))


def test_an_answer_stands_before_python_is_up(fresh, site):
    page = fresh()
    page.route("**/worker.mjs", lambda route: None)  # never answered
    page.goto(site)
    assert page.is_visible(".still") and "Decode" in page.inner_text(".still")  # the chart stands before its library is there
    charted(page)
    assert "memory-bound" in sentence(page)
    assert per_user(page) > 10
    assert column(page, "phases", "marker") == ["square", "circle"]
    assert page.get_attribute("html", "data-ready") is None


def test_the_answer_is_in_the_html_without_any_script(fresh, site):
    page = fresh(java_script_enabled=False)
    page.goto(site)
    text = page.inner_text("#sentence")
    assert "tokens/s" in text and "memory-bound" in text and "{" not in text


def test_every_edit_answers(page):
    before, x = per_user(page), column(page, "phases", "x")
    edit(page, "#f-batch", "64")
    assert per_user(page) < before
    assert column(page, "phases", "x")[1] > x[1]  # decode does more work per byte with more requests
    edit(page, "#f-prompt", "16k")
    edit(page, "#f-prompt", "8Ki")
    assert "8Ki" == page.input_value("#s-prompt")
    page.select_option("#f-kv", "fp8")
    settled(page)
    page.click("text=Gaming card")
    settled(page)
    assert "RTX 4090" in sentence(page)
    page.click("#undo")
    settled(page)
    assert page.input_value("#f-prompt") == "8Ki"


def test_numbers_in_the_sentence_can_be_edited_where_they_stand(page):
    edit(page, "#s-batch", "128")
    assert page.input_value("#f-batch") == "128"
    page.select_option("#s-weights", "bf16")
    settled(page)
    assert page.input_value("#f-weights") == "bf16"
    edit(page, "#s-devices", "8")
    assert "8 ×" in sentence(page)


def test_a_slider_moves_points_and_numbers(page):
    page.evaluate("""() => { const s = document.querySelector('[data-for="batch"]'); s.value = '3'; s.dispatchEvent(new Event('input', {bubbles: true})); }""")
    settled(page)
    assert page.input_value("#f-batch") == "8"
    assert " 8 requests" in sentence(page)


@pytest.mark.parametrize(("field", "bad"), [("batch", "0"), ("batch", "lots"), ("prompt", "8 GB"), ("tp", "0"), ("devices", "-2")])
def test_a_bad_value_is_explained_at_its_field_and_nothing_is_lost(page, field, bad):
    before = page.inner_text("[data-figure=user]")
    edit(page, f"#f-{field}", bad)
    assert page.get_attribute(f"#f-{field}", "aria-invalid") == "true"
    assert len(page.inner_text(f"#e-{field}")) > 10
    assert page.inner_text("[data-figure=user]") == before
    assert "last good answer" in page.inner_text("#said")
    assert page.input_value(f"#f-{field}") == bad
    edit(page, f"#f-{field}", "2" if field in ("tp", "devices") else "16")
    assert page.is_hidden(f"#e-{field}")
    assert not page.evaluate("document.documentElement.classList.contains('stale')")


def test_what_does_not_fit_says_what_would(page):
    page.evaluate("roofline.state.set({model: 'llama-3.1-405b', weights: 'bf16'})")
    settled(page)
    assert "does not fit" in sentence(page)
    assert re.search(r"needs .*GB", sentence(page))


def test_a_config_is_pasted_and_travels_in_the_link(page, fresh, site):
    page.click("#paste")
    page.fill("#paste-text", json.dumps(LLAMA))
    page.click("#paste-use")
    page.wait_for_selector("#sheet:not([open])", state="attached")
    settled(page)
    assert "8.03" in page.inner_text("#f-model")
    edit(page, "#f-batch", "7")
    until(page, "location.hash.includes('batch=7')")
    link, said = page.url, page.inner_text("#figures")
    other = fresh()
    booted(other, link)
    until(other, "document.documentElement.dataset.answered >= 1", timeout=STEP_MS)
    settled(other)
    assert other.inner_text("#figures") == said


def test_a_bad_config_is_explained_and_nothing_is_lost(page):
    before = sentence(page)
    page.click("#paste")
    for text in ('{"model_type": "llama"', '{"model_type": "from-the-future"}', "[1, 2]", ""):
        page.fill("#paste-text", text)
        page.click("#paste-use")
        until(page, "document.getElementById('paste-error').textContent.length > 10")
        assert page.input_value("#paste-text") == text
        page.evaluate("document.getElementById('paste-error').textContent = ''")
    page.click("#sheet .close")
    assert sentence(page) == before


def test_a_config_can_be_dropped_on_the_page(page):
    page.evaluate("""(text) => {
      const data = new DataTransfer();
      data.items.add(new File([text], 'config.json', {type: 'application/json'}));
      document.body.dispatchEvent(new DragEvent('drop', {dataTransfer: data, bubbles: true, cancelable: true}));
    }""", json.dumps(LLAMA))
    until(page, "roofline.state.get('config') !== ''")
    settled(page)
    assert "8.03" in page.inner_text("#f-model")


def test_a_chip_of_ones_own(page):
    page.click("#f-hardware")
    page.click("text=Type a chip of your own")
    settled(page)
    edit(page, "#f-bandwidth", "20 TB/s")
    assert "My own chip" in sentence(page)
    edit(page, "#f-bandwidth", "20 TFLOP/s")
    assert page.get_attribute("#f-bandwidth", "aria-invalid") == "true"


@pytest.mark.parametrize("fragment", [
    "s=1&model=mixtral-8x7b&hardware=h100-sxm&devices=2&batch=8&prompt=2000&output=100",
    "s=1&model=llama-3.1-8b&hardware=rtx-4090&weights=q4_k_m",
    "s=1&model=llama-3.1-8b&hardware=custom&peak=1000000000000000&bandwidth=4000000000000&memory=128000000000",
])
def test_golden_links_open_for_ever(fresh, site, fragment):
    page = fresh()
    booted(page, f"{site}#{fragment}")
    until(page, "document.documentElement.dataset.answered >= 1")
    settled(page)
    assert not page.evaluate("document.documentElement.classList.contains('stale')")
    form = page.evaluate("roofline.state.form")
    for part in fragment.split("&")[1:]:
        key, value = part.split("=")
        assert form[key].lower() == value, (key, form)


@pytest.mark.parametrize(("fragment", "said"), [
    ("s=1&model=nobody", "not in the catalogue"), ("s=1&batch=-5", "must be"), ("s=9&batch=2", "another version"), ("s=1&batch=2&colour=red", "colour"),
    ("config=!!!!", "could not be read"), ("batch=" + "9" * 300_000, "could not be read"), ("%ff%00&&&===", "not know"), ("s=1&model=<img src=x onerror=alert(1)>", "not in the catalogue"),
])
def test_a_hostile_or_old_link_never_breaks_the_page(fresh, site, fragment, said):
    page = fresh()
    booted(page, f"{site}#{fragment}")
    until(page, "(said) => document.getElementById('said').textContent.includes(said)", arg=said)
    page.click("[data-preset=serve]")  # a refused link shows no numbers; the next question is answered
    settled(page)
    assert per_user(page) > 0


def test_share_gives_link_command_python_and_files(page):
    edit(page, "#f-batch", "48")
    page.click("#share")
    page.wait_for_selector("#share-cli")
    assert "batch=48" in page.input_value("#share-link")
    assert "--batch 48" in page.input_value("#share-cli")
    assert "batch=48" in page.input_value("#share-python")
    assert "tokens/s" in page.input_value("#share-markdown")
    with page.expect_download() as download:
        page.get_by_role("button", name="JSON", exact=True).click()
    assert json.loads(open(download.value.path()).read())["schema"] == 1
    with page.expect_download() as download:
        page.get_by_role("button", name="PNG", exact=True).click()
    assert open(download.value.path(), "rb").read(8) == b"\x89PNG\r\n\x1a\n"


@pytest.mark.parametrize("tab", ["operators", "time", "memory", "sweep", "levers", "compare", "method"])
def test_every_view_shows_something_true(page, tab):
    page.click(f"#tab-{tab}")
    panel = f"#panel-{tab}"
    until(page, f"!document.querySelector('{panel}').classList.contains('busy') && document.querySelector('{panel}').textContent.length > 60", timeout=15_000)
    assert not re.findall(KEY, page.inner_text(panel))
    if tab == "compare":
        if page.locator(f"{panel} >> text=Pin this question").count() == 0:
            page.click(f"{panel} >> text=Unpin")  # another test of this page has pinned one
        page.click(f"{panel} >> text=Pin this question")
        edit(page, "#f-batch", "64")
        page.wait_for_selector(f"{panel} table")
        assert "Now / pinned" in page.inner_text(panel)
    if tab == "sweep":
        page.wait_for_selector("#sweep.live", state="attached")
        page.click(f"{panel} >> text=Chips")
        page.wait_for_selector(f"{panel} tr.here")
    if tab == "levers":
        before = sentence(page)
        page.click(f"{panel} tbody tr:first-child button")
        settled(page)
        assert sentence(page) != before
    if tab == "operators":
        shares = [float(t.strip("%").replace("<", "").strip()) for t in page.locator(f"{panel} .share span").all_inner_texts()]
        assert abs(sum(shares) - 100) < 2
        page.click(f"{panel} .sort >> text=Operator")
        assert page.get_attribute(f"{panel} th[aria-sort]", "aria-sort") == "ascending"


@pytest.mark.parametrize("key", ["ttft", "tpot", "user", "total", "memory", "cost"])
def test_every_figure_opens_its_working(page, key):
    page.click(f"[data-figure={key}]")
    page.wait_for_selector("#sheet .steps li")
    assert "{" not in page.inner_text("#sheet")
    assert page.inner_text("#sheet table td:nth-child(3)")
    page.keyboard.press("Escape")


def test_history_and_reset(page):
    page.click("text=Gaming card")
    settled(page)
    until(page, "location.hash === '#p=chat'")
    page.click("#reset")
    settled(page)
    assert "RTX 4090" not in sentence(page)
    page.click("#toast >> text=Undo")
    settled(page)
    assert "RTX 4090" in sentence(page)


def test_chinese_and_back(page):
    page.select_option("#language", "zh")
    until(page, "document.documentElement.lang === 'zh-Hans'")
    settled(page)
    assert "受限于内存带宽" in sentence(page)
    assert "lang=zh" in page.url
    left = page.evaluate("Array.from(document.querySelectorAll('label, legend, .tabs button, dt, h3')).filter((e) => e.offsetParent).map((e) => e.textContent).filter((s) => /^[A-Za-z ]{6,}$/.test(s))")
    assert not [s for s in left if s not in ("Embedding",)], left
    page.select_option("#language", "en")
    until(page, "document.documentElement.lang === 'en'")
    assert "memory-bound" in sentence(page)


def test_hundreds_of_edits_leave_nothing_behind(page):
    grow = """async (n) => {
      for (let i = 0; i < n; i++) { roofline.state.set({batch: String(2 + (i % 50))}); await new Promise((done) => setTimeout(done, 0)); }
      return [Bokeh.documents.length, roofline.engine.calls.size, document.querySelectorAll('*').length];
    }"""
    page.evaluate(grow, 20)
    settled(page)
    first = page.evaluate(grow, 1)
    settled(page)
    page.evaluate(grow, 400)
    settled(page)
    last = page.evaluate(grow, 1)
    assert last[0] == first[0] and last[1] <= 3 and abs(last[2] - first[2]) < 60


def test_one_layer_is_drawn_in_the_order_it_runs(page):
    """The graph of Operators: what feeds what, with the figures of the table."""
    panel = page.locator("#panel-operators")
    panel.get_by_role("button", name="One layer").click()
    page.wait_for_selector("#panel-operators .layer-graph")
    names = page.evaluate("[...document.querySelectorAll('.layer-graph .op')].map((box) => box.textContent.match(/^[\\w -]+/)[0].trim())")
    places = [next(i for i, name in enumerate(names) if name.startswith(wanted)) for wanted in ("embedding", "norms", "q_proj", "k_proj", "v_proj", "full attention", "o_proj", "residual", "gate_proj", "up_proj", "down_proj", "lm_head")]
    assert places == sorted(places)
    assert names.count("q_proj") == 1 and sum(name.startswith("residual") for name in names) == 2
    drawn = page.evaluate("[...document.querySelectorAll('.layer-graph .op-time')].map((e) => e.firstChild.textContent.trim())")
    panel.get_by_role("button", name="Table").click()
    shown = page.evaluate("roofline.latest().view.operators.decode.filter((r) => !['norm', 'elementwise'].includes(r.group) && r.name !== 'all-reduce').map((r) => r.time)")
    assert sorted(drawn) == sorted(shown)


def test_every_architecture_has_a_graph(page):
    """Experts, latent attention, recurrent layers: each operator of the table stands in the graph, and none twice but what a layer has twice."""
    page.locator("#panel-operators").get_by_role("button", name="One layer").click()
    for model in ("deepseek-v3", "mixtral-8x7b", "qwen3-next-80b-a3b", "gpt-oss-20b", "falcon-mamba-7b"):
        page.evaluate("(model) => roofline.state.replace({ ...roofline.state.default, model, devices: '8' })", model)
        settled(page)
        assert page.evaluate("""() => {
          const rows = roofline.latest().view.operators.decode, boxes = document.querySelectorAll('.layer-graph .op:not(.thin)').length;
          const twice = rows.filter((r) => ['norm', 'elementwise'].includes(r.group) || (r.group === 'collective' && Number(r.count) > 1)).length;
          return rows.length - twice - boxes;
        }""") == 0, model
    page.locator("#panel-operators").get_by_role("button", name="Table").click()


def test_a_sweep_on_linear_axes(page):
    page.click("#tab-sweep")
    page.wait_for_selector("#sweep.live")
    until(page, "!document.querySelector('#panel-sweep.busy')")  # an earlier test may have left the chart with another question's lines
    page.locator("#panel-sweep").get_by_role("button", name="Linear").click()
    page.wait_for_selector("#sweep-linear.live")
    until(page, "roofline.charts.find((c) => c.name === 'sweep_linear')?.model('x_range').start === 0")
    assert page.is_hidden("#sweep")
    drawn = page.evaluate("['sweep', 'sweep_linear'].map((name) => [...roofline.charts.find((c) => c.name === name).model('total').data.y])")
    assert drawn[0] == drawn[1]
    assert "LinearScale" in page.evaluate("roofline.charts.find((c) => c.name === 'sweep_linear').plot.x_scale.type")
    page.locator("#panel-sweep").get_by_role("button", name="Log").click()
    until(page, "!document.getElementById('sweep').hidden")


def test_one_request_is_not_many(page):
    """The sentence counts in words: 1 request, 2 requests, and 1 again where the field is left empty."""
    for typed, words in (("2", "requests of"), ("1", "1 request of"), ("", "request of")):
        page.evaluate("(batch) => roofline.state.set({ batch })", typed)
        settled(page)
        assert words in " ".join(sentence(page).split()), typed
    page.evaluate("roofline.state.set({ batch: '32' })")
    settled(page)
    assert "one prompt alone about" in page.inner_text("#figures") and "Cost per 1M tokens" in page.inner_text("#figures")
