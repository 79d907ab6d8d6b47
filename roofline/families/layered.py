"""Decoders whose layers differ from one another: shared caches, chunks, gates, compressed caches, per-layer inputs."""

from __future__ import annotations

from ..errors import InputError
from .dense import SLIDING, TWO_NORMS
from .moe import others
from .parts import ATTN, Build
from .reader import Reader
from .registry import family

FOUR_NORMS = (*TWO_NORMS, "pre_feedforward_layernorm", "post_feedforward_layernorm")


@family("mllama_text_model")
def mllama_text(m: Build):
    """Llama 3.1 with layers that look at an image; without one, those layers are skipped."""
    c = m.c
    cross = sorted(
        i
        for i in (
            c.indices("cross_attention_layers") if c.get("cross_attention_layers") is not None else (3, 8, 13, 18, 23, 28, 33, 38)
        )
        if 0 <= i < m.n
    )
    own = others(m, tuple(cross))
    m.embed(vocab=m.vocab + 8, head_vocab=m.vocab)  # eight image tokens have an embedding but no logits
    m.gqa(layers=own)
    m.gated_mlp(layers=own)
    m.norm(*TWO_NORMS, layers=own)
    start = len(m.tensors)
    m.gqa(layers=cross, prefix="cross_attn.", qk_norm="head", core=False)
    m.gated_mlp(layers=cross)
    m.norm(*TWO_NORMS, layers=cross)
    m.vector("cross_attn_attn_gate", "other", 1, layers=cross)
    m.vector("cross_attn_mlp_gate", "other", 1, layers=cross)
    m.idle(start)
    if cross:
        m.core(layers=cross, kind="cross", kv_elements=0)
        m.notes.append(f"{len(cross)} cross-attention layers are counted in memory; text without an image skips them.")


@family("llama4_text")
def llama4_text(m: Build):
    c = m.c
    m.embed()
    rope = (
        c.items("no_rope_layers")
        and c.items("no_rope_layers", m.n)
        or [(i + 1) % c.int("no_rope_layer_interval") != 0 for i in m.all]
    )
    chunk = c.opt("attention_chunk_size")
    kinds = c.kinds(
        "layer_types",
        m.n,
        lambda i: "chunked_attention" if rope[i] and chunk else "full_attention",
        ("full_attention", "chunked_attention"),
    )
    for kind in ("full_attention", "chunked_attention"):
        layers = m.where(lambda i: kinds[i] == kind)
        more = {"window": chunk, "chunked": True, "kind": "chunked"} if kind != "full_attention" else {}
        m.core(layers=layers, **more)
    m.gqa(bias=c.flag("attention_bias"), core=False)
    step = c.int("interleave_moe_layer_step")
    listed = c.indices("moe_layers") if c.get("moe_layers") is not None else set(range(step - 1, m.n, step))
    sparse = m.where(lambda i: i in listed)
    dense = others(m, sparse)
    if dense:
        m.gated_mlp(c.int("intermediate_size_mlp"), layers=dense, prefix="feed_forward.")
    m.moe(
        c.int("num_local_experts"),
        c.int("num_experts_per_tok"),
        m.ff,
        layers=sparse,
        router="feed_forward.router",
        prefix="feed_forward.experts.",
        fused="gate_up_proj",
        shared="feed_forward.shared_expert.",
        shared_ff=m.ff,
    )
    m.norm(*TWO_NORMS)


def per_layer_inputs(m: Build):
    """Gemma's per-layer embeddings: a table that every layer reads a slice of, gated into its output."""
    c, h, width = m.c, m.hidden, m.c.opt("hidden_size_per_layer_input", 0, fallback=0)
    if not width:
        return
    m.linear("per_layer_input_gate", "other", width, h)
    m.linear("per_layer_projection", "other", h, width)
    m.norm("post_per_layer_input_norm")
    m.once("model.embed_tokens_per_layer", "embedding", c.int("vocab_size_per_layer_input"), m.n * width, "table")
    m.once("model.per_layer_model_projection", "other", m.n * width, h)
    m.once("model.per_layer_projection_norm", "norm", width)


