"""What a configuration is judged by, from its two times: the same few formulas for one number, a row or a whole block."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np

from .. import cost
from ..service import line, pool_figures

BOUNDS = ("compute", "memory", "network", "host")  # the link to host memory by its own name, as a reader is told it (`phase.told_bound`)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """A separate prefill pool: chips of one instance, their price [USD/h] and power [W] together; prefill_s: what one prompt takes of it [s]."""

    devices: int
    usd_per_hour: object
    watts: object
    prefill_s: object


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """The times of configurations and what follows from them; every field is a number or an array, and all broadcast together.

    ttft_s: all prompts of the batch arrive at once; ttft_alone_s: one arrives by itself, as in continuous batching; tpot_s [s];
    prefill_s: prefill of the whole batch on its own chips [s]; batch: of one replica; fresh: prompt tokens that
    are computed; output [tokens]; dp: replicas; devices: chips of all replicas; chip_usd_per_hour [USD/h] and chip_watts [W, site] of
    one chip (NaN where nobody says); total_bytes: of one replica, available_bytes: what its chips have; bound: index of BOUNDS.
    """

    ttft_s: object
    ttft_alone_s: object
    tpot_s: object
    prefill_s: object
    batch: object
    fresh: object
    output: object
    dp: object
    devices: object
    chip_usd_per_hour: object
    chip_watts: object
    total_bytes: object
    available_bytes: object
    bound: object
    pool: Pool | None = None

    def take(self, flat, shape: tuple):
        """The same for the configurations with these flat indices of a block of this shape."""
        where = np.unravel_index(flat, shape)
        pick = lambda v: np.broadcast_to(v, shape)[where] if isinstance(v, np.ndarray) else v
        chosen = {f.name: pick(getattr(self, f.name)) for f in fields(self) if f.name != "pool"}
        pool = self.pool and replace(
            self.pool, **{n: pick(getattr(self.pool, n)) for n in ("usd_per_hour", "watts", "prefill_s")}
        )
        return replace(self, pool=pool, **chosen)

    def get(self, name: str):
        """One of NAMES."""
        return _RULES[name](self)


def _served(f: Figures):
    if f.pool is None:
        return _line(f)["requests_per_s"] * f.output / f.devices
    return _pooled(f)[2]


def _line(f: Figures) -> dict:
    return line(
        f, f, f.ttft_s, f.tpot_s, apart=f.pool is not None
    )  # a Figures has what `line` asks of a scenario and of a layout


def _pooled(f: Figures) -> tuple:
    return pool_figures(f.pool.prefill_s, f.tpot_s, f.batch, f.output, f.devices / f.dp, f.pool.devices)


def _prices(f: Figures) -> tuple:
    extra = () if f.pool is None else (f.pool.usd_per_hour, f.fresh / f.pool.prefill_s)
    return cost.token_prices(f.chip_usd_per_hour * f.devices / f.dp, f.batch, f.fresh, f.output, f.prefill_s, f.tpot_s, *extra)


def _joules(f: Figures):
    return cost.joules_per_token(f.chip_watts * f.devices / f.dp, f.tpot_s, f.batch)


def _joules_all_in(f: Figures):
    if f.pool is None:
        spent = cost.joules_per_token(f.chip_watts * f.devices / f.dp, f.prefill_s, f.batch * f.fresh)
    else:
        spent = cost.joules_per_token(f.pool.watts, f.pool.prefill_s, f.fresh)
    return _joules(f) + spent * f.fresh / f.output


def _devices(f: Figures):
    return f.devices if f.pool is None else _pooled(f)[1] * f.dp


def _usd_per_hour(f: Figures):
    own = f.chip_usd_per_hour * f.devices
    return own if f.pool is None else own + _pooled(f)[0] * f.pool.usd_per_hour * f.dp


_RULES = {
    "ttft_s": lambda f: f.ttft_s,
    "ttft_alone_s": lambda f: f.ttft_alone_s,
    "tpot_s": lambda f: f.tpot_s,
    "tokens_per_s_per_user": lambda f: 1.0 / f.tpot_s,
    "tokens_per_s": lambda f: _line(f)["tokens_per_s"],
    "tokens_per_s_per_device": lambda f: _line(f)["tokens_per_s_per_device"],
    "requests_per_s": lambda f: _line(f)["requests_per_s"],
    "served_tokens_per_s_per_device": _served,
    "usd_per_million_input_tokens": lambda f: _prices(f)[0],
    "usd_per_million_output_tokens": lambda f: _prices(f)[1],
    "usd_per_million_output_tokens_all_in": lambda f: _prices(f)[2],
    "joules_per_output_token": _joules,
    "joules_per_output_token_all_in": _joules_all_in,
    "devices": _devices,
    "usd_per_hour": _usd_per_hour,
    "total_bytes": lambda f: f.total_bytes,
    "available_bytes": lambda f: f.available_bytes,
    "memory_share": lambda f: f.total_bytes / f.available_bytes,
    "bound": lambda f: f.bound,
}
NAMES = tuple(_RULES)
