"""Read the header of a GGUF file: its metadata and its list of tensors, without the weights.

Layout (little-endian): "GGUF", version u32, tensor count u64, key-value count u64, the key-values, the tensor
infos (name, dimensions, type, offset), then the data, aligned. The header is 1 to 20 MB, most of it the tokenizer,
so the first megabytes of a file are enough. Nothing read here is trusted: every count is checked against the bytes
that are left before anything is built. Source: docs/gguf.md of ggml-org/ggml; type numbers of gguf-py 0.19.
"""

from __future__ import annotations

import struct
from collections import Counter
from dataclasses import dataclass
from math import prod

from .blocks import catalogue
from .errors import InputError

MAGIC = b"GGUF"
MAX_HEADER = 64_000_000  # bytes looked at, however long the file is
MAX_KEYS, MAX_TENSORS, MAX_NAME, MAX_STRING, MAX_ITEMS = 20_000, 200_000, 4096, 4_000_000, 64_000_000
KEPT_ITEMS = 4096  # longer arrays (the tokenizer) are counted, not kept

_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY = 8, 9
# ggml's numbers for block types; a number not here is sized by the tensor that follows it.
TYPES = {
    0: "ggml-f32", 1: "ggml-f16", 2: "q4_0", 3: "q4_1", 6: "q5_0", 7: "q5_1", 8: "q8_0", 9: "q8_1", 10: "q2_k", 11: "q3_k", 12: "q4_k", 13: "q5_k", 14: "q6_k",
    15: "q8_k", 16: "iq2_xxs", 17: "iq2_xs", 18: "iq3_xxs", 19: "iq1_s", 20: "iq4_nl", 21: "iq3_s", 22: "iq2_s", 23: "iq4_xs", 29: "iq1_m", 30: "ggml-bf16",
    34: "tq1_0", 35: "tq2_0", 39: "ggml-mxfp4", 40: "ggml-nvfp4", 41: "q1_0",
}
_PLAIN_BYTES = {24: 1, 25: 2, 26: 4, 27: 8, 28: 8}  # i8, i16, i32, i64, f64


@dataclass(frozen=True, slots=True)
class Length:
    """A long array that was counted, not kept."""

    items: int


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """One tensor of the file. shape: columns (the input) first, as GGUF has it; bytes: stored, without padding."""

    name: str
    kind: str
    shape: tuple
    offset: int
    bytes: int

    @property
    def elements(self) -> int:
        """Elements of the tensor."""
        return prod(self.shape)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Header:
    """What a GGUF header says. complete: all of it was there (a first slice of a file may end inside the tensor list)."""

    version: int
    metadata: dict
    tensors: tuple
    complete: bool
    data_offset: int

    @property
    def elements(self) -> int:
        """Elements of all tensors: what llama.cpp prints as the model's parameters."""
        return sum(t.elements for t in self.tensors)

    @property
    def tensor_bytes(self) -> int:
        """Bytes of all tensors: what llama.cpp prints as the model's size [bytes]."""
        return sum(t.bytes for t in self.tensors)

    @property
    def types(self) -> Counter:
        """How many tensors of each block type, as llama.cpp's loader prints."""
        return Counter(t.kind.removeprefix("ggml-") for t in self.tensors)


class _End(Exception):
    """The bytes given end inside the header."""


class _Cursor:
    """Reads from the bytes given, never past their end."""

    def __init__(self, data):
        self.data, self.at = memoryview(data)[:MAX_HEADER], 0

    def take(self, size: int) -> memoryview:
        if size > len(self.data) - self.at:
            raise _End
        self.at += size
        return self.data[self.at - size:self.at]

    def number(self, code: str):
        return struct.unpack("<" + code, self.take(struct.calcsize("<" + code)))[0]

    def text(self, limit: int, what: str) -> str:
        size = self.number("Q")
        if size > limit:
            raise InputError("gguf", f"a {what} of {size} bytes", f"must be at most {limit} bytes; the file is damaged or no GGUF file")
        return bytes(self.take(size)).decode("utf-8", "replace")

    def value(self, kind: int, nested: bool = False):
        if kind in _SCALARS:
            return self.number(_SCALARS[kind])
        if kind == _STRING:
            return self.text(MAX_STRING, "string")
        if kind == _ARRAY and not nested:
            inner, items = self.number("I"), self.number("Q")
            if inner == _ARRAY:
                raise InputError("gguf", "an array of arrays", "is not something a model's metadata holds; the file is damaged or no GGUF file")
            if items > MAX_ITEMS or inner not in _SCALARS and inner != _STRING:
                raise InputError("gguf", f"an array of {items} items of type {inner}", f"must have at most {MAX_ITEMS} items of a known type")
            if inner in _SCALARS:
                code = _SCALARS[inner]
                raw = self.take(items * struct.calcsize("<" + code))
                return list(struct.unpack(f"<{items}{code}", raw)) if items <= KEPT_ITEMS else Length(items)
            if items <= KEPT_ITEMS:
                return [self.text(MAX_STRING, "string") for _ in range(items)]
            for _ in range(items):  # each item is at least its own length, so this ends with the bytes given
                size = self.number("Q")
                self.take(size)
            return Length(items)
        raise InputError("gguf", f"a value of type {kind}", "is not a type of GGUF; the file is damaged or newer than this reader")


