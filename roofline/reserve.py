"""What an engine such as vLLM would set aside in memory: its share of the chip, its pool of cache blocks, and how many requests that holds.

`memory` says what must be there at least; this says what a paged engine with its usual settings makes of it. The rules are those
of vLLM's block pool (vllm/v1/core/kv_cache_utils.py and models/config.py): every layer's page has one size, layers are grouped
by kind into groups of equal length, and a request takes blocks of every group.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil, floor

from . import formats, memory
from .model import Architecture
from .parallel import Layout

GIB = 2 ** 30
UTILISATION = 0.9  # vLLM's gpu_memory_utilization
BLOCK = 16  # tokens
LARGE = 70 * GIB  # chips from this size run larger prefill chunks
# Memory of a chip that is neither weights, activations nor cache: CUDA context, libraries, NCCL's buffers.
NON_TORCH = {"small": 0.25 * GIB, "large": 1.8 * GIB, "linked": 3.6 * GIB}


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """Layers that cache alike. page_per_token: bytes a layer caches a token on one chip (0 for a state); state: bytes of a state."""

    name: str
    layers: int
    page_per_token: float = 0.0
    window: int | None = None
    state: float = 0.0


def kinds(arch: Architecture, kv, tp: int = 1) -> tuple:
    """The kinds of caching layers of a model on one chip of a tensor-parallel group; layers that read another's cache have none."""
    found = {}
    for a in arch.attentions:
        element = formats.kv_bytes_per_element(kv, a.cached_vector)
        parts = [(a.kv_elements / a.compress / min(tp, a.kv_heads), a.window, "window" if a.window else "full")]
        if a.index_elements:
            parts.append((float(a.index_elements), None, "index"))
        for elements, window, name in parts:
            if elements:
                key = (name, window, elements * element)
                found[key] = found.get(key, 0) + a.count
    result = [Kind(name=name, layers=n, page_per_token=page, window=window) for (name, window, page), n in found.items()]
    states = {}
    for r in arch.recurrents:
        states[r.state_bytes / tp] = states.get(r.state_bytes / tp, 0) + r.count
    result += [Kind(name="state", layers=n, state=size) for size, n in states.items()]
    return tuple(result)


def _joined(found: tuple) -> tuple:
    """Kinds that cache alike as one."""
    layers = {}
    for k in found:
        key = replace(k, layers=0)
        layers[key] = layers.get(key, 0) + k.layers
    return tuple(replace(key, layers=n) for key, n in layers.items())


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """How one chip's cache is cut into blocks.

    page: bytes of a block in one layer; group: layers that share a block; block: tokens of a block by kind; groups by kind.
    """

    page: float
    group: int
    parts: tuple  # (Kind, tokens per block, number of groups)

    @property
    def block_bytes(self) -> float:
        """Bytes of one block: a page in every layer of a group."""
        return self.page * self.group

    def blocks_of(self, tokens: int, chunk: int) -> int:
        """Blocks that one request of `tokens` tokens takes, all groups together.

        Full layers: ceil(tokens / block). Windows: what window - 1 and one prefill chunk of `chunk` tokens touch, and one more
        since they need not start at a block's edge. States: one.
        """
        total = 0
        for kind, block, groups in self.parts:
            if kind.state:
                each = 1
            elif kind.window:
                each = min(ceil(min(kind.window - 1 + chunk, tokens) / block) + 1, ceil(tokens / block) + 1)
            else:
                each = ceil(tokens / block)
            total += each * groups
        return total


def pool_of(layers: tuple, block: int = BLOCK, stages: int = 1) -> Pool | None:
    """The block pool for the caching layers of one chip, or None if nothing is cached.

    One kind: all layers in one group. Several kinds of full attention: one group whose page is their mean. Else every kind is cut into
    groups of as many layers as the rarest kind has (as the commonest has, if that is less than half as many again), and pages are
    made equal: a smaller page takes more tokens a block; with recurrent states the attention block grows, in steps of 16
    tokens, until a page holds a state. stages: pipeline stages that share the layers.
    """
    if not layers:
        return None
    count = lambda kind: ceil(kind.layers / stages)
    cached = [k for k in layers if not k.state]
    if not cached:
        page = max(k.state for k in layers)
        return Pool(page=page, group=sum(count(k) for k in layers), parts=((Kind(name="state", layers=1, state=page), 1, 1),))
    if all(k.window is None for k in cached) and len(cached) == len(layers):
        group = sum(count(k) for k in cached)
        page = sum(k.page_per_token * count(k) for k in cached) / group * block
        return Pool(page=page, group=group, parts=((Kind(name="full", layers=group, page_per_token=page / block), block, 1),))
    state = max((k.state for k in layers), default=0.0)
    widest = max(k.page_per_token for k in cached)
    if state:
        block = max(block, 16 * ceil(state / (16 * widest)))
    page = block * widest
    counts = [count(k) for k in layers]
    group = max(counts) if max(counts) < 1.5 * min(counts) else min(counts)
    return Pool(page=page, group=group, parts=tuple((k, block if k.state else floor(page / k.page_per_token + 1e-9), ceil(count(k) / group)) for k in layers))


