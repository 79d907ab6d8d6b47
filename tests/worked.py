"""What the package says about the published worked cases and traps: one function a case, each through the package's own functions.

Used by test_worked.py and by docs/make_agreement.py. `answer(case)` gives {key: value} in the units of the case; the keys are
those of its `published` or `derived` column. Keys that only a measurement can give are left out.
"""

import csv
import json
from math import ceil
from pathlib import Path

from roofline import Scenario, cost, evaluate, formats, formulas, memory, network, serving
from roofline.catalogue import load
from roofline.fabric import fabric_of
from roofline.hardware import load as chip
from roofline.model import Architecture, Attention, kv_bytes_per_token
from roofline.operators import Pass, distinct_experts
from roofline.parallel import Layout, collectives
from roofline.roof import ridge

DATA = Path(__file__).parent / "data"
BF16, ONE_BYTE = formats.parse("bf16"), formats.parse("fp8", "kv")


def _rows(name):
    rows = list(csv.DictReader((DATA / name).open(encoding="utf-8")))
    for row in rows:
        for key in ("inputs", "published", "derived", "scenario"):
            if key in row:
                row[key] = json.loads(row[key])
    return rows


CASES = {row["id"]: row for row in _rows("worked_cases.csv")}
TRAPS = {row["id"]: row for row in _rows("worked_traps.csv")}


def answer(row) -> dict:
    """Our figures for one case."""
    name = next(key for key in sorted(ANSWERS, key=len, reverse=True) if row["id"] == key or row["id"].startswith(key + "-"))
    return ANSWERS[name](row["inputs"])


# ---- roofline and attention -------------------------------------------------------------------------------------------


def _roof_12(i):
    times = [formulas.product_time(rows, 4096, 8192, i["flops"], i["bw"]) * 1e6 for rows in (64, 512)]
    return {"b64_us": times[0], "b512_us": times[1]}


def _roof_06(i):
    ratio = i["F"] / i["D"]
    at = ridge(i["flops"], i["pcie"])
    return {"b_crit": formulas.critical_batch(i["flops"], i["pcie"]), "max_intensity_D8192": formulas.largest_intensity(i["D"], i["F"]), "D_needed_for_any_B": formulas.width_needed(at, ratio)}


def _roof_16(i):
    """Llama 3 70B as the engine counts it: the core's FLOPs over everything it moves."""
    r = evaluate(Scenario(model="llama-3.1-70b", hardware="h100-sxm", devices=8, prompt=i["S"], output=1))
    core = next(o for o in r.decode.operators if o.group == "attention_core")
    return {"intensity_limit": core.intensity_flops_per_byte}


def _pre_05(i):
    found = {}
    for key, name, ours in (("dsv3", "DSv3", "deepseek-v3"), ("llama405", "Llama405", "llama-3.1-405b"), ("qwen72", "Qwen72", "qwen2.5-72b")):
        core = load(ours).attentions[0]
        attention = formulas.attention_flops(1, 4096 / 2, core.heads, core.qk_dim, core.v_dim) * core.count
        found[key] = formulas.training_flops_per_token(i["N"][name], attention) / 1e9
    return found


def _att_02(i):
    forward = formulas.attention_flops(i["N"], i["N"], i["heads"], i["d"], sequences=i["B"])
    # The backward pass has four products for the forward pass's two.
    return {"forward": forward / 1e9, "gflop": 3 * forward / 1e9, "causal": 3 * formulas.attention_flops(i["N"], i["N"], i["heads"], i["d"], sequences=i["B"], causal=True) / 1e9}


# ---- cache and memory -------------------------------------------------------------------------------------------------


def _kv_01(i):
    arch = load("llama-3.1-70b")
    one = memory.kv_bytes(arch, ONE_BYTE, 1)
    return {"bytes_per_token": one, "table_int8": one, "table_bf16": kv_bytes_per_token(arch)}


def _kv_02(i):
    each = memory.kv_bytes(load("llama-3.1-70b"), ONE_BYTE, i["S"])
    return {"per_seq_gb": each / 1e9, "bs240_tb": i["B"] * each / 1e12, "chips": memory.chips_for(i["weights"] + i["B"] * each, i["hbm"])}


def _kv_03(i):
    each = memory.kv_bytes(load("llama-2-13b"), BF16, i["S"])
    return {"per_seq_gb": each / 1e9, "seqs_to_exceed_weights": ceil(i["weights"] / each)}


