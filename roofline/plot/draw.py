"""The laid-out chart as shapes, for SVG and PNG."""

from __future__ import annotations

import math

from ..chart_data import decade_labels
from .chart import Chart, describe
from .layout import frame_of, layout, legend_entries
from .scene import Area, Line, Mark, Scene, Text, text_width
from .themes import palette


def scene(chart: Chart) -> Scene:
    """A Chart as a Scene."""
    data, f, c = layout(chart), frame_of(chart), palette(chart.theme)
    inner, over = [], []
    at = lambda x, y: (f.x(x), f.y(y))
    for low, high, horizontal in (
        (math.floor(math.log10(f.x0)), math.ceil(math.log10(f.x1)), False),
        (math.floor(math.log10(f.y0)), math.ceil(math.log10(f.y1)), True),
    ):
        names, last = decade_labels(low, high), -1e9
        for e in range(low, high + 1):
            value = 10.0**e
            a, b = (f.y0, f.y1) if horizontal else (f.x0, f.x1)
            if not a * 0.999 <= value <= b * 1.001:
                continue
            place = f.y(value) if horizontal else f.x(value)
            if horizontal:
                over.append(Line(points=((f.left, place), (f.left + f.width, place)), color=c["rule"], alpha=0.9))
                over.append(Text(x=f.left - 8, y=place, text=names[e], color=c["muted"], anchor="end", baseline="middle", size=12))
            else:
                over.append(Line(points=((place, f.top), (place, f.top + f.height)), color=c["rule"], alpha=0.9))
                if place - last > 34:
                    over.append(Text(x=place, y=f.top + f.height + 19, text=names[e], color=c["muted"], anchor="middle", size=12))
                    last = place
    grid = [s for s in over if isinstance(s, Line)]
    texts = [s for s in over if isinstance(s, Text)]
    inner += grid
    for xs, ys, color in _rows(data["fields"], "xs", "ys", "color"):
        inner.append(Area(points=tuple(at(x, y) for x, y in zip(xs, ys, strict=True)), color=color, alpha=0.07 if chart.theme != "print" else 0.0))
    for x, y, y0, color in _rows(data["ridges"], "x", "y", "y0", "color"):
        inner.append(Line(points=(at(x, y0), at(x, y)), color=color, width=1.2, dash=(1.5, 4)))
    for xs, ys, color, width, alpha in _rows(data["roofs"], "xs", "ys", "color", "width", "alpha"):
        inner.append(Line(points=tuple(at(x, y) for x, y in zip(xs, ys, strict=True)), color=color, width=width, alpha=alpha))
    for xs, ys, color in _rows(data["ceilings"], "xs", "ys", "color"):
        inner.append(Line(points=tuple(at(x, y) for x, y in zip(xs, ys, strict=True)), color=color, width=2, dash=(7, 5)))
    for xs, ys, color in _rows(data["trail"], "xs", "ys", "color"):
        inner.append(Line(points=tuple(at(x, y) for x, y in zip(xs, ys, strict=True)), color=color, width=1.6, dash=(2, 4)))
    for x, y, size, marker, color, title, tip, timed in _rows(data["operators"], "x", "y", "size", "marker", "color", "title", "tip", "timed"):
        inner.append(
            Mark(
                x=f.x(x),
                y=f.y(y),
                size=size,
                shape=marker,
                fill=color if timed else "",
                fill_alpha=0.32,
                stroke=color,
                stroke_alpha=0.95,
                width=1.4,
                title=f"{title}: {tip}",
            )
        )
    for x, low, high, color in _rows(data["expected"], "x", "low", "high", "color"):
        inner.append(Line(points=(at(x, low), at(x, high)), color=color, width=7, alpha=0.3))
    for x, y, marker, color, title, tip, timed, size in _rows(data["phases"], "x", "y", "marker", "color", "title", "tip", "timed", "size"):
        look = {"fill": color, "stroke": c["paper"], "width": 2} if timed else {"fill": c["paper"], "stroke": color, "width": 2.6}
        inner.append(Mark(x=f.x(x), y=f.y(y), size=size, shape=marker, title=f"{title}: {tip}", **look))
    shapes = [Line(points=((f.left, f.top), (f.left, f.top + f.height), (f.left + f.width, f.top + f.height)), color=c["line"], width=1), *texts]
    for x, y0, label, color in _rows(data["ridges"], "x", "y0", "label", "color"):
        right = f.x(x) + 8 + text_width(label, 11.5) > f.left + f.width
        shapes.append(
            Text(
                x=f.x(x) + (-8 if right else 8),
                y=f.y(y0) - 8,
                text=label,
                color=color,
                size=11.5,
                anchor="end" if right else "start",
                halo=c["paper"],
            )
        )
    for x, y, text, color, align, angle in _rows(data["roof_labels"], "x", "y", "text", "color", "align", "angle"):
        shapes.append(Text(x=f.x(x), y=f.y(y), text=text, color=color, anchor=_ANCHOR[align], angle=math.degrees(angle), halo=c["paper"]))
    for xs, ys, label, color in _rows(data["ceilings"], "xs", "ys", "label", "color"):
        shapes.append(Text(x=f.x(math.sqrt(xs[0] * xs[1])), y=f.y(ys[0]) - 5, text=label, color=color, size=11.5, anchor="middle", halo=c["paper"]))
    for x, y, text, color, align, dx, dy in data["trail_labels"]:
        shapes.append(Text(x=f.x(x) + dx, y=f.y(y) + dy, text=text, color=color, size=11, anchor=_ANCHOR[align], baseline="middle", halo=c["paper"]))
    for x, y, text, color, align, dx, dy, bold in _rows(data["phase_labels"], "x", "y", "text", "color", "align", "dx", "dy", "bold"):
        shapes.append(
            Text(
                x=f.x(x) + dx,
                y=f.y(y) + dy,
                text=text,
                color=color if bold else c["ink"],
                size=13 if bold else 11.5,
                anchor=_ANCHOR[align],
                baseline="middle",
                bold=bold,
                halo=c["paper"],
            )
        )
    for n in chart.notes:
        shapes.append(Text(x=f.x(n.x), y=f.y(n.y), text=n.text, color=c["ink"], size=12, anchor="middle", baseline="middle", halo=c["paper"]))
    y = 14.0
    if chart.title:
        y += 16
        shapes.append(Text(x=20, y=y, text=chart.title, color=c["ink"], size=17, bold=True))
        y += 8
    if chart.subtitle:
        y += 12
        shapes.append(Text(x=20, y=y, text=chart.subtitle, color=c["muted"], size=12.5))
        y += 7
    x = 24.0
    for label, color, marker in legend_entries(chart):
        wide = 1.08 * text_width(label, 12)  # the reader's font may be wider than most
        if x + 20 + wide > chart.width - 12:
            break
        shapes.append(Mark(x=x + 4, y=y + 13, size=9, shape=marker, fill=c[color], stroke=c[color], width=1))
        shapes.append(Text(x=x + 15, y=y + 13, text=label, color=c["ink"], size=12, baseline="middle"))
        x += 15 + wide + 22
    shapes.append(Text(x=f.left + f.width / 2, y=chart.height - 14, text=chart.x_label, color=c["muted"], size=12.5, anchor="middle"))
    shapes.append(Text(x=20, y=f.top + f.height / 2, text=chart.y_label, color=c["muted"], size=12.5, anchor="middle", angle=90))
    return Scene(
        width=chart.width,
        height=chart.height,
        background=c["paper"],
        shapes=tuple(shapes),
        inner=tuple(inner),
        clip=(f.left, f.top, f.width, f.height),
        title=chart.title,
        description=chart.description or describe(chart),
    )


_ANCHOR = {"left": "start", "right": "end", "center": "middle"}


def _rows(columns: dict, *names: str):
    return zip(*(columns[name] for name in names), strict=True)
