"""The working of a figure: which formula, with this scenario's values, and where each constant comes from.

Every step is {"key", "values"}: the page's words for the key are a sentence with the formula, the values are already written out;
"opens" names the working that a value has of its own. `explain_times` takes the phases apart, `explain_service` what users get of
them, `explain_money` prices and energy; `explain_constants` says where the constants are from.
"""

from __future__ import annotations

import re
from dataclasses import fields

from . import explain_money as money
from . import explain_service as service
from . import formats, memory, roof
from .errors import InputError
from .explain_constants import constants
from .explain_times import Asked, Working, b_, f_, s_, step
from .hardware import load
from .scenario import Resolved
from .service import pool_wire, prefill_side
from .units import format_number, format_quantity
from .view import count, format_label, gain, percent, told, whole
from .view import times as times_

TIMES = ("ttft", "tpot", "user", "total")
KEYS = (*TIMES, "ttft_alone", "memory", "memory_share", "chip_memory", "cost", "utilisation", "bytes", "flops", "ridge", "weights", "kv_token", "max_batch", "max_context",
        "intensity.prefill", "intensity.decode", "rate.prefill", "rate.decode", "phase.prefill", "phase.decode",
        "per_chip", "requests", "sustained", "sustained_per_chip", "served", *(f"arrivals.{k}" for k in service.ARRIVALS), *(f"mixed.{k}" for k in service.MIXED), *(f"pool.{k}" for k in service.POOLS),
        "plain", "draft", "accepted", "speedup", "price.input", "price.cached", "all_in", "bill", "hour", "all_hour", "bought.flops", "bought.bytes", "even.rate", "even.share",
        "energy.output", "energy.input", "energy.all_in", "energy.watts", "energy.dram", "energy.compute", "energy.rest", "per_joule.flops", "per_joule.bytes")
_OF_A_PART = re.compile(r"op\.(prefill|decode)\.\d{1,4}|group\.(prefill|decode)\.[a-z_]{1,40}|energy\.(dram|compute)\.[a-z_]{1,40}")
BASES = ("", "limit", "expected")


def explain(report: dict, key: str, r: Resolved, basis: str = "", than: tuple | None = None, how: str = "") -> dict:
    """{"steps": [...], "constants": [...]} for one of KEYS (or "op.decode.3", an operator of a phase) of a Report's dict; r: the scenario it answers, resolved.

    basis: "limit" or "expected" (the limit where nothing is expected) ends the working with that one; "" has both where there are
    both. than: (Report's dict, its scenario resolved) of another question; its figure then stands beside this one as `how` says: "gain",
    as levers are judged, or "ratio".

    >>> from roofline.scenario import Scenario, resolve
    >>> from roofline.report import evaluate
    >>> r = resolve(Scenario(engine="none"))
    >>> [s["key"] for s in explain(evaluate(r).to_dict(), "user", r)["steps"]][-1]
    'user'
    """
    if how == "gain" and key == "ttft" and bool(than[0]["serving"]["disaggregated"]) != bool(report["serving"]["disaggregated"]):
        key = "ttft_alone"  # a pool reads one prompt at a time, so the other side is held to one prompt too
    a = Asked(report, r, basis)
    steps = _steps(a, key)
    if how:
        steps += _beside(a, Asked(*than, basis), key, how)
    return {"key": key, "steps": steps, "constants": constants(a, key)}


def known(key) -> bool:
    """Whether a key names a figure that has a working.

    >>> known("tpot"), known("op.prefill.0"), known("op.prefill.x"), known(None)
    (True, True, False, False)
    """
    return key in KEYS or bool(_OF_A_PART.fullmatch(str(key)))


