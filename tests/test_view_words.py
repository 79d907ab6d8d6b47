"""Words of the views that are loaded on demand: every key there is, in both languages, and none that stands twice."""

from __future__ import annotations

import json
import re
from pathlib import Path

SITE = Path(__file__).resolve().parents[1] / "site"
VIEWS = sorted((SITE / "js" / "views").glob("*.mjs"))
PLAIN = {name: json.loads((SITE / "i18n" / f"{name}.json").read_text("utf-8")) for name in ("en", "zh")}
MORE = {name: json.loads((SITE / "i18n" / f"views-{name}.json").read_text("utf-8")) for name in ("en", "zh")}
TERMS = {term["id"] for term in json.loads((SITE / "learn" / "glossary.json").read_text("utf-8"))["terms"]}


def test_both_languages_have_the_same_keys_and_holes():
    assert set(MORE["en"]) == set(MORE["zh"])
    assert not set(MORE["en"]) & set(PLAIN["en"])
    for key, text in MORE["en"].items():
        for pattern in (r"\{(\w+)\}", r"\[\[(\w+)\|"):
            assert set(re.findall(pattern, text)) == set(re.findall(pattern, MORE["zh"][key])), key
        assert text.count("**") % 2 == 0 and MORE["zh"][key].count("**") % 2 == 0, key


def test_every_key_that_a_view_names_exists():
    for path in [*VIEWS, SITE / "js" / "lazy.mjs"]:
        used = set(re.findall(r"""\b(?:t|rich)\(\s*"([^"]+)"[,)]""", path.read_text("utf-8")))
        assert not used - set(PLAIN["en"]) - set(MORE["en"]), path.name


def test_every_word_is_used():
    text = "\n".join(p.read_text("utf-8") for p in (*VIEWS, SITE / "js" / "explain.mjs"))
    for key in MORE["en"]:
        parts = key.split(".")
        stems = [".".join(parts[:i]) for i in range(1, len(parts))]
        assert f'"{key}"' in text or any(f'"{stem}"' in text or f"`{stem}.${{" in text for stem in stems), key


def test_marked_terms_are_in_the_glossary():
    for words in (*PLAIN.values(), *MORE.values()):
        for key, text in words.items():
            assert set(re.findall(r"\[\[(\w+)\|", text)) <= TERMS, key


def test_chinese_is_chinese():
    same = [
        k
        for k in MORE["en"]
        if MORE["en"][k] == MORE["zh"][k] and re.search(r"[a-z]{4,}", re.sub(r"\[\[\w+\||{\w+}", "", MORE["en"][k]))
    ]
    assert not same


def test_scripts_of_views_stay_small_and_safe():
    for path in VIEWS:
        text = path.read_text("utf-8")
        assert len(text.splitlines()) < 250, path.name
        assert "innerHTML" not in text and "eval(" not in text, path.name
        assert text.startswith("// @ts-check"), path.name
