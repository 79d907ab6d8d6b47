"""What the engine says about a measured row: the least time physics allows and the time to expect.

Both are sums of passes of the model, so a row's workload is a tuple of `Term`s and a time is sum of weight x time of pass.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from . import calibration, memory, roof
from .operators import Pass
from .phase import attention_format, operators_of
from .rows import Case

# Share of memory that serving engines give to weights and cache (vLLM's gpu_memory_utilization, TensorRT-LLM's free_gpu_memory_fraction).
_MEMORY_SHARE = 0.9
# Most sequences that an engine runs together unless told otherwise.
_MAX_BATCH = {"vllm": 256, "vllm-tpu": 256, "sglang": 1024, "tensorrt-llm": 2048}
@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """weight x the time of one pass (or of Passes that share a step). rounds: the pieces a long prefill is cut into, each reading
    the weights again; bubble: the share of the serial time left by pipeline stages that work at once; requests: sequences that
    enter or leave the engine in this pass; decode: whether it is a decode step."""

    weight: float
    passes: object
    rounds: float = 1.0
    bubble: float = 1.0
    decode: bool = True


def chunk_of(engine: str) -> float:
    """Tokens that an engine runs through the model at once in prefill."""
    return calibration.PREFILL_CHUNKS.get(engine, calibration.PREFILL_CHUNK)


def _prefill(case: Case, sequences: float, weight: float = 1.0) -> Term:
    r, layout = case.resolved, case.resolved.layout
    tokens = sequences * case.prompt
    chunk = case.chunk or chunk_of(case.engine)
    rounds = max(1.0, tokens / chunk)
    bubble = 1.0
    if layout.pp > 1:
        # llama.cpp pipelines the micro-batches of one logical batch of 2,048 tokens, no more.
        pieces = min(rounds, 4.0) if case.engine == "llama.cpp" else rounds
        bubble = (pieces + layout.pp - 1) / (pieces * layout.pp)
    p = Pass(sequences=sequences, new_tokens=case.prompt, start=case.cached, pool=layout.pool)
    return Term(weight=weight, passes=p, rounds=rounds, bubble=bubble, decode=False)


def _step(case: Case, sequences: float, weight: float = 1.0, start: float | None = None, steps: float | None = None) -> Term:
    layout = case.resolved.layout
    split = min(layout.pp, sequences) if sequences > 1 else 1.0
    p = Pass(sequences=sequences / split, new_tokens=1.0, start=case.prompt + case.cached if start is None else start, steps=max(1.0, case.output if steps is None else steps), pool=layout.pool)
    return Term(weight=weight, passes=p)


def capacity(case: Case, held: float | None = None, share: float = _MEMORY_SHARE) -> float:
    """Sequences whose cache fits in one replica, each holding prompt + output tokens (engines reserve them) [sequences]."""
    r, layout = case.resolved, case.resolved.layout
    if r.chip.memory_bytes is None:
        return float("inf")
    group = layout.tp * layout.pp
    # A label's gigabyte is nearly always 2**30 bytes, less what ECC and the driver keep.
    room = 1.06 * r.chip.memory_bytes * group - memory.weights_per_device(r.arch, r.weights, layout) * group
    room = share * (room - memory.activation_bytes(r.arch, 1, memory.PREFILL_CHUNK, layout.tp))
    each = memory.kv_bytes(r.arch, r.kv, case.prompt + case.output if held is None else held, layout.tp)
    return max(1.0, math.floor(room / each)) if each > 0 else float("inf")


def running(case: Case) -> float:
    """Requests that run together in one replica: those in flight, or what memory and the engine's own limit allow [sequences]."""
    # MLPerf's submitters tune the limit.
    most = min(capacity(case), _MAX_BATCH.get(case.engine, 1024) if not case.batching.startswith("MLPerf") else 2048)
    return max(1.0, min(case.batch, capacity(case)) if case.batch else most)


def terms(case: Case) -> tuple:
    """The passes whose weighted times make the row's quantity, as expected of a real engine."""
    layout = case.resolved.layout
    if case.kind == "step":
        return (_step(case, case.batch),)
    if case.kind == "prefill":
        return (_prefill(case, case.batch),)
    if case.kind == "request":
        steps = max(case.output - 1, 0)
        return (_prefill(case, case.batch), *((_step(case, case.batch, steps, steps=steps),) if steps else ()))
    if case.kind == "first":
        return (_prefill(case, 1.0),)
    batch = running(case)
    # One prompt's share of a full prefill pass: engines pack prompts up to the chunk.
    together = max(1.0, min(chunk_of(case.engine) / max(case.prompt, 1.0), batch))
    entering = _prefill(case, together)
    # In a stream every pipeline stage is busy with some request.
    entering = replace(entering, bubble=1.0 / layout.pp)
    prompt_weight = entering.weight / together
    if case.kind == "tpot":
        # While a request takes its steps, each of the others comes round once and its prompt is run in between.
        others = max(batch - 1, 0.0) / max(case.output, 1.0)
        return (_step(case, batch), Term(weight=prompt_weight * others, passes=entering.passes, rounds=entering.rounds, bubble=entering.bubble, decode=False))
    if case.kind == "stream":
        replicas = layout.dp
        return (_step(case, batch, 1.0 / batch / replicas),
                Term(weight=prompt_weight / max(case.output, 1.0) / replicas, passes=entering.passes, rounds=entering.rounds, bubble=entering.bubble, decode=False))
    # drain: all prompts, then as many waves of decode steps as the running batch needs.
    waves = max(1.0, case.batch / batch)
    return (Term(weight=prompt_weight * case.batch, passes=entering.passes, rounds=entering.rounds, bubble=entering.bubble, decode=False),
            _step(case, batch, case.output * waves))


