"""What leaves the page and comes back: links, embeds, files, pictures, history."""

from __future__ import annotations

import json
import re
from xml.etree import ElementTree

import pytest
from steps import DIST, booted, edit, sentence, settled, until


def shared(page):
    page.click("#share")
    page.wait_for_selector("#share-cli")


def test_a_refused_question_has_no_link_of_another(page):
    edit(page, "#f-batch", "zzz")
    page.click("#share")
    page.wait_for_selector("#sheet .error")
    assert "zzz" in page.inner_text("#sheet .error") and page.locator("#share-link").count() == 0
    assert page.inner_text("#sheet-title") == "Share"


def test_links_are_short_for_examples_and_readable_for_the_rest(page):
    shared(page)
    assert page.input_value("#share-link").endswith("#p=serve")
    page.keyboard.press("Escape")
    edit(page, "#f-batch", "48")
    shared(page)
    fragment = page.input_value("#share-link").split("#")[1]
    assert re.fullmatch(r"[\w.=&-]+", fragment) and "model=llama-3.1-70b" in fragment and "batch=48" in fragment and len(fragment) < 120


# What an example's short link means never changes: these are not edited, new ones are added.
@pytest.mark.parametrize(("preset", "form"), [
    ("serve", {"model": "llama-3.1-70b", "hardware": "h200-sxm", "devices": "2", "weights": "fp8", "batch": "32", "prompt": "8k", "output": "512"}),
    ("chat", {"model": "llama-3.1-8b", "hardware": "rtx-4090", "weights": "Q4_K_M", "batch": "1", "prompt": "2k", "output": "512"}),
    ("one", {"model": "llama-3.1-70b", "hardware": "h100-sxm", "devices": "1", "weights": "int4-g128", "batch": "4", "prompt": "4k", "output": "512"}),
    ("eight", {"model": "llama-3.1-70b", "hardware": "h100-sxm", "devices": "8", "weights": "bf16", "batch": "64", "prompt": "4k", "output": "512"}),
    ("deepseek", {"model": "deepseek-v3", "hardware": "h200-sxm", "devices": "8", "batch": "64", "prompt": "4k", "output": "1k"}),
    ("long", {"model": "llama-3.1-8b", "hardware": "h100-sxm", "devices": "1", "weights": "fp8", "kv": "fp8", "batch": "4", "prompt": "120k", "output": "1k"}),
    ("offline", {"model": "llama-3.1-8b", "hardware": "h100-sxm", "devices": "1", "weights": "fp8", "kv": "fp8", "batch": "512", "prompt": "1k", "output": "256"}),
    ("laptop", {"model": "gpt-oss-20b", "hardware": "apple-m4-max", "devices": "1", "batch": "1", "prompt": "2k", "output": "512"}),
])
def test_short_links_open_for_ever(page, preset, form):
    page.evaluate("(p) => { location.hash = `p=${p}`; }", preset)
    until(page, "(p) => roofline.state.page && location.hash === `#p=${p}`", preset)
    settled(page)
    assert page.evaluate("roofline.state.form") == form
    assert not page.evaluate("document.documentElement.classList.contains('stale')")


def test_an_unknown_example_is_said(page):
    page.evaluate("location.hash = 'p=nobody'")
    until(page, "document.getElementById('said').textContent.includes('no example “nobody”')")
    assert "memory-bound" in sentence(page)
    assert page.evaluate("location.hash") == "#p=nobody"  # the link is not lost: another version may have it


def test_files_and_pictures(page):
    edit(page, "#f-batch", "48")
    shared(page)

    def saved(name):
        with page.expect_download() as download:
            page.get_by_role("button", name=name, exact=True).click()
        return open(download.value.path(), "rb").read()

    report = json.loads(saved("JSON"))
    assert report["scenario"]["batch"] == 48
    lines = saved("CSV").decode().splitlines()
    assert lines[0].startswith("phase,name,group") and len({len(line.split(",")) for line in lines}) == 1 and len(lines) > 20
    svg = ElementTree.fromstring(saved("SVG"))
    names = {"s": "http://www.w3.org/2000/svg"}
    assert "memory-bound" in svg.find("s:title", names).text and "FLOP/byte" in svg.find("s:desc", names).text
    assert "Decode" in "".join(svg.itertext())
    assert saved("PNG")[:8] == b"\x89PNG\r\n\x1a\n"
    page.get_by_role("button", name="Copy JSON").click()
    assert json.loads(page.evaluate("navigator.clipboard.readText()")) == report


