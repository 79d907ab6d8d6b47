"""One phase of a Report: its totals, its operators, its bound, its least and expected time."""

from __future__ import annotations

from dataclasses import dataclass, replace

from . import calibration, memory, roof
from .hardware import COMPUTE_BITS
from .numeric import any_true, maximum, minimum
from .operators import Pass, forward
from .parallel import collectives
from .scenario import Resolved


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorRow:
    """One operator of a phase: the total over its `count` identical layers. limit_s [s] is what physics allows; share is its part of the phase.

    latency_s: what the messages of a collective cost in one pass besides their bytes, in neither limit_s nor the limit of the phase.
    """

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
    latency_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """Prefill (all prompts of the batch) or decode (one step at the average context of the output), of one replica.

    link_intensity_flops_per_byte: FLOPs of one chip for each byte it sends, to hold against the ridge of the link roof; None if it sends none.
    """

    flops: float
    bytes: dict
    link_bytes: float
    link_intensity_flops_per_byte: float | None
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


def attention_format(r: Resolved) -> str:
    """Attention runs in 8 bits only where both its inputs are: the activations and the cache."""
    a, k = r.activations.compute, r.kv.compute
    return a if COMPUTE_BITS[a] <= 8 and k == a else "bf16"


def operators_of(r: Resolved, p, arch=None, weights=None) -> tuple:
    """The operators of one pass of a resolved scenario (or of its draft model), collectives included."""
    s, arch = r.scenario, arch or r.arch
    in_bytes = r.activations.bits / 8
    ops = forward(arch, p, weights=weights or r.weights, activation_bytes=in_bytes, kv=r.kv, compute=r.compute if weights is None else "bf16",
                  attention_compute=attention_format(r), skew=s.routing, fused=s.fused, imbalance=s.imbalance, offload=s.offload, offload_kv=s.offload_kv,
                  sequence_parallel=s.sequence_parallel, ranks=r.layout.ep)
    if any_true(r.layout.devices > 1):
        ops += collectives(arch, p, r.layout, in_bytes, r.fabric, s.imbalance)
    return ops


def prefill_pass(s, layout) -> Pass:
    """All prompts of the batch, less what is cached. s: a Scenario, or anything with its batch, prompt and cached; all may be arrays."""
    return Pass(sequences=1.0 * s.batch, new_tokens=1.0 * (s.prompt - s.cached), start=1.0 * s.cached, pool=layout.pool)


def decode_pass(s, layout, fed: int = 1) -> Pass:
    """One decode step of one micro-batch: each pipeline stage works on its share of the batch. fed: tokens per sequence (a verify step feeds draft + 1)."""
    return Pass(sequences=s.batch / minimum(layout.pp, s.batch), new_tokens=1.0 * fed, start=1.0 * s.prompt, steps=1.0 * maximum(s.output - 1, 1),
                sampled=1.0 * fed, pool=layout.pool)


def times(r: Resolved, p, roofs: roof.Roofs, e=None, stages=1) -> tuple:
    """(parts at the limit, limit, expected or None) of one pass [s]: the times of `phase` without its table; everything broadcasts.

    p: a Pass, or a tuple of Passes of one kind that share the step.
    """
    ops = operators_of(r, p)
    parts = roof.limit_parts(ops, roofs, r.layout, stages)
    limit = roof.longest(parts)
    if e is None:
        return parts, limit, None
    whole = p if isinstance(p, Pass) else replace(p[0], sequences=sum(q.sequences for q in p))
    return parts, limit, settled(limit, calibration.expected_time(ops, roofs, r.layout, e, whole, calibration.rounds_of(e, whole)), whole.tokens, stages)


def settled(limit_s, serial_s, tokens, stages):
    """The expected time of a pass from that of its operators one after another: pipelined, and never under the limit [s]."""
    return maximum(limit_s, serial_s * bubble(tokens, stages))


def bound_of(compute: float, mem: float, network: float, host: float = 0.0) -> str:
    """Which roof takes longest; the host link counts as network."""
    network = max(network, host)
    if network > compute and network > mem:
        return "network"
    return "compute" if compute > mem else "memory"


