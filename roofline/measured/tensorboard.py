"""Tables exported from TensorBoard's profile plugin (XProf) and from Triton's benchmark reports: an operator or a size a row."""

from __future__ import annotations

import re

from .reading import Sheet
from .tables import as_records, delimited
from .values import decimal_mark, number, whole


def _key(name: str) -> str:
    return re.sub(r"[^a-z0-9/]", "", name.lower())


def read_xprof(lines: list[str]) -> Sheet | None:
    """hlo_stats.csv of TPUs (self time, GFLOP/s, HBM traffic in GiB/s) and kernel_stats.csv of GPUs (time alone)."""
    tables = delimited(
        lines,
        lambda row: (
            {"hloopname", "totalselftimeus"} <= (keys := {_key(c) for c in row})
            or {"kernelname", "totaldurationus", "occurrences"} <= keys
        ),
    )
    if not any(t.rows for t in tables):
        return None
    sheet = Sheet("xprof")
    for table in tables:
        records = [{_key(k): v for k, v in raw.items()} for _, raw, _ in as_records(table)]
        mark = decimal_mark(v for r in records[:200] for k, v in r.items() if k.endswith(("us", "flop/s", "gib/s")))
        for r in records:
            name = {"op": r["hloopname"]} if "hloopname" in r else {"kernel": r["kernelname"]}
            time = r.get("totalselftimeus") or r.get("totaldurationus")
            kept = sheet.row("kernel_time_ns", number(time, mark), time, scale=1e3, calls=whole(r.get("occurrences"), mark), **name)
            if not kept:
                continue
            sheet.row("gflops", number(r.get("modelgflop/s"), mark), r.get("modelgflop/s"), **name)
            traffic = r.get("hbmbwgib/s") or r.get("measuredmemorybwgib/s")
            sheet.row("bandwidth_gbs", number(traffic, mark), traffic, scale=2**30 / 1e9, **name)
    return sheet


_UNIT = re.compile(r"\((GB/s|TFLOPS|GFLOPS|TFLOP/s|GFLOP/s)\)\s*$", re.I)


def read_triton(lines: list[str]) -> Sheet | None:
    """perf_report tables of Triton, printed or CSV, where the columns name their unit; without one a figure is open and is left out."""
    heads = [(i, line) for i, line in enumerate(lines) if _UNIT.search(line) or re.search(r"\((?:GB/s|TFLOPS)\)\s*(?:,|\s{2,})", line)]
    sheet = Sheet("triton")
    for at, line in heads[:50]:
        comma = "," in line
        names = [c.strip() for c in (line.split(",") if comma else re.split(r"\s{2,}", line.strip()))]
        columns = [(i, m[1].lower()) for i, name in enumerate(names) if (m := _UNIT.search(name))]
        sizes = [i for i, name in enumerate(names) if i not in dict(columns)]
        if not columns or not sizes:
            continue
        for text in lines[at + 1 : at + 2001]:
            row = [c.strip() for c in (text.split(",") if comma else text.split())]
            row = row if comma else row[1:]  # the printed table starts with a row number
            if len(row) != len(names) or number(row[sizes[0]]) is None:
                break
            test = ", ".join(f"{names[i]} {row[i]}" for i in sizes)[:80]
            for i, unit in columns:
                scale = 1000.0 if unit.startswith("t") else 1.0
                metric = "bandwidth_gbs" if unit == "gb/s" else "gflops"
                sheet.row(metric, number(row[i]), row[i], scale=scale, test=test, kernel=_UNIT.sub("", names[i]).strip())
    return sheet if sheet.rows else None
