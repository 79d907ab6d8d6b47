"""Speed and size of the page, measured in one run and printed as ratios.

    .venv/bin/python benchmarks/page.py [--rounds 3] [--edits 60]

Boots: from the memory snapshot; plainly (interpreter, micropip, wheel); and what a page with NumPy and Bokeh in the browser pays
(interpreter, NumPy, Bokeh, one figure). Booting is timed from the start of Python's worker; opening the page adds its HTML and first paint. Edits: from the input event of a slider to the frame in which the chart shows the answer.
The rounds alternate, so that a busy machine slows all alike: trust the ratios, not the seconds.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "site" / "build"))

from playwright.sync_api import sync_playwright  # noqa: E402

import fetch  # noqa: E402
import server  # noqa: E402

FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"]
PAUSE_S = 2.0  # before each visit, in a tab that stands: the browser throws away what the last one stored and starts the tab's process, and would do so meanwhile
BOKEH_NEEDS = ("bokeh==3.9.2", "narwhals", "jinja2", "packaging", "xyzservices")

# Runs in the page: Pyodide with NumPy and Bokeh, and a first figure as JSON, the way a page without a build step does it.
HEAVY = """async ([base, wheels, numpy]) => {
  const started = performance.now();
  const { loadPyodide } = await import(base + "pyodide.mjs");
  const pyodide = await loadPyodide({ indexURL: base, lockFileContents: { info: %s, packages: {} }, packageBaseUrl: base });
  const booted = performance.now();
  for (const wheel of [numpy, ...wheels]) pyodide.unpackArchive(await (await fetch(wheel)).arrayBuffer(), "wheel");
  pyodide.runPython(`
import sys, types, importlib
importlib.invalidate_caches()
for name in ("markupsafe", "yaml", "tornado", "PIL", "PIL.Image", "contourpy"):  # compiled or not needed for one figure
    sys.modules[name] = types.ModuleType(name)
sys.modules["markupsafe"].Markup = sys.modules["markupsafe"].EscapeFormatter = str
sys.modules["markupsafe"].escape = sys.modules["markupsafe"].soft_str = str
sys.modules["PIL"].Image = sys.modules["PIL.Image"]
`);
  pyodide.runPython(`
import json
from bokeh.embed import json_item
from bokeh.plotting import figure
plot = figure(x_axis_type="log", y_axis_type="log")
plot.line([1, 10, 100], [1, 10, 10])
len(json.dumps(json_item(plot)))
`);
  return [booted - started, performance.now() - started];
}"""

EDIT = """async (steps) => {
  const slider = document.querySelector('[data-for="batch"]'), root = document.documentElement, times = [], answers = [];
  const frame = () => new Promise((done) => requestAnimationFrame(done));
  for (let i = 0; i < steps; i++) {
    const before = root.dataset.answered, started = performance.now();
    slider.value = String((4 + (i % 16)) / 2); // each differs from the one before, or no answer would come
    slider.dispatchEvent(new Event("input", { bubbles: true }));
    while (root.dataset.answered === before) await new Promise((done) => setTimeout(done, 0));
    answers.push(performance.now() - started);
    await frame();  // Bokeh paints in the next frame ...
    await new Promise((done) => setTimeout(done, 0));  // ... and this runs right after it
    times.push(performance.now() - started);
  }
  return { times, answers };
}"""


def without_snapshot(dist: Path, folder: Path) -> Path:
    """A copy of the page that boots Python plainly: all files are the same, only the snapshot is not named."""
    shutil.copytree(dist, folder)
    index = folder / "index.html"
    text = re.sub(r'"snapshot": ?\{.*?\}', '"snapshot":null', index.read_text("utf-8"), count=1)
    assert '"snapshot":null' in text
    index.write_text(text, "utf-8")
    return folder


def boots(browser, url: str, plain_url: str, rounds: int, wheels: Path) -> dict:
    """{way: [(boot [ms], from opening the page [ms])]}."""
    found = {"snapshot": [], "second visit": [], "plain": [], "NumPy and Bokeh": []}
    info = json.dumps(json.loads((ROOT / ".cache" / f"pyodide-{fetch.PYODIDE_VERSION}" / "pyodide-lock.json").read_text())["info"])
    numpy = next(p for p in (ROOT / "dist").glob("numpy-*/*.whl")).relative_to(ROOT / "dist").as_posix()
    served, heavy = server.start(wheels)

    def ready(page, mode: str) -> tuple:
        page.wait_for_selector(f'html[data-ready="{mode}"]', state="attached", timeout=120_000)
        return tuple(page.evaluate("['ms', 'at'].map((key) => Number(document.getElementById('engine-state').dataset[key]))"))

    def fresh(**settings) -> tuple:
        context = browser.new_context(**settings)
        page = context.new_page()
        page.wait_for_timeout(PAUSE_S * 1e3)
        return context, page

    for _ in range(rounds):
        for mode, where in (("snapshot", url), ("plain", plain_url)):
            context, page = fresh()
            page.goto(where)
            found[mode].append(ready(page, mode))
            if mode == "snapshot":
                page.wait_for_selector("html[data-offline]", state="attached", timeout=60_000)
                page.wait_for_timeout(1000)  # what the service worker stored is written away
                page.reload()
                found["second visit"].append(ready(page, "snapshot"))
            context.close()
        context, page = fresh(bypass_csp=True)
        page.goto(url + "manifest.json")
        own = [f"{heavy}{p.name}" for p in sorted(wheels.glob("*.whl"))]
        page.route(f"{heavy}**", lambda route: route.fulfill(path=wheels / route.request.url.rsplit("/", 1)[1], headers={"Access-Control-Allow-Origin": "*"}))
        spent = page.evaluate(HEAVY % info, [f"{url}pyodide-{fetch.PYODIDE_VERSION}/", own, url + numpy])[1]
        found["NumPy and Bokeh"].append((spent, spent))
        context.close()
    served.shutdown()
    return found


def edits(browser, url: str, steps: int) -> dict:
    context = browser.new_context()
    page = context.new_page()
    page.goto(url)
    page.wait_for_selector("html[data-ready]", state="attached", timeout=120_000)
    page.mouse.move(9, 9)  # Bokeh's chart comes when the visitor stirs
    page.wait_for_selector("html[data-chart]", state="attached", timeout=30_000)
    page.wait_for_timeout(1500)
    page.evaluate(EDIT, 10)
    result = page.evaluate(EDIT, steps)
    context.close()
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--edits", type=int, default=60)
    parser.add_argument("--dist", type=Path, default=ROOT / "dist")
    options = parser.parse_args()
    manifest = json.loads((options.dist / "manifest.json").read_text())
    served, url = server.start(options.dist, "/roofline/")
    with tempfile.TemporaryDirectory() as temporary, sync_playwright() as playwright:
        wheels = Path(temporary) / "wheels"
        plain, plain_url = server.start(without_snapshot(options.dist, Path(temporary) / "plain"), "/roofline/")
        subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--disable-pip-version-check", "-d", wheels, *BOKEH_NEEDS], check=True, stderr=subprocess.DEVNULL)
        browser = playwright.chromium.launch(executable_path=os.environ.get("ROOFLINE_CHROMIUM") or str(fetch.chromium(Path(sys.executable))), args=FLAGS)
        times = boots(browser, url, plain_url, options.rounds, wheels)
        moved = edits(browser, url, options.edits)
        browser.close()
        plain.shutdown()
    served.shutdown()
    middle = {name: [statistics.median(column) for column in zip(*rows, strict=True)] for name, rows in times.items()}
    print(f"To a first answer of Python, median of {options.rounds} (booting, and from opening the page)")
    for name, (boot, opened) in middle.items():
        print(f"  {name:16s} {boot / 1e3:6.2f} s   {boot / middle['snapshot'][0]:5.1f} x the snapshot boot      {opened / 1e3:6.2f} s   {opened / middle['snapshot'][1]:5.1f} x")
    ordered = sorted(moved["times"])
    print(f"From an edit to the frame with its chart: median {statistics.median(ordered):.0f} ms, 95th percentile {ordered[int(0.95 * len(ordered)) - 1]:.0f} ms "
          f"(Python's answer shown after {statistics.median(moved['answers']):.0f} ms), {len(ordered)} edits")
    for tier, words in (("shell", "first tier"), ("engine", "engine"), ("extra", "on demand")):
        print(f"  {words:16s} {sum(a['gzip'] for a in manifest['assets'] if a['tier'] == tier) / 1e3:8.0f} kB compressed")
    print(f"  {'first visit':16s} {sum(a['gzip'] for a in manifest['assets'] if a['tier'] != 'extra') / 1e6:8.2f} MB compressed")


if __name__ == "__main__":
    main()
