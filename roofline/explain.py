"""The working of a figure: which formula, with this scenario's values, and where each constant comes from.

Every step is {"key", "values"}: the page's words for the key are a sentence with the formula, the values are already written out.
`explain_times` takes the phases apart.
"""

from __future__ import annotations

import re

from . import catalogue, formats, memory
from .errors import InputError
from .explain_times import Working, b_, f_, reached, s_, step
from .hardware import load
from .scenario import Resolved
from .service import pool_wire, prefill_side
from .units import format_number, format_quantity
from .view import count, format_label, told, whole

TIMES = ("ttft", "tpot", "user", "total")
KEYS = (*TIMES, "memory", "cost", "utilisation", "bytes", "flops", "ridge", "weights", "kv_token", "max_batch", "max_context",
        "intensity.prefill", "intensity.decode", "rate.prefill", "rate.decode")
GIVEN = "given"  # the source of a figure that the question itself gives


def explain(report: dict, key: str, r: Resolved) -> dict:
    """{"steps": [...], "constants": [...]} for one of KEYS (or "op.decode.3", an operator of a phase) of a Report's dict; r: the scenario it answers, resolved.

    >>> from roofline.scenario import Scenario, resolve
    >>> from roofline.report import evaluate
    >>> r = resolve(Scenario(engine="none"))
    >>> [s["key"] for s in explain(evaluate(r).to_dict(), "user", r)["steps"]][-1]
    'user'
    """
    if key.startswith("op."):
        steps = _operator(report, key, r)
    elif key in _COUNTS:
        steps = _COUNTS[key](report, r)
    elif "." in key:
        steps = _place(report, r, *key.split("."))
    elif report["serving"]["tpot_s"] is None:
        steps = [step("untimed")]
    elif key == "ttft":
        steps = _first_token(report, r)
    else:
        steps = _token(report, r, key)
    return {"key": key, "steps": steps, "constants": _constants(report, key, r)}


def known(key) -> bool:
    """Whether a key names a figure that has a working.

    >>> known("tpot"), known("op.prefill.0"), known("op.prefill.x"), known(None)
    (True, True, False, False)
    """
    return key in KEYS or bool(re.fullmatch(r"op\.(prefill|decode)\.\d{1,4}", str(key)))


def _operator(report: dict, key: str, r: Resolved) -> list:
    """One operator, told by its place in the pass."""
    _, name, index = key.split(".")
    w = Working(r, name)
    if int(index) >= len(w.ops):
        raise InputError("operator", index, f"must be below {len(w.ops)}, the operators of this pass")
    return w.operator(int(index), report[name]["limit_s"] is not None)


def _p(value) -> str:
    return f"{format_number(100 * value)}\u2009%"


# ---- times ------------------------------------------------------------------------------------------------------------


def _first_token(report: dict, r: Resolved) -> list:
    """TTFT: the prefill of the batch, or of one prompt on chips of its own with the way of its cache."""
    serving, s = report["serving"], r.scenario
    pools = serving["disaggregated"]
    if pools:
        r = prefill_side(r)
    w = Working(r, "prefill")
    steps = [step("head.work"), step("work.prefill", prompts=whole(w.p.sequences), new=whole(w.p.new_tokens), tokens=whole(w.p.tokens)), *w.work(), step("head.limit"), *w.limit()]
    likely, took, _ = w.expected()
    if likely:
        likely.insert(0, step("head.expected"))
    if not pools:
        if s.batch > 1:
            alone = serving["expected_ttft_alone_s"]
            likely.append(step("alone" if alone else "alone.limit", limit=s_(serving["ttft_alone_s"]), tokens=whole(w.p.new_tokens), **({"expected": s_(alone)} if alone else {})))
        return steps + likely
    decode = load(s.hardware) if s.hardware != "custom" else None
    wire = pool_wire(r.chip, decode, s.network) if decode else float("inf")
    lanes = min(r.layout.tp, report["layout"]["tp"])
    moved = {"prefill": s_(pools["prefill_s"]), "bytes": b_(pools["kv_transfer_bytes"]), "lanes": str(lanes), "wire": format_quantity(wire, "B/s") if wire < float("inf") else "–",
             "transfer": s_(pools["transfer_s"]), "result": s_(serving["ttft_s"])}
    steps = [step("pools.on", devices=str(r.layout.devices), hardware=r.chip.name), *steps, step("pools", **moved), *likely]
    if took:
        steps.append(step("pools.expected", prefill=s_(took), transfer=moved["transfer"], result=s_(serving["expected_ttft_s"])))
    return steps


