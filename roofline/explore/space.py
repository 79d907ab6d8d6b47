"""What is explored: a `Space` of names and ranges, checked before any number is computed, and its cut into slices that run alike."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from functools import lru_cache
from itertools import product
from types import SimpleNamespace

from .. import catalogue, hardware, parallel
from ..errors import InputError, nearest
from ..hardware import Accelerator
from ..model import Architecture
from ..scenario import Scenario, architecture_of, chip_of, formats_of
from ..units import parse_quantity

BATCHES = (1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024)
MAX_ROWS = 200_000_000  # configurations of one space
MAX_DEVICES = 64  # numbers of chips; each is factored into layouts
MAX_LOADS = 256  # loads; each has an answer of its own
MAX_SLICES = 20_000  # sets of models, formats and levers
MAX_VALUES = 4096  # values of one axis
# Scenario fields that a lever may change; the rest are axes of their own, or would make the price or the load another question's.
LEVERS = (
    "weights",
    "activations",
    "kv",
    "draft",
    "acceptance",
    "draft_model",
    "offload",
    "offload_kv",
    "fused",
    "block",
    "overhead",
    "utilisation",
    "routing",
    "imbalance",
    "sequence_parallel",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """Every configuration to try: the product of its axes, less what cannot be.

    base: a Scenario whose fields hold wherever no axis says otherwise, for every chip (its own layout, prefill pool and rate do
    not). models: catalogue ids, () for the base's.
    chips: ids, () for the whole catalogue; vendors, kinds: only these, () for all. devices: chips of one deployment.
    pipeline: try pipeline stages too; replicas: try copies that share nothing (the same per chip and per user, so off).
    weights, activations, kv: format names; batches: requests in flight in one replica; loads: (prompt, output, cached) [tokens].
    drafts: tokens drafted per step. levers: further changes, each a tuple of (Scenario field, value), tried one at a time.
    prefill: separate prefill pools to try beside none: (chip id or "same", chips). prices: (chip id, USD/h) over the catalogue's.
    basis: "limit" (what physics allows) or "expected" (what measurements say; chips that none speaks for are left out).
    """

    base: Scenario = field(default_factory=Scenario)
    models: tuple = ()
    chips: tuple = ()
    vendors: tuple = ()
    kinds: tuple = ()
    devices: tuple = (1, 2, 4, 8)
    pipeline: bool = True
    replicas: bool = False
    weights: tuple = ("auto",)
    activations: tuple = ("auto",)
    kv: tuple = ("auto",)
    batches: tuple = BATCHES
    loads: tuple = ()
    drafts: tuple = ()
    levers: tuple = ((),)
    prefill: tuple = ()
    prices: tuple = ()
    basis: str = "limit"

    def __post_init__(self):
        if not isinstance(self.base, Scenario):
            raise InputError("base", type(self.base).__name__, "must be a Scenario")
        put = lambda name, value: object.__setattr__(self, name, value)
        for f in fields(self):
            value = getattr(self, f.name)
            if isinstance(value, (list, tuple)):
                if len(value) > MAX_VALUES:
                    raise InputError(f.name, f"{len(value):,} values", f"must be at most {MAX_VALUES:,}")
                put(f.name, tuple(value))
            elif isinstance(f.default, tuple) and not hasattr(value, "__iter__") and not isinstance(value, int) or f.name == "chips" and not isinstance(value, (list, tuple)):
                raise InputError(f.name, value, "must be a list of values")
        put("devices", _numbers(self.devices, "devices", 1, 65536))
        if len(self.devices) > MAX_DEVICES:
            raise InputError("devices", f"{len(self.devices):,} values", f"must be at most {MAX_DEVICES}")
        put("batches", _numbers(self.batches, "batch", 1, 10_000_000))
        put("drafts", _numbers(self.drafts or (self.base.draft,), "draft", 0, 1000))
        put(
            "loads",
            tuple(dict.fromkeys(_load(x) for x in self.loads)) or ((self.base.prompt, self.base.output, self.base.cached),),
        )
        if len(self.loads) > MAX_LOADS:
            raise InputError("loads", f"{len(self.loads):,} prompts and outputs", f"must be at most {MAX_LOADS}")
        put("models", tuple(dict.fromkeys(str(m) for m in self.models)))
        for name in ("weights", "activations", "kv"):
            names = tuple(dict.fromkeys(str(x).strip().lower() for x in getattr(self, name)))
            own = getattr(self.base, name)
            put(name, (own,) if names in ((), ("auto",)) else names)
        chips = tuple(dict.fromkeys(str(c).strip().lower() for c in self.chips if str(c).strip().lower() != "all"))
        for c in chips:
            if c != "custom":
                hardware.load(c)
        put("chips", chips)
        put("prefill", tuple(_pool(x) for x in self.prefill))
        prices = dict(self.prices)
        for c in prices:
            hardware.load(c)
        put(
            "prices",
            tuple(
                (str(c).lower(), float(parse_quantity(usd, "USD", field=f"price of {c}", low=0, high=1e9)))
                for c, usd in prices.items()
            ),
        )
        put("levers", tuple(_lever(x) for x in self.levers) or ((),))
        if self.basis not in ("limit", "expected"):
            raise InputError("basis", self.basis, "must be limit or expected")
        if self.basis == "expected" and self.prefill:
            raise InputError("basis", "expected", "does not cover separate prefill pools; use limit")
        vendors = {hardware.load(i).vendor.lower(): hardware.load(i).vendor for i in hardware.ids()}
        kinds = {hardware.load(i).kind for i in hardware.ids()}
        for name in self.vendors:
            if str(name).lower() not in vendors:
                raise InputError("vendor", name, f"makes no chip of the catalogue{nearest(name, vendors)}")
        for name in self.kinds:
            if name not in kinds:
                raise InputError("kind", name, f"is not a kind of chip in the catalogue{nearest(name, kinds)}")

    def chip_ids(self) -> tuple:
        """The chips to try, after vendor and kind."""
        vendors = {v.lower() for v in self.vendors}
        ids = self.chips or hardware.ids()
        return tuple(
            i
            for i in ids
            if (not vendors or chip_in(self, i).vendor.lower() in vendors)
            and (not self.kinds or chip_in(self, i).kind in self.kinds)
        )


def _numbers(values, name: str, low: int, high: int) -> tuple:
    found = [
        parse_quantity(v, "count", field=name, low=low, high=high, whole=True)
        for v in ([values] if isinstance(values, (int, str)) else values)
    ]
    if not found:
        raise InputError(name, "", "needs at least one value")
    return tuple(sorted(set(found)))


def _load(x) -> tuple:
    """(prompt, output, cached) of one load, given as that or as (prompt, output)."""
    prompt, output, cached = (*x, 0)[:3]
    read = lambda v, name, low: parse_quantity(v, "tokens", field=name, low=low, high=100_000_000, whole=True)
    load = read(prompt, "prompt", 1), read(output, "output", 1), read(cached, "cached", 0)
    if load[2] >= load[0]:
        raise InputError(
            "cached", load[2], f"must be less than the prompt of {load[0]:,} tokens, since the last one is always computed"
        )
    return load


def _pool(x) -> tuple:
    chip, devices = x
    chip = str(chip).strip().lower()
    if chip != "same":
        hardware.load(chip)
    return chip, parse_quantity(devices, "count", field="prefill devices", low=1, high=65536, whole=True)


def _lever(x) -> tuple:
    pairs = tuple(sorted((str(k), v) for k, v in (x.items() if isinstance(x, dict) else x)))
    for k, _ in pairs:
        if k not in LEVERS:
            raise InputError("lever", k, f"is not one that can be explored; use one of {', '.join(LEVERS)}")
    return pairs


def chip_in(space: Space, id: str) -> Accelerator:
    """The chip with the figures that the base scenario types over the catalogue's."""
    s = space.base
    return chip_of(
        SimpleNamespace(hardware=id, peak=s.peak, bandwidth=s.bandwidth, memory=s.memory, link=s.link, peak_format=s.peak_format)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """The part of a space that one broadcast covers: one model in one set of formats, and the chips that run it alike.

    scenario: the base with this slice's model, formats, draft and lever. formats: as `scenario.formats_of` gives them.
    layouts: those the model allows. pools: (chip, chips, its formats) of each prefill pool, None for none.
    """

    scenario: Scenario
    arch: Architecture
    drafter: Architecture | None
    chips: tuple
    formats: dict
    layouts: tuple
    pools: tuple = (None,)
    prices: tuple = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A space as slices, and what was left out before them: refused {reason: configurations}, lacking {chip id: sentence}."""

    slices: tuple
    rows: int
    refused: dict
    lacking: dict


@lru_cache(maxsize=64)
def legal_layouts(arch: Architecture, devices: tuple, pipeline: bool, replicas: bool) -> tuple:
    """(layouts that this model allows, {reason: how many it does not})."""
    found, refused = [], {}
    for n in devices:
        for x in parallel.layouts(n, arch.is_moe):
            # Experts split within one tensor-parallel group change neither traffic nor memory, so ep = tp repeats ep = 1.
            if (x.pp > 1 and not pipeline) or (x.ep > 1 and x.pool == 1) or (x.dp > x.pool and not replicas):
                continue
            try:
                parallel.check(x, arch)
            except InputError as error:
                refused[str(error)] = refused.get(str(error), 0) + 1
                continue
            found.append(x)
    return tuple(found), refused


def plan(space: Space) -> Plan:
    """Cut a space into slices. Raises InputError where it is too large or names something unknown."""
    chips = [chip_in(space, id) for id in space.chip_ids()]
    if not chips:
        raise InputError(
            "chips", ", ".join((*space.vendors, *space.kinds)) or "none", "leave no chip to try; widen the vendor or the kind"
        )
    base, prices = space.base, dict(space.prices)
    per_point = len(space.batches) * len(space.loads) * (1 + len(space.prefill))
    combinations = list(
        product(space.models or (base.model,), space.weights, space.activations, space.kv, space.drafts, space.levers)
    )
    if len(combinations) > MAX_SLICES:
        raise InputError("space", f"{len(combinations):,} sets of models, formats and levers", f"must be at most {MAX_SLICES:,}")
    slices, refused, lacking, rows = [], {}, {}, 0
    for model, weights, activations, kv, draft, lever in combinations:
        own = bool(base.config) and model == base.model
        scenario = base.replace(
            **{
                "model": model,
                "config": base.config if own else "",
                "weights": weights,
                "activations": activations,
                "kv": kv,
                "draft": draft,
                "cached": 0,
                "rate": None,
                **dict.fromkeys(("devices", "tp", "pp", "ep", "dp", "prefill_devices")),
                "prefill_hardware": "",
                **dict(lever),
            }
        )
        arch = architecture_of(model, scenario.config, base.read_as)
        found, no = legal_layouts(arch, space.devices, space.pipeline, space.replicas)
        for reason, count in no.items():
            refused[reason] = refused.get(reason, 0) + count * len(chips) * per_point
        groups = {}
        for chip in chips:
            formats = formats_of(scenario, arch, chip)
            if formats["lacks"]:
                lacking[chip.id] = f"{chip.name} has no {formats['lacks'].upper()} arithmetic"
                reason = f"the chip has no {formats['lacks'].upper()} arithmetic"
                refused[reason] = refused.get(reason, 0) + len(found) * per_point
                continue
            key = (formats["activations"].name, formats["compute"])
            if space.basis == "expected":
                # What engines do with packed weights depends on the unit that runs the arithmetic.
                key += tuple(chip.roof_of(name)[0] for name in (formats["compute"], "bf16"))
            groups.setdefault(key, (formats, []))[1].append(chip)
        drafter = catalogue.load(scenario.draft_model) if scenario.draft and scenario.draft_model else None
        for formats, alike in groups.values():
            rows += len(alike) * len(found) * per_point
            slices.append(
                Slice(
                    scenario=scenario,
                    arch=arch,
                    drafter=drafter,
                    chips=tuple(alike),
                    formats=formats,
                    layouts=found,
                    pools=(None, *space.prefill),
                    prices=tuple(prices.get(c.id) for c in alike),
                )
            )
    if rows > MAX_ROWS:
        raise InputError(
            "space", f"{rows:,} configurations", f"must be at most {MAX_ROWS:,}; take fewer batches, formats or chips"
        )
    return Plan(slices=tuple(slices), rows=rows, refused=refused, lacking=lacking)
