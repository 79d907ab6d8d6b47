"""What the engine says in whole sentences has Chinese: levers, warnings, what an engine reserves, verdicts and their reasons, refusals.

A sentence that is new shows here as missing; site/i18n/sentences-zh.json pairs patterns with their translation.
"""

from __future__ import annotations

import csv
import json
import re
from importlib import resources
from pathlib import Path

import pytest

from roofline import catalogue, hardware, levers, view_own
from roofline.errors import InputError
from roofline.report import evaluate
from roofline.scenario import Scenario, resolve

PAIRS = [
    (re.compile(f"^{pattern}$"), text)
    for pattern, text in json.loads((Path(__file__).resolve().parents[1] / "site/i18n/sentences-zh.json").read_text("utf-8"))
]
SAMPLES = Path(__file__).parent / "data" / "samples"
SCENARIOS = [
    Scenario(model="llama-3.1-70b", hardware="h200-sxm", devices=2, weights="fp8", batch=32, prompt=8000, output=512),
    Scenario(model="llama-3.1-70b", hardware="h100-sxm", devices=8, prefill_devices=4),
    Scenario(
        model="deepseek-v3",
        hardware="h200-sxm",
        devices=8,
        batch=32,
        prompt=4096,
        output=512,
        draft=2,
        cached=100,
        block=64,
        fused=False,
    ),
    Scenario(model="llama-3.1-405b", hardware="h200-sxm", devices=2, weights="bf16", batch=64),
    Scenario(hardware="rtx-4090", weights="q4_k_m", batch=4),
    Scenario(model="mixtral-8x7b", hardware="b200-sxm", dp=2, devices=4, batch=16, draft=3, kv="fp8"),
    Scenario(model="gpt-oss-20b", hardware="apple-m3-max"),
    Scenario(model="qwen3-next-80b-a3b", hardware="mi300x", devices=2, batch=8),
    Scenario(model="gemma-3-12b", hardware="tpu-v5e", devices=4, prompt=200_000),
    Scenario(hardware="xeon-6980p"),
    Scenario(model="llama-3.1-70b", devices=64, tp=64),
    Scenario(hardware="a100-80gb-sxm", activations="fp8", weights="fp8"),
    Scenario(model="kimi-k2", hardware="b200-sxm", devices=16, pp=2, batch=64),
]


NOTES = json.loads((Path(__file__).resolve().parents[1] / "site/i18n/notes-zh.json").read_text("utf-8"))
NUMBER = re.compile(r"(^|[^A-Za-z0-9_.-])(\d+(?:[.,]\d+)*(?:e[+-]?\d+)?)")
CLAUSE = re.compile(r"(; (?![^(]*\))|\. (?=\S)|\.\s*$)")


def known(text: str) -> str | None:
    """As i18n.mjs says a phrase, clause or sentence; None where there is no translation. ⟨ ⟩ stand around what stays English."""
    numbers = [n for _, n in NUMBER.findall(text)]
    words = NOTES.get(text) or NOTES.get(NUMBER.sub(r"\1#", text))
    if words is not None:
        return re.sub(r"\$(\d)", lambda m: numbers[int(m[1]) - 1], words)
    for pattern, words in PAIRS:
        found = pattern.match(text)
        if found and not any("; " in (part or "") and f"${n}" in words for n, part in enumerate(found.groups(), 1)):
            part = lambda m, found=found: (say(found[int(m[2])]) if m[1] == "~" else found[int(m[2])]) or ""
            return re.sub(r"([$~])(\d)", part, words)
    return None


def listed(text: str) -> str | None:
    said = [known(part) for part in re.split(r", (?![^(]*\))", text)]
    return "，".join(said) if len(said) > 1 and all(said) else None


def clauses(text: str) -> str | None:
    parts = CLAUSE.split(text)
    said = [known(p) or listed(p) for p in parts[::2]]
    if not any(said):
        return None
    marks = ["；" if mark[0] == ";" else "。" for mark in parts[1::2]] + [""]
    whole = "".join((zh or (p and f"⟨{p}⟩")) + mark for zh, p, mark in zip(said, parts[::2], marks, strict=True))
    return re.sub("([。？])[；。]", r"\1", whole)


def say(text: str) -> str:
    """What stands on the Chinese page for a text of the engine."""
    head = HEAD.fullmatch(text)
    sentence, parts = known(text), clauses(text)
    ruled = head and ruling(head[3]) if not sentence and (not parts or "⟨" in parts) else None
    return f"{known(head[1] + head[2]) or head[1] + given(head[2])}：{ruled}" if ruled else sentence or parts or f"⟨{text}⟩"


HEAD = re.compile(r"""([\w.]+)( '(?:[^'\\]|\\.)*'| "(?:[^"\\]|\\.)*"|(?:(?!; |\. ).){0,90}?)(?::|(?= is missing and )) (.+)""", re.DOTALL)


def given(value: str) -> str:
    """What was given for a field: quoted as it is, or told in words, which have a translation."""
    # (two words at least: what a visitor typed is no phrase)
    said = known(re.sub(r"""^ (['"]?)(.*)\1$""", r"\2", value)) if " " in value.strip() else None
    return f" {said}" if said else value


