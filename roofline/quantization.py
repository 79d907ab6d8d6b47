"""Read a checkpoint's own `quantization_config`: which tensor is stored how."""

from __future__ import annotations

from dataclasses import dataclass

from .model import Architecture


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """What a checkpoint's quantization_config says. (First version; the rules follow.)

    name: label; fmt: format of the quantised matrices; activations: the format the checkpoint is
    meant to multiply them with; kv: of its cache if stated, else None; compute: of fmt.
    """

    name: str
    fmt: object
    activations: str = "bf16"
    kv: object = None
    ignored: tuple = ()
    notes: tuple = ()

    @property
    def compute(self) -> str:
        """The arithmetic the quantised matrices need natively."""
        return self.fmt.compute

    def weight_bytes(self, arch: Architecture) -> tuple:
        """Bytes of each entry of arch.tensors [bytes]."""
        from .formats import weight_bytes
        return weight_bytes(arch, self.fmt)


def read_quantization(config: dict) -> Published | None:
    """Read a `quantization_config` (as a dict) into a Published; None for an empty one."""
    if not config:
        return None
    from .formats import parse
    method = str(config.get("quant_method") or config.get("quant_algo") or "").lower()
    fmt = parse({"bitsandbytes": "nf4", "compressed-tensors": "fp8"}.get(method, method) or "bf16", "quant_method")
    return Published(name=method, fmt=fmt, activations=fmt.activations_default)
