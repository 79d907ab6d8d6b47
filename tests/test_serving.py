"""Serving: speculation, mixed steps, queues, pools and caching, each derived by hand, and the laws they keep."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roofline import Scenario, evaluate, serving
from roofline.catalogue import load
from roofline.errors import InputError
from roofline.fabric import fabric_of
from roofline.hardware import load as chip

MODELS = ("llama-3.1-8b", "mixtral-8x7b", "qwen3-30b-a3b")


def ask(**more):
    return evaluate(Scenario(**({"model": "llama-3.1-8b", "hardware": "h100-sxm", "engine": "none"} | more)))


# ---- speculation ------------------------------------------------------------------------------------------------------


@given(st.floats(0, 0.999), st.integers(0, 20))
def test_accepted_tokens_against_a_sum(a, g):
    """The chain: the first token always, the second with chance a, the third a^2 ...: 1 + a + ... + a^g."""
    assert float(serving.accepted_tokens(a, g)) == pytest.approx(sum(a ** i for i in range(g + 1)))


def test_acceptance_of_nothing_and_of_everything():
    """a = 0 keeps one token a step, a = 1 keeps all g + 1."""
    assert serving.accepted_tokens(0.0, 7) == 1 and serving.accepted_tokens(1.0, 7) == 8


@settings(max_examples=25, deadline=None)
@given(st.sampled_from(MODELS), st.integers(1, 128), st.integers(1, 8))
def test_speculation_that_is_never_accepted_never_pays(model, batch, draft):
    """A verify step does at least a plain step's work and yields one token."""
    plain = ask(model=model, batch=batch, hardware="h200-sxm").serving["tpot_s"]
    drafted = ask(model=model, batch=batch, draft=draft, acceptance=0.0, hardware="h200-sxm").serving["tpot_s"]
    assert plain is None or drafted >= plain


def test_speculation_by_hand():
    """Llama 3 8B, batch 1, H100: a verify step of 4 tokens still reads 15.01 GB once; 3 drafts cost 3 x (1/32 layers + head) of a step.

    a = 0.7, g = 3: 1 + 0.7 + 0.49 + 0.343 = 2.533 tokens. Head 1.05 GB, layers 13.96 GB: a draft reads 1.05 + 13.96 / 32 = 1.487 GB.
    """
    s = ask(prompt=1, output=1, draft=3, acceptance=0.7).serving["speculation"]
    head, body = 2 * 128256 * 4096, 2 * (8_030_261_248 - 2 * 128256 * 4096 - 65 * 4096)
    plain = s["plain_tpot_s"]
    assert s["tokens_per_step"] == pytest.approx(2.533)
    assert s["draft_s"] == pytest.approx(3 * plain * (head + body / 32) / (head + body), rel=1e-3)
    assert s["verify_s"] == pytest.approx(plain, rel=1e-3)
    assert s["speedup"] == pytest.approx(2.533 / (1 + 3 * (head + body / 32) / (head + body)), rel=2e-3)


def test_verifying_reads_more_experts():
    """Mixtral at batch 1: one token reads 2 of 8 experts a layer, five tokens 8 (1 - 0.75^5) = 6.1: speculation does not pay there, and does for the dense model."""
    plain = ask(model="mixtral-8x7b", hardware="h200-sxm")
    drafted = ask(model="mixtral-8x7b", hardware="h200-sxm", draft=4, acceptance=0.7)
    experts = lambda r: sum(o.weight_bytes for o in r.decode.operators if o.group == "experts")
    assert experts(drafted) / experts(plain) == pytest.approx(8 * (1 - 0.75 ** 5) / 2)
    assert drafted.serving["speculation"]["speedup"] < 1.1 < ask(draft=4, acceptance=0.7).serving["speculation"]["speedup"]


def test_a_draft_model_is_expected_to_be_as_slow_as_it_is_alone():
    """A small model's step is mostly launches; it does not get nearer to the roof because a large one runs after it."""
    load_ = {"hardware": "h200-sxm", "batch": 4, "prompt": 2000, "engine": "any"}
    alone = ask(**load_, model="llama-3.2-1b").decode.expected_s
    both = ask(**load_, draft=3, draft_model="llama-3.2-1b")
    drafting = both.serving["expected_tpot_s"] * both.serving["tokens_per_step"] - both.decode.expected_s
    assert drafting == pytest.approx(3 * alone)
    busy = ask(**load_, draft=3, draft_model="llama-3.2-1b", rate=1e-6).serving["arrivals"]["expected"]["tpot_s"]
    lone = ask(**load_ | {"batch": 1}, draft=3, draft_model="llama-3.2-1b").serving["expected_tpot_s"]
    assert busy == pytest.approx(lone, rel=1e-3)


