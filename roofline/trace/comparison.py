"""A trace beside the analytic operators of the same config, line by line; every difference is named, or left open.

A line is one operator of the analytic engine (or several, where the checkpoint stores their weights as one tensor). For each quantity
traced = analytic + the named differences + what stays open; an explanation counts only if its own formula gives the difference exactly.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from .. import formats
from ..model import Architecture
from ..operators import Pass, forward, visible_pairs
from .data import Trace, union_bytes

QUANTITIES = ("flops", "weight_bytes", "activation_bytes", "kv_read_bytes", "kv_write_bytes")
CORE, INDEXER, SCAN, VECTORS, EMBED, ROTARY = (
    "attention core",
    "sparse attention indexer",
    "recurrent scan",
    "norms and biases",
    "embedding gather",
    "rotary angles",
)
ELEMENT = 2  # bytes of a BF16 element, which both sides use

# The names of differences; docs/traces.md explains each.
SQUARE = "every key for every query, then masked"
EXPANDED = "latent expanded again, not absorbed"
ALGORITHM = "another algorithm for the scan"
DENSE = "every expert for every token"
GATHERED = "weights of each token's experts read again"
CHOSEN = "biases of the chosen experts only"
FUSED = "one product for several matrices"
COPIED = "cache grown by copying it"
REPEATED = "keys repeated for each query head in the cache"
MASKED = "mask or bias on the scores read from memory"
ANGLES = "rotary angles by a matrix product"
WIDER = "router in FP32"
SKIPPED = "layers that read another layer's cache run on the last token only"
WEIGHED = "index heads weighed by a matrix product"
DIFFERENCES = (SQUARE, EXPANDED, SKIPPED, WEIGHED, ALGORITHM, DENSE, GATHERED, CHOSEN, FUSED, COPIED, REPEATED, MASKED, ANGLES, WIDER)


@dataclass(slots=True, kw_only=True)
class Line:
    """One line of the comparison. traced, analytic: {quantity: value}; differences: {quantity: [(name, amount)]}."""

    name: str
    group: str
    traced: dict = field(default_factory=lambda: dict.fromkeys(QUANTITIES, 0))
    analytic: dict = field(default_factory=lambda: dict.fromkeys(QUANTITIES, 0.0))
    differences: dict = field(default_factory=lambda: {q: [] for q in QUANTITIES})

    def open(self, quantity: str) -> float:
        """What is left once the named differences are taken off."""
        rest = self.traced[quantity] - self.analytic[quantity] - sum(amount for _, amount in self.differences[quantity])
        return 0.0 if abs(rest) <= 1e-9 * abs(self.traced[quantity]) else rest

    def explain(self, quantity: str, *explanations) -> None:
        """Take the first explanation (a list of (name, amount) pairs) whose amounts together give the difference exactly."""
        gap = self.traced[quantity] - self.analytic[quantity]
        for explanation in explanations:
            parts = [(name, amount) for name, amount in explanation if amount]
            if parts and abs(gap - sum(amount for _, amount in parts)) <= 1e-9 * max(abs(gap), abs(self.traced[quantity])):
                self.differences[quantity] = parts
                return


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """All lines of one phase. `named` lists the differences met, {name: FLOPs or bytes}, per quantity."""

    phase: str
    lines: tuple

    def total(self, quantity: str) -> dict:
        """{"traced", "analytic", "named": {name: amount}, "open"} over all lines."""
        named: dict = {}
        for line in self.lines:
            for name, amount in line.differences[quantity]:
                named[name] = named.get(name, 0) + amount
        return {
            "traced": sum(x.traced[quantity] for x in self.lines),
            "analytic": sum(x.analytic[quantity] for x in self.lines),
            "named": named,
            "open": sum(abs(x.open(quantity)) for x in self.lines),
        }

    def to_dict(self) -> dict:
        return {
            "phase": self.phase,
            "totals": {q: self.total(q) for q in QUANTITIES},
            "lines": [
                {
                    "name": x.name,
                    "group": x.group,
                    "traced": x.traced,
                    "analytic": x.analytic,
                    "open": {q: x.open(q) for q in QUANTITIES},
                    "differences": {q: [{"name": n, "amount": a} for n, a in rows] for q, rows in x.differences.items() if rows},
                }
                for x in self.lines
            ],
        }


def tail(path: str) -> str:
    """The checkpoint name of a parameter without layer and ".weight", as the analytic operators are named.

    >>> tail("model.layers.3.mlp.experts.7.w1.weight"), tail("lm_head.weight")
    ('mlp.experts.w1', 'lm_head')
    """
    parts = path.removesuffix(".weight").split(".")
    first = next((i for i, p in enumerate(parts) if p.isdigit()), None)
    if first is None:
        return parts[-1]
    return ".".join(p for p in parts[first + 1 :] if not p.isdigit())


def _group(path: str) -> str:
    """The group a weight most likely belongs to, by its name; used only where no analytic operator has that name."""
    name = tail(path)
    if re.search(r"lm_head|embed_out|output_layer", name):
        return "lm_head"
    if "shared_expert" in name:
        return "shared_experts"
    if "expert" in name:
        return "experts"
    if re.search(r"(^|\.)(gate|router|wg)(\.|$)", name):
        return "router"
    if re.search(r"linear_attn|mamba|ssm|conv|time_mix", name):
        return "recurrent"
    if re.search(r"attn|attention", name):
        return "attention_projection"
    return "mlp" if re.search(r"mlp|feed_forward|ffn|fc\d|dense", name) else "other"


def compare(trace: Trace, arch: Architecture, p: Pass) -> Comparison:
    """Set a trace of a BF16 Hugging Face model beside `operators.forward` of the same config.

    p: the pass that was traced: Pass(sequences=B, new_tokens=S) for prefill, Pass(sequences=B, new_tokens=1, start=S, steps=1) for decode.
    """
    bf16 = formats.parse("bf16")
    operators = forward(arch, p, weights=bf16, kv=bf16, compute="bf16")
    lines, names = _analytic_lines(operators)
    _add_trace(trace, lines, names, arch)
    for line in lines.values():
        _explain(line, arch, p, operators)
    return Comparison(phase=trace.phase, lines=tuple(x for x in lines.values() if any(x.traced.values()) or any(x.analytic.values())))


def _analytic_lines(operators) -> tuple:
    """({line name: Line}, {operator name: line name}); attention cores fall together, as do scans."""
    lines, names = {}, {}
    for op in operators:
        if op.group == "elementwise":
            continue  # residual adds: no weights, no matrix FLOPs
        name = {"norm": VECTORS, "embedding": EMBED}.get(op.group, op.name)
        if op.group == "attention_core" and "indexer" not in op.name:
            name = CORE
        elif op.group == "recurrent" and op.name.endswith(" scan"):
            name = SCAN
        line = lines.setdefault(name, Line(name=name, group=op.group))
        names[op.name] = name
        line.analytic["flops"] += op.flops if op.roof != "vector" else 0.0
        for q in ("weight_bytes", "kv_read_bytes", "kv_write_bytes"):
            line.analytic[q] += getattr(op, q)
        if op.group not in ("norm", "embedding"):
            line.analytic["activation_bytes"] += op.activation_bytes
    return lines, names


def _add_trace(trace: Trace, lines: dict, names: dict, arch: Architecture) -> None:
    """Give every matrix product, and every byte of a weight, its line."""
    softmax = {op.module for op in trace.ops if op.short in ("_softmax", "_safe_softmax") or op.kind == "attention"}
    tables = {op.parameter for op in trace.ops if op.short == "embedding"}
    where: dict = {}  # parameter path -> line name
    strangers: dict = {}
    for op in trace.ops:
        if op.flops and op.parameter and "conv" not in op.short and op.parameter not in where:
            key = tail(op.parameter)
            if key in names:
                where[op.parameter] = names[key]
            elif "lm_head (tied)" in names and op.parameter in tables:
                where[op.parameter] = names["lm_head (tied)"]
            else:
                strangers.setdefault(_group(op.parameter), {}).setdefault(key, []).append(op.parameter)
    taken = set(where.values())
    for keys in (
        k for g, k in strangers.items() if g not in ("experts", "shared_experts", "router")
    ):  # the same name elsewhere in the layer ("forget_gate.f_a_proj")
        for key in list(keys):
            alike = [x.name for x in lines.values() if x.name.rsplit(".", 1)[-1] == key.rsplit(".", 1)[-1] and x.name not in taken]
            if len(alike) == 1:
                where |= dict.fromkeys(keys.pop(key), alike[0])
    for group, keys in ((g, k) for g, k in strangers.items() if k):
        # One tensor where the checkpoint has several, or another name: all that is left of the group on both sides is one line.
        left = [x for x in lines.values() if x.group == group and x.name not in where.values() and x.name not in (SCAN, CORE)]
        name = left[0].name if len(left) == 1 else f"{group} ({' + '.join(x.name.rsplit('.', 1)[-1] for x in left) or ' + '.join(keys)})"
        joined = lines.setdefault(name, Line(name=name, group=group))
        for x in left:
            if x is not joined:
                for q in QUANTITIES:
                    joined.analytic[q] += x.analytic[q]
                del lines[x.name]
        where |= {path: name for paths in keys.values() for path in paths}
    line = lambda name, group: lines.setdefault(name, Line(name=name, group=group))
    for op in trace.ops:
        if op.kind == "view":
            continue
        product = op.flops and op.parameter in where
        target = lines[where[op.parameter]] if product else None
        if op.flops and target is None:
            if op.module in softmax:
                target = line(CORE, "attention_core")
            elif "indexer" in op.module:
                target = line(INDEXER, "attention_core")
            elif "rotary" in op.module or "rope" in op.module:
                target = line(ROTARY, "elementwise")
            else:
                target = line(SCAN, "recurrent")
        if target is not None:
            target.traced["flops"] += op.flops
            if product:
                own = [r for r in (*op.reads, *op.writes) if trace.roles.get(r.buffer) not in ("parameter", "derived")]
                target.traced["activation_bytes"] += union_bytes(own, trace.capacity)
        for r in op.reads:
            if trace.roles.get(r.buffer) != "parameter":
                continue
            path = trace.names[r.buffer]
            if op.short == "embedding":
                continue  # a row of a table for each token, never the table
            if path in where:
                if op.flops or op.kind in ("gather", "copy"):
                    lines[where[path]].traced["weight_bytes"] += r.size
            else:
                line(VECTORS, "norm").traced["weight_bytes"] += r.size
    _add_kv(trace, softmax, line(CORE, "attention_core") if softmax else None)


def _add_kv(trace: Trace, softmax: set, core: Line | None) -> None:
    """Cache traffic: what attention kernels read of buffers that outlive the run, and everything written to them."""
    if core is None:
        return
    masks = 0
    for kernel in trace.kernels("attention"):
        attends = any(op.module in softmax and op.flops and not op.parameter for op in kernel.ops)
        if not attends:
            continue
        made = {w.buffer for op in kernel.ops for w in op.writes}
        outside = [r for op in kernel.ops for r in op.reads if r.buffer not in made]
        cached = [r for r in outside if r.buffer in trace.kept]
        core.traced["kv_read_bytes"] += union_bytes(cached, trace.capacity)
        core.traced["activation_bytes"] += kernel.bytes - kernel.parameter_bytes - union_bytes(cached, trace.capacity)
        masks += _mask_bytes(trace, kernel, made)
    core.differences["mask"] = [(MASKED, masks)]
    for op in trace.ops:
        if op.module in softmax and op.kind != "view" and not op.dtype.startswith("int"):  # a cache also keeps its own counters
            core.traced["kv_write_bytes"] += sum(w.size for w in op.writes if w.buffer in trace.kept)


def _mask_bytes(trace: Trace, kernel, made: set) -> int:
    """Bytes of what a score kernel adds to or selects its scores by, made elsewhere."""
    scores = {op.outputs[0][-2:] for op in kernel.ops if op.kind in ("reduction", "matmul") and op.outputs}
    found = []
    for op in kernel.ops:
        if op.kind == "pointwise":
            found += [r for r, shape in zip(op.reads, op.inputs, strict=False) if r.buffer not in made and shape[-2:] in scores]
        elif op.kind == "attention" and len(op.reads) > 3:
            found.append(op.reads[3])
        elif op.short == "baddbmm" and op.reads[0].buffer not in made:
            found.append(op.reads[0])
    return union_bytes(found, trace.capacity)


# ---- explanations: each amount has its own formula -----------------------------------------------------------------


def _explain(line: Line, arch: Architecture, p: Pass, operators) -> None:
    """Name the differences of one line."""
    tokens, decode = p.sequences * p.new_tokens, p.steps > 0
    if line.name == CORE:
        _explain_core(line, [a for a in arch.attentions if a.kind != "cross"], p)
    elif line.name in (SCAN, INDEXER):
        if line.name == INDEXER:
            _explain_indexer(line, [a for a in arch.attentions if a.index_heads], p)
        elif line.traced["flops"] != line.analytic["flops"]:
            line.differences["flops"] = [(ALGORITHM, line.traced["flops"] - line.analytic["flops"])]
        for q in ("activation_bytes", "kv_read_bytes", "kv_write_bytes"):  # the reference's many small steps have nothing to be held against
            line.traced[q] = line.analytic[q] = 0.0
    elif line.name == ROTARY:
        line.explain("flops", [(ANGLES, line.traced["flops"])])
    elif line.name == VECTORS:
        few = sum(
            t.rows * t.count * ELEMENT * (min(tokens * t.active, t.copies) - t.copies) for t in arch.tensors if t.kind == "vector" and t.copies > 1
        )
        line.explain("weight_bytes", [(CHOSEN, few)])
    elif line.name.endswith("kv_b_proj") and decode:
        for q in ("flops", "activation_bytes"):
            line.explain(q, [(EXPANDED, line.analytic[q] / p.new_tokens * p.start)])
    elif line.group == "router":
        for q in ("weight_bytes", "activation_bytes"):
            line.explain(q, [(WIDER, line.analytic[q])])
        line.explain("activation_bytes", [(WIDER, line.traced["activation_bytes"] - line.analytic["activation_bytes"])])
    elif not decode and line.group not in ("experts", "lm_head"):
        for q, each in (("flops", lambda t: 2.0 * t.elements), ("activation_bytes", lambda t: ELEMENT * (t.rows + t.cols))):
            here = [(t, len(_shared(arch).intersection(t.layers))) for t in arch.tensors if t.name == line.name]
            line.explain(q, [(SKIPPED, -p.sequences * (p.new_tokens - 1) * sum(each(t) * t.active * n for t, n in here))])
    elif line.group == "experts":
        _explain_experts(line, [t for t in arch.tensors if t.group == "experts" and t.kind == "linear"], tokens, operators)


def _shared(arch: Architecture) -> set:
    """The layers that keep no cache of their own but read another layer's."""
    return {layer for a in arch.attentions if a.reads_elements and not a.kv_elements for layer in a.layers}