def _token(report: dict, r: Resolved, key: str) -> list:
    """TPOT and the rates that follow from it, at the limit and then as expected."""
    serving, s, w = report["serving"], r.scenario, Working(r, "decode")
    steps = [step("head.work"), *_fed(report, r), *w.work(), step("head.limit"), *w.limit()]
    spec = serving["speculation"]
    if spec:
        shared = {"tokens": format_number(spec["tokens_per_step"])}
        drafting = lambda total: {"each": s_(total / s.draft), "drafts": str(s.draft), "draft": s_(total)}
        steps += [step("accepted", acceptance=format_number(s.acceptance), fed=str(s.draft + 1), result=shared["tokens"]),
                  step("speculation", verify=s_(spec["verify_s"]), **drafting(spec["draft_s"]), **shared, result=s_(serving["tpot_s"]))]
    rate = lambda prefix="": _rates(report, key, prefix)
    steps += rate()
    likely, took, _ = w.expected()
    if took is None or serving["expected_tpot_s"] is None:
        return steps
    steps += [step("head.expected"), *likely]
    if spec:
        steps.append(step("expected.speculation", verify=s_(spec["expected_verify_s"]), **drafting(spec["expected_draft_s"]), **shared, result=s_(serving["expected_tpot_s"])))
    return steps + rate("expected_")


def _rates(report: dict, key: str, prefix: str) -> list:
    serving, word = report["serving"], "expected." if prefix else ""
    tpot, steps = s_(serving[prefix + "tpot_s"]), []
    if key in ("user", "total"):
        steps.append(step(word + "user", tpot=tpot, result=format_number(serving[prefix + "tokens_per_s_per_user"])))
    if key == "total":
        steps.append(step("expected.rate" if prefix else "total", replicas=str(report["layout"]["dp"]), batch=whole(report["scenario"].get("batch", 1)), tpot=tpot, result=format_number(serving[prefix + "tokens_per_s"])))
    return steps


def _fed(report: dict, r: Resolved) -> list:
    """What one decode step is fed."""
    s, decode = r.scenario, report["decode"]
    values = {"batch": whole(s.batch), "tokens": whole(decode["tokens"]), "context": whole(decode["context"])}
    return [step("work.verify", drafts=str(s.draft), **values) if s.draft else step("work.decode", **values)]


# ---- memory -----------------------------------------------------------------------------------------------------------


def _memory(report: dict, r: Resolved) -> list:
    mem, s, layout = report["memory"], r.scenario, r.layout
    chips = layout.tp * layout.pp
    held = mem["weights_bytes_per_device"] * chips
    steps = [*_weight_bytes(report)]
    if abs(held / mem["weights_bytes"] - 1) > 0.005:
        steps.append(step("memory.held", result=b_(held)))
    tokens, numbers, sampled = memory.working_set(r.arch, s.batch / layout.pp, s.prompt, layout.tp)
    steps += [
        step("memory.kv", sequence=b_(mem["kv_bytes_stored"] / s.batch), batch=whole(s.batch), result=b_(mem["kv_bytes_stored"])),
        step("memory.activations", tokens=whole(tokens), numbers=whole(numbers), sampled=whole(sampled) if sampled == int(sampled) else format_number(sampled), vocab=whole(r.arch.vocab), stages=str(layout.pp), result=b_(mem["activation_bytes"])),
        *([step("memory.overhead", chips=str(chips), result=b_(mem["overhead_bytes"]))] if mem["overhead_bytes"] else []),
        step("memory.total", result=b_(mem["total_bytes"])),
    ]
    if mem["available_bytes"] is not None:
        each = r.chip.memory_bytes * s.utilisation - s.overhead
        once = memory.held_once(r.arch, r.weights, mem, batch=s.batch, prompt=s.prompt, offload=s.offload, offload_kv=s.offload_kv)
        steps += [_available(report, r), step("memory.min", need=b_(once), each=b_(each), result=whole(mem["min_devices"]))]
    return steps