def test_a_draft_model_is_priced_as_itself():
    """Llama 3.2 1B drafts for 70B on the same chips: each draft reads its own 2.47 GB over tp 4; the target's own layer would cost far more."""
    s = ask(model="llama-3.1-70b", devices=4, draft=4, draft_model="llama-3.2-1b", prompt=1, output=1).serving["speculation"]
    one = load("llama-3.2-1b")
    read = 2 * sum(t.parameters for t in one.tensors if t.group != "vision")
    assert s["draft_s"] == pytest.approx(4 * read / 4 / 3.35e12, rel=0.02)


# ---- one step for all -------------------------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(MODELS), st.integers(1, 64), st.integers(64, 8000), st.integers(32, 2048), st.sampled_from((1, 2)))
def test_a_mixed_step_never_exceeds_its_parts(model, batch, prompt, chunk, tp):
    """Chunk and decodes share the weights and fill each other's slack: at least the longer of the two alone, at most their sum."""
    m = ask(model=model, hardware="h200-sxm", devices=tp, batch=batch, prompt=prompt, output=32, chunk=chunk).serving["mixed_step"]
    if m is None:
        return
    assert max(m["chunk_only_step_s"], m["decode_only_step_s"]) <= m["step_s"] * (1 + 1e-9)
    assert m["step_s"] <= (m["chunk_only_step_s"] + m["decode_only_step_s"]) * (1 + 1e-9)
    assert m["saved_s"] >= -1e-12 and m["steps_per_prompt"] == math.ceil(prompt / m["chunk"])


def test_a_mixed_step_by_hand():
    """512 prompt tokens with 32 decodes on 8B: both memory-bound alone (15 GB); together 544 tokens compute 7.6 TFLOP = 8.2 ms > the memory's 5.1: the weights are read once."""
    m = ask(batch=32, prompt=1024, output=2, chunk=512).serving["mixed_step"]
    assert m["bound"] == "compute"
    assert m["step_s"] == pytest.approx(2 * 7.5e9 * 544 / 989.4e12, rel=0.08)
    assert m["decode_only_step_s"] == pytest.approx((15.01e9 + 32 * 1025 * 131072) / 3.35e12, rel=0.01)


def test_chunks_are_re_read_as_published():
    """Sarathi-Serve's Yi-34B: reading the cache again for 8 chunks of 512 is 0.1 % of the prompt's compute, so chunking is nearly free in bytes."""
    from roofline.formulas import chunk_overhead
    assert chunk_overhead(4096, 512, 245760, 34.4e9, 312e12, 2.039e12, 2, 0.6) == pytest.approx(0.00115, rel=0.01)
    assert chunk_overhead(4096, 4096, 245760, 34.4e9, 312e12, 2.039e12) == 0


def test_a_turnover_of_chunked_requests():
    """4 requests of 2 chunks and 101 tokens: 8 mixed steps of 20 ms serve as decode steps too, then 92 of 10 ms: 1.08 s; unchunked would not ride along."""
    assert serving.chunked_cycle(4, 2, 101, 0.02, 0.01) == pytest.approx(8 * 0.02 + 92 * 0.01)
    assert serving.chunked_cycle(64, 4, 101, 0.02, 0.01) == pytest.approx(256 * 0.02)


# ---- arrivals ---------------------------------------------------------------------------------------------------------


def test_pollaczek_khinchine():
    """D = 0.1 s at 5 requests/s: rho 0.5, wait rho D / (2 (1 - rho)) = 50 ms; a full server waits for ever."""
    assert serving.md1_wait(5, 0.1) == pytest.approx(0.05)
    assert serving.md1_wait(10, 0.1) == math.inf and serving.md1_wait(0, 0.1) == 0


