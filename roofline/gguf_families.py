"""What each architecture of llama.cpp names its own way, for `gguf_config.to_config`.

Each function takes the config made from the keys all architectures share and adds or changes what its family reads.
Source: conversion/*.py of ggml-org/llama.cpp (which config field each key is written from), gguf-py 0.19 constants.py.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from .errors import InputError
from .gguf import Header


@dataclass(frozen=True, slots=True)
class Keys:
    """The metadata of one architecture, read with checks."""

    header: Header
    arch: str

    def get(self, key: str, default=None):
        return self.header.metadata.get(f"{self.arch}.{key}", default)

    def whole(self, key: str, default=None) -> int | None:
        """A whole number (the largest of a list that gives one per layer), or the default."""
        value = self.get(key, default)
        if isinstance(value, list):
            value = max((v for v in value if isinstance(v, int)), default=default)
        if value is None:
            return None
        if isinstance(value, float) and value == int(value):
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**40:
            raise InputError(f"{self.arch}.{key}", value, "must be a whole number")
        return value

    def need(self, key: str) -> int:
        value = self.whole(key)
        if not value:
            more = "" if self.header.complete else "; the bytes given end inside the header, give it more of the file (24 MB are enough)"
            raise InputError(f"{self.arch}.{key}", value, f"must be in the file's metadata{more}")
        return value

    def has(self, pattern: str) -> bool:
        """True if a tensor's name matches."""
        return any(re.search(pattern, t.name) for t in self.header.tensors)

    def shape(self, name: str) -> tuple:
        return next((t.shape for t in self.header.tensors if t.name == name), ())


def _llama(c: dict, k: Keys):
    if c.get("num_local_experts"):
        c |= {"model_type": "mixtral", "intermediate_size": c["moe_intermediate_size"]}
    if k.arch == "deci" and isinstance(k.get("attention.head_count"), list):
        raise InputError("deci.attention.head_count", "differs by layer", "is not read from a GGUF header; the model's config.json can be read instead")


def _experts_as_ff(c: dict, k: Keys):
    c["intermediate_size"] = c.get("moe_intermediate_size") or c["intermediate_size"]
    c["use_qk_norm"] = k.has(r"attn_q_norm")


def _shared(c: dict, k: Keys):
    """The shared expert's width, which older files leave out of the keys."""
    shape = k.shape(next((t.name for t in k.header.tensors if "ffn_up_shexp" in t.name), ""))
    if shape and not c.get("shared_expert_intermediate_size"):
        c["shared_expert_intermediate_size"] = shape[1]


def _glm_moe(c: dict, k: Keys):
    c["use_qk_norm"] = k.has(r"attn_q_norm")


def _mla(c: dict, k: Keys):
    rope, key = k.need("rope.dimension_count"), k.whole("attention.key_length_mla") or k.need("attention.key_length")
    value = k.whole("attention.value_length_mla") or k.need("attention.value_length")
    c |= {"kv_lora_rank": k.need("attention.kv_lora_rank"), "q_lora_rank": k.whole("attention.q_lora_rank"), "qk_rope_head_dim": rope, "qk_nope_head_dim": key - rope,
          "v_head_dim": value, "num_key_value_heads": c["num_attention_heads"]}
    c.pop("head_dim", None)
    corrected = k.has("exp_probs_b") or k.get("expert_gating_func") == 2
    if not corrected:
        c |= {"model_type": "deepseek_v2", "moe_layer_freq": 1}
    if c["q_lora_rank"] is None:
        c["q_lora_rank"] = 0
    c["moe_layer_freq"] = 1


