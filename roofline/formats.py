"""Number formats: how many bytes a matrix takes, and what arithmetic it needs.

`parse` reads a name; `weight_bytes` says what every tensor of a model takes in a format, scales and
the tensors that keep another type included. The figures are in data/formats.toml, llama.cpp's
presets in presets.py, published `quantization_config`s in quantization.py.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import lru_cache

from . import presets
from .blocks import BF16_BYTES, DTYPE_BYTES, Format, catalogue, matrix_bytes, names, name_key
from .errors import InputError
from .model import Architecture, Tensor


# Families with a free group size: base format and what the name may look like.
_GROUPED = {
    "int": ("int4", re.compile(r"(?:compressed-tensors-pack-quantized-)?int([2-8])(?:-(?:g|gs|group)-?(\d+|none))?((?:-(?:sym|symmetric|asym|zp))?)")),
    "gptq": ("gptq", re.compile(r"gptq-(?:int)?([2348])(?:-?bit)?(?:-(?:g|gs|group)-?(\d+|none)|-(no)-group)?()")),
    "awq": ("awq", re.compile(r"awq-(?:int)?(4)(?:-?bit)?(?:-(?:g|gs|group)-?(\d+|none))?()")),
    "mlx": ("mlx-4bit", re.compile(r"mlx-(?:affine-)?([234568])-?bit(?:-(?:g|gs|group)-?(\d+))?()")),
}


@lru_cache(maxsize=512)
def parse(name: str, field: str = "weights") -> Format:
    """Read a format's name, any case and punctuation.

    Args: name: "bf16", "fp8", "int4-g128", "awq", "gptq-int4-g32", "mxfp4", "Q4_K_M" ...;
    field: what to call it in an error. Returns a Format. Raises InputError with the nearest name.

    >>> parse("FP8").compute, parse("awq").bits_per_weight
    ('fp8', 4.15625)
    >>> round(parse("Q4_0").bits_per_weight, 2)
    4.5
    """
    if not isinstance(name, str) or len(name) > 120:
        raise InputError(field, name, "must be the name of a number format, such as bf16, fp8, int4-g128 or Q4_K_M")
    key = name_key(name)
    if key.startswith("gguf-"):
        return presets.parse(key[5:], field, name)
    if key in names() and not catalogue()[names()[key]].preset:
        return catalogue()[names()[key]]
    for family, (base, pattern) in _GROUPED.items():
        match = pattern.fullmatch(key)
        if match:
            return _grouped(family, catalogue()[base], match, key)
    return presets.parse(key, field, name)


def _grouped(family: str, base: Format, match: re.Match, key: str) -> Format:
    bits, groups = int(match[1]), match[2] or ("none" if "no-group" in key else "")
    group = 0 if groups == "none" else int(groups or (128 if base.scale[1] == 128 else base.scale[1]))
    if group and not 8 <= group <= 65536:
        raise InputError("group size", group, "must be from 8 to 65536")
    zero = base.zero_bits
    if family in ("gptq", "awq") or "asym" in key or "-zp" in key:
        zero = bits
    return replace(base, name=key, bits=bits, scale=(1, group), zero_bits=zero, compute="int8" if bits > 4 else "int4")


def knownnames() -> tuple:
    """Every name `parse` knows literally, for a list in the page or an error."""
    return tuple(sorted({*names(), *presets.names()}))


_LINEAR = ("attention_projection", "mlp", "experts", "shared_experts", "recurrent", "other")


def takes(fmt: Format, tensor: Tensor, moe: bool) -> bool:
    """True if `tensor` is stored in `fmt` when a model is asked for in `fmt`."""
    if fmt.covers == "all":
        return True
    if tensor.kind == "vector" or tensor.group == "vision" or tensor.own_dtype or "conv" in tensor.name:
        return False
    if fmt.covers == "mlx":
        return True
    if tensor.kind == "table" or tensor.group not in _LINEAR:
        return False
    return fmt.covers != "experts" or not moe or tensor.group == "experts"


@lru_cache(maxsize=256)
def weight_bytes(arch: Architecture, fmt) -> tuple:
    """Bytes stored by each entry of `arch.tensors`, over all its layers and copies [bytes].

    Scales, zero points and the tensors that keep another type are included; `fmt` is a Format or a
    `quantization.Published`. The sum is the size of the checkpoint's tensors.
    """
    if not isinstance(fmt, Format):
        return fmt.weight_bytes(arch)
    if fmt.preset:
            return presets.weight_bytes(arch, fmt)
    moe = arch.is_moe
    return tuple(_tensor_bytes(t, fmt if takes(fmt, t, moe) else None) for t in arch.tensors)


def _tensor_bytes(t: Tensor, fmt: Format | None) -> int:
    if t.own_dtype:
        return t.parameters * DTYPE_BYTES[t.own_dtype]
    if fmt is None:
        return t.parameters * BF16_BYTES
    return matrix_bytes(fmt, t.rows, t.cols) * t.copies * t.count


def kv_bytes_per_element(fmt: Format, head_dim: int) -> float:
    """Bytes of one cached element, scales included [bytes].

    Args: head_dim: elements of one head, which is what shares a scale where scales are per token
    and head. ggml types: block bytes / block elements.

    >>> kv_bytes_per_element(parse("q8_0"), 128), kv_bytes_per_element(parse("fp8"), 128)
    (1.0625, 1.0)
    """
    if fmt.block:
        return fmt.block[1] / fmt.block[0]
    extra = 0.0
    if fmt.scale is not None and fmt.scale[0]:
        across = min(fmt.scale[1] or head_dim, head_dim)
        extra = (fmt.scale_bits + fmt.zero_bits) / 8 / across
    return fmt.bits / 8 + extra


def published_bytes(arch: Architecture) -> tuple:
    """What the checkpoint as published takes, tensor by tensor [bytes]: its own quantization_config, or BF16."""
    return weight_bytes(arch, arch.quantization or parse("bf16"))
