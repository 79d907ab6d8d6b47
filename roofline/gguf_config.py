"""Turn a GGUF header into a config and an Architecture with the file's exact bytes.

GGUF keys are those of llama.cpp, one set for all architectures ("llama.block_count"), so one table says which model_type each
architecture is and a few small functions add what a family names its own way. What a header does not say in its
keys it says in its tensors (a separate output, biases, a norm on the queries). Sources: gguf-py 0.19 constants.py
and tensor_mapping.py, conversion/*.py of ggml-org/llama.cpp.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace

from .errors import InputError, nearest
from .families import from_hf_config
from .gguf import Header, Length, read_header
from .gguf_families import SPECIAL, Keys
from .model import Architecture
from .presets import table

# llama.cpp's architecture -> model_type of a config.json.
MODEL_TYPES = {
    "llama": "llama", "deci": "llama", "mistral3": "mistral", "qwen2": "qwen2", "qwen2vl": "qwen2", "qwen3": "qwen3", "qwen3vl": "qwen3", "qwen2moe": "qwen2_moe",
    "qwen3moe": "qwen3_moe", "qwen3vlmoe": "qwen3_moe", "qwen3next": "qwen3_next", "qwen35": "qwen3_5_text", "qwen35moe": "qwen3_5_moe_text",
    "gemma": "gemma", "gemma2": "gemma2", "gemma3": "gemma3_text", "phi2": "phi", "phi3": "phi3", "phimoe": "phimoe", "stablelm": "stablelm",
    "starcoder2": "starcoder2", "falcon": "falcon", "gptneox": "gpt_neox", "gpt2": "gpt2", "mpt": "mpt", "bloom": "bloom", "command-r": "cohere", "cohere2": "cohere2",
    "olmo": "olmo", "olmo2": "olmo2", "olmoe": "olmoe", "deepseek2": "deepseek_v3", "glm4": "glm4", "glm4moe": "glm4_moe", "gpt-oss": "gpt_oss", "granite": "granite",
    "nemotron": "nemotron", "minimax-m2": "minimax_m2", "exaone": "exaone", "exaone4": "exaone4", "smollm3": "smollm3", "dots1": "dots1", "seed_oss": "seed_oss",
    "arcee": "arcee", "apertus": "apertus", "hunyuan-dense": "hunyuan_v1_dense", "hunyuan-moe": "hunyuan_v1_moe", "ernie4_5": "ernie4_5", "ernie4_5-moe": "ernie4_5_moe",
    "internlm2": "internlm2", "minicpm3": "minicpm3", "bitnet": "bitnet", "baichuan": "llama", "mistral4": "mistral4", "llama4": "llama4_text", "mamba": "mamba", "mamba2": "mamba2", "falcon-h1": "falcon_h1", "granitehybrid": "granitemoehybrid",
    "nemotron_h": "nemotron_h", "nemotron_h_moe": "nemotron_h", "lfm2": "lfm2", "lfm2moe": "lfm2_moe",
}


def architecture_name(header: Header) -> str:
    """llama.cpp's name of the architecture ("llama", "qwen3moe"); raises InputError if the file is not a language model."""
    arch = header.metadata.get("general.architecture")
    if not isinstance(arch, str) or arch not in MODEL_TYPES:
        raise InputError("general.architecture", arch, f"is not an architecture that can be read from a GGUF header{nearest(str(arch), MODEL_TYPES)}; "
                         "the model's config.json can be read instead")
    return arch


def to_config(header: Header) -> dict:
    """The fields of a config.json that a GGUF header stands for.

    Returns a dict that `families.from_hf_config` reads, with the file's exact bytes as its quantization_config (so the text of it,
    pasted or in a link, is the same model). Raises InputError for an architecture that is not known and for a
    size that is missing.
    """
    arch = architecture_name(header)
    k = Keys(header, arch)
    heads = k.need("attention.head_count") if arch not in ("mamba", "mamba2") else 1
    hidden = k.need("embedding_length")
    vocab = (k.shape("token_embd.weight") or (0, 0))[-1] or k.whole("vocab_size") or _length(header.metadata.get("tokenizer.ggml.tokens"))
    if not vocab:
        raise InputError("token_embd.weight", "is missing", "must be in the header; give it more of the file (24 MB are enough)")
    experts = k.whole("expert_count", 0)
    config = {
        "model_type": MODEL_TYPES[arch], "hidden_size": hidden, "num_hidden_layers": k.need("block_count") - (k.whole("nextn_predict_layers", 0) or 0),
        "num_attention_heads": heads, "num_key_value_heads": k.whole("attention.head_count_kv", heads) or heads, "vocab_size": vocab,
        "intermediate_size": k.whole("feed_forward_length", 0) or k.whole("expert_feed_forward_length", 0), "max_position_embeddings": k.whole("context_length"),
        # Only a whole list of tensors can say that there is no output matrix; else the family's default counts, and is listed.
        "tie_word_embeddings": False if k.has(r"^output\.weight$") else True if _whole_file(header) else None,
    }
    head_dim = k.whole("attention.key_length")
    if head_dim:
        config["head_dim"] = head_dim
    if k.whole("attention.sliding_window"):
        config["sliding_window"] = k.whole("attention.sliding_window")
    config["attention_bias"] = config["qkv_bias"] = config["use_qkv_bias"] = k.has(r"attn_q\.bias$|attn_qkv\.bias$")
    config["mlp_bias"] = k.has(r"ffn_down\.bias$")
    if experts:
        ff = k.whole("expert_feed_forward_length") or (k.shape(next((t.name for t in header.tensors if "ffn_up_exps" in t.name), "")) or (0, 0, 0))[1] or config["intermediate_size"]
        config |= {"num_experts": experts, "num_local_experts": experts, "n_routed_experts": experts, "num_experts_per_tok": k.need("expert_used_count"),
                   "moe_intermediate_size": ff, "n_shared_experts": k.whole("expert_shared_count", 0), "first_k_dense_replace": k.whole("leading_dense_block_count", 0),
                   "shared_expert_intermediate_size": k.whole("expert_shared_feed_forward_length", 0), "decoder_sparse_step": 1, "mlp_only_layers": []}
    SPECIAL.get(arch, lambda config, k: None)(config, k)
    if _whole_file(header):
        config["quantization_config"] = _bytes(header, config["num_hidden_layers"])
    elif _preset(header):
        config["quantization_config"] = {"quant_method": "gguf", "preset": _preset(header)}
    return {key: value for key, value in config.items() if value is not None}


