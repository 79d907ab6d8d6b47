"""The Explore view's data: block by block the same answer as in one go, limits that only take away, and texts for everything shown."""

from __future__ import annotations

import csv
import io
import json

import pytest

np = pytest.importorskip("numpy")

from roofline import evaluate, view_explore
from roofline.errors import InputError
from roofline.explore import explore_request
from roofline.scenario import Scenario

FORM = {"model": "llama-3.1-70b", "hardware": "h200-sxm", "weights": "fp8", "batch": "32", "prompt": "8k", "output": "512"}
FIELDS = {"weights": "auto,fp8,int4-g128", "devices": "1,2,4,8", "tpot": "33 ms", "vendors": "NVIDIA"}


def tried(form: dict, fields: dict) -> tuple:
    """(answer, steps) of a whole exploration."""
    steps = []
    while True:
        found = view_explore.step(Scenario.from_dict(form), fields)
        steps.append(found)
        if found["answer"]:
            return found["answer"], steps


def sized(form: dict, fields: dict, given: dict) -> tuple:
    """(answer, shares done) of a whole fleet."""
    shares = []
    while True:
        found = view_explore.fleet(form, fields, given)
        shares.append(found["share"])
        if found["answer"]:
            return found["answer"], shares


def test_steps_end_in_the_answer_of_one_go():
    answer, steps = tried(FORM, FIELDS)
    whole = explore_request({"scenario": FORM, "explore": FIELDS})
    assert [row["hardware"] for row in answer["rows"]] == [row["hardware"] for row in whole["best"]]
    assert [row["text"]["title"] for row in answer["rows"]] == [row["text"]["title"] for row in whole["best"]]
    assert [(p["x"], p["y"], p["title"]) for p in answer["points"]] == [
        p for f in whole["fronts"] for p in zip(f["x"], f["y"], f["title"], strict=True)
    ]
    assert [(r["hardware"], r["why"]) for r in answer["why_not"]] == [(r["hardware"], r["why"]) for r in whole["why_not"]]
    assert [s["share"] for s in steps] == sorted(s["share"] for s in steps) and steps[-1]["share"] == 1
    json.dumps(answer, allow_nan=False)
    assert len(tried(FORM, FIELDS | {"tpot": "20 ms"})[1]) == 1  # the same space, only judged anew


def test_tighter_limits_only_take_away():
    met = [
        int(tried(FORM, FIELDS | {"tpot": limit})[0]["counts"]["met"].replace(",", ""))
        for limit in ("", "100 ms", "33 ms", "10 ms", "1 ms")
    ]
    assert met == sorted(met, reverse=True) and met[-1] < met[0]


def test_the_front_is_not_beaten_by_any_point():
    answer, _ = tried(FORM, FIELDS)
    x, y = (np.array(answer["front"][k]) for k in "xy")
    for point in answer["points"]:
        beaten = (x > point["x"] * (1 + 1e-9)) & (y > point["y"] * (1 + 1e-9))
        on = np.any(np.isclose(x, point["x"]) & np.isclose(y, point["y"]))
        assert beaten.any() or on


def test_nothing_that_meets_is_an_answer_too():
    answer, _ = tried(FORM, FIELDS | {"tpot": "1 ns"})
    assert not answer["rows"] and not answer["points"] and answer["why_not"]


def test_a_point_a_row_and_a_near_miss_open_as_the_scenario_they_stand_for():
    base, fields = Scenario.from_dict(FORM), FIELDS | {"prefill": "same:2", "drafts": "0,3"}
    answer, whole = tried(FORM, fields)[0], explore_request({"scenario": FORM, "explore": fields})
    opened = lambda at: view_explore.opened(base, fields, at).to_fragment()
    assert [opened(row["at"]) for row in answer["rows"]] == [row["fragment"] for row in whole["best"]]
    assert [opened(p["at"]) for p in answer["points"]] == [x for f in whole["fronts"] for x in f["fragment"]]
    assert [r["at"] and opened(r["at"]) for r in answer["why_not"]] == [r["fragment"] for r in whole["why_not"]]
    for at in (None, [0, 0, 0], [0, 0, 0, 0, 0, "x"], [0, -1, 0, 0, 0, 0], [10**6, 0, 0, 0, 0, 0], [0, 0, 0, 0, 10**6, 0]):
        with pytest.raises(InputError, match="at"):
            view_explore.opened(base, fields, at)


