"""Find JSON in text: whole files, JSON lines, values between log lines, files cut off, Python's NaN and dicts."""

from __future__ import annotations

import ast
import json
import math
import re
import warnings
from dataclasses import dataclass

from ..errors import InputError
from ..nesting import opens_deep, too_deep
from .values import Decimal

_DEEP = (re.compile(r"[\[{](?:\s*[\[{]){149}"), re.compile(r"\{\s*\"[^\"]{0,80}\"\s*:\s*(?:\{\s*\"[^\"]{0,80}\"\s*:\s*){99}"))
_STARTS_AS_JSON = re.compile(r"\ufeff?\s*[\[{]\s*[\"{\[]")
_LONG_NUMBER = re.compile(r"\d{400}")
MAX_VALUES = 50_000
LEVELS = 150


@dataclass
class Json:
    """The values found, in order, and whether the text breaks off inside one."""

    values: list
    damaged: bool = False


def guard(text: str, name: str) -> None:
    """Refuse nesting and numbers that only a hostile file holds. Raises InputError."""
    # Log lines may leave brackets open (colours, progress bars), so depth is counted only where the text is JSON from its start.
    if any(pattern.search(text) for pattern in _DEEP) or _STARTS_AS_JSON.match(text) and too_deep(text, LEVELS):
        raise InputError("file", name, "nests deeper than the limit of 150 levels; give the benchmark's own output")
    if _LONG_NUMBER.search(text):
        raise InputError("file", name, "holds a number longer than the limit of 400 digits; give the benchmark's own output")


def _load(text: str, exact: bool):
    return json.loads(text, parse_float=Decimal if exact else float)


def find(text: str, name: str = "input") -> Json:
    """Return every JSON object or list that stands in the text.

    >>> find('noise\\n{"a": 1.50}\\n{"a": NaN}').values
    [{'a': 1.5}, {'a': nan}]
    >>> find('[{"a": 1}, {"a": 2}, {"a"').values, find('[{"a": 1}, {"a": 2}, {"a"').damaged
    ([{'a': 1}, {'a': 2}], True)
    """
    if "{" not in text and "[" not in text or text.lstrip()[:1] not in ("{", "[") and not re.search(r"[\[{]\s*[\"{\[']", text):
        return Json([])
    exact = "traceEvents" not in text  # a trace has millions of numbers and needs no spelling
    body = text.strip().lstrip("\ufeff")
    try:
        if body[:1] in "{[":
            value = _load(body.rstrip(";,"), exact)
            return Json(_flat(value))
    except RecursionError:
        raise InputError("file", name, "nests too deep to read; give the benchmark's own output") from None
    except ValueError:
        pass
    lines = [line.strip().rstrip(",") for line in body.split("\n")]
    starts = [line for line in lines if line[:1] == "{"]
    if starts and sum(1 for line in starts if line[-1:] == "}") * 2 >= len([x for x in lines if x]):
        found = _json_lines(lines, exact)
        if found.values:
            return found
    return _scan(body, exact, name)


def _flat(value) -> list:
    """A list of records counts as its records."""
    if isinstance(value, list):
        return [v for v in value if isinstance(v, (dict, list))][:MAX_VALUES] if any(isinstance(v, dict) for v in value) else [value]
    return [value]


def _json_lines(lines: list[str], exact: bool) -> Json:
    found, damaged, seen = [], False, set()
    for line in lines:
        if line[:1] not in "{[" or line in seen:
            continue
        seen.add(line)
        if too_deep(line, LEVELS):
            damaged = True
            continue
        try:
            found.extend(_flat(_load(line, exact)))
        except (ValueError, RecursionError):
            damaged = True
        if len(found) > MAX_VALUES:
            break
    return Json(found, damaged)


def _scan(body: str, exact: bool, name: str) -> Json:
    """Decode values one after another where an opening bracket starts a line or follows a label."""
    decoder = json.JSONDecoder(parse_float=Decimal if exact else float)
    found: list = []
    damaged = False
    deep = too_deep(body, LEVELS)  # or log lines leave brackets open; only then each value is looked at
    at = tries = 0
    opening = re.compile(r"[\[{](?=\s*[\"{\[\]}'\d-])")
    while len(found) < MAX_VALUES and tries < 60:
        match = opening.search(body, at)
        if not match:
            break
        start = match.start()
        if deep and opens_deep(body, start, LEVELS):
            raise InputError("file", name, f"nests deeper than the limit of {LEVELS} levels; give the benchmark's own output")
        try:
            value, at = decoder.raw_decode(body, start)
            if isinstance(value, (dict, list)) and value and not (isinstance(value, list) and not any(isinstance(v, dict) for v in value)):
                found.extend(_flat(value))
            continue
        except (ValueError, RecursionError):
            tries += 1
        end = body.find("\n", start)
        line = body[start : end if end > 0 else None].strip().rstrip(",")
        if "'" in line and line[-1:] in "}]" and len(line) < 20_000 and (value := _python_literal(line)) is not None:
            found.extend(_flat(value))
            at = start + len(line)
            continue
        cleaned = re.sub(r",\s*([}\]])", r"\1", body[start:]) if tries == 1 and len(body) < 2_000_000 else ""
        if cleaned and cleaned != body[start:]:  # a comma before a closing bracket, as people leave when they trim by hand
            try:
                found.extend(_flat(decoder.raw_decode(cleaned)[0]))
                return Json(found, damaged)
            except (ValueError, RecursionError):
                pass
        damaged = damaged or bool(re.match(r"[\[{]\s*[\"{]", body[start : start + 40]))
        at = start + 1
    return Json(found, damaged)


def _python_literal(line: str):
    """A dict printed by Python (single quotes, None, inf), or None if it is not one."""
    if not line.startswith("{") or line.count("{") + line.count("[") + line.count("(") > 200:
        return None
    line = re.sub(r"(?<=[:,\[ ])(?:inf|nan)(?=[,}\] ])", "None", line)
    try:
        with warnings.catch_warnings():  # Python warns of numbers glued to words, which any text may hold
            warnings.simplefilter("ignore")
            value = ast.literal_eval(line)
    except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
        return None
    return value if isinstance(value, dict) else None


def walk(value, path: tuple[str, ...] = (), depth: int = 0):
    """Yield (path, leaf) for the numbers, texts and booleans inside a JSON value, twelve levels deep at most.

    >>> list(walk({"a": {"b": 1, "c": [2]}}))
    [(('a', 'b'), 1), (('a', 'c', '0'), 2)]
    """
    if depth > 12:
        return
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from walk(inner, (*path, str(key)), depth + 1)
    elif isinstance(value, list):
        for i, inner in enumerate(value[:64]):
            yield from walk(inner, (*path, str(i)), depth + 1)
    else:
        yield path, value


def text_of(record: dict, *keys: str) -> str | None:
    """The first of these keys that holds a non-empty text.

    >>> text_of({"model": "", "model_id": "x"}, "model", "model_id")
    'x'
    """
    for key in keys:
        value = record.get(key)
        if isinstance(value, str) and value.strip() and value.strip().lower() not in ("none", "null", "n/a", "unknown"):
            return " ".join(value.split())[:200]
    return None


def number_of(record: dict, *keys: str):
    """The first of these keys that holds a number (not a truth value), spelled as in the file.

    >>> number_of({"a": True, "b": 2}, "a", "b")
    2
    """
    for key in keys:
        value = record.get(key)
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return value if isinstance(value, float) or abs(value) < 10**300 else math.inf
    return None
