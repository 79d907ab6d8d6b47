"""The fourteen faults found in other tools (design reference, section 7), each with its value derived by hand in the comment."""

import pytest

from roofline import Scenario, evaluate
from roofline.hardware import load as chip
from roofline.operators import distinct_experts
from roofline.serving import accepted_tokens


def ask(model, hardware, **more):
    return evaluate(Scenario(model=model, hardware=hardware, **more))


def decode(*args, **more):
    return ask(*args, **more).decode


def test_a_multiply_add_is_two_flops():
    """2 FLOPs and 2 bytes a weight: decoding BF16 at batch 1 has intensity 1.0, and the H100 ridge is 989.4e12 / 3.35e12 = 295."""
    assert decode("llama-3.1-8b", "h100-sxm", prompt=1, output=1).intensity_flops_per_byte == pytest.approx(1.0, rel=0.01)
    assert ask("llama-3.1-8b", "h100-sxm").hardware["ridge_flops_per_byte"] == pytest.approx(295.3, rel=1e-3)


def test_b_peaks_are_dense():
    """989.4 and 2,250 TFLOP/s, not the 1,979 and 4,500 (FP8: 9,000) of 2:4 sparsity."""
    assert chip("h100-sxm").peak("bf16") == 989.4e12
    assert chip("b200-sxm").peak("bf16") == 2250e12
    assert chip("b200-sxm").peak("fp8") == 4500e12


def test_c_gb_is_1e9():
    """80 GB is 80e9 bytes, so 405B in BF16 (811.7 GB) needs 11 of them; with 80 GiB it would seem to fit on 10."""
    report = ask("llama-3.1-405b", "h100-sxm", prompt=1024, output=16)
    assert report.memory["weights_bytes"] == 2 * 405_853_388_800
    assert report.memory["min_devices"] == 11


def test_d_experts_read_follow_the_batch():
    """Mixtral BF16, batch 64: 8 (1 - (3/4)^64) = 8 experts, 45.1 G parameters, 90.2 GB; with attention and head 93.1 GB, 27.8 ms at 3.35 TB/s.

    DeepSeek-V3 in INT8 at batch 1 reads its 37 G active parameters: 37.5 GB less the input embedding over 8 x 4.8 TB/s: 0.98 ms.
    """
    two = ask("mixtral-8x7b", "h100-sxm", devices=2, batch=64, prompt=1, output=1)
    experts = sum(o.bytes - o.activation_bytes for o in two.decode.operators if o.group == "experts")
    assert experts == pytest.approx(90.2e9, rel=0.001)
    assert two.decode.limit_parts_s["memory"] * 2 >= 27.7e-3
    one = ask("mixtral-8x7b", "h100-sxm", devices=2, batch=1, prompt=1, output=1)
    assert sum(o.weight_bytes for o in one.decode.operators if o.group == "experts") == pytest.approx(90.2e9 / 4, rel=0.001)
    ds = ask("deepseek-v3", "h200-sxm", devices=8, weights="int8", prompt=1, output=1)
    assert ds.decode.bytes["weights"] == pytest.approx(37.5e9, rel=0.03)
    assert ds.decode.limit_s == pytest.approx(0.98e-3, rel=0.03)
    # E (1 - (1 - k/E)^B): 57.4 at 8, 163.3 at 32, 251.6 at 128 for 8 of 256; neither k nor min(B k, E).
    assert [round(distinct_experts(256, 8, b), 1) for b in (1, 8, 32, 128)] == [8.0, 57.4, 163.3, 251.6]


def test_e_head_dim_is_what_the_config_says():
    """Gemma-2-27B: 32 heads of 128 over hidden 4,608 (144 would be hidden / heads): KV 2 x 16 x 128 x 46 layers x 2 B."""
    assert ask("gemma-2-27b", "h100-sxm").model["kv_bytes_per_token"] == 2 * 16 * 128 * 46 * 2


def test_f_mla_caches_its_latent():
    """DeepSeek-V3: (512 + 64) x 61 layers x 2 B = 70,272 B a token; twice the rank would be 1.78x, expanded heads 57x."""
    assert ask("deepseek-v3", "h200-sxm", devices=8).model["kv_bytes_per_token"] == 70_272