def shared_cache(m: Build, kinds: list, size) -> None:
    """Attention cores where the last `num_kv_shared_layers` layers read the cache of an earlier layer of their kind.

    size: kind -> (kv heads, head dimension).
    """
    first = m.n - m.c.int("num_kv_shared_layers", 0, m.n)
    window = m.c.opt("sliding_window")
    for kind in SLIDING:
        kv, d = size(kind)
        w = window if kind == "sliding_attention" else None
        m.core(layers=m.where(lambda i: i < first and kinds[i] == kind), kv=kv, d=d, window=w)
        m.core(
            layers=m.where(lambda i: i >= first and kinds[i] == kind),
            kv=kv,
            d=d,
            window=w,
            kv_elements=0,
            reads_elements=2 * kv * d,
        )


@family("gemma3n_text")
def gemma3n(m: Build):
    c, h = m.c, m.hidden
    m.embed()
    kinds = c.kinds("layer_types", m.n, lambda i: "full_attention" if (i + 1) % 5 == 0 else "sliding_attention", SLIDING)
    first = m.n - c.int("num_kv_shared_layers", 0, m.n)
    shared_cache(m, kinds, lambda kind: (m.kv_heads, m.head_dim))
    m.gqa(layers=m.where(lambda i: i < first), qk_norm="head", core=False)
    m.gqa(layers=m.where(lambda i: i >= first), qk_norm="head", core=False, keys=False)
    widths = c.each("intermediate_size", m.n)
    for ff in sorted(set(widths)):
        m.gated_mlp(ff, layers=m.where(lambda i: widths[i] == ff))
    streams, rank = c.int("altup_num_inputs", 1, 64), c.int("laurel_rank")
    m.vector("altup.correct_output_scale", "other", h)
    m.linear("altup.correction_coefs", "other", streams, streams)
    m.linear("altup.prediction_coefs", "other", streams**2, streams)
    m.linear("altup.modality_router", "other", streams, h)
    m.norm("altup.router_norm", "laurel.post_laurel_norm")
    m.linear("laurel.linear_left", "other", rank, h)
    m.linear("laurel.linear_right", "other", h, rank)
    for name in ("altup_projections", "altup_unembed_projections"):
        for i in range(streams - 1):
            m.once(f"model.{name}.{i}", "other", h, h)
    m.norm(*FOUR_NORMS)
    per_layer_inputs(m)


