"""Load generators: genai-perf and aiperf, MLPerf loadgen, llmperf, guidellm, LMDeploy, TGI's benchmark, perf_analyzer."""

from __future__ import annotations

import re

from .jsonish import number_of, text_of
from .labels import classify, words
from .reading import Sheet
from .tables import Table, delimited, pipe_tables
from .values import NUMBER, decimal_mark, number

# ---- genai-perf and aiperf --------------------------------------------------------------------------------

_GENAI = (
    ("ttft_ms", "mean"),
    ("itl_ms", "mean"),
    ("e2e_ms", "mean"),
    ("decode_tps_per_user", "mean"),
    ("output_tps", None),
    ("total_tps", None),
    ("request_tps", None),
)


def _genai_rows(sheet: Sheet, found: dict, mark: str, own: dict) -> None:
    """`found` maps (metric, stat) to (text or number, scale); aiperf users read TTFT and ITL, so its request latency goes to `more`."""
    for key in (*_GENAI, *(k for k in found if k not in _GENAI)):
        if key not in found:
            continue
        metric, stat = key
        value, scale = found[key]
        main = (
            key in _GENAI
            and not (metric == "e2e_ms" and sheet.tool == "aiperf" and ("itl_ms", "mean") in found)
            and not (metric == "total_tps" and sheet.tool != "aiperf")
        )
        kept = value if isinstance(value, (int, float)) else number(value, mark)
        sheet.row(
            metric,
            kept,
            value,
            scale=scale,
            into="rows" if main else "more",
            stat=stat,
            aggregate=True if metric in ("output_tps", "total_tps") else None,
            **own,
        )


def read_genai_console(lines: list[str]) -> Sheet | None:
    """The box table (a label may run over two lines; units stand in it), and totals printed below the table."""
    tables = pipe_tables(lines, lambda row: row[0] in ("Statistic", "Metric") and "avg" in row and ("p99" in row or "min" in row))
    tables += delimited(lines, lambda row: row[0] in ("Statistic", "Metric") and ("avg" in row or row[1:] == ["Value"]))
    if not any(t.rows for t in tables):
        return None
    text = "\n".join(lines)
    sheet = Sheet(
        "aiperf"
        if re.search(r"ai-?perf", text.replace("GenAI-Perf", "").replace("genai-perf", "").replace("genai_perf", ""), re.I)
        or "Time to First Token (ms)" in text  # the other spells it "To"
        or "Benchmark Duration (sec)" in text
        else "genai-perf"
    )
    pairs = [
        (m[1], m[2])
        for line in lines
        if (m := re.match(rf"\W*(Output token throughput \(per sec\)|Request throughput \(per sec\)):\s*({NUMBER})\s*$", line, re.I))
    ]
    values = [v for t in tables for _, row, n in t.rows for v in row[1:] if n]
    mark = decimal_mark([*values, *(v for _, v in pairs)])
    found: dict = {}
    own = _concurrency(text)
    for table in tables:
        names = [words(c) for c in table.header]
        stats = {
            i: {"avg": "mean", "p50": "median", "value": None}.get(n, n)
            for i, n in enumerate(names)
            if i and n in ("avg", "min", "max", "p99", "p95", "p90", "p75", "p50", "p25", "value")
        }
        for label_text, row in _unwrapped(table):
            if _genai_fact(sheet, label_text, row[1], mark):
                continue
            label = classify(label_text)
            if not label or label.scale is None:
                continue
            for i, stat in stats.items():
                rate = label.metric.endswith("_tps")
                if i < len(row) and number(row[i], mark) is not None and not (rate and stat not in ("mean", None)):
                    found.setdefault((label.metric, None if rate else stat or "mean"), (row[i], label.scale))
    for label_text, value in pairs:
        label = classify(label_text)
        if label:
            found.setdefault((label.metric, None), (value, 1.0))
    _genai_rows(sheet, found, mark, own)
    return sheet


def _concurrency(text: str) -> dict:
    match = re.search(r"--concurrency[ =](\d+)|\bconcurrency['\"]?[:=]\s*(\d+)", text)
    return {"concurrency": int(match[1] or match[2])} if match else {}