def test_each_model_and_load_has_an_answer_of_its_own():
    base, fields = Scenario.from_dict(FORM), FIELDS | {"models": "llama-3.1-70b,qwen3-30b-a3b", "prompts": "1k,16k"}
    first = tried(FORM, fields)[0]
    assert [(c["model"], c["prompt"]) for c in first["cells"]] == [
        (m, p) for m in ("llama-3.1-70b", "qwen3-30b-a3b") for p in ("1,000", "16,000")
    ]
    whole = explore_request({"scenario": FORM, "explore": fields})
    for i, cell in enumerate((whole, *whole["others"])):
        now = view_explore.step(base, fields, i)["answer"]
        assert now["cell"] == i and [row["text"]["title"] for row in now["rows"]] == [
            row["text"]["title"] for row in cell["best"]
        ]
    assert view_explore.step(base, fields, 99)["answer"]["cell"] == 0


def test_the_table_is_saved_with_all_its_figures():
    answer, whole = tried(FORM, FIELDS)[0], explore_request({"scenario": FORM, "explore": FIELDS})["best"]
    rows = list(csv.DictReader(io.StringIO(view_explore.csv(Scenario.from_dict(FORM), FIELDS))))
    assert [row["hardware"] for row in rows] == [row["hardware"] for row in answer["rows"]]
    for row, told in zip(rows, whole, strict=True):
        assert float(row["tpot_s"]) == told["tpot_s"] and row["fragment"] == told["fragment"]
        assert row["joules_per_output_token"] == (
            "" if told["joules_per_output_token"] is None else repr(told["joules_per_output_token"])
        )
    assert view_explore.csv(Scenario.from_dict(FORM), FIELDS | {"tpot": "1 ns"}) == ""


def test_a_space_too_large_for_a_browser_is_refused():
    with pytest.raises(InputError, match="at most 2,000,000"):
        view_explore.step(
            Scenario.from_dict(FORM),
            {
                "weights": "bf16,fp8,int8,int4-g128,nvfp4,mxfp4,q4_k_m,q8_0",
                "kv": "bf16,fp8,int8,int4",
                "devices": "1,2,4,8,16,32,64",
            },
        )


def test_the_tornado_is_the_sensitivity():
    found = view_explore.tornado(FORM | {"devices": "2"}, "latency", 0.2)
    assert found["rows"][0]["parameter"] == "bandwidth"  # decoding waits for memory
    assert all(-1.0001 <= row[side] <= 1.0001 for row in found["rows"] for side in ("low_at", "high_at"))
    json.dumps(found, allow_nan=False)


@pytest.mark.parametrize(
    "mix", [row["id"] for row in view_explore.mixes()] + ["prompt,output,requests_per_s\n1000,200,3\n8000,500,1"]
)
def test_fleets_are_sized_and_written(mix):
    found = sized(FORM, {"devices": "1,2,4,8"}, {"mix": mix, "rate": "10", "headroom": 0.2})[0]
    assert found["rows"] and found["why_not"] and all(isinstance(v, str) for v in found["rows"][0]["text"].values())
    json.dumps(found, allow_nan=False)


def test_a_fleet_of_many_classes_is_sized_in_steps_that_end_in_the_fleet_of_one_go():
    mix = "prompt,output,requests_per_s\n" + "\n".join(f"{500 * (n + 1)},{100 + n},1" for n in range(24))
    fields, given = {"devices": "1,2,4,8"}, {"mix": mix, "headroom": "0.3", "objective": "chips"}
    found, shares = sized(FORM, fields, given)
    whole = explore_request({"ask": "fleet", "scenario": FORM, "explore": fields, **given})
    assert [(r["hardware"], r["fragment"]) for r in found["rows"]] == [(r["hardware"], r["fragment"]) for r in whole["best"]]
    assert found["headroom"].startswith("30") and {r["hardware"]: r["why"] for r in found["why_not"]} == whole["why_not"]
    assert len(shares) > 2 and shares == sorted(set(shares)) and shares[-1] == 1
    assert len(sized(FORM, fields, given)[1]) == 1  # asked again, it is there


def test_scores_have_sources_and_prices():
    found = view_explore.capability(Scenario(model="llama-3.1-70b", hardware="h200-sxm", weights="fp8", batch=32, prompt=8000))
    assert len(found["rows"]) > 10 and all(row["url"].startswith("https://") for row in found["rows"])
    assert any(row["frontier"] for row in found["rows"]) and all(
        row["price"].startswith("$") or row["x"] is None for row in found["rows"]
    )
    json.dumps(found, allow_nan=False)


def test_an_offloaded_model_is_bound_by_the_host_link_in_every_row():
    """Half of 8 GB of FP8 weights over a host link of tens of GB/s takes longer than all of them from HBM of TB/s."""
    form = {"model": "llama-3.1-8b", "hardware": "h100-sxm", "weights": "fp8", "batch": "1", "prompt": "1k", "output": "128", "offload": "0.5"}
    answer, _ = tried(form, {"chips": "h100-sxm", "devices": "1", "batches": "1,2,4", "weights": "auto"})
    assert [row["bound"] for row in answer["rows"]] == ["host"]
    assert evaluate(Scenario.from_dict(form)).decode.bound == "network"  # what a Report's JSON calls both links
