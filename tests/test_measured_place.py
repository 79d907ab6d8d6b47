"""Placing measured rows: achieved rates, percent of limit, and the likely causes, checked against hand-made reports."""

from pathlib import Path

import pytest

from roofline.errors import InputError
from roofline.measured import read
from roofline.measured.hints import chip_named, scenario_hint
from roofline.measured.kernel_place import kernels, place_kernel
from roofline.measured.place import place, placed, summary
from roofline.scenario import Scenario

SAMPLES = Path(__file__).parent / "data" / "samples"


def sample(name):
    return read((SAMPLES / name).read_bytes(), name)


def phase(flops, moved, limit, *, bound="memory", bandwidth=1.0, compute=0.01, expected=None):
    return {
        "flops": flops,
        "bytes": {"total": moved},
        "bound": bound,
        "limit_s": limit,
        "expected_s": expected,
        "intensity_flops_per_byte": flops / moved,
        "attainable_flops_per_s": flops / limit if limit else None,
        "bandwidth_utilisation": bandwidth,
        "compute_utilisation": compute,
        "operators": [{"count": 32}],
    }


# A chip of 1 TB/s and 100 TFLOP/s with a model of 10 GB: a decode step moves 10 GB (10 ms at least), a prompt of 1,000
# tokens costs 20 TFLOP (200 ms at least).
REPORT = {
    "scenario": {"batch": 1, "prompt": 1000, "output": 101},
    "layout": {"tp": 1, "pp": 1, "dp": 1, "devices": 1},
    "serving": {"tokens_per_step": 1.0},
    "model": {"parameters": {"total": 5_000_000_000, "experts": 0}, "weights_bytes": 10e9, "layers": 32},
    "formats": {"weights": "bf16", "compute": "bf16"},
    "hardware": {"bandwidth_bytes_per_s": 1e12, "peak_flops_per_s": {"bf16": 100e12}},
    "decode": phase(20e9, 10e9, 0.010),
    "prefill": phase(20e12, 12e9, 0.200, bound="compute", bandwidth=0.06, compute=1.0),
}


def report(**changes):
    return {**REPORT, **changes}


def test_decode_rate_becomes_bandwidth():
    got = place({"metric": "decode_tps", "value": 50.0}, REPORT)
    assert got["measured_s"] == pytest.approx(0.020)
    assert got["achieved_bandwidth_bytes_per_s"] == pytest.approx(500e9)
    assert got["achieved_flops_per_s"] == pytest.approx(1e12)
    assert got["percent_of_limit"] == pytest.approx(50) and got["bandwidth_percent"] == pytest.approx(50)
    assert got["percent_of_expectation"] is None and got["above_roof"] is False
    assert got["verdict"].startswith("50 % of bandwidth")


def test_per_user_time_and_rate_say_the_same():
    by_rate = place({"metric": "decode_tps_per_user", "value": 40.0}, REPORT)
    by_time = place({"metric": "tpot_ms", "value": 25.0}, REPORT)
    assert by_rate["percent_of_limit"] == pytest.approx(by_time["percent_of_limit"]) == pytest.approx(40)


def test_a_sum_over_the_batch_counts_the_batch():
    eight = report(scenario={"batch": 8, "prompt": 1000, "output": 101}, decode=phase(160e9, 11e9, 0.011))
    got = place({"metric": "decode_tps", "value": 400.0, "aggregate": True, "batch": 8}, eight)
    assert got["measured_s"] == pytest.approx(0.020) and got["percent_of_limit"] == pytest.approx(55)
    unknown = place({"metric": "decode_tps", "value": 400.0, "aggregate": True}, eight)
    assert unknown["percent_of_limit"] is None and "batch" in unknown["verdict"]


def test_prefill_rate_needs_the_prompt_length():
    assert place({"metric": "prefill_tps", "value": 2500.0, "n_prompt": 1000}, REPORT)["percent_of_limit"] == pytest.approx(50)
    assert "prompt length" in place({"metric": "prefill_tps", "value": 2500.0}, REPORT)["verdict"]


