"""The roofline chart as a still picture: SVG text with the standard library, PNG with Pillow (which Bokeh brings).

The page shows the SVG before Bokeh is there, `roofline plot` writes both. One list of shapes serves both outputs.
"""

from __future__ import annotations

import math
from html import escape

from .chart_data import decade_labels, roofline_sources

# Colours by role; the page passes CSS variables instead.
LIGHT = {"memory": "#a85a06", "compute": "#0a746f", "network": "#6b40c2", "host": "#a03768", "misfit": "#bb2a20", "plain": "#66727b", "ink": "#171d22", "muted": "#5a666f",
         "rule": "#dfe4e7", "paper": "#ffffff"}
FONT = "system-ui, sans-serif"
MARGIN = {"left": 64, "right": 12, "top": 8, "bottom": 48}  # as the Bokeh figure's borders, so that nothing moves when it takes over


def shapes(report: dict, width: float = 880, height: float = 480, palette: dict = LIGHT) -> list:
    """The chart as a list of shapes: ("polygon" | "line" | "disc" | "square" | "text", {...}), in drawing order, in pixels."""
    data = roofline_sources(report, palette)
    span = data["range"]
    left, top, right, bottom = MARGIN["left"], MARGIN["top"], width - MARGIN["right"], height - MARGIN["bottom"]
    decades_x, decades_y = math.log10(span["x1"] / span["x0"]), math.log10(span["y1"] / span["y0"])
    x = lambda v: left + math.log10(v / span["x0"]) / decades_x * (right - left)
    y = lambda v: bottom - math.log10(max(v, span["y0"]) / span["y0"]) / decades_y * (bottom - top)
    out = []
    add = lambda kind, **what: out.append((kind, what))
    for low, value, place, unit in ((span["x0"], span["x1"], "x", ""), (span["y0"], span["y1"], "y", "")):
        first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(value) + 1e-9)
        for e, text in decade_labels(first, last, unit).items():
            if place == "x":
                add("line", points=[(x(10.0**e), top), (x(10.0**e), bottom)], color=palette["rule"], width=1)
                add("text", x=x(10.0**e), y=bottom + 20, text=text, color=palette["muted"], align="middle", size=12)
            else:
                add("line", points=[(left, y(10.0**e)), (right, y(10.0**e))], color=palette["rule"], width=1)
                add("text", x=left - 8, y=y(10.0**e) + 4, text=text, color=palette["muted"], align="end", size=12)
    for xs, ys, color in _rows(data["fields"], "xs", "ys", "color"):
        add("polygon", points=[(x(a), y(b)) for a, b in zip(xs, ys, strict=True)], color=color, alpha=0.07)
    for rx, ry, y0, label, color in _rows(data["ridges"], "x", "y", "y0", "label", "color"):
        add("line", points=[(x(rx), y(y0)), (x(rx), y(ry))], color=color, width=1.2, dash=(1, 3))
        add("text", x=x(rx) + 6, y=y(y0) - 6, text=label, color=color, align="start", size=12)
    for xs, ys, color, thick, alpha in _rows(data["roofs"], "xs", "ys", "color", "width", "alpha"):
        add("line", points=[(x(a), y(b)) for a, b in zip(xs, ys, strict=True)], color=color, width=thick, alpha=alpha)
    for xs, ys, color in _rows(data["ceilings"], "xs", "ys", "color"):
        if ys[0] < span["y1"]:
            add("line", points=[(x(a), y(b)) for a, b in zip(xs, ys, strict=True)], color=color, width=2, dash=(6, 4))
    slope = -math.degrees(math.atan2((bottom - top) / decades_y, (right - left) / decades_x))
    memory = data["roofs"]["color"][0]
    for lx, ly, text, color in _rows(data["roof_labels"], "x", "y", "text", "color"):
        add("text", x=x(lx), y=y(ly) - 6, text=text, color=color, align="start", size=12, turn=slope if color == memory else 0)
    for ox, oy, size, marker, color in _rows(data["operators"], "x", "y", "size", "marker", "color"):
        add("disc" if marker == "circle" else "square", x=x(ox), y=y(oy), size=size, color=color, alpha=0.2, edge=color, edge_alpha=0.5)
    for ex, value, low, high, marker, color in _rows(data["expected"], "x", "expected", "low", "high", "marker", "color"):
        add("line", points=[(x(ex), y(low)), (x(ex), y(high))], color=color, width=7, alpha=0.3)
        add("disc" if marker == "circle" else "square", x=x(ex), y=y(value), size=11, color=color, alpha=0, edge=color, edge_alpha=1)
    for px, py, marker, color, paper in _rows(data["phases"], "x", "y", "marker", "color", "paper"):
        add("disc" if marker == "circle" else "square", x=x(px), y=y(py), size=16, color=color, alpha=1, edge=paper, edge_alpha=1)
    for px, py, text, color, align, dx, dy in _rows(data["phase_labels"], "x", "y", "text", "color", "align", "dx", "dy"):
        add("text", x=x(px) + dx, y=y(py) + dy + 4, text=text.capitalize(), color=color, align="end" if align == "right" else "start", size=13, bold=True)
    add("text", x=(left + right) / 2, y=height - 8, text="Work per byte (FLOP for each byte of weights and KV cache)", color=palette["muted"], align="middle", size=12)
    add("text", x=14, y=(top + bottom) / 2, text="FLOP/s per chip", color=palette["muted"], align="middle", size=12, turn=-90)
    return out


