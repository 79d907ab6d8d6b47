"""GGUF headers: reading, refusing hostile ones, and the models they stand for.

The writer below is the reverse of the published layout (checked once against gguf-py 0.19, which reads what it writes).
"""

import json
import random
import struct

import pytest
from hypothesis import given, settings, strategies as st

from roofline import catalogue, formats
from roofline.errors import InputError
from roofline.families import from_hf_config
from roofline.gguf import Length, read_header
from roofline.gguf_config import architecture, to_config

F32, F16, Q4_0, Q8_0, Q4_K, Q6_K, MXFP4 = 0, 1, 2, 8, 12, 14, 39
SIZE = {F32: (1, 4), F16: (1, 2), Q4_0: (32, 18), Q8_0: (32, 34), Q4_K: (256, 144), Q6_K: (256, 210), MXFP4: (32, 17)}


def text(value):
    raw = value.encode()
    return struct.pack("<Q", len(raw)) + raw


def value(item):
    if isinstance(item, bool):
        return struct.pack("<I?", 7, item)
    if isinstance(item, int):
        return struct.pack("<II", 4, item)
    if isinstance(item, float):
        return struct.pack("<If", 6, item)
    if isinstance(item, str):
        return struct.pack("<I", 8) + text(item)
    if item and isinstance(item[0], str):
        return struct.pack("<IIQ", 9, 8, len(item)) + b"".join(map(text, item))
    return struct.pack("<IIQ", 9, 5, len(item)) + struct.pack(f"<{len(item)}i", *item)


