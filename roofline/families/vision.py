"""Vision and audio towers of multimodal models: counted in memory, never run for text tokens.

Each tower adds a few tensors of group "vision" and kind "idle": one for each matrix of a block (with the
number of blocks as `copies`), and one for all biases, norms and position tables together.
"""

from __future__ import annotations

from ..errors import InputError
from ..model import Tensor
from .parts import Build
from .reader import Reader


class Tower:
    """Collects the tensors of one encoder."""

    def __init__(self, m: Build, prefix: str):
        self.m, self.prefix, self.small = m, prefix, 0

    def matrix(self, name: str, rows: int, cols: int, copies: int = 1, bias: bool = False):
        """A matrix held `copies` times, and its bias."""
        if rows and cols and copies:
            self.m.tensors.append(
                Tensor(
                    name=f"{self.prefix}.{name}", group="vision", rows=rows, cols=cols, copies=copies, active=copies, kind="idle"
                )
            )
            self.small += rows * copies * bias

    def vectors(self, *sizes: int):
        """Norms, biases, position tables."""
        self.small += sum(sizes)

    def blocks(
        self,
        depth: int,
        h: int,
        ff: int,
        *,
        qkv_bias=True,
        k_bias=True,
        out_bias=True,
        mlp_bias=True,
        gated=False,
        norms=4,
        width=None,
        kv=None,
        extra=0,
    ):
        """`depth` transformer blocks: q, k, v and output of `width` features, a plain or gated MLP, `norms` vectors of the hidden size."""
        width = width or h
        kv = kv or width
        self.matrix("blocks.attn.qkv", width + 2 * kv, h, depth)
        self.vectors(depth * ((width + kv + kv * k_bias) * qkv_bias + h * out_bias + norms * h + extra))
        self.matrix("blocks.attn.proj", h, width, depth)
        if gated:
            self.matrix("blocks.mlp.gate_up_proj", 2 * ff, h, depth)
            self.matrix("blocks.mlp.down_proj", h, ff, depth)
            self.vectors(depth * (2 * ff + h) * mlp_bias)
        else:
            self.matrix("blocks.mlp.fc1", ff, h, depth)
            self.matrix("blocks.mlp.fc2", h, ff, depth)
            self.vectors(depth * (ff + h) * mlp_bias)

    def done(self):
        """Add what is not a matrix as one tensor."""
        if self.small:
            self.m.tensors.append(Tensor(name=f"{self.prefix}.norms_and_biases", group="vision", rows=self.small, kind="idle"))


def side(v: Reader, name: str) -> int:
    """A square size given as a number or as [height, width]."""
    value = v.get(name)
    if isinstance(value, (list, tuple)):
        value = value[0] if value else None
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 100_000:
        raise InputError(v.field(name), value, "must be a whole number from 1 to 100000")
    return value


