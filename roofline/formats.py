"""Number formats: how many bytes a matrix takes, and what arithmetic it needs.

`parse` reads a name; `weight_bytes` says what every tensor of a model takes in a format, scales and
the tensors that keep another type included. The figures are in data/formats.toml, llama.cpp's
presets in presets.py, published `quantization_config`s in quantization.py and published.py.
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
    "int": ("int4", re.compile(r"(?:compressed-tensors-pack-quantized-)?(?:int|uint|w)([2-8])(?:a16)?(?:-?(?:g|gs|group)-?(\d+|none))?((?:-(?:sym|symmetric|asym|zp|zero-points?))?)")),
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
    found = _find(key, field, name)
    if found.covers == "kv" and field != "kv":
        raise InputError(field, name, "is a format of the KV cache only; for weights take fp8")
    if field == "kv" and found.preset and found.block is None:
        raise InputError(field, name, "is a mix for weights; a cache has one type, such as bf16, fp8, q8_0 or q4_0")
    return found


def _find(key: str, field: str, name: str) -> Format:
    if key.startswith("gguf-"):
        return presets.parse(key[5:], field, name)
    if key == "fp4":
        raise InputError(field, name, "is not one format; take nvfp4 (a scale for every 16) or mxfp4 (a scale for every 32)")
    if key in names() and not catalogue()[names()[key]].preset:
        return catalogue()[names()[key]]
    for family, (base, pattern) in _GROUPED.items():
        match = pattern.fullmatch(key)
        if match:
            return _grouped(family, catalogue()[base], match, key)
    return presets.parse(key, field, name)


def _grouped(family: str, base: Format, match: re.Match, key: str) -> Format:
    bits, groups = int(match[1]), match[2] or ("none" if "no-group" in key else "")
    group = 0 if groups == "none" else int(groups or base.scale[1])
    if groups != "none" and not 8 <= group <= 65536:
        raise InputError("group size", group, "must be from 8 to 65536")
    zero = base.zero_bits
    if family in ("gptq", "awq") or re.search("asym|-zp|-zero", key):
        zero = bits
    return replace(base, name=key, bits=bits, scale=(1, group), zero_bits=zero, compute="int8" if bits > 4 else "int4")


def knownnames() -> tuple:
    """Every name `parse` knows literally, for a list in the page or an error."""
    return tuple(sorted({*names(), *presets.names()}))


_LINEAR = ("attention_projection", "mlp", "experts", "shared_experts", "recurrent", "other")
# MLX: families whose router is no Linear there and stays 16-bit; other routers (and shared-expert gates) take 8 bits. By the
# exact bytes of published files (two 6-bit files of Qwen3.5 have 6-bit routers: 0.01 % of their size).
_MLX_PLAIN_ROUTER = ("deepseek", "kimi", "glm", "nemotron", "dots", "bailing", "ernie", "hunyuan", "lfm2")


def stored_as(fmt: Format, tensor: Tensor, arch: Architecture) -> Format | None:
    """The format one tensor is stored in when a model is asked for in `fmt`; None: kept at 16 bits.

    Not for llama.cpp presets, which give the layers of one tensor different types (`presets.types`).
    """
    if fmt.covers == "all":
        return fmt
    projector = fmt.covers == "mlx" and tensor.name.endswith("embedding_projection")  # MLX leaves the towers, not Gemma's projector
    if tensor.kind == "vector" or tensor.cols == 1 or (tensor.group == "vision" and not projector):
        return None
    if fmt.covers == "mlx":
        if tensor.cols % fmt.scale[1]:
            return None
        if tensor.group == "router" or tensor.name.endswith("shared_expert_gate"):
            if arch.family.startswith(_MLX_PLAIN_ROUTER):
                return None
            # Scales and offsets have the type of the weight: 32 bits each where the router is kept in FP32.
            wide = 32 if tensor.own_dtype == "fp32" or arch.family.startswith("minimax") else 16
            return replace(catalogue()["mlx-8bit"], scale_bits=wide, zero_bits=wide)
        return fmt
    if tensor.kind == "table" or tensor.group not in _LINEAR or tensor.own_dtype or tensor.name.endswith("shared_expert_gate"):
        return None
    return fmt if fmt.covers != "experts" or not arch.is_moe or tensor.group == "experts" else None


@lru_cache(maxsize=256)
def weight_bytes(arch: Architecture, fmt) -> tuple:
    """Bytes stored by each entry of `arch.tensors`, over all its layers and copies [bytes].

    Scales, zero points and the tensors that keep another type are included; `fmt` is a Format or a
    `published.Published`. The sum is the size of the checkpoint's tensors; a llama.cpp preset's is that of the language
    model's file (a vision tower is a file of its own and counts 0).
    """
    if not isinstance(fmt, Format):
        return fmt.weight_bytes(arch)
    if fmt.preset:
        return presets.weight_bytes(arch, fmt)
    extra = presets.router_bias_bytes if fmt.covers == "mlx" else lambda arch, t: 0
    return tuple(_tensor_bytes(t, stored_as(fmt, t, arch)) + extra(arch, t) for t in arch.tensors)


def _tensor_bytes(t: Tensor, fmt: Format | None) -> int:
    if t.own_dtype and (fmt is None or fmt.covers == "all"):
        return t.parameters * DTYPE_BYTES[t.own_dtype]
    if fmt is None:
        return t.parameters * BF16_BYTES
    return matrix_bytes(fmt, t.rows, t.cols) * t.copies * t.count


@lru_cache(maxsize=256)
def tensor_formats(arch: Architecture, fmt) -> tuple:
    """The Format most layers of each entry of `arch.tensors` are stored in (bf16 for what is kept), for a roof per operator."""
    plain = catalogue()["bf16"]
    if not isinstance(fmt, Format):
        return tuple(max(fmt.formats(t).items(), key=lambda item: item[1])[0] or plain for t in arch.tensors)
    if not fmt.preset:
        return tuple(stored_as(fmt, t, arch) or plain for t in arch.tensors)
    best = {}
    for index, kind, rows, cols, count in presets.types(arch, fmt):
        best[index] = max(best.get(index, (0, "")), (rows * cols * count, kind))
    return tuple(catalogue()[best[i][1]] if i in best else plain for i in range(len(arch.tensors)))


def kv_bytes_per_element(fmt: Format, head_dim: int) -> float:
    """Bytes of one cached element, scales included [bytes].

    bits / 8, plus scale and zero point over the elements that share them: a block of a ggml type, a group, or the `head_dim`
    elements of one head and token where the scale is per row; a per-tensor scale is nothing per element.

    >>> kv_bytes_per_element(parse("q8_0"), 128), kv_bytes_per_element(parse("fp8"), 128)
    (1.0625, 1.0)
    """
    if fmt.block:
        return fmt.block[1] / fmt.block[0]
    extra = 0.0
    if fmt.scale is not None and fmt.scale[0] == 1:
        across = min(fmt.scale[1] or head_dim, head_dim)
        extra = (fmt.scale_bits + fmt.zero_bits) / 8 / across
    return fmt.bits / 8 + extra


def published_bytes(arch: Architecture) -> tuple:
    """What the checkpoint as published takes, tensor by tensor [bytes]: its own quantization_config, or BF16."""
    return weight_bytes(arch, arch.quantization or parse("bf16"))
