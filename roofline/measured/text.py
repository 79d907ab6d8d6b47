"""Turn the bytes of any pasted or saved benchmark output into clean lines of text.

Real files come from colour terminals, Windows consoles, e-mail quotes, web pages and container logs.
Everything here undoes that dressing; nothing here knows what a benchmark is.
"""

from __future__ import annotations

import html
import os.path
import re
import zlib
from itertools import pairwise

from ..errors import InputError

MAX_BYTES = 16 * 2**20
MAX_LINE = 20_000  # characters kept of a line when it is read as console text; JSON keeps whole lines
MAX_RAW_LINE = 100_000
_BINARY = {
    b"%PDF": "a PDF",
    b"\x89PNG": "a PNG image",
    b"\xff\xd8\xff": "a JPEG image",
    b"PK\x03\x04": "a zip archive",
    b"SQLite format 3": "an SQLite database (export it first: `nsys stats --format csv`, or `sqlite3 FILE .dump`)",
    b"GGUF": "a GGUF model file",
    b"\x7fELF": "a program",
    b"MZ": "a program",
    b"NVR": "a binary profiler report (export it as CSV)",
    b"7z\xbc\xaf": "a 7z archive",
    b"\x28\xb5\x2f\xfd": "a zstd archive",
    b"BZh": "a bzip2 archive",
    b"GIF8": "a GIF image",
}


