"""Read the numbers, units, number formats and device names that benchmark outputs print."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

NUMBER = r"[-+]?(?:\d[\d.,']*\d|\d|[.,]\d+)(?:[eE][-+]?\d+)?"
_NUMBER = re.compile(NUMBER)
_NOT_FINITE = re.compile(r"[-+]?(?:inf(?:inity)?|nan|1\.#(?:inf|ind|qnan)\w*)\b", re.I)


class Decimal(float):
    """A JSON number that remembers how it was spelled, so that a row can show the file's own text."""

    __slots__ = ("text",)

    def __new__(cls, text: str):
        self = super().__new__(cls, text)
        self.text = text
        return self


def spelled(value) -> str:
    """Return a value as the file spelled it.

    >>> spelled(Decimal("1.50")), spelled(3)
    ('1.50', '3')
    """
    return value.text if isinstance(value, Decimal) else str(value)


def decimal_mark(samples: Iterable[str]) -> str:
    """Tell from several numbers of one file whether the comma or the point is the decimal mark.

    One number that can be read only one way decides ("291,07", "1,402.11"); otherwise the point is taken,
    and commas group thousands.

    >>> decimal_mark(["291,07", "1176,84"]), decimal_mark(["1,280", "4,150,220,118"]), decimal_mark(["7.298,25"])
    (',', '.', ',')
    """
    comma = point = 0
    for text in samples:
        match = _NUMBER.search(str(text))
        if not match:
            continue
        digits = re.split(r"[eE]", match[0])[0]
        marks = re.findall(r"[.,]", digits)
        if not marks:
            continue
        groups = re.split(r"[.,]", digits.lstrip("+-"))
        one_kind = len(set(marks)) == 1
        if not one_kind:  # the last mark is the decimal one
            comma += marks[-1] == ","
            point += marks[-1] == "."
        elif len(marks) > 1:  # 70.153.820: the repeated mark groups
            comma += marks[0] == "."
            point += marks[0] == ","
        elif len(groups[-1]) != 3 or not 1 <= len(groups[0]) <= 3 or groups[0] == "0" or "e" in match[0].lower():
            comma += marks[0] == ","
            point += marks[0] == "."
    return "," if comma > point else "."


def number(text, mark: str = ".") -> float | None:
    """Read one number with thousands marks and a known decimal mark; None if it is not one number.

    "inf" and "nan" come back as such, so that the caller can say what it dropped.

    >>> number("10,866.10"), number("7.298,25", ","), number("1'024"), number("N/A")
    (10866.1, 7298.25, 1024.0, None)
    """
    if isinstance(text, bool) or text is None:
        return None
    if isinstance(text, (int, float)):
        try:
            return float(text)
        except OverflowError:
            return math.inf
    text = str(text).strip().strip("\"'`*").strip().rstrip("%").strip()
    if len(text) > 400:
        return None
    if _NOT_FINITE.fullmatch(text):
        low = text.lower().lstrip("+")
        return math.nan if "n" == low.lstrip("-")[:1] or "nd" in low or "qnan" in low else (-math.inf if low[0] == "-" else math.inf)
    if not _NUMBER.fullmatch(text):
        return None
    mantissa, _, power = text.lower().partition("e")
    group = "." if mark == "," else ","
    whole, _, part = mantissa.replace("'", "").partition(mark)
    pieces = whole.lstrip("+-").split(group)
    if group in part or mark in part:
        return None
    if len(pieces) > 1:
        indian = all(len(p) in (2, 3) for p in pieces[1:]) and len(pieces[-1]) == 3
        if not indian or not 1 <= len(pieces[0]) <= 3:
            # One mark that cannot group is a decimal mark after all ("0.05" in a file of "1.234,5").
            if len(pieces) == 2 and not part:
                return number(text, group)
            return None
    try:
        return float(whole.replace(group, "") + "." + (part or "0") + ("e" + power if power else ""))
    except ValueError:
        return None


def whole(text, mark: str = ".") -> int | None:
    """Read a whole number, or None.

    >>> whole("4,096"), whole("**6 (Default)**"), whole("auto")
    (4096, 6, None)
    """
    if isinstance(text, str):
        match = re.match(r"\W*?(-?\d[\d.,']*)(?:\s*\(.*\))?\W*$", text.strip())
        if not match:
            return None
        text = match[1].rstrip(".,")
    value = number(text, mark)
    if value is None or not abs(value) < 1e18 or value != int(value):  # beyond that no tool counts, and arithmetic overflows
        return None
    return int(value)


# Seconds, bytes and counts that one unit stands for. Nsight Compute's Kbyte is 1,000 bytes.
SECONDS = {
    **dict.fromkeys(("ns", "nsecond", "nsec", "nanosecond", "nanoseconds"), 1e-9),
    **dict.fromkeys(("us", "µs", "μs", "usecond", "usec", "microsecond", "microseconds"), 1e-6),
    **dict.fromkeys(("ms", "msecond", "msec", "millisecond", "milliseconds", "millis"), 1e-3),
    **dict.fromkeys(("s", "second", "seconds", "sec", "secs"), 1.0),
    **dict.fromkeys(("min", "mins", "minute", "minutes", "m"), 60.0),
    "h": 3600.0,
    "hr": 3600.0,
}
BYTES = {"b": 1, "byte": 1, "bytes": 1}
for _prefix, _power in (("k", 1), ("m", 2), ("g", 3), ("t", 4)):
    for _word in ("b", "byte", "bytes"):
        BYTES[_prefix + _word] = 1000**_power
    for _word in ("ib", "ibyte", "ibytes"):
        BYTES[_prefix + _word] = 1024**_power
