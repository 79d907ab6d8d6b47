"""A drawing as a list of simple shapes in pixels, and two ways to write it without a display: SVG text and a PNG image.

SVG needs nothing. PNG needs Pillow, which comes with Bokeh; the picture is drawn four times as large and scaled down.
"""

from __future__ import annotations

import io
import math
import unicodedata
from dataclasses import dataclass
from html import escape
from itertools import pairwise

from ..errors import InputError
from .themes import FONT


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A polyline. points: ((x, y), ...) [px]; dash: on and off lengths [px]."""

    points: tuple
    color: str
    width: float = 1.0
    dash: tuple = ()
    alpha: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Area:
    """A filled polygon."""

    points: tuple
    color: str
    alpha: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A point. shape: circle, square, diamond, triangle, inverted_triangle, cross; size: its diameter [px]; fill: a colour or "" for a hollow one; title: shown on hover."""

    x: float
    y: float
    size: float
    shape: str = "circle"
    fill: str = ""
    fill_alpha: float = 1.0
    stroke: str = ""
    stroke_alpha: float = 1.0
    width: float = 1.5
    title: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """A line of text. anchor: start, middle or end; baseline: bottom (alphabetic) or middle; angle [degrees, counter-clockwise]; halo: a colour drawn round it."""

    x: float
    y: float
    text: str
    color: str
    size: float = 12.0
    anchor: str = "start"
    baseline: str = "bottom"
    angle: float = 0.0
    bold: bool = False
    halo: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """Shapes in the order they are drawn. clip: (x, y, width, height) that `inner` shapes stay within."""

    width: int
    height: int
    background: str
    shapes: tuple
    inner: tuple = ()
    clip: tuple = ()
    title: str = ""
    description: str = ""


def text_width(text: str, size: float, bold: bool = False) -> float:
    """About how wide a text is in a sans-serif face [px]; East Asian characters are square.

    >>> round(text_width("HBM 3.35 TB/s", 12))
    83
    """
    narrow, wide = sum(c in "iljtfr.,:;'|!()[] \u2009/" for c in text), sum(unicodedata.east_asian_width(c) in "WF" for c in text)
    upper = sum(c.isupper() or c in "mw%@" for c in text)
    return size * (1.08 if bold else 1.0) * (0.56 * len(text) - 0.25 * narrow + 0.12 * upper + 0.44 * wide)


# ---- SVG ----------------------------------------------------------------------------------------------------------


def svg(scene: Scene, colors=None, id: str = "roofline") -> str:
    """The scene as SVG.

    colors: a function from colour to what is written, such as one that gives CSS variables; None writes colours as they are.
    id: makes the names inside unique where several drawings share one page.
    """
    paint = colors or (lambda c: c)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{scene.width}" height="{scene.height}" viewBox="0 0 {scene.width} {scene.height}" '
        f'role="img" aria-labelledby="{id}-title {id}-desc" font-family="{escape(FONT, quote=True)}">',
        f'<title id="{id}-title">{escape(scene.title)}</title><desc id="{id}-desc">{escape(scene.description)}</desc>',
    ]
    if scene.background:
        out.append(f'<rect width="100%" height="100%" fill="{paint(scene.background)}"/>')
    if scene.inner:
        x, y, w, h = scene.clip
        out.append(f'<clipPath id="{id}-clip"><rect x="{_n(x)}" y="{_n(y)}" width="{_n(w)}" height="{_n(h)}"/></clipPath>')
        out.append(f'<g clip-path="url(#{id}-clip)">' + "".join(_svg(s, paint) for s in scene.inner) + "</g>")
    out += [_svg(s, paint) for s in scene.shapes]
    return "\n".join([*out, "</svg>"])


def _n(x: float) -> str:
    return f"{x:.2f}".rstrip("0").rstrip(".")


