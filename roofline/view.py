"""A Report as the page shows it: every number already written out, so that nothing is formatted in two languages.

Words that a reader sees in their own language stay keys ("memory", "mlp"); the page's i18n files name them.
"""

from __future__ import annotations

from .phase import told_bound
from .units import format_number, format_quantity
from .ways import chips_that_hold

THIN = "\u2009"
GROUPS = ("attention_projection", "attention_core", "mlp", "experts", "shared_experts", "router", "recurrent", "norm", "elementwise",
          "embedding", "lm_head", "collective")


def seconds(value) -> str:
    """A time [s] as text.

    >>> seconds(0.0162).replace(THIN, " ")
    '16.2 ms'
    """
    return format_quantity(value, "s")


def bytes_(value) -> str:
    """A size [bytes] as text.

    >>> bytes_(157e9).replace(THIN, " ")
    '157 GB'
    """
    return format_quantity(value, "B")


def whole(value) -> str:
    """A count with its thousands grouped, or a dash.

    >>> whole(4096), whole(None)
    ('4,096', '–')
    """
    return "–" if value is None else f"{round(value):,}"


def count(value) -> str:
    """A number of parameters as model cards write it.

    >>> count(70_553_706_496).replace(THIN, " ")
    '70.6 B'
    """
    return format_quantity(value).replace("G", "B").replace("P", "Q")


def percent(value, digits: int = 2) -> str:
    """A share as text.

    >>> percent(0.0711).replace(THIN, " ")
    '7.1 %'
    """
    if value is None:
        return "–"
    if 0 < value < 1e-4:
        return f"<{THIN}0.01{THIN}%"
    return f"{format_number(100 * value, 3 if value >= 0.995 else digits)}{THIN}%"


def times(value) -> str:
    """A ratio as text: "1.38x" with a real multiplication sign."""
    return "–" if value is None else f"{format_number(value)}{THIN}×"


def told(phase: dict) -> str | None:
    """The roof a reader is told of a phase of a Report: its bound, with the link to host memory by its own name ("network" counts it in).

    >>> told({"bound": "network", "limit_parts_s": {"network": 0.0, "host": 0.5}}), told({"bound": "memory", "limit_parts_s": None})
    ('host', 'memory')
    """
    return told_bound(phase["bound"], phase["limit_parts_s"])


def told_of_operator(op: dict) -> str:
    """The same of an operator's row: only collectives wait for links between chips."""
    return "host" if op["bound"] == "network" and op["group"] != "collective" else op["bound"] or "plain"


def model_label(report: dict) -> str:
    """The name of a Report's model."""
    return report["model"].get("name") or report["model"]["id"]


def view(report: dict) -> dict:
    """All texts and tables of the page for one Report's dict."""
    return {
        "headline": headline(report), "ways": ways(report), "figures": figures(report), "points": points(report),
        "operators": {name: operators(report, name) for name in ("prefill", "decode")},
        "time": {name: time_groups(report, name) for name in ("prefill", "decode")},
        "memory": memory(report), "facts": facts(report), "warnings": report["warnings"],
    }


def ways(report: dict) -> list:
    """What would fit in place of a question that does not: [{"text", "change": the form's fields}], three at most, more chips last."""
    found = report["memory"].get("ways") or []
    return [{"text": w["text"][:1].upper() + w["text"][1:], "change": {k: "" if v is None else str(v) for k, v in w["change"].items()}}
            for w in (found if len(found) <= 3 else [*found[:2], found[-1]])]


def format_label(name: str) -> str:
    """A format as a reader writes it: types in capitals, words as they are; a name that says its type twice says it once.

    >>> format_label("fp8 fp8-block"), format_label("mxfp4 experts"), format_label("Q4_K_M")
    ('FP8-block', 'MXFP4 experts', 'Q4_K_M')
    """
    words = name.split()
    if len(words) == 2 and words[1].startswith(f"{words[0]}-"):
        words = words[1:]
    return " ".join("-".join(part.upper() if any(c.isdigit() for c in part) else part for part in word.split("-")) for word in words)


