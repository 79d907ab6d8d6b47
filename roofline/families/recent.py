"""A few newer families, by the parts they share with older ones."""

from __future__ import annotations

from .dense import SLIDING, TWO_NORMS, every
from .hybrid import kimi_delta
from .moe import experts_by_kind, others
from .parts import ATTN, BF16, RECURRENT, Build
from .registry import family


@family("axk1")
def axk1(m: Build):
    """DeepSeek-V3's parts with one more norm after the experts."""
    c = m.c
    m.embed()
    m.mla(bias=c.flag("attention_bias"))
    first, step = c.int("first_k_dense_replace", 0, fallback=1), c.int("moe_layer_freq", fallback=1)
    kinds = c.kinds("mlp_layer_types", m.n, lambda i: "sparse" if i >= first and i % step == 0 else "dense", ("dense", "sparse"))
    dense, layers = m.where(lambda i: kinds[i] == "dense"), m.where(lambda i: kinds[i] == "sparse")
    if dense:
        m.gated_mlp(layers=dense)
    ff = c.int("moe_intermediate_size")
    m.moe(
        c.int("n_routed_experts"),
        c.int("num_experts_per_tok"),
        ff,
        layers=layers,
        shared_ff=ff * (c.opt("n_shared_experts", 0) or 0),
    )
    m.norm(*TWO_NORMS)
    m.norm("mlp.post_mlp_layernorm", layers=layers)


@family("lfm3")
def lfm3(m: Build):
    """Short convolutions, gated full and sliding attention."""
    c, h = m.c, m.hidden
    m.embed(norm="model.embedding_norm")
    period = ("sliding_attention", "conv", "full_attention", "conv")
    kinds = c.kinds("layer_types", m.n, lambda i: period[i % 4] if i else "conv", (*SLIDING, "conv"))
    conv = m.where(lambda i: kinds[i] == "conv")
    attended = others(m, conv)
    for kind, window in (("full_attention", None), ("sliding_attention", c.opt("sliding_window"))):
        m.core(layers=m.where(lambda i: kinds[i] == kind), window=window)
    m.gqa(layers=attended, qk_norm="head", bias=c.flag("attention_bias"), core=False)
    if c.flag("use_attention_gate"):
        m.linear("self_attn.g_proj", ATTN, m.heads, h, layers=attended)
    bias, kernel = c.flag("conv_bias"), c.int("conv_L_cache")
    m.linear("conv.in_proj", RECURRENT, 3 * h, h, layers=conv, bias=bias)
    m.vector("conv.conv", RECURRENT, h * kernel, layers=conv)
    if bias:
        m.vector("conv.conv.bias", RECURRENT, h, layers=conv)
    m.linear("conv.out_proj", RECURRENT, h, h, layers=conv, bias=bias)
    m.recurrent("short convolution", h * kernel * BF16, 2 * h * kernel, conv)
    m.gated_mlp(prefix="feed_forward.", names=("w1", "w3", "w2"))
    m.norm("operator_norm", "ffn_norm", *(("post_operator_norm", "post_ffn_norm") if c.flag("use_sandwich_norm") else ()))


@family("kolibri1")
def kolibri1(m: Build):
    c = m.c
    m.embed()
    for layers, w in m.sliding(c.kinds("layer_types", m.n, every(5), SLIDING), c.opt("sliding_window")):
        m.core(layers=layers, window=w)
    m.gqa(qk_norm="head", core=False)
    m.moe(
        c.int("num_experts"),
        c.int("num_experts_per_tok"),
        c.int("moe_intermediate_size"),
        shared_ff=c.int("shared_expert_intermediate_size", 0),
    )
    m.norm(*TWO_NORMS, "post_self_attn_layernorm", "post_mlp_layernorm")


@family("bailing_hybrid")
def bailing_hybrid(m: Build):
    """Ling and Ring with Kimi's delta attention in most layers and gated latent attention in every sixth."""
    c, h = m.c, m.hidden
    m.embed(tied=False)
    period = c.int("layer_group_size")
    kinds = c.kinds(
        "layer_types",
        m.n,
        lambda i: "linear_attention" if (i + 1) % period else "full_attention",
        ("full_attention", "linear_attention"),
    )
    full, linear = m.where(lambda i: kinds[i] == "full_attention"), m.where(lambda i: kinds[i] != "full_attention")
    m.mla(layers=full, bias=c.flag("attention_bias"))
    m.linear("self_attn.g_proj", ATTN, m.heads, h, layers=full)
    heads = c.opt("linear_num_heads", fallback=None) or m.heads
    d, kernel = (
        c.opt("linear_head_dim", fallback=None) or c.int("head_dim"),
        c.opt("linear_conv_kernel_dim", fallback=None) or c.int("short_conv_kernel_size"),
    )
    kimi_delta(m, linear, heads, d, kernel, whole=True)
    experts_by_kind(m, c.int("first_k_dense_replace", 0), "num_local_experts", "n_shared_experts")
    m.norm(*TWO_NORMS)


@family("doge")
def doge(m: Build):
    """Dynamic-mask attention, learned residual scales, and (when is_moe) experts of one row each."""
    c, h = m.c, m.hidden
    m.embed()
    m.gqa(bias=c.flag("attention_bias"), qk_norm="head", d=m.split(h, m.heads), window=c.opt("sliding_window"))
    m.vector("self_attn.A", ATTN, m.kv_heads)
    m.linear("self_attn.dt_proj", ATTN, m.kv_heads, m.kv_heads * m.split(h, m.heads), bias=c.flag("attention_bias"))
    m.gated_mlp(bias=c.flag("mlp_bias"))
    if c.flag("is_moe"):
        experts, active = c.int("num_experts"), c.int("num_experts_per_tok")
        m.linear("mlp.router_gate", "router", 2 * int(experts**0.5), h)
        for name in ("down_embed", "up_embed"):
            m.linear("mlp." + name, "experts", 1, h, copies=experts, active=min(active, experts))
    m.vector("input_residual", "other", h)
    m.vector("post_attention_residual", "other", h)
    m.norm(*TWO_NORMS)