def test_the_wait_against_a_simulation():
    """Random arrivals at a server of fixed time: the mean wait of 200,000 requests is within 3 % of the formula at rho = 0.7."""
    rng = np.random.default_rng(1)
    service, rate = 0.1, 7.0
    gaps = rng.exponential(1 / rate, 200_000)
    wait, total = 0.0, 0.0
    for gap in gaps:
        wait = max(0.0, wait + service - gap)
        total += wait
    assert total / len(gaps) == pytest.approx(serving.md1_wait(rate, service), rel=0.03)


def engine(rate, prefill_s, step_of, places, output, requests=12_000, together=1, fixed_s=0.0):
    """An engine that reads waiting prompts first, up to `together` at a time while there are places, and else steps: (mean batch, mean TTFT,
    mean TPOT), simulated. A pass of n prompts takes fixed_s + n x prefill_s."""
    rng = np.random.default_rng(1)
    arrivals = np.cumsum(rng.exponential(1 / rate, requests)).tolist()
    now, steps, held, seen, begun, done, ends, ttft, stay = 0.0, 0, 0.0, 0, 0, 0, [], [], []
    while done < 0.95 * requests:
        while seen < requests and arrivals[seen] <= now:
            seen += 1
        if begun < seen and len(ends) - done < places:
            here = len(ends) - done
            count = min(together, seen - begun, places - here)
            took = fixed_s + count * prefill_s
            now += took
            for arrival in arrivals[begun : begun + count]:
                ttft.append(now - arrival)
                ends.append((steps + output - 1, arrival))
            begun += count
        elif len(ends) > done:
            here = len(ends) - done
            took = step_of(here)
            now, steps = now + took, steps + 1
            while len(ends) > done and ends[done][0] <= steps:
                stay.append(now - ends[done][1])
                done += 1
        else:
            took, here, now = arrivals[seen] - now, 0, arrivals[seen]
        held += here * took
    skip = requests // 10
    first = np.mean(ttft[skip:])
    return held / now, first, (np.mean(stay[skip:]) - first) / (output - 1)


@pytest.mark.parametrize("prefill_s, base, more, places, output", [(0.03, 0.005, 9e-5, 40, 300), (0.2, 0.02, 1e-3, 8, 50), (0.005, 0.02, 1e-3, 64, 500), (0.01, 0.02, 0.0, 16, 100)])
def test_the_service_against_a_simulation(prefill_s, base, more, places, output):
    """Batch, TPOT and TTFT of a simulated engine: at half of its capacity within 15 %; near it, where requests wait for a place and the
    prompts before them hardly count, TTFT is many times the prompt's own time and the estimate within a factor of 2.5."""
    step_of = lambda n: base + n * more
    top = serving.queue(1.0, prefill_s, step_of, places, output)["capacity_per_s"]
    for share, near in ((0.1, 0.15), (0.5, 0.15), (0.9, None), (0.95, None)):
        a = serving.queue(share * top, prefill_s, step_of, places, output)
        batch, ttft, tpot = engine(share * top, prefill_s, step_of, places, output)
        assert a["batch"] == pytest.approx(batch, rel=0.15) and a["tpot_s"] == pytest.approx(tpot, rel=0.15)
        assert a["ttft_mean_s"] == pytest.approx(ttft, rel=near) if near else 1 / 2.5 < a["ttft_mean_s"] / ttft < 2.5
    assert ttft > 5 * prefill_s and a["ttft_p50_s"] <= a["ttft_p90_s"] <= a["ttft_p99_s"]


@pytest.mark.parametrize("fixed, each, together, base, more, places, output", [(0.015, 0.0025, 8, 0.008, 5e-5, 400, 300), (0.06, 0.001, 80, 0.06, 1e-4, 200, 100), (0.004, 0.004, 4, 0.005, 1e-4, 64, 200)])
def test_prompts_that_wait_are_read_together(fixed, each, together, base, more, places, output):
    """A mixture of experts reads its weights for eight prompts as for one: the simulated engine takes more requests than prompts one by one
    would allow, and batch, TPOT and TTFT at half and 80 % of capacity are within 25 % of it."""
    step_of = lambda n: base + n * more
    prompts = serving.Prompts(alone_s=fixed + each, share_s=fixed / together + each, most=float(together))
    assert prompts.parts() == pytest.approx((fixed, each))
    top = serving.queue(1.0, prompts, step_of, places, output)["capacity_per_s"]
    assert top >= places / (places * (fixed + each) + (output - 1) * step_of(places)) * (1 - 1e-9)
    for share in (0.1, 0.5, 0.8):
        a = serving.queue(share * top, prompts, step_of, places, output)
        found = engine(share * top, each, step_of, places, output, together=together, fixed_s=fixed)
        assert (a["batch"], a["ttft_mean_s"], a["tpot_s"]) == pytest.approx(found, rel=0.26)


