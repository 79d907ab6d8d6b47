"""Run with the build's Python: what the views need that are loaded when first opened.

usage: views.py FOLDER. Writes figures.json (Bokeh's figures as json_item, by name) and measured.json (the shipped measurements beside their predictions), and copies the course and the glossary.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

from prerender import figure

from roofline import charts_views, view_measured

SITE = Path(__file__).resolve().parents[1]


def main() -> None:
    folder = Path(sys.argv[1])
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name in ("lessons.json", "glossary.json"):
        shutil.copy(SITE / "learn" / name, folder / name)
    measured = view_measured.measured()
    _write(folder / "measured.json", measured | {"names": view_measured.names(measured["columns"])})
    _write(folder / "figures.json", {name: figure(charts_views.figure(name), name) for name in charts_views.FIGURES})


def _write(path: Path, value) -> None:
    path.write_text(json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")), "utf-8")


if __name__ == "__main__":
    main()