def headline(report: dict) -> dict:
    """The parts of the sentence; `state` says which sentence: ok, misfit, precision or nodecode."""
    decode, serving, mem = report["decode"], report["serving"], report["memory"]
    parts = {
        "model": model_label(report), "hardware": report["hardware"]["name"], "devices": str(report["layout"]["devices"]),
        "weights": format_label(report["formats"]["weights"]),
        "need": bytes_(mem["total_bytes"]), "have": bytes_(mem["available_bytes"]),
        "min_devices": whole(chips_that_hold(mem, report["layout"]["tp"] * report["layout"]["pp"]) if mem["fits"] is False else mem["min_devices"]), "state": "ok", "bound": None,
    }
    if mem["fits"] is False:
        parts["state"] = "misfit"
    elif not decode or decode["limit_s"] is None:
        parts["state"] = "precision"
    else:
        spent = decode["limit_parts_s"]
        moved = decode["bytes"]["weights"] + decode["bytes"]["kv_read"] + decode["bytes"]["kv_write"]
        parts |= {
            "bound": told(decode), "user": format_number(serving["tokens_per_s_per_user"]), "total": format_number(serving["tokens_per_s"]),
            "utilisation": percent(decode["compute_utilisation"]), "step": seconds(decode["limit_s"]), "bytes": bytes_(moved),
            "flops": format_quantity(decode["flops"], "FLOP"), "ttft": seconds(serving["ttft_s"]),
            "single": report["scenario"].get("batch", 1) * report["layout"]["dp"] == 1,
            "balance": times(max(spent["memory"], spent["network"], spent["host"]) / spent["compute"]) if spent["compute"] else "–",
        }
    return parts


def figures(report: dict) -> list:
    """The strip of key figures: [{key, value, expected, role}]; `expected` is "about x (low to high)" where measurements allow."""
    serving, mem, prefill, decode, money = report["serving"], report["memory"], report["prefill"], report["decode"], report["cost"] or {}
    times = lambda key, phase: _figure(key, serving[key + "_s"], serving[f"expected_{key}_s"], phase, seconds)
    rates = lambda key, field: _figure(key, serving[field], serving["expected_" + field], decode, _rate, inverse=True)
    rows = [times("ttft", prefill), times("tpot", decode), rates("user", "tokens_per_s_per_user"), rates("total", "tokens_per_s")]
    # What a prompt waits that does not come with the whole batch, as in continuous batching.
    which = "expected" if serving["expected_ttft_alone_s"] else "limit"
    alone = serving["expected_ttft_alone_s"] or serving["ttft_alone_s"]
    if alone and alone < 0.99 * (serving["expected_ttft_s"] if which == "expected" else serving["ttft_s"]):
        rows[0]["alone"] = {"basis": which, "value": seconds(alone)}
    share = None if mem["available_bytes"] in (None, 0) else mem["total_bytes"] / mem["available_bytes"]
    rows.append({"key": "memory", "value": bytes_(mem["total_bytes"]), "of": None if mem["available_bytes"] is None else bytes_(mem["available_bytes"]),
                 "share": share, "role": "misfit" if mem["fits"] is False else "plain"})
    usd = "usd_per_million_output_tokens"
    rows.append(_figure("cost", money.get(usd), money.get("expected_" + usd), decode, _dollars) | {"role": "plain"})
    return rows


def _dollars(value) -> str:
    return "–" if value is None else f"${format_number(value)}"


def _rate(value) -> str:
    return "–" if value is None else format_number(value)


