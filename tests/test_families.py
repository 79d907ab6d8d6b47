"""Families: totals, splits, caches and FLOPs against counts of the reference implementation, random configs against brute force, refusals."""

import csv
import json
import math
import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from roofline import catalogue
from roofline.errors import InputError
from roofline.families import FAMILIES, from_hf_config, known_types
from roofline.families.reader import table
from roofline.model import kv_bytes_per_token, parameters, state_bytes_per_sequence

DATA = Path(__file__).parent / "data"
TRUTH = list(csv.DictReader((DATA / "models_truth.csv").open(encoding="utf-8")))
SMALL = json.loads((DATA / "family_truth.json").read_text("utf-8"))
GROUPS = ("embedding", "lm_head", "attention", "mlp", "experts", "shared_experts", "router", "norm", "recurrent", "other")
FLOP_GROUPS = {
    "attention_projection": "attention",
    "mlp": "mlp",
    "experts": "experts",
    "shared_experts": "shared_experts",
    "router": "router",
    "lm_head": "lm_head",
}


def linear_flops(arch, tokens):
    """2 FLOPs a multiply-add, by group, with logits for every token (as the reference counts)."""
    flops = dict.fromkeys(FLOP_GROUPS, 0)
    for t in arch.tensors:
        if t.kind == "linear" and t.group in flops:
            flops[t.group] += 2 * tokens * t.rows * t.cols * t.active * t.count * t.uses
    if arch.tied:
        table_ = next(t for t in arch.tensors if t.group == "embedding")
        flops["lm_head"] += 2 * tokens * table_.rows * table_.cols
    return flops


def agree(arch, want):
    """Compare an Architecture with one row of truth (a dict of numbers; None where it was not measured)."""
    counts = parameters(arch)
    assert counts["language"] == want["language"]
    if want["total"] == want["language"]:
        assert counts["total"] == want["total"]
        if want.get("active") is not None:
            assert counts["active"] == want["active"]
    else:
        assert counts["total"] == pytest.approx(want["total"], rel=0.02)
    for group in GROUPS:
        if want.get(group) is not None:
            assert counts[group] == want[group], group
    if want.get("kv_bytes_per_token") is not None:
        assert kv_bytes_per_token(arch) == want["kv_bytes_per_token"]
    if want.get("state_bytes") is not None:
        assert state_bytes_per_sequence(arch) == want["state_bytes"]
    ours = linear_flops(arch, 512)
    for group, key in FLOP_GROUPS.items():
        if want.get("flops_" + key) is not None:
            assert ours[group] == pytest.approx(want["flops_" + key], rel=1e-3), group


def row_numbers(row):
    return {
        k: float(v) if "." in v or "e" in v else int(v) for k, v in row.items() if v and k not in ("id", "hub", "source", "notes")
    }


@pytest.mark.parametrize("row", TRUTH, ids=[row["id"] for row in TRUTH])
def test_catalogue_model_equals_its_reference_count(row):
    agree(catalogue.load(row["id"]), row_numbers(row))


@pytest.mark.parametrize("case", SMALL["cases"], ids=[case["name"] for case in SMALL["cases"]])
def test_family_with_omitted_fields_equals_its_reference_count(case):
    """Only the core sizes are given; the rest is the class's default, as in a published config."""
    agree(from_hf_config(case["config"]), case["truth"])


def test_every_value_taken_from_a_default_is_listed():
    arch = from_hf_config(
        {
            "model_type": "mixtral",
            "hidden_size": 4096,
            "num_hidden_layers": 2,
            "num_attention_heads": 32,
            "intermediate_size": 14336,
            "vocab_size": 32000,
        }
    )
    assumed = {field: value for field, value, _ in arch.assumed}
    assert assumed["num_local_experts"] == 8 and assumed["num_experts_per_tok"] == 2 and assumed["num_key_value_heads"] == 8
    assert all(table()["source"] in source for _, _, source in arch.assumed)


