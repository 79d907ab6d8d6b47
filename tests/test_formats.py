"""Names, sizes and cache elements of number formats, against published block layouts and what engines report."""

import csv
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from roofline import catalogue, formats, presets
from roofline.blocks import catalogue as known
from roofline.errors import InputError
from roofline.families import from_hf_config

DATA = Path(__file__).parent / "data"
LLAMA = catalogue.load("llama-3.1-8b")
CONTRACT = "bf16 fp16 fp32 fp8 int8 int4 int4-g128 int4-g64 int4-g32 awq gptq nf4 mxfp4 nvfp4 fp8-block e5m2 Q4_K_M IQ3_XXS".split()


def rows(name):
    return list(csv.DictReader((DATA / name).open(encoding="utf-8")))


@pytest.mark.parametrize("row", rows("formats.csv"), ids=lambda r: r["format"])
def test_bits_per_weight_of_every_published_layout(row):
    fmt = formats.parse(row["format"])
    assert fmt.bits_per_weight == pytest.approx(float(row["bits_per_weight"]), abs=1e-6)
    assert fmt.source
    if fmt.block and row["block_elements"]:
        assert fmt.block == (int(row["block_elements"]), float(row["block_bytes"]))


@pytest.mark.parametrize("name", CONTRACT)
@pytest.mark.parametrize("change", [str.lower, str.upper, lambda s: s.replace("-", "_"), lambda s: f" {s} "])
def test_names_are_read_in_any_case_and_punctuation(name, change):
    assert formats.parse(change(name)) == formats.parse(name)


def test_what_each_format_computes_with():
    expect = {"fp8": ("fp8", "fp8"), "int8": ("int8", "int8"), "awq": ("int4", "bf16"), "gptq": ("int4", "bf16"), "nf4": ("bf16", "bf16"),
              "nvfp4": ("fp4", "fp4"), "mxfp4": ("fp4", "bf16"), "Q4_K_M": ("int8", "bf16"), "fp16": ("fp16", "fp16")}
    for name, pair in expect.items():
        fmt = formats.parse(name)
        assert (fmt.compute, fmt.activations_default) == pair, name


@pytest.mark.parametrize("name, near", [("fp7", "fp"), ("Q4_K_X", "q4"), ("bf61", "bf16"), ("awk", "awq"), ("mxfp5", "mxfp")])
def test_an_unknown_name_is_refused_with_the_nearest(name, near):
    with pytest.raises(InputError) as error:
        formats.parse(name, "activations")
    assert error.value.field == "activations" and near in str(error.value).lower()


@pytest.mark.parametrize("name", ["", "   ", "x" * 10_000, None, 4, "int4-g0", "int4-g99999999", "gptq-int9-g128", "int4-g128; rm", "ud-q4_k_xl", "\x00", "ï"])
def test_hostile_names_are_refused_in_one_sentence(name):
    with pytest.raises(InputError) as error:
        formats.parse(name)
    assert "\n" not in str(error.value) and len(str(error.value)) < 300


def test_a_cache_has_one_type_and_a_cache_format_is_not_for_weights():
    with pytest.raises(InputError, match="cache"):
        formats.parse("Q4_K_M", "kv")
    with pytest.raises(InputError, match="cache"):
        formats.parse("fp8-ds-mla")
    assert formats.kv_bytes_per_element(formats.parse("fp8-ds-mla", "kv"), 288) * 576 == 656


@pytest.mark.parametrize("name, value", [("bf16", 2), ("fp16", 2), ("fp32", 4), ("fp8", 1), ("e5m2", 1), ("int8", 1 + 2 / 128), ("int4", 0.5 + 2 / 128),
                                         ("q8_0", 34 / 32), ("q4_0", 18 / 32), ("q4_1", 20 / 32), ("q5_0", 22 / 32), ("q5_1", 24 / 32), ("iq4_nl", 18 / 32),
                                         ("nvfp4", 9 / 16), ("mxfp4", 17 / 32), ("q1_0", 18 / 128)])
