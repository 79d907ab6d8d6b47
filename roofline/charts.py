"""Bokeh figures of a Report. The page embeds them once and then only assigns new columns; files are written from the same figures.

Bokeh is imported here and nowhere else. Every source and every model that the page restyles has a name, and colours
come in columns of their own ("color"), so that the page can map roles to its light and dark palettes.
"""

from __future__ import annotations

from bokeh.core.properties import value
from bokeh.models import (
    BasicTicker, ColumnDataSource, FixedTicker, Grid, HoverTool, LabelSet, LinearAxis, LinearScale, LogAxis, LogScale, MultiLine, NumeralTickFormatter,
    Patches, Plot, Range1d, ResetTool, Scatter, Segment, Text, WheelZoomTool,
)
from bokeh.models.tools import PanTool

from .chart_data import decade_labels, roofline_sources
from .plot.themes import palette as theme_palette

PALETTE = theme_palette("light")
FONT = "system-ui, sans-serif"
TIP = "<div class='tip'><b>@title</b><br>@tip</div>"  # what stands by the pointer
_FONT = value(FONT)  # a font name given to a glyph would be taken for a column


def roofline_figure(report: dict | None = None, *, columns: dict | None = None, palette: dict = PALETTE,
                    x_label: str = "Work per byte: FLOP for each byte of weights and KV cache", y_label: str = "FLOP/s per chip") -> Plot:
    """The roofline chart: fields, roofs, ridge, ceilings, operators, expectations and the two phases.

    report: `Report.to_dict()`, or None for an empty figure of the same models; columns: ready ones instead (plot/layout.py makes them
    for figures in files); palette: colours of axes and grid.
    """
    columns = columns or (roofline_sources(report, palette) if report else {name: {} for name in SOURCES})
    span = columns.get("range") or {"x0": 0.1, "x1": 1e4, "y0": 1e11, "y1": 1e15}
    plot = _log_plot("roofline", span, x_label, y_label, palette)
    taken = lambda name: {c: v for c, v in (columns.get(name) or {}).items() if c in SOURCES[name]}
    source = {name: ColumnDataSource(taken(name) or {c: [] for c in SOURCES[name]}, name=f"roofline.{name}") for name in SOURCES}
    add = plot.add_glyph
    add(source["fields"], Patches(xs="xs", ys="ys", fill_color="color", fill_alpha=0.07, line_color=None))
    add(source["ridges"], Segment(x0="x", x1="x", y0="y0", y1="y", line_color="color", line_dash="dotted", line_width=1.2))
    add(source["roofs"], MultiLine(xs="xs", ys="ys", line_color="color", line_width="width", line_alpha="alpha", line_cap="round"))
    add(source["ceilings"], MultiLine(xs="xs", ys="ys", line_color="color", line_width=2, line_dash="dashed"))
    add(source["trail"], MultiLine(xs="xs", ys="ys", line_color="color", line_width=9, line_alpha=0.28, line_cap="round", line_join="round"))  # wide: it mostly lies on the roof
    operators = add(source["operators"], Scatter(x="x", y="y", size="size", marker="marker", fill_color="color", fill_alpha=0.2, line_color="color", line_alpha=0.5),
                    name="operators")
    add(source["expected"], Segment(x0="x", x1="x", y0="low", y1="high", line_color="color", line_width=7, line_alpha=0.3, line_cap="round"))
    expected = add(source["expected"], Scatter(x="x", y="expected", size=11, marker="marker", fill_color=None, line_color="color", line_width=2), name="expected")
    phases = add(source["phases"], Scatter(x="x", y="y", size=16, marker="marker", fill_color="color", line_color="paper", line_width=2), name="phases")
    text = {"text_font": _FONT, "text_font_size": "12px"}
    add(source["roof_labels"], Text(x="x", y="y", text="text", text_color="color", text_align="align", text_baseline="bottom", y_offset=-4, angle="angle", **text))
    add(source["ridges"], Text(x="x", y="y0", text="label", text_color="color", text_align="left", text_baseline="bottom", x_offset=6, y_offset=-24, **text))
    add(source["field_labels"], Text(x="x", y="y", text="text", text_color="color", text_align="align", text_baseline="bottom", x_offset="dx", y_offset=-6, **text))
    add(source["phase_labels"], Text(x="x", y="y", text="text", text_color="color", text_align="align", text_baseline="middle", x_offset="dx", y_offset="dy",
                                     text_font=_FONT, text_font_size="13px", text_font_style="bold"))
    plot.add_tools(HoverTool(renderers=[phases, expected, operators], limit=4, tooltips=TIP, attachment="horizontal"))
    return plot


