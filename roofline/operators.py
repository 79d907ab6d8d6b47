"""FLOPs and bytes of one forward pass, operator by operator.

Everything is per replica (one copy of the model, however many chips it is spread over); `parallel` says how many chips share
each part. FLOP counts a multiply-add as 2. All sizes broadcast: batch, prompt, context and the rest may be NumPy arrays.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from . import formats
from .model import Architecture, Attention, Recurrent
from .numeric import any_true, minimum, where

# Reads and writes of one element in the parts that are not matrix products [per element of the residual stream].
# A norm reads its input and writes its output; a residual add reads two and writes one.
_NORM_PASSES, _NORM_FLOPS = 2, 4
_RESIDUAL_PASSES, _RESIDUAL_FLOPS = 3, 1
_SCORE_PASSES = 4  # unfused attention: scores written, read by the softmax, probabilities written, read again


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """One kind of operator: the total over its `count` identical layers, for one pass of one replica.

    flops [FLOP]; weight, kv_read, kv_write, activation [bytes]; link [bytes each chip sends]; messages: how many collectives.
    roof: the compute format it runs in ("vector" for element-by-element work, which the matrix units do not do).
    """

    name: str
    group: str
    count: int
    roof: str
    flops: float = 0.0
    weight_bytes: float = 0.0
    kv_read_bytes: float = 0.0
    kv_write_bytes: float = 0.0
    activation_bytes: float = 0.0
    link_bytes: float = 0.0
    messages: float = 0.0
    spared_bytes: float = 0.0  # of the link bytes inside a domain, those that the best kernels need not send: no limit counts them
    network_bytes: float = 0.0  # of the link bytes, those that leave the domain of the fast links
    link_share: float = 1.0  # part of the layout's link roof that this collective can use (its group may reach fewer links)
    latency_s: float = 0.0  # what its messages cost besides their bytes (data/links.toml), for expectations
    host_bytes: float = 0.0  # of the weight and KV bytes, those that come over the host link instead of from the chip's memory
    load: float = 1.0  # the busiest chip's share over the mean (unbalanced experts)
    read_load: float = 1.0  # the same of its weight bytes: more tokens on a rank read more of its experts, but never more than it has
    kv_shards: float = 1.0  # chips that can share the KV cache of this operator (its KV heads)
    replicated: bool = False  # every tensor-parallel rank does it whole (norms, residuals)
    tokens: float = 0.0  # rows fed to one matrix (for experts: to one expert that is reached; for attention: queries that share a KV head)
    reach: float = 1.0  # experts read over the experts that one token uses
    inner: int = 0  # the length of its dot products (input features)

    @property
    def bytes(self):
        """Traffic of weights, KV cache and activations [bytes]."""
        return self.weight_bytes + self.kv_read_bytes + self.kv_write_bytes + self.activation_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """What one pass feeds the model.

    sequences: B; new_tokens: q, per sequence; start: tokens cached before the (first) pass; steps: 0 for a single pass
    (prefill), else the pass is the average over `steps` decode steps whose context grows by one each time.
    sampled: tokens per sequence that need logits. pool: replicas whose tokens share one set of experts (EP beyond TP).
    """

    sequences: float
    new_tokens: float
    start: float = 0
    steps: float = 0
    sampled: float = 1
    pool: float = 1

    @property
    def tokens(self):
        return self.sequences * self.new_tokens

    @property
    def decodes(self) -> bool:
        """Whether it is a decode step; an array of passes is all of one kind."""
        return any_true(self.steps > 0)


def totals(p) -> tuple:
    """(the passes of a step as a tuple, their tokens in all, their sampled tokens in all)."""
    passes = p if isinstance(p, tuple) else (p,)
    tokens, sampled = passes[0].tokens, passes[0].sequences * passes[0].sampled
    for q in passes[1:]:
        tokens, sampled = tokens + q.tokens, sampled + q.sequences * q.sampled
    return passes, tokens, sampled


def visible_pairs(n, window: int | None = None, chunked: bool = False):
    """Sum over tokens i = 1..n of the keys that token i sees (itself included) [pairs].

    Causal: n(n+1)/2. Sliding window W: the first W tokens see 1..W, the rest W each. Chunked (Llama 4): each block of W
    starts anew. Prefill of S tokens after P cached ones is visible_pairs(P + S) - visible_pairs(P).

    >>> visible_pairs(8192)
    33558528.0
    >>> visible_pairs(10, window=4)
    34.0
    >>> visible_pairs(10, window=4, chunked=True)
    23.0
    """
    if window is None:
        return n * (n + 1) / 2
    if chunked:
        blocks = n // window
        rest = n - blocks * window
        return blocks * (window * (window + 1) / 2) + rest * (rest + 1) / 2
    head = minimum(n, window)
    return head * (head + 1) / 2 + (n - head) * window


def mean_visible(start, steps, window: int | None = None, chunked: bool = False):
    """Average keys seen by one token in decode steps at contexts start+1 .. start+steps [tokens].

    >>> mean_visible(1024, 256)
    1152.5
    """
    return (visible_pairs(start + steps, window, chunked) - visible_pairs(start, window, chunked)) / steps


def distinct_experts(experts: int, active: int, tokens, skew: float = 0.0):
    """Expected experts that a layer reads for `tokens` tokens [experts].

    Uniform routing: E (1 - (1 - k/E)^T), exactly k at T = 1. skew moves linearly from uniform (0) to "all tokens pick the
    same k experts" (1), the least that can be read.

    >>> round(distinct_experts(256, 8, 32), 1)
    163.3
    """
    uniform = experts * (1.0 - (1.0 - active / experts) ** tokens)
    return uniform * (1.0 - skew) + active * skew


@lru_cache(maxsize=512)
def _plan(arch: Architecture, weights) -> tuple:
    """(matrix tensors as plain tuples, elements of the vectors read per pass, their bytes): what a pass needs of every tensor."""
    rows, vector_bytes = [], {}
    for t, stored in zip(arch.tensors, formats.weight_bytes(arch, weights), strict=True):
        if t.group == "vision" or t.kind in ("table", "idle"):
            continue
        if t.kind == "vector":
            # Experts' biases are few; they are read with the layer, whichever experts are picked.
            vector_bytes[t.group] = vector_bytes.get(t.group, 0) + stored
        else:
            bits = 8 * stored / t.parameters
            rows.append((t.name, t.group, t.count, t.rows, t.cols, t.copies, t.active, t.elements * t.active * t.count * t.uses, stored * t.uses, bits < 15.5))
    if arch.tied:
        # The table is stored once (as embedding) and streamed once (as LM head); what is stored for it may be quantised.
        table, stored = next((t, b) for t, b in zip(arch.tensors, formats.weight_bytes(arch, weights), strict=True) if t.group == "embedding" and t.kind == "table")
        rows.append(("lm_head (tied)", "lm_head", 1, table.rows, table.cols, 1, 1, table.elements, stored, 8 * stored / table.parameters < 15.5))
    norms = [t for t in arch.tensors if t.group == "norm" and t.kind == "vector" and t.rows == arch.hidden]
    return tuple(rows), vector_bytes, sum(t.count for t in norms)


@lru_cache(maxsize=256)
def _blocks(arch: Architecture) -> tuple:
    """(mixer layers, feed-forward layers): each adds one residual and, under tensor parallelism, one all-reduce."""
    mixers = {layer for part in (*arch.attentions, *arch.recurrents) for layer in part.layers}
    mlps = {layer for t in arch.tensors if t.kind == "linear" and t.group in ("mlp", "experts", "shared_experts") for layer in t.layers}
    return len(mixers), len(mlps)


def block_count(arch: Architecture) -> int:
    """Residual blocks of the whole model: attention or recurrent parts plus feed-forward parts."""
    return sum(_blocks(arch))


@lru_cache(maxsize=256)
def routed_layers(arch: Architecture) -> tuple:
    """(layers with routed experts, experts a token uses in one of them)."""
    tensors = [t for t in arch.tensors if t.group == "experts" and t.kind == "linear"]
    layers = {layer for t in tensors for layer in t.layers}
    return len(layers), max((t.active for t in tensors), default=0)


def forward(arch: Architecture, p, *, weights, activation_bytes: float = 2.0, kv, compute: str, attention_compute: str = "bf16",
            skew: float = 0.0, fused: bool = True, imbalance: float = 1.0, offload: float = 0.0, offload_kv: float = 0.0,
            sequence_parallel: bool = False, ranks=1) -> tuple:
    """The operators of one pass.

    arch; p: a Pass, or a tuple of Passes that share one step (a chunk of prefill with the decodes of others); weights: a Format (or published quantisation); activation_bytes [bytes/element] of a quantised
    matrix product's input (its output is 16-bit); kv: the cache's Format; compute: the roof quantised products run at, others
    at 16 bits; skew: expert routing (see `distinct_experts`); fused: FlashAttention-like attention; imbalance: tokens of the
    busiest expert rank over the mean (of no effect where `ranks` is 1); offload, offload_kv: share of the routed experts' weights (of all matrices in a dense model)
    and of the cache that stays in host memory; sequence_parallel: norms and residuals are split over the ranks too; ranks: chips that share one set of experts.
    Returns a tuple of Operator.

    Linear: 2 x tokens x rows x cols FLOPs; its weights are read once a pass. Source: design reference, section 2;
    Kaplan et al. 2020 (arXiv:2001.08361), table 1.
    """
    linear, vector_bytes, norm_layers = _plan(arch, weights)
    passes, tokens, sampled = totals(p)
    pool, moe = passes[0].pool, arch.is_moe
    uneven = where(ranks > 1, imbalance, 1.0)  # tensor parallelism cuts every expert alike, so no rank has more to do
    ops = []
    for name, group, count, rows, cols, copies, active, active_elements, stored, quantised in linear:
        fed = sampled if group == "lm_head" else tokens
        share, load, read_load = 1.0, 1.0, 1.0
        if copies > 1:
            share = distinct_experts(copies, active, fed * pool, skew) / (copies * pool)
            if group == "experts" and any_true(uneven > 1):
                load, read_load = uneven, distinct_experts(copies, active, fed * pool * uneven, skew) / (share * copies * pool)
        in_bytes = activation_bytes if quantised else 2.0
        read = stored * share
        ops.append(Operator(
            name=name, group=group, count=count, roof=compute if quantised else "bf16", flops=2.0 * fed * active_elements,
            weight_bytes=read, host_bytes=read * offload if group == "experts" or not moe else 0.0,
            tokens=fed * active / (share * copies) if copies > 1 else fed, reach=share * copies / active, inner=cols,
            load=load, read_load=read_load, activation_bytes=fed * count * active * (cols * in_bytes + rows * 2.0),
        ))
    for q in passes:
        ops.extend(cores(arch, q, kv, attention_compute, fused, offload_kv))
    width = tokens * float(arch.hidden)
    small = sum(vector_bytes.values())
    ops.append(Operator(name="norms and biases", group="norm", count=max(1, norm_layers), roof="vector", flops=_NORM_FLOPS * width * norm_layers,
                        weight_bytes=float(small), activation_bytes=2.0 * _NORM_PASSES * width * norm_layers, replicated=not sequence_parallel))
    blocks = block_count(arch)
    ops.append(Operator(name="residual adds", group="elementwise", count=blocks, roof="vector", flops=_RESIDUAL_FLOPS * width * blocks,
                        activation_bytes=2.0 * _RESIDUAL_PASSES * width * blocks, replicated=not sequence_parallel))
    # The embedding is a gather: one row a token, never the table.
    ops.append(Operator(name="embedding gather", group="embedding", count=1, roof="vector", activation_bytes=4.0 * width, replicated=True))
    return tuple(ops)


def cores(arch: Architecture, p: Pass, kv, roof: str = "bf16", fused: bool = True, offload: float = 0.0) -> list:
    """The operators of one pass that read caches and states: attention, its indexers, and recurrent scans. Arguments as in `forward`."""
    return [op for a in arch.attentions for op in _attention(a, p, kv, roof, fused, offload)] + [_scan(r, p) for r in arch.recurrents]


def _scan(r: Recurrent, p: Pass) -> Operator:
    """A recurrent layer part: its state is read (unless the sequence starts here) and written once a pass, whatever the length."""
    state = float(r.state_bytes * r.count) * p.sequences
    fresh = 1.0 if p.decodes else where(p.start == 0, 0.0, 1.0)
    return Operator(name=f"{r.kind} scan", group="recurrent", count=r.count, roof="bf16", flops=float(r.flops_per_token) * r.count * p.tokens,
                    kv_read_bytes=state * fresh, kv_write_bytes=state, kv_shards=float("inf"))


def _attention(a: Attention, p: Pass, kv, roof: str, fused: bool, offload: float = 0.0):
    """Scores and values of one kind of attention layer: (FLOPs 2 x heads x (qk + v) x pairs; KV read and written)."""
    if a.kind == "cross":
        return ()  # it attends to an image, and a text pass has none
    decode = p.decodes
    window = a.window if a.topk is None else (min(a.window, a.topk) if a.window else a.topk)
    element = formats.kv_bytes_per_element(kv, a.cached_vector)
    n, stored = a.count, (a.kv_elements or a.reads_elements)
    if decode:
        seen = mean_visible(p.start, p.steps, window, a.chunked) / a.compress
        pairs = seen * p.new_tokens
        qk, v = a.decode_qk_dim or a.qk_dim, a.decode_v_dim or a.v_dim
        read = seen * stored
        touched = p.new_tokens * (qk + v) * a.heads
    else:
        pairs = (visible_pairs(p.start + p.new_tokens, window, a.chunked) - visible_pairs(p.start, window, a.chunked)) / a.compress
        qk, v = a.qk_dim, a.v_dim
        # Of what is cached, a window's tokens are seen; of blocks (Llama 4) those of the block that the new tokens start in.
        read = (p.start - p.start // a.window * a.window if a.chunked else minimum(p.start, window or p.start)) / a.compress * stored
        # Fused: Q in, O out, and the new K and V once.
        touched = p.new_tokens * ((qk + v) * a.heads + stored)
    scores = 0.0 if fused else _SCORE_PASSES * 2.0 * pairs * a.heads
    written = minimum(p.new_tokens, a.window or p.new_tokens) * a.kv_elements / a.compress
    ops = [Operator(
        name=f"{a.kind} attention", group="attention_core", count=n, roof=roof, flops=2.0 * a.heads * (qk + v) * pairs * p.sequences * n, tokens=p.new_tokens * a.heads / a.kv_heads, inner=qk,
        kv_read_bytes=read * element * p.sequences * n, kv_write_bytes=written * element * p.sequences * n,
        activation_bytes=(2.0 * touched + scores) * p.sequences * n, host_bytes=read * element * p.sequences * n * offload,
        kv_shards=float(a.kv_heads),
    )]
    if a.index_heads:
        every = (mean_visible(p.start, p.steps) * p.new_tokens if decode else visible_pairs(p.start + p.new_tokens) - visible_pairs(p.start)) / a.compress
        cached = mean_visible(p.start, p.steps) if decode else p.start
        ops.append(Operator(
            name="sparse attention indexer", group="attention_core", count=n, roof=roof, flops=2.0 * a.index_heads * a.index_dim * every * p.sequences * n,
            kv_read_bytes=cached * a.index_elements * element * p.sequences * n, kv_write_bytes=p.new_tokens * a.index_elements * element * p.sequences * n,
            activation_bytes=2.0 * p.new_tokens * a.index_heads * a.index_dim * p.sequences * n, kv_shards=1.0,
        ))
    return ops
