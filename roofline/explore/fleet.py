"""A fleet: how many chips of each kind serve a mix of requests, with headroom, and what they cost.

All classes of a mix share the same replicas: a step carries sequences of every class, as one pass of the engine that reads the
weights once, so the step of the mix is exact, not an average of steps.
"""

from __future__ import annotations

import csv
import io
import math
import tomllib
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib import resources
from types import SimpleNamespace

import numpy as np

from .. import memory
from ..errors import InputError, nearest
from ..phase import decode_pass, times
from ..units import format_number, format_quantity, parse_quantity
from .answer import Stopped
from .grid import pieces, prefill_alone
from .space import Space, plan

MAX_CLASSES = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One class of requests: requests_per_s arrive at random, each with prompt (cached of them found in the cache) and output tokens.

    ttft_s, tpot_s: limits of its own [s], or None.
    """

    name: str
    requests_per_s: float
    prompt: int
    output: int
    cached: int = 0
    ttft_s: float | None = None
    tpot_s: float | None = None


@lru_cache(maxsize=1)
def presets() -> dict:
    """The mixes of data/mixes.toml: {id: {"name", "source", "example", "classes"}}."""
    with resources.files("roofline").joinpath("data/mixes.toml").open("rb") as file:
        return tomllib.load(file)


def read_mix(text: str, rate: float | None = None) -> tuple:
    """A mix from a preset's id or the text of a CSV file: a tuple of Request.

    CSV columns: prompt and output [tokens], requests_per_s or share; optionally name, cached [tokens], ttft and tpot ("200 ms").
    rate: requests/s in all; needed where the mix gives shares, and scales it where it gives rates.

    >>> [(c.name, c.requests_per_s) for c in read_mix("code-and-chat-2023", 10)]
    [('coding', 5.0), ('conversation', 5.0)]
    """
    known = presets()
    if text.strip().lower() in known:
        rows = known[text.strip().lower()]["classes"]
    elif "\n" not in text.strip():
        raise InputError(
            "mix",
            text.strip(),
            f"is neither a preset ({', '.join(known)}) nor the text of a CSV file{nearest(text.strip(), known)}",
        )
    else:
        rows = list(csv.DictReader(io.StringIO(text.lstrip("\ufeff"))))
    if not rows or len(rows) > MAX_CLASSES:
        raise InputError("mix", f"{len(rows)} classes", f"must have from 1 to {MAX_CLASSES}")
    clean = [{str(k).strip().lower(): v for k, v in row.items() if k is not None and v not in (None, "")} for row in rows]
    for column in ("prompt", "output"):
        if any(column not in row for row in clean):
            raise InputError("mix", column, "is a column that every class needs")
    key = "requests_per_s" if all("requests_per_s" in row for row in clean) else "share"
    weights = [parse_quantity(row.get(key, "nothing"), "count", field=key, low=0, high=1e9) for row in clean]
    total = sum(weights)
    if total <= 0:
        raise InputError("mix", total, "must have requests: the sum of its rates or shares is above 0")
    if key == "share" and rate is None:
        raise InputError("rate", "none", "must be given, since the mix only says shares; for example 10 requests/s")
    scale = 1.0 if rate is None else parse_quantity(rate, "count", field="rate", low=1e-9, high=1e9) / total
    tokens = lambda row, name, low: parse_quantity(row.get(name, 0), "tokens", field=name, low=low, high=100_000_000, whole=True)
    limit = lambda row, name: parse_quantity(row[name], "s", field=name, low=1e-9, high=1e9) if name in row else None
    found = []
    for row, weight in zip(clean, weights, strict=True):
        prompt, output, cached = tokens(row, "prompt", 1), tokens(row, "output", 1), tokens(row, "cached", 0)
        if cached >= prompt:
            raise InputError("cached", cached, f"must be less than the prompt of {prompt:,} tokens")
        if weight:
            found.append(
                Request(
                    name=str(row.get("name", f"{prompt} in, {output} out"))[:60],
                    requests_per_s=weight * scale,
                    prompt=prompt,
                    output=output,
                    cached=cached,
                    ttft_s=limit(row, "ttft"),
                    tpot_s=limit(row, "tpot"),
                )
            )
    return tuple(found)


def replicas_needed(rates, prefill_s, steps, tpot_s, batch, headroom, ttft_limit_s, tpot_limit_s):
    """Replicas that carry a mix and keep its limits [replicas, not rounded].

    The last axis of rates, prefill_s, steps and ttft_limit_s is the class.
    A replica's engine is busy with prompts for P = sum(rate x prefill) and with steps for D = sum(rate x steps) x TPOT / batch of every
    second: (P + D) / n may take 1 - headroom. Prompts go first, so a step takes TPOT / (1 - P/n), and a prompt queues for
    sum(rate x prefill^2) / (2 (n - P)) (Pollaczek-Khinchine, random arrivals). Infinite where a limit cannot be kept.

    >>> one = np.array([2.0])
    >>> float(replicas_needed(one, np.array([0.1]), np.array([99.0]), 0.02, 8, 0.2, np.array([np.inf]), np.inf))
    0.86875
    """
    prompts = (rates * prefill_s).sum(axis=-1)
    squares = (rates * prefill_s**2).sum(axis=-1)
    busy = prompts + (rates * steps).sum(axis=-1) * tpot_s / batch
    need = busy / (1.0 - headroom)
    need = np.maximum(need, np.where(tpot_s < tpot_limit_s, prompts / np.maximum(1.0 - tpot_s / tpot_limit_s, 1e-300), np.inf))
    slack = ttft_limit_s - prefill_s
    queue = np.where(slack > 0, squares[..., None] / (2.0 * np.maximum(slack, 1e-300)), np.inf).max(axis=-1)
    return np.maximum(need, prompts + queue)


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """What a fleet must keep: limits of all classes [s], a share of time left free, at most so much money [USD/h] and so many chips."""

    headroom: float = 0.2
    ttft_s: float = math.inf
    tpot_s: float = math.inf
    budget: float = math.inf
    most_chips: float = math.inf

    def __post_init__(self):
        ranges = {
            "headroom": ("count", 0, 0.999),
            "ttft_s": ("s", 1e-9, 1e9),
            "tpot_s": ("s", 1e-9, 1e9),
            "budget": ("USD", 1e-9, 1e15),
            "most_chips": ("count", 1, 1e9),
        }
        for name, (kind, low, high) in ranges.items():
            value = getattr(self, name)
            if value != math.inf:
                object.__setattr__(self, name, float(parse_quantity(value, kind, field=name, low=low, high=high)))


OBJECTIVES = ("cost", "chips", "power")


def fleet(space: Space, mix: tuple, demand: Demand | None = None, objective: str = "cost", progress=None) -> dict:
    """Size a fleet for a mix of requests on every chip of a space: {"mix", "best": [a row per chip, best first], "why_not": {id: sentence}}.

    objective: cost [USD/h; chips without a price come last, fewest first], chips or power [W]. A row's batch is the most requests
    that run together in one replica; its tpot_s and ttft_s (of each class, the mean wait included) are under this load.
    """
    sizing = Sizing(space, mix, demand, objective)
    while sizing.advance():
        if progress and progress(sizing.done, sizing.total) is False:
            raise Stopped(sizing.done, sizing.total)
    return sizing.answer()


class Sizing:
    """A fleet on its way, see `fleet`: `advance` sizes one piece more of the space and says whether there was one; then there is an `answer`."""

    def __init__(self, space: Space, mix: tuple, demand: Demand | None = None, objective: str = "cost"):
        if objective not in OBJECTIVES:
            raise InputError("objective", objective, f"must be one of {', '.join(OBJECTIVES)}")
        if space.prefill:
            raise InputError("prefill", "a separate pool", "is not sized by a fleet; leave it out")
        if any(space.drafts) or any("draft" in dict(lever) for lever in space.levers):
            raise InputError("drafts", space.drafts[-1], "are not sized by a fleet; use 0")
        self.space = replace(space, loads=tuple((c.prompt, c.output, c.cached) for c in mix))
        self.mix, self.demand, self.objective = mix, demand or Demand(), objective
        self._place = [self.space.loads.index((c.prompt, c.output, c.cached)) for c in mix]
        self._plan = plan(self.space)
        self._rest, self._best, self._nearest = pieces(self.space, self._plan), {}, {}
        self.done, self.total, self.finished = 0, self._plan.rows, False

    def advance(self) -> bool:
        """Size one piece more; False where there is none left."""
        piece = next(self._rest, None)
        if piece is None:
            self.finished = True
            return False
        with np.errstate(all="ignore"):
            sized = _sized(piece, self.mix, self._place, self.demand)
        for c, chip in enumerate(piece.chips.each):
            _note(self._best, self._nearest, piece, c, chip, sized, self.objective)
        self.done += int(np.prod(piece.shape))
        self.finished = self.done == self.total
        return True

    def answer(self) -> dict:
        """What `fleet` gives, of the pieces that are sized."""
        space, mix, best = self.space, self.mix, self._best
        why = {
            id: self._plan.lacking.get(id) or "no layout of these chips is possible for this model"
            for id in space.chip_ids()
            if id not in best
        }
        for id, (_, piece, c, sized) in self._nearest.items():
            if id not in best:
                why[id] = _why(piece, c, sized, mix, self.demand)
        return {
            "objective": self.objective,
            "basis": space.basis,
            "headroom": self.demand.headroom,
            "requests_per_s": sum(c.requests_per_s for c in mix),
            "mix": [{n: getattr(c, n) for n in c.__slots__} for c in mix],
            "best": [_row_of(space, mix, *found) for found in sorted(best.values(), key=lambda x: x[0])],
            "why_not": why,
            "evaluated": self.done,
        }


def _sized(piece, mix: tuple, place: list, demand: Demand) -> SimpleNamespace:
    """Every configuration of a piece sized for the mix; arrays of shape (chips, layouts, batches), and (..., classes) for prefill."""
    r, chips = piece.resolved, piece.chips
    s, layout = r.scenario, r.layout
    rates, steps = np.array([c.requests_per_s for c in mix]), np.array([float(max(c.output - 1, 0)) for c in mix])
    # Of the requests that run together, each class has its share of the steps; one that only wants its first token has none.
    flying = rates * np.maximum(steps, 1e-9)
    shares = flying / flying.sum()
    share = np.zeros(piece.shape[3])
    np.add.at(share, place, shares)
    roofs = chips.roofs(layout)
    alike = lambda c: SimpleNamespace(batch=s.batch, prompt=c.prompt, output=c.output)
    one = [decode_pass(alike(c), layout) for c in mix]
    step = times(
        r, tuple(replace(p, sequences=p.sequences * part) for p, part in zip(one, shares, strict=True)), roofs, piece.reached
    )
    tpot = step[1 if piece.reached is None else 2][..., 0]
    whole = lambda v: np.broadcast_to(v, np.broadcast_shapes(np.shape(v), (1, 1, 1, len(share))))
    prefill = np.broadcast_to(prefill_alone(r, roofs, piece.reached), (*tpot.shape[:2], 1, len(share)))[..., place]
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
    )
    flat = lambda v: np.asarray(v)[..., 0] if np.ndim(v) else v
    total = flat(stored) + (whole(each * s.batch) * share).sum(axis=-1) + whole(working).max(axis=-1) + flat(other)
    available = (chips.memory_bytes * layout.tp * layout.pp * s.utilisation)[..., 0]
    need = replicas_needed(
        rates,
        prefill,
        steps,
        tpot,
        s.batch[..., 0],
        demand.headroom,
        np.array([c.ttft_s or demand.ttft_s for c in mix]),
        min(c.tpot_s or demand.tpot_s for c in mix),
    )
    ok = np.isfinite(need) & ~(total > available) & ~flat(chips.unhosted(s))
    # Replicas that share experts come together.
    groups = np.where(ok, np.maximum(1.0, np.ceil(need / layout.dp[..., 0] - 1e-9)), np.inf)
    devices = groups * layout.devices[..., 0]
    usd, watts = devices * chips.usd_per_hour[..., 0], devices * chips.watts[..., 0]
    ok = ok & (devices <= demand.most_chips) & ~(usd > demand.budget)
    if demand.budget != math.inf:
        ok = ok & np.isfinite(usd)
    return SimpleNamespace(
        ok=ok,
        tpot=tpot,
        prefill=prefill,
        replicas=groups * layout.dp[..., 0],
        devices=devices,
        usd=usd,
        watts=watts,
        total=np.broadcast_to(total, ok.shape),
        available=np.broadcast_to(available, ok.shape),
        rates=rates,
        steps=steps,
    )


def _note(best: dict, nearest: dict, piece, c: int, chip, sized, objective: str) -> None:
    """Keep the best configuration of one chip, or where none serves, the piece that came closest."""
    ok = sized.ok[c]
    if not ok.any():
        share = sized.total[c] / sized.available[c]
        close = float(np.nanmin(share)) if np.isfinite(share).any() else math.inf
        if chip.id not in nearest or close < nearest[chip.id][0]:
            nearest[chip.id] = (close, piece, c, sized)
        return
    known = np.isfinite(sized.usd[c]).any()
    goal = (
        sized.usd[c]
        if objective == "cost" and known
        else sized.watts[c]
        if objective == "power" and np.isfinite(sized.watts[c]).any()
        else sized.devices[c]
    )
    unranked = objective == "cost" and not known or objective == "power" and goal is sized.devices[c]
    goal = np.where(ok, goal, np.inf)
    l, b = np.unravel_index(int(goal.argmin()), goal.shape)
    key = (unranked, float(goal[l, b]), float(sized.devices[c, l, b]), float(sized.tpot[c, l, b]))
    if chip.id not in best or key < best[chip.id][0]:
        best[chip.id] = (key, piece, c, int(l), int(b), sized)


def _row_of(space: Space, mix: tuple, _key, piece, c: int, l: int, b: int, sized) -> dict:
    """One chip's fleet in plain numbers."""
    chip, layout, batch = piece.chips.each[c], piece.slice.layouts[piece.at[1] + l], space.batches[piece.at[2] + b]
    at = lambda v: float(np.broadcast_to(v, sized.ok.shape)[c, l, b])
    n, tpot, prefill = at(sized.replicas), at(sized.tpot), np.broadcast_to(sized.prefill, (*sized.ok.shape, len(mix)))[c, l, b]
    prompts = float((sized.rates * prefill).sum())
    wait = float((sized.rates * prefill**2).sum()) / (2.0 * (n - prompts))
    busy = (prompts + float((sized.rates * sized.steps).sum()) * tpot / batch) / n
    known = lambda v: v if math.isfinite(v) else None
    heaviest = max(mix, key=lambda x: x.requests_per_s * x.output)
    price = piece.slice.prices[piece.at[0] + c]
    scenario = piece.slice.scenario.replace(
        hardware=chip.id,
        tp=layout.tp,
        pp=layout.pp,
        ep=layout.ep,
        dp=layout.dp,
        batch=batch,
        prompt=heaviest.prompt,
        output=heaviest.output,
        cached=heaviest.cached,
        usd_per_hour=price if price is not None else piece.slice.scenario.usd_per_hour,
    )
    return {
        "hardware": chip.id,
        "name": chip.name,
        "vendor": chip.vendor,
        "grade": chip.grade,
        "model": piece.slice.arch.id,
        "tp": layout.tp,
        "pp": layout.pp,
        "ep": layout.ep,
        "dp": layout.dp,
        "weights": getattr(piece.slice.formats["weights"], "name", str(piece.slice.formats["weights"])),
        "kv": piece.slice.formats["kv"].name,
        "batch": batch,
        "replicas": int(n),
        "devices": int(at(sized.devices)),
        "usd_per_hour": known(at(sized.usd)),
        "watts": known(at(sized.watts)),
        "utilisation": busy,
        "tpot_s": tpot / (1.0 - prompts / n),
        "ttft_s": [float(t) + wait for t in prefill],
        "queue_s": wait,
        "memory_share": known(at(sized.total) / at(sized.available)),
        "fragment": scenario.to_fragment(),
    }