def _delta(c: dict, k: Keys):
    """Gated delta net: llama.cpp keeps it under the names of a state-space model."""
    values, heads = k.need("ssm.inner_size"), k.need("ssm.time_step_rank")
    c |= {"linear_conv_kernel_dim": k.need("ssm.conv_kernel"), "linear_num_value_heads": heads, "linear_num_key_heads": k.need("ssm.group_count"),
          "linear_key_head_dim": k.need("ssm.state_size"), "linear_value_head_dim": values // heads, "full_attention_interval": k.whole("full_attention_interval", 4)}
    _shared(c, k)


def _falcon(c: dict, k: Keys):
    new = k.has(r"attn_norm_2")
    c |= {"new_decoder_architecture": new, "multi_query": c["num_key_value_heads"] == 1, "num_kv_heads": c["num_key_value_heads"], "parallel_attn": True, "bias": False,
          "ffn_hidden_size": c["intermediate_size"]}


def _neox(c: dict, k: Keys):
    c |= {"use_parallel_residual": bool(k.get("use_parallel_residual", True)), "attention_bias": True}


def _gpt2(c: dict, k: Keys):
    c |= {"n_embd": c["hidden_size"], "n_layer": c["num_hidden_layers"], "n_head": c["num_attention_heads"], "n_positions": c["max_position_embeddings"],
          "n_inner": c["intermediate_size"]}


def _stablelm(c: dict, k: Keys):
    c |= {"use_parallel_residual": not k.has(r"ffn_norm"), "qk_layernorm": k.has(r"attn_q_norm")}


def _per_layer(k: Keys, key: str, count: int) -> list:
    """A key that gives a number for each layer, as a list."""
    value = k.get(key)
    if isinstance(value, list) and len(value) >= count and all(isinstance(v, int) for v in value):
        return value[:count]
    return [k.whole(key, 0) or 0] * count


def _attended(c: dict, k: Keys) -> list:
    """Which layers have attention: those with KV heads."""
    return [bool(n) for n in _per_layer(k, "attention.head_count_kv", c["num_hidden_layers"])]


def _mamba(c: dict, k: Keys):
    inner, rank = k.need("ssm.inner_size"), k.need("ssm.time_step_rank")
    c |= {"state_size": k.need("ssm.state_size"), "conv_kernel": k.need("ssm.conv_kernel"), "expand": inner // c["hidden_size"], "time_step_rank": rank,
          "use_conv_bias": True, "use_bias": False, "intermediate_size": inner}
    if k.arch == "mamba2":
        c |= {"num_heads": rank, "head_dim": inner // rank, "n_groups": k.whole("ssm.group_count", 1)}


def _mamba_of(c: dict, k: Keys):
    """Mamba-2 parts as Granite 4 and Falcon-H1 name them."""
    inner, heads = k.need("ssm.inner_size"), k.need("ssm.time_step_rank")
    c |= {"mamba_d_ssm": inner, "mamba_n_heads": heads, "mamba_d_head": inner // heads, "mamba_d_state": k.need("ssm.state_size"), "mamba_d_conv": k.need("ssm.conv_kernel"),
          "mamba_n_groups": k.whole("ssm.group_count", 1), "mamba_expand": max(1, inner // c["hidden_size"]), "mamba_conv_bias": True, "mamba_proj_bias": False,
          "mamba_rms_norm": k.has(r"ssm_norm")}


def _granite_hybrid(c: dict, k: Keys):
    _mamba_of(c, k)
    c |= {"layer_types": ["attention" if a else "mamba" for a in _attended(c, k)], "num_local_experts": c.get("num_local_experts", 0),
          "num_experts_per_tok": c.get("num_experts_per_tok", 0), "shared_intermediate_size": k.whole("expert_shared_feed_forward_length") or c["intermediate_size"]}
    c.pop("head_dim", None)


def _nemotron_h(c: dict, k: Keys):
    """One part a layer, told by what the layer has: KV heads, a feed-forward width, or neither (Mamba)."""
    inner, heads, n = k.need("ssm.inner_size"), k.need("ssm.time_step_rank"), c["num_hidden_layers"]
    wide = _per_layer(k, "feed_forward_length", n)
    expert = {int(m[1]) for t in k.header.tensors for m in [re.match(r"blk\.(\d{1,5})\.ffn_(up|down)_exps", t.name)] if m}
    c |= {"hybrid_override_pattern": "".join("*" if a else "E" if i in expert else "-" if wide[i] else "M" for i, a in enumerate(_attended(c, k))),
          "mamba_num_heads": heads, "mamba_head_dim": inner // heads, "ssm_state_size": k.need("ssm.state_size"), "n_groups": k.whole("ssm.group_count", 1),
          "conv_kernel": k.need("ssm.conv_kernel"), "use_conv_bias": True, "use_bias": False, "mlp_bias": False,
          "moe_shared_expert_intermediate_size": k.whole("expert_shared_feed_forward_length", 0), "moe_latent_size": k.whole("moe_latent_size")}


def _short_convolution(c: dict, k: Keys):
    c |= {"layer_types": ["full_attention" if a else "conv" for a in _attended(c, k)], "conv_L_cache": k.need("shortconv.l_cache"), "conv_bias": False,
          "block_auto_adjust_ff_dim": False, "tie_embedding": c["tie_word_embeddings"], "num_dense_layers": k.whole("leading_dense_block_count", 0)}
    c.pop("head_dim", None)


def _llama4(c: dict, k: Keys):
    c |= {"intermediate_size_mlp": c["intermediate_size"], "intermediate_size": c.get("moe_intermediate_size", c["intermediate_size"]),
          "interleave_moe_layer_step": k.whole("interleave_moe_layer_step", 1) or 1, "attention_chunk_size": k.whole("attention.chunk_size", 8192)}


def _cohere(c: dict, k: Keys):
    c["use_qk_norm"] = k.has(r"attn_q_norm")


def _starcoder(c: dict, k: Keys):
    c["use_bias"] = c["attention_bias"]


def _phi3(c: dict, k: Keys):
    c["attention_bias"] = False


SPECIAL = {
    "llama": _llama, "deci": _llama, "qwen2moe": _shared, "qwen3next": _delta, "qwen35": _delta, "qwen35moe": _delta, "phimoe": _experts_as_ff, "minimax-m2": _experts_as_ff,
    "gpt-oss": _experts_as_ff, "olmoe": _experts_as_ff, "deepseek2": _mla, "mistral4": _mla, "glm4moe": _glm_moe, "dots1": _glm_moe, "falcon": _falcon, "gptneox": _neox,
    "llama4": _llama4, "mamba": _mamba, "mamba2": _mamba, "falcon-h1": _mamba_of, "granitehybrid": _granite_hybrid, "nemotron_h": _nemotron_h,
    "nemotron_h_moe": _nemotron_h, "lfm2": _short_convolution, "lfm2moe": _short_convolution, "gpt2": _gpt2, "stablelm": _stablelm, "command-r": _cohere, "cohere2": _cohere, "starcoder2": _starcoder, "phi3": _phi3,
}
