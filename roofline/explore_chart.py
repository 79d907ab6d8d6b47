"""Bokeh figures of an exploration: the front of each chip, and the tornado of one scenario."""

from __future__ import annotations

from html import escape

from bokeh.embed import file_html
from bokeh.layouts import column
from bokeh.models import (
    CategoricalAxis,
    CategoricalScale,
    ColumnDataSource,
    Div,
    FactorRange,
    HBar,
    HoverTool,
    Legend,
    LegendItem,
    LinearAxis,
    MultiLine,
    Plot,
    Range1d,
    Scatter,
    Span,
)
from bokeh.resources import INLINE

from .charts import FONT, PALETTE, _log_plot
from .units import format_number

# Told apart by hue and by order; the rest of the chips are grey.
HUES = ("#0b7a75", "#b3620a", "#6d45c4", "#c02b21", "#2f6fb0", "#8a7500", "#a03a7e")
X_LABEL, Y_LABEL = "Tokens/s for each user", "Output tokens/s per chip, prefill included"


def front_sources(answer: dict) -> dict:
    """Columns of the front's figure from `explore_request`'s answer: {"fronts", "points", "front", "range"}; colours are those of the light page."""
    fronts, points = (
        {"xs": [], "ys": [], "color": [], "name": []},
        {"x": [], "y": [], "color": [], "title": [], "tip": [], "fragment": []},
    )
    for i, f in enumerate(answer["fronts"]):
        color = HUES[i] if i < len(HUES) else PALETTE["plain"]
        for key, value in (("xs", f["x"]), ("ys", f["y"]), ("color", color), ("name", f["name"])):
            fronts[key].append(value)
        points["x"] += f["x"]
        points["y"] += f["y"]
        points["color"] += [color] * len(f["x"])
        points["title"] += f["title"]
        points["tip"] += [
            f"{format_number(x)} tokens/s per user, {format_number(y)} per chip" for x, y in zip(f["x"], f["y"], strict=True)
        ]
        points["fragment"] += f["fragment"]
    best = {
        "xs": [[row["tokens_per_s_per_user"] for row in answer["front"]]],
        "ys": [[row["served_tokens_per_s_per_device"] for row in answer["front"]]],
    }
    xs, ys = points["x"] or [1.0, 100.0], points["y"] or [1.0, 100.0]
    return {
        "fronts": fronts,
        "points": points,
        "front": best,
        "range": {"x0": min(xs) / 1.5, "x1": max(xs) * 1.5, "y0": min(ys) / 1.5, "y1": max(ys) * 1.5},
    }


def front_figure(answer: dict | None = None) -> Plot:
    """Tokens/s per user against tokens/s per chip: a line for each chip, and the front of all under them; empty without an answer."""
    columns = (
        front_sources(answer)
        if answer
        else {
            "fronts": {"xs": [], "ys": [], "color": [], "name": []},
            "points": {k: [] for k in ("x", "y", "color", "title", "tip", "fragment")},
            "front": {"xs": [], "ys": []},
            "range": {"x0": 1, "x1": 1e3, "y0": 1, "y1": 1e4},
        }
    )
    plot = _log_plot("front", columns["range"], X_LABEL, Y_LABEL)
    source = {name: ColumnDataSource(columns[name], name=f"front.{name}") for name in ("fronts", "points", "front")}
    plot.add_glyph(
        source["front"], MultiLine(xs="xs", ys="ys", line_color=PALETTE["ink"], line_width=9, line_alpha=0.12, line_join="round")
    )
    lines = plot.add_glyph(source["fronts"], MultiLine(xs="xs", ys="ys", line_color="color", line_width=2))
    points = plot.add_glyph(
        source["points"], Scatter(x="x", y="y", size=7, fill_color="color", line_color="color"), name="points"
    )
    plot.add_tools(
        HoverTool(renderers=[points], tooltips="<div class='tip'><b>@title</b><br>@tip</div>", attachment="horizontal")
    )
    if answer:
        legend = Legend(
            items=[LegendItem(label=f["name"], renderers=[lines], index=i) for i, f in enumerate(answer["fronts"][: len(HUES)])],
            location="bottom_left",
            label_text_font=FONT,
            label_text_font_size="12px",
            border_line_color=None,
            background_fill_alpha=0.8,
        )
        plot.add_layout(legend)
    return plot


