"""The models that come with the package, and reading a config.json safely.

`data/models.json` holds the published figures that shape each model (not the files themselves), with
the source and grade of every entry.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources

from . import families
from .errors import InputError, nearest
from .model import Architecture, kv_bytes_per_token, parameters
from .nesting import too_deep

_JSON_WORDS = {type(None): "null", bool: "a truth value", int: "a number", float: "a number", str: "a text", list: "a list"}
MAX_GGUF = 24_000_000  # bytes: the first part of a .gguf file that is read; its header is 1 to 20 MB
MAX_CONFIG = 8_000_000  # bytes: the largest config.json that is read; some list every unquantised module (2.8 MB seen)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One catalogue model: its short id, its name, its hub id, where its figures come from and how well they are known."""

    id: str
    name: str
    hub: str
    source: str
    provenance: str


# The grade of an entry by how its config was come by, on the scale of the chips' figures (data/hardware.toml).
GRADES = {"verbatim": "B", "verbatim-embedded": "B", "verbatim-transcribed": "B", "converted": "C", "library-default": "C", "partial-transcribed": "C", "recalled": "D"}


@lru_cache(maxsize=1)
def _file() -> tuple:
    """({id: entry}, the day the file's sources were read)."""
    found = json.loads(resources.files("roofline").joinpath("data/models.json").read_text("utf-8"))
    return {row["id"]: row for row in found["models"]}, found["retrieved"]


def _data() -> dict:
    return _file()[0]


def grade(id: str) -> tuple:
    """(grade, day its source was read) of a catalogue model; two empty texts for any other.

    B: the vendor's own config, as a package or repository keeps it; C: converted, a library's default, or in part; D: recalled.

    >>> grade("llama-3.1-8b")[0], grade("pasted config")
    ('B', ('', ''))
    """
    row = _data().get(id)
    return ("", "") if row is None else (GRADES[row["provenance"]], _file()[1])


def _key(text: str) -> str:
    """A name without case, organisation and spaces."""
    return re.sub(r"[\s_]+", "-", text.strip().lower().rsplit("/", 1)[-1])


def _bare(key: str) -> str:
    """A key without the parts that do not change a model's shape (-hf, -instruct, -chat ...)."""
    return re.sub(r"^meta-|-(hf|instruct|it|chat|base|pt|bf16|fp16|v0\.1|2407|2501|preview)(?=-|$)", "", key)


@lru_cache(maxsize=1)
def _names() -> dict:
    """Every spelling that finds an entry -> its id; exact spellings win over bare ones."""
    found: dict[str, str] = {}
    rows = list(_data().values())
    for spell in (
        lambda r: [r["id"]],
        lambda r: [r["hub"].lower(), _key(r["hub"])],
        lambda r: [spelling for a in r.get("aliases", ()) for spelling in (a.lower(), _key(a))],
        lambda r: [_bare(r["id"]), _bare(_key(r["hub"]))],
    ):
        for row in rows:
            for name in spell(row):
                found.setdefault(name, row["id"])
    return found


def entries() -> tuple:
    """Every catalogue model, in the order of the data file.

    >>> any(e.id == "llama-3.1-8b" for e in entries())
    True
    """
    return tuple(Entry(**{k: row[k] for k in ("id", "name", "hub", "source", "provenance")}) for row in _data().values())


def find(text: str) -> str:
    """The catalogue id a name means; raises InputError with the closest one.

    >>> find("meta-llama/Llama-3.1-8B-Instruct")
    'llama-3.1-8b'
    """
    names = _names()
    for key in (text.strip().lower(), _key(text), _bare(_key(text))):
        if key in names:
            return names[key]
    raise InputError("model", text, f"is not in the catalogue{nearest(_key(text), names)}; a config.json can be read instead")


def config_of(id: str) -> dict:
    """The published figures of a catalogue model, as its config.json would give them (a copy)."""
    return json.loads(json.dumps(_data()[find(id)]["config"]))


@lru_cache(maxsize=256)
def _load(id: str) -> Architecture:
    row = _data()[id]
    return families.from_hf_config(row["config"], id=id, name=row["name"], source=row["source"])


@lru_cache(maxsize=64)
def _load_file(path: str, stamp: tuple) -> Architecture:
    if path.endswith(".gguf"):
        from .gguf_config import architecture  # read only when asked for

        with open(path, "rb") as file:
            return architecture(file.read(MAX_GGUF), id=os.path.basename(path)[:120])
    with open(path, encoding="utf-8", errors="replace") as file:
        return families.from_hf_config(read_config_text(file.read(MAX_CONFIG + 1)), id=os.path.basename(path)[:120])


def is_path(text: str) -> bool:
    """True if a model argument means a file: it ends in .json or .gguf, or exists on disk."""
    return text.endswith((".json", ".gguf")) or os.path.exists(text)


def load(text: str) -> Architecture:
    """A model by catalogue id, hub id (any case) or path to a config.json.

    >>> load("Llama-3.1-8B").hidden
    4096
    """
    if not isinstance(text, str) or not text.strip():
        raise InputError("model", text, "must be a catalogue id, a hub id or a path to a config.json")
    if is_path(text):
        try:
            status = os.stat(text)
        except (OSError, ValueError):
            raise InputError("model", text, "is not a file that can be read") from None
        if not os.path.isfile(text):
            raise InputError("model", text, "is not a file")
        return _load_file(text, (status.st_mtime_ns, status.st_size))
    return _load(find(text))


@lru_cache(maxsize=512)
def summary(id: str) -> dict:
    """The figures a list of models shows: total, language and active parameters, KV bytes per token (BF16), family."""
    arch = _load(find(id))
    counts = parameters(arch)
    return {
        "id": arch.id,
        "family": arch.family,
        "total": counts["total"],
        "language": counts["language"],
        "active": counts["active"],
        "kv_bytes_per_token": kv_bytes_per_token(arch),
        "layers": arch.layer_count,
        "hidden": arch.hidden,
        "max_context": arch.max_context,
    }


def read_config_text(text: str) -> dict:
    """Parse the text of a config.json: one object, at most 1 MB, not nested beyond reason.

    Raises InputError, one sentence for each way it can be wrong. NaN and Infinity are accepted by the parser (real files
    hold them in fields that do not matter here) and refused where a field that matters has them.

    >>> read_config_text('{"model_type": "llama"}')
    {'model_type': 'llama'}
    """
    if len(text) > MAX_CONFIG:
        raise InputError("config", f"{len(text)} characters", f"must be at most {MAX_CONFIG} characters long")
    if not text.strip():
        raise InputError("config", "''", "is empty; it must be the text of a config.json")
    text = text.removeprefix("\ufeff")
    if too_deep(text):
        raise InputError("config", text[:20], "is nested too deeply to be a config.json")
    try:
        value = json.loads(text)
    except ValueError as error:
        where = f" (line {error.lineno}, column {error.colno}: {error.msg})" if isinstance(error, json.JSONDecodeError) else " that can be read: a number in it has thousands of digits"
        raise InputError("config", text.strip()[:20], f"is not JSON{where}") from None
    if not isinstance(value, dict):
        raise InputError("config", _JSON_WORDS[type(value)], "must be one JSON object, as in a config.json")
    return value
