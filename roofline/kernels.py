"""Kernel measurements: data/kernels.csv as operators, so that single products and attentions inform the calibration."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources

from . import hardware
from .operators import Operator, distinct_experts
from .calibration import engine_of
from .rows import Unmapped, chip_of

# dtype of a row -> (arithmetic, bytes of a weight, bytes of an activation)
_FORMATS = {
    "bfloat16": ("bf16", 2.0, 2.0), "bf16": ("bf16", 2.0, 2.0), "fp16": ("bf16", 2.0, 2.0), "half": ("bf16", 2.0, 2.0), "fp8": ("fp8", 1.0, 1.0), "fp8_block": ("fp8", 1.0, 1.0),
    "fp8_static": ("fp8", 1.0, 1.0), "nvfp4": ("fp4", 0.5625, 0.5625), "int8_wo": ("bf16", 1.0, 2.0), "int4_wo": ("bf16", 0.53125, 2.0), "sq": ("int8", 1.0, 1.0),
    "w4a16_mxfp4": ("bf16", 0.53125, 2.0), "w4a8_mxfp4_mxfp8": ("fp8", 0.53125, 1.0),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """One measured kernel: its operator(s), chip, engine and time. unsettled: faster than the bound for a reason not known."""

    id: str
    op: str
    chip: str
    engine: str
    operators: tuple
    measured_s: float
    unsettled: bool = False


def kernel_of(row: dict) -> Kernel:
    """Map one row to its operators; raises Unmapped with the reason."""
    chip, op, dtype = chip_of(row["hardware"].replace("(source: A100)", "").replace("(900W 141GiB)", "")), row["op"], row["dtype"]
    if dtype not in _FORMATS:
        raise Unmapped(f"the format {dtype!r} is not known")
    arithmetic, weight, act = _FORMATS[dtype]
    number = lambda key: float(row[key])
    engine = engine_of(row["framework"]) if row["framework"] else "any"
    if op in ("gemm", "gemm_max_achievable", "mlp_up_proj", "mlp_down_proj"):
        m, n, k = number("m"), number("n"), number("k")
        operators = (Operator(name="product", group="mlp", count=1, roof=arithmetic, flops=2 * m * n * k, weight_bytes=n * k * weight, activation_bytes=m * k * act + m * n * 2, tokens=m, inner=int(k)),)
    elif op == "moe_ffn":
        experts, k, ep = int(number("experts")), int(number("topk")), number("moe_ep")
        hidden, inter, tokens = number("hidden"), number("inter") / number("moe_tp"), number("batch")
        read = distinct_experts(experts, k, tokens) / ep
        fed = tokens * k / ep
        part = lambda rows, cols: Operator(name="mlp.experts.gate_proj" if rows == inter else "mlp.experts.down_proj", group="experts", count=1, roof=arithmetic, flops=2 * fed * rows * cols,
                                           weight_bytes=read * rows * cols * weight, activation_bytes=fed * (cols * act + rows * 2), tokens=max(fed / read, 1e-9), inner=int(cols), reach=max(1.0, read * ep / k))
        operators = (part(inter, hidden), part(inter, hidden), part(hidden, inter))
    elif op in ("context_attention", "generation_attention", "generation_mla"):
        heads, q, kv = number("n_heads"), number("seq_q"), number("seq_kv")
        shared = number("n_kv_heads") if row["n_kv_heads"] else 1.0
        cache = 1.0 if row["kv_dtype"] == "fp8" else 2.0
        size, batch = number("head_dim"), number("batch")
        read = batch * kv * (size if op == "generation_mla" else 2 * shared * size) * cache
        touched = batch * q * heads * size * 2 * 2.0
        operators = (Operator(name="attention", group="attention_core", count=1, roof="bf16", flops=number("flops"), kv_read_bytes=0.0 if op == "context_attention" else read,
                              activation_bytes=touched + (read if op == "context_attention" else 0.0), tokens=q * heads / shared, inner=int(size)),)
    else:
        raise Unmapped(f"{op} rows are not used: the size of their messages is not stated")
    return Kernel(id=row["op_id"], op=op, chip=chip, engine=engine, operators=operators, measured_s=number("time_us") * 1e-6, unsettled=bool(row["flag"]))


@lru_cache(maxsize=1)
def shipped() -> tuple:
    """The kernels that come with the package and can be mapped."""
    text = resources.files("roofline").joinpath("data/kernels.csv").read_text("utf-8")
    found = []
    for row in csv.DictReader(text.splitlines()):
        try:
            found.append(kernel_of(row))
        except Unmapped:
            continue
    return tuple(found)


def limit(kernel: Kernel) -> float:
    """The least time of a kernel: its FLOPs at the peak or its bytes at the bandwidth, whichever is longer [s]."""
    chip = hardware.load(kernel.chip)
    return max(max(sum(op.flops for op in kernel.operators) / chip.roof_of(kernel.operators[0].roof)[1], 0.0),
               sum(op.weight_bytes + op.kv_read_bytes for op in kernel.operators) / chip.bandwidth_bytes_per_s)
