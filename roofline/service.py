"""The `serving` part of a Report: what a user and the whole deployment get, and what queues, drafts and pools change."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from . import calibration, memory, roof, serving
from .fabric import fabric_of
from .model import Architecture
from .numeric import maximum
from .operators import Pass, forward
from .phase import Phase, attention_format, decode_pass, operators_of, phase, times
from .scenario import Resolved, Scenario

TIMES = ("ttft_s", "tpot_s", "tokens_per_s_per_user", "tokens_per_s", "tokens_per_s_per_device", "requests_per_s")


@lru_cache(maxsize=256)
def mtp_share(arch: Architecture) -> float:
    """Cost of one drafting step of a multi-token-prediction layer, as a share of a decode step of the whole model.

    One decoder layer in `layer_count` of what the layers stream, plus the LM head: (layers / n + head) / (layers + head).
    """
    head = sum(t.active_parameters for t in arch.tensors if t.group in ("lm_head",)) or sum(t.parameters for t in arch.tensors if arch.tied and t.kind == "table")
    body = sum(t.active_parameters for t in arch.tensors if t.kind == "linear" and t.group not in ("lm_head", "vision"))
    return (body / arch.layer_count + head) / (body + head)


def draft_seconds(r: Resolved, p: Pass, roofs: roof.Roofs, plain_s: float):
    """Least time of one drafting step [s]: the draft model's own step, or the MTP layer's share of the model's."""
    if r.drafter is None:
        return plain_s * mtp_share(r.arch)
    return roof.longest(roof.limit_parts(draft_operators(r, p), roofs, r.layout))


def drafting_expected(r: Resolved, p: Pass, roofs: roof.Roofs, e, draft_s, stretch):
    """Time of one drafting step to expect [s]: a draft model's own, whose many small kernels cost it what they cost any small model;
    an MTP layer's is that of a layer of the model, so it stretches as the model's step does."""
    if r.drafter is None:
        return draft_s * stretch
    return maximum(draft_s, calibration.expected_time(draft_operators(r, p), roofs, r.layout, e, p, calibration.rounds_of(e, p)))


def draft_operators(r: Resolved, p: Pass) -> tuple:
    """The operators of one step of the draft model."""
    weights = r.drafter.quantization or _bf16()
    return forward(r.drafter, p, weights=weights, kv=r.kv, compute="bf16", attention_compute=attention_format(r), fused=r.scenario.fused)


def _bf16():
    from . import formats
    return formats.parse("bf16")


def token_seconds(step_s, drafting_s, tokens):
    """Time per output token: (step + drafting before it) / tokens it yields, all at the limit or all as expected [s]."""
    return (step_s + drafting_s) / tokens


def line(s: Scenario, layout, ttft, tpot, apart: bool = False) -> dict:
    """The six figures from a TTFT and a TPOT [s]; all None if either is.

    tokens/s per user = 1 / TPOT; in all = replicas x batch / TPOT (output tokens, while decoding); requests/s = replicas x batch /
    (TTFT + (output - 1) x TPOT). apart: prefill has chips of its own, so a request holds its place in the batch for output x TPOT alone.
    """
    if ttft is None or tpot is None:
        return dict.fromkeys(TIMES)
    total = layout.dp * s.batch / tpot
    stay = s.output * tpot if apart else ttft + (s.output - 1) * tpot
    return dict(zip(TIMES, (ttft, tpot, 1 / tpot, total, total / layout.devices, layout.dp * s.batch / stay), strict=True))


