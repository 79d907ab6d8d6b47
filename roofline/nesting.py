"""How deep the brackets of a JSON text go, found without parsing it.

Python's parser recurses on its C stack. Under CPython too deep a text is a RecursionError; in the browser the stack
is smaller, runs out first, and takes the whole engine with it, so depth is looked at before a text of a stranger is parsed.
"""

from __future__ import annotations

import re

MOST = 200  # levels; configs, indexes, traces and benchmarks have fewer than ten
_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*+"?')  # a string of JSON never runs over a line's end
_RUN = re.compile(r"[\[{]+|[\]}]+")


def too_deep(text: str, most: int = MOST) -> bool:
    """Whether brackets outside strings are open more than `most` deep at once.

    >>> too_deep("[" * 201), too_deep('{"a":' * 200 + "1" + "}" * 200), too_deep('["' + "[" * 999 + '"]')
    (True, False, False)
    """
    if text.count("[") + text.count("{") <= most:
        return False
    depth = 0
    for run in _RUN.findall(_STRING.sub("", text)):
        depth += len(run) if run[0] in "[{" else -len(run)
        if depth > most:
            return True
        depth = max(depth, 0)  # a stray bracket among log lines closes nothing
    return False


_TOKEN = re.compile(r'"(?:[^"\\\n]|\\.)*+"?|[\[{\]}]')


def opens_deep(text: str, start: int, most: int = MOST) -> bool:
    """Whether the value that opens at `start` nests more than `most` deep; it is read no further than its own end.

    >>> opens_deep('[ info {"a": [1]}', 7), opens_deep("x" + '[{"a":' * 200, 1)
    (False, True)
    """
    depth = 0
    for token in _TOKEN.finditer(text, start):
        if token[0] in "[{":
            depth += 1
            if depth > most:
                return True
        elif token[0] in "]}":
            depth -= 1
            if depth <= 0:
                return False
    return False
