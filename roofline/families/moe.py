"""Decoders with routed experts."""

from __future__ import annotations

from ..errors import InputError
from .dense import SLIDING, TWO_NORMS
from .parts import Build
from .registry import family


def sparse(m: Build, first: int = 0, step: int = 1, offset: int = 0) -> tuple:
    """Layers with experts: from `first` on, every `step`-th."""
    return m.where(lambda i: i >= first and i % step == offset)


def others(m: Build, layers: tuple) -> tuple:
    """The layers not in `layers`."""
    known = set(layers)
    return m.where(lambda i: i not in known)


@family("mixtral", "minimax_m2", "phimoe")
def mixtral(m: Build):
    c = m.c
    phi, m2 = c.type == "phimoe", c.type == "minimax_m2"
    m.embed(norm_bias=phi, head_bias=phi and c.flag("lm_head_bias"))
    m.gqa(bias=phi and c.flag("attention_bias"), qk_norm="flat" if m2 and c.flag("use_qk_norm", True) else None, window=c.opt("sliding_window", fallback=None))
    m.moe(c.int("num_local_experts"), c.int("num_experts_per_tok"), m.ff, router="block_sparse_moe.gate", prefix="block_sparse_moe.experts.",
          names=("w1", "w3", "w2"))
    m.norm(*TWO_NORMS, bias=phi)


@family("qwen2_moe", "qwen3_moe", "qwen3_vl_moe_text")
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
        m.moe(experts, c.int("num_experts_per_tok"), c.int("moe_intermediate_size"), layers=layers, shared="mlp.shared_expert.",
              shared_ff=c.int("shared_expert_intermediate_size") if own else 0, shared_gate=own)
    m.norm(*TWO_NORMS)


def deepseek_ffn(m: Build, first: int, *, step: int = 1, **more):
    """DeepSeek's feed-forward: a few dense layers, then routed and shared experts."""
    c = m.c
    layers = sparse(m, first, step)
    dense = others(m, layers)
    if dense:
        m.gated_mlp(layers=dense)
    if layers:
        ff = c.int("moe_intermediate_size")
        m.moe(c.int("n_routed_experts"), c.int("num_experts_per_tok"), ff, layers=layers, shared_ff=ff * (c.opt("n_shared_experts", 0) or 0), **more)


@family("deepseek_v2", "deepseek_v3", "kimi_k2", "glm4_moe_lite", "sarvam_mla")
def deepseek(m: Build):
    c = m.c
    m.embed()
    m.mla(bias=c.flag("attention_bias", False))
    if c.type == "glm4_moe_lite":
        kinds = c.kinds("mlp_layer_types", m.n, lambda i: "sparse" if i else "dense", ("dense", "sparse"))
        deepseek_ffn(m, kinds.index("sparse") if "sparse" in kinds else m.n)
    else:
        deepseek_ffn(m, c.int("first_k_dense_replace", 0), step=c.int("moe_layer_freq", fallback=1) if c.type == "deepseek_v2" else 1)
    m.norm(*TWO_NORMS)


@family("glm4_moe", "solar_open", "dots1", "sarvam_moe", "glm4v_moe_text")
def glm4_moe(m: Build):
    c = m.c
    m.embed()
    dots = c.type == "dots1"
    window = c.opt("sliding_window") if dots else None
    kinds = c.kinds("layer_types", m.n, lambda i: "sliding_attention" if window and i >= c.int("max_window_layers", 0) else "full_attention",
                    SLIDING) if dots else ["full_attention"] * m.n
    for layers, w in m.sliding(kinds, window):
        m.core(layers=layers, window=w)
    m.gqa(bias=c.flag("attention_bias", False), out_bias=None if dots else False, qk_norm="head" if dots or c.flag("use_qk_norm", False) else None, core=False)
    deepseek_ffn(m, c.int("first_k_dense_replace", 0, fallback=0))
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
    m.moe(c.int("num_local_experts"), c.int("num_experts_per_tok"), m.ff, router="mlp.router", router_bias=True, fused="gate_up_proj", bias=True)
    m.norm(*TWO_NORMS)


@family("olmoe", "flex_olmo")
def olmoe(m: Build):
    c = m.c
    m.embed()
    m.gqa(bias=c.flag("attention_bias"), qk_norm="flat")
    m.moe(c.int("num_experts"), c.int("num_experts_per_tok"), m.ff)
    m.norm(*(TWO_NORMS if c.type == "olmoe" else ("post_attention_layernorm", "post_feedforward_layernorm")))


@family("deepseek_v32", "glm_moe_dsa")
def deepseek_sparse(m: Build):
    """Latent attention to the top-k tokens that a small indexer picks; GLM-5.2 shares one indexer among several layers."""
    c = m.c
    m.embed()
    shared = ["full"] * m.n
    if c.type == "glm_moe_dsa":
        pattern = c.get("index_topk_pattern", None)
        if isinstance(pattern, str):
            pattern = [{"F": "full", "S": "shared"}.get(s, s) for s in pattern]
        period, offset = max(c.int("index_topk_freq", 0, fallback=1), 1), c.int("index_skip_topk_offset", 0, fallback=2)
        rule = (lambda i: pattern[i]) if isinstance(pattern, list) and len(pattern) == m.n else (lambda i: "shared" if max(i - offset + 1, 0) % period else "full")
        shared = c.kinds("indexer_types", m.n, rule, ("full", "shared"))
    indexed, follow = m.where(lambda i: shared[i] == "full"), m.where(lambda i: shared[i] != "full")
    index = {"index_heads": c.int("index_n_heads"), "index_dim": c.int("index_head_dim"), "index_elements": c.int("index_head_dim")}
    m.mla(layers=indexed, bias=c.flag("attention_bias"), topk=c.int("index_topk"), kind="sparse", **index)
    m.indexer(layers=indexed)
    if follow:
        m.mla(layers=follow, bias=c.flag("attention_bias"), topk=c.int("index_topk"), kind="sparse")
    first = c.int("first_k_dense_replace", 0)
    kinds = c.kinds("mlp_layer_types", m.n, lambda i: "dense" if i < first else "sparse", ("dense", "sparse"))
    mlp_by_kind(m, kinds)
    m.norm(*TWO_NORMS)


def mlp_by_kind(m: Build, kinds: list, **more):
    """Dense where a layer is called "dense", DeepSeek's experts elsewhere."""
    c = m.c
    dense, sparse_ = m.where(lambda i: kinds[i] == "dense"), m.where(lambda i: kinds[i] != "dense")
    if dense:
        m.gated_mlp(layers=dense)
    if sparse_:
        ff = c.int("moe_intermediate_size")
        m.moe(c.int("n_routed_experts"), c.int("num_experts_per_tok"), ff, layers=sparse_, shared_ff=ff * (c.opt("n_shared_experts", 0) or 0), **more)


@family("mistral4")
def mistral4(m: Build):
    deepseek(m)


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
    m.moe(c.int("num_experts"), c.int("num_experts_per_tok"), ff, layers=layers, shared_ff=ff * (c.opt("num_shared_experts", 0) or 0))
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