def ruling(rule: str) -> str | None:
    said = clauses(rule)
    return said if said and "⟨" not in said else known(rule) or said


# Titles of data sheets stay as they are; the page marks them as English.
CITED = {
    part
    for id in hardware.ids()
    for part in CLAUSE.split(hardware.load(id).source.removesuffix(", halved: software sees each of the two dies as a GPU"))[::2]
}


def chinese(text: str) -> str | None:
    """The translation of a sentence; None where a part of it stays English that is no citation."""
    said = re.sub("⟨(.+?)⟩", lambda m: m[1] if m[1] in CITED else m[0], say(text))
    return None if "⟨" in said else said


def missing(texts) -> list:
    names = {hardware.load(id).name for id in hardware.ids()}
    return sorted(
        {
            text
            for text in texts
            if text and text not in names and text not in ("none", "none besides", "given") and chinese(text) is None
        }
    )


def test_patterns_are_used_once_and_filled_whole():
    assert len({p.pattern for p, _ in PAIRS}) == len(PAIRS)
    for pattern, words in PAIRS:
        assert re.search(r"[\u4e00-\u9fff$~]", words), pattern.pattern
        assert all(int(n) <= pattern.groups for n in re.findall(r"[$~](\d)", words)), pattern.pattern
    for shape, words in NOTES.items():
        assert all(int(n) <= shape.count("#") for n in re.findall(r"\$(\d)", words)), shape


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda s: f"{s.model} {s.hardware}")
def test_what_a_report_and_its_levers_say(scenario):
    report = evaluate(scenario).to_dict()
    found = levers.levers(scenario)
    said = (
        [w["text"] for w in report["warnings"]]
        + ((report["memory"]["engine"] or {}).get("assumptions") or [])
        + [report["energy"]["dram_source"], report["energy"]["compute_source"]]
    )
    said += [row[key] for row in found["levers"] + found["in_use"] for key in ("title", "price")]
    assert not missing(said)


@pytest.mark.parametrize(
    "path",
    sorted(p for p in SAMPLES.iterdir() if p.suffix in (".txt", ".md", ".json", ".jsonl", ".csv", ".tsv", ".html")),
    ids=lambda p: p.name,
)
def test_what_is_said_of_measurements(path):
    text, said = path.read_bytes().decode("utf-8", "replace"), []
    for scenario in (SCENARIOS[0], SCENARIOS[2], SCENARIOS[4]):
        try:
            answer = view_own.place_text(text, path.name, scenario)
        except InputError as error:
            said.append(str(error))
            continue
        said += answer["assumed"] + [s for row in answer["rows"] for s in (row["verdict"], *row["culprits"])]
    assert not missing(said)


def test_notes_of_chips_models_and_measurements():
    said = [text for chip in map(hardware.load, hardware.ids()) for text in (chip.note, chip.price_source)]
    said += [w["text"] for id in hardware.ids() for w in evaluate(Scenario(hardware=id)).to_dict()["warnings"]]
    said += [note for entry in catalogue.entries() for note in catalogue.load(entry.id).notes]
    assert not missing(said)
    with (resources.files("roofline") / "data/measurements.csv").open(encoding="utf-8") as file:
        left = {part for row in csv.DictReader(file) for part in re.findall("⟨(.+?)⟩", say(row["note"])) if row["note"]}
    assert not [part for part in left if len(re.findall(r"(?<!\S)[a-z]{2,}(?!\S)", part)) > 2]  # names and keys of a file stay


def test_why_chips_are_absent():
    pytest.importorskip("numpy")
    from roofline import view_explore

    said = []
    for fields in (
        {"tpot": "10 ms", "ttft_alone": "100 ms"},
        {"objective": "latency", "user": "500", "budget": "3"},
        {"objective": "energy", "prefill": "h100-sxm:4", "usd_per_million": "0.1"},
        {"requests": "100", "devices": "1"},
        {"devices": "3,64,1024", "activations": "auto,fp8", "models": "mixtral-8x7b", "prefill": "same:3"},
    ):
        answer = None
        while not answer:
            answer = view_explore.step(Scenario(model="llama-3.1-70b", batch=32, prompt=8000), fields)["answer"]
        said += [row["why"] for row in (*answer["why_not"], *answer["refused"])]
        said += [
            part
            for row in answer["rows"]
            for part in row["text"]["title"].split(", ")
            if part.endswith(("weights", "KV cache")) or part.startswith("batch")
        ]
    assert not missing(said)


@pytest.mark.parametrize(
    "form",
    [
        {"batch": "0"},
        {"batch": "many"},
        {"prompt": "8 kB"},
        {"tp": "3"},
        {"devices": "-2"},
        {"model": "lama"},
        {"hardware": "h1oo"},
        {"weights": "fp7"},
        {"hardware": "custom"},
        {"cached": "2000"},
        {"devices": "6", "tp": "4"},
        {"pp": "200", "devices": "200"},
        {"ep": "4", "devices": "4"},
        {"acceptance": "2"},
        {"batch": "1.5"},
        {"fused": "maybe"},
        {"activations": "foo"},
    ],
)
def test_refusals_of_the_form(form):
    with pytest.raises(InputError) as error:
        resolve(Scenario.from_dict(form))
    assert not missing([str(error.value)])
