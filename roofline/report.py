"""evaluate(Scenario) -> Report: the one answer that the command line, the notebook and the page all show (schema 1)."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from dataclasses import replace as dataclass_replace
from math import isfinite

from . import calibration, cost, formats, memory, reserve, roof, service
from .fabric import fabric_of
from .hardware import load as load_chip
from .model import kv_bound, kv_bytes_per_token, parameters, state_bytes_per_sequence
from .network import network_ridge
from .phase import attention_format, decode_pass, operators_of, Phase, phase, prefill_pass, times
from .scenario import Resolved, Scenario, resolve
from .units import format_quantity
from .ways import sentence, ways_to_fit

SCHEMA = 1
FULL = 2 ** 40  # tokens: beyond every window


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

    def plot(self, **options):
        """The roofline chart (`plot.Chart`): `report.plot().save("roof.svg")`, or .png, or .html; a notebook shows it by itself."""
        from .plot import from_report
        return from_report(self, **options)

    def _repr_html_(self) -> str:
        from .document import notebook
        return notebook(self)


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
    draft = memory.draft_of(arch, r.weights, s.draft, r.drafter)
    mem = memory.footprint(arch, r.weights, r.kv, batch=s.batch, prompt=s.prompt, output=s.output, layout=layout, memory_bytes=chip.memory_bytes,
                           utilisation=s.utilisation, overhead=s.overhead, block=s.block, offload=s.offload, offload_kv=s.offload_kv, draft=draft)
    mem["engine"] = None if chip.memory_bytes is None else reserve.reservation(
        arch, r.weights, r.kv, batch=s.batch, prompt=s.prompt, output=s.output, layout=layout, memory_bytes=chip.memory_bytes, utilisation=s.utilisation if s.utilisation < 1 else None,
        block=s.block if s.block > 1 else None, overhead=s.overhead or None, chunk=s.chunk or None, offload=s.offload, draft=draft, a100=chip.id.startswith("a100"))
    if mem["fits"] is False:
        mem["ways"] = ways_to_fit(r, mem)
        warnings.append({"code": "memory", "text": sentence(r, mem, mem["ways"])})
    if chip.cache_bytes and mem["weights_bytes_per_device"] < chip.cache_bytes:
        warnings.append({"code": "cache", "text": f"The weights on a chip ({format_quantity(mem['weights_bytes_per_device'], 'B')}) are fewer than its last cache holds ({format_quantity(chip.cache_bytes, 'B')}): "
                         "where they stay there from step to step, steps are faster than these limits, which read them from memory."})
    timed = mem["fits"] is not False and not r.lacks
    roofs = roof.roofs_of(chip, layout, (r.compute, r.activations.compute, attention_format(r)), s.network, s.host)
    expectation = calibration.expectation(r) if timed else None
    steps = max(s.output - 1, 1)
    split = min(layout.pp, s.batch)  # micro-batches: each pipeline stage works on its share of the batch
    common = {"roofs": roofs, "timed": timed, "e": expectation}
    prefill = phase(r, prefill_pass(s, layout), stages=layout.pp, context=s.prompt, **common)
    decode = phase(r, decode_pass(s, layout, s.draft + 1), rounds=split, context=s.prompt + (steps + 1) / 2, **common)
    plain_s = roof.longest(roof.limit_parts(operators_of(r, decode_pass(s, layout)), roofs, layout)) if s.draft and timed else decode.limit_s
    serving = service.serve(r, prefill, decode, plain_s, roofs, expectation, mem["max_batch"])
    # A prompt that arrives by itself, as in continuous batching; ttft_s is for all prompts of the batch at once.
    lone = times(r, dataclass_replace(prefill_pass(s, layout), sequences=1.0), roofs, expectation, layout.pp) if timed and s.batch > 1 and not s.prefill_hardware else None
    serving["ttft_alone_s"], serving["expected_ttft_alone_s"] = lone[1:] if lone else (serving["ttft_s"], serving["expected_ttft_s"])
    if serving["disaggregated"] and serving["disaggregated"]["ttft_s"] is None:
        warnings.append({"code": "memory", "text": f"{arch.name or arch.id} does not fit on a prefill instance of {serving['disaggregated']['prefill_devices']} x {s.prefill_hardware}, so no time is "
                         "given; give it more chips as prefill_devices."})
    if serving["disaggregated"] and serving["disaggregated"]["kv_transfer_bytes"] and not serving["disaggregated"]["transfer_s"]:
        warnings.append({"code": "network", "text": "No network between the two pools is known, so sending the cache takes no time here; give its speed for each chip as network."})
    money = _money(r, prefill, serving)
    peak = roofs.peaks[r.compute]
    return Report(
        scenario=s.to_dict() | {"resolved": _resolved(r)},
        warnings=tuple(warnings),
        model={
            "id": arch.id, "name": arch.name or arch.id, "architecture": arch.family, "parameters": parameters(arch), "kv_bytes_per_token": kv_bytes_per_token(arch),
            "kv_bytes_per_token_stored": mem["kv_bytes_per_sequence"] / (s.prompt + s.output), "state_bytes_per_sequence": state_bytes_per_sequence(arch), "kv_bound": kv_bound(arch),
            # As the cache is kept in this question: what a token adds, and what it adds once every window is full.
            "kv_written_bytes_per_token": memory.kv_bytes(arch, r.kv, 1) - memory.kv_bytes(arch, r.kv, 0),
            "kv_beyond_bytes_per_token": memory.kv_bytes(arch, r.kv, FULL + 1) - memory.kv_bytes(arch, r.kv, FULL),
            "weights_bytes": mem["weights_bytes"], "layers": arch.layer_count, "hidden": arch.hidden, "max_context": arch.max_context,
            "assumed": [{"field": f, "value": v, "source": w} for f, v, w in arch.assumed], "notes": list(arch.notes), "source": arch.source,
        },
        hardware={
            "id": chip.id, "name": chip.name, "devices": layout.devices, "peak_flops_per_s": dict(chip.peaks), "bandwidth_bytes_per_s": chip.bandwidth_bytes_per_s,
            "memory_bytes": chip.memory_bytes, "memory_type": chip.memory_type, "ridge_flops_per_byte": roof.ridge(peak, chip.bandwidth_bytes_per_s),
            "link_bytes_per_s": chip.link_bytes_per_s, "link": chip.link, "link_roof_bytes_per_s": roofs.link if isfinite(roofs.link) else None,
            "link_ridge_flops_per_byte": network_ridge(peak, roofs.link) if isfinite(roofs.link) else None,
            "network_bytes_per_s": roofs.network if isfinite(roofs.network) else None, "grade": chip.grade, "unverified": list(chip.unverified), "source": chip.source,
            "url": chip.url, "retrieved": chip.retrieved, "note": chip.note, "tdp_w": chip.tdp_w, "usd_per_hour": s.usd_per_hour if s.usd_per_hour is not None else chip.usd_per_hour,
            "price_source": chip.price_source,
        },
        layout={"tp": layout.tp, "pp": layout.pp, "ep": layout.ep, "dp": layout.dp, "devices": layout.devices},
        formats={
            "weights": _name(r.weights), "activations": r.activations.name, "kv": r.kv.name, "compute": r.compute, "compute_roof": chip.roof_of(r.compute)[0],
            "compute_peak_flops_per_s": peak, "bits_per_weight": 8 * mem["weights_bytes"] / max(1, parameters(arch)["total"]),
        },
        prefill=prefill, decode=decode, memory=mem, serving=serving,
        cost=money, energy=cost.energy(r, decode, serving["expected_tpot_s"] or serving["tpot_s"], prefill.expected_s or prefill.limit_s, serving["tokens_per_step"], serving["disaggregated"]),
        expectation=None if expectation is None else _plain(expectation),
    )


def _name(weights) -> str:
    return getattr(weights, "name", str(weights))


def _resolved(r: Resolved) -> dict:
    """What "auto" became, so that a Report can be read on its own."""
    return {"weights": _name(r.weights), "activations": r.activations.name, "kv": r.kv.name, "compute": r.compute,
            "devices": r.layout.devices, "tp": r.layout.tp, "pp": r.layout.pp, "ep": r.layout.ep, "dp": r.layout.dp}


def _money(r: Resolved, prefill: Phase, serving: dict) -> dict:
    """Cost at the limits, and the same at the expectations as expected_..."""
    s, pools = r.scenario, serving["disaggregated"]
    extra, likely, expected_s = {}, {}, prefill.expected_s
    if pools:
        # A price that was given is that of the scenario's chip; another chip costs what the catalogue says.
        same = pools["prefill_hardware"] == r.chip.id
        price = cost.hourly_price(s, r.chip)[0] if same else cost.hourly_price(s.replace(usd_per_hour=None, purchase_usd=None), load_chip(pools["prefill_hardware"]))[0]
        extra = {"prefill_usd_per_hour": None if price is None else price * pools["prefill_devices"], "prefill_tokens_per_s": pools["prefill_tokens_per_s"]}
        expected_s = pools["expected_prefill_share_s"]
        likely = extra | {"prefill_tokens_per_s": expected_s and (s.prompt - s.cached) / expected_s}
    cached_s = None
    if s.cached and prefill.limit_s:
        fresh = resolve(s.replace(cached=0, prompt=s.prompt - s.cached, prefill_hardware="", rate=None))
        alone = roof.limit_parts(operators_of(fresh, prefill_pass(fresh.scenario, r.layout)),
                                 roof.roofs_of(r.chip, r.layout, (r.compute, r.activations.compute, attention_format(r)), s.network, s.host), r.layout, r.layout.pp)
        cached_s = prefill.limit_s - roof.longest(alone)
    limit = cost.cost(r, prefill.limit_s, serving["tpot_s"], cached_s, **extra)
    expected = cost.cost(r, expected_s, serving["expected_tpot_s"], **likely)
    return limit | {"expected_" + k: v for k, v in expected.items() if k.startswith("usd_per_million") and k != "usd_per_million_output_api"}


def _warnings(r: Resolved) -> list:
    """Everything the reader should know before trusting the numbers."""
    found = []
    add = lambda code, text: found.append({"code": code, "text": text})
    s, arch, chip = r.scenario, r.arch, r.chip
    if arch.assumed:
        listed = ", ".join(f"{f} = {v}" for f, v, _ in arch.assumed[:8])
        add("assumed", f"The config leaves out {len(arch.assumed)} field{'s' if len(arch.assumed) > 1 else ''}; taken from the family's defaults: {listed}{' ...' if len(arch.assumed) > 8 else ''}.")
    if s.prefill_hardware and s.batch > 1:
        add("pools", "With a prefill pool of its own the time to first token is that of one prompt by itself and its transfer, not of the whole batch at once.")
    if s.prefill_devices and not s.prefill_hardware:
        add("pools", f"prefill_devices = {s.prefill_devices:,} has no effect: prefill_hardware names no chip for a pool of its own.")
    if s.chunk and not s.prefill_hardware:
        add("chunk", "Time to first token and time per token are those of prefill and decoding apart; what a step with a chunk of a prompt takes is told beside them.")
    if s.rate and s.prefill_hardware:
        add("arrivals", "Arrivals are worked out with prompts read on the same chips as the decoding; the separate prefill pool is left out there.")
    if s.draft and r.drafter is None:
        add("speculation", "Drafting is priced as one multi-token-prediction layer of the model's own shape plus its LM head; name a draft model to price that instead.")
    for note in arch.notes:
        if not (s.draft and r.drafter is None and "multi-token-prediction" in note):  # where the model drafts itself, that layer is counted
            add("model", note)
    if arch.max_context and s.prompt + s.output > arch.max_context:
        add("context", f"{s.prompt + s.output:,} tokens are more than the {arch.max_context:,} that {arch.name or arch.id} is made for.")
    if r.lacks:
        have = ", ".join(k for k, _ in chip.peaks)
        add("precision", f"{chip.name} has no {r.lacks.upper()} arithmetic (it has {have}), so no time is given; the nearest that runs is activations in {chip.roof_of(r.lacks)[0].upper()}.")
    else:
        used = chip.roof_of(r.compute)[0]
        if used != r.compute:
            add("roof", f"{chip.name} has no {r.compute.upper()} unit; it computes in {used.upper()}, at {format_quantity(chip.peak(used), 'FLOP/s')}.")
    low = [f for f in chip.unverified if f in ("bandwidth_gbs", "bf16", "fp16", "fp8", "fp4", "int8", "link_gbs", "memory_gb")]
    if chip.grade in ("D", "DOUBTFUL"):
        add("hardware", f"The figures of {chip.name} are estimates (grade {chip.grade}): {chip.source}.")
    elif low:
        add("hardware", f"Some figures of {chip.name} are less sure than the rest: {', '.join(low)}.")
    if s.usd_per_kwh and chip.tdp_w is None:
        add("cost", f"The power of {chip.name} is not known, so its electricity costs nothing here.")
    if s.usd_per_kwh and s.usd_per_hour is None and s.purchase_usd is None:
        add("cost", "Electricity is part of the price an hour; its own price counts only beside a price that you give, for an hour or to buy.")
    if s.imbalance > 1 and r.layout.ep == 1:
        add("imbalance", f"An imbalance of experts changes nothing with expert parallelism of 1: {'every chip cuts each expert alike' if r.layout.tp > 1 else 'each replica holds all experts itself'}.")
    if chip.memory_bytes is None:
        add("memory", f"The memory of {chip.name} depends on what is plugged in, so whether the model fits is not said; give it as memory.")
    together = r.layout.tp * r.layout.pp * (r.layout.pool if r.layout.ep > 1 else 1)
    fabric = fabric_of(chip, s.network)
    if together > fabric.domain and s.network is None:
        add("network", f"{together} chips are more than the {fabric.domain:.0f} that {chip.link or 'fast links'} join; beyond them {format_quantity(fabric.network_bytes_per_s, 'B/s')} a chip "
            f"was assumed ({fabric.network_source}); give another as network.")
    return found
