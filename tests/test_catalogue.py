"""The catalogue: ids, spellings, files, hostile text."""

import csv
import json
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roofline import catalogue
from roofline.errors import InputError
from roofline.model import parameters

PUBLISHED = {
    row["id"]: int(row["total"])
    for row in csv.DictReader((Path(__file__).parent / "data" / "published_totals.csv").open(encoding="utf-8"))
}


@pytest.mark.parametrize(("id", "total"), PUBLISHED.items())
def test_total_equals_the_published_one(id, total):
    assert parameters(catalogue.load(id))["total"] == total


@pytest.mark.parametrize(
    ("spelling", "id"),
    [
        ("llama-3.1-8b", "llama-3.1-8b"),
        ("LLAMA-3.1-8B", "llama-3.1-8b"),
        ("meta-llama/Llama-3.1-8B-Instruct", "llama-3.1-8b"),
        ("meta-llama/Meta-Llama-3.1-8B", "llama-3.1-8b"),
        ("Meta-Llama-3.1-8B-Instruct", "llama-3.1-8b"),
        ("llama-3-8b", "llama-3-8b"),
        ("meta-llama/Meta-Llama-3-8B-Instruct", "llama-3-8b"),
        ("Qwen/Qwen3-8B", "qwen3-8b"),
        ("mistralai/Mixtral-8x7B-Instruct-v0.1", "mixtral-8x7b"),
        ("deepseek-ai/DeepSeek-V3", "deepseek-v3"),
        ("deepseek-ai/DeepSeek-V3-0324", "deepseek-v3"),
        ("deepseek-ai/DeepSeek-R1-0528", "deepseek-r1"),
        ("openai/gpt-oss-120b", "gpt-oss-120b"),
        (" gpt-oss-20b ", "gpt-oss-20b"),
        ("google/gemma-3-27b-it", "gemma-3-27b"),
        ("Qwen/Qwen2.5-72B-Instruct", "qwen2.5-72b"),
        ("meta-llama/Llama-3.3-70B-Instruct", "llama-3.3-70b"),
    ],
)
def test_spellings(spelling, id):
    assert catalogue.find(spelling) == id


def test_ids_are_short_lower_case_and_every_entry_names_its_source():
    seen = set()
    for entry in catalogue.entries():
        assert re.fullmatch(r"[a-z0-9][a-z0-9.-]{1,60}", entry.id), entry.id
        assert entry.id not in seen and entry.source and entry.name and entry.hub
        assert entry.provenance in {
            "verbatim",
            "verbatim-embedded",
            "verbatim-transcribed",
            "converted",
            "partial-transcribed",
            "library-default",
            "recalled",
        }
        seen.add(entry.id)
        assert catalogue.find(entry.hub) == entry.id
    assert len(seen) >= 250


def test_every_entry_loads_and_has_a_summary():
    for entry in catalogue.entries():
        arch, summary = catalogue.load(entry.id), catalogue.summary(entry.id)
        assert arch.id == entry.id and arch.source == entry.source
        assert summary["total"] >= summary["active"] > 0
        assert catalogue.load(entry.id) is arch


def test_config_of_is_a_copy():
    config = catalogue.config_of("llama-3.1-8b")
    config["hidden_size"] = 1
    assert catalogue.load("llama-3.1-8b").hidden == 4096 and catalogue.config_of("llama-3.1-8b")["hidden_size"] == 4096


@pytest.mark.parametrize("text", ["", " ", "no-such-model-at-all", None, 7, "llama-3.1-8c/../../etc/passwd"])
def test_unknown_names_are_refused(text):
    with pytest.raises(InputError):
        catalogue.load(text)


def test_a_file_is_read(tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(catalogue.config_of("qwen3-8b")))
    assert parameters(catalogue.load(str(path)))["total"] == 8_190_735_360
    with pytest.raises(InputError):
        catalogue.load(str(tmp_path / "none.json"))
    with pytest.raises(InputError):
        catalogue.load(str(tmp_path))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "  ",
        "{nope",
        "[1, 2]",
        "3",
        '"x"',
        "null",
        "[" * 100_000,
        '{"a":' * 100_000,
        "x" * 1_000_001,
        "{" + "\x00",
        '{"a": 1}{',
        "\ufeff",
    ],
)
def test_hostile_text_is_refused_in_one_sentence(text):
    with pytest.raises(InputError) as caught:
        catalogue.read_config_text(text)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 300


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=200))
def test_any_text_is_parsed_or_refused(text):
    try:
        assert isinstance(catalogue.read_config_text(text), dict)
    except InputError:
        pass


def test_every_model_keeps_its_own_name():
    for entry in catalogue.entries():
        assert catalogue.load(entry.id).name == entry.name, entry.id
