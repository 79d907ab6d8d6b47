"""What breaks: files that are missing, wrong or cut short, no network, no storage. Each reaches a stated screen."""

from __future__ import annotations

import pytest
import server
from steps import BOOT_MS, DIST, booted, charted, edit, sentence, settled, until

pytestmark = pytest.mark.console_errors_expected


def failure(page, site) -> str:
    page.goto(site)
    page.wait_for_selector("#failure:not([hidden])", timeout=BOOT_MS)
    return page.inner_text("#failure")


def works(page):
    edit(page, "#f-batch", "5")
    assert "5 requests" in sentence(page)


def test_offline_after_the_first_visit_under_a_sub_path(fresh):
    running, url = server.start(DIST, "/deep/er/")
    page = fresh(service_workers="allow")
    booted(page, url, "snapshot")
    page.wait_for_selector("html[data-offline]", state="attached", timeout=60_000)
    works(page)
    until(page, "location.hash.includes('batch=5')")
    running.shutdown()
    running.server_close()
    page.reload()
    page.wait_for_selector('html[data-ready="snapshot"]', state="attached", timeout=BOOT_MS)
    charted(page)
    settled(page)
    assert "5 requests" in sentence(page)
    page.select_option("#language", "zh")
    until(page, "document.documentElement.lang === 'zh-Hans'")


def test_exploring_works_offline_once_it_has_been_opened(fresh):
    """NumPy is kept when Explore first brings it; from then on every search needs no network."""
    running, url = server.start(DIST, "/deep/er/")
    page = fresh(service_workers="allow")
    booted(page, url, "snapshot")
    page.wait_for_selector("html[data-offline]", state="attached", timeout=60_000)
    searched = "document.querySelector('#panel-explore[aria-busy=false]') && document.querySelectorAll('#panel-explore .best tbody tr').length > 3"
    page.click("#tab-explore")
    until(page, searched, timeout=90_000)
    running.shutdown()
    running.server_close()
    page.context.set_offline(True)
    page.reload()
    page.wait_for_selector('html[data-ready="snapshot"]', state="attached", timeout=BOOT_MS)
    until(page, searched, timeout=90_000)
    page.select_option("#x-objective", "energy")  # a question that was never asked online
    page.select_option("#x-devices", "4")
    until(page, "document.querySelector('#panel-explore .lead').innerText.includes('least energy')", timeout=30_000)
    page.mouse.move(5, 5)
    until(page, "document.querySelector('#explore-front.live')", timeout=30_000)
    page.get_by_role("button", name="Fleet").click()
    until(page, "document.getElementById('panel-explore').innerText.includes('requests/s with')", timeout=60_000)


def test_a_new_build_is_offered_without_losing_the_question(fresh, tmp_path):
    import shutil

    copy = tmp_path / "site"
    shutil.copytree(DIST, copy)
    running, url = server.start(copy, "/up/date/")
    page = fresh(service_workers="allow")
    booted(page, url)
    page.wait_for_selector("html[data-offline]", state="attached", timeout=60_000)
    page.reload()
    page.wait_for_selector("html[data-ready]", state="attached", timeout=BOOT_MS)
    works(page)
    until(page, "location.hash.includes('batch=5')")
    # A new build: another page, and a service worker that lists it.
    import hashlib

    index = (copy / "index.html").read_text("utf-8")
    old = hashlib.sha256(index.encode()).hexdigest()
    index = index.replace("<body>", '<body data-new="yes">')
    (copy / "index.html").write_text(index, "utf-8")
    worker = (copy / "sw.js").read_text("utf-8")
    build = worker.split('BUILD = "')[1].split('"')[0]
    (copy / "sw.js").write_text(worker.replace(build, "0" * len(build)).replace(old, hashlib.sha256(index.encode()).hexdigest()), "utf-8")
    page.evaluate("navigator.serviceWorker.getRegistration().then((r) => r.update())")
    page.wait_for_selector("#toast >> text=Reload", timeout=60_000)
    page.click("#toast >> text=Reload")
    page.wait_for_selector('body[data-new="yes"]', state="attached", timeout=BOOT_MS)
    page.wait_for_selector("html[data-ready]", state="attached", timeout=BOOT_MS)
    until(page, "document.getElementById('f-batch').value === '5'")
    running.shutdown()


