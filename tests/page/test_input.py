"""A model of one's own: fetched from the hub when asked for, read from a .gguf file's first megabytes, compared with its index.

The hub is a fake in these tests: every request to it is answered here, and any other foreign request fails as everywhere.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import server
from steps import BOOT_MS, DIST, booted, edit, sentence, settled, until

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from test_gguf import LLAMA, header

from roofline.gguf import read_header

HUB = "https://huggingface.co/"
CONFIG = {"model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 128256}
INDEX = {"metadata": {"total_size": 16_060_522_496}, "weight_map": {f"model.layers.{i}.x": "a.safetensors" for i in range(32)}}
CORS = {"access-control-allow-origin": "*", "access-control-expose-headers": "X-Error-Code"}


def hub(page, answer) -> list:
    """Answer for the hub: answer(path) -> keyword arguments of fulfill, or None for no answer at all; returns the requests made."""
    asked = []

    def reply(route):
        asked.append(route.request)
        found = answer(route.request.url.removeprefix(HUB))
        if found is None:
            return route.abort()
        return route.fulfill(**{**found, "headers": {**CORS, **found.get("headers", {})}})

    page.route(HUB + "**", reply)
    return asked


def files(path):
    if path == "org/Model-8B/resolve/main/config.json":
        return {"body": json.dumps(CONFIG), "content_type": "text/plain"}
    if path == "org/Model-8B/resolve/main/model.safetensors.index.json":
        return {"body": json.dumps(INDEX), "content_type": "text/plain"}
    return {"status": 404, "headers": {"x-error-code": "RepoNotFound"}}


def opened(page):
    page.click("#paste")
    page.wait_for_selector("#hub-id")


def ask(page, name, index=False):
    page.fill("#hub-id", name)
    page.set_checked("#hub-index", index)
    page.click("#hub-ask")
    until(page, "!document.getElementById('hub-ask')?.disabled", timeout=40_000)


@pytest.fixture
def own(fresh, site):
    """A booted page that may ask the hub."""
    page = fresh(hosts=(HUB,))
    booted(page, site)
    return page


def test_a_config_comes_from_the_hub_only_when_asked(own):
    asked = hub(own, files)
    opened(own)
    own.fill("#hub-id", "org/Model-8B")
    assert own.inner_text("#hub-what") == "This asks huggingface.co for org/Model-8B/config.json; nothing else of yours is sent."
    own.wait_for_timeout(300)
    assert not asked and not own.query_selector("iframe")
    ask(own, "org/Model-8B")
    own.wait_for_selector("#sheet:not([open])", state="attached")
    settled(own)
    assert "Model-8B · 8.03" in own.inner_text("#f-model")
    assert [r.url for r in asked] == [HUB + "org/Model-8B/resolve/main/config.json"]
    sent = {k.lower(): v for k, v in asked[0].all_headers().items()}
    assert asked[0].method == "GET" and not asked[0].post_data and not {"cookie", "authorization", "referer"} & set(sent)
    assert not own.query_selector("iframe")


def test_its_index_is_compared_when_asked(own):
    asked = hub(own, files)
    opened(own)
    ask(own, "https://huggingface.co/org/Model-8B/tree/main", index=True)
    until(own, "document.getElementById('paste-finding').textContent.length > 10")
    assert "they agree to the byte" in own.inner_text("#paste-finding")
    assert [r.url.rsplit("/", 1)[1] for r in asked] == ["config.json", "model.safetensors.index.json"]


@pytest.mark.parametrize("name", ["", "no-owner", "a/b/c", "../../etc/passwd", "a/../b", "a/..", "a b/c", "a/b?x=1", "a/b#c", "a/b%2f..", "//evil.example/x", "evil.example", "https://evil.example/a/b",
                                  "https://huggingface.co.evil.example/a/b", "user@evil.example/x", "a/<img src=x onerror=alert(1)>", "a/" + "b" * 200, "ｑｗｅｎ/x", "a\\b/c", "a/b\n"[:-1] + "\u202e"])
def test_a_hostile_id_is_refused_and_nothing_is_asked(page, name):
    opened(page)
    page.fill("#hub-id", name)
    page.click("#hub-ask")
    until(page, "document.getElementById('hub-error').textContent.includes('OWNER/NAME')")
    assert not page.query_selector("iframe") and page.input_value("#hub-id") == name


REFUSALS = {
    "only after signing in": {"status": 401, "headers": {"x-error-code": "GatedRepo"}},
    "(it is gated, private, or not there)": {"status": 403},
    "There is no org/Model-8B on the hub": {"status": 401, "headers": {"x-error-code": "RepoNotFound"}},
    "or it has no config.json": {"status": 404},
    "has no config.json; a small model": {"status": 404, "headers": {"x-error-code": "EntryNotFound"}},
    "answered 503": {"status": 503},
    "is not JSON": {"body": "<!doctype html><title>Sign in</title>"},
    "sent for org/Model-8B is not JSON": {"body": b'{"a": "\xff\xfe"}'},
    "larger than such a file can be": {"body": "{" + " " * 8_100_000 + "}"},
    "on to another host": {"status": 302, "headers": {"location": "https://evil.example/config.json"}},
    "No answer came": None,
}


@pytest.mark.console_errors_expected
def test_what_the_hub_refuses_is_said_and_nothing_typed_is_lost(fresh, site):
    own = fresh(hosts=(HUB, "https://evil.example/"))  # the browser names a redirect's target as a request and then stops it: the frame's policy reports so
    booted(own, site)
    state, reached = {}, []
    hub(own, lambda _path: state["answer"])
    own.on("response", lambda r: "evil" in r.url and reached.append(r.url))
    before = sentence(own)
    opened(own)
    own.fill("#paste-text", "{ half a config")
    for said, state["answer"] in REFUSALS.items():
        ask(own, "org/Model-8B")
        assert said in own.inner_text("#hub-error"), (said, own.inner_text("#hub-error"))
        assert own.input_value("#hub-id") == "org/Model-8B" and own.input_value("#paste-text") == "{ half a config"
    assert not reached
    state["answer"] = {"body": '{"model_type": "from-the-future"}'}
    ask(own, "org/Model-8B")
    assert "is not a known family" in own.inner_text("#hub-error")
    own.context.set_offline(True)
    ask(own, "org/Model-8B")
    assert "offline" in own.inner_text("#hub-error")
    own.context.set_offline(False)
    own.click("#sheet .close")
    own.select_option("#language", "zh")
    until(own, "document.documentElement.lang === 'zh-Hans'")
    state["answer"] = {"status": 404}
    opened(own)
    ask(own, "org/Model-8B")
    assert "模型库里没有" in own.inner_text("#hub-error")
    own.select_option("#language", "en", force=True)
    own.click("#sheet .close")
    assert sentence(own) == before or "内存" in sentence(own)


@pytest.mark.console_errors_expected
def test_the_page_itself_still_reaches_no_other_host(own):
    asked = hub(own, files)
    assert own.evaluate("fetch('https://huggingface.co/org/Model-8B/resolve/main/config.json').then(() => 'reached', () => 'refused')") == "refused"
    opened(own)
    ask(own, "org/Model-8B")
    assert len(asked) == 1
    assert own.evaluate("fetch('https://huggingface.co/org/Model-8B/resolve/main/config.json').then(() => 'reached', () => 'refused')") == "refused"
    assert len(asked) == 1


def test_the_frame_answers_only_the_page_that_made_it(own, site):
    """Opened alone, or asked for anything else than a file of a model, the frame asks nobody."""
    asked = hub(own, files)
    place = own.evaluate("new URL(roofline.engine.build.app + 'hub/hub.html', document.baseURI).href")
    got = own.evaluate("""async (src) => {
      const frame = document.createElement('iframe');
      const heard = [];
      addEventListener('message', ({ source, data }) => { if (source === frame.contentWindow) heard.push(data); });
      frame.src = src;
      document.body.append(frame);
      while (!heard.length) await new Promise((done) => setTimeout(done, 20));
      for (const [id, file] of [['org/Model-8B', '../../x'], ['../x', 'config.json'], ['org/Model-8B', 'constructor'], ['a/b/c', 'config.json'], [{}, []]])
        frame.contentWindow.postMessage({ roofline: 'ask', id, file }, location.origin);
      frame.contentWindow.postMessage('ask', location.origin);
      while (heard.length < 6) await new Promise((done) => setTimeout(done, 20));
      await new Promise((done) => setTimeout(done, 300));
      frame.remove();
      return heard;
    }""", place)
    assert [m.get("answer", {}).get("error") for m in got] == [None] + ["id"] * 5 and not asked


def test_an_outsider_cannot_use_the_frame(browser, site):
    """Another site that puts the frame into its own page gets no answer."""
    outside, url = server.start(Path(__file__).parent, "/")
    context = browser.new_context()
    page = context.new_page()
    asked = hub(page, files)
    page.goto(url.replace("127.0.0.1", "localhost") + "no-such-page")
    frame = next(p for p in DIST.glob("app-*/hub/hub.html")).relative_to(DIST).as_posix()
    heard = page.evaluate("""async (src) => {
      const frame = document.createElement('iframe'), heard = [];
      addEventListener('message', ({ source }) => { if (source === frame.contentWindow) heard.push(1); });
      frame.src = src;
      document.body.append(frame);
      await new Promise((done) => { frame.onload = done; });
      frame.contentWindow.postMessage({ roofline: 'ask', id: 'org/Model-8B', file: 'config.json' }, '*');
      await new Promise((done) => setTimeout(done, 700));
      return heard.length;
    }""", site + frame)
    context.close()
    outside.shutdown()
    assert heard == 0 and not asked


def test_the_service_worker_leaves_the_hub_alone_and_keeps_the_frame(fresh, site):
    page = fresh(hosts=(HUB,), service_workers="allow")
    asked = []
    page.context.route(HUB + "**", lambda route: (asked.append(route.request.url), route.fulfill(headers=CORS, body=json.dumps(CONFIG))))
    booted(page, site)
    page.wait_for_selector("html[data-offline]", state="attached", timeout=60_000)
    page.reload()
    page.wait_for_selector("html[data-ready]", state="attached", timeout=BOOT_MS)
    opened(page)
    ask(page, "org/Model-8B")
    page.wait_for_selector("#sheet:not([open])", state="attached")
    kept = page.evaluate("(async () => { const all = []; for (const name of await caches.keys()) for (const r of await (await caches.open(name)).keys()) all.push(r.url); return all; })()")
    assert asked == [HUB + "org/Model-8B/resolve/main/config.json"]
    assert not any("huggingface" in url for url in kept) and any(url.endswith("/hub/hub.html") for url in kept) and any(url.endswith("/hub/hub.js") for url in kept)


def drop(page, data: bytes, name: str):
    page.evaluate("""([data, name]) => {
      const bytes = Uint8Array.from(atob(data), (c) => c.charCodeAt(0)), transfer = new DataTransfer();
      transfer.items.add(new File([bytes], name));
      document.body.dispatchEvent(new DragEvent('drop', {dataTransfer: transfer, bubbles: true, cancelable: true}));
    }""", [__import__("base64").b64encode(data).decode(), name])


def test_a_gguf_file_is_read_from_its_first_megabytes(page):
    """Its tokenizer makes the header longer than the first slice; weights that follow are never read."""
    words = ["word" * 6 + str(i) for i in range(60_000)]
    data = header({**LLAMA[0], "tokenizer.ggml.tokens": words}, LLAMA[1])
    assert len(data) > 2**20
    read = page.evaluate("(async () => { window.slices = []; const slice = Blob.prototype.slice; Blob.prototype.slice = function (a, b) { window.slices.push([a, b]); return slice.call(this, a, b); }; })()")
    assert read is None
    drop(page, data + bytes(9_000_000), "test.gguf")
    until(page, "roofline.state.get('config').includes('gguf')")
    page.wait_for_selector("#sheet:not([open])", state="attached")
    settled(page)
    assert "test · 8.03" in page.inner_text("#f-model")
    slices = page.evaluate("window.slices")
    assert [0, 2**20] in slices and [0, 4 * 2**20] in slices and max(b for _, b in slices) <= 4 * 2**20
    assert "Q4_0" in page.inner_text("#f-weights option:first-child")
    stored = page.evaluate("roofline.engine.ask('export', { form: roofline.state.form }).then((all) => JSON.parse(all.json).memory.weights_bytes)")
    assert stored == read_header(data).tensor_bytes


@pytest.mark.parametrize("data, said", [(b"GGUF" + bytes(3), "ends inside its header"), (b"PK\x03\x04" + bytes(40), "is not the start of a GGUF file"),
                                        (b"GGUF\x03\0\0\0" + (2**60).to_bytes(8, "little") * 2, "must have at most"),
                                        (header({"general.architecture": "<img src=x onerror=alert(1)>"}), "<img src=x onerror=alert(1)>"), (header(*LLAMA)[:900], "cut short")])
def test_a_bad_gguf_file_is_explained_and_nothing_is_lost(page, data, said):
    before = sentence(page)
    drop(page, data, "bad.gguf")
    until(page, "(said) => document.getElementById('paste-error')?.textContent.includes(said)", said)
    assert not page.query_selector("#paste-error img")
    page.click("#sheet .close")
    assert sentence(page) == before


def test_a_params_json_is_pasted(page):
    opened(page)
    page.fill("#paste-text", '{"dim": 4096, "n_layers": 32, "n_heads": 32, "n_kv_heads": 8, "multiple_of": 1024, "ffn_dim_multiplier": 1.3, "vocab_size": 128256}')
    page.click("#paste-use")
    page.wait_for_selector("#sheet:not([open])", state="attached")
    settled(page)
    assert "8.03" in page.inner_text("#f-model")


def test_an_index_is_compared_with_the_model_chosen(page):
    page.evaluate("roofline.state.set({model: 'llama-3.1-8b', weights: 'bf16'})")
    settled(page)
    drop(page, json.dumps(INDEX).encode(), "model.safetensors.index.json")
    until(page, "document.getElementById('paste-finding')?.textContent.includes('agree to the byte')")
    assert page.evaluate("roofline.state.get('model')") == "llama-3.1-8b"
    page.fill("#paste-text", json.dumps({**INDEX, "metadata": {"total_size": 2 * 16_060_522_496 - 5_000_000_000}}))
    page.click("#paste-use")
    until(page, "document.getElementById('paste-finding').textContent.includes('yet')")
    page.fill("#paste-text", '{"weight_map": {"<img src=x onerror=alert(1)>": 5}}')
    page.click("#paste-use")
    until(page, "document.getElementById('paste-error').textContent.length > 10")
    assert not page.query_selector("#sheet img")
    page.click("#sheet .close")


@pytest.mark.parametrize("model", ["deepseek-v3", "glm-4.5", "qwen3-next-80b-a3b", "mimo-7b"])
def test_prediction_layers_left_out_are_said_with_their_size(page, model):
    page.evaluate("(model) => roofline.state.set({ model, devices: '8' })", model)
    settled(page)
    until(page, "document.getElementById('notices').textContent.includes('multi-token-prediction layer, about')")


def test_what_was_typed_in_the_dialog_is_there_when_it_opens_again(page):
    page.click("#paste")
    page.fill("#paste-text", '{"my": "work"')
    page.fill("#paste-family", "llam")
    page.keyboard.press("Escape")
    page.click("#paste")
    until(page, "document.getElementById('sheet').open")
    page.wait_for_timeout(200)
    assert page.input_value("#paste-text") == '{"my": "work"' and page.input_value("#paste-family") == "llam"
    page.fill("#paste-text", "")
    page.fill("#paste-family", "")
    page.keyboard.press("Escape")


def test_a_long_text_does_not_hold_the_page_up(page):
    """Laid out in a text field, megabytes of lines take Chromium many seconds."""
    page.click("#tab-measured")
    page.wait_for_selector("#panel-measured[data-view=ready]")
    page.get_by_role("button", name="Your own").click()
    page.wait_for_selector("#own-file")
    page.set_input_files("#own-file", {"name": "long.csv", "mimeType": "text/csv", "buffer": b"a,b\n" + b"1,2\n" * 600_000})
    until(page, "document.getElementById('own-error').textContent.includes('long.csv')")
    assert page.input_value("#own-text") == ""
    page.evaluate("""() => { const data = new DataTransfer(); data.setData("text", "x,y\\n".repeat(500_000));
      document.getElementById("own-text").dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true })); }""")
    until(page, "document.getElementById('own-error').textContent.includes('not recognised') && !document.getElementById('own-error').textContent.includes('long.csv')")


def test_a_file_of_weights_is_named_for_what_it_is(page):
    page.click("#paste")
    page.wait_for_selector("#paste-file")
    page.set_input_files("#paste-file", {"name": "model.safetensors", "mimeType": "", "buffer": (80).to_bytes(8, "little") + b'{"a":{}}'})
    until(page, "document.getElementById('paste-error').textContent.includes('binary')")
    page.keyboard.press("Escape")


def test_a_number_of_chips_that_no_layout_has_is_refused_where_it_was_typed(page):
    edit(page, "#f-devices", "3")  # of 64 attention heads
    assert page.get_attribute("#f-devices", "aria-invalid") == "true" and "does not divide" in page.inner_text("#e-devices")
    assert page.get_attribute("#f-tp", "aria-invalid") is None
    edit(page, "#f-devices", "")
    edit(page, "#f-tp", "3")
    assert page.get_attribute("#f-tp", "aria-invalid") == "true" and page.get_attribute("#f-devices", "aria-invalid") is None
