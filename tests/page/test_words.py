"""The words of the page, in both languages: none missing, none left over, the same holes to fill in each."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

SITE = Path(__file__).resolve().parents[2] / "site"
FILES = {stem: {lang: json.loads((SITE / "i18n" / f"{stem}{lang}.json").read_text("utf-8")) for lang in ("en", "zh")} for stem in ("", "views-") if (SITE / "i18n" / f"{stem}en.json").exists()}
SCRIPTS = {p: p.read_text("utf-8") for p in [*(SITE / "js").rglob("*.mjs"), SITE / "index.html", SITE / "build" / "prerender.py"]}
ALL = {key for words in FILES.values() for key in words["en"]}


def patterns() -> list:
    """Keys that scripts put together: `figure.${key}.gloss` and named("bound", role)."""
    found = []
    for text in SCRIPTS.values():
        for template in re.findall(r"`([\w.-]*\$\{[^`]*)`", text):
            plain = re.sub(r"\$\{(?:[^{}]|\{[^{}]*\})*\}", "\0", template)
            if re.fullmatch(r"[\w.\0-]+", plain) and plain.strip("\0."):
                found.append(re.compile(re.escape(plain).replace("\0", "[\\w.-]+").replace("\\x00", "[\\w.-]+")))
        found += [re.compile(re.escape(prefix) + r"\.[\w. -]+") for prefix in re.findall(r"""\bnamed\(\s*"([\w.]+)",""", text)]
        if "named(k, String(v))" in text:
            found += [re.compile(rf"{prefix}\.[\w.-]+") for prefix in ("bound", "group", "kind")]
    return found


def literals() -> set:
    return {key for text in SCRIPTS.values() for key in re.findall(r"""["'`>]([\w][\w.-]*)["'`<]""", text)}


@pytest.mark.parametrize("stem", FILES)
def test_both_languages_have_the_same_words(stem):
    english, chinese = FILES[stem]["en"], FILES[stem]["zh"]
    assert set(english) == set(chinese)
    holes = lambda text: sorted(re.findall(r"\{\w+\}", text))
    for key in english:
        assert holes(english[key]) == holes(chinese[key]), key
        assert english[key].count("**") == chinese[key].count("**"), key
        assert sorted(re.findall(r"\[\[(\w+)\|", english[key])) == sorted(re.findall(r"\[\[(\w+)\|", chinese[key])) or "[[" in english[key], key


def test_no_word_is_in_two_files():
    if len(FILES) == 2:
        assert not set(FILES[""]["en"]) & set(FILES["views-"]["en"])


def test_no_word_is_missing():
    for path, text in SCRIPTS.items():
        asked = set(re.findall(r"""\b(?:t|rich)\(\s*"([^"]+)"[,)]""", text)) | set(re.findall(r'data-t(?:-label|-title)?="([^"]+)"', text)) | set(re.findall(r'words\["([^"]+)"\]', text))
        assert not asked - ALL, (path.name, asked - ALL)


def test_no_word_is_left_over():
    known, made = literals(), patterns()
    if any("`${prefix}.${" in text for text in SCRIPTS.values()):  # a helper that is handed the first part
        made += [re.compile(re.escape(prefix) + r"\.\w+") for prefix in known if re.search(rf"""\(.*"{re.escape(prefix)}", t\(""", "\n".join(SCRIPTS.values()))]
    left = {key for key in ALL if key not in known and not any(p.fullmatch(key) for p in made)}
    assert not left, sorted(left)


def test_chinese_is_written_in_chinese():
    for words in FILES.values():
        for key, text in words["zh"].items():
            if re.search(r"[a-z]{4,}", re.sub(r"\{\w+\}|\[\[\w+\|", "", words["en"][key])) and text == words["en"][key]:
                assert re.fullmatch(r"[\w .·–×/{}()%-]*", text), key  # a name or a formula stays as it is
            assert not re.search(r"[\u4e00-\u9fff][,;:?!]", text), f"{key}: Latin punctuation after a Chinese character"
