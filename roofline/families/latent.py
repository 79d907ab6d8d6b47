"""Newer families with latent attention (MLA) whose layers differ: gates, hyper-connections, layers without rotary keys, pooled indexers."""

from __future__ import annotations

from ..errors import InputError
from . import vision
from .dense import TWO_NORMS
from .hybrid import kimi_delta
from .moe import mlp_by_kind, others
from .parts import ATTN, Build
from .reader import Reader
from .registry import family
from .wrappers import absent, language, roughly_seen, tower

DENSE_SPARSE = ("dense", "sparse")


def indexer_kinds(m: Build, rule=None) -> tuple:
    """(layers with an indexer of their own, layers that follow the one before), by list, pattern ("FSSS") or schedule."""
    c = m.c
    if rule is None:
        pattern = c.get("index_topk_pattern", None)
        if isinstance(pattern, str):
            pattern = [{"F": "full", "S": "shared"}.get(s, s) for s in pattern]
        period, offset = max(c.int("index_topk_freq", 0, fallback=1), 1), c.int("index_skip_topk_offset", 0, fallback=2)
        listed = pattern if isinstance(pattern, list) and len(pattern) == m.n else None

        def rule(i: int) -> str:
            return listed[i] if listed else "shared" if max(i - offset + 1, 0) % period else "full"

    kinds = c.kinds("indexer_types", m.n, rule, ("full", "shared"))
    full = m.where(lambda i: kinds[i] == "full")
    return full, others(m, full)


def index_core(m: Build) -> dict:
    """What an attention core says of its indexer."""
    d = m.c.int("index_head_dim")
    return {"index_heads": m.c.int("index_n_heads"), "index_dim": d, "index_elements": d}


def latent(
    m: Build, layers: tuple, *, heads: int, rank: int, rope: int, nope: int, v: int, q_lora: int | None, bias: bool = False
):
    """The matrices of latent attention with sizes that are given (`Build.mla` reads them from the config)."""
    p, h = "self_attn.", m.hidden
    if q_lora:
        m.linear(p + "q_a_proj", ATTN, q_lora, h, layers=layers, bias=bias)
        m.norm(p + "q_a_layernorm", size=q_lora, layers=layers)
        m.linear(p + "q_b_proj", ATTN, heads * (nope + rope), q_lora, layers=layers)
    else:
        m.linear(p + "q_proj", ATTN, heads * (nope + rope), h, layers=layers)
    m.linear(p + "kv_a_proj_with_mqa", ATTN, rank + rope, h, layers=layers, bias=bias)
    m.norm(p + "kv_a_layernorm", size=rank, layers=layers)
    m.linear(p + "kv_b_proj", ATTN, heads * (nope + v), rank, layers=layers)
    m.linear(p + "o_proj", ATTN, h, heads * v, layers=layers, bias=bias)


def hyper(m: Build, rows: int, scales: int, streams: int):
    """Hyper-connections: the residual runs in several streams that small learned matrices mix before and after each part."""
    for name in ("attn_hc", "ffn_hc"):
        m.linear(name + ".fn", "other", rows, streams * m.hidden)
        m.vector(name + ".base", "other", rows)
        m.vector(name + ".scale", "other", scales)


@family("hy_v4", "hy_v4_vl_text")
def hy_v4(m: Build):
    """Sparse latent attention with sinks and an output gate; every fourth layer has an indexer, the others follow it."""
    c, h = m.c, m.hidden
    m.embed()
    full, follow = indexer_kinds(m, lambda i: "full" if i == 0 or (i - 1) % 4 == 0 else "shared")
    more = {"bias": c.flag("attention_bias"), "topk": c.int("index_topk"), "kind": "sparse"}
    if full:
        m.mla(layers=full, **more, **index_core(m))
        m.indexer(layers=full)
    if follow:
        m.mla(layers=follow, **more)
    m.vector("self_attn.sinks", ATTN, m.heads)
    m.linear("self_attn.gate_proj", ATTN, m.heads * c.int("v_head_dim"), h)
    mlp_by_kind(m, c.kinds("mlp_layer_types", m.n, lambda i: "sparse" if i else "dense", DENSE_SPARSE))
    streams = c.int("hc_mult", 1, 64)
    hyper(m, 2 * streams, 2, streams)
    m.once("model.hc_head.hc_fn", "other", streams, streams * h)
    m.once("model.hc_head.hc_base", "other", streams)
    m.once("model.hc_head.hc_scale", "other", 1)
    m.norm(*TWO_NORMS)


