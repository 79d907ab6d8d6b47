"""The command line: its contract, and every bad input answered with exit status 2 and one sentence."""

import json

import pytest

from roofline.cli import main

GOOD = {"model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 128256}
ESTIMATE = ["estimate", "--model", "llama-3.1-8b", "--hardware", "h100-sxm"]

SCHEMA_1 = {
    "": ["schema", "scenario", "warnings", "model", "hardware", "prefill", "decode", "memory", "serving", "cost", "energy"],
    "model": ["id", "architecture", "parameters", "kv_bytes_per_token", "weights_bytes"],
    "hardware": ["id", "name", "devices", "peak_flops_per_s", "bandwidth_bytes_per_s", "memory_bytes", "ridge_flops_per_byte"],
    "decode": ["flops", "bytes", "link_bytes", "intensity_flops_per_byte", "bound", "limit_s", "expected_s", "expected_low_s", "expected_high_s", "attainable_flops_per_s", "compute_utilisation",
               "bandwidth_utilisation", "operators"],
    "memory": ["weights_bytes", "kv_bytes", "activation_bytes", "overhead_bytes", "total_bytes", "available_bytes", "fits", "max_batch", "max_context", "min_devices"],
    "serving": ["ttft_s", "tpot_s", "tokens_per_s_per_user", "tokens_per_s", "tokens_per_s_per_device", "requests_per_s"],
    "cost": ["usd_per_million_input_tokens", "usd_per_million_output_tokens"], "energy": ["joules_per_output_token"],
}
GROUPS = {"embedding", "attention_projection", "attention_core", "mlp", "experts", "shared_experts", "router", "recurrent", "norm", "elementwise", "lm_head", "collective", "other"}


def ask(capsys, *args):
    assert main([*args, "--json"]) == 0
    out, err = capsys.readouterr()
    assert not err
    return json.loads(out, parse_constant=lambda c: pytest.fail(f"{c} in JSON"))


@pytest.mark.parametrize("more", [[], ["--devices", "8", "--batch", "64", "--draft", "3", "--chunk", "256", "--rate", "1"], ["--weights", "q4_k_m", "--engine", "none"], ["--batch", "100000"]])
def test_report_has_every_key_of_schema_1(capsys, more):
    report = ask(capsys, *ESTIMATE, *more)
    assert report["schema"] == 1
    for part, keys in SCHEMA_1.items():
        have = report[part] if part else report
        assert [k for k in keys if k not in have] == []
    for phase in ("prefill", "decode"):
        assert [k for k in SCHEMA_1["decode"] if k not in report[phase]] == []
        assert set(report[phase]["bytes"]) == {"weights", "kv_read", "kv_write", "activations", "total"}
        for op in report[phase]["operators"]:
            assert {"name", "group", "count", "flops", "bytes", "intensity_flops_per_byte", "bound", "limit_s", "share"} <= op.keys()
            assert op["group"] in GROUPS


def test_model_answer(capsys):
    m = ask(capsys, "model", "llama-3.1-8b")
    assert (m["id"], m["architecture"], m["kv_bytes_per_token"], m["weights_bytes"]) == ("llama-3.1-8b", "llama", 131072, 2 * 8030261248)
    assert m["parameters"]["total"] == m["parameters"]["active"] == 8_030_261_248
    assert sum(t["parameters"] for t in m["tensors"]) == 8_030_261_248
    assert ask(capsys, "model", "llama-3.1-8b", "--weights", "INT8", "--kv", "fp8")["kv_bytes_per_token"] == 65536


def test_lists_and_single_chips(capsys):
    assert len(ask(capsys, "hardware")["hardware"]) >= 65
    assert ask(capsys, "hardware", "h100-sxm")["peaks"]["bf16"] == 989.4e12
    assert len(ask(capsys, "model")["models"]) >= 80


def test_bare_roof(capsys):
    answer = ask(capsys, "roof", "--peak", "989e12", "--bandwidth", "3.35 TB/s", "--intensity", "1")
    assert answer["bound"] == "memory" and answer["attainable_flops_per_s"] == 3.35e12 and answer["ridge_flops_per_byte"] == pytest.approx(295.2, rel=1e-3)


def test_levers_layouts_compare(capsys):
    found = ask(capsys, "levers", *ESTIMATE[1:], "--batch", "8")
    gains = [row["gain"]["tpot"] for row in found["levers"] if row["gain"]["tpot"] is not None]
    assert gains == sorted(gains, reverse=True) and gains[0] > 1
    found = ask(capsys, "layouts", *ESTIMATE[1:], "--devices", "4", "--batch", "8")
    assert {(row["tp"], row["pp"], row["dp"]) for row in found["layouts"]} == {(4, 1, 1), (2, 2, 1), (2, 1, 2), (1, 4, 1), (1, 2, 2), (1, 1, 4)}
    found = ask(capsys, "compare", *ESTIMATE[1:], "--engine", "none", "--change", "weights=fp8")
    assert found["decode"]["groups"][0]["group"] == "mlp" and found["ratio"]["tpot_s"] < 0.6


@pytest.mark.parametrize("command", [[], ["model"], ["hardware"], ["model", "llama-3.1-8b"], ["hardware", "h100-sxm"], ESTIMATE, ["levers", *ESTIMATE[1:]], ["layouts", *ESTIMATE[1:], "--devices", "2"],
                                     ["compare", *ESTIMATE[1:], "--change", "batch=2"], ["roof", "--peak", "1 PFLOP/s", "--bandwidth", "1TB/s", "--intensity", "9"]])
def test_text_answers_print(capsys, command):
    assert main(command) == (0 if command else 2)
    assert "None" not in capsys.readouterr().out.replace("breaks", "")


def bad_files(tmp_path):
    cases = {"not JSON": "{nope", "a list": "[1,2]", "empty": "", "null": "null", "a number": "1e999", "deep": "[" * 100_000, "no layers": {k: v for k, v in GOOD.items() if k != "num_hidden_layers"},
             "negative": {**GOOD, "hidden_size": -4096}, "string": {**GOOD, "vocab_size": "many"}, "heads": {**GOOD, "num_attention_heads": 33}, "absurd": {**GOOD, "num_hidden_layers": 10**12},
             "unknown": {**GOOD, "model_type": "no_such_model"}, "bool": {**GOOD, "num_hidden_layers": True}, "float": {**GOOD, "hidden_size": 4096.5}, "list": {**GOOD, "hidden_size": [4096]},
             "zero": {**GOOD, "num_attention_heads": 0}, "kv": {**GOOD, "num_key_value_heads": 5}, "NaN": json.dumps(GOOD).replace("4096", "NaN"), "Infinity": json.dumps(GOOD).replace("14336", "Infinity"),
             "type": {**GOOD, "model_type": ["llama"]}, "nested": {**GOOD, "model_type": {"a": 1}}, "text_config": {"model_type": "gemma3", "text_config": 5}}
    for name, content in cases.items():
        path = tmp_path / f"{name.replace(' ', '_')}.json"
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        yield name, ["model", str(path)]
    yield "no such file", ["model", str(tmp_path / "none.json")]
    yield "a folder", ["model", str(tmp_path) + "/x.json/"]


def test_bad_configs(tmp_path, capsys):
    for name, args in bad_files(tmp_path):
        assert main([*args, "--json"]) == 2, name
        out, err = capsys.readouterr()
        assert not out and len(err.strip().splitlines()) == 1 and len(err) < 400, (name, err)


@pytest.mark.parametrize("args", [
    ["estimate", "--model", "llama-3.1-8b", "--hardware", "h1000"], ["estimate", "--model", "llama-9", "--hardware", "h100-sxm"], [*ESTIMATE, "--batch", "0"], [*ESTIMATE, "--batch", "two"],
    [*ESTIMATE, "--devices", "3", "--tp", "3"], [*ESTIMATE, "--weights", "fp7"], [*ESTIMATE, "--kv", "fp7"], [*ESTIMATE, "--activations", "q4_k_m"], [*ESTIMATE, "--no-such-option", "1"],
    ["estimate", "--model", "llama-3.1-8b"], ["estimate", "--model", "llama-3.1-8b", "--hardware", "custom"], [*ESTIMATE, "--efficiency", "2,1"], [*ESTIMATE, "--routing", "-1"], ["levers", *ESTIMATE[1:], "--goal", "joy"],
    ["compare", *ESTIMATE[1:], "--change", "weights"], ["compare", *ESTIMATE[1:], "--change", "colour=red"], ["roof", "--peak", "1", "--bandwidth", "x", "--intensity", "1"], ["hardware", "nope"], ["nonsense"],
])
def test_bad_options(args, capsys):
    assert main([*args, "--json"]) == 2
    out, err = capsys.readouterr()
    assert not out and len(err.strip().splitlines()) == 1 and "Traceback" not in err


def say(capsys, *args):
    assert main(list(args)) == 0
    out, err = capsys.readouterr()
    assert not err
    return out


def test_the_text_of_an_estimate_holds_its_figures(capsys):
    """Llama 3.1 8B on an H100 at batch 1 streams 15.0 GB of weights and its cache at 3.35 TB/s: 4.5 ms a token, as in the JSON; what was asked and the bound are said first."""
    text, data = say(capsys, *ESTIMATE, "--rate", "1"), ask(capsys, *ESTIMATE, "--rate", "1")
    first, finding = text.splitlines()[:2]
    assert "1,024 tokens in, 256 out" in first and finding.startswith("Decoding is memory-bound")
    assert f"{data['serving']['tpot_s'] * 1e3:.2f} ms" in text and f"{data['serving']['expected_tpot_s'] * 1e3:.2f} ms" in text
    assert "time to first token" in text and "requests/s can be taken" in text
    assert "It does not fit: 142 GB are needed" in say(capsys, "estimate", "--model", "llama-3.1-70b", "--hardware", "rtx-4090")
    assert "fewer than the 1,000 that arrive" in say(capsys, *ESTIMATE, "--rate", "1000")


def test_the_text_of_studies(capsys):
    """Best first, aligned, each with its price; two scenarios side by side say what was changed and which operators moved."""
    assert "its price" in say(capsys, "levers", *ESTIMATE[1:])
    assert "ranked by tpot" in say(capsys, "layouts", *ESTIMATE[1:], "--devices", "4", "--goal", "tpot")
    text = say(capsys, "compare", *ESTIMATE[1:], "--change", "weights=fp8")
    assert text.startswith("second: weights fp8") and text.index("decode: at least") < text.index("feed-forward", text.index("decode: at least")) < text.index("attention core", text.index("decode: at least"))
    text = say(capsys, "capability", "--hardware", "h100-sxm", "--batch", "16")
    assert "DeepSeek-V3" in text and "MMLU-Pro" in text


def test_a_measurement_is_placed_in_words(tmp_path, capsys):
    """100 tokens/s of Llama 2 7B in Q4_0 (3.8 GB) on a card of 1,008 GB/s is some 38 % of its bandwidth: said in the text, with the likeliest cause."""
    file = tmp_path / "bench.md"
    file.write_text("| model | size | params | backend | ngl | test | t/s |\n|---|---:|---:|---|---:|---|---:|\n| llama 7B Q4_0 | 3.56 GiB | 6.74 B | CUDA | 99 | tg128 | 100.00 ± 0.10 |\n")
    text = say(capsys, "measured", str(file), "--model", "llama-2-7b", "--hardware", "rtx-4090")
    assert "decode_tps" in text and "% of bandwidth" in text and "38 %" in text


def test_a_models_size_is_compared_with_its_index(capsys, tmp_path):
    path = tmp_path / "model.safetensors.index.json"
    path.write_text('{"metadata": {"total_size": 16060522496}, "weight_map": {"model.layers.31.x": "a", "lm_head.weight": "b"}}')
    assert main(["model", "llama-3.1-8b", "--index", str(path), "--json"]) == 0
    index = json.loads(capsys.readouterr().out)["index"]
    assert index["agrees"] is True and index["stated_bytes"] == index["computed_bytes"] == 16_060_522_496
    path.write_text('{"weight_map": [')
    assert main(["model", "llama-3.1-8b", "--index", str(path)]) == 2
    assert main(["model", "--index", str(path)]) == 2
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize(("option", "says"), [
    ("--model=--", "is no value"), ("--efficiency=", "must be a number"), ("--efficiency=1,1,1", "one fraction or two"), ("--hardware=h100", "h100-sxm"),
    ("--weights=nonsense", "nvfp4"), ("--acceptance=x", "such as 0.5"), ("--draft-model=zzz", "zzz"),
])
def test_a_value_that_is_none_is_one_sentence(option, says, capsys):
    assert main(["estimate", "--model", "llama-3.1-8b", "--hardware", "h100-sxm", option]) == 2
    out, err = capsys.readouterr()
    assert not out and says in err and err.count("\n") == 1


@pytest.mark.parametrize(("words", "says"), [
    (["estimat"], "command 'estimat': is not known; did you mean 'estimate'?"), (["estimate", "--modle", "x"], "--model"), (["estimate", "--model", "llama-3.1-8b"], "option '--hardware': must be given"),
    (["estimate", "--model"], "model '': needs a value"), (["explore", "--model", "llama-3.1-8b", "--top", "x" * 9999], "must be a whole number"), (["plot", "--links=" + "y" * 9999], "--links"), ([], "must be given"),
])
def test_what_the_parser_refuses_is_one_short_sentence(words, says, capsys):
    assert main(words) == 2
    out, err = capsys.readouterr()
    assert not out and says in err and err.count("\n") == 1 and len(err) < 400


def test_a_cache_that_windows_keep_small_is_told_beside_what_it_would_be(capsys):
    """Llama 4 Scout at a million tokens: 48 layers x 8 heads x 128 x 2 x 2 bytes = 196,608 bytes a token, were no chunk dropped."""
    ask = ["estimate", "--model", "llama-4-scout-17b-16e", "--hardware", "h100-sxm", "--devices", "8", "--prompt", "999,744"]
    assert main(ask) == 0 and "every token takes 197 GB" in capsys.readouterr().out
    assert main(["estimate", "--model", "deepseek-v3", "--hardware", "h200-sxm", "--devices", "8"]) == 0 and "windows" not in capsys.readouterr().out
