"""Levers and flip points: each lever does what it says, ranking is honest, and every flip is where the engine flips."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roofline import InputError, Scenario, evaluate
from roofline.flips import flip_points, speculation_range
from roofline.levers import GOALS, HIGH, candidates, compare, figures, levers, worst_gap
from roofline.scenario import resolve

ASK = Scenario(model="llama-3.1-70b", hardware="h100-sxm", devices=4, batch=16, prompt=4000, output=200, engine="none")


@pytest.fixture(scope="module")
def answer():
    return levers(ASK)


def row(answer, id):
    return next(r for r in answer["levers"] if r["id"] == id)


def test_every_lever_of_the_reference_is_there():
    """Design reference, section 6: quantise weights, activations and KV; batch; speculation; fusion; paging; prefix caching; MoE; TP, PP, EP; separate and chunked prefill; hardware; near memory."""
    one = {lever.id for lever in candidates(resolve(ASK.replace(fused=False, block=128)))}
    two = {lever.id for lever in candidates(resolve(Scenario(model="mixtral-8x7b", hardware="h100-sxm", devices=4, tp=2, dp=2, weights="int4")))}
    for id in ("weights-fp8", "weights-int4", "kv-fp8", "kv-int4", "batch-2x", "batch-half", "speculate-3", "fused", "paged", "prefix", "moe", "tp-2x", "pp-2x", "dp-2x", "disaggregate", "chunked", "near-memory"):
        assert id in one, id
    assert any(id.startswith("chip-") for id in one) and {"ep", "activations-8"} <= two
    assert "attention-dp" in {lever.id for lever in candidates(resolve(Scenario(model="deepseek-v3", hardware="h200-sxm", devices=8)))}


def test_each_lever_is_the_scenario_with_one_change(answer):
    """One engine: a row's figures are those of evaluating its change, and its gain is their ratio."""
    for r in answer["levers"][:12]:
        now = figures(evaluate(ASK.replace(**r["change"])))
        assert r["figures"] == now
        for goal, key in GOALS.items():
            if r["gain"][goal] is not None:
                assert r["gain"][goal] == pytest.approx(now[key] / answer["base"][key] if goal in HIGH else answer["base"][key] / now[key])
        assert Scenario.from_fragment(r["fragment"])[0] == ASK.replace(**r["change"])
    json.dumps(answer, allow_nan=False)


@pytest.mark.parametrize("goal", GOALS)
def test_ranking_is_by_the_goal(goal):
    rows = levers(ASK, goal)["levers"]
    gains = [r["gain"][goal] if r["gain"][goal] is not None and r["fits"] is not False else 0.0 for r in rows]
    assert gains == sorted(gains, reverse=True)
    with pytest.raises(InputError, match="goal"):
        levers(ASK, "beauty")


def test_gains_by_hand(answer):
    """Memory-bound decode of 70B: twice the bandwidth halves TPOT; TP 8 halves it; replicas leave it and double what is served; a batch twice as large costs its cache."""
    assert row(answer, "near-memory")["gain"]["tpot"] == pytest.approx(2, rel=1e-6)
    assert row(answer, "tp-2x")["gain"]["tpot"] == pytest.approx(2, rel=0.01)
    assert row(answer, "dp-2x")["gain"]["tpot"] == pytest.approx(1) and row(answer, "dp-2x")["gain"]["throughput"] == pytest.approx(2) and row(answer, "dp-2x")["gain"]["per_chip"] == pytest.approx(1)
    weights, cache = 2 * (70_553_706_496 - 128256 * 8192), 327_680 * 4100
    assert row(answer, "batch-2x")["gain"]["tpot"] == pytest.approx((weights + 16 * cache) / (weights + 32 * cache), rel=0.01)
    assert row(answer, "kv-fp8")["gain"]["tpot"] == pytest.approx((weights + 16 * cache) / (weights + 8 * cache), rel=0.01)
    assert row(answer, "prefix")["gain"]["tpot"] == pytest.approx(1) and row(answer, "prefix")["gain"]["ttft"] > 1.9


def test_a_lever_shows_where_its_point_goes(answer):
    """Narrower weights move the decode point right (more FLOPs a byte); more bandwidth lifts it straight up."""
    fp8, near = row(answer, "weights-fp8"), row(answer, "near-memory")
    assert fp8["to"]["intensity_flops_per_byte"] > fp8["from"]["intensity_flops_per_byte"]
    assert near["to"]["intensity_flops_per_byte"] == pytest.approx(near["from"]["intensity_flops_per_byte"])
    assert near["to"]["attainable_flops_per_s"] == pytest.approx(2 * near["from"]["attainable_flops_per_s"])


