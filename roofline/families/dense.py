"""Dense decoders: one attention and one feed-forward part in every layer."""

from __future__ import annotations

from .parts import Build
from .registry import family

TWO_NORMS = ("input_layernorm", "post_attention_layernorm")
SLIDING = ("full_attention", "sliding_attention")


def every(period: int, offset: int = 1):
    """A rule: full attention in every `period`-th layer, sliding in the others."""
    return lambda i: "sliding_attention" if (i + offset) % period else "full_attention"


@family("llama", "granite", "internlm3", "iquestcoder", "exaone", "code_llama", "cwm")
def llama(m: Build):
    c = m.c
    m.embed()
    if c.type == "internlm3":
        m.gqa(bias=c.flag("qkv_bias"), out_bias=c.flag("bias"))
        m.gated_mlp(bias=c.flag("bias"))
    else:
        m.gqa(bias=c.flag("attention_bias", False))
        m.gated_mlp(bias=c.flag("mlp_bias", False))
    m.norm(*TWO_NORMS)


@family("helium")
def helium(m: Build):
    m.embed()
    m.gqa(bias=m.c.flag("attention_bias"), out_bias=False, out_cols=m.hidden)
    m.gated_mlp(bias=m.c.flag("mlp_bias"))
    m.norm(*TWO_NORMS)


@family("arcee")
def arcee(m: Build):
    m.embed()
    m.gqa(bias=m.c.flag("attention_bias"))
    m.plain_mlp(bias=m.c.flag("mlp_bias"), names=("up_proj", "down_proj"))
    m.norm(*TWO_NORMS)


@family("nemotron")
def nemotron(m: Build):
    m.embed(norm_bias=True)
    m.gqa(bias=m.c.flag("attention_bias"))
    m.plain_mlp(bias=m.c.flag("mlp_bias"), names=("up_proj", "down_proj"))
    m.norm(*TWO_NORMS, bias=True)


@family("apertus")
def apertus(m: Build):
    m.embed()
    m.gqa(bias=m.c.flag("attention_bias"), qk_norm="head")
    m.plain_mlp(bias=False, names=("up_proj", "down_proj"))
    if m.c.word("hidden_act") == "xielu":
        for name in ("alpha_p", "alpha_n"):  # the xIELU activation learns two scalars a layer
            m.vector("mlp.act_fn." + name, "mlp", 1)
    m.norm("attention_layernorm", "feedforward_layernorm")


@family("mistral", "ministral3")
def mistral(m: Build):
    m.embed()
    m.gqa(window=m.c.opt("sliding_window"))
    m.gated_mlp()
    m.norm(*TWO_NORMS)


@family("ministral")
def ministral(m: Build):
    m.embed()
    window = m.c.opt("sliding_window")
    kinds = m.c.kinds("layer_types", m.n, lambda i: "sliding_attention" if window else "full_attention", SLIDING)
    for layers, w in m.sliding(kinds, window):
        m.core(layers=layers, window=w)
    m.gqa(core=False)
    m.gated_mlp()
    m.norm(*TWO_NORMS)


@family("qwen2", "qwen3", "qwen2_vl_text", "qwen2_5_vl_text", "qwen2_5_omni_text", "qwen3_vl_text")
def qwen(m: Build):
    c = m.c
    m.embed()
    window = c.opt("sliding_window") if c.flag("use_sliding_window", False) else None
    first = c.int("max_window_layers", 0) if window else 0
    kinds = c.kinds("layer_types", m.n, lambda i: "sliding_attention" if window and i >= first else "full_attention", SLIDING)
    for layers, w in m.sliding(kinds, window):
        m.core(layers=layers, window=w)
    if c.type.startswith("qwen2"):
        m.gqa(bias=True, out_bias=False, core=False)
    else:
        m.gqa(bias=c.flag("attention_bias"), qk_norm="head", core=False)
    m.gated_mlp()
    m.norm(*TWO_NORMS)


@family("smollm3")
def smollm3(m: Build):
    c = m.c
    m.embed()
    window = c.opt("sliding_window") if c.flag("use_sliding_window") else None
    rope = (
        c.items("no_rope_layers") and c.items("no_rope_layers", m.n) or [(i + 1) % c.int("no_rope_layer_interval") for i in m.all]
    )
    kinds = c.kinds("layer_types", m.n, lambda i: "sliding_attention" if window and not rope[i] else "full_attention", SLIDING)
    for layers, w in m.sliding(kinds, window):
        m.core(layers=layers, window=w)
    m.gqa(bias=c.flag("attention_bias"), core=False)
    m.gated_mlp(bias=c.flag("mlp_bias"))
    m.norm(*TWO_NORMS)