def _length(value) -> int:
    return value.items if isinstance(value, Length) else len(value) if isinstance(value, list) else 0


# --- the file's own bytes ----------------------------------------------------------------------------------------------

_GROUPS = tuple((group, re.compile(pattern)) for group, pattern in (
    ("embedding", r"^(token_embd|per_layer_token_embd|position_embd|token_types)\.weight"), ("lm_head", r"^output\.(weight|bias)"),
    ("experts", r"ffn_(gate|up|down|gate_up)_exps"), ("shared_experts", r"_shexp\.|ffn_gate_inp_shexp"), ("router", r"ffn_gate_inp\.|exp_probs_b"),
    ("norm", r"norm|^rope_"), ("recurrent", r"\.(ssm_|shortconv|time_mix)"), ("attention_projection", r"\.(attn_|indexer)"), ("mlp", r"\.ffn_")))


def _layer(name: str) -> int:
    match = re.match(r"blk\.(\d{1,5})\.", name)
    return int(match[1]) if match else -1


def _preset(header: Header) -> str:
    """The preset that general.file_type names, or ""."""
    ftype = header.metadata.get("general.file_type")
    return next((name for name, row in table().items() if "ftype" in row and row["ftype"] == ftype), "")


def _bytes(header: Header, layers: int) -> dict:
    """The quantization_config that stands for the file: bytes and block type by group, for the first `layers` layers."""
    recurrent = {_layer(t.name) for t in header.tensors if ".ssm_" in t.name} - {_layer(t.name) for t in header.tensors if re.search(r"\.attn_(q|k)\.", t.name)}
    sizes, kinds = Counter(), {}
    for t in header.tensors:
        if _layer(t.name) < layers:
            group = next((g for g, pattern in _GROUPS if pattern.search(t.name)), "other")
            if group == "attention_projection" and _layer(t.name) in recurrent:
                group = "recurrent"
            sizes[group] += t.bytes
            kinds.setdefault(group, Counter())[t.kind] += t.elements
    label = _preset(header) or "GGUF " + " + ".join(k for k, _ in header.types.most_common(2))
    return {"quant_method": "gguf", "preset": label, "bytes": dict(sizes), "types": {g: c.most_common(1)[0][0] for g, c in kinds.items()}}


def architecture(data: bytes, id: str = "custom") -> Architecture:
    """Read the first megabytes of a GGUF file into an Architecture whose weights take the file's exact bytes.

    data: the file or its first 24 MB; id: the name the model gets. Raises InputError for what cannot be read. A file in several
    parts lists only the first part's tensors; then the preset it names gives the bytes, and a note says so.
    """
    return of_header(read_header(data), id)[1]


def of_header(header: Header, id: str = "custom") -> tuple:
    """(config, Architecture) of a header that is read already; errors as of `architecture`."""
    config = to_config(header)
    arch = from_hf_config(config, id=id, name=str(header.metadata.get("general.name") or "")[:120], source="GGUF header")
    return config, replace(arch, notes=(*arch.notes, *_notes(header, arch, config)))


def _notes(header: Header, arch: Architecture, config: dict) -> list:
    notes = []
    if not _whole_file(header):
        preset = _preset(header)
        return ["The bytes given do not list every tensor of the model, so its size is that of " + (f"the preset {preset}." if preset else "BF16 weights.")]
    language = sum(t.parameters for t in arch.tensors if t.group != "vision")
    in_file = sum(t.elements for t in header.tensors if _layer(t.name) < arch.layer_count and not t.name.startswith("rope_") and "exp_probs_b" not in t.name)
    if abs(in_file - language) > 0.001 * language:
        notes.append(f"The file's tensors hold {in_file:,} parameters; read as {config['model_type']} they come to {language:,}.")
    extra = sum(t.bytes for t in header.tensors if _layer(t.name) >= arch.layer_count)
    if extra:
        notes.append(f"{extra:,} bytes of multi-token-prediction layers in the file are not counted.")
    return notes


def _whole_file(header: Header) -> bool:
    """True if every tensor of the model is listed: the header is complete and the file is not one of several."""
    parts = header.metadata.get("split.count", 1)
    return bool(header.complete and header.tensors and not (isinstance(parts, int) and parts > 1))