def non_torch_bytes(memory_bytes: float, tp: int) -> float:
    """Memory of one chip that libraries take [bytes], as start-up logs show it.

    0.25 GiB on 24 GB cards (vLLM issues 13061 and 13882, PR 14447); 1.8 GiB on one H100 and 3.6 on two that talk (PR 10511).
    """
    return NON_TORCH["small"] if memory_bytes < LARGE else NON_TORCH["linked" if tp > 1 else "large"]


def reservation(arch: Architecture, weights, kv, *, batch: int, prompt: int, output: int, layout: Layout, memory_bytes: float, utilisation: float | None = None,
                block: int | None = None, overhead: float | None = None, chunk: int | None = None, offload: float = 0.0, draft=None, a100: bool = False) -> dict:
    """What a paged engine reserves on each chip of one replica, and what that serves [bytes, tokens, sequences].

    pool = utilisation x memory - weights - working memory of one prefill chunk - libraries; blocks = pool / bytes of a block.
    utilisation, block, overhead, chunk: None takes the engine's own (0.9, 16 tokens, `non_torch_bytes`, 8,192 tokens on chips of 70 GiB,
    else 2,048); offload: share of weights in host memory; draft: a `memory.Draft`. Every assumption is listed in `assumptions`.

    >>> from roofline import catalogue
    >>> r = reservation(catalogue.load("llama-3.1-8b"), formats.parse("bf16"), formats.parse("bf16"), batch=1, prompt=1000, output=24, layout=Layout(), memory_bytes=80e9)
    >>> r["block_bytes"], r["blocks_per_sequence"]
    (2097152.0, 64)
    """
    utilisation = UTILISATION if utilisation is None else utilisation
    asked = block
    block = BLOCK if block is None else block
    chunk = chunk or (8192 if memory_bytes >= LARGE and not a100 else 2048)
    libraries = non_torch_bytes(memory_bytes, layout.tp) if overhead is None else overhead
    held = memory.weights_per_device(arch, weights, layout, offload)
    cached = kinds(arch, kv, layout.tp)
    if draft is not None:
        held += draft.held_bytes(layout) / (layout.tp * layout.pp)
        # A layer of the model's own is one more of its last kind of cache, a draft model's layers are kinds of their own.
        cached = _joined(cached + (kinds(draft.arch, kv, layout.tp) if draft.share == 1 else tuple(replace(k, layers=1) for k in cached[-1:])))
    sequences = 1024 if memory_bytes >= LARGE and not a100 else 256
    working = memory.activation_bytes(arch, min(sequences, chunk), chunk, layout.tp) / layout.tp
    room = utilisation * memory_bytes - held - working - libraries
    pool = pool_of(cached, block, layout.pp)
    assumptions = [
        f"{utilisation:.0%} of each chip's memory is the engine's",
        f"working memory is that of one prefill chunk of {chunk:,} tokens",
        f"libraries take {libraries / 1e9:.2f} GB a chip" + (" (start-up logs of vLLM)" if overhead is None else ""),
        "captured graphs are not counted: vLLM keeps them in what is left of the chip",
    ]
    result = {"utilisation": utilisation, "reserved_bytes": utilisation * memory_bytes, "weights_bytes": held, "activation_bytes": working, "libraries_bytes": libraries,
              "pool_bytes": max(0.0, room), "block_tokens": None, "block_bytes": None, "blocks": None, "blocks_per_sequence": None, "kv_bytes_per_sequence": None,
              "max_batch": None, "max_context": None, "fits": room > 0, "groups": [], "assumptions": assumptions}
    if pool is None:
        return result
    blocks = max(0, int(room // pool.block_bytes))
    each = pool.blocks_of(prompt + output, chunk)
    full = next((tokens for kind, tokens, _ in pool.parts if not kind.state), pool.parts[0][1])
    if len(pool.parts) > 1:
        assumptions.append(f"layers of {len(pool.parts)} kinds share one pool, {pool.group} layers a group, with pages of one size")
        if any(kind.window for kind, _, _ in pool.parts):
            assumptions.append("a window's layers are given their window and one prefill chunk, as vLLM's own estimate does")
    if full != block:
        assumptions.append(f"a block holds {full:,} tokens, so that an attention page is as large as a recurrent state" if any(k.state for k, _, _ in pool.parts) else
                           f"a block holds {full:,} tokens in full layers")
    elif asked is None:
        assumptions.append(f"blocks of {block} tokens")
    return result | {
        "block_tokens": full, "block_bytes": pool.block_bytes, "blocks": blocks, "blocks_per_sequence": each, "kv_bytes_per_sequence": each * pool.block_bytes,
        "max_batch": blocks // each, "max_context": _longest(pool, blocks // max(1, batch), chunk, arch.max_context), "fits": blocks >= each * batch,
        "groups": [{"kind": kind.name, "layers": kind.layers, "groups": groups, "block_tokens": tokens, "window": kind.window,
                    "padding_layers": groups * pool.group - ceil(kind.layers / layout.pp)} for kind, tokens, groups in pool.parts],
    }


def _longest(pool: Pool, blocks: int, chunk: int, most: int | None) -> int:
    """The longest request that takes at most `blocks` blocks [tokens]; `most` if it is bound by nothing else."""
    most = most or 100_000_000
    if blocks <= 0 or pool.blocks_of(1, chunk) > blocks:
        return 0
    low, high = 1, most
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if pool.blocks_of(middle, chunk) <= blocks else (low, middle - 1)
    return low
