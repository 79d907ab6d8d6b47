"""The workings of the figures: every key has one for every kind of scenario, and what it states is what a hand calculation gives."""

from __future__ import annotations

import pytest

from roofline.explain import KEYS, explain
from roofline.report import evaluate
from roofline.scenario import Scenario, resolve

SERVE = Scenario(model="llama-3.1-70b", hardware="h200-sxm", devices=2, weights="fp8", batch=32, prompt=8000, output=512)
SCENARIOS = {
    "serve": SERVE, "moe": Scenario(model="deepseek-v3", hardware="h200-sxm", devices=8, draft=2), "misfit": Scenario(model="llama-3.1-405b", hardware="rtx-4090"),
    "windowed": Scenario(model="gpt-oss-20b", hardware="apple-m4-max", kv="q8_0"), "pipeline": Scenario(model="gemma-3-27b", hardware="h100-sxm", devices=4, pp=2),
    "hybrid": Scenario(model="jamba-v0.1", hardware="h100-sxm", devices=2), "recurrent": Scenario(model="falcon-mamba-7b", hardware="h100-sxm"),
}


def steps(scenario: Scenario, key: str) -> dict:
    """{step key: its values} of a working; of several alike, the last."""
    found = explain(evaluate(scenario).to_dict(), key, resolve(scenario).arch)["steps"]
    return {s["key"]: {k: v.replace("\u2009", " ") for k, v in s["values"].items()} for s in found}


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("name", SCENARIOS)
def test_every_figure_has_a_working(name, key):
    found = explain(evaluate(SCENARIOS[name]).to_dict(), key, resolve(SCENARIOS[name]).arch)
    assert found["steps"] and found["constants"]
    assert all(isinstance(v, str) and v for s in found["steps"] for v in s["values"].values())


def test_the_cache_of_a_token():
    # 80 layers x 2 (K and V) x 8 heads x 128 numbers x 2 bytes
    assert steps(SERVE, "kv_token")["kv.total"]["result"] == "328 kB"
    assert steps(SERVE, "kv_token")["kv.layers"] == {"layers": "80", "kind": "full", "numbers": "2,048", "bytes": "2.00", "result": "328 kB"}
    # 61 layers x (512 latent + 64 rope) x 2 bytes, whatever is drafted
    assert steps(SCENARIOS["moe"], "kv_token")["kv.layers"]["result"] == "70.3 kB"
    # 24 layers x 2 x 8 x 64 numbers x 8.5 bits, half of them in windows of 128
    windowed = steps(SCENARIOS["windowed"], "kv_token")
    assert windowed["kv.window"]["window"] == "128" and windowed["kv.window"]["layers"] == windowed["kv.layers"]["layers"] == "12"
    assert windowed["kv.total"]["result"] == "26.1 kB"


def test_the_place_on_the_chart():
    assert steps(SERVE, "ridge")["ridge"]["result"] == "412"  # 1979e12 / 4.8e12
    intensity = steps(SERVE, "intensity.decode")["intensity"]
    assert intensity["result"] == "32.7" and steps(SERVE, "intensity.decode")["intensity.ridge"]["bound"] == "memory"
    # Half of 5.14 TFLOP in 16.4 ms on each of two chips, against 1979 TFLOP/s
    assert steps(SERVE, "rate.decode")["rate"]["result"] == "157 TFLOP/s"
    # 4.45 TFLOP of FP8 products at 1979 TFLOP/s and 693 GFLOP of attention at half of that, on two chips: 1.49 ms of 16.4
    assert steps(SERVE, "utilisation")["utilisation"] == {"compute": "1.49 ms", "time": "16.4 ms", "result": "9.11 %"}