def test_whole_runs_add_both_phases():
    # 0.2 s of prefill and 100 steps of 0.01 s are 1.2 s at least; the run took 2.4 s.
    latency = place({"metric": "latency_s", "value": 2.4}, REPORT)
    rate = place({"metric": "output_tps_e2e", "value": 101 / 2.4, "batch": 1}, REPORT)
    assert latency["percent_of_limit"] == pytest.approx(50) == pytest.approx(rate["percent_of_limit"])
    assert latency["achieved_bandwidth_bytes_per_s"] == pytest.approx((12e9 + 100 * 10e9) / 2.4)
    assert "in flight" in place({"metric": "output_tps", "value": 10.0}, REPORT)["verdict"]


def test_expectation_is_told_apart_from_the_limit():
    usual = report(decode=phase(20e9, 10e9, 0.010, expected=0.0125))
    got = place({"metric": "decode_tps", "value": 76.0}, usual)
    assert got["percent_of_limit"] == pytest.approx(76) and got["percent_of_expectation"] == pytest.approx(95)
    assert "typical of this engine" in got["culprits"][0]
    slow = place({"metric": "decode_tps", "value": 38.0}, usual)
    assert any("slow rather than in the engine" in c for c in slow["culprits"])


class TestAboveTheRoof:
    def test_plain(self):
        got = place({"metric": "decode_tps", "value": 130.0}, REPORT)
        assert got["above_roof"] and "above the roof" in got["verdict"]
        assert any("fewer bits" in c for c in got["culprits"]) and any("peculative" in c for c in got["culprits"])

    def test_speculation_that_is_stated_comes_first(self):
        got = place({"metric": "tpot_ms", "value": 5.0, "speculative": True, "acceptance_length": 2.84}, REPORT)
        assert "2.84 tokens per step" in got["culprits"][0]

    def test_a_sum_without_its_batch(self):
        got = place({"metric": "decode_tps", "value": 900.0, "aggregate": True, "batch": 16}, REPORT)
        assert any("sum over the batch" in c for c in got["culprits"][:2])

    def test_another_model(self):
        got = place({"metric": "decode_tps", "value": 130.0, "params_b": 3.2}, REPORT)
        assert "another model" in got["culprits"][0]

    def test_another_format(self):
        got = place({"metric": "decode_tps", "value": 130.0, "params_b": 5.0, "size_gib": 2.6}, REPORT)
        assert "another number format" in got["culprits"][0]

    def test_prefill_names_the_prefix_cache_and_sparse_peaks(self):
        got = place({"metric": "prefill_tps", "value": 9000.0, "n_prompt": 1000}, REPORT)
        text = " ".join(got["culprits"])
        assert "prefix cache" in text and "sparse" in text


    def test_far_above_a_narrower_format_explains_little(self):
        got = place({"metric": "prefill_tps", "value": 30000.0, "n_prompt": 1000, "unit": "token/s"}, REPORT)
        assert "prefix cache" in got["culprits"][0] and "more than one sequence" in got["culprits"][1]

    def test_a_file_that_names_no_model(self):
        got = place({"metric": "decode_tps", "value": 130.0, "raw": "130.0"}, REPORT)
        assert "names no model" in got["culprits"][0]

    def test_a_model_that_cannot_run_there_is_another_model(self):
        unfit = report(decode=phase(20e9, 10e9, None))
        got = place({"metric": "decode_tps", "value": 130.0, "params_b": 1.2}, unfit)
        assert got["percent_of_limit"] is None and "another model" in got["culprits"][0]