def _rows(columns: dict, *names: str):
    return zip(*(columns[name] for name in names), strict=True)


def to_svg(report: dict, width: float = 880, height: float = 480, palette: dict = LIGHT, background: bool = True) -> str:
    """The chart as SVG text.

    palette: {role: any CSS colour}. background: paint the paper (off where it stands on a page's own).
    """
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_n(width)} {_n(height)}" font-family="{FONT}">']
    if background:
        parts.append(f'<rect width="{_n(width)}" height="{_n(height)}" fill="{palette["paper"]}"/>')
    for kind, s in shapes(report, width, height, palette):
        if kind == "line":
            points = " ".join(f"{_n(px)},{_n(py)}" for px, py in s["points"])
            dash = f' stroke-dasharray="{" ".join(map(str, s["dash"]))}"' if s.get("dash") else ""
            parts.append(f'<polyline points="{points}" fill="none" stroke="{s["color"]}" stroke-width="{_n(s["width"])}" stroke-opacity="{_n(s.get("alpha", 1))}" stroke-linecap="round"{dash}/>')
        elif kind == "polygon":
            points = " ".join(f"{_n(px)},{_n(py)}" for px, py in s["points"])
            parts.append(f'<polygon points="{points}" fill="{s["color"]}" fill-opacity="{_n(s["alpha"])}"/>')
        elif kind == "text":
            turn = f' transform="rotate({_n(s["turn"])} {_n(s["x"])} {_n(s["y"])})"' if s.get("turn") else ""
            weight = ' font-weight="bold"' if s.get("bold") else ""
            parts.append(f'<text x="{_n(s["x"])}" y="{_n(s["y"])}" fill="{s["color"]}" font-size="{s["size"]}" text-anchor="{s["align"]}"{weight}{turn}>{escape(s["text"])}</text>')
        else:
            look = f'fill="{s["color"]}" fill-opacity="{_n(s["alpha"])}" stroke="{s["edge"]}" stroke-opacity="{_n(s["edge_alpha"])}" stroke-width="{2 if s["edge_alpha"] == 1 else 1}"'
            r = s["size"] / 2
            parts.append(f'<circle cx="{_n(s["x"])}" cy="{_n(s["y"])}" r="{_n(r)}" {look}/>' if kind == "disc"
                         else f'<rect x="{_n(s["x"] - r)}" y="{_n(s["y"] - r)}" width="{_n(2 * r)}" height="{_n(2 * r)}" {look}/>')
    return "".join([*parts, "</svg>"])