def serve(r: Resolved, prefill: Phase, decode: Phase, plain_limit_s, roofs: roof.Roofs, e, max_batch) -> dict:
    """The whole `serving` part. plain_limit_s: a decode step without speculation [s]; e: the Efficiency to expect, or None. Times are None where the phases have none."""
    s, layout = r.scenario, r.layout
    result = {}
    tokens, drafted, drafted_expected = 1.0, 0.0, 0.0
    if s.draft:
        tokens = float(serving.accepted_tokens(s.acceptance, s.draft))
        if decode.limit_s is not None:
            one = decode_pass(s, layout)
            each = draft_seconds(r, one, roofs, plain_limit_s)
            drafted = each * s.draft
            if decode.expected_s is not None:
                drafted_expected = drafting_expected(r, one, roofs, e, each, decode.expected_s / decode.limit_s) * s.draft
    limit = None if decode.limit_s is None else token_seconds(decode.limit_s, drafted, tokens)
    expected = None if decode.expected_s is None else token_seconds(decode.expected_s, drafted_expected, tokens)
    ttft, expected_ttft = prefill.limit_s, prefill.expected_s
    pools = None
    if s.prefill_hardware and limit is not None:
        pools = _pools(r, limit)
        ttft, expected_ttft = pools["ttft_s"], pools["expected_ttft_s"]
    result |= line(s, layout, ttft, limit, pools is not None)
    result |= {"expected_" + k: v for k, v in line(s, layout, expected_ttft, expected, pools is not None).items()}
    result["tokens_per_step"] = tokens
    result["speculation"] = None
    if s.draft and limit is not None:
        plain = None if expected is None else times(r, decode_pass(s, layout), roofs, e)[2]
        result["speculation"] = {
            "tokens_per_step": tokens, "draft_s": drafted, "verify_s": decode.limit_s, "plain_tpot_s": plain_limit_s, "speedup": plain_limit_s / limit,
            "expected_draft_s": None if expected is None else drafted_expected, "expected_verify_s": decode.expected_s, "expected_plain_tpot_s": plain,
            "expected_speedup": None if expected is None else plain / expected,
        }
    result["disaggregated"] = pools
    result["mixed_step"] = _mixed(r, roofs) if s.chunk and limit is not None else None
    result["arrivals"] = _arrivals(r, roofs, e, max_batch, tokens) if s.rate and limit is not None else None
    return result


def _mixed(r: Resolved, roofs: roof.Roofs) -> dict:
    """A step that carries a chunk of one prompt and the decodes of the batch; TTFT is then chunks x step."""
    piece, decodes, chunk, steps = mixed_passes(r)
    both = roof.limit_parts(operators_of(r, (piece, decodes)), roofs, r.layout)
    alone = roof.limit_parts(operators_of(r, decodes), roofs, r.layout)
    pure = roof.limit_parts(operators_of(r, piece), roofs, r.layout)
    return {"chunk": chunk, "step_s": max(both), "bound": max(zip(both, roof.PARTS, strict=True))[1], "decode_only_step_s": max(alone), "chunk_only_step_s": max(pure),
            "saved_s": max(alone) + max(pure) - max(both), "steps_per_prompt": steps, "ttft_s": steps * max(both), "tpot_while_prefilling_s": max(both)}


