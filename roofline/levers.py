"""What to change: each lever is a re-run of the same scenario with one change, ranked by what it gives here."""

from __future__ import annotations

from dataclasses import dataclass

from . import catalogue, formats, hardware, parallel
from .errors import InputError
from .flips import flip_points
from .model import parameters
from .phase import told_bound
from .report import Report, evaluate
from .scenario import Resolved, Scenario, architecture_of, layout_of, resolve
from .serving import chunked_cycle
from .ways import ways_to_fit

GOALS = {"tpot": "tpot_s", "ttft": "ttft_s", "throughput": "sustained_tokens_per_s", "per_chip": "sustained_tokens_per_s_per_device", "cost": "usd_per_million_all_in", "memory": "bytes_per_chip",
         "smoothness": "worst_gap_s"}
HIGH = ("throughput", "per_chip")  # goals where more is better
# Mixtures of experts to hold against a dense model: public ones of several sizes.
MIXTURES = ("qwen3-30b-a3b", "mixtral-8x7b", "gpt-oss-120b", "mixtral-8x22b", "qwen3-235b-a22b", "deepseek-v3")
_OTHER_CHIP = {"peak": None, "bandwidth": None, "memory": None, "link": None, "usd_per_hour": None, "purchase_usd": None}


@dataclass(frozen=True, slots=True, kw_only=True)
class Lever:
    """One possible change. change: Scenario fields; price: what it costs besides (quality, latency, chips), in words."""

    id: str
    title: str
    change: dict
    price: str


def chips_text(more: int) -> str:
    """How many more chips a change takes, in words.

    >>> chips_text(1), chips_text(8)
    ('1 more chip', '8 more chips')
    """
    return f"{more:,} more chip{'' if more == 1 else 's'}"


def candidates(r: Resolved) -> list:
    """The levers that make sense for a resolved scenario, before any is tried."""
    found = []
    add = lambda id, title, change, price: found.append(Lever(id=id, title=title, change=change, price=price))
    for group in (_precision, _load, _kernels, _spread, _elsewhere):
        group(r, add)
    return found


def _precision(r: Resolved, add) -> None:
    bits = 8 * sum(formats.weight_bytes(r.arch, r.weights)) / max(1, sum(t.parameters for t in r.arch.tensors))
    eight = "fp8" if r.chip.peak("fp8") or not r.chip.peak("int8") else "int8"
    if bits > 9:
        unit = f"arithmetic in {eight.upper()} too" if r.chip.peak(eight) else "arithmetic stays 16-bit, since this chip has no 8-bit unit"
        add(f"weights-{eight}", f"{eight.upper()} weights", {"weights": eight, "activations": "auto"}, f"usually no visible loss of quality; {unit}")
    if bits > 5:
        add("weights-int4", "INT4 weights, groups of 128", {"weights": "int4-g128", "activations": "auto"}, "some loss of quality; arithmetic stays 16-bit")
    if r.chip.peak("fp4") and bits > 5:
        add("weights-nvfp4", "NVFP4 weights and activations", {"weights": "nvfp4", "activations": "auto"}, "some loss of quality; needs calibration")
    if r.activations.bits > 8 and bits < 15 and r.chip.peak(eight):
        add("activations-8", f"{eight.upper()} activations with these weights", {"activations": eight}, "some loss of quality; kernels for this pair must exist")
    if r.kv.bits > 9:
        add("kv-fp8", "FP8 KV cache", {"kv": "fp8"}, "usually no visible loss of quality")
    if r.kv.bits > 5:
        add("kv-int4", "INT4 KV cache", {"kv": "int4"}, "loss of quality at long context; few engines have the kernels")


