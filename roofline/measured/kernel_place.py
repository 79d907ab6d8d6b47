"""Where a profiler's kernel stands: its own FLOPs and bytes under the roofs of a chip."""

from __future__ import annotations

from collections.abc import Mapping

from .culprits import kernel_culprits

KERNEL_METRICS = {
    "duration_ns",
    "kernel_time_ns",
    "dram_bytes",
    "dram_bytes_read",
    "dram_bytes_write",
    "dram_bw_gbs",
    "gflops",
    "flop",
    "mem_pct_of_peak",
    "compute_pct_of_peak",
    "bandwidth_gbs",
    "arithmetic_intensity",
}


def empty_place(verdict: str) -> dict:
    """A placement in which nothing is told but the reason."""
    keys = (
        "phase",
        "measured_s",
        "limit_s",
        "expected_s",
        "percent_of_limit",
        "percent_of_expectation",
        "achieved_bandwidth_bytes_per_s",
        "achieved_flops_per_s",
        "bandwidth_percent",
        "compute_percent",
        "intensity_flops_per_byte",
        "attainable_flops_per_s",
        "bound",
        "above_roof",
    )
    return {**dict.fromkeys(keys), "verdict": verdict, "culprits": []}


def kernel_of(rows: list[Mapping]) -> dict:
    """Join the rows of one kernel: {"name", "seconds" [s], "bytes" [bytes], "flops" [FLOP], "bandwidth" [bytes/s], "flops_per_s" [FLOP/s]}; None where not stated."""
    value = {r.get("metric"): r.get("value") for r in rows if isinstance(r.get("value"), (int, float))}
    first = rows[0] if rows else {}
    ns, calls = value.get("duration_ns") or value.get("kernel_time_ns"), 1
    seconds = ns / 1e9 / calls if ns else None
    moved = value.get("dram_bytes")
    if moved is None and ("dram_bytes_read" in value or "dram_bytes_write" in value):
        moved = (value.get("dram_bytes_read") or 0) + (value.get("dram_bytes_write") or 0)
    bandwidth = next((value[k] * 1e9 for k in ("dram_bw_gbs", "bandwidth_gbs") if value.get(k)), None)
    rate = value["gflops"] * 1e9 if value.get("gflops") else None
    flops = value.get("flop")
    bandwidth = bandwidth or (moved / seconds if moved and seconds else None)
    rate = rate or (flops / seconds if flops and seconds else None)
    return {
        "name": first.get("kernel") or first.get("op") or first.get("loop") or first.get("test"),
        "seconds": seconds,
        "bytes": moved or (bandwidth * seconds if bandwidth and seconds else None),
        "flops": flops or (rate * seconds if rate and seconds else None),
        "bandwidth": bandwidth,
        "flops_per_s": rate,
        "memory_percent": value.get("mem_pct_of_peak"),
        "compute_percent": value.get("compute_pct_of_peak"),
        "intensity": value.get("arithmetic_intensity"),
        "level": next((r["memory_level"] for r in rows if r.get("memory_level")), None),
        "precision": first.get("precision"),
        "whole_model": str(first.get("note") or "").startswith("weight bytes times rate"),
    }


def kernels(reading) -> list[dict]:
    """The kernels of a profiler's reading, each with its own FLOPs, bytes and time, in the order of the file.

    >>> from roofline.measured import read
    >>> text = b'"Name","Calls","TotalDurationNs","AverageNs","Percentage"\\n"gemv",10,1000000,100000,100.0'
    >>> kernels(read(text))[0]["seconds"]
    0.001
    """
    return list({id(kernel): kernel for kernel in kernel_by_row(reading).values()}.values())


def kernel_by_row(reading) -> dict[int, dict]:
    """The kernel that each row belongs to, by the row's place in the reading; a repeated metric starts the next launch."""
    groups: list[list[int]] = []
    latest: dict[tuple, list[int]] = {}
    for i, row in enumerate(reading.rows):
        if row.get("metric") not in KERNEL_METRICS:
            continue
        name = tuple(str(row.get(k)) for k in ("kernel", "op", "loop", "dispatch", "test", "arithmetic_intensity"))
        group = latest.get(name)
        if group is None or any(reading.rows[k]["metric"] == row["metric"] for k in group):
            group = latest[name] = []
            groups.append(group)
        group.append(i)
    joined = ((group, kernel_of([reading.rows[k] for k in group])) for group in groups)
    return {i: kernel for group, kernel in joined for i in group}


def place_kernel(kernel: Mapping, chip: Mapping, compute: str | None = None) -> dict:
    """Place one kernel by its own FLOPs and bytes under the roofs of a chip.

    Args: kernel: from `kernels`; chip: a Report's "hardware" ({"bandwidth_bytes_per_s", "peak_flops_per_s"}); compute: the
    format it computes in (None: the highest peak that the chip has for 16-bit formats). Returns the keys of `place`.
    """
    result = empty_place("")
    bandwidth_roof = chip.get("bandwidth_bytes_per_s")
    peaks = chip.get("peak_flops_per_s") or {}
    peak = peaks.get(kernel.get("precision") or "") or peaks.get(compute or "") or peaks.get("bf16") or peaks.get("fp16") or (max(peaks.values()) if peaks else None)
    rate, bandwidth = kernel.get("flops_per_s"), kernel.get("bandwidth")
    intensity = rate / bandwidth if rate and bandwidth else kernel.get("intensity")
    result.update(
        phase="kernel",
        kernel=kernel.get("name"),
        measured_s=kernel.get("seconds"),
        achieved_bandwidth_bytes_per_s=bandwidth,
        achieved_flops_per_s=rate,
        intensity_flops_per_byte=intensity,
    )
    percent_memory = 100 * bandwidth / bandwidth_roof if bandwidth and bandwidth_roof else kernel.get("memory_percent")
    percent_compute = 100 * rate / peak if rate and peak else kernel.get("compute_percent")
    result["bandwidth_percent"], result["compute_percent"] = percent_memory, percent_compute
    if intensity and peak and bandwidth_roof and kernel.get("level") is None:
        result["attainable_flops_per_s"] = min(peak, intensity * bandwidth_roof)
        result["bound"] = "memory" if intensity * bandwidth_roof < peak else "compute"
    if percent_memory is None and percent_compute is None:
        result["verdict"] = "The profiler gives a time but neither bytes nor FLOPs, so the kernel has no place under the roof."
        return result
    best = max(percent_memory or 0.0, percent_compute or 0.0)
    result["percent_of_limit"] = best
    result["bound"] = result["bound"] or ("memory" if (percent_memory or 0.0) >= (percent_compute or 0.0) else "compute")
    result["above_roof"] = best > 103
    parts = [f"{p:.0f} % of {what}" for p, what in ((percent_memory, "bandwidth"), (percent_compute, "peak compute")) if p is not None]
    result["verdict"] = ", ".join(parts) + (" - above the roof." if result["above_roof"] else ".")
    result["culprits"] = kernel_culprits(result, kernel)
    return result