def test_smoothness(answer):
    """The longest gap between tokens: a step and a whole prompt of 4,000 tokens; in chunks one mixed step; with a pool of its own just a step."""
    base = evaluate(ASK)
    one = 2 * 69.5e9 * 4000 / 4 / 989.4e12
    assert worst_gap(base) == pytest.approx(base.decode.limit_s + one, rel=0.05)
    assert row(answer, "disaggregate")["figures"]["worst_gap_s"] == base.decode.limit_s
    assert base.decode.limit_s < row(answer, "chunked")["figures"]["worst_gap_s"] < worst_gap(base) / 3


def test_memory_is_that_of_a_chip(answer):
    """Twice the tensor parallelism halves weights and cache on each chip; a second replica, whose chips hold as much, gains nothing.
    Attention on each chip for its own users keeps every chip's share of the experts, but a whole copy of the rest."""
    assert row(answer, "tp-2x")["gain"]["memory"] == pytest.approx(2, rel=0.02) and row(answer, "dp-2x")["gain"]["memory"] == 1
    spread = row(levers(ASK.replace(model="mixtral-8x7b", batch=16)), "attention-dp")
    experts, rest = 2 * 32 * 8 * 3 * 4096 * 14336, 2 * (32 * (2 * 4096 * 4096 + 2 * 4096 * 1024) + 2 * 32000 * 4096)
    cache, working = 4 * 131072 * 4200, 8192 * 2 * (2 * 4096 + 2 * 2 * 14336) + 4 * 4 * 32000
    assert spread["gain"]["memory"] < 1 and spread["figures"]["bytes_per_chip"] == pytest.approx(experts / 4 + rest + cache + working, rel=1e-3)


def test_a_pool_is_held_against_one_prompt(answer):
    """Prefill on four chips of their own, the same as before, reads one prompt as fast as before, and then sends its cache: no gain for a
    prompt that comes alone, whatever sixteen at once take."""
    lever = row(answer, "disaggregate")
    alone = evaluate(ASK).serving["ttft_alone_s"]
    assert lever["gain"]["ttft"] == pytest.approx(alone / (alone + 327_680 * 4000 / 4 / 50e9)) and lever["gain"]["ttft"] < 1


def test_chunks_cost_what_their_throughput_says(answer):
    """The same chips, so many more tokens over whole requests: so much less for each."""
    gain = row(answer, "chunked")["gain"]
    assert gain["throughput"] > 1.01 and gain["cost"] == pytest.approx(gain["throughput"], rel=1e-9)


def test_speculation_that_never_hits_is_ranked_last():
    rows = levers(ASK.replace(acceptance=0.0))["levers"]
    assert all(r["gain"]["tpot"] < 1 for r in rows if r["id"].startswith("speculate"))


def test_what_does_not_fit_gets_its_way_out_first():
    """70B in BF16 on one H100: what makes it fit leads the list, and everything listed before the misfits has a time."""
    answer = levers(Scenario(model="llama-3.1-70b", hardware="h100-sxm", prompt=2000))
    first = answer["levers"][0]
    assert answer["base"]["fits"] is False and first["fits"] and first["figures"]["tpot_s"]
    fits = [r["fits"] for r in answer["levers"]]
    assert fits == sorted(fits, reverse=True)


def test_another_chip_brings_its_own_figures():
    """A scenario that overrides bandwidth or price does not carry them to another chip."""
    answer = levers(Scenario(model="llama-3.1-8b", hardware="h100-sxm", bandwidth=1e12, usd_per_hour=1.0))
    other = next(r for r in answer["levers"] if r["id"].startswith("chip-"))
    assert other["change"]["bandwidth"] is None and other["change"]["usd_per_hour"] is None
    assert other["gain"]["tpot"] > 1.05


def test_what_is_in_use_is_shown_by_its_loss():
    """FP8 cache and half the prompt cached: undoing either loses; unfused attention costs the prompt its scores."""
    answer = levers(ASK.replace(kv="fp8", cached=2000, weights="fp8", draft=3))
    used = {r["id"]: r["gain"] for r in answer["in_use"]}
    assert set(used) == {"without-fused", "without-weights", "without-kv", "without-prefix", "without-speculation"}
    assert used["without-kv"]["tpot"] < 1 and used["without-prefix"]["ttft"] < 1 and used["without-weights"]["tpot"] < 1 and used["without-speculation"]["tpot"] < 1


