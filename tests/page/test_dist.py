"""The built files: what must be there, how large, and that no name, no hash and no version disagrees with another."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import struct

import pytest
from steps import DIST

pytestmark = pytest.mark.skipif(not (DIST / "manifest.json").exists(), reason="dist/ is not built")


@pytest.fixture(scope="module")
def manifest():
    return json.loads((DIST / "manifest.json").read_text())


def test_every_file_is_the_one_the_manifest_lists(manifest):
    for asset in manifest["assets"]:
        assert hashlib.sha256((DIST / asset["path"]).read_bytes()).hexdigest() == asset["sha256"], asset["path"]
    listed = {a["path"] for a in manifest["assets"]}
    stray = {p.relative_to(DIST).as_posix() for p in DIST.rglob("*") if p.is_file()} - listed
    assert stray == {"manifest.json", "sw.js", ".nojekyll", "robots.txt"}
    assert all(a["path"] in (DIST / "sw.js").read_text() for a in manifest["assets"])


def test_a_first_visit_stays_small(manifest):
    size = lambda tiers: sum(a["gzip"] for a in manifest["assets"] if a["tier"] in tiers)
    assert size(["shell"]) <= 450_000
    assert size(["shell", "engine"]) <= 10_000_000


def test_the_snapshot_fits_the_heap_it_is_restored_into():
    image = gzip.decompress(next(DIST.glob("python-*/snapshot.bin")).read_bytes())
    length, memory, *_ = struct.unpack("<5I", image[:20])  # see site/js/memory.mjs
    assert length == len(image) and memory <= 30 * 2**20


def test_bokeh_of_the_page_is_bokeh_of_the_build():
    bokeh = pytest.importorskip("bokeh")
    script = next(DIST.glob("bokeh-*/bokeh.min.js"))
    assert script.parent.name == f"bokeh-{bokeh.__version__}"
    assert f'"{bokeh.__version__}"' in script.read_text("utf-8")[:400_000] or bokeh.__version__ in script.read_text("utf-8")


def test_the_page_names_no_other_host():
    for name in ("index.html", "sw.js"):
        text = (DIST / name).read_text("utf-8")
        text = re.sub(r'"(?:source|url|note|price_source|basis)":"(?:[^"\\]|\\.)*"', '""', text)  # citations are text, not requests
        hosts = set(re.findall(r"https?://([\w.-]+)", text)) - {"www.w3.org"}
        assert not hosts, hosts
