"""Roofline charts in files: SVG and PNG without a display or a browser, interactive HTML that works offline.

`from_report`, `compare`, `sweep`, `from_trace`, `from_measured` and `from_points` make a Chart; `Chart.save("roof.svg")` writes it, and a
notebook shows it by itself. The page's figure code (`charts.py`) draws the HTML; labels and places are the same everywhere.
"""

from .build import compare, from_measured, from_report, sweep
from .chart import Chart, Note, Point, Roof, Trail
from .points import from_points, read_points, read_roof
from .traced import chip_roofs, from_trace, machine_roofs

__all__ = [
    "Chart",
    "Note",
    "Point",
    "Roof",
    "Trail",
    "chip_roofs",
    "compare",
    "from_measured",
    "from_points",
    "from_report",
    "from_trace",
    "machine_roofs",
    "read_points",
    "read_roof",
    "sweep",
]