# Every source of the roofline figure and its columns; `chart_data.roofline_sources` fills them.
SOURCES = {
    "fields": ("xs", "ys", "color"), "ridges": ("x", "y", "y0", "label", "color"), "roofs": ("xs", "ys", "color", "width", "alpha"),
    "roof_labels": ("x", "y", "text", "color", "align", "angle"), "field_labels": ("x", "y", "text", "color", "align", "dx"), "ceilings": ("xs", "ys", "color"), "trail": ("xs", "ys", "color"),
    "operators": ("x", "y", "size", "marker", "color", "title", "tip"), "expected": ("x", "expected", "low", "high", "marker", "color", "title", "tip"),
    "phases": ("x", "y", "marker", "color", "paper", "title", "tip"), "phase_labels": ("x", "y", "text", "color", "align", "dx", "dy"),
}


def sweep_figure(name: str = "sweep", linear: bool = False) -> Plot:
    """Tokens per second per user and in all against batch, prompt or chips; empty, the page fills it."""
    plot = (_linear_plot if linear else _log_plot)(name, {"x0": 1, "x1": 1e3, "y0": 1, "y1": 1e4}, " ", "tokens/s")
    for line_name, marker in (("user", "circle"), ("total", "diamond")):
        source = ColumnDataSource({"x": [], "y": [], "color": [], "title": [], "tip": []}, name=f"{name}.{line_name}")
        line = ColumnDataSource({"xs": [], "ys": [], "color": []}, name=f"{name}.{line_name}_line")
        plot.add_glyph(line, MultiLine(xs="xs", ys="ys", line_color="color", line_width=2))
        shown = plot.add_glyph(source, Scatter(x="x", y="y", size=8, marker=marker, fill_color="color", line_color="color"))
        plot.add_tools(HoverTool(renderers=[shown], tooltips=TIP))
    source = ColumnDataSource({"x": [], "y0": [], "y1": [], "color": []}, name=f"{name}.here")
    plot.add_glyph(source, Segment(x0="x", x1="x", y0="y0", y1="y1", line_color="color", line_dash="dotted", line_width=1.5))
    labels = ColumnDataSource({"x": [], "y": [], "text": [], "color": []}, name=f"{name}.labels")
    plot.add_layout(LabelSet(source=labels, x="x", y="y", text="text", text_color="color", text_font=_FONT, text_font_size="12px", x_offset=8, y_offset=4))
    return plot


def _plot(name: str, span: dict, scale) -> Plot:
    """An empty plot without axes whose ranges carry names."""
    return Plot(
        name=f"{name}.plot", x_range=Range1d(span["x0"], span["x1"], name=f"{name}.x_range"), y_range=Range1d(span["y0"], span["y1"], name=f"{name}.y_range"),
        x_scale=scale(), y_scale=scale(), sizing_mode="stretch_both", min_border_left=64, min_border_right=12, min_border_top=8, min_border_bottom=48,
        outline_line_color=None, background_fill_color=None, border_fill_color=None, toolbar_location=None, output_backend="canvas", lod_threshold=None,
    )


def _add_axis(plot: Plot, name: str, side: str, axis, palette: dict) -> None:
    """The look of an axis, and its grid."""
    axis.update(
        axis_label_text_font=FONT, axis_label_text_font_size="12px", axis_label_text_font_style="normal",
        major_label_text_font=FONT, major_label_text_font_size="12px", axis_line_color=palette["rule"], major_tick_line_color=palette["rule"],
        minor_tick_line_color=None, major_label_text_color=palette["muted"], axis_label_text_color=palette["muted"], major_tick_in=0, major_tick_out=4,
    )
    plot.add_layout(axis, side)
    plot.add_layout(Grid(name=f"{name}.grid_{side}", axis=axis, dimension=0 if side == "below" else 1, grid_line_color=palette["rule"], grid_line_alpha=0.8))


def _linear_plot(name: str, span: dict, x_label: str, y_label: str, palette: dict = PALETTE) -> Plot:
    """The same on linear axes, with ticks at round numbers ("1.5k")."""
    plot = _plot(name, span, LinearScale)
    for side, label in (("below", x_label), ("left", y_label)):
        _add_axis(plot, name, side, LinearAxis(name=f"{name}.{side}", axis_label=label, ticker=BasicTicker(desired_num_ticks=6), formatter=NumeralTickFormatter(format="0.[0]a")), palette)
    return plot


def _log_plot(name: str, span: dict, x_label: str, y_label: str, palette: dict = PALETTE) -> Plot:
    """An empty log-log plot whose ranges, axes and ticks carry names."""
    plot = _plot(name, span, LogScale)
    for side, label, low, high in (("below", x_label, -4, 8), ("left", y_label, -3, 21)):
        labels = {10.0**e: text for e, text in decade_labels(low, high).items()}
        axis = LogAxis(
            name=f"{name}.{side}", axis_label=label, ticker=FixedTicker(ticks=list(labels), minor_ticks=[m * 10.0**e for e in range(low, high) for m in range(2, 10)]),
            major_label_overrides=labels,
        )
        _add_axis(plot, name, side, axis, palette)
    plot.add_tools(PanTool(), WheelZoomTool(), ResetTool())
    plot.toolbar.active_drag = plot.toolbar.active_scroll = None  # so that the page scrolls over the chart
    return plot
