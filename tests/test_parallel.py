"""Collectives and layouts: every cost derived by hand in the test, laws over all sizes, and the best layout of small cases."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roofline import InputError, Scenario, evaluate, network
from roofline.catalogue import load
from roofline.fabric import fabric_of
from roofline.hardware import ids
from roofline.hardware import load as chip
from roofline.levers import layouts
from roofline.operators import Pass
from roofline.parallel import Layout, check, collectives
from roofline.roof import link_of, link_seconds, roofs_of

STEP = Pass(sequences=1, new_tokens=1, start=1024, steps=1)


def named(ops, name):
    return next(o for o in ops if name in o.name)


# ---- one collective at a time -----------------------------------------------------------------------------------------


def test_ring_all_reduce():
    """Four chips, 100 B: scatter-reduce 3 pieces of 25 B and gather 3: 150 B sent by each; on 1 GB/s and 8 chips of 1 GB: 2 x 7/8 = 1.75 s."""
    assert network.all_reduce_bytes(100, 4) == 150
    assert network.collective_time("all_reduce", 1e9, 8, 1e9) == 1.75


def test_in_network_sum_sends_the_array_once():
    """A switch that adds: 1 GB leaves each chip once, whatever the number; two chips gain nothing (a ring of two sends 1 GB too)."""
    assert network.all_reduce_bytes(1e9, 8, in_network=True) == network.all_reduce_bytes(1e9, 72, in_network=True) == 1e9
    assert network.all_reduce_bytes(1e9, 2) == network.all_reduce_bytes(1e9, 2, in_network=True) == 1e9


def test_hierarchical_sum():
    """16 chips in 2 domains of 8, 8 GB: inside 2 x 7/8 x 8 = 14 GB a chip; between, each carries 1 GB: 2 x 1/2 x 1 = 1 GB over its adapter."""
    assert network.hierarchical_all_reduce_bytes(8e9, 8, 2) == (14e9, 1e9)


def test_all_to_all_across_nodes():
    """16 GB over 2 nodes of 8: each node holds 8 GB, half is for the other: 4 GB over 400 GB/s = 10 ms; inside 1 GB x 7/8 over 450 GB/s = 1.94 ms."""
    assert network.all_to_all_time(16e9, 2, 8, 450e9, 400e9) == pytest.approx(10e-3)
    assert network.all_to_all_time(8e9, 1, 8, 450e9) == pytest.approx(0.875e9 / 450e9)


def test_mesh_gives_each_peer_one_link():
    """MI300X: 7 links of 64 GB/s: 2 chips 64, 4 chips 192, 8 chips 448."""
    assert [network.mesh_bandwidth(64e9, n, 448e9) for n in (2, 4, 8)] == [64e9, 192e9, 448e9]


def test_ring_and_line_on_a_torus():
    """16 chips, 16 MB, 1 GB/s a link: a ring passes 1 MB both ways in 8 hops (8 ms); a line needs 15 hops one way (15 ms)."""
    assert network.axis_gather_time(16e6, 16, 1e9) == pytest.approx(8e-3)
    assert network.axis_gather_time(16e6, 16, 1e9, wraps=False) == pytest.approx(15e-3)
    # 1 kB pieces take no less than a hop's latency: 8 x 1 us.
    assert network.axis_gather_time(1.6e4, 16, 1e12, hop_s=1e-6) == pytest.approx(8e-6)


def test_wrap_around_rules():
    """v5e and v6e close at 16 only, v4 and v5p at multiples of 4: ports of the best shapes of 4, 8, 16, 256 (v5e) and 8, 64 (v5p)."""
    ports = lambda id, n: round(fabric_of(chip(id)).share(n) * 2 * fabric_of(chip(id)).axes)
    assert [ports("tpu-v5e", n) for n in (2, 4, 8, 16, 32, 256)] == [1, 2, 2, 2, 3, 4]
    assert [ports("tpu-v5p", n) for n in (2, 8, 16, 64)] == [1, 3, 4, 6]


def test_corner_to_corner():
    """TPU v5e 4 x 4: 2 ways of 6 hops; 16.8 MB over 2 x 45 GB/s = 186 us and 6 us of hops (scaling book, TPU chapter, question 5: 188 us with rounding)."""
    assert network.point_to_point_time(2 * 8 * 128 * 8192, 2, 45e9, 6, 1e-6) == pytest.approx(192.4e-6, rel=1e-3)


def test_tokens_cross_to_a_domain_once():
    """8 experts over 2 domains: 1 - 2^-8 = 0.996 tokens cross, not 8 / 2 = 4 copies; over 8 domains 7 (1 - (7/8)^8) = 4.59."""
    assert network.distinct_domains(8, 2) == pytest.approx(1 - 2 ** -8)
    assert network.distinct_domains(8, 8) == pytest.approx(7 * (1 - (7 / 8) ** 8))


@settings(deadline=None)
@given(st.floats(1, 1e12), st.integers(2, 512), st.sampled_from(("all_reduce", "all_gather", "reduce_scatter", "all_to_all")), st.floats(1e6, 1e13), st.floats(0, 1e-3))
def test_laws_of_collectives(size, n, op, bandwidth, alpha):
    """More chips never send less each; a sum is a scatter and a gather; latency adds; bytes over time give the bandwidth back."""
    time = network.collective_time(op, size, n, bandwidth, alpha)
    assert time >= alpha and network.collective_time(op, size, n + 1, bandwidth, alpha) >= time
    assert network.collective_time("all_reduce", size, n, bandwidth) == pytest.approx(2 * network.collective_time("all_gather", size, n, bandwidth))
    assert network.bus_bandwidth(size, network.collective_time(op, size, n, bandwidth), n, op) == pytest.approx(bandwidth)
    assert network.all_reduce_bytes(size, n, in_network=True) <= network.all_reduce_bytes(size, n)


@given(st.integers(1, 4096), st.integers(1, 3), st.sampled_from((None, 4, 16)))
def test_shapes_hold_their_chips(n, axes, wrap):
    shape = network.torus_shape(n, axes, wrap)
    assert math.prod(shape) == n and len(shape) == axes
    assert 0 <= network.torus_ports(shape, wrap) <= 2 * axes


# ---- the engine on a chip's own network -------------------------------------------------------------------------------


def seconds(hardware, tp, **more):
    """The all-reduces of one decode step of Llama 3.1 70B on tp chips, at the limit."""
    c, layout = chip(hardware), Layout(tp=tp)
    ops = collectives(load("llama-3.1-70b"), STEP, layout, fabric=fabric_of(c, more.get("network")))
    return link_seconds(named(ops, "all-reduce"), roofs_of(c, layout, ("bf16",), more.get("network")))


SIZE = 2 * 80 * 8192 * 2  # two blocks a layer, 80 layers, 8,192 values of 2 bytes


@pytest.mark.parametrize(("hardware", "tp", "want"), [
    ("h100-sxm", 8, SIZE / 450e9),                       # the switch adds: sent once
    ("a100-80gb-sxm", 8, 2 * 7 / 8 * SIZE / 300e9),      # a ring
    ("mi300x", 2, SIZE / 64e9),                          # one link of seven
    ("mi300x", 8, 2 * 7 / 8 * SIZE / 448e9),
    ("tpu-v5e", 8, 2 * 7 / 8 * SIZE / 100e9),            # a corner of 2 x 4 has 2 ports of 50 GB/s
    ("l40s", 4, 2 * 3 / 4 * SIZE / 31.5e9),              # through PCI Express
])
def test_all_reduce_inside_a_domain(hardware, tp, want):
    assert seconds(hardware, tp) == pytest.approx(want, rel=1e-9)


def test_all_reduce_beyond_a_domain():
    """16 H100: each carries an eighth between two servers: SIZE / 8 x 2 x 1/2 over 50 GB/s (one 400 Gbit/s adapter): 0.28 of what NVLink takes; over 5 GB/s it holds."""
    assert seconds("h100-sxm", 16) == pytest.approx(max(SIZE / 450e9, SIZE / 8 / 50e9))
    assert seconds("h100-sxm", 16, network=5e9) == pytest.approx(SIZE / 8 / 5e9)


def test_an_assumed_network_is_said():
    text = lambda **more: [w["text"] for w in evaluate(Scenario(model="llama-3.1-70b", hardware="h100-sxm", devices=16, **more)).warnings if w["code"] == "network"]
    assert "50.0" in text()[0] and "400 Gbit/s" in text()[0]
    assert text(network=1e11) == []


def test_bridged_cards_meet_through_the_host():
    """Four H100 PCIe: pairs over the bridge, two pairs over PCI Express 5 x16 (63 GB/s)."""
    f = fabric_of(chip("h100-pcie"))
    assert f.domain == 2 and f.network_bytes_per_s == chip("h100-pcie").host_bytes_per_s and not f.in_network


def test_every_chip_has_a_fabric():
    for id in ids():
        f = fabric_of(chip(id))
        assert f.source and f.kind in ("switch", "mesh", "torus", "host") and 0 < f.share(4) <= 1, id
        assert f.kind == "torus" or f.all_reduce_s > 0, id


def test_expert_layers_send_once_less():
    """Mixtral, tp 2 x 4 replicas, experts over all 8: tokens stay scattered, so its 32 expert layers need no second all-reduce: 32 of 64 blocks."""
    arch, p = load("mixtral-8x7b"), Pass(sequences=16, new_tokens=1, start=1, steps=1, pool=4)
    plain = named(collectives(arch, p, Layout(tp=2, dp=4)), "all-reduce")
    shared = named(collectives(arch, p, Layout(tp=2, ep=8, dp=4)), "all-reduce")
    assert plain.messages == 64 and shared.messages == 32 and shared.link_bytes == plain.link_bytes / 2
    # Each rank sends its half of 16 tokens to 2 experts, 7/8 of them elsewhere.
    assert named(collectives(arch, p, Layout(tp=2, ep=8, dp=4)), "combine").link_bytes == pytest.approx(32 * 8 * 2 * 4096 * 2 * 7 / 8)


def test_unbalanced_experts_hold_up_their_rank():
    """The busiest rank receives 1.5 times the mean: dispatch and combine take 1.5 times as long."""
    ask = lambda imbalance: evaluate(Scenario(model="deepseek-v3", hardware="h200-sxm", devices=16, tp=1, dp=16, ep=16, batch=64, imbalance=imbalance)).decode
    even, skewed = ask(1.0), ask(1.5)
    assert skewed.limit_parts_s["network"] == pytest.approx(1.5 * even.limit_parts_s["network"])
    assert skewed.limit_s > even.limit_s


def test_pipeline_hops():
    """Llama 3 70B on 4 stages: 3 hops of 8,192 x 2 B; on servers of 8 with tp 8 every hop leaves the server."""
    hop = named(collectives(load("llama-3.1-70b"), STEP, Layout(pp=4), fabric=fabric_of(chip("h100-sxm"))), "hop")
    assert hop.link_bytes == 3 * 8192 * 2 and hop.network_bytes == 0
    far = named(collectives(load("llama-3.1-70b"), STEP, Layout(tp=8, pp=4), fabric=fabric_of(chip("h100-sxm"))), "hop")
    assert far.network_bytes == far.link_bytes == 3 * 8192 * 2 / 8


def test_pipeline_stages_prefill_at_once():
    """Two stages on chunks of a long prompt: each computes and sends its half, but the weights are read in turn."""
    one, two = (evaluate(Scenario(model="llama-3.1-70b", hardware="h200-sxm", devices=4 * pp, tp=4, pp=pp, prompt=60000, output=1, network=450e9)).prefill.limit_parts_s for pp in (1, 2))
    assert two["compute"] == pytest.approx(one["compute"] / 2) and two["network"] == pytest.approx(one["network"] / 2, rel=0.02)
    assert two["memory"] == pytest.approx(one["memory"], rel=0.2)


def test_the_network_is_a_third_roof():
    """H100: 989.4 TFLOP/s over 450 GB/s = 2,199 FLOP for each byte sent. Prefill of TP 8 does F/tp FLOPs for S bytes; slower links turn it network-bound."""
    r = evaluate(Scenario(model="llama-3.1-70b", hardware="h100-sxm", devices=8))
    assert r.hardware["link_ridge_flops_per_byte"] == pytest.approx(989.4e12 / 450e9)
    assert r.prefill.link_intensity_flops_per_byte == pytest.approx(r.prefill.flops / 8 / r.prefill.link_bytes)
    assert r.prefill.bound == "compute" and r.prefill.link_intensity_flops_per_byte > r.hardware["link_ridge_flops_per_byte"]
    slow = evaluate(Scenario(model="llama-3.1-70b", hardware="h100-sxm", devices=8, link=50e9))
    assert slow.prefill.bound == "network" and slow.prefill.link_intensity_flops_per_byte < slow.hardware["link_ridge_flops_per_byte"]
    lone = evaluate(Scenario(model="llama-3.1-8b", hardware="h100-sxm"))
    assert lone.hardware["link_ridge_flops_per_byte"] is None and lone.decode.link_intensity_flops_per_byte is None


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from((1, 2, 4, 8, 16, 32)), min_size=2, max_size=5), st.sampled_from(("h100-sxm", "mi300x", "tpu-v5e", "l40s", "h100-pcie")), st.sampled_from((1, 2, 4)))
def test_layouts_broadcast(tps, hardware, pp):
    """An array of layouts gives what each gives alone: bytes, shares, latencies and roofs."""
    arch, c = load("llama-3.1-405b"), chip(hardware)
    f = fabric_of(c)
    every = Layout(tp=np.array(tps), pp=pp)
    many = {o.name: o for o in collectives(arch, STEP, every, fabric=f)}
    roofs = link_of(c, every)
    for i, tp in enumerate(tps):
        alone = {o.name: o for o in collectives(arch, STEP, Layout(tp=tp, pp=pp), fabric=f)}
        assert np.broadcast_to(roofs, len(tps))[i] == pytest.approx(link_of(c, Layout(tp=tp, pp=pp)))
        for name, op in many.items():
            for field in ("link_bytes", "network_bytes", "latency_s", "messages"):
                got = np.broadcast_to(getattr(op, field), len(tps))[i]
                assert got == pytest.approx(getattr(alone[name], field) if name in alone else 0.0, abs=1e-30)


def test_more_network_never_hurts():
    times = [evaluate(Scenario(model="llama-3.1-405b", hardware="h100-sxm", devices=16, weights="fp8", batch=32, prompt=4000, network=n)).prefill.limit_s for n in (1e9, 1e10, 5e10, 1e12)]
    assert times == sorted(times, reverse=True) and times[0] > times[-1]


# ---- which layout -----------------------------------------------------------------------------------------------------


def best(goal, **more):
    return layouts(Scenario(**more), goal)["layouts"][0]


def test_a_lone_user_wants_tensor_parallel():
    """One request of 70B on 8 H100: only tensor parallel divides a token's weights; replicas and stages cannot."""
    top = best("tpot", model="llama-3.1-70b", hardware="h100-sxm", devices=8)
    assert (top["tp"], top["pp"], top["dp"]) == (8, 1, 1)