def _why(piece, c: int, sized, mix: tuple, demand: Demand) -> str:
    """One sentence: why a chip has no fleet."""
    chip, linked = piece.chips.each[c], np.isfinite(sized.tpot[c])
    fits = linked & ~(sized.total[c] > sized.available[c])
    if not fits.any():
        share = np.where(linked, sized.total[c] / sized.available[c], np.inf)
        l, b = np.unravel_index(int(np.nanargmin(share)), share.shape)
        need, have = (format_quantity(float(v[c, l, b]), "B") for v in (sized.total, sized.available))
        return f"does not fit: at best {need} are needed and there are {have}"
    times = np.where(fits, sized.tpot[c], np.inf)
    limit = min(x.tpot_s or demand.tpot_s for x in mix)
    if not times.min() < limit:
        return f"misses TPOT: {format_quantity(float(times.min()), 's')} at best where {format_quantity(limit, 's')} is asked"
    prefill = np.broadcast_to(sized.prefill, (*sized.ok.shape, len(mix)))[c][fits & (times < limit)]
    for i, x in enumerate(mix):
        asked = x.ttft_s or demand.ttft_s
        if prefill[:, i].min() >= asked:
            took = format_quantity(float(prefill[:, i].min()), "s")
            return f"misses TTFT of {x.name}: its prefill takes {took} at best where {format_quantity(asked, 's')} is asked"
    devices, usd = np.where(fits, sized.devices[c], np.inf).min(), sized.usd[c]
    if demand.budget != math.inf and not np.isfinite(usd).any():
        return f"no price is known for {chip.name}, so the budget cannot be checked"
    if demand.budget != math.inf and np.nanmin(usd) > demand.budget:
        return f"costs {format_number(float(np.nanmin(usd)))} USD/h at least where the budget is {format_number(demand.budget)}"
    return (
        f"needs {devices:,.0f} chips where at most {demand.most_chips:,.0f} are there"
        if np.isfinite(devices)
        else "no one layout and batch keeps all limits at once"
    )
