"""Run something under torch's dispatcher and note every operator: FLOPs, bytes, shapes, module, time."""

from __future__ import annotations

import time
from math import prod

from ..errors import InputError
from .data import Op, Region, Trace, region
from .tables import (
    COPIES,
    CREATES,
    FREE,
    GATHERS,
    MORE_PRODUCTS,
    OVERWRITES,
    REDUCTIONS,
    SCATTERS,
    SEVERAL,
    UNWRITTEN,
    attention_flops,
    part,
    scattered,
)

try:
    import torch
    from torch.overrides import TorchFunctionMode
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils._pytree import tree_flatten
except ImportError:  # the rest of the package works without torch
    torch, TorchDispatchMode, TorchFunctionMode = None, object, object


def require_torch():
    """The torch module, or a refusal that says how to get it."""
    if torch is None:
        raise InputError("torch", "missing", "tracing runs your model under PyTorch; install it with `pip install torch` (2.4 or newer)")
    return torch


class _Modules:
    """Which module is running, by the name its root gives it."""

    def __init__(self, roots: tuple):
        self.names: dict = {}
        self.stack: list = []
        self.parameters: dict = {}  # storage -> (path, role)
        self.hooks: list = []
        for root in roots:
            self.learn(root, "")

    def learn(self, root, prefix: str) -> None:
        for name, module in root.named_modules():
            self.names.setdefault(id(module), (prefix + name).rstrip("."))
        for role, items in (("parameter", root.named_parameters()), ("buffer", root.named_buffers())):
            for name, tensor in items:
                self.parameters.setdefault(tensor.untyped_storage()._cdata, (prefix + name, role))

    def enter(self, module, _inputs) -> None:
        if id(module) not in self.names:
            self.learn(module, type(module).__name__ + ".")
        self.stack.append(self.names[id(module)])

    def leave(self, _module, _inputs, _output) -> None:
        if self.stack:
            self.stack.pop()

    def __enter__(self):
        hooks = torch.nn.modules.module
        self.hooks = [hooks.register_module_forward_pre_hook(self.enter), hooks.register_module_forward_hook(self.leave, always_call=True)]
        return self

    def __exit__(self, *_):
        for hook in self.hooks:
            hook.remove()


class _Functions(TorchFunctionMode):
    """Sees scaled_dot_product_attention before it is taken apart, so that it is one operator on every device."""

    def __init__(self, recorder):
        super().__init__()
        self.recorder = recorder

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func is torch.nn.functional.scaled_dot_product_attention:
            return self.recorder.attention(func, args, kwargs or {})
        return func(*args, **(kwargs or {}))