def header(metadata, tensors=(), version=3):
    """Bytes of a header; tensors: (name, shape with columns first, type)."""
    data = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(metadata))
    data += b"".join(text(k) + value(v) for k, v in metadata.items())
    offset = 0
    for name, shape, kind in tensors:
        data += text(name) + struct.pack("<I", len(shape)) + struct.pack(f"<{len(shape)}Q", *shape) + struct.pack("<IQ", kind, offset)
        elements = 1
        for n in shape:
            elements *= n
        offset += -(-(elements // SIZE[kind][0] * SIZE[kind][1]) // 32) * 32
    return data


def dense(arch, h, n, heads, kv, d, ff, vocab, kind=Q4_0, tied=False, bias=False, norms=(), context=8192, extra=()):
    """Metadata and tensors of a plain decoder, written down from llama.cpp's names."""
    meta = {"general.architecture": arch, "general.name": "test", "general.file_type": 2, f"{arch}.block_count": n, f"{arch}.embedding_length": h, f"{arch}.feed_forward_length": ff,
            f"{arch}.attention.head_count": heads, f"{arch}.attention.head_count_kv": kv, f"{arch}.context_length": context, f"{arch}.attention.key_length": d,
            "tokenizer.ggml.tokens": [f"t{i}" for i in range(10)]}
    tensors = [("token_embd.weight", (h, vocab), kind), ("output_norm.weight", (h,), F32), *extra]
    if not tied:
        tensors.append(("output.weight", (h, vocab), kind))
    for i in range(n):
        b = f"blk.{i}."
        tensors += [(b + "attn_norm.weight", (h,), F32), (b + "ffn_norm.weight", (h,), F32), (b + "attn_q.weight", (h, heads * d), kind), (b + "attn_k.weight", (h, kv * d), kind),
                    (b + "attn_v.weight", (h, kv * d), kind), (b + "attn_output.weight", (heads * d, h), kind)]
        if bias:
            tensors += [(b + "attn_q.bias", (heads * d,), F32), (b + "attn_k.bias", (kv * d,), F32), (b + "attn_v.bias", (kv * d,), F32)]
        tensors += [(b + name, (size,), F32) for name, size in norms]
        if ff:
            tensors += [(b + "ffn_gate.weight", (h, ff), kind), (b + "ffn_up.weight", (h, ff), kind), (b + "ffn_down.weight", (ff, h), kind)]
    return meta, tensors


LLAMA = dense("llama", 4096, 32, 32, 8, 128, 14336, 128256, context=131072)


def test_values_of_every_type_are_read():
    meta = {"a": 7, "b": True, "c": 0.5, "d": "text ü", "e": [1, 2, 3], "f": ["x", "y"], "g": [str(i) for i in range(5000)], "h": list(range(5000))}
    read = read_header(header(meta))
    assert read.complete and read.metadata == {**meta, "g": Length(5000), "h": Length(5000)}


def test_tensors_have_their_exact_bytes():
    read = read_header(header({}, [("a", (256, 4), Q6_K), ("b", (64, 3, 2), Q8_0), ("c", (7,), F32)]))
    assert [t.bytes for t in read.tensors] == [4 * 210, 12 * 34, 28]
    assert read.elements == 1024 + 384 + 7 and read.types == {"q6_k": 1, "q8_0": 1, "f32": 1}


def test_a_type_not_known_is_sized_by_the_next_tensor():
    data = bytearray(header({}, [("a", (32, 4), Q4_0), ("b", (32,), F32)]))
    at = data.rindex(struct.pack("<IQ", Q4_0, 0))
    data[at:at + 4] = struct.pack("<I", 137)
    first = read_header(bytes(data)).tensors[0]
    assert first.kind == "type 137" and first.bytes == 96  # 72 bytes and the padding to 32


def test_llama_3_1_8b_is_read_to_the_last_parameter_and_byte():
    arch = architecture(header(*LLAMA), id="x")
    reference = catalogue.load("llama-3.1-8b")
    assert sum(t.parameters for t in arch.tensors) == sum(t.parameters for t in reference.tensors)
    assert (arch.hidden, arch.layer_count, arch.vocab, arch.attentions[0].kv_heads) == (4096, 32, 128256, 8)
    read = read_header(header(*LLAMA))
    assert sum(formats.weight_bytes(arch, arch.quantization)) == read.tensor_bytes
    assert not [note for note in arch.notes if "parameters" in note]
    assert arch.quantization.name == "Q4_0" and arch.quantization.fmt.name == "q4_0"


@pytest.mark.parametrize("ident, parts", [
    ("qwen2.5-7b", dense("qwen2", 3584, 28, 28, 4, 128, 18944, 152064, bias=True)),
    ("qwen3-4b", dense("qwen3", 2560, 36, 32, 8, 128, 9728, 151936, tied=True, norms=(("attn_q_norm.weight", 128), ("attn_k_norm.weight", 128)))),
    ("llama-3.2-1b", dense("llama", 2048, 16, 32, 8, 64, 8192, 128256, tied=True, extra=[("rope_freqs.weight", (32,), F32)])),
    ("gemma-3-1b", dense("gemma3", 1152, 26, 4, 1, 256, 6912, 262144, tied=True, norms=(
        ("attn_q_norm.weight", 256), ("attn_k_norm.weight", 256), ("post_attention_norm.weight", 1152), ("post_ffw_norm.weight", 1152)))),
])
def test_dense_files_stand_for_the_catalogue_model(ident, parts):
    arch, reference = architecture(header(*parts)), catalogue.load(ident)
    assert sum(t.parameters for t in arch.tensors) == sum(t.parameters for t in reference.tensors)
    assert sum(a.kv_elements * a.count for a in arch.attentions) == sum(a.kv_elements * a.count for a in reference.attentions)
    assert sum(formats.weight_bytes(arch, arch.quantization)) == read_header(header(*parts)).tensor_bytes


def moe(parts, arch, experts, used, ff, first=0, shared=0, kind=Q4_K, extra=lambda b: ()):
    meta, tensors = parts
    h, n = meta[f"{arch}.embedding_length"], meta[f"{arch}.block_count"]
    meta |= {f"{arch}.expert_count": experts, f"{arch}.expert_used_count": used, f"{arch}.expert_feed_forward_length": ff}
    for i in range(first, n):
        b = f"blk.{i}."
        tensors += [(b + "ffn_gate_inp.weight", (h, experts), F32), (b + "ffn_gate_exps.weight", (h, ff, experts), kind), (b + "ffn_up_exps.weight", (h, ff, experts), kind),
                    (b + "ffn_down_exps.weight", (ff, h, experts), kind), *extra(b)]
    return meta, tensors


def test_mixture_of_experts_files():
    parts = moe(dense("qwen3moe", 2048, 48, 32, 4, 128, 0, 151936, norms=(("attn_q_norm.weight", 128), ("attn_k_norm.weight", 128))), "qwen3moe", 128, 8, 768)
    parts[0]["qwen3moe.feed_forward_length"] = 6144
    arch, reference = architecture(header(*parts)), catalogue.load("qwen3-30b-a3b")
    assert sum(t.active_parameters for t in arch.tensors) == sum(t.active_parameters for t in reference.tensors)
    mixtral = moe(dense("llama", 4096, 32, 32, 8, 128, 0, 32000), "llama", 8, 2, 14336)
    mixtral[0]["llama.feed_forward_length"] = mixtral[0].pop("llama.expert_feed_forward_length")
    arch, reference = architecture(header(*mixtral)), catalogue.load("mixtral-8x7b")
    assert arch.family == "mixtral" and sum(t.parameters for t in arch.tensors) == sum(t.parameters for t in reference.tensors)
    groups = dict(zip((t.group for t in arch.tensors), formats.weight_bytes(arch, arch.quantization)))
    assert groups["router"] == 32 * 4096 * 8 * 4


def test_a_latent_attention_file():
    h, heads, rank, nope, rope, v, q = 7168, 128, 512, 128, 64, 128, 1536
    meta = {"general.architecture": "deepseek2", "general.file_type": 7, "deepseek2.block_count": 61, "deepseek2.embedding_length": h, "deepseek2.feed_forward_length": 18432,
            "deepseek2.attention.head_count": heads, "deepseek2.attention.head_count_kv": 1, "deepseek2.attention.kv_lora_rank": rank, "deepseek2.attention.q_lora_rank": q,
            "deepseek2.attention.key_length": rank + rope, "deepseek2.attention.value_length": rank, "deepseek2.attention.key_length_mla": nope + rope,
            "deepseek2.attention.value_length_mla": v, "deepseek2.rope.dimension_count": rope, "deepseek2.leading_dense_block_count": 3, "deepseek2.expert_shared_count": 1,
            "deepseek2.expert_gating_func": 2, "deepseek2.context_length": 163840}
    tensors = [("token_embd.weight", (h, 129280), Q8_0), ("output.weight", (h, 129280), Q8_0), ("output_norm.weight", (h,), F32)]
    for i in range(61):
        b = f"blk.{i}."
        tensors += [(b + "attn_norm.weight", (h,), F32), (b + "ffn_norm.weight", (h,), F32), (b + "attn_q_a.weight", (h, q), Q8_0), (b + "attn_q_a_norm.weight", (q,), F32),
                    (b + "attn_q_b.weight", (q, heads * (nope + rope)), Q8_0), (b + "attn_kv_a_mqa.weight", (h, rank + rope), Q8_0), (b + "attn_kv_a_norm.weight", (rank,), F32),
                    (b + "attn_k_b.weight", (nope, rank, heads), Q8_0), (b + "attn_v_b.weight", (rank, v, heads), Q8_0), (b + "attn_output.weight", (heads * v, h), Q8_0)]
        if i < 3:
            tensors += [(b + "ffn_gate.weight", (h, 18432), Q8_0), (b + "ffn_up.weight", (h, 18432), Q8_0), (b + "ffn_down.weight", (18432, h), Q8_0)]
    shared = lambda b: [(b + "ffn_gate_shexp.weight", (h, 2048), Q8_0), (b + "ffn_up_shexp.weight", (h, 2048), Q8_0), (b + "ffn_down_shexp.weight", (2048, h), Q8_0),
                        (b + "exp_probs_b.bias", (256,), F32)]
    data = header(*moe((meta, tensors), "deepseek2", 256, 8, 2048, first=3, kind=Q8_0, extra=shared))
    arch, reference = architecture(data), catalogue.load("deepseek-v3")
    assert sum(t.parameters for t in arch.tensors) == sum(t.parameters for t in reference.tensors) == 671_026_404_352
    assert arch.attentions[0].kv_elements == 576 and not [n for n in arch.notes if "parameters" in n]
    assert sum(formats.weight_bytes(arch, arch.quantization)) == read_header(data).tensor_bytes


def test_the_config_of_a_file_is_the_model_with_its_bytes():
    """What a page keeps (text) stands for the same model as the file."""
    config = json.loads(json.dumps(to_config(read_header(header(*LLAMA)))))
    arch = from_hf_config(config)
    assert sum(formats.weight_bytes(arch, arch.quantization)) == read_header(header(*LLAMA)).tensor_bytes
    assert config["quantization_config"]["preset"] == "Q4_0"


@pytest.mark.parametrize("change", [{"bytes": None}, {"bytes": {}}, {"bytes": {"x": 3}}, {"bytes": {"mlp": -1}}, {"bytes": {"mlp": 2**70}}, {"bytes": {"mlp": 0}}, {"bytes": {"mlp": True}},
                                    {"types": 3}, {"types": {"mlp": 3}}, {"bytes": "x"}])
def test_hostile_file_descriptions_are_refused(change):
    config = to_config(read_header(header(*LLAMA)))
    config["quantization_config"] = {**config["quantization_config"], **change}
    with pytest.raises(InputError):
        from_hf_config(config)


def thin(arch, vocab, hidden, tied=True, **keys):
    """Metadata with the one tensor that gives the vocabulary: enough for the model, not for its bytes."""
    meta = {"general.architecture": arch, **{f"{arch}.{k.replace('__', '.')}": v for k, v in keys.items()}, f"{arch}.embedding_length": hidden}
    return header(meta, [("token_embd.weight", (hidden, vocab), F16)] + ([] if tied else [("output.weight", (hidden, vocab), F16)]))


LFM2 = [8 if i in (2, 5, 9, 13, 17, 21, 24, 27) else 0 for i in range(30)]
HYBRID = "M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M-"


@pytest.mark.parametrize("ident, data", [
    ("lfm2-2.6b", thin("lfm2", 65536, 2048, block_count=30, attention__head_count=32, attention__head_count_kv=LFM2, feed_forward_length=10752, shortconv__l_cache=3)),
    ("falcon-h1-3b", thin("falcon-h1", 65536, 2560, False, block_count=32, attention__head_count=10, attention__head_count_kv=2, attention__key_length=128,
                          feed_forward_length=6144, ssm__inner_size=4096, ssm__state_size=256, ssm__conv_kernel=4, ssm__time_step_rank=32, ssm__group_count=1)),
    ("granite-4.0-h-1b", thin("granitehybrid", 100352, 1536, block_count=40, attention__head_count=12, attention__head_count_kv=[4 if i in (5, 15, 25, 35) else 0 for i in range(40)],
                              feed_forward_length=4096, ssm__inner_size=3072, ssm__state_size=128, ssm__conv_kernel=4, ssm__time_step_rank=48, ssm__group_count=1)),
    ("nemotron-h-56b", thin("nemotron_h", 131072, 8192, False, block_count=118, attention__head_count=64, attention__head_count_kv=[8 if s == "*" else 0 for s in HYBRID],
                            attention__key_length=128, feed_forward_length=[32768 if s == "-" else 0 for s in HYBRID], ssm__inner_size=16384, ssm__state_size=256,
                            ssm__conv_kernel=4, ssm__time_step_rank=256, ssm__group_count=8)),
    ("llama-4-scout-17b-16e", thin("llama4", 202048, 5120, False, block_count=48, attention__head_count=40, attention__head_count_kv=8, attention__key_length=128,
                                   feed_forward_length=16384, expert_feed_forward_length=8192, expert_count=16, expert_used_count=1, interleave_moe_layer_step=1)),
])
def test_hybrid_and_interleaved_files_stand_for_the_catalogue_model(ident, data):
    arch, reference = architecture(data), catalogue.load(ident)
    language = lambda a: sum(t.parameters for t in a.tensors if t.group != "vision")
    assert language(arch) == language(reference)
    assert sum(a.kv_elements * a.count for a in arch.attentions) == sum(a.kv_elements * a.count for a in reference.attentions)
    assert sum(r.state_bytes * r.count for r in arch.recurrents) == sum(r.state_bytes * r.count for r in reference.recurrents)


def test_a_first_slice_of_a_file_is_enough_for_the_model_and_says_what_is_missing():
    meta, tensors = LLAMA
    whole = header(meta, tensors)
    cut = whole[:len(whole) - 4000]
    read = read_header(cut)
    assert not read.complete and 0 < len(read.tensors) < len(tensors)
    arch = architecture(cut)
    assert arch.layer_count == 32 and any("do not list every tensor" in note for note in arch.notes)
    with pytest.raises(InputError, match="24 MB"):
        architecture(header({k: v for k, v in meta.items() if k != "llama.block_count"}, tensors)[:-10])


def test_multi_token_prediction_layers_are_left_out_and_stated():
    meta, tensors = dense("qwen3", 256, 5, 8, 2, 32, 512, 1000, tied=True, norms=(("attn_q_norm.weight", 32), ("attn_k_norm.weight", 32)))
    meta["qwen3.nextn_predict_layers"] = 1
    arch = architecture(header(meta, tensors))
    assert arch.layer_count == 4 and any("multi-token-prediction" in note for note in arch.notes)


def test_a_wrong_shape_is_pointed_out():
    meta, tensors = dense("llama", 256, 4, 8, 2, 32, 512, 1000)
    arch = architecture(header(meta, [t for t in tensors if "ffn_up" not in t[0]]))
    assert any("parameters" in note for note in arch.notes)


@pytest.mark.parametrize("data", [
    b"", b"GGUF", b"GGU" * 10, b"GGML" + bytes(40), b"\x00" * 100, b"GGUF" + bytes(40), header({}, version=1), header({}, version=4),
    b"GGUF" + struct.pack(">I", 3) + bytes(40), b"GGUF" + struct.pack("<IQQ", 3, 2**63, 0) + bytes(40), b"GGUF" + struct.pack("<IQQ", 3, 0, 2**63) + bytes(40),
    b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + struct.pack("<Q", 2**62) + bytes(40),
    b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + text("a") + struct.pack("<IQ", 8, 2**62) + bytes(40),
    b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + text("a") + struct.pack("<IIQ", 9, 4, 2**62) + bytes(40),
    b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + text("a") + struct.pack("<IIQ", 9, 9, 4) + bytes(400),
    b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + text("a") + struct.pack("<IIQ", 9, 77, 4) + bytes(400),
    b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + text("a") + struct.pack("<I", 99) + bytes(40),
    b"GGUF" + struct.pack("<IQQ", 3, 0, 2) + (text("a") + value(1)) * 2,
    b"GGUF" + struct.pack("<IQQ", 3, 1, 0) + text("t") + struct.pack("<I", 900) + bytes(9000),
    header({}, [("t", (2**40, 2**40), F32)]), header({}, [("t", (0,), F32)]), header({"general.alignment": 0}), header({"general.alignment": "x"}),
    header({}, [("t", (100, 4), Q4_K)]), "text", None,
])
def test_hostile_headers_are_refused_in_one_sentence(data):
    with pytest.raises(InputError) as error:
        read_header(data)
    assert "\n" not in str(error.value) and len(str(error.value)) < 400


@pytest.mark.parametrize("change", [
    {"general.architecture": "clip"}, {"general.architecture": 7}, {"general.architecture": None}, {"llama.block_count": 0}, {"llama.block_count": "x"}, {"llama.block_count": 10**9},
    {"llama.embedding_length": None}, {"llama.attention.head_count": 0}, {"llama.attention.head_count": []}, {"llama.attention.key_length": 2**31},
])
def test_hostile_metadata_is_refused_in_one_sentence(change):
    meta, tensors = dense("llama", 256, 4, 8, 2, 32, 512, 1000)
    meta = {k: v for k, v in {**meta, **change}.items() if v is not None}
    with pytest.raises(InputError) as error:
        architecture(header(meta, tensors))
    assert "\n" not in str(error.value)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_any_damage_is_read_or_refused(data):
    """Bytes cut or overwritten anywhere never raise anything but InputError."""
    meta, tensors = dense("llama", 256, 2, 8, 2, 32, 512, 1000)
    raw = bytearray(header(meta, tensors))
    seed = data.draw(st.integers(0, 10**9))
    rng = random.Random(seed)
    for _ in range(rng.randint(1, 6)):
        raw[rng.randrange(len(raw))] = rng.randrange(256)
    raw = raw[:rng.randint(0, len(raw))] if rng.random() < 0.5 else raw
    try:
        arch = architecture(bytes(raw))
    except InputError:
        return
    assert arch.layer_count >= 1


def test_config_lists_what_the_tensors_say():
    config = to_config(read_header(header(*dense("qwen2", 256, 2, 8, 2, 32, 512, 1000, bias=True, tied=True))))
    assert config["tie_word_embeddings"] and config["attention_bias"] and config["vocab_size"] == 1000


def test_a_list_of_tensors_cut_short_does_not_say_that_the_output_is_tied():
    """The output matrix may be among the tensors not seen: the family's default counts then, and is listed."""
    meta, tensors = LLAMA
    whole = header(meta, tensors)
    cut = architecture(whole[:whole.index(b"output.weight") - 20])
    assert not cut.tied
    split = architecture(header({**meta, "split.count": 3}, [t for t in tensors if t[0] != "output.weight"]))
    assert not split.tied and architecture(whole).tied is False
    assert architecture(header(*dense("llama", 2048, 16, 32, 8, 64, 8192, 128256, tied=True))).tied is True
