"""Decoders that mix attention with recurrent layers: Mamba, gated delta nets, linear attention, short convolutions."""

from __future__ import annotations

from ..errors import InputError
from .dense import TWO_NORMS
from .moe import granite_ffn, others, shared_moe
from .parts import BF16, RECURRENT, Build
from .registry import family

MIXED = ("full_attention", "linear_attention")


def mixed(m: Build, rule, name: str = "layer_types", allowed: tuple = MIXED) -> tuple:
    """(attention layers, other layers) by the config's list of kinds, or by a rule."""
    kinds = m.c.kinds(name, m.n, rule, allowed)
    full = m.where(lambda i: kinds[i] == "full_attention")
    return full, others(m, full)


@family("qwen3_next", "qwen3_5_text", "qwen3_5_moe_text")
def qwen3_next(m: Build):
    c, h = m.c, m.hidden
    m.embed()
    period = c.int("full_attention_interval", fallback=4)
    full, linear = mixed(m, lambda i: "linear_attention" if (i + 1) % period else "full_attention")
    m.gqa(layers=full, bias=c.flag("attention_bias"), qk_norm="head", gate=True)
    if linear:
        kh, vh, kd, vd = (
            c.int("linear_num_key_heads"),
            c.int("linear_num_value_heads"),
            c.int("linear_key_head_dim"),
            c.int("linear_value_head_dim"),
        )
        keys, values, kernel, p = kh * kd, vh * vd, c.int("linear_conv_kernel_dim"), "linear_attn."
        fused = {"in_proj_qkvz": 2 * keys + 2 * values, "in_proj_ba": 2 * vh}
        split = {"in_proj_qkv": 2 * keys + values, "in_proj_z": values, "in_proj_b": vh, "in_proj_a": vh}
        for name, rows in (fused if c.type == "qwen3_next" else split).items():
            m.linear(p + name, RECURRENT, rows, h, layers=linear)
        m.vector(p + "conv1d", RECURRENT, (2 * keys + values) * kernel, layers=linear)
        m.vector(p + "dt_bias", RECURRENT, vh, layers=linear)
        m.vector(p + "A_log", RECURRENT, vh, layers=linear)
        m.norm(p + "norm", size=vd, layers=linear)
        m.linear(p + "out_proj", RECURRENT, h, values, layers=linear)
        m.delta_state("gated delta net", 2 * keys + values, kernel, vh, kd, vd, linear)
    if c.type == "qwen3_5_text":
        m.gated_mlp()
    else:
        step = c.int("decoder_sparse_step", fallback=1) if c.type == "qwen3_next" else 1
        plain = c.indices("mlp_only_layers", fallback=None) if c.type == "qwen3_next" else set()
        sparse = m.where(lambda i: i not in plain and (i + 1) % step == 0)
        dense = others(m, sparse)
        if dense:
            m.gated_mlp(layers=dense)
        if sparse:
            shared_moe(m, layers=sparse, shared_gate=True)
    m.norm(*TWO_NORMS)


