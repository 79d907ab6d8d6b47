"""Money and energy per token, from the same times as everything else."""

from __future__ import annotations

import tomllib
from functools import lru_cache
from importlib import resources

HOURS_PER_YEAR = 8760.0


def owned_usd_per_hour(purchase_usd: float, years: float, opex: float = 0.0, watts: float = 0.0, pue: float = 1.0, usd_per_kwh: float = 0.0) -> float:
    """Hourly cost of a chip that is bought: purchase x (1 + opex) / (years x 8,760) + kW x PUE x $/kWh [USD/h].

    >>> round(owned_usd_per_hour(50_000, 3, opex=0.2), 2)
    2.28
    """
    return purchase_usd * (1.0 + opex) / (years * HOURS_PER_YEAR) + watts / 1000.0 * pue * usd_per_kwh


def usd_per_million(usd_per_hour, tokens_per_s):
    """USD for a million tokens at a steady rate: price / 3600 / rate x 1e6.

    usd_per_hour: of all chips [USD/h]; tokens_per_s [tokens/s].

    >>> round(usd_per_million(16.0, 24000 / 1.0) , 4)
    0.1852
    """
    return usd_per_hour / 3600.0 / tokens_per_s * 1e6


def break_even_tokens_per_s(usd_per_hour, api_usd_per_million):
    """Output tokens/s at which owning costs what the API charges [tokens/s].

    >>> break_even_tokens_per_s(36.0, 10.0)
    1000.0
    """
    return usd_per_hour / 3600.0 / api_usd_per_million * 1e6


def cluster_usd(nodes, chips, usd_per_hour, hours):
    """What nodes of `chips` chips cost for some hours: nodes x chips x price x hours [USD].

    >>> cluster_usd(226.75, 8, 2.0, 24)
    87072.0
    """
    return nodes * chips * usd_per_hour * hours


def revenue_usd(tokens, prices):
    """What tokens of several kinds bring at prices per million: sum of tokens x price / 1e6 [USD].

    >>> revenue_usd((342e9, 266e9, 168e9), (0.14, 0.55, 2.19))
    562100.0
    """
    return sum(n * price for n, price in zip(tokens, prices, strict=True)) / 1e6


def margin(revenue, cost):
    """Profit over cost: revenue / cost - 1.

    >>> round(margin(562100, 87072), 2)
    5.46
    """
    return revenue / cost - 1.0


def computing_usd_per_million(parameters, peak, usd_per_hour, utilisation=1.0):
    """USD to push a million tokens through `parameters` active parameters at a share of the peak: 2 P x 1e6 / (peak x share) x price / 3600.

    >>> round(computing_usd_per_million(1e12, 5e15, 3.2, 0.6), 3)
    0.593
    """
    return usd_per_million(usd_per_hour, peak * utilisation / (2.0 * parameters))


def flops_per_usd(peak, usd_per_hour):
    """FLOPs that a dollar buys: peak x 3600 / price [FLOP/USD], not peak / price.

    >>> flops_per_usd(197e12, 1.2)
    5.91e+17
    """
    return peak * 3600.0 / usd_per_hour


def capped_watts(watts, cap):
    """Power of a chip held to a share of its limit [W]. Energy per token falls alike as long as the time does not grow.

    >>> capped_watts(700.0, 0.5)
    350.0
    """
    return watts * cap


def token_prices(usd_per_hour, batch, prompt, output, prefill_s, tpot_s, prefill_usd_per_hour=0.0, prefill_tokens_per_s=None) -> tuple:
    """(input, output, output with its share of the input) in USD per million tokens; everything broadcasts.

    usd_per_hour: of one replica [USD/h]; batch [sequences]; prompt: its tokens that are computed, per sequence; output [tokens];
    prefill_s: of the whole batch [s]; tpot_s [s]. With a separate prefill pool the input is priced on that pool.

    >>> [round(p, 4) for p in token_prices(3.6, 10, 1000, 100, 1.0, 0.01)]
    [0.1, 1.0, 2.0]
    """
    price_out = usd_per_million(usd_per_hour, batch / tpot_s)
    if prefill_tokens_per_s is None:
        price_in = usd_per_million(usd_per_hour, batch * prompt / prefill_s)
    else:
        price_in = usd_per_million(prefill_usd_per_hour, prefill_tokens_per_s)
    return price_in, price_out, price_out + price_in * prompt / output


