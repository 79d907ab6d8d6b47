"""model.safetensors.index.json: stated sizes of published checkpoints, and hostile files."""

import json

import pytest
from hypothesis import given, settings, strategies as st

from roofline import catalogue
from roofline.checkpoint_index import check_index, finding, looks_like_index, read_index
from roofline.errors import InputError


def index(total, layers, extra=(), **metadata):
    names = {f"model.layers.{i}.self_attn.q_proj.weight": f"model-{i % 4}.safetensors" for i in range(layers)} | {"lm_head.weight": "model-0.safetensors"} | dict.fromkeys(extra, "x")
    return json.dumps({"metadata": {"total_size": total, **metadata}, "weight_map": names})


@pytest.mark.parametrize("model, total, layers, fmt", [
    ("llama-3.2-3b", 6_425_499_648, 28, "bf16"), ("mixtral-8x22b", 281_241_268_224, 56, "bf16"), ("yi-6b", 12_122_071_040, 32, "bf16"),
    ("qwen2.5-14b", 29_540_067_328, 48, "bf16"), ("llama-3.1-70b", 141_107_412_992, 80, "bf16"), ("llama-3.1-70b", 282_214_825_984, 80, "fp32"),
])
def test_published_totals_agree(model, total, layers, fmt):
    """total_size of published indexes (bf16, or fp32 where the files are)."""
    result = check_index(catalogue.load(model), read_index(index(total, layers)))
    assert result["agrees"] and result["difference"] == 0 and result["format"] in (fmt, "published") and not result["notes"]


def test_what_does_not_agree_is_said():
    arch = catalogue.load("llama-3.1-8b")
    assert "not of the same model" in " ".join(check_index(arch, read_index(index(10**10, 28)))["notes"])
    assert "multi-token" in " ".join(check_index(arch, read_index(index(10**10, 33)))["notes"])
    assert "scales" in " ".join(check_index(arch, read_index(index(9 * 10**9, 32, ["model.layers.0.mlp.up_proj.weight_scale_inv"])))["notes"])
    stale = check_index(arch, read_index(index(12 * 10**9, 32)))
    assert not stale["agrees"] and "stale" in stale["notes"][0]
    nothing = check_index(arch, read_index(index(None, 32)))
    assert nothing["stated_bytes"] is None and nothing["agrees"] is None


def test_parts_are_counted():
    read = read_index(index(16, 32, total_parameters=8, extra=["mtp.fc.weight"]))
    assert (read.tensors, read.files, read.layers, read.total_parameters, read.mtp, read.scales) == (34, 5, 32, 8, True, False)


@pytest.mark.parametrize("text", ["", " ", "[]", "{}", "null", "3", "{", "[" * 100_000, '{"weight_map": []}', '{"weight_map": {}}', '{"weight_map": {"a": 3}}',
                                  '{"weight_map": {"a": "b"}, "metadata": 3}', index("16", 1), index(-1, 1), index(0, 1), index(1e300, 1), index(True, 1),
                                  '{"weight_map": {"a": "b"}, "metadata": {"total_size": NaN}}', "x" * 100, None, b"{}"])
def test_hostile_indexes_are_refused_in_one_sentence(text):
    with pytest.raises(InputError) as error:
        read_index(text)
    assert "\n" not in str(error.value) and len(str(error.value)) < 300


def test_a_text_beyond_the_limit_is_not_parsed():
    with pytest.raises(InputError, match="characters"):
        read_index(" " * 48_000_001)


@settings(max_examples=100, deadline=None)
@given(st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8), lambda x: st.lists(x, max_size=3) | st.dictionaries(
    st.sampled_from(["weight_map", "metadata", "total_size", "total_parameters", "model.layers.3.w"]), x, max_size=4), max_leaves=10))
def test_any_json_is_read_or_refused(value):
    try:
        check_index(catalogue.load("llama-3.2-1b"), read_index(json.dumps(value)))
    except InputError:
        pass


def test_a_finding_is_one_sentence():
    arch = catalogue.load("llama-3.1-8b")
    same = finding(arch, read_index(index(16_060_522_496, 32)))
    assert same["text"] == "The index states 16,060,522,496 bytes, and Meta-Llama-3.1-8B comes to 16,060,522,496 in BF16: they agree to the byte." and not same["notes"]
    near = finding(arch, read_index(index(16_060_556_376, 32)))
    assert near["text"].endswith("they agree within 0.001 %.")
    off = finding(catalogue.load("qwen3-8b"), read_index(index(16_060_522_496, 32)))
    assert off["text"].endswith("in BF16, 2.0 % more.") and "not of the same model" in off["notes"][0]
    assert "states no total size; it lists 33 tensors in 4 files" in finding(arch, read_index(index(None, 32)))["text"]
    assert "as published" in finding(catalogue.load("deepseek-v3"), read_index(index(688_586_727_753, 61)))["text"]


def test_an_index_is_told_from_a_config():
    assert looks_like_index(index(16, 1)) and looks_like_index('{"weight_map": 7')
    assert not looks_like_index('{"model_type": "llama", "note": "\\"weight_map\\""}') and not looks_like_index("")
