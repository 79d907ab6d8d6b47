"""The built wheel in Pyodide under Node gives the answers that CPython gives, from the snapshot and from a plain boot."""

from __future__ import annotations

import json
import math
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
DIST = Path(os.environ.get("ROOFLINE_DIST", ROOT / "dist"))
sys.path.insert(0, str(ROOT / "site" / "py"))

import bridge  # noqa: E402

sys.path.insert(0, str(ROOT / "site" / "build"))
import fetch  # noqa: E402

FORMS = [
    bridge.DEFAULT, {"model": "llama-3.1-8b", "hardware": "rtx-4090", "weights": "Q4_K_M"}, {"model": "mixtral-8x7b", "hardware": "h100-sxm", "devices": "2", "batch": "64"},
    {"model": "deepseek-v3", "hardware": "h200-sxm", "devices": "8", "batch": "16"}, {"model": "llama-3.1-405b", "hardware": "h100-sxm", "weights": "bf16"},
    {"hardware": "h100-sxm", "draft": "3", "rate": "0.5", "chunk": "512"},
]
REQUESTS = [("evaluate", {"form": f, "full": True}) for f in FORMS] + [
    ("sweep", {"form": bridge.DEFAULT, "axis": "devices"}), ("levers", {"form": bridge.DEFAULT}), ("layouts", {"form": bridge.DEFAULT}), ("explain", {"form": bridge.DEFAULT, "key": "total"}),
    ("export", {"form": bridge.DEFAULT}), ("link", {"form": bridge.DEFAULT}), ("from_link", {"fragment": "s=1&batch=3"}), ("catalogue", {}),
    ("evaluate", {"form": {"batch": "0"}}), ("evaluate", {"form": {"model": "lama"}}), ("parse_config", {"text": "{"}), ("nonsense", {}), ("ping", {}),
]


def same(a, b, path=""):
    """Equal, numbers to 1e-12."""
    assert type(a) is type(b) or {type(a), type(b)} <= {int, float}, f"{path}: {a!r} {b!r}"
    if isinstance(a, dict):
        assert list(a) == list(b), path
        for key in a:
            same(a[key], b[key], f"{path}/{key}")
    elif isinstance(a, list):
        assert len(a) == len(b), path
        for i, (x, y) in enumerate(zip(a, b)):
            same(x, y, f"{path}[{i}]")
    elif isinstance(a, float):
        assert math.isclose(a, b, rel_tol=1e-12, abs_tol=0), f"{path}: {a!r} {b!r}"
    else:
        assert a == b, path


def _number(text: str):
    try:
        return float(text)
    except ValueError:
        return text


@pytest.mark.node
@pytest.mark.parametrize("mode", ["snapshot", "plain"])
def test_pyodide_gives_the_answers_of_cpython(mode):
    if not (DIST / "index.html").exists():
        pytest.skip("dist/ is not built")
    node = shutil.which("node") or fetch._wheel_node(Path(sys.executable))
    if not node:
        pytest.skip("no Node")
    lines = [json.dumps({"v": 1, "id": i, "method": m, "params": p}) for i, (m, p) in enumerate(REQUESTS)]
    done = subprocess.run([node, ROOT / "site" / "build" / "run_node.mjs", DIST, mode], input="\n".join(lines), capture_output=True, text=True, timeout=180)
    answers = done.stdout.splitlines()
    assert len(answers) == len(lines), done.stderr[-500:]
    for line, text in zip(lines, answers):
        mine, theirs = json.loads(bridge.handle(line)), json.loads(text)
        if '"export"' in line:  # files inside JSON: their numbers are compared as numbers too
            for answer in (mine, theirs):
                answer["result"] = [json.loads(answer["result"]["json"]), [[_number(c) for c in row.split(",")] for row in answer["result"]["csv"].splitlines()]]
        same(mine, theirs, line[:80])


@pytest.mark.node
def test_the_same_sources_give_the_same_snapshot(tmp_path):
    """Clocks, entropy, folders and the environment leave no trace (another version of Node may: it may lay out its strings otherwise)."""
    built = ROOT / ".cache" / "build" / "snapshot.bin"
    node = shutil.which("node") or fetch._wheel_node(Path(sys.executable))
    if not built.exists() or not node:
        pytest.skip("nothing is built here")
    wheel = next((ROOT / ".cache" / "build" / "wheel").glob("*.whl"))
    again, bridge_copy = tmp_path / "snapshot.bin", tmp_path / "another name.py"
    shutil.copy(ROOT / "site" / "py" / "bridge.py", bridge_copy)
    subprocess.run([node, ROOT / "site" / "build" / "snapshot.mjs", ROOT / ".cache" / f"pyodide-{fetch.PYODIDE_VERSION}", wheel, bridge_copy, again],
                   check=True, capture_output=True, timeout=180, env={**os.environ, "LANG": "C", "USER": "somebody"})
    assert again.read_bytes() == built.read_bytes()