def _explain_experts(line: Line, tensors: list, tokens, operators) -> None:
    share = line.analytic["weight_bytes"] / (sum(o.weight_bytes for o in operators if o.group == "experts") or 1)
    mine = [t for t in tensors if share > 1 - 1e-9 or line.name.endswith(t.name) or t.name.rsplit(".", 1)[-1] in line.name]
    active, copies = tensors[0].active, tensors[0].copies
    each = sum(t.elements * t.count for t in mine) * ELEMENT
    line.explain("flops", [(DENSE, line.analytic["flops"] * (copies / active - 1))])
    line.explain(
        "weight_bytes",
        [(GATHERED, min(tokens * active, copies) * each - line.analytic["weight_bytes"])],
        [(DENSE, copies * each - line.analytic["weight_bytes"])],
    )
    # Gate and up in one product read their input once.
    inputs = [t for t in mine if t.cols == mine[0].cols]
    once = -sum(t.cols * t.count for t in inputs[1:]) * tokens * active * ELEMENT
    line.explain(
        "activation_bytes",
        [(FUSED, once)],
        [(DENSE, line.analytic["activation_bytes"] * (copies / active - 1))],
        [(FUSED, once * copies / active), (DENSE, line.analytic["activation_bytes"] * (copies / active - 1))],
    )


