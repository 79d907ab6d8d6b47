"""The columns of the charts, computed from a Report's dict; no plotting library is imported here.

Colours are roles ("memory", "compute", "network", "misfit", "plain"), never values: the page and the files have
their own palettes. Every figure is per chip, so one roof serves any number of chips. A point stands at
x = FLOPs per byte of weights and KV cache (the bytes its limit counts) and y = FLOPs / limit time, so that a
memory-bound phase sits on the bandwidth line and a compute-bound one on its peak.
"""

from __future__ import annotations

import math

from .units import format_number, format_quantity
from .view import told, told_of_operator

THIN = "\u2009"
MARKERS = {"prefill": "square", "decode": "circle"}
# How each compute format is written in labels.
FORMAT_LABELS = {"fp32": "FP32", "tf32": "TF32", "bf16": "BF16", "fp16": "FP16", "fp8": "FP8", "int8": "INT8", "fp4": "FP4", "int4": "INT4"}
SMALLEST = 0.001  # of the time: an operator below it has no disc
MIN_SIZE, MAX_SIZE = 5.0, 46.0  # diameter of an operator's disc [px]; area is proportional to its share of the time


def roofline_columns(report: dict) -> dict:
    """Everything the roofline chart draws: {"range", "roofs", "ceilings", "fields", "phases", "expected", "operators", "ridges"}.

    report: `Report.to_dict()`. Returns plain lists and numbers [FLOP/byte, FLOP/s].
    """
    peaks, bandwidth = _peaks(report), report["hardware"]["bandwidth_bytes_per_s"]
    used = report["formats"]["compute_roof"]
    phases = [p for p in (_phase(report, name) for name in ("prefill", "decode")) if p]
    operators = [row for name in ("prefill", "decode") for row in _operators(report, name)]
    x0, x1, y0, y1 = chart_range(peaks, bandwidth, phases, operators)
    true_x = [p["x"] for p in phases]
    edge = (x1 / x0) ** 0.025  # so far inside the frame that a mark at its edge is whole
    for row in (*phases, *operators):
        row["off"] = not x0 <= row["x"] <= x1  # drawn at the edge, and said so in its text
        row["x"] = min(max(row["x"], x0 * edge), x1 / edge)
    return {
        "range": {"x0": x0, "x1": x1, "y0": y0, "y1": y1},
        "roofs": _roofs(report, peaks, bandwidth, used, x0, x1),
        "fields": _fields(peaks[used], bandwidth, x0, x1, y0),
        "ridges": {"x": [peaks[used] / bandwidth], "y": [peaks[used]], "y0": [y0],
                   "label": [f"ridge {format_number(peaks[used] / bandwidth)} FLOP/byte"]},
        "ceilings": _ceilings(report, phases, x0, x1),
        "phases": _columns(phases, ("name", "x", "y", "role", "fits", "off", "tip")),
        "expected": _columns([p for p in phases if p["expected"]], ("name", "x", "expected", "low", "high", "role", "tip")),
        "operators": _columns(operators, ("name", "group", "phase", "x", "y", "size", "role", "share", "off", "tip")),
        "true_x": true_x,
    }


def chart_range(peaks: dict, bandwidth: float, phases=(), operators=()) -> tuple:
    """(x0, x1, y0, y1) of the axes, snapped to half decades so that a small edit does not move them.

    peaks: {format: FLOP/s}; bandwidth [bytes/s]. Returns [FLOP/byte] and [FLOP/s].

    >>> [float(f"{v:.3g}") for v in chart_range({"bf16": 1e15}, 4e12)[:2]]
    [0.316, 3160.0]
    """
    ridges = [p / bandwidth for p in peaks.values()]
    shown = [o["x"] for o in operators if o["share"] >= 0.02] + [p["x"] for p in phases]
    low = max(min([1.0, *shown]), 1e-3)
    # A prefill of many prompts can lie thousands of ridges to the right, where nothing changes: the axis ends before that.
    high = max([8 * max(ridges), *(min(3 * x, 30 * max(ridges)) for x in shown)])
    x0, x1 = _snap(low / 2, math.floor), _snap(high, math.ceil)
    y_points = [p["y"] for p in phases] + [p["low"] for p in phases if p["expected"]]
    y0 = _snap(min([x0 * bandwidth * 2, *(y / 2 for y in y_points if y)]), math.floor)
    return x0, x1, y0, max(peaks.values()) * 2.2


def _snap(value: float, rounding) -> float:
    return 10 ** (rounding(2 * math.log10(value)) / 2)


def _peaks(report: dict) -> dict:
    """The compute roofs to draw: the one in use and every other the chip has, equal ones merged [FLOP/s]."""
    every = {k: v for k, v in report["hardware"]["peak_flops_per_s"].items() if k != "tf32"}
    used = report["formats"]["compute_roof"]
    found = {used: every.get(used, report["formats"]["compute_peak_flops_per_s"])}
    for name in sorted(every, key=lambda k: (-every[k], k)):
        if all(abs(every[name] - v) > 0.01 * v for v in found.values()):
            found[name] = every[name]
    return found


