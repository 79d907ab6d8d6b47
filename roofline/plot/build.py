"""Charts of Reports: one, several compared, a sweep, and measured rows beneath one."""

from __future__ import annotations

from ..chart_data import FORMAT_LABELS, roofline_columns
from ..errors import InputError
from ..scenario import Scenario
from ..units import format_number, format_quantity
from .chart import Chart, Point, Roof, Trail, series

X_LLM = "Work per byte: FLOP for each byte of weights and KV cache"
Y_CHIP = "FLOP/s per chip"
PHASE_MARKS = {"prefill": "square", "decode": "circle"}
BOUND_WORDS = {
    "memory": "waits for memory",
    "compute": "busy computing",
    "network": "waits for the network",
    "host": "waits for the host",
    "misfit": "does not fit",
    "plain": "",
}


def _dict(report) -> dict:
    return report if isinstance(report, dict) else report.to_dict()


def title_of(report: dict) -> str:
    """ "Llama 3.1 8B on 2 x H200, FP8 weights, batch 32"."""
    s, layout = report["scenario"], report["layout"]
    chips = f"{layout['devices']} × {report['hardware']['name']}" if layout["devices"] > 1 else report["hardware"]["name"]
    return f"{report['model']['name']} on {chips}, {_format(report['formats']['weights'])} weights, batch {s.get('batch', 1):,}"


def _format(name: str) -> str:
    return FORMAT_LABELS.get(name, name.upper() if name.islower() and len(name) < 6 else name)


def from_report(report, *, operators: bool = True, links: bool = False, theme: str = "light", title: str | None = None, **options) -> Chart:
    """The chart of one Report: every roof of its chip, both phases at their limit, what to expect, and their operators.

    report: a Report or its dict; operators: draw them; links: also the chip-to-chip links as a roof, under which a phase stands at its
    work per byte sent; theme: "light", "dark" or "print"; options: fields of Chart.
    """
    report = _dict(report)
    data = roofline_columns(report)
    roofs = _report_roofs(data, report)
    points = []
    if operators:
        for name, group, phase, x, y, size, role, share, tip in _each(
            data["operators"], "name", "group", "phase", "x", "y", "size", "role", "share", "tip"
        ):
            if group in ("norm", "elementwise", "embedding"):
                continue  # their bytes are activations, which this axis does not count
            points.append(Point(name=name, x=x, y=y, marker=PHASE_MARKS[phase], size=size, color=_role(role), label=share >= 0.08, tip=tip))
    found = {row[0]: row for row in _each(data["expected"], "name", "x", "expected", "low", "high")}
    for name, x, y, role, tip in _each(data["phases"], "name", "x", "y", "role", "tip"):
        points.append(
            Point(
                name=name,
                x=x,
                y=y,
                marker=PHASE_MARKS[name],
                size=16,
                color=_role(role),
                strong=True,
                tip=tip,
                group=f"{name}: {BOUND_WORDS.get(role, role)}",
            )
        )
        if name in found:
            _, ex, expected, low, high = found[name]
            points.append(
                Point(
                    name=f"{name}, expected",
                    x=ex,
                    y=expected,
                    low=low,
                    high=high,
                    marker=PHASE_MARKS[name],
                    size=11,
                    color=_role(role),
                    timed=False,
                    label=False,
                    tip=f"about {format_quantity(expected, 'FLOP/s')}, from {format_quantity(low, 'FLOP/s')} to {format_quantity(high, 'FLOP/s')}",
                )
            )
    if links:
        link = report["hardware"].get("link_roof_bytes_per_s") or report["hardware"].get("link_bytes_per_s")
        sent = [(n, report[n]) for n in PHASE_MARKS if report[n] and report[n]["link_bytes"]]
        if not link or not sent:
            raise InputError("links", report["hardware"]["name"], "send nothing here: the scenario uses one chip, or its link bandwidth is not known")
        roofs.append(Roof(name=report["hardware"].get("link") or "links", value=link, kind="memory", level="network", main=False, color="network"))
        points += [
            Point(
                name=f"{n}, links",
                x=p["flops"] / _chips(report) / p["link_bytes"],
                y=p["attainable_flops_per_s"],
                marker=PHASE_MARKS[n],
                size=11,
                color="network",
                label=True,
                tip=f"{format_number(p['flops'] / _chips(report) / p['link_bytes'])} FLOP for each byte a chip sends",
                group="by bytes sent over the links",
            )
            for n, p in sent
        ]
    ceilings = () if links else tuple((xs[0], xs[1], ys[0], label, "network") for xs, ys, label in _each(data["ceilings"], "xs", "ys", "label"))
    s = report["scenario"]
    options.setdefault(
        "subtitle",
        f"{s.get('prompt', 1024):,} prompt and {s.get('output', 256):,} output tokens; solid: at most, hollow with band: expected from measurements; "
        "size: share of the time",
    )
    options.setdefault("x_label", X_LLM)
    options.setdefault("y_label", Y_CHIP)
    return Chart(
        title=title_of(report) if title is None else title,
        roofs=tuple(roofs),
        points=tuple(points),
        ceilings=ceilings,
        theme=theme,
        rows=tuple(_phase_rows(report)),
        **options,
    )


