"""llama.cpp's presets: which block type each tensor of a GGUF file takes, and so its size to the byte.

The rules are in data/presets.toml. A tensor is given a role by its name; the role, the layer and the
shape of the model give its type; a row that the type's block does not divide falls back to another.
Sizes are those of the tensors: a file adds 0.3 to 11 MB of metadata (the tokenizer) and pads each to 32 bytes.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.resources import files

from .blocks import Format, catalogue, matrix_bytes, name_key, names as block_names
from .errors import InputError, nearest
from .model import Architecture, Tensor

SOURCE = "ggml-org/llama.cpp src/llama-quant.cpp@007dbbf3fd17"
# Block types that name a mix, as llama-quantize's own short names do.
_SHORT = {"q3_k": "Q3_K_M", "q4_k": "Q4_K_M", "q5_k": "Q5_K_M"}
# A row that the block does not divide is stored in the type on the right, or f16 if that does not divide it either.
_FALLBACK = {
    **dict.fromkeys(("iq1_s", "iq1_m", "iq2_xxs", "iq2_xs", "iq2_s", "iq3_xxs", "iq3_s", "iq4_xs"), "iq4_nl"),
    **dict.fromkeys(("q2_0", "q2_k", "q3_k", "tq1_0", "tq2_0"), "q4_0"),
    "q4_k": "q5_0", "q5_k": "q5_1", "q6_k": "q8_0",
}
# Families whose 80-layer (or, Jais 2, 68-layer) model llama.cpp takes for the 70B type.
_SEVENTY = {"llama": 80, "mistral": 80, "qwen2": 80, "deci": 80, "nemotron-nas": 80, "jais2": 68}


@lru_cache(maxsize=1)
def table() -> dict:
    """The presets as in data/presets.toml."""
    return tomllib.loads((files("roofline") / "data" / "presets.toml").read_text("utf-8"))


@lru_cache(maxsize=1)
def names() -> tuple:
    """Every preset's name."""
    return tuple(table())


@lru_cache(maxsize=256)
def parse(key: str, field: str = "weights", given: str = "") -> Format:
    """Read a preset's name (already in the form of `name_key`) into a Format.

    A name may end in -imatrix or -no-imatrix (how Q4_0, IQ4_XS and a few others were made) and in -pre-2026 (a fused
    QKV had rules of its own), -pre-2025 (also: MLA's kv_b not split) or -pre-2024 (also: another Q2_K): older files. Raises InputError with the nearest name.

    >>> parse("q4-k-m").name
    'Q4_K_M'
    """
    stem, era, imatrix = key, "", None
    for suffix, value in (("-pre-2024", "2023"), ("-pre-2025", "2024"), ("-pre-2026", "2025")):
        if stem.endswith(suffix):
            stem, era = stem[:-len(suffix)], value
    for suffix, value in (("-no-imatrix", False), ("-static", False), ("-imatrix", True)):
        if imatrix is None and stem.endswith(suffix):
            stem, imatrix = stem[:-len(suffix)], value
    stem = {"mxfp4": "mxfp4-moe", "fp16": "f16", "fp32": "f32", "bfloat16": "bf16"}.get(stem, stem)
    by_key = {name_key(name): name for name in names()}
    if stem in block_names() and catalogue()[block_names()[stem]].preset:  # a block type: the mix is the preset of that name
        fmt = catalogue()[block_names()[stem]]
        name = _SHORT.get(fmt.preset, fmt.preset.upper())
        row = table().get(name, {})
        fmt = replace(fmt, name=fmt.name.removeprefix("ik:").upper(), preset=name if row else fmt.preset)
    elif stem in by_key:
        name = by_key[stem]
        row = table()[name]
        base = catalogue()[row["type"]]
        fmt = Format(name=name, bits=base.bits, compute=base.compute, covers="gguf", preset=name, source=SOURCE)
    else:
        hint = "; Unsloth's dynamic (UD) mixes follow no fixed rule: take the nearest plain preset" if stem.startswith("ud-") else ""
        raise InputError(field, given or key, "is not a number format known here"
                         + (hint or nearest(given or key, (*block_names(), *(n.lower() for n in names()))) or "; such are bf16, fp8, int8, int4, awq, nvfp4 and q4_k_m"))
    imatrix = row.get("imatrix", False) if imatrix is None else imatrix
    fmt = replace(fmt, imatrix=imatrix, rules=era)
    if not fmt.block:
        fmt = replace(fmt, typical_bits=_typical_bits(fmt))
    return fmt


