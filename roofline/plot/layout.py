"""Where everything on a chart goes: ranges, roofs, and a free place for every label."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..units import format_number, format_quantity
from .chart import LABELLED, Chart
from .scene import text_width
from .themes import palette


@dataclass(frozen=True, slots=True)
class Frame:
    """Where the plot lies: its box [px] and its ranges."""

    left: float
    top: float
    width: float
    height: float
    x0: float
    x1: float
    y0: float
    y1: float

    def x(self, value: float) -> float:
        return self.left + self.width * math.log(value / self.x0) / math.log(self.x1 / self.x0)

    def y(self, value: float) -> float:
        return self.top + self.height * (1 - math.log(value / self.y0) / math.log(self.y1 / self.y0))

    @property
    def slope(self) -> float:
        """The angle of a bandwidth roof on the page [degrees]."""
        across, up = self.width / math.log(self.x1 / self.x0), self.height / math.log(self.y1 / self.y0)
        return math.degrees(math.atan2(up, across))


def ranges(chart: Chart) -> tuple:
    """(x0, x1, y0, y1) that show every roof's ridge and every point, snapped to half decades."""
    compute, memory = ([r.value for r in chart.roofs if r.kind == kind] for kind in ("compute", "memory"))
    xs = [p.x for p in chart.points] + [x for t in chart.trails for x, _ in t.points] + [n.x for n in chart.notes]
    ys = [v for p in chart.points for v in (p.y, p.low) if v] + [y for t in chart.trails for _, y in t.points]
    ridges = [min(compute) / max(memory), max(compute) / min(memory)]
    snap = lambda v, rounding, step=2: 10 ** (rounding(step * math.log10(v)) / step)
    x0 = snap(min([ridges[0] / 20, *(x / 1.6 for x in xs)]), math.floor)
    x1 = snap(max([ridges[1] * 8, *(min(x * 1.6, ridges[1] * 1e4) for x in xs)]), math.ceil)
    y1 = max(compute) * 3.2
    y0 = snap(min([max(x0 * min(memory), y1 / 1e6), *(y / 2 for y in ys)]), math.floor)
    return x0, x1, y0, y1


def frame_of(chart: Chart) -> Frame:
    """The plot's place in the drawing, under title, subtitle and legend."""
    top = 22 + (24 if chart.title else 0) + (19 if chart.subtitle else 0) + (26 if legend_entries(chart) else 6)
    return Frame(76, top, chart.width - 76 - 22, chart.height - top - 58, *ranges(chart))


def legend_entries(chart: Chart) -> list:
    """[(label, colour role, marker)] without repetition, in order of first use."""
    found: dict = {}
    for label, color, marker in (*chart.legend, *((p.group, p.color, p.marker) for p in chart.points if p.group)):
        found.setdefault(label, (color, marker))
    return [(label, *look) for label, look in found.items()]


