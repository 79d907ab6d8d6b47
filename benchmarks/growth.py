"""Nothing grows: memory, documents, listeners and Python's objects before and after ten thousand edits.

    .venv/bin/python benchmarks/growth.py [--edits 10000]      # after `python3 build.py build`

Every edit is a new question (batch, prompt and precision go round), asked, answered and drawn; every hundredth also opens a view.
Python's part is read by the debugger, out of the worker's own scope: nothing in the page is there for this benchmark's sake.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "site" / "build"))

from playwright.sync_api import sync_playwright  # noqa: E402

import fetch  # noqa: E402
import server  # noqa: E402
from first_paint import FLAGS  # noqa: E402

ALLOWED = 1.05  # times the figure before; what stays within it is noise of the collector
BOUND = {"steps of undo": 200}  # grows to this and no further
EDITS = """async ([from, to]) => {
  const views = ["operators", "time", "memory", "sweep", "method"], root = document.documentElement;
  for (let i = from; i < to; i++) {
    const before = root.dataset.answered;
    roofline.state.set({ batch: String(1 + (i % 97)), prompt: String(500 + 13 * (i % 89)), kv: i % 3 ? "" : "fp8" });
    while (root.dataset.answered === before) await new Promise((done) => setTimeout(done, 0));
    if (i % 100 === 0) document.getElementById(`tab-${views[(i / 100) % views.length]}`).click();
    if (i % 10 === 0) await new Promise(requestAnimationFrame);
  }
}"""
PYTHON = """function () { return [this._module.HEAPU8.length, this.runPython("import gc; gc.collect(); len(gc.get_objects())")].join(); }"""


class Worker:
    """The debugger's way into Python's worker."""

    def __init__(self, session):
        self.session, self.answers, self.number, self.target = session, {}, 0, ""
        session.on("Target.attachedToTarget", lambda event: event["targetInfo"]["type"] == "worker" and setattr(self, "target", event["sessionId"]))
        session.on("Target.receivedMessageFromTarget", self.receive)
        session.send("Target.setAutoAttach", {"autoAttach": True, "waitForDebuggerOnStart": False, "flatten": False})

    def receive(self, event) -> None:
        message = json.loads(event["message"])
        if "id" in message:
            self.answers[message["id"]] = message

    def send(self, page, method: str, params: dict) -> dict:
        self.number += 1
        self.session.send("Target.sendMessageToTarget", {"sessionId": self.target, "message": json.dumps({"id": self.number, "method": method, "params": params})})
        while self.number not in self.answers:
            page.wait_for_timeout(10)
        answer = self.answers.pop(self.number)
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer["result"]

    def size(self, page) -> dict:
        """Bytes of Python's memory and the number of objects in it."""
        listener = self.send(page, "Runtime.evaluate", {"expression": "self.onmessage"})["result"]["objectId"]
        inner = self.send(page, "Runtime.getProperties", {"objectId": listener, "ownProperties": True})["internalProperties"]
        scopes = next(p for p in inner if p["name"] == "[[Scopes]]")["value"]["objectId"]
        for scope in self.send(page, "Runtime.getProperties", {"objectId": scopes, "ownProperties": True})["result"]:
            if "objectId" not in scope.get("value", {}):
                continue
            names = self.send(page, "Runtime.getProperties", {"objectId": scope["value"]["objectId"], "ownProperties": True})["result"]
            found = next((n["value"] for n in names if n["name"] == "pyodide"), None)
            if found:
                text = self.send(page, "Runtime.callFunctionOn", {"objectId": found["objectId"], "functionDeclaration": PYTHON, "returnByValue": True})["result"]["value"]
                self.send(page, "Runtime.releaseObjectGroup", {"objectGroup": ""})
                return dict(zip(("bytes", "objects"), map(int, text.split(",")), strict=True))
        raise RuntimeError("the worker's scope holds no pyodide")


def size(page, session, worker: Worker) -> dict:
    """What the page and its Python hold, after both have tidied up."""
    page.wait_for_timeout(1500)
    session.send("HeapProfiler.collectGarbage")
    metrics = {m["name"]: m["value"] for m in session.send("Performance.getMetrics")["metrics"]}
    python = worker.size(page)
    own = page.evaluate("({ documents: Bokeh.documents.length, calls: roofline.engine.calls.size, undo: roofline.state.past.length })")
    return {"JavaScript heap [MB]": metrics["JSHeapUsedSize"] / 1e6, "DOM nodes": metrics["Nodes"], "event listeners": metrics["JSEventListeners"], "Bokeh documents": own["documents"],
            "calls outstanding": own["calls"], "steps of undo": own["undo"], "Python memory [MB]": python["bytes"] / 1e6, "Python objects": python["objects"]}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--edits", type=int, default=10_000)
    parser.add_argument("--dist", type=Path, default=ROOT / "dist")
    options = parser.parse_args()
    running, url = server.start(options.dist, "/roofline/")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=os.environ.get("ROOFLINE_CHROMIUM") or str(fetch.chromium(Path(sys.executable))), args=FLAGS)
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.goto(url)
        page.wait_for_selector("html[data-ready]", state="attached", timeout=120_000)
        page.mouse.move(9, 9)
        page.wait_for_selector("html[data-chart]", state="attached", timeout=60_000)
        session = page.context.new_cdp_session(page)
        session.send("Performance.enable")
        worker = Worker(session)
        page.evaluate(EDITS, [0, 500])  # every kind of edit and view once, and undo filled
        before, started = size(page, session, worker), time.monotonic()
        for at in range(500, options.edits + 500, 500):
            page.evaluate(EDITS, [at, min(at + 500, options.edits + 500)])
        spent = time.monotonic() - started
        after = size(page, session, worker)
        browser.close()
    running.shutdown()
    print(f"{options.edits:,} edits in {spent:.0f} s ({1000 * spent / options.edits:.1f} ms each)")
    grown = [name for name, value in before.items() if after[name] > max(ALLOWED * value, BOUND.get(name, 0))]
    for name, value in before.items():
        print(f"  {name:22s} {value:12,.1f} -> {after[name]:12,.1f}   {after[name] / value if value else 1:.3f} x{'   grows' if name in grown else ''}")
    return 1 if grown else 0


if __name__ == "__main__":
    sys.exit(main())