@family("gemma4_text")
def gemma4(m: Build):
    c, h = m.c, m.hidden
    m.embed()
    kinds = c.kinds("layer_types", m.n, lambda i: "sliding_attention" if (i + 1) % 6 else "full_attention", SLIDING)
    kinds[-1] = "full_attention"  # the reference insists on it
    same, first = c.flag("attention_k_eq_v"), m.n - c.int("num_kv_shared_layers", 0, m.n)
    each = c.get("per_layer_config", None)  # how newer files say it: {layer: {"head_dim", "num_key_value_heads"}}
    own = next(iter(each.values()), None) if isinstance(each, dict) else None
    if isinstance(own, dict) and not c.has("global_head_dim"):
        own = Reader(own, "", path=c.field("per_layer_config"), assumed=c.assumed)
        wide, few = own.int("head_dim", fallback=512), own.opt("num_key_value_heads")
    else:
        wide, few = c.int("global_head_dim", fallback=512), c.opt("num_global_key_value_heads", fallback=None) if same else None

    def size(kind: str) -> tuple:
        if kind == "full_attention":
            return few or m.kv_heads, wide
        return m.kv_heads, m.head_dim

    shared_cache(m, kinds, size)
    for kind in SLIDING:
        kv, d = size(kind)
        here = m.where(lambda i: kinds[i] == kind)
        for layers, keys in ((tuple(i for i in here if i < first), True), (tuple(i for i in here if i >= first), False)):
            if layers:
                p, bias = "self_attn.", c.flag("attention_bias")
                m.linear(p + "q_proj", ATTN, m.heads * d, h, layers=layers, bias=bias)
                m.norm(p + "q_norm", size=d, layers=layers)
                if keys:
                    m.linear(p + "k_proj", ATTN, kv * d, h, layers=layers, bias=bias)
                    m.norm(p + "k_norm", size=d, layers=layers)
                    if not (same and kind == "full_attention"):  # there the keys serve as values
                        m.linear(p + "v_proj", ATTN, kv * d, h, layers=layers, bias=bias)
                m.linear(p + "o_proj", ATTN, h, m.heads * d, layers=layers, bias=bias)
    double = c.flag("use_double_wide_mlp", False)
    m.gated_mlp(layers=m.where(lambda i: i < first or not double))
    m.gated_mlp(2 * m.ff, layers=m.where(lambda i: i >= first and double))
    m.norm(*FOUR_NORMS)
    if c.flag("enable_moe_block", False):
        m.moe(
            c.int("num_experts"),
            c.int("top_k_experts"),
            c.int("moe_intermediate_size"),
            router="router.proj",
            prefix="experts.",
            fused="gate_up_proj",
        )
        m.vector("router.scale", "router", h)
        m.vector("router.per_expert_scale", "router", c.int("num_experts"))
        m.norm("post_feedforward_layernorm_1", "post_feedforward_layernorm_2", "pre_feedforward_layernorm_2")
    per_layer_inputs(m)


@family("step3p5")
def step3p5(m: Build):
    c, h = m.c, m.hidden
    m.embed()
    given, padded = c.items("layer_types"), m.n + (c.opt("num_nextn_predict_layers", 0, fallback=0) or 0)
    if given is not None and len(given) == padded:  # the prediction layers are listed too, and not counted
        c.raw = {**c.raw, "layer_types": given[: m.n]}
    kinds = c.kinds("layer_types", m.n, lambda i: "full_attention", SLIDING)
    other = c.sub("attention_other_setting")
    slide = c.opt("num_sliding_attention_heads") or (
        other.int("num_attention_heads") if other and other.has("num_attention_heads") else m.heads
    )
    for layers, window in m.sliding(kinds, c.opt("sliding_window")):
        heads = slide if kinds[layers[0]] == "sliding_attention" else m.heads
        m.gqa(layers=layers, heads=heads, window=window, qk_norm="head", bias=c.flag("attention_bias"))
        m.linear("self_attn.g_proj", ATTN, heads, h, layers=layers)
    enum = c.get("moe_layers_enum", None)
    listed = (
        {int(i) for i in enum.split(",") if i.strip().isdigit()}
        if isinstance(enum, str)
        else c.indices("moe_layers_enum", fallback=None)
    )
    listed = listed or set(range(3, m.n))
    mlp = c.items("mlp_layer_types") or ["sparse" if i in listed else "dense" for i in m.all]
    dense, sparse = m.where(lambda i: mlp[i] == "dense"), m.where(lambda i: mlp[i] != "dense")
    m.gated_mlp(layers=dense, bias=c.flag("mlp_bias"))
    m.moe(
        c.int("n_routed_experts"),
        c.int("num_experts_per_tok"),
        c.int("moe_intermediate_size"),
        layers=sparse,
        shared_ff=c.int("share_expert_dim", 0),
        shared_bias=c.flag("mlp_bias"),
    )
    m.norm(*TWO_NORMS)


