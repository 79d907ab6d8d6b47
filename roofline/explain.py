"""The working of a figure: which formula, with this scenario's values, and where each constant comes from.

Every step is {"key", "values"}: the page's words for the key are a sentence with the formula, the values are already written out.
"""

from __future__ import annotations

from .units import format_number, format_quantity
from .view import count, whole

KEYS = ("ttft", "tpot", "user", "total", "memory", "cost")


def explain(report: dict, key: str) -> dict:
    """{"steps": [...], "constants": [...]} for one of KEYS of a Report's dict.

    >>> from roofline.scenario import Scenario
    >>> from roofline.report import evaluate
    >>> [s["key"] for s in explain(evaluate(Scenario()).to_dict(), "user")["steps"]][-1]
    'user'
    """
    serving, decode = report["serving"], report["decode"]
    steps = []
    if key == "memory":
        steps = _memory(report)
    elif key == "cost":
        steps = _cost(report)
    elif serving["tpot_s"] is None:
        steps = [{"key": "untimed", "values": {}}]
    elif key == "ttft":
        steps = _phase(report, "prefill") + ([] if not serving.get("disaggregated") else [{"key": "pools", "values": {"result": _s(serving["ttft_s"])}}])
    else:
        steps = _phase(report, "decode")
        spec = serving.get("speculation")
        if spec:
            steps.append({"key": "speculation", "values": {"verify": _s(spec["verify_s"]), "draft": _s(spec["draft_s"]), "tokens": format_number(spec["tokens_per_step"]), "result": _s(serving["tpot_s"])}})
        if key in ("user", "total"):
            steps.append({"key": "user", "values": {"tpot": _s(serving["tpot_s"]), "result": format_number(serving["tokens_per_s_per_user"])}})
        if key == "total":
            batch = report["scenario"].get("batch", 1)
            steps.append({"key": "total", "values": {"replicas": str(report["layout"]["dp"]), "batch": whole(batch), "tpot": _s(serving["tpot_s"]), "result": format_number(serving["tokens_per_s"])}})
    if decode and key in ("ttft", "tpot", "user", "total") and report["expectation"]:
        e = report["expectation"]
        steps.append({"key": "expectation", "values": {"compute": _p(e["compute"]), "bandwidth": _p(e["bandwidth"]), "basis": e["basis"], "points": str(e["points"])}})
    return {"key": key, "steps": steps, "constants": _constants(report, key)}


def _s(value) -> str:
    return format_quantity(value, "s")


def _b(value) -> str:
    return format_quantity(value, "B")


def _p(value) -> str:
    return f"{format_number(100 * value)}\u2009%"


def _phase(report: dict, name: str) -> list:
    """The three times of a phase and the largest."""
    phase, h, layout = report[name], report["hardware"], report["layout"]
    parts, moved, tp = phase["limit_parts_s"], phase["bytes"], layout["tp"]
    steps = [{"key": f"work.{name}", "values": {"flops": format_quantity(phase["flops"], "FLOP"), "tokens": whole(phase["tokens"]), "context": whole(phase["context"])}}]
    per_chip = parts["memory"] * h["bandwidth_bytes_per_s"]
    steps.append({"key": "time.memory", "values": {"weights": _b(moved["weights"]), "kv": _b(moved["kv_read"] + moved["kv_write"]), "chips": str(tp), "per_chip": _b(per_chip),
                                                   "bandwidth": format_quantity(h["bandwidth_bytes_per_s"], "B/s"), "result": _s(parts["memory"])}})
    reached = phase["flops"] / parts["compute"] if parts["compute"] else None
    steps.append({"key": "time.compute", "values": {"flops": format_quantity(phase["flops"], "FLOP"), "chips": str(tp), "format": report["formats"]["compute_roof"].upper(),
                                                    "peak": format_quantity(report["formats"]["compute_peak_flops_per_s"], "FLOP/s"), "reached": format_quantity(reached, "FLOP/s"), "result": _s(parts["compute"])}})
    for key in ("network", "host"):
        if parts.get(key):
            steps.append({"key": f"time.{key}", "values": {"bytes": _b(phase["link_bytes"]), "link": h.get("link") or "–", "result": _s(parts[key])}})
    steps.append({"key": f"limit.{name}", "values": {"bound": phase["bound"], "result": _s(phase["limit_s"])}})
    return steps


def _memory(report: dict) -> list:
    mem, m = report["memory"], report["model"]
    steps = [{"key": "memory.weights", "values": {"parameters": count(m["parameters"]["total"]), "bits": format_number(report["formats"]["bits_per_weight"]), "result": _b(mem["weights_bytes"])}},
             {"key": "memory.kv", "values": {"sequence": _b(mem["kv_bytes_per_sequence"]), "batch": whole(report["scenario"].get("batch", 1)), "result": _b(mem["kv_bytes_stored"])}},
             {"key": "memory.activations", "values": {"result": _b(mem["activation_bytes"])}},
             {"key": "memory.total", "values": {"result": _b(mem["total_bytes"]), "available": _b(mem["available_bytes"])}}]
    return steps


def _cost(report: dict) -> list:
    price, rate = report["hardware"].get("usd_per_hour"), report["serving"]["tokens_per_s"]
    value = (report["cost"] or {}).get("usd_per_million_output_tokens")
    if price is None or rate is None or value is None:
        return [{"key": "cost.unknown", "values": {}}]
    return [{"key": "cost", "values": {"price": format_number(price), "chips": str(report["layout"]["devices"]), "rate": format_number(rate), "result": f"${format_number(value)}"}}]


def _constants(report: dict, key: str) -> list:
    """The figures of the chip and the model that the steps used, each with source, date and grade."""
    h, m = report["hardware"], report["model"]
    of_chip = {"source": h.get("source", ""), "url": h.get("url", ""), "date": str(h.get("retrieved", "")), "grade": h.get("grade", "")}
    sure = set(h.get("unverified", []))
    chip = lambda name, value, field: {"name": name, "value": value, **of_chip, "unsure": field in sure}
    rows = []
    if key in ("ttft", "tpot", "user", "total"):
        roof = report["formats"]["compute_roof"]
        rows = [chip("bandwidth", format_quantity(h["bandwidth_bytes_per_s"], "B/s"), "bandwidth_gbs"),
                chip(f"peak {roof.upper()}", format_quantity(report["formats"]["compute_peak_flops_per_s"], "FLOP/s"), roof)]
        if report["layout"]["devices"] > 1 and h.get("link_bytes_per_s"):
            rows.append(chip(h.get("link") or "link", format_quantity(h["link_bytes_per_s"], "B/s"), "link_gbs"))
    if key == "memory":
        rows = [chip("memory", _b(h["memory_bytes"]), "memory_gb")]
    if key == "cost" and h.get("usd_per_hour") is not None:
        rows = [{"name": "price", "value": f"${format_number(h['usd_per_hour'])}/h", "source": h.get("price_source", ""), "url": "", "date": str(h.get("retrieved", "")), "grade": "", "unsure": False}]
    rows.append({"name": m["name"], "value": count(m["parameters"]["total"]), "source": m.get("source", ""), "url": "", "date": "", "grade": "", "unsure": False})
    return rows