def test_a_saved_answer_opens_again(page):
    edit(page, "#f-batch", "48")
    page.select_option("#f-kv", "fp8")
    settled(page)
    report = page.evaluate("roofline.engine.ask('export', {form: roofline.state.form}).then((r) => r.json)")
    said = sentence(page)
    page.click("text=Gaming card")
    settled(page)
    page.evaluate("""(text) => {
      const data = new DataTransfer();
      data.items.add(new File([text], 'roofline.json', {type: 'application/json'}));
      document.body.dispatchEvent(new DragEvent('drop', {dataTransfer: data, bubbles: true, cancelable: true}));
    }""", report)
    until(page, "roofline.state.get('batch') === '48'")
    settled(page)
    assert sentence(page).replace("8000", "8k") == said
    page.click("#toast >> text=Undo")
    settled(page)
    assert "RTX 4090" in sentence(page)


@pytest.mark.parametrize("text", ['{"schema": 2, "scenario": {}}', '{"schema": 1, "scenario": {"batch": -1}}', '{"schema": 1, "scenario": {"model": "nobody"}}', '{"schema": 1, "scenario": {"colour": "red"}}'])
def test_a_bad_saved_answer_is_explained(page, text):
    before = sentence(page)
    page.click("#paste")
    page.fill("#paste-text", text)
    page.click("#paste-use")
    until(page, "document.getElementById('paste-error').textContent.length > 10")
    page.click("#sheet .close")
    assert sentence(page) == before


def test_embed_is_a_frame_with_the_chart_and_a_way_out(page, fresh, site):
    shared(page)
    code = page.input_value("#share-embed")
    src = re.search(r'<iframe src="([^"]+)"', code)[1].replace("&amp;", "&")
    assert src.endswith("#p=serve&embed")
    other = fresh(viewport={"width": 720, "height": 520})
    booted(other, src)
    assert other.evaluate("document.documentElement.scrollHeight") <= 520
    assert other.is_visible("#roofline") and not other.is_visible("#question") and other.is_visible("#whole")
    assert "embed" not in other.get_attribute("#whole", "href")


def test_undo_redo_and_back(page):
    page.click("text=Gaming card")
    settled(page)
    until(page, "location.hash === '#p=chat'")
    edit(page, "#f-batch", "9")
    until(page, "location.hash.includes('batch=9')")
    page.click("text=Laptop")
    settled(page)
    until(page, "location.hash === '#p=laptop'")
    page.go_back()
    until(page, "location.hash.includes('batch=9')")
    until(page, "roofline.state.get('batch') === '9'")
    page.go_back()
    until(page, "roofline.state.get('hardware') === 'h200-sxm'")
    page.go_forward()
    until(page, "roofline.state.get('batch') === '9'")
    settled(page)
    edit(page, "#f-batch", "10")
    page.click("#undo")
    settled(page)
    assert page.input_value("#f-batch") == "9"
    page.click("#redo")
    settled(page)
    assert page.input_value("#f-batch") == "10" and page.is_disabled("#redo")
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("Control+z")
    settled(page)
    assert page.input_value("#f-batch") == "9"
    page.keyboard.press("Control+Shift+z")
    settled(page)
    assert page.input_value("#f-batch") == "10"


def test_the_preview_of_a_link():
    image = pytest.importorskip("PIL.Image")
    html = (DIST / "index.html").read_text("utf-8")
    meta = dict(re.findall(r'<meta property="(og:[\w:]+)" content="([^"]*)">', html))
    path = re.search(r"app-\w+/preview\.png$", meta["og:image"])[0]
    with image.open(DIST / path) as picture:
        assert picture.size == (1200, 630) == (int(meta["og:image:width"]), int(meta["og:image:height"]))
    assert (DIST / path).stat().st_size < 300_000
    assert meta["og:title"] and meta["og:description"]
