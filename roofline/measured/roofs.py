"""Tools that measure a machine's roofs or a CPU loop: likwid, ERT, Advisor, STREAM, BabelStream, clpeak, mixbench."""

from __future__ import annotations

import re

from .reading import Sheet
from .tables import as_records, cells, delimited
from .values import NUMBER, decimal_mark, number


def read_likwid(lines: list[str]) -> Sheet | None:
    """likwid-bench (MByte/s are 1e6; write-allocate traffic is not counted) and likwid-perfctr tables or CSV."""
    sheet = Sheet("likwid")
    bench = any("LIKWID MICRO BENCHMARK" in line for line in lines) or any(re.match(r"\W*MByte/s:\s", line) for line in lines)
    found = {}
    metric_lines = []
    for line in lines:
        if "[" in line and "," in line and "|" not in line:  # CSV: the commas part the cells
            line = line.rstrip(", ").replace(",", " | ")
        if m := re.match(r"\W*(MByte/s|MFlops/s|Using|Test|CPU name):?\s*(.+?)\s*$", line):
            found.setdefault(m[1], m[2])
        if m := re.match(
            rf"\W*((?:\w+ )?(?:[Mm]emory bandwidth|DRAM bandwidth)[^|,]*\[[MG]Bytes?/s\]|(?:[SDH]P |AVX )?(?:\w+ )?\[?MFLOP/s\]?|Operational "
            rf"intensity[^|,]*\[FLOP/Byte\]|Memory data volume[^|,]*\[GBytes\])( STAT)?\s*[|,]\s*({NUMBER})((?:\s*[|,]\s*{NUMBER})*)",
            line,
        ):
            metric_lines.append(m)
    if bench:
        mark = decimal_mark(v for k, v in found.items() if "/" in k)
        for key, metric in (("MByte/s", "bandwidth_gbs"), ("MFlops/s", "gflops")):
            sheet.row(metric, number(found.get(key), mark), found.get(key), scale=1e-3)
        threads = re.match(
            r"(\d+) threads", next((line.split("Using", 1)[1].strip() for line in lines if re.match(r"\W*Using \d+ threads", line)), "")
        )
        sheet.fact(threads=int(threads[1]) if threads else None, test=found.get("Test"))
    elif metric_lines:
        stats = [m for m in metric_lines if m[2]] or metric_lines
        mark = decimal_mark(m[3] for m in stats)
        for m in stats:
            value = number(m[3], mark)  # STAT tables start with the sum over the cores
            if not m[2] and m[4]:
                values = [number(v, mark) for v in re.findall(NUMBER, m[4])]
                value = None if value is None else sum([value, *(v for v in values if v)])
            low = m[1].lower()
            if "bandwidth" in low:
                sheet.row("bandwidth_gbs", value, m[3], scale=1e-3 if "[m" in low else 1.0)
            elif "mflop/s" in low:
                sheet.row("gflops", value, m[3], scale=1e-3)
            elif "intensity" in low and not (m[4] or m[2]):
                sheet.row("arithmetic_intensity", value, m[3])
    cpu = found.get("CPU name")
    sheet.fact(hardware=cpu.strip() if cpu and "nknown" not in cpu else None)
    return sheet if sheet.rows else None


_ERT = re.compile(rf"^\W*({NUMBER})\s+(?:(FP\d\d)\s+)?(GFLOPs|L\d|DRAM|HBM|SCRATCH)\s+EMP\b")


def read_ert(lines: list[str], records: list) -> Sheet | None:
    """Empirical Roofline Toolkit: roofs, not points. An "L4" between L3 and DRAM is an artefact of its fit and is left out."""
    sheet = Sheet("ert")
    for line in lines:
        if " EMP" in line and (m := _ERT.match(line)):
            if m[3] == "GFLOPs":
                sheet.row(f"roof_{m[2].lower()}_gflops" if m[2] else "roof_gflops", number(m[1]), m[1])
            elif m[3] == "L4":
                sheet.warn("artefact_left_out", f"L4 {m[1]} GB/s lies between two real levels and is no cache")
            else:
                sheet.row(f"roof_{m[3].lower()}_gbs", number(m[1]), m[1])
    for record in records:
        data = record.get("empirical") if isinstance(record, dict) else None
        if isinstance(data, dict):
            for part, end in (("gbytes", "gbs"), ("gflops", "gflops")):
                pairs = data.get(part, {}).get("data") if isinstance(data.get(part), dict) else None
                for pair in pairs if isinstance(pairs, list) else ():
                    if (
                        isinstance(pair, list)
                        and len(pair) == 2
                        and isinstance(pair[0], str)
                        and isinstance(pair[1], (int, float))
                        and pair[0] != "L4"
                    ):
                        level = re.sub(r"\W*gflops?\W*", "", pair[0].lower()).strip()
                        sheet.row(f"roof_{level}_{end}" if level else f"roof_{end}", pair[1])
    return sheet if sheet.rows else None


