"""Operators, roofs, layouts and memory against hand-derived values and published ones."""

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roofline import InputError, Scenario, evaluate, formats, roof
from roofline.catalogue import load
from roofline.memory import activation_bytes, kv_bytes
from roofline.operators import Pass, distinct_experts, forward, mean_visible, visible_pairs
from roofline.parallel import Layout, check, collectives, ring_bytes
from roofline.phase import OperatorRow
from roofline.scenario import resolve
from roofline.service import TIMES

BF16 = formats.parse("bf16")
MODELS = ("llama-3.1-8b", "mixtral-8x7b", "deepseek-v3", "gemma-2-27b", "qwen3-30b-a3b", "gpt-oss-20b")


def run(arch, p, **more):
    return forward(arch, p, weights=BF16, kv=BF16, compute="bf16", **more)


@given(st.integers(1, 400), st.integers(1, 60), st.booleans())
def test_pairs_equal_a_count(n, window, chunked):
    """Against counting the visible keys of every token one by one."""
    seen = [min(i, window) if not chunked else (i - 1) % window + 1 for i in range(1, n + 1)]
    assert visible_pairs(n, window, chunked) == sum(seen)
    assert visible_pairs(n) == n * (n + 1) // 2


@given(st.integers(0, 300), st.integers(1, 200), st.one_of(st.none(), st.integers(1, 100)))
def test_decode_context_is_the_average_over_its_steps(start, steps, window):
    seen = [min(c, window or c) for c in range(start + 1, start + steps + 1)]
    assert mean_visible(start, steps, window) == pytest.approx(sum(seen) / steps)


def test_prefill_of_8192_tokens_is_132_tflop():
    """Llama-3-8B: 2 x 6.98 G x 8192 = 114.4 (projections and MLP) + 4 x 32 x 128 x 32 x 33.56 M = 17.6 (causal attention) + 0.001 (head)."""
    p = evaluate(Scenario(model="llama-3.1-8b", hardware="h100-sxm", prompt=8192, output=1)).prefill
    assert p.flops == pytest.approx(132e12, rel=0.005)
    core = sum(o.flops for o in p.operators if o.group == "attention_core")
    assert core == 4 * 32 * 128 * 32 * (8192 * 8193 / 2)
    assert sum(o.flops for o in p.operators if o.group == "lm_head") == 2 * 4096 * 128256


def test_grouped_attention_intensity():
    """Long context: 8 query heads a KV head, BF16 cache: intensity tends to 8 FLOP/byte whatever the batch (scaling book, inference chapter)."""
    for batch in (1, 64):
        ops = run(load("llama-3.1-70b"), Pass(sequences=batch, new_tokens=1, start=8192, steps=1))
        core = next(o for o in ops if o.group == "attention_core")
        assert core.flops / (core.kv_read_bytes + core.kv_write_bytes + core.activation_bytes) == pytest.approx(7.992, rel=2e-3)


def test_unfused_attention_intensity():
    """One head of 128 over 4,096 tokens, unfused: about 62 FLOP/byte (Baseten guide), counted on the full square: (4 N^2 d) / (8 N^2 + 8 N d).

    A causal pass has half the pairs, so both FLOPs and score bytes halve; the scores dominate.
    """
    arch = load("llama-2-7b")
    ops = run(arch, Pass(sequences=1, new_tokens=4096), fused=False)
    core = next(o for o in ops if o.group == "attention_core")
    n, d, pairs = 4096, 128, 4096 * 4097 / 2
    assert core.flops / core.activation_bytes == pytest.approx(4 * pairs * d / (8 * pairs + 8 * n * d), rel=1e-6)
    fused = next(o for o in run(arch, Pass(sequences=1, new_tokens=4096)) if o.group == "attention_core")
    assert fused.activation_bytes < core.activation_bytes / 10


def test_matrix_times_of_a_published_example():
    """fp16 [64, 4096] x [4096, 8192] on 8 TB/s: 8.6 us (Baseten guide): weights, input and output all move."""
    moved = 2 * (4096 * 8192 + 64 * 4096 + 64 * 8192)
    assert moved / 8e12 == pytest.approx(8.585e-6, rel=1e-3)
    assert roof.attainable(2.3e15, 8e12, 2 * 64 * 4096 * 8192 / moved) * moved / 8e12 == pytest.approx(2 * 64 * 4096 * 8192)


