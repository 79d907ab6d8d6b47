"""Read a params.json, the file Meta and Mistral ship beside their own checkpoints, as the config.json it stands for."""

from __future__ import annotations

from ..errors import InputError


def is_params(config: dict) -> bool:
    """True for a params.json: it says `dim` and `n_layers`, and no model_type.

    >>> is_params({"dim": 4096, "n_layers": 32, "n_heads": 32})
    True
    """
    return "model_type" not in config and "dim" in config and "n_layers" in config


def _whole(config: dict, name: str, default=None, low: int = 1) -> int:
    value = config.get(name, default)
    if value is None:
        raise InputError(name, None, "is missing and must be given in a params.json")
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= 100_000_000:
        raise InputError(name, value, f"must be a whole number from {low} to 1e8")
    return value


def to_config(config: dict) -> dict:
    """The config.json that a params.json stands for.

    Meta: feed-forward width = 2/3 x 4 x dim, times ffn_dim_multiplier, rounded up to multiple_of. Mistral: hidden_dim, and
    `moe` for Mixtral. Raises InputError for what it does not hold (a Llama 4 params.json with moe_args).

    >>> to_config({"dim": 8192, "n_layers": 80, "n_heads": 64, "n_kv_heads": 8, "multiple_of": 4096, "ffn_dim_multiplier": 1.3,
    ...            "vocab_size": 128256})["intermediate_size"]
    28672
    """
    if config.get("moe_args") or config.get("vision_chunk_size"):
        raise InputError("moe_args", config.get("moe_args"), "is not read; give the config.json of this model instead")
    dim, heads = _whole(config, "dim"), _whole(config, "n_heads")
    if config.get("kv_lora_rank") or config.get("vision_encoder"):
        raise InputError(
            "kv_lora_rank",
            config.get("kv_lora_rank"),
            "or a vision encoder in a params.json is not read; give the config.json of this model instead",
        )
    # use_scaled_rope: Llama 3.1 and later, trained to 131,072 tokens; the two small ones (Llama 3.2) are tied, which the file does not say.
    scaled = config.get("use_scaled_rope") is True
    out = {
        "hidden_size": dim,
        "num_hidden_layers": _whole(config, "n_layers"),
        "num_attention_heads": heads,
        "num_key_value_heads": _whole(config, "n_kv_heads", heads),
        "tie_word_embeddings": bool(config.get("tied_embeddings", scaled and dim < 4096)),
    }
    context = config.get("max_seq_len") or config.get("max_position_embeddings") or (131_072 if scaled else None)
    if context:
        out["max_position_embeddings"] = _whole({"max_seq_len": context}, "max_seq_len")
    if config.get("vocab_size") == -1:
        raise InputError("vocab_size", -1, "is set by the tokenizer in this file; write it down (32000 for Llama 1 and 2)")
    out["vocab_size"] = _whole(config, "vocab_size")
    if "hidden_dim" in config:
        out |= {
            "model_type": "mistral",
            "intermediate_size": _whole(config, "hidden_dim"),
            "head_dim": _whole(config, "head_dim", dim // heads),
            "sliding_window": config.get("sliding_window"),
        }
        moe = config.get("moe")
        if moe is not None:
            if not isinstance(moe, dict):
                raise InputError("moe", moe, "must be an object")
            out |= {
                "model_type": "mixtral",
                "num_local_experts": _whole(moe, "num_experts"),
                "num_experts_per_tok": _whole(moe, "num_experts_per_tok"),
            }
        return out
    multiple, factor = _whole(config, "multiple_of", 256), config.get("ffn_dim_multiplier")
    ff = int(2 * 4 * dim / 3)
    if factor is not None:
        if isinstance(factor, bool) or not isinstance(factor, (int, float)) or not 0 < factor < 100:
            raise InputError("ffn_dim_multiplier", factor, "must be a number from 0 to 100")
        ff = int(factor * ff)
    return out | {"model_type": "llama", "intermediate_size": multiple * -(-ff // multiple)}
