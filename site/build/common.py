"""What every build step shares: saying, running, hashing, remembering."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / ".cache"
_STARTED = time.monotonic()


class BuildError(Exception):
    """Something the person at the keyboard can act on; its text is one sentence."""


def say(text: str) -> None:
    print(f"[{time.monotonic() - _STARTED:6.1f} s] {text}", flush=True)


def run(command, *, what: str, cwd: Path = ROOT, env: dict | None = None, quiet: bool = True) -> str:
    """Run a command, return its output; on failure say which step failed and why, in its own last words."""
    command = [str(c) for c in command]
    try:
        done = subprocess.run(command, cwd=cwd, env={**os.environ, **(env or {})}, capture_output=quiet, text=True)
    except OSError as error:
        raise BuildError(f"{what} failed: {error}.") from error
    if done.returncode:
        words = "\n  ".join(line[:300] for line in (done.stderr or done.stdout or "").strip().splitlines()[-12:])
        raise BuildError(f"{what} failed (exit {done.returncode}).\n  {words}")
    return done.stdout or ""


def digest_of(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def fingerprint(paths, extra=()) -> str:
    """One hash over files and folders (names and contents), for "did anything change"."""
    total = hashlib.sha256(repr([sys.version_info[:2], *extra]).encode())
    for path in paths:
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if file.is_file() and "__pycache__" not in file.parts:
                total.update(f"{file.relative_to(ROOT).as_posix()}\0{digest_of(file)}\n".encode())
    return total.hexdigest()


def read_stamp(name: str) -> str:
    path = CACHE / "steps" / name
    return path.read_text() if path.exists() else ""


def write_stamp(name: str, value: str) -> None:
    path = CACHE / "steps" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(value)


def step(name: str, text: str, stamp: str, outputs, work, force: bool = False) -> bool:
    """Do `work()` unless its outputs exist and were made from the same inputs; return whether it was done."""
    if not force and read_stamp(name) == stamp and all(Path(o).exists() for o in outputs):
        return False
    say(text)
    write_stamp(name, "")
    work()
    write_stamp(name, stamp)
    return True