def tornado_figure(answer: dict) -> Plot:
    """What moves one scenario's answer most, from `sensitivity`: bars from the lower to the higher value of each assumption, largest on top."""
    rows = [row for row in answer["rows"] if row["swing"] > 1e-6][::-1]
    base = answer["base"]
    change = lambda v: 100 * (v / base - 1)
    columns = {
        "words": [r["words"] for r in rows],
        "low": [change(r["low"]) for r in rows],
        "high": [change(r["high"]) for r in rows],
        "left": [min(change(r["low"]), change(r["high"])) for r in rows],
        "text": [f"{100 * r['swing']:.0f}\u2009%" for r in rows],
    }
    far = max([abs(v) for v in columns["low"] + columns["high"]] or [1.0]) * 1.25
    plot = Plot(
        name="tornado.plot",
        x_range=Range1d(-far, far),
        y_range=FactorRange(factors=columns["words"]),
        y_scale=CategoricalScale(),
        width=960,
        height=70 + 34 * max(1, len(rows)),
        toolbar_location=None,
        outline_line_color=None,
        min_border_right=24,
    )
    source = ColumnDataSource(columns, name="tornado.bars")
    plot.add_glyph(source, HBar(y="words", left=0, right="low", height=0.6, fill_color=PALETTE["memory"], line_color=None))
    plot.add_glyph(source, HBar(y="words", left=0, right="high", height=0.6, fill_color=PALETTE["compute"], line_color=None))
    plot.add_layout(Span(location=0, dimension="height", line_color=PALETTE["ink"], line_width=1))
    style = {
        "axis_line_color": PALETTE["rule"],
        "major_tick_line_color": PALETTE["rule"],
        "minor_tick_line_color": None,
        "major_label_text_font": FONT,
        "major_label_text_font_size": "12px",
        "major_label_text_color": PALETTE["muted"],
        "axis_label_text_font": FONT,
        "axis_label_text_font_size": "12px",
        "axis_label_text_font_style": "normal",
    }
    plot.add_layout(
        LinearAxis(
            axis_label=f"Change of {answer['words']} [%]; brown: the assumption {100 * answer['step']:.0f} % lower, green: higher",
            **style,
        ),
        "below",
    )
    plot.add_layout(CategoricalAxis(**style), "left")
    return plot


def to_html(answer: dict) -> str:
    """One self-contained HTML file of an exploration (its first model and load): the question, the front, the best of each chip and why not the others."""
    plot = front_figure(answer)
    plot.width, plot.height, plot.sizing_mode, plot.toolbar_location = 1080, 560, None, "right"
    q, counts = answer["question"], answer["counts"]
    asked = ", ".join(f"{name.replace('_', ' ')} {value:g}" for name, value in q["limits"].items()) or "no limits"
    heads = ("Configuration", "tokens/s per user", "tokens/s per chip", "TPOT", "TTFT", "USD per million", "J per token")
    keys = ("title", "user", "throughput", "tpot", "ttft", "cost", "energy")
    cells = lambda row: "".join(
        f"<td style='padding:2px 10px;white-space:nowrap;text-align:{'left' if k == 'title' else 'right'}'>{escape(row['text'][k])}</td>"
        for k in keys
    )
    table = (
        "<table><tr>"
        + "".join(f"<th style='padding:2px 10px;text-align:left'>{h}</th>" for h in heads)
        + "</tr>"
        + "".join(f"<tr>{cells(row)}</tr>" for row in answer["best"])
        + "</table>"
    )
    why = "".join(f"<li><b>{escape(row['name'])}</b>: {escape(row['why'])}</li>" for row in answer["why_not"])
    styles = {"font-family": FONT, "font-size": "14px"}
    head = Div(
        text=f"<h1 style='font-size:22px'>{escape(answer['model'])}: best {escape(q['objective'])} of each chip</h1><p>{answer['prompt']:,} tokens in, {answer['output']:,} out. {counts['configurations']:,} configurations; {counts['timed']:,} fit, "
        f"{counts['met']:,} meet the question ({escape(asked)}). Times are {'the limits of physics' if answer['basis'] == 'limit' else 'what measurements lead to expect'}.</p>",
        styles=styles,
        width=1080,
    )
    tail = Div(
        text=f"{table}<h2 style='font-size:18px'>Not in the list</h2><ul>{why}</ul>" if why else table, styles=styles, width=1080
    )
    return file_html(column(head, plot, tail), INLINE, f"Roofline: {answer['model']}")