def _kv_15(i):
    total, one = i["chips"] * 32 * 2 ** 30, 32 * 2 ** 30
    mha, mqa = memory.kv_per_token(118, 64, 128), memory.kv_per_token(118, 1, 256)
    fit = lambda room, batch, each: memory.context_that_fits(room, batch, each, i["reserve"])
    return {f"{name}_b{b}": fit(room, b, each) for name, room, each in (("mha", total, mha), ("mqa_head_sharded", one, mqa), ("mqa_batch_sharded", total, mqa)) for b in (128, 512)}


def _kv_published(model):
    return lambda i: {"kB_per_token": kv_bytes_per_token(load(model)) / 1e3}


def _fit_01(i):
    total = i["weights"] + i["B"] * memory.kv_bytes(load("llama-3.1-70b"), ONE_BYTE, i["S"])
    return {"total_gb": total / 1e9, "chips": memory.chips_for(total, i["hbm"])}


def _fit_03(i):
    each = memory.kv_bytes(load("llama-3.1-70b"), ONE_BYTE, i["ctx"])
    room = i["chips"] * i["hbm"]
    return {"min_chips": memory.chips_for(i["weights"], i["hbm"]), "remaining_gb": (room - i["weights"]) / 1e9, "caches": int(memory.sequences_that_fit(room, i["weights"], each))}


def _fit_06(i):
    found, hbm, context, output, step = {}, 16e9, 8192, 512, 0.019
    for name, (chips, weights, token) in i["doubled"].items():
        batch = int(memory.sequences_that_fit(chips * hbm, weights, token * context))
        found[f"qps_{name}"] = serving.queries_per_s(batch, step, output, chips)
        if name == "bf16":
            found |= {"remaining_bf16_gb": (chips * hbm - weights) / 1e9, "batch": batch}
    return found


def _fit_08(i):
    v5e = chip("tpu-v5e")
    return {"hosts": v5e.domain / fabric_of(v5e).host, "flops": v5e.domain * v5e.peak("bf16"), "hbm_tb": v5e.domain * v5e.memory_bytes / 1e12}


# ---- decoding and prefill ---------------------------------------------------------------------------------------------


def _dec_03(i):
    step = formulas.decode_step(26e9, i["kv_per_seq"], i["bw"], i["chips"], batch=i["B"])
    return {"step_ms": step * 1e3, "tok_s": i["B"] / step}


def _dec_06(i):
    size = 2 * formulas.block_parameters(i["L"], i["D"])
    return {"forward_ms": formulas.stream_time(size, i["bw"]) * 1e3, "four_gpu_ms": formulas.stream_time(size, i["bw"], 4) * 1e3}


def _dec_08(i):
    # kipply takes the ring's 2 (n-1)/n as 2.
    sent = network.tensor_parallel_bytes(i["B"], i["D"], i["L"], float("inf"))
    return {"compute_ms": formulas.compute_time(2 * i["params"] * i["B"], i["flops"], i["gpus"]) * 1e3, "comms_ms": formulas.stream_time(sent, i["link"]) * 1e3}


def _dec_11(i):
    floor = formulas.compute_time(2 * formulas.block_parameters(i["L"], i["D"]) * i["tokens"], i["flops"])
    # Its own 22 ms for 231 tokens, scaled to 512.
    return {"expected_ms": 22 * i["tokens"] / 231, "floor_ms": floor * 1e3, "mfu": floor / (i["context_ms"] / 1e3)}


def _dec_12(i):
    step = i["latency_ms"] / 1e3
    floor = formulas.stream_time(i["params"], i["bw"], 64)
    return {"mfu": formulas.mfu(2 * i["params"] * i["B"], step, i["flops"], 64), "total_s": i["gen"] * step, "weight_floor_ms": floor * 1e3, "ratio_to_floor": step / floor}


def _dec_16(i):
    floor = formulas.stream_time(i["bytes"], i["bw"])
    return {"measured_ms": floor * 1e3, "floor_ms": floor * 1e3}


def _dec_18(i):
    each = memory.kv_bytes(load("llama-3.1-70b"), ONE_BYTE, i["S"])
    step = lambda batch: formulas.decode_step(70e9, each, 820e9, 16, batch=batch)
    return {"min_latency_ms": step(1) * 1e3, "tok_ms_chip_at_120": i["B"] / (step(i["B"]) * 1e3 * 16)}