@pytest.mark.parametrize(("peak", "bandwidth", "ridge"), [(197e12, 820e9, 240.2), (394e12, 810e9, 486.4), (990e12, 3.35e12, 295.5), (2250e12, 8e12, 281.25), (275e12, 1.2e12, 229.2)])
def test_ridges_of_the_scaling_book(peak, bandwidth, ridge):
    assert roof.ridge(peak, bandwidth) == pytest.approx(ridge, rel=1e-3)


def test_bare_roofline():
    low = roof.bare(peak=989e12, bandwidth=3.35e12, intensity=1)
    assert low["bound"] == "memory" and low["attainable_flops_per_s"] == 3.35e12 and low["bandwidth_utilisation"] == 1
    high = roof.bare(peak=989e12, bandwidth=3.35e12, intensity=1000)
    assert high["bound"] == "compute" and high["compute_utilisation"] == 1 and high["bandwidth_utilisation"] == pytest.approx(0.2952, rel=1e-3)
    with pytest.raises(InputError, match="intensity"):
        roof.bare(peak=1, bandwidth=1, intensity=0)


# ---- several chips ----------------------------------------------------------------------------------------------------


def test_ring_and_traffic():
    """1 GB over 8 chips at 450 GB/s one way: 2 x 7/8 x 1e9 / 450e9 = 3.889 ms (900 GB/s counts both directions)."""
    assert ring_bytes(1e9, 8) / 450e9 == pytest.approx(3.88889e-3, rel=1e-5)
    ops = collectives(load("llama-3.1-8b"), Pass(sequences=1, new_tokens=1, start=1, steps=1), Layout(tp=8))
    reduce = next(o for o in ops if o.name == "all-reduce")
    assert reduce.count == 64 and reduce.link_bytes == 64 * 2 * 7 / 8 * 4096 * 2  # two a layer


def test_expert_all_to_all_counts_only_moe_layers():
    """DeepSeek-V3 has 58 MoE layers of 61; each token goes to 8 experts, 255/256 of them elsewhere."""
    p = Pass(sequences=128, new_tokens=1, start=1, steps=1, pool=256)
    ops = collectives(load("deepseek-v3"), p, Layout(tp=1, ep=256, dp=256), activation_bytes=1.0)
    dispatch = next(o for o in ops if "dispatch" in o.name)
    assert dispatch.count == 58 and dispatch.link_bytes == pytest.approx(58 * 128 * 8 * 7168 * 255 / 256)


def test_experts_are_shared_by_a_pool():
    """EP 8 over 8 replicas of batch 16: 128 tokens pick the experts, and each replica is charged an eighth of them."""
    arch = load("mixtral-8x7b")
    ops = run(arch, Pass(sequences=16, new_tokens=1, start=1, steps=1, pool=8))
    stored = sum(t.parameters * 2 for t in arch.tensors if t.group == "experts")
    read = sum(o.weight_bytes for o in ops if o.group == "experts")
    assert read == pytest.approx(stored * distinct_experts(8, 2, 128) / 8 / 8)


def test_kv_is_replicated_beyond_its_heads():
    """Llama-3-70B, TP 16 over 8 KV heads, 8,192 tokens: 335.5 MB a chip, as at TP 8; MLA's latent is whole on every chip: 70.272 kB a token."""
    arch = load("llama-3.1-70b")
    assert kv_bytes(arch, BF16, 8192, 16) / 16 == kv_bytes(arch, BF16, 8192, 8) / 8 == 335_544_320
    assert kv_bytes(load("deepseek-v3"), BF16, 1_000_000, 8) / 8 == pytest.approx(70.272e9)


def test_tensor_parallel_divides_time_but_not_counts():
    one, four = (evaluate(Scenario(model="llama-3.1-8b", hardware="h100-sxm", devices=n, batch=4)).decode for n in (1, 4))
    assert four.flops == one.flops and four.bytes == one.bytes
    assert four.limit_parts_s["memory"] == pytest.approx(one.limit_parts_s["memory"] / 4, rel=1e-3)
    assert one.link_bytes == 0 and four.link_bytes > 0


@pytest.mark.parametrize(("layout", "model", "field", "fix"), [
    ({"tp": 3}, "llama-3.1-8b", "tp", "use 2 or 4"), ({"tp": 64}, "llama-3.1-8b", "tp", "use 32"), ({"pp": 33}, "llama-3.1-8b", "pp", "at most 32"),
    ({"ep": 2}, "llama-3.1-8b", "ep", "use 1"), ({"ep": 3}, "mixtral-8x7b", "ep", "use 2"), ({"ep": 8, "dp": 4}, "mixtral-8x7b", "ep", "use dp 8"),
])
def test_impossible_layouts_are_refused_with_a_way_out(layout, model, field, fix):
    with pytest.raises(InputError) as error:
        check(Layout(**layout), load(model))
    assert error.value.field == field and fix in str(error.value)