def _figure(key, value, expected, phase, write, inverse=False) -> dict:
    """One figure at its limit and as expected. The band is its phase's, since drafts, pools and prices stretch with the step; inverse: a rate, which falls as the step grows."""
    row = {"key": key, "value": write(value), "role": told(phase) if phase else "plain"}
    if phase and phase.get("limit_s") is None:
        row["role"] = "misfit"
    if expected and phase and phase.get("expected_s"):
        ends = [phase[f"expected_{end}_s"] / phase["expected_s"] for end in ("low", "high")]
        low, high = sorted(expected / x if inverse else expected * x for x in ends)
        row["expected"] = {"value": write(expected), "low": write(low), "high": write(high)}
    return row


def points(report: dict) -> list:
    """The table behind the chart: one row a phase."""
    rows = []
    for name in ("prefill", "decode"):
        phase = report[name]
        if not phase:
            continue
        chips = report["layout"]["tp"]
        rows.append({
            "phase": name, "bound": told(phase) if phase["limit_s"] is not None else "misfit", "limit": seconds(phase["limit_s"]),
            "expected": seconds(phase["expected_s"]), "flops": format_quantity(phase["flops"], "FLOP"), "bytes": bytes_(phase["bytes"]["total"]),
            "reached": format_quantity(phase["attainable_flops_per_s"] if phase["limit_s"] else None, "FLOP/s"),
            "compute": percent(phase["compute_utilisation"]), "bandwidth": percent(phase["bandwidth_utilisation"]),
            "intensity": f"{format_number(phase['intensity_flops_per_byte'])} FLOP/B", "chips": str(chips),
        })
    return rows


def operators(report: dict, name: str) -> list:
    """Rows of the operator table, slowest first; `sort` holds the plain numbers the columns sort by, `order` where it stands in the pass."""
    phase = report[name]
    if not phase:
        return []
    rows = []
    for order, op in enumerate(phase["operators"]):
        took = op.get("expected_s") or op["limit_s"]
        rows.append({
            "name": op["name"], "group": op["group"], "count": str(op["count"]), "flops": format_quantity(op["flops"], "FLOP"),
            "bytes": bytes_(op["bytes"] or op.get("link_bytes") or 0), "bound": told_of_operator(op), "time": seconds(took),
            "intensity": "–" if op["intensity_flops_per_byte"] is None else format_number(op["intensity_flops_per_byte"]),
            "share": percent(op["share"]), "width": round(op["share"] or 0, 4), "order": order,
            "sort": [op["name"], op["count"], op["flops"], op["bytes"], op["intensity_flops_per_byte"] or 0, op["bound"] or "", op["share"] or 0],
        })
    return sorted(rows, key=lambda r: -r["sort"][-1])


def time_groups(report: dict, name: str) -> dict | None:
    """Where the time of a phase goes, by operator group, largest first; what an expected pass takes besides its operators is a row of its own."""
    phase = report[name]
    if not phase:
        return None
    total = phase["expected_s"] or phase["limit_s"]
    totals = {}
    # Of one stage the operators' times and the overhead add up to the pass; limits overlap and stages take turns, so there each has its share of the whole.
    busy = sum(op["expected_s"] for op in phase["operators"]) if phase["expected_s"] and report["layout"]["pp"] == 1 else 0.0
    ours = min(1.0, busy / total) if busy else 1.0
    for op in phase["operators"]:
        row = totals.setdefault(op["group"], {"share": 0.0, "time": 0.0, "bounds": {}})
        row["share"] += (op["share"] or 0.0) * ours
        bound = told_of_operator(op)
        row["bounds"][bound] = row["bounds"].get(bound, 0.0) + (op["share"] or 0.0)
    if ours < 0.9995:
        totals["overhead"] = {"share": 1.0 - ours, "bounds": {"": 1.0}}
    rows = [{"group": g, "share": percent(v["share"]), "width": round(v["share"], 5), "bound": max(v["bounds"], key=v["bounds"].get),
             "time": seconds(total * v["share"]) if total else "–"} for g, v in totals.items() if v["share"] > 0]
    rows.sort(key=lambda r: -r["width"])
    parts = phase.get("limit_parts_s")
    return {
        "total": seconds(total), "basis": "expected" if phase["expected_s"] else "limit", "groups": rows, "bound": told(phase),
        "parts": [] if not parts else [{"key": k, "time": seconds(v), "width": round(v / phase["limit_s"], 5)} for k, v in parts.items() if v],
    }