def test_mixtures_take_more_short_prompts():
    """DeepSeek-V3 on 8 H200 with prompts of 500 tokens: 17.5 ms each by itself, sixteen together hardly more; dense 8B gains little."""
    of = lambda **s: ask(prompt=500, output=50, rate=1.0, **s)
    moe = of(model="deepseek-v3", hardware="h200-sxm", devices=8).serving["arrivals"]
    most, step = moe["max_batch"], ask(model="deepseek-v3", hardware="h200-sxm", devices=8, prompt=500, output=50, batch=moe["max_batch"]).serving["tpot_s"]
    assert moe["capacity_per_s"] > 2 * most / (most * moe["prefill_s"] + 49 * step)


def test_one_place_is_a_plain_queue():
    """One place of 0.1 s at 5 requests/s is M/D/1 at half load: half of the requests wait, 50 ms on average; a full one waits for ever."""
    assert serving.place_wait(5.0, lambda n: 0.5 / n, 1) == pytest.approx((0.5, 0.05))
    assert serving.place_wait(10.0, lambda n: 1.0 / n, 1) == (1.0, math.inf)
    # Erlang C: 2 places at a load of one each 0.5: a third waits, 1/3 x 0.5 / 0.5 = 1/3 in the queue, half of it as steps are alike.
    assert serving.place_wait(1.0, lambda n: 1.0 / n, 2) == pytest.approx((1 / 3, 1 / 6))


def test_drafts_are_paid_at_the_batch_that_runs():
    """With one request an hour the step is that of batch 1, whatever batch the scenario names."""
    quiet = [ask(rate=1e-6, batch=batch, draft=3, draft_model="llama-3.2-1b").serving["arrivals"]["tpot_s"] for batch in (1, 64)]
    assert quiet[0] == pytest.approx(quiet[1]) == pytest.approx(ask(batch=1, draft=3, draft_model="llama-3.2-1b").serving["tpot_s"], rel=1e-4)


@given(st.floats(0.01, 20), st.floats(0.001, 2), st.floats(1.01, 3))
def test_queues_grow_with_the_rate(rate, service, factor):
    assert serving.md1_wait(rate * factor, service) >= serving.md1_wait(rate, service)
    assert serving.wait_quantile(rate * factor, service, 0.9) >= serving.wait_quantile(rate, service, 0.9)
    assert serving.wait_quantile(rate, service, 0.99) >= serving.wait_quantile(rate, service, 0.5)


@settings(max_examples=15, deadline=None)
@given(st.sampled_from(("llama-3.1-8b", "qwen3-30b-a3b")), st.integers(100, 4000), st.integers(2, 500))
def test_arrivals_settle_by_littles_law(model, prompt, output):
    """Below capacity the running batch is rate x time in the batch; utilisation, batch and TPOT grow with the rate, and so does TTFT, but for
    waits for a running step that turn into shorter ones for a pass of prompts; above it there is no answer."""
    top = ask(model=model, prompt=prompt, output=output, rate=1.0).serving["arrivals"]["capacity_per_s"]
    rows = [ask(model=model, prompt=prompt, output=output, rate=top * share).serving["arrivals"] for share in (0.1, 0.5, 0.9)]
    for row in rows:
        assert row["stable"] and row["batch"] == pytest.approx(row["rate_per_s"] * (output - 1) * row["tpot_s"], rel=1e-6)
        assert row["ttft_p50_s"] <= row["ttft_p90_s"] <= row["ttft_p99_s"] and row["e2e_mean_s"] >= row["ttft_mean_s"] >= row["prefill_s"]
    for key in ("batch", "utilisation", "tpot_s"):
        assert rows[0][key] <= rows[1][key] <= rows[2][key]
    for key in ("ttft_mean_s", "ttft_p99_s"):
        assert rows[0][key] <= 1.25 * rows[1][key] and rows[1][key] <= 1.25 * rows[2][key] and rows[0][key] <= 1.25 * rows[2][key]
    over = ask(model=model, prompt=prompt, output=output, rate=top * 1.01).serving["arrivals"]
    assert over["stable"] is False and over["batch"] is None


