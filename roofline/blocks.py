"""How one matrix is stored: elements, scales, zero points, blocks. The figures are in data/formats.toml."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.resources import files

BF16_BYTES = 2
DTYPE_BYTES = {"fp64": 8, "fp32": 4, "bf16": 2, "fp16": 2, "fp8": 1, "int8": 1, "uint8": 1, "int32": 4, "int64": 8}


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """One way to store numbers.

    bits: of one element, without scales. compute: the arithmetic it would need as it is ("fp32",
    "bf16", "fp16", "fp8", "int8", "fp4", "int4"). activations_default: what engines multiply it
    with. scale: (rows, columns) that share a scale, 0 for the whole dimension, None for no scale;
    flat: elements per scale in storage order; the other fields as in data/formats.toml.
    """

    name: str
    bits: float
    compute: str
    activations_default: str = "bf16"
    covers: str = "all"
    scale: tuple | None = None
    scale_bits: int = 0
    zero_bits: int = 0
    flat: int = 0
    nested: int = 0
    column_bytes: int = 0
    row_bytes: int = 0
    tensor_bytes: int = 0
    block: tuple | None = None
    preset: str = ""
    imatrix: bool = False
    rules: str = ""
    typical_bits: float = 0.0
    source: str = ""
    notes: str = ""

    @property
    def bits_per_weight(self) -> float:
        """Stored bits of one element of a large matrix, scales and zero points included [bit].

        Of a llama.cpp mix: of the whole file, for a Llama-3.1-8B-shaped model.
        """
        if self.typical_bits:
            return self.typical_bits
        bare = replace(self, column_bytes=0, row_bytes=0, tensor_bytes=0)
        return matrix_bytes(bare, 16384, 16384) * 8 / 16384**2

    @property
    def bytes_per_element(self) -> float:
        """bits_per_weight / 8 [bytes]."""
        return self.bits_per_weight / 8


def name_key(name: str) -> str:
    """A format's name in lower case with every run of punctuation as one hyphen.

    >>> name_key("FP8 E4M3 (block 128x128)")
    'fp8-e4m3-block-128x128'
    """
    return re.sub(r"[^a-z0-9.]+", "-", name.lower()).strip("-")


@lru_cache(maxsize=1)
def _table() -> dict:
    return tomllib.loads((files("roofline") / "data" / "formats.toml").read_text("utf-8"))


@lru_cache(maxsize=1)
def catalogue() -> dict:
    """Every named format, by its name in data/formats.toml.

    >>> catalogue()["bf16"].bits
    16
    """
    formats = {}
    for name, row in _table().items():
        block = tuple(row["block"]) if "block" in row else None
        formats[name] = Format(
            name=name, bits=row.get("bits") or block[1] * 8 / block[0], compute=row["compute"],
            activations_default=row.get("activations", "bf16"), covers=row["covers"],
            scale=tuple(row["scale"]) if "scale" in row else None, block=block,
            preset=name if row["covers"] == "gguf" else "", source=row["source"], notes=row.get("notes", ""),
            **{k: row[k] for k in ("scale_bits", "zero_bits", "flat", "nested", "column_bytes", "row_bytes", "tensor_bytes") if k in row})
    return formats


@lru_cache(maxsize=1)
def names() -> dict:
    """Every literal name and alias (in the form of `name_key`) -> the name in data/formats.toml."""
    names = {}
    for name, row in _table().items():
        for alias in (name, *row.get("aliases", ())):
            names.setdefault(name_key(alias), name)
    return names


def matrix_bytes(fmt: Format, rows: int, cols: int) -> int:
    """Bytes of one matrix of rows x cols, with its scales and zero points [bytes].

    ceil(rows x cols x bits / 8) + scales + zero points + per-column, per-row and per-matrix extras;
    ggml: rows x (cols / block elements x block bytes).

    >>> matrix_bytes(catalogue()["awq"], 4096, 4096) * 8 / 4096**2
    4.15625
    """
    if fmt.block:
        elements, size = fmt.block
        return rows * (-(-cols // elements) * size + fmt.row_bytes) + fmt.tensor_bytes
    total = -(-rows * cols * fmt.bits // 8)
    if fmt.flat:
        scales = -(-rows * cols // fmt.flat)
        total += -(-scales * fmt.scale_bits // 8) + (-(-scales // fmt.nested) * 4 if fmt.nested else 0)
    elif fmt.scale is not None:
        down, across = fmt.scale[0] or rows, fmt.scale[1] or cols
        groups = -(-cols // across)
        total += -(-(-(-rows // down)) * groups * fmt.scale_bits // 8) + groups * -(-rows * fmt.zero_bits // 8)
    return int(total + cols * fmt.column_bytes + rows * fmt.row_bytes + fmt.tensor_bytes)