def mixed_passes(r: Resolved) -> tuple:
    """(a chunk of one prompt, the decodes it rides with: Passes; tokens of the chunk, chunks of a prompt)."""
    s = r.scenario
    new = s.prompt - s.cached
    chunk = min(s.chunk, new)
    # Over a prompt the chunk sees on average the first half of it.
    piece = Pass(sequences=1.0, new_tokens=float(chunk), start=float(s.cached + max(0, new - chunk) / 2), sampled=chunk / new, pool=r.layout.pool)
    return piece, decode_pass(s, r.layout, s.draft + 1), chunk, -(-new // chunk)


def _arrivals(r: Resolved, roofs: roof.Roofs, e, max_batch, tokens: float) -> dict:
    """Random arrivals at `rate`: where the running batch settles, how busy the engine is and how long requests queue (an estimate).

    At the limits, and as `expected` at what an engine reaches (None without an expectation). A prefill pool of its own is left out.
    """
    s, layout = r.scenario, r.layout
    read, step, ceiling = arriving(r, roofs, e, max_batch, tokens)
    found = [None if p is None else serving.queue(s.rate / layout.dp, p, lambda batch, which=i: step(batch)[which], ceiling, s.output) for i, p in enumerate(read)]
    for state in filter(None, found):
        state["capacity_per_s"] *= layout.dp
    return {"rate_per_s": s.rate, "max_batch": ceiling, "basis": "an estimate at the limits: random arrivals, equal requests, prompts first and read together where several wait (M/D/1), and a wait for a place where the batch is full"} | found[0] | {"expected": found[1]}


def arriving(r: Resolved, roofs: roof.Roofs, e, max_batch, tokens: float) -> tuple:
    """What requests that arrive meet in a replica, each at the limit and as expected (None without an expectation e).

    (what prompts take: `serving.Prompts` of both; step(batch) -> time per token of a running batch, of both [s]; places in the batch).
    tokens: what a decode step yields to a request.
    """
    s, layout = r.scenario, r.layout

    @lru_cache(maxsize=None)
    def step(batch):
        batch = max(1.0, batch)  # however idle the service is, a step that runs holds a request
        p = Pass(sequences=batch / max(1.0, min(layout.pp, batch)), new_tokens=float(s.draft + 1), start=float(s.prompt), steps=float(max(s.output - 1, 1)), sampled=float(s.draft + 1),
                 pool=layout.pool)
        _, limit, expected = times(r, p, roofs, e)
        drafted = drafted_expected = 0.0
        if s.draft:
            single = replace(p, new_tokens=1.0, sampled=1.0)
            each = draft_seconds(r, single, roofs, 0.0 if r.drafter else times(r, single, roofs)[1])
            drafted = s.draft * each
            if expected is not None:
                drafted_expected = s.draft * drafting_expected(r, single, roofs, e, each, expected / limit)
        return token_seconds(limit, drafted, tokens), None if expected is None else token_seconds(expected, drafted_expected, tokens)

    # Pipeline stages work on pieces of a prompt, and on a micro-batch each, at once.
    one = Pass(sequences=1.0, new_tokens=float(s.prompt - s.cached), start=float(s.cached), pool=layout.pool)
    most = together(s)
    alone, crowd = (times(r, replace(one, sequences=n), roofs, e, layout.pp)[1:] for n in (1.0, most))
    read = [None if t is None else serving.Prompts(alone_s=t, share_s=c / most, most=most) for t, c in zip(alone, crowd, strict=True)]
    return read, step, max_batch or s.batch


def lone_prefill(q: Resolved, s, roofs: roof.Roofs):
    """Least time of one prompt of `s` on the prefill instance `q` under its roofs [s]; both may hold arrays."""
    one = Pass(sequences=1.0, new_tokens=1.0 * (s.prompt - s.cached), start=1.0 * s.cached)
    return roof.longest(roof.limit_parts(operators_of(q, one), roofs, q.layout))


def together(s):
    """Prompts that a prefill instance reads in one pass, as many as a pass of an engine takes: max(1, 8,192 / its new tokens); s as in `lone_prefill`."""
    return maximum(1.0, memory.PREFILL_CHUNK // (1.0 * (s.prompt - s.cached)))


def prefill_share(q: Resolved, s, roofs: roof.Roofs):
    """Least time of an instance's that a prompt takes where `together` of them are read at once: the weights are read once for all [s]; arguments as in `lone_prefill`."""
    count = together(s)
    group = Pass(sequences=count, new_tokens=1.0 * (s.prompt - s.cached), start=1.0 * s.cached)
    return roof.longest(roof.limit_parts(operators_of(q, group), roofs, q.layout)) / count


def pool_wire(prefill_chip, decode_chip, network: float | None) -> float:
    """Bandwidth that one chip's cache crosses to the decode pool [bytes/s]: the given one, else the narrower of what the two have beyond their domains; infinite if unknown."""
    # The cache leaves every chip of the prefill instance at once. Pools stand on servers of their own, so it crosses the network, not the links inside one.
    return network or min(x for x in (fabric_of(prefill_chip).network_bytes_per_s, fabric_of(decode_chip).network_bytes_per_s, float("inf")) if x)


def pool_figures(prefill_s, tpot_s, batch, output, decode_devices, prefill_devices) -> tuple:
    """(prefill instances per decode instance, chips of both, output tokens/s per chip) of two pools that keep each other busy.

    prefill_s: an instance's time for one prompt, see `prefill_share` [s]; decode_devices, prefill_devices: chips of one instance. Chips = decode + ratio x prefill.
    """
    ratio = serving.pool_ratio(prefill_s, tpot_s, batch, output)
    devices = decode_devices + ratio * prefill_devices
    return ratio, devices, batch / tpot_s / devices


def prefill_side(r: Resolved) -> Resolved:
    """The same question on one instance of the scenario's prefill pool, for one prompt."""
    from .scenario import resolve
    s = r.scenario
    return resolve(s.replace(hardware=s.prefill_hardware, devices=s.prefill_devices or r.layout.tp, tp=None, pp=None, dp=None, ep=None, prefill_hardware="", draft=0, rate=None, batch=1,
                             peak=None, bandwidth=None, memory=None, link=None))


def _pools(r: Resolved, tpot_s: float) -> dict:
    """Prefill on chips of its own: its time for one prompt, the KV transfer, and how many instances keep this decode instance fed.

    TTFT is that of a prompt read by itself; what an instance gets through, and so its number, price and energy, is that of prompts read together.
    """
    s, q = r.scenario, prefill_side(r)
    roofs = roof.roofs_of(q.chip, q.layout, (q.compute, q.activations.compute, attention_format(q)), s.network, s.host)
    prefill_s = lone_prefill(q, s, roofs)
    fits = memory.footprint(q.arch, q.weights, q.kv, batch=1, prompt=s.prompt, output=1, layout=q.layout, memory_bytes=q.chip.memory_bytes, utilisation=s.utilisation)["fits"]
    size = memory.kv_bytes(r.arch, r.kv, s.prompt)
    wire = pool_wire(q.chip, r.chip, s.network)
    lanes = min(q.layout.tp, r.layout.tp)
    transfer_s = serving.link_time(size, wire * lanes)
    timed = fits is not False and not q.lacks
    e = calibration.expectation(q)
    expected = phase(q, Pass(sequences=1.0, new_tokens=float(s.prompt - s.cached), start=float(s.cached)), roofs=roofs, timed=timed, e=e, stages=q.layout.pp, context=s.prompt)
    share_s, count = prefill_share(q, s, roofs), together(s)
    group = times(q, Pass(sequences=count, new_tokens=float(s.prompt - s.cached), start=float(s.cached)), roofs, e, q.layout.pp)[2] if timed else None
    ratio, devices, per_device = pool_figures(share_s, tpot_s, s.batch, s.output, r.layout.devices / r.layout.dp, q.layout.devices)
    likely = expected.expected_s if timed else None
    return {"prefill_hardware": q.chip.id, "prefill_devices": q.layout.devices, "prefill_s": prefill_s, "expected_prefill_s": likely, "prompts_together": count, "prefill_share_s": share_s, "expected_prefill_share_s": None if group is None else group / count, "prefill_watts": q.chip.tdp_w and q.chip.tdp_w * q.layout.devices, "prefill_fits": fits, "kv_transfer_bytes": size,
            "transfer_s": transfer_s, "transfer_hidden_s": serving.link_time(size / r.arch.layer_count, wire * lanes),
            "ttft_s": prefill_s + transfer_s if timed else None, "expected_ttft_s": likely + transfer_s if likely else None, "prefill_instances_per_decode": ratio, "decode_instances_per_prefill": 1 / ratio,
            "devices_per_decode_instance": devices, "tokens_per_s_per_device": per_device, "prefill_tokens_per_s": (s.prompt - s.cached) / share_s}
