"""Read a params.json (Meta's Llama and Mistral's own checkpoints) as the config.json it stands for.

Meta gives the feed-forward width by a rule: 2/3 of 4 x dim, times ffn_dim_multiplier, rounded up to multiple_of (llama-models,
model.py); Mistral writes it down as hidden_dim.
"""

from __future__ import annotations

from .errors import InputError


def is_params(config: dict) -> bool:
    """True for the keys of a params.json rather than those of a config.json."""
    return isinstance(config, dict) and "model_type" not in config and "dim" in config and "n_layers" in config


def _whole(params: dict, key: str, default=None, low: int = 1, high: int = 10_000_000):
    value = params.get(key, default)
    if isinstance(value, float) and value == value and abs(value) < 1e15 and value == int(value):
        value = int(value)
    if value is None or isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise InputError(key, "is missing" if value is None else value, f"must be a whole number from {low} to {high} in a params.json")
    return value


def feed_forward(dim: int, multiple_of: int, multiplier: float | None = None) -> int:
    """Meta's feed-forward width: floor(8 dim / 3), times the multiplier, rounded up [features].

    >>> feed_forward(4096, 1024, 1.3), feed_forward(4096, 256)
    (14336, 11008)
    """
    hidden = int(2 * 4 * dim / 3)
    if multiplier is not None:
        hidden = int(multiplier * hidden)
    return multiple_of * -(-hidden // multiple_of)


def to_config(params: dict) -> dict:
    """The config.json that a params.json stands for.

    Returns a dict for `families.from_hf_config`. Raises InputError for what is missing or out of range, and for Mistral's models
    with latent attention or a vision tower, whose params.json says too little.
    """
    for key in ("kv_lora_rank", "vision_encoder", "quantization", "attention_type"):
        if params.get(key):
            raise InputError(key, "in a params.json", "is not read from there; the model's config.json can be read instead")
    dim, layers, heads = _whole(params, "dim"), _whole(params, "n_layers", high=10_000), _whole(params, "n_heads", high=100_000)
    vocab = _whole(params, "vocab_size", high=100_000_000)
    if params.get("hidden_dim") is not None:
        ff, mistral = _whole(params, "hidden_dim"), True
    else:
        multiplier = params.get("ffn_dim_multiplier")
        if multiplier is not None and (isinstance(multiplier, bool) or not isinstance(multiplier, (int, float)) or not 0.01 <= multiplier <= 100):
            raise InputError("ffn_dim_multiplier", multiplier, "must be a number from 0.01 to 100")
        ff, mistral = feed_forward(dim, _whole(params, "multiple_of", 256, high=1_000_000), multiplier), False
    scaled = params.get("use_scaled_rope") is True
    config = {
        "model_type": "mistral" if mistral else "llama", "hidden_size": dim, "num_hidden_layers": layers, "num_attention_heads": heads,
        "num_key_value_heads": _whole(params, "n_kv_heads", heads, high=100_000), "intermediate_size": ff, "vocab_size": vocab,
        # Meta's two smallest Llama 3.2 models are the only tied ones; their file does not say so.
        "tie_word_embeddings": bool(params.get("tied_embeddings", scaled and not mistral and dim < 4096)),
    }
    if params.get("head_dim") is not None:
        config["head_dim"] = _whole(params, "head_dim", high=100_000)
    context = params.get("max_seq_len") or params.get("max_position_embeddings") or params.get("model_max_length") or (131072 if scaled else None)
    if context is not None:
        config["max_position_embeddings"] = _whole({"max_seq_len": context}, "max_seq_len", high=1_000_000_000)
    if mistral:
        config["sliding_window"] = params.get("sliding_window")
    experts = params.get("moe")
    if experts is not None:
        if not isinstance(experts, dict):
            raise InputError("moe", experts, "must be an object with num_experts and num_experts_per_tok")
        config |= {"model_type": "mixtral", "num_local_experts": _whole(experts, "num_experts", high=100_000),
                   "num_experts_per_tok": _whole(experts, "num_experts_per_tok", high=100_000)}
    return config
