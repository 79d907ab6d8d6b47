"""The Time view: its groups are the operators' own times, and what a pass takes besides them stands apart."""

from __future__ import annotations

import pytest

from roofline import view
from roofline.report import evaluate
from roofline.scenario import Scenario, resolve


@pytest.mark.parametrize("phase", ["prefill", "decode"])
@pytest.mark.parametrize("change", [{}, {"model": "llama-3.1-8b", "hardware": "a100-80gb-pcie", "tp": 1}, {"hardware": "h100-sxm", "tp": 8, "batch": 1}])
def test_a_group_takes_what_its_operators_take(change, phase):
    report = evaluate(resolve(Scenario(**change))).to_dict()
    groups = view.time_groups(report, phase)
    took = {}
    for op in report[phase]["operators"]:
        took[op["group"]] = took.get(op["group"], 0.0) + op["expected_s"]
    rest = report[phase]["expected_s"] - sum(took.values())  # by the fit: a pass is its operators and its overheads
    assert groups["basis"] == "expected" and rest > 0
    for row in groups["groups"]:
        assert row["time"] == view.seconds(took.get(row["group"], rest)), row
    assert sum(row["width"] for row in groups["groups"]) == pytest.approx(1, abs=1e-3)
    assert ("overhead" in {row["group"] for row in groups["groups"]}) == (rest / report[phase]["expected_s"] > 0.0005)


def test_limits_share_the_whole_since_they_overlap():
    groups = view.time_groups(evaluate(resolve(Scenario(engine="none"))).to_dict(), "decode")
    assert groups["basis"] == "limit" and all(row["group"] != "overhead" for row in groups["groups"])
    assert sum(row["width"] for row in groups["groups"]) == pytest.approx(1, abs=1e-3)
