"""Multimodal models: a language model of a known family inside a wrapper, plus its towers."""

from __future__ import annotations

from ..errors import InputError, nearest
from . import vision
from .parts import Build
from .reader import Reader
from .registry import FAMILIES, family

# Wrappers whose class takes tie_word_embeddings from the nested config where their own is false.
_LISTEN = (
    "fast_vlm",
    "glm4v",
    "glm4v_moe",
    "glm_ocr",
    "hunyuan_vl",
    "llava",
    "llava_next_video",
    "llava_onevision",
    "minimax_m3_vl",
    "paddleocr_vl",
    "perception_lm",
    "qwen2_5_vl",
    "qwen2_vl",
    "shieldgemma2",
    "video_llama_3",
)


def language(m: Build, default: str, text: str = "text_config", tie: bool | None = None, flat: bool = True) -> Reader:
    """Describe the language model inside; the wrapper's own config is returned.

    default: what the nested config is read as when it does not say. Whether the embeddings are tied is the wrapper's to say,
    except where its class also listens to the nested config.
    Where the nested object is missing, older configs keep the language model's fields at the top level (flat), or the reference
    takes its class's own sizes.
    """
    top = m.c
    m.wrapper = top.type
    inner = top.sub(text, default)
    if inner is None:
        if not flat:
            m.notes.append(
                f"The config has no {text}: like the reference implementation, this takes the sizes of its class and leaves the top-level ones aside."
            )
            inner = Reader({}, default, path=text, assumed=top.assumed)
        elif not top.has("hidden_size") and not top.has("num_hidden_layers"):
            raise InputError(text, None, f"is missing and must hold the language model of a {top.type} config")
        else:
            inner = Reader(top.raw, default, assumed=top.assumed)
    m.tie = top.flag("tie_word_embeddings", False) if tie is None else tie
    if not m.tie and top.type in _LISTEN and inner.raw is not top.raw:
        m.tie = inner.flag("tie_word_embeddings", False)
    if inner.type not in FAMILIES:
        raise InputError(inner.field("model_type"), inner.type, f"is not a known family{nearest(inner.type, FAMILIES)}")
    m.inside(inner)
    FAMILIES[inner.type](m)
    return top


def tower(top: Reader, default: str, name: str = "vision_config") -> Reader | None:
    """The vision config (None: nothing to count), read as `default` if neither it nor the wrapper's class says what it is."""
    return top.sub(name, default)


def absent(m: Build):
    m.notes.append("The config has no vision_config, so only the language model is counted.")


def roughly_seen(m: Build, kind: str):
    """A wrapper whose encoder is not described here: its language model, and the encoder from its own sizes (`vision.roughly`)."""
    v = tower(language(m, kind + "_text"), kind + "_vision")
    return absent(m) if v is None else vision.roughly(m, v, m.hidden)


def projected(m: Build, top: Reader, v: Reader | None, kind: str = "mlp"):
    """LLaVA's shape: a CLIP, SigLIP or Pixtral encoder and a two-layer projector."""
    if v is None:
        return absent(m)
    h = vision.pixtral(m, v) if v.type == "pixtral" else vision.clip(m, v)
    layers = top.get("vision_feature_layer", -2)
    h *= len(layers) if isinstance(layers, list) else 1
    vision.project(
        m, "multi_modal_projector", (m.hidden, h), (m.hidden, m.hidden), bias=top.flag("multimodal_projector_bias", True)
    )


@family("llava", "llava_next", "llava_next_video", "pixtral_llava")
def llava(m: Build):
    top = language(m, "llama")
    projected(m, top, tower(top, "clip_vision_model"))
    if m.wrapper.startswith("llava_next"):
        m.once("model.image_newline", "other", m.hidden)


@family("vipllava")
def vipllava(m: Build):
    top = language(m, "llama")
    v = tower(top, "clip_vision_model")
    if v is None:
        return absent(m)
    layers = top.items("vision_feature_layers") or [0]
    h = vision.clip(m, v) * len(layers)
    vision.project(m, "multi_modal_projector", (m.hidden, h), (m.hidden, m.hidden), norms=2 * h)


@family("llava_onevision")
def llava_onevision(m: Build):
    top = language(m, "qwen2")
    projected(m, top, tower(top, "siglip_vision_model"))
    m.once("model.image_newline", "other", m.hidden)


@family("mistral3", "lighton_ocr")
def mistral3(m: Build):
    top = language(m, "qwen3" if m.c.type == "lighton_ocr" else "mistral")
    v = tower(top, "pixtral")
    if v is None:
        return absent(m)
    h, merge = vision.pixtral(m, v), top.int("spatial_merge_size") ** 2
    bias = top.flag("multimodal_projector_bias", False)
    vision.project(m, "multi_modal_projector", (m.hidden, h), (m.hidden, m.hidden), bias=bias)
    vision.project(m, "multi_modal_projector.patch_merger", (h, h * merge), bias=False, norms=h)


