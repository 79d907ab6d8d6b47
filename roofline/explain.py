"""The working of a figure: which formula, with this scenario's values, and where each constant comes from.

Every step is {"key", "values"}: the page's words for the key are a sentence with the formula, the values are already written out.
"""

from __future__ import annotations

from .units import format_number, format_quantity
from .view import count, whole

TIMES = ("ttft", "tpot", "user", "total")
KEYS = (*TIMES, "memory", "cost", "utilisation", "bytes", "flops", "ridge", "weights", "kv_token", "max_batch", "max_context",
        "intensity.prefill", "intensity.decode", "rate.prefill", "rate.decode")


def explain(report: dict, key: str, arch=None) -> dict:
    """{"steps": [...], "constants": [...]} for one of KEYS of a Report's dict.

    arch: the model's Architecture, with which the KV cache is shown layer by layer.

    >>> from roofline.scenario import Scenario
    >>> from roofline.report import evaluate
    >>> [s["key"] for s in explain(evaluate(Scenario(engine="none")).to_dict(), "user")["steps"]][-1]
    'user'
    """
    serving, decode = report["serving"], report["decode"]
    steps = []
    if key == "memory":
        steps = _memory(report)
    elif key == "cost":
        steps = _cost(report)
    elif key in _COUNTS:
        steps = _COUNTS[key](report, arch)
    elif "." in key:
        steps = _place(report, *key.split("."))
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
    if decode and key in TIMES and report["expectation"]:
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
    # A decode step is a round for each micro-batch, and the times are those of one; in prefill all stages compute at once.
    rounds = min(layout["pp"], report["scenario"].get("batch", 1)) if name == "decode" else 1
    chips = tp * (layout["pp"] if name == "prefill" else 1)
    flops, weights, cache = phase["flops"] / rounds, moved["weights"] / rounds, (moved["kv_read"] + moved["kv_write"]) / rounds
    steps = [{"key": f"work.{name}", "values": {"flops": format_quantity(phase["flops"], "FLOP"), "tokens": whole(phase["tokens"]), "context": whole(phase["context"])}}]
    if rounds > 1:
        steps.append({"key": "rounds", "values": {"rounds": str(rounds), "flops": format_quantity(flops, "FLOP")}})
    per_chip = parts["memory"] * h["bandwidth_bytes_per_s"]
    # Copies of the cache, stages in turn, uneven experts and host memory make a chip's part another one than an even share.
    even = abs((weights + cache) / tp / per_chip - 1) < 0.01 if per_chip else True
    steps.append({"key": "time.memory" if even else "time.memory.uneven", "values": {
        "weights": _b(weights), "kv": _b(cache), "chips": str(tp), "per_chip": _b(per_chip), "bandwidth": format_quantity(h["bandwidth_bytes_per_s"], "B/s"), "result": _s(parts["memory"])}})
    reached = flops / chips / parts["compute"] if parts["compute"] else None
    steps.append({"key": "time.compute", "values": {"flops": format_quantity(flops, "FLOP"), "chips": str(chips), "format": report["formats"]["compute_roof"].upper(),
                                                    "peak": format_quantity(report["formats"]["compute_peak_flops_per_s"], "FLOP/s"), "reached": format_quantity(reached, "FLOP/s"), "result": _s(parts["compute"])}})
    for key in ("network", "host"):
        if parts.get(key):
            steps.append({"key": f"time.{key}", "values": {"bytes": _b(phase["link_bytes"] / rounds), "link": h.get("link") or "–", "result": _s(parts[key])}})
    steps.append({"key": f"limit.{name}", "values": {"bound": phase["bound"], "result": _s(phase["limit_s"])}})
    return steps


def _memory(report: dict) -> list:
    mem, m = report["memory"], report["model"]
    steps = [{"key": "memory.weights", "values": {"parameters": count(m["parameters"]["total"]), "bits": format_number(report["formats"]["bits_per_weight"]), "result": _b(mem["weights_bytes"])}},
             {"key": "memory.kv", "values": {"sequence": _b(mem["kv_bytes_stored"] / report["scenario"].get("batch", 1)), "batch": whole(report["scenario"].get("batch", 1)), "result": _b(mem["kv_bytes_stored"])}},
             {"key": "memory.activations", "values": {"result": _b(mem["activation_bytes"])}},
             {"key": "memory.total", "values": {"result": _b(mem["total_bytes"]), "available": _b(mem["available_bytes"])}}]
    held = mem["weights_bytes_per_device"] * report["layout"]["tp"] * report["layout"]["pp"]
    if abs(held / mem["weights_bytes"] - 1) > 0.005:
        steps.insert(1, {"key": "memory.held", "values": {"result": _b(held)}})
    return steps