def _unwrapped(table: Table):
    """Join a label that runs on in the next row, whose other cells are empty."""
    out: list[list] = []
    for _, row, n in table.rows:
        if not n or not row[0]:
            continue
        if out and not any(row[1:]):
            out[-1][0] += " " + row[0]
        else:
            out.append([row[0], row])
    return [(a, b) for a, b in out]


def _genai_fact(sheet: Sheet, label: str, value, mark: str) -> bool:
    low = words(label)
    kind = (
        "mean_output_len"
        if re.search(r"output sequence length|num output token", low)
        else "mean_input_len"
        if re.search(r"input sequence length|num input token", low)
        else "num_requests"
        if re.search(r"request count", low)
        else None
    )
    if not kind:
        return False
    n = number(value, mark)
    sheet.fact(**{kind: (int(n) if kind == "num_requests" else n) if n and 0 < n < 1e15 else None})
    return True


def read_genai_json(records: list) -> Sheet | None:
    """profile_export_genai_perf.json and profile_export_aiperf.json: {metric: {"unit", "avg", "p99" ...}}."""
    for record in records:
        if not isinstance(record, dict):
            continue
        body = record.get("records") if isinstance(record.get("records"), dict) else record
        stats = {k: v for k, v in body.items() if isinstance(v, dict) and "avg" in v and "unit" in v}
        if not ({"request_throughput", "output_token_throughput", "request_latency", "time_to_first_token"} & set(stats)):
            continue
        config = record.get("input_config") if isinstance(record.get("input_config"), dict) else {}
        aiperf = (
            "aiperf" in str(record)[:20_000].lower()
            or "loadgen" in config
            or "endpoint" in config
            and "model_names" in str(config.get("endpoint"))
        )
        sheet = Sheet("aiperf" if aiperf else "genai-perf")
        found: dict = {}
        for name, entry in stats.items():
            if _genai_fact(sheet, name, number_of(entry, "avg"), "."):
                continue
            label = classify(f"{name} ({entry['unit']})" if isinstance(entry["unit"], str) else name)
            if not label or label.scale is None:
                continue
            rate = label.metric.endswith("_tps")
            for key, value in entry.items():
                if (
                    key != "unit"
                    and key != "std"
                    and isinstance(value, (int, float))
                    and not isinstance(value, bool)
                    and (key == "avg" or not rate)
                ):
                    found.setdefault((label.metric, None if rate else {"avg": "mean", "p50": "median"}.get(key, key)), (value, label.scale))
        flat = str(config)[:20_000]
        model = re.search(r"'(?:model|model_names?|formatted_model_name)': \[?'([^']{1,200})'", flat)
        own = {"concurrency": int(m[1]) for m in [re.search(r"'concurrency': (\d{1,9})\b", flat)] if m}
        sheet.fact(model=model[1] if model else None)
        _genai_rows(sheet, found, ".", own)
        return sheet
    return None


def read_aiperf_records(records: list) -> Sheet | None:
    """profile_export.jsonl of aiperf: one request a line; means over the requests that did not fail."""
    metrics = [
        r["metrics"]
        for r in records
        if isinstance(r, dict) and isinstance(r.get("metrics"), dict) and isinstance(r.get("metadata"), dict) and not r.get("error")
    ]
    values: dict[str, list] = {}
    units: dict[str, str] = {}
    for entry in metrics:
        for key, part in entry.items():
            value = number_of(part, "value") if isinstance(part, dict) else None
            if value is not None and isinstance(part.get("unit"), str):
                values.setdefault(key, []).append(value)
                units.setdefault(key, part["unit"])
    if "time_to_first_token" not in values and "request_latency" not in values:
        return None
    sheet = Sheet("aiperf")
    mean = {key: sum(v) / len(v) for key, v in values.items()}
    own = {
        "mean_input_len": mean.get("input_sequence_length"),
        "mean_output_len": mean.get("output_sequence_length") or mean.get("output_token_count"),
        "num_prompts": len(metrics),
    }
    own = {k: v for k, v in own.items() if v is not None}
    for key in ("time_to_first_token", "inter_token_latency", "output_token_throughput_per_user", "request_latency"):
        label = classify(f"{key} ({units[key]})") if key in mean else None
        if label and label.scale is not None:
            into = "more" if label.metric == "e2e_ms" else "rows"
            raw = f"mean of {len(values[key])}"
            sheet.row(label.metric, mean[key], raw, scale=label.scale, derived=True, into=into, stat="mean", **own)
    sheet.warn("per_request_records", "one record a request: the means are taken here, and a rate of the whole service is not in the file")
    return sheet