def _steps(a: Asked, key: str) -> list:
    report, r = a.report, a.r
    what, _, which = key.partition(".")
    if what == "op":
        return _operator(report, key, r)
    if key in _COUNTS:
        steps = _COUNTS[key](report, r)
        # Beside another question's the total is meant; what fits, and on how many chips, is told of the form's own.
        return [s for s in steps if s["key"] not in ("memory.available", "memory.min")] if key == "memory" and a.basis else steps
    if key in _PRICES:
        return _PRICES[key](a)
    if what == "energy" and which.partition(".")[0] in ("dram", "compute"):
        return money.part(a, *which.split("."))
    if what in ("intensity", "rate"):
        return _place(report, r, what, which)
    if not a.timed:
        return [step("untimed")]
    if what in _SERVICE:
        return _SERVICE[what](a, which) if which else _SERVICE[what](a)
    if what == "phase":
        return _phase(r, which)
    if what == "group":
        return _group(r, *which.split("."))
    if key == "ttft" or (key == "ttft_alone" and report["serving"]["disaggregated"]):
        return _first_token(a)
    return _alone(a) if key == "ttft_alone" else _token(a, key)


_PRICES = {"cost": money.output_price, "price.input": money.input_price, "price.cached": money.cached_price, "all_in": money.all_in, "bill": money.bill, "hour": money.hour, "all_hour": money.all_hour,
           "bought.flops": lambda a: money.bought(a, "flops"), "bought.bytes": lambda a: money.bought(a, "bytes"), "even.rate": lambda a: money.even(a, "rate"), "even.share": lambda a: money.even(a, "share"),
           "energy.output": money.output_energy, "energy.input": money.input_energy, "energy.all_in": money.all_energy, "energy.watts": money.watts, "energy.rest": money.rest,
           "per_joule.flops": lambda a: money.per_joule(a, "flops"), "per_joule.bytes": lambda a: money.per_joule(a, "bytes")}
_SERVICE = {"per_chip": service.per_chip, "requests": service.requests, "sustained": service.sustained, "sustained_per_chip": service.sustained_per_chip, "served": service.served, "arrivals": service.arrivals,
            "mixed": service.mixed, "pool": service.pool, "plain": service.plain, "draft": service.draft, "accepted": service.accepted, "speedup": service.speedup}


# ---- two questions ---------------------------------------------------------------------------------------------

# What two questions are held against each other by: the figure, how it is written, whether more of it is better.
_FIGURES = {
    "ttft": (lambda a: a.serving("ttft_s"), s_, False), "ttft_alone": (lambda a: a.serving("ttft_alone_s"), s_, False), "tpot": (lambda a: a.serving("tpot_s"), s_, False),
    "total": (lambda a: a.serving("tokens_per_s"), format_number, True), "per_chip": (lambda a: a.serving("tokens_per_s_per_device"), format_number, True),
    "sustained": (service.sustained_rate, format_number, True), "sustained_per_chip": (lambda a: service.sustained_rate(a) / service.sustained_chips(a), format_number, True),
    "served": (service.served_rate, format_number, True), "cost": (lambda a: a.of(a.report["cost"], "usd_per_million_output_tokens"), money.dollars, False),
    "all_in": (lambda a: a.of(a.report["cost"], "usd_per_million_output_tokens_all_in"), money.dollars, False), "bill": (money.bill_of, money.dollars, False),
    "energy.all_in": (money.joules_all_in, lambda v: format_quantity(v, "J"), False), "memory": (lambda a: a.report["memory"]["total_bytes"], b_, False),
    "chip_memory": (lambda a: _chip_memory(a.report), b_, False), "max_batch": (lambda a: a.report["memory"]["max_batch"], whole, True),
}
_ALWAYS = ("memory", "chip_memory", "max_batch")