def layout(chart: Chart) -> dict:
    """The columns of `charts.SOURCES` with "range", colours of the theme, and places for all labels."""
    frame, colors = frame_of(chart), palette(chart.theme)
    taken = _Taken(frame)
    for p in chart.points:
        taken.box(frame.x(p.x), frame.y(p.y), p.size, p.size)
    roofs, labels = _roofs(chart, frame, colors, taken)
    phase_labels = {c: [] for c in ("x", "y", "text", "color", "align", "dx", "dy", "bold")}
    for p, text in _named(chart, frame):
        spot = taken.place(frame.x(p.x), frame.y(p.y), p.size, text, 13 if p.strong else 11.5, p.strong)
        if spot is not None:
            for column, value in zip(phase_labels, (p.x, p.y, text, colors[p.color], *spot, p.strong), strict=True):
                phase_labels[column].append(value)
    trail_labels = []
    for t in chart.trails:
        for (x, y), text in zip(t.points, t.labels or [""] * len(t.points), strict=True):
            spot = text and taken.place(frame.x(x), frame.y(y), 6, text, 11, False)
            if spot:
                trail_labels.append((x, y, text, colors[t.color], *spot))
    strong, parts = [p for p in chart.points if p.strong], [p for p in chart.points if not p.strong]
    one = lambda points, **more: {
        "x": [p.x for p in points],
        "y": [p.y for p in points],
        "marker": [p.marker for p in points],
        "color": [colors[p.color] for p in points],
        "title": [p.name for p in points],
        "tip": [p.tip for p in points],
        **more,
    }
    ceilings = [c for c in chart.ceilings if frame.y0 <= c[2] <= frame.y1]
    bands = [p for p in chart.points if p.low and p.high]
    main = _main(chart)
    return {
        "range": {"x0": frame.x0, "x1": frame.x1, "y0": frame.y0, "y1": frame.y1},
        "fields": _fields(main, frame, colors) if chart.shade else {"xs": [], "ys": [], "color": []},
        "ridges": _ridges(main, frame, colors),
        "roofs": roofs,
        "roof_labels": {
            "x": [t[0] for t in labels],
            "y": [t[1] for t in labels],
            "text": [t[2] for t in labels],
            "color": [t[3] for t in labels],
            "align": [t[4] for t in labels],
            "angle": [math.radians(t[5]) for t in labels],
        },
        "field_labels": dict.fromkeys(("x", "y", "text", "color", "align", "dx"), []),  # the page's; a file has its caption
        "ceilings": {
            "xs": [[c[0], c[1]] for c in ceilings],
            "ys": [[c[2], c[2]] for c in ceilings],
            "color": [colors[c[4]] for c in ceilings],
            "label": [c[3] for c in ceilings],
        },
        "trail": {
            "xs": [[x for x, _ in t.points] for t in chart.trails],
            "ys": [[y for _, y in t.points] for t in chart.trails],
            "color": [colors[t.color] for t in chart.trails],
        },
        "trail_labels": trail_labels,
        "operators": one(parts, size=[p.size for p in parts], timed=[p.timed for p in parts]),
        "expected": {
            "x": [p.x for p in bands],
            "expected": [p.y for p in bands],
            "low": [p.low for p in bands],
            "high": [p.high for p in bands],
            "marker": [p.marker for p in bands],
            "color": [colors[p.color] for p in bands],
            "title": [p.name for p in bands],
            "tip": [p.tip for p in bands],
        },
        "phases": one(strong, paper=[colors["paper"]] * len(strong), timed=[p.timed for p in strong], size=[p.size for p in strong]),
        "phase_labels": phase_labels,
    }


def _main(chart: Chart) -> tuple | None:
    """(peak, bandwidth) whose ridge and fields are shown: the highest strong compute roof over the slowest strong memory roof, of one set of roofs only."""
    strong = [r for r in chart.roofs if r.main]
    compute, memory = ([r for r in strong if r.kind == kind] for kind in ("compute", "memory"))
    if not compute or not memory or len({r.color for r in strong if r.color.startswith("series")}) > 1:
        return None
    return max(r.value for r in compute), min(r.value for r in memory)


def _fields(main, f: Frame, colors: dict) -> dict:
    if main is None:
        return {"xs": [], "ys": [], "color": []}
    peak, bandwidth = main
    ridge = min(max(peak / bandwidth, f.x0), f.x1)
    start = max(f.x0, f.y0 / bandwidth)
    left = max(f.y0, f.x0 * bandwidth)
    return {
        "xs": [[start, start, ridge, ridge], [ridge, ridge, f.x1, f.x1]],
        "ys": [[f.y0, left, peak, f.y0], [f.y0, peak, peak, f.y0]],
        "color": [colors["memory"], colors["compute"]],
    }


def _ridges(main, f: Frame, colors: dict) -> dict:
    if main is None:
        return {"x": [], "y": [], "y0": [], "label": [], "color": []}
    peak, bandwidth = main
    return {
        "x": [peak / bandwidth],
        "y": [peak],
        "y0": [f.y0],
        "label": [f"ridge {format_number(peak / bandwidth)} FLOP/byte"],
        "color": [colors["muted"]],
    }


def _named(chart: Chart, f: Frame) -> list:
    """[(point, text)] of the labels, strong points first; points that lie on one another share a label."""
    named = sorted((p for p in chart.points if p.label and p.name), key=lambda p: (not p.strong, -p.size))[: 2 * LABELLED]
    groups: list = []
    for p in named:
        near = next((g for g in groups if not p.strong and not g[0].strong and math.hypot(f.x(g[0].x) - f.x(p.x), f.y(g[0].y) - f.y(p.y)) < 9), None)
        if near is None:
            groups.append([p])
        else:
            near.append(p)
    return [(g[0], _joined([p.name for p in g])) for g in groups[:LABELLED]]


