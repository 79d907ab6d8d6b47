"""What a deployment keeps in memory, what fits, and the largest batch and context that do."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from . import formats
from .model import Architecture, state_bytes_per_sequence
from .numeric import ceil, maximum, minimum
from .parallel import Layout

# Tokens that an engine runs through the model at once in prefill; longer prompts go in chunks (vLLM's max_num_batched_tokens is 8,192 for serving).
PREFILL_CHUNK = 8192


@lru_cache(maxsize=512)
def weight_split(arch: Architecture, weights) -> tuple:
    """(bytes of routed experts, bytes of everything else) [bytes]."""
    experts = rest = 0
    for t, stored in zip(arch.tensors, formats.weight_bytes(arch, weights), strict=True):
        if t.group == "experts":
            experts += stored
        else:
            rest += stored
    return experts, rest


def weights_per_device(arch: Architecture, weights, layout: Layout, offload: float = 0.0):
    """Weights on one chip [bytes]: everything / (tp x pp), experts / (max(tp, ep) x pp), less the share kept in host memory."""
    experts, rest = weight_split(arch, weights)
    away_experts, away_rest = (offload, 0.0) if arch.is_moe else (0.0, offload)
    return (rest * (1 - away_rest) / layout.tp + experts * (1 - away_experts) / maximum(layout.tp, layout.ep)) / layout.pp


def kv_bytes(arch: Architecture, kv, tokens, tp: int = 1):
    """Cache and recurrent state of one sequence of `tokens` tokens, summed over the chips of a tensor-parallel group [bytes].

    A windowed layer holds at most its window. With tp above a layer's KV heads the heads are stored tp / heads times
    (for MLA's latent, tp times); tp = 1 gives the bytes stored once.

    >>> from roofline import catalogue
    >>> kv_bytes(catalogue.load("llama-3.1-70b"), formats.parse("bf16"), 131072) / 1e9
    42.94967296
    """
    total = float(state_bytes_per_sequence(arch))
    for a in arch.attentions:
        element = formats.kv_bytes_per_element(kv, a.cached_vector)
        copies = maximum(1, tp / a.kv_heads)
        held = minimum(tokens, a.window) if a.window else tokens
        total = total + (held * a.kv_elements / a.compress + tokens * a.index_elements) * element * a.count * copies
    return total


def kv_per_token(layers, kv_heads, head_dim, element_bytes=2.0, tensors=2):
    """Cache of one token on paper: tensors x layers x kv_heads x head_dim x bytes [bytes]. tensors: 2 for K and V, 1 for a latent.

    >>> kv_per_token(80, 8, 128), kv_per_token(61, 1, 576, tensors=1)
    (327680.0, 70272.0)
    """
    return tensors * layers * kv_heads * head_dim * element_bytes


def chips_for(size, each):
    """Chips whose memory holds `size` bytes, as a fraction: size / each. Round up for whole chips.

    >>> round(chips_for(112.95e9, 16e9), 2)
    7.06
    """
    return size / each


def sequences_that_fit(memory_bytes, weights_bytes, cache_bytes):
    """Sequences (or tokens, if cache_bytes is of one) whose cache fits beside the weights: (memory - weights) / cache; not rounded.

    >>> round(sequences_that_fit(128e9, 70e9, 163840 * 8192), 1)
    43.2
    """
    return (memory_bytes - weights_bytes) / cache_bytes


def context_that_fits(memory_bytes, batch, bytes_per_token, share=1.0):
    """The context at which `batch` sequences fill a share of a memory: share x memory / (batch x bytes a token) [tokens].

    >>> round(context_that_fits(64 * 32 * 2 ** 30, 128, kv_per_token(118, 64, 128), 0.3))
    1333
    """
    return share * memory_bytes / (batch * bytes_per_token)


@lru_cache(maxsize=256)
def _widest(arch: Architecture) -> int:
    """Elements that one token has live at once in the widest block: its input, its output and the block's inner width."""
    inner = max((t.rows * t.active for t in arch.tensors if t.kind == "linear" and t.group in ("mlp", "experts", "shared_experts")), default=0)
    qkv = max((a.heads * (a.qk_dim + a.v_dim) + a.kv_elements for a in arch.attentions), default=0)
    return 2 * arch.hidden + max(2 * inner, qkv)


def working_set(arch: Architecture, batch, prompt, tp: int = 1) -> tuple:
    """What is live at once in the largest pass: (tokens of it, numbers that one token has live over a tensor-parallel group, tokens sampled).

    min(batch x prompt, 8,192) tokens, each with 2 hidden on every chip and the widest block's inner values.

    >>> from roofline import catalogue
    >>> working_set(catalogue.load("llama-3.1-8b"), 32, 1024)
    (8192, 36864, 32)
    """
    return minimum(batch * prompt, PREFILL_CHUNK), _widest(arch) + 2 * arch.hidden * (tp - 1), minimum(batch, PREFILL_CHUNK)


def activation_bytes(arch: Architecture, batch, prompt, tp: int = 1):
    """Working memory of the largest pass, summed over a tensor-parallel group [bytes]: an estimate.

    tokens x numbers x 2 bytes of `working_set`, and FP32 logits of the sampled tokens. Engines reuse buffers, so one block is live at a time.
    """
    tokens, numbers, sampled = working_set(arch, batch, prompt, tp)
    return tokens * numbers * 2.0 + sampled * arch.vocab * 4.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Draft:
    """What makes drafts: `share` of the layers of `arch` (all of a draft model's, one of the model's own for multi-token prediction).

    weights_bytes: that every replica has [bytes]; expert_bytes: of routed experts, which replicas share as they do the model's own [bytes].
    """

    arch: Architecture
    share: float
    weights_bytes: float
    expert_bytes: float = 0.0

    def held_bytes(self, layout: Layout):
        """Weights that it adds to the chips of one replica [bytes]."""
        return self.weights_bytes + self.expert_bytes * layout.tp / maximum(layout.tp, layout.ep)

    def kv_bytes(self, kv, tokens, tp=1):
        """Its cache of one sequence of `tokens` tokens [bytes], see `kv_bytes`."""
        return self.share * kv_bytes(self.arch, kv, tokens, tp)


def draft_of(arch: Architecture, weights, draft: int, drafter: Architecture | None) -> Draft | None:
    """What drafts for a model, None if nothing does: the draft model, in the format it is published in (BF16 else), or a layer of the model's own shape.

    >>> from roofline import catalogue
    >>> draft_of(catalogue.load("llama-3.1-70b"), formats.parse("bf16"), 4, catalogue.load("llama-3.2-1b")).weights_bytes
    2471628800
    """
    if not draft:
        return None
    if drafter is not None:
        return Draft(arch=drafter, share=1.0, weights_bytes=sum(formats.weight_bytes(drafter, drafter.quantization or formats.parse("bf16"))))
    # A layer as the last one is: experts where the model has them, whatever its first layers hold.
    stored = [(t, size / t.count) for t, size in zip(arch.tensors, formats.weight_bytes(arch, weights), strict=True) if t.group != "vision" and arch.layer_count - 1 in t.layers]
    experts = sum(size for t, size in stored if t.group == "experts")
    return Draft(arch=arch, share=1.0 / arch.layer_count, weights_bytes=sum(size for _, size in stored) - experts, expert_bytes=experts)


def demand(arch: Architecture, weights, kv, *, batch, prompt, output, layout: Layout, overhead: float = 0.0, block: int = 1, offload: float = 0.0,
           offload_kv: float = 0.0, draft: Draft | None = None) -> tuple:
    """(weights, cache of one sequence, working memory, overhead) of one replica, as if every stage were the fullest [bytes]; all of it broadcasts.

    What drafts (a model or a layer) has its weights and its cache there too.

    The replica needs weights + batch x cache + working + overhead. Arguments as in `footprint`.
    """
    group = layout.tp * layout.pp
    blocks = -(-(prompt + output) // block) * block
    # The fullest stage decides what fits: with 61 layers on 3 stages it holds 21, so the replica counts as 63 layers.
    fullest = ceil(arch.layer_count / layout.pp) * layout.pp / arch.layer_count
    drafted = (0.0, 0.0) if draft is None else (draft.held_bytes(layout), draft.kv_bytes(kv, blocks, layout.tp))
    return (weights_per_device(arch, weights, layout, offload) * group * fullest + drafted[0], kv_bytes(arch, kv, blocks, layout.tp) * (1 - offload_kv) * fullest + drafted[1],
            activation_bytes(arch, batch / layout.pp, prompt, layout.tp) * layout.pp, overhead * group)


def fits(arch: Architecture, weights, kv, *, batch, layout: Layout, memory_bytes: float, utilisation: float = 1.0, **more) -> bool:
    """Whether `footprint` of the same arguments fits, without looking for the edge."""
    stored, each, working, other = demand(arch, weights, kv, batch=batch, layout=layout, **more)
    return stored + each * batch + working + other <= memory_bytes * (layout.tp * layout.pp) * utilisation


def footprint(arch: Architecture, weights, kv, *, batch: int, prompt: int, output: int, layout: Layout, memory_bytes: float | None,
              utilisation: float = 1.0, overhead: float = 0.0, block: int = 1, offload: float = 0.0, offload_kv: float = 0.0, draft: Draft | None = None) -> dict:
    """The `memory` part of a Report, for one replica: parts, total, whether it fits, and the largest that would.

    max_batch and max_context are the edge: so many sequences, or so long a request (its prompt longer, its output the same, all
    `batch` of them; one by itself where the batch does not fit), fit with the working memory they need, and one more does not.

    batch sequences of prompt + output tokens; memory_bytes: of one chip, or None (unknown: then nothing is said about fit);
    overhead: bytes a chip besides (0: the least that must be there; an engine reserves more); block: tokens per KV block, each
    sequence rounding up to whole blocks; offload, offload_kv: shares in host memory; draft: what makes drafts.
    """
    group = layout.tp * layout.pp
    stored, each, working, other = demand(arch, weights, kv, batch=batch, prompt=prompt, output=output, layout=layout, overhead=overhead, block=block,
                                          offload=offload, offload_kv=offload_kv, draft=draft)
    fullest = ceil(arch.layer_count / layout.pp) * layout.pp / arch.layer_count
    cache_of = lambda tokens: kv_bytes(arch, kv, tokens, layout.tp) * (1 - offload_kv) * fullest + (0.0 if draft is None else draft.kv_bytes(kv, tokens, layout.tp))
    cache = each * batch
    total = stored + cache + working + other
    result = {
        "weights_bytes": sum(formats.weight_bytes(arch, weights)), "weights_bytes_per_device": stored / group,
        "kv_bytes": kv_bytes(arch, kv, prompt + output) * batch, "kv_bytes_stored": cache, "kv_bytes_per_sequence": kv_bytes(arch, kv, prompt + output),
        "fragmentation_bytes": (each - cache_of(prompt + output)) * batch, "draft_bytes": 0.0 if draft is None else draft.held_bytes(layout) + draft.kv_bytes(kv, prompt + output, layout.tp) * batch,
        "activation_bytes": working, "overhead_bytes": other, "total_bytes": total,
        "available_bytes": None, "fits": None, "max_batch": None, "max_context": None, "min_devices": None,
    }
    if memory_bytes is None:
        return result
    available = memory_bytes * group * utilisation
    room = available - stored - other
    together = batch if total <= available else 1

    def holds(sequences, tokens, prompt):
        return fits(arch, weights, kv, batch=sequences, prompt=prompt, output=tokens - prompt, layout=layout, memory_bytes=memory_bytes, utilisation=utilisation, overhead=overhead, block=block,
                    offload=offload, offload_kv=offload_kv, draft=draft)

    longest = _longest(arch, kv, layout.tp, room / together / max((1 - offload_kv) * fullest, 1e-9))
    result.update(
        available_bytes=available, fits=total <= available,
        max_batch=_most(lambda n: holds(n, prompt + output, prompt), max(0, int(room // each))) if each > 0 else None,
        max_context=None if longest is None else _most(lambda n: holds(together, n, max(1, n - output)), longest),
        min_devices=_fewest(held_once(arch, weights, result, batch=batch, prompt=prompt, offload=offload, offload_kv=offload_kv), max(memory_bytes * utilisation - overhead, 1.0)),
    )
    return result


def held_once(arch: Architecture, weights, parts: dict, *, batch, prompt, offload: float = 0.0, offload_kv: float = 0.0):
    """What chips must hold between them, however they share it: each weight, cache and working value once, less what is in host memory [bytes].

    parts: a `footprint`, for its kv_bytes and draft_bytes.
    """
    return weights_per_device(arch, weights, Layout(), offload) + parts["kv_bytes"] * (1 - offload_kv) + activation_bytes(arch, batch, prompt) + parts["draft_bytes"]


def _most(holds, high: int) -> int:
    """The largest whole number from 0 to `high` that holds; what holds for a number holds for all below it."""
    if high <= 0 or holds(high):
        return max(0, high)
    low, step = max(0, high - 1), 1
    while low and not holds(low):  # the edge is most often near
        high, step = low, 4 * step
        low = max(0, high - step)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def _fewest(total: float, each: float) -> int:
    """Chips whose memory together holds `total` [chips], leaving aside which layouts are legal."""
    return max(1, int(-(-total // each)))


def _longest(arch: Architecture, kv, tp: int, room: float):
    """The largest context [tokens] whose cache of one sequence takes at most `room` bytes; None if nothing in it grows."""
    if room <= 0:
        return 0
    if kv_bytes(arch, kv, 0, tp) > room:
        return 0
    # The cache grows piecewise linearly with the context: each window is a knee.
    knees = sorted({a.window for a in arch.attentions if a.window})
    at = 0
    for knee in (*knees, None):
        here = kv_bytes(arch, kv, at, tp)
        slope = kv_bytes(arch, kv, at + 1, tp) - here
        reach = at + (room - here) / slope if slope > 0 else float("inf")
        if knee is None or reach <= knee:
            longest = reach
            break
        at = knee
    if longest == float("inf"):
        return None
    longest = int(longest)
    return min(longest, arch.max_context) if arch.max_context else longest
