"""evaluate(Scenario) -> Report: the one answer that the command line, the notebook and the page all show (schema 1)."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields

from . import calibration, cost, formats, memory, roof
from .errors import InputError
from .hardware import COMPUTE_BITS
from .model import kv_bytes_per_token, parameters, state_bytes_per_sequence
from .operators import Pass, forward
from .parallel import collectives
from .scenario import Resolved, Scenario, resolve
from .units import format_quantity

SCHEMA = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorRow:
    """One operator of a phase: the total over its `count` identical layers. limit_s [s] is what physics allows; share is its part of the phase."""

    name: str
    group: str
    count: int
    flops: float
    bytes: float
    intensity_flops_per_byte: float | None
    bound: str | None
    limit_s: float | None
    expected_s: float | None
    share: float | None
    roof: str
    weight_bytes: float
    kv_bytes: float
    activation_bytes: float
    link_bytes: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """Prefill (all prompts of the batch) or decode (one step at the average context of the output), of one replica."""

    flops: float
    bytes: dict
    link_bytes: float
    intensity_flops_per_byte: float
    bound: str | None
    limit_s: float | None
    limit_parts_s: dict | None
    expected_s: float | None
    expected_low_s: float | None
    expected_high_s: float | None
    attainable_flops_per_s: float
    compute_utilisation: float | None
    bandwidth_utilisation: float | None
    roof: str
    context: float
    tokens: float
    operators: tuple


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The answer to a Scenario; `to_dict` and `to_json` give schema 1. Parts that do not apply are None."""

    scenario: dict
    warnings: tuple
    model: dict
    hardware: dict
    layout: dict
    formats: dict
    prefill: Phase | None
    decode: Phase | None
    memory: dict
    serving: dict
    cost: dict
    energy: dict
    expectation: dict | None

    def to_dict(self) -> dict:
        """Plain dicts, lists and numbers."""
        result = {"schema": SCHEMA}
        for f in fields(self):
            value = getattr(self, f.name)
            result[f.name] = _plain_phase(value) if isinstance(value, Phase) else list(value) if isinstance(value, tuple) else value
        return result

    def to_json(self, **options) -> str:
        """Strict JSON: no NaN, no Infinity."""
        return json.dumps(self.to_dict(), allow_nan=False, ensure_ascii=False, **options)


def _plain(row) -> dict:
    return {name: getattr(row, name) for name in row.__slots__}


def _plain_phase(phase: Phase) -> dict:
    result = _plain(phase)
    result["operators"] = [_plain(row) for row in phase.operators]
    return result


