"""A roofline chart as data: roofs, points, trails and notes; laid out once, drawn by Bokeh, as SVG or as PNG.

`layout` turns a Chart into the columns that `charts.roofline_figure` takes (the page's own figure code) and gives every label
a place of its own. Points stand at x = FLOPs / bytes and y = FLOPs / seconds; a point without a time stands on its roof, hollow.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..errors import InputError
from ..units import format_number, format_quantity
from .themes import SERIES, palette

MARKERS = ("circle", "square", "diamond", "triangle", "inverted_triangle", "cross")
LABELLED = 24  # points that get a name in the figure; the rest say theirs on hover and in the table


@dataclass(frozen=True, slots=True, kw_only=True)
class Roof:
    """A ceiling. value [FLOP/s] for kind "compute", [bytes/s] for "memory"; level: the memory whose bytes it limits; main: drawn strong."""

    name: str
    value: float
    kind: str
    level: str = ""
    main: bool = True
    color: str = ""

    def __post_init__(self):
        if self.kind not in ("compute", "memory"):
            raise InputError("roof", self.name, "must be a compute roof (FLOP/s) or a memory roof (bytes/s)")
        if not 1 <= self.value <= 1e25:
            raise InputError(f"roof {self.name}", self.value, "must be from 1 to 1e25")


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """Something that ran, or is bound to run. x [FLOP/byte], y [FLOP/s].

    timed: y was measured (or is an expectation), else it is the roof. size: diameter [px]; strong: a phase rather than one of its parts.
    low, high: a band [FLOP/s]. color: a role of the theme. group: what the legend calls its colour.
    """

    name: str
    x: float
    y: float
    timed: bool = True
    marker: str = "circle"
    size: float = 11.0
    color: str = "plain"
    strong: bool = False
    label: bool = True
    low: float | None = None
    high: float | None = None
    tip: str = ""
    group: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trail:
    """A path of points, as a batch or a context grows. points: ((x, y), ...); labels: text at each, "" for none."""

    name: str
    points: tuple
    labels: tuple = ()
    color: str = "plain"


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """A remark at a place: x [FLOP/byte], y [FLOP/s]."""

    x: float
    y: float
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A roofline chart. ceilings: ((x0, x1, y, label, colour), ...), dashed pieces of further roofs such as a network's.

    shade: fill the fields under the main roofs. legend: ((label, colour, marker), ...) beside what the points' groups give.
    """

    title: str = "Roofline"
    subtitle: str = ""
    roofs: tuple = ()
    points: tuple = ()
    trails: tuple = ()
    notes: tuple = ()
    ceilings: tuple = ()
    legend: tuple = ()
    x_label: str = "Arithmetic intensity [FLOP/byte]"
    y_label: str = "FLOP/s"
    shade: bool = True
    theme: str = "light"
    width: int = 960
    height: int = 600
    description: str = ""
    rows: tuple = ()  # the table under the chart: dicts of text

    def __post_init__(self):
        palette(self.theme)
        for name in ("width", "height"):
            if not 240 <= getattr(self, name) <= 4000:
                raise InputError(name, getattr(self, name), "must be from 240 to 4,000 pixels")
        if not self.roofs:
            raise InputError("roof", "none", "is no roofline; give at least one compute roof and one memory roof")
        for kind in ("compute", "memory"):
            if not any(r.kind == kind for r in self.roofs):
                raise InputError(
                    "roof", ", ".join(r.name for r in self.roofs), f"lacks a {kind} roof ({'FLOP/s' if kind == 'compute' else 'bytes/s'})"
                )

    # Ways out; each is in output.py.
    def svg(self) -> str:
        """The chart as SVG text."""
        from .output import to_svg

        return to_svg(self)

    def png(self, scale: float = 2.0) -> bytes:
        """The chart as a PNG image."""
        from .output import to_png

        return to_png(self, scale)

    def html(self) -> str:
        """The chart as one self-contained, interactive HTML page."""
        from .output import to_html

        return to_html(self)

    def save(self, path) -> str:
        """Write the chart to a file whose name ends in .html, .svg or .png; returns the path."""
        from .output import save

        return save(self, path)

    def with_theme(self, theme: str) -> Chart:
        """The same chart in another theme."""
        return replace(self, theme=theme)

    def _repr_html_(self) -> str:
        return self.svg()


def describe(chart: Chart) -> str:
    """The chart in words, for who cannot see it."""
    roofs = "; ".join(f"{r.name} {format_quantity(r.value, 'FLOP/s' if r.kind == 'compute' else 'B/s')}" for r in chart.roofs)
    points = "; ".join(f"{p.name} at {format_number(p.x)} FLOP/byte and {format_quantity(p.y, 'FLOP/s')}" for p in chart.points[:40])
    return f"Roofs: {roofs}. " + (f"Points: {points}." if points else "No points.")


def series(i: int) -> str:
    """The colour role of the i-th series of a comparison."""
    return f"series{i % SERIES}"