def joules_per_token(watts, seconds, tokens):
    """Power x time / tokens [J].

    >>> joules_per_token(700.0, 0.02, 10)
    1.4
    """
    return watts * seconds / tokens


def hourly_price(s, chip) -> tuple:
    """(USD/h of one chip or None, where it comes from)."""
    if s.usd_per_hour is not None:
        return s.usd_per_hour + (chip.tdp_w or 0.0) / 1000.0 * s.pue * s.usd_per_kwh, "given"
    if s.purchase_usd is not None:
        return owned_usd_per_hour(s.purchase_usd, s.years, s.opex, chip.tdp_w or 0.0, s.pue, s.usd_per_kwh), "purchase, years and power given"
    return chip.usd_per_hour, chip.price_source


def cost(r, prefill_s, tpot_s, cached_s=None, prefill_usd_per_hour: float | None = 0.0, prefill_tokens_per_s=None) -> dict:
    """The `cost` part of a Report for one set of times (limits or expectations); None where no price or no time is known.

    Each phase pays for the time it holds one replica's chips: input = price x prefill time / new prompt tokens, output = price x TPOT /
    batch. With a separate prefill pool the input is priced on that pool (prefill_usd_per_hour None: nobody says its price). The whole bill over output tokens is given too.
    break_even_share: the output rate at which owning costs what the API charges, over what this deployment can put out while decoding.
    prefill_s [s]: of the batch; tpot_s [s]; cached_s [s]: extra prefill time that cached tokens cause.
    """
    s, layout = r.scenario, r.layout
    each, source = hourly_price(s, r.chip)
    empty = {"usd_per_million_input_tokens": None, "usd_per_million_cached_input_tokens": None, "usd_per_million_output_tokens": None,
             "usd_per_million_output_tokens_all_in": None, "usd_per_hour": None if each is None else each * layout.devices, "source": source,
             "break_even_tokens_per_s": None, "break_even_share": None, "usd_per_million_output_api": s.api_usd_per_million,
             "flops_per_usd_peak": None if not each else flops_per_usd(max(v for _, v in r.chip.peaks), each), "bytes_per_usd_peak": None if not each else flops_per_usd(r.chip.bandwidth_bytes_per_s, each)}
    if each is None or tpot_s is None or prefill_s is None or prefill_usd_per_hour is None:
        return empty
    replica = each * layout.devices / layout.dp
    price_in, price_out, all_in = token_prices(replica, s.batch, s.prompt - s.cached, s.output, prefill_s, tpot_s, prefill_usd_per_hour, prefill_tokens_per_s)
    even = break_even_tokens_per_s(each * layout.devices, s.api_usd_per_million) if s.api_usd_per_million else None
    return empty | {
        "usd_per_million_input_tokens": price_in, "usd_per_million_output_tokens": price_out,
        "usd_per_million_cached_input_tokens": usd_per_million(replica, s.batch * s.cached / cached_s) if s.cached and cached_s else 0.0 if s.cached and cached_s is not None else None,
        "usd_per_million_output_tokens_all_in": all_in,
        "break_even_tokens_per_s": even, "break_even_share": None if even is None else even * tpot_s / (s.batch * layout.dp),
    }


@lru_cache(maxsize=1)
def _energy_table() -> dict:
    with resources.files("roofline").joinpath("data/energy.toml").open("rb") as file:
        return tomllib.load(file)


def dram_pj_per_byte(memory_type: str) -> tuple:
    """(picojoules per byte of main-memory traffic, source) or (None, "") where nothing is published for that memory.

    >>> round(dram_pj_per_byte("HBM3")[0], 1)
    31.4
    """
    table = _energy_table()
    for measured, kinds in table["stands_for"].items():
        if memory_type in kinds:
            entry = table["dram"][measured]
            return entry["pj_per_bit"] * 8, entry["source"] + ("" if memory_type == measured else f" (measured on {measured})")
    return None, ""


def dram_source(memory_type: str) -> dict:
    """What is known of a memory's energy: {"pj_per_byte", "source", "retrieved", "grade"}; empty where nothing is.

    >>> dram_source("HBM3")["grade"], dram_source("SRAM")
    ('C', {})
    """
    each, source = dram_pj_per_byte(memory_type)
    measured = next((name for name, kinds in _energy_table()["stands_for"].items() if memory_type in kinds), None)
    return {} if measured is None else {"pj_per_byte": each, **_energy_table()["dram"][measured], "source": source}


