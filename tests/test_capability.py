"""Published scores joined with active parameters and prices."""

import json

import pytest

from roofline import Scenario
from roofline.capability import capability, scores

ASK = Scenario(hardware="h100-sxm", batch=32, prompt=1000, output=500)


@pytest.fixture(scope="module")
def answer():
    return capability(ASK)


def test_every_score_has_a_source():
    for id, value, source, _ in scores():
        assert 0 < value < 100 and source["url"].startswith("https://") and source["by"] and source["retrieved"], id


def test_scores_are_those_printed(answer):
    """MMLU-Pro as printed: Llama 3.1 (Meta's card) 48.3, 66.4, 73.3; DeepSeek-V3 75.9 and Qwen2.5 72B 71.6 (DeepSeek-V3's README)."""
    found = {row["model"]: row["score"] for row in answer["models"]}
    assert {k: found[k] for k in ("llama-3.1-8b", "llama-3.1-70b", "llama-3.1-405b", "deepseek-v3", "qwen2.5-72b")} == {
        "llama-3.1-8b": 48.3, "llama-3.1-70b": 66.4, "llama-3.1-405b": 73.3, "deepseek-v3": 75.9, "qwen2.5-72b": 71.6}


def test_a_mixture_is_cheaper_than_a_dense_model_of_its_size(answer):
    """DeepSeek-V3 (37 of 671 billion used) scores more than Llama 3.1 405B and costs less on the same chips: that is what its experts buy."""
    rows = {row["model"]: row for row in answer["models"]}
    v3, dense = rows["deepseek-v3"], rows["llama-3.1-405b"]
    assert v3["active_parameters"] < dense["active_parameters"] and v3["score"] > dense["score"]
    assert v3["usd_per_million_output_tokens"] < dense["usd_per_million_output_tokens"]


def test_the_frontier_is_not_beaten(answer):
    for row in answer["models"]:
        if row["frontier"]:
            rivals = [o for o in answer["models"] if o["reasoning"] == row["reasoning"] and o["usd_per_million_all_in"] is not None and o is not row]
            assert not any(o["score"] > row["score"] and o["usd_per_million_all_in"] < row["usd_per_million_all_in"] for o in rivals)
    assert any(row["frontier"] for row in answer["models"])
    json.dumps(answer, allow_nan=False)


def test_what_does_not_fit_has_no_price():
    rows = {row["model"]: row for row in capability(ASK, most=1)["models"]}
    assert rows["llama-3.1-405b"]["usd_per_million_all_in"] is None and rows["llama-3.1-405b"]["frontier"] is False
    assert rows["llama-3.1-8b"]["usd_per_million_all_in"] > 0
