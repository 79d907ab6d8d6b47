"""Benchmarks that serving engines bring along: LMDeploy, TGI, Triton's perf_analyzer, InferenceMAX aggregates."""

from __future__ import annotations

import re

from .jsonish import number_of, text_of
from .reading import Sheet
from .tables import cells, pipe_tables
from .values import NUMBER, decimal_mark, number, whole


def read_lmdeploy(lines: list[str]) -> Sheet | None:
    """profile_throughput and profile_restful_api: the newer table prints latencies in seconds; older ones print sentences."""
    if any("= Profile Throughput =" in line or re.match(r"\W*Benchmark duration\s{3,}[\d.]", line) for line in lines):
        return _lmdeploy_new(lines)
    text = "\n".join(lines)
    if "token throughput (completion token)" not in text and "throughput(output):" not in text:
        return None
    sheet = Sheet("lmdeploy")
    own: dict = {}
    for line in [*lines, "concurrency: end"]:
        if m := re.match(r"\W*concurrency:\s*(\d+|end)", line):
            own = {"concurrency": int(m[1])} if m[1] != "end" else {}
        elif m := re.match(r"\W*input_tokens:\s*(\d+),\s*output_tokens:\s*(\d+)", line):
            own.update(n_prompt=int(m[1][:9]), n_gen=int(m[2][:9]))
        elif m := re.match(rf"\W*throughput\((output|total)\):\s*({NUMBER})\s*tokens?/s", line):
            sheet.row("output_tps" if m[1] == "output" else "total_tps", number(m[2]), m[2], aggregate=True, **own)
        elif m := re.match(
            rf"\W*first[ _]token latency\s*(?:\(s\))?\(min, max, ave\):\s*({NUMBER})s?,\s*({NUMBER})s?,\s*({NUMBER})s?", line
        ):
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
    for label, metric, scale in (
        ("Input throughput (tok/s)", "input_tps", 1),
        ("Output throughput (tok/s)", "output_tps", 1),
        ("Request throughput (req/s)", "request_tps", 1),
        ("Time to First Token (TTFT)", "ttft_ms", 1000),
        ("Time per Output Token (TPOT)", "tpot_ms", 1000),
        ("End-to-end Latency", "e2e_ms", 1000),
        ("Inter-token Latency (ITL)", "itl_ms", 1000),
    ):
        text = said.get(label)
        sheet.row(
            metric,
            number(text, mark),
            text,
            scale=scale,
            stat="mean" if scale > 1 else None,
            into="more" if metric in ("e2e_ms", "itl_ms") else "rows",
            aggregate=True if metric in ("input_tps", "output_tps") else None,
            **own,
        )
    return sheet


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


def read_inferencemax(records: list) -> Sheet | None:
    """Aggregated InferenceMAX results: rates per GPU, latencies in seconds."""
    sheet = Sheet("inferencemax")
    for record in records:
        if not isinstance(record, dict) or not (
            "hw" in record and "conc" in record and ("tput_per_gpu" in record or "output_tput_per_gpu" in record)
        ):
            continue
        own = {
            "hardware": text_of(record, "hw"),
            "model": text_of(record, "model"),
            "concurrency": number_of(record, "conc"),
            "tp": number_of(record, "tp"),
            "engine": text_of(record, "framework"),
            "precision": text_of(record, "precision"),
            "mean_input_len": number_of(record, "isl"),
            "mean_output_len": number_of(record, "osl"),
        }
        own = {k: v for k, v in own.items() if v is not None}
        sheet.row("output_tps_per_gpu", number_of(record, "output_tput_per_gpu"), **own)
        sheet.row("ttft_ms", number_of(record, "mean_ttft"), scale=1000, stat="mean", **own)
        sheet.row("tpot_ms", number_of(record, "mean_tpot"), scale=1000, stat="mean", **own)
        sheet.row("total_tps_per_gpu", number_of(record, "tput_per_gpu"), into="more", **own)
    return sheet if sheet.rows else None


def read_client_reports(records: list) -> Sheet | None:
    """JSON reports of inference-perf and genai-bench: seconds, and sums over all requests in flight."""
    for record in records:
        part = lambda holder, key: holder[key] if isinstance(holder.get(key), dict) else {}  # noqa: E731
        if not isinstance(record, dict):
            continue
        good, whole_run = part(record, "successes"), part(record, "aggregated_metrics")
        if part(good, "throughput") and part(good, "latency"):
            rates, times, sheet = part(good, "throughput"), part(good, "latency"), Sheet("inference-perf")
            load = part(record, "load_summary")
            own = {
                "num_prompts": number_of(good, "count"),
                "failed": number_of(part(record, "failures"), "count"),
                "concurrency": number_of(load, "concurrency"),
                "mean_input_len": number_of(part(good, "prompt_len"), "mean"),
                "mean_output_len": number_of(part(good, "output_len"), "mean"),
            }
            keys = ("requests_per_sec", "input_tokens_per_sec", "output_tokens_per_sec", "total_tokens_per_sec")
            names = ("time_to_first_token", "time_per_output_token", "request_latency")
        elif "num_concurrency" in whole_run and part(whole_run, "stats"):
            rates, times, sheet = whole_run, part(whole_run, "stats"), Sheet("genai-bench")
            own = {
                "num_prompts": number_of(whole_run, "num_completed_requests"),
                "failed": number_of(whole_run, "num_error_requests"),
                "concurrency": number_of(whole_run, "num_concurrency"),
                "mean_input_len": number_of(part(times, "num_input_tokens"), "mean"),
                "mean_output_len": number_of(part(times, "num_output_tokens"), "mean"),
            }
            keys = (
                "requests_per_second",
                "mean_input_throughput_tokens_per_s",
                "mean_output_throughput_tokens_per_s",
                "mean_total_tokens_throughput_tokens_per_s",
            )
            names = ("ttft", "tpot", "e2e_latency")
        else:
            continue
        own = {k: v for k, v in own.items() if v is not None}
        if own.get("num_prompts") == 0:
            sheet.warn("no_completed_requests", "0 requests succeeded; its rates are no measurement")
            return sheet
        for metric, key in zip(("request_tps", "input_tps", "output_tps", "total_tps"), keys, strict=True):
            sheet.row(metric, number_of(rates, key), aggregate=None if metric == "request_tps" else True, **own)
        for metric, name in zip(("ttft_ms", "tpot_ms", "e2e_ms"), names, strict=True):
            into = "more" if metric == "e2e_ms" else "rows"
            sheet.row(metric, number_of(part(times, name), "mean"), scale=1000, stat="mean", into=into, **own)
        return sheet
    return None