def memory(report: dict) -> dict:
    """The memory bar of the whole deployment's replica: parts, capacity, and what else would fit."""
    mem = report["memory"]
    longest = max(mem["total_bytes"], mem["available_bytes"] or 0) or 1
    # What lies on the chips of a replica: its share of experts that replicas share, without what is offloaded, with what drafts.
    chips = report["layout"]["tp"] * report["layout"]["pp"]
    parts = [("weights", mem["weights_bytes_per_device"] * chips), ("kv", mem["kv_bytes_stored"]), ("activations", mem["activation_bytes"]), ("overhead", mem["overhead_bytes"])]
    free = None if mem["available_bytes"] is None else mem["available_bytes"] - mem["total_bytes"]
    return {
        "fits": mem["fits"], "total": bytes_(mem["total_bytes"]), "available": bytes_(mem["available_bytes"]),
        "free": None if free is None else bytes_(abs(free)), "capacity": None if mem["available_bytes"] is None else round(mem["available_bytes"] / longest, 5),
        "parts": [{"key": k, "text": bytes_(v), "width": round(v / longest, 5), "share": percent(v / mem["total_bytes"])} for k, v in parts if v],
        "max_batch": whole(mem["max_batch"]),
        "max_context": whole(mem["max_context"]),
        "min_devices": whole(mem["min_devices"]),
        "kv_per_token": bytes_(report["model"]["kv_bytes_per_token_stored"]) if report["model"].get("kv_bytes_per_token_stored") else bytes_(report["model"]["kv_bytes_per_token"]),
    }


def facts(report: dict) -> dict:
    """What is known of the model and the chip, with the source of each chip figure."""
    m, h, p = report["model"], report["hardware"], report["model"]["parameters"]
    return {
        "model": {
            "id": m["id"], "name": model_label(report), "family": m["architecture"], "total": count(p["total"]), "active": count(p["active"]),
            "moe": p["active"] < 0.95 * p["total"], "layers": str(m.get("layers", "–")), "weights": bytes_(m["weights_bytes"]),
            "kv": bytes_(m["kv_written_bytes_per_token"]), "state": bytes_(m["state_bytes_per_sequence"]) if m["state_bytes_per_sequence"] else "",
            "kv_bound": None if not m["kv_bound"] else {"bound": str(m["kv_bound"]["layers"]), "window": whole(m["kv_bound"]["window"]), "beyond": bytes_(m["kv_beyond_bytes_per_token"])}, "bits": format_number(report["formats"]["bits_per_weight"]), "assumed": m.get("assumed", []),
            "notes": m.get("notes", []), "source": m.get("source", ""), "max_context": whole(m.get("max_context")),
        },
        "hardware": {
            "id": h["id"], "name": h["name"], "bandwidth": format_quantity(h["bandwidth_bytes_per_s"], "B/s"), "memory": bytes_(h["memory_bytes"]),
            "peaks": [{"format": k, "value": format_quantity(v, "FLOP/s" if not k.startswith("int") else "OP/s")} for k, v in h["peak_flops_per_s"].items()],
            "ridge": f"{format_number(h['ridge_flops_per_byte'])} FLOP/B", "link": h.get("link") or "–",
            "link_rate": format_quantity(h.get("link_bytes_per_s"), "B/s"), "grade": h.get("grade", ""), "source": h.get("source", ""),
            "url": h.get("url", ""), "retrieved": str(h.get("retrieved", "")), "note": h.get("note", ""), "unverified": h.get("unverified", []),
        },
        "formats": {**{k: format_label(report["formats"][k]) for k in ("weights", "activations", "kv", "compute", "compute_roof")},
                    "peak": format_quantity(report["formats"]["compute_peak_flops_per_s"], "FLOP/s")},
        "layout": report["layout"], "chips": report["layout"]["devices"],
    }