def _available(report: dict, r: Resolved) -> dict:
    return step("memory.available", chips=str(r.layout.tp * r.layout.pp), memory=b_(r.chip.memory_bytes), share=_p(r.scenario.utilisation), result=b_(report["memory"]["available_bytes"]))


def _weight_bytes(report: dict) -> list:
    return [step("memory.weights", parameters=count(report["model"]["parameters"]["total"]), bits=format_number(report["formats"]["bits_per_weight"], 4), result=b_(report["memory"]["weights_bytes"]))]


def _weights(report: dict, _r) -> list:
    """The weights: how many of each kind, then their bytes."""
    counts = report["model"]["parameters"]
    groups = {"embedding": "embedding", "attention": "attention_projection", "mlp": "mlp", "experts": "experts", "shared_experts": "shared_experts", "router": "router",
              "norm": "norm", "recurrent": "recurrent", "lm_head": "lm_head", "vision": "vision", "other": "other"}
    return [*(step("weights.group", group=groups[k], parameters=count(counts[k])) for k in groups if counts.get(k)), *_weight_bytes(report)]


def _kv_token(report: dict, r: Resolved) -> list:
    """The KV cache of one token, one step for each kind of layer; where windows end, what a request keeps."""
    steps, written, beyond = [], 0.0, 0.0
    for a in r.arch.attentions:
        numbers, element = a.kv_elements / a.compress + a.index_elements, formats.kv_bytes_per_element(r.kv, a.cached_vector)
        if not numbers:
            continue
        size = numbers * a.count * element
        written += size
        beyond += a.index_elements * a.count * element if a.window else size
        values = {"layers": str(a.count), "kind": a.kind, "numbers": whole(numbers), "bytes": format_number(element), "result": b_(size)}
        steps.append(step("kv.window", window=whole(a.window), **values) if a.window else step("kv.layers", **values))
    if written:
        steps.append(step("kv.total", format=format_label(r.kv.name), result=b_(written)))
    windows = [a.window for a in r.arch.attentions if a.window and a.kv_elements]
    if windows:
        steps.append(step("kv.beyond", window=whole(max(windows)), result=b_(beyond)))
    if report["model"]["state_bytes_per_sequence"]:
        steps.append(step("kv.state", result=b_(report["model"]["state_bytes_per_sequence"])))
    tokens = r.scenario.prompt + r.scenario.output
    return [*steps, step("kv.sequence", tokens=whole(tokens), sequence=b_(report["memory"]["kv_bytes_per_sequence"]), result=b_(report["model"]["kv_bytes_per_token_stored"]))]


def _room(report: dict, r: Resolved, key: str) -> list:
    """What fits in the memory that the weights leave, worked out at the edge itself."""
    mem, s = report["memory"], r.scenario
    if mem["available_bytes"] is None or mem[key] is None:
        return [step("room.unknown")]
    found = mem[key]
    together = s.batch if mem["fits"] else 1
    batch, prompt = (max(1, found), s.prompt) if key == "max_batch" else (together, max(1, found - s.output))
    draft = memory.draft_of(r.arch, r.weights, s.draft, r.drafter)
    stored, sequence, working, other = memory.demand(r.arch, r.weights, r.kv, batch=batch, prompt=prompt, output=s.output, layout=r.layout, overhead=s.overhead, block=s.block,
                                                     offload=s.offload, offload_kv=s.offload_kv, draft=draft)
    room = mem["available_bytes"] - stored - working - other
    steps = [_available(report, r), step("room.left", available=b_(mem["available_bytes"]), weights=b_(stored), working=b_(working + other), result=b_(max(0.0, room)) if room > 0 else "0")]
    if not found:
        return [*steps, step("room.none", sequence=b_(sequence))]
    if key == "max_batch":
        return [*steps, step("room.max_batch", room=b_(room), sequence=b_(sequence), result=whole(found))]
    if r.arch.max_context and found >= r.arch.max_context:
        return [*steps, step("room.made", sequence=b_(sequence), batch=whole(together), result=whole(found))]
    return [*steps, step("room.max_context", room=b_(room), batch=whole(together), sequence=b_(room / together), result=whole(found))]


