"""What a trace is made of: operators, the memory regions they touch, and their totals. No torch here."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

KINDS = ("matmul", "attention", "pointwise", "reduction", "gather", "copy", "create", "view", "other")
_LAYER = re.compile(r"(?<=\.)\d+(?=\.|$)|^\d+(?=\.)")


@dataclass(frozen=True, slots=True)
class Region:
    """Part of a buffer that one operator reads or writes.

    buffer: number of the storage; start: first element; shape: ((elements, stride), ...) of the dimensions that move, longest
    stride first; itemsize [bytes]; size [bytes]: distinct bytes touched; exact: whether `start` and `shape` say which ones
    (a gather reads rows that only its indices know).
    """

    buffer: int
    start: int
    shape: tuple
    itemsize: int
    size: int
    exact: bool = True

    @property
    def stop(self) -> int:
        """One past the last element."""
        return self.start + 1 + sum((n - 1) * stride for n, stride in self.shape)

    def holds(self, other: Region) -> bool:
        """Whether every element of `other` is in this region (False where that cannot be told)."""
        if not (self.exact and other.exact) or self.buffer != other.buffer or other.start < self.start or other.stop > self.stop:
            return False
        if self.shape == other.shape:
            return self.start == other.start
        elements = 1
        for n, _ in self.shape:
            elements *= n
        if elements == self.stop - self.start:
            return True  # one dense range
        if len(self.shape) != len(other.shape):
            return False
        rest = other.start - self.start
        for (n, stride), (m, also) in zip(self.shape, other.shape, strict=True):
            if stride != also or rest // stride + m > n:
                return False
            rest %= stride
        return rest == 0


def region(buffer: int, start: int, sizes, strides, itemsize: int) -> Region:
    """The region of a strided tensor: broadcast dimensions (stride 0) are touched once, dense dimensions are merged.

    >>> region(0, 0, (2, 3, 4), (12, 0, 1), 2)
    Region(buffer=0, start=0, shape=((2, 12), (4, 1)), itemsize=2, size=16, exact=True)
    >>> region(0, 0, (2, 3, 4), (12, 4, 1), 2).shape
    ((24, 1),)
    """
    if any(n == 0 for n in sizes):
        return Region(buffer, start, ((0, 1),), itemsize, 0)
    dims = sorted(((n, s) for n, s in zip(sizes, strides, strict=True) if n > 1 and s != 0), key=lambda d: -d[1])
    merged: list = []
    for n, s in dims:
        if merged and merged[-1][1] == n * s:
            merged[-1] = (merged[-1][0] * n, s)
        else:
            merged.append((n, s))
    count, span = 1, 1
    for n, s in merged:
        count, span = count * n, span + (n - 1) * s
    # Windows that overlap (unfold) touch no more elements than they span.
    return Region(buffer, start, tuple(merged), itemsize, min(count, span) * itemsize)


def union_bytes(regions, capacity: dict) -> int:
    """Distinct bytes that several regions touch [bytes]; capacity: {buffer: bytes} caps what cannot be told apart.

    >>> whole = region(0, 0, (4, 8), (8, 1), 2)
    >>> half = region(0, 4, (4, 4), (8, 1), 2)
    >>> union_bytes([whole, half, half], {0: 64})
    64
    """
    total: dict = {}
    kept: dict = {}
    for r in sorted(set(regions), key=lambda r: -r.size):
        if not any(k.holds(r) for k in kept.get(r.buffer, ())):
            kept.setdefault(r.buffer, []).append(r)
            total[r.buffer] = total.get(r.buffer, 0) + r.size
    return sum(min(size, capacity.get(b, size)) for b, size in total.items())


@dataclass(frozen=True, slots=True, kw_only=True)
class Op:
    """One operator that ran.

    name: "aten.mm.default"; kind: one of KINDS; module: path of the module that called it; parameter: path of the weight it reads, if any.
    flops: matrix products and convolutions, 2 a multiply-add, as FlopCounterMode counts them [FLOP]; torch_flops: what FlopCounterMode
    itself counts (0 for kernels it leaves out); vector_flops: element by element [FLOP]. reads, writes: Regions.
    dtype of its result; inputs, outputs: shapes; seconds [s] where it was timed.
    """

    name: str
    kind: str
    module: str = ""
    parameter: str = ""
    dtype: str = ""
    inputs: tuple = ()
    outputs: tuple = ()
    flops: int = 0
    torch_flops: int = 0
    vector_flops: int = 0
    reads: tuple = ()
    writes: tuple = ()
    in_place: bool = False
    seconds: float | None = None

    @property
    def short(self) -> str:
        """Its name without namespace and overload: "mm"."""
        return self.name.split(".")[1] if self.name.count(".") else self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """What runs as one: an operator, or several that were fused. bytes are those that leave and enter the chip's memory [bytes]."""

    ops: tuple
    read_bytes: int
    write_bytes: int
    parameter_bytes: int

    @property
    def lead(self) -> Op:
        """The operator it is named after: a matrix product, else the reduction, else the first."""
        rank = {"matmul": 0, "attention": 0, "reduction": 1, "gather": 2}
        return min(self.ops, key=lambda op: rank.get(op.kind, 3))

    @property
    def bytes(self) -> int:
        return self.read_bytes + self.write_bytes

    @property
    def flops(self) -> int:
        return sum(op.flops for op in self.ops)

    @property
    def vector_flops(self) -> int:
        return sum(op.vector_flops for op in self.ops)

    @property
    def seconds(self) -> float | None:
        times = [op.seconds for op in self.ops]
        return None if any(t is None for t in times) else sum(times)

    @property
    def name(self) -> str:
        """The lead's name, with "+3" for the three operators fused with it."""
        return self.lead.short + (f" +{len(self.ops) - 1}" if len(self.ops) > 1 else "")


