"""Newer families over grouped-query attention: windows, gates, short convolutions, experts behind a narrow projection, n-gram tables."""

from __future__ import annotations

from math import isqrt

from ..errors import InputError
from . import vision
from .dense import SLIDING, TWO_NORMS
from .hybrid import MIXED
from .moe import experts_by_kind, others, shared_moe
from .parts import ATTN, BF16, FP32, RECURRENT, Build
from .registry import family
from .wrappers import absent, language, tower

FOUR_NORMS = (*TWO_NORMS, "pre_feedforward_layernorm", "post_feedforward_layernorm")


def every_fourth_from_the_last(m: Build) -> list:
    """Full attention in the last layer and every fourth before it, a window in the others."""
    return m.c.kinds("layer_types", m.n, lambda i: "sliding_attention" if (m.n - 1 - i) % 4 else "full_attention", SLIDING)


@family("flint")
def flint(m: Build):
    c = m.c
    m.embed()
    kinds = c.kinds(
        "layer_types", m.n, lambda i: "full_attention" if i < 2 or i % 4 == 1 or i == m.n - 1 else "sliding_attention", SLIDING
    )
    for layers, w in m.sliding(kinds, c.opt("sliding_window")):
        m.core(layers=layers, window=w)
    m.gqa(bias=c.flag("attention_bias"), qk_norm="head", core=False)
    m.vector("self_attn.sinks", ATTN, m.heads)
    plain = c.indices("mlp_only_layers") if c.get("mlp_only_layers") is not None else {0, 1}
    step = c.int("decoder_sparse_step")
    layers = m.where(lambda i: i not in plain and (i + 1) % step == 0)
    m.gated_mlp(layers=others(m, layers))
    shared_moe(m, layers=layers)
    m.norm(*TWO_NORMS)


@family("beam")
def beam(m: Build):
    c = m.c
    m.embed()
    kinds = c.kinds(
        "layer_types", m.n, lambda i: "sliding_attention" if (i + 1) % 6 and i < m.n - 1 else "full_attention", SLIDING
    )
    for layers, w in m.sliding(kinds, c.opt("sliding_window")):
        m.core(layers=layers, window=w)
    m.gqa(bias=c.flag("attention_bias"), qk_norm="head", core=False)
    m.linear("self_attn.gate_proj", ATTN, m.heads * m.head_dim, m.hidden)
    m.vector("self_attn.gate_bias", ATTN, m.heads)
    experts_by_kind(m, 3, "num_experts", "num_shared_experts")
    m.norm(*FOUR_NORMS)


@family("muse_glimmer_text", "muse_spark_text")
def muse_text(m: Build):
    """A gate on the attention; Spark's experts work in a narrower space, between two projections."""
    c, h = m.c, m.hidden
    m.embed()
    for layers, w in m.sliding(every_fourth_from_the_last(m), c.opt("sliding_window")):
        m.core(layers=layers, window=w)
    m.gqa(bias=c.flag("attention_bias"), core=False)
    m.linear("self_attn.gate_proj", ATTN, m.heads * m.head_dim, h)
    if c.type == "muse_glimmer_text":
        m.gated_mlp()
        return m.norm(*FOUR_NORMS)
    kinds = c.kinds("mlp_layer_types", m.n, lambda i: "sparse", ("dense", "sparse"))
    sparse = m.where(lambda i: kinds[i] == "sparse")
    if len(sparse) < m.n:
        raise InputError(c.field("mlp_layer_types"), "dense", "is not described here; every layer must be sparse")
    width = c.int("moe_hidden_size")
    m.linear("mlp.pre_expert_proj", "other", width, h)
    m.linear("mlp.post_expert_proj", "other", h, width)
    m.moe(c.int("num_local_experts"), c.int("num_experts_per_tok"), c.int("moe_intermediate_size"), hidden=width)
    m.norm("mlp.pre_expert_norm", "mlp.experts.post_expert_norm", size=width)
    m.norm("input_layernorm", "pre_feedforward_layernorm", "post_feedforward_layernorm")
    m.vector("post_attention_residual_gate.gate", "other", h)
    m.vector("post_feedforward_residual_gate.gate", "other", h)


@family("muse_glimmer", "muse_spark")
def muse(m: Build):
    kind = m.c.type
    top = language(m, kind + "_text", tie=False if kind == "muse_spark" else None)
    v, audio = tower(top, kind + "_vision"), top.sub("audio_config", kind + "_audio")
    if v is None:
        return absent(m)
    vision.roughly(m, v, m.hidden)
    if audio is not None:
        m.notes.append("The audio encoder is not counted.")


