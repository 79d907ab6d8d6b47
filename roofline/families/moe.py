"""Decoders with routed experts over ordinary attention."""

from __future__ import annotations

from ..errors import InputError
from .dense import SLIDING, TWO_NORMS, every, local_global, swa_attention
from .parts import ATTN, Build
from .registry import family


def sparse(m: Build, first: int = 0, step: int = 1, offset: int = 0) -> tuple:
    """Layers with experts: from `first` on, every `step`-th."""
    return m.where(lambda i: i >= first and i % step == offset)


def others(m: Build, layers: tuple) -> tuple:
    """The layers not in `layers`."""
    known = set(layers)
    return m.where(lambda i: i not in known)


def mlp_by_kind(m: Build, kinds: list, **more):
    """Dense where a layer is called "dense", DeepSeek's experts elsewhere."""
    c = m.c
    dense, sparse_ = m.where(lambda i: kinds[i] == "dense"), m.where(lambda i: kinds[i] != "dense")
    if dense:
        m.gated_mlp(layers=dense)
    if sparse_:
        ff = c.int("moe_intermediate_size")
        m.moe(
            c.int("n_routed_experts"),
            c.int("num_experts_per_tok"),
            ff,
            layers=sparse_,
            shared_ff=ff * (c.opt("n_shared_experts", 0) or 0),
            **more,
        )


def shared_moe(m: Build, **more):
    """Qwen's experts: routed ones, and a shared one of its own width (with `shared_gate`, weighed for each token)."""
    c = m.c
    m.moe(
        c.int("num_experts"), c.int("num_experts_per_tok"), c.int("moe_intermediate_size"), shared="mlp.shared_expert.", shared_ff=c.int("shared_expert_intermediate_size"), **more
    )


@family("mixtral", "minimax_m2", "phimoe")
def mixtral(m: Build):
    c = m.c
    phi, m2 = c.type == "phimoe", c.type == "minimax_m2"
    m.embed(norm_bias=phi, head_bias=phi and c.flag("lm_head_bias"))
    m.gqa(
        bias=phi and c.flag("attention_bias"),
        qk_norm="flat" if m2 and c.flag("use_qk_norm", True) else None,
        window=c.opt("sliding_window", fallback=None),
    )
    m.moe(
        c.int("num_local_experts"),
        c.int("num_experts_per_tok"),
        m.ff,
        router="block_sparse_moe.gate",
        prefix="block_sparse_moe.experts.",
        names=("w1", "w3", "w2"),
    )
    m.norm(*TWO_NORMS, bias=phi)


@family("qwen2_moe", "qwen3_moe", "qwen3_vl_moe_text", "qwen3_omni_moe_text")
def qwen_moe(m: Build):
    c = m.c
    m.embed()
    window = c.opt("sliding_window") if c.flag("use_sliding_window", False) else None
    first = c.int("max_window_layers", 0) if window and c.type == "qwen2_moe" else 0
    kinds = c.kinds("layer_types", m.n, lambda i: "sliding_attention" if window and i >= first else "full_attention", SLIDING)
    for layers, w in m.sliding(kinds, window):
        m.core(layers=layers, window=w)
    if c.type == "qwen2_moe":
        m.gqa(bias=c.flag("qkv_bias"), out_bias=False, core=False)
    else:
        m.gqa(bias=c.flag("attention_bias"), qk_norm="head", core=False)
    experts, step, plain = c.int("num_experts", 0), c.int("decoder_sparse_step"), c.indices("mlp_only_layers")
    layers = m.where(lambda i: i not in plain and experts > 0 and (i + 1) % step == 0)
    dense = others(m, layers)
    if dense:
        m.gated_mlp(layers=dense)
    if layers:
        own = c.type == "qwen2_moe"
        m.moe(
            experts,
            c.int("num_experts_per_tok"),
            c.int("moe_intermediate_size"),
            layers=layers,
            shared="mlp.shared_expert.",
            shared_ff=c.int("shared_expert_intermediate_size") if own else 0,
            shared_gate=own,
        )
    m.norm(*TWO_NORMS)


@family("gpt_oss")
def gpt_oss(m: Build):
    c = m.c
    m.embed()
    kinds = c.kinds("layer_types", m.n, lambda i: "sliding_attention" if (i + 1) % 2 else "full_attention", SLIDING)
    for layers, w in m.sliding(kinds, c.opt("sliding_window")):
        m.core(layers=layers, window=w)
    m.gqa(bias=c.flag("attention_bias"), core=False)
    m.vector("self_attn.sinks", "attention_projection", m.heads)
    m.moe(
        c.int("num_local_experts"),
        c.int("num_experts_per_tok"),
        m.ff,
        router="mlp.router",
        router_bias=True,
        fused="gate_up_proj",
        bias=True,
    )
    m.norm(*TWO_NORMS)


