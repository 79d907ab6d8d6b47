"""The workings of money and energy: prices of tokens, what an hour costs, break-even, joules per token and what they are made of."""

from __future__ import annotations

from . import cost
from .explain_service import sustained_rate
from .explain_times import Asked, b_, f_, s_, step
from .hardware import load
from .units import format_number, format_quantity
from .view import format_label, percent, whole
from .view_serving import dollars, joules

n_ = format_number


def chip_hour(report: dict):
    """What the bill takes for an hour of one chip [USD/h], power and purchase included; None if nobody says."""
    total = report["cost"]["usd_per_hour"]
    return None if total is None else total / report["layout"]["devices"]


# ---- money ---------------------------------------------------------------------------------------------------------------


def output_price(a: Asked) -> list:
    """USD per million output tokens, for the time that decoding holds the chips."""
    report = a.report
    price, serving, money = chip_hour(report), report["serving"], report["cost"]
    if price is None:
        return [step("cost.unknown")]
    if serving["tokens_per_s"] is None or money["usd_per_million_output_tokens"] is None:
        return [step("untimed")]
    each = {"price": n_(price), "chips": str(report["layout"]["devices"])}
    steps = [step("cost", **each, rate=n_(serving["tokens_per_s"]), result=dollars(money["usd_per_million_output_tokens"]))]
    if a.basis != "limit" and money.get("expected_usd_per_million_output_tokens") is not None:
        steps.append(step("expected.cost", **each, rate=n_(serving["expected_tokens_per_s"]), result=dollars(money["expected_usd_per_million_output_tokens"])))
    return steps


def _unpriced(a: Asked) -> list | None:
    if chip_hour(a.report) is None:
        return [step("cost.unknown")]
    return [step("untimed")] if a.report["cost"]["usd_per_million_output_tokens"] is None else None


def _prefill_s(a: Asked):
    """Time of the batch's prefill on the scenario's own chips [s]."""
    prefill = a.report["prefill"]
    return prefill["expected_s"] if a.likely and prefill["expected_s"] else prefill["limit_s"]


def _pool_share(a: Asked):
    """What a prompt takes of a prefill instance [s]."""
    p = a.report["serving"]["disaggregated"]
    return p["expected_prefill_share_s"] if a.likely and p["expected_prefill_share_s"] else p["prefill_share_s"]