@family("seed_oss")
def seed_oss(m: Build):
    m.embed()
    m.gqa(bias=m.c.flag("attention_bias"), out_bias=m.c.flag("attention_out_bias"))
    m.gated_mlp(bias=m.c.flag("mlp_bias"))
    m.norm(*TWO_NORMS)


@family("gemma")
def gemma(m: Build):
    m.embed()
    m.gqa(bias=m.c.flag("attention_bias"))
    m.gated_mlp()
    m.norm(*TWO_NORMS)


@family("gemma2", "gemma3_text", "vaultgemma")
def gemma2(m: Build):
    c = m.c
    m.embed()
    pattern = c.int("sliding_window_pattern", fallback=6) if c.type == "gemma3_text" else 2
    kinds = c.kinds("layer_types", m.n, every(pattern), SLIDING)
    for layers, w in m.sliding(kinds, c.opt("sliding_window")):
        m.core(layers=layers, window=w)
    m.gqa(bias=c.flag("attention_bias"), qk_norm="head" if c.type == "gemma3_text" else None, core=False)
    m.gated_mlp()
    if c.type == "vaultgemma":
        m.norm("input_layernorm", "pre_feedforward_layernorm")
    else:
        m.norm(*TWO_NORMS, "pre_feedforward_layernorm", "post_feedforward_layernorm")


@family("phi")
def phi(m: Build):
    c = m.c
    m.embed(norm="model.final_layernorm", norm_bias=True, head_bias=True)
    m.gqa(bias=True, out="dense")
    if c.flag("qk_layernorm"):
        m.norm("self_attn.q_layernorm", "self_attn.k_layernorm", size=m.split(m.hidden, m.heads), bias=True)
    m.plain_mlp()
    m.norm("input_layernorm", bias=True)


@family("phi3")
def phi3(m: Build):
    m.embed()
    m.gqa(fused="qkv_proj", window=m.c.opt("sliding_window"))
    m.gated_mlp(fused="gate_up_proj")
    m.norm(*TWO_NORMS)


@family("persimmon")
def persimmon(m: Build):
    m.embed(norm="model.final_layernorm", norm_bias=True)
    m.gqa(kv=m.heads, fused="query_key_value", out="dense", bias=True)
    if m.c.flag("qk_layernorm"):
        m.norm("self_attn.q_layernorm", "self_attn.k_layernorm", size=m.head_dim, bias=True)
    m.plain_mlp(names=("dense_h_to_4h", "dense_4h_to_h"))
    m.norm(*TWO_NORMS, bias=True)


@family("glm", "glm4", "glm4v_text", "glm_ocr_text")
def glm(m: Build):
    m.embed()
    m.gqa(bias=m.c.type != "glm_ocr_text" and m.c.flag("attention_bias", True), out_bias=False)
    m.gated_mlp(fused="gate_up_proj")
    m.norm(*TWO_NORMS, *(("post_self_attn_layernorm", "post_mlp_layernorm") if m.c.type != "glm" else ()))


@family("cohere", "cohere2")
def cohere(m: Build):
    c = m.c
    m.embed()
    if c.type == "cohere2":
        pattern = c.int("sliding_window_pattern", fallback=4)
        kinds = c.kinds("layer_types", m.n, every(pattern), SLIDING)
        for layers, w in m.sliding(kinds, c.opt("sliding_window")):
            m.core(layers=layers, window=w)
        m.gqa(bias=c.flag("attention_bias"), core=False)
    else:
        m.gqa(bias=c.flag("attention_bias"), qk_norm="heads" if c.flag("use_qk_norm") else None)
    m.gated_mlp()
    m.norm("input_layernorm")


@family("olmo")
def olmo(m: Build):
    m.embed(norm=None)  # its LayerNorms have no weights
    m.gqa(bias=m.c.flag("attention_bias"))
    m.gated_mlp()


@family("olmo2", "olmo3")
def olmo2(m: Build):
    c = m.c
    m.embed()
    kinds = c.kinds("layer_types", m.n, every(4), SLIDING) if c.type == "olmo3" else ["full_attention"] * m.n
    for layers, w in m.sliding(kinds, c.opt("sliding_window") if c.type == "olmo3" else None):
        m.core(layers=layers, window=w)
    m.gqa(bias=c.flag("attention_bias"), qk_norm="flat", core=False)
    m.gated_mlp()
    m.norm("post_attention_layernorm", "post_feedforward_layernorm")


@family("stablelm")
def stablelm(m: Build):
    c = m.c
    m.embed(norm_bias=True)
    d = m.split(m.hidden, m.heads)
    m.gqa(bias=c.flag("use_qkv_bias"), out_bias=False, d=d)
    if c.flag("qk_layernorm"):  # one norm a head
        m.norm("self_attn.q_layernorm.norms", size=m.heads * d)
        m.norm("self_attn.k_layernorm.norms", size=m.kv_heads * d)
    m.gated_mlp()
    m.norm("input_layernorm", *(() if c.flag("use_parallel_residual") else ("post_attention_layernorm",)), bias=True)


