"""The roofs of this machine, measured: bandwidth at each cache level and in memory, and the best matrix product.

On the CPU through torch where it is installed, else NumPy (whose copies use one core); on a GPU through torch. Every figure is the best
of several runs, since a roof is what can be reached, and all other work on the machine only takes away from it.
"""

from __future__ import annotations

import platform
import time
from pathlib import Path

from .errors import InputError
from .units import format_quantity, parse_quantity

_TORCH_TYPES = {"fp64": "float64", "fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}
_NUMPY_TYPES = {"fp64": "float64", "fp32": "float32"}
LARGEST = 2**28  # bytes of one array, unless the caches are larger still


def measure(device: str = "cpu", *, backend: str = "auto", formats=("fp32", "bf16"), budget_s: float = 0.2) -> dict:
    """Measure the ceilings of this machine.

    device: "cpu" or "cuda". backend: "torch", "numpy" or "auto". formats: of the matrix products. budget_s: time for each single
    measurement [s]. Returns {"device", "backend", "threads", "bandwidth_bytes_per_s", "peak_flops_per_s": {format: FLOP/s},
    "levels": [{"name", "bytes", "bytes_per_s"}], "copies": [...], "products": [...]}, in SI units. A copy counts its reads and its writes.
    """
    runs = _backends(device, backend)
    for name in formats:
        if not any(name in r.types for r in runs):
            raise InputError(
                "format",
                name,
                f"cannot be multiplied by {' or '.join(r.name for r in runs)}; use {', '.join(dict.fromkeys(t for r in runs for t in r.types))}",
            )
    caches, sizes = runs[0].caches, _sizes(runs[0].caches)
    copies = [{key: max(row[key] for row in rows) for key in rows[0]} for rows in ([r.bandwidth(size, budget_s) for r in runs] for size in sizes)]
    products = [
        row
        for r in runs
        for name in formats
        for n in r.product_sizes
        if n <= 1024 or budget_s >= 0.05
        for row in [r.product(n, name, budget_s)]
        if row
    ]
    if not products:
        raise InputError("format", ", ".join(formats), f"cannot be multiplied by {runs[0].name} here; use {', '.join(runs[0].types)}")
    peaks: dict = {}
    for row in products:
        peaks[row["format"]] = max(peaks.get(row["format"], 0.0), row["flops_per_s"])
    levels = _levels(copies, caches)
    return {
        "device": runs[0].device_name,
        "kind": device,
        "backend": " and ".join(r.name for r in runs),
        "threads": runs[0].threads,
        "caches": [{"name": n, "bytes": b} for n, b in caches],
        "bandwidth_bytes_per_s": levels[-1]["bytes_per_s"],
        "peak_flops_per_s": peaks,
        "ridge_flops_per_byte": {k: v / levels[-1]["bytes_per_s"] for k, v in peaks.items()},
        "levels": levels,
        "copies": copies,
        "products": products,
    }


def _backends(device: str, backend: str) -> list:
    """What measures: on the CPU torch and NumPy both, where both are there, and the better figure counts."""
    if device not in ("cpu", "cuda"):
        raise InputError("device", device, "must be cpu or cuda")
    if backend not in ("auto", "torch", "numpy"):
        raise InputError("backend", backend, "must be auto, torch or numpy")
    if device == "cuda" and backend == "numpy":
        raise InputError("backend", "numpy", "cannot reach a GPU; use torch")
    found = []
    for name, make in (("torch", lambda: _Torch(device)), ("numpy", _Numpy)):
        if backend in ("auto", name) and (device == "cpu" or name == "torch"):
            try:
                found.append(make())
            except ImportError:
                if backend == name or device == "cuda":
                    raise InputError("backend", name, f"is not installed; `pip install {name}`") from None
    if not found:
        raise InputError("backend", "auto", "finds neither torch nor NumPy; `pip install numpy` is the smaller")
    return found


def best(run, budget_s: float, sync=lambda: None) -> float:
    """The shortest time of `run()` [s] within a budget, after one run that is not counted; at least three runs."""
    run()
    sync()
    shortest, spent, count = float("inf"), 0.0, 0
    while spent < budget_s or count < 3:
        start = time.perf_counter()
        run()
        sync()
        took = time.perf_counter() - start
        shortest, spent, count = min(shortest, took), spent + took, count + 1
    return shortest


class _Torch:
    """Measurements through torch, on the CPU or one GPU."""

    def __init__(self, device: str):
        import torch

        self.torch, self.device, self.name, self.types = torch, device, f"torch {torch.__version__}", _TORCH_TYPES
        if device == "cuda":
            if not torch.cuda.is_available():
                raise InputError("device", "cuda", "is not there: torch sees no GPU")
            properties = torch.cuda.get_device_properties(0)
            self.device_name, self.threads = properties.name, None
            self.caches = [("L2", int(getattr(properties, "L2_cache_size", 0)))] if getattr(properties, "L2_cache_size", 0) else []
            self.product_sizes, self.sync = (2048, 4096, 8192), torch.cuda.synchronize
        else:
            self.device_name, self.threads, self.caches = cpu_name(), torch.get_num_threads(), cpu_caches()
            self.product_sizes, self.sync = (256, 512, 1024, 2048), lambda: None

    def bandwidth(self, size: int, budget_s: float) -> dict:
        torch = self.torch
        n = size // 4
        a, b = (torch.ones(n, dtype=torch.float32, device=self.device) for _ in range(2))
        inner = max(1, 2**22 // size)  # small arrays are gone through several times, so that the call itself does not count

        def copy():
            for _ in range(inner):
                b.copy_(a)

        def read():
            for _ in range(inner):
                torch.dot(a, b)

        with torch.no_grad():
            return {
                "bytes": 2 * size,
                "copy_bytes_per_s": 2 * size * inner / best(copy, budget_s, self.sync),
                "read_bytes_per_s": 2 * size * inner / best(read, budget_s, self.sync),
            }

    def product(self, n: int, name: str, budget_s: float) -> dict | None:
        torch = self.torch
        if name not in self.types:
            raise InputError("format", name, f"must be one of {', '.join(self.types)}")
        try:
            a, b = (torch.randn(n, n, device=self.device).to(getattr(torch, self.types[name])) for _ in range(2))
            out = torch.empty_like(a)
            with torch.no_grad():
                seconds = best(lambda: torch.mm(a, b, out=out), budget_s, self.sync)
        except RuntimeError:  # a format this device does not multiply
            return None
        return {"format": name, "size": n, "flops_per_s": 2 * n**3 / seconds}


class _Numpy:
    """Measurements through NumPy; its copies run on one core."""

    device = "cpu"

    def __init__(self):
        import numpy

        self.np, self.name, self.types = numpy, f"numpy {numpy.__version__}", _NUMPY_TYPES
        self.device_name, self.threads, self.caches = cpu_name(), None, cpu_caches()
        self.product_sizes = (256, 512, 1024, 2048)

    def bandwidth(self, size: int, budget_s: float) -> dict:
        np = self.np
        a, b = (np.ones(size // 4, dtype=np.float32) for _ in range(2))
        inner = max(1, 2**22 // size)

        def copy():
            for _ in range(inner):
                np.copyto(b, a)

        def read():
            for _ in range(inner):
                np.dot(a, b)

        return {
            "bytes": 2 * size,
            "copy_bytes_per_s": 2 * size * inner / best(copy, budget_s),
            "read_bytes_per_s": 2 * size * inner / best(read, budget_s),
        }

    def product(self, n: int, name: str, budget_s: float) -> dict | None:
        np = self.np
        if name not in self.types:
            return None
        rng = np.random.default_rng(0)
        a, b = (rng.standard_normal((n, n)).astype(self.types[name]) for _ in range(2))
        out = np.empty_like(a)
        return {"format": name, "size": n, "flops_per_s": 2 * n**3 / best(lambda: np.matmul(a, b, out=out), budget_s)}


def cpu_name() -> str:
    """What the operating system calls this processor."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine() or "CPU"


def cpu_caches() -> list:
    """[(name, bytes of all its copies together)] of the data caches, smallest first, as Linux lists them; [] where it does not."""
    found: dict = {}
    for index in sorted(Path("/sys/devices/system/cpu").glob("cpu[0-9]*/cache/index*")):
        try:
            kind, level, shared, size = ((index / name).read_text().strip() for name in ("type", "level", "shared_cpu_list", "size"))
            if kind != "Instruction":
                found.setdefault(f"L{level}", {})[shared] = int(parse_quantity(size.replace("K", "Ki").replace("M", "Mi"), "bytes"))
        except (OSError, ValueError):
            return []
    return sorted((name, sum(copies.values())) for name, copies in found.items())


def _sizes(caches: list) -> list:
    """Array sizes [bytes] to copy: a third of each cache (two arrays and room for the rest), and four times the last for memory."""
    if not caches:
        return [2**14, 2**17, 2**20, 2**23, LARGEST // 2]
    return sorted({max(4096, b // 3) for _, b in caches if b <= LARGEST * 4} | {max(LARGEST // 2, min(4 * caches[-1][1], 2**30))})


def _levels(copies: list, caches: list) -> list:
    """Name each working set by the smallest cache that holds it (by its size where the caches are not known); the last is memory.

    A level that is hardly faster than the one below it is left out: it is the same roof.
    """
    rows = []
    for row in copies:
        name = next((n for n, b in caches if row["bytes"] <= b), f"cache, {format_quantity(row['bytes'], 'B')}")
        rows.append({"name": name, "bytes": row["bytes"], "bytes_per_s": max(row["copy_bytes_per_s"], row["read_bytes_per_s"])})
    rows[-1]["name"] = "memory"
    kept = [rows[-1]]
    for row in reversed(rows[:-1]):
        if row["bytes_per_s"] > 1.3 * kept[0]["bytes_per_s"] and row["name"] != kept[0]["name"]:
            kept.insert(0, row)
    return kept


def text(found: dict) -> str:
    """The ceilings as plain text."""
    lines = [f"{found['device']} through {found['backend']}" + (f", {found['threads']} threads" if found["threads"] else "")]
    for row in found["levels"]:
        lines.append(
            f"  {row['name']:8} {format_quantity(row['bytes_per_s'], 'B/s'):>12}   (best of copy and read, {format_quantity(row['bytes'], 'B')} in use)"
        )
    for name, value in found["peak_flops_per_s"].items():
        lines.append(f"  {name:8} {format_quantity(value, 'FLOP/s'):>12}   ridge {found['ridge_flops_per_byte'][name]:.1f} FLOP/byte")
    first, value = next(iter(found["peak_flops_per_s"].items()))
    lines.append(
        f"as a chip: --hardware custom --peak {value:.4g} --peak-format {first if first != 'fp64' else 'fp32'} --bandwidth {found['bandwidth_bytes_per_s']:.4g}"
    )
    return "\n".join(lines)


def add_commands(command) -> None:
    """Add `roofline ceilings` to the command line."""
    p = command("ceilings", _run, "this machine's own roofs, measured: copy and read bandwidth, best matrix product")
    p.add_argument("--device", default="cpu", help="cpu or cuda")
    p.add_argument("--backend", default="auto", help="torch, numpy or auto")
    p.add_argument("--formats", default="fp32,bf16", help="number formats to multiply in, with commas")
    p.add_argument("--budget", default="0.2", help="seconds for each single measurement")
    p.add_argument("-o", "--out", help="also write the JSON here, for `roofline trace --ceilings` and `roofline points --ceilings`")


def _run(args) -> None:
    import json

    found = measure(
        args.device,
        backend=args.backend,
        formats=tuple(args.formats.lower().split(",")),
        budget_s=parse_quantity(args.budget, "s", field="budget", low=0.001, high=60),
    )
    if args.out:
        Path(args.out).write_text(json.dumps(found, indent=1))
    print(json.dumps(found, indent=1) if args.json else text(found))