def test_bytes_of_a_cached_element(name, value):
    assert formats.kv_bytes_per_element(formats.parse(name, "kv"), 128) == pytest.approx(value)


@pytest.mark.parametrize("row", rows("kv_reported.csv"), ids=lambda r: f"{r['engine']}-{r['model']}-{r['tokens']}-{r['type_k']}-{r['type_v']}-{r['how']}")
def test_cache_size_is_what_the_engine_reports(row):
    arch = catalogue.load(row["model"])
    k, v = formats.parse(row["type_k"], "kv"), formats.parse(row["type_v"] or row["type_k"], "kv")
    total = 0.0
    for a in arch.attentions:
        key, value = formats.kv_bytes_per_element(k, a.qk_dim), formats.kv_bytes_per_element(v, a.v_dim)
        each = {"k and v": a.kv_heads * (a.qk_dim * key + a.v_dim * value), "expanded": a.heads * (a.qk_dim * key + a.v_dim * value),
                "latent": a.kv_elements * key, "latent and transposed copy": (a.kv_elements + a.decode_v_dim) * key}[row["how"]]
        total += each * a.count * int(row["tokens"])
    assert int(row["bytes_lo"]) <= total <= int(row["bytes_hi"])


def test_weights_come_with_their_parts():
    for name in CONTRACT:
        sizes = formats.weight_bytes(LLAMA, formats.parse(name))
        assert len(sizes) == len(LLAMA.tensors) and all(isinstance(s, int) and s > 0 for s in sizes)
        assert len(formats.tensor_formats(LLAMA, formats.parse(name))) == len(LLAMA.tensors)


def test_plain_formats_store_everything_alike():
    total = sum(t.parameters for t in LLAMA.tensors)
    for name, size in (("bf16", 2), ("fp16", 2), ("fp32", 4)):
        assert sum(formats.weight_bytes(LLAMA, formats.parse(name))) == size * total


@pytest.mark.parametrize("name", ["fp8", "int8", "int4-g128", "awq", "gptq", "nf4", "nvfp4"])
def test_what_keeps_16_bits(name):
    arch = catalogue.load("qwen3-30b-a3b")
    for t, stored in zip(arch.tensors, formats.weight_bytes(arch, formats.parse(name))):
        kept = t.group in ("embedding", "lm_head", "router", "norm") or t.kind == "vector"
        assert (stored == 2 * t.parameters) == kept, t.name


def test_mxfp4_takes_the_experts_where_there_are_any():
    arch = catalogue.load("gpt-oss-20b")
    stored = dict(zip(((t.name, t.kind) for t in arch.tensors), formats.weight_bytes(arch, formats.parse("mxfp4"))))
    for t in arch.tensors:
        if t.kind == "linear":
            assert stored[t.name, t.kind] * 8 / t.parameters == (4.25 if t.group == "experts" else 16)
    assert sum(formats.weight_bytes(LLAMA, formats.parse("mxfp4"))) * 8 / LLAMA.tensors[0].parameters > 4


# Hand-made configs of a plain decoder: sizes are summed from shapes here, without the package's own lists.
SHAPES = st.builds(
    lambda heads, group, dim, ff, layers, vocab, tied: dict(
        model_type="llama", num_attention_heads=heads * group, num_key_value_heads=heads, head_dim=dim, hidden_size=64 * heads * group, intermediate_size=ff,
        num_hidden_layers=layers, vocab_size=vocab, tie_word_embeddings=tied),
    st.integers(1, 8), st.integers(1, 8), st.sampled_from([32, 64, 80, 128, 256]), st.integers(1, 600).map(lambda n: 32 * n), st.integers(1, 90),
    st.integers(1, 4000).map(lambda n: 8 * n), st.booleans())


def linear_shapes(c):
    h, d, q, kv, ff = c["hidden_size"], c["head_dim"], c["num_attention_heads"], c["num_key_value_heads"], c["intermediate_size"]
    return [(q * d, h), (kv * d, h), (kv * d, h), (h, q * d), (ff, h), (ff, h), (h, ff)]


