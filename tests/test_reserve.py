"""What a paged engine reserves, against vLLM's own start-up lines and against its rules worked out by hand."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roofline import Scenario, evaluate, formats
from roofline.catalogue import load
from roofline.memory import demand, kv_bytes
from roofline.parallel import Layout
from roofline.reserve import GIB, Kind, kinds, pool_of, reservation

BF16 = formats.parse("bf16")


def blocks(model, pool_gib, tp=1, kv=BF16):
    pool = pool_of(kinds(load(model), kv, tp))
    return pool_gib * GIB / pool.block_bytes


@pytest.mark.parametrize(("model", "pool_gib", "printed", "tolerance", "tp"), [
    ("llama-3.1-8b", 3.8125, 1952, 1e-9, 1),      # RTX 3090, vLLM issue 10517: 1,952 blocks of 16 tokens
    ("qwen3-235b-a22b", 8.11, 178880 / 16, 0.015, 4),  # 4 x H100, vLLM issue 21348: the smallest rank counts, this is one rank's pool
])
def test_blocks_of_a_printed_pool(model, pool_gib, printed, tolerance, tp):
    assert blocks(model, pool_gib, tp) == pytest.approx(printed, rel=tolerance)


def test_pool_of_a_printed_start_up():
    """Llama 3 8B on an H100 of 79.22 GiB at 0.9 (vLLM PR 10511): usable 71.29, weights 14.96, libraries 1.79, activations 1.26, cache 53.29 GiB.

    Working memory is an estimate, so the pool is within 2 %.
    """
    r = reservation(load("llama-3-8b"), BF16, BF16, batch=1, prompt=1000, output=24, layout=Layout(), memory_bytes=79.22 * GIB, overhead=1.79 * GIB)
    assert r["reserved_bytes"] / GIB == pytest.approx(71.29, abs=0.01)
    assert r["weights_bytes"] / GIB == pytest.approx(14.96, abs=0.01)
    assert r["pool_bytes"] / GIB == pytest.approx(53.29, rel=0.02)


def test_one_kind_of_layer_is_one_group():
    """Llama 3 8B: 32 layers x 16 tokens x 4,096 B = 2 MiB a block; 1,024 tokens take 64 of them."""
    pool = pool_of(kinds(load("llama-3.1-8b"), BF16))
    assert pool.block_bytes == 2 * 2 ** 20 and pool.group == 32 and pool.blocks_of(1024, 8192) == 64 and pool.blocks_of(1025, 8192) == 65


def test_windows_share_the_pool():
    """Gemma 3 27B: 10 full and 52 windowed layers: groups of 10 layers, 1 + 6 groups, the last windowed group with 8 padding layers.

    A request of 8,192 tokens after chunks of 2,048: full 512 blocks; windowed ceil((1,023 + 2,048) / 16) + 1 = 193 each.
    """
    pool = pool_of(kinds(load("gemma-3-27b"), BF16))
    assert pool.group == 10 and [g for _, _, g in pool.parts] in ([1, 6], [6, 1])
    assert pool.blocks_of(8192, 2048) == 512 + 6 * 193
    r = reservation(load("gemma-3-27b"), BF16, BF16, batch=1, prompt=8000, output=192, layout=Layout(), memory_bytes=141e9)
    assert sum(g["padding_layers"] for g in r["groups"]) == 8


def test_nearly_equal_counts_are_padded_up():
    """12 full and 13 windowed layers are padded to 13 and 13, two groups, not three (vLLM's own example); 10 and 20 make three of 10."""
    near = pool_of((Kind(name="full", layers=12, page_per_token=4096), Kind(name="window", layers=13, page_per_token=4096, window=128)))
    assert near.group == 13 and [g for _, _, g in near.parts] == [1, 1]
    far = pool_of((Kind(name="full", layers=10, page_per_token=4096), Kind(name="window", layers=20, page_per_token=4096, window=128)))
    assert far.group == 10 and [g for _, _, g in far.parts] == [1, 2]


def test_states_stretch_the_attention_block():
    """16 attention layers of 1,024 B a token and 48 states of 1.6 MB: blocks of 16 x ceil(1.6e6 / 16,384) = 1,568 tokens; a request takes one block of each of 3 state groups.

    1,568 is what vLLM prints for a hybrid of this shape (Qwen3.8-27B, FP8 cache, two cards).
    """
    pool = pool_of((Kind(name="full", layers=16, page_per_token=1024.0), Kind(name="state", layers=48, state=1.6e6)))
    assert pool.page == 1568 * 1024 and pool.group == 16
    assert pool.blocks_of(131072, 2048) == 84 + 3


def test_smaller_pages_take_more_tokens():
    """Two windows sizes of cache: the layers that cache half as much a token get blocks of twice the tokens."""
    pool = pool_of((Kind(name="full", layers=4, page_per_token=4096), Kind(name="window", layers=4, page_per_token=2048, window=512)))
    assert sorted(tokens for _, tokens, _ in pool.parts) == [16, 32]


MODELS = ("llama-3.1-8b", "gemma-3-27b", "gpt-oss-20b", "deepseek-v3", "qwen3-30b-a3b", "mixtral-8x7b")


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(MODELS), st.integers(1, 60000), st.integers(1, 500), st.sampled_from((1, 2, 4)))
def test_an_engine_never_holds_more_than_the_minimum_allows(model, prompt, output, tp):
    """Blocks, padding and shared pages only add: a request's blocks are at least its bytes; a longer request never takes fewer."""
    arch = load(model)
    pool = pool_of(kinds(arch, BF16, tp))
    assert pool.blocks_of(prompt + output, 8192) * pool.block_bytes * (1 + 1e-12) >= kv_bytes(arch, BF16, prompt + output, tp) / tp
    assert pool.blocks_of(prompt + output + 1, 8192) >= pool.blocks_of(prompt + output, 8192)


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(MODELS), st.integers(20, 300), st.integers(1, 200), st.integers(1, 20000), st.integers(1, 64))
def test_more_memory_holds_more(model, gb, more, prompt, batch):
    """Largest batch and context grow with memory, and the batch the report names as largest really fits."""
    def ask(memory):
        return reservation(load(model), formats.parse("int4"), BF16, batch=batch, prompt=prompt, output=16, layout=Layout(tp=2), memory_bytes=memory * 1e9, chunk=2048)
    small, large = ask(gb), ask(gb + more)
    if gb < 75 <= gb + more:
        return  # the engine takes larger settings on larger chips
    assert large["max_batch"] >= small["max_batch"] and large["max_context"] >= small["max_context"]
    assert small["max_batch"] * small["blocks_per_sequence"] <= small["blocks"]
    if small["max_context"]:
        pool = pool_of(kinds(load(model), BF16, 2))
        assert pool.blocks_of(small["max_context"], 2048) * batch <= small["blocks"]


