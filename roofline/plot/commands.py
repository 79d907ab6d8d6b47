"""`roofline plot` and `roofline points` on the command line."""

from __future__ import annotations

import json
from pathlib import Path

from ..errors import InputError
from ..options import emit, read_bytes, scenario_of, scenario_options
from ..scenario import Scenario
from ..units import parse_quantity
from .chart import Chart, Note
from .output import KINDS

MAX_VALUES = 64


def add_commands(command) -> None:
    """Add both commands; command(name, run, text) makes one and returns its parser."""
    p = command(
        "plot",
        _plot,
        "a roofline chart of a scenario, of several, of a sweep or of measurements, as HTML, SVG or PNG",
    )
    scenario_options(p)
    p.add_argument(
        "--compare",
        action="append",
        default=[],
        metavar="FIELD=VALUE",
        help="also draw the scenario with this changed; several changes of one go with commas (may be repeated)",
    )
    p.add_argument("--sweep", metavar="FIELD=VALUES", help="the path of a phase as a field grows, such as batch=1,2,4,8 or prompt=1k..128k")
    p.add_argument("--phase", default="decode", help="of a sweep: decode, prefill or both")
    p.add_argument("--measured", metavar="FILE", help="put the rows of a benchmark's output under the roof")
    p.add_argument("--no-operators", action="store_true", help="phases only")
    p.add_argument("--links", action="store_true", help="also the links between chips as a roof of their own, at the work per byte sent")
    _look(p)
    p = command("points", _points, "your own roofline: points from a CSV file (name, flops, bytes, seconds), roofs by hand, of a chip or measured")
    p.add_argument(
        "file", help="CSV with columns name, flops, bytes (or bytes:L1, bytes:L2 ...), seconds; or a profiler's output (Nsight Compute, Advisor ...)"
    )
    p.add_argument(
        "--roof", action="append", default=[], metavar="NAME=VALUE", help='such as "FP64=9.7 TFLOP/s" or "HBM=2.04 TB/s" (may be repeated)'
    )
    p.add_argument("--hardware", help="the roofs of this chip")
    p.add_argument("--formats", help="of --hardware: only these, with commas")
    p.add_argument("--ceilings", metavar="FILE", help="the roofs that `roofline ceilings -o FILE`, or a tool such as ERT, measured")
    _look(p)


def _look(p) -> None:
    p.add_argument("-o", "--out", metavar="FILE", help="roof.html (interactive, offline), roof.svg or roof.png")
    p.add_argument("--theme", default="light", help="light, dark or print")
    p.add_argument("--title")
    p.add_argument("--size", default="960x600", help="width and height in pixels")
    p.add_argument("--note", action="append", default=[], metavar="X,Y,TEXT", help="a remark at a place [FLOP/byte, FLOP/s] (may be repeated)")


def look(args) -> dict:
    """The options of a Chart that every drawing command takes."""
    options: dict = {"theme": args.theme}
    width, sign, height = args.size.lower().partition("x")
    if not sign or not width.isdigit() or not height.isdigit():
        raise InputError("size", args.size, "must read WIDTHxHEIGHT in pixels, such as 960x600")
    options |= {"width": int(width), "height": int(height)}
    notes = []
    for note in args.note:
        parts = note.split(",", 2)
        if len(parts) != 3:
            raise InputError("note", note, 'must read X,Y,TEXT, such as "10,2 TFLOP/s,here it turns"')
        notes.append(
            Note(
                x=float(parse_quantity(parts[0], "FLOP/byte", field="note", low=1e-9, high=1e12)),
                y=float(parse_quantity(parts[1], "FLOP/s", field="note", low=1, high=1e25)),
                text=parts[2].strip()[:80],
            )
        )
    if notes:
        options["notes"] = tuple(notes)
    if args.title:
        options["title"] = args.title
    return options


def finish(chart: Chart, args) -> None:
    """Write the chart, or its SVG or data to standard output."""
    if args.out:
        path = chart.save(args.out)
        emit({"written": [path], "points": list(chart.rows)}) if args.json else print(f"wrote {path}")
    elif args.json:
        emit(
            {
                "title": chart.title,
                "roofs": [{"name": r.name, "kind": r.kind, "value": r.value} for r in chart.roofs],
                "points": [
                    {"name": p.name, "intensity_flops_per_byte": p.x, "flops_per_s": p.y, "measured": p.timed, "text": p.tip}
                    for p in chart.points
                ],
                "rows": list(chart.rows),
            },
        )
    else:
        _table(chart)