def evaluate(scenario: Scenario | Resolved) -> Report:
    """Answer a scenario.

    >>> round(evaluate(Scenario(model="llama-3.1-8b", hardware="h100-sxm", prompt=1, output=1)).decode.limit_s * 1e3, 2)
    4.48
    """
    r = scenario if isinstance(scenario, Resolved) else resolve(scenario)
    s, arch, chip, layout = r.scenario, r.arch, r.chip, r.layout
    warnings = _warnings(r)
    mem = memory.footprint(arch, r.weights, r.kv, batch=s.batch, prompt=s.prompt, output=s.output, layout=layout,
                           memory_bytes=chip.memory_bytes, utilisation=s.utilisation)
    if mem["fits"] is False:
        warnings.append(_misfit(r, mem))
    timed = mem["fits"] is not False and not r.lacks
    roofs = roof.roofs_of(chip, layout, (r.compute, r.activations.compute, _attention_format(r)), s.network)
    expectation = calibration.expectation(r) if timed else None
    steps = max(s.output - 1, 1)
    split = min(layout.pp, s.batch)  # micro-batches: each pipeline stage works on its share of the batch
    share = s.batch / split
    common = {"roofs": roofs, "timed": timed, "r": r, "e": expectation}
    prefill = _phase(Pass(sequences=float(s.batch), new_tokens=float(s.prompt - s.cached), start=float(s.cached), pool=layout.pool),
                     rounds=1, stages=layout.pp, context=s.prompt, **common)
    decode = _phase(Pass(sequences=share, new_tokens=1.0, start=float(s.prompt), steps=float(steps), pool=layout.pool),
                    rounds=split, stages=1, context=s.prompt + (steps + 1) / 2, **common)
    serving = _serving(s, layout, prefill, decode)
    peak = roofs.peaks[r.compute]
    return Report(
        scenario=s.to_dict() | {"resolved": _resolved(r)},
        warnings=tuple(warnings),
        model={
            "id": arch.id, "name": arch.name or arch.id, "architecture": arch.family, "parameters": parameters(arch), "kv_bytes_per_token": kv_bytes_per_token(arch),
            "kv_bytes_per_token_stored": mem["kv_bytes_per_sequence"] / (s.prompt + s.output), "state_bytes_per_sequence": state_bytes_per_sequence(arch),
            "weights_bytes": mem["weights_bytes"], "layers": arch.layer_count, "hidden": arch.hidden, "max_context": arch.max_context,
            "assumed": [{"field": f, "value": v, "source": w} for f, v, w in arch.assumed], "notes": list(arch.notes), "source": arch.source,
        },
        hardware={
            "id": chip.id, "name": chip.name, "devices": layout.devices, "peak_flops_per_s": dict(chip.peaks), "bandwidth_bytes_per_s": chip.bandwidth_bytes_per_s,
            "memory_bytes": chip.memory_bytes, "ridge_flops_per_byte": roof.ridge(peak, chip.bandwidth_bytes_per_s),
            "link_bytes_per_s": chip.link_bytes_per_s, "link": chip.link, "grade": chip.grade, "unverified": list(chip.unverified), "source": chip.source,
            "url": chip.url, "retrieved": chip.retrieved, "note": chip.note, "tdp_w": chip.tdp_w, "usd_per_hour": s.usd_per_hour if s.usd_per_hour is not None else chip.usd_per_hour,
            "price_source": chip.price_source,
        },
        layout={"tp": layout.tp, "pp": layout.pp, "ep": layout.ep, "dp": layout.dp, "devices": layout.devices},
        formats={
            "weights": _name(r.weights), "activations": r.activations.name, "kv": r.kv.name, "compute": r.compute, "compute_roof": chip.roof_of(r.compute)[0],
            "compute_peak_flops_per_s": peak, "bits_per_weight": 8 * mem["weights_bytes"] / max(1, parameters(arch)["total"]),
        },
        prefill=prefill, decode=decode, memory=mem, serving=serving,
        cost=cost.cost(r, prefill, decode), energy=cost.energy(r, prefill, decode),
        expectation=None if expectation is None else _plain(expectation),
    )


def _name(weights) -> str:
    return getattr(weights, "name", str(weights))


def _resolved(r: Resolved) -> dict:
    """What "auto" became, so that a Report can be read on its own."""
    return {"weights": _name(r.weights), "activations": r.activations.name, "kv": r.kv.name, "compute": r.compute,
            "devices": r.layout.devices, "tp": r.layout.tp, "pp": r.layout.pp, "ep": r.layout.ep, "dp": r.layout.dp}


def _attention_format(r: Resolved) -> str:
    """Attention runs in 8 bits only where both its inputs are: the activations and the cache."""
    a, k = r.activations.compute, r.kv.compute
    return a if COMPUTE_BITS[a] <= 8 and k == a else "bf16"


