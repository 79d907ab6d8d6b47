"""Families published with their own code: ChatGLM, Baichuan, InternLM 1-2, Qwen 1, MiniCPM, Orion, MiMo, Grok-1, Nemotron-NAS and others.

There is no library class to build these with; their sizes follow the published code and are checked
against published totals (docs/families.md).
"""

from __future__ import annotations

from ..errors import InputError
from .dense import TWO_NORMS
from .moe import others, sparse
from .parts import Build
from .registry import family


@family("chatglm")
def chatglm(m: Build):
    """ChatGLM 2-3, GLM-4-9B (multi-query groups) and ChatGLM 1 (its config has inner_hidden_size)."""
    c, h = m.c, m.hidden
    first = c.has("inner_hidden_size")
    m.embed(
        name="transformer.embedding.word_embeddings",
        head="transformer.output_layer",
        norm="transformer.encoder.final_layernorm",
        norm_bias=first,
    )
    bias = first or c.flag("add_bias_linear", False)
    if first:
        m.gqa(kv=m.heads, d=m.split(h, m.heads), prefix="self_attention.", fused="query_key_value", out="dense", bias=True)
        m.plain_mlp(c.int("inner_hidden_size"), names=("dense_h_to_4h", "dense_4h_to_h"))
        return m.norm(*TWO_NORMS, bias=True)
    kv = c.int("multi_query_group_num", fallback=1) if c.flag("multi_query_attention", False) else m.heads
    m.gqa(
        kv=kv,
        d=c.opt("kv_channels", fallback=None) or m.split(h, m.heads),
        prefix="self_attention.",
        fused="query_key_value",
        out="dense",
        bias=bias or c.flag("add_qkv_bias", False),
        out_bias=bias,
    )
    m.gated_mlp(c.need("ffn_hidden_size"), fused="dense_h_to_4h", names=("", "", "dense_4h_to_h"), bias=bias)
    m.norm(*TWO_NORMS)


@family("baichuan")
def baichuan(m: Build):
    m.embed()
    m.gqa(kv=m.heads, d=m.split(m.hidden, m.heads), fused="W_pack")
    m.gated_mlp()
    m.norm(*TWO_NORMS)


@family("internlm")
def internlm(m: Build):
    m.embed()
    m.gqa(bias=m.c.flag("bias", True))
    m.gated_mlp()
    m.norm(*TWO_NORMS)


@family("internlm2")
def internlm2(m: Build):
    bias = m.c.flag("bias", False)
    m.embed(name="model.tok_embeddings", head="output")
    m.gqa(prefix="attention.", fused="wqkv", out="wo", bias=bias)
    m.gated_mlp(prefix="feed_forward.", names=("w1", "w3", "w2"))
    m.norm("attention_norm", "ffn_norm")


