"""More of what breaks (the rest is in test_sturdy.py): what hangs, what is refused, what is of another build. Each reaches a stated screen."""

from __future__ import annotations

import json

import pytest
import server
from steps import BOOT_MS, DIST, booted, edit, sentence, settled, until

pytestmark = pytest.mark.console_errors_expected


def works(page, batch: str = "5"):
    edit(page, "#f-batch", batch)
    until(page, f"roofline.sentence.text().includes('{batch} requests')", timeout=10_000)


def test_an_engine_that_never_comes_is_given_up_after_its_patience(fresh, site):
    page = fresh()
    page.clock.install()
    page.route("**/pyodide.asm.wasm", lambda route: None)  # never answered
    page.goto(site)
    for mode, over in (("snapshot", "roofline.engine.mode === 'plain'"), ("plain", "roofline.engine.failed")):
        until(page, f"globalThis.roofline?.engine?.worker && roofline.engine.mode === '{mode}'", timeout=BOOT_MS)
        for _ in range(20):  # what still comes of the snapshot is a sign of life, from which patience counts anew
            page.clock.fast_forward(121_000)
            page.wait_for_timeout(250)
            if page.evaluate(over):
                break
    page.wait_for_selector("#failure:not([hidden])", timeout=10_000)
    assert "did not arrive" in page.inner_text("#failure") and "nothing happened" in page.locator("#failure pre").text_content()


def test_html_in_place_of_the_worker(fresh, site):
    page = fresh()
    page.route("**/worker.mjs", lambda route: route.fulfill(status=200, content_type="text/html", body="<!doctype html><title>404</title>"))
    page.goto(site)
    page.wait_for_selector("#failure:not([hidden])", timeout=BOOT_MS)
    assert "worker script" in page.inner_text("#failure")


def test_a_slow_network(fresh, site):
    """A phone's connection: the answer is there at once, Python later, and the page says what is loading."""
    page = fresh()
    session = page.context.new_cdp_session(page)
    session.send("Network.enable")
    session.send("Network.emulateNetworkConditions", {"offline": False, "latency": 150, "downloadThroughput": 1_500_000, "uploadThroughput": 500_000})
    page.goto(site, wait_until="commit")
    until(page, "document.getElementById('sentence')?.textContent.includes('memory-bound')", timeout=15_000)
    page.wait_for_selector(".boot.slow", state="attached", timeout=15_000)
    assert "Python" in page.inner_text("#boot-text")
    booted(page, page.url)
    works(page)


def test_a_python_that_stops_answering_is_started_anew(fresh, site):
    page = fresh()
    booted(page, site)
    page.clock.install()
    page.evaluate("roofline.engine.worker.postMessage = () => {}")  # what is asked is never heard
    page.fill("#f-batch", "5")
    page.clock.fast_forward(61_000)
    until(page, "document.getElementById('said').textContent.includes('started anew') || roofline.engine.ready", timeout=10_000)
    page.clock.resume()
    until(page, "roofline.engine.ready", timeout=BOOT_MS)
    works(page, "6")
    assert not page.evaluate("document.documentElement.classList.contains('stale')")


def test_a_python_that_dies_is_started_anew(fresh, site):
    page = fresh()
    booted(page, site)
    page.evaluate("""() => {
      const { worker } = roofline.engine, post = worker.postMessage.bind(worker);
      worker.postMessage = (message) => { worker.onmessage({ data: { type: "answer", id: message.id, error: { kind: "bug", message: "RuntimeError: memory access out of bounds" } } }); };
    }""")
    page.fill("#f-batch", "5")
    until(page, "roofline.engine.ready && document.documentElement.dataset.answered && !document.documentElement.classList.contains('stale')", timeout=BOOT_MS)
    works(page, "6")