@lru_cache(maxsize=1)
def _typical() -> Architecture:
    """The shape of Llama 3.1 8B, for the bits per weight that a preset is known by."""
    layers = tuple(range(32))
    shapes = (("q_proj", 4096, 4096), ("k_proj", 1024, 4096), ("v_proj", 1024, 4096), ("o_proj", 4096, 4096),
              ("gate_proj", 14336, 4096), ("up_proj", 14336, 4096), ("down_proj", 4096, 14336))
    tensors = tuple(Tensor(name=n, group="mlp" if r + c > 10000 else "attention_projection", rows=r, cols=c, layers=layers) for n, r, c in shapes)
    ends = (Tensor(name="embed_tokens", group="embedding", rows=128256, cols=4096, kind="table"),
            Tensor(name="lm_head", group="lm_head", rows=128256, cols=4096))
    return Architecture(id="typical", family="llama", hidden=4096, layer_count=32, vocab=128256, heads=32, tensors=tensors + ends)


def _typical_bits(fmt: Format) -> float:
    arch = _typical()
    return sum(_sizes(arch, fmt, gqa=4)) * 8 / sum(t.parameters for t in arch.tensors)


@dataclass(frozen=True, slots=True)
class _Shape:
    """What the rules ask of a model."""

    layers: int
    gqa: float
    experts: int
    falcon: bool
    seventy: bool
    tied: bool


@dataclass(frozen=True, slots=True)
class _Part:
    """One GGUF tensor kind that an entry of arch.tensors becomes."""

    index: int
    role: str  # embedding, layer_embedding, output, v, qkv, kv_b, q, k, o, down, up, other; f32, source, absent
    rows: int
    cols: int
    stacked: bool  # three-dimensional: experts, MLA's per-head matrices


_ROLES = tuple((role, re.compile(pattern)) for role, pattern in (
    ("qkv", r"(qkv_proj|c_attn|wqkv|query_key_value|in_proj_qkv|w_pack|qkv)$"),
    ("kv_b", r"kv_b_proj$"),
    ("q", r"(^|[._])(q_proj|wq|query|q)$"),
    ("k", r"(^|[._])(k_proj|wk|key|k)$"),
    ("v", r"(^|[._])(v_proj|wv|value|v)$"),
    ("o", r"(o_proj|out_proj|c_proj|wo|dense|linear)$"),
))
_DOWN = re.compile(r"(down_proj|c_proj|fc2|dense_4h_to_h|w2|output_linear|fc_out|linear_1|ffn_down|down|wo)$")


def _role(t: Tensor) -> str:
    name = t.name.lower()
    if t.group == "vision":
        return "absent"  # a separate mmproj file
    if t.kind == "vector" or t.group in ("router", "norm") or re.search(r"conv1d|conv\.conv|\.conv$|shared_expert_gate", name):
        return "f32"
    if name.endswith(("bias", "coefs")) or "indexer.weights_proj" in name:
        return "f32"
    if re.search(r"altup|laurel|per_layer_model_proj|indexer\.[qk]_proj", name):
        return "source"
    if t.kind == "table" or t.group == "embedding":
        return "f32" if re.search(r"wpe|position|pos_emb", name) else "layer_embedding" if "per_layer" in name else "embedding"
    if t.group == "lm_head":
        return "output"
    if t.group in ("mlp", "experts", "shared_experts"):
        return "down" if _DOWN.search(name) else "up"
    if t.group in ("attention_projection", "recurrent"):
        for role, pattern in _ROLES:
            if pattern.search(name) and (t.group != "recurrent" or role == "qkv" or name.startswith("self_attn.")):
                return role
    return "other"


@lru_cache(maxsize=128)
def _parts(arch: Architecture, split_mla: bool) -> tuple:
    """The GGUF tensors that each entry of arch.tensors becomes: (part, layers)."""
    found = []
    mla = next((a for a in arch.attentions if a.decode_qk_dim), None)
    values = {layer: t.cols for t in arch.tensors if t.name.endswith("linear_attn.out_proj") for layer in t.layers}
    for index, t in enumerate(arch.tensors):
        role, rows, cols = _role(t), t.rows * t.copies, t.cols
        if role == "kv_b" and mla and split_mla:
            # Split into K (transposed, per head: rows of qk_nope columns) and V; neither is "attn_v-like".
            rope = mla.decode_qk_dim - t.cols
            nope = mla.qk_dim - rope
            heads = t.rows // (nope + mla.v_dim)
            found += [(_Part(index, "other", heads * t.cols, nope, True), t.layers), (_Part(index, "other", heads * mla.v_dim, t.cols, True), t.layers)]
        elif t.name.endswith("in_proj_qkvz") and t.layers and t.layers[0] in values:  # stored as attn_qkv and attn_gate
            gate = values[t.layers[0]]
            found += [(_Part(index, "qkv", rows - gate, cols, False), t.layers), (_Part(index, "other", gate, cols, False), t.layers)]
        else:
            found.append((_Part(index, role, rows, cols, t.group == "experts" and t.copies > 1), t.layers))
    return tuple(found)