BASE = {
    "model_type": "llama",
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": 14336,
    "vocab_size": 128256,
}


def test_null_is_not_absent():
    """Mistral's class default is a window of 4,096; the published v0.3 config says null."""
    given_, absent = dict(BASE, model_type="mistral", sliding_window=None), dict(BASE, model_type="mistral")
    assert from_hf_config(given_).attentions[0].window is None
    assert from_hf_config(absent).attentions[0].window == 4096


@pytest.mark.parametrize("field", ["hidden_size", "num_hidden_layers", "num_attention_heads", "vocab_size", "intermediate_size"])
@pytest.mark.parametrize("value", ["missing", None, -1, 0, "many", 1.5, True, math.nan, math.inf, 10**12, [], {}])
def test_bad_core_size_is_refused_by_name(field, value):
    config = {k: v for k, v in BASE.items() if k != field} if value == "missing" else {**BASE, field: value}
    with pytest.raises(InputError) as caught:
        from_hf_config(config)
    assert field in str(caught.value) and "\n" not in str(caught.value) and len(str(caught.value)) < 400


@pytest.mark.parametrize(
    "change",
    [
        {"num_attention_heads": 33},
        {"num_key_value_heads": 5},
        {"hidden_size": 1 << 19, "num_hidden_layers": 9999, "intermediate_size": 999_999},
        {"model_type": "qwen3", "layer_types": ["full_attention"] * 3},
        {"model_type": "qwen3", "layer_types": ["no_such"] * 32},
        {"model_type": "mixtral", "num_local_experts": 4, "num_experts_per_tok": 8},
        {"attention_bias": "yes"},
        {"quantization_config": 7},
        {"model_type": "gpt_neo", "attention_types": [[["global"], 10**9]]},
        {"model_type": "qwen3_moe", "mlp_only_layers": ["a"]},
    ],
)
def test_impossible_combination_is_refused(change):
    with pytest.raises(InputError):
        from_hf_config({**BASE, **change})


def test_whole_numbers_written_as_floats_are_read():
    assert from_hf_config({**BASE, "hidden_size": 4096.0}).hidden == 4096


def test_infinity_where_it_does_not_matter_is_read():
    assert from_hf_config({**BASE, "time_step_limit": [0.0, math.inf], "rope_theta": math.nan}).hidden == 4096


def test_unknown_family_is_refused_with_the_closest_and_read_only_on_request():
    config = {**BASE, "model_type": "lama"}
    with pytest.raises(InputError, match="did you mean 'llama'"):
        from_hf_config(config)
    arch = from_hf_config(config, read_as="llama")
    assert parameters(arch)["total"] == parameters(from_hf_config(BASE))["total"]
    assert any("read as" in note for note in arch.notes)


def test_architectures_stand_in_for_a_missing_model_type():
    config = {k: v for k, v in BASE.items() if k != "model_type"} | {"architectures": ["LlamaForCausalLM"]}
    assert from_hf_config(config).family == "llama"
    with pytest.raises(InputError, match="deepseek_v4"):
        from_hf_config({"model_type": "in_house", "architectures": ["DeepseekV4ForCausalLM"]})


@pytest.mark.parametrize(
    ("params", "total"),
    [
        # Totals of the published checkpoints.
        ({"dim": 4096, "n_layers": 32, "n_heads": 32, "multiple_of": 256, "vocab_size": 32000, "norm_eps": 1e-5}, 6_738_415_616),
        (
            {
                "dim": 8192,
                "n_layers": 80,
                "n_heads": 64,
                "n_kv_heads": 8,
                "multiple_of": 4096,
                "ffn_dim_multiplier": 1.3,
                "vocab_size": 32000,
            },
            68_976_648_192,
        ),
        (
            {
                "dim": 4096,
                "n_layers": 32,
                "n_heads": 32,
                "n_kv_heads": 8,
                "multiple_of": 1024,
                "ffn_dim_multiplier": 1.3,
                "vocab_size": 128256,
            },
            8_030_261_248,
        ),
        (
            {
                "dim": 4096,
                "n_layers": 32,
                "head_dim": 128,
                "hidden_dim": 14336,
                "n_heads": 32,
                "n_kv_heads": 8,
                "vocab_size": 32000,
            },
            7_241_732_096,
        ),
        (
            {
                "dim": 4096,
                "n_layers": 32,
                "head_dim": 128,
                "hidden_dim": 14336,
                "n_heads": 32,
                "n_kv_heads": 8,
                "vocab_size": 32000,
                "moe": {"num_experts": 8, "num_experts_per_tok": 2},
            },
            46_702_792_704,
        ),
    ],
)
def test_params_json(params, total):
    assert parameters(from_hf_config(params))["total"] == total


