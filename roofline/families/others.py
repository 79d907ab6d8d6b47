"""More multimodal wrappers. Where a tower is not described part by part its size is taken from its own fields (`vision.roughly`)."""

from __future__ import annotations

from . import vision
from .dense import TWO_NORMS, phi3
from .moe import ernie_moe, others
from .parts import ATTN, Build
from .reader import Reader
from .registry import FAMILIES, family
from .wrappers import absent, language, tower

# wrapper model_type -> (what its text_config is read as when it does not say, the same for its vision_config)
PLAIN = {
    "apertus1p5": ("apertus1p5_text", "apertus1p5_vision_tokenizer"),
    "gemma4_unified": ("gemma4_unified_text", "gemma4_unified_vision"),
    "video_llama_3": ("qwen2", "video_llama_3_vision"),
    "perception_lm": ("llama", ""),
    "fast_vlm": ("qwen2", ""),
    "kimi_vl": ("deepseek_v3", "moonvit"),
    "internvl_chat": ("qwen2", "intern_vit_6b"),
    "deepseek_vl_v2": ("deepseek_v2", ""),
    "qwen2_audio": ("qwen2", ""),
    "voxtral": ("llama", ""),
    "glmasr": ("llama", "glmasr_encoder"),
    "qwen3_asr": ("qwen3", "qwen3_asr_encoder"),
    "audioflamingo3": ("qwen2", "audioflamingo3_encoder"),
    "musicflamingo": ("qwen2", "audioflamingo3_encoder"),
    "voxtral_realtime": ("voxtral_realtime_text", "voxtral_realtime_encoder"),
    "granite4_vision": ("granite", "siglip_vision_model"),
    "hyperclovax_vision_v2": ("hyperclovax", ""),
    "nemotron_h_omni": ("nemotron_h", ""),
    "qianfan_ocr": ("qwen3", "qianfan_ocr_vision"),
    "moss_transcribe_diarize": ("qwen3", ""),
}
TEXT_NAMES = {"internvl_chat": "llm_config", "deepseek_vl_v2": "language_config", "hyperclovax_vision_v2": "text_config"}


@family(*PLAIN)
def plain(m: Build):
    kind = m.c.type
    text, seen = PLAIN[kind]
    name = TEXT_NAMES.get(kind, "text_config")
    if kind == "nemotron_h_omni" and not m.c.has(name):
        name = "llm_config"
    top = language(m, text, text=name)
    found = False
    for part in ("vision_config", "video_config", "audio_config"):
        if part == "vision_config" and kind == "kimi_vl" and top.sub(part, seen) is not None:
            vision.moonvit(m, top.sub(part, seen), m.hidden)
            found = True
        elif top.get(part, None) is not None and isinstance(top.get(part), dict):
            vision.roughly(m, top.sub(part, seen), m.hidden, part.removesuffix("_config"))
            found = True
    if not found:
        absent(m)


@family("idefics3", "smolvlm")
def idefics3(m: Build):
    kind = m.c.type
    top = language(m, "llama")
    v = tower(top, "smolvlm_vision" if kind == "smolvlm" else "idefics3_vision")
    if v is None:
        return absent(m)
    vision.project(m, "connector.modality_projection", (m.hidden, vision.clip(m, v) * top.int("scale_factor") ** 2), bias=False)


@family("idefics2")
def idefics2(m: Build):
    top = language(m, "mistral")
    v = tower(top, "idefics2_vision")
    if v is None:
        return absent(m)
    vision.perceiver(m, top, vision.clip(m, v))


@family("video_llava")
def video_llava(m: Build):
    top = language(m, "llama")
    v = tower(top, "clip_vision_model")
    if v is None:
        return absent(m)
    h = vision.clip(m, v, "image_tower")
    vision.clip(m, v, "video_tower")
    vision.project(
        m, "multi_modal_projector", (m.hidden, h), (m.hidden, m.hidden), bias=top.flag("multimodal_projector_bias", True)
    )


@family("lfm2_vl")
def lfm2_vl(m: Build):
    top = language(m, "lfm2")
    v = tower(top, "siglip2_vision_model")
    if v is None:
        return absent(m)
    wide, inner, bias = (
        vision.clip(m, v) * top.int("downsample_factor") ** 2,
        top.int("projector_hidden_size"),
        top.flag("projector_bias"),
    )
    vision.project(
        m,
        "multi_modal_projector",
        (inner, wide),
        (m.hidden, inner),
        bias=bias,
        norms=2 * wide if top.flag("projector_use_layernorm") else 0,
    )