class TestBelowTheRoof:
    def test_just_above_is_at_the_roof(self):
        got = place({"metric": "decode_tps", "value": 101.5}, REPORT)
        assert not got["above_roof"] and "at the roof" in got["culprits"][0]

    def test_speculation_counts_for_whole_runs_too(self):
        got = place({"metric": "output_tps", "value": 42.0, "concurrency": 1, "speculative": True}, REPORT)
        assert "speculates" in got["culprits"][0]

    def test_a_token_of_a_service_needs_its_load(self):
        for metric in ("tpot_ms", "itl_ms", "e2e_ms", "decode_tps_per_user"):
            row = {"metric": metric, "value": 50.0, "num_prompts": 100}
            assert "in flight" in place(row, REPORT)["verdict"]
            assert place({**row, "concurrency": 1}, REPORT)["percent_of_limit"]

    def test_queueing_is_no_fault_of_the_engine(self):
        usual = report(prefill=phase(20e12, 12e9, 0.2, bound="compute", expected=0.3))
        got = place({"metric": "ttft_ms", "value": 9000.0, "concurrency": 32}, usual)
        assert not any("times nearer" in c for c in got["culprits"])

    def test_layers_in_host_memory(self):
        got = place({"metric": "decode_tps", "value": 20.0, "ngl": 12}, REPORT)
        assert "Only 12 of 32 layers" in got["culprits"][0]

    def test_all_layers_as_a_word_is_no_offload(self):
        assert not any("layers ran" in c for c in place({"metric": "decode_tps", "value": 20.0, "ngl": "all"}, REPORT)["culprits"])

    def test_short_prompt(self):
        got = place(
            {"metric": "prefill_tps", "value": 500.0, "n_prompt": 11},
            report(scenario={"batch": 1, "prompt": 11, "output": 1}, prefill=phase(0.22e12, 10e9, 0.010)),
        )
        assert "11 tokens" in got["culprits"][0]

    def test_first_token_under_load_is_queueing(self):
        got = place({"metric": "ttft_ms", "value": 9711.4, "concurrency": 32}, REPORT)
        assert "waiting behind other requests" in got["culprits"][0]

    def test_launches_of_a_small_model(self):
        small = report(decode={**phase(1e9, 0.5e9, 0.0005), "operators": [{"count": 400}]})
        got = place({"metric": "decode_tps", "value": 500.0}, small)
        assert "launches about 400 kernels" in got["culprits"][0]

    def test_at_the_roof(self):
        assert "as good as engines get" in place({"metric": "decode_tps", "value": 92.0}, REPORT)["culprits"][0]


def test_rows_that_cannot_be_placed_say_why():
    assert "no usable" in place({"metric": "decode_tps", "value": 0.0, "usable": False}, REPORT)["verdict"]
    assert place({"metric": "roof_dram_gbs", "value": 900.0}, REPORT)["percent_of_limit"] is None
    unfit = report(decode=phase(20e9, 10e9, None))
    got = place({"metric": "decode_tps", "value": 50.0}, unfit)
    assert got["achieved_bandwidth_bytes_per_s"] == pytest.approx(500e9) and "no limit" in got["verdict"]