@pytest.mark.parametrize(
    "params",
    [
        {"dim": 4096, "n_layers": 32},
        {"dim": 4096, "n_layers": 32, "n_heads": 32, "vocab_size": -1},
        {"dim": "x", "n_layers": 32, "n_heads": 32, "vocab_size": 5},
        {"dim": 64, "n_layers": 2, "n_heads": 2, "vocab_size": 9, "moe_args": {"a": 1}},
    ],
)
def test_params_json_refusals(params):
    with pytest.raises(InputError):
        from_hf_config(params)


def test_falcon_memory_uses_the_heads_an_engine_stores():
    """The reference caches 232 heads; the model has 8 key-value heads of 64: 2 x 8 x 64 x 2 bytes x 80 layers."""
    arch = catalogue.load("falcon-180b")
    assert kv_bytes_per_token(arch) == 4_751_360
    assert sum(2 * a.kv_elements * a.count for a in arch.attentions) == 163_840
    assert any("163840" in note for note in arch.notes)


def test_shared_block_is_stored_once_and_used_in_every_place():
    """Zamba: 13 places run one stored block (published zamba-7b-v1 pattern)."""
    case = next(c for c in SMALL["cases"] if c["name"] == "zamba")
    arch = from_hf_config(case["config"])
    shared = next(t for t in arch.tensors if t.name == "shared_transf.self_attn.q_proj")
    assert shared.count == 1 and shared.uses == 13


def test_kinds_and_groups_are_known():
    groups = {
        "embedding",
        "attention_projection",
        "mlp",
        "experts",
        "shared_experts",
        "router",
        "recurrent",
        "norm",
        "lm_head",
        "vision",
        "other",
    }
    for case in SMALL["cases"]:
        arch = from_hf_config(case["config"])
        assert {t.group for t in arch.tensors} <= groups
        assert {t.kind for t in arch.tensors} <= {"linear", "vector", "table", "idle"}
        assert all(t.kind == "idle" for t in arch.tensors if t.group == "vision")
        assert not arch.tied or arch.tensors[0].group == "embedding"
        assert len(arch.tensors) < 80
        for part in (*arch.tensors, *arch.attentions, *arch.recurrents):
            assert all(0 <= layer < arch.layer_count for layer in part.layers), part


# --- Random configs against a brute-force count of tensor shapes, written from the papers and model cards alone. ---


def shapes_dense(c, *, qkv_bias, qk_norm, tied):
    h, d, heads, kv, ff = (
        c["hidden_size"],
        c["head_dim"],
        c["num_attention_heads"],
        c["num_key_value_heads"],
        c["intermediate_size"],
    )
    out = [(c["vocab_size"], h), (h,)]
    if not tied:
        out.append((c["vocab_size"], h))
    for _ in range(c["num_hidden_layers"]):
        out += [(heads * d, h), (kv * d, h), (kv * d, h), (h, heads * d), (ff, h), (ff, h), (h, ff), (h,), (h,)]
        if qkv_bias:
            out += [(heads * d,), (kv * d,), (kv * d,)]
        if qk_norm:
            out += [(d,), (d,)]
    return out