@family("olmoe", "flex_olmo")
def olmoe(m: Build):
    c = m.c
    m.embed()
    m.gqa(bias=c.flag("attention_bias"), qk_norm="flat")
    m.moe(c.int("num_experts"), c.int("num_experts_per_tok"), m.ff)
    m.norm(*(TWO_NORMS if c.type == "olmoe" else ("post_attention_layernorm", "post_feedforward_layernorm")))


@family("hy_v3")
def hy_v3(m: Build):
    c = m.c
    m.embed()
    m.gqa(bias=c.flag("attention_bias"), qk_norm="head")
    kinds = c.kinds("mlp_layer_types", m.n, lambda i: "sparse" if i else "dense", ("dense", "sparse"))
    dense, layers = m.where(lambda i: kinds[i] == "dense"), m.where(lambda i: kinds[i] == "sparse")
    if dense:
        m.gated_mlp(layers=dense, bias=c.flag("mlp_bias"))
    ff = c.int("moe_intermediate_size")
    m.moe(
        c.int("num_experts"),
        c.int("num_experts_per_tok"),
        ff,
        layers=layers,
        shared_ff=ff * (c.opt("num_shared_experts", 0) or 0),
        shared_bias=c.flag("mlp_bias"),
    )
    m.norm(*TWO_NORMS)


@family("hunyuan_v1_moe")
def hunyuan_moe(m: Build):
    c = m.c
    m.embed()
    m.gqa(bias=c.flag("attention_bias"), qk_norm="head", norms=("query_layernorm", "key_layernorm"))
    experts, active = c.each("num_experts", m.n), c.each("moe_topk", m.n)
    if len(set(experts)) != 1 or len(set(active)) != 1:
        raise InputError("num_experts", "differs from layer to layer", "must be the same in all layers")
    m.moe(experts[0], active[0], m.ff, router="mlp.gate.wg", shared="mlp.shared_mlp.", shared_ff=m.ff)
    m.norm(*TWO_NORMS)


@family("ernie4_5_moe")
def ernie_moe(m: Build):
    c = m.c
    bias = c.flag("use_bias")
    m.embed(head_bias=bias)
    m.gqa(bias=bias, d=c.opt("head_dim", fallback=None) or m.split(m.hidden, m.heads))
    first, last, step = c.int("moe_layer_start_index", 0), c.int("moe_layer_end_index", -1), c.int("moe_layer_interval")
    last = m.n - 1 if last == -1 else last
    layers = m.where(lambda i: first <= i <= last and (i + 1) % step == 0)
    dense = others(m, layers)
    if dense:
        m.gated_mlp(layers=dense, bias=bias)
    ff, experts = c.int("moe_intermediate_size"), c.int("moe_num_experts")
    m.moe(experts, c.int("moe_k"), ff, layers=layers, shared_ff=ff * (c.opt("moe_num_shared_experts", 0) or 0), shared_bias=bias)
    m.vector("mlp.moe_statics.e_score_correction_bias", "router", experts, layers=layers)
    m.norm(*TWO_NORMS)


@family("exaone_moe")
def exaone_moe(m: Build):
    c = m.c
    m.embed()
    local_global(m)
    experts_by_kind(m, c.int("first_k_dense_replace", 0), "num_experts", "num_shared_experts")
    m.norm(*TWO_NORMS)


def experts_by_kind(m: Build, first: int, experts: str, shared: str, **more):
    """Feed-forward by mlp_layer_types, else dense before `first`; the fields' names differ from family to family."""
    c = m.c
    kinds = c.kinds("mlp_layer_types", m.n, lambda i: "dense" if i < first else "sparse", ("dense", "sparse"))
    dense, layers = m.where(lambda i: kinds[i] == "dense"), m.where(lambda i: kinds[i] == "sparse")
    if dense:
        m.gated_mlp(layers=dense)
    ff = c.int("moe_intermediate_size")
    m.moe(c.int(experts), c.int("num_experts_per_tok"), ff, layers=layers, shared_ff=ff * (c.opt(shared, 0) or 0), **more)


@family("granitemoe", "granitemoeshared", "granitemoe_swa")
def granite_moe(m: Build):
    c = m.c
    m.embed()
    if c.type == "granitemoe_swa":
        swa_attention(m)
    else:
        m.gqa(bias=c.flag("attention_bias"), d=m.split(m.hidden, m.heads))
    granite_ffn(m, shared=c.type != "granitemoe")
    m.norm(*TWO_NORMS)