def test_expected_queues_are_never_shorter():
    """What an engine reaches takes longer than the limit, so the same arrivals keep it busier, run more requests at once and wait longer; no expectation, no such queue."""
    a = ask(rate=1.0, engine="any").serving["arrivals"]
    e = a["expected"]
    assert e["capacity_per_s"] < a["capacity_per_s"] and e["prefill_s"] > a["prefill_s"]
    for key in ("batch", "utilisation", "tpot_s", "ttft_mean_s", "ttft_p99_s", "e2e_mean_s"):
        assert e[key] > a[key]
    assert e["batch"] == pytest.approx(1.0 * (ask().scenario.get("output", 256) - 1) * e["tpot_s"], rel=1e-6)  # Little's law
    assert ask(rate=1.0, engine="none").serving["arrivals"]["expected"] is None


def test_the_root_of_a_falling_line():
    """x* = 30 for 60 - 2 x, from any bracket; at an end where it is zero already, that end."""
    from roofline.numeric import falling_root
    for high in (31.0, 100.0, 1e6):
        assert falling_root(lambda x: 60 - 2 * x, 0.0, high) == pytest.approx(30)
    assert falling_root(lambda x: 60 - 2 * x, 0.0, 30.0) == 30.0 and falling_root(lambda x: -x, 0.0, 5.0) == 0.0


def test_replicas_share_the_arrivals():
    """Two replicas at twice the rate are each as one replica at the rate, and carry twice the load in all."""
    one = ask(rate=2.0).serving["arrivals"]
    two = ask(rate=4.0, devices=2, tp=1, dp=2).serving["arrivals"]
    assert two["batch"] == pytest.approx(one["batch"]) and two["capacity_per_s"] == pytest.approx(2 * one["capacity_per_s"])


def test_steady_context():
    """Requests spread evenly over their generation hold the prompt and half of the output: 8,192 + 4,096 / 2; the engine's decode averages the same."""
    assert serving.steady_context(8192, 4096) == 10240
    assert ask(prompt=8192, output=4096).decode.context == pytest.approx(10240, abs=1)


# ---- separate pools ---------------------------------------------------------------------------------------------------


@settings(max_examples=20, deadline=None)
@given(st.sampled_from(MODELS), st.integers(1, 64), st.integers(1, 20000), st.integers(2, 500), st.sampled_from(("h100-sxm", "h200-sxm", "mi300x")))
def test_a_prefill_pool_never_changes_tpot(model, batch, prompt, output, where):
    """It takes prompts off the decode chips: TPOT stays what it was; TTFT is its own prefill and the transfer."""
    same = dict(model=model, hardware="h200-sxm", batch=batch, prompt=prompt, output=output)
    alone, pooled = ask(**same).serving, ask(**same, prefill_hardware=where, prefill_devices=2).serving
    assert pooled["tpot_s"] == alone["tpot_s"]
    if pooled["disaggregated"]:
        p = pooled["disaggregated"]
        assert p["ttft_s"] == pytest.approx(p["prefill_s"] + p["transfer_s"]) and p["transfer_hidden_s"] <= p["transfer_s"]


def test_the_transfer_by_hand():
    """Llama 3 70B, 1,000 tokens: 327.68 MB over 4 adapters of 50 GB/s = 1.638 ms; over a given 25 GB/s twice that; one layer of 80 of it is what cannot hide."""
    p = ask(model="llama-3.1-70b", devices=4, prompt=1000, prefill_hardware="h100-sxm", prefill_devices=4).serving["disaggregated"]
    assert p["kv_transfer_bytes"] == 327_680_000 and p["transfer_s"] == pytest.approx(327.68e6 / 200e9)
    assert p["transfer_hidden_s"] == pytest.approx(p["transfer_s"] / 80)
    half = ask(model="llama-3.1-70b", devices=4, prompt=1000, prefill_hardware="h100-sxm", prefill_devices=4, network=25e9).serving["disaggregated"]
    assert half["transfer_s"] == pytest.approx(2 * p["transfer_s"])
    assert fabric_of(chip("h100-sxm")).network_bytes_per_s == 50e9