def _chips(report: dict) -> int:
    return report["layout"]["tp"] * report["layout"]["pp"]


def _role(role: str) -> str:
    return role if role in ("memory", "compute", "network", "host", "misfit") else "plain"


def _each(columns: dict, *names: str):
    return zip(*(columns[name] for name in names), strict=True)


def _report_roofs(data: dict, report: dict) -> list:
    roofs = []
    for key, role, used, ys, label in _each(data["roofs"], "key", "role", "used", "ys", "label"):
        if role == "compute":
            roofs.append(Roof(name=label.rsplit(" ", 1)[0], value=ys[0], kind="compute", main=used))
        else:
            roofs.append(
                Roof(
                    name=label.rsplit(" ", 1)[0] if " " in label else "memory",
                    value=report["hardware"]["bandwidth_bytes_per_s"],
                    kind="memory",
                    main=used,
                )
            )
    return roofs


def _phase_rows(report: dict) -> list:
    rows = []
    for name in ("prefill", "decode"):
        p = report[name]
        if p:
            rows.append(
                {
                    "phase": name,
                    "bound by": p["bound"] or "–",
                    "at least": format_quantity(p["limit_s"], "s"),
                    "about": format_quantity(p["expected_s"], "s"),
                    "work": format_quantity(p["flops"], "FLOP"),
                    "bytes": format_quantity(p["bytes"]["total"], "B"),
                    "FLOP/byte": format_number(p["intensity_flops_per_byte"]),
                }
            )
    return rows


def compare(reports, names=None, *, theme: str = "light", title: str | None = None, **options) -> Chart:
    """Several Reports on one chart: the roofs that each one's work runs at, and its two phases, one colour each.

    reports: Reports or their dicts; names: what the legend calls them (default: what differs between their scenarios).
    """
    reports = [_dict(r) for r in reports]
    named = [{**r["scenario"], "model": r["model"]["name"], "hardware": r["hardware"]["name"]} for r in reports]
    names = list(names or differences(named))
    roofs, points, legend, rows, seen = [], [], [], [], {}
    for i, (report, name) in enumerate(zip(reports, names, strict=True)):
        color, data = series(i), roofline_columns(report)
        chip, peak, bandwidth = report["hardware"]["name"], report["formats"]["compute_peak_flops_per_s"], report["hardware"]["bandwidth_bytes_per_s"]
        used = report["formats"]["compute_roof"]
        for roof in (
            Roof(name=f"{chip} {FORMAT_LABELS.get(used, used.upper())}", value=peak, kind="compute", color=color),
            Roof(name=f"{chip} {report['hardware'].get('memory_type') or 'memory'}", value=bandwidth, kind="memory", color=color),
        ):
            if (roof.name, roof.value) not in seen:
                seen[roof.name, roof.value] = color
                roofs.append(roof)
        legend.append((name, color, "circle"))
        for phase, x, y, fits, tip in _each(data["phases"], "name", "x", "y", "fits", "tip"):
            points.append(
                Point(
                    name=phase if len(reports) < 4 else "",
                    x=x,
                    y=y,
                    marker=PHASE_MARKS[phase],
                    size=15,
                    color=color,
                    strong=True,
                    timed=fits,
                    label=len(reports) < 4,
                    tip=f"{name}: {tip}",
                )
            )
        rows += [{"scenario": name, **row} for row in _phase_rows(report)]
    # A roof that several scenarios share belongs to none of them.
    shared = {seen[r.name, r.value] for r in roofs} and {r.color for r in roofs}
    if len(shared) == 1 and len(reports) > 1:
        roofs = [Roof(name=r.name, value=r.value, kind=r.kind) for r in roofs]
    options.setdefault(
        "subtitle", "square: prefill, circle: decode, each at its limit" + (" (hollow: does not fit)" if any(not p.timed for p in points) else "")
    )
    options.setdefault("x_label", X_LLM)
    options.setdefault("y_label", Y_CHIP)
    if title is None:
        same = reports[0]["model"]["name"] if len({r["model"]["name"] for r in reports}) == 1 else ""
        listed = f"{', '.join(names[:-1])} and {names[-1]}" if 1 < len(names) < 4 else f"{len(names)} scenarios"
        title = f"{same}: {listed}" if same else listed
    return Chart(title=title, roofs=tuple(roofs), points=tuple(points), legend=tuple(legend), rows=tuple(rows), theme=theme, **options)


def differences(scenarios) -> tuple:
    """A name for each scenario: what it says that the others do not say alike.

    >>> differences([{"hardware": "h100-sxm", "batch": 8}, {"hardware": "b200", "batch": 8}])
    ('h100-sxm', 'b200')
    """
    # What a field is when a scenario does not say.
    plain = [{k: v for k, v in s.items() if k not in ("resolved", "schema")} for s in scenarios]
    keys = [k for k in dict.fromkeys(k for s in plain for k in s) if len({repr(s.get(k)) for s in plain}) > 1]
    bare = {"model", "hardware", "weights"}
    return (
        tuple(", ".join((str(s[k]) if k in bare else f"{k} {s[k]}") for k in keys if k in s) or "as given" for s in plain)
        if keys
        else tuple(f"scenario {i + 1}" for i in range(len(plain)))
    )


