"""What each operator of torch does to memory, and how many FLOPs it is; only what its schema does not say. No torch here."""

from __future__ import annotations

from math import prod

from .data import Region

# Written without looking at what was there before.
OVERWRITES = {"copy_", "fill_", "zero_", "normal_", "uniform_", "random_", "bernoulli_", "exponential_", "log_normal_", "cauchy_", "geometric_"}
UNWRITTEN = {"empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "empty_permuted"}
CREATES = UNWRITTEN | {
    "zeros",
    "ones",
    "full",
    "arange",
    "scalar_tensor",
    "zeros_like",
    "ones_like",
    "full_like",
    "new_zeros",
    "new_ones",
    "new_full",
    "eye",
    "linspace",
    "randn",
    "rand",
    "randint",
    "rand_like",
    "randn_like",
    "tril_indices",
    "triu_indices",
}
COPIES = {"clone", "_to_copy", "copy_", "cat", "stack", "constant_pad_nd", "repeat", "roll", "flip", "copy"}
FREE = {
    "lift_fresh",
    "_local_scalar_dense",
    "device",
    "detach_",
    "set_",
    "resize_",
    "is_same_size",
    "record_stream",
    "_assert_async",
    "_assert_tensor_metadata",
}
# Rows of the first tensor are picked by an index: what is read of it is what comes out.
GATHERS = {"embedding", "index", "index_select", "gather", "take", "_unsafe_index"}
# {operator: (position of the index, of the values)} where only part of the first tensor is written; the rest is untouched.
SCATTERS = {
    "index_put_": (1, 2),
    "_index_put_impl_": (1, 2),
    "index_copy_": (2, 3),
    "index_add_": (2, 3),
    "scatter_": (2, 3),
    "scatter_add_": (2, 3),
    "index_fill_": (2, None),
}
REDUCTIONS = {
    "sum",
    "mean",
    "amax",
    "amin",
    "max",
    "min",
    "prod",
    "var",
    "var_mean",
    "std",
    "std_mean",
    "any",
    "all",
    "argmax",
    "argmin",
    "logsumexp",
    "linalg_vector_norm",
    "norm",
}
# Several passes over the same element in one operator [FLOP/element]: subtract, exponentiate, sum, divide; or mean, square, scale, shift.
SEVERAL = {
    "_softmax": 4,
    "_safe_softmax": 4,
    "_log_softmax": 4,
    "native_layer_norm": 5,
    "native_group_norm": 5,
    "_fused_rms_norm": 4,
    "native_batch_norm": 5,
    "cumsum": 1,
}


def _product(a, b):
    return 2 * prod(a) * b[-1] if len(b) > 1 else 2 * prod(a)


# Matrix products that FlopCounterMode leaves out, by the shapes of their tensors [FLOP].
MORE_PRODUCTS = {
    "mv": lambda s: 2 * prod(s[0]),
    "addmv": lambda s: 2 * prod(s[1]),
    "dot": lambda s: 2 * prod(s[0]),
    "vdot": lambda s: 2 * prod(s[0]),
    "addr": lambda s: 2 * prod(s[0]),
    "_grouped_mm": lambda s: 2 * s[0][-2] * s[0][-1] * s[1][-1],
    "_int_mm": lambda s: _product(*s[:2]),
    "addbmm": lambda s: _product(*s[1:3]),
    "linear": lambda s: 2 * prod(s[0]) * s[1][0],
    "_scaled_grouped_mm": lambda s: 2 * s[0][-2] * s[0][-1] * s[1][-1],
    "grouped_mm_fallback": lambda s: 2 * s[0][-2] * s[0][-1] * s[1][-1],
}


def attention_flops(q, k, v) -> int:
    """Both products of one attention, every key for every query [FLOP]; q, k, v: shapes ending in (tokens, head size)."""
    heads = prod(q[:-2])
    return 2 * heads * q[-2] * k[-2] * (q[-1] + v[-1])


def part(r: Region, size: int) -> Region:
    """`size` bytes of a region, which ones only the index knows."""
    return r if size >= r.size else Region(r.buffer, r.start, r.shape, r.itemsize, int(size), False)


def _broadcast(shapes: list) -> list:
    """The shape that several index tensors have together.

    >>> _broadcast([(5, 1), (3,)])
    [5, 3]
    """
    longest = max(map(len, shapes))
    return [max((s[i - longest + len(s)] for s in shapes if i >= longest - len(s)), default=1) for i in range(longest)]


def scattered(target, args, index: int, values: int | None) -> int:
    """Bytes of `target` that a scatter writes."""
    place = args[index]
    if isinstance(place, (list, tuple)):  # index_put_: one tensor for each leading dimension, None for a whole one
        picked = [t for t in place if t is not None]
        shape = _broadcast([t.shape for t in picked]) if all(str(t.dtype) != "torch.bool" for t in picked) else picked[0].shape
        rest = [n for i, n in enumerate(target.shape) if i >= len(place) or place[i] is None]
        return min(prod(shape) * prod(rest), target.numel()) * target.element_size()
    if isinstance(values, int) and len(args) > values and hasattr(args[values], "numel") and args[values].dim() == target.dim():
        return min(args[values].numel(), target.numel()) * target.element_size()
    if hasattr(place, "numel"):
        dim = args[1] if isinstance(args[1], int) else 0
        return (
            min(target.numel(), target.numel() // max(1, target.shape[dim]) * place.numel() if place.dim() == 1 else place.numel())
            * target.element_size()
        )
    return target.numel() * target.element_size()
