"""GPU kernel profilers: Nsight Compute (CSV and text), Nsight Systems, nvprof, rocprof v1 to v3, rocprof-compute."""

from __future__ import annotations

import math
import re

from .reading import Sheet
from .tables import Table, as_records, delimited, pipe_tables
from .values import BYTES, NUMBER, SECONDS, clean_scale, decimal_mark, number, whole

# Nsight Compute: metric or label -> what it is. Percentages of the peak come from the Speed Of Light section.
_NCU = {
    "gpu__time_duration.sum": "duration_ns",
    "gpu__time_duration.avg": "duration_ns",
    "duration": "duration_ns",
    "dram__bytes.sum": "dram_bytes",
    "dram__bytes_read.sum": "dram_bytes_read",
    "dram__bytes_write.sum": "dram_bytes_write",
    "dram__bytes.sum.per_second": "dram_bw_gbs",
    "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed": "mem_pct_of_peak",
    "gpu__compute_memory_request_throughput.avg.pct_of_peak_sustained_elapsed": "mem_pct_of_peak",
    "sol memory": "mem_pct_of_peak",
    "memory [%]": "mem_pct_of_peak",
    "memory throughput": "memory throughput",
    "compute (sm) throughput": "compute_pct_of_peak",
    "sm [%]": "compute_pct_of_peak",
    "sol sm": "compute_pct_of_peak",
    "sm__throughput.avg.pct_of_peak_sustained_elapsed": "compute_pct_of_peak",
}
_FLOP_COUNT = re.compile(r"smsp?__sass_thread_inst_executed_op_([fd])(add|mul|fma)_pred_on\.sum(\.per_cycle_elapsed|\.per_second)?$")
_CLOCKS = ("smsp__cycles_elapsed.avg.per_second", "sm__cycles_elapsed.avg.per_second", "sm frequency")
_ORDER = (
    "duration_ns",
    "dram_bytes",
    "dram_bytes_read",
    "dram_bytes_write",
    "dram_bw_gbs",
    "gflops",
    "mem_pct_of_peak",
    "compute_pct_of_peak",
)


def _scaled(value: float, unit: str, metric: str) -> float | None:
    """Bring a value in Nsight's unit to the metric's; None if the unit is not of its kind."""
    unit = unit.strip().lower().replace("μ", "u").replace("µ", "u")
    if metric == "duration_ns":
        return clean_scale(value * SECONDS[unit] * 1e9) if unit in SECONDS else None
    if metric.startswith("dram_bytes"):
        return clean_scale(value * BYTES[unit]) if unit in BYTES else None
    if metric == "dram_bw_gbs":
        top, _, bottom = unit.partition("/")
        return clean_scale(value * BYTES[top] / SECONDS[bottom] / 1e9) if top in BYTES and bottom in SECONDS else None
    return value if unit in ("%", "") else None


def read_ncu_csv(lines: list[str]) -> Sheet | None:
    """`ncu --csv`: details page (one line per metric) and raw page (one column per metric, units in the second line)."""
    is_header = lambda row: (
        "Kernel Name" in row and ("Metric Name" in row or any("__" in c for c in row)) and ("ID" in row or "Metric Value" in row)
    )  # noqa: E731
    tables = [t for t in delimited(lines, is_header) if t.rows]
    if not tables:
        return None
    sheet = Sheet("nsight-compute")
    for table in tables:
        kernels = _ncu_long(table) if "Metric Name" in table.header else _ncu_wide(table)
        for found in table.misfits[:5]:
            sheet.warn(f"cell_count_mismatch:line {found[0]}", "the line is left out")
        _ncu_rows(sheet, kernels)
    if not sheet.rows and not sheet.warnings:
        sheet.warn(
            "no_usable_metric",
            "the report holds no duration, DRAM traffic or throughput; collect the SpeedOfLight and MemoryWorkloadAnalysis sections",
        )
    return sheet


def _ncu_long(table: Table) -> dict:
    kernels: dict = {}
    for _, r, _n in as_records(table):
        name = r.get("Metric Name", "").strip()
        key = (r.get("Process ID"), r.get("ID"), r.get("Kernel Name"))
        kernel = kernels.setdefault(key, {"kernel": r.get("Kernel Name"), "cc": r.get("CC"), "metrics": []})
        if name:
            kernel["metrics"].append((name, r.get("Metric Unit", ""), r.get("Metric Value", ""), r.get("Section Name", "")))
    return kernels


