"""The default chart as SVG that fills a box of any size: what stands on the page until the interactive chart is wanted.

Places are percentages of the frame, texts and their distances are as large as the box says, colours are the theme's CSS variables, so that the picture
has the very layout of Bokeh's and nothing moves when that takes over. `site/js/still.mjs` puts the labels where there is room.
"""

from __future__ import annotations

import math
from html import escape

from roofline.chart_data import decade_labels, roofline_sources


def still(report: dict, words: dict) -> str:
    """The chart of a Report's dict as HTML. words: {"prefill", "decode", "x", "y"}."""
    data = roofline_sources(report)
    span = data["range"]
    decades = math.log10(span["x1"] / span["x0"]), math.log10(span["y1"] / span["y0"])
    x = lambda v: 100 * math.log10(v / span["x0"]) / decades[0]
    y = lambda v: 100 - 100 * math.log10(max(v, span["y0"]) / span["y0"]) / decades[1]
    grid, ticks, shapes, texts = [], [], [], []

    for e, text in decade_labels(math.ceil(math.log10(span["x0"]) - 1e-9), math.floor(math.log10(span["x1"]) + 1e-9)).items():
        grid.append(_line(x(10.0**e), 0, x(10.0**e), 100, "rule", 1))
        ticks.append(_text(x(10.0**e), 100, text, dy=20, anchor="middle"))
    for e, text in decade_labels(math.ceil(math.log10(span["y0"]) - 1e-9), math.floor(math.log10(span["y1"]) + 1e-9)).items():
        grid.append(_line(0, y(10.0**e), 100, y(10.0**e), "rule", 1))
        ticks.append(_text(0, y(10.0**e), text, dx=-8, dy=4, anchor="end"))

    fields = [f'<polygon points="{" ".join(f"{_n(10 * x(a))},{_n(10 * y(b))}" for a, b in zip(xs, ys, strict=True))}" fill="{_paint(color)}" fill-opacity=".07"/>'
              for xs, ys, color in _rows(data["fields"], "xs", "ys", "color")]
    for rx, ry, y0, color in _rows(data["ridges"], "x", "y", "y0", "color"):
        shapes.append(_line(x(rx), y(y0), x(rx), y(ry), color, 1.2, dash="1.2 3"))
    for xs, ys, color, width, alpha in _rows(data["roofs"], "xs", "ys", "color", "width", "alpha"):
        shapes.append(_line(x(xs[0]), y(ys[0]), x(xs[1]), y(ys[1]), color, width, alpha))
    for xs, ys, color in _rows(data["ceilings"], "xs", "ys", "color"):
        if ys[0] < span["y1"]:
            shapes.append(_line(x(xs[0]), y(ys[0]), x(xs[1]), y(ys[1]), color, 2, dash="6 4"))
    for ox, oy, size, marker, color in _rows(data["operators"], "x", "y", "size", "marker", "color"):
        shapes.append(_mark(x(ox), y(oy), size, marker, f'fill="{_paint(color)}" fill-opacity=".2" stroke="{_paint(color)}" stroke-opacity=".5"'))
    for ex, low, high, value, marker, color in _rows(data["expected"], "x", "low", "high", "expected", "marker", "color"):
        shapes.append(_line(x(ex), y(low), x(ex), y(high), color, 7, 0.3))
        shapes.append(_mark(x(ex), y(value), 11, marker, f'fill="none" stroke="{_paint(color)}" stroke-width="2"'))
    for px, py, marker, color in _rows(data["phases"], "x", "y", "marker", "color"):
        shapes.append(_mark(x(px), y(py), 16, marker, f'fill="{_paint(color)}" stroke="var(--paper)" stroke-width="2"'))

    for i, (lx, ly, text, color) in enumerate(_rows(data["roof_labels"], "x", "y", "text", "color")):
        # Along the memory roof, whatever the box's shape: the angle comes of the box in CSS.
        turn = "" if color != "memory" else (f'transform-box:view-box;transform-origin:{_n(x(lx))}% {_n(y(ly))}%;'
                                             f'rotate:atan2(calc(-100cqh / {_n(decades[1])}), calc(100cqw / {_n(decades[0])}))')
        texts.append(_text(x(lx), y(ly), text, dy=-4, color=color, label=f"roof{i}", style=turn))
    for i, (rx, y0, text, color) in enumerate(_rows(data["ridges"], "x", "y0", "label", "color")):
        texts.append(_text(x(rx), y(y0), text, dx=6, dy=-24, color=color, label=f"ridge{i}"))
    for i, (fx, fy, text, color, align, dx) in enumerate(_rows(data["field_labels"], "x", "y", "text", "color", "align", "dx")):
        texts.append(_text(x(fx), y(fy), text, dx=dx, dy=-6, color=color, anchor="end" if align == "right" else "start", label=f"field{i}"))
    for i, (px, py, text, color, align, dx, dy) in enumerate(_rows(data["phase_labels"], "x", "y", "text", "color", "align", "dx", "dy")):
        texts.append(_text(x(px), y(py), words[text], dx=dx, dy=dy + 5, color=color, anchor="end" if align == "right" else "start", bold=True, label=f"phase{i}"))

    fills = f'<svg viewBox="0 0 1000 1000" preserveAspectRatio="none" width="100%" height="100%">{"".join(fields)}</svg>'
    return (f'<div class="still" aria-hidden="true"><svg width="100%" height="100%">{"".join(grid)}{fills}{"".join(shapes)}{"".join(ticks)}{"".join(texts)}</svg>'
            f'<span class="still-x" data-still="x">{escape(words["x"])}</span><span class="still-y" data-still="y">{escape(words["y"])}</span></div>')


def _rows(columns: dict, *names: str):
    return zip(*(columns[name] for name in names), strict=True)


def _paint(role: str) -> str:
    return f"var(--{role})"


def _line(x0, y0, x1, y1, color, width, alpha=1.0, dash="") -> str:
    more = (f' stroke-opacity="{_n(alpha)}"' if alpha < 1 else "") + (f' stroke-dasharray="{dash}"' if dash else ' stroke-linecap="round"')
    return f'<line x1="{_n(x0)}%" y1="{_n(y0)}%" x2="{_n(x1)}%" y2="{_n(y1)}%" stroke="{_paint(color)}" stroke-width="{_n(width)}"{more}/>'


def _mark(x, y, size, marker, look) -> str:
    if marker == "circle":
        return f'<circle cx="{_n(x)}%" cy="{_n(y)}%" r="{_n(size / 2)}" {look}/>'
    side = 0.9 * size
    return f'<rect x="{_n(x)}%" y="{_n(y)}%" width="{_n(side)}" height="{_n(side)}" transform="translate({_n(-side / 2)} {_n(-side / 2)})" {look}/>'


def _text(x, y, text, dx=0, dy=0, color="muted", anchor="", bold=False, label="", style="") -> str:
    size = 13 if bold else 12  # of the text, so that its distances grow with it
    parts = [f'x="{_n(x)}%" y="{_n(y)}%"', f'dx="{_n(dx / size)}em"' if dx else "", f'dy="{_n(dy / size)}em"' if dy else "", f'fill="{_paint(color)}"', f'text-anchor="{anchor}"' if anchor else "",
             'class="strong"' if bold else "", f'data-still="{label}"' if label else "", f'style="{style}"' if style else ""]
    return f"<text {' '.join(p for p in parts if p)}>{escape(text)}</text>"


def _n(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")
