"""MLPerf: loadgen summaries and detail logs, and the published results."""

from __future__ import annotations

import re

from .jsonish import number_of, text_of
from .reading import Sheet
from .serving import number_like
from .values import number


def read_mlperf(lines: list[str], records: list) -> Sheet | None:
    """mlperf_log_summary.txt and the :::MLLOG lines of the detail log; scheduled rates and targets are no results."""
    said: dict[str, str] = {}
    for line in lines:
        if m := re.match(r"\W{0,4}([A-Za-z0-9][\w .%/-]{2,60}?(?: \(ns\))?)\s*:\s+(\S.*?)\s*$", line):
            said.setdefault(" ".join(m[1].lower().split()), m[2])
    logged = [
        r
        for r in records
        if isinstance(r, dict) and isinstance(r.get("key"), str) and "value" in r and ("namespace" in r or "time_ms" in r)
    ]
    for record in logged:
        key = record["key"]
        if key.startswith("result_") or key in ("effective_scenario", "sut_name", "loadgen_version", "error_count", "num_errors"):
            said.setdefault(key, str(record["value"]))
    if not ("result is" in said and ("scenario" in said or "sut name" in said)) and not ("result_validity" in said):
        return None
    sheet = Sheet("mlperf")
    get = lambda *names: next((said[n] for n in names if n in said), None)  # noqa: E731
    verdict = get("result is", "result_validity") or ""
    valid = verdict.strip().upper().startswith("VALID")
    facts: dict = {} if valid else {"valid": False, "usable": False}
    sheet.fact(scenario=get("scenario", "effective_scenario"), valid=valid)
    if get("mode") and "performance" not in get("mode").lower():
        sheet.warn("accuracy_run", f"mode {get('mode')[:30]}: rates of an accuracy run are no result")
        facts["usable"] = False
    errors = next((int(m[1]) for line in lines if (m := re.match(r"\W*(\d{1,12}) ERRORS? encountered", line))), 0)
    if errors:
        sheet.fact(errors=errors)
        sheet.warn("errors_reported", f"loadgen reports {errors} errors; see the detail log")
    tokens = get(
        "tokens per second",
        "completed tokens per second",
        "result_tokens_per_second",
        "result_completed_tokens_per_second",
        "result_token_throughput",
        "tps w/ loadgen overhead",
        "result_tps_with_loadgen_overhead",
        "tokens per second (inferred)",
    )
    samples = get(
        "samples per second",
        "completed samples per second",
        "result_samples_per_second",
        "result_completed_samples_per_sec",
        "result_completed_samples_per_second",
        "queries per second",
        "qps w/ loadgen overhead",
        "result_qps_with_loadgen_overhead",
    )
    sheet.row("request_tps", number(samples), samples, **facts)
    if tokens is not None and number(tokens) == 0:
        sheet.warn(
            "token_rate_missing",
            "tokens per second is printed as 0: the system under test reported no tokens, so the token rate is unknown",
        )
    else:
        sheet.row("output_tps", number(tokens), tokens, aggregate=True, **facts)
    for metric, names in (
        ("ttft_ms", ("mean first token latency (ns)", "result_first_token_mean_latency_ns")),
        (
            "tpot_ms",
            (
                "mean time to output token (ns)",
                "mean time per output token (ns)",
                "result_time_per_output_token_mean_ns",
                "result_time_per_output_token_mean",
            ),
        ),
        ("e2e_ms", ("mean latency (ns)", "result_mean_latency_ns")),
    ):
        text = get(*names)
        if text is not None:
            sheet.row(metric, number(text), text, scale=1e-6, stat="mean", into="more" if metric == "e2e_ms" else "rows", **facts)
    for name, text in said.items():
        if (
            m := re.match(r"(\d\d)(?:\.\d+|th) percentile (first token latency|time to output token|time per output token|latency) \(ns\)", name)
        ) and number(text):
            metric = {"f": "ttft_ms", "t": "tpot_ms", "l": "e2e_ms"}[m[2][0]]
            sheet.row(metric, number(text), text, scale=1e-6, stat=f"p{m[1]}", into="more")
    if not valid:
        sheet.warn("result_invalid", "loadgen calls the run INVALID; the figures are kept but are no result")
    return sheet


def read_mlperf_table(records: list) -> Sheet | None:
    """The published results of MLCommons: one record per system, model and scenario."""
    sheet = Sheet("mlperf")
    for record in records:
        if (
            not isinstance(record, dict)
            or "Performance_Result" not in record
            and not ("Result" in record and "Units" in record and "Scenario" in record)
        ):
            continue
        units = str(record.get("Performance_Units", record.get("Units", ""))).lower()
        metric = "output_tps" if "token" in units else "request_tps" if re.search(r"samples|queries", units) else None
        value = record.get("Performance_Result", record.get("Result"))
        if metric and number_like({"v": value}, "v"):
            sheet.row(
                metric,
                value,
                model=text_of(record, "Model", "UsedModel"),
                hardware=text_of(record, "Accelerator", "accelerator_model_name"),
                scenario=text_of(record, "Scenario"),
                gpus=number_of(record, "a#", "Accelerators", "accelerators_per_node"),
                system=text_of(record, "SystemName", "Platform"),
                aggregate=True if metric == "output_tps" else None,
            )
    return sheet if sheet.rows else None
