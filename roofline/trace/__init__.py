"""Count, and time, what a real PyTorch program does: FLOPs and bytes of every operator (needs torch, the `trace` extra).

`trace(fn, ...)` for any callable, `trace_model(build_model(config))` for a Hugging Face model that exists only as shapes,
`compare` to set a trace beside the analytic operators of the same config. torch is imported when one of them is first used.
"""

from importlib import import_module

_HOME = {
    "Kernel": "data",
    "Op": "data",
    "Trace": "data",
    "rows": "data",
    "FUSIONS": "fusion",
    "fuse": "fusion",
    "record": "recorder",
    "build_model": "targets",
    "load_function": "targets",
    "trace": "targets",
    "trace_function": "targets",
    "trace_model": "targets",
    "compare": "comparison",
    "Comparison": "comparison",
}
__all__ = [
    "FUSIONS",
    "Comparison",
    "Kernel",
    "Op",
    "Trace",
    "build_model",
    "compare",
    "fuse",
    "load_function",
    "record",
    "rows",
    "trace",
    "trace_function",
    "trace_model",
]


def __getattr__(name: str):
    """Import what is asked for from its own module, so that the command line starts without torch."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{_HOME[name]}", __name__), name)
    globals()[name] = value
    return value
