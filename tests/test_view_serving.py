"""The Serving view's texts: against the report they come from, the queue's curve against its own law, and every part of every kind of scenario."""

from __future__ import annotations

import json

import pytest

from roofline import view_serving
from roofline.errors import InputError
from roofline.report import evaluate
from roofline.scenario import Scenario
from roofline.view_serving import serving

DENSE = Scenario(model="llama-3.1-70b", hardware="h200-sxm", devices=2, weights="fp8", batch=32, prompt=8000, output=512)
MIXTURE = Scenario(model="deepseek-v3", hardware="h200-sxm", devices=8, batch=32, prompt=4096, output=512)
ALL = {
    "dense": DENSE,
    "mixture": MIXTURE,
    "everything": MIXTURE.replace(
        draft=2, rate=5.0, chunk=512, cached=1000, prefill_hardware="h100-sxm", prefill_devices=16, api_usd_per_million=2.0
    ),
    "too much traffic": DENSE.replace(rate=1e4),
    "misfit": DENSE.replace(model="llama-3.1-405b", weights="bf16"),
    "no memory known": DENSE.replace(hardware="xeon-6980p", devices=1),
    "hybrid": Scenario(model="qwen3-next-80b-a3b", hardware="h200-sxm", devices=2, batch=8),
    "one token": Scenario(prompt=1, output=1),
}


@pytest.mark.parametrize("part", view_serving.PARTS)
@pytest.mark.parametrize("name", ALL)
def test_every_part_of_every_scenario_is_plain_data(name, part):
    found = serving(ALL[name], part)
    json.dumps(found, allow_nan=False)
    shares = [p["width"] for key in ("reserve", "energy") for p in (found.get(key) or {}).get("parts", [])]
    assert all(0 <= w <= 1 for w in shares)
    assert not shares or sum(shares) == pytest.approx(1, abs=1e-3)


def test_texts_are_those_of_the_report():
    report = evaluate(ALL["everything"]).to_dict()
    found = serving(ALL["everything"])
    at = {row["key"]: row["limit"] for row in found["figures"]}
    assert at["tokens_per_s_per_user"] == f"{report['serving']['tokens_per_s_per_user']:.0f}"
    assert found["speculation"]["tokens"] == "2.19"  # 1 + 0.7 + 0.49
    assert found["mixed"]["steps"] == "7"  # 3,096 new tokens in pieces of 512
    here = next(row for row in found["speculation"]["rows"] if row["here"])
    assert here["speedup"] == found["speculation"]["speedup"]
    money = serving(ALL["everything"], "money")["money"]
    assert money["per_hour"] == "$63.3" and not money["even"]["reachable"]


def test_pools_are_told_as_whole_instances_of_one_side():
    scenario = DENSE.replace(prompt=12000, output=200, prefill_hardware="h100-sxm", prefill_devices=4)
    pools, ratio = serving(scenario)["pools"], evaluate(scenario).serving["disaggregated"]["prefill_instances_per_decode"]
    assert ratio > 1 and pools["decode_instances"] == "1" and float(pools["prefill_instances"]) == pytest.approx(ratio, rel=0.05)


def test_the_queue_rises_with_the_rate_and_ends_below_capacity():
    rows, start = [], 0
    while start is not None:
        found = view_serving.queue(DENSE.replace(rate=0.5), start)
        rows += found["rows"]
        start = found["next"]
    rows.sort(key=lambda row: row["x"])
    assert sum(row["here"] for row in rows) == 1
    for a, b in zip(rows, rows[1:]):
        assert a["p50"] <= a["p90"] <= a["p99"]
        assert b["p99"] >= a["p99"] * (1 - 1e-9) and b["tpot"] >= a["tpot"] * (1 - 1e-6)
    own = evaluate(DENSE.replace(rate=0.5)).serving["arrivals"]["expected"]
    here = next(row for row in rows if row["here"])
    assert here["p90"] == own["ttft_p90_s"] and here["tpot"] == own["tpot_s"]
    # However idle, a token takes at least one step of a lone request.
    assert rows[0]["tpot"] >= evaluate(DENSE.replace(batch=1)).serving["tpot_s"] * (1 - 1e-9)