@family("starcoder2")
def starcoder2(m: Build):
    bias = m.c.flag("use_bias")
    m.embed(norm_bias=True)
    m.gqa(bias=bias, window=m.c.opt("sliding_window"))
    m.plain_mlp(names=("c_fc", "c_proj"), bias=bias)
    m.norm(*TWO_NORMS, bias=True)


@family("hunyuan_v1_dense")
def hunyuan(m: Build):
    m.embed()
    m.gqa(bias=m.c.flag("attention_bias"), qk_norm="head", norms=("query_layernorm", "key_layernorm"))
    m.gated_mlp()
    m.norm(*TWO_NORMS)


@family("minicpm3", "youtu")
def latent(m: Build):
    """Dense feed-forward under multi-head latent attention."""
    m.embed()
    m.mla(bias=m.c.flag("attention_bias"), v=m.c.opt("v_head_dim") or m.split(m.hidden, m.heads))
    m.gated_mlp(bias=m.c.flag("mlp_bias", False))
    m.norm(*TWO_NORMS)


@family("ernie4_5")
def ernie(m: Build):
    bias = m.c.flag("use_bias")
    m.embed()
    m.gqa(bias=bias)
    m.gated_mlp(bias=bias)
    m.norm(*TWO_NORMS)


def local_global(m: Build):
    """EXAONE's attention: local layers with a window, a global one by a number ("every fourth") or by letters ("LLLG")."""
    c = m.c
    window, pattern = c.opt("sliding_window"), c.get("sliding_window_pattern")

    def rule(i: int) -> str:
        if not window or not pattern:
            return "full_attention"
        if isinstance(pattern, str):
            return "full_attention" if pattern[i % len(pattern)] == "G" else "sliding_attention"
        return every(c.int("sliding_window_pattern"))(i)

    for layers, w in m.sliding(c.kinds("layer_types", m.n, rule, SLIDING), window):
        m.core(layers=layers, window=w)
    m.gqa(qk_norm="head", core=False)


@family("exaone4")
def exaone4(m: Build):
    m.embed()
    local_global(m)
    m.gated_mlp()
    m.norm("post_attention_layernorm", "post_feedforward_layernorm")


@family("granite_swa")
def granite_swa(m: Build):
    c = m.c
    m.embed()
    swa_attention(m)
    m.gated_mlp(bias=c.flag("mlp_bias"))
    m.norm(*TWO_NORMS)


def swa_attention(m: Build):
    """Granite's windowed attention with sinks: full attention in every fourth layer from the first."""
    c = m.c
    kinds = c.kinds("layer_types", m.n, lambda i: "full_attention" if i % 4 == 0 else "sliding_attention", SLIDING)
    for layers, w in m.sliding(kinds, c.opt("sliding_window")):
        m.core(layers=layers, window=w)
    m.gqa(bias=c.flag("attention_bias"), core=False)
    m.vector("self_attn.sinks", "attention_projection", m.heads)


@family("bitnet")
def bitnet(m: Build):
    m.embed()
    m.gqa(bias=m.c.flag("attention_bias"))
    m.gated_mlp()
    m.norm(*TWO_NORMS, "self_attn.attn_sub_norm")
    m.norm("mlp.ffn_sub_norm", size=m.ff)


@family("diffllama")
def diffllama(m: Build):
    m.embed()
    m.gqa(bias=m.c.flag("attention_bias"))
    for name in ("lambda_q1", "lambda_k1", "lambda_q2", "lambda_k2"):
        m.vector("self_attn." + name, "attention_projection", m.head_dim)
    m.gated_mlp()
    m.norm(*TWO_NORMS)


@family("nanochat")
def nanochat(m: Build):
    m.embed(norm=None)  # its norms have no weights
    m.gqa(bias=m.c.flag("attention_bias"))
    m.plain_mlp(bias=False)


@family("hyperclovax")
def hyperclovax(m: Build):
    m.embed()
    m.gqa(bias=m.c.flag("attention_bias"))
    m.gated_mlp(bias=m.c.flag("mlp_bias"))
    m.norm(*TWO_NORMS, *(("post_norm1", "post_norm2") if m.c.flag("use_post_norm") else ()))


@family("jais2")
def jais2(m: Build):
    m.embed(norm_bias=True)
    m.gqa(bias=m.c.flag("attention_bias"))
    m.plain_mlp(bias=m.c.flag("mlp_bias"), names=("up_proj", "down_proj"))
    m.norm(*TWO_NORMS, bias=True)