class TestKernels:
    def test_by_their_own_counts(self):
        """saxpy moves 201.33 MB in 143.59 us and does 233.7 GFLOP/s: 1/6 FLOP per byte, memory side."""
        first, second = kernels(sample("ncu_raw-roofline-metrics.csv"))
        got = place_kernel(first, {"bandwidth_bytes_per_s": 2.039e12, "peak_flops_per_s": {"bf16": 312e12, "fp32": 19.5e12}}, "fp32")
        assert got["intensity_flops_per_byte"] == pytest.approx(233.7 / 1402.11)
        assert got["bandwidth_percent"] == pytest.approx(68.8, abs=0.1) and got["compute_percent"] == pytest.approx(1.2, abs=0.01)
        assert got["bound"] == "memory"
        slow = place_kernel(second, {"bandwidth_bytes_per_s": 2.039e12, "peak_flops_per_s": {"fp32": 19.5e12}}, "fp32")
        assert slow["bound"] == "compute" and slow["attainable_flops_per_s"] == pytest.approx(19.5e12)

    def test_read_and_written_bytes_add_up(self):
        """1,988.02 MB read and 812.4 kB written in 1.41 ms are 1,410.5 GB/s."""
        [kernel] = kernels(sample("ncu_metrics-old-units.csv"))
        assert kernel["bandwidth"] == pytest.approx((1988.02e6 + 812.4e3) / 1.41e-3)

    def test_percentages_stand_in_for_a_missing_chip(self):
        [kernel] = kernels(sample("ncu_details.csv"))
        got = place_kernel(kernel, {})
        assert got["bandwidth_percent"] == 91.42 and "at its roof" in got["culprits"][0]

    def test_launches_of_one_kernel_stay_apart(self):
        text = b"ID,Kernel Name,Metric Name,Metric Unit,Metric Value\n0,k,gpu__time_duration.sum,us,1.5\n0,k,dram__bytes.sum,Mbyte,1\n1,k,gpu__time_duration.sum,us,2.5\n1,k,dram__bytes.sum,Mbyte,1\n"
        assert [k["seconds"] for k in kernels(read(text))] == pytest.approx([1.5e-6, 2.5e-6])

    def test_time_alone_has_no_place(self):
        assert "neither bytes nor FLOPs" in place_kernel(kernels(sample("nsys_kern-sum.csv"))[0], REPORT["hardware"])["verdict"]

    def test_intensity_against_cache_traffic_is_not_held_against_dram(self):
        [kernel] = kernels(sample("advisor_survey-pandas.tsv"))
        assert (
            place_kernel(kernel, {"bandwidth_bytes_per_s": 1e11, "peak_flops_per_s": {"fp64": 1e12}}, "fp64")["attainable_flops_per_s"]
            is None
        )


class TestHints:
    def test_llama_bench(self):
        reading = sample("llama-bench_md-new-fa-depth-2models.txt")
        prefill, decode = (scenario_hint(reading, reading.rows[i]) for i in (2, 3))
        assert (prefill["prompt"], prefill["cached"], prefill["output"], prefill["batch"]) == (4608, 4096, 1, 1)
        assert (decode["prompt"], decode["output"], decode["weights"], decode["hardware"]) == (4096, 128, "Q4_K_M", "rtx-3090")
        assert decode["devices"] == 2 and decode["pp"] == 2 and decode["assumed"]

    def test_serving(self):
        reading = sample("vllm_serve-result-new.json")
        hint = scenario_hint(reading, reading.rows[1])
        assert (hint["model"], hint["batch"], hint["prompt"], hint["output"], hint["engine"]) == ("qwen3-8b", 32, 1024, 256, "vllm")
        assert "weights" not in hint and "hardware" not in hint

    def test_a_first_token_is_one_prompt(self):
        reading = sample("vllm_serve-result-new.json")
        row = next(r for r in reading.rows if r["metric"] == "ttft_ms")
        assert scenario_hint(reading, row)["batch"] == 1

    def test_nothing_stated_nothing_hinted(self):
        reading = sample("vllm_throughput-lines.txt")
        hint = scenario_hint(reading, reading.rows[0])
        assert not {"model", "hardware", "weights", "batch", "tp"} & set(hint)

    def test_a_size_class_is_no_model(self):
        reading = sample("llama-bench_md-metal-init-noise.txt")
        hint = scenario_hint(reading, reading.rows[0])
        assert hint["model_text"] == "llama 8B" and hint["hardware"] == "apple-m2-max"

    @pytest.mark.parametrize(
        ("name", "id"),
        [
            ("NVIDIA GeForce RTX 4090", "rtx-4090"),
            ("NVIDIA H100 80GB HBM3", "h100-sxm"),
            ("NVIDIA H100 PCIe", "h100-pcie"),
            ("NVIDIA H200", "h200-sxm"),
            ("Tesla T4", "t4"),
            ("AMD Instinct MI300X", "mi300x"),
            ("NVIDIA RTX 6000 Ada Generation", "rtx-6000-ada"),
            ("NVIDIA RTX PRO 6000 Blackwell Workstation Edition", "rtx-pro-6000-ws"),
            ("NVIDIA GB10", "dgx-spark-gb10"),
            ("NVIDIA GeForce RTX 4090 Laptop GPU", "rtx-4090-laptop"),
            ("AMD Ryzen 9 7950X 16-Core Processor", "ryzen-7950x"),
            ("AMD EPYC 9654 96-Core Processor", "epyc-9654"),
            ("b200-trt", "b200-sxm"),
            ("NVIDIA GeForce RTX 4090 D", None),
            ("NVIDIA GH200 480GB", None),
            ("AMD Radeon Graphics", None),
            ("gfx1030", None),
            ("NVIDIA GeForce RTX 9999", None),
            ("GPU", None),
            ("", None),
        ],
    )
    def test_chip_names(self, name, id):
        assert chip_named(name) == id