@family("minimax_m3_vl_text", "minimax_m3")
def minimax_m3(m: Build):
    """Grouped-query attention to the key blocks that a small indexer picks."""
    c, h = m.c, m.hidden
    m.embed()
    own = c.sub("sparse_attention_config")

    def index(name: str, old: str) -> int:
        return own.int(old) if own and own.has(old) else c.int(name)

    freq = own.items("sparse_attention_freq", m.n) if own else None
    kinds = c.kinds(
        "layer_types",
        m.n,
        lambda i: "minimax_m3_sparse" if freq and freq[i] else "full_attention",
        ("full_attention", "minimax_m3_sparse"),
    )
    full = m.where(lambda i: kinds[i] == "full_attention")
    sparse = others(m, full)
    heads, d = index("index_n_heads", "sparse_num_index_heads"), index("index_head_dim", "sparse_index_dim")
    seen = index("index_block_size", "sparse_block_size") * (index("index_topk_blocks", "sparse_topk_blocks"))
    m.gqa(qk_norm="head", core=False)
    m.core(layers=full)
    m.core(layers=sparse, topk=seen, index_heads=heads, index_dim=d, index_elements=d, kind="sparse")
    if sparse:
        p = "self_attn.indexer."
        m.linear(p + "q_proj", ATTN, heads * d, h, layers=sparse)
        m.linear(p + "k_proj", ATTN, d, h, layers=sparse)
        m.norm(p + "q_norm", p + "k_norm", size=d, layers=sparse)
    each = c.items("moe_layer_freq", m.n, fallback=None)
    mlp = c.kinds("mlp_layer_types", m.n, lambda i: "sparse" if each is None or each[i] else "dense", ("dense", "sparse"))
    m.gated_mlp(c.int("dense_intermediate_size"), layers=m.where(lambda i: mlp[i] == "dense"), fused="gate_up_proj")
    m.moe(
        c.int("num_local_experts"),
        c.int("num_experts_per_tok"),
        m.ff,
        layers=m.where(lambda i: mlp[i] == "sparse"),
        router="block_sparse_moe.gate",
        prefix="block_sparse_moe.experts.",
        names=("w1", "w3", "w2"),
        shared="block_sparse_moe.shared_experts.",
        shared_ff=c.int("shared_intermediate_size", 0),
        shared_fused="gate_up_proj",
    )
    m.norm(*TWO_NORMS)