_ADVISOR = {"selfgflops": "gflops", "selfai": "arithmetic_intensity", "selfdramgb": "dram_bytes"}


def read_advisor(lines: list[str]) -> Sheet | None:
    """Intel Advisor survey tables (CSV, TSV): loops with FLOPs; self AI is against L1 traffic, not DRAM."""
    key = lambda name: re.sub(r"[^a-z0-9]", "", name.lower())  # noqa: E731
    tables = delimited(
        lines,
        lambda row: (
            {"selfgflops", "selfai"} <= {key(c) for c in row}
            and any("functioncallsites" in key(c) or key(c) in ("loop", "name") for c in row)
        ),
    )
    if not any(t.rows for t in tables):
        return None
    sheet = Sheet("intel-advisor")
    for table in tables:
        records = as_records(table)
        mark = decimal_mark(v for _, r, _ in records[:200] for k, v in r.items() if key(k) in _ADVISOR)
        for _, raw, _n in records:
            r = {key(k): v for k, v in raw.items()}
            loop = next((v for k, v in r.items() if "functioncallsites" in k or k in ("loop", "name")), None)
            rate = number(r.get("selfgflops"), mark)
            if not rate:
                continue
            sheet.row("gflops", rate, r["selfgflops"], loop=loop)
            sheet.row("arithmetic_intensity", number(r.get("selfai"), mark), r.get("selfai"), loop=loop, memory_level="L1 (cache-aware)")
            if r.get("selfdramgb"):
                sheet.row("dram_bytes", number(r["selfdramgb"], mark), r["selfdramgb"], scale=1e9, loop=loop)
    return sheet if sheet.rows else None


_STREAM = re.compile(rf"^\W*(Copy|Scale|Mul|Add|Triad|Dot|Nstream):?\s+({NUMBER})\s+({NUMBER})\s+({NUMBER})\s+({NUMBER})\s*$")


def read_stream(lines: list[str]) -> Sheet | None:
    """STREAM and BabelStream: MB/s of 1e6 bytes; best rate of each kernel."""
    header = next(
        (line for line in lines if re.search(r"Function\s+(?:Best Rate|Rate|MBytes/sec|GBytes/sec|MiBytes/sec|Rate \()", line)), None
    )
    if header is None:
        return None
    sheet = Sheet("babelstream" if "Bytes/sec" in header else "stream")
    scale = 1.0 if "GBytes/sec" in header else 1.048576e-3 if "MiBytes/sec" in header else 1e-3
    rows = [m for line in lines if (m := _STREAM.match(line))]
    mark = decimal_mark(m[2] for m in rows)
    for m in rows:
        sheet.row("bandwidth_gbs", number(m[2], mark), m[2], scale=scale, test=m[1])
    for line in lines:
        if m := re.match(r"\W*Using (?:CUDA|HIP|SYCL|OpenCL)? ?device:? (.{3,80}?)\s*$", line):
            sheet.fact(hardware=m[1])
        elif m := re.match(r"\W*Number of Threads (?:requested|counted) = (\d+)", line):
            sheet.fact(threads=int(m[1][:6]))
    return sheet if sheet.rows else None


def read_intel_mlc(lines: list[str]) -> Sheet | None:
    """Intel Memory Latency Checker: peak bandwidths by mix of reads and writes, in MB/s of 1e6 bytes."""
    sheet = Sheet("intel-mlc")
    for line in lines:
        if m := re.match(rf"\W*(ALL Reads|\d:\d Reads-Writes|Stream-triad like)\s*:\s*({NUMBER})\s*$", line):
            sheet.row("bandwidth_gbs", number(m[2]), m[2], scale=1e-3, test=m[1])
    return sheet if sheet.rows else None


_CLPEAK = {
    "global memory bandwidth (gbps)": "bandwidth_gbs",
    "single-precision compute (gflops)": "gflops",
    "half-precision compute (gflops)": "gflops",
    "double-precision compute (gflops)": "gflops",
}


def read_clpeak(lines: list[str]) -> Sheet | None:
    """clpeak: the best vector width of each test is a roof."""
    sheet = Sheet("clpeak")
    section, best = None, {}
    for line in lines:
        low = line.strip().lower()
        if m := re.match(r"\W*Device:\s*(.{3,80})$", line):
            sheet.fact(hardware=m[1].strip())
        elif low in _CLPEAK:
            section = low
        elif section and (m := re.match(rf"\W*\w+\s*:\s*({NUMBER})\s*$", line)):
            value = number(m[1])
            if value and value > best.get(section, (0, ""))[0]:
                best[section] = (value, m[1])
        elif low:
            section = None
    names = {"single": "roof_fp32_gflops", "half-p": "roof_fp16_gflops", "double": "roof_fp64_gflops", "global": "roof_dram_gbs"}
    for section, (value, text) in best.items():
        sheet.row(names[section[:6]], value, text)
    return sheet if sheet.rows else None