def _svg(s, paint) -> str:
    if isinstance(s, Line):
        dash = f' stroke-dasharray="{" ".join(map(_n, s.dash))}"' if s.dash else ""
        alpha = f' stroke-opacity="{_n(s.alpha)}"' if s.alpha < 1 else ""
        return (
            f'<polyline points="{" ".join(f"{_n(x)},{_n(y)}" for x, y in s.points)}" fill="none" stroke="{paint(s.color)}" '
            f'stroke-width="{_n(s.width)}" stroke-linecap="{"butt" if s.dash else "round"}" stroke-linejoin="round"{dash}{alpha}/>'
        )
    if isinstance(s, Area):
        return f'<polygon points="{" ".join(f"{_n(x)},{_n(y)}" for x, y in s.points)}" fill="{paint(s.color)}" fill-opacity="{_n(s.alpha)}"/>'
    if isinstance(s, Mark):
        look = (
            f'fill="{paint(s.fill) if s.fill else "none"}" fill-opacity="{_n(s.fill_alpha)}" stroke="{paint(s.stroke or s.fill)}" '
            f'stroke-opacity="{_n(s.stroke_alpha)}" stroke-width="{_n(s.width)}"'
        )
        if s.shape == "circle":
            shape = f'<circle cx="{_n(s.x)}" cy="{_n(s.y)}" r="{_n(s.size / 2)}" {look}'
        else:
            path = " ".join(f"{_n(x)},{_n(y)}" for x, y in _outline(s))
            shape = f'<polygon points="{path}" {look}'
        return f"{shape}><title>{escape(s.title)}</title></{shape[1:].split(' ', 1)[0]}>" if s.title else shape + "/>"
    turn = f' transform="rotate({_n(-s.angle)} {_n(s.x)} {_n(s.y)})"' if s.angle else ""
    look = f' stroke="{paint(s.halo)}" stroke-width="3" stroke-linejoin="round" paint-order="stroke"' if s.halo else ""
    bold = ' font-weight="650"' if s.bold else ""
    base = ' dominant-baseline="central"' if s.baseline == "middle" else ""
    anchor = f' text-anchor="{s.anchor}"' if s.anchor != "start" else ""
    return (
        f'<text x="{_n(s.x)}" y="{_n(s.y)}" font-size="{_n(s.size)}" fill="{paint(s.color)}"{anchor}{base}{bold}{look}{turn}>{escape(s.text)}</text>'
    )


def _outline(m: Mark) -> list:
    """Corners of a marker, as large to the eye as a circle of its size."""
    r = m.size / 2
    corners = {
        "square": [(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)],
        "diamond": [(0, -1.2), (1.2, 0), (0, 1.2), (-1.2, 0)],
        "triangle": [(0, -1.15), (1.1, 0.85), (-1.1, 0.85)],
        "inverted_triangle": [(0, 1.15), (1.1, -0.85), (-1.1, -0.85)],
        "cross": [
            (-0.35, -1),
            (0.35, -1),
            (0.35, -0.35),
            (1, -0.35),
            (1, 0.35),
            (0.35, 0.35),
            (0.35, 1),
            (-0.35, 1),
            (-0.35, 0.35),
            (-1, 0.35),
            (-1, -0.35),
            (-0.35, -0.35),
        ],
    }[m.shape]
    return [(m.x + r * x, m.y + r * y) for x, y in corners]


# ---- PNG ----------------------------------------------------------------------------------------------------------


def png(scene: Scene, scale: float = 2.0) -> bytes:
    """The scene as a PNG image, `scale` image pixels for each of its pixels."""
    try:
        from PIL import Image, ImageDraw
    except ImportError:
        raise InputError("output", "png", "needs Pillow; `pip install pillow`, or write an .svg, which needs nothing") from None
    k = scale * 2  # drawn twice as large again, then scaled down, so that edges are smooth
    size = (round(scene.width * k), round(scene.height * k))
    image = Image.new("RGB", size, scene.background or "#ffffff")

    def paint(target, shapes):
        draw = ImageDraw.Draw(target, "RGBA")  # blends what is half transparent into what is there
        for s in shapes:
            if isinstance(s, Text):
                _png_text(target, s, k)
            else:
                _png_shape(draw, s, k)

    if scene.inner:
        x, y, w, h = (round(v * k) for v in scene.clip)
        inner = image.copy()
        paint(inner, scene.inner)
        image.paste(inner.crop((x, y, x + w, y + h)), (x, y))
    paint(image, scene.shapes)
    out = io.BytesIO()
    image.resize((round(scene.width * scale), round(scene.height * scale)), Image.LANCZOS).save(
        out, "PNG", optimize=True, dpi=(96 * scale, 96 * scale)
    )
    return out.getvalue()


def _rgba(color: str, alpha: float) -> tuple:
    return tuple(int(color[i : i + 2], 16) for i in (1, 3, 5)) + (round(255 * alpha),)