def test_a_question_that_kills_python_is_not_asked_for_ever(fresh, site):
    page = fresh()
    page.add_init_script("""globalThis.workers = 0;
      globalThis.Worker = class extends Worker {
        constructor(...given) { super(...given); workers += 1; }
        postMessage(message) {
          if (message.type !== "call" || !message.params.includes('"batch":"13"')) return super.postMessage(message);
          setTimeout(() => this.onmessage({ data: { type: "answer", id: message.id, error: { kind: "bug", message: "RuntimeError: memory access out of bounds" } } }));
        }
      };""")
    booted(page, site)  # batch 13 is rehearsed too
    until(page, "roofline.engine.ready")
    page.fill("#f-batch", "13")
    until(page, "document.getElementById('said').textContent.includes('stopped at this question twice')", timeout=BOOT_MS)
    made = page.evaluate("workers")
    page.wait_for_timeout(1500)
    assert page.evaluate("workers") == made <= 4 and page.evaluate("roofline.engine.ready")
    works(page, "6")


def test_a_service_worker_that_is_refused(fresh, site):
    page = fresh(service_workers="allow")
    page.add_init_script("navigator.serviceWorker.register = () => Promise.reject(new DOMException('refused', 'SecurityError'))")
    booted(page, site)
    works(page)
    assert page.get_attribute("html", "data-offline") is None


def test_no_room_to_store_the_page(fresh, site):
    """The service worker's install fails as a whole: the page works, offline is just absent."""
    page = fresh(service_workers="allow")
    worker = (DIST / "sw.js").read_text("utf-8").replace("await cache.put(", "throw new DOMException('full', 'QuotaExceededError'); await cache.put(", 1)
    page.context.route("**/sw.js", lambda route: route.fulfill(content_type="text/javascript", body=worker))
    booted(page, site)
    page.wait_for_timeout(1500)
    works(page)
    assert page.get_attribute("html", "data-offline") is None
    assert page.evaluate("caches.keys()") == []


@pytest.mark.parametrize("name", ["catalogue.json", "zh.json"])
def test_a_list_that_does_not_come_is_said_and_asked_for_again(fresh, site, name):
    page = fresh()
    page.route(f"**/{name}", lambda route: route.fulfill(status=404))
    booted(page, site)
    ask = lambda: page.click("#f-model") if name == "catalogue.json" else page.select_option("#language", "zh")
    ask()
    page.wait_for_selector("#toast:not([hidden])")
    assert "404" in page.inner_text("#toast") and "memory-bound" in sentence(page)
    page.unroute(f"**/{name}")
    if name == "catalogue.json":
        ask()
        page.wait_for_selector("dialog.picker[open]")
    else:
        page.select_option("#language", "en")
        ask()
        until(page, "document.documentElement.lang === 'zh-Hans'")


def test_a_link_of_a_megabyte(fresh, site):
    page = fresh()
    booted(page, site)
    config = json.dumps({"model_type": "llama", "note": "x" * 1_000_000})
    for fragment in ("s=1&batch=" + "9" * 1_000_000, "s=1&model=pasted&config=" + "A" * 1_200_000, "&".join(f"k{i}=1" for i in range(100_000))):
        page.evaluate("(f) => { location.hash = f; }", fragment)
        until(page, "!document.documentElement.classList.contains('asking') && document.getElementById('said').textContent.length > 10", timeout=20_000)
        assert page.evaluate("document.getElementById('said').textContent.length") < 3000  # said, not repeated
    page.evaluate("location.hash = 'p=serve'")
    until(page, "!document.documentElement.classList.contains('stale')")
    page.click("#paste")
    page.fill("#paste-text", config)
    page.click("#paste-use")
    until(page, "!document.getElementById('sheet').open || document.getElementById('paste-error').textContent.length > 5", timeout=20_000)