# ---- collectives ------------------------------------------------------------------------------------------------------


def _col_02(i):
    return {"algbw": network.algorithm_bandwidth(i["bytes"], i["us"] / 1e6) / 1e9, "busbw": network.bus_bandwidth(i["bytes"], i["us"] / 1e6, 8) / 1e9}


def _col_05(i):
    ring, switch = network.all_reduce_bytes(1.0, i["n"]), network.all_reduce_bytes(1.0, i["n"], in_network=True)
    return {"ring_eff": i["ring"] * 1e9 / chip("h200-sxm").link_bytes_per_s, "gain": i["sharp"] / i["ring"], "theory_gain": ring / switch}


def _col_08(i):
    return {"degradation": network.all_to_all_time(1.0, 2, 8, i["gpu"], i["node"]) / network.all_to_all_time(1.0, 1, 8, i["gpu"])}


def _col_09(i):
    levels = {name: network.level_bandwidth(uplink, degree) / 1e9 for name, (degree, uplink) in i["levels"].items()}
    return levels | {"overall": network.tree_bandwidth(i["levels"].values()) / 1e9}


def _col_10(i):
    h100 = chip("h100-sxm")
    inject = network.injection_bandwidth(8, 1, h100.link_bytes_per_s) / 1e12
    return {"switch_tb": network.switch_bandwidth(4, 64, 25e9) / 1e12, "peak_tb": inject, "bisection_tb": inject}


def _col_11(i):
    egress = network.injection_bandwidth(4, 18, 400e9 / 8)
    return {"egress_gbs": egress / 1e9, "vs_h100": egress / 400e9}


def _col_12(i):
    mi300x, bus = chip("mi300x"), {int(n): v * 1e9 for n, v in i["busbw"].items()}
    link = lambda n: network.mesh_bandwidth(mi300x.pair_bytes_per_s, n, mi300x.link_bytes_per_s)
    return {"all_to_all_gbs": link(8) / 1e9, "ratio": bus[8] / bus[2], "eff8": bus[8] / link(8), "eff2": bus[2] / link(2)}


def _ici_01(i):
    size = 2 * 2048 * 8192
    return {"bidi_us": network.axis_gather_time(size, 4, i["uni"]) * 1e6, "no_wrap_us": network.axis_gather_time(size, 4, i["uni"], wraps=False) * 1e6}


def _ici_08(i):
    size, v5e = 131072 ** 2, chip("tpu-v5e")
    ports = network.torus_ports((4, 4), fabric_of(v5e).wrap)
    return {"pcie_ms": formulas.stream_time(size, i["pcie"], i["links"]) * 1e3, "ici_ms": network.gather_to_one_time(size, 16, ports, 45e9) * 1e3,
            "hbm_ms": formulas.stream_time(size, 8.1e11) * 1e3, "flops_ms": formulas.compute_time(2 * 8 * size, 1.97e14) * 1e3, "A_over_16GB": memory.chips_for(size, v5e.memory_bytes)}


def _ici_09(i):
    return {"latency_bound_below_kB": network.latency_bound_below(i["shards"], i["uni"], i["hop"]) / 1e3, "activation_kB": i["B"] * i["D"] / 1e3}


def _par_02(i):
    return {"ici_us": network.axis_gather_time(2 * i["B"] * i["D"], i["Y"], i["ici"] / 2) * 1e6, "hbm_us": formulas.stream_time(2 * i["D"] * i["F"], i["hbm"], i["Y"]) * 1e6,
            "math_us": formulas.compute_time(2 * i["B"] * i["D"] * i["F"], i["flops"], i["Y"]) * 1e6}


def _par_04(i):
    return {"intra": network.overlap_batch(i["flops"], i["gpu"]), "inter": network.overlap_batch(i["flops"], i["node"]), "two_node": network.overlap_batch(i["flops"], i["node"], 2)}


def _ep_01(i):
    sent = network.dispatch_bytes(i["tokens"], i["topk"], i["hidden"], i.get("bytes", 1.0), i.get("fp8_block"), i.get("scale_bytes", 0.0))
    return {"GBs": sent / (i["us"] / 1e6) / 1e9, "without_scales": network.dispatch_bytes(i["tokens"], i["topk"], i["hidden"]) / (i["us"] / 1e6) / 1e9}


# ---- services, money, energy ------------------------------------------------------------------------------------------


