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


def value(text: str) -> float:
    """What a live number is worth: "16.2\u2009ms" is 0.0162."""
    digits, _, unit = text.replace(",", "").partition("\u2009")
    scale = {"n": 1e-9, "µ": 1e-6, "m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "B": 1e9, "T": 1e12, "P": 1e15, "%": 1e-2}
    return float(digits) * (1.0 if unit in ("", "s", "×", "FLOP") else scale[unit[0]])


def course(id: str, *names: str) -> list:
    """The live numbers of a lesson at each value of its knob, one list a name."""
    rows = [view_learn.numbers(s) for s in turned(next(lesson for lesson in LESSONS if lesson["id"] == id))]
    return [[value(row[name]) for row in rows] for name in names]


def test_what_the_texts_say_happens_at_every_value_of_the_knob():
    """Each lesson's claim in words, held against its own scenario."""
    rising = lambda xs: all(a < b for a, b in zip(xs, xs[1:]))
    steps = lambda xs: [b / a for a, b in zip(xs, xs[1:])]

    # "two times the weights that a token meets, times the tokens, and a little more"; "nearly in step"; "at first the time does not".
    flops, met, prompt, peak, ttft = course("flop", "flops", "met", "prompt", "peak", "ttft")
    assert all(1.0 <= f / (2 * w * n) < 1.1 for f, w, n in zip(flops, met, prompt, strict=True))
    assert ttft[0] == ttft[1] == ttft[2] and ttft[-1] == pytest.approx(flops[-1] / peak[-1], rel=0.01)

    # "gets something to do", and the corridor stays the limit at every number of guests.
    used, corridor = course("chef", "utilisation", "bandwidth_use")
    assert rising(used) and used[-1] > 0.2 and all(x == 1 for x in corridor)

    # "falls nearly as fast as the chips grow"; the expected time "falls less each time".
    tpot, expected = course("units", "tpot", "expected_tpot")
    assert all(0.49 < x < 0.55 for x in steps(tpot)) and rising(steps(expected)) and all(x > 0.55 for x in steps(expected))

    # peak / bandwidth is the ridge; where the intensity passes it the bound turns.
    intensity, ridge, peak, bandwidth = course("ridge", "intensity", "ridge", "peak", "bandwidth")
    assert peak[0] / bandwidth[0] == pytest.approx(ridge[0], rel=0.01)
    bounds = [view_learn.numbers(s)["bound"] for s in turned(next(x for x in LESSONS if x["id"] == "ridge"))]
    assert [b == "compute" for b in bounds] == [x > ridge[0] for x in intensity]

    # Bytes / bandwidth is the time; "nearly all of it weights"; the arithmetic is "done long before".
    moved, weights, bandwidth, tpot, used = course("decode", "step_bytes", "weights_read", "bandwidth", "tpot", "utilisation")
    assert all(b / w == pytest.approx(t, rel=0.01) for b, w, t in zip(moved, bandwidth, tpot, strict=True))
    assert all(w / b > 0.95 for w, b in zip(weights, moved, strict=True)) and max(used) < 0.01

    # "At first nearly twice as much in all, and each user hardly notices"; "the less each doubling gives"; each step is a doubling.
    total, user, batch = course("batching", "total", "user", "batch")
    assert all(x == 2 for x in steps(batch)) and min(steps(total)[:2]) > 1.95 and min(steps(user)[:2]) > 0.97
    assert all(a > b for a, b in zip(steps(total), steps(total)[1:])) and not rising(user) and user[-1] < user[0] / 2

    # From eight bits to four: "the time per token falls and the time to the first token rises"; decoding gains what the bytes lose.
    weights, tpot, ttft = course("quantisation", "weights", "tpot", "ttft")
    assert tpot[0] / tpot[1] == pytest.approx(weights[0] / weights[1], rel=0.03) and ttft[1] > 1.9 * ttft[0] and ttft[1] == ttft[2] == ttft[3]

    # "until the cache weighs more than the weights"; an FP8 cache is half as large.
    cache, weights = course("kv", "kv", "weights")
    assert cache[0] < weights[0] and cache[-1] > weights[-1]
    lesson = turned(next(x for x in LESSONS if x["id"] == "kv"))[0]
    assert value(view_learn.numbers(lesson.replace(kv="fp8"))["kv"]) == pytest.approx(cache[0] / 2, rel=0.01)

    # "grow quickly at first and then level off: nearly all of the model is read"; "some dozens of requests touch nearly all".
    (read,) = course("moe", "weights_read")
    whole = value(view_learn.numbers(turned(next(x for x in LESSONS if x["id"] == "moe"))[0])["weights"])
    assert read[1] > 2 * read[0] and read[-1] / read[-2] < 1.02 and read[-1] > 0.98 * whole
    assert float(view_learn.numbers(Scenario(model="qwen3-30b-a3b", batch=48))["experts_read"].split()[0]) > 0.95 * 128

    # "brings less and less, and in the end it costs more than it brings", at the limit and as expected.
    for name in ("speedup", "expected_speedup"):
        (speed,) = course("speculation", name)
        assert all(a > b for a, b in zip(speed, speed[1:])) and speed[0] > 1.9 and speed[-1] < 1, name

    # Longer prompts need more prefill instances; reading is bound by compute and writing by memory at each.
    (ratio,) = course("disaggregation", "pool_ratio")
    rows = [view_learn.numbers(s) for s in turned(next(x for x in LESSONS if x["id"] == "disaggregation"))]
    assert rising(ratio) and {(row["prefill_bound"], row["bound"]) for row in rows} == {("compute", "memory")}


def test_the_course_is_whole():
    """FLOP, chef and cold store, units, ridge, why decode waits, batching, quantisation, KV cache, experts, speculation, disaggregation."""
    assert ids == ["flop", "chef", "units", "ridge", "decode", "batching", "quantisation", "kv", "moe", "speculation", "disaggregation"]


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


@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_knob_has_a_name(language):
    words = {key for name in (language, f"views-{language}") for key in json.loads((SITE / "i18n" / f"{name}.json").read_text("utf-8"))}
    assert not {f"field.{lesson['knob']['field']}" for lesson in LESSONS} - words