@family("cohere2_vision", "aya_vision")
def cohere2_vision(m: Build):
    kind = m.c.type
    top = language(m, "cohere2")
    v = tower(top, "siglip_vision_model")
    if v is None:
        return absent(m)
    inner = top.opt("alignment_intermediate_size", fallback=None) or m.hidden
    wide = vision.clip(m, v) * top.int("downsample_factor") ** 2
    vision.project(
        m, "multi_modal_projector", (inner, wide), (m.hidden, inner // 2), norms=2 * wide if kind == "aya_vision" else 0
    )


@family("deepseek_vl")
def deepseek_vl(m: Build):
    top = language(m, "llama")
    v = tower(top, "siglip_vision_model")
    if v is None:
        return absent(m)
    vision.project(m, "aligner", (m.hidden, vision.clip(m, v)), (m.hidden, m.hidden))


@family("qwen2_5_omni_thinker", "qwen3_omni_moe_thinker", "qwen2_5_omni", "qwen3_omni_moe")
def omni(m: Build):
    """The thinker: a language model with vision and audio towers. The talker, which speaks, is not counted."""
    if not m.c.type.endswith("thinker"):
        m.inside(m.c.sub("thinker_config", m.c.type + "_thinker", required=True))
        m.notes.append("Only the thinker is counted; the talker that makes speech is not.")
    kind = m.c.type.removesuffix("_thinker")
    top = language(m, kind + "_text")
    m.wrapper = "qwen3_vl" if kind.startswith("qwen3") else "qwen2_5_vl"
    v, audio = tower(top, kind + "_vision_encoder"), top.sub("audio_config", kind + "_audio_encoder")
    if v is not None:
        vision.qwen(m, v)
    if audio is not None and kind == "qwen2_5_omni":
        whisper(m, audio)
    elif audio is not None:
        vision.roughly(m, audio, m.hidden, "audio")


def whisper(m: Build, a: Reader):
    """Whisper's encoder with its output projected; its positions are sinusoids, its keys have no bias."""
    h, out = a.int("d_model"), a.int("output_dim")
    t = vision.Tower(m, "audio_tower")
    t.matrix("conv1", h, 3 * a.int("num_mel_bins"), bias=True)
    t.matrix("conv2", h, 3 * h, bias=True)
    t.blocks(a.int("encoder_layers"), h, a.int("encoder_ffn_dim"), k_bias=False)
    t.matrix("proj", out, h, bias=True)
    t.vectors(2 * out, 2 * h)
    t.done()


@family("phi4_multimodal", "phi4mm")
def phi4_multimodal(m: Build):
    phi3(m)
    v, audio = m.c.sub("vision_config", "phi4_multimodal_vision"), m.c.sub("audio_config", "phi4_multimodal_audio")
    if v is not None:
        h = vision.clip(m, Reader({**v.raw, "vision_use_head": True}, "siglip_vision_model", path=v.path, assumed=v.assumed))
        vision.project(m, "img_projection", (m.hidden, h), (m.hidden, m.hidden), norms=2 * h)
    if audio is not None:
        vision.conformer(m, audio, m.hidden)


@family("gemma3n")
def gemma3n(m: Build):
    """Its MobileNet-V5 tower is known by name only (300 M); its audio encoder is 12 conformer blocks of about 24 h x h elements."""
    top = language(m, "gemma3n_text")
    v, audio = top.sub("vision_config", "gemma3n_vision"), top.sub("audio_config", "gemma3n_audio")
    if v is not None:
        t = vision.Tower(m, "vision_tower")
        t.matrix("mobilenetv5_300m", 300_000, 1000)
        t.matrix("embed_vision.projection", m.hidden, v.int("hidden_size"))
        t.matrix("embed_vision.embedding", v.int("vocab_size"), v.int("hidden_size"))
        t.done()
    if audio is not None:
        h, depth = audio.int("conf_hidden_size"), audio.int("conf_num_hidden_layers")
        t = vision.Tower(m, "audio_tower")
        t.matrix("conformer", 24 * h, h, depth)
        t.matrix("embed_audio.projection", m.hidden, audio.int("hidden_size"))
        t.matrix("embed_audio.embedding", audio.int("vocab_size"), audio.int("hidden_size"))
        t.done()
    if v is None and audio is None:
        return absent(m)
    m.notes.append("The vision and audio towers are counted within a few per cent, by name and by size.")


@family("phi3_v")
def phi3_v(m: Build):
    """Phi-3 Vision: the tower is CLIP ViT-L/14 at 336 pixels, whatever the config says of it."""
    phi3(m)
    h = vision.clip(
        m,
        Reader(
            {"hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 24, "patch_size": 14, "image_size": 336},
            "clip_vision_model",
        ),
    )
    vision.project(m, "vision_embed_tokens.img_projection", (m.hidden, 4 * h), (m.hidden, m.hidden), norms=8 * h)
    m.notes.append("The vision tower is taken to be CLIP ViT-L/14 at 336 pixels, which the config does not say.")


@family("ernie4_5_vl_moe_text")
def ernie_vl_text(m: Build):
    """ERNIE's routed experts come twice: for text, and (idle here) for images."""
    c = m.c
    both = c.items("moe_intermediate_size")
    if both is None or len(both) != 2:
        return ernie_moe(m)
    kinds = c.kinds("mlp_layer_types", m.n, lambda i: "sparse" if i else "dense", ("dense", "sparse"))
    m.embed()
    m.gqa(bias=c.flag("use_bias"))
    dense = m.where(lambda i: kinds[i] == "dense")
    layers = others(m, dense)
    if dense:
        m.gated_mlp(layers=dense, bias=c.flag("use_bias"))
    text, image = c.each("moe_intermediate_size", 2)
    experts, active = c.int("moe_num_experts"), c.int("moe_k")
    m.moe(
        experts,
        active,
        text,
        layers=layers,
        shared_ff=text * (c.opt("moe_num_shared_experts", 0) or 0),
        shared_bias=c.flag("use_bias"),
    )
    m.vector("mlp.moe_statics.e_score_correction_bias", "router", experts, layers=layers)
    m.norm(*TWO_NORMS)
    for name, rows, cols in (("gate_up_proj", 2 * image, m.hidden), ("down_proj", m.hidden, image)):
        m.linear(
            "mlp.vision_moe.experts." + name, "vision", rows, cols, layers=layers, copies=experts, active=active, kind="idle"
        )
    m.linear("mlp.vision_moe.gate", "vision", experts, m.hidden + 1, layers=layers, kind="idle")


@family("ernie4_5_vl_moe")
def ernie_vl(m: Build):
    top = language(m, "ernie4_5_vl_moe_text")
    v = tower(top, "ernie4_5_vl_moe_vision")
    if v is None:
        return absent(m)
    h, merge, frames = v.int("hidden_size"), v.int("spatial_merge_size") ** 2, v.int("temporal_merge_size")
    t = vision.Tower(m, "vision_tower")
    t.matrix("patch_embed.proj", h, v.int("in_channels", fallback=3) * vision.side(v, "patch_size") ** 2)
    t.blocks(v.int("depth"), h, v.int("intermediate_size"))
    wide = h * merge
    t.vectors(2 * h, 4 * wide, m.hidden)
    for name, cols in (
        ("spatial_linear.fc1", wide),
        ("spatial_linear.fc2", wide),
        ("temporal_linear.fc1", wide * frames),
        ("temporal_linear.fc2", wide),
    ):
        t.matrix("resampler." + name, wide, cols, bias=True)
    t.matrix("resampler.mlp", m.hidden, wide, bias=True)
    t.done()


@family("aria_text")
def aria_text(m: Build):
    c = m.c
    m.embed()
    m.gqa(bias=c.flag("attention_bias", False))
    m.moe(
        c.int("moe_num_experts"),
        c.int("moe_topk"),
        m.ff,
        router="mlp.router",
        fused="fc1",
        names=("", "", "fc2"),
        shared_ff=m.ff * c.int("moe_num_shared_experts", 0),
        shared_bias=c.flag("mlp_bias", False),
    )
    m.norm(*TWO_NORMS)


@family("molmo2_text")
def molmo2_text(m: Build):
    c = m.c
    m.tie = False  # the table is longer than the head
    m.embed(vocab=m.vocab + c.int("additional_vocab_size", 0), head_vocab=m.vocab)
    m.gqa(bias=c.flag("attention_bias"), out_bias=False, qk_norm="head" if c.word("qk_norm_type") == "qwen3" else "flat")
    m.gated_mlp()
    m.norm(*TWO_NORMS)


@family("idefics")
def idefics(m: Build):
    """Llama with gated cross-attention to an image after some layers, which text alone skips."""
    c, h = m.c, m.hidden
    extra = c.int("additional_vocab_size", 0)
    m.embed()
    m.gqa(kv=m.heads)
    m.gated_mlp()
    m.norm(*TWO_NORMS)
    v = c.sub("vision_config", "idefics_vision")
    width = v.int("embed_dim") if v else h
    every = c.int("cross_layer_interval")
    cross = tuple(range(0, m.n // every * every, every))
    start, p = len(m.tensors), "gated_cross_attn_layers."
    m.linear(p + "cross_attn.q_proj", ATTN, h, h, layers=cross)
    m.linear(p + "cross_attn.k_proj", ATTN, h, width, layers=cross)
    m.linear(p + "cross_attn.v_proj", ATTN, h, width, layers=cross)
    m.linear(p + "cross_attn.o_proj", ATTN, h, h, layers=cross)
    if c.flag("qk_layer_norms"):
        m.norm(p + "cross_attn.q_layer_norm", p + "cross_attn.k_layer_norm", size=m.head_dim, layers=cross)
    m.gated_mlp(layers=cross, prefix=p + "mlp.")
    m.norm(p + "input_layernorm", p + "post_attention_layernorm", layers=cross)
    gate = 1 if c.word("alpha_type") == "float" else h
    m.vector(p + "alpha_cross_attn", "other", gate, layers=cross)
    m.vector(p + "alpha_dense", "other", gate, layers=cross)
    m.idle(start)
    if extra:
        m.once("model.embed_tokens.additional_embedding", "embedding", extra, h, "table")
        if not m.tied:
            m.once("lm_head.additional_fc", "lm_head", extra, h)
    if v is not None:
        vision.roughly(m, v, h)


@family("unlimited_ocr_text")
def unlimited_ocr_text(m: Build):
    """DeepSeek's experts under ordinary attention; what was read stays in the cache, what is written is seen through a window."""
    c = m.c
    m.embed()
    m.gqa(bias=c.flag("attention_bias"), d=m.split(m.hidden, m.heads))
    first, bias = c.int("first_k_dense_replace", 0, fallback=1), c.flag("mlp_bias")
    kinds = c.kinds("mlp_layer_types", m.n, lambda i: "dense" if i < first else "sparse", ("dense", "sparse"))
    dense, ff = m.where(lambda i: kinds[i] == "dense"), c.int("moe_intermediate_size")
    m.gated_mlp(layers=dense, bias=bias)
    m.moe(
        c.int("n_routed_experts"),
        c.int("num_experts_per_tok"),
        ff,
        layers=others(m, dense),
        shared_ff=ff * (c.opt("n_shared_experts", 0) or 0),
        shared_bias=bias,
    )
    m.notes.append("The window over what the model has written is not modelled: every token stays in the cache.")
    m.norm(*TWO_NORMS)


@family("cohere_compass_text")
def cohere_compass_text(m: Build):
    c = m.c
    m.embed()
    kinds = c.kinds("layer_types", m.n, lambda i: "full_attention", ("full_attention", "sliding_attention"))
    for layers, w in m.sliding(kinds, c.opt("sliding_window")):
        m.core(layers=layers, window=w)
    m.gqa(bias=c.flag("attention_bias"), core=False)
    m.gated_mlp()
    m.norm("input_layernorm")


@family("voxtral_realtime_text")
def voxtral_realtime_text(m: Build):
    """Mistral's layers, each with a small MLP that scales a norm by the delay asked for (computed once, not for every token)."""
    window = m.c.opt("sliding_window")
    m.embed()
    m.gqa(window=window)
    m.gated_mlp()
    m.norm(*TWO_NORMS)
    for name in ("linear1", "linear2"):
        m.vector("ada_rms_norm." + name, "other", 32 * m.hidden)


def alias(name: str, known: str):
    """Read one model_type as another that has the same parts."""
    FAMILIES[name] = FAMILIES[known]


for _name, _known in {
    "paddleocr_vl_text": "ernie4_5",
    "apertus1p5_text": "apertus",
    "gemma4_unified_text": "gemma4_text",
    "granite_docling_text": "granite",
    "video_llama_3_text": "qwen2",
    "cosmos3_edge_text": "arcee",
    "hunyuan_vl_text": "hunyuan_v1_dense",
}.items():
    alias(_name, _known)