def sweep(scenario: Scenario, field: str, values, *, phase: str = "decode", theme: str = "light", title: str | None = None, **options) -> Chart:
    """The path of a phase as one field of the scenario grows.

    field: "batch", "prompt" or any other number of a Scenario; values: what it takes; phase: "decode", "prefill" or "both".
    """
    from ..report import evaluate

    values = list(values)
    if not values:
        raise InputError("values", "none", "must be at least one number, such as 1,8,64")
    if field not in Scenario.__slots__:
        raise InputError("sweep", field, "must be a field of the scenario, such as batch or prompt")
    phases = ("prefill", "decode") if phase == "both" else (phase,)
    reports = [evaluate(scenario.replace(**{field: v})).to_dict() for v in values]
    base = from_report(reports[0], operators=False, theme=theme)
    trails, points, legend, rows = [], [], [], []
    for name in phases:
        if name not in PHASE_MARKS:
            raise InputError("phase", name, "must be decode, prefill or both")
        path, labels, unfit = [], [], []
        for value, report in zip(values, reports, strict=True):
            data = roofline_columns(report)
            for n, x, y, role, fits, tip in _each(data["phases"], "name", "x", "y", "role", "fits", "tip"):
                if n != name:
                    continue
                path.append((x, y))
                labels.append("")
                what = _count(value)
                points.append(
                    Point(
                        name=what,
                        x=x,
                        y=y,
                        marker=PHASE_MARKS[name],
                        size=10,
                        color=_role(role),
                        timed=fits,
                        tip=f"{field} {what}: {tip}",
                        strong=False,
                    )
                )
                unfit += [] if fits else [value]
                p = report[name]
                rows.append(
                    {
                        "phase": name,
                        field: what,
                        "bound by": p["bound"] or "–",
                        "at least": format_quantity(p["limit_s"], "s"),
                        "FLOP/byte": format_number(x),
                        "FLOP/s per chip": format_quantity(y, "FLOP/s"),
                    }
                )
        trails.append(Trail(name=name, points=tuple(path), labels=tuple(labels), color="muted"))
        legend.append((f"{name}, by {field}", "muted", PHASE_MARKS[name]))
    options.setdefault(
        "subtitle",
        f"{' and '.join(phases)} at its limit as {field} grows from {_count(values[0])} to {_count(values[-1])}"
        + ("; hollow: does not fit in memory" if any(not p.timed for p in points) else ""),
    )
    options.setdefault("x_label", X_LLM)
    options.setdefault("y_label", Y_CHIP)
    return Chart(
        title=title if title is not None else f"{reports[0]['model']['name']} on {reports[0]['hardware']['name']}: {field}",
        roofs=base.roofs,
        points=tuple(points),
        trails=tuple(trails),
        legend=tuple(legend),
        rows=tuple(rows),
        theme=theme,
        **options,
    )


def _count(value) -> str:
    """A whole number in full, anything else in three figures."""
    return f"{value:,}" if isinstance(value, int) else format_number(float(value)) if isinstance(value, float) else str(value)


def from_measured(placed: dict, report, *, theme: str = "light", title: str = "", **options) -> Chart:
    """A Report's chart with measured rows on it.

    placed: `roofline measured FILE --model M --hardware H --json` (rows with a "place"); report: of the same scenario.
    A row stands at its phase's work per byte, as far below the limit as it was measured.
    """
    report = _dict(report)
    base = from_report(report, operators=False, theme=theme)
    phases = {p.name: p for p in base.points if p.strong}
    points, rows = [p for p in base.points if p.strong], []
    for i, row in enumerate(placed["rows"]):
        at = row.get("place") or row
        phase, share = at.get("phase"), at.get("percent_of_limit")
        if phase not in phases or not share:
            continue
        p, metric = phases[phase], row.get("metric", "row")
        points.append(
            Point(
                name=f"{metric} {row.get('value')}",
                x=p.x * 1.06 ** (i % 5 - 2),
                y=p.y * share / 100,
                marker="diamond",
                size=9,
                color=p.color,
                label=len(placed["rows"]) <= 8,
                tip=f"measured, {format_number(share)} % of the limit",
                group="measured",
            )
        )
        rows.append(
            {
                "metric": metric,
                "value": row.get("value"),
                "unit": row.get("unit"),
                "phase": phase,
                "of the limit": f"{format_number(share)} %",
                "verdict": at.get("verdict", ""),
            }
        )
    if not rows:
        raise InputError("file", placed.get("tool"), "has no row that can be placed under this scenario's roof")
    return Chart(
        title=title or f"Measured: {base.title}",
        subtitle=options.pop("subtitle", f"{len(rows)} measured rows from {placed.get('tool')}, beneath what the chip allows"),
        roofs=base.roofs,
        points=tuple(points),
        rows=tuple(rows),
        x_label=X_LLM,
        y_label=Y_CHIP,
        theme=theme,
        **options,
    )