class Recorder(TorchDispatchMode):
    """Notes every operator that runs while it is active; see `trace` for the whole."""

    supports_higher_order_operators = True

    def __init__(self, modules: _Modules, *, timed: bool = False):
        super().__init__()
        from torch.utils.flop_counter import flop_registry

        self.modules, self.timed, self.registry = modules, timed, flop_registry
        self.ops: list = []
        self.buffers: dict = {}  # storage -> number of its present content's buffer
        self.held: list = []
        self.guessed = 0
        self.roles: dict = {}
        self.names: dict = {}
        self.capacity: dict = {}
        self.touched: set = set()  # buffers from before the run that were written
        self.inside: list | None = None  # FLOPs counted by torch inside an operator that is noted as one

    # ---- buffers ------------------------------------------------------------------------------------------------

    def buffer(self, tensor, fresh: bool = False) -> int:
        """The number of a tensor's storage; a new one for a result, since addresses are used again."""
        storage = tensor.untyped_storage()
        key = storage._cdata
        if fresh or key not in self.buffers:
            number = len(self.capacity)
            self.buffers[key], self.capacity[number] = number, storage.nbytes()
            if storage.device.type == "meta":
                self.held.append(storage)  # takes no memory, and its address cannot be used again unseen (torch.tensor() on meta is not dispatched)
            if not fresh:
                path, role = self.modules.parameters.get(key, ("", "input"))
                self.roles[number] = role
                if path:
                    self.names[number] = path
        return self.buffers[key]

    def region(self, tensor, fresh: bool = False) -> Region:
        return region(self.buffer(tensor, fresh), tensor.storage_offset(), tuple(tensor.shape), tensor.stride(), tensor.element_size())

    # ---- operators ----------------------------------------------------------------------------------------------

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if isinstance(func, torch._ops.OpOverload):
            if func.namespace == "prim" or func._overloadpacket.__name__.startswith(("sym_", "is_contiguous", "is_non_overlapping", "is_strides")):
                return func(*args, **kwargs)
            if func._overloadpacket not in self.registry:  # as FlopCounterMode does, so that both see the same operators
                with self:
                    out = func.decompose(*args, **kwargs)
                    if out is not NotImplemented:
                        return out
        before = self._before(func, args, kwargs) if self.inside is None else None
        out, seconds = self._run(func, args, kwargs)
        packet = getattr(func, "_overloadpacket", func)
        counted = int(self.registry[packet](*args, **kwargs, out_val=out)) if packet in self.registry else 0
        if self.inside is not None:
            self.inside.append(counted)
        else:
            self._note(func, args, kwargs, out, before, counted, seconds)
        return out

    def _run(self, func, args, kwargs):
        if func is torch.ops.aten._local_scalar_dense.default and args[0].is_meta:
            self.guessed += 1  # a tensor without values is asked for one (`if mask.all():`): zero, and the trace says so
            return args[0].dtype.is_floating_point and 0.0 or (False if args[0].dtype == torch.bool else 0), None
        if not self.timed:
            return func(*args, **kwargs), None
        cuda = torch.cuda.is_initialized()
        if cuda:
            torch.cuda.synchronize()
        start = time.perf_counter()
        out = func(*args, **kwargs)
        if cuda:
            torch.cuda.synchronize()
        return out, time.perf_counter() - start

    def attention(self, func, args, kwargs):
        """Run scaled_dot_product_attention and note it as one operator: Q, K, V and the mask in, O out."""
        if self.inside is not None:
            return func(*args, **kwargs)
        named = dict(zip(("query", "key", "value", "attn_mask"), args, strict=False)) | kwargs
        q, k, v, mask = (named.get(n) for n in ("query", "key", "value", "attn_mask"))
        reads = tuple(self.region(t) for t in (q, k, v, mask) if isinstance(t, torch.Tensor))
        self.inside = []
        try:
            out, seconds = self._run(func, args, kwargs)
        finally:
            counted, self.inside = sum(self.inside), None
        pairs = prod(q.shape[:-1]) * k.shape[-2]
        self.ops.append(
            Op(
                name="aten.scaled_dot_product_attention",
                kind="attention",
                module=self._module(),
                dtype=_dtype(out),
                inputs=tuple(tuple(t.shape) for t in (q, k, v)),
                outputs=(tuple(out.shape),),
                flops=attention_flops(q.shape, k.shape, v.shape),
                torch_flops=counted,
                vector_flops=SEVERAL["_softmax"] * pairs,
                reads=reads,
                writes=(self.region(out, fresh=True),),
                seconds=seconds,
            )
        )
        return out

    def _module(self) -> str:
        return self.modules.stack[-1] if self.modules.stack else ""

    def _before(self, func, args, kwargs):
        """(tensors read, tensors written) as regions of the buffers as they are now, before the operator runs."""
        schema = getattr(func, "_schema", None)
        pairs = []  # (tensor, is written)
        if schema is None:
            pairs = [(t, False) for t in tree_flatten((args, kwargs))[0] if isinstance(t, torch.Tensor)]
        else:
            given = list(zip(schema.arguments, args, strict=False)) + [(a, kwargs[a.name]) for a in schema.arguments if a.name in kwargs]
            for argument, value in given:
                write = bool(argument.alias_info and argument.alias_info.is_write)
                pairs += [(t, write, argument.name) for t in (value if isinstance(value, (list, tuple)) else (value,)) if isinstance(t, torch.Tensor)]
        return [(self.region(p[0]), p[0], *p[1:]) for p in pairs]

    def _note(self, func, args, kwargs, out, before, counted, seconds) -> None:
        packet = getattr(func, "_overloadpacket", func)
        short = getattr(packet, "__name__", str(func)).split("::")[-1]
        name = str(func) if isinstance(func, torch._ops.OpOverload) else f"higher_order.{short}"
        results = [t for t in tree_flatten(out)[0] if isinstance(t, torch.Tensor)]
        storages = {self._storage(row[1]) for row in before}
        written = [row for row in before if row[2]]
        shares = [self._storage(t) in storages for t in results]
        shapes = {"inputs": tuple(tuple(row[1].shape) for row in before), "outputs": tuple(tuple(t.shape) for t in results)}
        common = {"name": name, "module": self._module(), "dtype": _dtype(results[0]) if results else "", "seconds": seconds, **shapes}
        if short in FREE or (results and all(shares) and not written):
            self.ops.append(Op(kind="view", **common))
            for t, known in zip(results, shares, strict=True):
                if not known or short == "lift_fresh":  # torch.tensor(...): a new storage that no operator was seen to make
                    self.buffer(t, fresh=True)
            return
        reads, writes = self._traffic(short, args, before, written, results, shares)
        # The weight it works on: the largest, so that a bias beside it does not give the name.
        weights = [r for r in reads if self.roles.get(r.buffer) in ("parameter", "derived")]
        parameter = self.names[max(weights, key=lambda r: r.size).buffer] if weights else ""
        kind = self._kind(func, short, counted)
        if parameter and (kind == "gather" and short != "embedding" or kind == "copy" and len(reads) == 1):
            for w in writes:  # rows picked from a weight, or a converted copy of one: what multiplies with it multiplies with the weight
                self.roles[w.buffer], self.names[w.buffer] = "derived", parameter
        extra = 0
        if not counted and short in MORE_PRODUCTS:
            extra = int(MORE_PRODUCTS[short](shapes["inputs"]))
        elif not counted and short.startswith("_scaled_dot_product"):
            extra = attention_flops(*shapes["inputs"][:3])
        produced = sum(t.numel() for t in results) or sum(row[1].numel() for row in written)
        if kind == "pointwise":
            vector = produced
        elif short in SEVERAL:
            vector = SEVERAL[short] * max((prod(s) for s in shapes["inputs"]), default=0)
        elif kind == "reduction":
            vector = max((prod(s) for s in shapes["inputs"]), default=0)
        else:
            vector = 0
        self.ops.append(
            Op(
                kind=kind,
                parameter=parameter,
                flops=counted + extra,
                torch_flops=counted,
                vector_flops=vector,
                reads=tuple(reads),
                writes=tuple(writes),
                in_place=bool(written),
                **common,
            )
        )

    @staticmethod
    def _storage(tensor) -> int:
        return tensor.untyped_storage()._cdata

    def _kind(self, func, short: str, counted: int) -> str:
        if counted or short in MORE_PRODUCTS or short.startswith("_scaled_dot_product"):
            return "attention" if "attention" in short else "matmul"
        if short in CREATES:
            return "create"
        if short in COPIES:
            return "copy"
        if short in GATHERS:
            return "gather"
        if short in REDUCTIONS or short in SEVERAL and short != "cumsum":
            return "reduction"
        tags = getattr(func, "tags", ())
        if any(str(t).endswith(".pointwise") for t in tags) or short in ("tril", "triu", "bernoulli", "native_dropout"):
            return "pointwise"
        return "other"

    def _traffic(self, short, args, before, written, results, shares):
        """(reads, writes) as regions. Views are read where they point; what is picked by an index is read as much as comes out."""
        produced = sum(t.numel() * t.element_size() for t in results)
        reads, writes = [], []
        if short in SCATTERS and written:
            index, values = SCATTERS[short]
            target = written[0]
            size = scattered(target[1], args, index, values)
            touched = part(target[0], size)
            writes.append(touched)
            if short in ("index_add_", "scatter_add_") or short in ("index_put_", "_index_put_impl_") and len(args) > 3 and args[3]:
                reads.append(touched)
            reads += [row[0] for row in before if not row[2]]
            return reads, writes
        for place, row in enumerate(before):
            r = row[0]
            if row[2]:
                argument = row[3]
                if argument != "out" and not (short in OVERWRITES and place == 0) and not argument.startswith("out"):
                    reads.append(r)
                writes.append(r)
            elif short in GATHERS and place == 0:
                reads.append(part(r, produced))
            elif "grouped_mm" in short and place == 1:
                groups, rows = row[1].shape[0], before[0][1].shape[-2]
                reads.append(part(r, r.size * min(groups, rows) // groups))
            elif short in CREATES:
                continue  # zeros_like looks at the shape only
            else:
                reads.append(r)
        for t, known in zip(results, shares, strict=True):
            if not known:
                r = self.region(t, fresh=True)
                if short not in UNWRITTEN:
                    writes.append(r)
        for w in writes:
            if self.roles.get(w.buffer) in ("parameter", "buffer", "input"):
                self.touched.add(w.buffer)
        return reads, writes


def _dtype(tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def record(run, *, roots=(), phase: str = "run", grad: bool = False, timed: bool = False, facts: dict | None = None):
    """(the Trace of calling `run()`, its result).

    roots: modules whose names the operators get; others are named after their class. grad: keep autograd on (a backward
    pass inside `run` is then traced as well).
    """
    require_torch()
    modules = _Modules(tuple(roots))
    recorder = Recorder(modules, timed=timed)
    with torch.set_grad_enabled(grad), modules, _Functions(recorder), recorder:
        result = run()
    if recorder.guessed:
        facts = {**(facts or {}), "values_taken_as_zero": recorder.guessed}
    kept = {recorder.buffers[t.untyped_storage()._cdata] for t in _tensors(result) if t.untyped_storage()._cdata in recorder.buffers}
    return Trace(
        phase=phase,
        ops=tuple(recorder.ops),
        roles=recorder.roles,
        names=recorder.names,
        capacity=recorder.capacity,
        kept=frozenset(kept | recorder.touched),
        facts=facts or {},
    ), result


def _tensors(value, depth: int = 0) -> list:
    """Every tensor in a result: nested containers, dataclass-like outputs and caches are opened."""
    if isinstance(value, torch.Tensor):
        return [value]
    if depth > 6 or value is None or isinstance(value, (str, int, float, bool, torch.nn.Module)):
        return []
    if isinstance(value, dict):
        items = value.values()
    elif isinstance(value, (list, tuple, set)):
        items = value
    elif hasattr(value, "__dict__"):
        items = vars(value).values()
    else:
        return []
    return [t for item in items for t in _tensors(item, depth + 1)]
