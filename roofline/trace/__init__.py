"""Count, and time, what a real PyTorch program does: FLOPs and bytes of every operator (needs torch, the `trace` extra).

`trace(fn, ...)` for any callable, `trace_model(build_model(config))` for a Hugging Face model that exists only as shapes,
`compare` to set a trace beside the analytic operators of the same config.
"""

from .data import Kernel, Op, Trace, rows
from .fusion import FUSIONS, fuse
from .targets import build_model, load_function, trace, trace_function, trace_model

__all__ = ["FUSIONS", "Kernel", "Op", "Trace", "build_model", "fuse", "load_function", "rows", "trace", "trace_function", "trace_model"]
