"""Read a model.safetensors.index.json, and check a model against the size it states.

The index lists every tensor's file and states the bytes of all tensors (metadata.total_size). It holds no shapes, so it
cannot stand for a model; it tells whether the size computed from the config is the size of the published files.
A stated size can be stale (copied from the base checkpoint), so a difference is reported, never corrected.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from .blocks import catalogue
from .errors import InputError
from .formats import published_bytes, weight_bytes
from .model import Architecture
from .nesting import too_deep
from .units import format_quantity

MAX_INDEX = 48_000_000  # characters: the index of a trillion-parameter mixture of experts is about 15 MB
MAX_TENSORS = 1_000_000
_LAYER = re.compile(r"(?:^|\.)(?:layers|h|blocks|block)\.(\d{1,5})\.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Index:
    """What an index says. total_size [bytes] and total_parameters [elements]: as stated, or None; layers: one more than the highest
    layer named; tensors, files: how many it lists; mtp: whether it lists multi-token-prediction parts; scales: whether it lists
    quantisation scales."""

    total_size: int | None
    total_parameters: int | None
    tensors: int
    files: int
    layers: int
    mtp: bool
    scales: bool


def _count(value, name: str) -> int | None:
    if value is None:
        return None
    if isinstance(value, float) and abs(value) < 1e18 and value == int(value):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value < 10**16:
        raise InputError(f"metadata.{name}", value, "must be a whole number of bytes or elements")
    return value


def looks_like_index(text: str) -> bool:
    """True for the text of an index (right or wrong), so that it is read as one and not as a config.

    >>> looks_like_index('{"weight_map": {}}'), looks_like_index('{"model_type": "llama"}')
    (True, False)
    """
    return '"weight_map"' in text and '"model_type"' not in text[:20_000]


def read_index(text: str) -> Index:
    """Read the text of a model.safetensors.index.json.

    Raises InputError, one sentence for each way it can be wrong.

    >>> read_index('{"metadata": {"total_size": 16}, "weight_map": {"lm_head.weight": "a.safetensors"}}').total_size
    16
    """
    if not isinstance(text, str) or len(text) > MAX_INDEX:
        raise InputError("index", type(text).__name__ if not isinstance(text, str) else f"{len(text)} characters", f"must be text of at most {MAX_INDEX} characters")
    if too_deep(text):
        raise InputError("index", text[:20], "is nested too deeply to be an index")
    try:
        data = json.loads(text)
    except ValueError:
        raise InputError("index", text.strip()[:20], "is not JSON") from None
    if not isinstance(data, dict) or not isinstance(data.get("weight_map"), dict) or not data["weight_map"]:
        raise InputError("index", type(data).__name__, "must be an object with a weight_map, as in a model.safetensors.index.json")
    names = data["weight_map"]
    if len(names) > MAX_TENSORS:
        raise InputError("weight_map", f"{len(names)} tensors", f"must list at most {MAX_TENSORS}")
    if not all(isinstance(file, str) for file in names.values()):
        raise InputError("weight_map", "a value", "must be the name of a file for each tensor")
    metadata = data.get("metadata")
    if metadata is None:
        metadata = {}
    if not isinstance(metadata, dict):
        raise InputError("metadata", metadata, "must be an object")
    numbers = [int(match[1]) for name in names for match in [_LAYER.search(name)] if match]
    return Index(total_size=_count(metadata.get("total_size"), "total_size"), total_parameters=_count(metadata.get("total_parameters"), "total_parameters"),
                 tensors=len(names), files=len(set(names.values())), layers=max(numbers, default=-1) + 1,
                 mtp=any(re.search(r"(^|\.)(mtp|nextn|eh_proj|enorm|hnorm)(\.|_|$)", name) for name in names),
                 scales=any(re.search(r"(scale|scale_inv|absmax|qzeros|SCB|_scales)$", name) for name in names))


def check_index(arch: Architecture, index: Index) -> dict:
    """Compare a model with an index.

    Returns {"stated_bytes", "computed_bytes", "difference", "format", "agrees", "notes"}: the size stated and the closest of the
    model's sizes (as published, BF16, FP32) [bytes], their relative difference, which format that is, and whether they are within
    0.3 % [1]; stated_bytes and what follows from it are null where the index states none.
    """
    sizes = {"published": sum(published_bytes(arch)), **{name: sum(weight_bytes(arch, catalogue()[name])) for name in ("bf16", "fp32")}}
    notes = []
    if index.mtp or index.layers > arch.layer_count:
        notes.append("The files hold multi-token-prediction layers, which are not part of the computed size.")
    if index.layers and index.layers < arch.layer_count:
        notes.append(f"The index names {index.layers} layers, the config {arch.layer_count}: they are not of the same model.")
    if index.scales and arch.quantization is None:
        notes.append("The index lists quantisation scales, yet the config has no quantization_config.")
    if index.total_size is None:
        return {"stated_bytes": None, "computed_bytes": sizes["published"], "difference": None, "format": "published", "agrees": None,
                "notes": [*notes, "The index states no total size."]}
    name = min(sizes, key=lambda key: (abs(sizes[key] - index.total_size), list(sizes).index(key)))
    difference = sizes[name] / index.total_size - 1
    if abs(difference) > 0.003 and not notes:
        notes.append("A stated size can be stale (copied from the base model) or count tied tensors twice.")
    return {"stated_bytes": index.total_size, "computed_bytes": sizes[name], "difference": difference, "format": name, "agrees": abs(difference) <= 0.003, "notes": notes}


_FORMATS = {"published": "as published", "bf16": "in BF16", "fp32": "in FP32"}


def finding(arch: Architecture, index: Index) -> dict:
    """`check_index` as one sentence for a reader.

    Returns its dict with "text": the finding, and "notes" without the remark that the finding makes already.
    """
    found = check_index(arch, index)
    stored = _FORMATS["bf16" if found["format"] == "published" and arch.quantization is None else found["format"]]
    name, size = arch.name or arch.id, format_quantity(found["computed_bytes"], "B")
    if found["stated_bytes"] is None:
        text = f"The index states no total size; it lists {index.tensors:,} tensors in {index.files:,} files, and {name} comes to {size}."
    elif found["agrees"]:
        text = f"The index states {found['stated_bytes']:,} bytes, and {name} comes to {found['computed_bytes']:,} {stored}: they agree {'to the byte' if found['difference'] == 0 else 'within ' + _percent(found['difference'])}."
    else:
        more = "more" if found["difference"] > 0 else "less"
        text = f"The index states {found['stated_bytes']:,} bytes, yet {name} comes to {found['computed_bytes']:,} {stored}, {_percent(found['difference'])} {more}."
    return found | {"text": text, "notes": [note for note in found["notes"] if note != "The index states no total size."]}


def _percent(difference: float) -> str:
    """A relative difference without its sign, with as many digits as it needs."""
    value = abs(100 * difference)
    return "0.001 %" if value < 0.001 else f"{value:.3f} %" if value < 0.1 else f"{value:.1f} %"