def told_bound(bound: str | None, parts: dict | None) -> str | None:
    """The roof that a reader is told: the bound of a phase, with the link to host memory by its own name.

    >>> told_bound("network", {"network": 0.0, "host": 0.5}), told_bound("memory", None)
    ('host', 'memory')
    """
    return "host" if bound == "network" and parts and parts["host"] > parts["network"] else bound


def phase(r: Resolved, p: Pass, *, roofs: roof.Roofs, timed: bool, e, rounds: int = 1, stages: int = 1, context: float) -> Phase:
    """One phase of one replica.

    rounds: micro-batches that make the batch (decode over a pipeline); stages: pipeline stages that work on chunks of it at
    once (prefill). timed: False leaves the times out. e: the Efficiency to expect, or None.
    """
    tp = r.layout.tp
    ops = operators_of(r, p)
    sums, weights, kv_read, kv_write, activations, link, flops = [0.0] * 4, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    spans = []
    for op in ops:
        c, m, n, h = roof.op_parts(op, roofs, tp, stages)
        sums[0] += c
        sums[1] += m
        sums[2] += n
        sums[3] += h
        spans.append((c, m, n, h))
        weights += op.weight_bytes
        kv_read += op.kv_read_bytes
        kv_write += op.kv_write_bytes
        activations += op.activation_bytes
        link += op.link_bytes
        flops += op.flops
    limit = roof.longest(sums)
    rounds_each = calibration.rounds_of(e, p) if e is not None else 1.0
    expected_ops = [calibration.op_expected(op, roofs, tp, e, rounds_each) for op in ops] if e is not None and timed else None
    expected = None
    if expected_ops is not None:
        busy = sum(expected_ops)
        expected = settled(limit, busy + calibration.overhead(e, p, rounds_each), p.tokens, stages)
        low, high = (e.low, e.high) if p.decodes else (e.prefill_low, e.prefill_high)
    total = busy if expected_ops is not None else sum(max(span) for span in spans)
    rows = []
    for op, span, took in zip(ops, spans, expected_ops or spans, strict=True):
        least = max(span)
        moved = op.bytes
        rows.append(OperatorRow(
            name=op.name, group=op.group, count=op.count, flops=op.flops * rounds, bytes=moved * rounds,
            intensity_flops_per_byte=op.flops / moved if moved else None, bound=bound_of(*span) if least else "memory",
            limit_s=least if timed else None, expected_s=took if expected_ops is not None else None,
            share=((took if expected_ops is not None else least) / total) if total else 0.0,
            roof=op.roof, weight_bytes=op.weight_bytes * rounds, kv_bytes=(op.kv_read_bytes + op.kv_write_bytes) * rounds,
            activation_bytes=op.activation_bytes * rounds, link_bytes=op.link_bytes * rounds, latency_s=op.latency_s,
        ))
    moved = weights + kv_read + kv_write + activations
    return Phase(
        flops=flops * rounds,
        bytes={"weights": weights * rounds, "kv_read": kv_read * rounds, "kv_write": kv_write * rounds, "activations": activations * rounds, "total": moved * rounds},
        link_bytes=link * rounds, link_intensity_flops_per_byte=flops / tp / link if link else None, intensity_flops_per_byte=flops / moved, bound=bound_of(*sums), limit_s=limit if timed else None,
        limit_parts_s=dict(zip(roof.PARTS, sums, strict=True)) if timed else None,
        expected_s=expected, expected_low_s=None if expected is None else max(limit, expected * low), expected_high_s=None if expected is None else max(limit, expected * high),
        attainable_flops_per_s=min(flops / (tp * stages) / limit, roofs.peaks[r.compute]), compute_utilisation=sums[0] / limit if timed else None,
        bandwidth_utilisation=sums[1] / limit if timed else None, roof=r.compute, context=context, tokens=p.tokens * rounds, operators=tuple(rows),
    )


def bubble(tokens, stages):
    """Share of the serial time that a pipeline of `stages` needs for `tokens` tokens in chunks: (n + stages - 1) / (n x stages).

    >>> bubble(8192 * 4, 4)
    0.4375
    """
    chunks = maximum(1.0, tokens / memory.PREFILL_CHUNK)
    return (chunks + stages - 1) / (chunks * stages)