def _same(report: dict, name: str) -> str:
    """The label of a roof, with the formats that share it: "FP8, INT8"."""
    every = report["hardware"]["peak_flops_per_s"]
    value = every.get(name, report["formats"]["compute_peak_flops_per_s"])
    alike = [name] + [k for k, v in every.items() if k != name and k != "tf32" and abs(v - value) <= 0.01 * value]
    return ", ".join(FORMAT_LABELS.get(k, k.upper()) for k in alike[:3])


def _roofs(report: dict, peaks: dict, bandwidth: float, used: str, x0: float, x1: float) -> dict:
    top = max(peaks.values())
    memory = report["hardware"].get("memory_type") or "memory"
    rows = [{"xs": [x0, top / bandwidth], "ys": [x0 * bandwidth, top], "role": "memory", "used": True, "key": "memory",
             "label": f"{memory} {format_quantity(bandwidth, 'B/s')}"}]
    for name, peak in sorted(peaks.items(), key=lambda item: item[1]):
        rows.append({"xs": [peak / bandwidth, x1], "ys": [peak, peak], "role": "compute", "used": name == used, "key": name,
                     "label": f"{_same(report, name)} {format_quantity(peak, 'FLOP/s')}"})
    return _columns(rows, ("xs", "ys", "role", "used", "key", "label"))


def _fields(peak: float, bandwidth: float, x0: float, x1: float, y0: float) -> dict:
    """The two fields under the roof in use: waiting for memory, and busy computing."""
    ridge = peak / bandwidth
    left = max(y0, x0 * bandwidth)
    start = max(x0, y0 / bandwidth)
    return {"xs": [[start, start, ridge, ridge], [ridge, ridge, x1, x1]], "ys": [[y0, left, peak, y0], [y0, peak, peak, y0]],
            "role": ["memory", "compute"]}


def _chips(report: dict) -> int:
    return report["layout"]["tp"]


def _phase(report: dict, name: str) -> dict | None:
    """One phase as a point, or None where the report has no such phase."""
    phase = report[name]
    if not phase or not phase["flops"]:
        return None
    bandwidth = report["hardware"]["bandwidth_bytes_per_s"]
    parts, moved = phase.get("limit_parts_s"), phase["bytes"]
    y = phase["attainable_flops_per_s"]
    if parts and parts["memory"]:
        x = y * phase["limit_s"] / (parts["memory"] * bandwidth)
    else:
        x = phase["flops"] / max(1.0, moved["weights"] + moved["kv_read"] + moved["kv_write"])
    fits = phase["limit_s"] is not None
    scale = y * phase["limit_s"] if fits else None
    bound = told(phase) or "memory"
    at = lambda s: scale / s if scale and s else None
    return {
        "name": name, "x": x, "y": y, "role": bound if fits else "misfit", "fits": fits,
        "expected": at(phase["expected_s"]), "low": at(phase["expected_high_s"]), "high": at(phase["expected_low_s"]),
        "tip": f"{format_number(x)} FLOP/byte, {format_quantity(y, 'FLOP/s')} per chip",
    }


def _operators(report: dict, name: str) -> list:
    """The operators of a phase that have a place on the chart, largest first so that small ones stay on top."""
    phase = report[name]
    if not phase:
        return []
    bandwidth, peaks, chips = report["hardware"]["bandwidth_bytes_per_s"], _peaks(report), _chips(report)
    top, rows = max(peaks.values()), []
    for op in sorted(phase["operators"], key=lambda o: -(o["share"] or 0)):
        counted = (op.get("weight_bytes") or 0) + (op.get("kv_bytes") or 0)
        if not op["flops"] or not (counted or op["bytes"]) or op["group"] == "collective" or (op["share"] or 0) < SMALLEST:
            continue
        x = op["flops"] / (counted or op["bytes"])
        roof = min(top, x * bandwidth)
        y = min(roof, op["flops"] / chips / op["limit_s"]) if op["limit_s"] else roof
        share = op["share"] or 0.0
        rows.append({
            "name": op["name"], "group": op["group"], "phase": name, "x": x, "y": y, "share": share,
            "size": MIN_SIZE + (MAX_SIZE - MIN_SIZE) * math.sqrt(share), "role": told_of_operator(op),
            "tip": f"{format_number(100 * share, 2)}{THIN}% of the time, {format_number(x)} FLOP/byte",
        })
    return rows


def _ceilings(report: dict, phases: list, x0: float, x1: float) -> dict:
    """What the chip-to-chip links allow each phase: a dashed piece of roof around its point, where links matter."""
    rows, link = [], report["hardware"].get("link") or "network"
    for p in phases:
        phase = report[p["name"]]
        network = (phase.get("limit_parts_s") or {}).get("network")
        if not network or network < 0.02 * phase["limit_s"]:
            continue
        y = p["y"] * phase["limit_s"] / network
        rows.append({"xs": [max(x0, p["x"] / 2.5), min(x1, p["x"] * 2.5)], "ys": [y, y], "role": "network", "label": f"{link}, {p['name']}"})
    return _columns(rows, ("xs", "ys", "role", "label"))