@family("hy_v4_vl")
def hy_v4_vl(m: Build):
    roughly_seen(m, "hy_v4_vl")


@family("mistral_large4_text")
def mistral_large4_text(m: Build):
    """Sparse latent attention whose every fourth layer has no rotary key: that part joins the latent's."""
    c, h = m.c, m.hidden
    m.embed()
    step = c.int("no_rope_layer_interval", fallback=4)
    rope = c.items("no_rope_layers") and c.items("no_rope_layers", m.n) or [int((i + 1) % step != 0) for i in m.all]
    source = c.items("kv_source_layers", m.n) if c.items("kv_source_layers") else list(m.all)
    if source != list(m.all):
        raise InputError(
            c.field("kv_source_layers"),
            "layers that read another layer's cache",
            "is not described here; every layer must have its own",
        )
    full, follow = indexer_kinds(m)
    rank, d, nope, v = c.int("kv_lora_rank"), c.int("qk_rope_head_dim", 0), c.int("qk_nope_head_dim"), c.int("v_head_dim")
    for flag in (True, False):
        r, n = (d, nope) if flag else (0, nope + d)
        sizes = {"heads": m.heads, "rank": rank, "rope": r, "nope": n, "v": v}
        here = m.where(lambda i: bool(rope[i]) is flag)
        if here:
            latent(m, here, q_lora=None, bias=c.flag("attention_bias"), **sizes)
        for group, more in ((full, index_core(m)), (follow, {})):
            layers = tuple(i for i in here if i in set(group))
            m.latent_core(layers=layers, topk=c.int("index_topk"), kind="sparse", **sizes, **more)
    ih, idim, p = c.int("index_n_heads"), c.int("index_head_dim"), "self_attn.indexer."
    m.linear(p + "wq_b", ATTN, ih * idim, h, layers=full)
    m.linear(p + "wk", ATTN, idim, h, layers=full)
    m.linear(p + "weights_proj", ATTN, ih, h, layers=full)
    m.norm(p + "k_norm", size=idim, bias=True, layers=full)
    m.norm(p + "q_input_norm", bias=True, layers=full)
    m.vector(p + "softmax_scaling", ATTN, 2 * ih, layers=full)
    m.vector("self_attn.softmax_scaling", ATTN, 2 * m.heads)
    first = c.int("first_k_dense_replace", 0)
    mlp_by_kind(m, c.kinds("mlp_layer_types", m.n, lambda i: "dense" if i < first else "sparse", DENSE_SPARSE))
    m.once("model.rotary_emb.alpha", "embedding", d // 2)
    m.norm(*TWO_NORMS)


@family("mistral_large4")
def mistral_large4(m: Build):
    top = language(m, "mistral_large4_text")
    v = tower(top, "pixtral")
    if v is None:
        return absent(m)
    h, merge = vision.pixtral(m, v), top.int("spatial_merge_size") ** 2
    vision.project(
        m, "multi_modal_projector", (m.hidden, h), (m.hidden, m.hidden), bias=top.flag("multimodal_projector_bias", False)
    )
    vision.project(m, "multi_modal_projector.patch_merger", (h, h * merge), bias=False, norms=h)


SLIDING_FIELDS = ("num_attention_heads", "q_lora_rank", "kv_lora_rank", "qk_rope_head_dim", "qk_nope_head_dim", "v_head_dim")


@family("dots3_note_text")
def dots3_note_text(m: Build):
    """Latent attention of two sizes: sparse with an indexer in every fourth layer, a window in the others; a gate a head."""
    c, h = m.c, m.hidden
    m.embed()
    dsa, each = c.get("use_dsa", None), c.get("per_layer_config", None)
    slides = c.get("use_sliding_window", None) is not False
    kinds = c.kinds(
        "layer_types",
        m.n,
        lambda i: "sliding_attention" if slides and i >= 2 and i % 4 != 1 else "indexed_attention",
        ("full_attention", "indexed_attention", "sliding_attention"),
    )
    if dsa is None and each is None or dsa:
        kinds = ["indexed_attention" if k == "full_attention" else k for k in kinds]
    elif dsa is False:
        kinds = ["full_attention" if k == "indexed_attention" else k for k in kinds]
    window = c.opt("sliding_window") or c.int("sliding_window_size", fallback=512)
    usual = {"num_attention_heads": 64, "q_lora_rank": 1024, "kv_lora_rank": 1024, "qk_nope_head_dim": 192, "v_head_dim": 128}
    slide = {name: c.opt("swa_" + name, fallback=value) for name, value in usual.items()}
    slide["qk_rope_head_dim"] = c.opt(
        "swa_qk_rope_head_dim", 0, fallback=c.int("swa_head_dim", fallback=256) - (slide["qk_nope_head_dim"] or 0)
    )
    plain = {name: c.opt(name, 0) for name in SLIDING_FIELDS}

    def sizes(i: int) -> tuple:
        if isinstance(each, dict):  # newer files: {layer: what differs there}
            own = next((each[k] for k in (str(i), f"{i:02d}", f"{i:03d}") if k in each), None)
            here = Reader(own, "", path=c.field(f"per_layer_config[{i}]")) if isinstance(own, dict) else None
            found = plain if here is None else {k: here.opt(k, 0) if here.has(k) else v for k, v in plain.items()}
        else:
            found = slide if kinds[i] == "sliding_attention" else plain
        return tuple(found[name] or 0 for name in SLIDING_FIELDS)

    groups: dict = {}
    for i in m.all:
        groups.setdefault((kinds[i], sizes(i)), []).append(i)
    for (kind, (heads, q_lora, rank, rope, nope, v)), layers in groups.items():
        if not (heads and rank and nope and v):
            raise InputError(
                c.field("per_layer_config"),
                layers[0],
                "must give each layer its heads, kv_lora_rank, qk_nope_head_dim and v_head_dim",
            )
        layers, own = tuple(layers), {"heads": heads, "rank": rank, "rope": rope, "nope": nope, "v": v}
        latent(m, layers, q_lora=q_lora, bias=c.flag("attention_bias"), **own)
        m.norm("self_attn.k_rope_only_layernorm", size=rope, layers=layers)
        m.linear("self_attn.g_proj", ATTN, heads, h, layers=layers)
        if kind == "indexed_attention":
            index = index_core(m)
            # The reference keeps the indexer's keys in 32 bits; an engine keeps them in 16 or fewer.
            m.latent_core(
                layers=layers,
                topk=c.int("index_topk"),
                kind="sparse",
                reference_elements=rank + rope + index["index_elements"],
                **index,
                **own,
            )
            m.indexer(layers=layers)
        else:
            m.latent_core(layers=layers, window=window if kind == "sliding_attention" else None, **own)
    first, freq = c.int("first_k_dense_replace", 0, fallback=1), c.get("moe_layer_freq", 1)
    listed = c.items("moe_layer_freq", m.n) if isinstance(freq, list) else None
    step = 1 if listed else c.int("moe_layer_freq", fallback=1)
    mlp = c.kinds(
        "mlp_layer_types",
        m.n,
        lambda i: "sparse" if i >= first and (listed[i] if listed else i % step == 0) else "dense",
        DENSE_SPARSE,
    )
    dense = m.where(lambda i: mlp[i] == "dense")
    m.gated_mlp(layers=dense, bias=c.flag("mlp_bias"))
    shared = c.opt("moe_shared_expert_intermediate_size", fallback=None) or c.int("shared_experts_intermediate_size")
    m.moe(
        c.int("n_routed_experts"),
        c.int("num_experts_per_tok"),
        c.int("moe_intermediate_size"),
        layers=others(m, dense),
        shared_ff=shared * c.int("n_shared_experts", 0),
        shared_bias=c.flag("mlp_bias"),
    )
    m.norm(*TWO_NORMS)


@family("glm5_next_text")
def glm5_next_text(m: Build):
    """Kimi's delta attention in three layers of four, sparse latent attention without rotary keys in the fourth, its index pooled; hyper-connections."""
    c, h = m.c, m.hidden
    m.embed()
    kinds = c.kinds(
        "layer_types",
        m.n,
        lambda i: "linear_attention" if i % 4 != 3 else "indexed_attention",
        ("linear_attention", "indexed_attention", "full_attention"),
    )
    linear = m.where(lambda i: kinds[i] == "linear_attention")
    own = c.sub("linear_attn_config", "")

    def size(name: str, old: str) -> int:
        return own.int(old) if own and own.has(old) else c.int(name)

    heads, d, kernel = (
        size("linear_num_heads", "num_heads"),
        size("linear_head_dim", "head_dim"),
        size("linear_conv_kernel_dim", "short_conv_kernel_size"),
    )
    kimi_delta(m, linear, heads, d, kernel, forget="forget_gate.")
    attended = set(others(m, linear))
    full, follow = (tuple(i for i in group if i in attended) for group in indexer_kinds(m))
    more = {"bias": c.flag("attention_bias"), "topk": c.int("index_topk"), "kind": "sparse"}
    if full:
        m.mla(layers=full, **more, **index_core(m))
        m.indexer(layers=full)
        m.vector("self_attn.indexer.index_kpool_compress_ape", ATTN, c.int("index_kpool") * c.int("index_head_dim"), layers=full)
        m.linear("self_attn.indexer.index_kpool_compress_gate", ATTN, c.int("index_head_dim"), h, layers=full)
    if follow:
        m.mla(layers=follow, **more)
    streams = c.int("hc_mult", 1, 64)
    hyper(m, (2 + streams) * streams, 3, streams)
    mlp_by_kind(m, c.kinds("mlp_layer_types", m.n, lambda i: "dense" if i < 3 else "sparse", DENSE_SPARSE))
    m.norm(*TWO_NORMS)


@family("glm5_next")
def glm5_next(m: Build):
    roughly_seen(m, "glm5_next")


@family("axk2")
def axk2(m: Build):
    """Sparse latent attention whose queries and output gate come from one matrix over both latents; norms gated by a small MLP."""
    c, h = m.c, m.hidden
    m.embed()
    rank, rope, nope, v, q = (
        c.int(k) for k in ("kv_lora_rank", "qk_rope_head_dim", "qk_nope_head_dim", "v_head_dim", "q_lora_rank")
    )
    p, bias = "self_attn.", c.flag("attention_bias")
    m.linear(p + "q_a_proj", ATTN, q, h, bias=bias)
    m.norm(p + "q_a_layernorm", size=q)
    m.linear(p + "q_gate_proj", ATTN, m.heads * (nope + rope + v), 2 * q)
    m.linear(p + "kv_a_proj_with_mqa", ATTN, rank + rope, h, bias=bias)
    m.norm(p + "kv_a_layernorm", size=rank)
    m.linear(p + "kv_b_proj", ATTN, m.heads * (nope + v), rank)
    m.linear(p + "o_proj", ATTN, h, m.heads * v, bias=bias)
    m.indexer()
    m.latent_core(
        layers=m.all, heads=m.heads, rank=rank, rope=rope, nope=nope, v=v, topk=c.int("index_topk"), kind="sparse", **index_core(m)
    )
    first, step = c.int("first_k_dense_replace", 0, fallback=1), c.int("moe_layer_freq", fallback=1)
    kinds = c.kinds("mlp_layer_types", m.n, lambda i: "sparse" if i >= first and i % step == 0 else "dense", DENSE_SPARSE)
    mlp_by_kind(m, kinds)
    width, sparse = c.int("gated_norm_rank"), m.where(lambda i: kinds[i] == "sparse")
    m.norm(*TWO_NORMS)
    for name, layers in (("input_layernorm", m.all), ("post_attention_layernorm", sparse)):
        m.linear(name + ".mlp.fc1", "mlp", width, h, layers=layers)
        m.linear(name + ".mlp.fc2", "mlp", h, width, layers=layers)
