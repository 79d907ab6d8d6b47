"""Ways out of a Chart: SVG, PNG, and an interactive HTML page drawn by the same Bokeh figure as the web page."""

from __future__ import annotations

from html import escape
from pathlib import Path

from ..errors import InputError
from .chart import Chart
from .draw import scene
from .layout import layout, legend_entries
from .scene import png, svg
from .themes import FONT, palette

KINDS = (".html", ".svg", ".png")


def to_svg(chart: Chart) -> str:
    """The chart as SVG text."""
    return svg(scene(chart))


def to_png(chart: Chart, scale: float = 2.0) -> bytes:
    """The chart as a PNG image of scale x its size in pixels."""
    return png(scene(chart), scale)


def save(chart: Chart, path) -> str:
    """Write a chart; the ending of the name says how: .html (interactive, offline), .svg or .png."""
    path = Path(path)
    kind = path.suffix.lower()
    if kind not in KINDS:
        raise InputError("output", str(path), f"must end in {', '.join(KINDS)}")
    data = to_png(chart) if kind == ".png" else (to_html(chart) if kind == ".html" else to_svg(chart)).encode()
    try:
        path.write_bytes(data)
    except OSError as error:
        raise InputError("output", str(path), f"cannot be written: {error.strerror or error}") from None
    return str(path)


def to_html(chart: Chart) -> str:
    """One self-contained page: the interactive figure, its legend, and a table of its points; no other file or address is needed."""
    try:
        from bokeh.embed import components
        from bokeh.resources import INLINE

        from .. import charts
    except ImportError:
        raise InputError("output", "html", "needs Bokeh; `pip install bokeh`, or write an .svg, which needs nothing") from None
    colors = palette(chart.theme)
    plot = charts.roofline_figure(columns=layout(chart), palette=colors, x_label=chart.x_label, y_label=chart.y_label)
    plot.sizing_mode, plot.height, plot.toolbar_location = "stretch_width", chart.height - 60, "right"
    plot.min_border_right = 30
    script, div = components(plot)
    mark = {
        "circle": "&#9679;",
        "square": "&#9632;",
        "diamond": "&#9670;",
        "triangle": "&#9650;",
        "inverted_triangle": "&#9660;",
        "cross": "&#10010;",
    }
    legend = "".join(
        f'<span><b style="color:{colors[color]}">{mark[marker]}</b> {escape(label)}</span>' for label, color, marker in legend_entries(chart)
    )
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>{escape(chart.title)}</title>
{INLINE.render()}
<style>
:root {{ color-scheme: {"dark" if chart.theme == "dark" else "light"} }}
body {{ margin: 0 auto; max-width: 1200px; padding: 1.25rem; background: {colors["paper"]}; color: {colors["ink"]}; font: 15px/1.5 {FONT} }}
h1 {{ font-size: 1.25rem; margin: 0 }} .sub {{ color: {colors["muted"]}; margin: .15rem 0 .6rem }}
.legend {{ display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; font-size: .875rem; margin-bottom: .5rem }}
table {{ border-collapse: collapse; margin-top: 1.25rem; font-size: .875rem; font-variant-numeric: tabular-nums }}
th, td {{ text-align: left; padding: .3rem 1rem .3rem 0; border-bottom: 1px solid {colors["rule"]} }} th {{ font-weight: 600; color: {colors["muted"]} }}
.tip {{ color: #171d22; font: 13px/1.45 {FONT} }}
</style></head><body>
<h1>{escape(chart.title)}</h1><p class="sub">{escape(chart.subtitle)}</p><div class="legend">{legend}</div>
{div}
{table(chart)}
{script}
</body></html>
"""


def table(chart: Chart) -> str:
    """The chart's rows as an HTML table, "" if it has none."""
    if not chart.rows:
        return ""
    heads = list(chart.rows[0])
    body = "".join("<tr>" + "".join(f"<td>{escape(str(row.get(h, '')))}</td>" for h in heads) + "</tr>" for row in chart.rows)
    return f"<table><thead><tr>{''.join(f'<th>{escape(h)}</th>' for h in heads)}</tr></thead><tbody>{body}</tbody></table>"
