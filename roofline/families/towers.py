"""Wrappers of newer multimodal models, each with its towers part by part (held in memory, not run for text)."""

from __future__ import annotations

from ..errors import InputError
from . import vision
from .parts import Build
from .reader import Reader
from .registry import family
from .vision import Tower, patches, side
from .wrappers import absent, language, tower


def siglip(t: Tower, v: Reader, positions: int):
    """SigLIP's blocks, patches and position table."""
    h = v.int("hidden_size")
    t.matrix("patch_embedding", h, v.int("num_channels", fallback=3) * side(v, "patch_size") ** 2, bias=True)
    t.blocks(v.int("num_hidden_layers"), h, v.int("intermediate_size"))
    t.vectors(positions * h, 2 * h)


@family("lfm3_vl")
def lfm3_vl(m: Build):
    """Attention and 2-D convolutions in turn."""
    top = language(m, "lfm3")
    v = tower(top, "lfm3_vl_vision")
    if v is None:
        return absent(m)
    h, n, ff = v.int("hidden_size"), v.int("num_hidden_layers"), v.int("intermediate_size")
    kinds = v.kinds("layer_types", n, lambda i: "full_attention" if i > 1 and i % 2 == 0 else "conv", ("conv", "full_attention"))
    conv, full = kinds.count("conv"), kinds.count("full_attention")
    heads = v.int("num_attention_heads")
    d, kv, merge = m.split(h, heads), v.opt("num_key_value_heads") or heads, v.int("spatial_merge_size") ** 2
    t = Tower(m, "vision_tower")
    t.matrix("patch_embed", h, v.int("in_channels", fallback=3) * side(v, "temporal_patch_size") * side(v, "patch_size") ** 2)
    t.matrix("conv.in_proj", 3 * h, h, conv)
    t.matrix("conv.out_proj", h, h, conv)
    t.vectors(conv * h * v.int("conv_kernel_size") ** 2)
    t.matrix("self_attn.qkv", heads * d + 2 * kv * d, h, full)
    t.matrix("self_attn.out_proj", h, heads * d, full)
    t.vectors(full * 2 * d)
    t.matrix("feed_forward.w1_w3", 2 * ff, h, n)
    t.matrix("feed_forward.w2", h, ff, n)
    t.vectors(2 * n * h, h)
    t.done()
    inner = top.int("projector_hidden_size")
    vision.project(
        m, "multi_modal_projector", (inner, h * merge), (m.hidden, inner), bias=top.flag("projector_bias"), norms=2 * h
    )


@family("cosmos3_edge")
def cosmos3_edge(m: Build):
    top = language(m, "cosmos3_edge_text", tie=False)
    v = tower(top, "cosmos3_edge_vision")
    if v is None:
        return absent(m)
    h, merge, inner = v.int("hidden_size"), v.int("spatial_merge_size") ** 2, top.int("projector_hidden_size")
    t = Tower(m, "visual")
    siglip(t, v, v.int("num_patches"))
    t.done()
    vision.project(m, "projector", (inner, h * merge), (m.hidden, inner), norms=2 * h)


@family("minicpmv4_6", "minicpmv4_7", "minicpm_ocr")
def minicpmv(m: Build):
    """SigLIP with a merger of 2 x 2 patches among its blocks, and another after them."""
    kind = m.c.type
    top = language(m, "qwen3_5_text")
    v = tower(top, kind + "_vision")
    if v is None:
        return absent(m)
    h, ff, merge = v.int("hidden_size"), v.int("intermediate_size"), 4
    t = Tower(m, "vision_tower")
    siglip(t, v, patches(v))
    t.matrix("vit_merger.self_attn", 4 * h, h, bias=True)
    t.matrix("vit_merger.linear_1", ff * merge, h * merge, bias=True)
    t.matrix("vit_merger.linear_2", h, ff * merge, bias=True)
    t.vectors(2 * h, 2 * h * merge)
    t.done()
    vision.project(m, "merger", (h * merge, h * merge), (m.hidden, h * merge), norms=2 * h * merge)