def granite_ffn(m: Build, shared: bool = True):
    """Granite's routed experts (none when it has 0) and the expert every token uses, gate and up in one matrix."""
    c = m.c
    experts = c.opt("num_local_experts", 0) or 0
    if experts:
        m.moe(
            experts,
            c.int("num_experts_per_tok"),
            m.ff,
            router="block_sparse_moe.router.layer",
            prefix="block_sparse_moe.",
            names=("", "", "output_linear"),
            fused="input_linear",
        )
    if shared and c.int("shared_intermediate_size", 0):
        m.gated_mlp(
            c.int("shared_intermediate_size"),
            prefix="shared_mlp.",
            fused="input_linear",
            names=("", "", "output_linear"),
            group="shared_experts",
        )


@family("mimo_v2_flash")
def mimo_v2(m: Build):
    """Keys of 192 and values of 128; sliding layers have twice the key heads, and sinks."""
    c, h = m.c, m.hidden
    m.embed()
    window = c.int("sliding_window_size") + 1 if c.get("sliding_window_size", None) is not None else c.int("sliding_window")
    hybrid = c.items("hybrid_layer_pattern", m.n, fallback=None)
    rule = (
        (lambda i: "sliding_attention" if hybrid[i] else "full_attention")
        if hybrid
        else lambda i: "full_attention" if i == 0 or not (i + 1) % 6 else "sliding_attention"
    )
    kinds = c.kinds("layer_types", m.n, rule, SLIDING)
    d, v = c.int("head_dim"), c.int("v_head_dim")
    for layers, w in m.sliding(kinds, window):
        kv = c.int("swa_num_key_value_heads", fallback=2 * m.kv_heads) if w else m.kv_heads
        p, bias = "self_attn.", c.flag("attention_bias")
        m.linear(p + "q_proj", ATTN, m.heads * d, h, layers=layers, bias=bias)
        m.linear(p + "k_proj", ATTN, kv * d, h, layers=layers, bias=bias)
        m.linear(p + "v_proj", ATTN, kv * v, h, layers=layers, bias=bias)
        m.linear(p + "o_proj", ATTN, h, m.heads * v, layers=layers)
        if w:
            m.vector(p + "sinks", ATTN, m.heads, layers=layers)
        m.core(layers=layers, kv=kv, d=d, v=v, window=w)
    freq = c.items("moe_layer_freq", m.n, fallback=None) if isinstance(c.get("moe_layer_freq", None), list) else None
    kinds = c.kinds("mlp_layer_types", m.n, lambda i: "sparse" if (freq[i] if freq else i) else "dense", ("dense", "sparse"))
    mlp_by_kind(m, kinds)
    m.norm(*TWO_NORMS)


@family("cohere2_moe")
def cohere_moe(m: Build):
    c = m.c
    m.embed()
    first = c.int("first_k_dense_replace", 0, fallback=0)
    pattern, start = c.int("sliding_window_pattern"), c.int("prefix_dense_sliding_window_pattern")

    def rule(i: int) -> str:
        local = (i + 1) % start if i < first else (i - first + 1) % pattern
        return "sliding_attention" if local else "full_attention"

    for layers, w in m.sliding(c.kinds("layer_types", m.n, rule, SLIDING), c.opt("sliding_window")):
        m.core(layers=layers, window=w)
    m.gqa(bias=c.flag("attention_bias"), core=False)
    kinds = c.kinds("mlp_layer_types", m.n, lambda i: "dense" if i < first else "sparse", ("dense", "sparse"))
    dense, layers = m.where(lambda i: kinds[i] == "dense"), m.where(lambda i: kinds[i] == "sparse")
    if dense:
        m.gated_mlp(c.opt("prefix_dense_intermediate_size") or m.ff, layers=dense)
    m.moe(
        c.int("num_experts"), c.int("num_experts_per_tok"), m.ff, layers=layers, shared_ff=m.ff * c.int("num_shared_experts", 0)
    )
    m.norm("input_layernorm")


@family("afmoe")
def afmoe(m: Build):
    c, h = m.c, m.hidden
    m.embed()
    rule = every(c.int("global_attn_every_n_layers"))
    for layers, w in m.sliding(c.kinds("layer_types", m.n, rule, SLIDING), c.opt("sliding_window")):
        m.core(layers=layers, window=w)
    m.gqa(qk_norm="head", core=False, bias=c.flag("attention_bias"))
    m.linear("self_attn.gate_proj", ATTN, m.heads * m.head_dim, h)
    first, experts, ff = c.int("num_dense_layers", 0), c.int("num_experts"), c.int("moe_intermediate_size")
    dense, layers = m.where(lambda i: i < first), m.where(lambda i: i >= first)
    if dense:
        m.gated_mlp(layers=dense)
    m.moe(
        experts,
        c.int("num_experts_per_tok"),
        ff,
        layers=layers,
        router="mlp.router.gate",
        shared_ff=ff * (c.opt("num_shared_experts", 0) or 0),
    )
    m.vector("mlp.expert_bias", "experts", experts, layers=layers)
    m.norm(*TWO_NORMS, "pre_mlp_layernorm", "post_mlp_layernorm")