def _spec_04(i):
    predicted = serving.speculative_speedup(i["alpha"], i["gamma"], i["c"])
    return {"expected": predicted, "predicted": predicted}


def _dis_01(i):
    pools = lambda batch: serving.pool_ratio(i["prefill_s"], i["step_s"], batch, i["decode"])
    return {"prefill_per_decode": pools(i["B"]), "with_B43": pools(43)}


def _dis_03(i):
    decode, prefill = serving.instances_for(i["out_tokens_day"], 86400, i["decode_node"]), serving.instances_for(i["in_tokens_day"], 86400, i["prefill_node"])
    return {"avg_nodes": decode + prefill, "decode_nodes": decode, "prefill_nodes": prefill}


def _dis_04(i):
    rate = i["tok_s_node"] / i["gpus"]
    return {"user_tok_s": 21, "concurrency_per_gpu": serving.concurrency(rate, 21), "if_128_per_gpu": 1 / serving.tpot_of(128, rate)}


def _dis_09(i):
    d, r, k = i["D"], i["R"], i["K"]
    return {"base_s": serving.tensor_ttft(r, d, 1.0), "inter_s": serving.pipelined_ttft(r, d, 2), "intra_s": serving.tensor_ttft(r, d, k)}


def _dis_11(i):
    a, h = chip("a100-80gb-sxm"), chip("h100-sxm")
    return {"compute": h.peak("fp32") / a.peak("fp32"), "bandwidth": h.bandwidth_bytes_per_s / a.bandwidth_bytes_per_s, "power": h.tdp_w / a.tdp_w, "bf16_tensor_ratio": h.peak("bf16") / a.peak("bf16")}


def _dis_13(i):
    whole, last = serving.kv_transfer(memory.kv_bytes(load("llama-2-70b"), BF16, i["prompt"]), i["net"], i["layers"])
    return {"serial_ms": whole * 1e3, "one_layer_ms": last * 1e3}


def _chk_01(i):
    return {f"pd_opt_{c}": serving.chunk_ratio(c, i["B"]) for c in (256, 512)}


def _chk_02(i):
    floor = formulas.stream_time(i["weights"], i["bw"]) / i["B"]
    return {"gain": 12.49 / 1.2, "floor_ms": floor * 1e3, "mbu": formulas.mbu(i["weights"], 12.49e-3 * i["B"], i["bw"])}


def _chk_05(i):
    whole, one = i["tokens"]
    return {"linear_jump": formulas.change(whole, one), "tile_upper_bound": formulas.change(formulas.tile_rows(whole, i["tile"]), formulas.tile_rows(one, i["tile"]))}


def _cost_02(i):
    revenue = cost.revenue_usd((i["hit"], i["miss"], i["out"]), i["prices"])
    return {"revenue": revenue, "margin": cost.margin(revenue, i["cost"])}


def _cost_04(i):
    # 8 GPUs a node; 12 decode nodes of 16.
    return {"usd_per_Mout": cost.usd_per_million(8 * i["price"], i["tok_s_node"]), "all_16_nodes": cost.usd_per_million(16 * 8 * i["price"], 12 * i["tok_s_node"])}


def _en_03(i):
    r = evaluate(Scenario(model="gpt-oss-20b", hardware="rtx-6000-ada", batch=16))
    return {"mbu_upper_bound": r.decode.bandwidth_utilisation}