def _table(chart: Chart) -> None:
    if not chart.rows:
        print(f"{len(chart.points)} points; give -o FILE ({', '.join(KINDS)}) to draw them")
        return
    heads = list(chart.rows[0])
    rows = [heads, *([str(row.get(h, "")).replace("\u2009", " ") for h in heads] for row in chart.rows)]
    widths = [min(48, max(len(row[i]) for row in rows)) for i in range(len(heads))]
    print(chart.title)
    if chart.subtitle:
        print(chart.subtitle)
    for row in rows:
        print("  " + "  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip())


def changes(text: str) -> dict:
    """ "hardware=b200-sxm,weights=fp8" as fields of a Scenario.

    >>> changes("hardware=b200-sxm, kv=fp8")
    {'hardware': 'b200-sxm', 'kv': 'fp8'}
    """
    found = {}
    for pair in text.split(","):
        key, sign, value = pair.partition("=")
        if not sign:
            raise InputError("compare", text, "must read FIELD=VALUE, such as hardware=b200-sxm or weights=fp8,batch=64")
        found[key.strip().replace("-", "_")] = value.strip()
    return found


def values(text: str) -> tuple:
    """(field, numbers) of a sweep: "batch=1,8,64", or "prompt=1k..128k" for every doubling between.

    >>> values("prompt=1k..8k")
    ('prompt', [1000, 2000, 4000, 8000])
    """
    field, sign, given = text.partition("=")
    if not sign:
        raise InputError("sweep", text, "must read FIELD=VALUES, such as batch=1,8,64 or prompt=1k..128k")
    number = lambda t: parse_quantity(t.strip(), "tokens", field=f"sweep {field}", low=0, high=1e12)
    if ".." in given:
        low, high = map(number, given.split("..", 1))
        if not 0 < low < high:
            raise InputError("sweep", text, "must go from a smaller number above 0 to a larger one")
        found = [low]
        while found[-1] * 2 <= high and len(found) < MAX_VALUES:
            found.append(found[-1] * 2)
    else:
        found = [number(t) for t in given.split(",")]
    if len(found) > MAX_VALUES:
        raise InputError("sweep", text, f"must be at most {MAX_VALUES} values")
    return field.strip().replace("-", "_"), [int(v) if v == int(v) else v for v in found]


def _plot(args) -> None:
    from .. import plot
    from ..report import evaluate

    scenario, options = scenario_of(args), look(args)
    if args.sweep:
        chart = plot.sweep(scenario, *values(args.sweep), phase=args.phase, **options)
    elif args.compare:
        all_of_them = [scenario, *(Scenario.from_dict(scenario.to_dict() | changes(c)) for c in args.compare)]
        chart = plot.compare([evaluate(s) for s in all_of_them], **options)
    elif args.measured:
        from .. import measured
        from ..measured import place

        reading = measured.read(read_bytes(args.measured), args.measured)
        chart = plot.from_measured(place.placed(reading, scenario), evaluate(scenario), **options)
    else:
        chart = plot.from_report(evaluate(scenario), operators=not args.no_operators, links=args.links, **options)
    finish(chart, args)


def roofs_of(args) -> list:
    """The roofs that --roof, --hardware and --ceilings give together."""
    from . import chip_roofs, machine_roofs, read_roof

    roofs = [read_roof(text) for text in args.roof]
    if args.hardware:
        roofs += chip_roofs(args.hardware, tuple(args.formats.lower().split(",")) if args.formats else None)
    if args.ceilings:
        roofs += machine_roofs(read_ceilings(args.ceilings))
    if not roofs:
        raise InputError("roof", "none", 'is no roofline; give --roof "FP64=9.7 TFLOP/s" --roof "HBM=2 TB/s", or --hardware ID, or --ceilings FILE')
    return roofs


def read_ceilings(path: str) -> dict:
    """The file that `roofline ceilings -o` wrote, or the output of a tool that measures roofs (ERT, rocprof-compute, clpeak ...)."""
    data = read_bytes(path, 2**24)
    try:
        found = json.loads(data)
        if all(found.get(key) for key in ("peak_flops_per_s", "levels", "bandwidth_bytes_per_s")):
            return found
    except (ValueError, AttributeError):
        pass
    from .. import measured

    try:
        rows = {row["metric"]: row["value"] for row in measured.read(data, path).rows if row["metric"].startswith("roof_")}
    except InputError:
        rows = {}
    peaks = {m[5:-7].strip("_") or "measured": v * 1e9 for m, v in rows.items() if m.endswith("gflops")}
    levels = [
        {"name": "memory" if m[5:-4] == "dram" else m[5:-4].upper(), "bytes_per_s": v * 1e9}
        for m, v in sorted(rows.items(), key=lambda item: -item[1])
        if m.endswith("gbs")
    ]
    if not peaks or not levels:
        raise InputError(
            "ceilings", path, "holds no roofs: it is neither a file that `roofline ceilings -o FILE` wrote nor the output of a tool such as ERT"
        )
    return {"peak_flops_per_s": peaks, "levels": levels, "bandwidth_bytes_per_s": levels[-1]["bytes_per_s"]}


def _points(args) -> None:
    from . import from_points

    options = look(args)
    options.setdefault("title", Path(args.file).stem)
    roofs = roofs_of(args)
    finish(from_points(_rows(args.file, roofs), roofs, **options), args)


def _rows(path: str, roofs) -> list:
    """The rows of a points file, or the kernels of a profiler's output (Nsight Compute, Advisor, rocprof ...)."""
    from . import read_points
    from .points import from_kernels

    data = read_bytes(path)
    try:
        return read_points(data.decode("utf-8-sig", errors="replace"), path)
    except InputError as error:
        if error.field.startswith("line"):
            raise  # a points file, with a row that is wrong
        from .. import measured
        from ..measured.kernel_place import kernels

        try:
            reading = measured.read(data, path)
        except InputError:
            raise error from None
        rows = from_kernels(kernels(reading), roofs)
        if not rows:
            raise InputError(
                "points",
                path,
                f"is {reading.tool} output without a kernel that has both FLOPs and bytes; collect the profiler's roofline metrics too",
            ) from None
        return rows
