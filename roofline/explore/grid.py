"""One slice of a space as one broadcast: the engine's own formulas, fed arrays of shape (chips, layouts, batches, loads).

Most operators depend on a few of the four axes only, so most of the arithmetic is done on small arrays and only what depends on
all of them is done for every configuration.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from itertools import repeat
from types import SimpleNamespace

import numpy as np

from .. import cost, hardware, memory, parallel, roof, serving
from ..errors import InputError
from ..fabric import fabric_of
from ..parallel import Layout
from ..phase import attention_format, decode_pass, operators_of, prefill_pass, times
from ..roof import Roofs
from ..scenario import Scenario, formats_of, needs_host
from ..service import draft_seconds, drafting_expected, lone_prefill, pool_wire, prefill_share, token_seconds
from .fabrics import Fabrics
from .figures import BOUNDS, Figures, Pool
from .reached import Reached, reached
from .space import Plan, Slice, Space

CHUNK = 1 << 16  # configurations of one broadcast: large enough to hide the cost of a call, small enough for a cache
FAULTS = ("memory", "link", "prefill", "unmeasured")  # why a configuration has no time, by code - 1
_FIELDS = tuple(f.name for f in fields(Scenario))


def _column(values) -> np.ndarray:
    """One value a chip, NaN where it is unknown: shape (chips, 1, 1, 1)."""
    return np.array([np.nan if v is None else v for v in values], dtype=float).reshape(-1, 1, 1, 1)


def _row(values, axis: int) -> np.ndarray:
    """Values along one of the four axes."""
    return np.array(values).reshape([-1 if a == axis else 1 for a in range(4)])


class Columns:
    """Chips that run a model in the same formats, as columns.

    kept: what was made for the same chips before; networks: of each chip [bytes/s].
    """

    def __init__(self, s, formats_: dict, each, prices: tuple, kept: dict | None = None, networks: tuple | None = None):
        self.each, kept = each, {} if kept is None else kept
        r = SimpleNamespace(**formats_)
        compute = (r.compute, r.activations.compute, attention_format(r))
        key = tuple(c.id for c in each)
        if (key, compute) not in kept:
            kept[key, compute] = [roof.roofs_of(c, Layout(), compute, s.network, s.host) for c in each]
        if key not in kept:
            kept[key] = Fabrics(tuple(fabric_of(c, n) for c, n in zip(each, networks or repeat(s.network))))
        roofs, self.fabric = kept[key, compute], kept[key]
        self.peaks = {name: _column(x.peaks[name] for x in roofs) for name in roofs[0].peaks}
        self.bandwidth = _column(c.bandwidth_bytes_per_s for c in each)
        self.host = _column(x.host for x in roofs)
        self.memory_bytes = _column(c.memory_bytes for c in each)
        self.usd_per_hour = _column(
            cost.hourly_price(s, c)[0] if price is None else price for c, price in zip(each, prices, strict=True)
        )
        self.watts = _column(c.tdp_w for c in each) * s.pue

    def unhosted(self, s):
        """Where something is offloaded to a host over a link that nobody publishes."""
        return np.isinf(self.host) & needs_host(s)

    def roofs(self, layout: Layout) -> Roofs:
        return Roofs(
            peaks=self.peaks,
            bandwidth=self.bandwidth,
            link=roof.link_roof(self.fabric, layout),
            host=self.host,
            network=self.fabric.network_bytes_per_s,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Part of a slice, evaluated.

    number: of the slice in its plan; at: the first index on each of the four axes; shape: how many on each; pool: an index of
    `Slice.pools`.
    fault: 0 where a configuration has times, else 1 + an index of FAULTS, of that shape.
    """

    slice: Slice
    number: int
    at: tuple
    shape: tuple
    pool: int
    fault: np.ndarray
    figures: Figures

    @property
    def rows(self) -> int:
        return self.fault.size


def blocks(space: Space, plan: Plan):
    """Evaluate a plan, block by block."""
    for piece in pieces(space, plan):
        yield from _evaluate(piece)


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """What one broadcast covers: part of a slice, as a resolved scenario of arrays. at, shape: as in a Block; chips: its columns."""

    slice: Slice
    number: int
    at: tuple
    shape: tuple
    chips: Columns
    resolved: SimpleNamespace
    reached: Reached | None