def test_many_users_of_a_small_model_want_replicas_on_slow_links():
    """8B on 8 cards with 1 GB/s between them: 64 all-reduces of 256 x 8 kB take longer than reading all weights, so replicas serve 256 requests fastest; on NVLink they do not."""
    ask = dict(model="llama-3.1-8b", hardware="l40s", devices=8, batch=256, prompt=512, output=128)
    assert best("throughput", **ask, link=1e9)["tp"] == 1
    assert best("throughput", **ask, link=450e9)["tp"] > 1


def test_experts_of_a_large_mixture_are_shared_by_all():
    """DeepSeek-V3 on 64 H200 with 256 requests: sharing 256 experts over all chips reads each once; the best layout has one expert group of 64."""
    top = best("throughput", model="deepseek-v3", hardware="h200-sxm", devices=64, batch=256)
    assert top["ep"] == 64


def test_no_layout_that_cannot_be():
    """Every row is legal, fits, multiplies to the devices and keeps the requests in flight; the refused and unfit are counted."""
    for s in (Scenario(model="llama-3.1-70b", hardware="h100-sxm", devices=12, batch=8), Scenario(model="mixtral-8x7b", hardware="h100-sxm", devices=8, batch=8)):
        answer = layouts(s, most=1000)
        for row in answer["layouts"]:
            layout = Layout(tp=row["tp"], pp=row["pp"], ep=row["ep"], dp=row["dp"])
            check(layout, load(s.model))
            assert layout.devices == s.devices and row["batch"] * row["dp"] >= s.batch and row["figures"]["fits"]
        assert answer["tried"] == len(answer["layouts"]) + answer["refused"] + answer["unfit"]
    # 12 chips as one group are impossible themselves; the search finds what is not.
    odd = layouts(Scenario(model="llama-3.1-70b", hardware="h100-sxm", devices=12, batch=8))
    assert odd["refused"] > 0 and all(row["tp"] in (1, 2, 4) for row in odd["layouts"])