def decode(data: bytes, name: str) -> str:
    """Return the text of `data`, whatever its encoding: BOMs, UTF-16 without one, UTF-8, or a Windows code page.

    Args: data: the file [bytes]; name: shown in the error. Raises InputError for archives, images, programs,
    files over 16 MB and other data that is not text. A gzip file is unpacked, up to the same 16 MB.

    >>> decode("a ± b".encode("utf-16"), "x"), decode(b"1 \\xb1 2", "x")
    ('a ± b', '1 ± 2')
    """
    if len(data) > MAX_BYTES:
        raise InputError("file", name, f"holds {len(data) / 2**20:.1f} MiB and the limit is 16 MiB; cut it to the result lines")
    if data[:2] == b"\x1f\x8b":
        data = _gunzip(data, name)
    for magic, kind in _BINARY.items():
        if data.startswith(magic):
            raise InputError("file", name, f"is {kind}, not text; give the benchmark's text, CSV or JSON output")
    if not data.strip(b"\x00\r\n\t \xef\xbb\xbf\xff\xfe"):
        raise InputError("file", name, "is empty; give the benchmark's output")
    text = _decoded(data)
    head = text[:20_000]
    odd = sum(1 for c in head if c < " " and c not in "\n\r\t\x1b\x08\x0c\x07\x00\x1a")
    if odd > max(4, len(head) // 20) or head.count("\x00") > max(4, len(head) // 20):
        raise InputError("file", name, "is binary data, not text; give the benchmark's text, CSV or JSON output")
    return text.replace("\x00", "").lstrip("\ufeff")


def _gunzip(data: bytes, name: str) -> bytes:
    try:
        unpacker = zlib.decompressobj(31)
        out = unpacker.decompress(data, MAX_BYTES + 1)
    except zlib.error:
        raise InputError("file", name, "is a damaged gzip file; unpack it first") from None
    if len(out) > MAX_BYTES:
        raise InputError("file", name, "unpacks to more than the limit of 16 MiB; cut it to the result lines")
    return out


def _decoded(data: bytes) -> str:
    for bom, codec in (
        (b"\xff\xfe\x00\x00", "utf-32-le"),
        (b"\x00\x00\xfe\xff", "utf-32-be"),
        (b"\xef\xbb\xbf", "utf-8"),
        (b"\xff\xfe", "utf-16-le"),
        (b"\xfe\xff", "utf-16-be"),
    ):
        if data.startswith(bom):
            return data[len(bom) :].decode(codec, "replace")
    head = data[:4096]
    if len(head) > 3 and head.count(0) > len(head) // 4:  # UTF-16 whose BOM was cut off
        odd, even = head[1::2].count(0), head[0::2].count(0)
        if min(odd, even) * 4 < max(odd, even):
            return data.decode("utf-16-le" if odd > even else "utf-16-be", "replace")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        # A few broken bytes in otherwise valid UTF-8 (a file cut inside a character, two logs joined) stay UTF-8.
        good = data.count(b"\xc2\xb1") + data.count(b"\xe2")
        if good > 1 or error.reason.startswith("unexpected end"):
            return data.decode("utf-8", "replace")
    text = data.decode("cp1252", "replace")
    # The DOS code pages 437 and 850 put the plus-minus sign where cp1252 has n-tilde.
    return re.sub(r"(?<=\d )ñ(?= ?\d)", "±", text)


_PLUS_MINUS = re.compile(r"(?<=\d) ?(?:Â±|Ã‚Â±|┬▒|¬±|卤|ﾂｱ|\\u00b1|\\xb1|\$?\\pm\$?|\+/-|\+-|\?|�{1,3}|&plusmn;)(?= *\d)")
_ANSI = re.compile(
    r"(?:\x1b|\\x1b|\\u001b|\\033|\^\[|\\e(?=\[))(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]{0,300}(?:\x07|\x1b\\)|[()][AB012]|[=>78MDEHc])"
)
_ANSI_BARE = re.compile(r"\[(?:\d{1,3}(?:;\d{1,3}){0,4})?m|\[[0-2]?K")  # the escape character itself was lost
_TAG_BLOCK = re.compile(r"<(?:script|style)\b[^>]{0,500}>.{0,200000}?</(?:script|style)>", re.S | re.I)
_SPACES = {c: " " for c in map(ord, "\u00a0\u2007\u2008\u2009\u200a\u202f\u205f\u3000\u2002\u2003")}
_PLAIN = {
    **_SPACES,
    **{c: None for c in map(ord, "\u200b\u200c\u200d\u200e\u200f\u2060\u2066\u2067\u2068\u2069\ufeff\x08\x07\x1a")},
    **{ord(a): b for a, b in zip("−–—‒｜：（）％＋＝／", "----|:()%+=/", strict=False)},
    0x2502: "|",
    0x2503: "|",
    0x2551: "|",
    0x2506: "|",
    0x250A: "|",
}
_BOX_RULE = re.compile(r"[\u2500-\u257f]{3,}")


def plain(text: str) -> str:
    """Undo mojibake, ANSI colours, carriage returns, HTML and odd spaces; lines and their order stay.

    >>> plain("\\x1b[1m5.0 Â± 0.1\\x1b[0m\\r\\n")
    '5.0 ± 0.1\\n'
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\x0b", "\n")
    if "\x1b" in text or "[0m" in text or "\\x1b" in text or "\\u001b" in text or "\\033" in text or "^[" in text:
        text = _ANSI_BARE.sub("", _ANSI.sub("", text))
    if "â" in text and ("â”" in text or "â•" in text or "â–" in text):
        text = "\n".join(_unmojibake(line) for line in text.split("\n"))
    if re.search(r"<(?:t[drh]|table|pre|br|p|code|div|span)\b", text, re.I):
        text = _strip_html(text)
    elif "&" in text and re.search(r"&(?:#\d+|#x[0-9a-f]+|nbsp|plusmn|lt|gt|amp|quot|pipe|vert);", text, re.I):
        text = html.unescape(text)
    # A no-break or thin space between digits groups thousands; it must not split the number.
    text = re.sub(r"(?<=\d)[\u00a0\u2009\u202f](?=\d{3}(?!\d))", "", text)
    if not text.isascii():
        text = _BOX_RULE.sub(lambda m: "-" * len(m[0]), text.translate(_PLAIN))
    return _PLUS_MINUS.sub(" ±", text)


def _unmojibake(line: str) -> str:
    try:
        return line.encode("cp1252").decode("utf-8")
    except UnicodeError:
        return line


def _strip_html(text: str) -> str:
    """Tables become rows with pipes; a form feed after each table keeps rows outside it from joining it."""
    text = _TAG_BLOCK.sub("", text)
    if re.search(r"<t[dh]\b", text, re.I):
        text = re.sub(r"\s*\n\s*(?=<)|(?<=>)\s*\n\s*(?=<)", "", text)
        text = re.sub(r"<t[dh]\b[^>]{0,500}>\s*", "| ", text, flags=re.I)
        text = re.sub(r"\s*</t[dh]>", " ", text, flags=re.I)
        text = re.sub(r"</tr>", "|\n", re.sub(r"<tr\b[^>]{0,500}>", "\n", text, flags=re.I), flags=re.I)
        text = re.sub(r"</?table\b[^>]{0,500}>", "\n\f\n", text, flags=re.I)
    text = re.sub(r"<(?:br|/p|/div|/pre|/li|/h\d|pre)\b[^>]{0,500}>", "\n", text, flags=re.I)
    text = re.sub(
        r"</?(?:a|b|i|p|em|strong|code|pre|span|div|th?|tbody|thead|tr|td|body|html|head|ul|li|details|summary|sup|sub|h\d|font|meta|"
        r"title)\b[^>]{0,500}>",
        "",
        text,
        flags=re.I,
    )
    return html.unescape(text)


_QUOTE = re.compile(r"[ \t]*(?:>[ \t]?)+")
_STAMPS = re.compile(
    r"^\s*(?:\[?\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?\]?(?:[ \t]|$)"  # ISO time
    r"|\d+\.\d\d\.\d{3}\.\d{3} [DIWE] "  # llama.cpp's own
    r"|\w{3} [ \d]\d \d\d:\d\d:\d\d [\w.-]+ [\w./-]+(?:\[\d+\])?: "  # journald
    r"|\([\w ]{1,40}pid=\d+\)\s?)"
)
_COMPOSE = re.compile(r"\s*[A-Za-z][\w.-]{0,60}?[-_.]\d{1,3}\s*\| ?")  # `vllm-1  | ` of docker compose


MAX_REPEATS = 40
MAX_LINES = 40_000  # from the start of the text, and half as many from its end, where results stand
_LONG_RUN = re.compile(r"([^\w])\1{299,}")


def collapse(text: str) -> tuple[str, dict[str, int]]:
    """Keep at most forty copies of a line and 60,000 lines, and say how often each line that was cut stood in the text.

    >>> text, counts = collapse("a\\n" * 100)
    >>> len(text.split()), counts
    (40, {'a': 100})
    """
    lines = text.split("\n")
    if len(lines) <= MAX_REPEATS and len(text) < MAX_RAW_LINE:
        return text, {}
    seen: dict[str, int] = {}
    kept = []
    for line in lines:
        n = seen[line] = seen.get(line, 0) + 1
        if n <= MAX_REPEATS:
            kept.append(line if len(line) <= MAX_RAW_LINE else line[:MAX_RAW_LINE])
    if len(kept) > MAX_LINES * 3 // 2:
        kept = kept[:MAX_LINES] + kept[-MAX_LINES // 2 :]
    return "\n".join(kept), {line: n for line, n in seen.items() if n > MAX_REPEATS and line.strip()}


_TAIL = re.compile(r"(?<![\d.,])\d[\d,]*(?:\.(\d*))?$")


def cut_tail(text: str) -> str | None:
    """The last line of a text that ends inside it: no line end, and a number with fewer decimals than such lines have here; else None.

    >>> cut_tail("a: 1.25\\nb: 2.50\\nc: 3.2"), cut_tail("a: 1.25\\nb: 2.50\\nc: 3.21")
    ('c: 3.2', None)
    """
    lines = text[-20_000:].split("\n")
    last = _TAIL.search(lines[-1])
    if not last or len(lines) < 3:
        return None
    peers = [len(m[1]) for line in lines[-200:-1] if (m := _TAIL.search(line.rstrip())) and m[1]]
    usual = max(set(peers), key=peers.count) if len(peers) > 1 else 0
    return lines[-1] if len(last[1] or "") < usual else None


def lines_of(text: str) -> list[str]:
    """Split cleaned text into lines without quote marks, log stamps and container prefixes; runs of blank lines shrink.

    >>> lines_of("> > a: 1\\n2025-01-01T10:00:00Z b: 2\\n")
    ['a: 1', 'b: 2', '']
    """
    raw = [
        line if len(line) < 1000 else _LONG_RUN.sub(lambda m: m[1] * 300, line)[:MAX_LINE]
        for line in re.sub(r"\n{3,}", "\n\n", text).split("\n")
    ]
    if any(">" in line[:12] for line in raw):
        raw = [_QUOTE.sub("", line, count=1) if ">" in line[:12] else line for line in raw]
    heads = [m[0].split("|")[0].strip() for line in raw[:400] if (m := _COMPOSE.match(line))]
    filled = sum(1 for line in raw[:400] if line.strip())
    if len(heads) > 3 and len(set(heads)) <= 3 and len(heads) * 10 >= 8 * filled or len(set(heads)) == 1 and len(heads) == filled > 1:
        raw = [_COMPOSE.sub("", line, count=1) for line in raw]
    out, seen = [], {}
    for line in raw:  # the same line may come 100,000 times in a hostile file: clean it once
        clean = seen.get(line)
        if clean is None:
            clean = _STAMPS.sub("", line, count=1)
            seen[line] = clean = clean if "\f" in clean else clean.rstrip()
        out.append(clean)
    return _single_spaced(_dedented(_unprefixed(_unprefixed(out))))


# What loggers, launchers and viewers put before each line of another program's output.
_PREFIXES = (
    re.compile(r"\s*(?:\d{4}[-/]\d\d[-/]\d\d[T ])?\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?(?: |$)"),  # a time
    re.compile(r"\[\d\d:\d\d:\d\d(?:\.\d+)?\](?: |$)"),
    re.compile(r"(?:INFO|WARNING) \d\d-\d\d \d\d:\d\d:\d\d (?:\[[\w.]{1,60}:\d+\]|[\w.]{1,60}:\d+\])(?: |$)"),  # vLLM's own
    re.compile(r"(?:- )?(?:\[ ?)?(?:INFO|DEBUG|WARNING|WARN|NOTICE)(?: ?\])?(?:\s*:[\w.]{0,60}:|\s*[-|](?:\s|$))?(?: |$)?"),  # a level
    re.compile(r"(?:stdout|stderr) [FP](?: |$)"),  # Kubernetes
    re.compile(r"\[\d+,\d+\]<std(?:out|err)>:(?: |$)?"),  # mpirun
    re.compile(r"\[?(?:rank ?)?\d{1,4}\]?:(?: |$)"),  # srun, torchrun
    re.compile(r"[\w ./()-]{1,80}\t[\w ./()-]{1,80}\t\ufeff?\d{4}-\d\d-\d\dT[\d:.]+Z(?: |$)"),  # a job of a CI service
    re.compile(r"\(\w[\w ]{0,40}(?:pid|ip|rank)=[\w., =]{1,60}\)(?: |$)"),  # Ray
)
_NUMBERED = re.compile(r"\s*(\d{1,6})(?:[:|]|\t|  ?|$)")
_MIN_PREFIXED = 3


def _unprefixed(lines: list[str]) -> list[str]:
    """Take off a prefix that nearly every line bears: a logger's, a launcher's, a line number, a plus sign of a diff.

    >>> _unprefixed(["10:10:10 a: 1", "10:10:11 b: 2", "10:10:11 c: 3"])
    ['a: 1', 'b: 2', 'c: 3']
    >>> _unprefixed(["  1  a", "  2  b", "  3  c"]), _unprefixed(["a: 1", "b: 2", "c: 3"])
    (['a', 'b', 'c'], ['a: 1', 'b: 2', 'c: 3'])
    """
    filled = [line for line in lines[:2000] if line.strip()]
    if len(filled) < _MIN_PREFIXED:
        return lines
    for pattern in _PREFIXES:
        if sum(1 for line in filled if pattern.match(line)) * 10 >= 9 * len(filled):
            return [pattern.sub("", line, count=1) if pattern.match(line) else line for line in lines]
    if all(line.startswith("+") for line in filled) and not all(line.endswith("+") for line in filled):
        return [line.removeprefix("+") for line in lines]
    numbers = [int(m[1]) for line in filled if (m := _NUMBERED.match(line))]
    rises = sum(1 for a, b in pairwise(numbers) if 0 < b - a <= 3)
    if _NUMBERED.match(filled[0]) and len(numbers) * 10 >= 8 * len(filled) and rises == len(numbers) - 1 and numbers[0] < 1000:
        return [_NUMBERED.sub("", line, count=1) if _NUMBERED.match(line) else line for line in lines]
    return lines


def _dedented(lines: list[str]) -> list[str]:
    """Take off the tab or the spaces that every line starts with."""
    filled = [line for line in lines if line.strip()]
    if len(filled) < 2 or not all(line[0] in " \t" for line in filled):
        return lines
    shared = os.path.commonprefix([line[: len(line) - len(line.lstrip(" \t"))] for line in filled[:2000]])
    return [line.removeprefix(shared) for line in lines] if shared else lines


def _single_spaced(lines: list[str]) -> list[str]:
    """Drop the blank lines of a text that has one after every line, as some forms and mails make it.

    >>> _single_spaced(["a", "", "b", "", "c", "", "d", ""])
    ['a', 'b', 'c', 'd']
    """
    filled = [i for i, line in enumerate(lines) if line.strip() or "\f" in line]
    if len(filled) < 2 or any(b - a == 1 for a, b in pairwise(filled)):
        return lines
    return [lines[i] for i in filled]