@family("lara_mini")
def lara_mini(m: Build):
    """Gated delta nets, sliding and full attention in turn, experts everywhere."""
    c = m.c
    m.embed()
    period = ("linear_attention", "sliding_attention", "linear_attention", "full_attention", "sliding_attention")
    kinds = c.kinds("layer_types", m.n, lambda i: period[i % 5], (*SLIDING, "linear_attention"))
    linear = m.where(lambda i: kinds[i] == "linear_attention")
    for kind, window in (("full_attention", None), ("sliding_attention", c.opt("sliding_window"))):
        m.core(layers=m.where(lambda i: kinds[i] == kind), window=window)
    m.gqa(layers=others(m, linear), qk_norm="head", bias=c.flag("attention_bias"), core=False)
    delta_net(m, linear)
    shared_moe(m)
    m.norm(*TWO_NORMS)


def delta_net(m: Build, layers: tuple):
    """Qwen's gated delta net with its projections apart."""
    c, h, p = m.c, m.hidden, "linear_attn."
    kh, vh, kd, vd = (c.int("linear_" + k) for k in ("num_key_heads", "num_value_heads", "key_head_dim", "value_head_dim"))
    keys, values, kernel = kh * kd, vh * vd, c.int("linear_conv_kernel_dim")
    for name, rows in (("in_proj_qkv", 2 * keys + values), ("in_proj_z", values), ("in_proj_b", vh), ("in_proj_a", vh)):
        m.linear(p + name, RECURRENT, rows, h, layers=layers)
    m.vector(p + "conv1d", RECURRENT, (2 * keys + values) * kernel, layers=layers)
    m.vector(p + "dt_bias", RECURRENT, vh, layers=layers)
    m.vector(p + "A_log", RECURRENT, vh, layers=layers)
    m.norm(p + "norm", size=vd, layers=layers)
    m.linear(p + "out_proj", RECURRENT, h, values, layers=layers)
    m.delta_state("gated delta net", 2 * keys + values, kernel, vh, kd, vd, layers)


