"""Load generators: genai-perf and aiperf, MLPerf loadgen, llmperf, guidellm, LMDeploy, TGI's benchmark, perf_analyzer."""

from __future__ import annotations

import re

from .jsonish import number_of, text_of
from .labels import classify, words
from .reading import Sheet
from .serving import number_like
from .tables import Table, as_records, cells, delimited, pipe_tables
from .values import NUMBER, decimal_mark, number, whole

# ---- genai-perf and aiperf --------------------------------------------------------------------------------

_GENAI = (("ttft_ms", "mean"), ("itl_ms", "mean"), ("e2e_ms", "mean"), ("decode_tps_per_user", "mean"), ("output_tps", None), ("total_tps", None), ("request_tps", None))


def _genai_rows(sheet: Sheet, found: dict, mark: str, own: dict) -> None:
    """`found` maps (metric, stat) to (text or number, scale); aiperf users read TTFT and ITL, so its request latency goes to `more`."""
    for key in (*_GENAI, *(k for k in found if k not in _GENAI)):
        if key not in found:
            continue
        metric, stat = key
        value, scale = found[key]
        main = key in _GENAI and not (metric == "e2e_ms" and sheet.tool == "aiperf" and ("itl_ms", "mean") in found) and not (metric == "total_tps" and sheet.tool != "aiperf")
        kept = value if isinstance(value, (int, float)) else number(value, mark)
        sheet.row(metric, kept, value, scale=scale, into="rows" if main else "more", stat=stat, aggregate=True if metric in ("output_tps", "total_tps") else None, **own)


def read_genai_console(lines: list[str]) -> Sheet | None:
    """The box table (a label may run over two lines; units stand in it), and totals printed below the table."""
    tables = pipe_tables(lines, lambda row: row[0] in ("Statistic", "Metric") and "avg" in row and ("p99" in row or "min" in row))
    tables += delimited(lines, lambda row: row[0] in ("Statistic", "Metric") and ("avg" in row or row[1:] == ["Value"]))
    if not any(t.rows for t in tables):
        return None
    text = "\n".join(lines)
    sheet = Sheet("aiperf" if re.search(r"ai-?perf", text.replace("GenAI-Perf", "").replace("genai-perf", "").replace("genai_perf", ""), re.I) else "genai-perf")
    pairs = [(m[1], m[2]) for line in lines if (m := re.match(rf"\W*(Output token throughput \(per sec\)|Request throughput \(per sec\)):\s*({NUMBER})\s*$", line, re.I))]
    values = [v for t in tables for _, row, n in t.rows for v in row[1:] if n]
    mark = decimal_mark([*values, *(v for _, v in pairs)])
    found: dict = {}
    own = _concurrency(text)
    for table in tables:
        names = [words(c) for c in table.header]
        stats = {i: {"avg": "mean", "p50": "median", "value": None}.get(n, n) for i, n in enumerate(names) if i and n in ("avg", "min", "max", "p99", "p95", "p90", "p75", "p50", "p25", "value")}
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
    kind = "mean_output_len" if re.search(r"output sequence length|num output token", low) else "mean_input_len" if re.search(r"input sequence length|num input token", low) else "num_requests" if re.search(r"request count", low) else None
    if not kind:
        return False
    n = number(value, mark)
    sheet.fact(**{kind: (int(n) if kind == "num_requests" else n) if n and n < 1e15 else None})
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
        aiperf = "aiperf" in str(record)[:20_000].lower() or "loadgen" in config or "endpoint" in config and "model_names" in str(config.get("endpoint"))
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
                if key != "unit" and key != "std" and isinstance(value, (int, float)) and not isinstance(value, bool) and (key == "avg" or not rate):
                    found.setdefault((label.metric, None if rate else {"avg": "mean", "p50": "median"}.get(key, key)), (value, label.scale))
        flat = str(config)[:20_000]
        model = re.search(r"'(?:model|model_names?|formatted_model_name)': \[?'([^']{1,200})'", flat)
        own = {"concurrency": int(m[1]) for m in [re.search(r"'concurrency': (\d{1,9})\b", flat)] if m}
        sheet.fact(model=model[1] if model else None)
        _genai_rows(sheet, found, ".", own)
        return sheet
    return None


# ---- MLPerf loadgen -----------------------------------------------------------------------------------------

