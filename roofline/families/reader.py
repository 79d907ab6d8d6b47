"""Read a config.json field by field: typed, in range, and with every default listed.

A published config leaves out what equals its class's default, so each family's defaults are data
(`data/families.json`); a value taken from there is noted in `assumed`. The sizes nothing can run
without are the exception: at the top level of a config they must be written down.
"""

from __future__ import annotations

import json
from functools import lru_cache
from importlib import resources
from math import isfinite

from ..errors import InputError

LARGEST = {"layers": 10_000, "size": 1_000_000, "vocab": 100_000_000, "experts": 100_000, "context": 1_000_000_000}
_MISSING = object()
# Names that older configs use for kinds of layers.
_LEGACY_KINDS = {
    "mamba": "linear_attention",
    "attention": "full_attention",
    "deepseek_sparse_attention": "indexed_attention",
    "qwen_sparse_attention": "indexed_attention",
}


@lru_cache(maxsize=1)
def table() -> dict:
    """The data table: source; aliases {type: {spelling: own name}}; parts {type: {nested object: its type}}; defaults {type: {field: value}}."""
    return json.loads(resources.files("roofline").joinpath("data/families.json").read_text("utf-8"))


def largest(name: str) -> int:
    """The largest value a field of this name may have (a sanity limit, not a physical one)."""
    if "layer" in name and "size" not in name and "dim" not in name:
        return LARGEST["layers"]
    if "vocab" in name or "bytes" in name or "ngram" in name:
        return LARGEST["vocab"]
    if "position" in name or "window" in name or "seq_len" in name or "length" in name or "context" in name:
        return LARGEST["context"]
    if "expert" in name and "size" not in name and "dim" not in name:
        return LARGEST["experts"]
    return LARGEST["size"]