# ---- counts, the place on the chart, money ---------------------------------------------------------------------------------


def _ridge(report: dict, _r) -> list:
    f, h = report["formats"], report["hardware"]
    return [step("ridge", format=format_label(f["compute_roof"]), peak=format_quantity(f["compute_peak_flops_per_s"], "FLOP/s"), bandwidth=format_quantity(h["bandwidth_bytes_per_s"], "B/s"),
                 result=format_number(h["ridge_flops_per_byte"]))]


def _bytes(report: dict, _r) -> list:
    """What a decode step reads and writes."""
    moved = report["decode"]["bytes"]
    return [step("bytes", weights=b_(moved["weights"]), read=b_(moved["kv_read"]), written=b_(moved["kv_write"]), context=whole(report["decode"]["context"]),
                 result=b_(moved["weights"] + moved["kv_read"] + moved["kv_write"]))]


def _flops(report: dict, r: Resolved) -> list:
    """The work of a decode step: what every token does with the weights, and what attention does with the context."""
    return [*_fed(report, r), *Working(r, "decode").work()]


def _utilisation(report: dict, r: Resolved) -> list:
    decode, w = report["decode"], Working(r, "decode")
    if decode["limit_s"] is None:
        return [step("untimed")]
    return [*([step("rounds", rounds=str(w.rounds))] if w.rounds > 1 else []), *w.compute(),
            step("utilisation", compute=s_(decode["limit_parts_s"]["compute"]), time=s_(decode["limit_s"]), result=_p(decode["compute_utilisation"]))]


def _place(report: dict, r: Resolved, what: str, name: str) -> list:
    """Where a phase stands on the chart: its intensity and its rate, per chip."""
    phase, bandwidth = report[name], report["hardware"]["bandwidth_bytes_per_s"]
    if phase["limit_s"] is None:
        return [step("untimed")]
    work, spent = phase["attainable_flops_per_s"] * phase["limit_s"], phase["limit_parts_s"]
    values = {"flops": f_(work), "chips": str(Working(r, name).chips)}
    if what == "rate":
        return [step("rate", **values, time=s_(phase["limit_s"]), result=format_quantity(phase["attainable_flops_per_s"], "FLOP/s"))]
    moved = spent["memory"] * bandwidth
    x = work / moved if moved else None
    return [step("intensity", **values, bytes=b_(moved), result=format_number(x) if x and x < 1e5 else format_quantity(x)),
            step("intensity.ridge", ridge=format_number(report["hardware"]["ridge_flops_per_byte"]), bound=told(phase))]


def _chip_hour(report: dict):
    """What the bill takes for an hour of one chip [USD/h], power and purchase included; None if nobody says."""
    total = report["cost"]["usd_per_hour"]
    return None if total is None else total / report["layout"]["devices"]


def _cost(report: dict, _r) -> list:
    price, serving, money = _chip_hour(report), report["serving"], report["cost"]
    if price is None:
        return [step("cost.unknown")]
    if serving["tokens_per_s"] is None or money["usd_per_million_output_tokens"] is None:
        return [step("untimed")]
    each = {"price": format_number(price), "chips": str(report["layout"]["devices"])}
    steps = [step("cost", **each, rate=format_number(serving["tokens_per_s"]), result=f"${format_number(money['usd_per_million_output_tokens'])}")]
    if money.get("expected_usd_per_million_output_tokens") is not None:
        steps.append(step("expected.cost", **each, rate=format_number(serving["expected_tokens_per_s"]), result=f"${format_number(money['expected_usd_per_million_output_tokens'])}"))
    return steps