def read_mlperf(lines: list[str], records: list) -> Sheet | None:
    """mlperf_log_summary.txt and the :::MLLOG lines of the detail log; scheduled rates and targets are no results."""
    said: dict[str, str] = {}
    for line in lines:
        if m := re.match(r"\W{0,4}([A-Za-z0-9][\w .%-]{2,60}?(?: \(ns\))?)\s*:\s+(\S.*?)\s*$", line):
            said.setdefault(" ".join(m[1].lower().split()), m[2])
    logged = [r for r in records if isinstance(r, dict) and isinstance(r.get("key"), str) and "value" in r and ("namespace" in r or "time_ms" in r)]
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
    tokens = get("tokens per second", "completed tokens per second", "result_tokens_per_second", "result_completed_tokens_per_second", "result_token_throughput", "tokens per second (inferred)")
    samples = get("samples per second", "completed samples per second", "result_samples_per_second", "result_completed_samples_per_sec", "result_completed_samples_per_second", "queries per second", "qps w/ loadgen overhead", "result_qps_with_loadgen_overhead")
    sheet.row("request_tps", number(samples), samples, **facts)
    if tokens is not None and number(tokens) == 0:
        sheet.warn("token_rate_missing", "tokens per second is printed as 0: the system under test reported no tokens, so the token rate is unknown")
    else:
        sheet.row("output_tps", number(tokens), tokens, aggregate=True, **facts)
    for metric, names in (("ttft_ms", ("mean first token latency (ns)", "result_first_token_mean_latency_ns")),
                          ("tpot_ms", ("mean time to output token (ns)", "mean time per output token (ns)", "result_time_per_output_token_mean_ns", "result_time_per_output_token_mean")),
                          ("e2e_ms", ("mean latency (ns)", "result_mean_latency_ns"))):
        text = get(*names)
        if text is not None:
            sheet.row(metric, number(text), text, scale=1e-6, stat="mean", into="more" if metric == "e2e_ms" else "rows", **facts)
    for name, text in said.items():
        if (m := re.match(r"(\d\d)\.\d+ percentile (first token latency|time to output token|time per output token|latency) \(ns\)", name)) and number(text):
            metric = {"f": "ttft_ms", "t": "tpot_ms", "l": "e2e_ms"}[m[2][0]]
            sheet.row(metric, number(text), text, scale=1e-6, stat=f"p{m[1]}", into="more")
    if not valid:
        sheet.warn("result_invalid", "loadgen calls the run INVALID; the figures are kept but are no result")
    return sheet


# ---- llmperf, guidellm ---------------------------------------------------------------------------------------

def read_llmperf(records: list) -> Sheet | None:
    """llmperf's summary: seconds, quantiles flattened into the keys; the mean over requests includes the first token."""
    for record in records:
        if not isinstance(record, dict) or not any(k.startswith("results_ttft_s") or k.startswith("results_mean_output_throughput") for k in record):
            continue
        sheet = Sheet("llmperf")
        own = {"model": text_of(record, "model"), "concurrency": number_of(record, "num_concurrent_requests"),
               "mean_input_len": number_of(record, "results_number_input_tokens_mean", "mean_input_tokens"), "mean_output_len": number_of(record, "results_number_output_tokens_mean", "mean_output_tokens"),
               "num_prompts": number_of(record, "results_num_completed_requests")}
        own = {k: v for k, v in own.items() if v is not None}
        if record.get("results_num_completed_requests") == 0:
            sheet.warn("no_completed_requests", "0 requests completed; its rates are no measurement")
            return sheet
        for metric, key in (("ttft_ms", "results_ttft_s"), ("itl_ms", "results_inter_token_latency_s"), ("e2e_ms", "results_end_to_end_latency_s")):
            sheet.row(metric, number_of(record, f"{key}_mean"), scale=1000, stat="mean", **own)
            for q in ("p50", "p90", "p95", "p99"):
                sheet.row(metric, number_of(record, f"{key}_quantiles_{q}"), scale=1000, stat={"p50": "median"}.get(q, q), into="more")
        sheet.row("output_tps_per_user", number_of(record, "results_request_output_throughput_token_per_s_mean"), stat="mean", **own)
        sheet.row("output_tps", number_of(record, "results_mean_output_throughput_token_per_s"), aggregate=True, **own)
        sheet.row("request_tps", number_of(record, "results_num_completed_requests_per_min"), scale=1 / 60, **own)
        return sheet
    return None


