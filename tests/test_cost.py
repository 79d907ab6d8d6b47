"""Money and energy: derived by hand, and the laws they keep."""

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from roofline import Scenario, cost, evaluate
from roofline.hardware import ids
from roofline.hardware import load as chip


def ask(**more):
    return evaluate(Scenario(**({"model": "llama-3.1-8b", "hardware": "h100-sxm", "engine": "none"} | more)))


def test_output_and_input_prices_by_hand():
    """8B on one H100 at 3.60 USD/h, batch 8: a dollar-thousandth a second. Output: 0.001 x TPOT / 8 a token; input: 0.001 x prefill / (8 x 1,024)."""
    r = ask(batch=8, usd_per_hour=3.6)
    c, s = r.cost, r.serving
    assert c["usd_per_million_output_tokens"] == pytest.approx(1e6 * 0.001 * s["tpot_s"] / 8)
    assert c["usd_per_million_input_tokens"] == pytest.approx(1e6 * 0.001 * r.prefill.limit_s / (8 * 1024))
    assert c["usd_per_million_output_tokens_all_in"] == pytest.approx(c["usd_per_million_output_tokens"] + c["usd_per_million_input_tokens"] * 1024 / 256)


def test_the_bill_adds_up():
    """What all tokens of a batch are charged is the price of the chips for the time they take."""
    r = ask(batch=16, prompt=2000, output=300, usd_per_hour=7.2)
    time = r.prefill.limit_s + 300 * r.serving["tpot_s"]
    charged = 16 * (2000 * r.cost["usd_per_million_input_tokens"] + 300 * r.cost["usd_per_million_output_tokens"]) / 1e6
    assert charged == pytest.approx(7.2 / 3600 * time)


def test_all_chips_are_paid():
    """Four chips at twice the price a token of one where they bring nothing: replicas double the rate and the bill, so the price stays."""
    one, two = ask(batch=8), ask(batch=8, devices=2, tp=1, dp=2)
    assert two.cost["usd_per_million_output_tokens"] == pytest.approx(one.cost["usd_per_million_output_tokens"])
    assert two.cost["usd_per_hour"] == pytest.approx(2 * one.cost["usd_per_hour"])


def test_owning():
    """50,000 USD over 3 years with 20 % running cost, 700 W at PUE 1.3 and 0.10 USD/kWh: 60,000 / 26,280 h + 0.7 x 1.3 x 0.1 = 2.283 + 0.091."""
    assert cost.owned_usd_per_hour(50_000, 3, 0.2, 700, 1.3, 0.1) == pytest.approx(60_000 / 26_280 + 0.091)
    r = ask(purchase_usd=50_000, years=3, opex=0.2, pue=1.3, usd_per_kwh=0.1)
    assert r.cost["usd_per_hour"] == pytest.approx(60_000 / 26_280 + 0.091)


def test_electricity_that_does_not_count_is_told():
    """A catalogue price holds its power already, and a chip of unknown power draws none; both are said."""
    told = lambda **more: [w["text"] for w in ask(usd_per_kwh=0.2, **more).warnings if w["code"] == "cost"]
    assert len(told()) == 1 and not told(usd_per_hour=2.0) and not told(purchase_usd=30_000.0)
    unknown = next(i for i in ids() if chip(i).tdp_w is None and (chip(i).memory_bytes or 0) > 40e9)
    assert "not known" in told(hardware=unknown, usd_per_hour=2.0)[0]
    assert ask(usd_per_kwh=0.2).cost["usd_per_hour"] == chip("h100-sxm").usd_per_hour


def test_breaking_even_with_an_api():
    """At 1 USD a million, 3.60 USD/h of chips need 1,000 tokens/s; the share is that over what the deployment puts out."""
    r = ask(batch=8, usd_per_hour=3.6, api_usd_per_million=1.0)
    assert r.cost["break_even_tokens_per_s"] == pytest.approx(1000)
    assert r.cost["break_even_share"] == pytest.approx(1000 / r.serving["tokens_per_s"])


def test_cached_tokens_cost_only_what_they_add():
    """Cached tokens are never computed; what they cost is the longer attention of the rest, far below a fresh token."""
    r = ask(prompt=8000, cached=4000, output=1)
    fresh, cached = r.cost["usd_per_million_input_tokens"], r.cost["usd_per_million_cached_input_tokens"]
    assert 0 < cached < fresh / 5


def test_a_prefill_pool_pays_for_the_input():
    """Input is priced on the pool: its price an hour over its prompt tokens a second; without a price for that chip there is none at all."""
    r = ask(model="llama-3.1-70b", devices=4, prompt=4000, prefill_hardware="h200-sxm", prefill_devices=4, batch=16)
    p = r.serving["disaggregated"]
    assert r.cost["usd_per_million_input_tokens"] == pytest.approx(4 * chip("h200-sxm").usd_per_hour / 3600 / p["prefill_tokens_per_s"] * 1e6)
    unpriced = next(i for i in ids() if chip(i).usd_per_hour is None and chip(i).peak("bf16") and (chip(i).memory_bytes or 0) > 100e9 and chip(i).link_bytes_per_s)
    assert ask(model="llama-3.1-70b", devices=4, prefill_hardware=unpriced, prefill_devices=4).cost["usd_per_million_input_tokens"] is None