def test_layouts_are_ranked_by_their_goal():
    """What messages cost is added to a time at the limit; memory and the rest are ranked as they are."""
    for goal, value in (("tpot", lambda row: row["figures"]["tpot_s"] + row["messages_s"]), ("memory", lambda row: row["figures"]["bytes_per_chip"]), ("throughput", lambda row: -row["rank"])):
        rows = layouts(Scenario(model="llama-3.1-70b", hardware="h100-sxm", devices=8, batch=16, engine="none"), goal)["layouts"]
        values = [value(row) for row in rows]
        assert values == sorted(values) and len(values) > 4
    with pytest.raises(InputError, match="goal"):
        layouts(Scenario(), "beauty")


def test_nothing_fits_gives_no_layout():
    answer = layouts(Scenario(model="llama-3.1-405b", hardware="l4", devices=4))
    assert answer["layouts"] == [] and answer["unfit"] > 0


def test_the_search_is_fast():
    """8 and 64 devices, dense and MoE: well within a second each (generous, since others may share the machine)."""
    import time

    for s in (Scenario(model="llama-3.1-70b", hardware="h100-sxm", devices=8, batch=64), Scenario(model="llama-3.1-70b", hardware="h100-sxm", devices=64, batch=64),
              Scenario(model="deepseek-v3", hardware="h200-sxm", devices=64, batch=256)):
        layouts(s)  # caches warm, as in a page that has answered once
        start = time.perf_counter()
        layouts(s)
        assert time.perf_counter() - start < 2.0


