"""The one exception a user can cause, and fix."""

from __future__ import annotations

from difflib import SequenceMatcher
from os.path import commonprefix


class InputError(ValueError):
    """Something the user gave breaks a rule; the message is one sentence.

    `field` is the name the user knows it by, `value` what was given, `rule` what is allowed
    and the nearest legal change. Anything else that is raised is a bug and keeps its traceback.

    >>> str(InputError("batch", 0, "must be a whole number from 1 to 1e9"))
    'batch 0: must be a whole number from 1 to 1e9'

    A value of None is one that was not given.

    >>> str(InputError("vocab_size", None, "must be a whole number"))
    'vocab_size is missing: must be a whole number'
    """

    def __init__(self, field: str, value: object, rule: str):
        self.field, self.value, self.rule = field, value, rule
        if value is None:
            said = rule if rule.startswith("is missing") else f"is missing: {rule}"
            super().__init__(" ".join(f"{field} {said}".split()))
            return
        shown = repr(value) if isinstance(value, str) else str(value)
        if len(shown) > 60:
            shown = shown[:57] + "..."
        super().__init__(" ".join(f"{field} {shown}: {rule}".split()))


def nearest(word: str, known) -> str:
    """Return "; did you mean 'x'?" for the closest of `known`, or an empty string.

    A name that starts alike counts as close however long it goes on, since ids add suffixes.

    >>> nearest("h1000", ["h100-sxm", "a100-80gb-sxm", "b100"])
    "; did you mean 'h100-sxm'?"
    >>> nearest("zzz", ["h100-sxm"])
    ''
    """
    word = str(word).lower()[:80]
    if not word:
        return ""

    def closeness(name: str) -> float:
        start = len(commonprefix((word, name)))
        whole = SequenceMatcher(None, word, name).ratio()
        return max(whole, SequenceMatcher(None, word, name[: len(word)]).ratio()) + start / len(word) / 2

    best = max(known, key=closeness, default=None)
    return f"; did you mean {best!r}?" if best is not None and closeness(best) >= 0.7 else ""