class TestPlaced:
    def test_a_stranger_s_table(self):
        answer = placed(
            sample("llama-bench_md-metal-init-noise.txt"), Scenario(model="llama-3.1-8b", hardware="apple-m2-max", weights="Q4_0")
        )
        prefill, decode = answer["rows"]
        assert decode["asked"]["prompt"] == 1 and decode["asked"]["output"] == 128
        # 62.44 token/s of about 4.4 GB of weights on a chip of 400 GB/s: two thirds of its bandwidth.
        assert 0.25e12 < decode["place"]["achieved_bandwidth_bytes_per_s"] < 0.30e12
        assert 62 < decode["place"]["percent_of_limit"] < 72
        assert prefill["place"]["phase"] == "prefill" and decode["place"]["culprits"]
        assert "% of bandwidth" in summary(decode["place"])

    def test_the_wrong_chip_is_said(self):
        answer = placed(sample("llama-bench_md-metal-init-noise.txt"), Scenario(model="llama-3.1-8b", hardware="h100-sxm", weights="Q4_0"))
        assert "apple-m2-max" in answer["rows"][0]["place"]["culprits"][0]

    def test_a_load_that_the_user_gives_counts(self):
        reading = sample("vllm_serve-console-2024.txt")
        unknown, known = (
            placed(reading, Scenario(model="llama-3.1-8b", hardware="h100-sxm", batch=n))["rows"][1]["place"] for n in (1, 64)
        )
        assert unknown["percent_of_limit"] is None and 0 < known["percent_of_limit"] < 200

    def test_mlx_on_another_chip_is_said(self):
        answer = placed(sample("mlx-lm_benchmark.txt"), Scenario(model="qwen2.5-7b", hardware="h100-sxm"))
        assert any("MLX runs on Apple" in c for c in answer["rows"][1]["place"]["culprits"])

    def test_scalar_kernels_stand_under_the_scalar_peak(self):
        """233.7 GFLOP/s of FP32 instructions are 1.2 % of an A100's 19.5 TFLOP/s, not of its tensor cores."""
        answer = placed(sample("ncu_raw-roofline-metrics.csv"), Scenario(model="llama-3.1-8b", hardware="a100-80gb-sxm"))
        assert answer["rows"][3]["place"]["compute_percent"] == pytest.approx(1.2, abs=0.02)

    def test_what_the_user_set_stays(self):
        answer = placed(sample("vllm_serve-result-new.json"), Scenario(model="qwen3-8b", hardware="h100-sxm", batch=7))
        assert all("batch" not in row["asked"] for row in answer["rows"])

    def test_a_layout_that_does_not_fit_the_model_is_dropped(self):
        answer = placed(sample("trtllm_bench-streaming-machine.txt"), Scenario(model="llama-3.1-70b", hardware="h200-sxm"))
        assert all(row["place"]["percent_of_limit"] for row in answer["rows"]) and "ep" not in answer["rows"][0]["asked"]

    def test_every_sample_can_be_placed_or_says_why(self):
        for path in sorted(SAMPLES.glob("*.*")):
            if path.name == "samples.csv":
                continue
            try:
                reading = read(path.read_bytes(), path.name)
            except InputError:
                continue
            for row in placed(reading, Scenario(model="llama-3.1-8b", hardware="h100-sxm"))["rows"]:
                assert row["place"]["percent_of_limit"] is not None or row["place"]["verdict"], (path.name, row)