ANSWERS = {
    "roof-01": lambda i: {"b_crit": formulas.critical_batch(i["flops"], i["bw"], i["weight_bytes"])},
    "roof-02": lambda i: {"ridge": ridge(i["ops_int8"], i["bw"]), "b_crit": formulas.critical_batch(i["ops_int8"], i["bw"], 1)},
    "roof-03": lambda i: {"b_crit": formulas.critical_batch(i["flops"], i["bw"], 1)},
    "roof-05": lambda i: {"b_crit": formulas.critical_rows(4096, 16384, i["ops"], i["bw_vmem"], 1, 1, 1)},
    "roof-06": _roof_06,
    "roof-07": lambda i: {"h100_ridge": ridge(*i["H100"]), "b200_ridge": ridge(*i["B200"])},
    "roof-10": lambda i: {"intensity": formulas.unfused_intensity(i["N"], i["d"])},
    "roof-12": _roof_12,
    "roof-13": lambda i: {"layer_floor_us": formulas.stream_time(i["matmuls"] * i["d_model"] * i["d_ff"] * i["bytes"], i["bw"], i["shards"]) * 1e6, "params": i["matmuls"] * i["d_model"] * i["d_ff"]},
    "roof-15": lambda i: {"achieved_tb_s": 2 * i["params"] / (i["tpot_ms"] / 1e3) / 1e12, "mbu": formulas.mbu(2 * i["params"], i["tpot_ms"] / 1e3, i["peak"])},
    "roof-16": _roof_16,
    "roof-17": lambda i: {"T_equal": formulas.attention_equals_projections(i["D"]), "T_equal_causal": formulas.attention_equals_projections(i["D"], causal=True)},
    "kv-01": _kv_01, "kv-02": _kv_02, "kv-03": _kv_03,
    "kv-06": lambda i: {"bytes_per_token": memory.kv_per_token(i["L"], 1, i["D"], i["bytes"])},
    "kv-08": lambda i: {"tokens": memory.sequences_that_fit(i["gpus"] * i["hbm"], i["weights"], i["kv_per_token"])},
    "kv-09": _kv_published("deepseek-v3"), "kv-10": _kv_published("qwen2.5-72b"), "kv-11": _kv_published("llama-3.1-405b"),
    "kv-15": _kv_15,
    "kv-17": lambda i: {"kB": kv_bytes_per_token(load("deepseek-v3")) / 1024, "kB_1000": kv_bytes_per_token(load("deepseek-v3")) / 1000},
    "fit-01": _fit_01, "fit-03": _fit_03, "fit-06": _fit_06,
    "fit-07": lambda i: {"full_hbm_ms": formulas.stream_time(i["hbm"], i["bw"]) * 1e3, "int4_min_ms": formulas.stream_time(i["int4_weights"], i["bw"], i["chips"]) * 1e3},
    "fit-08": _fit_08,
    "fit-10": lambda i: {"batch": int(memory.sequences_that_fit(48e9, i["weights"], i["L"] * i["kv_per_token"]))},
    "dec-03": _dec_03, "dec-04": _dec_03, "dec-06": _dec_06, "dec-08": _dec_08, "dec-09": _dec_08, "dec-11": _dec_11, "dec-12": _dec_12, "dec-16": _dec_16, "dec-18": _dec_18,
    "pre-01": lambda i: {"s": formulas.compute_time(2 * i["params"] * i["tokens"], i["flops"], i["chips"], i["mfu"])},
    "pre-03": lambda i: {"gap_default": -formulas.change(i["deepseek_profile"], i["sglang"]), "gap_eplb_text": -formulas.change(i["deepseek_profile"], i["perfect_eplb"])},
    "pre-05": _pre_05,
    "col-02": _col_02, "col-05": _col_05, "col-08": _col_08, "col-09": _col_09, "col-10": _col_10, "col-11": _col_11, "col-12": _col_12,
    "col-16": lambda i: {"ib_hop_us": i["links_us"]["IB cross leaf"] - i["links_us"]["IB same leaf"]},
    "col-17": lambda i: {"p2p_gbs": chip("rtx-2080-ti").host_bytes_per_s / 1e9},
    "ici-01": _ici_01,
    "ici-02": lambda i: {"latency_us": network.axis_gather_time(2 * 256 * 256, 4, 45e9, wraps=False, hop_s=i["hop"]) * 1e6},
    "ici-04": lambda i: {"us": network.torus_gather_time(2 * 1024 * 4096, 4, 45e9) * 1e6},
    "ici-08": _ici_08, "ici-09": _ici_09,
    "par-02": _par_02, "par-04": _par_04, "par-05": lambda i: {"intra": network.overlap_batch(i["flops"], i["gpu"]), "inter": network.overlap_batch(i["flops"], i["node"])},
    "par-07": lambda i: {"max_TP": network.max_useful_tp(i["F"], 990e12, 450e9)},
    "par-08": lambda i: {"N_2D_beats_1D": network.two_axes_pay_from(i["F_over_D"], i["axes"], (1, 2))},
    "par-09": lambda i: {"n_2D_beats_1D": network.two_axes_pay_from(i["F_over_D"])},
    "par-11": lambda i: {f"{p}_tp": network.best_ffn_tp(i["D"], i["F"], i[p]["tokens"], i[p]["k"]) for p in ("prefill", "decode")},
    "ep-01": _ep_01, "ep-02": _ep_01,
    "ep-01-dispatch8": _ep_01, "ep-01-dispatch64": _ep_01, "ep-01-dispatch256": _ep_01, "ep-02-combine8": _ep_01, "ep-02-combine64": _ep_01, "ep-02-combine128": _ep_01,
    "ep-06": lambda i: {f"{p}_per_gpu": network.experts_per_chip(i["experts"], i[f"{p}_gpus"], i["redundant"]) for p in ("decode", "prefill")},
    "moe-03": lambda i: {f"B{b}": distinct_experts(i["E"], i["k"], b) for b in i["B"]},
    "moe-05": lambda i: {"b_crit": formulas.critical_batch(i["b_dense"], 1.0, 2.0, i["E"] / i["k"])},
    "moe-06": lambda i: {"tokens_per_expert": formulas.tokens_per_expert(i["B_per_gpu"] * i["gpus"], i["E"], i["k"]), "fp8_b_crit": formulas.critical_batch(chip("h100-sxm").peak("fp8"), 3.35e12, 1)},
    "spec-04": _spec_04,
    "spec-09": lambda i: {"speedup": i["tau"]},
    "spec-10": lambda i: {"chain_tau": float(serving.accepted_tokens(i["vicuna7b"]["alpha"], i["vicuna7b"]["depth"]))},
    "dis-01": _dis_01, "dis-02": lambda i: {"evicted_tokens_per_step": serving.evicted_tokens(i["B"], i["P"], i["G"])}, "dis-03": _dis_03, "dis-04": _dis_04,
    "dis-06": lambda i: {"itl_ms": serving.tpot_of(i["B"], i["tok_s_node"] / i["gpus"]) * 1e3},
    "dis-07": lambda i: {"tbo_gain": formulas.change(i["no_tbo"], i["mtp_tbo"]), "gap": -formulas.change(i["deepseek"], i["sglang_mtp"])},
    "dis-08": lambda i: {"speedup": formulas.change(i["h100_node"] / 8, i["gb200"]) + 1},
    "dis-09": _dis_09, "dis-11": _dis_11, "dis-13": _dis_13,
    "pfx-01": lambda i: {"hit_rate": serving.hit_rate(i["hit"], i["in"]), "prefill_work_left": serving.computed_tokens(1.0, serving.hit_rate(i["hit"], i["in"]))},
    "pfx-03": lambda i: {"improvement": formulas.change(i["kv_centric"], i["random"]) + 1},
    "pfx-04": lambda i: {"reduction": -formulas.change(i["baseline"], i["predictive"])},
    "chk-01": _chk_01, "chk-02": _chk_02,
    "chk-04": lambda i: {"overhead_max": formulas.chunk_overhead(i["P"], i["C"], i["kv"], 34.4e9, 312e12, 2.039e12, 2, i["mfu"])},
    "chk-05": _chk_05,
    "att-02": _att_02,
    "cost-01": lambda i: {"usd_day": cost.cluster_usd(i["nodes"], i["gpus"], i["price"], i["hours"])},
    "cost-02": _cost_02, "cost-04": _cost_04,
    "cost-07": lambda i: {"usd_per_1k": cost.usd_per_million(i["gpus"] * i["price"], i["tok_s"]) / 1e3},
    "cost-08": lambda i: {"usd_per_Min": cost.computing_usd_per_million(i["active"], i["flops"], i["price"], i["util"])},
    "cost-09": lambda i: {"usd_h": cost.owned_usd_per_hour(i["capex"], i["years"], opex=i["opex"])},
    "en-01": lambda i: {"J_per_token": cost.joules_per_token(i["watts"], 1.0, i["tok_s"])},
    "en-02": lambda i: {"J_per_token": cost.joules_per_token(i["J"] / i["s"], i["s"], i["tokens"]), "watts": i["J"] / i["s"]},
    "en-03": _en_03,
    "en-09": lambda i: {"token_machine_w": cost.capped_watts(i["h100_w"], i["cap"]), "J_ratio": cost.capped_watts(1.0, i["cap"])},
}


