"""What can be traced: a callable, a module, a Hugging Face model built from a config, a function in a user's file."""

from __future__ import annotations

import copy
import importlib.util
import inspect
import sys
from pathlib import Path
from statistics import median

from ..errors import InputError
from .data import Op, Trace
from .recorder import record, require_torch

DEVICES = ("meta", "cpu", "cuda")
_DTYPES = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32", "fp64": "float64"}


def trace(
    fn, *args, roots=None, phase: str = "run", grad: bool = False, repeats: int = 0, best: bool = False, warmup: int = 1, prepare=None, **kwargs
) -> Trace:
    """Trace a call `fn(*args, **kwargs)`: every operator it runs, with FLOPs, bytes, shapes and module path.

    fn: any callable; a torch.nn.Module's parameters and submodules are named. roots: further modules to name.
    phase: the name the trace gets. grad: keep autograd on. repeats: 0 counts only; n > 0 also times, and gives each operator
    the median of n runs [s] (best: the shortest, for a machine that does other work too), after `warmup` runs that are not counted. prepare: called before every run, returns the
    arguments of that run as (args, kwargs), for calls that change what they are given (a growing cache).
    """
    torch = require_torch()
    found = [fn] if isinstance(fn, torch.nn.Module) else [m for m in (getattr(fn, "__self__", None),) if isinstance(m, torch.nn.Module)]
    roots = (*found, *(roots or ()))
    arguments = prepare or (lambda: (args, kwargs))

    def once(timed: bool):
        a, k = arguments()
        return record(lambda: fn(*a, **k), roots=roots, phase=phase, grad=grad, timed=timed)[0]

    if not repeats:
        return once(False)
    for _ in range(warmup):
        once(True)
    return _together([once(True) for _ in range(repeats)], min if best else median)


def _together(runs: list, choose) -> Trace:
    """The last run with each operator's median (or shortest) time; runs that took another path are left out."""
    last = runs[-1]
    names = [op.name for op in last.ops]
    alike = [t for t in runs if [op.name for op in t.ops] == names]
    ops = tuple(_timed(op, choose(t.ops[i].seconds for t in alike)) for i, op in enumerate(last.ops))
    facts = {**last.facts, "timed_runs": len(alike)}
    return Trace(phase=last.phase, ops=ops, roles=last.roles, names=last.names, capacity=last.capacity, kept=last.kept, facts=facts)


def _timed(op: Op, seconds: float) -> Op:
    return Op(**{name: getattr(op, name) for name in Op.__slots__ if name != "seconds"}, seconds=seconds)


# ---- Hugging Face models from a config -----------------------------------------------------------------------------


def require_transformers():
    """The transformers module, or a refusal that says how to get it."""
    require_torch()
    try:
        import transformers
    except ImportError:
        raise InputError(
            "transformers",
            "missing",
            "is needed to build a Hugging Face model; install it with `pip install transformers`, or trace a function of your own (FILE.py:FUNCTION)",
        ) from None
    return transformers


def build_model(config: dict, *, device: str = "meta", dtype: str = "bf16", attention: str = "eager", experts: str = "batched_mm"):
    """A Hugging Face causal language model with the shapes of a config; no weights are fetched, on "meta" none exist.

    config: a config.json as a dict. attention: "eager" or "sdpa"; experts: transformers' experts_implementation.
    Off the meta device the weights are random. Returns the module, in evaluation mode.
    """
    transformers, torch = require_transformers(), require_torch()
    if device not in DEVICES:
        raise InputError("device", device, f"must be one of {', '.join(DEVICES)}")
    if dtype not in _DTYPES:
        raise InputError("dtype", dtype, f"must be one of {', '.join(_DTYPES)}")
    fields = {k: v for k, v in config.items() if k not in ("quantization_config", "auto_map", "torch_dtype", "dtype", "transformers_version")}
    kind = fields.pop("model_type", None)
    try:
        made = transformers.AutoConfig.for_model(kind, **fields)
    except (ValueError, KeyError) as error:
        raise InputError(
            "model_type", kind, f"is not one that transformers {transformers.__version__} can build: {str(error).splitlines()[0][:120]}"
        ) from None
    options = {"dtype": getattr(torch, _DTYPES[dtype]), "attn_implementation": attention}
    kinds = [transformers.AutoModelForCausalLM]
    if hasattr(transformers, "AutoModelForImageTextToText"):
        kinds.append(transformers.AutoModelForImageTextToText)
    auto = next((k for k in kinds if type(made) in k._model_mapping), None)
    if auto is None:
        raise InputError("model_type", kind, "is not a causal language model in transformers")
    init = _no_init(transformers) if device == "meta" else _nothing()
    with torch.device(device), init:
        try:
            model = auto.from_config(made, **options, experts_implementation=experts)
        except (TypeError, ValueError):  # classes and versions without a choice of experts
            model = auto.from_config(made, **options)
    model.tie_weights()
    return model.eval()