def _png_shape(draw, s, k: float) -> None:
    if isinstance(s, Line):
        ink, width = _rgba(s.color, s.alpha), max(1, round(s.width * k))
        for piece in _dashes([(x * k, y * k) for x, y in s.points], [d * k for d in s.dash]):
            draw.line(piece, fill=ink, width=width, joint="curve")
            if not s.dash and s.alpha == 1:
                for x, y in (piece[0], piece[-1]):
                    draw.ellipse((x - width / 2, y - width / 2, x + width / 2, y + width / 2), fill=ink)
    elif isinstance(s, Area):
        draw.polygon([(x * k, y * k) for x, y in s.points], fill=_rgba(s.color, s.alpha))
    else:
        fill = _rgba(s.fill, s.fill_alpha) if s.fill else None
        ink, width = _rgba(s.stroke or s.fill, s.stroke_alpha), max(1, round(s.width * k))
        if s.shape == "circle":
            r = (s.size / 2 + s.width / 2) * k
            draw.ellipse((s.x * k - r, s.y * k - r, s.x * k + r, s.y * k + r), fill=fill, outline=ink, width=width)
        else:
            corners = [(x * k, y * k) for x, y in _outline(s)]
            if fill:
                draw.polygon(corners, fill=fill)
            draw.line([*corners, corners[0], corners[1]], fill=ink, width=width, joint="curve")


def _dashes(points: list, dash: list) -> list:
    """A polyline cut into its dashes."""
    if not dash:
        return [points]
    pieces, piece, on, left, place = [], [points[0]], True, dash[0], 0
    for (x0, y0), (x1, y1) in pairwise(points):
        length, done = math.hypot(x1 - x0, y1 - y0), 0.0
        while length - done > left:
            done += left
            x, y = x0 + (x1 - x0) * done / length, y0 + (y1 - y0) * done / length
            if on:
                pieces.append([*piece, (x, y)])
            piece, on, place = [(x, y)], not on, place + 1
            left = dash[place % len(dash)]
        left -= length - done
        if on:
            piece.append((x1, y1))
    if on and len(piece) > 1:
        pieces.append(piece)
    return pieces


def _png_text(image, s: Text, k: float) -> None:
    from PIL import Image, ImageDraw

    font = _font(s.size * k)
    text = "".join(c if c in _FACE else _PLAIN.get(c, "?") for c in s.text)
    bold = round(0.022 * s.size * k) if s.bold else 0
    halo = round(1.5 * k) if s.halo else 0
    left, top, right, bottom = font.getbbox(text, anchor="ls", stroke_width=bold)
    pad = halo + bold + 4
    ascent, width, height = -top + pad, right - left + 2 * pad, bottom - top + 2 * pad
    layer = Image.new("RGBA", (math.ceil(width), math.ceil(height)), _rgba(s.halo or s.color, 0))
    draw, at = ImageDraw.Draw(layer), (pad - left, ascent)
    if halo:
        draw.text(at, text, font=font, fill=_rgba(s.halo, 1), anchor="ls", stroke_width=halo + bold, stroke_fill=_rgba(s.halo, 1))
    draw.text(at, text, font=font, fill=_rgba(s.color, 1), anchor="ls", stroke_width=bold, stroke_fill=_rgba(s.color, 1))
    # The anchor in the layer, then turned with it about its centre.
    ax = at[0] + {"start": 0, "middle": (right + left) / 2, "end": right}[s.anchor]
    ay = ascent - (0.36 * s.size * k if s.baseline == "middle" else 0)
    dx, dy = ax - layer.width / 2, ay - layer.height / 2
    if s.angle:
        layer = layer.rotate(s.angle, expand=True, resample=Image.BICUBIC)
        a = math.radians(s.angle)
        dx, dy = dx * math.cos(a) + dy * math.sin(a), -dx * math.sin(a) + dy * math.cos(a)
    place = (round(s.x * k - layer.width / 2 - dx), round(s.y * k - layer.height / 2 - dy))
    image.paste(layer, place, layer)


# What the face that comes with Pillow has, and what stands in for a few signs it lacks.
_FACE = frozenset(map(chr, range(32, 127)))
_PLAIN = {
    "\u2009": " ",
    "\u202f": " ",
    "\u00a0": " ",
    "\u2007": " ",
    "×": "x",
    "–": "-",
    "—": "-",
    "−": "-",
    "µ": "u",
    "μ": "u",
    "·": ".",
    "…": "...",
    "’": "'",
    "“": '"',
    "”": '"',
    "≤": "<=",
    "≥": ">=",
    "≈": "~",
}


def _font(size: float):
    """The face that comes with Pillow, the same on every machine; the system's for what it lacks is not looked for."""
    from PIL import ImageFont

    return ImageFont.load_default(size=size)