def shapes_moe(c):
    h, d, heads, kv = c["hidden_size"], c["head_dim"], c["num_attention_heads"], c["num_key_value_heads"]
    out = [(c["vocab_size"], h), (h,), (c["vocab_size"], h)]
    for _ in range(c["num_hidden_layers"]):
        out += [(heads * d, h), (kv * d, h), (kv * d, h), (h, heads * d), (d,), (d,), (h,), (h,), (c["num_experts"], h)]
        for _ in range(c["num_experts"]):
            out += [(c["moe_intermediate_size"], h), (c["moe_intermediate_size"], h), (h, c["moe_intermediate_size"])]
    return out


def shapes_mla(c):
    h, heads, rank, rope, nope, v = (
        c["hidden_size"],
        c["num_attention_heads"],
        c["kv_lora_rank"],
        c["qk_rope_head_dim"],
        c["qk_nope_head_dim"],
        c["v_head_dim"],
    )
    out = [(c["vocab_size"], h), (h,), (c["vocab_size"], h)]
    for i in range(c["num_hidden_layers"]):
        if c["q_lora_rank"]:
            out += [(c["q_lora_rank"], h), (c["q_lora_rank"],), (heads * (nope + rope), c["q_lora_rank"])]
        else:
            out += [(heads * (nope + rope), h)]
        out += [(rank + rope, h), (rank,), (heads * (nope + v), rank), (h, heads * v), (h,), (h,)]
        if i < c["first_k_dense_replace"]:
            out += [(c["intermediate_size"], h), (c["intermediate_size"], h), (h, c["intermediate_size"])]
        else:
            for _ in range(c["n_routed_experts"] + c["n_shared_experts"]):
                out += [(c["moe_intermediate_size"], h), (c["moe_intermediate_size"], h), (h, c["moe_intermediate_size"])]
            out.append((c["n_routed_experts"], h))
    return out


def shapes_mamba2(c):
    h, heads, p, n, g, k = c["hidden_size"], c["num_heads"], c["head_dim"], c["state_size"], c["n_groups"], c["conv_kernel"]
    inner = heads * p
    out = [(c["vocab_size"], h), (h,), (c["vocab_size"], h)]
    for _ in range(c["num_hidden_layers"]):
        out += [
            (2 * inner + 2 * g * n + heads, h),
            (inner + 2 * g * n, k),
            (inner + 2 * g * n,),
            (heads,),
            (heads,),
            (heads,),
            (inner,),
            (h, inner),
            (h,),
        ]
    return out


def shapes_gpt2(c):
    h = c["n_embd"]
    out = [(c["vocab_size"], h), (c["n_positions"], h), (h,), (h,)]
    for _ in range(c["n_layer"]):
        out += [(3 * h, h), (3 * h,), (h, h), (h,), (4 * h, h), (4 * h,), (h, 4 * h), (h,), (h,), (h,), (h,), (h,)]
    return out


sizes = st.integers(1, 40).map(lambda n: 16 * n)
small = st.integers(1, 6)


