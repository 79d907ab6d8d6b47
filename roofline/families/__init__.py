"""Model families: a config.json becomes an `Architecture`.

A family is a short function that lists the parts its layers have (`parts.py`); `from_hf_config`
finds the one for the config's model_type and refuses what it does not know.
"""

from __future__ import annotations

import re
from functools import lru_cache

from ..errors import InputError, nearest
from ..model import Architecture
from . import (
    deepseek,
    dense,
    encoders,
    hybrid,
    latent,
    layered,
    legacy,
    mamba,
    moe,
    newest,
    others,
    recent,
    remote,
    towers,
    wrappers,
)  # noqa: F401 (they register their families)
from .params import is_params, to_config
from .parts import Build
from .reader import Reader
from .registry import FAMILIES

LARGEST_TOTAL = 1e15  # parameters


_WRAPPERS = (wrappers.__name__, others.__name__, towers.__name__, encoders.__name__)
_OWN_SIZES = ("hidden_size", "num_hidden_layers", "n_embd", "n_layer", "d_model", "n_layers", "num_layers")
_CLASSES = {
    "hunyuandensev1": "hunyuan_v1_dense",
    "hunyuanmoev1": "hunyuan_v1_moe",
    "minimaxm3sparse": "minimax_m3_vl",
    "gptbigcode": "gpt_bigcode",
    "kimik25": "kimi_k25",
    "gpt2lmhead": "gpt2",
    "chatglm": "chatglm",
    "qwenlmhead": "qwen",
}


@lru_cache(maxsize=1)
def _by_class() -> dict:
    """Model classes, without their last word and without case -> model_type."""
    return {re.sub(r"[_-]", "", t).lower(): t for t in reversed(known_types())} | _CLASSES


def _implied(config: dict) -> str | None:
    """The family that `architectures` names, if it is one that is known."""
    names = config.get("architectures")
    if not isinstance(names, list) or not names or not isinstance(names[0], str) or len(names[0]) > 200:
        return None
    stem = re.sub(r"(ForCausalLM|ForConditionalGeneration|ForVision2Seq|LMHeadModel|Model)$", "", names[0])
    return _by_class().get(re.sub(r"[_-]", "", stem).lower())


def published(config: dict, m: Build):
    """The checkpoint's own quantisation, or None."""
    # MLX writes "quantization", early compressed-tensors "compression_config".
    given = next(
        (config[k] for k in ("quantization_config", "compression_config", "quantization") if config.get(k) is not None), None
    )
    if given is None and isinstance(config.get("text_config"), dict):
        given = config["text_config"].get("quantization_config")  # some wrappers keep it with the language model
    if given is None:
        return None
    if not isinstance(given, dict):
        raise InputError("quantization_config", given, "must be an object")
    from ..quantization import read_quantization

    return read_quantization(given, config)


def known_types() -> tuple:
    """Every model_type that can be read, sorted."""
    return tuple(sorted(FAMILIES))


def from_hf_config(
    config: dict, *, id: str = "custom", read_as: str | None = None, name: str = "", source: str = ""
) -> Architecture:
    """Read a config.json (as a dict) into an Architecture.

    config: the parsed file; id: the name the model gets; read_as: a family to read an unknown
    model_type as (the user's own choice, noted in the result). Raises InputError for a family that is
    not known, a size that is missing or out of range, and a combination that cannot be built.

    >>> from_hf_config({"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
    ...                 "intermediate_size": 128, "vocab_size": 100}).layer_count
    2
    """
    if not isinstance(config, dict):
        raise InputError("config", type(config).__name__, "must be a JSON object")
    notes = []
    if is_params(config):
        config = to_config(config)
        notes.append("Read from a params.json.")
    model_type = config.get("model_type")
    implied = _implied(config)
    if model_type is None and implied:
        notes.append(f"The config has no model_type; its architectures say {implied!r}.")
        model_type = implied
    elif implied and implied != model_type and "text_config" in config and not any(k in config for k in _OWN_SIZES):
        notes.append(
            f"model_type says {model_type!r}, but the config is that of the wrapper its architectures name, {implied!r}."
        )
        model_type = implied
    kind = read_as or model_type
    if kind is None:
        raise InputError("model_type", None, "is missing and must name the model's family, as in a Hugging Face config.json")
    if not isinstance(kind, str) or kind not in FAMILIES:
        hint = f"; its architectures name {implied!r}" if implied else nearest(str(kind), FAMILIES)
        raise InputError(
            "model_type", kind, f"is not a known family{hint}; to read it as a family that is known, name that family (read_as)"
        )
    inner = config.get("text_config")
    if (
        read_as
        and isinstance(inner, dict)
        and not any(k in config for k in _OWN_SIZES)
        and FAMILIES[read_as].__module__ not in _WRAPPERS
    ):
        config = inner
        notes.append("Only the language model in text_config was read.")
    m = Build(Reader(config, kind))
    m.notes += notes
    if read_as and read_as != model_type:
        m.notes.append(f"model_type {model_type!r} was read as {read_as!r} because you asked for it; its own parts may differ.")
    FAMILIES[kind](m)
    arch = m.done(id=id, family=kind, name=name, source=source, quantization=published(config, m))
    total = sum(t.parameters for t in arch.tensors)
    if total > LARGEST_TOTAL:
        raise InputError("config", f"{total:.3g} parameters", f"must come to at most {LARGEST_TOTAL:.0e} parameters")
    return arch