def test_the_busiest_rank_reads_no_more_than_its_experts():
    """Mixtral on 4 ranks, 512 tokens: every expert is read already, so a rank with 3 times the tokens does 3 times the work and reads the same."""
    ask = lambda batch, imbalance, **layout: evaluate(Scenario(model="mixtral-8x7b", hardware="b200-sxm", prompt=1000, output=100, batch=batch, imbalance=imbalance, **layout)).decode
    experts = lambda phase, what: sum(getattr(op, what) for op in phase.operators if op.group == "experts")
    even, skewed = (ask(512, load, devices=4, ep=4) for load in (1.0, 3.0))
    assert skewed.limit_parts_s["memory"] == pytest.approx(even.limit_parts_s["memory"])
    assert skewed.limit_parts_s["compute"] - even.limit_parts_s["compute"] == pytest.approx(2 * experts(even, "flops") / 4 / 2.25e15)
    # One token on twice the mean: 8 (1 - (3/4)^2) = 3.5 experts for 2.
    one, two = (ask(1, load, devices=4, ep=4) for load in (1.0, 2.0))
    read = 32 * 3 * 4096 * 14336 * 2 / 4 / 7.7e12  # the bytes of one expert of every layer, on one of four chips
    assert two.limit_parts_s["memory"] - one.limit_parts_s["memory"] == pytest.approx(1.5 * read, rel=1e-3)