def differs(r: Resolved, than: Resolved) -> list:
    """What one question changes of another, field by field: [{"field", "value"}], values written out, what "auto" became included; "" is none.

    >>> from roofline.scenario import Scenario, resolve
    >>> differs(resolve(Scenario(batch=64, devices=2)), resolve(Scenario()))
    [{'field': 'devices', 'value': '2'}, {'field': 'tp', 'value': '2'}, {'field': 'batch', 'value': '64'}]
    """
    settled = lambda x: {f.name: getattr(x.scenario, f.name) for f in fields(x.scenario)} | {"weights": getattr(x.weights, "name", str(x.weights)), "activations": x.activations.name, "kv": x.kv.name, **{k: getattr(x.layout, k) for k in ("devices", "tp", "pp", "ep", "dp")}}
    new, old = settled(r), settled(than)
    found = []
    for name, value in new.items():
        if value == old[name] or name in ("read_as", "peak_format"):
            continue
        if name in ("model", "config") and any(row["field"] == "model" for row in found):
            continue
        found.append({"field": "model", "value": r.arch.name or r.arch.id} if name in ("model", "config") else {"field": name, "value": _written(name, value, r)})
    return found


def _written(name: str, value, r: Resolved) -> str:
    """A field's value as a reader writes it."""
    if name in ("hardware", "prefill_hardware"):
        return r.chip.name if name == "hardware" else value and load(value).name
    if name == "draft_model":
        return r.drafter.name or r.drafter.id if r.drafter else value
    if name in ("weights", "activations", "kv"):
        return format_label(value)
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return "" if value is None else str(value).lower() if isinstance(value, bool) else value
    unit = {"bandwidth": "B/s", "link": "B/s", "network": "B/s", "host": "B/s", "memory": "B", "overhead": "B", "peak": "FLOP/s"}.get(name)
    return format_quantity(value, unit) if unit else whole(value) if isinstance(value, int) else format_number(value)


def _beside(now: Asked, then: Asked, key: str, how: str) -> list:
    """How this question's figure compares with another's."""
    read, write, more = _FIGURES[key]
    value = lambda a: read(a) if a.timed or key in _ALWAYS else None
    after, before = value(now), value(then)
    if not after or not before:
        return [step("head.beside"), step("beside.none")]
    told = {"before": write(before), "after": write(after)}
    if how == "ratio":
        return [step("head.beside"), step("beside.ratio", {"before": key}, **told, result=times_(after / before))]
    better = after / before if more else before / after
    return [step("head.beside"), step("beside.more" if more else "beside.less", {"before": key}, **told, ratio=format_number(better, 4), result=gain(better))]


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


def _first_token(a: Asked) -> list:
    """TTFT: the prefill of the batch, or of one prompt on chips of its own with the way of its cache."""
    report, r, serving, s = a.report, a.r, a.report["serving"], a.r.scenario
    pools = serving["disaggregated"]
    if pools:
        r = prefill_side(r)
    w = Working(r, "prefill")
    steps = [*_read(w), step("head.limit"), *w.limit()]
    likely, took, _ = w.expected() if a.basis != "limit" else ([], None, None)
    if likely:
        likely.insert(0, step("head.expected"))
    if not pools:
        if s.batch > 1 and not a.basis:
            alone = serving["expected_ttft_alone_s"]
            likely.append(step("alone" if alone else "alone.limit", {"expected" if alone else "limit": "ttft_alone"}, limit=s_(serving["ttft_alone_s"]), tokens=whole(w.p.new_tokens), **({"expected": s_(alone)} if alone else {})))
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


def _read(w: Working) -> list:
    """The work of reading prompts."""
    return [step("head.work"), step("work.prefill", prompts=whole(w.p.sequences), new=whole(w.p.new_tokens), tokens=whole(w.p.tokens)), *w.work()]


def _alone(a: Asked) -> list:
    """TTFT of a prompt that comes by itself."""
    w = Working(a.r, "prefill", sequences=1.0)
    likely = w.expected()[0] if a.likely else []
    return [*_read(w), step("head.limit"), *w.limit(), *([step("head.expected"), *likely] if likely else [])]


def _phase(r: Resolved, name: str) -> list:
    """The least time of a whole phase."""
    w = Working(r, name)
    return [*(_read(w) if name == "prefill" else [step("head.work"), *w.work()]), step("head.limit"), *w.limit()]