def read_cuda_bandwidth(lines: list[str]) -> Sheet | None:
    """CUDA bandwidthTest and nvbandwidth: copies between host and device and inside it."""
    sheet = Sheet("bandwidth-test")
    section = None
    for line in lines:
        if m := re.match(r"\W*(Host to Device|Device to Host|Device to Device) Bandwidth", line):
            section = m[1].lower()
        elif section and (m := re.match(rf"\s*\d{{4,}}\s+({NUMBER})\s*$", line)):
            sheet.row("copy_bw_gbs", number(m[1]), m[1], copy=section)
            section = None
        elif m := re.match(r"\s*Device \d+: (.{3,80})$", line):
            sheet.fact(hardware=m[1].strip())
        elif m := re.match(rf"\s*SUM (\w+)\s+({NUMBER})\s*$", line):
            sheet.row("copy_bw_gbs", number(m[2]), m[2], copy=m[1], aggregate=True)
    return sheet if sheet.rows else None


def read_mixbench(lines: list[str]) -> Sheet | None:
    """mixbench: points along the roof, Flops/byte against GFLOPS and GB/sec."""
    sheet = Sheet("mixbench")
    for line in lines:
        if m := re.match(r"\W*Device:\s{2,}(\S.{2,80}?)\s*$", line):
            sheet.fact(hardware=m[1])
        if line.count(",") < 4 or not re.match(r"^[\s\d.,infINF-]+$", line):
            continue
        row = cells(line.replace(",", "|"))
        if len(row) >= 5 and len(row) % 4 == 1:
            for i in range(1, len(row), 4):
                intensity, rate, bandwidth = number(row[i]), number(row[i + 2]), number(row[i + 3])
                if rate and bandwidth and intensity and intensity == intensity and intensity != float("inf"):
                    own = {"arithmetic_intensity": intensity, "column": (i - 1) // 4}
                    sheet.row("gflops", rate, row[i + 2], **own)
                    sheet.row("bandwidth_gbs", bandwidth, row[i + 3], **own)
    return sheet if sheet.rows and any("mixbench" in line.lower() or "Flops/byte" in line for line in lines) else None


_GEMM = {
    "hipblasltgflops": "gflops",
    "rocblasgflops": "gflops",
    "hipblasgflops": "gflops",
    "cublasgflops": "gflops",
    "gflops": "gflops",
    "hipblasltgbs": "bandwidth_gbs",
    "rocblasgbs": "bandwidth_gbs",
    "gbs": "bandwidth_gbs",
}
_DEEPGEMM = re.compile(
    rf"m=\s*(\d+), n=\s*(\d+), k=\s*(\d+).{{0,60}}?({NUMBER})\s*us\s*\|\s*(?:throughput:\s*)?({NUMBER})\s*TFLOPS(?:,|\s*\|)\s*({NUMBER})\s*GB/s"
)


def read_gemm(lines: list[str]) -> Sheet | None:
    """Matrix-multiply benchmarks: CUTLASS profiler, rocBLAS and hipBLASLt CSV, DeepGEMM lines; one point per problem."""
    sheet = Sheet("gemm-benchmark")
    key = lambda name: re.sub(r"[^a-z0-9]", "", name.lower())  # noqa: E731
    for table in delimited(lines, lambda row: {"m", "n", "k"} <= {key(c) for c in row} and any(key(c) in _GEMM for c in row)):
        records = as_records(table)
        mark = decimal_mark(v for _, r, _ in records[:200] for k, v in r.items() if key(k) in _GEMM)
        for _, raw, _n in records:
            r = {key(k): v for k, v in raw.items()}
            own = {"m": number(r["m"]), "n": number(r["n"]), "k": number(r["k"]), "kernel": r.get("operation") or r.get("kernelname")}
            if r.get("provider") and (size := number(r.get("bytes"), mark)) and (ms := number(r.get("runtime"), mark)):
                # The CUTLASS profiler divides by 2**30 and heads the column GB/s: take its bytes and time instead.
                sheet.row("gflops", number(r.get("gflops"), mark), r.get("gflops"), **own)
                sheet.row("bandwidth_gbs", size / ms / 1e6, r.get("gbs") or r["bytes"], derived="bytes / time; its own column counts GiB", **own)
                continue
            for name, metric in _GEMM.items():
                sheet.row(metric, number(r.get(name), mark), r.get(name), **own) if r.get(name) else None
    for line in lines:
        if "TFLOPS" in line and (m := _DEEPGEMM.search(line)):
            own = {"m": int(m[1][:9]), "n": int(m[2][:9]), "k": int(m[3][:9])}
            sheet.tool = "deepgemm"
            sheet.row("gflops", number(m[5]), m[5], scale=1000, **own)
            sheet.row("bandwidth_gbs", number(m[6]), m[6], **own)
    return sheet if sheet.rows else None