def _n(value: float) -> str:
    """A number for SVG: at most two decimals.

    >>> _n(3.14159), _n(2.0)
    ('3.14', '2')
    """
    return f"{value:.2f}".rstrip("0").rstrip(".")


def to_png(report: dict, path, width: int = 880, height: int = 480, palette: dict = LIGHT, scale: int = 2, title: str = "") -> None:
    """Write the chart as a PNG file of width x scale by height x scale pixels; needs Pillow.

    title: lines of text over the chart (as on a link's preview).
    """
    from PIL import Image, ImageDraw, ImageFont

    size, scale = (width * scale, height * scale), 2 * scale  # drawn twice as large, then halved, so that edges are smooth
    head = 46 * len(title.splitlines()) + 24 if title else 0
    image = Image.new("RGB", (width * scale, height * scale), palette["paper"])
    font = lambda size: ImageFont.load_default(size * scale)
    pen = ImageDraw.Draw(image, "RGBA")
    for i, line in enumerate(title.splitlines()):
        pen.text((36 * scale, (26 + 46 * i) * scale), line, fill=palette["ink"], font=font(32))
    place = lambda p: (p[0] * scale, (p[1] + head) * scale)
    for kind, s in shapes(report, width, height - head, palette):
        color = _rgba(s["color"], s.get("alpha", 1))
        if kind == "polygon":
            pen.polygon([place(p) for p in s["points"]], fill=color)
        elif kind == "line":
            for a, b in _dashes(s["points"], s.get("dash")):
                pen.line([place(a), place(b)], fill=color, width=max(1, round(s["width"] * scale)))
        elif kind == "text":
            _png_text(image, pen, s, place((s["x"], s["y"])), font(s["size"]), color)
        else:
            (cx, cy), r = place((s["x"], s["y"])), s["size"] / 2 * scale
            draw = pen.ellipse if kind == "disc" else pen.rectangle
            draw((cx - r, cy - r, cx + r, cy + r), fill=color if s["alpha"] else None, outline=_rgba(s["edge"], s["edge_alpha"]), width=(2 if s["edge_alpha"] == 1 else 1) * scale)
    image.resize(size, Image.Resampling.LANCZOS).save(path, "PNG", optimize=True)


def _png_text(image, pen, s: dict, at: tuple, font, color) -> None:
    from PIL import Image, ImageDraw

    anchor = {"start": "ls", "middle": "ms", "end": "rs"}[s["align"]]
    text = s["text"].replace("\u2009", " ")
    if not s.get("turn"):
        pen.text(at, text, fill=color, font=font, anchor=anchor, stroke_width=1 if s.get("bold") else 0, stroke_fill=color)
        return
    box = font.getbbox(text, anchor=anchor)
    side = 2 * int(max(map(abs, box)) + 4)
    layer = Image.new("RGBA", (side, side), (0, 0, 0, 0))
    ImageDraw.Draw(layer).text((side / 2, side / 2), text, fill=color, font=font, anchor=anchor)
    layer = layer.rotate(-s["turn"], resample=Image.Resampling.BICUBIC)
    image.paste(layer, (round(at[0] - side / 2), round(at[1] - side / 2)), layer)


def _rgba(color: str, alpha: float) -> tuple:
    return (*(int(color[i:i + 2], 16) for i in (1, 3, 5)), round(255 * alpha))


def _dashes(points: list, dash) -> list:
    """The pieces of a line, each a pair of points; undashed, its segments."""
    pieces = []
    for (ax, ay), (bx, by) in zip(points, points[1:]):
        if not dash:
            pieces.append(((ax, ay), (bx, by)))
            continue
        length, at = math.hypot(bx - ax, by - ay), 0.0
        while at < length:
            end = min(at + dash[0], length)
            pieces.append(((ax + (bx - ax) * at / length, ay + (by - ay) * at / length), (ax + (bx - ax) * end / length, ay + (by - ay) * end / length)))
            at += sum(dash)
    return pieces