def input_price(a: Asked) -> list:
    """USD per million prompt tokens that are read, for the time that prefill holds the chips."""
    wrong = _unpriced(a)
    if wrong:
        return wrong
    report, s = a.report, a.r.scenario
    result, pools = dollars(a.of(report["cost"], "usd_per_million_input_tokens")), report["serving"]["disaggregated"]
    if pools:
        return [step("price.input.pool", price=n_(_pool_price(a)), chips=str(pools["prefill_devices"]), fresh=whole(s.prompt - s.cached), share=s_(_pool_share(a)), result=result)]
    return [step("price.input", price=n_(chip_hour(report)), chips=str(a.r.layout.devices // a.r.layout.dp), prefill=s_(_prefill_s(a)), batch=whole(s.batch), fresh=whole(s.prompt - s.cached), result=result)]


def cached_price(a: Asked) -> list:
    """USD per million prompt tokens that were in the cache, for what prefill takes longer by them."""
    wrong = _unpriced(a)
    if wrong:
        return wrong
    s, price = a.r.scenario, a.report["cost"]["usd_per_million_cached_input_tokens"]
    if not price:
        return [step("price.cached.none")]
    longer = price * 1e-6 * s.batch * s.cached * 3600.0 / (chip_hour(a.report) * a.r.layout.devices / a.r.layout.dp)
    return [step("price.cached.longer", prefill=s_(a.report["prefill"]["limit_s"]), cached=whole(s.cached), result=s_(longer)),
            step("price.cached", price=n_(chip_hour(a.report)), chips=str(a.r.layout.devices // a.r.layout.dp), longer=s_(longer), batch=whole(s.batch), cached=whole(s.cached), result=dollars(price))]


def all_in(a: Asked) -> list:
    """The whole bill over the output tokens."""
    wrong = _unpriced(a)
    if wrong:
        return wrong
    s, money = a.r.scenario, a.report["cost"]
    get = lambda what: a.of(money, f"usd_per_million_{what}")
    return [step("price.all_in", {"out": "cost", "input": "price.input"}, out=dollars(get("output_tokens")), input=dollars(get("input_tokens")), fresh=whole(s.prompt - s.cached), output=whole(s.output), result=dollars(get("output_tokens_all_in")))]


def bill_of(a: Asked):
    """The whole bill over the output tokens where chunks shorten the cycle that is paid for [USD]."""
    price = a.of(a.report["cost"], "usd_per_million_output_tokens_all_in")
    if price is None or not a.report["serving"]["mixed_step"]:
        return price
    return price * sustained_rate(a, chunked=False) / sustained_rate(a)


def bill(a: Asked) -> list:
    """The same, with the cycle that chunks shorten."""
    steps = all_in(a)
    if not a.report["serving"]["mixed_step"] or steps[-1]["key"] != "price.all_in":
        return steps
    return [*steps, step("price.chunked", {"rate": "sustained"}, price=steps[-1]["values"]["result"], apart=n_(sustained_rate(a, chunked=False)), rate=n_(sustained_rate(a)), result=dollars(bill_of(a)))]


def hour(a: Asked) -> list:
    """What all chips cost an hour, and how the price of one comes about."""
    s, price, watts = a.r.scenario, chip_hour(a.report), a.r.chip.tdp_w or 0.0
    if price is None:
        return [step("cost.unknown")]
    power = {"watts": n_(watts), "pue": n_(s.pue), "kwh": n_(s.usd_per_kwh)}
    if s.usd_per_hour is not None and watts * s.usd_per_kwh:
        steps = [step("hour.power", price=n_(s.usd_per_hour), **power, result=dollars(price))]
    elif s.usd_per_hour is None and s.purchase_usd is not None:
        steps = [step("hour.owned", purchase=n_(s.purchase_usd), opex=n_(s.opex), years=n_(s.years), **power, result=dollars(price))]
    else:
        steps = []
    return [*steps, step("hour", price=dollars(price), chips=str(a.r.layout.devices), result=dollars(a.report["cost"]["usd_per_hour"]))]


def fleet_hour(a: Asked):
    """What an hour of all chips costs, those of a prefill pool counted as many as keep the decode instances fed [USD/h]; None if nobody says."""
    pools, own = a.report["serving"]["disaggregated"], a.report["cost"]["usd_per_hour"]
    if not pools or own is None:
        return own
    each = _pool_price(a)
    return None if each is None else own + pools["prefill_instances_per_decode"] * a.r.layout.dp * pools["prefill_devices"] * each


def _pool_price(a: Asked):
    """What an hour of a chip of the prefill pool costs [USD/h]; None if nobody says."""
    pools, s = a.report["serving"]["disaggregated"], a.r.scenario
    return chip_hour(a.report) if pools["prefill_hardware"] == a.r.chip.id else cost.hourly_price(s.replace(usd_per_hour=None, purchase_usd=None), load(pools["prefill_hardware"]))[0]


def all_hour(a: Asked) -> list:
    """The same with a prefill pool."""
    pools, total = a.report["serving"]["disaggregated"], fleet_hour(a)
    if not pools or total is None:
        return hour(a)
    return [*hour(a), step("hour.pools", {"ratio": "pool.ratio"} if pools["prefill_instances_per_decode"] >= 1 else None, own=dollars(a.report["cost"]["usd_per_hour"]), ratio=n_(pools["prefill_instances_per_decode"]), replicas=str(a.r.layout.dp), chips=str(pools["prefill_devices"]),
                                price=dollars(_pool_price(a)), result=dollars(total))]


def bought(a: Asked, what: str) -> list:
    """FLOPs or bytes that a dollar buys at the peak."""
    price = chip_hour(a.report)
    if not price:
        return [step("cost.unknown")]
    if what == "flops":
        peak = max(v for _, v in a.r.chip.peaks)
        return [step("bought", speed=format_quantity(peak, "FLOP/s"), price=n_(price), result=format_quantity(a.report["cost"]["flops_per_usd_peak"], "FLOP"))]
    return [step("bought", speed=format_quantity(a.r.chip.bandwidth_bytes_per_s, "B/s"), price=n_(price), result=b_(a.report["cost"]["bytes_per_usd_peak"]))]


def even(a: Asked, what: str) -> list:
    """The rate from which owning is cheaper than an API, and its share of what these chips put out at the limit."""
    money, s = a.report["cost"], a.r.scenario
    if money["break_even_tokens_per_s"] is None:
        return _unpriced(a) or [step("even.none")]
    steps = [step("even.rate", {"hour": "hour"}, hour=dollars(money["usd_per_hour"]), api=n_(s.api_usd_per_million), result=n_(money["break_even_tokens_per_s"]))]
    if what == "rate":
        return steps
    limit = a.report["serving"]["tpot_s"]
    return [*steps, step("even.share", rate=n_(money["break_even_tokens_per_s"]), tpot=s_(limit), batch=whole(s.batch), replicas=str(a.r.layout.dp), result=percent(money["break_even_share"], 3))]


# ---- energy --------------------------------------------------------------------------------------------------------------


def _unpowered(a: Asked) -> list | None:
    if not a.report["energy"]["watts"]:
        return [step("energy.unknown")]
    return None if a.timed else [step("untimed")]


def watts(a: Asked) -> list:
    """Rated power of a replica, the site's share counted."""
    if not a.report["energy"]["watts"]:
        return [step("energy.unknown")]
    return [step("energy.watts", watts=n_(a.r.chip.tdp_w), chips=str(a.r.layout.devices // a.r.layout.dp), pue=n_(a.r.scenario.pue), result=format_quantity(a.report["energy"]["watts"], "W"))]


def joules_out(a: Asked):
    """Energy of an output token: rated power x time / tokens [J]; None if not known."""
    return cost.joules_per_token(a.report["energy"]["watts"], a.serving("tpot_s"), a.r.scenario.batch) if a.report["energy"]["watts"] and a.timed else None


def joules_in(a: Asked):
    """Energy of a prompt token that is read [J]; None if not known."""
    pools, s = a.report["serving"]["disaggregated"], a.r.scenario
    if not a.timed:
        return None
    if pools:
        return pools["prefill_watts"] and cost.joules_per_token(pools["prefill_watts"] * s.pue, _pool_share(a), s.prompt - s.cached)
    power = a.report["energy"]["watts"]
    return power and cost.joules_per_token(power, _prefill_s(a), s.batch * (s.prompt - s.cached))


def output_energy(a: Asked) -> list:
    """Joules per output token."""
    return _unpowered(a) or [*watts(a), step("energy.output", {"tpot": "tpot"}, watts=format_quantity(a.report["energy"]["watts"], "W"), tpot=s_(a.serving("tpot_s")), batch=whole(a.r.scenario.batch), result=joules(joules_out(a)))]


def input_energy(a: Asked) -> list:
    """Joules per prompt token."""
    wrong, s, pools = _unpowered(a), a.r.scenario, a.report["serving"]["disaggregated"]
    if wrong or not joules_in(a):
        return wrong or [step("energy.unknown")]
    fresh = whole(s.prompt - s.cached)
    if pools:
        return [step("energy.input.pool", watts=format_quantity(pools["prefill_watts"], "W"), pue=n_(s.pue), share=s_(_pool_share(a)), fresh=fresh, result=joules(joules_in(a)))]
    return [*watts(a), step("energy.input", watts=format_quantity(a.report["energy"]["watts"], "W"), prefill=s_(_prefill_s(a)), batch=whole(s.batch), fresh=fresh, result=joules(joules_in(a)))]


def joules_all_in(a: Asked):
    """Energy of an output token with its share of the prompt's [J]; None if not known."""
    out, read, s = joules_out(a), joules_in(a), a.r.scenario
    return out + read * (s.prompt - s.cached) / s.output if out and read else None


def all_energy(a: Asked) -> list:
    """Joules per output token, its share of the prompt counted."""
    s = a.r.scenario
    if not joules_all_in(a):
        return _unpowered(a) or [step("energy.unknown")]
    return [step("energy.all_in", {"out": "energy.output", "input": "energy.input"}, out=joules(joules_out(a)), input=joules(joules_in(a)), fresh=whole(s.prompt - s.cached), output=whole(s.output), result=format_quantity(joules_all_in(a), "J"))]


def part(a: Asked, what: str, group: str = "") -> list:
    """What memory traffic ("dram") or arithmetic ("compute") of a decode step takes of a token's energy, of all operators or of one group."""
    ops = [op for op in a.report["decode"]["operators"] if op["group"] != "collective" and group in ("", op["group"])]
    out, e = a.r.scenario.batch * a.report["serving"]["tokens_per_step"], a.report["energy"]
    told = {"batch": whole(a.r.scenario.batch), "tokens": n_(a.report["serving"]["tokens_per_step"])}
    if what == "dram":
        if not e["dram_pj_per_byte"]:
            return [step("energy.part.unknown")]
        size = sum(op["bytes"] for op in ops)
        return [step("energy.dram", bytes=b_(size), each=n_(e["dram_pj_per_byte"]), **told, result=joules(size * e["dram_pj_per_byte"] * 1e-12 / out))]
    work = {}
    for op in ops:
        if op["roof"] != "vector" and op["flops"]:
            work[op["roof"]] = work.get(op["roof"], 0.0) + op["flops"]
    steps, total = [], 0.0
    for name, flops in work.items():
        each = cost.compute_pj_per_flop(a.r.chip, name)[0]
        if each is None:
            return [step("energy.part.unknown")]
        total += flops * each * 1e-12 / out
        steps.append(step("energy.compute", format=format_label(name), flops=f_(flops), each=n_(each), **told, result=joules(flops * each * 1e-12 / out)))
    return steps if len(steps) == 1 else [*steps, step("energy.compute.sum", result=joules(total) if total else "0\u2009J")]


def rest(a: Asked) -> list:
    """What traffic and arithmetic leave of the rated power."""
    e, pue, total = a.report["energy"], a.r.scenario.pue, joules_out(a)
    dram, compute = e["dram_joules_per_output_token"], e["compute_joules_per_output_token"]
    if not total or dram is None or compute is None:
        return _unpowered(a) or [step("energy.part.unknown")]
    return [step("energy.rest", {"total": "energy.output", "dram": "energy.dram", "compute": "energy.compute"}, total=joules(total), dram=joules(dram), compute=joules(compute), pue=n_(pue), result=joules(max(0.0, total - dram * pue - compute * pue)))]


def per_joule(a: Asked, what: str) -> list:
    """FLOPs or bytes for a joule at the peak."""
    c, e = a.r.chip, a.report["energy"]
    if not c.tdp_w:
        return [step("energy.unknown")]
    if what == "flops":
        return [step("per_joule", speed=format_quantity(max(v for _, v in c.peaks), "FLOP/s"), watts=n_(c.tdp_w), result=format_quantity(e["flops_per_joule_peak"], "FLOP"))]
    return [step("per_joule", speed=format_quantity(c.bandwidth_bytes_per_s, "B/s"), watts=n_(c.tdp_w), result=b_(e["bytes_per_joule_peak"]))]
