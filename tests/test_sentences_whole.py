"""Every sentence in the engine's source has Chinese: each refusal and remark that the page can meet, in all the ways it can be put.

test_sentences.py asks the engine and looks at what it says; here its source is read (said.py), so that what is rarely said is
not forgotten either. A new sentence without Chinese fails here, with the place where it stands.
"""

from __future__ import annotations

import inspect
import itertools
import json
import re

import pytest
import said
from test_sentences import chinese, say

from roofline import catalogue
from roofline.errors import InputError

# Two English words in a row that are no name, key or value: a pattern took more than it says.
ENGLISH = re.compile(r"(?<![\w'“-])[a-z]{2,}(?:[ ,]+[a-z]{2,})+(?![\w'”])")
NAMES = re.compile(r"flash attention|tokens per second|PyTorch profiler|llama(?:, b)?|[ab], [ab]|such a\.txt")
# What the page says in place of an option of the command line (view_own.py).
TYPED = {"give it with --batch": "type it above", "give it with --prompt": "the question's prompt does not count here"}


def fails(texts) -> str | None:
    """None where one of these texts, which differ in what stands in their holes, is Chinese from end to end; else what the first comes to."""
    found = None
    for text in texts:
        for typed, above in TYPED.items():
            text = text.replace(typed, above)
        told = chinese(text)
        if told and not ENGLISH.search(NAMES.sub("", re.sub(r"'[^']*'|\"[^\"]*\"", "", told))):
            return None
        found = found or f"{text} -> {told or say(text)}"
    return found


def messages(refusal: said.Refusal):
    """For each way to put the rule: the messages it may stand in."""
    for i, rule in enumerate(refusal.rule):
        field, value = refusal.field[0], refusal.value[i % len(refusal.value)]
        field, given = next(said.filled(field)), [None] if value == (None,) else list(said.filled(value))[:4]
        yield (str(InputError(field, v, text)) for text, v in itertools.product(said.filled(rule), given))


def test_every_way_to_refuse():
    refusals = said.refusals()
    assert len(refusals) > 150
    left = [f"{r.where}: {problem}" for r in refusals for texts in messages(r) if (problem := fails(texts))]
    assert not left, "\n".join(left)


def test_what_was_given_in_words():
    """A refused value that the engine tells in words ("a file of 20 bytes") is told in Chinese."""
    left = set()
    for refusal in said.refusals():
        for value in refusal.value:
            fixed = " ".join(part for part in value if isinstance(part, str))
            if re.search(r"[a-z]{2,} [a-z]{2,}|[a-z]{3,} *$", fixed.strip()) and " " in "".join("x" if isinstance(p, said.Hole) else p or "" for p in value):
                texts = [str(InputError("x", text, "must be an object")) for text in said.filled(value)]
                if all(said.re.search("[A-Za-z]{3,} [A-Za-z]", say(text).replace("llama", "")) for text in texts):
                    left.add(f"{refusal.where}: {say(texts[0])}")
    assert not left, "\n".join(sorted(left))


def test_every_sentence_and_remark():
    left = []
    for where, variants in itertools.chain(said.sentences(), said.warnings()):
        for variant in variants:
            plain = "".join("X" if isinstance(p, said.Hole) else p or "" for p in variant)
            if "  " in plain or not re.match(r"\S* ?\S", plain) or plain[0] == " " or set(plain) == {"X"}:
                continue  # a name that is not known here
            if problem := fails(said.filled(variant)):
                left.append(f"{where}: {problem}")
    assert not left, "\n".join(left)


BROKEN = ["{a: 1}", '{"a" 1}', '{"a": 1 "b": 2}', '{"a": }', '{"a": 1} x', '{"a": "b', '{"a": "\t"}', '{"a": "\\x"}', '{"a": "\\u12"}', '{"a": 1,}', '{"a": [1,]}', "{", "[1", "nonsense", '{"a": 1e}', "{'a': 1}", '{"a": "b; c: d" e}']


@pytest.mark.parametrize("text", BROKEN)
def test_what_the_parser_says_of_json(text):
    with pytest.raises(InputError) as error:
        catalogue.read_config_text(text)
    assert not fails([str(error.value)])


def test_every_message_of_the_parser():
    """The messages of CPython's decoder, as its source has them, and those of later versions."""
    source = "\n".join(inspect.getsource(module) for module in (json.decoder, json.scanner))
    told = set(re.findall(r'JSONDecodeError\(\s*"([^"]+)"', source)) | set(re.findall(r'msg = "([^"{]+)"', source))
    told = {text.encode().decode("unicode_escape") if "\\\\" in text else text for text in told}
    for text in {*told, "Illegal trailing comma before end of object", "Illegal trailing comma before end of array", "Invalid control character at"}:
        assert not fails([f"config '{{': is not JSON (line 1, column 2: {text.replace('%r ', '')})"])