def test_a_network_nobody_knows_is_told():
    """An Apple chip publishes no network: the transfer is left out and the report says so; given 1 GB/s, 131,072 B x 1,000 take 131 ms."""
    apple = dict(hardware="apple-m3-ultra", prompt=1000, prefill_hardware="apple-m3-ultra")
    told = lambda r: [w["text"] for w in r.warnings if w["code"] == "network"]
    assert ask(**apple).serving["disaggregated"]["transfer_s"] == 0 and "takes no time here" in told(ask(**apple))[0]
    given = ask(**apple, network=1e9)
    assert given.serving["disaggregated"]["transfer_s"] == pytest.approx(0.131072) and not told(given)


def test_pools_are_balanced():
    """xPyD: prefill instances x prompts/s each = decode instances x requests/s each; chips are counted in that ratio."""
    r = ask(model="llama-3.1-70b", devices=4, batch=32, prompt=4000, output=300, prefill_hardware="h100-sxm", prefill_devices=4)
    p, s = r.serving["disaggregated"], r.serving
    prompts = p["prefill_instances_per_decode"] / p["prefill_share_s"]
    requests = 32 / (300 * s["tpot_s"])
    assert prompts == pytest.approx(requests)
    assert p["devices_per_decode_instance"] == pytest.approx(4 + 4 * p["prefill_instances_per_decode"])
    assert p["tokens_per_s_per_device"] == pytest.approx(32 / s["tpot_s"] / p["devices_per_decode_instance"])


def test_a_prefill_instance_reads_short_prompts_together():
    """DeepSeek-V3 in FP8 on 8 H200, prompts of 1,000 tokens: one by itself waits for 256 experts' weights (0.674 TB / 8 / 4.8 TB/s = 17.5 ms),
    eight together for hardly more, so an instance gets through eight times as many, and fewer are needed; TTFT is that of one."""
    r = ask(model="deepseek-v3", hardware="h200-sxm", devices=8, batch=64, prompt=1000, output=500, prefill_hardware="h200-sxm", prefill_devices=8)
    p = r.serving["disaggregated"]
    assert p["prompts_together"] == 8 and p["prefill_s"] == pytest.approx(0.6725e12 / 8 / 4.8e12, rel=0.01)
    eight = ask(model="deepseek-v3", hardware="h200-sxm", devices=8, batch=8, prompt=1000).prefill.limit_s
    assert p["prefill_share_s"] == pytest.approx(eight / 8) and p["prefill_tokens_per_s"] == pytest.approx(8000 / eight)
    assert r.serving["ttft_s"] == p["prefill_s"] + p["transfer_s"]
    assert ask(prefill_hardware="h100-sxm", prompt=9000).serving["disaggregated"]["prefill_share_s"] == ask(prefill_hardware="h100-sxm", prompt=9000).serving["disaggregated"]["prefill_s"]


def test_a_place_in_a_decode_instance_is_held_for_decoding_alone():
    """32 places, 300 steps each: 32 / (300 TPOT) requests/s, as many as the pool's prompts; the wait for the first token holds none."""
    r = ask(model="llama-3.1-70b", devices=4, batch=32, prompt=4000, output=300, prefill_hardware="h100-sxm", prefill_devices=4)
    assert r.serving["requests_per_s"] == pytest.approx(32 / (300 * r.serving["tpot_s"])) == pytest.approx(r.serving["tokens_per_s"] / 300)


def test_a_prefill_pool_that_cannot_hold_the_model_gets_no_time():
    r = ask(model="llama-3.1-70b", devices=4, prefill_hardware="h100-sxm", prefill_devices=1)
    assert r.serving["disaggregated"]["prefill_fits"] is False and r.serving["ttft_s"] is None and r.serving["disaggregated"]["ttft_s"] is None
    assert any("prefill instance" in w["text"] for w in r.warnings)


def test_chips_of_a_prefill_pool_that_names_none_are_said_to_have_no_effect():
    r = ask(model="llama-3.1-70b", devices=4, prefill_devices=4)
    assert r.serving["disaggregated"] is None
    assert any(w["text"].startswith("prefill_devices = 4 has no effect") for w in r.warnings)


# ---- caching, offloading ----------------------------------------------------------------------------------------------


