"""The first generations: GPT-2 and its kin, OPT, BLOOM, MPT, Falcon, Phi-1-like GPT-J."""

from __future__ import annotations

from ..errors import InputError
from .parts import ATTN, Build
from .registry import family


def inner(m: Build, name: str = "n_inner") -> int:
    """The feed-forward width: given, or four times the hidden size."""
    return m.c.opt(name) or 4 * m.hidden


@family("gpt2", "gpt-sw3", "gpt_bigcode")
def gpt2(m: Build):
    c, h = m.c, m.hidden
    m.embed(name="wte", norm="ln_f", norm_bias=True)
    m.once("wpe", "embedding", c.int("n_positions"), h, "table")
    kv = 1 if c.type == "gpt_bigcode" and c.flag("multi_query") else m.heads
    m.gqa(kv=kv, d=m.split(h, m.heads), prefix="attn.", fused="c_attn", out="c_proj", bias=True)
    m.plain_mlp(inner(m), names=("c_fc", "c_proj"))
    m.norm("ln_1", "ln_2", bias=True)


@family("gpt_neo")
def gpt_neo(m: Build):
    c, h = m.c, m.hidden
    m.embed(name="wte", norm="ln_f", norm_bias=True)
    m.once("wpe", "embedding", c.int("max_position_embeddings"), h, "table")
    kinds: list = []
    for item in c.items("attention_types") or [[["global", "local"], 12]]:
        if (
            not isinstance(item, (list, tuple))
            or len(item) != 2
            or not isinstance(item[0], (list, tuple))
            or not isinstance(item[1], int)
            or not 0 < item[1] <= 10_000
        ):
            raise InputError("attention_types", item, "must be a list of [[kinds], repeats]")
        kinds += list(item[0]) * item[1]
    if len(kinds) != m.n:
        raise InputError("attention_types", f"{len(kinds)} layers", f"must describe all {m.n} layers")
    m.gqa(kv=m.heads, d=m.split(h, m.heads), prefix="attn.attention.", out="out_proj", out_bias=True, core=False)
    for layers, window in (
        (m.where(lambda i: kinds[i] == "local"), c.int("window_size")),
        (m.where(lambda i: kinds[i] != "local"), None),
    ):
        m.core(layers=layers, kv=m.heads, d=m.split(h, m.heads), window=window)
    m.plain_mlp(inner(m, "intermediate_size"), names=("c_fc", "c_proj"))
    m.norm("ln_1", "ln_2", bias=True)


@family("gptj", "codegen")
def gptj(m: Build):
    h = m.hidden
    m.embed(name="wte", norm="ln_f", norm_bias=True, head_bias=True)
    m.gqa(kv=m.heads, d=m.split(h, m.heads), prefix="attn.", out="out_proj", fused="qkv_proj" if m.c.type == "codegen" else None)
    m.plain_mlp(inner(m), names=("fc_in", "fc_out"))
    m.norm("ln_1", bias=True)


@family("gpt_neox", "gpt_neox_japanese")
def gpt_neox(m: Build):
    c, h = m.c, m.hidden
    japanese = c.type == "gpt_neox_japanese"
    m.embed(name="embed_in", head="embed_out", norm="final_layer_norm", norm_bias=True)
    bias = not japanese and c.flag("attention_bias")
    m.gqa(kv=m.heads, d=m.split(h, m.heads), prefix="attention.", fused="query_key_value", out="dense", bias=bias)
    if japanese:
        m.vector("attention.dense_bias", ATTN, h, layers=(m.n - 1,))  # only the last layer's bias is a parameter
        m.plain_mlp(c.int("intermediate_multiple_size") * h, names=("dense_h_to_4h", "dense_4h_to_h"), bias=False)
    else:
        m.plain_mlp(names=("dense_h_to_4h", "dense_4h_to_h"))
    m.norm("input_layernorm", "post_attention_layernorm", bias=True)


