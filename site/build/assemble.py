"""Put dist/ together: wheel, figures, snapshot, hashed folders, manifest, service worker. Deterministic; every step is redone only if its inputs changed.

dist/ has one folder per thing that changes on its own, named by its content or version, so that an update downloads little and
old pages never meet new files: app-HASH (page), python-HASH (wheel, bridge, snapshot), bokeh-VERSION, pyodide-VERSION, numpy-VERSION.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import shutil
import struct
import zipfile
from html import escape
from pathlib import Path

import fetch
from common import CACHE, ROOT, digest_of, fingerprint, run, say, step

SITE = ROOT / "site"
WORK = CACHE / "build"
STYLES = ("page.css", "parts.css")  # they stand in the HTML, for the first paint
EPOCH = "1577836800"  # the date inside the wheel, so that the same sources give the same bytes


def assemble(python: Path, dist: Path, options) -> None:
    WORK.mkdir(parents=True, exist_ok=True)
    pyodide = fetch.pyodide(python)
    wheels = {name: fetch.pure_wheel(python, name) for name in fetch.PURE_WHEELS}
    numpy = None if options.no_numpy else fetch.numpy_wheel(python, options.numpy_wheel)
    force = options.force
    package = [ROOT / "roofline", ROOT / "pyproject.toml", ROOT / "README.md"]
    wheel_stamp = fingerprint(package)
    step("wheel", "building the wheel", wheel_stamp, [WORK / "wheel"], lambda: _wheel(python), force)
    wheel = next((WORK / "wheel").glob("*.whl"))
    image = WORK / "snapshot.bin"
    step("snapshot", "taking the memory snapshot (Pyodide under Node)",
         fingerprint([wheel, SITE / "py", SITE / "build" / "snapshot.mjs", SITE / "js" / "memory.mjs"], [fetch.PYODIDE_VERSION]), [image],
         lambda: _snapshot(python, pyodide, wheel, image), force)
    page = WORK / "prerender.json"
    step("prerender", "computing the default answer and its figures (CPython, Bokeh)",
         fingerprint([*package, SITE / "py", SITE / "build" / "prerender.py", SITE / "build" / "still.py", SITE / "i18n", ROOT / "requirements" / "build.txt"]), [page, WORK / "preview.png"],
         lambda: run([python, SITE / "build" / "prerender.py", page], what="prerendering", env={"PYTHONPATH": str(ROOT), "PYTHONHASHSEED": "0"}), force)
    views = WORK / "views"
    step("views", "making the views that are loaded on demand", fingerprint([*package, SITE / "learn", SITE / "build" / "views.py", ROOT / "requirements" / "build.txt"]),
         [views / "figures.json"], lambda: run([python, SITE / "build" / "views.py", views], what="making the views", env={"PYTHONPATH": str(ROOT), "PYTHONHASHSEED": "0"}), force)
    painted = WORK / "paint.json"
    step("paint", "drawing the first answer with the page's own modules (Node)", fingerprint([page, SITE / "js", SITE / "i18n", SITE / "build" / "paint.mjs"]), [painted],
         lambda: painted.write_text(run([fetch.node(python), SITE / "build" / "paint.mjs", page, SITE / "i18n" / "en.json"], what="drawing the first answer"), "utf-8"), force)
    say("writing dist/")
    fresh = WORK / "dist"
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir()
    _write_site(fresh, json.loads(page.read_text("utf-8")), json.loads(painted.read_text("utf-8")), pyodide, wheel, image, wheels, numpy, views, options.site_url)
    shutil.rmtree(dist, ignore_errors=True)
    fresh.rename(dist)


def _wheel(python: Path) -> None:
    shutil.rmtree(WORK / "wheel", ignore_errors=True)
    (WORK / "wheel").mkdir()
    run([python, "-m", "flit_core.wheel", "--outdir", WORK / "wheel"], what="building the wheel", env={"SOURCE_DATE_EPOCH": EPOCH})


def _snapshot(python: Path, pyodide: Path, wheel: Path, image: Path) -> None:
    words = run([fetch.node(python), SITE / "build" / "snapshot.mjs", pyodide, wheel, SITE / "py" / "bridge.py", image], what="the memory snapshot")
    made = json.loads(words.strip().splitlines()[-1])
    say(f"  {made['modules']} modules, {made['raw'] / 1e6:.1f} MB raw, {made['packed'] / 1e6:.2f} MB packed")


def _write_site(dist: Path, page: dict, painted: dict, pyodide: Path, wheel: Path, image: Path, wheels: dict, numpy: Path | None, views: Path, site_url: str) -> None:
    """Copy everything into its folder, then write what names it: manifest, service worker, index."""
    put = _Putter(dist)
    put.folder(f"pyodide-{fetch.PYODIDE_VERSION}", {n: pyodide / n for n in fetch.PYODIDE_FILES if n != "pyodide-lock.json"}, "engine", {"python_stdlib.zip": "extra"})
    python = put.folder("python", {"snapshot.bin": image, wheel.name: wheel, "bridge.py": SITE / "py" / "bridge.py", **{w.name: w for w in wheels.values()}},
                        "engine", dict.fromkeys([wheel.name, "bridge.py", *(w.name for w in wheels.values())], "extra"))
    bokeh = put.folder(f"bokeh-{page['bokeh']['version']}", {"bokeh.min.js": Path(page["bokeh"]["js"])}, "shell")
    if numpy:
        put.folder("numpy-" + numpy.name.split("-")[1], {numpy.name: numpy}, "extra")
    whole = page["catalogue"]
    lists = WORK / "catalogue.json"  # the lists of models and chips are wanted when one is chosen; the page itself names only its examples
    lists.write_text(json.dumps({k: whole[k] for k in ("models", "chips")}, ensure_ascii=False, separators=(",", ":")), "utf-8")
    drawn = WORK / "charts.json"  # Bokeh's figures come with Bokeh
    drawn.write_text(json.dumps(page["figures"], ensure_ascii=False, separators=(",", ":")), "utf-8")
    ours = (SITE / "js" / "presets.mjs").read_text("utf-8")
    named = {k: [row for row in whole[k] if f'"{row["id"]}"' in ours] for k in ("models", "chips")}
    names = {"preview.png": WORK / "preview.png", "catalogue.json": lists, "charts.json": drawn, **{p.relative_to(SITE).as_posix(): p for d in ("css", "js", "i18n", "icons", "hub") for p in sorted((SITE / d).rglob("*")) if p.is_file() and p.name not in ("sw.js", "en.json", *STYLES)}}
    for name in [n for n in names if n.endswith(".mjs")]:
        lean = WORK / "lean" / name
        lean.parent.mkdir(parents=True, exist_ok=True)
        lean.write_text(_lean_js(names[name].read_text("utf-8")), "utf-8")
        names[name] = lean
    # English is in the HTML; other languages, the views and the icons of an installed page are not needed for the first paint.
    late = lambda n: n.startswith(("i18n/", "js/views/", "hub/")) or n in ("css/views.css", "catalogue.json") or n.endswith(".png")
    app = put.folder("app", names, "shell", {n: "extra" if n == "preview.png" else "engine" for n in names if late(n)})
    on_demand = put.folder("views", {p.name: p for p in views.iterdir()}, "engine", {"measured.json": "extra"})
    by_name = {Path(a["path"]).name: {k: a[k] for k in ("path", "bytes", "sha256")} for a in put.assets}
    build = {
        "version": page["version"], "pyodide": f"pyodide-{fetch.PYODIDE_VERSION}/", "app": app, "views": on_demand,  "snapshot": by_name["snapshot.bin"] | {"constants": _constants(image)}, "wheel": by_name[wheel.name],
        "bridge": by_name["bridge.py"], "micropip": by_name[wheels["micropip"].name], "packaging": by_name[wheels["packaging"].name],
        "numpy": by_name[numpy.name] if numpy else None, "wasm": by_name["pyodide.asm.wasm"], "lock": _lock(pyodide, by_name, wheels, numpy),
    }
    build["build"] = hashlib.sha256(json.dumps([build, [a["sha256"] for a in put.assets], page, painted, site_url], sort_keys=True).encode()).hexdigest()[:12]
    index = (SITE / "index.html").read_text("utf-8")
    modules = "\n".join(f'<link rel="modulepreload" href="{app}js/{p.name}">' for p in sorted((SITE / "js").glob("*.mjs")) if p.name not in ("worker.mjs", "memory.mjs"))
    here = f'<link rel="canonical" href="{escape(site_url)}">\n<meta property="og:url" content="{escape(site_url)}">' if site_url else ""
    index = _fill(index, {
        "site_meta": here, "style": "".join(_lean_css((SITE / "css" / name).read_text("utf-8")) for name in STYLES),
        "app": app, "bokeh": f"{bokeh}bokeh.min.js", "site": site_url, "build": build["build"], "version": page["version"], "modulepreload": modules, "build_json": _block(build),
        "default_json": _block(page["default"] | {"lever": painted["lever"]}), "catalogue_json": _block(whole | named),
        "words_json": _block(json.loads((SITE / "i18n" / "en.json").read_text("utf-8"))), **page["html"], **painted["html"],
    })
    put.file("index.html", index.encode(), "shell")
    put.file("app.webmanifest", (SITE / "app.webmanifest").read_text("utf-8").replace("{{app}}", app).encode(), "shell")
    put.file(".nojekyll", b"", None)
    put.file("robots.txt", b"User-agent: *\nAllow: /\n", None)
    listed = [{k: a[k] for k in ("path", "bytes", "sha256", "gzip", "tier")} for a in put.assets]
    put.file("manifest.json", json.dumps({"build": build["build"], "version": page["version"], "assets": listed}, indent=1).encode(), None)
    worker = (SITE / "js" / "sw.js").read_text("utf-8")
    cached = [[a["path"], a["sha256"], a["tier"]] for a in listed]
    put.file("sw.js", _fill(worker, {"build": build["build"], "assets_json": json.dumps(cached, separators=(",", ":"))}).encode(), None)
    totals = {tier: sum(a["gzip"] for a in listed if a["tier"] == tier) for tier in ("shell", "engine", "extra")}
    say(f"  build {build['build']}: first tier {totals['shell'] / 1e3:.0f} kB, engine {totals['engine'] / 1e6:.2f} MB, on demand {totals['extra'] / 1e6:.2f} MB (compressed)")


def _constants(image: Path) -> int:
    """Bytes of the engine's constant data, as memory.mjs wrote them into the snapshot's head."""
    with gzip.open(image) as file:
        return struct.unpack("<5I", file.read(20))[3]


def _lean_js(text: str) -> str:
    """A module without the comments that have a line of their own."""
    return "".join(line for line in text.splitlines(keepends=True) if not re.match(r"\s*(//|/\*\*.*\*/\s*$)", line))


def _lean_css(text: str) -> str:
    """A style sheet without its comments and line breaks."""
    return re.sub(r"\s+", " ", re.sub(r"/\*.*?\*/", "", text, flags=re.S)).replace("; }", "}").replace(" { ", "{").replace("} ", "}")


class _Putter:
    """Writes files into dist/ and keeps the list of assets."""

    def __init__(self, dist: Path):
        self.dist, self.assets = dist, []

    def folder(self, name: str, files: dict, tier: str, tiers: dict | None = None) -> str:
        """Copy {name: path} into a folder; a name without a version gets the hash of its contents. Returns "folder/"."""
        if "-" not in name:
            total = hashlib.sha256("".join(f"{n}\0{digest_of(p)}\n" for n, p in sorted(files.items())).encode())
            name = f"{name}-{total.hexdigest()[:10]}"
        for target, path in sorted(files.items()):
            self.file(f"{name}/{target}", path.read_bytes(), (tiers or {}).get(target, tier))
        return name + "/"

    def file(self, path: str, data: bytes, tier: str | None) -> None:
        target = self.dist / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
        if tier:
            packed = path.endswith((".bin", ".whl", ".zip", ".png"))
            self.assets.append({"path": path, "bytes": len(data), "sha256": hashlib.sha256(data).hexdigest(), "tier": tier,
                                "gzip": len(data) if packed else len(gzip.compress(data, 9, mtime=0))})


def _lock(pyodide: Path, by_name: dict, wheels: dict, numpy: Path | None) -> dict:
    """Pyodide's lock file, cut down to what the page may load and with our own files' names and hashes."""
    whole = json.loads((pyodide / "pyodide-lock.json").read_text())
    packages = {}
    for name, file in (*wheels.items(), *([("numpy", numpy)] if numpy else [])):
        entry = dict(whole["packages"][name])
        entry |= {"file_name": by_name[file.name]["path"], "sha256": by_name[file.name]["sha256"]}
        packages[name] = entry
    return {"info": whole["info"], "packages": packages}


def _block(value) -> str:
    """JSON that can stand inside a <script type="application/json">."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


def _fill(text: str, values: dict) -> str:
    for name, value in values.items():
        text = text.replace("{{" + name + "}}", value)
    left = text.find("{{")
    if left >= 0:
        raise AssertionError(f"a placeholder was not filled: {text[left:left + 40]}")
    return text


def wheel_names(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as archive:
        return archive.namelist()