# ---- flip points ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scenario", [
    Scenario(model="llama-3.1-8b", hardware="h100-sxm"), Scenario(model="llama-3.1-8b", hardware="h100-sxm", weights="int4"), Scenario(model="llama-3.1-8b", hardware="h100-sxm", weights="fp8"),
    Scenario(model="llama-3.1-70b", hardware="h200-sxm", devices=8), Scenario(model="llama-3.1-8b", hardware="h100-sxm", draft=3), Scenario(model="llama-3.1-8b", hardware="h100-sxm", devices=2, pp=2),
])
def test_operators_flip_where_it_says(scenario):
    """Each matrix is memory-bound just below its batch and compute-bound just above it."""
    tiny = scenario.replace(prompt=1, output=1, memory=1e15)
    for flip in flip_points(resolve(tiny))["operators"]:
        for factor, bound in ((0.98, "memory"), (1.02, "compute")):
            batch = max(2, round(flip["batch"] * factor / scenario_step(tiny)) * scenario_step(tiny))
            ops = evaluate(tiny.replace(batch=batch)).decode.operators
            op = next(o for o in ops if o.name == flip["name"] or o.name.startswith("lm_head") and flip["name"].startswith("lm_head"))
            assert op.bound == bound, (flip, batch)


def scenario_step(s):
    return s.pp or 1


def test_routed_experts_flip_later():
    """Mixtral: each of 8 experts sees a quarter of the tokens: 4 x 295 = 1,181 tokens; just below and above it."""
    s = Scenario(model="mixtral-8x7b", hardware="h100-sxm", devices=2, prompt=1, output=1, memory=1e15)
    flip = next(o for o in flip_points(resolve(s))["operators"] if o["group"] == "experts")
    assert flip["batch"] == pytest.approx(989.4e12 / 3.35e12 * 8 / 2)
    for factor, bound in ((0.98, "memory"), (1.02, "compute")):
        ops = evaluate(s.replace(batch=round(flip["batch"] * factor))).decode.operators
        assert {o.bound for o in ops if o.group == "experts"} == {bound}


@pytest.mark.parametrize("scenario", [Scenario(model="llama-3.1-8b", hardware="h100-sxm", batch=8), Scenario(model="llama-3.1-70b", hardware="h100-sxm", devices=16, batch=4), Scenario(model="gemma-3-27b", hardware="h100-sxm", batch=4)])
def test_the_cache_passes_the_weights_where_it_says(scenario):
    """A chip's cache traffic of one step against its weight traffic, just below and above the context; replication over TP 16 counts."""
    context = flip_points(resolve(scenario))["kv_passes_weights_context"]
    for factor, more in ((0.98, False), (1.02, True)):
        r = evaluate(scenario.replace(prompt=round(context * factor) - 1, output=1, memory=1e15))
        tp = r.layout["tp"]
        shards = min(tp, max(a.kv_heads for a in resolve(scenario).arch.attentions))
        assert (r.decode.bytes["kv_read"] / shards > r.decode.bytes["weights"] / tp) is more


def test_the_cache_that_is_read_is_not_the_cache_that_is_held():
    """DeepSeek-V3.2 reads 2,048 latents of 1,152 B and an index key of 256 B for every token held, in 61 layers; Gemma 3n's 15 last
    layers hold nothing and read what the 20 before them hold."""
    sparse = resolve(Scenario(model="deepseek-v3.2", hardware="h200-sxm", devices=8, batch=8, kv="bf16"))
    weights = sum(op.weight_bytes / (1 if op.name == "norms and biases" else 8) for op in evaluate(sparse).decode.operators)
    want = (weights / 8 / 61 - 2048 * 1152) / 256
    assert flip_points(sparse)["kv_passes_weights_context"] == pytest.approx(want, rel=1e-6)
    s = Scenario(model="gemma-3n-e4b", hardware="h200-sxm", batch=8, memory=1e15)
    context = flip_points(resolve(s))["kv_passes_weights_context"]
    here = evaluate(s.replace(prompt=round(context) - 1, output=1)).decode.bytes
    assert here["kv_read"] == pytest.approx(here["weights"], rel=1e-4)


def test_a_pipeline_speculates_on_micro_batches():
    """Four stages each work on a quarter of the requests, so speculation stops paying at four times the batch of one stage."""
    s = Scenario(model="llama-3.1-70b", hardware="h100-sxm", tp=2, prompt=1000, output=100, draft=4, memory=1e15)
    one, four = (flip_points(resolve(s.replace(pp=pp)))["speculation_stops_paying_batch"] for pp in (1, 4))
    assert four == pytest.approx(4 * one, abs=4)
    pays = lambda batch: evaluate(s.replace(pp=4, batch=batch)).serving["speculation"]["speedup"] > 1
    assert pays(four - 1) and not pays(four)