@family("granite_docling")
def granite_docling(m: Build):
    """SigLIP and a connector with a coarse and a fine way, each with mergers of some blocks' features."""
    top = language(m, "granite_docling_text")
    v = tower(top, "granite_docling_vision")
    if v is None:
        return absent(m)
    h, out, scale = v.int("hidden_size"), v.int("out_hidden_size"), v.int("scale_factor")
    taken, t = len(v.items("deepstack_visual_indexes") or ()), Tower(m, "vision_model")
    siglip(t, v, patches(v))
    t.vectors(2 * h, 4 * out)
    for name, wide in (("coarse", h * scale**2), ("fine", h * (scale // 2) ** 2)):
        if name == "fine" and not v.flag("use_fine_route"):
            continue
        t.matrix(f"connector.{name}.projection", out, wide)
        t.matrix(f"connector.{name}.linear_1", out, wide, taken, bias=True)
        t.matrix(f"connector.{name}.linear_2", out, out, taken, bias=True)
        t.vectors(2 * taken * wide)
    t.matrix("connector.mlp_fc2", out, out)
    t.done()


@family("hunyuan_vl")
def hunyuan_vl(m: Build):
    top = language(m, "hunyuan_vl_text")
    v = tower(top, "hunyuan_vl_vision")
    if v is None:
        return absent(m)
    h, out, merge = v.int("hidden_size"), v.int("out_hidden_size"), v.int("spatial_merge_size")
    t = Tower(m, "vision_tower")
    siglip(t, v, v.int("max_vit_seq_len") + 1)
    t.vectors(-2 * h)  # there is no norm after the blocks
    t.matrix("patch_merger.proj_conv", 2 * h, h * merge * merge, bias=True)
    t.matrix("patch_merger.proj_out", 4 * h, 2 * h, bias=True)
    t.matrix("patch_merger.mlp", out, 4 * h, bias=True)
    t.vectors(4 * h, 3 * out, h, out)
    t.done()


def sam_tower(m: Build, sam: Reader, prefix: str) -> Tower:
    """SAM's encoder: windowed and global blocks with relative positions, and its neck. (The caller adds what follows, and closes it.)"""
    h, d = sam.int("hidden_size"), sam.int("hidden_size") // sam.int("num_attention_heads")
    grid, n, wide = (
        side(sam, "image_size") // side(sam, "patch_size"),
        sam.int("num_hidden_layers"),
        len(sam.items("global_attn_indexes") or ()),
    )
    out = sam.int("output_channels", fallback=256)
    t = Tower(m, prefix)
    t.matrix("patch_embed", h, sam.int("num_channels", fallback=3) * side(sam, "patch_size") ** 2, bias=True)
    t.blocks(n, h, sam.int("mlp_dim"))
    t.vectors(grid * grid * h, 2 * d * (wide * (2 * grid - 1) + max(0, n - wide) * (2 * sam.int("window_size") - 1)))
    t.matrix("neck.conv1", out, h)
    t.matrix("neck.conv2", out, 9 * out)
    t.vectors(4 * out)
    return t


@family("unlimited_ocr")
def unlimited_ocr(m: Build):
    """SAM's encoder, halved twice by convolutions, then CLIP's on what is left."""
    top = language(m, "unlimited_ocr_text")
    v = tower(top, "unlimited_ocr_vision")
    m.once("model.view_separator", "other", m.hidden)
    m.once("model.image_newline", "other", m.hidden)
    if v is None:
        return absent(m)
    sam, clip = v.sub("sam_config", "unlimited_ocr_sam_vision_model"), v.sub("encoder_config", "unlimited_ocr_vision_encoder")
    if sam is None or clip is None:
        raise InputError(v.field("sam_config"), None, "is missing and must describe SAM's encoder (and encoder_config CLIP's)")
    t = sam_tower(m, sam, "sam_encoder")
    before = 256
    for channels in sam.items("downsample_channels") or ():
        channels = sam.whole("downsample_channels", channels)
        t.matrix(f"proj.conv_{channels}", channels, 9 * before)
        before = channels
    t.done()
    h = clip.int("hidden_size")
    t = Tower(m, "vision_encoder")
    t.blocks(clip.int("num_hidden_layers"), h, clip.int("intermediate_size"))
    t.vectors(h, (patches(clip) + 1) * h, 2 * h)
    t.done()
    vision.project(m, "multi_modal_projector", (m.hidden, h + before))


@family("dots3_note")
def dots3_note(m: Build):
    """A vision encoder whose later blocks have more and more experts, and an audio encoder."""
    top = language(m, "dots3_note_text")
    v, audio = tower(top, "dots3_note_vision_encoder"), top.sub("audio_config", "dots3_note_audio_encoder")
    if v is None:
        return absent(m)
    h, n, ff = (
        v.int("embed_dim") if v.has("embed_dim") else v.int("hidden_size"),
        v.int("num_hidden_layers"),
        v.int("intermediate_size"),
    )
    d = m.split(h, v.int("num_heads") if v.has("num_heads") else v.int("num_attention_heads"))
    counts = v.items("pyramid_num_routed", n, fallback=None)
    each = v.get("per_layer_config", None)
    if counts is None and v.get("mlp_layer_types", None) is not None:  # newer files: what each block has, and what differs there
        kinds = v.kinds("mlp_layer_types", n, lambda i: "dense", ("dense", "sparse"))
        counts = [v.int("num_local_experts") if kind == "sparse" else -1 for kind in kinds]
        for key, row in each.items() if isinstance(each, dict) else ():
            if str(key).isdigit() and int(key) < n and isinstance(row, dict) and "num_local_experts" in row:
                counts[int(key)] = row["num_local_experts"]
    if counts is None:
        counts = ([-1] * 25 + list(range(4, 65, 4)) + [64])[:n]
        if n != 42:
            raise InputError(v.field("pyramid_num_routed"), None, "is missing and must give the experts of each block")
    sparse = [v.whole("pyramid_num_routed", count, 1) for count in counts if count != -1]
    t = Tower(m, "vision_tower")
    t.matrix("patch_embed.proj", h, v.int("num_channels", fallback=3) * side(v, "patch_size") ** 2, bias=True)
    t.matrix("blocks.attn.qkv", 3 * h, h, n)
    t.matrix("blocks.attn.proj", h, h, n)
    t.vectors(n * (2 * h + 2 * d), 2 * h)
    t.matrix("blocks.mlp.gate_up_proj", 2 * ff, h, n - len(sparse))
    t.matrix("blocks.mlp.down_proj", h, ff, n - len(sparse))
    t.matrix("blocks.mlp.experts.gate_up_proj", 2 * v.int("moe_intermediate_size"), h, sum(sparse))
    t.matrix("blocks.mlp.experts.down_proj", h, v.int("moe_intermediate_size"), sum(sparse))
    t.matrix("blocks.mlp.gate", sum(sparse), h)
    merged, out = h * v.int("adapter_merge_size") ** 2, v.int("adapter_out_dim")
    t.vectors(2 * h)
    t.matrix("merger.mlp.0", merged, merged, bias=True)
    t.matrix("merger.mlp.2", out, merged, bias=True)
    t.done()
    if audio is not None:
        h, ff, n, down = (
            audio.int(k) for k in ("hidden_size", "intermediate_size", "num_hidden_layers", "downsample_hidden_size")
        )
        out = audio.int("adapter_out_dim")
        t = Tower(m, "audio_tower")
        t.matrix("conv_stem", down, 9 + 2 * 9 * down)
        t.matrix("conv_stem.conv_out", h, down * ((audio.int("feature_size") + 7) // 8))
        t.blocks(n, h, ff, gated=True, norms=2, k_bias=False)
        t.vectors(3 * down, 3 * h)
        t.matrix("adapter.fc1", out, h, bias=True)
        t.matrix("adapter.fc2", out, out, bias=True)
        t.done()