@pytest.mark.parametrize("how", ["truncated", "garbage", "missing", "of another build"])
def test_a_bad_snapshot_falls_back_to_a_plain_boot(fresh, site, how):
    page = fresh()
    whole = next(DIST.glob("python-*/snapshot.bin")).read_bytes()
    bodies = {"truncated": whole[: len(whole) // 2], "garbage": b"\x1f\x8b" + bytes(len(whole) - 2), "of another build": whole[:-1] + bytes([whole[-1] ^ 1])}
    page.route("**/snapshot.bin", lambda route: route.fulfill(status=404) if how == "missing" else route.fulfill(body=bodies[how]))
    booted(page, site, "plain")
    works(page)


def test_the_plain_boot_gives_the_same_answer(fresh, site, page):
    other = fresh()
    other.route("**/snapshot.bin", lambda route: route.abort())
    booted(other, site, "plain")
    for each in (page, other):
        edit(each, "#f-batch", "33")
    assert other.inner_text("#figures") == page.inner_text("#figures")


def test_a_missing_engine_is_said_and_retry_works(fresh, site):
    page = fresh()
    page.route("**/pyodide.asm.wasm", lambda route: route.fulfill(status=404, body="not here"))
    said = failure(page, site)
    assert "did not arrive" in said and "Retry" in said
    assert "memory-bound" in sentence(page)  # the first example still stands
    page.unroute("**/pyodide.asm.wasm")
    page.click("#retry")
    page.wait_for_selector('html[data-ready="snapshot"]', state="attached", timeout=BOOT_MS)
    works(page)


def test_html_in_place_of_the_engine(fresh, site):
    page = fresh()
    page.route("**/pyodide.asm.wasm", lambda route: route.fulfill(status=200, content_type="text/html", body="<!doctype html><title>404</title>"))
    assert "did not arrive" in failure(page, site)
    assert "not WebAssembly" in page.locator("#failure pre").text_content()


def test_a_damaged_engine_does_not_hang(fresh, site):
    page = fresh()
    page.route("**/pyodide.asm.wasm", lambda route: route.fulfill(status=200, content_type="application/wasm", body=b"\0asm\x01\0\0\0garbage"))
    assert "Retry" in failure(page, site)


def test_a_missing_worker(fresh, site):
    page = fresh()
    page.route("**/worker.mjs", lambda route: route.fulfill(status=404))
    assert "worker script" in failure(page, site)


def test_a_missing_standard_library_stops_only_the_plain_boot(fresh, site):
    page = fresh()
    page.route("**/python_stdlib.zip", lambda route: route.fulfill(status=404))
    booted(page, site, "snapshot")
    works(page)
    other = fresh()
    other.route("**/python_stdlib.zip", lambda route: route.fulfill(status=404))
    other.route("**/snapshot.bin", lambda route: route.fulfill(status=404))
    assert "Retry" in failure(other, site)


def test_a_slow_engine_leaves_the_page_usable(fresh, site):
    page = fresh()
    held = []
    page.route("**/snapshot.bin", lambda route: held.append(route))
    page.goto(site)
    charted(page)
    page.fill("#f-batch", "5")
    page.click("#tab-time")
    assert "decode step" in page.inner_text("#panel-time")
    page.wait_for_selector(".boot.slow", state="attached")
    for _ in range(2400):
        if held:
            break
        page.wait_for_timeout(25)
    held[0].continue_()
    page.wait_for_selector("html[data-ready]", state="attached", timeout=BOOT_MS)
    until(page, "document.documentElement.dataset.answered >= 1")
    assert "5 requests" in sentence(page)


def test_storage_refused(fresh, site):
    page = fresh()
    page.add_init_script("Object.defineProperty(window, 'localStorage', { get() { throw new DOMException('refused', 'SecurityError'); } })")
    booted(page, site)
    page.click("#theme")
    works(page)


def test_numpy_loads_into_a_restored_snapshot(fresh, site):
    page = fresh()
    booted(page, site, "snapshot")
    assert page.evaluate("roofline.engine.loadNumpy().then(() => 'ok', (e) => e.message)") == "ok"
    works(page)
