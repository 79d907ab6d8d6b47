"""Where the answer changes: the batch at which an operator turns, the context at which the cache outweighs the weights, the batch at which speculation stops paying."""

from __future__ import annotations

from dataclasses import replace

from . import formats, formulas, roof
from .operators import Pass, cores, distinct_experts
from .phase import attention_format, decode_pass, operators_of
from .scenario import Resolved
from .service import draft_seconds
from .serving import accepted_tokens



def roofs_for(r: Resolved) -> roof.Roofs:
    """The roofs a resolved scenario meets."""
    s = r.scenario
    return roof.roofs_of(r.chip, r.layout, (r.compute, r.activations.compute, attention_format(r)), s.network, s.host)


def at_batch(r: Resolved, batch: float, fed: int = 1, **changes) -> tuple:
    """The operators of one decode step of one micro-batch when a replica holds `batch` sequences: batch / pp of them, at least one. changes: Scenario fields, such as routing."""
    s = r.scenario.replace(**changes) if changes else r.scenario
    shaped = Pass(sequences=batch / min(r.layout.pp, batch), new_tokens=float(fed), start=float(s.prompt), steps=float(max(s.output - 1, 1)), sampled=float(fed), pool=r.layout.pool)
    return operators_of(replace(r, scenario=s) if changes else r, shaped)


def flip_points(r: Resolved) -> dict:
    """Where the answer changes, for a resolved scenario.

    operators: the requests of one replica at which each matrix turns compute-bound. A weight of b bytes does 2 FLOPs a token, so
    T* = ridge x b / 2 tokens a step (`formulas.critical_batch`); routed experts see k/E of the tokens of all replicas that share
    them; a verify step feeds draft + 1 tokens a request, and each of pp stages works on a micro-batch of batch / pp. Attention's
    intensity does not depend on the batch, so it never turns.
    The LM head is there once, tied to the embedding or not.
    kv_passes_weights_context: the context at which the cache a chip reads in a step outweighs the weights it reads [tokens].
    speculation_pays_from_batch, speculation_stops_paying_batch: drafting 4 tokens (or the scenario's own) beats plain decoding
    between the two, drafts paid for; None: it never does, and there is no end.
    """
    s, layout = r.scenario, r.layout
    roofs = roofs_for(r)
    per_request = (s.draft + 1.0) / layout.pp
    rows = []
    table = next((t for t in r.arch.tensors if t.kind == "table" and t.group == "embedding"), None) if r.arch.tied else None
    for t, stored in zip(r.arch.tensors, formats.weight_bytes(r.arch, r.weights), strict=True):
        head = t is table
        if t.kind != "linear" and not head or t.group == "vision":
            continue
        each = stored / t.parameters
        peak = roofs.peaks[r.compute if 8 * each < 15.5 else "bf16"]
        spread = t.copies / max(1, t.active)
        tokens = formulas.critical_batch(peak, roofs.bandwidth, each, spread)
        rows.append({"name": "lm_head (tied)" if head else t.name, "group": "lm_head" if head else t.group, "batch": tokens / per_request / (layout.pool if t.copies > 1 else 1)})
    starts, stops = speculation_range(r, roofs)
    return {"operators": sorted(rows, key=lambda row: row["batch"]), "kv_passes_weights_context": kv_context(r),
            "speculation_pays_from_batch": starts, "speculation_stops_paying_batch": stops, "distinct_experts": placement(r)}