def _joined(names: list) -> str:
    """Several names as one label, what they share said once.

    >>> _joined(["mlp.up_proj", "mlp.gate_proj", "lm_head", "norm"])
    'mlp.up_proj, gate_proj, lm_head +1'
    """
    names = list(dict.fromkeys(names))
    first = names[0].rpartition(".")[0]
    short = [names[0], *(n.removeprefix(first + ".") if first else n for n in names[1:3])]
    return ", ".join(short) + (f" +{len(names) - 3}" if len(names) > 3 else "")


def _roofs(chart: Chart, f: Frame, colors: dict, taken) -> tuple:
    """(columns of the roofs, [(x, y, text, colour, align, angle)] of their labels)."""
    columns = {c: [] for c in ("xs", "ys", "color", "width", "alpha")}
    lines, labels, rows = [], [], []
    for r in sorted(chart.roofs, key=lambda r: (r.kind, -r.value)):
        mine = [o.value for o in chart.roofs if o.kind != r.kind and (not r.color or not o.color or o.color == r.color)]
        other = max(mine or [o.value for o in chart.roofs if o.kind != r.kind])  # a roof ends at the highest (or fastest) one of its own chip
        color = colors[r.color or r.kind]
        if r.kind == "memory":
            x0, x1 = max(f.x0, f.y0 / r.value), min(f.x1, other / r.value)
            xs, ys = [x0, x1], [x0 * r.value, x1 * r.value]
        else:
            xs, ys = [max(f.x0, r.value / other), f.x1], [r.value, r.value]
        for name, value in zip(columns, (xs, ys, color, 2.6 if r.main else 1.3, 1.0 if r.main else 0.6), strict=True):
            columns[name].append(value)
        lines.append([(f.x(x), f.y(y)) for x, y in zip(xs, ys, strict=True)])
        rows.append((r, xs, color))
    for line in lines:
        taken.line(line)
    for r, xs, color in rows:
        text = f"{r.name} {format_quantity(r.value, 'FLOP/s' if r.kind == 'compute' else 'B/s')}"
        label = _flat(r, xs, text, color, f, taken) if r.kind == "compute" else _slanted(r, xs, text, color, f, taken)
        labels.append(label)
        taken.text(label)
    return columns, labels