# ---- the expectation -------------------------------------------------------------------------------------------------


def scaled(ops, scale: float):
    """The operators with the weights of a file that is `scale` times as large as the format says."""
    if abs(scale - 1.0) < 1e-9:
        return ops
    return [replace(op, weight_bytes=op.weight_bytes * scale) if op.tokens and op.group != "attention_core" else op for op in ops]


def expected(case: Case) -> tuple:
    """(expected, low, high) seconds of the row's quantity [s]; low and high bracket the 10th to 90th percentile of measurements."""
    r = case.resolved
    release = calibration.release_of(case.engine, case.version) if case.engine != "any" else ""
    e = calibration.efficiency(case.engine, release, r.chip, calibration.wire_of(r.chip, r.layout))
    roofs = roof.roofs_of(r.chip, r.layout, (r.compute, r.activations.compute, attention_format(r)), r.scenario.network)
    total = 0.0
    for term in terms(case):
        ops = scaled(operators_of(r, term.passes), case.scale)
        total += term.weight * term.bubble * calibration.expected_time(ops, roofs, r.layout, e, term.passes, term.rounds)
    if case.kind == "first":
        total = total * (1.0 + e.queue * max((case.batch or 1.0) - 1.0, 0.0) / 2.0) + e.first_s
    if case.cold:
        total = total + e.first_s
    low, high, _ = calibration.band(calibration.GROUPS[case.kind], case.engine, calibration.family_of(r.chip))
    return total, total * low, total * high


# ---- the limit -----------------------------------------------------------------------------------------------------


def fastest_roofs(case: Case) -> roof.Roofs:
    """The roofs of the row's chips at the highest rate the engine could use: FP16 accumulation where it is faster, and half the
    ring's traffic, since a switch that adds (NVLink SHARP) halves it."""
    r = case.floor
    roofs = roof.roofs_of(r.chip, r.layout, (r.compute, r.activations.compute, attention_format(r)), r.scenario.network)
    peaks = {name: max(peak, r.chip.fast_peak(name)) for name, peak in roofs.peaks.items()}
    return roof.Roofs(peaks=peaks, bandwidth=roofs.bandwidth, link=2.0 * roofs.link, host=roofs.host)


def _least(case: Case, roofs, p, stages: int = 1) -> tuple:
    """(compute, memory, network) seconds of one pass at its limit."""
    compute, moved, network, _ = roof.limit_parts(operators_of(case.floor, p), roofs, case.floor.layout)
    return compute / stages, moved, network


def limit(case: Case) -> float:
    """The least time physics allows for the row's quantity [s].

    Least routing, the smallest cache format the row allows, every request decoding at once, nothing but the largest roof.
    In a service the parts are summed over a request before the largest is taken, since passes of different requests overlap.
    """
    r, layout = case.floor, case.floor.layout
    roofs = fastest_roofs(case)
    stored = min(1.0, case.scale)
    if stored < 1.0:
        roofs = roof.Roofs(peaks=roofs.peaks, bandwidth=roofs.bandwidth / stored, link=roofs.link, host=roofs.host)
    prompt, cached = case.least_prompt, case.cached
    fill = lambda n: Pass(sequences=n, new_tokens=prompt, start=cached, pool=layout.pool)
    step = lambda n, steps: Pass(sequences=n, new_tokens=1.0, start=prompt + cached, steps=max(1.0, steps), pool=layout.pool)
    if case.kind == "prefill":
        return max(_least(case, roofs, fill(case.batch), layout.pp))
    if case.kind == "first":
        return max(_least(case, roofs, fill(1.0), layout.pp))
    if case.kind in ("step", "request"):
        share = case.batch / min(layout.pp, case.batch)
        steps = case.output if case.kind == "step" else max(case.output - 1, 0)
        one = max(_least(case, roofs, step(share, steps)))
        return one if case.kind == "step" else max(_least(case, roofs, fill(case.batch), layout.pp)) + steps * one
    # A service: no sequence holds less than its prompt (in a closed loop, its output besides), and the whole memory may hold cache.
    room = _room(case)
    if case.kind == "tpot":
        return max(_least(case, roofs, step(max(1.0, min(case.batch, room)), case.output)))
    chips = layout.devices
    batch = max(1.0, min(case.batch * layout.dp if case.batch else float("inf"), room * layout.dp, 1e6))
    compute, moved, network = (a / batch for a in _pooled(case, roofs, step(batch, case.output), chips))
    fill_compute = _pooled(case, roofs, fill(1.0), chips)[0] / max(case.output, 1.0)
    each = max(compute + fill_compute, moved)
    if case.kind == "stream":
        return each
    return each * case.output * case.batch * layout.dp


def _room(case: Case) -> float:
    """Most sequences of one replica, at the smallest cache each can have [sequences]."""
    r, layout = case.floor, case.floor.layout
    if r.chip.memory_bytes is None:
        return float("inf")
    group = layout.tp * layout.pp
    # The label's gigabytes are at least 1e9 bytes and up to 2**30.
    room = 1.08 * r.chip.memory_bytes * group - memory.weights_per_device(r.arch, r.weights, layout) * group
    each = memory.kv_bytes(r.arch, r.kv, case.least_prompt + (case.output if case.kind == "tpot" else 1.0))
    return max(1.0, room / each)


def _pooled(case: Case, roofs, p, chips: int) -> tuple:
    """(compute, memory, network) with everything divided over all chips, whatever the layout [s]."""
    ops = [op for op in operators_of(case.floor, p) if op.group != "collective"]
    compute = sum(op.flops / roofs.peaks[op.roof] for op in ops if op.roof != "vector")
    moved = sum(op.weight_bytes + op.kv_read_bytes + op.kv_write_bytes for op in ops)
    return compute / chips, moved / roofs.bandwidth / chips, 0.0