# ---- traps: (what a naive reading gives, what the package gives), in the trap's unit ----------------------------------


def _mla(tp):
    return memory.kv_bytes(load("deepseek-v3"), BF16, 1_000_000, tp) / tp / 1e9


def _windowed(full_length):
    """Trap 46's shape: 48 layers, every sixth full, 4,096 bytes a layer and token."""
    core = dict(heads=1, kv_heads=1, qk_dim=1024, v_dim=1024, kv_elements=2048)
    parts = (Attention(layers=tuple(range(8)), **core), Attention(layers=tuple(range(8, 48)), window=None if full_length else 1024, **core))
    arch = Architecture(id="windowed", family="made by hand", hidden=1, layer_count=48, vocab=1, heads=1, tensors=(), attentions=parts)
    return memory.kv_bytes(arch, BF16, 32768) / 1e9


def _trap_27():
    p = evaluate(Scenario(model="llama-3.1-8b", hardware="h100-sxm", prompt=8192, output=1)).prefill
    return sum(o.flops for o in p.operators if o.group == "lm_head") / 1e12


def _trap_28():
    p = evaluate(Scenario(model="llama-3.1-70b", hardware="h100-sxm", devices=8, prompt=8192, output=1)).prefill
    return sum(o.flops for o in p.operators if o.group == "attention_core") / 1e12