def test_prefix_caching_saves_its_share():
    """Half of 8,000 tokens cached: projections halve, attention of the second half still sees the first: 3/4 of the pairs remain."""
    whole, half = ask(prompt=8000, output=1).prefill, ask(prompt=8000, output=1, cached=4000).prefill
    core = lambda p: sum(o.flops for o in p.operators if o.group == "attention_core")
    mlp = lambda p: sum(o.flops for o in p.operators if o.group == "mlp")
    assert mlp(half) == pytest.approx(mlp(whole) / 2)
    assert core(half) == pytest.approx(0.75 * core(whole), rel=1e-3)
    assert half.bytes["kv_read"] == pytest.approx(4000 * 131072) and half.limit_s < whole.limit_s


@pytest.mark.parametrize("share", [{"offload": 0.5}, {"offload_kv": 0.5}])
def test_an_unknown_host_link_is_not_taken_as_endless(share):
    """A chip without a published host link cannot offload until the link's speed is given; then it counts."""
    with pytest.raises(InputError, match="TPU v5e .chip. has no known link to a host's memory; give its speed as host"):
        ask(hardware="tpu-v5e", memory=64e9, **share)
    assert ask(hardware="tpu-v5e", memory=64e9, host=16e9, **share).decode.limit_parts_s["host"] > 0


def test_offloaded_weights_cross_the_host_link():
    """Half of an 8B model's matrices in host memory: 7.5 GB over PCI Express 5 x16 (63 GB/s) take 119 ms a step, and the chip reads the other half."""
    r = ask(offload=0.5, prompt=1, output=1)
    assert r.decode.bound == "network" and r.decode.limit_parts_s["host"] == pytest.approx(7.5e9 / 63.008e9, rel=0.01)
    assert r.decode.limit_parts_s["memory"] == pytest.approx(7.5e9 / 3.35e12, rel=0.01)


def test_one_batch_of_all_users():
    """Tokens/s in all = batch / TPOT; requests/s = batch / (TTFT + (output - 1) TPOT); replicas multiply both, never the speed of one user."""
    one, two = ask(batch=8).serving, ask(batch=8, devices=2, tp=1, dp=2).serving
    assert one["tokens_per_s"] == pytest.approx(8 / one["tpot_s"]) and one["tokens_per_s_per_user"] == pytest.approx(1 / one["tpot_s"])
    assert one["requests_per_s"] == pytest.approx(8 / (one["ttft_s"] + 255 * one["tpot_s"]))
    assert two["tpot_s"] == pytest.approx(one["tpot_s"]) and two["tokens_per_s"] == pytest.approx(2 * one["tokens_per_s"])


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(MODELS), st.integers(40, 200), st.integers(1, 200), st.integers(1, 20000))
def test_the_largest_batch_grows_with_memory(model, gb, more, prompt):
    small, large = (ask(model=model, weights="int4", memory=g * 1e9, prompt=prompt).memory for g in (gb, gb + more))
    assert large["max_batch"] >= small["max_batch"] and large["max_context"] >= small["max_context"] and large["min_devices"] <= small["min_devices"]


def test_a_prompt_by_itself_waits_for_no_other():
    """TTFT of the batch is for all its prompts at once; one that arrives alone takes what batch 1 takes."""
    many, one = (evaluate(Scenario(model="llama-3.1-8b", hardware="h100-sxm", batch=b, prompt=2048)).serving for b in (32, 1))
    assert many["ttft_alone_s"] == pytest.approx(one["ttft_s"]) and one["ttft_alone_s"] == one["ttft_s"]
    assert many["ttft_s"] > 20 * many["ttft_alone_s"]


def test_what_a_time_to_first_token_means_is_told():
    """Of one prompt where a pool reads them one by one, and of prefill alone where chunks ride with decodes; else it is the batch's and nothing is said."""
    codes = lambda **more: {w["code"] for w in ask(batch=4, **more).warnings}
    assert "pools" in codes(prefill_hardware="h100-sxm") and "chunk" in codes(chunk=256) and not codes() & {"pools", "chunk"}
    alone, pooled = ask(batch=4).serving, ask(batch=4, prefill_hardware="h100-sxm").serving
    assert pooled["ttft_s"] - pooled["disaggregated"]["transfer_s"] == pytest.approx(alone["ttft_alone_s"]) and alone["ttft_alone_s"] < alone["ttft_s"]