_GUIDE = (("request_tps", "requests_per_second", 1), ("output_tps", "output_tokens_per_second", 1), ("total_tps", "tokens_per_second", 1),
          ("ttft_ms", "time_to_first_token_ms", 1), ("tpot_ms", "time_per_output_token_ms", 1), ("itl_ms", "inter_token_latency_ms", 1), ("e2e_ms", "request_latency", 1000))


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
            own = {"concurrency": stat("request_concurrency"), "mean_input_len": stat("prompt_token_count"), "mean_output_len": stat("output_token_count")}
            for metric, key, scale in _GUIDE:
                into = "more" if metric == "e2e_ms" or metric == "itl_ms" and stat("time_per_output_token_ms") else "rows"
                sheet.row(metric, stat(key), scale=scale, into=into, stat="mean" if metric.endswith("_ms") else None, aggregate=True if metric in ("output_tps", "total_tps") else None, **own)
                if metric.endswith("_ms"):
                    sheet.row(metric, stat(key, "median"), scale=scale, into="more", stat="median", **own)
        return sheet
    return None


# ---- LMDeploy -------------------------------------------------------------------------------------------------

def read_lmdeploy(lines: list[str]) -> Sheet | None:
    """profile_throughput and profile_restful_api: the newer table prints latencies in seconds; older ones print sentences."""
    if any("= Profile Throughput =" in line or re.match(r"\W*Benchmark duration\s{3,}[\d.]", line) for line in lines):
        return _lmdeploy_new(lines)
    text = "\n".join(lines)
    if "token throughput (completion token)" not in text:
        return None
    sheet = Sheet("lmdeploy")
    own: dict = {}
    for line in [*lines, "concurrency: end"]:
        if m := re.match(r"\W*concurrency:\s*(\d+|end)", line):
            own = {"concurrency": int(m[1])} if m[1] != "end" else {}
        elif m := re.match(rf"\W*first[ _]token latency\s*(?:\(s\))?\(min, max, ave\):\s*({NUMBER})s?,\s*({NUMBER})s?,\s*({NUMBER})s?", line):
            sheet.row("ttft_ms", number(m[3]), m[3], scale=1000, stat="mean", **own)
        elif m := re.match(rf"\W*token throughput \((completion|prompt \+ completion) tokens?\):\s*({NUMBER})\s*tokens?/s", line):
            sheet.row("output_tps" if m[1] == "completion" else "total_tps", number(m[2]), m[2], aggregate=True, **own)
        elif m := re.match(rf"\W*RPS \(requests? per second\):\s*({NUMBER})\s*req/s", line):
            sheet.row("request_tps", number(m[1]), m[1], **own)
        elif m := re.match(r"\W*number of (prompt|completion) tokens:\s*(\d+)", line):
            sheet.fact(**{f"total_{m[1]}_tokens": int(m[2][:15])})
    return sheet


def _lmdeploy_new(lines: list[str]) -> Sheet | None:
    sheet = Sheet("lmdeploy")
    said: dict[str, str] = {}
    for line in lines:
        if m := re.match(rf"\W*([A-Z][\w ()/-]{{3,50}}?)\s{{2,}}({NUMBER}|true|false|-)((?:\s+{NUMBER}|\s+-)*)\s*$", line):
            said.setdefault(" ".join(m[1].split()), m[2])
    mark = decimal_mark(said.values())
    def get(key: str) -> float | None:
        value = number(said.get(key), mark)
        return value if value is not None and abs(value) < 1e15 else None
    done = get("Successful requests") or get("Total requests")
    if get("Successful requests") == 0:
        sheet.warn("no_completed_requests", "0 requests succeeded; its rates are no measurement")
        return sheet
    own = {"concurrency": whole(said.get("Concurrency")), "num_prompts": int(done) if done else None}
    for key, total in (("mean_input_len", "Total input tokens"), ("mean_output_len", "Total generated tokens")):
        own[key] = round(get(total) / done, 2) if done and get(total) else None
    for label, metric, scale in (("Input throughput (tok/s)", "input_tps", 1), ("Output throughput (tok/s)", "output_tps", 1), ("Request throughput (req/s)", "request_tps", 1),
                                 ("Time to First Token (TTFT)", "ttft_ms", 1000), ("Time per Output Token (TPOT)", "tpot_ms", 1000), ("End-to-end Latency", "e2e_ms", 1000), ("Inter-token Latency (ITL)", "itl_ms", 1000)):
        text = said.get(label)
        sheet.row(metric, number(text, mark), text, scale=scale, stat="mean" if scale > 1 else None, into="more" if metric in ("e2e_ms", "itl_ms") else "rows",
                  aggregate=True if metric in ("input_tps", "output_tps") else None, **own)
    return sheet


