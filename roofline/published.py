"""A published checkpoint's quantisation: which tensor is stored in which format."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache

from .blocks import BF16_BYTES, DTYPE_BYTES, Format, matrix_bytes
from .model import Architecture, Tensor
from .modules import Patterns

_LAYER_GROUPS = ("attention_projection", "mlp", "experts", "shared_experts", "recurrent", "other")


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """Matrices stored alike: their format, and the modules it is for (None: every one not named elsewhere)."""

    fmt: Format | None
    targets: Patterns | None = None
    experts_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Published:
    """What a checkpoint's quantization_config says. Compared by identity.

    name: a label; method: its quant_method; groups: the first that names a matrix, else the one for all; ignored: modules kept
    as they were; lm_head, vision: whether matrices outside the decoder layers take part unless ignored; activations: the
    format the checkpoint is meant to be multiplied with; kv: Format of its cache if it states one, else None.
    """

    name: str
    method: str
    groups: tuple
    ignored: Patterns
    activations: str = "bf16"
    kv: Format | None = None
    lm_head: bool = False
    vision: bool = False
    embedding: bool = False
    notes: tuple = ()

    @property
    def fmt(self) -> Format | None:
        """The format most matrices are stored in."""
        return next((g.fmt for g in self.groups if g.targets is None), self.groups[0].fmt)

    @property
    def compute(self) -> str:
        """The arithmetic it is meant for: fp8 for W8A8, bf16 for W4A16, fp4 for W4A4."""
        return self.activations

    @property
    def gguf_experts(self) -> str:
        """The ggml type llama.cpp keeps the experts in when it converts this checkpoint, or ""."""
        return "ggml-mxfp4" if self.method == "mxfp4" else ""

    def formats(self, t: Tensor) -> Counter:
        """How many layers of a tensor are stored in each Format (None: kept at 16 bits)."""
        return _formats(self, t)

    def weight_bytes(self, arch: Architecture) -> tuple:
        """Bytes of each entry of arch.tensors as published [bytes]."""
        sizes = []
        for t in arch.tensors:
            if t.own_dtype:
                sizes.append(t.parameters * DTYPE_BYTES[t.own_dtype])
                continue
            sizes.append(sum(count * (matrix_bytes(fmt, t.rows, t.cols) if fmt else t.elements * BF16_BYTES) * t.copies
                             for fmt, count in self.formats(t).items()))
        return tuple(sizes)


def _eligible(p: Published, t: Tensor) -> bool:
    if t.kind == "vector" or t.own_dtype or t.cols == 1:
        return False
    if t.kind == "table" or t.group == "embedding":
        return p.embedding
    if t.group == "lm_head":
        return p.lm_head
    if t.group == "vision":
        return p.vision
    # The lightning indexer's weights and DeepSeek V4's compressors are published unquantised, whatever the config says.
    kept = t.name.endswith("weights_proj") or re.search(r"compressor\.(indexer\.)?(kv|gate)_proj$", t.name)
    return t.group in _LAYER_GROUPS and not kept and (t.group != "other" or bool(t.layers))


@lru_cache(maxsize=8192)
def _formats(p: Published, t: Tensor) -> Counter:
    layers = set(t.layers or (-1,))
    counts = Counter()
    named = [(g, g.targets.layers_of(t)) for g in p.groups if g.targets is not None]
    taken = {layer for _, those in named for layer in those}
    eligible = _eligible(p, t)
    if eligible or (taken and t.kind == "linear" and not t.own_dtype):
        layers -= p.ignored.layers_of(t)
        for group, those in named:
            counts[group.fmt] += len(layers & those)
            layers -= those
        rest = next((g for g in p.groups if g.targets is None), None)
        if rest and eligible and not (rest.experts_only and t.group != "experts"):
            counts[rest.fmt] += len(layers)
            layers = set()
    counts[None] += t.count - sum(counts.values())
    return +counts
