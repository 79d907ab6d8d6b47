"""What a language model is, as far as its speed goes: tensors, attention cores, recurrent cores.

An `Architecture` is a flat list of weight tensors (each with how many layers hold it), the
attention cores and the recurrent cores. Identical layers are one entry with a list of layer
indices, never a loop. Everything else (parameter counts, FLOPs, bytes, KV cache) is derived from
these three lists, so a family of models is described once, in `families.py`, by the parts its
layers have.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

# Operator and parameter groups; the names are those of the Report (schema 1).
LINEAR_GROUPS = ("attention_projection", "mlp", "experts", "shared_experts", "router", "recurrent", "lm_head", "other")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tensor:
    """One weight tensor, stored alike in each of `layers`.

    rows: output features; cols: input features (1 for a vector such as a norm or a bias).
    layers: the indices of the decoder layers that hold it; () for a tensor held once by the model.
    copies: how many of it one layer holds (experts); active: how many of those a token uses.
    kind: "linear" is multiplied with every token; "vector" is added or scaled with;
    "table" is a gather (input embedding): memory, never traffic; "idle" is held in memory and not used for text
    (vision towers, cross-attention to an image).
    uses: how many times one pass multiplies with it, in each of its layers (Zamba runs one stored block in several places).
    own_dtype: a type the checkpoint keeps whatever the rest is quantised to ("fp32"), else "".
    """

    name: str  # the checkpoint's own name without "model.layers.N." and ".weight": "self_attn.q_proj"
    group: str  # embedding, attention_projection, mlp, experts, shared_experts, router, recurrent, norm, lm_head, vision, other
    rows: int
    cols: int = 1
    layers: tuple = ()
    copies: int = 1
    active: int = 1
    kind: str = "linear"
    own_dtype: str = ""
    uses: int = 1

    @property
    def count(self) -> int:
        """How many layers hold it (1 for a model-level tensor)."""
        return len(self.layers) or 1

    @property
    def elements(self) -> int:
        """Elements in one copy in one layer."""
        return self.rows * self.cols

    @property
    def parameters(self) -> int:
        """Elements stored in the whole model."""
        return self.rows * self.cols * self.copies * self.count

    @property
    def active_parameters(self) -> int:
        """Elements one token passes through (tables counted whole, as model cards do)."""
        return self.rows * self.cols * self.active * self.count


@dataclass(frozen=True, slots=True, kw_only=True)
class Attention:
    """The core of one kind of attention (scores and values, without its projections).

    qk_dim, v_dim: per-head sizes of the score and value products when K and V are expanded.
    decode_qk_dim, decode_v_dim: the same in decoding, where they differ (MLA with absorbed weights:
    kv_lora_rank + qk_rope_head_dim, and kv_lora_rank); 0 means the same.
    kv_elements: elements cached per token per layer (2 x kv_heads x head_dim; the latent for MLA);
    0 in a layer that reads another layer's cache (`reads_elements` then says what it reads).
    reference_elements: what the reference implementation caches where that is more than an engine needs (Falcon repeats its
    key and value heads first); only `kv_bytes_per_token` counts it. 0: the same.
    window: a token sees at most this many keys and the layer caches at most this many; None: all.
    chunked: the window is a block (Llama 4), a token sees only the keys of its own block.
    topk: a token attends to at most this many of the cached tokens (DeepSeek sparse attention).
    index_heads, index_dim: the lightning indexer that scores every cached token for `topk`;
    index_elements: what it caches per token per layer.
    compress: cached entries stand for this many tokens each (DeepSeek V4).
    kv_heads: how far tensor parallelism can split the cache (1 for MLA: replicated).
    """

    layers: tuple
    heads: int
    kv_heads: int
    qk_dim: int
    v_dim: int
    kv_elements: int
    reads_elements: int = 0
    reference_elements: int = 0
    decode_qk_dim: int = 0
    decode_v_dim: int = 0
    window: int | None = None
    chunked: bool = False
    topk: int | None = None
    index_heads: int = 0
    index_dim: int = 0
    index_elements: int = 0
    compress: int = 1
    kind: str = "full"  # full, sliding, chunked, mla, sparse, compressed, cross

    @property
    def count(self) -> int:
        return len(self.layers)

    @property
    def cached_vector(self) -> int:
        """Elements of one cached key or value vector: the row that a quantised cache's scale covers (the whole latent, or a shared key-value)."""
        if self.kv_elements <= (self.decode_qk_dim or self.qk_dim):  # one vector serves as key and value, or none is cached
            return self.kv_elements or self.qk_dim
        return self.kv_elements // (2 * self.kv_heads)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recurrent:
    """A layer part with a state of constant size: Mamba, gated delta net, linear attention, short convolution.

    state_bytes: per sequence per layer, read and written once a decode step [bytes].
    flops_per_token: of the scan itself, per layer (its projections are tensors) [FLOP].
    """

    layers: tuple
    kind: str
    state_bytes: int
    flops_per_token: float

    @property
    def count(self) -> int:
        return len(self.layers)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Architecture:
    """A model. Compared by identity, so it can key a cache cheaply.

    hidden, layer_count, vocab, heads: as in its config. tensors, attentions, recurrents: its parts.
    tied: the LM head is the input embedding (stored once, streamed once as LM head).
    max_context: what the config allows [tokens], or None.
    quantization: the config's own `quantization_config`, as `formats.Published`, or None.
    assumed: (field, value, source) for every value that the config left out.
    notes: sentences for the reader (what was read as what, what is not modelled).
    """

    id: str
    family: str
    hidden: int
    layer_count: int
    vocab: int
    heads: int
    tensors: tuple
    attentions: tuple = ()
    recurrents: tuple = ()
    tied: bool = False
    max_context: int | None = None
    quantization: object = None
    assumed: tuple = ()
    notes: tuple = ()
    name: str = ""
    source: str = ""

    @property
    def is_moe(self) -> bool:
        return any(t.group == "experts" for t in self.tensors)