@family("zaya")
def zaya(m: Build):
    """Attention in a compressed space with two short convolutions; a router that is a small MLP, with one way that skips the experts."""
    c, h = m.c, m.hidden
    m.embed(head_bias=c.flag("lm_head_bias"))
    kinds = c.kinds("layer_types", m.n, lambda i: "hybrid", ("hybrid", "hybrid_sliding"))
    heads, kv, d, p = m.heads, m.kv_heads, m.head_dim, "self_attn."
    for kind, window in (("hybrid", None), ("hybrid_sliding", c.opt("sliding_window"))):
        m.core(layers=m.where(lambda i: kinds[i] == kind), window=window)
    width, bias = (heads + kv) * d, c.flag("attention_bias")
    m.linear(p + "o_proj", ATTN, h, heads * d, bias=bias)
    m.linear(p + "qkv_proj.q_proj", ATTN, heads * d, h, bias=bias)
    m.linear(p + "qkv_proj.k_proj", ATTN, kv * d, h, bias=bias)
    for name in ("v_proj_current", "v_proj_delayed"):
        m.linear(p + "qkv_proj." + name, ATTN, kv * d // 2, h, bias=bias)
    first, second = c.int("cca_time0"), c.int("cca_time1")
    m.vector(p + "qkv_proj.conv_qk_depthwise", ATTN, width * first)
    m.vector(p + "qkv_proj.conv_qk_depthwise.bias", ATTN, width)
    m.linear(p + "qkv_proj.conv_qk_grouped", ATTN, width, d * second, bias=True)
    m.norm(p + "qk_norm.temp", size=kv)
    m.recurrent("short convolution", (width * (first + second - 2) + kv * d // 2) * BF16, 2 * width * first)
    experts, narrow, ff, r = c.int("num_experts"), c.int("router_hidden_size"), c.int("moe_intermediate_size"), "mlp.gate."
    m.linear(r + "down_proj", "router", narrow, h, bias=True)
    m.norm(r + "router_mlp.norm", size=narrow)
    for name in ("fc1", "fc2"):
        m.linear(r + "router_mlp." + name, "router", narrow, narrow, bias=True)
    m.linear(r + "router_mlp.out_proj", "router", experts + 1, narrow)
    m.vector(r + "router_states_scale", "router", narrow, layers=m.all[1:])
    m.moe(experts, c.int("num_experts_per_tok"), ff, router="")
    m.notes.append("The router can also let a token skip the experts of a layer; every token is counted as using its expert.")
    for where in ("post_attention", "post_mlp"):
        for name in ("hidden_states_scale", "hidden_states_bias", "residual_scale", "residual_bias"):
            m.vector(f"{where}_residual_scale.{name}", "other", h)
    m.once("model.input_hidden_states_scale", "other", h)
    m.once("model.input_hidden_states_bias", "other", h)
    m.norm(*TWO_NORMS)


@family("inkling_text")
def inkling_text(m: Build):
    """Windowed and full attention of their own head counts, positions as learned biases, a short convolution after keys, values and both parts."""
    c, h = m.c, m.hidden
    m.embed(tied=False, head_vocab=c.opt("unpadded_vocab_size", fallback=None))
    m.once("model.embed_tokens.embed_norm", "norm", h)
    local = c.indices("local_layer_ids") if c.get("local_layer_ids") is not None else None
    kinds = c.kinds(
        "layer_types",
        m.n,
        lambda i: "hybrid_sliding" if (i in local if local is not None else (i + 1) % 6) else "hybrid",
        ("hybrid", "hybrid_sliding"),
    )
    kernel, rel, p = c.int("conv_kernel_size"), c.int("d_rel"), "self_attn."
    wide = c.opt("dense_intermediate_size", fallback=None)  # where it is given, intermediate_size is the experts'
    for kind in ("hybrid_sliding", "hybrid"):
        layers = m.where(lambda i: kinds[i] == kind)
        if not layers:
            continue
        swa = "swa_" if kind == "hybrid_sliding" else ""
        heads, kv, d = (c.int(swa + k) for k in ("num_attention_heads", "num_key_value_heads", "head_dim"))
        window = c.int("sliding_window_size") if swa else None
        extent = window if swa else c.int("rel_extent")
        m.gqa(layers=layers, heads=heads, kv=kv, d=d, qk_norm="head", window=window)
        m.linear(p + "r_proj", ATTN, heads * rel, h, layers=layers)
        m.linear(p + "rel_logits_proj.proj", ATTN, extent, rel, layers=layers, uses=heads)
        for name in ("k_sconv", "v_sconv"):
            m.vector(f"{p}{name}.conv1d", RECURRENT, kv * d * kernel, layers=layers)
        m.recurrent("short convolution", 2 * (kv * d + h) * kernel * FP32, 4 * (kv * d + h) * kernel, layers)
    for name in ("attn_sconv", "mlp_sconv"):
        m.vector(name + ".conv1d", RECURRENT, h * kernel)
    first = c.int("dense_mlp_idx", 0, fallback=0)
    mlp = c.kinds("mlp_layer_types", m.n, lambda i: "dense" if i < first else "sparse", ("dense", "sparse"))
    dense = m.where(lambda i: mlp[i] == "dense")
    m.gated_mlp(wide or m.ff, layers=dense)
    if dense:
        m.vector("mlp.global_scale", "mlp", 1, layers=dense)
    sparse = others(m, dense)
    shared, ff = c.int("n_shared_experts", 0), m.ff if wide else c.int("moe_intermediate_size")
    m.moe(
        c.int("n_routed_experts"),
        c.int("num_experts_per_tok"),
        ff,
        layers=sparse,
        router_experts=c.int("n_routed_experts") + shared,
        shared_ff=ff * shared,
    )
    m.vector("mlp.gate.global_scale", "router", 1, layers=sparse)
    m.norm(*TWO_NORMS)


@family("inkling_mm_model")
def inkling(m: Build):
    top = language(m, "inkling_text", tie=False)
    if tower(top, "inkling_vision") is None:
        return absent(m)
    m.notes.append("The vision and audio parts are not counted.")


def _prime_after(start: int, nth: int) -> int:
    """The nth prime above start."""
    found, n = 0, start
    while found < nth:
        n += 1
        found += n > 1 and (n == 2 or n % 2 > 0) and all(n % k for k in range(3, isqrt(n) + 1, 2))
    return n


@family("qwen4_exp_text")
def qwen4_exp_text(m: Build):
    """Gated delta nets, sparse gated attention in every fourth layer, experts; the residual in several streams; tables of n-grams in some layers."""
    c, h = m.c, m.hidden
    m.embed(norm=None)
    period = c.int("full_attention_interval", fallback=4)
    allowed = (*MIXED, "indexed_attention")
    kinds = c.kinds("layer_types", m.n, lambda i: "linear_attention" if (i + 1) % period else "indexed_attention", allowed)
    linear = m.where(lambda i: kinds[i] == "linear_attention")
    full = others(m, linear)
    delta_net(m, linear)
    m.gqa(layers=full, bias=c.flag("attention_bias"), qk_norm="head", gate=True, core=False)
    if full:
        if c.opt("indexer_n_heads") is None:
            raise InputError(c.field("indexer_n_heads"), None, "is missing and must be given, with the other indexer_ fields")
        ih, ik, d, ratio = (
            c.int(k) for k in ("indexer_n_heads", "indexer_kv_heads", "indexer_head_dim", "indexer_compress_ratio")
        )
        m.core(layers=full, topk=c.int("indexer_budget"), index_heads=ih, index_dim=d, index_elements=ik * d, kind="sparse")
        m.linear("self_attn.indexer.index_qk_proj", ATTN, (ih + ik) * d, h, layers=full)
        m.norm("self_attn.indexer.q_layernorm", "self_attn.indexer.k_layernorm", size=d, layers=full)
        m.notes.append(f"Blocks of {ratio} tokens are indexed by one key made of theirs.")
    shared_moe(m, shared_gate=True)
    streams, rank = c.int("hc_count", 2, 64), c.int("hc_lowrank")
    wide = streams * h
    for name in ("attn_hyper_connection.", "mlp_hyper_connection."):
        m.norm(name + "hc_norm", size=wide)
        m.linear(name + "input_mix_weight_down", "other", rank, wide)
        m.linear(name + "input_mix_weight_up", "other", wide, rank)
        m.linear(name + "block_inject_weight", "other", streams, wide)
    m.once("model.hyper_connection_mixer.hc_norm", "norm", wide)
    m.once("model.hyper_connection_mixer.input_mix_weight_down", "other", rank, wide)
    m.once("model.hyper_connection_mixer.input_mix_weight_up", "other", wide, rank)
    ngrams(m, wide)


def ngrams(m: Build, wide: int):
    """Per-layer tables of hashed n-grams: each head of each table has a prime number of rows."""
    c = m.c
    at = sorted({i - 1 for i in c.indices("ple_layer_ids")})  # counted from 1
    if not at:
        return
    dim, heads = c.opt("ple_embed_dim") or m.hidden, (c.int("ngram_size", 2, 64) - 1) * c.int("heads_per_ngram", 1, 256)
    if dim % heads or at[-1] >= m.n or at[0] < 0 or len(at) * heads > 4096:
        raise InputError(
            c.field("ple_layer_ids"),
            at,
            f"must name layers from 1 to {m.n}, with ple_embed_dim a multiple of the {heads} n-gram heads",
        )
    base, unit, kernel = (
        c.int("ngram_vocab_size_base", 2, 100_000_000),
        c.int("make_ngram_vocab_size_divisible_by", 1, 1_000_000),
        c.int("ple_conv_kernel_size"),
    )
    size = base - 1
    for layer in at:
        rows = 0
        for _ in range(heads):
            size = _prime_after(size, 1)
            rows += size
        # A table is a gather, however large: memory, hardly any traffic.
        m.vector(
            "ple.ple_embedding.ngram_embedding",
            "embedding",
            -(-rows // unit) * unit * (dim // heads),
            layers=(layer,),
            kind="table",
        )
    layers = tuple(at)
    m.linear("ple.key_proj", "other", wide, dim, layers=layers)
    m.linear("ple.value_proj", "other", m.hidden, dim, layers=layers)
    m.norm("ple.norm_key", "ple.norm_query", "ple.norm_conv", size=wide, layers=layers)
    m.vector("ple.conv1d", "other", wide * kernel, layers=layers)
    m.recurrent("short convolution", wide * (kernel - 1) * c.int("ngram_size") * BF16, 2 * wide * kernel, layers)


@family("qwen4_exp")
def qwen4_exp(m: Build):
    top = language(m, "qwen4_exp_text")
    v = tower(top, "qwen4_exp_vision")
    if v is None:
        return absent(m)
    m.wrapper = "qwen3_5"
    vision.qwen(m, v)