def kv_context(r: Resolved):
    """The context at which one step reads more cache (and state) than weights on a chip [tokens], or None if it never does.

    Solves the sum over attention cores of batch x what one token at that context reads / min(tp, KV heads) = weights(batch) / tp. What is
    read is not what is held: a window or a top-k limits it, and a layer without a cache of its own reads another's.
    """
    s, tp = r.scenario, r.layout.tp
    weights = sum(op.weight_bytes / (1 if op.replicated else tp) for op in operators_of(r, decode_pass(s, r.layout)))
    batch = s.batch / min(r.layout.pp, s.batch)
    at = lambda context: cores(r.arch, Pass(sequences=batch, new_tokens=1.0, start=context - 1.0, steps=1.0), r.kv)
    read = lambda context: sum(op.kv_read_bytes / min(tp, op.kv_shards) for op in at(context))
    if read(1.0) >= weights:
        return 1.0
    low, high = 1.0, 2.0
    while read(high) < weights:
        low, high = high, high * 2
        if high > 1e12:
            return None
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if read(middle) < weights else (low, middle)
    return high


def speculation_range(r: Resolved, roofs: roof.Roofs) -> tuple:
    """(smallest batch at which speculation pays, smallest above it at which it no longer does), None for never.

    A verify step of g + 1 tokens and g drafting steps against the plain step: (verify + g x draft) / accepted tokens < plain.
    A mixture of experts may need a batch to start with, since at batch 1 each further token reads further experts.
    """
    s = r.scenario
    g = s.draft or 4
    tokens = float(accepted_tokens(s.acceptance, g))

    def pays(batch):
        plain = roof.longest(roof.limit_parts(at_batch(r, float(batch)), roofs, r.layout))
        verify = roof.longest(roof.limit_parts(at_batch(r, float(batch), g + 1), roofs, r.layout))
        one = Pass(sequences=batch / min(r.layout.pp, batch), new_tokens=1.0, start=float(s.prompt), steps=float(max(s.output - 1, 1)), pool=r.layout.pool)
        return (verify + g * draft_seconds(r, one, roofs, plain)) / tokens < plain

    steps = [2 ** i for i in range(21)]
    first = next((i for i, batch in enumerate(steps) if pays(batch)), None)
    if first is None:
        return None, None
    starts = 1 if first == 0 else _edge(steps[first - 1], steps[first], pays)
    last = next((i for i in range(first + 1, len(steps)) if not pays(steps[i])), None)
    return starts, None if last is None else _edge(steps[last - 1], steps[last], lambda batch: not pays(batch))


def _edge(low: int, high: int, holds) -> int:
    """The smallest batch above `low` at which `holds`, given that it does at `high` and not at `low`."""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def placement(r: Resolved):
    """A mixture of experts under the roof: distinct experts against the batch, and the decode step as it is beside the ideal one.

    None for a dense model. experts, active; for each batch: uniform, routing (the scenario's own skew) and least distinct experts
    a layer; intensity [FLOP/byte] and attainable [FLOP/s] of a decode step that reads the experts of the scenario's routing
    (`actual`) and of one that reads only those a single token uses (`ideal`), which is what its active parameters promise.
    """
    experts = [t for t in r.arch.tensors if t.group == "experts" and t.kind == "linear"]
    if not experts:
        return None
    total, active = experts[0].copies, experts[0].active
    roofs, batches, pool = roofs_for(r), [2 ** i for i in range(13)], r.layout.pool
    tokens = [b / min(r.layout.pp, b) * pool for b in batches]
    points = {"actual": [], "ideal": []}
    for name, changes in (("actual", {}), ("ideal", {"routing": 1.0})):
        for batch in batches:
            ops = at_batch(r, float(batch), **changes)
            flops, moved = sum(op.flops for op in ops), sum(op.bytes for op in ops)
            least = roof.longest(roof.limit_parts(ops, roofs, r.layout))
            points[name].append({"intensity_flops_per_byte": flops / moved, "attainable_flops_per_s": flops / r.layout.tp / least, "weight_bytes": sum(op.weight_bytes for op in ops)})
    return {"experts": total, "active": active, "batch": batches, "uniform": [distinct_experts(total, active, n) for n in tokens],
            "routing": [distinct_experts(total, active, n, r.scenario.routing) for n in tokens], "least": [float(active)] * len(batches), **points}
