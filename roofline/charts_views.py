"""Bokeh figures of the page's views: empty, of one kind, so that the page draws all of them with the same few sources.

Each figure NAME has the sources NAME.lines, NAME.points, NAME.arrows and NAME.labels (see COLUMNS); the page assigns whole columns.
Colour columns hold roles ("memory", "hue1"), which the page maps to its themes.
"""

from __future__ import annotations

from bokeh.core.properties import value
from bokeh.models import (
    Arrow,
    BoxSelectTool,
    ColumnDataSource,
    FixedTicker,
    HoverTool,
    MultiLine,
    NoOverlap,
    NormalHead,
    Plot,
    Scatter,
    TapTool,
    Text,
)

from .charts import FONT, TIP, _log_plot

THIN = "\u2009"
COLUMNS = {
    "lines": ("xs", "ys", "color", "width", "alpha", "dash"),
    "points": ("x", "y", "size", "marker", "color", "alpha", "title", "tip"),
    "arrows": ("x0", "y0", "x1", "y1", "color"),
    "labels": ("x", "y", "text", "color", "align", "dx", "dy"),
}
# name: (unit of x, unit of y, whether an arrow layer is needed, whether points can be picked)
FIGURES = {
    "queue": ("", "s", False, False),
    "experts": ("", "", False, False),
    "placement": ("", "", False, False),
    "arrows": ("", "", True, True),
    "front": ("", "", False, True),
    "measured": ("s", "s", False, True),
    "residuals": ("s", "", False, True),
    "own": ("", "", False, False),
    "capability": ("", "", False, True),
}


def figure(name: str) -> Plot:
    """One of FIGURES, empty."""
    x_unit, y_unit, arrows, pick = FIGURES[name]
    plot = _log_plot(name, {"x0": 1, "x1": 1e3, "y0": 1, "y1": 1e3}, " ", " ")
    for axis, unit in ((plot.below[0], x_unit), (plot.left[0], y_unit)):
        labels = seconds_labels() if unit == "s" else plain_labels()
        axis.ticker = FixedTicker(ticks=[t for t in labels if f"{t:e}"[0] in "125"], minor_ticks=[])
        axis.major_label_overrides, axis.major_label_policy = labels, NoOverlap(min_distance=8)
    for grid in plot.center:
        grid.ticker = FixedTicker(ticks=[10.0**e for e in range(-9, 22)])
    source = {kind: ColumnDataSource({c: [] for c in columns}, name=f"{name}.{kind}") for kind, columns in COLUMNS.items()}
    plot.add_glyph(
        source["lines"],
        MultiLine(
            xs="xs",
            ys="ys",
            line_color="color",
            line_width="width",
            line_alpha="alpha",
            line_dash="dash",
            line_cap="round",
            line_join="round",
        ),
    )
    if arrows:
        plot.add_layout(
            Arrow(
                source=source["arrows"],
                x_start="x0",
                y_start="y0",
                x_end="x1",
                y_end="y1",
                line_color="color",
                line_width=2,
                end=NormalHead(size=9, fill_color="color", line_color="color"),
                name=f"{name}.arrow",
            )
        )
    dots = Scatter(
        x="x", y="y", size="size", marker="marker", fill_color="color", fill_alpha="alpha", line_color="color", line_alpha=0.9
    )
    points = plot.add_glyph(source["points"], dots, selection_glyph=dots, nonselection_glyph=dots, name=f"{name}.dots")
    plot.add_glyph(
        source["labels"],
        Text(
            x="x",
            y="y",
            text="text",
            text_color="color",
            text_align="align",
            text_baseline="middle",
            x_offset="dx",
            y_offset="dy",
            text_font=value(FONT),
            text_font_size="12px",
        ),
    )
    plot.add_tools(
        HoverTool(renderers=[points], tooltips=TIP, attachment="horizontal")
    )
    if pick:
        plot.add_tools(TapTool(renderers=[points], name=f"{name}.tap"), BoxSelectTool(renderers=[points], name=f"{name}.brush"))
        plot.toolbar.active_drag = None
    return plot


def plain_labels(low: int = -4, high: int = 18) -> dict:
    """Labels {tick: text} of a log axis at 1 to 9 of each decade; the page shows as many as its range needs.

    >>> labels = plain_labels()
    >>> labels[0.5], labels[20.0], labels[5000.0], labels[1e6]
    ('0.5', '20', '5k', '1M')
    """
    prefixes = {0: "", 3: "k", 6: "M", 9: "G", 12: "T", 15: "P", 18: "E"}
    labels = {}
    for e in range(low, high):
        base = 3 * (e // 3) if e >= 0 else 0
        for m in range(1, 10):
            labels[float(f"{m}e{e}")] = f"{m * 10.0 ** (e - base):.6g}{prefixes[base]}"
    return labels


def seconds_labels() -> dict:
    """The same for times.

    >>> labels = seconds_labels()
    >>> [labels[t].replace(THIN, " ") for t in (5e-5, 0.002, 0.1, 20.0, 1000.0)]
    ['50 µs', '2 ms', '100 ms', '20 s', '1,000 s']
    """
    labels = {}
    for e in range(-7, 5):
        for m in range(1, 10):
            tick = float(f"{m}e{e}")
            unit, scale = ("ns", 1e9) if e < -6 else ("µs", 1e6) if e < -3 else ("ms", 1e3) if e < 0 else ("s", 1.0)
            labels[tick] = f"{round(tick * scale):,}{THIN}{unit}"
    return labels