@family("opt")
def opt(m: Build):
    c, h = m.c, m.hidden
    bias, affine = c.flag("enable_bias"), c.flag("layer_norm_elementwise_affine")
    width = c.opt("word_embed_proj_dim") or h
    m.tied = c.flag("tie_word_embeddings")
    m.once("decoder.embed_tokens", "embedding", m.vocab, width, "table")
    m.once("decoder.embed_positions", "embedding", c.int("max_position_embeddings") + 2, h, "table")
    if not m.tied:
        m.once("lm_head", "lm_head", m.vocab, width)
    if width != h:
        m.once("decoder.project_in", "other", h, width)
        m.once("decoder.project_out", "other", width, h)
    m.gqa(kv=m.heads, d=m.split(h, m.heads), out="out_proj", bias=bias)
    m.plain_mlp(c.int("ffn_dim"), prefix="", bias=bias)
    if affine:
        m.norm("self_attn_layer_norm", "final_layer_norm", bias=True)
        if c.flag("do_layer_norm_before") and not c.flag("_remove_final_layer_norm"):
            m.once("decoder.final_layer_norm", "norm", h)
            m.once("decoder.final_layer_norm.bias", "norm", h)


@family("bloom")
def bloom(m: Build):
    h = m.hidden
    m.embed(name="word_embeddings", norm="ln_f", norm_bias=True)
    m.once("word_embeddings_layernorm", "norm", h)
    m.once("word_embeddings_layernorm.bias", "norm", h)
    m.gqa(kv=m.heads, d=m.split(h, m.heads), prefix="self_attention.", fused="query_key_value", out="dense", bias=True)
    m.plain_mlp(4 * h, names=("dense_h_to_4h", "dense_4h_to_h"))
    m.norm("input_layernorm", "post_attention_layernorm", bias=True)


@family("mpt")
def mpt(m: Build):
    h = m.hidden
    m.embed(name="wte", norm="norm_f")
    m.gqa(kv=m.heads, d=m.split(h, m.heads), prefix="attn.", fused="Wqkv", out="out_proj")
    m.plain_mlp(4 * h, prefix="ffn.", names=("up_proj", "down_proj"), bias=False)
    m.norm("norm_1", "norm_2")


@family("falcon")
def falcon(m: Build):
    c, h = m.c, m.hidden
    new, bias = c.flag("new_decoder_architecture"), c.flag("bias")
    m.embed(name="word_embeddings", norm="ln_f", norm_bias=True)
    kv = (c.opt("num_kv_heads") or m.heads) if new or not c.flag("multi_query") else 1
    more = {}
    if new and kv < m.heads:
        d = m.split(h, m.heads)
        more["reference_elements"] = 2 * m.heads * d
        m.notes.append(
            f"The reference implementation repeats the {kv} key and value heads to {m.heads} before it caches them, and kv_bytes_per_token counts "
            f"that; an engine that caches {kv} heads holds {4 * kv * d * m.n} bytes a token in BF16, which is what memory and time use here."
        )
    m.gqa(kv=kv, d=m.split(h, m.heads), prefix="self_attention.", fused="query_key_value", out="dense", bias=bias, **more)
    m.plain_mlp(inner(m, "ffn_hidden_size"), names=("dense_h_to_4h", "dense_4h_to_h"), bias=bias)
    if not c.flag("parallel_attn"):
        m.norm("input_layernorm", "post_attention_layernorm", bias=True)
    elif (c.opt("num_ln_in_parallel_attn") or (2 if new else 1)) == 2:
        m.norm("ln_attn", "ln_mlp", bias=True)
    else:
        m.norm("input_layernorm", bias=True)


@family("biogpt", "xglm")
def fairseq(m: Build):
    c, h = m.c, m.hidden
    if c.type == "biogpt":
        m.embed(name="embed_tokens", head="output_projection", norm="layer_norm", norm_bias=True)
        m.once("embed_positions", "embedding", c.int("max_position_embeddings") + 2, h, "table")
        ff = m.ff
    else:
        m.embed(name="embed_tokens", norm="layer_norm", norm_bias=True)  # its positions are sinusoids, not parameters
        ff = c.int("ffn_dim")
    m.gqa(kv=m.heads, d=m.split(h, m.heads), out="out_proj", bias=True)
    m.plain_mlp(ff, prefix="")
    m.norm("self_attn_layer_norm", "final_layer_norm", bias=True)