@st.composite
def configs(draw):
    """A random valid config of one of the major shapes, and the shapes of its tensors counted one by one."""
    kind = draw(st.sampled_from(["llama", "qwen2", "qwen3", "mixtral-like", "mla", "mamba2", "gpt2"]))
    kv, group, layers, vocab = draw(small), draw(small), draw(st.integers(1, 9)), draw(st.integers(1, 999))
    common = {
        "hidden_size": draw(sizes),
        "num_hidden_layers": layers,
        "num_attention_heads": kv * group,
        "num_key_value_heads": kv,
        "head_dim": 8 * draw(small),
        "intermediate_size": draw(sizes),
        "vocab_size": vocab,
    }
    tied = draw(st.booleans())
    if kind == "llama":
        return {**common, "model_type": "llama", "tie_word_embeddings": tied}, shapes_dense(
            common, qkv_bias=False, qk_norm=False, tied=tied
        )
    if kind == "qwen2":
        common |= {"hidden_size": 16 * kv * group, "head_dim": 16}
        return {**common, "model_type": "qwen2", "tie_word_embeddings": tied}, shapes_dense(
            common, qkv_bias=True, qk_norm=False, tied=tied
        )
    if kind == "qwen3":
        return {**common, "model_type": "qwen3", "tie_word_embeddings": tied}, shapes_dense(
            common, qkv_bias=False, qk_norm=True, tied=tied
        )
    if kind == "mixtral-like":
        experts = draw(st.integers(1, 9))
        common |= {
            "num_experts": experts,
            "num_experts_per_tok": draw(st.integers(1, experts)),
            "moe_intermediate_size": draw(sizes),
        }
        return {**common, "model_type": "qwen3_moe", "tie_word_embeddings": False}, shapes_moe(common)
    if kind == "mla":
        experts = draw(st.integers(1, 7))
        common |= {
            "q_lora_rank": draw(st.none() | sizes),
            "kv_lora_rank": draw(sizes),
            "qk_rope_head_dim": 2 * draw(small),
            "qk_nope_head_dim": 4 * draw(small),
            "v_head_dim": 4 * draw(small),
            "n_routed_experts": experts,
            "n_shared_experts": draw(st.integers(0, 3)),
            "num_experts_per_tok": draw(st.integers(1, experts)),
            "moe_intermediate_size": draw(sizes),
            "first_k_dense_replace": draw(st.integers(0, layers)),
        }
        return {**common, "model_type": "deepseek_v3", "tie_word_embeddings": False}, shapes_mla(common)
    if kind == "mamba2":
        heads, p = 2 * draw(small), 8 * draw(small)
        own = {
            "hidden_size": heads * p // 2,
            "num_hidden_layers": layers,
            "vocab_size": vocab,
            "num_heads": heads,
            "head_dim": p,
            "expand": 2,
            "state_size": 8 * draw(small),
            "n_groups": draw(small),
            "conv_kernel": draw(st.integers(2, 5)),
            "tie_word_embeddings": False,
        }
        return {**own, "model_type": "mamba2"}, shapes_mamba2(own)
    own = {"n_embd": 8 * kv * group, "n_head": kv * group, "n_layer": layers, "n_positions": draw(sizes), "vocab_size": vocab}
    return {**own, "model_type": "gpt2"}, shapes_gpt2(own)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(configs())
def test_total_of_a_random_config_equals_a_count_of_its_tensor_shapes(case):
    config, shapes = case
    arch = from_hf_config(config)
    counts = parameters(arch)
    assert counts["total"] == sum(math.prod(shape) for shape in shapes)
    assert counts["total"] == sum(counts[g] for g in (*GROUPS, "vision"))
    assert 0 < counts["active"] <= counts["total"]


FIELDS = st.dictionaries(
    st.sampled_from(sorted({name for fields in table()["defaults"].values() for name in fields})),
    st.none()
    | st.booleans()
    | st.integers(-10, 10**13)
    | st.floats()
    | st.text(max_size=5)
    | st.lists(st.integers(-3, 10), max_size=4)
    | st.dictionaries(st.text(max_size=4), st.integers(), max_size=2),
    max_size=8,
)
CORE = {
    "hidden_size": 64,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "vocab_size": 100,
    "num_layers": 4,
}


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(known_types()), FIELDS, st.none() | FIELDS, st.none() | FIELDS)
def test_any_config_is_read_or_refused_in_one_sentence(kind, fields, text, tower):
    """Random values in the fields of every family, nested or not: an Architecture or an InputError, never another exception."""
    config = {**CORE, **fields, "model_type": kind}
    if text is not None:
        config |= {"text_config": {**CORE, **text}}
    if tower is not None:
        config |= {"vision_config": tower, "audio_config": tower}
    try:
        arch = from_hf_config(config)
    except InputError as error:
        assert "\n" not in str(error) and len(str(error)) < 600
    else:
        assert parameters(arch)["total"] > 0


