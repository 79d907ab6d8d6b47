"""Seed, to be replaced by the families work. The lead's code calls: load, entries, read_config_text, is_path, MAX_CONFIG."""

from __future__ import annotations

import json
import os
from functools import lru_cache

from .errors import InputError

MAX_CONFIG = 1_000_000


def is_path(text: str) -> bool:
    """True if a model argument means a file: it ends in .json or .gguf, or exists on disk."""
    return text.endswith(".json") or os.path.exists(text)


def read_config_text(text: str) -> dict:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        raise InputError("config", text[:20], "is not JSON") from None
    if not isinstance(value, dict):
        raise InputError("config", type(value).__name__, "must be a JSON object")
    return value


_SEED = {
    "llama-3.1-8b": dict(model_type="llama", hidden_size=4096, num_hidden_layers=32, num_attention_heads=32, num_key_value_heads=8, intermediate_size=14336, vocab_size=128256),
    "llama-3.1-70b": dict(model_type="llama", hidden_size=8192, num_hidden_layers=80, num_attention_heads=64, num_key_value_heads=8, intermediate_size=28672, vocab_size=128256),
    "llama-3.1-405b": dict(model_type="llama", hidden_size=16384, num_hidden_layers=126, num_attention_heads=128, num_key_value_heads=8, intermediate_size=53248, vocab_size=128256),
}


def entries():
    return ()


@lru_cache(maxsize=None)
def load(text: str):
    from .families import from_hf_config
    if text not in _SEED:
        raise InputError("model", text, "is not in the catalogue")
    return from_hf_config(_SEED[text], id=text)
