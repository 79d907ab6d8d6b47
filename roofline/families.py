"""Seed (owned by the families work): dense Llama only, to be replaced by every family."""

from __future__ import annotations

from .errors import InputError
from .model import Architecture, Attention, Tensor


def from_hf_config(config: dict, *, id: str = "custom") -> Architecture:
    """Read a Hugging Face config.json (as a dict) into an Architecture."""
    if config.get("model_type") not in ("llama", "mistral"):
        raise InputError("model_type", config.get("model_type"), "is not a known family")
    h, n, heads = config["hidden_size"], config["num_hidden_layers"], config["num_attention_heads"]
    kv = config.get("num_key_value_heads", heads)
    d = config.get("head_dim") or h // heads
    ff, vocab = config["intermediate_size"], config["vocab_size"]
    layers = tuple(range(n))
    t = lambda name, group, rows, cols=1, **more: Tensor(name=name, group=group, rows=rows, cols=cols, layers=layers, **more)
    tensors = (
        Tensor(name="model.embed_tokens", group="embedding", rows=vocab, cols=h, kind="table"),
        t("self_attn.q_proj", "attention_projection", heads * d, h), t("self_attn.k_proj", "attention_projection", kv * d, h),
        t("self_attn.v_proj", "attention_projection", kv * d, h), t("self_attn.o_proj", "attention_projection", h, heads * d),
        t("mlp.gate_proj", "mlp", ff, h), t("mlp.up_proj", "mlp", ff, h), t("mlp.down_proj", "mlp", h, ff),
        t("input_layernorm", "norm", h, kind="vector"), t("post_attention_layernorm", "norm", h, kind="vector"),
        Tensor(name="model.norm", group="norm", rows=h, kind="vector"),
        Tensor(name="lm_head", group="lm_head", rows=vocab, cols=h),
    )
    return Architecture(id=id, family=config["model_type"], hidden=h, layer_count=n, vocab=vocab, heads=heads, tensors=tensors,
        attentions=(Attention(layers=layers, heads=heads, kv_heads=kv, qk_dim=d, v_dim=d, kv_elements=2 * kv * d),))