# ---- TGI's benchmark, perf_analyzer ----------------------------------------------------------------------------

def read_tgi(lines: list[str]) -> Sheet | None:
    """text-generation-benchmark: its "prefill" rate counts one new token per sequence, so only the prefill time is used."""
    tables = pipe_tables(lines, lambda row: row[:3] == ["Step", "Batch Size", "Average"])
    if not any(t.rows for t in tables):
        return None
    sheet = Sheet("tgi")
    given = {r[0]: r[1] for line in lines if line.count("|") >= 3 and len(r := cells(line)) == 2}
    prompt, gen = whole(given.get("Sequence Length")), whole(given.get("Decode Length"))
    model = given.get("Model", "")
    sheet.fact(model=model or None)
    for table in tables:
        step = ""
        for _, row, _n in table.rows:
            step, batch = row[0] or step, whole(row[1])
            match = re.fullmatch(rf"({NUMBER})\s*(ms|s|tokens/secs?|tok/s)", row[2])
            if not match or not batch:
                if "nan" in row[2].lower():
                    sheet.warn("non_finite", f"{step} at batch {batch} is not a number and is left out")
                continue
            value, time = number(match[1]), match[2] in ("ms", "s")
            scale = 1000 if match[2] == "s" else 1
            if step == "Prefill" and time:
                sheet.row("ttft_ms", value, row[2], scale=scale, stat="mean", batch=batch, n_prompt=prompt)
            elif step == "Decode (token)" and time:
                sheet.row("tpot_ms", value, row[2], scale=scale, stat="mean", batch=batch, n_depth=prompt, n_gen=gen)
            elif step in ("Decode", "Decode (total)") and not time:
                sheet.row("decode_tps", value, row[2], batch=batch, aggregate=True, n_depth=prompt, n_gen=gen)
            elif step == "Prefill":
                sheet.warn("prefill_rate_is_per_sequence", "the prefill tokens/secs of this tool are sequences per second and are left out")
    return sheet


def read_perf_analyzer(lines: list[str]) -> Sheet | None:
    """Triton perf_analyzer: "Concurrency: 1, throughput: 71.8 infer/sec, latency 13900 usec"."""
    sheet = Sheet("perf_analyzer")
    for line in lines:
        if m := re.match(rf"\W*Concurrency:\s*(\d+),\s*throughput:\s*({NUMBER})\s*infer/sec,\s*latency\s*({NUMBER})\s*usec", line):
            sheet.row("request_tps", number(m[2]), m[2], concurrency=int(m[1][:9]))
            sheet.row("e2e_ms", number(m[3]), m[3], scale=1e-3, concurrency=int(m[1][:9]), stat="mean")
    return sheet if sheet.rows else None


def read_mlperf_table(records: list) -> Sheet | None:
    """The published results of MLCommons: one record per system, model and scenario."""
    sheet = Sheet("mlperf")
    for record in records:
        if not isinstance(record, dict) or "Performance_Result" not in record and not ("Result" in record and "Units" in record and "Scenario" in record):
            continue
        units = str(record.get("Performance_Units", record.get("Units", ""))).lower()
        metric = "output_tps" if "token" in units else "request_tps" if re.search(r"samples|queries", units) else None
        value = record.get("Performance_Result", record.get("Result"))
        if metric and number_like({"v": value}, "v"):
            sheet.row(metric, value, model=text_of(record, "Model", "UsedModel"), hardware=text_of(record, "Accelerator", "accelerator_model_name"), scenario=text_of(record, "Scenario"),
                      gpus=number_of(record, "a#", "Accelerators", "accelerators_per_node"), system=text_of(record, "SystemName", "Platform"), aggregate=True if metric == "output_tps" else None)
    return sheet if sheet.rows else None