@family("jetmoe")
def jetmoe(m: Build):
    """Experts in the attention too: each has its own query and output projection over shared keys and values."""
    c, h = m.c, m.hidden
    experts, active, kv, d = (
        c.int("num_local_experts"),
        c.int("num_experts_per_tok"),
        c.int("num_key_value_heads"),
        c.int("kv_channels"),
    )
    m.embed()
    p = "self_attention."
    m.linear(p + "kv_proj", ATTN, 2 * kv * d, h)
    m.linear(p + "experts.input_linear", ATTN, kv * d, h, copies=experts, active=active)
    m.linear(p + "experts.output_linear", ATTN, h, kv * d, copies=experts, active=active)
    m.linear(p + "experts.router.layer", ATTN, experts, h)
    m.vector(p + "experts.bias", ATTN, h)
    m.core(heads=kv * active, kv=kv, d=d)
    m.moe(experts, active, m.ff, router="mlp.router.layer", prefix="mlp.", fused="input_linear", names=("", "", "output_linear"))
    m.vector("mlp.bias", "mlp", h)
    m.norm(*TWO_NORMS)


@family("mellum")
def mellum(m: Build):
    c = m.c
    m.embed()
    for layers, w in m.sliding(c.kinds("layer_types", m.n, lambda i: "full_attention", SLIDING), c.opt("sliding_window")):
        m.core(layers=layers, window=w)
    m.gqa(bias=c.flag("attention_bias"), qk_norm="head", core=False)
    kinds = c.kinds("mlp_layer_types", m.n, lambda i: "sparse", ("dense", "sparse"))
    dense = m.where(lambda i: kinds[i] == "dense")
    if dense:
        m.gated_mlp(layers=dense)
    m.moe(c.int("num_experts"), c.int("num_experts_per_tok"), c.int("moe_intermediate_size"), layers=others(m, dense))
    m.norm(*TWO_NORMS)


@family("laguna")
def laguna(m: Build):
    c = m.c
    m.embed()
    kinds = c.kinds("layer_types", m.n, lambda i: "full_attention", SLIDING)
    heads = c.items("num_attention_heads_per_layer", m.n) or [m.heads] * m.n
    gating = c.get("gating")
    for kind, count in sorted(set(zip(kinds, heads, strict=True))):
        layers = m.where(lambda i: (kinds[i], heads[i]) == (kind, count))
        m.gqa(
            layers=layers,
            heads=c.whole("num_attention_heads_per_layer", count),
            qk_norm="head",
            bias=c.flag("attention_bias"),
            window=c.int("sliding_window") if kind == "sliding_attention" else None,
        )
        m.linear(
            "self_attn.g_proj",
            ATTN,
            count * (1 if gating is True or gating == "per-head" else m.head_dim),
            m.hidden,
            layers=layers,
        )
    kinds = c.kinds("mlp_layer_types", m.n, lambda i: "sparse" if i else "dense", ("dense", "sparse"))
    dense, layers = m.where(lambda i: kinds[i] == "dense"), m.where(lambda i: kinds[i] == "sparse")
    if dense:
        m.gated_mlp(layers=dense)
    m.moe(
        c.int("num_experts"),
        c.int("num_experts_per_tok"),
        c.int("moe_intermediate_size"),
        layers=layers,
        shared_ff=c.int("shared_expert_intermediate_size"),
    )
    m.vector("mlp.gate.e_score_correction_bias", "router", c.int("num_experts"), layers=layers)
    m.norm(*TWO_NORMS)


@family("dbrx")
def dbrx(m: Build):
    c, h = m.c, m.hidden
    attn, ffn = c.sub("attn_config", "dbrx_attention"), c.sub("ffn_config", "dbrx_ffn")
    if attn is None or ffn is None:
        raise InputError(
            "ffn_config", None, "is missing and must describe the experts of a dbrx model (and attn_config its attention)"
        )
    m.embed(name="transformer.wte", norm="transformer.norm_f")
    kv = attn.int("kv_n_heads", fallback=1)
    m.gqa(kv=kv, d=m.split(h, m.heads), prefix="norm_attn_norm.attn.", fused="Wqkv", out="out_proj")
    m.moe(
        ffn.int("moe_num_experts"),
        ffn.int("moe_top_k"),
        ffn.int("ffn_hidden_size"),
        router="ffn.router.layer",
        prefix="ffn.experts.mlp.",
        names=("w1", "v1", "w2"),
    )
    m.norm("norm_attn_norm.norm_1", "norm_attn_norm.norm_2")