def number(text: str) -> float:
    """What a written quantity is worth: "5.14 TFLOP/s" is 5.14e12."""
    value, unit = text.replace(",", "").split()
    scale = {"p": 1e-12, "n": 1e-9, "µ": 1e-6, "m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}
    return float(value) * (1.0 if unit in ("s", "B", "FLOP", "B/s", "FLOP/s") else scale[unit[0]])


@pytest.mark.parametrize("name", [n for n in SCENARIOS if n != "misfit"])
@pytest.mark.parametrize("more", [{}, {"batch": 12, "pp": 2, "devices": None, "tp": 4}, {"batch": 3, "pp": 4, "devices": None, "tp": 2}])
def test_the_sums_that_are_shown_come_out(name, more):
    """Work / (chips x rate) and bytes / chips / bandwidth are the times beside them, and no chip is said to pass its peak."""
    scenario = SCENARIOS[name].replace(memory=1e15, **({} if name == "windowed" else more))
    for key in ("ttft", "tpot"):
        shown = steps(scenario, key)
        work = shown["time.compute"]
        assert number(work["flops"]) / int(work["chips"]) / number(work["reached"]) == pytest.approx(number(work["result"]), rel=0.02)
        assert number(work["reached"]) <= 1.01 * number(work["peak"])
        moved = shown.get("time.memory") or shown["time.memory.uneven"]
        assert number(moved["per_chip"]) / number(moved["bandwidth"]) == pytest.approx(number(moved["result"]), rel=0.02)
        if "time.memory" in shown:
            assert (number(moved["weights"]) + number(moved["kv"])) / int(moved["chips"]) == pytest.approx(number(moved["per_chip"]), rel=0.02)


def test_the_work_and_the_bytes_of_a_step():
    # 2 x (70.55e9 - 1.05e9 of the embedding) x 32 tokens, and 4 x 64 heads x 128 x 8256 x 32 x 80 of attention
    work = steps(SERVE, "flops")["flops"]
    assert work["dense"] == "4.45 TFLOP" and work["attention"] == "693 GFLOP" and work["result"] == "5.14 TFLOP"
    moved = steps(SERVE, "bytes")["bytes"]
    assert moved["weights"] == "70.6 GB" and moved["read"] == "86.6 GB" and moved["result"] == "157 GB"


def test_what_fits():
    assert steps(SERVE, "max_batch")["room.max_batch"]["result"] == "74"
    assert steps(SCENARIOS["misfit"], "max_batch")["room.max_batch"]["result"] == "0"
    # With half of the weights in host memory the rest of them is what is there; with tensor parallelism 16 a cache of 8 heads is there twice.
    half = steps(SERVE.replace(devices=1, offload=0.5), "max_batch")["room.max_batch"]
    assert number(half["weights"]) == pytest.approx(70.6e9 / 2 + 1.05e9 * 1.5, rel=0.02)
    twice = steps(SERVE.replace(devices=16), "max_batch")["room.max_batch"]
    assert number(twice["sequence"]) == pytest.approx(2 * 327_680 * 8512, rel=0.01)


def test_weights_are_told_by_kind():
    kinds = [s["values"]["group"] for s in explain(evaluate(SCENARIOS["moe"]).to_dict(), "weights")["steps"][:-1]]
    assert {"experts", "shared_experts", "router", "attention_projection"} <= set(kinds)


def test_recurrent_layers_keep_a_state_instead():
    assert "kv.state" in steps(SCENARIOS["recurrent"], "kv_token")


@pytest.mark.parametrize("more, price", [({"usd_per_hour": 2.0, "usd_per_kwh": 0.5, "pue": 1.5}, 2 + 0.7 * 1.5 * 0.5), ({"purchase_usd": 26280.0, "years": 3.0}, 1.0), ({}, None)])
def test_the_bill_is_worked_out_from_the_price_it_uses(more, price):
    """An hour of one chip as billed, power or purchase included, and where that is from; the catalogue's price only where it is used."""
    report = evaluate(Scenario(batch=8, dp=2, **more)).to_dict()
    found = explain(report, "cost")
    value = found["steps"][0]["values"]
    row = next(c for c in found["constants"] if c["name"] == "price")
    price = price or report["hardware"]["usd_per_hour"]
    assert value["price"] == f"{price:.3g}" or float(value["price"]) == pytest.approx(price, rel=5e-3)
    assert row["source"] == report["cost"]["source"] and (row["source"].startswith("AWS")) is (not more)
    assert report["cost"]["usd_per_million_output_tokens"] == pytest.approx(price * 2 / 3600 / report["serving"]["tokens_per_s"] * 1e6)