# ---- llmperf, guidellm ---------------------------------------------------------------------------------------


def read_llmperf(records: list) -> Sheet | None:
    """llmperf's summary: seconds, quantiles flattened into the keys; the mean over requests includes the first token."""
    for record in records:
        if not isinstance(record, dict) or not any(
            k.startswith("results_ttft_s") or k.startswith("results_mean_output_throughput") for k in record
        ):
            continue
        sheet = Sheet("llmperf")
        own = {
            "model": text_of(record, "model"),
            "concurrency": number_of(record, "num_concurrent_requests"),
            "mean_input_len": number_of(record, "results_number_input_tokens_mean", "mean_input_tokens"),
            "mean_output_len": number_of(record, "results_number_output_tokens_mean", "mean_output_tokens"),
            "num_prompts": number_of(record, "results_num_completed_requests"),
        }
        own = {k: v for k, v in own.items() if v is not None}
        if record.get("results_num_completed_requests") == 0:
            sheet.warn("no_completed_requests", "0 requests completed; its rates are no measurement")
            return sheet
        for metric, key in (
            ("ttft_ms", "results_ttft_s"),
            ("itl_ms", "results_inter_token_latency_s"),
            ("e2e_ms", "results_end_to_end_latency_s"),
        ):
            sheet.row(metric, number_of(record, f"{key}_mean"), scale=1000, stat="mean", **own)
            for q in ("p50", "p90", "p95", "p99"):
                sheet.row(metric, number_of(record, f"{key}_quantiles_{q}"), scale=1000, stat={"p50": "median"}.get(q, q), into="more")
        sheet.row("output_tps_per_user", number_of(record, "results_request_output_throughput_token_per_s_mean"), stat="mean", **own)
        sheet.row("output_tps", number_of(record, "results_mean_output_throughput_token_per_s"), aggregate=True, **own)
        sheet.row("request_tps", number_of(record, "results_num_completed_requests_per_min"), scale=1 / 60, **own)
        return sheet
    return None


_GUIDE = (
    ("request_tps", "requests_per_second", 1),
    ("output_tps", "output_tokens_per_second", 1),
    ("total_tps", "tokens_per_second", 1),
    ("ttft_ms", "time_to_first_token_ms", 1),
    ("tpot_ms", "time_per_output_token_ms", 1),
    ("itl_ms", "inter_token_latency_ms", 1),
    ("e2e_ms", "request_latency", 1000),
)


def read_guidellm(records: list) -> Sheet | None:
    """guidellm's JSON: one entry per load level, statistics under "successful"."""
    for record in records:
        levels = record.get("benchmarks") if isinstance(record, dict) else None
        if not isinstance(levels, list) or not any(isinstance(b, dict) and isinstance(b.get("metrics"), dict) for b in levels):
            continue
        sheet = Sheet("guidellm")
        model = re.search(r"'model': '([^']{1,200})'", str(record.get("args"))[:5000] + str(levels[0])[:20_000])
        sheet.fact(model=model[1] if model else None)
        for level in levels[:200]:
            metrics = level.get("metrics") if isinstance(level, dict) else None
            if not isinstance(metrics, dict):
                continue

            def stat(key: str, which: str = "mean", metrics=metrics):
                entry = metrics.get(key)
                entry = entry.get("successful", entry.get("total", entry)) if isinstance(entry, dict) else {}
                return number_of(entry, which) if isinstance(entry, dict) else None

            own = {
                "concurrency": stat("request_concurrency"),
                "mean_input_len": stat("prompt_token_count"),
                "mean_output_len": stat("output_token_count"),
            }
            for metric, key, scale in _GUIDE:
                into = "more" if metric == "e2e_ms" or metric == "itl_ms" and stat("time_per_output_token_ms") else "rows"
                sheet.row(
                    metric,
                    stat(key),
                    scale=scale,
                    into=into,
                    stat="mean" if metric.endswith("_ms") else None,
                    aggregate=True if metric in ("output_tps", "total_tps") else None,
                    **own,
                )
                if metric.endswith("_ms"):
                    sheet.row(metric, stat(key, "median"), scale=scale, into="more", stat="median", **own)
        return sheet
    return None