def _phase(p: Pass, *, rounds: int, stages: int, context: float, roofs: roof.Roofs, timed: bool, r: Resolved, e) -> Phase:
    """One phase of one replica. `rounds` micro-batches make the batch (decode); `stages` work on chunks of it at once (prefill)."""
    s, layout, tp = r.scenario, r.layout, r.layout.tp
    in_bytes = r.activations.bits / 8 if r.activations.bits else 2.0
    ops = forward(r.arch, p, weights=r.weights, activation_bytes=in_bytes, kv=r.kv, compute=r.compute, attention_compute=_attention_format(r), skew=s.routing, fused=s.fused)
    ops += collectives(r.arch, p, layout, in_bytes)
    rows, parts, total, weights, kv_read, kv_write, activations, link, flops = [], [0.0, 0.0, 0.0], 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    spans = []
    for op in ops:
        c, m, n = roof.op_parts(op, roofs, tp)
        c /= stages
        parts[0] += c
        parts[1] += m
        parts[2] += n
        spans.append((c, m, n))
        weights += op.weight_bytes
        kv_read += op.kv_read_bytes
        kv_write += op.kv_write_bytes
        activations += op.activation_bytes
        link += op.link_bytes
        flops += op.flops
    limit = max(parts)
    bound = _bound(*parts)
    expected_ops = [roof.op_expected(op, roofs, tp, e) for op in ops] if e is not None and timed else None
    expected = None
    if expected_ops is not None:
        expected = (sum(expected_ops) + e.step_s) / stages if stages == 1 else max(limit, (sum(expected_ops) + e.step_s) * _bubble(p.tokens, stages))
    total = sum(max(span) for span in spans)
    for op, (c, m, n), took in zip(ops, spans, expected_ops or spans, strict=True):
        least = max(c, m, n)
        moved = op.weight_bytes + op.kv_read_bytes + op.kv_write_bytes + op.activation_bytes
        rows.append(OperatorRow(
            name=op.name, group=op.group, count=op.count, flops=op.flops * rounds, bytes=moved * rounds,
            intensity_flops_per_byte=op.flops / moved if moved else None, bound=_bound(c, m, n) if least else "memory",
            limit_s=least if timed else None, expected_s=took if expected_ops is not None else None,
            share=(took / sum(expected_ops) if expected_ops is not None else least / total) if total else 0.0,
            roof=op.roof, weight_bytes=op.weight_bytes * rounds, kv_bytes=(op.kv_read_bytes + op.kv_write_bytes) * rounds,
            activation_bytes=op.activation_bytes * rounds, link_bytes=op.link_bytes * rounds,
        ))
    moved = weights + kv_read + kv_write + activations
    intensity = flops / moved
    peak = roofs.peaks[r.compute]
    chips = tp * stages
    return Phase(
        flops=flops * rounds,
        bytes={"weights": weights * rounds, "kv_read": kv_read * rounds, "kv_write": kv_write * rounds, "activations": activations * rounds, "total": moved * rounds},
        link_bytes=link * rounds, intensity_flops_per_byte=intensity, bound=bound, limit_s=limit if timed else None,
        limit_parts_s={"compute": parts[0], "memory": parts[1], "network": parts[2]} if timed else None,
        expected_s=expected, expected_low_s=None if expected is None else max(limit, expected * e.low), expected_high_s=None if expected is None else expected * e.high,
        attainable_flops_per_s=min(flops / chips / limit, peak), compute_utilisation=parts[0] / limit if timed else None,
        bandwidth_utilisation=parts[1] / limit if timed else None, roof=r.compute, context=context, tokens=p.tokens * rounds, operators=tuple(rows),
    )


def _bubble(tokens: float, stages: int) -> float:
    """Share of the serial time that a pipeline of `stages` needs for `tokens` tokens in chunks: (n + stages - 1) / (n x stages)."""
    chunks = max(1.0, tokens / memory.PREFILL_CHUNK)
    return (chunks + stages - 1) / (chunks * stages)


def _bound(compute: float, mem: float, network: float) -> str:
    if network > compute and network > mem:
        return "network"
    return "compute" if compute > mem else "memory"


def _serving(s: Scenario, layout, prefill: Phase, decode: Phase) -> dict:
    """What a user and the whole deployment get, from the limits and (expected_...) from the expectations.

    TTFT = prefill of the batch, unloaded (no queue). TPOT = one decode step: a request waits for the whole step.
    tokens/s = replicas x batch / TPOT: output tokens while decoding. requests/s = replicas x batch / (TTFT + (output - 1) TPOT).
    """
    def line(ttft, tpot):
        if ttft is None or tpot is None:
            return dict.fromkeys(("ttft_s", "tpot_s", "tokens_per_s_per_user", "tokens_per_s", "tokens_per_s_per_device", "requests_per_s"))
        total = layout.dp * s.batch / tpot
        return {"ttft_s": ttft, "tpot_s": tpot, "tokens_per_s_per_user": 1 / tpot, "tokens_per_s": total, "tokens_per_s_per_device": total / layout.devices,
                "requests_per_s": layout.dp * s.batch / (ttft + (s.output - 1) * tpot)}
    return line(prefill.limit_s, decode.limit_s) | {"expected_" + k: v for k, v in line(prefill.expected_s, decode.expected_s).items()}