def _ncu_wide(table: Table) -> dict:
    records = as_records(table)
    units = {}
    if records and not records[0][1].get("ID", "x").strip():
        units = records[0][1]
        records = records[1:]
    kernels: dict = {}
    for line, r, _n in records:
        metrics = [
            (re.sub(r"\s*\[[^\]]*\]$", "", c), units.get(c) or (m[1] if (m := re.search(r"\[([^\]]*)\]$", c)) else ""), v, "")
            for c, v in r.items()
            if "__" in c
        ]
        kernels[(line,)] = {"kernel": r.get("Kernel Name"), "cc": r.get("CC"), "metrics": metrics}
    return kernels


def _ncu_rows(sheet: Sheet, kernels: dict) -> None:
    mark = decimal_mark(v for k in list(kernels.values())[:300] for _, _, v, _ in k["metrics"])
    ccs = {k["cc"] for k in kernels.values() if k.get("cc")}
    if len(ccs) == 1:
        sheet.fact(cc=ccs.pop())
    for kernel in kernels.values():
        found: dict[str, tuple] = {}
        flops: dict[str, dict] = {}
        clock = None
        for name, unit, text, _section in kernel["metrics"]:
            value = number(text, mark)
            if value is None or not math.isfinite(value):
                continue
            low = name.strip().lower()
            if m := _FLOP_COUNT.search(low):
                flops.setdefault(m[1] + (m[3] or ""), {})[m[2]] = (value, text)
            if low in _CLOCKS and (m := re.match(r"(?:([kmgKMG]?)hz|cycle/([num]?)s\w*)$", unit.strip(), re.I)):
                scale = (
                    {"k": 1e3, "m": 1e6, "g": 1e9, "": 1.0}[(m[1] or "").lower()]
                    if m[1] is not None
                    else {"n": 1e9, "u": 1e6, "m": 1e3, "": 1.0}[m[2] or ""]
                )
                clock = clock or value * scale
            if low == "dram__bytes.sum.peak_sustained":
                sheet.fact(peak_dram_bytes_per_cycle=int(value) if value == int(value) else value)
            metric = _NCU.get(low) or _NCU.get(low.split(".max")[0])
            if metric == "memory throughput":  # the same name twice: a percentage in one section, a rate in the other
                metric = "mem_pct_of_peak" if unit.strip() == "%" else "dram_bw_gbs"
            if metric and metric not in found and (scaled := _scaled(value, unit, metric)) is not None:
                found[metric] = (scaled, text)
        for kind, precision in (("f", "fp32"), ("d", "fp64")):
            if (rate := _ncu_flops(flops, kind, clock, found.get("duration_ns"))) and rate[0] > 0:
                key = "gflops" if kind == "f" else "gflops_fp64"
                found[key] = (rate[0], rate[1], precision)
        for metric in (*_ORDER, "gflops_fp64"):
            if metric in found:
                value, text, *precision = found[metric]
                derived = (
                    "(add + mul + 2 x fma) instructions over the time; tensor-core work is not in these counters"
                    if metric.startswith("gflops")
                    else False
                )
                sheet.row(
                    "gflops" if metric.startswith("gflops") else metric,
                    value,
                    text,
                    zero_ok=False,
                    derived=derived,
                    kernel=kernel["kernel"],
                    precision=precision[0] if precision else None,
                )


def _ncu_flops(flops: dict, kind: str, clock, duration) -> tuple | None:
    """GFLOP/s from instruction counts: per cycle times the clock, or totals over the time."""
    for suffix in (".per_cycle_elapsed", ".per_second", ""):
        counts = flops.get(kind + suffix)
        if not counts:
            continue
        total = sum(counts.get(op, (0.0, ""))[0] * (2 if op == "fma" else 1) for op in ("add", "mul", "fma"))
        text = counts.get("fma", next(iter(counts.values())))[1]
        if suffix == ".per_cycle_elapsed" and clock:
            return total * clock / 1e9, text
        if suffix == "" and duration and duration[0] > 0:
            return total / duration[0], text
        if suffix == ".per_second":
            return total / 1e9, text
    return None


_NCU_KERNEL = re.compile(
    r"^\s{0,8}(\S.{0,400}?)(?:\s+\(\d+, \d+, \d+\)x\(\d+, \d+, \d+\))?,\s+(?:\d{4}-\w{3}-\d\d [\d:]+,\s+)?Context \d+, Stream \d+(?:, Device "
    r"\d+, CC (\d+\.\d+))?"
)


def read_ncu_text(lines: list[str]) -> Sheet | None:
    """What ncu prints without --csv: a block per kernel, tables with names, units and values."""
    if not any("Section: GPU Speed Of Light" in line or "Section: Command line profiler metrics" in line for line in lines):
        return None
    kernels: dict = {}
    current = None
    for i, line in enumerate(lines):
        if "Context" in line and (m := _NCU_KERNEL.match(line)):
            current = kernels.setdefault(i, {"kernel": m[1].strip(), "cc": m[2], "metrics": []})
        elif current and (m := re.match(rf"^\s*(\S.{{0,90}}?)\s{{2,}}(?:(\S{{1,30}})\s+)?({NUMBER})\s*$", line)):
            current["metrics"].append((m[1], m[2] or "", m[3], ""))
    sheet = Sheet("nsight-compute")
    _ncu_rows(sheet, kernels)
    return sheet