def read_header(data: bytes) -> Header:
    """Read the header in the first bytes of a GGUF file.

    data: the file, or its first megabytes (24 MB hold any header seen). Returns a Header; `complete` is False if the bytes end
    inside it. Raises InputError for what is not a GGUF header.

    >>> read_header(b"GGUF" + (3).to_bytes(4, "little") + bytes(16)).metadata
    {}
    """
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise InputError("gguf", type(data).__name__, "must be the bytes of a .gguf file")
    if len(data) < 24 and bytes(data[:4]) == MAGIC:
        raise InputError("gguf", f"a file of {len(data)} bytes", "ends inside its header; the file is cut short")
    if bytes(data[:4]) != MAGIC:
        begins = bytes(data[:4]).decode("latin-1") if data else "an empty file"
        raise InputError("gguf", begins, "is not the start of a GGUF file (it begins with the letters GGUF)")
    cursor = _Cursor(data)
    cursor.take(4)
    version = cursor.number("I")
    if version not in (2, 3):
        big = int.from_bytes(version.to_bytes(4, "little"), "big") in (2, 3)
        raise InputError("gguf", f"version {version}", "is a big-endian file; convert it to little-endian first" if big else "must be version 2 or 3")
    tensors, keys = cursor.number("Q"), cursor.number("Q")
    if tensors > MAX_TENSORS or keys > MAX_KEYS:
        raise InputError("gguf", f"{tensors} tensors and {keys} keys", f"must have at most {MAX_TENSORS} tensors and {MAX_KEYS} keys")
    metadata, infos, complete = {}, [], True
    try:
        for _ in range(keys):
            key = cursor.text(MAX_NAME, "key")
            if key in metadata:
                raise InputError("gguf", key, "is given twice; the file is damaged")
            metadata[key] = cursor.value(cursor.number("I"))
        for _ in range(tensors):
            name = cursor.text(MAX_NAME, "tensor name")
            dimensions = cursor.number("I")
            if not 0 <= dimensions <= 4:
                raise InputError("gguf", f"{name} with {dimensions} dimensions", "must have at most 4 dimensions")
            shape = tuple(cursor.number("Q") for _ in range(dimensions))
            if any(not 1 <= n < 2**48 for n in shape) or prod(shape) >= 2**56:
                raise InputError("gguf", f"{name} of shape {shape}", "is larger than any tensor there is; the file is damaged")
            infos.append((name, shape, cursor.number("I"), cursor.number("Q")))
    except _End:
        complete = False
    alignment = metadata.get("general.alignment", 32)
    if isinstance(alignment, bool) or not isinstance(alignment, int) or not 1 <= alignment <= 2**20:
        raise InputError("gguf", f"alignment {alignment}", "must be from 1 to 1048576")
    return Header(version=version, metadata=metadata, tensors=_sized(infos), complete=complete, data_offset=-(-cursor.at // alignment) * alignment)


def _sized(infos: list) -> tuple:
    """Tensor infos with their bytes: by block type, or by where the next tensor starts for a type not known here."""
    following = {}
    starts = sorted({offset for *_, offset in infos})
    following = dict(zip(starts, starts[1:]))
    found = []
    for name, shape, kind, offset in infos:
        block = catalogue()[TYPES[kind]].block if kind in TYPES else (1, _PLAIN_BYTES[kind]) if kind in _PLAIN_BYTES else None
        if block and shape and shape[0] % block[0]:
            raise InputError("gguf", f"{name} with rows of {shape[0]}", f"must have rows of a multiple of {block[0]} elements to be {TYPES.get(kind, kind)}")
        size = prod(shape) // block[0] * block[1] if block else max(0, following.get(offset, offset) - offset)
        found.append(TensorInfo(name, TYPES.get(kind, f"type {kind}"), shape, offset, size))
    return tuple(found)