def test_experts_read_grow_from_active_to_all():
    found = serving(MIXTURE, "experts")["experts"]
    assert found["routing"][0] == 8 and found["routing"][-1] == pytest.approx(256, rel=1e-6)
    assert found["read"] == "163"  # 256 (1 - (1 - 8/256)^32)
    assert serving(DENSE, "experts")["experts"] is None


def test_an_unknown_part_is_refused():
    with pytest.raises(InputError, match="part"):
        serving(DENSE, "kitchen")


@pytest.mark.parametrize("change", [{}, {"draft": 3}, {"batch": 8, "prefill_hardware": "h100-sxm", "prefill_devices": 2}, {"devices": 2, "dp": 2, "tp": 1}, {"batch": 32}])
def test_the_strip_of_figures_says_what_serving_says(change):
    """Drafts divide the step among the tokens it yields and a pool of its own takes the prompt, at the limit and in the expectation alike."""
    from roofline import view

    report = evaluate(Scenario(model="llama-3.1-8b", hardware="h100-sxm", **change)).to_dict()
    serving, strip = report["serving"], {row["key"]: row for row in view.figures(report)}
    for key, field, write in (("ttft", "ttft_s", view.seconds), ("tpot", "tpot_s", view.seconds), ("user", "tokens_per_s_per_user", view._rate), ("total", "tokens_per_s", view._rate)):
        assert strip[key]["value"] == write(serving[field])
        assert strip[key]["expected"]["value"] == write(serving["expected_" + field])
    assert strip["cost"]["expected"]["value"] == view._dollars(report["cost"]["expected_usd_per_million_output_tokens"])
    # A prompt that comes by itself waits less than all prompts of a batch read at once, which is told where it differs.
    together = report["scenario"].get("batch", 1) > 1 and not report["scenario"].get("prefill_hardware")
    assert ("alone" in strip["ttft"]) == together
    if together:
        assert strip["ttft"]["alone"] == {"basis": "expected", "value": view.seconds(serving["expected_ttft_alone_s"])}


def test_speculation_is_shown_as_expected_too():
    """Checking 5 tokens a request at what engines reach: the gain is smaller than at the limits and ends at a smaller batch."""
    asked = Scenario(model="llama-3.1-70b", hardware="h200-sxm", devices=2, weights="fp8", prompt=1024, draft=4, draft_model="llama-3.2-1b", batch=128)
    found = serving(asked)["speculation"]
    spec = evaluate(asked).serving["speculation"]
    plain = evaluate(asked.replace(draft=0)).serving["expected_tpot_s"]
    assert spec["expected_plain_tpot_s"] == pytest.approx(plain)
    assert spec["expected_speedup"] == pytest.approx(plain / evaluate(asked).serving["expected_tpot_s"])
    assert found["acceptance"].startswith("70") and found["fed"] == "5" and found["expected"]["pays"] and spec["expected_speedup"] < spec["speedup"]
    here = next(row for row in found["rows"] if row["here"])
    assert here["expected"] == found["expected"]["speedup"]
    paying = lambda key: [row["batch"] for row in found["rows"] if row[key]]
    assert paying("expected_pays") == paying("pays")[: len(paying("expected_pays"))]
    assert serving(asked.replace(engine="none"))["speculation"]["expected"] is None


@pytest.mark.parametrize("model, experts", [("llama-3.1-70b", False), ("qwen3-30b-a3b", True)])
def test_checking_drafts_is_paid_for(model, experts):
    """A verify step of 5 tokens a request: five times the products and the attention; more experts are read; the cache once."""
    asked = Scenario(model=model, hardware="h200-sxm", devices=2, batch=4)
    one, five = evaluate(asked).decode, evaluate(asked.replace(draft=4)).decode
    for group in ("attention_core", "attention_projection", "lm_head", "experts" if experts else "mlp"):
        work = [sum(op.flops for op in d.operators if op.group == group) for d in (one, five)]
        assert work[1] == pytest.approx(5 * work[0]), group
    assert five.bytes["kv_read"] == pytest.approx(one.bytes["kv_read"], rel=0.01)
    if experts:
        # 128 (1 - (120/128)^20) over 128 (1 - (120/128)^4) experts
        read = [sum(op.weight_bytes for op in d.operators if op.group == "experts") for d in (one, five)]
        assert read[1] / read[0] == pytest.approx((1 - 0.9375**20) / (1 - 0.9375**4), rel=1e-3)
    else:
        assert five.bytes["weights"] == pytest.approx(one.bytes["weights"])