def roofline_sources(report: dict, palette: dict | None = None) -> dict:
    """{source name: columns} as the Bokeh figure wants them, and "range".

    palette: {role: colour}; None leaves the roles in the color columns, for the page to map to its themes.
    """
    data = roofline_columns(report)
    one = lambda role: palette[role] if palette else role
    color = lambda roles: [one(r) for r in roles]
    roofs, phases, ops, span = data["roofs"], data["phases"], data["operators"], data["range"]
    middle = (span["x0"] * span["x1"]) ** 0.5
    left = [x > middle for x in phases["x"]]
    labels = {"x": [], "y": [], "text": [*roofs["label"]], "color": color(roofs["role"]), "align": ["left"] * len(roofs["label"]), "angle": [0.0] * len(roofs["label"])}
    column = data["ridges"]["x"][0] * (span["x1"] / span["x0"]) ** 0.012  # labels of the flat roofs stand in one column, right of the ridge
    for xs, ys, role in zip(roofs["xs"], roofs["ys"], roofs["role"], strict=True):
        labels["x"].append(xs[0] * (span["x1"] / span["x0"]) ** 0.05 if role == "memory" else max(column, xs[0]))
        labels["y"].append(ys[0] * (span["x1"] / span["x0"]) ** 0.05 if role == "memory" else ys[1])
    for xs, ys, role, label in zip(*(data["ceilings"][name] for name in ("xs", "ys", "role", "label")), strict=True):
        row = {"x": xs[0], "y": ys[0], "text": label.split(",")[0].split(" (")[0], "color": one(role), "align": "left", "angle": 0.0}
        for name, column_of in labels.items():
            column_of.append(row[name])
    return {
        "range": span,
        "finding": {"ridge": format_number(data["ridges"]["x"][0]), "roof": FORMAT_LABELS.get(report["formats"]["compute_roof"], ""),
                    "phases": [{"name": n, "x": format_number(x) if x < 1e5 else format_quantity(x), "y": format_quantity(y, "FLOP/s"), "role": r} for n, x, y, r in
                               zip(phases["name"], data["true_x"], phases["y"], phases["role"], strict=True)]},
        "fields": {**_only(data["fields"], "xs", "ys"), "color": color(data["fields"]["role"])},
        "ridges": {**data["ridges"], "color": [one("muted")] * len(data["ridges"]["x"])},
        "roofs": {**_only(roofs, "xs", "ys"), "color": color(roofs["role"]), "width": [2.5 if u else 1.2 for u in roofs["used"]], "alpha": [1.0 if u else 0.5 for u in roofs["used"]]},
        "roof_labels": labels,
        "field_labels": {"x": [data["ridges"]["x"][0]] * 2, "y": [span["y0"]] * 2, "text": ["← waits for memory", "busy computing →"], "color": color(data["fields"]["role"]),
                         "align": ["right", "left"], "dx": [-8, 6]},
        "ceilings": {**_only(data["ceilings"], "xs", "ys"), "color": color(data["ceilings"]["role"])},
        "trail": {"xs": [], "ys": [], "color": []},
        "operators": {**_only(ops, "x", "y", "size", "tip"), "marker": [MARKERS[p] for p in ops["phase"]], "color": color(ops["role"]),
                      "title": [f"{p}: {n}" for p, n in zip(ops["phase"], ops["name"], strict=True)]},
        "expected": {**_only(data["expected"], "x", "expected", "low", "high", "tip"), "marker": [MARKERS[n] for n in data["expected"]["name"]],
                     "color": color(data["expected"]["role"]), "title": [f"{n}, expected" for n in data["expected"]["name"]]},
        "phases": {**_only(phases, "x", "y", "tip"), "marker": [MARKERS[n] for n in phases["name"]], "color": color(phases["role"]),
                   "paper": [one("paper")] * len(phases["x"]), "title": [f"{n}, at most" for n in phases["name"]]},
        "phase_labels": {**_only(phases, "x", "y"), "text": phases["name"], "color": color(phases["role"]), "align": ["right" if r else "left" for r in left],
                         "dx": [-14 if r else 14 for r in left], "dy": [16] * len(left)},
    }


def _only(columns: dict, *names: str) -> dict:
    return {name: columns[name] for name in names}


def _columns(rows: list, names: tuple) -> dict:
    """Turn rows into columns; every column is there even when there is no row."""
    return {name: [row[name] for row in rows] for name in names}


def decade_labels(low: int, high: int, unit: str = "") -> dict:
    """Tick labels {exponent: text} for powers of ten: 12 is "1 T".

    >>> decade_labels(2, 4)
    {2: '100', 3: '1k', 4: '10k'}
    """
    prefixes = {0: "", 3: "k", 6: "M", 9: "G", 12: "T", 15: "P", 18: "E"}
    labels = {}
    for e in range(low, high + 1):
        base = 3 * (e // 3) if e >= 0 else 0
        number = f"{10 ** (e - base):g}"
        labels[e] = f"{number}{THIN if unit and prefixes.get(base) else ''}{prefixes.get(base, '')}{unit}"
    return labels
