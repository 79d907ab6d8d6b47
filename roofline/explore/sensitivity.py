"""What moves an answer most: each assumption made worse and better by the same step, all in one broadcast (a tornado)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .. import calibration
from ..errors import InputError
from ..hardware import Accelerator
from ..roof import talks
from ..scenario import Scenario, resolve
from .answer import OBJECTIVES
from .grid import evaluate_variants

# Parameter: (words, what one step changes). "relative" multiplies by 1 ± step, "absolute" adds or takes the step of a share.
PARAMETERS = {
    "bandwidth": ("memory bandwidth", "relative"),
    "peak": ("peak FLOP/s", "relative"),
    "link": ("chip-to-chip bandwidth", "relative"),
    "price": ("price of a chip-hour", "relative"),
    "power": ("power of a chip", "relative"),
    "batch": ("requests in flight", "relative"),
    "prompt": ("prompt length", "relative"),
    "output": ("output length", "relative"),
    "acceptance": ("acceptance of drafted tokens", "absolute"),
    "hits": ("share of the prompt found in the cache", "absolute"),
    "routing": ("experts picked alike", "absolute"),
}


def sensitivity(scenario: Scenario, objective: str = "cost", step: float = 0.2, basis: str = "limit") -> dict:
    """How far each assumption moves an objective of one scenario: {"objective", "base", "rows": [...] largest swing first}.

    step: 0.2 makes a quantity 20 % less and more, and a share 20 points less and more (within 0 to 1). A row has "low" and "high",
    the objective at the lower and the higher value, the values themselves, and "swing" = |high - low| / base.
    basis: "limit", or "expected" where measurements say what to expect.

    >>> found = sensitivity(Scenario(batch=1), "latency")
    >>> found["rows"][0]["parameter"], round(found["rows"][0]["swing"], 3)
    ('bandwidth', 0.417)
    """
    if objective not in OBJECTIVES:
        raise InputError("objective", objective, f"must be one of {', '.join(OBJECTIVES)}")
    if not (isinstance(step, (int, float)) and 0 < step < 1):
        raise InputError("step", step, "must be between 0 and 1, such as 0.2")
    if scenario.prefill_hardware:
        raise InputError(
            "prefill_hardware", scenario.prefill_hardware, "is not covered here; leave the separate prefill pool out"
        )
    r = resolve(scenario)
    if r.lacks:
        raise InputError(
            "activations", scenario.activations, f"is arithmetic that {r.chip.name} lacks; use {r.chip.roof_of(r.lacks)[0]}"
        )
    if basis not in ("limit", "expected"):
        raise InputError("basis", basis, "must be limit or expected")
    e = calibration.expectation(r) if basis == "expected" else None
    if basis == "expected" and e is None:
        raise InputError("basis", basis, f"has no measurements for {r.chip.name} and this engine; use limit")
    figure, less, words = OBJECTIVES[objective]
    names = [name for name in PARAMETERS if _applies(name, r, scenario)]
    variants = [(None, 0)] + [(name, sign) for name in names for sign in (-1, 1)]
    values = {name: [_value(name, scenario, r, sign * step) for sign in (-1, 1)] for name in names}
    at = lambda field, own: [values[name][sign > 0] if name == field else own for name, sign in variants]
    factor = lambda name, sign, field: 1 + sign * step if name == field else 1.0
    chips = [_changed(r.chip, factor(n, s, "bandwidth"), factor(n, s, "peak"), factor(n, s, "link")) for n, s in variants]
    prompts = at("prompt", scenario.prompt)
    cached = [
        values["hits"][s > 0] if n == "hits" else min(scenario.cached, p - 1) for (n, s), p in zip(variants, prompts, strict=True)
    ]
    fields = {
        "batch": at("batch", scenario.batch),
        "prompt": prompts,
        "output": at("output", scenario.output),
        "cached": cached,
        "acceptance": at("acceptance", scenario.acceptance),
        "routing": at("routing", scenario.routing),
        "network": [
            r.fabric.network_bytes_per_s * factor(n, s, "link")
            if n == "link" and r.fabric.network_bytes_per_s
            else scenario.network
            for n, s in variants
        ],
    }
    figures, unfit = evaluate_variants(
        r, chips, fields, [factor(n, s, "price") for n, s in variants], [factor(n, s, "power") for n, s in variants], e
    )
    if unfit[0]:
        raise InputError(
            "memory", scenario.model, "does not fit, so there is no time to vary; take more chips or a smaller format"
        )
    result = np.broadcast_to(figures.get(figure), (len(variants), 1, 1, 1)).reshape(-1)
    base = float(result[0])
    if not np.isfinite(base):
        raise InputError(
            "objective",
            objective,
            f"has no figure for {r.chip.name}; give a price as usd_per_hour"
            if "usd" in figure
            else f"has no figure for {r.chip.name}",
        )
    rows = []
    for i, name in enumerate(names):
        low, high = float(result[1 + 2 * i]), float(result[2 + 2 * i])
        rows.append(
            {
                "parameter": name,
                "words": PARAMETERS[name][0],
                "low": low,
                "high": high,
                "low_value": values[name][0],
                "high_value": values[name][1],
                "swing": abs(high - low) / base,
                "low_fits": not bool(unfit[1 + 2 * i]),
                "high_fits": not bool(unfit[2 + 2 * i]),
            }
        )
    rows.sort(key=lambda row: -row["swing"])
    return {
        "objective": objective,
        "figure": figure,
        "less_is_better": less,
        "words": words,
        "step": step,
        "basis": basis,
        "base": base,
        "rows": rows,
    }


def _applies(name: str, r, s: Scenario) -> bool:
    """Whether an assumption plays a part in a scenario at all."""
    return {
        "link": talks(r.layout),
        "acceptance": s.draft > 0,
        "hits": s.prompt > 1,
        "routing": r.arch.is_moe,
        "output": s.output > 1,
    }.get(name, True)


def _value(name: str, s: Scenario, r, step: float):
    """What a parameter becomes; shares stay within 0 to 1 and tokens whole."""
    if name in ("batch", "prompt", "output"):
        return max(1, round(getattr(s, name) * (1 + step)))
    if name == "hits":
        return min(s.prompt - 1, max(0, s.cached + round(step * s.prompt)))
    if name in ("acceptance", "routing"):
        return min(1.0, max(0.0, getattr(s, name) + step))
    return 1 + step


def _changed(chip: Accelerator, bandwidth: float, peak: float, link: float) -> Accelerator:
    """A chip with some of its figures multiplied."""
    times = lambda v: None if v is None else v * link
    return replace(
        chip,
        bandwidth_bytes_per_s=chip.bandwidth_bytes_per_s * bandwidth,
        peaks=tuple((k, v * peak) for k, v in chip.peaks),
        link_bytes_per_s=times(chip.link_bytes_per_s),
        pair_bytes_per_s=times(chip.pair_bytes_per_s),
    )
