"""The course: every lesson is a question with an answer, its texts name only numbers there are, and its knob moves what it says to watch."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from roofline import view_learn
from roofline.scenario import Scenario

ROOT = Path(__file__).resolve().parents[1]
SITE = ROOT / "site"
sys.path.insert(0, str(SITE / "py"))

import bridge

LESSONS = json.loads((SITE / "learn" / "lessons.json").read_text("utf-8"))["lessons"]
TERMS = json.loads((SITE / "learn" / "glossary.json").read_text("utf-8"))["terms"]
ids = [lesson["id"] for lesson in LESSONS]


def texts(lesson: dict, language: str) -> list:
    part = lesson[language]
    return [part["title"], *part["text"], part["try"]]


def turned(lesson: dict) -> list:
    """The scenario of a lesson at each value of its knob."""
    scenario, notices = Scenario.from_fragment(lesson["link"])
    assert notices == ()
    return [scenario.replace(**{lesson["knob"]["field"]: value}) for value in lesson["knob"]["values"]]


@pytest.mark.parametrize("lesson", LESSONS, ids=ids)
def test_texts_name_only_numbers_and_terms_that_exist(lesson):
    known = {term["id"] for term in TERMS}
    for language in ("en", "zh"):
        said = " ".join(texts(lesson, language))
        assert set(re.findall(r"\{(\w+)\}", said)) <= set(view_learn.NAMES)
        assert set(re.findall(r"\[\[(\w+)\|", said)) <= known
        assert said.count("[[") == said.count("]]") == len(re.findall(r"\[\[\w+\|[^\]]+\]\]", said))
    assert set(re.findall(r"\{(\w+)\}", " ".join(texts(lesson, "en")))) == set(
        re.findall(r"\{(\w+)\}", " ".join(texts(lesson, "zh")))
    )
    assert set(lesson["watch"]) <= set(view_learn.NAMES)


@pytest.mark.parametrize("lesson", LESSONS, ids=ids)
def test_the_knob_moves_what_there_is_to_watch_and_everything_fits(lesson):
    seen = [view_learn.numbers(s) for s in turned(lesson)]
    for name in lesson["watch"]:
        assert all(row[name] not in ("–", "misfit") for row in seen), name
    assert any(len({row[name] for row in seen}) > 1 for name in lesson["watch"])
    # The scenario as linked stands on one of the knob's values, so that Start shows it pressed.
    scenario = Scenario.from_fragment(lesson["link"])[0]
    assert (
        getattr(scenario, lesson["knob"]["field"]) in lesson["knob"]["values"]
        or str(getattr(scenario, lesson["knob"]["field"])).lower() in lesson["knob"]["values"]
    )


def test_lessons_tell_the_truth():
    by_id = {lesson["id"]: [view_learn.numbers(s) for s in turned(lesson)] for lesson in LESSONS}
    assert [row["bound"] for row in by_id["ridge"]][0] == "memory" and "compute" in {row["bound"] for row in by_id["ridge"]}
    # H100 to H200: the same arithmetic, 4.8 over 3.35 TB/s.
    at = dict(zip(["a100", "h100", "h200", "b200"], by_id["decode"], strict=True))
    ms = lambda row: float(row["tpot"].replace("\u2009ms", ""))
    assert ms(at["h100"]) / ms(at["h200"]) == pytest.approx(4.8 / 3.35, rel=0.01)
    # (1 - 0.7^5) / 0.3 tokens a step.
    assert by_id["speculation"][0]["tokens_per_step"] == "2.77"
    assert by_id["speculation"][0]["bound"] == "memory" and by_id["speculation"][-1]["bound"] == "compute"
    # One token of a 128-expert layer reads its 8 experts; 16 tokens some 128 (1 - (120/128)^16) = 82.4.
    assert [row["experts_read"] for row in by_id["moe"]][:3] == ["8 / 128", "29.1 / 128", "82.4 / 128"]
    # 32 layers x 8 heads x 128 x 2 (K and V) x 2 bytes = 131 kB a token.
    assert by_id["kv"][0]["kv_token"] == "131\u2009kB"
    # 2 FLOPs a weight and token, but for the head, which only the last token needs: 2 x 7.50e9 x 512.
    assert by_id["flop"][3]["flops"].startswith("7.")


def test_the_bridge_answers_a_lesson():
    def ask(**params):
        answer = json.loads(bridge.handle(json.dumps({"v": 1, "id": 1, "method": "learn", "params": params})))
        assert answer["ok"], answer["error"]
        return answer["result"]

    lesson = LESSONS[4]
    found = ask(link=lesson["link"], knob=lesson["knob"])
    assert found["labels"][1].startswith("H100") and set(found["numbers"]) == set(view_learn.NAMES)
    assert ask(form=bridge.DEFAULT)["labels"] == []
    own = bridge.form_of(Scenario.from_fragment(lesson["link"])[0])
    assert ask(link=lesson["link"], knob=lesson["knob"], form=own | {"hardware": "h200-sxm"})["on"]
    assert not ask(link=lesson["link"], knob=lesson["knob"], form=own | {"batch": "7"})["on"]


def test_glossary_terms_are_whole_in_both_languages():
    assert len({term["id"] for term in TERMS}) == len(TERMS)
    for term in TERMS:
        for language in ("en", "zh"):
            name, gloss = term[language]
            assert name and gloss.endswith((".", "。")) and len(gloss) < 140