FIGURES = (("ttft_s", seconds), ("tpot_s", seconds), ("tokens_per_s_per_user", _rate), ("tokens_per_s", _rate), ("tokens_per_s_per_device", _rate), ("requests_per_s", _rate),
           ("usd_per_million_output_tokens", lambda v: "–" if v is None else f"${format_number(v)}"), ("joules_per_output_token", lambda v: format_quantity(v, "J")),
           ("weights_bytes", bytes_), ("kv_bytes", bytes_), ("total_bytes", bytes_), ("max_batch", whole),
           ("max_context", whole))


def gain(value) -> str:
    """How many times better, as a change.

    >>> gain(1.384), gain(0.5), gain(12.34), gain(None)
    ('+38\u2009%', '−50\u2009%', '+1,134\u2009%', '–')
    """
    if value is None:
        return "–"
    if abs(value - 1) < 0.005:
        return "±0"
    return f"{'+' if value > 1 else '−'}{abs(round(100 * (value - 1))):,}{THIN}%"


def levers(result: dict) -> dict:
    """Levers as rows of text: what each gives to every goal, what it costs besides."""
    rows = [{"id": row["id"], "title": row["title"], "price": row["price"], "fits": row["fits"] is not False, "bound": row["bound"] if row["fits"] is not False else "misfit",
             "change": {k: "" if v is None else str(v).lower() if isinstance(v, bool) else f"{v:.12g}" if isinstance(v, float) else str(v) for k, v in row["change"].items()},
             "gain": {k: gain(v) for k, v in row["gain"].items()}, "good": {k: 0 if v is None or abs(v - 1) < 0.005 else 1 if v > 1 else -1 for k, v in row["gain"].items()},
             "value": row["gain"][result["goal"]]} for row in result["levers"]]
    flips = result["flips"]
    turns = {}
    for op in flips["operators"]:
        turns.setdefault(op["group"], op["batch"])
    number = lambda v: None if v is None else format_number(v)
    return {"goal": result["goal"], "rows": rows, "flips": {
        "groups": [{"group": g, "batch": format_number(b)} for g, b in turns.items()], "kv_context": number(flips.get("kv_passes_weights_context")),
        "speculation": number(flips.get("speculation_stops_paying_batch"))}}


def layouts(result: dict) -> dict:
    """Layouts as rows of text."""
    return {"goal": result["goal"], "devices": str(result["devices"]), "flight": whole(result["requests_in_flight"]), "refused": result["refused"], "unfit": result["unfit"],
            "rows": [{**{k: str(row[k]) for k in ("tp", "pp", "ep", "dp", "batch")}, "bound": row["bound"], "ttft": seconds(row["figures"]["ttft_s"]),
                      "tpot": seconds(row["figures"]["tpot_s"]), "total": _rate(row["figures"]["tokens_per_s"]), "user": _rate(1 / row["figures"]["tpot_s"] if row["figures"]["tpot_s"] else None)}
                     for row in result["layouts"]]}


def compare(result: dict) -> dict:
    """Two scenarios side by side: one row a figure, with the ratio of the second to the first."""
    a, b = result["a"]["figures"], result["b"]["figures"]
    rows = [{"key": key, "a": write(a[key]), "b": write(b[key]), "ratio": times(result["ratio"].get(key))} for key, write in FIGURES if key in a]
    phases = [{"phase": name, "a": seconds(p["a_limit_s"]), "b": seconds(p["b_limit_s"]), "a_bound": p["a_bound"], "b_bound": p["b_bound"],
               "groups": [{"group": g["group"], "a": seconds(g["a_s"] or None), "b": seconds(g["b_s"] or None)} for g in p["groups"] if g["a_s"] or g["b_s"]]}
              for name, p in (("prefill", result["prefill"]), ("decode", result["decode"]))]
    return {"rows": rows, "phases": phases}