def test_every_family_has_a_proof():
    """docs/families.md lists each; here: it is built by the catalogue, by a small config, or named as read like another."""
    proved = {catalogue.load(e.id).family for e in catalogue.entries()} | {c["config"]["model_type"] for c in SMALL["cases"]}
    proved |= {c["config"].get("text_config", {}).get("model_type") for c in SMALL["cases"]}
    same = {t for t in FAMILIES for p in proved if p in FAMILIES and FAMILIES[t] is FAMILIES[p]}
    unproved = sorted(set(FAMILIES) - same)
    assert len(unproved) <= 25, unproved
    assert re.fullmatch(r"[\w., -]*", ", ".join(unproved))


def test_language_model_of_an_unknown_wrapper_is_read_on_request():
    config = {
        "model_type": "new_vl",
        "text_config": {k: v for k, v in BASE.items() if k != "model_type"},
        "vision_config": {"hidden_size": 64},
    }
    with pytest.raises(InputError, match="new_vl"):
        from_hf_config(config)
    arch = from_hf_config(config, read_as="llama")
    assert parameters(arch)["total"] == parameters(from_hf_config(BASE))["total"]
    assert any("text_config" in note for note in arch.notes)


@pytest.mark.parametrize(
    ("model", "count", "billions"),
    [
        # The hub's weight lists less the reference count, without the copies of the embedding and the head that a layer brings: GLM-4.5 has
        # 358.3 billion in all, 352.8 without; MiMo's report says 0.33 billion a block, Step's 0.81 for its three.
        ("deepseek-v3", 1, 11.6),
        ("glm-4.5", 1, 3.99),
        ("qwen3-next-80b-a3b", 1, 1.65),
        ("mimo-7b", 1, 0.21),
        ("mimo-v2-flash", 3, 0.33),
        ("step-3.7-flash", 3, 0.27),
    ],
)
def test_multi_token_prediction_layers_are_stated_with_their_size(model, count, billions):
    note = next(note for note in catalogue.load(model).notes if "multi-token-prediction" in note)
    found = re.match(r"(\d+) multi-token-prediction layers?, about ([\d.]+) (b|m)illion parameters", note)
    assert int(found[1]) == count
    assert float(found[2]) / (1 if found[3] == "b" else 1000) == pytest.approx(billions, rel=0.1)


def test_models_without_prediction_layers_are_not_said_to_have_any():
    for model in ("llama-3.1-8b", "kimi-k2", "qwen3-8b"):
        assert not any("multi-token-prediction" in note for note in catalogue.load(model).notes)
    assert not any("token-prediction" in n for n in from_hf_config({**BASE, "num_nextn_predict_layers": "1"}).notes)


def total(config, **more):
    return parameters(from_hf_config({**config, **more}))["total"]


@pytest.mark.parametrize("kind", ["llama", "mistral", "qwen2", "qwen3", "phi3", "gemma2", "mixtral", "cohere", "olmo2", "starcoder2"])
def test_null_key_value_heads_are_as_many_as_query_heads(kind):
    """Absent, the class's default may count; null always means one for each query head."""
    config = {**BASE, "model_type": kind}
    assert from_hf_config({**config, "num_key_value_heads": None}).attentions[0].kv_heads == 32
    assert total(config, num_key_value_heads=None) == total(config, num_key_value_heads=32)


@pytest.mark.parametrize("kind", ["llama", "mistral", "qwen2", "phi3", "mixtral"])
def test_a_null_head_size_is_the_hidden_size_over_the_heads(kind):
    config = {**BASE, "model_type": kind}
    assert total(config, head_dim=None) == total(config, head_dim=128) != total(config, head_dim=64)
    assert from_hf_config({**config, "head_dim": None}).attentions[0].qk_dim == 128