def pieces(space: Space, plan: Plan):
    """Cut the slices of a plan into pieces of about CHUNK configurations."""
    kept = {}  # what several slices have in common
    loads = len(space.loads)
    for number, part in enumerate(plan.slices):
        layouts, batches = len(part.layouts), len(space.batches)
        if not layouts:
            continue
        step = max(1, CHUNK // (layouts * batches * loads))
        for c in range(0, len(part.chips), step):
            chips = Columns(part.scenario, part.formats, part.chips[c : c + step], part.prices[c : c + step], kept)
            stride = max(1, CHUNK // (batches * loads * len(chips.each)))
            width = max(1, CHUNK // (loads * len(chips.each)))
            for l in range(0, layouts, stride):
                for b in range(0, batches, width):
                    yield _piece(
                        space, part, number, (c, l, b, 0), chips, part.layouts[l : l + stride], space.batches[b : b + width], kept
                    )


def _piece(
    space: Space, part: Slice, number: int, at: tuple, chips: Columns, layouts: tuple, batches: tuple, kept: dict
) -> Piece:
    s = SimpleNamespace(**{n: getattr(part.scenario, n) for n in _FIELDS})
    s.batch = _row(batches, 2)
    s.prompt, s.output, s.cached = (_row([x[i] for x in space.loads], 3) for i in range(3))
    r = SimpleNamespace(
        scenario=s, arch=part.arch, drafter=part.drafter, layout=_layouts(layouts), fabric=chips.fabric, **part.formats
    )
    return Piece(
        slice=part,
        number=number,
        at=at,
        shape=(len(chips.each), len(layouts), len(batches), len(space.loads)),
        chips=chips,
        resolved=r,
        reached=reached(r, chips.each, layouts, kept) if space.basis == "expected" else None,
    )


def _evaluate(piece: Piece):
    """The blocks of a piece: one without a prefill pool, and one for each pool."""
    r, chips = piece.resolved, piece.chips
    common = {"slice": piece.slice, "number": piece.number, "at": piece.at, "shape": piece.shape}
    with np.errstate(all="ignore"):
        roofs = chips.roofs(r.layout)
        figures, unfit, unlinked = _together(r, chips, roofs, piece.reached)
        fault = np.zeros(piece.shape, dtype=np.int8)
        if piece.reached:
            np.copyto(fault, 4, where=np.isnan(figures.tpot_s))
        np.copyto(fault, 1, where=unfit)
        np.copyto(fault, 2, where=unlinked)
        yield Block(**common, pool=0, fault=fault, figures=figures)
        for index, pool in enumerate(piece.slice.pools[1:], 1):
            apart = _apart(r, chips, figures, *pool)
            if apart is not None:
                figures_, wrong = apart
                own = fault.copy()
                np.copyto(own, 3, where=wrong & (own == 0))
                yield Block(**common, pool=index, fault=own, figures=figures_)


def _layouts(each) -> Layout:
    """Layouts as one, along the second axis."""
    return Layout(**{n: _row([getattr(x, n) for x in each], 1) for n in ("tp", "pp", "ep", "dp")})


def evaluate_variants(r, chips: list, fields: dict, prices: list, powers: list, e=None) -> tuple:
    """(figures, where memory is too small) of one resolved scenario in many variants, along the first axis.

    chips: of each variant; fields: {Scenario field: its values}; prices, powers: what to multiply the price and the power of a chip
    by; e: the Efficiency to expect of all of them, or None for the limits.
    """
    s = SimpleNamespace(**{n: getattr(r.scenario, n) for n in _FIELDS})
    for name in ("batch", "prompt", "output", "cached", "acceptance", "routing"):
        setattr(s, name, _row(fields[name], 0))
    formats_ = {n: getattr(r, n) for n in ("weights", "activations", "kv", "compute", "lacks")}
    columns = Columns(r.scenario, formats_, chips, (None,) * len(chips), networks=tuple(fields["network"]))
    columns.usd_per_hour, columns.watts = columns.usd_per_hour * _column(prices), columns.watts * _column(powers)
    layout = _layouts([r.layout])
    many = SimpleNamespace(scenario=s, arch=r.arch, drafter=r.drafter, layout=layout, fabric=columns.fabric, **formats_)
    with np.errstate(all="ignore"):
        figures, unfit, _ = _together(many, columns, columns.roofs(layout), e)
    return figures, np.broadcast_to(unfit, (len(chips), 1, 1, 1)).reshape(-1)


def prefill_alone(r, roofs: Roofs, e=None):
    """Prefill of one prompt that arrives by itself [s], at the limit or as expected with the efficiencies e."""
    return times(r, replace(prefill_pass(r.scenario, r.layout), sequences=1.0), roofs, e, r.layout.pp)[1 if e is None else 2]


def _together(r, chips: Columns, roofs: Roofs, e=None) -> tuple:
    """(figures, where memory is too small, where no link is known) of configurations that prefill and decode on the same chips.

    e: a Reached or an Efficiency for expected times, None for the limits.
    """
    s, layout = r.scenario, r.layout
    stored, each, working, other = memory.demand(
        r.arch,
        r.weights,
        r.kv,
        batch=s.batch,
        prompt=s.prompt,
        output=s.output,
        layout=layout,
        overhead=s.overhead,
        block=s.block,
        offload=s.offload,
        offload_kv=s.offload_kv,
        draft=memory.draft_of(r.arch, r.weights, s.draft, r.drafter),
    )
    total = stored + each * s.batch + working + other
    available = chips.memory_bytes * (layout.tp * layout.pp) * s.utilisation
    ttft = times(r, prefill_pass(s, layout), roofs, e, layout.pp)[1 if e is None else 2]
    alone = prefill_alone(r, roofs, e)
    parts, step, expected = times(r, decode_pass(s, layout, s.draft + 1), roofs, e)
    tpot = step if expected is None else expected
    if s.draft:
        plain = roof.longest(roof.limit_parts(operators_of(r, decode_pass(s, layout)), roofs, layout))
        one = decode_pass(s, layout)
        drafting = draft_seconds(r, one, roofs, plain)
        if expected is not None:
            drafting = drafting_expected(r, one, roofs, e, drafting, expected / step)
        tpot = token_seconds(tpot, drafting * s.draft, serving.accepted_tokens(s.acceptance, s.draft))
    net = np.maximum(parts[2], parts[3])
    linked = np.where(parts[3] > parts[2], BOUNDS.index("host"), BOUNDS.index("network"))
    bound = np.where((net > parts[0]) & (net > parts[1]), linked, np.where(parts[0] > parts[1], 0, 1)).astype(np.int8)
    figures = Figures(
        ttft_s=ttft,
        ttft_alone_s=alone,
        tpot_s=tpot,
        prefill_s=ttft,
        batch=s.batch,
        fresh=s.prompt - s.cached,
        output=s.output,
        dp=layout.dp,
        devices=layout.devices,
        chip_usd_per_hour=chips.usd_per_hour,
        chip_watts=chips.watts,
        total_bytes=total,
        available_bytes=available,
        bound=bound,
    )
    return figures, total > available, np.isnan(roofs.link) | chips.unhosted(s)


def _apart(r, chips: Columns, figures: Figures, chip_id: str, devices: int):
    """(figures, where the prefill pool cannot be) with prefill on `devices` chips of their own, or None where none of it can be."""
    s = SimpleNamespace(
        **{**vars(r.scenario), "usd_per_hour": None, "purchase_usd": None}
    )  # a price that was given is that of the decode chips
    try:
        parallel.check(Layout(tp=devices), r.arch)
        others = [
            hardware.load(c.id if chip_id == "same" else chip_id) for c in (chips.each if chip_id == "same" else chips.each[:1])
        ]
        formats_ = formats_of(s, r.arch, others[0])
        if formats_["lacks"]:
            return None
        pool = Columns(s, formats_, others, (None,) * len(others))
        roofs = pool.roofs(Layout(tp=_row([devices], 1)))
    except InputError:
        return None
    q = SimpleNamespace(scenario=s, arch=r.arch, layout=Layout(tp=_row([devices], 1)), fabric=pool.fabric, **formats_)
    prefill_s = lone_prefill(q, s, roofs)
    stored, each, working, _ = memory.demand(q.arch, q.weights, q.kv, batch=1, prompt=s.prompt, output=1, layout=q.layout)
    pairs = tuple(zip(others * (len(chips.each) if len(others) == 1 else 1), chips.each, strict=True))
    wire = _column([pool_wire(other, chip, s.network) for other, chip in pairs])
    transfer_s = serving.link_time(memory.kv_bytes(r.arch, r.kv, s.prompt), wire * np.minimum(devices, r.layout.tp))
    own = _column([other.id == chip.id for other, chip in pairs]) > 0
    apart = Pool(devices=devices, usd_per_hour=np.where(own, chips.usd_per_hour, pool.usd_per_hour) * devices, watts=pool.watts * devices, prefill_s=prefill_share(q, s, roofs))
    wrong = (stored + each + working > pool.memory_bytes * devices * s.utilisation) | np.isnan(roofs.link) | pool.unhosted(s)
    return replace(figures, ttft_s=prefill_s + transfer_s, ttft_alone_s=prefill_s + transfer_s, pool=apart), wrong