# ---- Nsight Systems, nvprof -----------------------------------------------------------------------------------

_API = re.compile(r"^(?:Copy(?:Host|Device)To(?:Host|Device)|cuda[A-Z]|cu[A-Z]|hip[A-Z]|hsa_|__hip|clEnqueue|vk[A-Z]|ioctl|poll|sem_|pthread|read$|write$|futex|epoll)")


def read_nsys(lines: list[str]) -> Sheet | None:
    """`nsys stats`: the GPU kernel summary (CSV or columns); API, OS and memory tables have the same shape and are left out."""

    def columns(row: list[str]) -> bool:
        return any(re.match(r"Total Time", c) for c in row) and "Instances" in row and ("Name" in row or "Operation" in row)

    found: list[tuple[str, str, str, float]] = []
    values: list[str] = []
    for table in delimited(lines, lambda row: any(c.startswith(("Total Time", "Duration (")) for c in row) and ("Name" in row or "Operation" in row)):
        total = next((c for c in table.header if c.startswith(("Total Time", "Duration ("))), "")
        scale = _header_seconds(total)
        if "Instances" not in table.header and not ("GrdX" in table.header or "Kernel Dur" in " ".join(table.header)):
            continue
        for _, r, n in as_records(table):
            name = r.get("Name") or r.get("Operation") or ""
            if not _API.match(name) and not name.startswith("[CUDA mem"):
                found.append((name, r[total], r.get("Instances", str(n)), scale))
                values.append(r[total])
    if not found:
        found = _nsys_columns(lines, columns)
        values = [f[1] for f in found]
    if not found:
        return None
    sheet = Sheet("nsight-systems")
    mark = decimal_mark(values)
    sums: dict[str, list] = {}
    for name, text, calls, scale in found:
        value = number(text, mark)
        if value is None or not math.isfinite(value * scale * 1e9):
            continue
        entry = sums.setdefault(name, [0.0, 0, text])
        entry[0] += value * scale * 1e9
        entry[1] += whole(calls, mark) or 1
    for name, (ns, calls, text) in sums.items():
        exact = int(ns) if math.isfinite(ns) and ns == int(ns) else clean_scale(ns)
        sheet.row("kernel_time_ns", exact, text, kernel=name, calls=calls)
    return sheet


def _header_seconds(label: str) -> float:
    match = re.search(r"\((\w+)\)", label)
    return SECONDS.get(match[1].lower() if match else "ns", 1e-9)


def _nsys_columns(lines: list[str], is_header) -> list[tuple]:
    found, header, at = [], None, None
    for line in lines:
        pieces = re.split(r"\s{2,}", line.strip())
        if is_header(pieces):
            header, at = pieces, next(i for i, c in enumerate(pieces) if c.startswith("Total Time"))
        elif header and not line.strip():
            header = header if not found else None
        elif header and len(pieces) >= len(header) and re.match(r"[\d.]+$", pieces[0]):
            name = " ".join(pieces[len(header) - 1 :])
            if not _API.match(name):
                found.append((name, pieces[at], pieces[header.index("Instances")], _header_seconds(header[at])))
    if not found:
        for line in lines:  # nvprof
            if m := re.match(rf"^(?:\W*GPU activities:)?\s+({NUMBER})%\s+({NUMBER})(ns|us|ms|s)\s+(\d+)\s+(?:\S+\s+){{3}}(.+)$", line):
                if not m[5].startswith("[CUDA mem") and not _API.match(m[5]):
                    found.append((m[5].strip(), m[2], m[4], SECONDS[m[3]]))
    return found


# ---- AMD ------------------------------------------------------------------------------------------------------


