"""The one exception a user can cause, and fix."""

from __future__ import annotations

from difflib import get_close_matches


class InputError(ValueError):
    """Something the user gave breaks a rule; the message is one sentence.

    `field` is the name the user knows it by, `value` what was given, `rule` what is allowed
    and the nearest legal change. Anything else that is raised is a bug and keeps its traceback.

    >>> str(InputError("batch", 0, "must be a whole number from 1 to 1e9"))
    'batch 0: must be a whole number from 1 to 1e9'
    """

    def __init__(self, field: str, value: object, rule: str):
        self.field, self.value, self.rule = field, value, rule
        shown = repr(value) if isinstance(value, str) else str(value)
        if len(shown) > 60:
            shown = shown[:57] + "..."
        super().__init__(" ".join(f"{field} {shown}: {rule}".split()))


def nearest(word: str, known) -> str:
    """Return ", did you mean 'x'?" for the closest of `known`, or an empty string.

    >>> nearest("h100", ["h100-sxm", "a100-80gb-sxm"])
    "; did you mean 'h100-sxm'?"
    """
    match = get_close_matches(str(word).lower()[:80], list(known), n=1, cutoff=0.5)
    return f"; did you mean {match[0]!r}?" if match else ""
