"""llama.cpp's presets: which block type each tensor of a GGUF file takes."""

from __future__ import annotations

from functools import lru_cache

from .blocks import Format, catalogue, matrix_bytes, names as block_names
from .errors import InputError, nearest

_DEFAULT = {
    "q2-k": "q2_k", "q2-k-s": "q2_k", "q3-k-s": "q3_k", "q3-k-m": "q3_k", "q3-k-l": "q3_k", "q4-k-s": "q4_k", "q4-k-m": "q4_k",
    "q5-k-s": "q5_k", "q5-k-m": "q5_k", "q6-k": "q6_k", "iq2-s": "iq2_xs", "iq2-m": "iq2_s", "iq3-xs": "iq3_s", "iq3-m": "iq3_s",
}


def names() -> tuple:
    return tuple(_DEFAULT)


@lru_cache(maxsize=64)
def parse(key: str, field: str, given: str):
    if key not in _DEFAULT:
        raise InputError(field, given, "is not a number format known here" + nearest(given, (*block_names(), *_DEFAULT)))
    base = catalogue()[_DEFAULT[key]]
    return Format(name=key.upper().replace("-", "_"), bits=base.bits, compute="int8", covers="gguf", preset=base.name, source=base.source)


def typical_bits_per_weight(fmt) -> float:
    return matrix_bytes(catalogue()[fmt.preset], 16384, 16384) * 8 / 16384**2


def weight_bytes(arch, fmt) -> tuple:
    base = catalogue()[fmt.preset]
    return tuple(t.parameters * 4 if t.kind == "vector" else matrix_bytes(base, t.rows, t.cols) * t.copies * t.count for t in arch.tensors)