def test_a_tied_head_turns_too():
    """Llama 3.2 1B keeps its 128,256 x 2,048 table once and multiplies with it: in BF16 on H100 from 989.4e12 / 3.35e12 requests on."""
    rows = flip_points(resolve(Scenario(model="llama-3.2-1b", hardware="h100-sxm")))["operators"]
    assert [row["batch"] for row in rows if row["group"] == "lm_head"] == [pytest.approx(989.4e12 / 3.35e12, rel=1e-3)]


def test_speculation_stops_where_it_says():
    """Just below the batch it pays, at the batch it does not; a mixture may need some batch to start."""
    s = Scenario(model="llama-3.1-8b", hardware="h100-sxm", prompt=64, output=64, draft=4, memory=1e15)
    flip = flip_points(resolve(s))
    stop = flip["speculation_stops_paying_batch"]
    assert flip["speculation_pays_from_batch"] == 1 and 50 < stop < 1000
    pays = lambda batch: evaluate(s.replace(batch=batch)).serving["speculation"]["speedup"] > 1
    assert pays(stop - 1) and not pays(stop)
    assert flip_points(resolve(s.replace(acceptance=0.0)))["speculation_pays_from_batch"] is None
    moe = s.replace(model="deepseek-v3", hardware="h200-sxm", devices=8)
    start = flip_points(resolve(moe))["speculation_pays_from_batch"]
    assert start > 1 and evaluate(moe.replace(batch=start)).serving["speculation"]["speedup"] > 1 >= evaluate(moe.replace(batch=start - 1)).serving["speculation"]["speedup"]


@settings(max_examples=10, deadline=None)
@given(st.floats(0.3, 0.95), st.integers(1, 7), st.integers(32, 4000))
def test_surer_drafts_pay_for_longer(acceptance, draft, prompt):
    from roofline.flips import roofs_for
    r, better = (resolve(Scenario(model="llama-3.1-8b", hardware="h100-sxm", prompt=prompt, output=32, draft=draft, acceptance=a)) for a in (acceptance, min(0.99, acceptance + 0.05)))
    starts, stop = speculation_range(r, roofs_for(r))
    _, later = speculation_range(better, roofs_for(better))
    assert starts is None or later is None or stop is not None and later >= stop


def test_experts_ideal_and_actual():
    """DeepSeek-V3: 8, 57.4, 163.3 and 251.6 distinct experts at 1, 8, 32 and 128 tokens; at batch 1 the point is where its active parameters promise, then it falls behind."""
    p = flip_points(resolve(Scenario(model="deepseek-v3", hardware="h200-sxm", devices=8)))["distinct_experts"]
    at = dict(zip(p["batch"], p["uniform"], strict=True))
    assert [round(at[b], 1) for b in (1, 8, 32, 128)] == [8.0, 57.4, 163.3, 251.6]
    assert p["actual"][0]["intensity_flops_per_byte"] == pytest.approx(p["ideal"][0]["intensity_flops_per_byte"])
    for actual, ideal in zip(p["actual"][1:], p["ideal"][1:], strict=True):
        assert actual["weight_bytes"] > ideal["weight_bytes"] and actual["intensity_flops_per_byte"] < ideal["intensity_flops_per_byte"]
        assert actual["attainable_flops_per_s"] <= ideal["attainable_flops_per_s"] * (1 + 1e-12)
    assert flip_points(resolve(Scenario(model="llama-3.1-8b")))["distinct_experts"] is None


# ---- two scenarios ----------------------------------------------------------------------------------------------------


def test_compare_names_what_moved_the_total():
    """FP8 weights on 8B at batch 1: the feed-forward matrices move most; the parts of the change add up to the sums of the operators."""
    c = compare(Scenario(model="llama-3.1-8b", hardware="h100-sxm", engine="none"), Scenario(model="llama-3.1-8b", hardware="h100-sxm", weights="fp8", engine="none"))
    groups = c["decode"]["groups"]
    assert groups[0]["group"] == "mlp" and groups[0]["change_s"] < 0
    assert sum(g["b_s"] - g["a_s"] for g in groups) == pytest.approx(sum(g["change_s"] for g in groups))
    assert c["ratio"]["tpot_s"] == pytest.approx(c["b"]["figures"]["tpot_s"] / c["a"]["figures"]["tpot_s"])
    json.dumps(c, allow_nan=False)


def test_comparing_a_scenario_with_itself_moves_nothing():
    c = compare(ASK, ASK)
    assert all(v in (1.0, None) for v in c["ratio"].values()) and all(g["change_s"] == 0 for p in ("prefill", "decode") for g in c[p]["groups"])