def _load(r: Resolved, add) -> None:
    s = r.scenario
    add("batch-2x", f"Batch {s.batch * 2:,}", {"batch": s.batch * 2}, "every user waits for a longer step; more KV cache")
    if s.batch > 1:
        add("batch-half", f"Batch {s.batch // 2:,}", {"batch": s.batch // 2}, "fewer users at once")
    if s.draft:
        add("no-speculation", "No speculation", {"draft": 0}, "none")
    else:
        for g in (3, 5):
            add(f"speculate-{g}", f"Speculative decoding, {g} drafted tokens, {s.acceptance:.0%} accepted", {"draft": g},
                f"the acceptance of {s.acceptance:.0%} is assumed: it depends on text and draft; a draft model or a layer of the model's own must draft; checking computes {g + 1} tokens a request, used or not")
    if s.cached == 0 and s.prompt > 1:
        add("prefix", "Half of the prompt cached (prefix caching)", {"cached": s.prompt // 2}, "requests must share their beginning")
    if not s.chunk and s.prompt > 1024 and not s.prefill_hardware:
        add("chunked", "Chunked prefill, 512 tokens a step", {"chunk": 512}, "a prompt takes longer to read, but nobody waits for a whole one")


def _kernels(r: Resolved, add) -> None:
    s = r.scenario
    if not s.fused:
        add("fused", "Fused attention", {"fused": True}, "a kernel such as FlashAttention")
    if s.block > 16:
        add("paged", "KV blocks of 16 tokens", {"block": 16}, "none")
    if not s.sequence_parallel and r.layout.tp > 1:
        add("sequence-parallel", "Norms split over the tensor-parallel ranks", {"sequence_parallel": True}, "none where the engine has it")


def _spread(r: Resolved, add) -> None:
    s, here = r.scenario, r.layout
    fixed = {"tp": here.tp, "pp": here.pp, "dp": here.dp}
    for name, title, price in (("tp", "Tensor parallel {}", ""), ("pp", "Pipeline of {} stages", "; a lone request gains nothing"), ("dp", "{} replicas", "")):
        value = 2 * getattr(here, name)
        devices = 2 * here.devices
        add(f"{name}-2x", title.format(value), {"devices": devices} | fixed | {name: value}, chips_text(devices - here.devices) + price)
    if r.arch.is_moe and here.dp > 1 and here.ep == 1:
        add("ep", f"Expert parallel over {here.tp * here.dp} chips", {"ep": here.tp * here.dp}, "all-to-all traffic; experts must be balanced")
    if r.arch.is_moe and here.tp > 1 and here.dp == 1:
        add("attention-dp", f"Attention on each of {here.tp} chips for its own users, experts shared by all", {"devices": here.devices, "tp": 1, "pp": here.pp, "dp": here.tp, "ep": here.tp, "batch": max(1, s.batch // here.tp)},
            "all-to-all traffic; attention weights on every chip; experts must be balanced")
    if not s.prefill_hardware and s.output > 1 and s.hardware != "custom":
        add("disaggregate", "Prefill on chips of its own", {"prefill_hardware": s.hardware, "prefill_devices": here.tp * here.pp}, "a second pool of chips, and the KV cache crosses the network")


def _elsewhere(r: Resolved, add) -> None:
    add("near-memory", "Twice the bandwidth at the same peak (near-memory computing)", {"bandwidth": 2 * r.chip.bandwidth_bytes_per_s}, "hardware that is not on sale")
    for other in _next_chips(r):
        add(f"chip-{other.id}", other.name, {"hardware": other.id} | _OTHER_CHIP, "other chips")
    if not r.arch.is_moe:
        near = _nearest_mixture(r.arch)
        if near is not None:
            total, active = (parameters(near)[key] / 1e9 for key in ("total", "active"))
            add("moe", f"{near.name or near.id}, a mixture of experts", {"model": near.id, "config": "", "read_as": ""},
                f"another model: {total:.0f} billion parameters in memory, {active:.0f} used by a token; quality differs")


def _nearest_mixture(arch):
    """The mixture of experts in `MIXTURES` nearest in size to a dense model, if a token uses less than half of that; else None."""
    size, best = parameters(arch)["total"], None
    for id in MIXTURES:
        try:
            other = catalogue.load(id)
        except InputError:
            continue
        counts = parameters(other)
        away = max(counts["total"] / size, size / counts["total"])
        if away <= 4 and counts["active"] < size / 2 and (best is None or away < best[0]):
            best = (away, other)
    return None if best is None else best[1]


def _next_chips(r: Resolved) -> list:
    """Up to three chips with more bandwidth, of the same kind: the least step up, the most bandwidth for its price, the most bandwidth."""
    chips = [hardware.load(i) for i in hardware.ids()]
    better = [c for c in chips if c.kind == r.chip.kind and c.grade in ("A", "B", "C") and c.memory_bytes and c.bandwidth_bytes_per_s > r.chip.bandwidth_bytes_per_s * 1.05]
    if not better:
        return []
    picks = [min(better, key=lambda c: c.bandwidth_bytes_per_s), max(better, key=lambda c: c.bandwidth_bytes_per_s)]
    priced = [c for c in better if c.usd_per_hour]
    if priced:
        picks.append(max(priced, key=lambda c: c.bandwidth_bytes_per_s / c.usd_per_hour))
    return sorted({c.id: c for c in picks}.values(), key=lambda c: c.bandwidth_bytes_per_s)


def figures(report: Report) -> dict:
    """The figures that levers are judged by, expected where there is an expectation, else at the limit.

    tokens_per_s counts decoding alone; sustained_tokens_per_s is over whole requests, their prompts included (`sustained`);
    usd_per_million_all_in: the whole bill over the output tokens. worst_gap_s: see `worst_gap`. bytes_per_chip: memory in use on each
    chip. ttft_alone_s: of one prompt by itself, which a prefill pool's TTFT always is.
    """
    s = report.serving
    pick = lambda key: s["expected_" + key] if s["expected_" + key] is not None else s[key]
    price = lambda key: report.cost.get("expected_" + key) or report.cost[key]
    ttft, tpot = pick("ttft_s"), pick("tpot_s")
    rate, bill = sustained(report, ttft, tpot), price("usd_per_million_output_tokens_all_in")
    if s["mixed_step"] and bill is not None:
        bill *= sustained(report, ttft, tpot, chunked=False) / rate  # the chips are paid for the shorter cycle
    chips = report.hardware["devices"]
    if s["disaggregated"]:
        chips = s["disaggregated"]["devices_per_decode_instance"] * report.layout["dp"]
    group = report.layout["tp"] * report.layout["pp"]
    return {"tpot_s": tpot, "ttft_s": ttft, "ttft_alone_s": pick("ttft_alone_s"), "tokens_per_s": pick("tokens_per_s"), "tokens_per_s_per_device": pick("tokens_per_s_per_device"),
            "sustained_tokens_per_s": rate, "sustained_tokens_per_s_per_device": None if rate is None else rate / chips,
            "usd_per_million_output_tokens": price("usd_per_million_output_tokens"), "usd_per_million_all_in": bill, "worst_gap_s": worst_gap(report),
            "total_bytes": report.memory["total_bytes"], "bytes_per_chip": report.memory["total_bytes"] / group, "max_batch": report.memory["max_batch"], "fits": report.memory["fits"], "devices": report.hardware["devices"]}


def sustained(report: Report, ttft_s, tpot_s, chunked: bool = True):
    """Output tokens/s of the deployment over whole requests, prompts included [tokens/s]; None without times.

    A batch takes its prefill and output - 1 steps in turn: replicas x batch x output / (TTFT + (output - 1) TPOT). Chunked
    prefill lets prompts ride with decodes (`serving.chunked_cycle`, left out if not `chunked`); a prefill pool of its own takes them
    off altogether.
    """
    if ttft_s is None or tpot_s is None:
        return None
    ask, s = Scenario.from_dict({k: v for k, v in report.scenario.items() if k != "resolved"}), report.serving
    cycle = ttft_s + (ask.output - 1) * tpot_s
    if s["disaggregated"]:
        cycle = ask.output * tpot_s
    elif s["mixed_step"] and chunked:
        stretch = tpot_s / s["tpot_s"]
        cycle = chunked_cycle(ask.batch, s["mixed_step"]["steps_per_prompt"], ask.output, s["mixed_step"]["step_s"] * stretch, tpot_s)
    return report.layout["dp"] * ask.batch * ask.output / cycle


def worst_gap(report: Report):
    """The longest wait between two tokens while another request's prompt is read, at the limits [s]; None without times.

    A decode step and that prompt's prefill; with chunked prefill one mixed step; with a pool of its own just the decode step. One
    prompt's share of a prefill batch: its compute and traffic divide, the weights do not.
    """
    s, parts = report.serving, report.prefill.limit_parts_s
    if report.decode.limit_s is None or parts is None:
        return None
    if s["mixed_step"]:
        return max(s["mixed_step"]["step_s"], report.decode.limit_s)
    if s["disaggregated"]:
        return report.decode.limit_s
    batch = report.scenario.get("batch", 1)
    return report.decode.limit_s + max(parts["compute"] / batch, parts["memory"], parts["network"] / batch, parts["host"])


def levers(scenario: Scenario, goal: str = "tpot") -> dict:
    """Try every lever on a scenario; {"base", "levers": [...] best first for `goal`, "in_use": [...], "flips"}.

    goal: one of GOALS. Each lever has its figures, `gain` per goal (how many times better: 1.25 is 25 % better; None where one side
    is unknown) and the decode point it moves from and to. Levers that cannot be (a layout that does not divide) are left out.
    Where the scenario does not fit, what makes it fit comes first; among equals the one with fewer chips does.
    in_use: what the scenario already has (fused attention, narrow formats, caching, speculation) and what it would lose without.
    """
    if goal not in tuple(GOALS):
        raise InputError("goal", goal, f"must be one of {', '.join(GOALS)}")
    r = resolve(scenario)
    report = evaluate(r)
    base = figures(report)
    fixes = [Lever(id=f"fit-{i}", title=way["text"][:1].upper() + way["text"][1:], change=way["change"], price="none besides") for i, way in enumerate(ways_to_fit(r))]
    rows = [row for row in (_tried(scenario, lever, report, base) for lever in (*fixes, *candidates(r))) if row is not None]
    rows.sort(key=lambda row: (-_rank(row, goal, base), row["figures"]["devices"]))
    used = [row for row in (_tried(scenario, lever, report, base) for lever in _in_use(r)) if row is not None]
    return {"goal": goal, "base": base, "levers": rows, "in_use": used, "flips": flip_points(r)}


def _rank(row: dict, goal: str, base: dict) -> float:
    gain = row["gain"][goal]
    if gain is None:
        return 2.0 if base["fits"] is False and row["fits"] else 0.0
    return gain if row["fits"] is not False else 0.0


def _in_use(r: Resolved) -> list:
    """The levers a scenario already pulls, as their undoing."""
    s, found = r.scenario, []
    add = lambda id, title, change: found.append(Lever(id=id, title=title, change=change, price="this is what the scenario gains today"))
    if s.fused:
        add("without-fused", "Without fused attention", {"fused": False})
    if getattr(r.weights, "name", "") != "bf16":
        add("without-weights", "With BF16 weights", {"weights": "bf16", "activations": "auto"})
    if r.kv.bits < 15:
        add("without-kv", "With a BF16 KV cache", {"kv": "bf16"})
    if s.cached:
        add("without-prefix", "Without prefix caching", {"cached": 0})
    if s.draft:
        add("without-speculation", "Without speculation", {"draft": 0})
    return found


def _tried(scenario: Scenario, lever: Lever, before: Report, base: dict) -> dict | None:
    """One lever, re-run; None where it cannot be."""
    try:
        changed = scenario.replace(**lever.change)
        report = evaluate(changed)
    except InputError:
        return None
    now = figures(report)
    keys = GOALS
    if bool(report.serving["disaggregated"]) != bool(before.serving["disaggregated"]):
        keys = GOALS | {"ttft": "ttft_alone_s"}  # a pool reads one prompt at a time, so the other side is held to one prompt too
    gains = {name: _gain(base[key], now[key], better_high=name in HIGH) for name, key in keys.items()}
    return {"id": lever.id, "title": lever.title, "price": lever.price, "change": lever.change, "figures": now, "gain": gains, "fits": now["fits"],
            "bound": _told(report.decode), "from": _point(before.decode), "to": _point(report.decode), "fragment": changed.to_fragment()}


def _told(phase) -> str | None:
    return told_bound(phase.bound, phase.limit_parts_s)


def _point(phase) -> dict:
    return {"intensity_flops_per_byte": phase.intensity_flops_per_byte, "attainable_flops_per_s": phase.attainable_flops_per_s}


def _gain(before, after, better_high: bool):
    """How many times better, or None where one of the two is unknown."""
    if before is None or after is None or not before or not after:
        return None
    return after / before if better_high else before / after


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
        result[name] = {"a_limit_s": left.limit_s, "b_limit_s": right.limit_s, "a_bound": _told(left), "b_bound": _told(right), "groups": rows}
    return result


def layouts(scenario: Scenario, goal: str = "throughput", most: int = 12) -> dict:
    """Every legal layout of the scenario's devices, best first for `goal`: {"layouts": [...], "refused": n, "unfit": n,
    "too_large": [{"tp", "pp", "ep", "dp", "needs_bytes", "has_bytes"}, ...]}, the last those that do not fit, nearest to fitting first.

    The requests in flight are held: batch x dp stays what the scenario has, spread over the replicas. goal as in `levers`. Where
    there is no expectation, times are ranked with what their messages cost besides (`messages_s` of a decode step, from
    data/links.toml), since at the limit alone ever more tensor parallelism would always win.
    """
    if goal not in tuple(GOALS):
        raise InputError("goal", goal, f"must be one of {', '.join(GOALS)}")
    here = layout_of(scenario)  # its devices and replicas alone: it need not be legal itself
    arch = architecture_of(scenario.model, scenario.config, scenario.read_as)
    devices, flight = here.devices, scenario.batch * here.dp
    rows, refused, unfit = [], 0, []
    for x in parallel.layouts(devices, arch.is_moe):
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
            memory = report.memory
            unfit.append({"tp": x.tp, "pp": x.pp, "ep": x.ep, "dp": x.dp, "needs_bytes": memory["total_bytes"], "has_bytes": memory["available_bytes"]})
            continue
        rows.append({"tp": x.tp, "pp": x.pp, "ep": x.ep, "dp": x.dp, "batch": changed.batch, "bound": _told(report.decode), "figures": now,
                     "messages_s": sum(op.latency_s for op in report.decode.operators), "rank": _ranked(report, now, goal), "fragment": changed.to_fragment()})
    rows.sort(key=lambda row: ((float("inf") if row["rank"] is None else -row["rank"] if goal in HIGH else row["rank"]), row["figures"]["tpot_s"] + row["messages_s"], row["tp"]))
    return {"goal": goal, "devices": devices, "requests_in_flight": flight, "layouts": rows[:most], "tried": len(rows) + refused + len(unfit), "refused": refused, "unfit": len(unfit),
            "too_large": sorted(unfit, key=lambda row: ((row["needs_bytes"] or 0) / (row["has_bytes"] or 1), row["pp"]))}


def _ranked(report: Report, now: dict, goal: str):
    """The figure a layout is ranked by; without an expectation, what messages cost is added to its times."""
    key, s = GOALS[goal], report.serving
    if s["expected_tpot_s"] is not None or goal == "memory" or now[key] is None:
        return now[key]
    tpot = s["tpot_s"] + sum(op.latency_s for op in report.decode.operators) / s["tokens_per_step"]
    ttft = s["ttft_s"] + sum(op.latency_s for op in report.prefill.operators)
    slower = sustained(report, s["ttft_s"], s["tpot_s"]) / sustained(report, ttft, tpot)
    return {"tpot": tpot, "ttft": ttft, "smoothness": now[key] + tpot - s["tpot_s"]}.get(goal, now[key] / slower if goal in HIGH else now[key] * slower)