@family("deepseek_v4")
def deepseek_v4(m: Build):
    """One shared key-value head in a short window, plus a cache of compressed entries: one for 4 tokens (indexed) or for 128.

    The residual runs in several streams mixed by small learned matrices (hyper-connections).
    """
    c, h, n = m.c, m.hidden, m.n
    heads, d, rank, window = m.heads, c.int("head_dim"), c.int("q_lora_rank"), c.int("sliding_window")
    m.embed()
    rates = {
        "compressed_sparse_attention": c.opt("compress_rate_csa", fallback=None) or 4,
        "heavily_compressed_attention": c.opt("compress_rate_hca", fallback=None) or 128,
    }
    table = c.sub("compress_rates")
    if table:
        rates = {kind: table.int(kind) if table.has(kind) else rate for kind, rate in rates.items()}
    ratios = c.items("compress_ratios")
    by_ratio = {0: "sliding_attention", 4: "compressed_sparse_attention", 128: "heavily_compressed_attention"}
    if ratios is not None and (len(ratios) < n or any(not isinstance(r, int) or r not in by_ratio for r in ratios)):
        raise InputError("compress_ratios", ratios, f"must give 0, 4 or 128 for each of the {n} layers")
    given = c.items("layer_types")
    if given is not None and len(given) > n:
        c.raw = {**c.raw, "layer_types": given[:n]}
    kinds = c.kinds(
        "layer_types",
        n,
        lambda i: (
            by_ratio[ratios[i]]
            if ratios is not None
            else "compressed_sparse_attention"
            if i >= 2 and i % 2
            else "heavily_compressed_attention"
        ),
        tuple(by_ratio.values()),
    )
    p, groups, o_rank = "self_attn.", c.int("o_groups"), c.int("o_lora_rank")
    m.vector(p + "sinks", ATTN, heads)
    m.linear(p + "q_a_proj", ATTN, rank, h)
    m.linear(p + "q_b_proj", ATTN, heads * d, rank)
    m.linear(p + "kv_proj", ATTN, d, h)
    m.linear(p + "o_a_proj", ATTN, groups * o_rank, heads * d // groups)  # block-diagonal: each group of heads its own part
    m.linear(p + "o_b_proj", ATTN, h, groups * o_rank)
    m.norm(p + "q_a_norm", size=rank)
    m.norm(p + "kv_norm", size=d)
    at = {kind: m.where(lambda i: kinds[i] == kind) for kind in by_ratio.values()}
    csa, hca = "compressed_sparse_attention", "heavily_compressed_attention"
    ih, idim = c.int("index_n_heads"), c.int("index_head_dim")
    for kind, series in ((csa, 2), (hca, 1)):  # the indexed kind compresses two overlapping series
        q = p + "compressor."
        m.linear(q + "kv_proj", ATTN, series * d, h, layers=at[kind])
        m.linear(q + "gate_proj", ATTN, series * d, h, layers=at[kind])
        m.vector(q + "position_bias", ATTN, rates[kind] * series * d, layers=at[kind])
        m.norm(q + "kv_norm", size=d, layers=at[kind])
    q = p + "compressor.indexer."
    m.linear(q + "kv_proj", ATTN, 2 * idim, h, layers=at[csa])
    m.linear(q + "gate_proj", ATTN, 2 * idim, h, layers=at[csa])
    m.vector(q + "position_bias", ATTN, rates[csa] * 2 * idim, layers=at[csa])
    m.norm(q + "kv_norm", size=idim, layers=at[csa])
    m.linear(q + "q_b_proj", ATTN, ih * idim, rank, layers=at[csa])
    m.linear(q + "scorer.weights_proj", ATTN, ih, h, layers=at[csa])
    # Every layer holds the window. `reference_elements` follows a measurement of the reference's cache after 512 tokens: the window's
    # keys twice, and the compressed entries made after the first 64 tokens.
    for kind, layers in at.items():
        held = 2 * d if kind == "sliding_attention" else 2 * (window - 1) * d / 512
        m.core(layers=layers, kv=1, d=d, window=window, kv_elements=d, reference_elements=held, kind="sliding")
    rate = rates[csa]
    m.core(
        layers=at[csa],
        kv=1,
        d=d,
        kv_elements=d,
        compress=rate,
        topk=c.int("index_topk") * rate,
        index_heads=ih,
        index_dim=idim,
        index_elements=idim // rate,
        reference_elements=(d + idim) * (512 - 64) / 512 - idim,
        kind="compressed",
    )
    m.core(layers=at[hca], kv=1, d=d, kv_elements=d, compress=rates[hca], kind="compressed")
    ff = c.int("moe_intermediate_size")
    m.moe(c.int("n_routed_experts"), c.int("num_experts_per_tok"), ff, shared_ff=ff, shared_bias=c.flag("mlp_bias"))
    m.norm(*TWO_NORMS)
    streams = c.int("hc_mult")
    for name in ("attn_hc", "ffn_hc"):
        m.linear(name + ".fn", "other", (2 + streams) * streams, streams * h, own_dtype="fp32")
        m.vector(name + ".base", "other", (2 + streams) * streams, own_dtype="fp32")
        m.vector(name + ".scale", "other", 3, own_dtype="fp32")
    m.once("model.hc_head.hc_fn", "other", streams, streams * h)
    m.once("model.hc_head.hc_base", "other", streams)
    m.once("model.hc_head.hc_scale", "other", 1)
    m.notes.append(
        "The cache is not linear in the context: a window per layer plus compressed entries. kv_bytes_per_token follows a measurement "
        "of the reference after 512 tokens; memory and time use the window and the entries themselves."
    )
