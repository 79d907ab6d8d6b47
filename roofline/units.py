"""Parse and format quantities: "3.35 TB/s", "8k", "16.2 ms".

Inside the package everything is SI base units (seconds, bytes, FLOP, bytes/s, FLOP/s) as plain
numbers; this module is the only place that reads or writes prefixes. GB is 1e9; GiB is 2**30.
"""

from __future__ import annotations

import math
import re

from .errors import InputError

_DECIMAL = {"": 1, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12, "p": 1e15, "e": 1e18}
_BINARY = {"ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40, "pi": 2**50}
_SMALL = {"m": 1e-3, "u": 1e-6, "µ": 1e-6, "μ": 1e-6, "n": 1e-9, "p": 1e-12}
# What each kind of quantity may be followed by, once its prefix is taken off.
_SUFFIXES = {
    "bytes/s": ("b/s", "byte/s", "bytes/s", "bps", "b"),
    "bytes": ("b", "byte", "bytes"),
    "FLOP/s": ("flop/s", "flops", "flops/s", "op/s", "ops", "ops/s", "flop"),
    "FLOP": ("flop", "flops"),
    "FLOP/byte": ("flop/byte", "flop/b", "flops/byte"),
    "s": ("s", "sec", "second", "seconds"),
    "tokens": ("", "token", "tokens", "tok"),
    "count": ("",),
    "W": ("w", "watt", "watts"),
    "USD": ("usd", "$", "usd/h", "$/h"),
}
_NUMBER = re.compile(r"([+-]?(?:\d+(?:[_ ,]\d{3})*(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)\s*(.*)", re.DOTALL)


def parse_quantity(text, kind: str, *, field: str = "value", low: float = 0.0, high: float = 1e30, whole: bool = False):
    """Read a number with an optional SI prefix and unit into SI base units.

    Args: text: str or number; kind: one of the kinds above ("bytes/s", "tokens", "s" ...);
    low, high: the closed range allowed [in the base unit]; whole: must be an integer.
    Returns the value [base unit]; int when `whole`. Raises InputError naming `field`.

    "8k" tokens is 8,000; "8Ki" is 8,192. A unit may be left out; a wrong one is refused.

    >>> parse_quantity("3.35 TB/s", "bytes/s")
    3350000000000.0
    >>> parse_quantity("8k", "tokens", whole=True)
    8000
    >>> parse_quantity("33 ms", "s")
    0.033
    """
    if isinstance(text, bool) or text is None:
        raise InputError(field, text, "must be a number" + _of(kind))
    if isinstance(text, (int, float)):
        value = float(text) if not isinstance(text, int) else text
    else:
        text = str(text)
        match = _NUMBER.fullmatch(text.strip()) if len(text) <= 64 else None
        if not match:
            raise InputError(field, text, f"must be a number{_of(kind)}, such as {_example(kind, low, high)}")
        factor = _factor(match[2].strip(), kind)
        if factor is None:
            raise InputError(field, text, f"has a unit that is not {kind}; write it like {_example(kind, low, high)}")
        digits = re.sub(r"[_ ,]", "", match[1])
        value = int(digits) if factor == 1 and re.fullmatch(r"[+-]?\d{1,30}", digits) else float(digits) if factor == 1 else round_off(float(digits) * factor)
    if isinstance(value, float) and not math.isfinite(value):
        raise InputError(field, text, "must be finite")
    if not low <= value <= high:
        raise InputError(field, text, f"must be from {_end(low)} to {_end(high)}" + (f" {kind}" if kind != "count" else ""))
    if whole:
        if value != int(value):
            raise InputError(field, text, "must be a whole number")
        return int(value)
    return value


def _end(x: float) -> str:
    """An end of a range as a reader writes it: 1,000,000, but 1e18."""
    return f"{x:,.12g}" if abs(x) < 1e12 else f"{x:g}".replace("e+", "e")


def round_off(x: float) -> float:
    """Drop the binary dust that a prefix leaves (3.35 * 1e12 is 3350000000000.0, not ...0005)."""
    return float(f"{x:.15g}")


def _factor(unit: str, kind: str):
    """The multiplier of a prefix plus unit for this kind, or None if it is another kind's unit."""
    low = unit.lower()
    if not unit:
        return 1
    for suffix in sorted(_SUFFIXES[kind], key=len, reverse=True):
        if not low.endswith(suffix):
            continue
        prefix = unit[: len(unit) - len(suffix)].strip()
        if prefix == "":
            return 1
        if prefix.lower() in _BINARY and kind in ("bytes", "bytes/s", "tokens", "count"):
            return _BINARY[prefix.lower()]
        if kind == "s":
            return _SMALL.get(prefix) or _SMALL.get(prefix.lower())
        if prefix.lower() in _DECIMAL:
            return _DECIMAL[prefix.lower()]
    # A bare prefix ("3.35T") is welcome for the kinds that are written that way.
    return _DECIMAL.get(low) if kind != "s" and low else None


def _of(kind: str) -> str:
    return {"count": "", "s": " of seconds"}.get(kind, f" of {kind}")


def _example(kind: str, low: float, high: float) -> str:
    """What a right value looks like; a bare number is one that the range allows."""
    if kind == "count" and not low <= 8 <= high:
        return f"{(low + high) / 2:.1g}"
    return {
        "bytes/s": "3.35 TB/s", "bytes": "80 GB", "FLOP/s": "989 TFLOP/s", "FLOP": "1 TFLOP", "FLOP/byte": "295",
        "s": "33 ms", "tokens": "8k", "count": "8", "W": "700 W", "USD": "2.5",
    }[kind]


_PREFIXES = {-3: "n", -2: "µ", -1: "m", 0: "", 1: "k", 2: "M", 3: "G", 4: "T", 5: "P", 6: "E"}  # by the power of a thousand


def format_quantity(value, unit: str = "", digits: int = 3) -> str:
    """Write a value [base unit] with three significant figures, an SI prefix and a thin space.

    >>> format_quantity(3.35e12, "B/s").replace("\\u2009", " ")
    '3.35 TB/s'
    >>> format_quantity(0.0162, "s").replace("\\u2009", " ")
    '16.2 ms'
    """
    if value is None:
        return "–"
    if value == 0:
        return f"0\u2009{unit}".rstrip("\u2009")
    magnitude = _magnitude(value, digits)
    power = min(0, max(-3, magnitude // 3)) if unit == "s" else min(6, max(0, magnitude // 3))
    return f"{_grouped(value / 1000.0**power, digits, magnitude - 3 * power)}\u2009{_PREFIXES[power]}{unit}".rstrip("\u2009")


def _magnitude(value, digits: int) -> int:
    """The power of ten of a value that is not zero, once it is rounded to `digits` significant figures."""
    return int(f"{value:.{digits - 1}e}".partition("e")[2])


def _grouped(value, digits: int, magnitude: int) -> str:
    decimals = max(0, digits - 1 - magnitude)
    return f"{value:,.{decimals}f}" if decimals < 9 else f"{value:.{digits}g}"


def format_number(value, digits: int = 3) -> str:
    """Write a bare number with `digits` significant figures and grouped thousands.

    >>> format_number(1980.4)
    '1,980'
    >>> format_number(61.84)
    '61.8'
    """
    if value is None:
        return "–"
    if value == 0:
        return "0"
    return _grouped(value, digits, _magnitude(value, digits))
