#!/usr/bin/env python3
"""Build, serve or test the page with one command, from a bare machine.

    python3 build.py serve [--port 8000]     build what changed, then serve it on this machine
    python3 build.py test [pytest options]   build, then run every test
    python3 build.py build                   write the static site to dist/
    python3 build.py clean                   remove what the build made (downloads stay in .cache/)

Only the standard library is needed to start: the first run makes `.venv`, fetches what is pinned
(each file checked by its sha256) into `.cache`, and says what it is doing; later runs only redo what changed.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT / "site" / "build"))


def main(argv: list[str]) -> int:
    if sys.version_info < (3, 11):
        print(f"Roofline needs Python 3.11 or newer; this is {sys.version.split()[0]}.", file=sys.stderr)
        return 2
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("command", choices=["build", "serve", "test", "clean"])
    parser.add_argument("--port", type=int, default=8000, help="serve: the port to start looking from (default 8000)")
    parser.add_argument("--numpy-wheel", type=Path, help="NumPy's WebAssembly wheel, if you have it (else it is fetched)")
    parser.add_argument("--no-numpy", action="store_true", help="leave NumPy out: the page then has no Explore view")
    parser.add_argument("--site-url", default=os.environ.get("ROOFLINE_SITE_URL", ""), metavar="URL",
                        help="where the site will stand, for the picture in previews of links (default: ROOFLINE_SITE_URL; the page itself needs no address)")
    parser.add_argument("--force", action="store_true", help="redo every step")
    options, rest = parser.parse_known_args(argv)
    if options.site_url:
        options.site_url = options.site_url.rstrip("/") + "/"
    if rest and options.command != "test":
        parser.error(f"unknown option {rest[0]}")

    from common import BuildError

    try:
        return COMMANDS[options.command](options, rest)
    except BuildError as error:
        print(f"\nbuild.py: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def build(options, _rest=()) -> int:
    """Write dist/, redoing only what its inputs changed."""
    from assemble import assemble
    from common import fingerprint, read_stamp, say, write_stamp

    started = time.monotonic()
    inputs = [ROOT / p for p in ("build.py", "pyproject.toml", "roofline", "site", "requirements/build.txt")]
    stamp = fingerprint(inputs, extra=[options.no_numpy, str(options.numpy_wheel), options.site_url])
    dist = ROOT / "dist"
    if not options.force and (dist / "index.html").exists() and read_stamp("dist") == stamp:
        say(f"dist/ is up to date ({time.monotonic() - started:.1f} s)")
        return 0
    python = environment("build")
    assemble(python, dist, options)
    write_stamp("dist", stamp)
    say(f"dist/ is ready ({time.monotonic() - started:.1f} s)")
    return 0


def serve(options, _rest) -> int:
    build(options)
    from server import serve_forever

    serve_forever(ROOT / "dist", options.port)
    return 0


def test(options, rest) -> int:
    """Run the tests; whatever follows on the command line goes to pytest."""
    from common import say
    from fetch import chromium

    python = environment("test")
    build(options)
    browser = chromium(python)
    say(f"testing with {browser}")
    env = {**os.environ, "ROOFLINE_CHROMIUM": str(browser), "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": "0"}
    return subprocess.run([python, "-m", "pytest", *rest], cwd=ROOT, env=env).returncode


def clean(_options, _rest) -> int:
    for path in (ROOT / "dist", ROOT / ".cache" / "steps"):
        shutil.rmtree(path, ignore_errors=True)
    return 0


def environment(kind: str) -> Path:
    """Make .venv hold the pinned packages of requirements/<kind>.txt; return its Python."""
    from common import BuildError, digest_of, read_stamp, run, say, write_stamp

    venv = ROOT / ".venv"
    python = venv / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    lock = ROOT / "requirements" / f"{kind}.txt"
    stamp = digest_of(lock) + sys.version + str(ROOT)
    if python.exists() and read_stamp(f"venv-{kind}") == stamp:
        return python
    if not python.exists() or not shutil.which(python):
        say("making .venv")
        shutil.rmtree(venv, ignore_errors=True)
        made = subprocess.run([sys.executable, "-m", "venv", str(venv)], capture_output=True, text=True)
        if made.returncode and shutil.which("apt-get") and getattr(os, "geteuid", lambda: 1)() == 0:
            say("installing Debian's python3-venv")
            run(["apt-get", "update", "-qq"], what="apt-get update")
            run(["apt-get", "install", "-y", "-qq", "python3-venv"], what="installing python3-venv")
            made = subprocess.run([sys.executable, "-m", "venv", str(venv)], capture_output=True, text=True)
        if made.returncode:
            raise BuildError("this Python cannot make a virtual environment; install its venv module (Debian: python3-venv).")
    say(f"installing the pinned packages of requirements/{kind}.txt")
    run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--require-hashes", "--only-binary=:all:", "-r", lock],
        what=f"installing requirements/{kind}.txt")
    write_stamp(f"venv-{kind}", stamp)
    return python


COMMANDS = {"build": build, "serve": serve, "test": test, "clean": clean}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
