"""The course as the page shows it: the live numbers that the lessons' texts name, written out."""

from __future__ import annotations

from . import chart_data
from .explain_times import Working
from .hardware import load
from .operators import distinct_experts
from .phase import decode_pass
from .report import evaluate
from .scenario import Resolved, Scenario, resolve
from .units import format_number, format_quantity
from .view import bytes_, count, percent, seconds, times, told

# Every name a lesson may use as {name} or watch; a value is text, or for a bound the key that the page has a word for.
NAMES = (
    "ridge",
    "intensity",
    "prefill_intensity",
    "bound",
    "prefill_bound",
    "tpot",
    "ttft",
    "user",
    "total",
    "utilisation",
    "bandwidth_use",
    "step_bytes",
    "weights",
    "kv",
    "kv_token",
    "memory",
    "max_batch",
    "experts_read",
    "tokens_per_step",
    "flops",
    "pool_ratio",
    "met",
    "prompt",
    "peak",
    "bandwidth",
    "batch",
    "weights_read",
    "acceptance",
    "speedup",
    "expected_tpot",
    "expected_speedup",
)


def numbers(scenario: Scenario) -> dict:
    """{name: text} for every name in NAMES; "–" where the scenario has no such number. Intensities are those of the chart.

    >>> found = numbers(Scenario(model="qwen3-30b-a3b"))
    >>> found["bound"], found["ridge"], found["experts_read"]
    ('memory', '295', '8 / 128')
    """
    r = resolve(scenario)
    report = evaluate(r).to_dict()
    decode, prefill, serving, mem = report["decode"], report["prefill"], report["serving"], report["memory"]
    finding = chart_data.roofline_sources(report)["finding"]
    x = {p["name"]: p["x"] for p in finding["phases"]}
    moved = decode["bytes"]["weights"] + decode["bytes"]["kv_read"] + decode["bytes"]["kv_write"]
    plain = lambda value: "–" if value is None else format_number(value)
    bound = lambda phase: (told(phase) or "plain") if phase["limit_s"] is not None else "misfit"
    return {
        "ridge": finding["ridge"],
        "intensity": x.get("decode", "–"),
        "prefill_intensity": x.get("prefill", "–"),
        "bound": bound(decode),
        "prefill_bound": bound(prefill),
        "tpot": seconds(serving["tpot_s"]),
        "ttft": seconds(serving["ttft_s"]),
        "user": plain(serving["tokens_per_s_per_user"]),
        "total": plain(serving["tokens_per_s"]),
        "utilisation": percent(decode["compute_utilisation"]),
        "bandwidth_use": percent(decode["bandwidth_utilisation"]),
        "step_bytes": bytes_(moved),
        "weights": bytes_(mem["weights_bytes"]),
        "kv": bytes_(mem["kv_bytes_stored"]),
        "kv_token": bytes_(report["model"]["kv_bytes_per_token_stored"]),
        "memory": bytes_(mem["total_bytes"]),
        "max_batch": "–" if mem["max_batch"] is None else _count(mem["max_batch"]),
        "experts_read": _experts(r),
        "tokens_per_step": _count(serving["tokens_per_step"]),
        "flops": format_quantity(prefill["flops"], "FLOP"),
        "pool_ratio": plain((serving["disaggregated"] or {}).get("prefill_instances_per_decode")),
        "met": count(met(r)),
        "prompt": _count(r.scenario.prompt),
        "peak": format_quantity(report["formats"]["compute_peak_flops_per_s"], "FLOP/s"),
        "bandwidth": format_quantity(r.chip.bandwidth_bytes_per_s, "B/s"),
        "batch": _count(r.scenario.batch),
        "weights_read": bytes_(decode["bytes"]["weights"]),
        "acceptance": percent(r.scenario.acceptance),
        "speedup": times((serving["speculation"] or {}).get("speedup")),
        "expected_tpot": seconds(serving["expected_tpot_s"]),
        "expected_speedup": times((serving["speculation"] or {}).get("expected_speedup")),
    }


def met(r: Resolved) -> float:
    """Weights that every prompt token is multiplied with: of the layers, without the embedding (looked up) and the head (the last token's).

    >>> met(resolve(Scenario(model="llama-3.1-8b"))) / 1e9
    6.979321856
    """
    w = Working(r, "prefill")
    return sum(op.flops for op in w.ops if op.tokens and op.group not in ("attention_core", "lm_head")) / 2 / w.p.tokens


def _experts(r: Resolved) -> str:
    """How many of a layer's routed experts one decode step reads."""
    layer = next((t for t in r.arch.tensors if t.group == "experts" and t.kind == "linear"), None)
    if layer is None:
        return "–"
    step = decode_pass(r.scenario, r.layout, r.scenario.draft + 1)
    return f"{_count(distinct_experts(layer.copies, layer.active, step.tokens * step.pool, r.scenario.routing))} / {layer.copies}"


def _count(value: float) -> str:
    """A number that is often whole: 8, 82.4."""
    return f"{value:,.0f}" if value == round(value) else format_number(value)


def labels(knob: dict) -> list:
    """What the values of a lesson's knob {"field", "values"} are called.

    >>> labels({"field": "hardware", "values": ["h200-sxm"]}), labels({"field": "prompt", "values": [4096]}), labels({"field": "weights", "values": ["fp8"]})
    (['H200 SXM 141GB'], ['4,096'], ['FP8'])
    """
    write = {"hardware": lambda v: load(v).name, "weights": str.upper}.get(
        knob.get("field"), lambda v: f"{v:,}" if isinstance(v, int) else str(v)
    )
    return [write(value) for value in knob.get("values", ())]


def same(lesson: Scenario, other: Scenario, knob: dict) -> bool:
    """Whether a question is a lesson's own, wherever its knob stands.

    >>> same(Scenario(batch=1), Scenario(batch=64), {"field": "batch"}), same(Scenario(), Scenario(prompt=7), {"field": "batch"})
    (True, False)
    """
    field = knob.get("field")
    return lesson == (other.replace(**{field: getattr(lesson, field)}) if field else other)