# Report key of each tensor group.
_PARAMETER_KEYS = {
    "embedding": "embedding", "lm_head": "lm_head", "attention_projection": "attention", "mlp": "mlp", "experts": "experts",
    "shared_experts": "shared_experts", "router": "router", "norm": "norm", "recurrent": "recurrent", "vision": "vision", "other": "other",
}


@lru_cache(maxsize=256)
def parameters(arch: Architecture) -> dict:
    """Parameter counts by group, with total, language and active.

    total: everything stored once; language: without vision and audio towers; active: total less the
    experts a token does not reach. All [parameters].
    """
    counts = dict.fromkeys(["total", "language", "active", *_PARAMETER_KEYS.values()], 0)
    for t in arch.tensors:
        counts[_PARAMETER_KEYS[t.group]] += t.parameters
        counts["total"] += t.parameters
        counts["language"] += t.parameters if t.group != "vision" else 0
        counts["active"] += t.active_parameters
    return counts


def kv_bytes_per_token(arch: Architecture, bytes_per_element: float = 2.0) -> float:
    """KV cache of one token, summed over every layer that holds it [bytes].

    sum over layers of kv_elements x bytes_per_element (a windowed layer included); what the reference implementation caches,
    see `Attention.reference_elements`.
    """
    return sum(((a.reference_elements or a.kv_elements) / a.compress + a.index_elements) * a.count for a in arch.attentions) * bytes_per_element


def kv_bound(arch: Architecture, bytes_per_element: float = 2.0) -> dict | None:
    """Where windows end the growth of the cache: {"layers" that hold no more than a window, "window" (the longest) [tokens], "bytes_per_token_beyond" it}; None without windows.

    A window slides or, in Llama 4, is the block that a token stands in.
    """
    bound = [a for a in arch.attentions if a.window and a.kv_elements]
    if not bound:
        return None
    beyond = sum(((0 if a in bound else (a.reference_elements or a.kv_elements) / a.compress) + a.index_elements) * a.count for a in arch.attentions) * bytes_per_element
    return {"layers": sum(a.count for a in bound), "window": max(a.window for a in bound), "bytes_per_token_beyond": beyond}


def state_bytes_per_sequence(arch: Architecture) -> int:
    """Constant state of one sequence, whatever its length [bytes]."""
    return sum(r.state_bytes * r.count for r in arch.recurrents)
