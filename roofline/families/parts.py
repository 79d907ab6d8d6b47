"""The parts a decoder layer can have. A family is a list of them.

Each method of `Build` adds one part to a set of layers (all of them unless said otherwise); names are those
of the published checkpoint.
"""

from __future__ import annotations

from ..errors import InputError
from ..model import Attention, Recurrent
from .base import ATTN, BF16, EXPERTS, FP32, MLP, RECURRENT, ROUTER, SHARED, Base

__all__ = ["ATTN", "BF16", "EXPERTS", "FP32", "MLP", "RECURRENT", "ROUTER", "SHARED", "Build"]


class Build(Base):
    """A model under construction, with the parts its layers can be given."""

    # Attention.
    def core(self, *, layers=None, heads=None, kv=None, d=None, v=None, **more):
        """The scores and values of one kind of attention, with its cache."""
        layers = self.all if layers is None else tuple(layers)
        if layers:
            heads, kv, d = heads or self.heads, kv or self.kv_heads, d or self.head_dim
            v = v or d
            more.setdefault("kv_elements", kv * (d + v))
            if more.get("window") and more.get("kind") is None:
                more["kind"] = "sliding"
            self.attentions.append(Attention(layers=layers, heads=heads, kv_heads=kv, qk_dim=d, v_dim=v, **more))

    def gqa(
        self,
        *,
        layers=None,
        heads=None,
        kv=None,
        d=None,
        prefix="self_attn.",
        bias=False,
        out_bias=None,
        qk_norm=None,
        gate=False,
        out="o_proj",
        fused=None,
        core=True,
        norms=("q_norm", "k_norm"),
        norm_bias=False,
        keys=True,
        group=ATTN,
        out_cols=None,
        **more,
    ):
        """Grouped-query attention: q, k, v and output projections, and the core.

        fused: the name of one q-k-v matrix, where the checkpoint stores one. gate: q_proj makes an output gate too.
        qk_norm: "head" (one weight per head dimension, shared), "flat" (one per feature), "heads" (one per head and dimension).
        keys: False where the layer reads another layer's keys and values.
        """
        layers = self.all if layers is None else tuple(layers)
        heads, kv, d, h = heads or self.heads, kv or self.kv_heads, d or self.head_dim, self.hidden
        out_bias = bias if out_bias is None else out_bias
        q = heads * d * (2 if gate else 1)
        if fused:
            self.linear(prefix + fused, group, q + 2 * kv * d, h, layers=layers, bias=bias)
        else:
            self.linear(prefix + "q_proj", group, q, h, layers=layers, bias=bias)
            if keys:
                self.linear(prefix + "k_proj", group, kv * d, h, layers=layers, bias=bias)
                self.linear(prefix + "v_proj", group, kv * d, h, layers=layers, bias=bias)
        self.linear(prefix + out, group, h, out_cols or heads * d, layers=layers, bias=out_bias)
        if qk_norm:
            sizes = {"head": (d, d), "flat": (heads * d, kv * d), "heads": (heads * d, kv * d)}[qk_norm]
            self.norm(prefix + norms[0], size=sizes[0], layers=layers, bias=norm_bias)
            if keys:
                self.norm(prefix + norms[1], size=sizes[1], layers=layers, bias=norm_bias)
        if core:
            self.core(layers=layers, heads=heads, kv=kv, d=d, **more)

    def sliding(self, kinds: list, window: int | None) -> list:
        """Split layers by kind into (layers, window) groups: "sliding_attention" gets the window, the rest none."""
        slide = self.where(lambda i: kinds[i] == "sliding_attention")
        full = self.where(lambda i: kinds[i] != "sliding_attention")
        return [(layers, w) for layers, w in ((slide, window), (full, None)) if layers]

    def mla(
        self,
        *,
        layers=None,
        heads=None,
        bias=False,
        prefix="self_attn.",
        out="o_proj",
        group=ATTN,
        core=True,
        q_lora=None,
        v=None,
        **more,
    ):
        """Multi-head latent attention (DeepSeek): low-rank q (optional) and kv, one shared rope key; the cache is the latent."""
        c, h, heads = self.c, self.hidden, heads or self.heads
        rank, rope, nope, v = (
            c.int("kv_lora_rank"),
            c.int("qk_rope_head_dim", 0),
            c.int("qk_nope_head_dim", 0),
            v or c.int("v_head_dim"),
        )
        q_lora = c.opt("q_lora_rank") if q_lora is None else q_lora
        if q_lora:
            self.linear(prefix + "q_a_proj", group, q_lora, h, layers=layers, bias=bias)
            self.norm(prefix + "q_a_layernorm", size=q_lora, layers=layers)
            self.linear(prefix + "q_b_proj", group, heads * (nope + rope), q_lora, layers=layers)
        else:
            self.linear(prefix + "q_proj", group, heads * (nope + rope), h, layers=layers)
        self.linear(prefix + "kv_a_proj_with_mqa", group, rank + rope, h, layers=layers, bias=bias)
        self.norm(prefix + "kv_a_layernorm", size=rank, layers=layers)
        self.linear(prefix + "kv_b_proj", group, heads * (nope + v), rank, layers=layers)
        self.linear(prefix + out, group, h, heads * v, layers=layers, bias=bias)
        if core:
            self.latent_core(layers=layers, heads=heads, rank=rank, rope=rope, nope=nope, v=v, **more)

    def latent_core(self, *, layers, heads, rank, rope, nope, v, **more):
        """The core over a cached latent and its shared rotary key; decode works on the latent itself."""
        more.setdefault("kind", "mla")
        self.core(layers=layers, heads=heads, kv=1, d=nope + rope, v=v, kv_elements=rank + rope, decode_qk_dim=rank + rope, decode_v_dim=rank, **more)

    def indexer(self, layers=None, prefix="self_attn.indexer."):
        """The lightning indexer of DeepSeek sparse attention: its own small query and key, and a weight per index head."""
        heads, d = self.c.int("index_n_heads"), self.c.int("index_head_dim")
        self.linear(prefix + "wq_b", ATTN, heads * d, self.c.int("q_lora_rank"), layers=layers)
        self.linear(prefix + "wk", ATTN, d, self.hidden, layers=layers)
        self.norm(prefix + "k_norm", size=d, bias=True, layers=layers)
        self.linear(prefix + "weights_proj", ATTN, heads, self.hidden, layers=layers)

    # Feed-forward.
    def gated_mlp(
        self,
        ff=None,
        *,
        layers=None,
        prefix="mlp.",
        bias=False,
        group=MLP,
        names=("gate_proj", "up_proj", "down_proj"),
        fused=None,
        hidden=None,
    ):
        """Gate, up and down (SwiGLU, GeGLU); fused: the name of one gate-and-up matrix."""
        ff, h = ff or self.ff, hidden or self.hidden
        if fused:
            self.linear(prefix + fused, group, 2 * ff, h, layers=layers, bias=bias)
        else:
            self.linear(prefix + names[0], group, ff, h, layers=layers, bias=bias)
            self.linear(prefix + names[1], group, ff, h, layers=layers, bias=bias)
        self.linear(prefix + names[2], group, h, ff, layers=layers, bias=bias)

    def plain_mlp(self, ff=None, *, layers=None, prefix="mlp.", bias=True, group=MLP, names=("fc1", "fc2"), hidden=None):
        """Up and down with an activation between."""
        ff, h = ff or self.ff, hidden or self.hidden
        self.linear(prefix + names[0], group, ff, h, layers=layers, bias=bias)
        self.linear(prefix + names[1], group, h, ff, layers=layers, bias=bias)

    def moe(
        self,
        experts: int,
        active: int,
        ff: int,
        *,
        layers=None,
        shared_ff=0,
        shared_gate=False,
        router="mlp.gate",
        prefix="mlp.experts.",
        names=("gate_proj", "up_proj", "down_proj"),
        fused=None,
        gated=True,
        bias=False,
        router_bias=False,
        shared="mlp.shared_experts.",
        hidden=None,
        router_experts=None,
        shared_gated=True,
        router_dtype="",
        shared_bias=False,
        shared_names=("gate_proj", "up_proj", "down_proj"),
        shared_fused=None,
        shared_hidden=None,
    ):
        """Routed experts (each token uses `active` of them), their router, and experts every token uses.

        shared_ff: total width of the shared experts, 0 for none. gated: gate, up and down rather than up and down.
        """
        h = hidden or self.hidden
        if active > experts:
            raise InputError(self.c.field("num_experts_per_tok"), active, f"must be at most the number of experts ({experts})")
        if layers == ():
            return
        if router:
            self.linear(
                router, ROUTER, router_experts or experts, self.hidden, layers=layers, bias=router_bias, own_dtype=router_dtype
            )
        many = {"layers": layers, "copies": experts, "active": active, "bias": bias}
        if gated and fused:
            self.linear(prefix + fused, EXPERTS, 2 * ff, h, **many)
        else:
            if gated:
                self.linear(prefix + names[0], EXPERTS, ff, h, **many)
            self.linear(prefix + names[1], EXPERTS, ff, h, **many)
        self.linear(prefix + names[2], EXPERTS, h, ff, **many)
        if shared_ff:
            if shared_gated:
                self.gated_mlp(
                    shared_ff,
                    layers=layers,
                    prefix=shared,
                    group=SHARED,
                    bias=shared_bias,
                    names=shared_names,
                    fused=shared_fused,
                    hidden=shared_hidden,
                )
            else:
                self.plain_mlp(
                    shared_ff,
                    layers=layers,
                    prefix=shared,
                    group=SHARED,
                    bias=shared_bias,
                    names=shared_names[1:],
                    hidden=shared_hidden,
                )
            if shared_gate:
                self.linear("mlp.shared_expert_gate", SHARED, 1, self.hidden, layers=layers)

    # Recurrent parts.
    def recurrent(self, kind, state_bytes, flops_per_token, layers=None):
        """A state of constant size. state_bytes: per sequence per layer [bytes]; flops_per_token: of the scan, per layer [FLOP]."""
        layers = self.all if layers is None else tuple(layers)
        if layers:
            self.recurrents.append(
                Recurrent(layers=layers, kind=kind, state_bytes=int(state_bytes), flops_per_token=float(flops_per_token))
            )

    def mamba2(
        self,
        *,
        heads,
        head_dim,
        state,
        groups,
        kernel=4,
        conv_bias=True,
        proj_bias=False,
        out_bias=None,
        layers=None,
        prefix="mamba.",
        norm=True,
        group=RECURRENT,
        inner=None,
        hidden=None,
    ):
        """Mamba-2: one input projection (gate, x, B, C, dt), a depthwise convolution, the state-space scan, a gated norm, an output projection."""
        inner, hidden = inner or heads * head_dim, hidden or self.hidden
        conv = inner + 2 * groups * state
        self.linear(prefix + "in_proj", group, inner + conv + heads, hidden, layers=layers, bias=proj_bias)
        self.vector(prefix + "conv1d", group, conv * kernel, layers=layers)
        if conv_bias:
            self.vector(prefix + "conv1d.bias", group, conv, layers=layers)
        for name in ("dt_bias", "A_log", "D"):
            self.vector(prefix + name, group, heads, layers=layers)
        if norm:
            self.norm(prefix + "norm", size=inner, layers=layers)
        self.linear(prefix + "out_proj", group, hidden, inner, layers=layers, bias=proj_bias if out_bias is None else out_bias)
        # Per token: the convolution, then decay, outer product and read-out of a heads x head_dim x state matrix.
        self.recurrent(
            "mamba2",
            conv * kernel * BF16 + heads * head_dim * state * FP32,
            2 * conv * kernel + 6 * heads * head_dim * state,
            layers,
        )

    def delta_state(self, kind, conv, kernel, heads, key, value, layers):
        """State of a gated delta rule: a convolution's last inputs and a key x value matrix per head (kept in fp32)."""
        # Per token: decay, read the old value, write the correction, read out; two FLOPs an element each, one for the decay.
        self.recurrent(
            kind, conv * kernel * BF16 + heads * key * value * FP32, 2 * conv * kernel + 7 * heads * key * value, layers
        )