def compute_source() -> dict:
    """Where the published energies of arithmetic are from: {"source", "retrieved", "grade"}."""
    return dict(_energy_table()["compute_source"])


CEILING = "TDP / peak of the board: a ceiling"


def compute_pj_per_flop(chip, roof: str) -> tuple:
    """(picojoules per FLOP of matrix arithmetic in a format, how it is known), or (None, "") where neither is published.

    The lower of a published figure for the instruction and what the whole board takes per FLOP at its peak (TDP / peak): arithmetic
    cannot take more than the board does.

    >>> from roofline.hardware import load
    >>> [round(compute_pj_per_flop(load(id), "bf16")[0], 2) for id in ("h100-sxm", "a100-80gb-sxm")]
    [0.71, 1.05]
    """
    table = _energy_table()
    entry = table["compute"].get(roof)
    board = chip.tdp_w / chip.roof_of(roof)[1] * 1e12 if chip.tdp_w else None
    if entry and (board is None or entry["pj_per_flop"] <= board):
        return entry["pj_per_flop"], f"{table['compute_source']['source']} ({entry['how']})"
    return (board, CEILING) if board else (None, "")


def energy(r, decode, tpot_s, prefill_s, tokens_per_step: float = 1.0, pools: dict | None = None) -> dict:
    """The `energy` part of a Report: joules per token as TDP x time x PUE, beside what traffic and arithmetic of the operators take.

    TDP x time is a ceiling at these times: chips that wait draw less. Of a decode step, `dram_joules_per_output_token` = bytes x pJ/byte
    and `compute_joules_per_output_token` = FLOPs x pJ/FLOP, over batch x tokens_per_step; `groups` gives both by operator group;
    what the sum leaves of the ceiling is caches, wires, leakage and waiting (`rest_joules_per_output_token`). pools: the prefill pool of its
    own (`service._pools`), whose chips and time then make the input tokens' energy.
    """
    s, chip = r.scenario, r.chip
    per_byte, source = dram_pj_per_byte(chip.memory_type)
    chips = r.layout.devices / r.layout.dp
    watts = None if chip.tdp_w is None else chip.tdp_w * chips * s.pue
    out = s.batch * tokens_per_step
    groups, dram, compute, how = {}, 0.0, 0.0, ""
    for op in decode.operators:
        if op.group == "collective":
            continue
        cell = groups.setdefault(op.group, {"group": op.group, "dram_joules": 0.0 if per_byte else None, "compute_joules": 0.0})
        if per_byte:
            cell["dram_joules"] += op.bytes * per_byte * 1e-12 / out
            dram += op.bytes * per_byte * 1e-12 / out
        per_flop, known = compute_pj_per_flop(chip, op.roof) if op.roof != "vector" else (0.0, "")
        how = how or known
        cell["compute_joules"] = None if per_flop is None or cell["compute_joules"] is None else cell["compute_joules"] + op.flops * per_flop * 1e-12 / out
        compute = None if per_flop is None or compute is None else compute + op.flops * per_flop * 1e-12 / out
    total = joules_per_token(watts, tpot_s, s.batch) if watts and tpot_s else None
    reading, prompts = (watts, s.batch) if pools is None else (pools["prefill_watts"] and pools["prefill_watts"] * s.pue, 1)
    if pools is not None:
        prefill_s = (pools["expected_prefill_share_s"] or pools["prefill_share_s"]) if tpot_s else None
    return {
        "joules_per_output_token": total, "joules_per_input_token": joules_per_token(reading, prefill_s, prompts * (s.prompt - s.cached)) if reading and prefill_s else None,
        "basis": "TDP x time x PUE: a ceiling, since chips that wait draw less", "watts": watts,
        "dram_joules_per_output_token": dram if per_byte else None, "dram_pj_per_byte": per_byte, "dram_source": source,
        "compute_joules_per_output_token": compute, "compute_source": how if compute is not None else "",
        "rest_joules_per_output_token": max(0.0, total - dram * s.pue - compute * s.pue) if total and per_byte and compute is not None else None,
        "groups": list(groups.values()),
        "flops_per_joule_peak": max(v for _, v in chip.peaks) / chip.tdp_w if chip.tdp_w else None, "bytes_per_joule_peak": chip.bandwidth_bytes_per_s / chip.tdp_w if chip.tdp_w else None,
    }
