"""Explore: one broadcast gives what `evaluate` gives, its answer is right, and it finds the winners that public measurements found."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

np = pytest.importorskip("numpy")

from roofline import Scenario, evaluate, hardware  # noqa: E402
from roofline.errors import InputError  # noqa: E402
from roofline.explore import Question, Space, Stopped, explore, front  # noqa: E402
from roofline.explore.answer import OBJECTIVES, table_of  # noqa: E402
from roofline.explore.figures import BOUNDS, NAMES  # noqa: E402
from roofline.explore.grid import FAULTS, blocks  # noqa: E402
from roofline.explore.space import plan  # noqa: E402

CHIPS = ("h100-sxm", "h200-sxm", "b200-sxm", "l4", "mi300x", "tpu-v5e", "gaudi3", "a100-80gb-sxm", "rtx-4090", "h100-pcie", "epyc-9654", "apple-m2-ultra", "gb200")
MODELS = ("llama-3.1-8b", "llama-3.1-70b", "mixtral-8x7b", "deepseek-v3", "gemma-2-2b", "gpt-oss-120b", "qwen3-30b-a3b")
NEAR = {"rel_tol": 1e-9, "abs_tol": 1e-300}


def rows(space: Space):
    """Every row of a space, as (Table, index) pairs."""
    made = plan(space)
    for block in blocks(space, made):
        table = table_of(block, np.arange(block.rows), made, space)
        yield from ((table, i) for i in range(len(table)))


def same(a, b) -> bool:
    """Equal to 1e-9; unknown is None on one side and NaN on the other."""
    if b is None:
        return not math.isfinite(a)
    return math.isclose(a, b, **NEAR)


def expect(report) -> dict:
    """The figures of a row, from a Report."""
    s, c, e, m, pools = report.serving, report.cost, report.energy, report.memory, report.serving["disaggregated"]
    found = {name: s[name] for name in ("ttft_s", "tpot_s", "tokens_per_s_per_user", "tokens_per_s", "tokens_per_s_per_device", "requests_per_s")}
    found |= {name: c[name] for name in ("usd_per_million_input_tokens", "usd_per_million_output_tokens", "usd_per_million_output_tokens_all_in")}
    found |= {"joules_per_output_token": e["joules_per_output_token"], "total_bytes": m["total_bytes"], "available_bytes": m["available_bytes"]}
    if pools and hardware.load(pools["prefill_hardware"]).usd_per_hour is None or c["usd_per_million_output_tokens"] is None:
        # Where the price of one pool is unknown, a Report prices what it can; a row leaves the sum unknown.
        found = {name: value for name, value in found.items() if not name.startswith("usd")}
    if pools:
        found["served_tokens_per_s_per_device"] = pools["tokens_per_s_per_device"]
    else:
        found |= {"devices": report.hardware["devices"], "usd_per_hour": c["usd_per_hour"]}
        if s["requests_per_s"]:
            found["served_tokens_per_s_per_device"] = s["requests_per_s"] * report.scenario.get("output", 256) / report.hardware["devices"]
    return found


def check(table, i):
    """Row i of a table against `evaluate` of its scenario."""
    scenario = table.scenario(i)
    fault = int(table.columns["fault"][i])
    # A decode instance that does not fit is refused first: its pool is never asked.
    unlinked = fault and FAULTS[fault - 1] != "memory" and scenario.prefill_hardware and hardware.load(scenario.prefill_hardware).link_bytes_per_s is None and scenario.prefill_devices > 1
    if unlinked or fault and FAULTS[fault - 1] == "link":
        with pytest.raises(InputError):
            evaluate(scenario)
        return
    report = evaluate(scenario)
    if fault == 0:
        for name, value in expect(report).items():
            assert same(float(table.columns[name][i]), value), (name, float(table.columns[name][i]), value, scenario)
        if not scenario.prefill_hardware:
            assert same(float(table.columns["ttft_alone_s"][i]), evaluate(scenario.replace(batch=1)).serving["ttft_s"])
        assert BOUNDS[int(table.columns["bound"][i])] == report.decode.bound
    elif FAULTS[fault - 1] == "memory":
        assert report.memory["fits"] is False and report.serving["tpot_s"] is None
        assert same(float(table.columns["total_bytes"][i]), report.memory["total_bytes"])
    elif FAULTS[fault - 1] == "prefill":
        assert report.serving["disaggregated"]["prefill_fits"] is False


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_every_row_is_what_evaluate_says(data):
    draw = data.draw
    some = lambda values, most=2: tuple(draw(st.lists(st.sampled_from(values), min_size=1, max_size=most, unique=True)))
    prompt, output = draw(st.integers(1, 60_000)), draw(st.integers(1, 3000))
    cached = draw(st.sampled_from((0, prompt // 3)))
    lever = draw(st.sampled_from(((), (("routing", 0.4),), (("offload", 0.2), ("offload_kv", 0.1)), (("fused", False), ("block", 16)), (("imbalance", 1.3), ("sequence_parallel", True)),
                                  (("overhead", 2e9), ("utilisation", 0.9)), (("draft", 2), ("draft_model", "llama-3.2-1b")))))
    space = Space(
        base=Scenario(usd_per_hour=draw(st.sampled_from((None, 2.5))), usd_per_kwh=draw(st.sampled_from((0.0, 0.1))), pue=draw(st.sampled_from((1.0, 1.3)))),
        models=some(MODELS, 1), chips=some(CHIPS, 3), devices=some((1, 2, 4, 8, 16), 2), weights=some(("auto", "bf16", "fp8", "int4-g128", "nvfp4"), 1),
        kv=some(("auto", "fp8", "int4"), 1), activations=some(("auto", "bf16"), 1), batches=some((1, 3, 8, 50, 256, 4000), 2), loads=((prompt, output, cached), (700, 1)),
        drafts=some((0, 3), 1), levers=(lever,), prefill=draw(st.sampled_from(((), (("same", 2),), (("h100-sxm", 4),)))), replicas=draw(st.booleans()),
    )
    found = list(rows(space))
    if found:
        for k in draw(st.lists(st.integers(0, len(found) - 1), min_size=1, max_size=6)):
            check(*found[k])