_COUNTS = {"ridge": _ridge, "bytes": _bytes, "flops": _flops, "utilisation": _utilisation, "weights": _weights, "kv_token": _kv_token, "memory": _memory, "cost": _cost,
           "max_batch": lambda report, r: _room(report, r, "max_batch"), "max_context": lambda report, r: _room(report, r, "max_context")}


# ---- constants -----------------------------------------------------------------------------------------------------------


def _constants(report: dict, key: str, r: Resolved) -> list:
    """The figures of the chip, the model and the fit that the steps used, each with source, date and grade."""
    s, h, timed = r.scenario, report["hardware"], report["serving"]["tpot_s"] is not None
    side = prefill_side(r) if key == "ttft" and s.prefill_hardware and timed else r
    rows = []
    if key in TIMES or key in ("ridge", "utilisation") or "." in key:
        w = Working(side, "prefill" if key == "ttft" or "prefill" in key else "decode")
        rows.append(_of_chip(side, "bandwidth", format_quantity(side.chip.bandwidth_bytes_per_s, "B/s"), "bandwidth_gbs", s.bandwidth if side is r else None))
        used = {op.roof for op in w.ops if op.group != "collective" and op.roof != "vector" and op.flops} if key != "ridge" else {side.compute}
        for name in sorted({side.chip.roof_of(x) for x in used}, key=lambda pair: -pair[1]):
            rows.append(_of_chip(side, f"peak {format_label(name[0])}", format_quantity(name[1], "FLOP/s"), name[0], s.peak if side is r and s.peak_format == name[0] else None))
        if key != "ridge" and any(op.link_bytes for op in w.ops):
            if side.chip.link_bytes_per_s:
                rows.append(_of_chip(side, side.chip.link or "link", format_quantity(side.chip.link_bytes_per_s, "B/s"), "link_gbs", s.link if side is r else None))
            if any(op.network_bytes for op in w.ops):
                fabric = side.fabric
                rows.append(_row("network", format_quantity(fabric.network_bytes_per_s, "B/s"), GIVEN if s.network else fabric.network_source, "" if s.network else side.chip.retrieved, "" if s.network else "C"))
        if w.parts["host"]:
            rows.append(_of_chip(side, "host", format_quantity(w.roofs.host, "B/s"), "pcie", s.host))
        if (key in TIMES or key.startswith("op.")) and timed:
            e = report["expectation"] or {}
            rows += [_row(name, value, e.get("basis", ""), "", "fit" if e.get("points") else "") for name, value in reached(side, w)]
    if key in ("memory", "max_batch", "max_context") and h["memory_bytes"] is not None:
        rows.append(_of_chip(r, "memory", b_(h["memory_bytes"]), "memory_gb", s.memory))
    if key == "cost" and _chip_hour(report) is not None:
        source = report["cost"]["source"]
        listed = source == h["price_source"]  # else the user gave it
        rows.append(_row("price", f"${format_number(_chip_hour(report))}/h", source, r.chip.retrieved if listed else "", "C" if listed else ""))
    known, day = catalogue.grade(r.arch.id)
    rows.append(_row(report["model"]["name"], count(report["model"]["parameters"]["total"]), report["model"]["source"] or GIVEN, day, known))
    return rows


def _row(name: str, value: str, source: str, date: str = "", grade: str = "", url: str = "", unsure: bool = False) -> dict:
    return {"name": name, "value": value, "source": source, "url": url, "date": date, "grade": grade, "unsure": unsure}


def _of_chip(r: Resolved, name: str, value: str, field: str, given) -> dict:
    """A figure of the chip, or of the question where it is typed over the chip's."""
    if given is not None:
        return _row(name, value, GIVEN)
    c = r.chip
    return _row(name, value, c.source, str(c.retrieved or ""), c.grade, c.url, field in c.unverified)