@family("gemma3", "shieldgemma2")
def gemma3(m: Build):
    top = language(m, "gemma3_text")
    v = tower(top, "siglip_vision_model")
    if v is None:
        return absent(m)
    h = vision.clip(m, v)
    vision.project(m, "multi_modal_projector", (h, m.hidden), bias=False, norms=h)


@family("paligemma")
def paligemma(m: Build):
    top = language(m, "gemma")
    v = tower(top, "siglip_vision_model")
    if v is None:
        return absent(m)
    vision.project(m, "multi_modal_projector", (top.int("projection_dim"), vision.clip(m, v)))


@family("qwen2_vl", "qwen2_5_vl", "qwen3_vl", "qwen3_vl_moe", "qwen3_5", "qwen3_5_moe", "cosmos3_omni", "cohere_compass")
def qwen_vl(m: Build):
    if m.c.type.startswith("qwen3_5") and not m.c.has("text_config"):
        m.inside(Reader(m.c.raw, m.c.type + "_text", assumed=m.c.assumed))
        return FAMILIES[m.c.type](m)
    top = language(m, "qwen3_vl_text" if m.c.type == "cosmos3_omni" else m.c.type + "_text")
    own = {"cosmos3_omni": "qwen3_vl_vision"}.get(m.wrapper, m.wrapper + "_vision")
    m.wrapper = "qwen3_vl" if m.wrapper in ("cosmos3_omni", "cohere_compass") else m.wrapper
    v = tower(top, own)
    if v is None:
        return absent(m)
    vision.qwen(m, v)


@family("mllama")
def mllama(m: Build):
    top = language(m, "mllama_text_model", tie=False)  # its table has rows for image tokens, its head has not
    v = tower(top, "mllama_vision_model")
    if v is None:
        return absent(m)
    vision.mllama(m, v, m.hidden)


@family("llama4")
def llama4(m: Build):
    inner = m.c.sub("text_config", "llama4_text")
    top = language(m, "llama4_text", tie=inner.flag("tie_word_embeddings", False) if inner else None)
    v = tower(top, "llama4_vision_model")
    if v is None:
        return absent(m)
    vision.llama4(m, v, m.hidden)


@family("gemma4")
def gemma4(m: Build):
    top = language(m, "gemma4_text")
    v, audio = tower(top, "gemma4_vision"), top.sub("audio_config", "gemma4_audio")
    if v is not None:
        vision.gemma4(m, v, m.hidden)
    if audio is not None:
        vision.roughly(m, audio, m.hidden, "audio")


@family("internvl")
def internvl(m: Build):
    top = language(m, "qwen2")
    v = tower(top, "internvl_vision")
    if v is None:
        return absent(m)
    h = vision.internvl(m, v)
    wide = int(h / top.num("downsample_ratio", 0.01, 1) ** 2)
    vision.project(m, "multi_modal_projector", (m.hidden, wide), (m.hidden, m.hidden), norms=2 * wide)


@family("kimi_k25")
def kimi_k25(m: Build):
    top = language(m, "deepseek_v3")
    v = tower(top, "kimi_k25_vision")
    if v is None:
        return absent(m)
    vision.moonvit(m, v, m.hidden)


@family("glm4v", "glm4v_moe", "glm46v", "glmga", "glm_ocr")
def glm4v(m: Build):
    top = language(m, {"glm4v_moe": "glm4v_moe_text", "glm_ocr": "glm_ocr_text"}.get(m.c.type, "glm4v_text"))
    v = tower(top, {"glm4v_moe": "glm4v_moe_vision", "glm_ocr": "glm_ocr_vision"}.get(m.wrapper, "glm4v_vision"))
    if v is None:
        return absent(m)
    vision.glm(m, v)


@family("step3p7")
def step3p7(m: Build):
    top = language(m, "step3p5", flat=False)
    v = tower(top, "step3p5_vision") or Reader({}, "step3p5_vision", path="vision_config", assumed=top.assumed)
    if v is None:
        return absent(m)
    vision.step(m, v, m.hidden, top.flag("projector_bias"))


@family("minimax_m3_vl")
def minimax_m3(m: Build):
    top = language(m, "minimax_m3_vl_text")
    v = tower(top, "minimax_m3_vl_vision")
    if v is None:
        return absent(m)
    vision.minimax(m, v, m.hidden, top.int("projector_hidden_size"))