@family("qwen")
def qwen1(m: Build):
    """Qwen 1: intermediate_size is that of gate and up together."""
    c = m.c
    m.embed(name="transformer.wte", norm="transformer.ln_f")
    m.gqa(
        kv=m.heads,
        d=c.opt("kv_channels", fallback=None) or m.split(m.hidden, m.heads),
        prefix="attn.",
        fused="c_attn",
        out="c_proj",
        bias=True,
        out_bias=False,
    )
    m.gated_mlp(m.ff // 2, names=("w2", "w1", "c_proj"), bias=not c.flag("no_bias", True))
    m.norm("ln_1", "ln_2")


@family("minicpm")
def minicpm(m: Build):
    c = m.c
    m.embed(tied=c.flag("tie_word_embeddings", True))
    m.gqa(bias=c.flag("attention_bias", False))
    experts = c.opt("num_experts", 0, fallback=0)
    if experts:
        m.moe(experts, c.int("num_experts_per_tok"), m.ff, names=("w1", "w3", "w2"))
    else:
        m.gated_mlp()
    m.norm(*TWO_NORMS)


@family("orion")
def orion(m: Build):
    m.embed(norm_bias=True)
    m.gqa(bias=m.c.flag("attention_bias", False))
    m.gated_mlp()
    m.norm(*TWO_NORMS, bias=True)


@family("mimo")
def mimo(m: Build):
    """Qwen 2's layers; its multi-token-prediction layers are not counted."""
    m.embed()
    m.gqa(bias=m.c.flag("attention_bias", True), out_bias=False)
    m.gated_mlp()
    m.norm(*TWO_NORMS)


@family("deepseek")
def deepseek1(m: Build):
    """DeepSeek-MoE 16B: ordinary attention over DeepSeek's experts."""
    c = m.c
    m.embed()
    m.gqa(bias=c.flag("attention_bias", False))
    layers = (
        sparse(m, c.int("first_k_dense_replace", 0, fallback=0), c.int("moe_layer_freq", fallback=1))
        if c.opt("n_routed_experts")
        else ()
    )
    dense = others(m, layers)
    if dense:
        m.gated_mlp(layers=dense)
    if layers:
        ff = c.int("moe_intermediate_size")
        m.moe(
            c.int("n_routed_experts"),
            c.int("num_experts_per_tok"),
            ff,
            layers=layers,
            shared_ff=ff * (c.opt("n_shared_experts", 0) or 0),
        )
    m.norm(*TWO_NORMS)


@family("grok-1", "grok", "grok_1")
def grok1(m: Build):
    c = m.c
    m.embed(tied=c.flag("tie_word_embeddings", True))
    m.gqa(prefix="attn.")
    m.moe(
        c.int("num_experts"),
        c.int("num_experts_per_tok"),
        m.ff,
        router="moe_block.gate",
        prefix="moe_block.experts.",
        names=("linear", "linear_v", "linear_1"),
    )
    m.norm("pre_attn_norm", "post_attn_norm", "pre_moe_norm", "post_moe_norm")


@family("bailing_moe", "bailing_moe_v2")
def bailing(m: Build):
    """Ling and Ring: grouped-query attention in one matrix, DeepSeek-like experts."""
    c = m.c
    m.embed(name="model.word_embeddings")
    v2 = c.type.endswith("v2")
    m.gqa(
        prefix="attention.",
        fused="query_key_value",
        out="dense",
        bias=c.flag("use_qkv_bias", False),
        out_bias=c.flag("use_bias", False),
        qk_norm="head" if v2 and c.flag("use_qk_norm", True) else None,
        norms=("query_layernorm", "key_layernorm"),
    )
    layers = sparse(m, c.int("first_k_dense_replace", 0, fallback=0))
    dense = others(m, layers)
    if dense:
        m.gated_mlp(layers=dense)
    ff, shared = c.int("moe_intermediate_size"), c.opt("num_shared_experts", 0, fallback=0) or 0
    m.moe(
        c.int("num_experts"),
        c.int("num_experts_per_tok"),
        ff,
        layers=layers,
        shared_ff=shared * (c.opt("moe_shared_expert_intermediate_size", fallback=None) or ff),
    )
    m.norm(*TWO_NORMS)


@family("nemotron-nas")
def nemotron_nas(m: Build):
    """Llama with layers pruned one by one: block_configs says what each layer kept."""
    c, h = m.c, m.hidden
    m.embed()
    blocks = c.items("block_configs", m.n)
    if not blocks or not all(
        isinstance(b, dict) and isinstance(b.get("attention"), dict) and isinstance(b.get("ffn"), dict) for b in blocks
    ):
        raise InputError("block_configs", None, "must describe the attention and ffn of each layer")
    d, attention, ffn, linear = m.head_dim, {}, {}, {}
    for i, block in enumerate(blocks):
        for part, found in (("attention", attention), ("ffn", ffn)):
            row = block[part]
            if row.get("replace_with_linear"):
                linear.setdefault(part, []).append(i)
            elif not row.get("no_op"):
                found.setdefault(row.get("n_heads_in_group" if part == "attention" else "ffn_mult"), []).append(i)
    for group, layers in attention.items():
        if isinstance(group, bool) or not isinstance(group, int) or group < 1 or m.heads % group:
            raise InputError("block_configs.attention.n_heads_in_group", group, f"must divide num_attention_heads ({m.heads})")
        m.gqa(layers=tuple(layers), kv=m.heads // group, d=d)
        m.norm("input_layernorm", layers=tuple(layers))
    for mult, layers in ffn.items():
        if isinstance(mult, bool) or not isinstance(mult, (int, float)) or not 0 < mult < 1000:
            raise InputError("block_configs.ffn.ffn_mult", mult, "must be a number above 0")
        m.gated_mlp(256 * -(-int(2 * mult * h / 3) // 256), layers=tuple(layers))
        m.norm("post_attention_layernorm", layers=tuple(layers))
    for part, name, norm in (
        ("attention", "self_attn.linear_attn", "input_layernorm"),
        ("ffn", "mlp.linear_mlp", "post_attention_layernorm"),
    ):
        layers = tuple(linear.get(part, ()))
        m.linear(name, "attention_projection" if part == "attention" else "mlp", h, h, layers=layers)
        m.norm(norm, layers=layers)


@family("phi-msft")
def phi_msft(m: Build):
    """Phi 1-2 as first published: one norm and a parallel attention and feed-forward in every layer."""
    h = m.hidden
    m.embed(name="transformer.embd.wte", head="lm_head.linear", norm="lm_head.ln", norm_bias=True, head_bias=True)
    m.gqa(
        kv=m.c.opt("n_head_kv", fallback=None) or m.heads,
        d=m.split(h, m.heads),
        prefix="mixer.",
        fused="Wqkv",
        out="out_proj",
        bias=True,
    )
    m.plain_mlp(m.c.opt("n_inner", fallback=None) or 4 * h)
    m.norm("ln", bias=True)