def _gqa(arch: Architecture) -> float:
    """Query heads per KV head as llama.cpp has it: of layer 0; MLA counts one KV head; 0 where layer 0 has no attention."""
    first = next((a for a in arch.attentions if 0 in a.layers), None)
    if first is None and arch.family.startswith(("qwen3_next", "qwen3_5", "kimi_linear")):
        first = arch.attentions[0] if arch.attentions else None  # one KV head count for all layers in these files
    if first is None:
        return 0
    return first.heads / (1 if first.decode_qk_dim else first.kv_heads)


def _shape(arch: Architecture, gqa: float | None) -> _Shape:
    experts = max((t.copies for t in arch.tensors if t.group == "experts"), default=0)
    seventy = _SEVENTY.get(arch.family) == arch.layer_count and (gqa or _gqa(arch)) > 1
    return _Shape(arch.layer_count, _gqa(arch) if gqa is None else gqa, experts, arch.family == "falcon", seventy,
                  not any(t.group == "lm_head" for t in arch.tensors))


# Routers with a correction bias: a buffer (no parameter), yet FP32 in every file.
_CORRECTED = ("deepseek_v3", "deepseek_v32", "deepseek_v4", "kimi_k2", "kimi_linear", "glm4_moe", "glm_moe_dsa", "minimax_m2", "minimax_m3", "nemotron_h",
              "dots1", "ernie4_5_moe", "solar_open", "exaone_moe", "mimo", "step3")


def router_bias_bytes(arch: Architecture, t: Tensor) -> int:
    """What a router's correction bias adds to a GGUF or MLX file [bytes]: 4 per expert and layer."""
    return 4 * t.rows * t.count if t.group == "router" and t.kind == "linear" and arch.family.startswith(_CORRECTED) else 0


def _rope_factors(arch: Architecture) -> int:
    """F32 rope factors that llama.cpp stores with the model [elements]: they are in the file, not in the checkpoint.

    Llama 3.1 and later (one per pair of head dimensions) and Phi 3's long contexts (a long and a short set). The config's
    rope_scaling says so; by shape it is a Llama or Phi-3 model of 128k context with that family's vocabulary.
    """
    if not arch.attentions or (arch.max_context or 0) < 100_000:
        return 0
    dim = arch.attentions[0].qk_dim
    if arch.family == "llama" and 128_000 <= arch.vocab < 129_280:
        return dim // 2
    if arch.family == "phi3":
        return dim * 3 // 4 if arch.vocab > 200_000 else dim
    return 0


def _holds(condition: str, i: int, n: int, shape: _Shape, imatrix: bool) -> bool:
    for term in condition.split("&"):
        wanted, term = not term.startswith("!"), term.lstrip("!")
        if term == "more":  # llama.cpp's use_more_bits, with its integer division
            value = i < n // 8 or i >= 7 * n // 8 or (i - n // 8) % 3 == 2
        elif term == "middle":
            value = n // 8 <= i < 7 * n // 8
        elif term.startswith("n/"):
            value = i < n // int(term[2:])
        elif term.startswith("<"):
            value = i < int(term[1:])
        else:
            value = {"gqa4": shape.gqa >= 4, "e4": shape.experts >= 4, "e8": shape.experts == 8, "falcon": shape.falcon,
                     "imatrix": imatrix}[term]
        if value != wanted:
            return False
    return True


def _pick(rule: str, default: str, i: int, n: int, shape: _Shape, imatrix: bool) -> str:
    for choice in filter(None, rule.split("|")):
        condition, _, kind = choice.rpartition(":")
        if not condition or _holds(condition, i, n, shape, imatrix):
            return kind
    return default