def test_a_price_that_was_given_is_that_of_its_chip():
    """H100 at 2 USD/h also prefills for 2; another chip costs what the catalogue says, whatever the first was bought for."""
    of = lambda where, **price: ask(prefill_hardware=where, prompt=4000, memory=1e12, **price)
    same = of("h100-sxm", usd_per_hour=2.0)
    rate = same.serving["disaggregated"]["prefill_tokens_per_s"]
    assert same.cost["usd_per_million_input_tokens"] == pytest.approx(2.0 / 3600 / rate * 1e6)
    other = of("h200-sxm", purchase_usd=30_000.0)
    rate = other.serving["disaggregated"]["prefill_tokens_per_s"]
    assert other.cost["usd_per_million_input_tokens"] == pytest.approx(chip("h200-sxm").usd_per_hour / 3600 / rate * 1e6)


def test_a_prefill_pool_is_expected_at_what_it_reaches():
    """At 60 % of the peak a prompt of 4,000 tokens on a pool takes 1/0.6 of its limit or more, and its price and energy follow: 700 W x PUE 1.2."""
    r = ask(prefill_hardware="h100-sxm", prompt=4000, usd_per_hour=3.6, pue=1.2, efficiency_compute=0.6, efficiency_bandwidth=0.8)
    took = r.serving["disaggregated"]["expected_prefill_share_s"]
    assert took >= r.serving["disaggregated"]["prefill_share_s"] / 0.6 * (1 - 1e-9)
    assert r.cost["expected_usd_per_million_input_tokens"] == pytest.approx(0.001 * took / 4000 * 1e6)
    assert r.energy["joules_per_input_token"] == pytest.approx(700 * 1.2 * took / 4000)
    two = ask(hardware="h200-sxm", prefill_hardware="l4", model="llama-3.2-1b", prompt=4000)
    assert two.energy["joules_per_input_token"] == pytest.approx(72 * two.serving["disaggregated"]["prefill_share_s"] / 4000)


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 128), st.integers(1, 4000), st.floats(0.1, 100), st.floats(1.1, 10))
def test_prices_follow_the_chip_price(batch, prompt, price, factor):
    reports = [ask(batch=batch, prompt=prompt, usd_per_hour=p) for p in (price, price * factor)]
    assume(reports[0].memory["fits"])  # what does not fit has no price
    one, two = (r.cost for r in reports)
    for key in ("usd_per_million_input_tokens", "usd_per_million_output_tokens", "usd_per_million_output_tokens_all_in"):
        assert two[key] == pytest.approx(factor * one[key])
    assert two["flops_per_usd_peak"] == pytest.approx(one["flops_per_usd_peak"] / factor)


def test_a_chip_without_a_price_says_so():
    r = ask(hardware="gb200", model="llama-3.1-70b")
    assert r.cost["usd_per_million_output_tokens"] is None and r.cost["usd_per_hour"] is None and r.cost["flops_per_usd_peak"] is None
    assert ask(hardware="h100-sxm").cost["source"]


# ---- energy -----------------------------------------------------------------------------------------------------------


def test_energy_of_a_step_by_hand():
    """8B, batch 1, one token of context: 700 W x 4.48 ms = 3.14 J at most; 15 GB x 8 bit x 3.92 pJ = 0.47 J of it moves memory; 15 GFLOP x 0.71 pJ = 0.011 J computes."""
    e = ask(prompt=1, output=1).energy
    assert e["joules_per_output_token"] == pytest.approx(700 * 4.48e-3, rel=0.01)
    assert e["dram_joules_per_output_token"] == pytest.approx(15.01e9 * 8 * 3.92e-12, rel=0.01)
    assert e["compute_joules_per_output_token"] == pytest.approx(15.01e9 * 700 / 989.4e12, rel=0.01)
    assert e["rest_joules_per_output_token"] == pytest.approx(e["joules_per_output_token"] - e["dram_joules_per_output_token"] - e["compute_joules_per_output_token"])


def test_energy_by_group_adds_up():
    for more in ({}, {"model": "mixtral-8x7b", "hardware": "h200-sxm", "batch": 64}, {"draft": 3, "batch": 4}, {"devices": 2, "batch": 16}):
        e = ask(**more).energy
        assert sum(g["dram_joules"] for g in e["groups"]) == pytest.approx(e["dram_joules_per_output_token"])
        assert sum(g["compute_joules"] for g in e["groups"]) == pytest.approx(e["compute_joules_per_output_token"])
        assert e["dram_joules_per_output_token"] + e["compute_joules_per_output_token"] < e["joules_per_output_token"]


def test_arithmetic_takes_no_more_than_the_board():
    """Published 1.05 pJ a FLOP (45 nm) where the board takes more at its peak, the board's own TDP / peak where it takes less."""
    assert cost.compute_pj_per_flop(chip("a100-80gb-sxm"), "bf16")[0] == 1.05
    assert cost.compute_pj_per_flop(chip("h100-sxm"), "bf16")[0] == pytest.approx(700 / 989.4)
    for id in ids():
        c = chip(id)
        if c.tdp_w and c.peak("bf16"):
            assert 0 < cost.compute_pj_per_flop(c, "bf16")[0] <= c.tdp_w / c.peak("bf16") * 1e12 * (1 + 1e-9), id


def test_pue_and_unknown_power():
    assert ask(pue=1.5).energy["joules_per_output_token"] == pytest.approx(1.5 * ask().energy["joules_per_output_token"])
    none = ask(hardware="tpu-v5e", devices=2).energy
    assert none["joules_per_output_token"] is None and none["flops_per_joule_peak"] is None


def test_a_wider_batch_shares_the_weights_energy():
    """Joules a token fall as the batch grows, since the weights are read once for all."""
    values = [ask(batch=b, prompt=128).energy["dram_joules_per_output_token"] for b in (1, 4, 16, 64)]
    assert values == sorted(values, reverse=True) and values[0] > 20 * values[-1]