def _moe_layers():
    """The time of 61 layers' all-to-alls, less the layers that the engine does not charge with one [ms]."""
    ops = collectives(load("deepseek-v3"), Pass(sequences=32, new_tokens=1, start=1, steps=1, pool=32), Layout(tp=1, dp=32, ep=32))
    layers = next(o for o in ops if "dispatch" in o.name).count
    return layers * 15.1113 / 61


TRAP_ANSWERS = {
    "trap-02": lambda: kv_bytes_per_token(load("deepseek-v3")) / 1e3,
    "trap-03": lambda: memory.kv_bytes(load("llama-3.1-70b"), BF16, 8192, 16) / 16 / 1e9,
    "trap-04": lambda: _mla(8),
    "trap-05": lambda: 70e9 * formats.parse("awq").bits_per_weight / 8 / 1e9,
    "trap-06": lambda: distinct_experts(256, 8, 32),
    "trap-07": lambda: distinct_experts(256, 8, 32),
    "trap-08": lambda: formulas.critical_batch(989.4e12, 3.35e12, 2.0, 256 / 8),
    "trap-10": lambda: float(serving.accepted_tokens(0.8, 4)),
    "trap-14": lambda: network.collective_time("all_reduce", 1e9, 8, chip("h100-sxm").link_bytes_per_s) * 1e3,
    "trap-18": lambda: network.axis_gather_time(2 * 2048 * 8192, 4, 45e9, wraps=network.axis_ports(4, fabric_of(chip("tpu-v5e")).wrap) == 2) * 1e6,
    "trap-19": lambda: network.network_ridge(chip("tpu-v5e").peak("bf16"), 2 * 45e9),
    "trap-21": lambda: cost.usd_per_million(16 * 18.4, 288_000),
    "trap-22": lambda: cost.flops_per_usd(chip("tpu-v5e").peak("bf16"), 1.2),
    "trap-24": lambda: serving.concurrency(1850, 21),
    "trap-25": lambda: serving.tpot_of(256, 2785.25) * 1e3,
    "trap-26": lambda: serving.steady_context(8192, 4096),
    "trap-27": _trap_27,
    "trap-28": _trap_28,
    "trap-30": lambda: formulas.chunk_overhead(4096, 512, 245760, 34.4e9, 312e12, 2.039e12, 2, 0.6),
    "trap-31": lambda: formulas.tile_waste(129, 128),
    "trap-33": lambda: ridge(chip("h100-sxm").peak("fp8"), chip("h100-sxm").bandwidth_bytes_per_s),
    "trap-35": lambda: network.dispatch_bytes(128, 8, 7168, block=128) / 77e-6 / 1e9,
    "trap-36": _moe_layers,
    "trap-38": lambda: network.balancedness([2.54] + [(72 - 2.54) / 71] * 71),
    "trap-39": lambda: cost.joules_per_token(338.6, 1.0, 441.91),
    "trap-42": lambda: formulas.decode_step(70e9, memory.kv_bytes(load("llama-3.1-70b"), ONE_BYTE, 8192), 810e9, 8, batch=32) * 1e3,
    "trap-44": lambda: formulas.serial_latency(formulas.stream_time(140e9 / 4, 3.35e12), 4) * 1e3,
    "trap-45": lambda: memory.kv_bytes(load("llama-3.1-70b"), BF16, 8192) / 1e9,
    "trap-46": lambda: _windowed(False),
    "trap-48": lambda: formulas.mfu(2 * 37e9 * serving.computed_tokens(73700, 0.5625), 1.0, 1979e12, 8),
}