def _type(row: dict, part: _Part, i: int, n: int, shape: _Shape, fmt: Format) -> str:
    """Block type of one tensor; i: its place among its like; n: how many there are (or layers)."""
    role, default = part.role, row["type"]
    if role == "layer_embedding":  # Gemma 3n's table per layer: counted as an embedding since 2026
        role = "other" if fmt.rules else "embedding"
    if role == "f32":
        return "ggml-f32"
    if role == "source":
        return "ggml-f16"
    if not catalogue()[default].block or catalogue()[default].block[0] == 1:
        return default  # F16, BF16, F32: no mix
    if fmt.rules == "2023" and fmt.name == "Q2_K":
        return "q6_k" if role == "output" else "q2_k" if role in ("q", "k", "embedding") else "q3_k"
    if role == "output" or (role == "embedding" and shape.tied):
        if shape.falcon or part.cols % catalogue()[default].block[0]:
            return "q8_0"
        return row.get("output") or ("q8_0" if default == "q8_0" else "q6_k")
    if "experts" in row:
        return row["experts"] if part.stacked else default
    like_v = role == "v" or (role in ("qkv", "kv_b") and not fmt.rules)
    if role == "qkv" and fmt.rules:
        return row.get("old_qkv", default)
    rule = row.get("v" if like_v else role, "")
    kind = _pick(rule, default, i, n, shape, fmt.imatrix)
    if not row.get("small"):
        if like_v and shape.seventy and kind in ("q3_k", "q4_k"):
            kind = "q5_k"
        if shape.experts == 8 and (like_v or role == "k"):
            kind = "q8_0"
    return kind


def _fallback(kind: str, cols: int) -> str:
    if cols % catalogue()[kind].block[0] == 0:
        return kind
    other = _FALLBACK.get(kind, "ggml-f16")
    return other if cols % catalogue()[other].block[0] == 0 else "ggml-f16"


def types(arch: Architecture, fmt: Format, gqa: float | None = None):
    """Yield (index into arch.tensors, block type, rows, columns, how many GGUF tensors) for each kind of tensor.

    Args: fmt: a preset; gqa: query heads per KV head, if not to be read from the model.
    """
    row = table().get(fmt.preset) or {"type": fmt.preset}
    shape = _shape(arch, gqa)
    native = getattr(arch.quantization, "gguf_experts", "") if catalogue()[row["type"]].block[0] == 1 else ""
    parts = _parts(arch, fmt.rules not in ("2023", "2024"))
    old = bool(fmt.rules)
    place = lambda role: "v" if role == "v" or (role in ("qkv", "kv_b") and not old) else role
    order = {}  # where the quantiser's counters stand at each tensor: layer by layer, by name within a layer
    for part, layers in parts:
        order.setdefault(place(part.role), []).extend((layer, arch.tensors[part.index].name) for layer in layers or (0,))
    rank = {role: {item: i for i, item in enumerate(sorted(items))} for role, items in order.items()}
    layer_rank = {role: {layer: i for i, layer in enumerate(sorted({layer for layer, _ in items}))} for role, items in order.items()}
    for part, layers in parts:
        if part.role == "absent":
            continue
        role, name = place(part.role), arch.tensors[part.index].name
        n = len(order[role]) if role == "v" else shape.layers
        counts = Counter()
        for layer in layers or (0,):
            if role in ("down", "up") and not row.get("small"):
                i = layer if shape.experts > 1 else layer_rank[role][layer]
            else:
                i = rank[role][(layer, name)]
            kind = native if native and part.stacked and part.role in ("down", "up") else _type(row, part, i, n, shape, fmt)
            counts[_fallback(kind, part.cols)] += 1
        for kind, count in counts.items():
            yield part.index, kind, part.rows, part.cols, count


def _sizes(arch: Architecture, fmt: Format, gqa: float | None = None) -> tuple:
    sizes = [router_bias_bytes(arch, t) for t in arch.tensors]
    for index, kind, rows, cols, count in types(arch, fmt, gqa):
        sizes[index] += matrix_bytes(catalogue()[kind], rows, cols) * count
    vector = next((i for i, t in enumerate(arch.tensors) if t.group == "norm" and not t.layers), None)
    if vector is not None:
        sizes[vector] += 4 * _rope_factors(arch)
    return tuple(sizes)


@lru_cache(maxsize=256)
def weight_bytes(arch: Architecture, fmt: Format) -> tuple:
    """Bytes of each entry of arch.tensors in the GGUF file of a preset; 0 for a vision tower (its own file) [bytes]."""
    return _sizes(arch, fmt)