class Reader:
    """One object of a config (the whole of it, or a nested `text_config`), read as `model_type`."""

    def __init__(self, raw: dict, model_type: str, *, path: str = "", assumed: list | None = None):
        self.raw, self.type, self.path = raw, model_type, path
        self.assumed = [] if assumed is None else assumed
        self.defaults = table()["defaults"].get(model_type, {})
        # Other spellings of a field. Where a config gives two, the one that the class does not declare is set last, and counts.
        groups: dict[str, list] = {}
        for alias, own in table()["aliases"].get(model_type, {}).items():
            groups.setdefault(own, [own]).append(alias)
        self._names = {name: sorted(names, key=lambda n: n in self.defaults) for names in groups.values() for name in names}
        self._noted: set = set()

    def _given(self, name: str):
        for key in self._names.get(name, (name,)):
            if key in self.raw:
                return self.raw[key]
        return _MISSING

    def field(self, name: str) -> str:
        """The name as the user knows it, with the object it is nested in."""
        return f"{self.path}.{name}" if self.path else name

    def has(self, name: str) -> bool:
        """True if the config itself gives the field (a null counts)."""
        return self._given(name) is not _MISSING

    def get(self, name: str, fallback=_MISSING):
        """The field, else its class default (noted as assumed), else `fallback` (silent: an absent optional part)."""
        value = self._given(name)
        if value is not _MISSING:
            return value
        for key in self._names.get(name, (name,)):
            if key in self.defaults:
                value = self.defaults[key]
                if key not in self._noted:
                    self._noted.add(key)
                    if value is not None and value is not False:
                        self.assumed.append((self.field(key), value, f"default of model_type {self.type} ({table()['source']})"))
                return value
        if fallback is not _MISSING:
            return fallback
        raise InputError(self.field(name), None, f"is missing and must be given for a {self.type} model")

    def whole(self, name: str, value, low: int = 1, high: int | None = None) -> int:
        """Check that a value of a field is a whole number in range."""
        high = largest(name) if high is None else high
        if isinstance(value, float) and isfinite(value) and value == int(value):
            value = int(value)  # some tools write 4096.0
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise InputError(self.field(name), value, f"must be a whole number from {low} to {high}")
        return value

    def need(self, name: str) -> int:
        """A size nothing can run without: at the top level of a config it must be written down."""
        if not self.path and not self.has(name):
            raise InputError(
                self.field(name), None, f"is missing and must be given for a {self.type} model (no default is assumed for it)"
            )
        return self.whole(name, self.get(name), 1, None)

    def int(self, name: str, low: int = 1, high: int | None = None, fallback=_MISSING) -> int:
        """A whole number in range."""
        return self.whole(name, self.get(name, fallback), low, high)

    def opt(self, name: str, low: int = 1, high: int | None = None, fallback=None) -> int | None:
        """A whole number in range, or None where the config says null (or the field does not exist)."""
        value = self.get(name, fallback)
        return None if value is None else self.whole(name, value, low, high)

    def num(self, name: str, low: float, high: float, fallback=_MISSING) -> float:
        """A number in range."""
        value = self.get(name, fallback)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not low <= value <= high:
            raise InputError(self.field(name), value, f"must be a number from {low} to {high}")
        return value

    def flag(self, name: str, fallback=_MISSING) -> bool:
        """true or false (null counts as false)."""
        value = self.get(name, fallback)
        if value is None or isinstance(value, bool):
            return bool(value)
        if value in (0, 1) and isinstance(value, int):
            return bool(value)
        raise InputError(self.field(name), value, "must be true or false")

    def word(self, name: str, fallback=None) -> str | None:
        """A string, or None."""
        value = self.get(name, fallback)
        if value is not None and not isinstance(value, str):
            raise InputError(self.field(name), value, "must be a string")
        return value

    def items(self, name: str, length: int | None = None, fallback=None) -> list | None:
        """A list (of `length` items), or None."""
        value = self.get(name, fallback)
        if value is None:
            return None
        if not isinstance(value, (list, tuple)) or len(value) > 100_000:
            raise InputError(self.field(name), value, "must be a list")
        if length is not None and len(value) != length:
            raise InputError(self.field(name), f"has {len(value)} items", f"must have one for each of the {length} layers")
        return list(value)

    def indices(self, name: str, fallback=None) -> set:
        """A list of layer indices, as a set (empty for null)."""
        return {self.whole(name, v, -LARGEST["layers"], LARGEST["layers"]) for v in self.items(name, fallback=fallback) or ()}

    def each(self, name: str, count: int, low: int = 1) -> list:
        """A whole number per layer: the config gives one for all, or a list of `count`."""
        value = self.get(name)
        if isinstance(value, (list, tuple)):
            return [self.whole(name, v, low, None) for v in self.items(name, count)]
        return [self.whole(name, value, low, None)] * count

    def kinds(self, name: str, count: int, rule, allowed: tuple) -> list:
        """A kind of layer per layer: the list the config gives, else `rule(i)`."""
        given = self.items(name)
        if given is None:
            return [rule(i) for i in range(count)]
        given = [_LEGACY_KINDS.get(kind, kind) if isinstance(kind, str) else kind for kind in self.items(name, count)]
        for kind in given:
            if kind not in allowed:
                raise InputError(self.field(name), kind, f"must be one of {', '.join(allowed)}")
        return given

    def sub(self, name: str, model_type: str | None = None, required: bool = False) -> "Reader | None":
        """A nested object, read as its own model_type, else as `model_type`; None where it is null or absent."""
        value = self._given(name)
        if value is _MISSING or value is None:
            if required:
                raise InputError(self.field(name), None, f"is missing and must be an object in a {self.type} config")
            return None
        if not isinstance(value, dict):
            raise InputError(self.field(name), value, "must be an object")
        # A class that names the class of its part reads it as that, whatever the part says of itself.
        own = table()["parts"].get(self.type, {}).get(name) or value.get("model_type")
        kind = own if isinstance(own, str) and (own in table()["defaults"] or model_type is None) else model_type
        return Reader(value, kind or "", path=self.field(name), assumed=self.assumed)