def _ridge(report: dict, _arch) -> list:
    f, h = report["formats"], report["hardware"]
    return [{"key": "ridge", "values": {"format": f["compute_roof"].upper(), "peak": format_quantity(f["compute_peak_flops_per_s"], "FLOP/s"),
                                        "bandwidth": format_quantity(h["bandwidth_bytes_per_s"], "B/s"), "result": format_number(h["ridge_flops_per_byte"])}}]


def _bytes(report: dict, _arch) -> list:
    """What a decode step reads and writes."""
    moved = report["decode"]["bytes"]
    return [{"key": "bytes", "values": {"weights": _b(moved["weights"]), "read": _b(moved["kv_read"]), "written": _b(moved["kv_write"]), "context": whole(report["decode"]["context"]),
                                        "result": _b(moved["weights"] + moved["kv_read"] + moved["kv_write"])}}]


def _flops(report: dict, _arch) -> list:
    """The work of a decode step: what every token does with the weights, and what attention does with the context."""
    step = report["decode"]
    attention = sum(op["flops"] for op in step["operators"] if op["group"] == "attention_core")
    return [{"key": "flops", "values": {"active": count(report["model"]["parameters"]["active"]), "tokens": whole(step["tokens"]), "context": whole(step["context"]),
                                        "dense": format_quantity(step["flops"] - attention, "FLOP"), "attention": format_quantity(attention, "FLOP"), "result": format_quantity(step["flops"], "FLOP")}}]


def _utilisation(report: dict, _arch) -> list:
    step = report["decode"]
    if not step or step["limit_s"] is None:
        return [{"key": "untimed", "values": {}}]
    return [*_flops(report, None), *(s for s in _phase(report, "decode") if s["key"] in ("rounds", "time.compute")),
            {"key": "utilisation", "values": {"compute": _s(step["limit_parts_s"]["compute"]), "time": _s(step["limit_s"]), "result": _p(step["compute_utilisation"])}}]


def _weights(report: dict, _arch) -> list:
    """The weights: how many of each kind, then their bytes."""
    counts = report["model"]["parameters"]
    groups = {"embedding": "embedding", "attention": "attention_projection", "mlp": "mlp", "experts": "experts", "shared_experts": "shared_experts", "router": "router",
              "norm": "norm", "recurrent": "recurrent", "lm_head": "lm_head", "vision": "vision", "other": "other"}
    steps = [{"key": "weights.group", "values": {"group": groups[k], "parameters": count(counts[k])}} for k in groups if counts.get(k)]
    return [*steps, _memory(report)[0]]


def _kv_token(report: dict, arch) -> list:
    """The KV cache of one token, one step for each kind of layer."""
    m, step, mem = report["model"], report["decode"], report["memory"]
    cores = [(a, a.kv_elements / a.compress + a.index_elements) for a in arch.attentions] if arch else []
    elements = sum(numbers * a.count for a, numbers in cores)
    written = step["bytes"]["kv_write"] / step["tokens"]  # what a step writes is the cache of its tokens, in the format it is kept in
    each = written / elements if elements else 0
    steps = []
    for a, numbers in cores:
        if numbers:
            steps.append({"key": "kv.window" if a.window else "kv.layers", "values": {"layers": str(a.count), "kind": a.kind, "numbers": whole(numbers), "bytes": format_number(each),
                                                                                      **({"window": whole(a.window)} if a.window else {}), "result": _b(numbers * a.count * each)}})
    steps.append({"key": "kv.total", "values": {"format": report["formats"]["kv"].upper(), "result": _b(written)}})
    tokens = report["scenario"].get("prompt", 0) + report["scenario"].get("output", 0)
    if m["state_bytes_per_sequence"]:
        steps.append({"key": "kv.state", "values": {"result": _b(m["state_bytes_per_sequence"])}})
    if tokens and m.get("kv_bytes_per_token_stored"):
        steps.append({"key": "kv.sequence", "values": {"tokens": whole(tokens), "sequence": _b(mem["kv_bytes_per_sequence"]), "result": _b(m["kv_bytes_per_token_stored"])}})
    return steps