def pattern(path: str) -> str:
    """A module path with its layer numbers taken out, so that identical layers fall together.

    >>> pattern("model.layers.3.self_attn.q_proj")
    'model.layers.*.self_attn.q_proj'
    """
    return _LAYER.sub("*", path)


@dataclass(frozen=True, kw_only=True)
class Trace:
    """The operators of one run, in order.

    phase: "prefill", "decode" or a name given; roles: {buffer: "parameter", "buffer", "input"} of what existed before the run,
    and "derived" for rows picked from a parameter; names: {buffer: parameter path}; capacity: {buffer: bytes}; kept: buffers that outlive the run (results, updated caches).
    facts: what was run (model, batch, device ...), for the reader.
    """

    phase: str = "run"
    ops: tuple = ()
    roles: dict = field(default_factory=dict)
    names: dict = field(default_factory=dict)
    capacity: dict = field(default_factory=dict)
    kept: frozenset = frozenset()
    facts: dict = field(default_factory=dict)

    @property
    def flops(self) -> int:
        """Matrix products and convolutions [FLOP]."""
        return sum(op.flops for op in self.ops)

    @property
    def torch_flops(self) -> int:
        """What torch's FlopCounterMode counts on the same run [FLOP]."""
        return sum(op.torch_flops for op in self.ops)

    @property
    def vector_flops(self) -> int:
        """Element-by-element work: one an element written, one an element reduced [FLOP]."""
        return sum(op.vector_flops for op in self.ops)

    @property
    def seconds(self) -> float | None:
        """Time in operators [s], None if it was not timed."""
        times = [op.seconds for op in self.ops if op.kind != "view"]
        return None if not times or any(t is None for t in times) else sum(times)

    @property
    def extras(self) -> dict:
        """{operator: FLOPs} of what FlopCounterMode leaves out."""
        found: dict = {}
        for op in self.ops:
            if op.flops != op.torch_flops:
                found[op.short] = found.get(op.short, 0) + op.flops - op.torch_flops
        return found

    def kernels(self, fusion: str = "none") -> tuple:
        """What runs as one under a fusion rule: "none", "elementwise" or "attention"; see fusion.py."""
        from .fusion import fuse

        return fuse(self, fusion)

    def to_dict(self, fusion: str = "none") -> dict:
        """Plain data: totals under each fusion rule, and one row for each kind of kernel."""
        from .fusion import FUSIONS

        totals = {}
        for name in FUSIONS:
            kernels = self.kernels(name)
            totals[name] = {
                "kernels": len(kernels),
                "read_bytes": sum(k.read_bytes for k in kernels),
                "write_bytes": sum(k.write_bytes for k in kernels),
                "parameter_bytes": sum(k.parameter_bytes for k in kernels),
            }
        return {
            "phase": self.phase,
            **self.facts,
            "flops": self.flops,
            "torch_flops": self.torch_flops,
            "not_counted_by_torch": self.extras,
            "vector_flops": self.vector_flops,
            "seconds": self.seconds,
            "operators_run": sum(op.kind != "view" for op in self.ops),
            "views": sum(op.kind == "view" for op in self.ops),
            "bytes": totals,
            "fusion": fusion,
            "operators": rows(self.kernels(fusion)),
        }


def rows(kernels) -> list:
    """Kernels that are alike (same operators, module pattern and shapes) as one row with a count; totals over the count."""
    found: dict = {}
    for k in kernels:
        lead = k.lead
        key = (tuple(op.name for op in k.ops), pattern(lead.module), pattern(lead.parameter), lead.inputs, lead.outputs, lead.dtype)
        row = found.get(key)
        if row is None:
            found[key] = row = {
                "name": k.name,
                "operators": sorted({op.short for op in k.ops}),
                "kind": lead.kind,
                "module": pattern(lead.module),
                "parameter": pattern(lead.parameter),
                "dtype": lead.dtype,
                "inputs": [list(s) for s in lead.inputs],
                "outputs": [list(s) for s in lead.outputs],
                "count": 0,
                "flops": 0,
                "vector_flops": 0,
                "read_bytes": 0,
                "write_bytes": 0,
                "parameter_bytes": 0,
                "seconds": 0.0,
            }
        row["count"] += 1
        for name in ("flops", "vector_flops", "read_bytes", "write_bytes", "parameter_bytes"):
            row[name] += getattr(k, name)
        row["seconds"] = None if k.seconds is None or row["seconds"] is None else row["seconds"] + k.seconds
    for row in found.values():
        moved = row["read_bytes"] + row["write_bytes"]
        row["intensity_flops_per_byte"] = (row["flops"] or row["vector_flops"]) / moved if moved else None
        busy = row["seconds"]
        row["flops_per_s"] = (row["flops"] or row["vector_flops"]) / busy if busy else None
        row["bytes_per_s"] = moved / busy if busy else None
    return list(found.values())