def _nothing():
    import contextlib

    return contextlib.nullcontext()


def _no_init(transformers):
    """Weights on the meta device need no initialisation (which takes long for large models)."""
    import contextlib

    @contextlib.contextmanager
    def quiet():
        cls = transformers.PreTrainedModel
        kept = {name: getattr(cls, name) for name in ("init_weights", "initialize_weights", "_initialize_weights") if hasattr(cls, name)}
        for name in kept:
            setattr(cls, name, lambda self, *a, **k: None)
        try:
            yield
        finally:
            for name, value in kept.items():
                setattr(cls, name, value)

    return quiet()


def trace_model(
    model,
    *,
    batch: int = 1,
    prompt: int = 512,
    new: int = 1,
    phases=("prefill", "decode"),
    repeats: int = 0,
    best: bool = False,
    facts: dict | None = None,
) -> dict:
    """Trace a Hugging Face causal language model: {"prefill": Trace, "decode": Trace}.

    model: from `build_model` or of your own, on any device. batch: sequences; prompt: their tokens [tokens]. Prefill computes the
    logits of the last token only, as servers do; decode runs one step of `new` tokens on the cache that prefill left.
    repeats, best: as in `trace`.
    """
    torch = require_torch()
    parameter = next(model.parameters())
    ids = torch.zeros((batch, prompt + new), dtype=torch.long, device=parameter.device)
    if parameter.device.type != "meta":
        ids = torch.randint(0, getattr(model.config.get_text_config(), "vocab_size", 2), ids.shape, device=parameter.device)
    said = {"batch": batch, "prompt": prompt, "device": parameter.device.type, "dtype": str(parameter.dtype).removeprefix("torch."), **(facts or {})}
    first = {"input_ids": ids[:, :prompt], "use_cache": True, "logits_to_keep": 1}
    found = {}

    def named(phase, prepare):
        t = trace(model, phase=phase, repeats=repeats, best=best, prepare=prepare)
        return Trace(phase=phase, ops=t.ops, roles=t.roles, names=t.names, capacity=t.capacity, kept=t.kept, facts={**said, **t.facts})

    if "prefill" in phases:
        found["prefill"] = named("prefill", lambda: ((), dict(first)))
    if "decode" in phases:
        known = inspect.signature(model.forward).parameters
        name = next((n for n in ("cache", "past_key_values", "cache_params") if n in known), "past_key_values")
        cache = record(lambda: model(**first), roots=(model,))[1].get(name)  # under the recorder, which answers what a tensor without values cannot
        more = {"input_ids": ids[:, prompt : prompt + new], "use_cache": True}
        found["decode"] = named("decode", lambda: ((), {**more, name: copy.deepcopy(cache)}))
    return found


# ---- a function in a user's file -----------------------------------------------------------------------------------


def load_function(target: str):
    """The function that "path/to/file.py:name" names. The file is run, as `python file.py` would run it."""
    path, _, name = target.rpartition(":")
    file = Path(path)
    if not path or not file.is_file():
        raise InputError("target", target, "must be FILE.py:FUNCTION with a file that exists, or a model id or config.json")
    spec = importlib.util.spec_from_file_location(f"traced_{file.stem}", file)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    function = getattr(module, name, None)
    if not callable(function):
        known = [n for n, v in vars(module).items() if callable(v) and getattr(v, "__module__", "") == spec.name]
        raise InputError("target", target, f"names no function of that file; it has {', '.join(known[:8]) or 'none'}")
    return function


def trace_function(function, *, grad: bool = False, repeats: int = 0, best: bool = False) -> dict:
    """Trace a function that takes no arguments: {"run": Trace}.

    If it returns a callable, or a dict of callables, those are traced instead, each as a phase of its own: what builds the model and
    its inputs then stays out of the count. A phase may also be (callable, args) or (callable, args, kwargs).
    """
    once, result = record(function, grad=grad)
    phases = (
        result if isinstance(result, dict) and result and all(map(_is_phase, result.values())) else {"run": result} if _is_phase(result) else None
    )
    if phases is None:
        return {"run": once if not repeats else trace(function, grad=grad, repeats=repeats, best=best)}
    found = {}
    for name, phase in phases.items():
        fn, args, kwargs = phase if isinstance(phase, tuple) and len(phase) == 3 else (*phase, {}) if isinstance(phase, tuple) else (phase, (), {})
        found[str(name)] = trace(fn, *args, phase=str(name), grad=grad, repeats=repeats, best=best, **kwargs)
    return found


def _is_phase(value) -> bool:
    return callable(value) or isinstance(value, tuple) and len(value) in (2, 3) and callable(value[0])