def test_devices_must_be_the_product():
    with pytest.raises(InputError, match="devices 6"):
        evaluate(Scenario(model="llama-3.1-8b", hardware="h100-sxm", devices=6, tp=4))
    layout = evaluate(Scenario(model="llama-3.1-8b", hardware="h100-sxm", devices=8, tp=4)).layout
    assert layout == {"tp": 4, "pp": 1, "ep": 1, "dp": 2, "devices": 8}


# ---- memory -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("more", [{"devices": 8}, {"tp": 4, "pp": 2, "block": 16}])
def test_largest_batch_and_context_are_the_edge(model, more):
    """Asked again: so many sequences, or so long a request, fit with the working memory they need; one more, or a block more, does not."""
    s = Scenario(model=model, hardware="h200-sxm", weights="fp8", prompt=40, output=96, **more)
    best = evaluate(s).memory
    fits = lambda **changes: evaluate(s.replace(**changes)).memory["fits"]
    batch, longest = best["max_batch"], best["max_context"]
    assert best["fits"] and fits(batch=batch) and not fits(batch=batch + 1)
    assert evaluate(s.replace(batch=batch)).memory["max_batch"] == evaluate(s.replace(batch=batch + 1)).memory["max_batch"] == batch
    crowd = evaluate(s.replace(batch=batch // 3)).memory["max_context"]
    assert fits(batch=batch // 3, prompt=crowd - 96) and not fits(batch=batch // 3, prompt=crowd - 96 + s.block)
    if longest != load(model).max_context:
        assert fits(prompt=longest - 96) and not fits(prompt=longest - 96 + s.block)


def test_working_memory_counts_in_the_largest_batch():
    """Llama 3.1 8B on 80 GB, 1 + 1 tokens: 80e9 - 16.0605e9 of weights; a sequence takes 2 x 131,072 B of cache and, up to 8,192 of
    them, 4 x 128,256 B of logits and 73,728 B of working memory: (63.9395e9 - 8192 x 586,752) / 262,144 = 225,573 sequences."""
    room = 80e9 - 8_030_261_248 * 2
    inner = 2 * 4096 + 2 * 14336  # two residual streams, gate and up
    want = (room - 8192 * (2 * inner + 4 * 128_256)) // (2 * 131_072)
    assert evaluate(Scenario(model="llama-3.1-8b", hardware="h100-sxm", prompt=1, output=1)).memory["max_batch"] == want


def test_what_drafts_takes_memory():
    """Llama 3.2 1B beside 70B: 2.4716 GB of BF16 weights and 32,768 B a token; the multi-token-prediction layer of DeepSeek-V3 is one
    layer more: 1,152 B a token and, shared over 64 chips, 1/64 of 256 experts beside its attention, shared expert, router and norms."""
    s = Scenario(model="llama-3.1-70b", hardware="h200-sxm", devices=4, batch=16, prompt=4000, output=96)
    plain, drafted = (evaluate(s.replace(draft=draft, draft_model="llama-3.2-1b")).memory for draft in (0, 4))
    more = 2 * 1_235_814_400 + 16 * 4096 * 2 * 16 * 8 * 64 * 2
    assert drafted["draft_bytes"] == more and plain["draft_bytes"] == 0
    assert drafted["total_bytes"] == pytest.approx(plain["total_bytes"] + more)
    assert drafted["engine"]["max_batch"] < plain["engine"]["max_batch"] and drafted["max_batch"] < plain["max_batch"]
    r = Scenario(model="deepseek-v3", hardware="h200-sxm", tp=1, dp=64, ep=64, batch=8, prompt=4000, output=96, kv="bf16", weights="bf16")
    plain, drafted = (evaluate(r.replace(draft=draft)).memory for draft in (0, 1))
    attention = 7168 * 1536 + 1536 * 128 * 192 + 7168 * 576 + 512 * 128 * 256 + 128 * 128 * 7168
    want = 2 * (256 / 64 * 3 * 7168 * 2048 + 3 * 7168 * 2048 + attention + 256 * 7168) + 8 * 4096 * 1152
    assert drafted["total_bytes"] - plain["total_bytes"] == pytest.approx(want, rel=1e-3)


@pytest.mark.parametrize("more", [{}, {"offload": 0.5, "devices": 2}, {"draft": 3, "draft_model": "llama-3.2-1b"}, {"tp": 4, "pp": 3}, {"model": "mixtral-8x7b", "tp": 1, "dp": 4, "ep": 4}])
def test_the_parts_of_the_memory_add_up(more):
    """Weights, cache, working memory and overhead that are drawn are the total."""
    from roofline.view import memory
    report = evaluate(Scenario(**({"model": "llama-3.1-70b", "hardware": "h200-sxm", "devices": None if "tp" in more else 4, "batch": 4, "overhead": 2e9} | more))).to_dict()
    shown = memory(report)
    longest = max(report["memory"]["total_bytes"], report["memory"]["available_bytes"])
    assert sum(part["width"] for part in shown["parts"]) * longest == pytest.approx(report["memory"]["total_bytes"], rel=1e-4)


def test_what_stays_in_host_memory_needs_no_chip():
    """Llama 3.1 70B in BF16 is 141.1 GB: two cards of 80 GB, or one with half of the matrices in host memory."""
    ask = lambda offload: evaluate(Scenario(model="llama-3.1-70b", hardware="h100-sxm", prompt=100, output=10, offload=offload)).memory
    assert ask(0.0)["min_devices"] == 2 and not ask(0.0)["fits"]
    assert ask(0.5)["min_devices"] == 1 and ask(0.5)["fits"]


def test_sliding_windows_hold_no_more_than_their_window():
    """48 layers, every 6th full, window 1,024, 4,096 B a layer and token, 32,768 tokens: 1.2415 GB (6.44 at full length): Gemma 3's shape."""
    arch = load("gemma-3-27b")
    full = [a for a in arch.attentions if a.window is None]
    slid = [a for a in arch.attentions if a.window]
    tokens = 32768
    want = sum(a.kv_elements * 2 * a.count * tokens for a in full) + sum(a.kv_elements * 2 * a.count * min(tokens, a.window) for a in slid)
    assert kv_bytes(arch, BF16, tokens) == want
    assert slid[0].window == 1024 and sum(a.count for a in slid) == 52 and sum(a.count for a in full) == 10


def test_what_does_not_fit_gets_no_time_but_everything_else():
    report = evaluate(Scenario(model="llama-3.1-405b", hardware="h100-sxm"))
    assert report.memory["fits"] is False and report.decode.limit_s is None and report.prefill.expected_s is None
    assert all(o.limit_s is None for o in report.decode.operators)
    assert report.decode.flops > 0 and report.decode.bytes["total"] > 0
    assert "11 such chips" in report.warnings[-1]["text"] or "12 such chips" in report.warnings[-1]["text"]
    assert all(report.serving[k] is None for k in TIMES)


def test_activations_follow_the_chunk():
    arch = load("llama-3.1-8b")
    assert activation_bytes(arch, 1, 100_000) == activation_bytes(arch, 1, 8192)
    assert activation_bytes(arch, 1, 16) < activation_bytes(arch, 1, 8192)


# ---- laws -------------------------------------------------------------------------------------------------------------

scenarios = st.builds(
    lambda model, hardware, batch, prompt, output, weights, kv, tp: Scenario(model=model, hardware=hardware, batch=batch, prompt=prompt, output=output, weights=weights, kv=kv, tp=tp),
    st.sampled_from(MODELS), st.sampled_from(("h100-sxm", "h200-sxm", "b200-sxm", "mi300x", "a100-80gb-sxm")), st.integers(1, 64), st.integers(1, 9000), st.integers(1, 900),
    st.sampled_from(("bf16", "fp8", "int4", "q4_k_m")), st.sampled_from(("bf16", "fp8")), st.sampled_from((1, 2, 4)),
)


@settings(max_examples=60, deadline=None)
@given(scenarios)
def test_parts_sum_to_totals_and_limits_hold(s):
    """The rules of a Report: operators add up, shares add to one, a limit is the largest of its parts and never above the expectation."""
    report = evaluate(s.replace(efficiency_compute=0.7, efficiency_bandwidth=0.8))
    json.loads(report.to_json())
    for phase in (report.prefill, report.decode):
        ops: tuple[OperatorRow, ...] = phase.operators
        assert math.fsum(o.flops for o in ops) == pytest.approx(phase.flops, rel=1e-9)
        assert math.fsum(o.bytes for o in ops) == pytest.approx(phase.bytes["total"], rel=1e-9)
        assert sum(v for k, v in phase.bytes.items() if k != "total") == pytest.approx(phase.bytes["total"], rel=1e-9)
        assert math.fsum(o.link_bytes for o in ops) == pytest.approx(phase.link_bytes, rel=1e-9)
        if phase.limit_s is None:
            assert report.memory["fits"] is False
            continue
        assert phase.limit_s == max(phase.limit_parts_s.values()) and phase.bound == max(phase.limit_parts_s, key=phase.limit_parts_s.get)
        assert phase.limit_s <= phase.expected_low_s <= phase.expected_s <= phase.expected_high_s
        assert math.fsum(o.share for o in ops) == pytest.approx(1, rel=1e-9)
        assert 0 < phase.compute_utilisation <= 1 and 0 < phase.bandwidth_utilisation <= 1
        assert phase.attainable_flops_per_s <= report.formats["compute_peak_flops_per_s"] * (1 + 1e-12)
    assert sum(report.model["parameters"][k] for k in ("embedding", "lm_head", "attention", "mlp", "experts", "shared_experts", "router", "norm", "recurrent", "vision", "other")) == report.model["parameters"]["total"]


@settings(max_examples=40, deadline=None)
@given(scenarios, st.floats(1.01, 4))
def test_more_of_anything_never_hurts_and_more_work_never_helps(s, factor):
    """Monotone: more bandwidth, peak or link never lengthens a limit; more batch, prompt or output never shortens it."""
    times = lambda q: (lambda r: (r.prefill.limit_s, r.decode.limit_s))(evaluate(q))
    base = times(s)
    if None in base:
        return
    chip = resolve(s).chip
    better = times(s.replace(bandwidth=chip.bandwidth_bytes_per_s * factor))
    assert better[0] <= base[0] * (1 + 1e-12) and better[1] <= base[1] * (1 + 1e-12)
    for change in ({"batch": s.batch + 7}, {"prompt": s.prompt + 100}, {"output": s.output + 100}):
        worse = times(s.replace(**change))
        if None not in worse:
            assert worse[0] >= base[0] * (1 - 1e-12) and worse[1] >= base[1] * (1 - 1e-12)


@settings(max_examples=25, deadline=None)
@given(st.sampled_from(MODELS), st.lists(st.integers(1, 512), min_size=2, max_size=6), st.integers(1, 5000))
def test_formulas_broadcast(model, batches, prompt):
    """One engine, two shapes: an array of batches gives what each batch gives alone."""
    arch, array = load(model), np.array(batches, float)
    for make in (lambda b: Pass(sequences=b, new_tokens=float(prompt)), lambda b: Pass(sequences=b, new_tokens=1.0, start=float(prompt), steps=64.0)):
        both = run(arch, make(array))
        for i, batch in enumerate(batches):
            for one, many in zip(run(arch, make(float(batch))), both, strict=True):
                for field in ("flops", "weight_bytes", "kv_read_bytes", "kv_write_bytes", "activation_bytes"):
                    assert np.broadcast_to(getattr(many, field), array.shape)[i] == pytest.approx(getattr(one, field), rel=1e-12)


def test_a_model_without_attention_that_does_not_fit_is_told_what_does():
    """Mamba 2.8B has no attention heads to divide: a batch that is too large for one card fits on more of them."""
    report = evaluate(Scenario(model="mamba-2.8b", hardware="h100-sxm", batch=4000))
    ways = report.memory["ways"]
    assert report.memory["fits"] is False and any("batch" in way["change"] for way in ways) and any("devices" in way["change"] for way in ways)
    for way in ways:
        assert evaluate(Scenario(model="mamba-2.8b", hardware="h100-sxm", batch=4000).replace(**way["change"])).memory["fits"]


def test_a_prompt_that_goes_on_reads_the_block_it_is_in():
    """Llama 4 Scout after 20,000 cached tokens: 36 layers see the last 20,000 - 2 x 8,192 = 3,616 of them, 12 layers all; 4,096 B a layer and token."""
    r = evaluate(Scenario(model="llama-4-scout-17b-16e", hardware="b200-sxm", devices=2, prompt=20100, cached=20000, output=1, kv="bf16"))
    assert r.prefill.bytes["kv_read"] == 4096 * (36 * 3616 + 12 * 20000)


def test_a_model_that_lives_in_the_cache_is_told():
    """SmolLM2 135M in INT8 is about 0.16 GB: fewer bytes than the 256 MB of an MI300X's last cache, more than the 50 MB of an H100's."""
    codes = lambda hardware: {w["code"] for w in evaluate(Scenario(model="smollm2-135m", hardware=hardware, weights="int8")).warnings}
    assert "cache" in codes("mi300x") and "cache" not in codes("h100-sxm")