def _warnings(r: Resolved) -> list:
    """Everything the reader should know before trusting the numbers."""
    found = []
    add = lambda code, text: found.append({"code": code, "text": text})
    s, arch, chip = r.scenario, r.arch, r.chip
    if arch.assumed:
        listed = ", ".join(f"{f} = {v}" for f, v, _ in arch.assumed[:8])
        add("assumed", f"The config leaves out {len(arch.assumed)} field{'s' if len(arch.assumed) > 1 else ''}; taken from the family's defaults: {listed}{' ...' if len(arch.assumed) > 8 else ''}.")
    for note in arch.notes:
        add("model", note)
    if arch.max_context and s.prompt + s.output > arch.max_context:
        add("context", f"{s.prompt + s.output:,} tokens are more than the {arch.max_context:,} that {arch.name or arch.id} is made for.")
    if r.lacks:
        have = ", ".join(k for k, _ in chip.peaks)
        add("precision", f"{chip.name} has no {r.lacks.upper()} arithmetic (it has {have}), so no time is given; the nearest that runs is --activations {chip.roof_of(r.lacks)[0]}.")
    else:
        used = chip.roof_of(r.compute)[0]
        if used != r.compute:
            add("roof", f"{chip.name} has no {r.compute.upper()} unit; it computes in {used.upper()}, at {format_quantity(chip.peak(used), 'FLOP/s')}.")
    low = [f for f in chip.unverified if f in ("bandwidth_gbs", "bf16", "fp16", "fp8", "fp4", "int8", "link_gbs", "memory_gb")]
    if chip.grade in ("D", "DOUBTFUL"):
        add("hardware", f"The figures of {chip.name} are estimates (grade {chip.grade}): {chip.source}.")
    elif low:
        add("hardware", f"Some figures of {chip.name} are less sure than the rest: {', '.join(low)}.")
    if chip.memory_bytes is None:
        add("memory", f"The memory of {chip.name} depends on what is plugged in, so whether the model fits is not said; give it with --memory.")
    if r.layout.tp * r.layout.pp > 1 and chip.domain and r.layout.tp * r.layout.pp * r.layout.pool > chip.domain and s.network is None:
        add("network", f"{r.layout.tp * r.layout.pp} chips are more than the {chip.domain} that {chip.link or 'its links'} join; the network's bandwidth was not given (--network), so "
            f"{'PCIe' if chip.domain == 1 else chip.link + ' bandwidth'} was assumed.")
    return found


def _misfit(r: Resolved, mem: dict) -> dict:
    """The refusal, with the nearest change that fits."""
    s, group = r.scenario, r.layout.tp * r.layout.pp
    need, have = format_quantity(mem["total_bytes"], "B"), format_quantity(mem["available_bytes"], "B")
    ways = [f"{mem['min_devices']} such chips hold it"]
    if mem["max_batch"]:
        ways.append(f"a batch of {mem['max_batch']:,} fits")
    for name in ("fp8", "int4"):
        fmt = formats.parse(name)
        smaller = sum(formats.weight_bytes(r.arch, fmt))
        if smaller < mem["weights_bytes"] and mem["total_bytes"] - (mem["weights_bytes"] - smaller) <= mem["available_bytes"]:
            ways.append(f"{name.upper()} weights fit")
            break
    return {"code": "memory", "text": f"{r.arch.name or r.arch.id} needs {need} here (weights {format_quantity(mem['weights_bytes'], 'B')}, KV cache "
            f"{format_quantity(mem['kv_bytes_stored'], 'B')}); {group} x {r.chip.name} ha{'s' if group == 1 else 've'} {have}, so no time is given. {'; '.join(ways).capitalize()}."}