def test_a_page_of_an_old_build_whose_files_are_gone(fresh, tmp_path):
    """A page that was left open over a new release: what it still has to fetch is no longer there. It says so, keeps the answer, and a reload is whole again."""
    import shutil

    shutil.copytree(DIST, tmp_path / "site")
    running, url = server.start(tmp_path / "site", "/old/")
    page = fresh()
    booted(page, url)
    works(page)
    old = next((tmp_path / "site").glob("app-*"))
    old.rename(old.with_name("app-0123456789"))
    index = tmp_path / "site" / "index.html"
    index.write_text(index.read_text("utf-8").replace(old.name, "app-0123456789"), "utf-8")
    page.click("#tab-learn")
    page.wait_for_selector("#panel-learn .error", timeout=10_000)
    works(page, "7")
    until(page, "location.hash.includes('batch=7')")
    page.reload()
    booted(page, page.url)
    until(page, "document.getElementById('f-batch').value === '7'")
    page.click("#tab-learn")
    page.wait_for_selector("#panel-learn[data-view=ready]", timeout=20_000)
    running.shutdown()


@pytest.mark.console_errors_expected
@pytest.mark.parametrize("missing", ["js/charts.mjs", "js/main.mjs", "**"])
def test_a_missing_script_is_said_and_a_reload_is_whole(fresh, site, missing):
    page = fresh()
    page.route(f"**/app-*/{missing}", lambda route: route.fulfill(status=404, body="gone"))
    page.goto(f"{site}#p=one")
    page.wait_for_selector("#broken", state="visible", timeout=20_000)
    assert "did not arrive" in page.inner_text("#broken")
    page.unroute(f"**/app-*/{missing}")
    page.click("#again")
    page.wait_for_selector("html[data-ready]", state="attached", timeout=90_000)
    assert page.is_hidden("#broken")
    until(page, "document.querySelector('[data-preset=one]').getAttribute('aria-pressed') === 'true'") if missing != "**" else None  # the link without its script drops what follows the #


def test_the_page_and_its_python_must_be_of_one_build(page):
    answer = page.evaluate("""() => new Promise((done) => {
      const { worker } = roofline.engine, before = worker.onmessage;
      worker.onmessage = ({ data }) => { if (data.id === -1) { worker.onmessage = before; done(JSON.parse(data.text)); } else before({ data }); };
      worker.postMessage({ type: "call", id: -1, method: "ping", params: JSON.stringify({ v: 99, id: -1, method: "ping", params: {} }) });
    })""")
    assert not answer["ok"] and "reload" in answer["error"]["message"]


def test_offline_is_said(fresh, site):
    page = fresh()
    booted(page, site)
    assert page.is_hidden("#net")
    page.context.set_offline(True)
    page.wait_for_selector("#net:not([hidden])")
    assert page.inner_text("#net") == "Offline"
    works(page)  # Python is here: it needs no network
    page.context.set_offline(False)
    until(page, "document.getElementById('net').hidden")


def test_what_makes_it_installable():
    manifest = json.loads((DIST / "app.webmanifest").read_text("utf-8"))
    assert manifest["start_url"] == manifest["scope"] == "./" and manifest["display"] == "standalone" and manifest["name"] and manifest["short_name"]
    sizes = {(icon["sizes"], icon.get("purpose", "any")) for icon in manifest["icons"]}
    assert {("192x192", "any"), ("512x512", "any"), ("512x512", "maskable")} <= sizes
    assert all((DIST / each["src"]).exists() for each in [*manifest["icons"], *manifest["screenshots"]])
    image = pytest.importorskip("PIL.Image")
    with image.open(DIST / next(icon["src"] for icon in manifest["icons"] if icon.get("purpose") == "maskable")) as icon:
        picture = icon.convert("RGB")
        ground, middle = picture.getpixel((2, 2)), picture.size[0] / 2
        ink = [(x, y) for x in range(0, picture.size[0], 4) for y in range(0, picture.size[1], 4) if sum(abs(a - b) for a, b in zip(picture.getpixel((x, y)), ground, strict=True)) > 40]
    assert ink and max(((x - middle) ** 2 + (y - middle) ** 2) ** 0.5 for x, y in ink) < 0.4 * 2 * middle  # whatever shape it is cut to