def test_the_report_carries_both():
    """The minimum and the engine's reservation stand side by side; the engine serves no more than the minimum allows."""
    m = evaluate(Scenario(model="llama-3.1-8b", hardware="h100-sxm", batch=8, prompt=4000, output=96)).memory
    e = m["engine"]
    assert e["fits"] and 0 < e["max_batch"] <= m["max_batch"] and e["max_context"] <= m["max_context"]
    assert any("90%" in line for line in e["assumptions"])
    assert evaluate(Scenario(model="llama-3.1-8b", hardware="h100-sxm", utilisation=0.5)).memory["engine"]["utilisation"] == 0.5
    assert evaluate(Scenario(model="llama-3.1-8b", hardware="xeon-8480plus")).memory["engine"] is None


@pytest.mark.parametrize("scenario", [
    Scenario(model="llama-3.1-405b", hardware="h100-sxm", devices=8, batch=64, prompt=8000), Scenario(model="llama-3.1-70b", hardware="h100-sxm", devices=2, batch=64, prompt=8000),
    Scenario(model="deepseek-v3", hardware="h100-sxm", devices=8, weights="bf16"), Scenario(model="llama-3.1-70b", hardware="rtx-4090"),
])
def test_every_way_out_really_fits(scenario):
    """What the refusal names is true: with that one change the scenario fits and has a time."""
    r = evaluate(scenario)
    assert r.memory["fits"] is False and r.memory["ways"]
    for way in r.memory["ways"]:
        changed = evaluate(scenario.replace(**way["change"]))
        assert changed.memory["fits"] and changed.decode.limit_s is not None, way
        said = next(w["text"] for w in r.warnings if w["code"] == "memory")
        assert way["text"] in said or f"{way['change']['devices']} such chips hold it" in said  # the same number is not named twice


def test_the_fewest_chips_may_need_a_pipeline():
    """405B with 273 GB of cache: 16 chips as 8 x 2 hold it; tensor parallel 16 would store 8 KV heads twice (1.36 of 1.28 TB)."""
    r = evaluate(Scenario(model="llama-3.1-405b", hardware="h100-sxm", devices=8, batch=64, prompt=8000))
    layout = next(w["change"] for w in r.memory["ways"] if "devices" in w["change"])
    assert (layout["tp"], layout["pp"]) == (8, 2)
    assert evaluate(Scenario(model="llama-3.1-405b", hardware="h100-sxm", devices=16, tp=16, batch=64, prompt=8000)).memory["fits"] is False


def test_the_fullest_stage_decides():
    """61 layers on 3 stages: the fullest holds 21, 63/61 of an equal share; on one stage nothing changes."""
    ask = lambda pp: demand(load("deepseek-v3"), BF16, BF16, batch=1, prompt=100, output=1, layout=Layout(tp=8, pp=pp))
    assert ask(3)[0] == pytest.approx(ask(1)[0] * 63 / 61) and ask(3)[1] == pytest.approx(ask(1)[1] * 63 / 61)


def test_an_engine_that_offloads_has_room():
    """Llama 3.1 70B on one H100 of 80 GB: with 60 % of its matrices in host memory 56.6 GB stay, and the engine serves from what is left of 72."""
    e = evaluate(Scenario(model="llama-3.1-70b", hardware="h100-sxm", prompt=1000, output=24, offload=0.6)).memory["engine"]
    assert e["weights_bytes"] == pytest.approx(0.4 * 2 * 70_553_706_496, rel=0.03) and e["fits"] and e["max_batch"] > 0
    assert not evaluate(Scenario(model="llama-3.1-70b", hardware="h100-sxm", prompt=1000, output=24)).memory["engine"]["fits"]
