"""The generic roofline: points from a CSV file and roofs given by hand, for kernels and programs of any field.

A points file has a row for each kernel: `name`, `flops`, `bytes` and `seconds`. Work may also be given as `flops_per_s`, and bytes for each
level of memory in columns of their own (`bytes:L1`, `bytes:L2`, `bytes:DRAM`): each level then gets a point at its own intensity, at the
same height. Without seconds a point stands on its roof. `group` colours points together. Quantities may carry units: `1.2 GFLOP`, `3 ms`.
"""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass, replace

from ..errors import InputError, nearest
from ..units import format_number, format_quantity, parse_quantity
from .chart import MARKERS, Chart, Point, Roof, series

MAX_POINTS = 5000
_COLUMNS = ("name", "flops", "bytes", "seconds", "flops_per_s", "intensity", "group")
_ALIASES = {
    "kernel": "name",
    "label": "name",
    "flop": "flops",
    "time": "seconds",
    "time_s": "seconds",
    "s": "seconds",
    "ms": "seconds",
    "flop/s": "flops_per_s",
    "flops/s": "flops_per_s",
    "gflop/s": "flops_per_s",
    "gflops": "flops_per_s",
    "ai": "intensity",
    "flop/byte": "intensity",
    "flops/byte": "intensity",
    "category": "group",
    "phase": "group",
}
_SCALES = {"ms": 1e-3, "gflop/s": 1e9, "gflops": 1e9}


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One kernel. flops [FLOP] or None; bytes: {level: bytes} ("" where there is only one); seconds [s] or None; rate [FLOP/s] or None."""

    name: str
    flops: float | None
    bytes: dict
    seconds: float | None
    rate: float | None
    intensity: float | None
    group: str = ""


def read_roof(text: str) -> Roof:
    """A roof typed by hand: "FP64 = 9.7 TFLOP/s" is a compute roof, "HBM = 2.04 TB/s" a memory roof; the name is the level that `bytes:HBM` means.

    >>> read_roof("HBM=2 TB/s").kind, read_roof("FP64=9.7 TFLOP/s").value
    ('memory', 9700000000000.0)
    """
    name, sign, value = str(text).partition("=")
    name, value = name.strip()[:40], value.strip()
    if not sign or not name or not value:
        raise InputError("roof", text, 'must read NAME=VALUE with a unit, such as "FP64=9.7 TFLOP/s" or "HBM=2.04 TB/s"')
    low = value.lower()
    if "flop" in low or low.endswith(("op/s", "ops")):
        return Roof(name=name, value=float(parse_quantity(value, "FLOP/s", field=f"roof {name}", low=1, high=1e25)), kind="compute")
    if "b/s" in low or "byte" in low:
        return Roof(name=name, value=float(parse_quantity(value, "bytes/s", field=f"roof {name}", low=1, high=1e25)), kind="memory", level=name)
    raise InputError(f"roof {name}", value, 'needs its unit, FLOP/s or B/s, such as "9.7 TFLOP/s" or "2.04 TB/s"')


def read_points(text: str, name: str = "points.csv") -> list:
    """The rows of a points file (CSV, or tab- or semicolon-separated), as `Row`s. Raises InputError naming line, column and rule."""
    lines = text.lstrip("\ufeff").splitlines()
    first = next((line for line in lines if line.strip() and not line.startswith("#")), "")
    separator = max(",;\t", key=first.count)
    rows = list(csv.reader(io.StringIO("\n".join(line for line in lines if line.strip() and not line.startswith("#"))), delimiter=separator))
    if len(rows) < 2:
        raise InputError("points", name, "must have a header line and at least one row: name,flops,bytes,seconds")
    if len(rows) - 1 > MAX_POINTS:
        raise InputError("points", name, f"has more than {MAX_POINTS:,} rows")
    heads = [_column(h, name) for h in rows[0]]
    if "name" not in [h[0] for h in heads]:
        raise InputError("points", name, "must have a column called name")
    return [_row(dict(zip(heads, cells, strict=False)), i) for i, cells in enumerate(rows[1:], 2)]


def _column(head: str, file: str) -> tuple:
    """(column, level, scale) of a heading."""
    plain = head.strip().lower().replace(" ", "_")
    if plain.startswith("bytes") and len(plain) > 6 and plain[5] in ":._[(":
        return "bytes", head.strip()[6:].strip("])_ "), 1.0
    if plain.endswith("_bytes") and plain != "_bytes":
        return "bytes", head.strip()[:-6], 1.0
    column = _ALIASES.get(plain, plain)
    if column not in _COLUMNS:
        raise InputError(
            "column", head, f"is not one that a points file has ({', '.join(_COLUMNS)}, bytes:LEVEL){nearest(plain, (*_COLUMNS, *_ALIASES))}"
        )
    return column, "", _SCALES.get(plain, 1.0)


def _row(cells: dict, line: int) -> Row:
    values: dict = {"bytes": {}}
    kinds = {"flops": "FLOP", "bytes": "bytes", "seconds": "s", "flops_per_s": "FLOP/s", "intensity": "FLOP/byte"}
    for (column, level, scale), cell in cells.items():
        cell = cell.strip()
        if column in ("name", "group"):
            values[column] = cell[:60]
        elif cell:
            value = float(parse_quantity(cell, kinds[column], field=f"line {line}, {column}{':' + level if level else ''}", low=0, high=1e30)) * scale
            if column == "bytes":
                if value:
                    values["bytes"][level] = value
            else:
                values[column] = value or None
    row = Row(
        name=values.get("name") or f"line {line}",
        flops=values.get("flops"),
        bytes=values["bytes"],
        seconds=values.get("seconds"),
        rate=values.get("flops_per_s"),
        intensity=values.get("intensity"),
        group=values.get("group", ""),
    )
    if not (row.flops and row.bytes or row.intensity):
        raise InputError(f"line {line}", row.name, "needs FLOPs and bytes (or an intensity) to have a place on the chart")
    return row


def from_kernels(kernels, roofs) -> list:
    """Rows of the kernels of a profiler's reading (`measured.kernel_place.kernels`); those without FLOPs and bytes are left out.

    A kernel whose bytes are a cache's (Advisor's cache-aware intensity) is placed under the roof of that level, if there is one.
    """
    levels = {r.level.lower(): r.level for r in roofs if r.kind == "memory"}
    rows = []
    for k in kernels:
        level = levels.get(str(k.get("level") or "").split(" ")[0].lower(), "")
        intensity = k.get("intensity")
        if not (k.get("flops") and k.get("bytes")) and not (intensity and k.get("flops_per_s")):
            continue
        flops = k.get("flops") or k["flops_per_s"] * (k.get("seconds") or 1.0)
        moved = flops / intensity if intensity else k["bytes"]
        rows.append(
            Row(
                name=str(k.get("name") or f"kernel {len(rows) + 1}").removeprefix("void ").split("(")[0][:40],
                flops=flops,
                bytes={level: moved},
                seconds=k.get("seconds"),
                rate=k.get("flops_per_s"),
                intensity=intensity,
            )
        )
    return rows


def place(row: Row, roofs) -> list:
    """[(level, x [FLOP/byte], y [FLOP/s], roof [FLOP/s], bound, timed)] of a row: one for each memory level its bytes are given for."""
    peak = max(r.value for r in roofs if r.kind == "compute" and r.main)
    memory = [r for r in roofs if r.kind == "memory"]
    levels = {r.level.lower(): r for r in memory}
    found = []
    for level, moved in (row.bytes or {"": None}).items():
        if level and level.lower() not in levels:
            raise InputError(f"bytes:{level}", row.name, f"has no roof of that name; the memory roofs are {', '.join(r.level for r in memory)}")
        roof = levels[level.lower()] if level else min((r for r in memory if r.main), key=lambda r: r.value)
        x = row.flops / moved if row.flops and moved else row.intensity
        top = min(peak, x * roof.value)
        y = row.rate or (row.flops / row.seconds if row.flops and row.seconds else None)
        found.append((level, x, y or top, top, "compute" if x * roof.value > peak else "memory", y is not None))
    if all(not f[5] for f in found) and len(found) > 1:
        # Nothing timed: the row as a whole is held by its lowest roof, and stands there at every level.
        low = min(f[3] for f in found)
        found = [(level, x, low, top, bound, False) for level, x, _, top, bound, _ in found]
    return found


def from_points(rows, roofs, *, theme: str = "light", title: str = "Roofline", **options) -> Chart:
    """The chart of `read_points` rows under `Roof`s.

    Rows with several levels get one marker for each, all at their height. Raises InputError for bytes of a level that has no roof.
    """
    roofs = tuple(roofs)
    if not any(r.kind == "compute" for r in roofs) or not any(r.kind == "memory" for r in roofs):
        Chart(roofs=roofs)  # says which kind is missing
    levels = [r.level for r in roofs if r.kind == "memory"]
    groups = list(dict.fromkeys(r.group for r in rows if r.group))
    many = any(len(r.bytes) > 1 for r in rows)
    if many:  # each memory roof in the colour of the points that count its bytes
        roofs = tuple(replace(r, color=r.color or series(levels.index(r.level))) if r.kind == "memory" else r for r in roofs)
    longest = max((r.seconds or 0 for r in rows), default=0)
    points, out, above = [], [], []
    for row in rows:
        for i, (level, x, y, roof, bound, timed) in enumerate(place(row, roofs)):
            color = (
                series(groups.index(row.group))
                if row.group
                else series(levels.index(next(v for v in levels if v.lower() == level.lower())))
                if level and many
                else bound
            )
            marker = (
                MARKERS[groups.index(row.group) % len(MARKERS)]
                if row.group
                else MARKERS[[v.lower() for v in levels].index(level.lower()) % len(MARKERS)]
                if level
                else "circle"
            )
            size = 9 + 13 * (row.seconds / longest) ** 0.5 if longest and row.seconds and not many else 11
            share = y / roof
            if timed and share > 1.02:
                above.append(row.name)
            points.append(
                Point(
                    name=row.name,
                    x=x,
                    y=y,
                    timed=timed,
                    marker=marker,
                    size=size,
                    color=color,
                    label=not (many and i),
                    group=row.group or (f"bytes at {level}" if level else ""),
                    tip=f"{format_number(x)} FLOP/byte{' at ' + level if level else ''}, {format_quantity(y, 'FLOP/s')}"
                    + (f", {format_number(100 * share)} % of its roof" if timed else ", at most"),
                )
            )
            out.append(
                {
                    "name": row.name,
                    "level": level or "–",
                    "FLOP/byte": format_number(x),
                    "FLOP/s": format_quantity(y, "FLOP/s"),
                    "bound by": bound if not level else level if bound == "memory" else "compute",
                    "of its roof": f"{format_number(100 * share)} %" if timed else "at most",
                }
            )
    if above:
        options.setdefault("subtitle", f"Above a roof, so its figures or the roof's are not what they seem: {', '.join(dict.fromkeys(above))}")
    return Chart(title=title, roofs=roofs, points=tuple(points), rows=tuple(out), theme=theme, **options)
