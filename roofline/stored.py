"""The weights of one GGUF file: the exact bytes of each group of its tensors, for `formats.weight_bytes`."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from .blocks import Format, catalogue
from .errors import InputError
from .model import Architecture, Tensor

GROUPS = ("embedding", "lm_head", "attention_projection", "mlp", "experts", "shared_experts", "router", "recurrent", "norm", "other")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StoredFile:
    """The weights of one GGUF file, for `formats.weight_bytes`: the exact bytes of each group of tensors.

    name: its preset, as general.file_type says; groups: bytes by parameter group; kinds: the block type most of each
    group is in; activations, compute: llama.cpp widens its weights, so 16-bit.
    """

    name: str
    groups: dict
    kinds: dict
    activations: str = "bf16"
    compute: str = "bf16"
    method: str = "gguf"
    kv: None = None
    notes: tuple = ()

    @property
    def fmt(self) -> Format:
        """The block type most bytes are in."""
        return catalogue().get(self.kinds.get(max(self.groups, key=self.groups.get), ""), catalogue()["ggml-f16"])

    @property
    def gguf_experts(self) -> str:
        """The experts' block type."""
        return self.kinds.get("experts", "")

    def formats(self, t: Tensor) -> Counter:
        """The Format of a tensor's group, for all its layers."""
        return Counter({catalogue().get(self.kinds.get(t.group, ""), None): t.count})

    def weight_bytes(self, arch: Architecture) -> tuple:
        """Bytes of each entry of arch.tensors: its group's bytes in the file, shared by elements; their sum is the file's [bytes]."""
        members = {}
        for i, t in enumerate(arch.tensors):
            members.setdefault(t.group, []).append(i)
        sizes = [0] * len(arch.tensors)
        loose = sum(size for group, size in self.groups.items() if group not in members)
        for group, indices in members.items():
            _share(sizes, indices, [arch.tensors[i].parameters for i in indices], self.groups.get(group, 0))
        everything = [i for i, t in enumerate(arch.tensors) if t.group != "vision"]
        _share(sizes, everything, [arch.tensors[i].parameters for i in everything], loose)
        return tuple(sizes)


def _share(sizes: list, indices: list, weights: list, amount: int):
    """Add `amount` to sizes[indices] in proportion to weights, in whole bytes that add up."""
    total, done, seen = sum(weights) or 1, 0, 0
    for i, weight in zip(indices, weights):
        seen += weight
        part = amount * seen // total - done
        sizes[i] += part
        done += part


def read_stored(config: dict) -> StoredFile:
    """Read the quantization_config that `gguf_config.to_config` writes: {"quant_method": "gguf", "preset", "bytes": {group: n}, "types": {group: type}}."""
    sizes, kinds = config.get("bytes"), config.get("types")
    if not isinstance(sizes, dict) or not sizes or not set(sizes) <= set(GROUPS):
        raise InputError("quantization_config.bytes", sizes, f"must give the bytes of the file's tensors by group: {', '.join(GROUPS)}")
    for group, size in sizes.items():
        if isinstance(size, bool) or not isinstance(size, int) or not 0 <= size < 2**60:
            raise InputError(f"quantization_config.bytes.{group}", size, "must be a whole number of bytes")
    if not sum(sizes.values()):
        raise InputError("quantization_config.bytes", 0, "must be more than nothing")
    if not isinstance(kinds, dict) or not all(isinstance(k, str) and k in GROUPS and isinstance(v, str) for k, v in kinds.items()):
        raise InputError("quantization_config.types", kinds, "must name a block type for each group")
    return StoredFile(name=str(config.get("preset") or "GGUF")[:60], groups=dict(sizes), kinds=dict(kinds))