@pytest.mark.parametrize(
    ("kind", "given_", "windows"),
    [
        ("mistral", {"sliding_window": None}, {None}),
        ("mistral", {}, {4096}),
        ("phi3", {"sliding_window": None}, {None}),
        ("mixtral", {"sliding_window": None}, {None}),
        ("starcoder2", {"sliding_window": None}, {None}),
        ("qwen2", {"sliding_window": 4096, "use_sliding_window": False}, {None}),
        ("qwen2", {"sliding_window": 4096, "use_sliding_window": True, "max_window_layers": 30}, {None, 4096}),
        ("qwen3", {"sliding_window": None, "use_sliding_window": True}, {None}),
        ("gemma2", {"sliding_window": 4096, "layer_types": None}, {None, 4096}),
        ("gemma2", {"sliding_window": 4096, "layer_types": ["full_attention"] * 32}, {None}),
        ("gpt_oss", {"sliding_window": 128, "num_local_experts": 4, "layer_types": ["sliding_attention", "full_attention"] * 16}, {None, 128}),
        ("exaone4", {"sliding_window": None, "sliding_window_pattern": "LLLG"}, {None}),
    ],
)
def test_windows_given_null_or_absent(kind, given_, windows):
    assert {a.window for a in from_hf_config({**BASE, "model_type": kind, **given_}).attentions} == windows


@pytest.mark.parametrize("scaling", [None, {"type": "linear", "factor": 2.0}, {"rope_type": "llama3", "factor": 8.0, "original_max_position_embeddings": 8192}, {"rope_type": "yarn", "factor": 4},
                                     {"type": "su", "short_factor": [1.0] * 64, "long_factor": [2.0] * 64}, {"mrope_section": [16, 24, 24], "type": "mrope"}, "dynamic", 7])
def test_no_way_to_scale_positions_changes_a_size(scaling):
    assert total(BASE, rope_scaling=scaling) == total(BASE)
    assert total(BASE, rope_parameters=scaling) == total(BASE)


@pytest.mark.parametrize("field", ["hidden_size", "num_hidden_layers", "num_key_value_heads", "head_dim"])
def test_a_number_written_as_a_string_is_refused_by_name(field):
    with pytest.raises(InputError, match=field):
        from_hf_config({**BASE, field: "128"})


@pytest.mark.parametrize("kind", ["qwen2_5_vl", "gemma3", "mistral3", "llava", "internvl", "qwen3_5", "glm4v"])
@pytest.mark.parametrize("outer", [True, False, None])
@pytest.mark.parametrize("inner", [True, False, None])
def test_tied_embeddings_of_a_wrapper(kind, outer, inner):
    """The wrapper's word counts; where it says nothing its class's default does, and some classes then listen to the language model's."""
    listens, default = {"qwen2_5_vl", "llava", "glm4v"}, {"gemma3": True, "internvl": True, "mistral3": True}
    config = {"model_type": kind, "text_config": {k: v for k, v in BASE.items() if k != "model_type"}}
    if outer is not None:
        config["tie_word_embeddings"] = outer
    if inner is not None:
        config["text_config"]["tie_word_embeddings"] = inner
    tied = outer if outer is not None else default.get(kind, False)
    assert from_hf_config(config).tied == (tied or (kind in listens and bool(inner)))


def test_a_language_model_nested_or_flat_is_the_same():
    flat = {k: v for k, v in BASE.items() if k != "model_type"} | {"num_experts": 8, "moe_intermediate_size": 512, "num_experts_per_tok": 2}
    nested = from_hf_config({"model_type": "qwen3_vl_moe", "text_config": {**flat, "model_type": "qwen3_vl_moe_text"}, "tie_word_embeddings": False})
    assert parameters(nested)["language"] == parameters(from_hf_config({**flat, "model_type": "qwen3_moe"}))["language"]
    old = from_hf_config({"model_type": "qwen2_vl", **{k: v for k, v in BASE.items() if k != "model_type"}})
    assert parameters(old)["language"] == parameters(from_hf_config({**BASE, "model_type": "qwen2"}))["language"]
