"""Where a measured row stands under the roof, and what most likely keeps it there.

The limit and the expectation come from a Report (schema 1, as a dict) of the scenario the row was measured in; a
profiler's kernel stands by its own FLOPs and bytes. Sentences are ranked: the likeliest cause first.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from .. import catalogue
from ..errors import InputError
from ..model import parameters
from ..units import format_number, format_quantity
from .culprits import culprits, size_mismatch
from .hints import scenario_hint
from .kernel_place import KERNEL_METRICS, empty_place, kernel_by_row, kernel_of, place_kernel

# How each metric counts: the phase it times and the tokens (or steps, requests) one unit of it stands for.
_STEP = {"decode_tps", "decode_tps_per_user", "tpot_ms", "itl_ms"}
_IN_SERVICE = {"tpot_ms", "itl_ms", "decode_tps_per_user", "output_tps_per_user", "e2e_ms"}  # slower with every request beside
_PROMPT = {"prefill_tps", "ttft_ms"}
_WHOLE = {
    "output_tps",
    "output_tps_e2e",
    "output_tps_per_user",
    "output_tps_per_gpu",
    "total_tps",
    "input_tps",
    "request_tps",
    "combined_tps",
    "latency_s",
    "e2e_ms",
}
# What is left out of a row's scenario, in turn, until it can be evaluated: an engine without measurements, an expert layout
# printed for a dense model, a layout the model does not divide into.
_DROPS = ((), ("engine",), ("ep",), ("engine", "ep"), ("engine", "tp", "pp", "ep", "devices"))


def place(row: Mapping, report: Mapping) -> dict:
    """Place one row under the roof of a report.

    Args: row: a row of a Reading (with its common facts merged in, if any); report: schema 1, evaluated for the row's scenario.
    Returns {"phase", "measured_s" [s], "limit_s" [s], "expected_s" [s], "percent_of_limit" [%], "percent_of_expectation" [%],
    "achieved_bandwidth_bytes_per_s" [bytes/s], "achieved_flops_per_s" [FLOP/s], "bandwidth_percent" [%], "compute_percent" [%],
    "intensity_flops_per_byte" [FLOP/byte], "attainable_flops_per_s" [FLOP/s], "bound", "above_roof", "verdict", "culprits"};
    a figure that cannot be told is None and "verdict" says why. Bandwidth and FLOP/s are those of one replica.
    """
    metric = row.get("metric")
    if metric in KERNEL_METRICS:
        return place_kernel(kernel_of([row]), report.get("hardware") or {}, (report.get("formats") or {}).get("compute"))
    timing = _timing(row, report)
    if isinstance(timing, str):
        return empty_place(timing)
    phase, measured, work = timing
    limit, expected, flops, moved, bound, intensity, attainable, bandwidth_share, compute_share = work
    result = empty_place("")
    result.update(
        phase=phase,
        measured_s=measured,
        limit_s=limit,
        expected_s=expected,
        bound=bound,
        intensity_flops_per_byte=intensity,
        attainable_flops_per_s=attainable,
        achieved_bandwidth_bytes_per_s=moved / measured,
        achieved_flops_per_s=flops / measured,
    )
    if limit is None:
        if mismatch := size_mismatch(row, report.get("model") or {}):
            result["culprits"] = [mismatch]
        result["verdict"] = (
            "The scenario has no limit (it does not fit, or the chip lacks the format), so the row cannot be held against one."
        )
        return _finite(result)
    result["percent_of_limit"] = 100 * limit / measured
    result["bandwidth_percent"] = None if bandwidth_share is None else 100 * bandwidth_share * limit / measured
    result["compute_percent"] = None if compute_share is None else 100 * compute_share * limit / measured
    result["percent_of_expectation"] = 100 * expected / measured if expected else None
    result["above_roof"] = limit > 1.03 * measured
    result["verdict"] = _verdict(result)
    result["culprits"] = culprits(row, report, result)
    return _finite(result)


def _finite(result: dict) -> dict:
    """The placement without figures that a float cannot hold (a hostile file's rate of 1e308)."""
    return {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in result.items()}


def _verdict(result: dict) -> str:
    percent = result["percent_of_limit"]
    what = {"memory": "bandwidth", "compute": "peak compute", "network": "what the links allow"}.get(result["bound"] or "", "the limit")
    if result["above_roof"]:
        return f"{percent:.0f} % of the limit: above the roof, so the scenario is not what ran."
    near = (
        f"{percent:.0f} % of {what}"
        if result["bound"] in ("memory", "compute") and result["phase"] != "whole run"
        else f"{percent:.0f} % of the limit"
    )
    if result["percent_of_expectation"]:
        return f"{near}; {result['percent_of_expectation']:.0f} % of what engines usually reach here."
    return f"{near}."


def _timing(row: Mapping, report: Mapping):
    """(phase, seconds, work) of the row, or a sentence that says why it cannot be placed."""
    metric, value = row.get("metric"), row.get("value")
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not value > 0 or row.get("usable") is False:
        return "The row is marked as no usable measurement."
    decode, prefill = report.get("decode"), report.get("prefill")
    scenario, layout, serving = (report.get(k) or {} for k in ("scenario", "layout", "serving"))
    batch, dp = scenario.get("batch", 1), layout.get("dp") or 1
    prompt, output, cached = scenario.get("prompt", 1024), scenario.get("output", 256), scenario.get("cached", 0)
    tokens_per_step = serving.get("tokens_per_step") or 1.0
    several = any(isinstance(row.get(k), (int, float)) and row[k] > 1 for k in ("num_prompts", "num_requests"))
    if metric in _IN_SERVICE and several and row.get("batch") is None and row.get("concurrency") is None:
        return "A token's time in a service depends on the requests in flight, and the file does not state them; give it with --batch."
    if metric in _STEP:
        if not decode:
            return "The scenario has no decode phase."
        if row.get("includes_prefill"):
            return _whole(report, batch * output / value, batch, output)
        if metric == "decode_tps" and row.get("aggregate") and row.get("batch") is None and row.get("concurrency") is None:
            return "The rate is summed over a batch whose size the file does not state; give it with --batch."
        seconds = {"tpot_ms": value / 1e3 * tokens_per_step, "itl_ms": value / 1e3, "decode_tps_per_user": tokens_per_step / value}.get(
            metric
        ) or batch * dp * tokens_per_step / value
        return "decode", seconds, _work(decode)
    if metric in _PROMPT:
        if not prefill:
            return "The scenario has no prefill phase."
        if metric == "ttft_ms":
            return "prefill", value / 1e3, _work(prefill)
        if not (row.get("n_prompt") or row.get("mean_input_len")):
            return "The prompt length is not stated, so the rate has no time; give it with --prompt."
        if row.get("aggregate") and row.get("batch") is None and row.get("concurrency") is None:
            return "The rate is summed over a batch whose size the file does not state; give it with --batch."
        return "prefill", batch * dp * (prompt - cached) / value, _work(prefill)
    if metric in _WHOLE:
        if metric in ("latency_s", "e2e_ms"):
            return _whole(report, value / (1 if metric == "latency_s" else 1e3), batch, output)
        if row.get("batch") is None and row.get("concurrency") is None and metric not in ("combined_tps", "output_tps_per_user"):
            return "A rate of a whole service needs the number of requests in flight, and the file does not state it; give it with --batch."
        devices = layout.get("devices") or 1
        per_cycle = {
            "output_tps": batch * dp * output,
            "output_tps_e2e": batch * dp * output,
            "output_tps_per_user": output,
            "output_tps_per_gpu": batch * dp * output / devices,
            "total_tps": batch * dp * (prompt + output),
            "input_tps": batch * dp * prompt,
            "request_tps": batch * dp,
            "combined_tps": batch * dp * (prompt + output),
        }
        return _whole(report, per_cycle[metric] / value, batch, output)
    return f"{metric} is no time or rate of the model, so it has no place under the roof."


def _work(phase: Mapping) -> tuple:
    return (
        phase.get("limit_s"),
        phase.get("expected_s"),
        phase["flops"],
        phase["bytes"]["total"],
        phase.get("bound"),
        phase.get("intensity_flops_per_byte"),
        phase.get("attainable_flops_per_s"),
        phase.get("bandwidth_utilisation"),
        phase.get("compute_utilisation"),
    )


def _whole(report: Mapping, seconds: float, batch: int, output: int):
    """Prefill of the batch and all decode steps after it, as one piece of work."""
    prefill, decode = report.get("prefill"), report.get("decode")
    if not prefill or not decode:
        return "The scenario lacks a phase, so a whole run has no limit."
    steps = max(output - 1, 0) / ((report.get("serving") or {}).get("tokens_per_step") or 1.0)
    total = lambda key: None if prefill.get(key) is None or decode.get(key) is None else prefill[key] + steps * decode[key]  # noqa: E731
    limit, expected = total("limit_s"), total("expected_s")
    flops, moved = prefill["flops"] + steps * decode["flops"], prefill["bytes"]["total"] + steps * decode["bytes"]["total"]
    bound = decode.get("bound") if limit and steps * (decode.get("limit_s") or 0) > limit / 2 else prefill.get("bound")
    share = lambda key: (
        None
        if not limit or prefill.get(key) is None or decode.get(key) is None
        else (prefill[key] * prefill["limit_s"] + decode[key] * steps * decode["limit_s"]) / limit
    )  # noqa: E731
    work = (
        limit,
        expected,
        flops,
        moved,
        bound,
        flops / moved if moved else None,
        flops / limit if limit else None,
        share("bandwidth_utilisation"),
        share("compute_utilisation"),
    )
    return "whole run", seconds, work


# ---- a whole reading ----------------------------------------------------------------------------------------------


def placed(reading, scenario) -> dict:
    """The reading as a dict, each row with "place" (as `place`) and "asked" (the scenario's fields that the row changed).

    Fields that `scenario` leaves at their default follow what the row states (batch, lengths, formats, layout); the rest stay.
    """
    from ..report import evaluate

    answer = reading.to_dict()
    by_row = kernel_by_row(reading)
    reports: dict = {}
    for i, (entry, row) in enumerate(zip(answer["rows"], reading.rows, strict=True)):
        hint = scenario_hint(reading, row)
        asked, notes = applied(scenario, hint)
        facts = {**reading.common, **row, "engine_of_file": hint.get("engine")}
        if facts.get("batch") is None and facts.get("concurrency") is None and scenario.batch != type(scenario)().batch:
            facts["batch"] = scenario.batch  # the user says what the file does not
        if facts.get("quant") and "weights" not in hint and scenario.weights == "auto":
            notes.append(f"The file's number format ({facts['quant']}) has no size known here; name the weights format to place the row.")
        report = None
        for dropped in _DROPS:
            changes = {k: v for k, v in asked.items() if k not in dropped}
            key = tuple(sorted(changes.items()))
            try:
                if key not in reports:
                    reports[key] = evaluate(scenario.replace(**changes)).to_dict()
                report, asked = reports[key], changes
                break
            except InputError as error:
                reason = str(error)
        if report is None:
            entry["place"] = empty_place(f"The row's scenario cannot be evaluated: {reason}.")
            continue
        if row.get("metric") in KERNEL_METRICS:
            entry["place"] = _finite(place_kernel(by_row[i], report["hardware"], report["formats"]["compute"]))
        else:
            entry["place"] = place(facts, report)
        entry["asked"] = asked
        entry["place"]["culprits"] = [*notes, *entry["place"]["culprits"]]
    return answer


def applied(scenario, hint: Mapping) -> tuple[dict, list[str]]:
    """What of a hint goes into a scenario that already names model and chip: only fields still at their default.

    Returns (changes, sentences where the row's own chip or model contradicts the scenario's).
    """
    default = type(scenario)()
    changes = {}
    for name in ("weights", "kv", "batch", "prompt", "output", "cached", "devices", "tp", "pp", "ep", "engine"):
        if name in hint and getattr(scenario, name) == getattr(default, name):
            changes[name] = hint[name]
    if any(getattr(scenario, n) != getattr(default, n) for n in ("devices", "tp", "pp", "ep", "dp")):
        for name in ("devices", "tp", "pp", "ep"):
            changes.pop(name, None)
    prompt = changes.get("prompt", scenario.prompt)
    if changes.get("cached", scenario.cached) >= prompt:
        changes.pop("cached", None)
    notes = []
    if hint.get("hardware") and hint["hardware"] != scenario.hardware and scenario.hardware != "custom":
        notes.append(f"The file names {hint['hardware']}, the scenario {scenario.hardware}: place it on the chip that ran.")
    if hint.get("model") and hint["model"] != scenario.model and not scenario.config and not _same_size(hint["model"], scenario.model):
        notes.append(f"The file names the model {hint['model']}, the scenario {scenario.model}.")
    return changes, notes


def _same_size(one: str, other: str) -> bool:
    """True if two catalogue models have the same number of parameters (an instruct variant and its base)."""
    try:
        a, b = (parameters(catalogue.load(name))["total"] for name in (one, other))
    except InputError:
        return False
    return abs(a - b) <= 0.01 * max(a, b)


def summary(result: Mapping) -> str:
    """One line for a console: verdict and the likeliest cause.

    >>> summary({"verdict": "39 % of bandwidth.", "culprits": ["x"], "achieved_bandwidth_bytes_per_s": None, "achieved_flops_per_s": None})
    '39 % of bandwidth. x'
    """
    rates = []
    if result.get("achieved_bandwidth_bytes_per_s"):
        rates.append(format_quantity(result["achieved_bandwidth_bytes_per_s"], "B/s"))
    if result.get("achieved_flops_per_s"):
        rates.append(format_quantity(result["achieved_flops_per_s"], "FLOP/s"))
    if result.get("intensity_flops_per_byte"):
        rates.append(f"{format_number(result['intensity_flops_per_byte'])} FLOP/byte")
    head = f" ({', '.join(rates)})" if rates else ""
    return " ".join(
        [result.get("verdict", "").rstrip(".") + head + ("." if result.get("verdict") else ""), *list(result.get("culprits") or [])[:1]]
    ).strip()
