"""What to change: each lever is a re-run of the same scenario with one change, ranked by what it gives here; and the flip points."""

from __future__ import annotations

from dataclasses import dataclass

from . import formats, hardware, memory, parallel, roof
from .errors import InputError
from .operators import Pass, distinct_experts
from .phase import attention_format, operators_of
from .report import Report, evaluate
from .scenario import Resolved, Scenario, resolve
from .serving import accepted_tokens

GOALS = {"tpot": "tpot_s", "ttft": "ttft_s", "throughput": "tokens_per_s", "cost": "usd_per_million_output_tokens", "memory": "total_bytes"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Lever:
    """One possible change. change: Scenario fields; price: what it costs besides (quality, latency, chips), in words."""

    id: str
    title: str
    change: dict
    price: str


def candidates(r: Resolved) -> list:
    """The levers that make sense for a resolved scenario, before any is tried."""
    s, found = r.scenario, []
    add = lambda id, title, change, price: found.append(Lever(id=id, title=title, change=change, price=price))
    bits = 8 * sum(formats.weight_bytes(r.arch, r.weights)) / max(1, sum(t.parameters for t in r.arch.tensors))
    if bits > 9:
        add("weights-fp8", "FP8 weights", {"weights": "fp8"}, "usually no visible loss of quality; check your task")
    if bits > 5:
        add("weights-int4", "INT4 weights, groups of 128", {"weights": "int4-g128", "activations": "auto"}, "some loss of quality; arithmetic stays 16-bit")
    if r.chip.peak("fp4") and bits > 5:
        add("weights-nvfp4", "NVFP4 weights and activations", {"weights": "nvfp4", "activations": "auto"}, "some loss of quality; needs calibration")
    if r.kv.bits > 9:
        add("kv-fp8", "FP8 KV cache", {"kv": "fp8"}, "usually no visible loss of quality")
    if r.kv.bits > 5:
        add("kv-int4", "INT4 KV cache", {"kv": "int4"}, "loss of quality at long context; few engines have the kernels")
    add("batch-2x", f"Batch {s.batch * 2:,}", {"batch": s.batch * 2}, "every user waits for a longer step; more KV cache")
    if s.batch > 1:
        add("batch-half", f"Batch {max(1, s.batch // 2):,}", {"batch": max(1, s.batch // 2)}, "fewer users at once")
    if not s.draft:
        for g in (3, 5):
            add(f"speculate-{g}", f"Speculative decoding, {g} drafted tokens", {"draft": g}, f"a draft model or MTP head with {s.acceptance:.0%} acceptance; extra work when drafts fail")
    else:
        add("no-speculation", "No speculation", {"draft": 0}, "none")
    if not s.fused:
        add("fused", "Fused attention", {"fused": True}, "a kernel such as FlashAttention")
    if s.cached == 0 and s.prompt > 1:
        add("prefix", "Half of the prompt cached (prefix caching)", {"cached": s.prompt // 2}, "requests must share their beginning")
    if not s.chunk and s.prompt > 1024:
        add("chunked", "Chunked prefill, 512 tokens a step", {"chunk": 512}, "longer steps while a prompt is being read, but no step stalls for a whole prompt")
    if s.block > 16:
        add("paged", "KV blocks of 16 tokens", {"block": 16}, "none")
    here = r.layout
    for name, factor in (("tp", here.tp * 2), ("pp", here.pp * 2)):
        devices = factor * (here.pp if name == "tp" else here.tp) * here.dp
        add(f"{name}-2x", f"{'Tensor' if name == 'tp' else 'Pipeline'} parallel {factor}", {"devices": devices, "tp": here.tp, "pp": here.pp, "dp": here.dp} | {name: factor}, f"{devices - here.devices} more chips")
    add("dp-2x", f"{here.dp * 2} replicas", {"devices": here.devices * 2, "tp": here.tp, "pp": here.pp, "dp": here.dp * 2}, f"{here.devices} more chips")
    if r.arch.is_moe and here.dp > 1 and here.ep == 1:
        add("ep", f"Expert parallel over {here.tp * here.dp} chips", {"ep": here.tp * here.dp}, "all-to-all traffic; experts must be balanced")
    if not s.prefill_hardware and s.output > 1:
        add("disaggregate", "Prefill on chips of its own", {"prefill_hardware": s.hardware if s.hardware != "custom" else "h100-sxm", "prefill_devices": here.tp}, "a second pool of chips, and the KV cache crosses the network")
    bandwidth = r.chip.bandwidth_bytes_per_s
    add("near-memory", "Twice the bandwidth at the same peak (near-memory computing)", {"bandwidth": 2 * bandwidth}, "hardware that is not on sale")
    for other in _next_chips(r):
        add(f"chip-{other.id}", other.name, {"hardware": other.id}, "other chips")
    return found


def _next_chips(r: Resolved) -> list:
    """Up to three current chips of the same kind with more bandwidth, the least step up first."""
    same = [hardware.load(i) for i in hardware.ids()]
    same = [c for c in same if c.kind == r.chip.kind and c.grade in ("A", "B", "C") and c.bandwidth_bytes_per_s > r.chip.bandwidth_bytes_per_s * 1.05 and c.memory_bytes]
    return sorted(same, key=lambda c: c.bandwidth_bytes_per_s)[:3]


def figures(report: Report) -> dict:
    """The figures that levers are judged by, expected where there is an expectation, else at the limit."""
    s = report.serving
    pick = lambda key: s["expected_" + key] if s["expected_" + key] is not None else s[key]
    return {"tpot_s": pick("tpot_s"), "ttft_s": pick("ttft_s"), "tokens_per_s": pick("tokens_per_s"), "tokens_per_s_per_device": pick("tokens_per_s_per_device"),
            "usd_per_million_output_tokens": report.cost.get("expected_usd_per_million_output_tokens") or report.cost["usd_per_million_output_tokens"],
            "total_bytes": report.memory["total_bytes"], "max_batch": report.memory["max_batch"], "fits": report.memory["fits"], "devices": report.hardware["devices"]}


def levers(scenario: Scenario, goal: str = "tpot") -> dict:
    """Try every lever on a scenario; {"base", "levers": [...] best first for `goal`, "flips"}.

    goal: tpot, ttft, throughput, cost or memory. Each lever has its figures, `gain` per goal (how many times better: 1.25 is 25 %
    better) and the decode point it moves to. Levers that cannot be (a layout that does not divide) are left out.
    """
    if goal not in GOALS:
        raise InputError("goal", goal, f"must be one of {', '.join(GOALS)}")
    r = resolve(scenario)
    base_report = evaluate(r)
    base, rows = figures(base_report), []
    for lever in candidates(r):
        try:
            changed = scenario.replace(**lever.change)
            report = evaluate(changed)
        except InputError:
            continue
        now = figures(report)
        gains = {name: _gain(base[key], now[key], better_high=name == "throughput") for name, key in GOALS.items()}
        rows.append({"id": lever.id, "title": lever.title, "price": lever.price, "change": lever.change, "figures": now, "gain": gains, "fits": now["fits"],
                     "bound": report.decode.bound, "from": _point(base_report.decode), "to": _point(report.decode), "fragment": changed.to_fragment()})
    rows.sort(key=lambda row: -(row["gain"][goal] if row["gain"][goal] is not None else (2.0 if base["fits"] is False and row["fits"] else 0.0)))
    return {"goal": goal, "base": base, "levers": rows, "flips": flip_points(r)}


def _point(phase) -> dict:
    return {"intensity_flops_per_byte": phase.intensity_flops_per_byte, "attainable_flops_per_s": phase.attainable_flops_per_s}


def _gain(before, after, better_high: bool):
    """How many times better, or None where one of the two is unknown."""
    if before is None or after is None or not before or not after:
        return None
    return after / before if better_high else before / after


def flip_points(r: Resolved) -> dict:
    """Where the answer changes: {operators: batch at which each turns compute-bound, kv_passes_weights: context, speculation: batch}.

    A matrix of b bytes a weight at T tokens a step does 2 T FLOPs per weight, so it turns at T* = ridge x b / 2; routed experts see
    k/E of the tokens each, so theirs is E/k times that; attention's intensity does not depend on the batch, so it never turns.
    The KV cache passes the weights that a step reads at batch x context x KV bytes = weights.
    """
    s, layout = r.scenario, r.layout
    roofs = roof.roofs_of(r.chip, layout, (r.compute, attention_format(r)), s.network, s.host)
    rows = []
    for t, stored in zip(r.arch.tensors, formats.weight_bytes(r.arch, r.weights), strict=True):
        if t.kind != "linear" or t.group == "vision":
            continue
        each = stored / t.parameters
        peak = roofs.peaks[r.compute if 8 * each < 15.5 else "bf16"]
        rows.append({"name": t.name, "group": t.group, "batch": roof.ridge(peak, roofs.bandwidth) * each / 2 * t.copies / max(1, t.active)})
    kv_token = memory.kv_bytes(r.arch, r.kv, 1_000_001) - memory.kv_bytes(r.arch, r.kv, 1_000_000)
    weights = _weights_read(r, s.batch)
    return {"operators": sorted(rows, key=lambda row: row["batch"]),
            "kv_passes_weights_context": _kv_context(r, weights / s.batch) if kv_token or r.arch.attentions else None,
            "speculation_stops_paying_batch": _speculation_batch(r, roofs), "distinct_experts": _experts(r)}


def _weights_read(r: Resolved, batch: float) -> float:
    return sum(op.weight_bytes for op in operators_of(r, Pass(sequences=float(batch), new_tokens=1.0, start=float(r.scenario.prompt), steps=1.0)))


def _kv_context(r: Resolved, room: float):
    """The context at which one sequence's cache takes `room` bytes [tokens], or None if it never does."""
    low, high = 0.0, 1.0
    while memory.kv_bytes(r.arch, r.kv, high) < room:
        low, high = high, high * 2
        if high > 1e12:
            return None
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if memory.kv_bytes(r.arch, r.kv, middle) < room else (low, middle)
    return high


def _speculation_batch(r: Resolved, roofs):
    """The smallest batch at which a verify step of 4 (or the scenario's own) drafted tokens no longer beats plain decoding, free drafts assumed."""
    s = r.scenario
    g = s.draft or 4
    tokens = accepted_tokens(s.acceptance, g)
    step = lambda b, q: max(roof.limit_parts(operators_of(r, Pass(sequences=b, new_tokens=q, start=float(s.prompt), steps=float(max(s.output - 1, 1)), sampled=q, pool=r.layout.pool)), roofs, r.layout))
    pays = lambda b: step(b, g + 1.0) / tokens < step(b, 1.0)
    if not pays(1.0):
        return 1
    high = 1.0
    while pays(high):
        high *= 2
        if high > 1e6:
            return None
    low = high / 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if pays(middle) else (low, middle)
    return int(high)


def _experts(r: Resolved):
    """Distinct experts a layer reads against the batch, uniform and at the scenario's routing, for the placement view."""
    experts = [t for t in r.arch.tensors if t.group == "experts" and t.kind == "linear"]
    if not experts:
        return None
    total, active = experts[0].copies, experts[0].active
    batches = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096]
    return {"experts": total, "active": active, "batch": batches, "uniform": [distinct_experts(total, active, b) for b in batches],
            "routing": [distinct_experts(total, active, b, r.scenario.routing) for b in batches], "least": [float(active)] * len(batches)}


def compare(one: Scenario, two: Scenario) -> dict:
    """Two scenarios side by side: figures, ratios, and which operator group moved each phase's time.

    Times of the operators are their limits; a phase without times compares FLOPs and bytes alone.
    """
    a, b = evaluate(one), evaluate(two)
    result = {"a": {"scenario": one.to_dict(), "figures": figures(a)}, "b": {"scenario": two.to_dict(), "figures": figures(b)}}
    result["ratio"] = {k: (b_ / a_ if isinstance(a_, (int, float)) and isinstance(b_, (int, float)) and not isinstance(a_, bool) and a_ else None)
                       for (k, a_), b_ in zip(figures(a).items(), figures(b).values(), strict=True)}
    for name in ("prefill", "decode"):
        left, right = getattr(a, name), getattr(b, name)
        groups = {}
        for side, phase in (("a", left), ("b", right)):
            for op in phase.operators:
                cell = groups.setdefault(op.group, {"group": op.group, "a_s": 0.0, "b_s": 0.0, "a_bytes": 0.0, "b_bytes": 0.0, "a_flops": 0.0, "b_flops": 0.0})
                cell[side + "_s"] = None if op.limit_s is None or cell[side + "_s"] is None else cell[side + "_s"] + op.limit_s
                cell[side + "_bytes"] += op.bytes
                cell[side + "_flops"] += op.flops
        rows = [g | {"change_s": None if g["a_s"] is None or g["b_s"] is None else g["b_s"] - g["a_s"]} for g in groups.values()]
        rows.sort(key=lambda g: -abs(g["change_s"] if g["change_s"] is not None else g["b_bytes"] - g["a_bytes"]))
        result[name] = {"a_limit_s": left.limit_s, "b_limit_s": right.limit_s, "a_bound": left.bound, "b_bound": right.bound, "groups": rows}
    return result


def layouts(scenario: Scenario, goal: str = "throughput", most: int = 12) -> dict:
    """Every legal layout of the scenario's devices, best first for `goal`: {"layouts": [...], "refused": n, "unfit": n}.

    The requests in flight are held: batch x dp stays what the scenario has, spread over the replicas. goal as in `levers`.
    """
    if goal not in GOALS:
        raise InputError("goal", goal, f"must be one of {', '.join(GOALS)}")
    r = resolve(scenario)
    devices, flight = r.layout.devices, scenario.batch * r.layout.dp
    rows, refused, unfit = [], 0, 0
    for x in parallel.layouts(devices, r.arch.is_moe):
        if x.dp > flight:
            continue
        try:
            changed = scenario.replace(devices=devices, tp=x.tp, pp=x.pp, dp=x.dp, ep=x.ep, batch=-(-flight // x.dp))
            report = evaluate(changed)
        except InputError:
            refused += 1
            continue
        now = figures(report)
        if now["tpot_s"] is None:
            unfit += 1
            continue
        rows.append({"tp": x.tp, "pp": x.pp, "ep": x.ep, "dp": x.dp, "batch": changed.batch, "bound": report.decode.bound, "figures": now, "fragment": changed.to_fragment()})
    key = GOALS[goal]
    rows.sort(key=lambda row: ((-1 if goal == "throughput" else 1) * (row["figures"][key] if row["figures"][key] is not None else float("inf")), row["figures"]["tpot_s"], row["tp"]))
    return {"goal": goal, "devices": devices, "requests_in_flight": flight, "layouts": rows[:most], "tried": len(rows) + refused + unfit, "refused": refused, "unfit": unfit}