def _flat(r, xs, text, color, f: Frame, taken) -> tuple:
    """A compute roof's label on its line: at the right end, or as far left as something is in the way."""
    wide, y = text_width(text, 12), f.y(r.value) - 5
    right, left = f.x(xs[1]) - 6, f.x(xs[0]) + 10
    places = [right - i * 24 for i in range(int(max(0, right - wide - left) // 24) + 1)]
    x = min(places, key=lambda x: (round(taken.hits((x - wide, y - 12, x, y + 2)), 1), right - x))
    return _back_x(f, x), _back_y(f, y), text, color, "right", 0.0


def _slanted(r, xs, text, color, f: Frame, taken) -> tuple:
    """A memory roof's label along its line, above or below it: near its lower end, or further up where something is in the way."""
    turn, wide = math.radians(f.slope), text_width(text, 12)
    sin, cos = math.sin(turn), math.cos(turn)
    start, end = f.x(xs[0]) + 12, f.x(xs[1]) - wide * cos - 8
    y_at = lambda px: f.y(r.value * xs[0]) - (px - f.x(xs[0])) * math.tan(turn)

    def cost(place):
        px, off = place  # off: from the line to the text's foot, up being positive
        middles = [(px + i * cos - (off + 4) * sin, y_at(px) - i * sin - (off + 4) * cos) for i in range(0, int(wide) + 6, 6)]
        boxed = sum(taken.hits((x - 5, y - 5, x + 5, y + 5)) for x, y in middles)
        lines = sum(any(math.hypot(x - dx, y - dy) < 5.5 for dx, dy in taken.dots) for x, y in middles)
        inside = middles[-1][0] < f.left + f.width and middles[0][1] < f.top + f.height - 4 and middles[0][0] > f.left + 4
        return (round(boxed + 0.5 * lines, 1) if inside else 99, off < 0, px)

    places = [(start + 22 * i, off) for i in range(int(max(0, end - start) // 22) + 1) for off in (5, -13)]
    px, off = min(places, key=cost)
    return _back_x(f, px - off * sin), _back_y(f, y_at(px) - off * cos), text, color, "left", f.slope


def _back_x(f: Frame, px: float) -> float:
    return f.x0 * (f.x1 / f.x0) ** ((px - f.left) / f.width)


def _back_y(f: Frame, px: float) -> float:
    return f.y0 * (f.y1 / f.y0) ** (1 - (px - f.top) / f.height)


class _Taken:
    """What is already drawn, so that a label finds a free place."""

    def __init__(self, frame: Frame):
        self.frame, self.boxes, self.dots = frame, [], []

    def box(self, x: float, y: float, w: float, h: float) -> None:
        self.boxes.append((x - w / 2, y - h / 2, x + w / 2, y + h / 2))

    def line(self, points) -> None:
        """Take the way of a straight line."""
        (x0, y0), (x1, y1) = points[0], points[-1]
        n = max(2, int(math.hypot(x1 - x0, y1 - y0) / 5))
        self.dots += [(x0 + (x1 - x0) * i / n, y0 + (y1 - y0) * i / n) for i in range(n + 1)]

    def hits(self, box) -> float:
        """How much of a box is taken [box areas]."""
        return sum(_overlap(box, b) for b in self.boxes) / ((box[2] - box[0]) * (box[3] - box[1]))

    def text(self, label) -> None:
        x, y, text, _, align, angle = label
        px, py, wide = self.frame.x(x), self.frame.y(y), text_width(text, 12)
        if angle:
            a = math.radians(angle)
            for i in range(0, int(wide), 10):
                self.box(px + i * math.cos(a) - 5 * math.sin(a), py - i * math.sin(a) - 5 * math.cos(a), 12, 12)
        else:
            left = px - (wide if align == "right" else 0)
            self.boxes.append((left, py - 12, left + wide, py + 2))

    def place(self, x: float, y: float, size: float, text: str, font: float, bold: bool):
        """(align, dx, dy) of the best free place beside a point, or None if every place hides something."""
        wide, high, gap = text_width(text, font, bold), font * 1.05, size / 2 + 5
        best = None
        places = (
            ("left", gap, 0),
            ("right", -gap, 0),
            ("left", gap * 0.75, gap + 4),
            ("right", -gap * 0.75, gap + 4),
            ("left", gap * 0.75, -gap - 2),
            ("right", -gap * 0.75, -gap - 2),
            ("center", 0, gap + 8),
            ("center", 0, -gap - 8),
            ("left", gap + 8, 2.2 * gap),
            ("right", -gap - 8, 2.2 * gap),
            ("left", gap + 8, -2.2 * gap),
            ("right", -gap - 8, -2.2 * gap),
            ("center", 0, 2.6 * gap + 8),
            ("center", 0, -2.6 * gap - 8),
            # Far off, for what must have its name.
            ("left", gap + 14, 3.6 * gap),
            ("right", -gap - 14, 3.6 * gap),
            ("right", -gap - 14, -3.6 * gap),
            ("right", -2.5 * gap - 30, 1.6 * gap),
            ("right", -2.5 * gap - 30, -1.6 * gap),
            ("center", 0, 4.6 * gap),
            ("center", 0, 6 * gap),
        )
        for rank, (align, dx, dy) in enumerate(places if bold else places[:14]):
            left = x + dx - {"left": 0, "right": wide, "center": wide / 2}[align]
            box = (left, y + dy - high / 2, left + wide, y + dy + high / 2)
            f = self.frame
            if box[0] < f.left + 2 or box[2] > f.left + f.width - 2 or box[1] < f.top or box[3] > f.top + f.height - 2:
                continue
            hit = self.hits(box)
            own = _overlap(box, (x - size / 2, y - size / 2, x + size / 2, y + size / 2)) / (wide * high)
            crossed = sum(box[0] < px < box[2] and box[1] < py < box[3] for px, py in self.dots)
            cost = 8 * (hit - own * 0.5) + 0.25 * crossed + 0.12 * rank
            if best is None or cost < best[0]:
                best = (cost, align, dx, dy, box, hit)
        if best is None or best[5] > (0.45 if bold else 0.04):
            return None
        self.boxes.append(best[4])
        return best[1:4]


def _overlap(a, b) -> float:
    return max(0.0, min(a[2], b[2]) - max(a[0], b[0])) * max(0.0, min(a[3], b[3]) - max(a[1], b[1]))
