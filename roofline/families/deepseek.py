"""DeepSeek's experts and latent attention, and the families that took them over."""

from __future__ import annotations

from .dense import SLIDING, TWO_NORMS
from .moe import mlp_by_kind, others, sparse
from .parts import Build
from .registry import family


def deepseek_ffn(m: Build, first: int, *, step: int = 1, **more):
    """DeepSeek's feed-forward: a few dense layers, then routed and shared experts."""
    c = m.c
    layers = sparse(m, first, step)
    dense, bias = others(m, layers), c.flag("mlp_bias", False)
    if dense:
        m.gated_mlp(layers=dense, bias=bias)
    if layers:
        ff = c.int("moe_intermediate_size")
        m.moe(
            c.int("n_routed_experts"),
            c.int("num_experts_per_tok"),
            ff,
            layers=layers,
            shared_ff=ff * (c.opt("n_shared_experts", 0) or 0),
            shared_bias=bias,
            **more,
        )


@family("deepseek_v2", "deepseek_v3", "kimi_k2", "glm4_moe_lite", "mistral4", "sarvam_mla")
def deepseek(m: Build):
    c = m.c
    m.embed()
    m.mla(bias=c.flag("attention_bias", False))
    if c.type == "glm4_moe_lite":
        kinds = c.kinds("mlp_layer_types", m.n, lambda i: "sparse" if i else "dense", ("dense", "sparse"))
        deepseek_ffn(m, kinds.index("sparse") if "sparse" in kinds else m.n)
    else:
        deepseek_ffn(
            m, c.int("first_k_dense_replace", 0), step=c.int("moe_layer_freq", fallback=1) if c.type == "deepseek_v2" else 1
        )
    m.norm(*TWO_NORMS)


@family("glm4_moe", "solar_open", "dots1", "sarvam_moe", "glm4v_moe_text")
def glm4_moe(m: Build):
    c = m.c
    m.embed()
    dots = c.type == "dots1"
    window = c.opt("sliding_window") if dots else None
    kinds = (
        c.kinds(
            "layer_types",
            m.n,
            lambda i: "sliding_attention" if window and i >= c.int("max_window_layers", 0) else "full_attention",
            SLIDING,
        )
        if dots
        else ["full_attention"] * m.n
    )
    for layers, w in m.sliding(kinds, window):
        m.core(layers=layers, window=w)
    m.gqa(
        bias=c.flag("attention_bias", False),
        out_bias=None if dots else False,
        qk_norm="head" if dots or c.flag("use_qk_norm", False) else None,
        core=False,
    )
    deepseek_ffn(m, c.int("first_k_dense_replace", 0, fallback=0))
    m.norm(*TWO_NORMS)


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
        rule = (
            (lambda i: pattern[i])
            if isinstance(pattern, list) and len(pattern) == m.n
            else (lambda i: "shared" if max(i - offset + 1, 0) % period else "full")
        )
        shared = c.kinds("indexer_types", m.n, rule, ("full", "shared"))
    indexed, follow = m.where(lambda i: shared[i] == "full"), m.where(lambda i: shared[i] != "full")
    index = {
        "index_heads": c.int("index_n_heads"),
        "index_dim": c.int("index_head_dim"),
        "index_elements": c.int("index_head_dim"),
    }
    m.mla(layers=indexed, bias=c.flag("attention_bias"), topk=c.int("index_topk"), kind="sparse", **index)
    m.indexer(layers=indexed)
    if follow:
        m.mla(layers=follow, bias=c.flag("attention_bias"), topk=c.int("index_topk"), kind="sparse")
    first = c.int("first_k_dense_replace", 0)
    kinds = c.kinds("mlp_layer_types", m.n, lambda i: "dense" if i < first else "sparse", ("dense", "sparse"))
    mlp_by_kind(m, kinds)
    m.norm(*TWO_NORMS)


@family("longcat_flash")
def longcat(m: Build):
    """Two attention parts and two dense feed-forward parts in every layer, with one set of experts across them; some experts do nothing."""
    c = m.c
    m.n = c.need("num_layers")
    m.embed()
    for i in (0, 1):
        m.mla(prefix=f"self_attn.{i}.", bias=c.flag("attention_bias"))
        m.gated_mlp(c.int("ffn_hidden_size"), prefix=f"mlps.{i}.")
        m.norm(f"input_layernorm.{i}", f"post_attention_layernorm.{i}")
    experts, idle = c.int("n_routed_experts"), c.int("zero_expert_num", 0)
    m.moe(
        experts, c.int("moe_topk"), c.int("expert_ffn_hidden_size"), router="mlp.router.classifier", router_experts=experts + idle
    )
    if idle:
        m.notes.append(
            f"{idle} of the {experts + idle} experts a router can pick do nothing, so a token uses at most {c.int('moe_topk')} real ones; all are counted as real."
        )