def _explain_indexer(line: Line, attentions: list, p: Pass) -> None:
    """The indexer scores every cached token; the reference scores the future ones too, and weighs its heads by one more product."""
    seen = p.start + p.new_tokens
    pairs = seen * p.new_tokens
    square = weighed = 0.0
    for a in attentions:
        unit = 2.0 * a.index_heads * a.count * p.sequences
        square += unit * a.index_dim * (pairs - (seen if p.steps else visible_pairs(seen)))
        weighed += unit * pairs
    line.explain("flops", [(SQUARE, square), (WEIGHED, weighed)], [(SQUARE, square)])


def _explain_core(line: Line, attentions: list, p: Pass) -> None:
    """The attention core: the reference masks instead of skipping, expands latents, copies its cache to grow it."""
    masks, decode, seen = line.differences.pop("mask", []), p.steps > 0, p.start + p.new_tokens
    square = expanded = wide = repeated = skipped = 0.0
    latent = any(a.decode_qk_dim for a in attentions)  # multi-head latent attention
    for a in attentions:
        layers = a.count * p.sequences
        held = min(seen, a.window or seen)
        repeated += ELEMENT * layers * held * (max(a.reference_elements, a.kv_elements) - a.kv_elements)
        if decode:
            d_qk, d_v = a.decode_qk_dim or a.qk_dim, a.decode_v_dim or a.v_dim
            expanded += 2.0 * a.heads * layers * held * (a.qk_dim + a.v_dim - d_qk - d_v)
            if a.decode_qk_dim:  # keys and values of all heads are in memory, for every cached token
                wide += ELEMENT * layers * a.heads * ((a.qk_dim + a.v_dim) * (p.new_tokens + seen) - p.new_tokens * (d_qk + d_v))
        else:
            window = a.window if a.topk is None else min(a.window or a.topk, a.topk)
            pairs = visible_pairs(seen, window, a.chunked) / a.compress
            square += 2.0 * a.heads * layers * (a.qk_dim + a.v_dim) * (seen * p.new_tokens - pairs)
            if a.reads_elements and not a.kv_elements:
                skipped -= 2.0 * a.heads * layers * (a.qk_dim + a.v_dim) * seen * (p.new_tokens - 1)
            if a.decode_qk_dim:
                wide += ELEMENT * layers * p.new_tokens * (a.heads * (a.qk_dim + a.v_dim) - a.kv_elements)
    line.explain("flops", [(SQUARE, square), (EXPANDED, expanded)], [(SQUARE, square), (SKIPPED, skipped)])
    if not decode:
        # The analytic core reads the new keys and values once, as activations; the traced kernel reads them from the cache it has just made.
        line.traced["activation_bytes"] += line.traced["kv_read_bytes"]
        line.traced["kv_read_bytes"] = 0
        line.explain("activation_bytes", masks, [*masks, (EXPANDED, wide)], [*masks, (REPEATED, repeated)])
        line.explain("kv_write_bytes", [(REPEATED, repeated)])
        return
    line.explain("activation_bytes", masks, [*masks, (EXPANDED, wide)])
    line.explain("kv_read_bytes", [(REPEATED, repeated)], [(EXPANDED, -line.analytic["kv_read_bytes"])] if latent else [])
    grown = [(REPEATED, repeated)] if repeated else []
    line.explain("kv_write_bytes", [(COPIED, line.analytic["kv_read_bytes"] - line.analytic["kv_write_bytes"]), *grown])
