"""PyTorch profiler: the key_averages table and the Chrome trace."""

from __future__ import annotations

import re

from .jsonish import number_of
from .reading import Sheet
from .values import SECONDS, clean_scale, number, several

_CELL = re.compile(r"(-?[\d.,]+)\s*(us|ms|s|ns)$")
_SCALE = {"": 1, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
_MOVES = re.compile(
    r"^(?:Memcpy|Memset|ProfilerStep|\[memory\]|cuda[A-Z]|hip[A-Z]|cu[A-Z]\w+Launch|Activity Buffer|Command Buffer|Unrecognized|Optimizer\.|## Call)"
)
_SMALL_SHARE = 0.05
MAX_SINGLE_EVENTS = 200


def read_table(lines: list[str]) -> Sheet | None:
    """key_averages().table(): operators with their device time; FLOPs where `with_flops` counted them.

    An operator and the kernel under it show the same device time, so kernel rows count only where no operator does.
    Operators below 5 % of the device time and copies go to `more`.
    """
    heads = [
        i for i, line in enumerate(lines) if re.search(r"\bName\b", line) and re.search(r"\bSelf CPU\b", line) and "# of Calls" in line
    ]
    if not heads:
        return None
    sheet = Sheet("pytorch-profiler")
    for head in heads:
        _one_table(sheet, lines, head)
    return sheet


def _one_table(sheet: Sheet, lines: list[str], head: int) -> None:
    ruler = next(
        (lines[i] for i in (head - 1, head + 1) if 0 <= i < len(lines) and re.fullmatch(r"\s*-{3,}(?:\s+-{3,})+\s*", lines[i])), None
    )
    spans = [m.span() for m in re.finditer(r"-+", ruler)] if ruler else []
    header = re.split(r"\s{2,}", lines[head].strip())
    if "Name" not in header:
        return
    self_device = next((h for h in header if re.fullmatch(r"Self (?!CPU)\w+", h) and not h.endswith("%")), None)
    share_column = next((h for h in header if self_device and h == self_device + " %"), None) or ("Self CPU %" if not self_device else None)
    time_column = self_device or "Self CPU"
    flops_column = next((h for h in header if re.fullmatch(r"(?:Total )?[KMGTP]?FLOPs?", h, re.I)), None)
    factor = _SCALE[re.fullmatch(r"(?:Total )?([KMGTP]?)FLOPs?", flops_column, re.I)[1].upper()] if flops_column else 1
    entries = []
    for line in lines[head + 1 : head + 4001]:
        if re.match(r"\s*Self CPU time total", line):
            break
        if re.fullmatch(r"[\s-]*", line):
            if entries and line.strip():
                break
            continue
        cells = re.split(r"\s{2,}", line.strip())
        if len(cells) != len(header) and len(spans) == len(header):  # a name with two spaces in it, or an empty cell
            cells = [line[a:b].strip() for a, b in spans]
        if len(cells) < len(header) or not cells[0]:
            continue
        r = dict(zip(header, cells, strict=False))
        time = _time(r.get(time_column, ""))
        if time:
            entries.append((r, time))
    operators = [e for e in entries if "::" in e[0]["Name"] and not re.match(r"void |[\w:]+<", e[0]["Name"])]
    kept = operators or [e for e in entries if not _MOVES.match(e[0]["Name"])]
    counted = [e for e in kept if flops_column and number(e[0].get(flops_column))]
    for r, time in counted or kept:
        share = number(r.get(share_column, "")) if share_column else None
        into = "more" if share is not None and abs(share) < _SMALL_SHARE * 100 and counted else "rows"
        calls = r.get("# of Calls", "")
        own = {
            "op": r["Name"],
            "calls": int(calls) if calls.strip().isdecimal() else None,
            "device_time": time_column.removeprefix("Self "),
        }
        ok = sheet.row("kernel_time_ns", clean_scale(time * 1e9), r[time_column], into=into, **own)
        flop = number(r.get(flops_column)) if flops_column else None
        if flop and sheet.row("flop", flop, r[flops_column], scale=factor, into=into, op=r["Name"]) and ok:
            sheet.row("gflops", flop * factor / time / 1e9, r[flops_column], derived=True, into=into, op=r["Name"])


def _time(cell: str) -> float | None:
    match = _CELL.match(cell.strip())
    value = number(match[1]) if match else None
    return value * SECONDS[match[2]] if value and value > 0 else None


def read_trace(records: list, damaged: bool = False) -> Sheet | None:
    """export_chrome_trace(): kernel and copy events in microseconds; a kernel belongs to the operator with its External id."""
    if damaged:  # a trace that breaks off leaves its whole events
        events = [r for r in records if isinstance(r, dict) and "ph" in r and "name" in r]
        records = (
            [{"traceEvents": events, "deviceProperties": [r for r in records if isinstance(r, dict) and "computeMajor" in r]}]
            if events
            else []
        )
    trace = next((r for r in records if isinstance(r, dict) and isinstance(r.get("traceEvents"), list)), None)
    if trace is None and len(records) > 3 and all(isinstance(r, dict) and "ph" in r and "name" in r for r in records[:20]):
        trace = {"traceEvents": records}
    if trace is None:
        return None
    sheet = Sheet("pytorch-profiler")
    devices = trace.get("deviceProperties")
    if isinstance(devices, list):
        sheet.fact(hardware=several([d["name"] for d in devices if isinstance(d, dict) and isinstance(d.get("name"), str)]))
    events = [e for e in trace["traceEvents"] if isinstance(e, dict) and e.get("ph") == "X" and isinstance(e.get("name"), str)]
    args = lambda e: e["args"] if isinstance(e.get("args"), dict) else {}  # noqa: E731
    category = lambda e: str(e.get("cat", "")).lower()  # noqa: E731
    operators = {}
    for e in events:
        if category(e) in ("cpu_op", "operator") and (i := args(e).get("External id", args(e).get("external id"))) is not None:
            operators.setdefault(i, e)
    kernels = [e for e in events if category(e) == "kernel" and 0 < (number_of(e, "dur") or 0) < 1e18]
    copies = [e for e in events if category(e) in ("gpu_memcpy", "memcpy") and number_of(e, "dur")]
    groups: dict = {}
    for e in kernels:
        op = operators.get(args(e).get("External id", args(e).get("external id")))
        shapes = args(op).get("Input Dims", args(op).get("Input dims")) if op else None
        key = (e["name"], op["name"] if op else None, repr(shapes)[:200]) if len(kernels) > MAX_SINGLE_EVENTS else (id(e),)
        entry = groups.setdefault(key, {"e": e, "op": op, "shapes": shapes, "us": 0.0, "n": 0})
        entry["us"] += float(e["dur"])
        entry["n"] += 1
    for entry in groups.values():
        op = entry["op"]
        own = {
            "kernel": entry["e"]["name"][:300],
            "op": op["name"][:120] if op else None,
            "shapes": entry["shapes"] if isinstance(entry["shapes"], list) and len(str(entry["shapes"])) < 400 else None,
        }
        if len(kernels) > MAX_SINGLE_EVENTS:
            sheet.row("kernel_time_ns", clean_scale(entry["us"] * 1e3), f"{entry['us']:.3f} us", calls=entry["n"], **own)
        else:
            sheet.row("duration_ns", entry["e"]["dur"], f'"dur": {entry["e"]["dur"]}', scale=1e3, **own)
    for e in copies[:MAX_SINGLE_EVENTS]:
        rate = number_of(args(e), "memory bandwidth (GB/s)")
        sheet.row("copy_bw_gbs", rate, bytes=number_of(args(e), "bytes"), copy=e["name"][:80])
    if not kernels and not copies:
        sheet.warn("no_kernels", "the trace holds no GPU kernel or copy; profile with the device activity switched on")
    return sheet
