"""Published quantization_configs: which tensor is stored how, what is ignored, and hostile ones."""

import json
import re
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from roofline import catalogue, formats
from roofline.errors import InputError
from roofline.families import from_hf_config
from roofline.modules import module_names, read_patterns
from roofline.model import Tensor
from roofline.quantization import read_quantization

DATA = Path(__file__).parent / "data"
PUBLISHED = {row["model"]: row for row in json.loads((DATA / "quantization_configs.json").read_text("utf-8"))}


def unfold(names, experts=4):
    """"model.layers.{0-3,5}.mlp.gate" -> the five names it stands for; {E} -> expert numbers."""
    found = []
    for name in names:
        match = re.search(r"\{([\d,-]+)\}", name)
        layers = [i for run in match[1].split(",") for i in range(int(run.split("-")[0]), int(run.split("-")[-1]) + 1)] if match else [None]
        for layer in layers:
            full = name if layer is None else name.replace(match[0], str(layer))
            found += [full.replace("{E}", str(e)) for e in range(experts)] if "{E}" in full else [full]
    return found


def published(model):
    config = dict(PUBLISHED[model]["quantization_config"])
    for key in ("ignore", "modules_to_not_convert", "exclude_modules"):
        if key in config:
            config[key] = unfold(config[key])
    if "quantized_layers" in config:
        config["quantized_layers"] = {name: json.loads(kind) for kind, names in config["quantized_layers"].items() for name in unfold(names)}
    return config


def stored(arch, p):
    """{tensor name: {format name: layers}} of the matrices."""
    return {t.name: {(f.name if f else "bf16"): n for f, n in p.formats(t).items()} for t in arch.tensors if t.kind != "vector"}


def small(model_type, **changes):
    """A small model of a family, with every default its sizes need."""
    base = dict(model_type=model_type, hidden_size=256, num_hidden_layers=4, num_attention_heads=8, num_key_value_heads=2, head_dim=32, intermediate_size=512,
                vocab_size=1000, tie_word_embeddings=False)
    return from_hf_config({**base, **changes})


