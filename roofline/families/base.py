"""A model under construction: its core sizes, its tensors, and the finished Architecture."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

from ..errors import InputError
from ..model import Architecture, Tensor
from . import mtp
from .reader import Reader

ATTN, MLP, EXPERTS, SHARED, ROUTER, RECURRENT = "attention_projection", "mlp", "experts", "shared_experts", "router", "recurrent"
BF16, FP32 = 2, 4  # bytes of a state element


class Base:
    """A model under construction. c: its config; hidden, n (layers), heads: the core sizes."""

    def __init__(self, c: Reader):
        self.c = self.outer = c
        self.tensors: list = []
        self.attentions: list = []
        self.recurrents: list = []
        self.notes: list = []
        self.tied = False
        self.wrapper = ""  # the multimodal model_type this language model is inside of
        self.tie: bool | None = None  # what a multimodal wrapper decides for its language model

    def inside(self, c: Reader) -> "Base":
        """Go on with a nested config: the core sizes are read anew."""
        for name in ("hidden", "n", "all", "heads", "vocab", "ff", "kv_heads", "head_dim"):
            self.__dict__.pop(name, None)
        self.c = c
        return self

    # Core sizes, read when first asked for, so that a family without attention needs no heads.
    @cached_property
    def hidden(self) -> int:
        return self.c.need("hidden_size")

    @cached_property
    def n(self) -> int:
        return self.c.need("num_hidden_layers")

    @cached_property
    def all(self) -> tuple:
        return tuple(range(self.n))

    @cached_property
    def heads(self) -> int:
        return self.c.need("num_attention_heads")

    @cached_property
    def vocab(self) -> int:
        return self.c.need("vocab_size")

    @cached_property
    def ff(self) -> int:
        return self.c.need("intermediate_size")

    @cached_property
    def kv_heads(self) -> int:
        kv = self.c.opt("num_key_value_heads") or self.heads
        if self.heads % kv:
            raise InputError(self.c.field("num_attention_heads"), self.heads, f"must be a multiple of num_key_value_heads ({kv})")
        return kv

    @cached_property
    def head_dim(self) -> int:
        return self.c.opt("head_dim") or self.split(self.hidden, self.heads)

    def split(self, size: int, heads: int) -> int:
        """size / heads, or a refusal."""
        if size % heads:
            raise InputError(self.c.field("hidden_size"), size, f"must be a multiple of num_attention_heads ({heads})")
        return size // heads

    def where(self, test) -> tuple:
        """The layers whose index passes a test."""
        return tuple(i for i in self.all if test(i))

    # Tensors.
    def linear(self, name, group, rows, cols, *, layers=None, bias=False, **more):
        """A matrix multiplied with every token, and its bias."""
        if rows and cols and layers != () or layers is None:
            self.tensors.append(
                Tensor(name=name, group=group, rows=rows, cols=cols, layers=self.all if layers is None else layers, **more)
            )
            if bias:
                self.vector(name + ".bias", group, rows, layers=layers, **more)

    def vector(self, name, group, rows, *, layers=None, **more):
        """A bias, a scale, anything added or scaled with (rows elements)."""
        if layers != () and rows:
            more.setdefault("kind", "vector")
            self.tensors.append(Tensor(name=name, group=group, rows=rows, layers=self.all if layers is None else layers, **more))

    def norm(self, *names, size=None, bias=False, layers=None):
        """Normalisation weights (of the hidden size unless said otherwise), with a bias for LayerNorm."""
        for name in names:
            self.vector(name, "norm", size or self.hidden, layers=layers)
            if bias:
                self.vector(name + ".bias", "norm", size or self.hidden, layers=layers)

    def once(self, name, group, rows, cols=1, kind="linear"):
        """A tensor the model holds once, outside its layers."""
        self.tensors.append(
            Tensor(name=name, group=group, rows=rows, cols=cols, kind=kind if cols > 1 or kind != "linear" else "vector")
        )

    def embed(
        self,
        *,
        name="model.embed_tokens",
        head="lm_head",
        norm="model.norm",
        norm_bias=False,
        head_bias=False,
        vocab=None,
        head_vocab=None,
        tied=None,
    ):
        """Input embedding, final norm and LM head (absent when tied)."""
        vocab, h = vocab or self.vocab, self.hidden
        self.tied = self.tie if self.tie is not None else self.c.flag("tie_word_embeddings", False) if tied is None else tied
        self.once(name, "embedding", vocab, h, "table")
        if norm:
            self.once(norm, "norm", h)
            if norm_bias:
                self.once(norm + ".bias", "norm", h)
        if not self.tied:
            self.once(head, "lm_head", head_vocab or vocab, h)
        if head_bias:
            self.once(head + ".bias", "lm_head", head_vocab or vocab)

    def idle(self, start: int):
        """Mark the tensors from index `start` on as held in memory but not used for text."""
        self.tensors[start:] = [replace(t, kind="idle") for t in self.tensors[start:]]

    def done(self, *, id: str, family: str, name: str = "", source: str = "", quantization=None) -> Architecture:
        """The finished model."""
        c = self.c
        said = mtp.note(self, self.outer.raw, c.raw)
        if said:
            self.notes.append(said)
        context = next(
            (
                c.raw.get(k)
                for k in ("max_position_embeddings", "n_positions", "max_seq_len", "seq_length", "max_sequence_length")
                if isinstance(c.raw.get(k), int) and not isinstance(c.raw.get(k), bool)
            ),
            None,
        )
        return Architecture(
            id=id,
            family=family,
            name=name,
            source=source,
            hidden=self.hidden,
            layer_count=self.n,
            vocab=self.vocab,
            tied=self.tied,
            heads=max((a.heads for a in self.attentions), default=0),
            tensors=tuple(self.tensors),
            attentions=tuple(self.attentions),
            recurrents=tuple(self.recurrents),
            max_context=context,
            quantization=quantization,
            assumed=tuple(c.assumed),
            notes=tuple(self.notes),
        )
