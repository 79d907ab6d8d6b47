"""What vLLM and SGLang print while they run: window averages, progress bars; and vLLM's copy of a result for PyTorch."""

from __future__ import annotations

import re

from .jsonish import text_of
from .labels import classify
from .reading import Sheet
from .values import NUMBER, number


def read_pytorch_format(records: list) -> Sheet | None:
    """vLLM's copy of its result in PyTorch's benchmark format: one record per metric with a list of values."""
    sheet = Sheet("vllm")
    for record in records:
        metric = record.get("metric") if isinstance(record, dict) else None
        values = metric.get("benchmark_values") if isinstance(metric, dict) else None
        if not isinstance(values, list) or not values or not isinstance(metric.get("name"), str):
            continue
        numbers = [v for v in values if isinstance(v, (int, float)) and not isinstance(v, bool)]
        model = record.get("model") if isinstance(record.get("model"), dict) else {}
        sheet.fact(model=text_of(model, "name"))
        name = {"tokens_per_second": "total token throughput", "requests_per_second": "request throughput"}.get(
            metric["name"], metric["name"]
        )
        label = classify(name)
        if numbers and name == "latency":
            sheet.row("latency_s", sum(numbers) / len(numbers), "benchmark_values", stat="mean", repetitions=len(numbers))
        elif len(numbers) == 1 and label and label.scale is not None:
            main = label.stat in (None, "mean") and label.metric != "e2e_ms"
            sheet.row(
                label.metric,
                numbers[0],
                scale=label.scale,
                into="rows" if main else "more",
                stat=label.stat,
                aggregate=True if label.metric in ("output_tps", "total_tps") else None,
            )
    return sheet if sheet.rows else None


_VLLM_LOG = re.compile(
    rf"Avg prompt throughput: ({NUMBER}) tokens/s, Avg generation throughput: ({NUMBER}) tokens/s, Running: (\d+) reqs?(.*)"
)
_SGLANG_LOG = re.compile(rf"(Decode|Prefill) batch(?:\s*\[\d+\])?[.,]\s.{{0,400}}?(?:gen|input) throughput \(token/s\): ({NUMBER})")


def read_logs(lines: list[str]) -> Sheet | None:
    """Window averages that vLLM and SGLang servers log; prompt and output tokens share the window, so neither is a phase's own rate."""
    sheet = Sheet("vllm")
    idle = 0
    for line in lines:
        if "SpecDecoding metrics" in line and (m := re.search(rf"Mean acceptance length: ({NUMBER}),", line)):
            sheet.fact(speculative=True, acceptance_length=number(m[1]))
        elif "generation throughput" in line and (m := _VLLM_LOG.search(line)):
            hit = re.search(rf"[Pp]refix cache hit rate: (?:GPU: )?({NUMBER})%", m[4])
            facts = {
                "concurrency": int(m[3][:9]) or None,
                "aggregate": True,
                "window": True,
                "prefix_hit_pct": (number(hit[1]) or None) if hit else None,
            }
            values = [(n, t, number(t)) for n, t in (("input_tps", m[1]), ("output_tps", m[2]))]
            idle += not any(v for _, _, v in values)
            for metric, text, value in values:
                if value:
                    sheet.row(metric, value, f"{text} tokens/s", **facts)
        elif "throughput (token/s)" in line and (m := _SGLANG_LOG.search(line)):
            sheet.tool = "sglang"
            batch = re.search(r"#(?:running-req|new-seq): (\d+)", line)
            facts = {"concurrency": int(batch[1][:9]) if batch else None, "aggregate": True, "window": True}
            value = number(m[2])
            idle += not value
            if value:
                sheet.row("output_tps" if m[1] == "Decode" else "input_tps", value, f"{m[2]} token/s", **facts)
    if not sheet.rows:
        return None
    if idle:
        sheet.warn("idle_windows", f"{idle} log lines with a rate of 0 (an idle server) are left out")
    sheet.warn("window_averages", "log lines average over a window that holds idle time and both phases; they are no steady rate")
    return sheet


_PROGRESS = re.compile(rf"Processed prompts:\s*100%.*?est\. speed input: ({NUMBER}) toks/s, output: ({NUMBER}) toks/s")


def read_progress(lines: list[str]) -> Sheet | None:
    """The finished progress bar of vLLM's offline engine, where nothing better is printed."""
    sheet = Sheet("vllm")
    for line in lines:
        if "est. speed" in line and (m := _PROGRESS.search(line)):
            sheet.row("input_tps", number(m[1]), f"{m[1]} toks/s", aggregate=True)
            sheet.row("output_tps", number(m[2]), f"{m[2]} toks/s", aggregate=True)
    if sheet.rows:
        sheet.warn("progress_bar_rates", "the rates stand in a progress bar: tokens over the whole time, both phases in it")
    return sheet if sheet.rows else None


def read_multi_turn(lines: list[str]) -> Sheet | None:
    """vLLM's benchmark_serving_multi_turn: a table of statistics with the mean in its second column."""
    head = next((i for i, line in enumerate(lines) if line.split()[:3] == ["count", "mean", "std"]), None)
    if head is None:
        return None
    said = {
        words[0]: words[1:] for line in lines[head + 1 : head + 40] if len(words := line.split()) > 3 and re.fullmatch(r"[a-z_]+", words[0])
    }
    if not {"ttft_ms", "tpot_ms"} <= set(said):
        return None
    sheet = Sheet("vllm")
    mean = lambda key: number(said[key][1]) if key in said else None  # noqa: E731
    count = number(said["ttft_ms"][0])
    own = {
        "num_prompts": int(count) if count and count < 1e9 else None,
        "mean_input_len": mean("input_num_tokens"),
        "mean_output_len": mean("output_num_tokens"),
    }
    rate = next((m[1] for line in lines if (m := re.match(rf"\W*requests_per_sec\s*=\s*({NUMBER})", line))), None)
    sheet.row("request_tps", number(rate), rate, **own)
    for key, metric, into in (("ttft_ms", "ttft_ms", "rows"), ("tpot_ms", "tpot_ms", "rows"), ("latency_ms", "e2e_ms", "more")):
        sheet.row(metric, mean(key), said[key][1] if key in said else None, stat="mean", into=into, **own)
    return sheet
