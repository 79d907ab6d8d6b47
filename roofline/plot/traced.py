"""Roofs of chips and machines, and the operators of traces under them."""

from __future__ import annotations

import math

from .. import hardware
from ..chart_data import FORMAT_LABELS
from ..errors import InputError
from ..units import format_number, format_quantity
from .chart import MARKERS, Chart, Point, Roof


def chip_roofs(id: str, formats=None, color: str = "") -> list:
    """The roofs of a catalogue chip: its formats (equal ones once), its memory, its cache where the bandwidth is published.

    formats: names to keep, such as ("bf16", "fp8"); None for all.
    """
    chip = hardware.load(id)
    roofs: list = []
    for name, value in sorted(chip.peaks, key=lambda item: -item[1]):
        if (formats is None or name in formats) and not any(abs(r.value - value) < 0.01 * value for r in roofs):
            alike = [n for n, v in chip.peaks if abs(v - value) <= 0.01 * value and (formats is None or n in formats)]
            roofs.append(
                Roof(name=", ".join(FORMAT_LABELS.get(n, n.upper()) for n in alike[:3]), value=value, kind="compute", main=not roofs, color=color)
            )
    if not roofs:
        raise InputError("formats", ", ".join(formats or ()), f"are none that {chip.name} has; it has {', '.join(n for n, _ in chip.peaks)}")
    roofs.append(Roof(name=chip.memory_type or "memory", value=chip.bandwidth_bytes_per_s, kind="memory", level="memory", color=color))
    if chip.cache_bandwidth_bytes_per_s:
        roofs.append(Roof(name="cache", value=chip.cache_bandwidth_bytes_per_s, kind="memory", level="cache", main=False, color=color))
    return roofs


def machine_roofs(ceilings: dict) -> list:
    """The roofs that `roofline ceilings` measured."""
    top = max(ceilings["peak_flops_per_s"].values())
    roofs = [
        Roof(name="highest measured" if n == "measured" else FORMAT_LABELS.get(n, n.upper()) + " product", value=v, kind="compute", main=v == top)
        for n, v in ceilings["peak_flops_per_s"].items()
    ]
    for level in ceilings["levels"]:
        roofs.append(Roof(name=level["name"], value=level["bytes_per_s"], kind="memory", level=level["name"], main=level["name"] == "memory"))
    return roofs


def from_trace(traces, roofs, *, fusion: str = "none", least: float = 0.005, theme: str = "light", title: str = "", **options) -> Chart:
    """The operators of one trace or several ({phase: Trace}) under roofs.

    roofs: from `chip_roofs` or `machine_roofs`. fusion: "none", "elementwise" or "attention". Timed operators stand where they were
    measured, others on the roof; `least` is the share of the time (untimed: of the least time) below which a row is left out.
    """
    phases = traces if isinstance(traces, dict) else {traces.phase: traces}
    peak = max(r.value for r in roofs if r.kind == "compute" and r.main)
    bandwidth = min(r.value for r in roofs if r.kind == "memory" and r.main)
    points, rows, marks = [], [], {"prefill": "square", "decode": "circle"}
    for i, (phase, trace) in enumerate(phases.items()):
        marker = marks.get(phase, MARKERS[i % len(MARKERS)])
        found = [row for row in _rows_of(trace, fusion) if row["flops"] or row["vector_flops"]]
        cost = lambda row: (
            row["seconds"] if row["seconds"] is not None else max((row["flops"] or 0) / peak, (row["read_bytes"] + row["write_bytes"]) / bandwidth)
        )
        total = sum(map(cost, found)) or 1.0
        for row in sorted(found, key=cost, reverse=True):
            share, work, moved = cost(row) / total, row["flops"] or row["vector_flops"], row["read_bytes"] + row["write_bytes"]
            if share < least or not moved:
                continue
            x = work / moved
            roof = min(peak, x * bandwidth)
            y = work / row["seconds"] if row["seconds"] else roof
            name = (row["parameter"] or row["module"] or row["name"]).removesuffix(".weight").split("*.", 1)[-1]
            name = name if row["kind"] in ("matmul",) else f"{name}: {row['name']}" if name != row["name"] else name
            bound = "compute" if x * bandwidth > peak else "memory"
            points.append(
                Point(
                    name=name,
                    x=x,
                    y=y,
                    timed=row["seconds"] is not None,
                    marker=marker,
                    size=6 + 34 * math.sqrt(share),
                    color=bound,
                    label=share > 0.04,
                    group=f"{phase}, {'bound by ' + bound}",
                    tip=f"{format_number(100 * share, 2)} % of {phase}, {format_number(x)} FLOP/byte, {format_quantity(y, 'FLOP/s')}",
                )
            )
            rows.append(
                {
                    "phase": phase,
                    "operator": name,
                    "count": row["count"],
                    "share": f"{format_number(100 * share, 2)} %",
                    "FLOP/byte": format_number(x),
                    "FLOP/s": format_quantity(y, "FLOP/s") if row["seconds"] else "–",
                    "bytes/s": format_quantity(moved / row["seconds"], "B/s") if row["seconds"] else "–",
                    "of the roof": f"{format_number(100 * y / roof)} %" if row["seconds"] else "–",
                }
            )
    options.setdefault("x_label", "FLOP for each byte moved")
    return Chart(title=title or "Traced operators", roofs=tuple(roofs), points=tuple(points), rows=tuple(rows), theme=theme, **options)


def _rows_of(trace, fusion: str) -> list:
    from ..trace.data import rows

    return rows(trace.kernels(fusion))