def patches(v: Reader, image: str = "image_size") -> int:
    """Patches of a full image."""
    return (side(v, image) // side(v, "patch_size")) ** 2


def clip(m: Build, v: Reader, prefix: str = "vision_tower") -> int:
    """CLIP and SigLIP encoders; the width of their features."""
    h, ff, depth, p = v.int("hidden_size"), v.int("intermediate_size"), v.int("num_hidden_layers"), side(v, "patch_size")
    t = Tower(m, prefix)
    siglip = v.type.startswith("siglip") or v.type in ("idefics2_vision", "idefics3_vision", "smolvlm_vision")
    t.blocks(depth, h, ff)
    if v.type == "siglip2_vision_model":
        t.matrix("patch_embedding", h, v.int("num_channels", fallback=3) * p * p, bias=True)
        t.vectors(v.int("num_patches") * h)
    elif siglip:
        t.matrix("patch_embedding", h, v.int("num_channels", fallback=3) * p * p, bias=True)
        t.vectors(patches(v) * h)
    else:
        t.matrix("patch_embedding", h, v.int("num_channels", fallback=3) * p * p)
        t.vectors((patches(v) + 1) * h, h, 2 * h)  # positions and class token, norm before the blocks
    t.vectors(2 * h)
    if siglip and v.flag("vision_use_head", False):
        t.blocks(1, h, ff, norms=2)
        t.vectors(h)
    t.done()
    return h


def pixtral(m: Build, v: Reader, prefix: str = "vision_tower") -> int:
    """Pixtral: RMSNorm, gated MLP, no biases."""
    h, p = v.int("hidden_size"), side(v, "patch_size")
    t = Tower(m, prefix)
    t.matrix("patch_conv", h, v.int("num_channels", fallback=3) * p * p)
    t.blocks(
        v.int("num_hidden_layers"),
        h,
        v.int("intermediate_size"),
        qkv_bias=False,
        out_bias=False,
        mlp_bias=False,
        gated=True,
        norms=2,
    )
    t.vectors(h)
    t.done()
    return h


def qwen(m: Build, v: Reader, prefix: str = "visual"):
    """Qwen2-VL, Qwen2.5-VL, Qwen3-VL and Qwen3.5 encoders with their mergers."""
    family = m.wrapper
    old, gated = family == "qwen2_vl", family.startswith("qwen2_5")
    h = v.int("embed_dim") if old else v.int("hidden_size")
    depth, merge = v.int("depth"), v.int("spatial_merge_size") ** 2
    t = Tower(m, prefix)
    t.matrix(
        "patch_embed.proj",
        h,
        v.int("in_channels", fallback=3) * side(v, "temporal_patch_size") * side(v, "patch_size") ** 2,
        bias=not old and not gated,
    )
    ff = int(v.num("mlp_ratio", 0.1, 100) * h) if old else v.int("intermediate_size")
    t.blocks(depth, h, ff, gated=gated, norms=2 if gated else 4)
    out = v.int("hidden_size") if old else v.int("out_hidden_size")
    mergers = [h]
    if not old and not gated:
        t.vectors(v.int("num_position_embeddings") * h)
        if not family.startswith("qwen3_5"):
            mergers += [h * merge] * len(v.items("deepstack_visual_indexes") or ())
    for norm in mergers:
        t.vectors(norm if gated else 2 * norm)
        t.matrix("merger.fc1", h * merge, h * merge, bias=True)
        t.matrix("merger.fc2", out, h * merge, bias=True)
    t.done()


def mllama(m: Build, v: Reader, text: int):
    """Llama 3.2 Vision: local and global blocks, tile embeddings."""
    h, ff, p, tiles = v.int("hidden_size"), v.int("intermediate_size"), side(v, "patch_size"), v.int("max_num_tiles")
    local, wide = v.int("num_hidden_layers"), v.int("num_global_layers", 0)
    t = Tower(m, "vision_model")
    t.matrix("patch_embedding", h, v.int("num_channels", fallback=3) * p * p)
    t.blocks(local, h, ff, qkv_bias=False, out_bias=False)
    t.blocks(wide, h, ff, qkv_bias=False, out_bias=False, extra=2)
    positions, ratios = patches(v) + 1, len(v.items("supported_aspect_ratios") or range(8)) + 1
    t.vectors(h, positions * h, 1, ratios * tiles * h, 1, ratios * tiles * h, 1, 4 * h)
    t.matrix("gated_positional_embedding.tile_embedding", ratios, tiles * positions * h)
    t.matrix("multi_modal_projector", text, v.int("vision_output_dim"), bias=True)
    t.done()


def llama4(m: Build, v: Reader, text: int):
    """Llama 4: its pixel-shuffle adapter is part of the encoder."""
    h, ff, p = v.int("hidden_size"), v.int("intermediate_size"), side(v, "patch_size")
    t = Tower(m, "vision_model")
    t.matrix("patch_embedding.linear", h, v.int("num_channels", fallback=3) * p * p)
    t.blocks(v.int("num_hidden_layers"), h, ff)
    t.vectors(h, (patches(v) + 1) * h, 4 * h)
    t.matrix("vision_adapter.mlp.fc1", v.int("projector_input_dim"), v.int("intermediate_size"))
    t.matrix("vision_adapter.mlp.fc2", v.int("projector_output_dim"), v.int("projector_input_dim"))
    t.matrix("multi_modal_projector", text, v.int("vision_output_dim"))
    t.done()


def gemma4(m: Build, v: Reader, text: int):
    """Gemma 4: four norms a block, a norm on queries and keys, a table of 2-D positions."""
    h, ff, heads, kv, d, depth = (
        v.int(k)
        for k in (
            "hidden_size",
            "intermediate_size",
            "num_attention_heads",
            "num_key_value_heads",
            "head_dim",
            "num_hidden_layers",
        )
    )
    t = Tower(m, "vision_tower")
    t.matrix("patch_embedder", h, 3 * side(v, "patch_size") ** 2)
    t.vectors(2 * v.int("position_embedding_size") * h)
    t.blocks(
        depth,
        h,
        ff,
        qkv_bias=v.flag("attention_bias"),
        out_bias=v.flag("attention_bias"),
        mlp_bias=False,
        gated=True,
        norms=4,
        width=heads * d,
        kv=kv * d,
        extra=2 * d,
    )
    t.matrix("embedding_projection", text, h)
    t.done()


def internvl(m: Build, v: Reader) -> int:
    """InternVL's encoder, with its layer scales."""
    h, p = v.int("hidden_size"), side(v, "patch_size")
    t = Tower(m, "vision_tower")
    t.matrix("patch_embeddings", h, v.int("num_channels", fallback=3) * p * p, bias=True)
    t.blocks(
        v.int("num_hidden_layers"),
        h,
        v.int("intermediate_size"),
        qkv_bias=v.flag("attention_bias"),
        extra=2 * h + (2 * h if v.flag("use_qk_norm", False) else 0),
        norms=2 if v.word("norm_type", "layer_norm") == "rms_norm" else 4,
    )
    t.vectors(h, (patches(v) + 1) * h if v.flag("use_absolute_position_embeddings", True) else 0)
    if not v.flag("use_mean_pooling", True):
        t.vectors(2 * h)
    t.done()
    return h


def moonvit(m: Build, v: Reader, text: int):
    """Kimi's MoonViT and its patch merger. (The original checkpoints name the same sizes vt_hidden_size and so on.)"""

    def size(name: str, other: str) -> int:
        return v.int(other) if other in v.raw else v.int(name)

    h, ff, depth = (
        size("hidden_size", "vt_hidden_size"),
        size("intermediate_size", "vt_intermediate_size"),
        size("num_hidden_layers", "vt_num_hidden_layers"),
    )
    height, width = size("pos_emb_height", "init_pos_emb_height"), size("pos_emb_width", "init_pos_emb_width")
    merge = v.items("merge_kernel_size") or [2, 2]
    merged = h * merge[0] * merge[-1]
    t = Tower(m, "vision_tower")
    t.matrix("patch_embed.proj", h, 3 * side(v, "patch_size") ** 2, bias=True)
    t.blocks(depth, h, ff)
    t.vectors(height * width * h, 2 * h, 2 * h)
    t.matrix("mm_projector.in_proj", merged, merged, bias=True)
    t.matrix("mm_projector.out_proj", text, merged, bias=True)
    t.done()


def glm(m: Build, v: Reader):
    """GLM-4.1V's encoder and merger."""
    h, out, merge, ff = v.int("hidden_size"), v.int("out_hidden_size"), v.int("spatial_merge_size"), v.int("intermediate_size")
    t = Tower(m, "visual")
    t.matrix(
        "patch_embed.proj",
        h,
        v.int("in_channels", fallback=3) * side(v, "temporal_patch_size") * side(v, "patch_size") ** 2,
        bias=True,
    )
    ocr = v.type == "glm_ocr_vision"
    if ocr:
        t.blocks(
            v.int("depth"),
            h,
            ff,
            qkv_bias=v.flag("attention_bias"),
            out_bias=v.flag("attention_bias"),
            mlp_bias=v.flag("attention_bias"),
            gated=True,
            norms=2,
            extra=2 * (h // v.int("num_heads")),
        )
        wide = out * v.int("in_channels", fallback=3)
    else:
        t.blocks(v.int("depth"), h, out, qkv_bias=v.flag("attention_bias"), out_bias=False, mlp_bias=False, gated=True, norms=2)
        t.vectors(patches(v) * h, h)
        wide = ff
    t.matrix("merger.proj", out, out)
    t.matrix("merger.gate_up_proj", 2 * wide, out)
    t.matrix("merger.down_proj", out, wide)
    t.matrix("downsample", out, h * merge * merge, bias=True)
    t.vectors(2 * out, h)
    t.done()


def step(m: Build, v: Reader, text: int, bias: bool):
    """Step-3.7's encoder with layer scales and two strided convolutions."""
    h, depth = v.int("hidden_size"), v.int("num_hidden_layers")
    ff = int(h * v.num("mlp_ratio", 0.1, 100))
    t = Tower(m, "vision_model")
    t.matrix("patch_embedding", h, v.int("num_channels", fallback=3) * side(v, "patch_size") ** 2)
    t.blocks(depth, h, ff, extra=2 * h)
    t.vectors(patches(v) * h, 2 * h)
    t.matrix("downsampler1", 2 * h, 9 * h, bias=True)
    t.matrix("downsampler2", 4 * h, 18 * h, bias=True)
    t.matrix("multi_modal_projector", text, 4 * h, bias=bias)
    t.done()


def minimax(m: Build, v: Reader, text: int, projector: int):
    """MiniMax-M3's encoder and its two-stage projector."""
    h, merge = v.int("hidden_size"), v.int("spatial_merge_size") ** 2
    t = Tower(m, "vision_tower")
    t.matrix(
        "embeddings.proj", h, v.int("num_channels", fallback=3) * side(v, "temporal_patch_size") * side(v, "patch_size") ** 2
    )
    t.blocks(v.int("num_hidden_layers"), h, v.int("intermediate_size"))
    t.vectors(2 * h)
    t.matrix("multi_modal_projector.linear_1", projector, h, bias=True)
    t.matrix("multi_modal_projector.linear_2", text, projector, bias=True)
    t.matrix("multi_modal_projector.merge_linear_1", projector, text * merge, bias=True)
    t.matrix("multi_modal_projector.merge_linear_2", text, projector, bias=True)
    t.done()


def roughly(m: Build, v: Reader, text: int, prefix: str = "vision"):
    """An encoder that is not described here, from its own sizes: blocks, patches, a patch merger and a projector, within a few per cent."""

    def first(*names, default=None):
        for name in names:
            value = v.get(name, None)
            if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= 1_000_000:
                return value
        return default

    h, depth = (
        first("hidden_size", "embed_dim", "width", "d_model"),
        first("num_hidden_layers", "depth", "layers", "encoder_layers"),
    )
    if not h or not depth:
        m.notes.append("The vision or audio part is not counted: its sizes are not in the config.")
        return
    if depth > 10_000:
        raise InputError(v.field("num_hidden_layers"), depth, "must be at most 10000")
    ff, patch = first("intermediate_size", "encoder_ffn_dim", "mlp_dim", default=4 * h), first("patch_size", default=14)
    heads = first("num_attention_heads", "num_heads", default=1)
    width = heads * first("head_dim", default=0) or h
    kv, merge = width * first("num_key_value_heads", default=heads) // heads, first("spatial_merge_size", default=1) ** 2
    t = Tower(m, prefix)
    t.matrix("patch_embedding", h, 3 * patch * patch, bias=True)
    t.blocks(depth, h, ff, gated="silu" in (v.get("hidden_act", None), v.get("activation_function", None)), width=width, kv=kv)
    t.matrix("projector.linear_1", h * merge if merge > 1 else text, h * merge, bias=True)
    t.matrix("projector.linear_2", text, h * merge if merge > 1 else text, bias=True)
    t.done()
    m.notes.append("The vision or audio part is counted from its sizes, within a few per cent.")


def conformer(m: Build, v: Reader, text: int):
    """Phi-4's audio encoder: two half feed-forwards, attention and a gated convolution in every block."""
    h, ff, depth = v.int("hidden_size"), v.int("intermediate_size"), v.int("num_blocks")
    t = Tower(m, "audio")
    t.blocks(depth, h, ff, gated=True, norms=12)
    t.matrix("blocks.feed_forward_out.gate_up_proj", 2 * ff, h, depth)
    t.matrix("blocks.feed_forward_out.down_proj", h, ff, depth)
    t.matrix("blocks.conv", 4 * h, h, depth)
    t.matrix("embed", 12 * h, h)
    for name in ("speech", "vision_speech"):
        t.matrix(f"up_proj_for_{name}", text, h, bias=True)
        t.matrix(f"down_proj_for_{name}", text, text, bias=True)
    t.done()


def perceiver(m: Build, top: Reader, h: int):
    """Idefics 2's connector: a gated projection and a few blocks in which latents attend to the image."""
    text, ff = m.hidden, m.ff
    p = top.sub("perceiver_config", "idefics2_perceiver") or Reader(
        {}, "idefics2_perceiver", path="perceiver_config", assumed=top.assumed
    )
    heads, kv, d, depth, latents = (
        p.int(k)
        for k in ("resampler_n_heads", "num_key_value_heads", "resampler_head_dim", "resampler_depth", "resampler_n_latents")
    )
    t = Tower(m, "connector")
    t.matrix("modality_projection.gate_up_proj", 2 * ff, h)
    t.matrix("modality_projection.down_proj", text, ff)
    t.blocks(
        depth, text, 4 * text, qkv_bias=False, out_bias=False, mlp_bias=False, gated=True, norms=3, width=heads * d, kv=kv * d
    )
    t.vectors(latents * text, text)
    t.done()


def project(m: Build, name: str, *shapes, bias: bool = True, norms: int = 0):
    """A projector from vision to text features: (rows, cols) matrices with or without biases, and `norms` more elements."""
    t = Tower(m, name)
    for i, (rows, cols) in enumerate(shapes):
        t.matrix(f"linear_{i + 1}", rows, cols, bias=bias)
    t.vectors(norms)
    t.done()
