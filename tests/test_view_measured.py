"""The Measured view's data: every shipped row is there or says why not, no row is faster than its limit, and one's own output is placed or refused."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import median

import pytest

from roofline import rows, view_measured, view_own
from roofline.errors import InputError
from roofline.scenario import Scenario

SAMPLES = Path(__file__).parent / "data" / "samples"
TABLE = """| model | size | params | backend | ngl | test | t/s |
|-|-|-|-|-|-|-|
| llama 8B Q4_0 | 4.33 GiB | 8.03 B | CUDA | 99 | pp512 | 12000.00 ± 10.00 |
| llama 8B Q4_0 | 4.33 GiB | 8.03 B | CUDA | 99 | tg128 | 160.00 ± 0.42 |
"""


@pytest.fixture(scope="module")
def found():
    return view_measured.measured()


def test_every_shipped_row_is_shown_or_explained(found):
    columns = found["columns"]
    assert len(columns["id"]) + len(found["unmapped"]) == len(rows.shipped())
    assert len({len(c) for c in columns.values()}) == 1
    assert all(u.startswith("https://github.com/") or not u for u in columns["url"])
    assert sum(not u for u in columns["url"]) < 0.03 * len(columns["url"])
    names = view_measured.names(columns)
    assert set(columns["chip"]) | set(columns["model"]) <= set(names)
    json.dumps(found, allow_nan=False)


def test_no_measurement_is_faster_than_its_limit(found):
    columns = found["columns"]
    assert all(m >= limit for m, limit in zip(columns["measured"], columns["limit"], strict=True))
    assert found["summary"]["above"] == "0"


def test_every_row_opens_as_a_scenario(found):
    for fragment in set(found["columns"]["fragment"]):
        scenario, notices = Scenario.from_fragment(fragment)
        assert notices == () and scenario.batch >= 1


def test_error_tables_add_up(found):
    for key, table in found["tables"].items():
        assert sum(int(row["points"].replace(",", "")) for row in table) == len(found["columns"]["id"]), key
    mine = [
        limit / m
        for e, limit, m in zip(*(found["columns"][k] for k in ("engine", "limit", "measured")), strict=True)
        if e == "llama.cpp"
    ]
    row = next(row for row in found["tables"]["engine"] if row["name"] == "llama.cpp")
    assert row["reached"] == view_measured.percent(median(mine))


def test_what_the_fit_never_saw_is_told_apart(found):
    assert found["basis"] == "expected" and found["unseen"]
    assert [row["engine"] for row in found["unseen"] if row["kind"] == "prefill, static"][0] == "all engines"
    assert view_measured.measured(None)["basis"] == "limit" and view_measured.measured(None)["unseen"] == []


def test_expectations_are_told_where_there_are_any():
    told = view_measured.measured(lambda case: (1.1 * case.measured_s, case.measured_s, 2 * case.measured_s))
    assert told["summary"]["median"].startswith("10") and told["summary"]["inside"].startswith("100")


def test_a_llama_bench_table_is_placed_on_the_chip_of_the_question():
    answer = view_own.place_text(TABLE, "bench.md", Scenario(hardware="rtx-4090", model="mixtral-8x7b"))
    assert answer["tool"] == "llama-bench" and len(answer["rows"]) == 2
    prefill, decode = answer["rows"]
    # 4.65 GB of weights at 160 tokens/s are some 744 GB/s of the 1,008 GB/s there are.
    assert decode["bandwidth"].startswith("7") and decode["bound"] == "memory" and not decode["above"]
    assert 65 < float(decode["of_limit"].split("\u2009")[0]) < 80
    assert prefill["phase"] == "prefill"
    assert any("llama-3.1-8b" in note for note in answer["assumed"]) and any("rtx-4090" in note for note in answer["assumed"])
    assert Scenario.from_fragment(decode["fragment"])[0].model == "llama-3.1-8b"


def test_above_the_roof_is_said():
    answer = view_own.place_text(TABLE.replace("160.00", "1600.00"), "bench.md", Scenario(hardware="rtx-4090"))
    assert answer["rows"][1]["above"] and "above the roof" in answer["rows"][1]["verdict"] and answer["rows"][1]["culprits"]


@pytest.mark.parametrize(
    "path",
    sorted(p for p in SAMPLES.iterdir() if p.suffix in (".txt", ".md", ".json", ".jsonl", ".csv", ".tsv", ".html")),
    ids=lambda p: p.name,
)
def test_samples_are_placed_or_refused_with_a_reason(path):
    text = path.read_bytes().decode("utf-8", "replace")
    try:
        answer = view_own.place_text(text, path.name, Scenario())
    except InputError as error:
        assert len(str(error)) > 20
        return
    json.dumps(answer, allow_nan=False)
    assert all(row["verdict"] for row in answer["rows"])


def test_requests_in_flight_help_where_the_file_does_not_say():
    text = "Throughput: 5.00 requests/s, 2000.00 total tokens/s, 1000.00 output tokens/s"
    without = view_own.place_text(text, "", Scenario())
    given = view_own.place_text(text, "", Scenario(), in_flight=64)
    assert "type it above" in without["rows"][0]["verdict"]
    assert any(row["of_limit"] != "–" for row in given["rows"])


@pytest.mark.parametrize(
    ("metric", "value", "reached"),
    [("user", "61.8", 100), ("total", "1978", 100), ("tpot", "32.4 ms", 50), ("prefill", "12500", None), ("ttft", "20.4 s", 50)],
)
def test_one_number_is_placed(metric, value, reached):
    scenario = Scenario(model="llama-3.1-70b", hardware="h200-sxm", devices=2, weights="fp8", batch=32, prompt=8000, output=512)
    row = view_own.place_number(metric, value, scenario)["rows"][0]
    if reached:
        assert float(row["of_limit"].split("\u2009")[0]) == pytest.approx(reached, rel=0.02)


@pytest.mark.parametrize(("metric", "value"), [("user", "fast"), ("user", ""), ("user", "-3"), ("speed", "3"), ("tpot", "3 GB")])
def test_a_bad_number_is_explained(metric, value):
    with pytest.raises(InputError):
        view_own.place_number(metric, value, Scenario())