COUNTS = {"": 1, "k": 1e3, "m": 1e6, "g": 1e9, "b": 1e9, "t": 1e12}


def seconds(text: str) -> float | None:
    """Read a duration with its unit, also Go's mixed form.

    >>> seconds("207.911ms"), seconds("1m5.5s"), seconds("5")
    (0.207911, 65.5, None)
    """
    text = str(text).strip()
    parts = re.findall(r"(\d+(?:[.,]\d+)?)\s*([a-zµμ]+)", text)
    if not parts or len(text) > 60 or re.sub(r"(\d+(?:[.,]\d+)?)\s*([a-zµμ]+)\s*", "", text):
        return None
    total = 0.0
    for digits, unit in parts:
        if unit not in SECONDS:
            return None
        total += float(digits.replace(",", ".")) * SECONDS[unit]
    return float(f"{total:.12g}")


def rounded(value: float) -> float:
    """Round a derived rate to the two decimals that its inputs support (four figures below 1).

    >>> rounded(3009.0668), rounded(0.123456)
    (3009.07, 0.1235)
    """
    return round(value, 2) if abs(value) >= 1 else float(f"{value:.4g}")


def clean_scale(value: float) -> float:
    """Drop the binary dust that a unit change leaves (0.05 s is 50.0 ms).

    >>> clean_scale(0.05 * 1000)
    50.0
    """
    return float(f"{value:.15g}")


_FTYPE = re.compile(
    r"\s+(?:mostly\s+|all\s+|\(?guessed\)?\s+)?((?:I?Q|TQ|BF|F|FP|MXFP|NVFP|INT)\d{1,2}(?:_[A-Z0-9]+)*)"
    r"(?:\s+mix)?(?:\s+-\s+(Small|Medium|Large)|\s+MoE)?(?:\s+-\s+[\d.]+\s*bpw(?:\s+ternary)?)?(?:\s*\(guessed\))?\s*$"
)


def split_model_type(text: str) -> tuple[str, str | None]:
    """Split llama.cpp's model type into model and number format.

    >>> split_model_type("qwen3moe 30B.A3B Q4_K - Medium")
    ('qwen3moe 30B.A3B', 'Q4_K_M')
    >>> split_model_type("gemma4 ?B IQ4_NL - 4.5 bpw"), split_model_type("llama 7B mostly F16")
    (('gemma4 ?B', 'IQ4_NL'), ('llama 7B', 'F16'))
    """
    text = " ".join(str(text).split())[:300]
    match = _FTYPE.search(text)
    if not match:
        return text, None
    quant = match[1] + (f"_{match[2][0]}" if match[2] else "")
    return text[: match.start()].strip(), quant


_QUANT_IN_NAME = (
    (r"(?<![a-z0-9])(i?q[2-8]_(?:k_[smlx]{1,2}|k|[01]|xxs|xs|[sm]|nl)(?:_[a-z]{1,2})?)(?![a-z0-9])", lambda m: m[1].upper()),
    (r"(?<![a-z0-9])(q[0-9]f(?:16|32)(?:_[0-9a-z]+)?)(?![a-z0-9])", lambda m: m[1]),
    (r"(?<![a-z0-9])(\d(?:\.\d+)?)[-_ ]?bpw(?![a-z0-9])", lambda m: f"{m[1]}bpw"),
    (
        r"(?<![a-z0-9])(nvfp4|mxfp4|mxfp8|nf4|fp8|fp4|int8|int4|w4a16|w8a8|w8a16|w4a8|awq|gptq|bnb|hqq|aqlm)(?![a-z0-9])",
        lambda m: m[1].upper(),
    ),
    (r"(?<![a-z0-9])([2-8])-?bit(?![a-z0-9])", lambda m: f"{m[1]}bit"),
    (r"(?<![a-z0-9])(bf16|fp16|f16)(?![a-z0-9])", lambda m: m[1].upper()),
)


def quant_in_name(name: str) -> str | None:
    """Find a number format that a model's own name states ("...-4bit", "...:8b-instruct-q8_0"), or None.

    >>> quant_in_name("llama3.1:8b-instruct-q8_0"), quant_in_name("Qwen/Qwen3-8B"), quant_in_name("x/Llama-3.1-8B-exl2-4.0bpw")
    ('Q8_0', None, 'EXL2 4.0bpw')
    """
    low = str(name).lower()[:300]
    for pattern, spell in _QUANT_IN_NAME:
        if match := re.search(pattern, low):
            found = spell(match)
            exl = re.search(r"exl[23]", low)
            return f"{exl[0].upper()} {found}" if exl and found.endswith("bpw") else found
    return None


def several(names: list[str]) -> str | None:
    """Name a set of devices: one name, "2x NAME" for equal ones, "A + B" for different ones.

    >>> several(["A", "A"]), several(["A", "B"]), several([])
    ('2x A', 'A + B', None)
    """
    names = [n for n in names if n]
    if not names:
        return None
    kinds = dict.fromkeys(names)
    return " + ".join(f"{names.count(k)}x {k}" if names.count(k) > 1 else k for k in kinds)