def rest(c):
    return c["vocab_size"] * c["hidden_size"] * (1 if c["tie_word_embeddings"] else 2) + c["hidden_size"] * (2 * c["num_hidden_layers"] + 1)


@settings(max_examples=60, deadline=None)
@given(SHAPES)
def test_int4_and_fp8_sizes_equal_a_count_by_hand(c):
    arch, n = from_hf_config(c), c["num_hidden_layers"]
    awq = sum(r * k // 2 + -(-k // 128) * (2 * r + -(-r // 2)) for r, k in linear_shapes(c)) * n + 2 * rest(c)
    assert sum(formats.weight_bytes(arch, formats.parse("awq"))) == awq
    block = sum(r * k + 4 * -(-r // 128) * -(-k // 128) for r, k in linear_shapes(c)) * n + 2 * rest(c)
    assert sum(formats.weight_bytes(arch, formats.parse("fp8-block"))) == block


@settings(max_examples=60, deadline=None)
@given(SHAPES, st.sampled_from(presets.names()))
def test_presets_hold_for_any_shape(c, name):
    """Every row is a whole number of blocks, vectors are FP32, and the total lies between the narrowest and the widest type used."""
    arch, fmt = from_hf_config(c), formats.parse("gguf-" + name)
    seen = 0
    for index, kind, rows_, cols, count in presets.types(arch, fmt):
        assert cols % known()[kind].block[0] == 0
        if arch.tensors[index].kind == "vector":
            assert kind == "ggml-f32"
        seen += rows_ * cols * count
    assert seen == sum(t.parameters for t in arch.tensors)
    sizes = formats.weight_bytes(arch, fmt)
    used = [known()[kind].bits / 8 for _, kind, *_ in presets.types(arch, fmt)]
    assert min(used) * seen <= sum(sizes) <= max(used) * seen + 4 * 1024


def test_preset_bits_match_llama_cpps_own_table():
    """Bits per weight of Llama 3.1 8B, tools/quantize/README.md of llama.cpp@311c2c9f0ebd (4 decimals; IQ4 made without an importance matrix)."""
    printed = {"IQ1_S": 2.0042, "IQ1_M": 2.1460, "IQ2_XXS": 2.3824, "IQ2_XS": 2.5882, "IQ2_S": 2.7403, "IQ2_M": 2.9294, "IQ3_XXS": 3.2548, "IQ3_XS": 3.4977,
               "IQ3_S": 3.6606, "IQ3_M": 3.7628, "IQ4_XS-no-imatrix": 4.4597, "IQ4_NL-no-imatrix": 4.6818, "Q2_K_S": 2.9697, "Q2_K": 3.1593, "Q3_K_S": 3.6429, "Q3_K_L": 4.2979,
               "Q4_K_S": 4.6672, "Q4_K_M": 4.8944, "Q5_K_S": 5.5704, "Q5_K_M": 5.7036, "Q6_K": 6.5633, "Q8_0": 8.5008, "gguf-F16": 16.0005}
    total = sum(t.parameters for t in LLAMA.tensors)
    for name, bits in printed.items():
        ours = sum(formats.weight_bytes(LLAMA, formats.parse(name))) * 8 / total
        assert ours == pytest.approx(bits, abs=1e-4), name


@pytest.mark.parametrize("model, across", [("llama-3.1-8b", 128), ("deepseek-v3", 576), ("deepseek-v3.2", 576), ("glm-5.1", 576), ("deepseek-v4-flash", 512)])
def test_a_quantised_cache_has_one_scale_for_a_whole_vector(model, across):
    """INT8 with a 16-bit scale a row: 1 + 2/128 bytes for a head's key, 1 + 2/576 for a latent, sparse attention's too, 1 + 2/512 where one vector is key and value."""
    assert formats.kv_bytes_per_element(formats.parse("int8", "kv"), catalogue.load(model).attentions[0].cached_vector) == pytest.approx(1 + 2 / across)