def _group(r: Resolved, name: str, group: str) -> list:
    """The least time of the operators of one group, one by one."""
    w = Working(r, name)
    rows = [(i, op, max(roof.op_parts(op, w.roofs, r.layout.tp, w.stages))) for i, op in enumerate(w.ops) if op.group == group]
    if not rows:
        raise InputError("operator", group, f"is not in this pass; it has {', '.join(dict.fromkeys(op.group for op in w.ops))}")
    return [*(step("group.operator", {"result": f"op.{name}.{i}"}, name=op.name, result=s_(took)) for i, op, took in rows if took), step("group.sum", group=group, result=s_(sum(took for _, _, took in rows)))]


def _token(a: Asked, key: str) -> list:
    """TPOT and the rates that follow from it, at the limit and then as expected."""
    report, r = a.report, a.r
    serving, s, w = report["serving"], r.scenario, Working(r, "decode")
    steps = [step("head.work"), *_fed(report, r), *w.work(), step("head.limit"), *w.limit()]
    spec = serving["speculation"]
    if spec:
        shared = {"tokens": format_number(spec["tokens_per_step"])}
        drafting = lambda total: {"each": s_(total / s.draft), "drafts": str(s.draft), "draft": s_(total)}
        steps += [step("accepted", acceptance=format_number(s.acceptance), fed=str(s.draft + 1), result=shared["tokens"]) if s.acceptance < 1 else step("accepted.all", fed=str(s.draft + 1), result=shared["tokens"]),
                  step("speculation", verify=s_(spec["verify_s"]), **drafting(spec["draft_s"]), **shared, result=s_(serving["tpot_s"]))]
    rate = lambda prefix="": _rates(report, key, prefix)
    steps += rate()
    likely, took, _ = w.expected()
    if took is None or serving["expected_tpot_s"] is None or a.basis == "limit":
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


# ---- counts, the place on the chart ---------------------------------------------------------------------------------


def _ridge(report: dict, _r) -> list:
    f, h = report["formats"], report["hardware"]
    return [step("ridge", format=format_label(f["compute_roof"]), peak=format_quantity(f["compute_peak_flops_per_s"], "FLOP/s"), bandwidth=format_quantity(h["bandwidth_bytes_per_s"], "B/s"),
                 result=format_number(h["ridge_flops_per_byte"]))]


def _bytes(report: dict, r: Resolved) -> list:
    """What a decode step reads and writes, each thing once; and before that what a chip moves, where it is no even share of it."""
    moved, near = report["decode"]["bytes"], Working(r, "decode").memory() if report["decode"]["limit_s"] is not None else None
    return [*([near] if near and near["key"] == "time.memory.uneven" else []), step("bytes", weights=b_(moved["weights"]), read=b_(moved["kv_read"]), written=b_(moved["kv_write"]), context=whole(report["decode"]["context"]),
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


def _chip_memory(report: dict) -> float:
    return report["memory"]["total_bytes"] / (report["layout"]["tp"] * report["layout"]["pp"])


def _each_memory(report: dict, _r) -> list:
    """Memory in use on each chip."""
    return [step("memory.each", {"total": "memory"}, total=b_(report["memory"]["total_bytes"]), chips=str(report["layout"]["tp"] * report["layout"]["pp"]), result=b_(_chip_memory(report)))]


def _memory_share(report: dict, r: Resolved) -> list:
    """The share of memory in use."""
    mem = report["memory"]
    if not mem["available_bytes"]:
        return [step("room.unknown")]
    return [_available(report, r), step("memory.share", {"total": "memory"}, total=b_(mem["total_bytes"]), available=b_(mem["available_bytes"]), result=percent(mem["total_bytes"] / mem["available_bytes"], 3))]


_COUNTS = {"ridge": _ridge, "bytes": _bytes, "flops": _flops, "utilisation": _utilisation, "weights": _weights, "kv_token": _kv_token, "memory": _memory, "memory_share": _memory_share, "chip_memory": _each_memory,
           "max_batch": lambda report, r: _room(report, r, "max_batch"), "max_context": lambda report, r: _room(report, r, "max_context")}