@pytest.mark.parametrize("layout", [{}, {"tp": 4}])
def test_experts_that_are_not_spread_cannot_be_uneven(layout):
    """One chip has all experts, and tensor parallelism cuts each of them alike: an imbalance changes nothing, and the report says so."""
    even, skewed = (evaluate(Scenario(model="mixtral-8x7b", hardware="b200-sxm", batch=8, imbalance=load, **layout)) for load in (1.0, 2.0))
    assert skewed.decode.limit_s == even.decode.limit_s and skewed.prefill.limit_s == even.prefill.limit_s
    assert "imbalance" in {w["code"] for w in skewed.warnings} and "imbalance" not in {w["code"] for w in even.warnings}


def test_a_limit_counts_a_token_once_for_a_chip():
    """8 of 256 experts on 8 chips: a token goes to 7 (1 - (7/8)^8) = 4.595 other chips, though 7 copies are sent where each expert gets its
    own; counted by drawing experts at random (without putting one back, so a little more)."""
    rng = np.random.default_rng(1)
    others = np.mean([len({e // 32 for e in rng.choice(256, 8, replace=False)} - {0}) for _ in range(20_000)])
    assert network.distinct_ranks(8, 8) == pytest.approx(others, rel=0.015)
    r = evaluate(Scenario(model="deepseek-v3", hardware="h200-sxm", tp=1, dp=8, ep=8, batch=128, weights="bf16", memory=1e15, engine="none")).decode
    sent = 58 * 128 * 7168 * 2 * 2  # out and back, in BF16
    assert r.link_bytes == pytest.approx(7 * sent)
    assert r.limit_parts_s["network"] == pytest.approx(7 * (1 - (7 / 8) ** 8) * sent / 450e9)
    assert network.distinct_ranks(8, 8, 1000) == pytest.approx(8 * 7 / 8, rel=1e-3)  # over many chips every copy is needed


def test_a_layout_that_does_not_fit_is_named_with_what_it_needs():
    """Tensor parallelism copies a latent cache to every rank, so 256 long requests of DeepSeek-V3 fit only where replicas share them out."""
    answer = layouts(Scenario(model="deepseek-v3", hardware="h200-sxm", devices=8, batch=256, prompt=4000, output=1000))
    first = answer["too_large"][0]
    assert (first["tp"], first["dp"]) == (8, 1) and first["needs_bytes"] > first["has_bytes"] == pytest.approx(8 * 141e9)
    assert len(answer["too_large"]) == answer["unfit"] and all(row["dp"] > 1 or row["pp"] > 1 for row in answer["layouts"])