LLAMA = small("llama")
MOE = small("qwen3_moe", num_experts=8, num_experts_per_tok=2, moe_intermediate_size=128, decoder_sparse_step=1, mlp_only_layers=[])
LINEAR = {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj", "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"}


# What each published checkpoint keeps, and stores the rest as: (catalogue model, {name: format}, others, activations, cache).
EXPECT = {
    "Qwen/Qwen3-30B-A3B-FP8": ("qwen3-30b-a3b", r"lm_head|embed|mlp\.gate$", "fp8-block-bf16", "fp8", None),
    "Qwen/Qwen3-32B-FP8": ("qwen3-32b", r"lm_head|embed", "fp8-block-bf16", "fp8", None),
    "Qwen/Qwen3-32B-FP8-Static-PerTensor": ("qwen3-32b", r"lm_head|embed", "fp8", "fp8", "fp8"),
    "deepseek-ai/DeepSeek-R1": ("deepseek-r1", r"lm_head|embed|mlp\.gate$", "fp8-block", "fp8", None),
    "moonshotai/Kimi-K2-Instruct": ("kimi-k2", r"lm_head|embed|mlp\.gate$", "fp8-block", "fp8", None),
    "MiniMaxAI/MiniMax-M2.5": ("minimax-m2.5", r"lm_head|embed|block_sparse_moe\.gate$", "fp8-block", "fp8", None),
    "nvidia/MiniMax-M2.5-NVFP4": ("minimax-m2.5", r"lm_head|embed|block_sparse_moe\.gate$|self_attn", "nvfp4", "fp4", "fp8"),
    "nvidia/Gemma-4-31B-IT-NVFP4": ("gemma-4-31b", r"lm_head|embed|vision|self_attn", "nvfp4", "fp4", "fp8"),
    "RedHatAI/Llama-4-Scout-17B-16E-Instruct-FP8-dynamic": ("llama-4-scout-17b-16e-fp8", r"lm_head|embed|vision|self_attn|router", "fp8-channel", "fp8", None),
    "nvidia/Qwen3.5-122B-A10B-NVFP4": ("qwen3.5-122b-a10b", r"lm_head|embed|visual|self_attn|linear_attn|shared_expert|mlp\.gate$", "nvfp4", "fp4", "fp8"),
    "nvidia/Qwen3.5-397B-A17B-NVFP4": ("qwen3.5-397b-a17b", r"lm_head|embed|visual|self_attn|linear_attn|shared_expert|mlp\.gate$", "nvfp4", "fp4", "fp8"),
    "zai-org/GLM-5-FP8": ("glm-5", r"lm_head|embed|mlp\.gate$|weights_proj", "fp8-block", "fp8", None),
    "deepseek-ai/DeepSeek-V3.2": ("deepseek-v3.2", r"lm_head|embed|mlp\.gate$|weights_proj", "fp8-block", "fp8", None),
    "stepfun-ai/Step-3.7-Flash-FP8": ("step-3.7-flash", r"lm_head|embed|mlp\.gate$|vision", "fp8-block", "fp8", None),
    "openai/gpt-oss-20b": ("gpt-oss-20b", r"lm_head|embed|router|self_attn", "mxfp4", "bf16", None),
}


@pytest.mark.parametrize("model", EXPECT)
def test_what_a_published_checkpoint_keeps(model):
    ident, kept, fmt, activations, kv = EXPECT[model]
    arch = catalogue.load(ident)
    p = read_quantization(published(model), catalogue.config_of(ident))
    for name, kinds in stored(arch, p).items():
        expected = "bf16" if re.search(kept, name) else fmt
        assert set(kinds) == {expected}, name
    assert p.activations == p.compute == activations
    assert (p.kv.name if p.kv else None) == kv
    sizes = p.weight_bytes(arch)
    assert len(sizes) == len(arch.tensors) and formats.weight_bytes(arch, p) == sizes


def test_fp8_of_qwen3_32b_is_the_published_count():
    """31,205,621,760 FP8 elements with 1,904,640 BF16 scales; the rest BF16 (tensor counts of the published checkpoint)."""
    arch = catalogue.load("qwen3-32b")
    fp8, scales = 31_205_621_760, 1_904_640
    total = sum(t.parameters for t in arch.tensors)
    p = read_quantization(published("Qwen/Qwen3-32B-FP8"), {"model_type": "qwen3"})
    assert sum(p.weight_bytes(arch)) == fp8 + 2 * scales + 2 * (total - fp8)


def test_fp8_dynamic_of_llama_70b_is_the_published_count():
    """68,451,041,280 FP8 and 2,109,382,656 BF16 elements (6,717,440 of them scales): 72,669,806,592 bytes."""
    config = {"quant_method": "compressed-tensors", "format": "float-quantized", "ignore": ["lm_head"], "kv_cache_scheme": None, "config_groups": {"group_0": {
        "targets": ["Linear"], "weights": {"num_bits": 8, "type": "float", "strategy": "channel", "symmetric": True},
        "input_activations": {"num_bits": 8, "type": "float", "strategy": "token", "dynamic": True}}}}
    p = read_quantization(config)
    assert sum(p.weight_bytes(catalogue.load("llama-3.1-70b"))) == 72_669_806_592
    assert p.activations == "fp8"


@pytest.mark.parametrize("config, expect, activations", [
    ({"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True, "version": "gemm"}, 4 + 20 / 128, "bf16"),
    ({"quant_method": "awq", "w_bit": 4, "q_group_size": 64}, 4 + 20 / 64, "bf16"),
    ({"quant_method": "gptq", "bits": 4, "group_size": 32, "desc_act": True, "sym": True}, 4 + 20 / 32, "bf16"),
    ({"quant_method": "gptq", "bits": 8, "group_size": -1}, 8 + 24 / 16384, "bf16"),
    ({"load_in_4bit": True, "bnb_4bit_quant_type": "nf4", "bnb_4bit_use_double_quant": True}, 4.126953125, "bf16"),
    ({"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_use_double_quant": False}, 4.5, "bf16"),
    ({"quant_method": "bitsandbytes", "load_in_8bit": True}, 8 + 32 / 16384, "int8"),
    ({"quant_method": "fp8", "activation_scheme": "static"}, 8, "fp8"),
    ({"quant_method": "fbgemm_fp8", "activation_scale_ub": 1200.0}, 8 + 32 / 16384, "fp8"),
    ({"quant_method": "hqq", "quant_config": {"weight_quant_params": {"nbits": 4, "group_size": 64}}}, 4.5, "bf16"),
    ({"quant_method": "quanto", "weights": "int8", "activations": None}, 8 + 16 / 16384, "bf16"),
    ({"quant_method": "torchao", "quant_type": "int4_weight_only", "quant_type_kwargs": {"group_size": 128}}, 4.25, "bf16"),
    ({"quant_method": "torchao", "quant_type": {"default": {"_type": "Float8DynamicActivationFloat8WeightConfig", "_data": {}}}}, 8 + 16 / 16384, "fp8"),
    ({"quant_method": "modelopt", "quant_algo": "NVFP4", "kv_cache_scheme": {"num_bits": 8, "type": "float"}, "ignore": ["lm_head"]}, 4.5, "fp4"),
    ({"quantization": {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8", "exclude_modules": ["lm_head"]}, "producer": {"name": "modelopt"}}, 8, "fp8"),
    ({"quant_method": "auto-round", "bits": 4, "group_size": 128, "packing_format": "auto_round:auto_gptq"}, 4 + 20 / 128, "bf16"),
    ({"quant_method": "exl3", "bits": 4.0, "head_bits": 6}, 4, "bf16"),
    ({"group_size": 64, "bits": 4}, 4.5, "bf16"),
    ({"quant_method": "quark", "global_quant_config": {"weight": {"dtype": "fp4", "group_size": 32}, "input_tensors": {"dtype": "fp4"}}, "exclude": ["lm_head"]}, 4.25, "fp4"),
])
def test_bits_and_activations_of_each_method(config, expect, activations):
    p = read_quantization(config)
    assert p.fmt.bits_per_weight == pytest.approx(expect, abs=1e-6)
    assert p.activations == activations
    if "mlx" not in p.method:
        assert set(stored(LLAMA, p)["model.embed_tokens"]) == {"bf16"}
    assert LINEAR.isdisjoint(name for name, kinds in stored(LLAMA, p).items() if "bf16" in kinds)


def test_empty_and_missing_configs_are_none():
    assert read_quantization({}) is None and read_quantization(None) is None


@pytest.mark.parametrize("patterns, kept", [
    (["lm_head"], {}),
    (["model.layers.0.mlp.down_proj"], {"mlp.down_proj": 1}),
    (["model.layers.1.self_attn"], {"self_attn.q_proj": 1, "self_attn.k_proj": 1, "self_attn.v_proj": 1, "self_attn.o_proj": 1}),
    (["model.layers.3"], dict.fromkeys(LINEAR, 1)),
    (["model.layers.10.mlp.down_proj", "model.layers.1"], dict.fromkeys(LINEAR, 1)),
    (["language_model.model.layers.2.self_attn.q_proj"], {"self_attn.q_proj": 1}),
    (["model.language_model.layers.0.self_attn*", "model.language_model.layers.3.self_attn*"], {n: 2 for n in LINEAR if n.startswith("self_attn")}),
    (["*.mlp.up_proj"], {"mlp.up_proj": 4}),
    (["re:.*down_proj$"], {"mlp.down_proj": 4}),
    (["re:model.layers.(0|2).mlp.*"], {n: 2 for n in LINEAR if n.startswith("mlp")}),
    (["re:.*self_attn.(q|k)_proj"], {"self_attn.q_proj": 4, "self_attn.k_proj": 4}),
    (["o_proj"], {"self_attn.o_proj": 4}),
    (["self_attn"], {n: 4 for n in LINEAR if n.startswith("self_attn")}),
    (["model.layers.0.self_attn.q_proj.weight"], {"self_attn.q_proj": 1}),
    (["model.layers.0.self_attn.qkv_proj"], {"self_attn.q_proj": 1, "self_attn.k_proj": 1, "self_attn.v_proj": 1}),
    (["not.a.module", "proj", "q_pro"], {}),
])
def test_ignored_modules_are_counted_layer_by_layer(patterns, kept):
    p = read_quantization({"quant_method": "fp8", "modules_to_not_convert": patterns})
    found = {name: kinds["bf16"] for name, kinds in stored(LLAMA, p).items() if name in LINEAR and "bf16" in kinds}
    assert found == kept


def test_experts_are_named_by_number_in_patterns():
    for patterns in (["model.layers.1.mlp.experts.0.down_proj", "model.layers.1.mlp.experts.1.down_proj"], ["re:model.layers.1.mlp.experts.*down_proj"],
                     ["model.layers.1.block_sparse_moe.experts.0.w2"]):
        p = read_quantization({"quant_method": "fp8", "modules_to_not_convert": patterns})
        kinds = stored(MOE, p)
        assert kinds["mlp.experts.down_proj"] == {"bf16": 1, "fp8": 3}, patterns
        assert "bf16" not in kinds["mlp.experts.up_proj"]


def test_groups_with_their_own_targets_and_a_mixed_checkpoint():
    config = {"quant_method": "compressed-tensors", "format": "mixed-precision", "ignore": ["lm_head", "re:.*mlp.gate$"], "config_groups": {
        "group_0": {"targets": ["re:.*self_attn.*"], "weights": {"num_bits": 8, "type": "float", "strategy": "channel"},
                    "input_activations": {"num_bits": 8, "type": "float"}},
        "group_1": {"targets": ["re:.*experts.*"], "format": "nvfp4-pack-quantized", "weights": {"num_bits": 4, "type": "float", "group_size": 16},
                    "input_activations": {"num_bits": 4, "type": "float", "group_size": 16}}}}
    p = read_quantization(config)
    kinds = stored(MOE, p)
    assert kinds["self_attn.q_proj"] == {"fp8-channel": 4} and kinds["mlp.experts.up_proj"] == {"nvfp4": 4} and kinds["mlp.gate"] == {"bf16": 4}
    assert p.activations == "fp8"  # the wider of what its groups compute in


def test_modelopt_mixed_precision_names_each_layer():
    p = read_quantization(published("nvidia/MiniMax-M3-NVFP4"))
    layers = tuple(range(60))
    down = Tensor(name="block_sparse_moe.experts.w2", group="experts", rows=256, cols=128, layers=layers, copies=4)
    attention = Tensor(name="self_attn.q_proj", group="attention_projection", rows=256, cols=256, layers=layers)
    dense = Tensor(name="mlp.down_proj", group="mlp", rows=256, cols=256, layers=layers[:3])
    gate = Tensor(name="block_sparse_moe.gate", group="router", rows=4, cols=256, layers=layers[3:])
    names = lambda t: {(f.name if f else "bf16"): n for f, n in p.formats(t).items()}
    assert names(down) == {"nvfp4": 57, "bf16": 3} and names(attention) == {"mxfp8": 60} and names(dense) == {"mxfp8": 3} and names(gate) == {"bf16": 57}


def test_minimax_m3_is_mxfp8_with_fp4_experts():
    """quantized_layers names every module; fused gate-and-up and the indexer go by other names in the model."""
    arch = catalogue.load("minimax-m3-nvfp4")
    for name, kinds in stored(arch, read_quantization(published("nvidia/MiniMax-M3-NVFP4"))).items():
        expected = "bf16" if re.search(r"lm_head|embed|vision|block_sparse_moe\.gate$", name) else "nvfp4" if ".experts." in name else "mxfp8"
        assert set(kinds) == {expected}, name


def test_deepseek_v4_keeps_its_compressors():
    """The published shards hold compressor wkv and wgate as BF16 without scales, the experts as FP4, the rest as FP8."""
    arch = catalogue.load("deepseek-v4-flash")
    p = read_quantization(published("deepseek-ai/DeepSeek-V4-Flash"), {"model_type": "deepseek_v4", "expert_dtype": "fp4"})
    for name, kinds in stored(arch, p).items():
        expected = "mxfp4" if ".experts." in name else "fp8-block-e8m0" if re.search(r"self_attn\.(q_|kv_proj|o_)|shared_experts|q_b_proj", name) else "bf16"
        assert set(kinds) == {expected}, name


def test_layers_of_a_tower_or_of_a_prediction_head_are_not_the_decoders():
    p = read_quantization({"quant_method": "fp8", "modules_to_not_convert": ["mtp.layers.0*", "mtp.layers.0.mlp.down_proj", "vision_model.model.layers.1.self_attn.q_proj", "model.visual*"]})
    assert not [name for name, kinds in stored(LLAMA, p).items() if name in LINEAR and "bf16" in kinds]


def test_deepseek_v4_experts_are_fp4():
    p = read_quantization(published("deepseek-ai/DeepSeek-V4-Flash"), {"model_type": "deepseek_v4", "expert_dtype": "fp4"})
    expert = Tensor(name="mlp.experts.up_proj", group="experts", rows=128, cols=256, layers=(0, 1), copies=4)
    assert {f.name for f in p.formats(expert)} == {"mxfp4"} and p.fmt.name == "fp8-block-e8m0"


def test_gptq_overrides_by_pattern():
    p = read_quantization({"quant_method": "gptq", "bits": 4, "group_size": 128, "dynamic": {"-:.*o_proj": {}, "+:.*layers\\.[0-1]\\..*down_proj": {"bits": 8, "group_size": 32}}})
    kinds = stored(LLAMA, p)
    assert kinds["self_attn.o_proj"] == {"bf16": 4} and kinds["mlp.down_proj"] == {"int8-g32": 2, "int4-g128": 2}


def test_mlx_overrides_by_module():
    p = read_quantization({"bits": 4, "group_size": 64, "model.layers.0.mlp.gate": {"bits": 8, "group_size": 64}, "lm_head": False})
    kinds = stored(MOE, p)
    assert kinds["lm_head"] == {"bf16": 1} and kinds["mlp.gate"]["mlx-8bit"] == 1 and kinds["model.embed_tokens"] == {"mlx-4bit": 1}


def test_a_router_name_stands_for_its_other_spellings():
    assert "block_sparse_moe.gate" in module_names("mlp.gate", False)
    assert "mlp.experts.0.gate_up_proj" in module_names("mlp.experts.gate_proj", True)


@pytest.mark.parametrize("config", [
    [], "awq", 4, True, {"quant_method": None, "x": 1}, {"quant_method": 7}, {"quant_method": "aqlm2"}, {"quant_method": "x" * 10_000},
    {"quant_method": "awq", "bits": "4"}, {"quant_method": "awq", "bits": -4}, {"quant_method": "awq", "bits": float("nan")}, {"quant_method": "gptq", "bits": 4, "group_size": -7},
    {"quant_method": "gptq", "bits": 4, "group_size": 1e300}, {"quant_method": "fp8", "weight_block_size": [0, 128]}, {"quant_method": "fp8", "weight_block_size": "128"},
    {"quant_method": "fp8", "weight_block_size": [128, 128, 128]}, {"quant_method": "fp8", "modules_to_not_convert": 7}, {"quant_method": "fp8", "modules_to_not_convert": [7]},
    {"quant_method": "compressed-tensors"}, {"quant_method": "compressed-tensors", "config_groups": []}, {"quant_method": "compressed-tensors", "config_groups": {"a": 1}},
    {"quant_method": "compressed-tensors", "config_groups": {"a": {"weights": {"num_bits": 4, "type": "string"}}}},
    {"quant_method": "compressed-tensors", "config_groups": {"a": {"targets": ["re:(a+)+$"], "weights": {"num_bits": 4}}}},
    {"quant_method": "fp8", "modules_to_not_convert": ["re:(a|a)*$"]}, {"quant_method": "fp8", "modules_to_not_convert": ["re:" + ".*" * 40]},
    {"quant_method": "fp8", "modules_to_not_convert": ["re:("]}, {"quant_method": "fp8", "modules_to_not_convert": [f"*a{i}*" for i in range(10_000)]},
    {"quant_method": "modelopt", "quant_algo": "FP3"}, {"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION"},
    {"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION", "quantized_layers": {"a": 1}}, {"quant_method": "torchao", "quant_type": "int1"},
    {"quant_method": "hqq", "quant_config": "x"}, {"quant_method": "exl3", "bits": 400}, {"quant_method": "quanto", "weights": "int1"}, {"quant_method": "quark"},
    {"bits": 7, "group_size": 64},
])
def test_hostile_configs_are_refused_in_one_sentence(config):
    with pytest.raises(InputError) as error:
        read_quantization(config)
    assert "\n" not in str(error.value) and len(str(error.value)) < 400


SCALARS = st.none() | st.booleans() | st.integers(-10, 10**20) | st.floats() | st.text(max_size=20)
TREES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(
    ["bits", "group_size", "weights", "num_bits", "type", "strategy", "targets", "ignore", "config_groups", "quant_algo", "quantized_layers", "dynamic", "a", "lm_head"]), inner, max_size=5), max_leaves=12)


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(["fp8", "awq", "gptq", "compressed-tensors", "modelopt", "bitsandbytes", "mxfp4", "torchao", "quark", "hqq", "auto-round", "mlx", "exl3"]),
       st.dictionaries(st.sampled_from(["bits", "group_size", "config_groups", "ignore", "modules_to_not_convert", "quant_algo", "quantized_layers", "dynamic", "weight_block_size",
                                        "kv_cache_scheme", "quant_type", "extra_config", "global_quant_config", "quant_config", "head_bits", "llm_int8_skip_modules"]), TREES, max_size=6))
def test_any_config_is_read_or_refused(method, rest):
    try:
        p = read_quantization({"quant_method": method, **rest})
    except InputError:
        return
    sizes = formats.weight_bytes(MOE, p)
    assert all(isinstance(s, int) and s > 0 for s in sizes)


def test_thousands_of_patterns_match_quickly():
    names = [f"model.layers.{i}.mlp.experts.{e}.{p}_proj" for i in range(60) for e in range(100) for p in ("up", "gate", "down")]
    patterns = read_patterns(names, "ignore")
    t = Tensor(name="mlp.experts.up_proj", group="experts", rows=8, cols=8, layers=tuple(range(60)), copies=100)
    assert len(patterns.layers_of(t)) == 60
