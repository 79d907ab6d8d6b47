"""Wrappers of multimodal models whose encoders are like a known one but for a part, each described part by part."""

from __future__ import annotations

from . import vision
from .parts import Build
from .reader import Reader
from .registry import family
from .towers import sam_tower, siglip
from .vision import Tower, patches, side
from .wrappers import absent, language, tower


@family("got_ocr2")
def got_ocr2(m: Build):
    """SAM's encoder, halved twice by convolutions."""
    top = language(m, "qwen2")
    v = tower(top, "got_ocr2_vision")
    if v is None:
        return absent(m)
    t, out = sam_tower(m, v, "vision_tower"), v.int("output_channels", fallback=256)
    t.matrix("conv_upsampler1", 2 * out, 9 * out)
    t.matrix("conv_upsampler2", 4 * out, 18 * out)
    t.matrix("multimodal_projector", m.hidden, 4 * out, bias=True)
    t.done()


@family("fuyu")
def fuyu(m: Build):
    """No encoder: patches go straight through one matrix."""
    top = language(m, "persimmon")
    patch = top.int("patch_size", fallback=30)
    vision.project(m, "vision_embed_tokens", (m.hidden, top.int("num_channels", fallback=3) * patch * patch))


@family("exaone4_5")
def exaone4_5(m: Build):
    """Qwen2.5-VL's encoder with grouped keys and values."""
    top = language(m, "exaone4")
    v = tower(top, "exaone4_5_vision")
    if v is None:
        return absent(m)
    h, heads = v.int("hidden_size"), v.int("num_heads")
    d, kv, wide = m.split(h, heads), v.opt("num_key_value_heads") or heads, h * v.int("spatial_merge_size") ** 2
    t = Tower(m, "visual")
    t.matrix(
        "patch_embed.proj", h, v.int("in_channels", fallback=3) * side(v, "temporal_patch_size") * side(v, "patch_size") ** 2
    )
    t.blocks(v.int("depth"), h, v.int("intermediate_size"), gated=True, norms=2, kv=kv * d)
    t.matrix("merger.fc1", wide, wide, bias=True)
    t.matrix("merger.fc2", v.int("out_hidden_size"), wide, bias=True)
    t.vectors(h)
    t.done()


@family("aria")
def aria(m: Build):
    """Idefics 3's encoder, and queries that attend to its patches."""
    top = language(m, "aria_text")
    v = tower(top, "idefics3_vision")
    if v is None:
        return absent(m)
    h, queries = vision.clip(m, v), top.get("projector_patch_to_query_dict", None)
    counts = [top.whole("projector_patch_to_query_dict", n) for n in queries.values()] if isinstance(queries, dict) else []
    t = Tower(m, "multi_modal_projector")
    t.vectors(max(counts, default=256) * h, 6 * h)
    t.matrix("cross_attn.qkv", 3 * h, h)
    t.matrix("cross_attn.in_proj", 3 * h, h, bias=True)
    t.matrix("cross_attn.out_proj", h, h, bias=True)
    t.matrix("cross_attn.linear", h, h, bias=True)
    t.matrix("feed_forward.linear_in", m.hidden, h)
    t.matrix("feed_forward.linear_out", m.hidden, m.hidden)
    t.done()


@family("ovis2")
def ovis2(m: Build):
    """An encoder whose patches become a mixture of visual words."""
    top = language(m, "qwen2")
    v = tower(top, "ovis2_vision")
    if v is None:
        return absent(m)
    h, words, own = v.int("hidden_size"), v.int("vocab_size"), v.int("num_visual_indicator_tokens", 0)
    bias, t = v.flag("qkv_bias"), Tower(m, "vision_tower")
    t.matrix("patch_embedding", h, v.int("num_channels", fallback=3) * side(v, "patch_size") ** 2, bias=True)
    t.blocks(
        v.int("num_hidden_layers"),
        h,
        v.int("intermediate_size"),
        qkv_bias=bias,
        out_bias=bias,
        mlp_bias=v.flag("mlp_bias"),
        gated=True,
        norms=2,
    )
    t.vectors(patches(v) * h, 2 * h, 2 * max(0, words - own))
    t.matrix("head_linear", max(1, words - own), h * v.int("hidden_stride", fallback=1) ** 2)
    t.matrix("visual_embeddings_table", words, top.opt("hidden_size", fallback=None) or m.hidden)
    t.done()


@family("paddleocr_vl")
def paddleocr_vl(m: Build):
    top = language(m, "paddleocr_vl_text")
    v = tower(top, "paddleocr_vl_vision")
    if v is None:
        return absent(m)
    h, merge = v.int("hidden_size"), v.int("spatial_merge_size") ** 2
    t = Tower(m, "visual")
    siglip(t, v, patches(v))
    t.done()
    vision.project(m, "projector", (h * merge, h * merge), (m.hidden, h * merge), norms=2 * h)


@family("molmo2")
def molmo2(m: Build):
    """SigLIP without its last norm; features of two blocks are pooled by attention and go through a gated projector."""
    top = language(m, "molmo2_text")
    v, a = tower(top, "molmo2_vision"), top.sub("adapter_config", "molmo2_adapter")
    if v is None:
        return absent(m)
    h = v.int("hidden_size")
    t = Tower(m, "vision_tower")
    siglip(t, v, v.opt("num_position_embeddings") or patches(v))
    t.vectors(-2 * h)
    a = a or Reader({}, "molmo2_adapter", path="adapter_config", assumed=top.assumed)
    heads, d = a.int("num_attention_heads"), a.int("head_dim")
    kv, layers = a.opt("num_key_value_heads") or heads, a.items("vision_feature_layer") or [0, 0]
    t.matrix("image_pooling_2d.qkv", (heads + 2 * kv) * d, h * len(layers), bias=a.flag("attention_bias"))
    t.matrix("image_pooling_2d.o_proj", a.int("hidden_size"), heads * d, bias=True)
    t.matrix("image_projector.gate_up_proj", 2 * a.int("intermediate_size"), a.int("hidden_size"))
    t.matrix("image_projector.down_proj", a.opt("text_hidden_size", fallback=None) or m.hidden, a.int("intermediate_size"))
    t.done()