@family("lfm2", "lfm2_moe")
def lfm2(m: Build):
    c, h = m.c, m.hidden
    m.embed(norm="model.embedding_norm", tied=c.flag("tie_embedding", c.get("tie_word_embeddings")))
    attended = c.items("full_attn_idxs")
    full, conv = mixed(
        m, lambda i: "full_attention" if attended is None or i in attended else "conv", allowed=("full_attention", "conv")
    )
    m.gqa(layers=full, d=m.split(h, m.heads), out="out_proj", qk_norm="head", norms=("q_layernorm", "k_layernorm"))
    bias, kernel = c.flag("conv_bias"), c.int("conv_L_cache")
    m.linear("conv.in_proj", RECURRENT, 3 * h, h, layers=conv, bias=bias)
    m.vector("conv.conv", RECURRENT, h * kernel, layers=conv)
    if bias:
        m.vector("conv.conv.bias", RECURRENT, h, layers=conv)
    m.linear("conv.out_proj", RECURRENT, h, h, layers=conv, bias=bias)
    m.recurrent("short convolution", h * kernel * BF16, 2 * h * kernel, conv)
    names = ("w1", "w3", "w2")
    if c.type == "lfm2":
        ff = c.int("block_ff_dim") if c.has("block_ff_dim") else m.ff
        if c.flag("block_auto_adjust_ff_dim"):
            ff = int(2 * ff / 3)
            if c.get("block_ffn_dim_multiplier") is not None:
                ff, multiple = int(c.num("block_ffn_dim_multiplier", 0.01, 100) * ff), c.int("block_multiple_of")
                ff = multiple * -(-ff // multiple)
        m.gated_mlp(ff, prefix="feed_forward.", names=names)
    else:
        first = c.int("num_dense_layers", 0)
        dense, sparse = m.where(lambda i: i < first), m.where(lambda i: i >= first)
        if dense:
            m.gated_mlp(layers=dense, prefix="feed_forward.", names=names)
        m.moe(
            c.int("num_experts"),
            c.int("num_experts_per_tok"),
            c.int("moe_intermediate_size"),
            layers=sparse,
            router="feed_forward.gate",
            prefix="feed_forward.experts.",
            names=names,
        )
    m.norm("operator_norm", "ffn_norm")


@family("olmo_hybrid")
def olmo_hybrid(m: Build):
    c, h = m.c, m.hidden
    m.embed()
    full, linear = mixed(m, lambda i: "full_attention" if i % 4 == 3 or (m.n < 4 and i == m.n - 1) else "linear_attention")
    m.gqa(layers=full, bias=c.flag("attention_bias"), qk_norm="flat")
    kh, vh = c.opt("linear_num_key_heads") or m.heads, c.opt("linear_num_value_heads") or m.heads
    kd = c.opt("linear_key_head_dim") or int(0.75 * h / kh)
    vd, kernel = c.opt("linear_value_head_dim") or 2 * kd, c.int("linear_conv_kernel_dim")
    keys, values, p = kh * kd, vh * vd, "linear_attn."
    for name, rows in {"q_proj": keys, "k_proj": keys, "v_proj": values, "a_proj": vh, "b_proj": vh, "g_proj": values}.items():
        m.linear(p + name, RECURRENT, rows, h, layers=linear)
    m.vector(p + "conv1d", RECURRENT, (2 * keys + values) * kernel, layers=linear)
    m.vector(p + "A_log", RECURRENT, vh, layers=linear)
    m.vector(p + "dt_bias", RECURRENT, vh, layers=linear)
    m.norm(p + "o_norm", size=vd, layers=linear)
    m.linear(p + "o_proj", RECURRENT, h, values, layers=linear)
    m.delta_state("gated delta net", 2 * keys + values, kernel, vh, kd, vd, linear)
    m.gated_mlp()
    m.norm("input_layernorm", layers=linear)
    m.norm("post_attention_layernorm")
    m.norm("post_feedforward_layernorm", layers=full)


def kimi_delta(m: Build, linear: tuple, heads: int, d: int, kernel: int, *, forget: str = "", whole: bool = False):
    """Kimi delta attention: q, k and v of heads x d, a short convolution, a state of d x d a head, a forget and an output gate.

    The gates go through d values each (two matrices), or are one whole matrix. forget: the module that holds the forget gate.
    """
    h, width, p = m.hidden, heads * d, "self_attn."
    gate = lambda name: [(name + "_proj", width, h)] if whole else [(name + "_a_proj", d, h), (name + "_b_proj", width, d)]
    inputs = [(name, width, h) for name in ("q_proj", "k_proj", "v_proj")]
    for name, rows, cols in (*inputs, *gate(forget + "f"), ("b_proj", heads, h), *gate("g"), ("o_proj", h, width)):
        m.linear(p + name, RECURRENT, rows, cols, layers=linear)
    m.vector(p + "conv1d", RECURRENT, 3 * width * kernel, layers=linear)
    m.vector(p + forget + "dt_bias", RECURRENT, width, layers=linear)
    m.vector(p + forget + "A_log", RECURRENT, heads, layers=linear)
    m.norm(p + "o_norm", size=d, layers=linear)
    m.delta_state("kimi delta attention", 3 * width, kernel, heads, d, d, linear)


@family("kimi_linear")
def kimi_linear(m: Build):
    c = m.c
    m.embed(tied=False)
    own = c.sub("linear_attn_config", "")
    given = own.raw if own else {}
    attended = (
        {i - 1 for i in own.indices("full_attn_layers", fallback=None)} if own and "full_attn_layers" in given else None
    )  # counted from 1
    full, linear = mixed(
        m, lambda i: "full_attention" if (i in attended if attended is not None else i and i % 4 == 0) else "linear_attention"
    )
    heads = own.int("num_heads") if "num_heads" in given else c.int("linear_num_heads")
    d = own.int("head_dim") if "head_dim" in given else c.int("linear_head_dim")
    kernel = own.int("short_conv_kernel_size") if "short_conv_kernel_size" in given else c.int("linear_conv_kernel_dim")
    m.mla(layers=full, bias=c.flag("attention_bias"))
    kimi_delta(m, linear, heads, d, kernel)
    first = c.int("first_k_dense_replace", 0, fallback=1)
    kinds = c.kinds("mlp_layer_types", m.n, lambda i: "dense" if i < first else "sparse", ("dense", "sparse"))
    dense, sparse = m.where(lambda i: kinds[i] == "dense"), m.where(lambda i: kinds[i] == "sparse")
    if dense:
        m.gated_mlp(layers=dense)
    ff = c.int("moe_intermediate_size")
    m.moe(
        c.int("num_local_experts"), c.int("num_experts_per_tok"), ff, layers=sparse, shared_ff=ff * c.int("n_shared_experts", 0)
    )
    m.norm(*TWO_NORMS)


def head_split(m: Build, inner: int, heads: int, name: str = "mamba_n_heads") -> int:
    """Mamba's head size where the config says "auto" or nothing."""
    if inner % heads:
        raise InputError(m.c.field(name), heads, f"must divide the inner width ({inner})")
    return inner // heads


def mamba_of(m: Build, layers=None, inner: int | None = None, **more):
    """Mamba-2 as Bamba, Granite-4 and Falcon-H1 write its fields."""
    c = m.c
    inner, heads = inner or c.int("mamba_expand") * m.hidden, c.int("mamba_n_heads")
    m.mamba2(
        heads=heads,
        head_dim=head_split(m, inner, heads),
        state=c.int("mamba_d_state"),
        groups=c.int("mamba_n_groups"),
        kernel=c.int("mamba_d_conv"),
        conv_bias=c.flag("mamba_conv_bias"),
        proj_bias=c.flag("mamba_proj_bias"),
        layers=layers,
        **more,
    )


@family("granitemoehybrid")
def granite_hybrid(m: Build):
    c = m.c
    m.embed()
    full, linear = mixed(m, lambda i: "linear_attention")
    m.gqa(layers=full, bias=c.flag("attention_bias"), d=m.split(m.hidden, m.heads))
    if linear:
        mamba_of(m, linear)
    granite_ffn(m)
    m.norm(*TWO_NORMS)


@family("falcon_h1")
def falcon_h1(m: Build):
    c = m.c
    m.embed(norm="model.final_layernorm")
    m.gqa(bias=c.flag("attention_bias"), d=c.opt("head_dim", fallback=None))
    mamba_of(m, inner=c.opt("mamba_d_ssm"), norm=c.flag("mamba_rms_norm"), out_bias=c.flag("projectors_bias"))
    m.gated_mlp(prefix="feed_forward.", bias=c.flag("mlp_bias"))
    m.norm("input_layernorm", "pre_ff_layernorm")


@family("nemotron_h")
def nemotron_h(m: Build):
    """One part a layer: Mamba-2 (M), attention (*), a plain feed-forward (-) or experts (E)."""
    c = m.c
    pattern = c.word("hybrid_override_pattern")
    symbols = {"M": "linear_attention", "*": "full_attention", "-": "mlp", "E": "moe"}
    kinds = c.items("layers_block_type")
    if kinds is not None:
        legacy = {"mamba": "linear_attention", "attention": "full_attention"}
        kinds = [legacy.get(k, k) if isinstance(k, str) else k for k in kinds]
    elif pattern is not None:
        kinds = [symbols.get(s, s) for s in pattern]
    else:
        raise InputError(
            "hybrid_override_pattern", None, "is missing and must say which part each layer has (or layers_block_type)"
        )
    for kind in kinds:
        if kind not in symbols.values():
            raise InputError("hybrid_override_pattern", kind, "must be made of M, E, * and -")
    if not 0 < len(kinds) <= 10_000:
        raise InputError("hybrid_override_pattern", len(kinds), "must have from 1 to 10000 layers")
    m.n = len(kinds)  # the reference reads the pattern, whatever num_hidden_layers says
    at = {kind: m.where(lambda i: kinds[i] == kind) for kind in symbols.values()}
    m.embed(name="backbone.embeddings", norm="backbone.norm_f", tied=False)
    p = "mixer."
    if at["full_attention"]:
        m.gqa(layers=at["full_attention"], prefix=p, window=c.opt("sliding_window"))
    if at["linear_attention"]:
        m.mamba2(
            heads=c.int("mamba_num_heads"),
            head_dim=c.int("mamba_head_dim"),
            state=c.int("ssm_state_size"),
            groups=c.int("mamba_n_groups" if c.has("mamba_n_groups") else "n_groups"),
            kernel=c.int("mamba_d_conv" if c.has("mamba_d_conv") else "conv_kernel"),
            conv_bias=c.flag("mamba_conv_bias" if c.has("mamba_conv_bias") else "use_conv_bias"),
            proj_bias=c.flag("use_bias"),
            layers=at["linear_attention"],
            prefix=p,
        )
    bias = c.flag("mlp_bias")
    if at["mlp"]:
        m.plain_mlp(layers=at["mlp"], prefix=p, names=("up_proj", "down_proj"), bias=bias)
    if at["moe"]:
        latent = c.opt("moe_latent_size")
        if latent:
            m.linear(p + "fc1_latent_proj", "other", latent, m.hidden, layers=at["moe"], bias=bias)
            m.linear(p + "fc2_latent_proj", "other", m.hidden, latent, layers=at["moe"], bias=bias)
        m.moe(
            c.int("n_routed_experts"),
            c.int("num_experts_per_tok"),
            c.int("moe_intermediate_size"),
            layers=at["moe"],
            gated=False,
            router=p + "gate",
            prefix=p + "experts.",
            hidden=latent,
            shared=p + "shared_experts.",
            shared_gated=False,
            shared_ff=c.int("moe_shared_expert_intermediate_size") * (1 if c.opt("n_shared_experts", 0) else 0),
            shared_hidden=m.hidden,
            shared_bias=bias,
        )
    m.norm("norm")
