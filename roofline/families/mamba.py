"""State-space and other recurrent families: Mamba 1 and 2, Jamba, Bamba, Zamba, Griffin, RWKV, xLSTM, MiniMax-01."""

from __future__ import annotations

from ..errors import InputError
from .dense import TWO_NORMS
from .hybrid import mamba_of, mixed
from .moe import others
from .parts import ATTN, BF16, FP32, MLP, RECURRENT, Build
from .registry import family


def dt_rank(m: Build, name: str) -> int:
    """The rank of Mamba's time step: given, or a sixteenth of the hidden size."""
    return -(-m.hidden // 16) if m.c.get(name) == "auto" else m.c.int(name)


def mamba1(
    m: Build,
    inner: int,
    state: int,
    kernel: int,
    rank: int,
    *,
    layers=None,
    prefix="mixer.",
    conv_bias=True,
    bias=False,
    norms=False,
    heads=1,
):
    """Mamba: projections, a depthwise convolution, an input-dependent diagonal state space; `heads` splits the inner width (Zamba)."""
    h = m.hidden
    m.linear(prefix + "in_proj", RECURRENT, 2 * inner, h, layers=layers, bias=bias)
    m.vector(prefix + "conv1d", RECURRENT, inner * kernel, layers=layers)
    if conv_bias:
        m.vector(prefix + "conv1d.bias", RECURRENT, inner, layers=layers)
    m.linear(prefix + "x_proj", RECURRENT, rank + 2 * state, inner // heads, layers=layers, copies=heads, active=heads)
    m.linear(prefix + "dt_proj", RECURRENT, inner // heads, rank, layers=layers, copies=heads, active=heads, bias=True)
    m.vector(prefix + "A_log", RECURRENT, inner * state, layers=layers)
    m.vector(prefix + "D", RECURRENT, inner, layers=layers)
    if norms:
        for name, size in (("dt_layernorm", rank), ("b_layernorm", state), ("c_layernorm", state)):
            m.norm(prefix + name, size=size, layers=layers)
    m.linear(prefix + "out_proj", RECURRENT, h, inner, layers=layers, bias=bias)
    m.recurrent("mamba", inner * kernel * BF16 + inner * state * FP32, 2 * inner * kernel + 6 * inner * state, layers)


@family("mamba", "falcon_mamba")
def mamba(m: Build):
    c = m.c
    m.embed(name="backbone.embeddings", norm="backbone.norm_f")
    mamba1(
        m,
        c.opt("intermediate_size", fallback=None) or c.int("expand") * m.hidden,
        c.int("state_size"),
        c.int("conv_kernel"),
        dt_rank(m, "time_step_rank"),
        conv_bias=c.flag("use_conv_bias"),
        bias=c.flag("use_bias"),
    )
    m.norm("norm")


@family("mamba2")
def mamba2(m: Build):
    c = m.c
    heads, d = c.int("num_heads"), c.int("head_dim")
    if heads * d != c.int("expand") * m.hidden:
        raise InputError(
            "num_heads", heads, f"times head_dim ({d}) must equal expand x hidden_size ({c.int('expand') * m.hidden})"
        )
    m.embed(name="backbone.embeddings", norm="backbone.norm_f")
    m.mamba2(
        heads=heads,
        head_dim=d,
        state=c.int("state_size"),
        groups=c.int("n_groups"),
        kernel=c.int("conv_kernel"),
        conv_bias=c.flag("use_conv_bias"),
        proj_bias=c.flag("use_bias"),
        prefix="mixer.",
    )
    m.norm("norm")


@family("jamba")
def jamba(m: Build):
    c = m.c
    m.embed(norm="model.final_layernorm")
    period, offset = c.int("attn_layer_period"), c.int("attn_layer_offset", 0)
    full = m.where(lambda i: i % period == offset)
    m.gqa(layers=full, d=m.split(m.hidden, m.heads))
    mamba1(
        m,
        c.int("mamba_expand") * m.hidden,
        c.int("mamba_d_state"),
        c.int("mamba_d_conv"),
        dt_rank(m, "mamba_dt_rank"),
        layers=others(m, full),
        prefix="mamba.",
        conv_bias=c.flag("mamba_conv_bias"),
        bias=c.flag("mamba_proj_bias"),
        norms=True,
    )
    every, start, experts = c.int("expert_layer_period"), c.int("expert_layer_offset", 0), c.int("num_experts")
    sparse = m.where(lambda i: i % every == start) if experts > 1 else ()
    m.gated_mlp(layers=others(m, sparse), prefix="feed_forward.")
    if sparse:
        m.moe(
            experts,
            c.int("num_experts_per_tok"),
            m.ff,
            layers=sparse,
            router="feed_forward.router",
            prefix="feed_forward.experts.",
        )
    m.norm("input_layernorm", "pre_ff_layernorm")


@family("bamba")
def bamba(m: Build):
    c = m.c
    m.embed(norm="model.final_layernorm")
    attended = c.indices("attn_layer_indices")
    full = m.where(lambda i: i in attended)
    if full:
        m.gqa(layers=full, bias=c.flag("attention_bias"), d=m.split(m.hidden, m.heads))
    mamba_of(m, others(m, full))
    m.gated_mlp(prefix="feed_forward.", bias=c.flag("mlp_bias"))
    m.norm("input_layernorm", "pre_ff_layernorm")


def block_kinds(m: Build, rule) -> tuple:
    """(layers with the shared attention block, all the others) of Zamba."""
    kinds = m.c.kinds("layers_block_type", m.n, rule, ("hybrid", "linear_attention"))
    return m.where(lambda i: kinds[i] == "hybrid"), m.where(lambda i: kinds[i] != "hybrid")


@family("zamba")
def zamba(m: Build):
    """Mamba layers; one attention block, stored once, runs before some of them on the concatenated input."""
    c, h = m.c, m.hidden
    m.embed(norm="model.final_layernorm")
    period, offset = c.int("attn_layer_period"), c.int("attn_layer_offset", 0)
    hybrid, _ = block_kinds(m, lambda i: "hybrid" if i == 2 or i > 2 and (i - 3) % period == offset else "linear_attention")
    inner, heads = c.int("mamba_expand") * h, c.int("n_mamba_heads")
    mamba1(
        m,
        inner,
        c.int("mamba_d_state"),
        c.int("mamba_d_conv"),
        dt_rank(m, "mamba_dt_rank"),
        prefix="mamba.",
        conv_bias=c.flag("mamba_conv_bias"),
        bias=c.flag("mamba_proj_bias"),
        heads=heads,
    )
    m.norm("input_layernorm")
    if hybrid:
        wide, d, uses, p = (
            c.opt("attention_hidden_size") or 2 * h,
            c.opt("attention_head_dim") or m.split(2 * h, m.heads),
            len(hybrid),
            "shared_transf.",
        )
        for name, rows, cols in (
            ("q_proj", m.heads * d, wide),
            ("k_proj", m.kv_heads * d, wide),
            ("v_proj", m.kv_heads * d, wide),
            ("o_proj", h, m.heads * d),
        ):
            m.linear(p + "self_attn." + name, ATTN, rows, cols, layers=hybrid[:1], uses=uses)
        for name, rows, cols in (("gate_proj", m.ff, h), ("up_proj", m.ff, h), ("down_proj", h, m.ff)):
            m.linear(p + "feed_forward." + name, MLP, rows, cols, layers=hybrid[:1], uses=uses)
        m.norm(p + "input_layernorm", size=wide, layers=hybrid[:1])
        m.norm(p + "pre_ff_layernorm", layers=hybrid[:1])
        m.linear("linear", "other", h, h, layers=hybrid)
        m.core(layers=hybrid, d=d)


@family("zamba2")
def zamba2(m: Build):
    """As Zamba, with Mamba-2, a few alternating shared blocks and a small adapter of its own in every place a block is used."""
    c, h = m.c, m.hidden
    m.embed(norm="model.final_layernorm")
    default = {6, 12, 18, 24, 30, 36, 42, 47, 51}
    hybrid, _ = block_kinds(m, lambda i: "hybrid" if i in default else "linear_attention")
    inner, heads = c.int("mamba_expand") * h, c.int("n_mamba_heads")
    m.mamba2(
        heads=heads,
        head_dim=inner // heads,
        state=c.int("mamba_d_state"),
        groups=c.int("mamba_ngroups"),
        kernel=c.int("mamba_d_conv"),
        conv_bias=c.flag("use_conv_bias"),
        proj_bias=c.flag("add_bias_linear"),
        inner=inner,
    )
    m.norm("input_layernorm")
    wide, ff, rank, d = 2 * h, c.opt("intermediate_size") or 4 * h, c.int("adapter_rank"), m.split(2 * h, m.heads)
    blocks = min(c.int("num_mem_blocks", 1, 64), len(hybrid))
    bias = c.flag("add_bias_linear")
    for block in range(blocks):
        mine = hybrid[block::blocks]  # the blocks take turns
        first, uses, p = mine[:1], len(mine), "shared_transformer."
        for name, rows, cols in (
            ("q_proj", m.heads * d, wide),
            ("k_proj", m.kv_heads * d, wide),
            ("v_proj", m.kv_heads * d, wide),
            ("o_proj", h, m.heads * d),
        ):
            m.linear(p + "self_attn." + name, ATTN, rows, cols, layers=first, uses=uses)
        m.linear(p + "feed_forward.gate_up_proj", MLP, 2 * ff, h, layers=first, uses=uses, bias=bias)
        m.linear(p + "feed_forward.down_proj", MLP, h, ff, layers=first, uses=uses, bias=bias)
        m.norm(p + "input_layernorm", size=wide, layers=first)
        m.norm(p + "pre_ff_layernorm", layers=first)
        m.linear(p + "feed_forward.gate_up_proj_adapter_list.0", MLP, rank, h, layers=first, copies=uses, active=uses)
        m.linear(p + "feed_forward.gate_up_proj_adapter_list.1", MLP, 2 * ff, rank, layers=first, copies=uses, active=uses)
        if c.flag("use_shared_attention_adapter"):
            for name in ("q", "k", "v"):
                m.linear(p + f"self_attn.linear_{name}_adapter_list.0", ATTN, rank, wide, layers=first, copies=uses, active=uses)
                m.linear(p + f"self_attn.linear_{name}_adapter_list.1", ATTN, wide, rank, layers=first, copies=uses, active=uses)
    if hybrid:
        m.linear("linear", "other", h, h, layers=hybrid)
        m.core(layers=hybrid, d=d)


@family("recurrent_gemma")
def recurrent_gemma(m: Build):
    """Griffin: gated linear recurrences and local attention."""
    c, h = m.c, m.hidden
    m.embed(norm="model.final_norm")
    pattern = c.items("block_types") or ["recurrent"]
    local = m.where(lambda i: pattern[i % len(pattern)] != "recurrent")
    rest = others(m, local)
    p = "temporal_block."
    m.gqa(
        layers=local,
        d=c.opt("head_dim", fallback=None) or m.split(h, m.heads),
        prefix=p,
        bias=c.flag("attention_bias"),
        out_bias=True,
        window=c.int("attention_window_size"),
    )
    width, kernel = c.opt("lru_width") or h, c.int("conv1d_width")
    m.linear(p + "linear_y", RECURRENT, width, h, layers=rest, bias=True)
    m.linear(p + "linear_x", RECURRENT, width, h, layers=rest, bias=True)
    m.linear(p + "linear_out", RECURRENT, h, width, layers=rest, bias=True)
    m.vector(p + "conv_1d", RECURRENT, width * kernel, layers=rest)
    m.vector(p + "conv_1d.bias", RECURRENT, width, layers=rest)
    m.vector(p + "rg_lru.recurrent_param", RECURRENT, width, layers=rest)
    block = m.split(width, m.heads)
    for name in ("input_gate", "recurrent_gate"):  # block-diagonal, a block a head
        m.linear(p + f"rg_lru.{name}_weight", RECURRENT, block, block, layers=rest, copies=m.heads, active=m.heads)
        m.vector(p + f"rg_lru.{name}_bias", RECURRENT, width, layers=rest)
    m.recurrent("gated linear recurrence", width * (kernel - 1) * BF16 + width * FP32, 2 * width * kernel + 4 * width, rest)
    m.gated_mlp(m.ff // 2, prefix="mlp_block.", bias=True)
    m.norm("temporal_pre_norm", "channel_pre_norm")


@family("rwkv")
def rwkv(m: Build):
    """RWKV-4: time mixing with a decaying state, channel mixing as feed-forward."""
    c, h = m.c, m.hidden
    m.embed(name="rwkv.embeddings", head="head", norm="rwkv.ln_out", norm_bias=True)
    width, ff = c.opt("attention_hidden_size") or h, c.opt("intermediate_size") or 4 * h
    m.norm("pre_ln", layers=(0,), bias=True)
    m.norm("ln1", "ln2", bias=True)
    for name in ("time_decay", "time_first"):
        m.vector("attention." + name, RECURRENT, width)
    for name in ("key", "value", "receptance"):
        m.vector("attention.time_mix_" + name, RECURRENT, h)
        m.linear("attention." + name, RECURRENT, width, h)
    m.linear("attention.output", RECURRENT, h, width)
    for name in ("key", "receptance"):
        m.vector("feed_forward.time_mix_" + name, MLP, h)
    m.linear("feed_forward.key", MLP, ff, h)
    m.linear("feed_forward.receptance", MLP, h, h)
    m.linear("feed_forward.value", MLP, h, ff)
    m.recurrent("wkv", 2 * h * BF16 + 3 * width * FP32, 10 * width)


@family("xlstm")
def xlstm(m: Build):
    c, h = m.c, m.hidden
    m.n = c.opt("num_blocks") or m.n

    def rounded(factor: float, multiple: int) -> int:
        return -(-int(h * factor) // multiple) * multiple

    m.embed(name="backbone.embeddings", norm="backbone.out_norm" if c.flag("add_out_norm") else None)
    bias, heads, p = c.flag("use_bias"), c.int("num_heads"), "mlstm_layer."
    qk, v = rounded(c.num("qk_dim_factor", 0.01, 100), 64), rounded(c.num("v_dim_factor", 0.01, 100), 64)
    for name, rows in (("q", qk), ("k", qk), ("v", v), ("ogate_preact", v)):
        m.linear(p + name, RECURRENT, rows, h, bias=bias)
    for name in ("igate_preact", "fgate_preact"):
        m.linear(p + name, RECURRENT, heads, h, bias=True)
    m.norm(p + "multihead_norm", size=v)
    m.linear(p + "out_proj", RECURRENT, h, v, bias=bias)
    m.recurrent("mlstm", (qk * v // heads + qk + heads) * BF16, 6 * qk * v // heads)
    m.gated_mlp(
        rounded(c.num("ffn_proj_factor", 0.01, 100), c.int("ffn_round_up_to_multiple_of")),
        prefix="ffn.",
        names=("proj_up_gate", "proj_up", "proj_down"),
        bias=bias,
    )
    m.norm("norm_mlstm", "norm_ffn")


@family("minimax", "minimax_text_01", "MiniMaxText01", "minimax_m1", "MiniMaxM1")
def minimax(m: Build):
    """MiniMax-Text-01 and M1: lightning attention, full attention in some layers, experts in all."""
    c, h = m.c, m.hidden
    m.embed()
    kinds = c.items("attn_type_list", m.n, fallback=None)
    rule = (
        (lambda i: "full_attention" if kinds[i] else "linear_attention")
        if kinds
        else lambda i: "full_attention" if (i + 1) % 2 else "linear_attention"
    )
    full, linear = mixed(m, rule)
    m.gqa(layers=full, window=c.opt("sliding_window", fallback=None))
    width = m.heads * m.head_dim
    m.linear("self_attn.qkv_proj", RECURRENT, 3 * width, h, layers=linear)
    m.linear("self_attn.out_proj", RECURRENT, h, width, layers=linear)
    m.linear("self_attn.output_gate", RECURRENT, width, h, layers=linear)
    m.norm("self_attn.norm", size=width, layers=linear)
    m.recurrent("lightning attention", width * m.head_dim * BF16, 6 * width * m.head_dim, linear)
    m.moe(
        c.int("num_local_experts"),
        c.int("num_experts_per_tok"),
        m.ff,
        router="block_sparse_moe.gate",
        prefix="block_sparse_moe.experts.",
        names=("w1", "w3", "w2"),
    )
    m.norm(*TWO_NORMS)
