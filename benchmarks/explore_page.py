"""Configurations per second of the page's own Explore, as a visitor of the built page gets them: `python benchmarks/explore_page.py [--rounds 5]`.

Needs dist/ (`python3 build.py build`) and a Chromium (ROOFLINE_CHROMIUM names it, else the one that the tests use). Each question is
asked by opening Explore with it; the spaces alternate, so that none is still known from before. Printed are medians: seconds from the
click to the frame in which the answer stands, those of them that Python worked, and the configurations of the space over each; and
first of all how long NumPy takes to come when Explore is opened for the first time. Nothing here fails by the clock.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "site" / "build"))

from playwright.sync_api import sync_playwright  # noqa: E402

import fetch  # noqa: E402
import server  # noqa: E402

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
LOADS = {"x.prompts": "512,1k,2k,4k,8k,16k", "x.outputs": "128,512,2k"}
FORMATS = {"x.weights": "auto,bf16,fp8,int4-g128,nvfp4,mxfp4", "x.kv": "auto,fp8,int4"}
CASES = {
    "the question of the page": {},
    "every format, up to 64 chips": {**FORMATS, "x.devices": "64"},
    "18 loads": LOADS,
    "drafts and prefill pools": {"x.drafts": "0,3,5", "x.prefill": "same:1,same:4", "x.prompts": "1k,4k,16k"},
}

# Before the page's own scripts: what is asked of the worker is timed.
WATCH = """(() => {
  const Plain = Worker, sent = new Map();
  window.timing = { worked: 0, calls: 0, numpy: 0, rows: 0 };
  window.Worker = class extends Plain {
    constructor(...given) {
      super(...given);
      this.addEventListener("message", ({ data }) => {
        const call = sent.get(data.id), took = call && performance.now() - call.at;
        if (data.type !== "answer" || !call) return;
        sent.delete(data.id);
        if (call.what === "numpy") timing.numpy = took;
        else { timing.worked += took; timing.calls += 1; timing.rows = Number(JSON.parse(data.text).result.total.replaceAll(",", "")); }
      });
    }
    postMessage(message, ...more) {
      if (message.method === "explore" || message.what === "numpy") sent.set(message.id, { at: performance.now(), what: message.what ?? "explore" });
      super.postMessage(message, ...more);
    }
  };
})()"""

# In the page: ask by opening Explore with these fields, and wait for the frame in which the answer stands.
ASK = """async (fields) => {
  Object.assign(timing, { worked: 0, calls: 0, numpy: 0, rows: 0 });
  roofline.state.page = { view: "explore", ...fields };
  const started = performance.now();
  document.getElementById("tab-explore").click();
  const trying = () => !timing.calls || document.getElementById("panel-explore").ariaBusy !== "false";
  while (trying()) await new Promise((done) => setTimeout(done, 1));
  await new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)));
  return { ...timing, whole: performance.now() - started };
}"""


def processor_seconds(session) -> float:
    """Processor time of this browser's worker threads so far [s]; not a number where the system does not tell (elsewhere than on Linux)."""
    ticks = 0
    for process in session.send("SystemInfo.getProcessInfo")["processInfo"]:
        for name in Path(f"/proc/{process['id']}/task").glob("*/comm"):
            try:
                if name.read_text().startswith("DedicatedWorke"):
                    ticks += sum(map(int, name.with_name("stat").read_text().rsplit(")", 1)[1].split()[11:13]))
            except OSError:
                pass
    return ticks / os.sysconf("SC_CLK_TCK") if ticks else float("nan")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--dist", type=Path, default=ROOT / "dist")
    options = parser.parse_args()
    served, url = server.start(options.dist, "/roofline/")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=os.environ.get("ROOFLINE_CHROMIUM") or str(fetch.chromium(Path(sys.executable))), args=FLAGS
        )
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.add_init_script(WATCH)
        page.goto(url)
        page.wait_for_selector("html[data-ready]", state="attached", timeout=120_000)
        first = page.evaluate(ASK, {})
        print(
            f"Explore opened for the first time: NumPy after {first['numpy'] / 1e3:.2f} s, the answer after {first['whole'] / 1e3:.2f} s"
        )
        found, session = {name: [] for name in CASES}, browser.new_browser_cdp_session()
        for _ in range(options.rounds):
            for name, fields in reversed(CASES.items()):  # the page's own question comes first of all, and would still be known
                before = processor_seconds(session)
                found[name].append(page.evaluate(ASK, fields) | {"busy": 1e3 * (processor_seconds(session) - before)})
        browser.close()
    served.shutdown()
    print(f"{'space':30} {'rows':>10} {'calls':>6} {'answer':>8} {'worker':>8} {'processor':>9}   rows/s of each")
    for name, runs in found.items():
        times = [statistics.median(run[key] for run in runs) / 1e3 for key in ("whole", "worked", "busy")]
        rows, rates = runs[0]["rows"], " ".join(f"{runs[0]['rows'] / t:11,.0f}" for t in times)
        print(f"{name:30} {rows:10,} {runs[0]['calls']:6} {times[0]:6.2f} s {times[1]:6.2f} s {times[2]:7.2f} s {rates}")


if __name__ == "__main__":
    main()