def test_g_head_is_streamed_and_embedding_is_not():
    """Llama-3-8B reads 8,030,261,248 - 128,256 x 4,096 = 7,504,924,672 weights a step, the head's 525 M among them."""
    d = decode("llama-3.1-8b", "h100-sxm", prompt=1, output=1)
    assert d.bytes["weights"] == 2 * (8_030_261_248 - 128_256 * 4096)
    assert next(o for o in d.operators if o.group == "lm_head").weight_bytes == 2 * 128_256 * 4096
    assert next(o for o in d.operators if o.group == "embedding").weight_bytes == 0


def test_h_pipeline_does_not_shorten_a_token():
    """Llama-3-70B BF16, one H200 a stage: (141.1 - 2.1) GB / 4.8 TB/s = 29.0 ms a token at every PP, plus hops."""
    times = [decode("llama-3.1-70b", "h200-sxm", devices=n, pp=n, prompt=1, output=1).limit_s for n in (2, 4, 8)]
    assert min(times) == pytest.approx(max(times), rel=1e-6) and min(times) == pytest.approx(29.0e-3, rel=0.01)


def test_i_a_request_waits_for_the_whole_step():
    """TPOT is the step: at batch 32 it is no shorter than at batch 1, and users together get batch / TPOT."""
    one, many = (ask("llama-3.1-8b", "h100-sxm", batch=b) for b in (1, 32))
    assert many.serving["tpot_s"] >= one.serving["tpot_s"]
    assert many.serving["tokens_per_s"] == pytest.approx(32 / many.serving["tpot_s"])


def test_j_acceptance_is_geometric():
    """a = 0.8, g = 5: (1 - 0.8^6) / 0.2 = 3.69, not 0.8 x 5 + 1 = 5."""
    assert accepted_tokens(0.8, 5) == pytest.approx(3.68928)
    assert accepted_tokens(0.8, 4) == pytest.approx(3.3616)


def test_k_both_roofs_in_both_phases():
    """A 32-token prompt on an 8B model still reads all weights (4.48 ms on H100); a decode batch beyond the ridge is compute-bound."""
    assert ask("llama-3.1-8b", "h100-sxm", prompt=32, output=1).serving["ttft_s"] >= 4.47e-3
    assert decode("llama-3.1-8b", "h100-sxm", prompt=1, output=1, batch=2048).bound == "compute"


@pytest.mark.parametrize(("weights", "roof"), [("int4", 989.4e12), ("awq", 989.4e12), ("nf4", 989.4e12), ("Q4_K_M", 989.4e12), ("mxfp4", 989.4e12), ("fp8", 1978.9e12)])
def test_l_no_peak_for_a_unit_the_chip_lacks(weights, roof):
    """Four-bit weights on H100 compute at the BF16 peak of 989, never at 3,956; FP8 has a unit."""
    report = ask("llama-3.1-8b", "h100-sxm", weights=weights, prompt=4096, output=1, batch=8)
    assert report.prefill.attainable_flops_per_s <= roof
    assert report.formats["compute_peak_flops_per_s"] == roof


def test_l_asked_arithmetic_that_is_absent_gets_no_time():
    report = ask("llama-3.1-8b", "a100-80gb-sxm", weights="fp8", activations="fp8")
    assert report.prefill.limit_s is None and report.decode.limit_s is None and report.serving["tpot_s"] is None
    assert report.prefill.flops > 0 and report.decode.operators
    assert [w["code"] for w in report.warnings] == ["precision"]
    # FP8 weights with 16-bit arithmetic run there: W8A16.
    assert ask("llama-3.1-8b", "a100-80gb-sxm", weights="fp8").formats["compute"] == "bf16"


def test_m_kv_is_counted_from_heads_and_layers():
    """Llama-3-70B at 128K: 327,680 B x 131,072 = 42.95 GB."""
    report = ask("llama-3.1-70b", "h100-sxm", devices=8, tp=8, prompt=131072, output=1)
    assert report.memory["kv_bytes"] == 327_680 * 131_073


def test_n_one_engine():
    """The command line prints what Python returns (the page's bridge is compared in test_bridge.py)."""
    import json
    import subprocess
    import sys

    scenario = Scenario(model="llama-3.1-8b", hardware="h100-sxm", batch=8, weights="fp8")
    words = scenario.to_cli().split()[1:]
    out = subprocess.run([sys.executable, "-m", "roofline", *words, "--json"], capture_output=True, text=True, check=True)
    assert json.loads(out.stdout) == json.loads(evaluate(scenario).to_json())