def _room(report: dict, key: str) -> list:
    """What fits in the memory that the weights leave."""
    mem = report["memory"]
    if mem["available_bytes"] is None or mem[key] is None:
        return [{"key": "room.unknown", "values": {}}]
    batch, chips = report["scenario"].get("batch", 1), report["layout"]["tp"] * report["layout"]["pp"]
    return [{"key": f"room.{key}", "values": {"available": _b(mem["available_bytes"]), "weights": _b(mem["weights_bytes_per_device"] * chips), "sequence": _b(mem["kv_bytes_stored"] / batch),
                                              "batch": whole(batch), "result": whole(mem[key])}}]


_COUNTS = {"ridge": _ridge, "bytes": _bytes, "flops": _flops, "utilisation": _utilisation, "weights": _weights, "kv_token": _kv_token,
           "max_batch": lambda report, _: _room(report, "max_batch"), "max_context": lambda report, _: _room(report, "max_context")}


def _place(report: dict, what: str, name: str) -> list:
    """Where a phase stands on the chart: its intensity and its rate, per chip."""
    phase, bandwidth = report[name], report["hardware"]["bandwidth_bytes_per_s"]
    if not phase or phase["limit_s"] is None:
        return [{"key": "untimed", "values": {}}]
    work, spent = phase["attainable_flops_per_s"] * phase["limit_s"], phase["limit_parts_s"]
    values = {"flops": format_quantity(work, "FLOP"), "chips": str(report["layout"]["tp"])}
    if what == "rate":
        return [{"key": "rate", "values": values | {"time": _s(phase["limit_s"]), "result": format_quantity(phase["attainable_flops_per_s"], "FLOP/s")}}]
    moved = spent["memory"] * bandwidth
    x = work / moved if moved else None
    return [{"key": "intensity", "values": values | {"bytes": _b(moved), "result": format_number(x) if x and x < 1e5 else format_quantity(x)}},
            {"key": "intensity.ridge", "values": {"ridge": format_number(report["hardware"]["ridge_flops_per_byte"]), "bound": phase["bound"]}}]


def _chip_hour(report: dict):
    """What the bill takes for an hour of one chip [USD/h], power and purchase included; None if nobody says."""
    whole = (report["cost"] or {}).get("usd_per_hour")
    return None if whole is None else whole / report["layout"]["devices"]


def _cost(report: dict) -> list:
    price, rate = _chip_hour(report), report["serving"]["tokens_per_s"]
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
    if key in TIMES or key in ("ridge", "utilisation") or key.startswith("intensity"):
        roof = report["formats"]["compute_roof"]
        rows = [chip("bandwidth", format_quantity(h["bandwidth_bytes_per_s"], "B/s"), "bandwidth_gbs"),
                chip(f"peak {roof.upper()}", format_quantity(report["formats"]["compute_peak_flops_per_s"], "FLOP/s"), roof)]
        if report["layout"]["devices"] > 1 and h.get("link_bytes_per_s"):
            rows.append(chip(h.get("link") or "link", format_quantity(h["link_bytes_per_s"], "B/s"), "link_gbs"))
    if key in ("memory", "max_batch", "max_context"):
        rows = [chip("memory", _b(h["memory_bytes"]), "memory_gb")]
    if key == "cost" and _chip_hour(report) is not None:
        source = report["cost"]["source"]
        listed = source == h.get("price_source")  # else the user gave it
        rows = [{"name": "price", "value": f"${format_number(_chip_hour(report))}/h", "source": source, "url": "", "date": str(h.get("retrieved", "")) if listed else "", "grade": "", "unsure": False}]
    rows.append({"name": m["name"], "value": count(m["parameters"]["total"]), "source": m.get("source", ""), "url": "", "date": "", "grade": "", "unsure": False})
    return rows