def _key(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def read_rocprof(lines: list[str]) -> Sheet | None:
    """rocprof v1 results and stats, rocprofv2, rocprofv3 traces and counters. FETCH_SIZE and WRITE_SIZE are KiB."""

    def is_header(row: list[str]) -> bool:
        keys = {_key(c) for c in row}
        return bool(keys & {"kernelname", "name"}) and bool(
            keys & {"durationns", "beginns", "starttimestamp", "countername", "totaldurationns", "fetchsize"}
        )

    tables = [t for t in delimited(lines, is_header) if t.rows]
    if not tables:
        return None
    sheet = Sheet("rocprof")
    for table in tables:
        dispatches: dict = {}
        for line, raw, n in as_records(table):
            r = {_key(k): v for k, v in raw.items()}
            kernel = r.get("kernelname") or r.get("name") or ""
            if "totaldurationns" in r:
                if not _API.match(kernel):
                    sheet.row(
                        "kernel_time_ns", whole(r["totaldurationns"]), r["totaldurationns"], kernel=kernel, calls=whole(r.get("calls"))
                    )
                continue
            if "countername" in r:
                entry = dispatches.setdefault((r.get("dispatchid"), kernel), {"kernel": kernel, "dispatch": whole(r.get("dispatchid"))})
                entry.setdefault(_key(r["countername"]), r.get("countervalue"))
                start, end = whole(r.get("starttimestamp")), whole(r.get("endtimestamp"))
                if start and end and end > start:
                    entry.setdefault("span", (end - start, r.get("endtimestamp")))
                continue
            begin, end = (whole(r.get(a) or r.get(b)) for a, b in (("beginns", "starttimestamp"), ("endns", "endtimestamp")))
            own = whole(r.get("durationns") or r.get("duration"))
            if own is not None and begin and end and end > begin and abs(own / (end - begin) - 1) > 0.05:
                sheet.warn(f"time_disagrees:line {line}", f"{own} ns printed, {end - begin} ns from start to end; left out")
            elif own is not None:
                sheet.row("duration_ns", own, r.get("durationns") or r.get("duration"), kernel=kernel, count=n if n > 1 else None)
            elif begin and end:
                sheet.row("duration_ns", end - begin, r.get("endns") or r.get("endtimestamp"), derived=True, kernel=kernel)
            _traffic(sheet, r, {"kernel": kernel})
        for entry in dispatches.values():
            if "span" in entry:
                sheet.row(
                    "duration_ns", entry["span"][0], entry["span"][1], derived=True, kernel=entry["kernel"], dispatch=entry["dispatch"]
                )
            _traffic(sheet, entry, {"kernel": entry["kernel"], "dispatch": entry["dispatch"]})
    if not sheet.rows and not sheet.warnings:
        return None
    return sheet


def _traffic(sheet: Sheet, r: dict, own: dict) -> None:
    for counter, metric in (("fetchsize", "dram_bytes_read"), ("writesize", "dram_bytes_write")):
        sheet.row(metric, number(r.get(counter)), r.get(counter), scale=1024, **own)


_ROCP_ROOFS = {
    "hbmbw": "roof_dram_gbs",
    "mallbw": "roof_l3_gbs",
    "l2bw": "roof_l2_gbs",
    "l1bw": "roof_l1_gbs",
    "ldsbw": "roof_lds_gbs",
    "fp32flops": "roof_fp32_gflops",
    "fp64flops": "roof_fp64_gflops",
    "mfmaf16flops": "roof_fp16_matrix_gflops",
    "mfmabf16flops": "roof_bf16_matrix_gflops",
    "mfmaf8flops": "roof_fp8_matrix_gflops",
}


def read_rocprof_compute(lines: list[str]) -> Sheet | None:
    """roofline.csv of rocprof-compute (Omniperf): measured roofs per device, GB/s and GFLOP/s."""
    tables = delimited(lines, lambda row: {"hbmbw", "l2bw"} <= {_key(c) for c in row})
    if not any(t.rows for t in tables):
        return None
    sheet = Sheet("rocprof-compute")
    for table in tables:
        for _, raw, _n in as_records(table):
            r = {_key(k): v for k, v in raw.items()}
            for key, metric in _ROCP_ROOFS.items():
                sheet.row(metric, number(r.get(key)), r.get(key), device=r.get("device"))
    return sheet


def read_rocprof_compute_tables(lines: list[str]) -> Sheet | None:
    """`rocprof-compute analyze`: the table of top kernels, with the time of all their dispatches."""
    tables = pipe_tables(lines, lambda row: any(_key(c) == "kernelname" for c in row) and any(_key(c) in ("sumns", "sumus", "summs") for c in row))
    if not any(t.rows for t in tables):
        return None
    sheet = Sheet("rocprof-compute")
    for table in tables:
        total = next(c for c in table.header if _key(c) in ("sumns", "sumus", "summs"))
        scale = {"sumns": 1.0, "sumus": 1e3, "summs": 1e6}[_key(total)]
        for _, raw, _n in as_records(table):
            r = {_key(k): v for k, v in raw.items()}
            value = number(raw[total])
            exact = int(value) if value is not None and math.isfinite(value) and value == int(value) and scale == 1 else value
            sheet.row("kernel_time_ns", exact, raw[total], scale=scale, kernel=r.get("kernelname"), calls=whole(r.get("count")))
    return sheet
