"""vLLM and SGLang: serving, throughput and latency benchmarks (console, JSON, JSON lines) and server log lines.

The "Serving Benchmark Result" console is shared by many tools (vLLM, SGLang, TensorRT-LLM, JetStream, AIBrix ...).
"""

from __future__ import annotations

import re

from .jsonish import number_of, text_of
from .labels import classify
from .reading import Sheet
from .values import NUMBER, Decimal, decimal_mark, number

_TITLE = re.compile(r"={4,}\s*(.{3,60}?)\s*={4,}")
_PAIR = re.compile(
    rf"^\W{{0,40}}?([A-Za-z#+][^:|]{{2,70}}?)\s*[:|]\s*[|]?\s*({NUMBER}|inf|nan|-inf|None|not set)\s*(req/s|requests/s|tok/s|tokens?/s|ms|"
    rf"s)?\s*\|?\s*$",
    re.I,
)
_RESULT = re.compile(r"(?:Benchmark|Serving|Throughput|Load Test)[\w ]* Result", re.I)
_RATES = ("request_tps", "input_tps", "output_tps", "total_tps")


def _pairs(lines: list[str]) -> list[tuple[str, str]]:
    """Lines of "label: number"; a unit behind the number moves into the label."""
    found = [m for line in lines if len(line) < 400 and (m := _PAIR.match(line))]
    return [(f"{m[1].strip()} ({m[3]})" if m[3] and "(" not in m[1] else m[1].strip(), m[2]) for m in found]


def read_console(lines: list[str]) -> Sheet | None:
    """Every "Serving Benchmark Result" block; settings printed before a block belong to it."""
    starts = [i for i, line in enumerate(lines) if (m := _TITLE.search(line)) and _RESULT.search(m[1])]
    if not starts:
        return _read_bare_console(lines)
    sheet = Sheet("vllm")
    if any(
        "(retokenized)" in line or line.strip().startswith("Backend:") or "#Input tokens" in line or "sglang" in line.lower()
        for line in lines
    ):
        sheet.tool = "sglang"
    elif any("TensorRT-LLM" in line or "[TRT-LLM]" in line or "tensorrt_llm" in line for line in lines):
        sheet.tool = "tensorrt-llm"
    before = lines[: starts[0]]
    for i, start in enumerate(starts):
        end = starts[i + 1] if i + 1 < len(starts) else len(lines)
        block = lines[start + 1 : end]
        close = next((k for k, line in enumerate(block) if re.fullmatch(r"\W*={20,}\W*", line)), None)
        after: list[str] = []
        if close is not None:
            block, after = block[:close], block[close + 1 :]
        elif end == len(lines) and lines[-1].strip() and _PAIR.match(lines[-1]):
            block = block[:-1]
            sheet.warn("truncated", f"the file ends in {lines[-1].strip()[:60]!r}, which may be cut; that line is left out")
        _block(sheet, block, _settings(before))
        before = after
    return sheet


def _read_bare_console(lines: list[str]) -> Sheet | None:
    """The same labels without a title line, as older scripts print them: "Output token throughput: 1412.49 tokens/s"."""
    pairs = _pairs(lines)
    metrics = {label.metric for name, _ in pairs if (label := classify(name))}
    names = {name.lower() for name, _ in pairs}
    if not ({"request_tps", "output_tps"} <= metrics and ("successful requests" in names or "total generated tokens" in names)):
        return None
    sheet = Sheet("vllm")
    starts = [i for i, line in enumerate(lines) if re.match(r"\W*successful requests\s*:", line, re.I)]
    for k, start in enumerate(starts or [0]):  # several runs, one after another
        first = 0 if k == 0 else start
        _block(sheet, lines[first : starts[k + 1] if k + 1 < len(starts) else None], _settings(lines[: start + 1] if k == 0 else lines[starts[k - 1] : start]))
    return sheet


def _settings(lines: list[str]) -> dict:
    """Model, request rate and concurrency from argument dumps and shell commands before a block."""
    facts: dict = {}
    for line in lines[-400:]:
        if "Namespace(" in line or "benchmark_args" in line:
            for key, pattern in (
                ("model", r"\bmodel='([^']{1,200})'"),
                ("request_rate", r"\brequest_rate=([\w.]+)"),
                ("concurrency", r"\bmax_concurrency=(\d+)"),
                ("tp", r"\btensor_parallel_size=(\d+)"),
                ("quant", r"\bquantization='(\w+)'"),
                ("dtype", r"\bdtype='(\w+)'"),
            ):
                if (m := re.search(pattern, line)) and m[1] not in ("None", "auto"):
                    facts[key] = _plain_value(m[1])
        for key, pattern in (
            (
                "model",
                r"(?:vllm (?:bench )?serve|bench_serving|benchmark_serving|--model|--model-path)\b.*?(?:--model(?:-path)?[ =]|serve "
                r")([\w.-]+/[\w.-]+)",
            ),
            ("concurrency", r"--max-concurrency[ =](\d+)"),
            ("request_rate", r"--request-rate[ =]([\d.]+|inf)\b"),
        ):
            if "--" in line and (m := re.search(pattern, line)):
                facts[key] = _plain_value(m[1])
        if m := re.match(r"\W*Traffic request rate:\s*([\d.]+|inf)", line):
            facts["request_rate"] = _plain_value(m[1])
        if m := re.match(r"\W*Max(?:imum)? request concurrency:\s*(\d+)", line):
            facts["concurrency"] = int(m[1])
    return facts


def _plain_value(text: str):
    value = number(text)
    if value is None or value != value or value in (float("inf"), float("-inf")):
        return text
    return int(value) if value == int(value) else value


def _block(sheet: Sheet, block: list[str], facts: dict) -> None:
    pairs = _pairs(block)
    mark = decimal_mark(v for _, v in pairs)
    said: dict[str, str] = {}
    for name, value in pairs:
        name = " ".join(name.lower().split())
        said.setdefault(name, value)
        said.setdefault(re.sub(r" \((?:s|ms)\)$", "", name), value)

    def get(*names: str) -> float | None:
        value = next((number(said[n], mark) for n in names if n in said), None)
        return value if value is not None and abs(value) < 1e15 else None

    done, failed = get("successful requests", "completed requests", "total requests completed"), get("failed requests")
    tokens_in, tokens_out = get("total input tokens"), get("total generated tokens", "total output tokens")
    limit, running = get("maximum request concurrency", "max request concurrency"), get("concurrency")
    if done == 0:
        sheet.warn("no_completed_requests", "0 requests succeeded; its rates are no measurement")
        return
    own = dict(facts)
    if running and running == running:
        own["concurrency"] = running
        own["max_concurrency"] = int(limit) if limit and limit < 1e9 else None
    elif limit and limit < 1e9:
        own["concurrency"] = int(limit)
    if "traffic request rate" in said:
        own["request_rate"] = _plain_value(said["traffic request rate"])
    accept = get("accept length", "acceptance length")
    own.update(
        num_prompts=int(done) if done else None,
        failed=int(failed) if failed is not None and failed >= 0 else None,
        duration_s=get("benchmark duration"),
        mean_input_len=round(tokens_in / done, 2) if done and tokens_in else None,
        mean_output_len=round(tokens_out / done, 2) if done and tokens_out else None,
        speculative=True if accept else None,
        acceptance_length=accept or None,
    )
    own = {k: v for k, v in own.items() if v is not None}
    found: dict[tuple, tuple[str, float]] = {}
    for name, value in pairs:
        label = classify(name)
        if label and label.scale is not None:
            found.setdefault((label.metric, label.stat or ("mean" if label.metric.endswith("_ms") else None)), (value, label.scale))
    take(sheet, found, own, mark)


def take(sheet: Sheet, found: dict, own: dict, mark: str = ".", medians: bool = True) -> None:
    """Turn classified figures of one run into rows: rates, mean TTFT and TPOT (ITL where TPOT is missing); the rest to `more`."""
    has = lambda metric, stat="mean": (metric, stat) in found  # noqa: E731
    order: list[tuple] = [(m, None) for m in _RATES]
    order += [("ttft_ms", "mean"), ("tpot_ms", "mean") if has("tpot_ms") else ("itl_ms", "mean")]
    if medians and sheet.tool != "sglang" and has("ttft_ms", "median") and has("tpot_ms", "median"):
        order += [("ttft_ms", "median"), ("tpot_ms", "median")]
    if not has("ttft_ms") and not has("tpot_ms"):  # only medians were printed
        order += [k for k in (("ttft_ms", "median"), ("tpot_ms", "median")) if k not in order]
    if has("e2e_ms") and sheet.tool != "sglang":
        order += [("peak_output_tps", "max"), ("e2e_ms", "mean")]
    used = set()
    for key in order:
        if key in found and key not in used:
            used.add(key)
            _put(sheet, key, found[key], own, mark, "rows")
    for key, entry in found.items():
        if key not in used and key[1] != "std":
            _put(sheet, key, entry, {k: v for k, v in own.items() if k in ("concurrency", "request_rate")}, mark, "more")


def _put(sheet: Sheet, key: tuple, entry: tuple, own: dict, mark: str, into: str) -> None:
    metric, stat = key
    text, scale = entry
    value = number(text, mark)
    kept = value
    if isinstance(text, (int, float)):
        kept = text
    sheet.row(
        metric,
        kept,
        text,
        scale=scale,
        into=into,
        stat=stat if metric.endswith(("_ms", "_per_user")) else None,
        aggregate=True if metric in ("input_tps", "output_tps", "total_tps") else None,
        **own,
    )


# ---- result JSON ------------------------------------------------------------------------------------------


def read_results(records: list, damaged: bool = False) -> Sheet | None:
    """`vllm bench serve --save-result`, SGLang bench_serving JSON lines and the many clients that copied their keys."""
    mine = [
        r
        for r in (_numbers(r) for r in records if isinstance(r, dict) and ("request_throughput" in r or "request_inthroughput" in r))
        if "successful_requests" not in r  # SGLang's offline bench
        and (number_like(r, "request_throughput") or number_like(r, "request_inthroughput"))
        and (number_like(r, "output_throughput") or "total_output_tokens" in r)
    ]
    if not mine:
        return None
    sglang = any(
        {"total_output_tokens_retokenized", "accept_length", "mean_e2e_latency_ms"} & set(r)
        or str(r.get("backend", "")).startswith("sglang")
        for r in mine
    )
    sheet = Sheet("sglang" if sglang else "vllm")
    for record in mine[:2000]:
        _result(sheet, record)
    if damaged:
        sheet.warn("truncated", "the file breaks off inside a record; only whole records are read")
    return sheet


def _numbers(record: dict) -> dict:
    """The record with numbers in place of texts that spell one, as some pipelines write them."""
    if not isinstance(record.get("request_throughput"), str):
        return record
    return {k: Decimal(v) if isinstance(v, str) and re.fullmatch(r"-?\d{1,15}(?:\.\d{1,20})?", v) else v for k, v in record.items()}


def number_like(record: dict, key: str) -> bool:
    """True if the record has a number (no truth value) under this key."""
    return isinstance(record.get(key), (int, float)) and not isinstance(record.get(key), bool)


# Keys of some releases that say it in other words, or with a slip.
_SPELLED = {"max_output_tokens_per_s": "peak_output_throughput", "request_inthroughput": "request_throughput"}


def _result(sheet: Sheet, record: dict) -> None:
    done, failed = number_of(record, "completed"), number_of(record, "failed")
    model = text_of(record, "model_id", "model", "model_name")
    if done == 0:
        sheet.fact(model=model, completed=0, failed=failed)
        sheet.warn("no_completed_requests", f"0 requests succeeded{f', {failed} failed' if failed else ''}; its rates are no measurement")
        return
    tokens_in, tokens_out = number_of(record, "total_input_tokens"), number_of(record, "total_output_tokens")
    rate = record.get("request_rate")
    running, limit = number_of(record, "concurrency"), number_of(record, "max_concurrency")
    accept = number_of(record, "accept_length", "spec_decode_acceptance_length", "acceptance_length")
    own = {
        "model": model,
        "num_prompts": done if done is not None else number_of(record, "num_prompts"),
        "failed": failed,
        "duration_s": number_of(record, "duration"),
        "request_rate": "inf"
        if str(rate).lower() in ("inf", "infinity")
        else rate
        if number_like(record, "request_rate")
        else _plain_value(rate)
        if isinstance(rate, str)
        else None,
        "concurrency": running or limit,
        "max_concurrency": limit if running and limit else None,
        "engine": text_of(record, "backend"),
        "tp": number_of(record, "tp", "tensor_parallel_size"),
        "mean_input_len": round(tokens_in / done, 2) if done and tokens_in and tokens_in > 0 else None,
        "mean_output_len": round(tokens_out / done, 2) if done and tokens_out and tokens_out > 0 else None,
        "speculative": True if accept else None,
        "acceptance_length": accept,
    }
    if not own["mean_input_len"]:
        own["mean_input_len"] = number_of(record, "random_input_len") if record.get("random_range_ratio") == 1.0 else None
    own = {k: v for k, v in own.items() if v is not None}
    found: dict[tuple, tuple] = {}
    for key, value in record.items():
        if not number_like(record, key):
            continue
        label = classify(_SPELLED.get(key, key))
        if label and label.scale is not None:
            found.setdefault((label.metric, label.stat or ("mean" if label.metric.endswith("_ms") else None)), (value, label.scale))
    peak = found.pop(("peak_output_tps", "max"), None)
    take(sheet, found, own, medians=False)
    if peak:
        _put(sheet, ("peak_output_tps", "max"), peak, {}, ".", "more")


# ---- vLLM throughput and latency ----------------------------------------------------------------------------

_THROUGHPUT = re.compile(rf"Throughput:\s*({NUMBER})\s*requests/s,\s*({NUMBER})\s*(total )?tokens/s(?:,\s*({NUMBER})\s*output tokens/s)?")


def read_throughput(lines: list[str], records: list) -> Sheet | None:
    """`vllm bench throughput`: plain "tokens/s" counts prompt and output tokens together."""
    sheet = Sheet("vllm")
    facts = _settings(lines)
    for line in lines:
        if "Throughput:" in line and (m := re.fullmatch(rf"\W*Throughput:\s*({NUMBER})\s*requests/s\s*", line)):
            # The serving benchmark of 2023; its "latency per output token" is the whole latency over the tokens, prefill included.
            if any("Average latency per output token" in other for other in lines):
                sheet.row("request_tps", number(m[1]), f"{m[1]} requests/s")
                sheet.fact(request_rate=facts.get("request_rate"))
            continue
        if "Throughput:" not in line or not (m := _THROUGHPUT.search(line)):
            continue
        sheet.row("request_tps", number(m[1]), f"{m[1]} requests/s")
        sheet.row("total_tps", number(m[2]), f"{m[2]} {m[3] or ''}tokens/s", aggregate=True)
        if m[4]:
            sheet.row("output_tps", number(m[4]), f"{m[4]} output tokens/s", aggregate=True)
    prompts, totals = None, {}
    for line in lines:
        if m := re.match(r"\W*Total num (prompt|output) tokens:\s*(\d+)", line):
            totals[m[1]] = int(m[2][:15])
        if m := re.search(r"Processed prompts:\s*100%.*?\|\s*(\d+)/(\d+)\s*\[", line):
            prompts = int(m[2][:12])
    if sheet.rows:
        prompts = prompts or (int(facts["num_prompts"]) if "num_prompts" in facts else None)
        sheet.fact(**{k: v for k, v in facts.items() if k in ("model", "quant", "dtype", "tp")}, num_prompts=prompts)
        for side, key in (("prompt", "mean_input_len"), ("output", "mean_output_len")):
            if prompts and totals.get(side):
                sheet.fact(**{key: round(totals[side] / prompts, 2)})
    for record in records:
        if isinstance(record, dict) and {"elapsed_time", "num_requests", "requests_per_second", "tokens_per_second"} <= set(record):
            sheet.row("request_tps", number_of(record, "requests_per_second"))
            sheet.row("total_tps", number_of(record, "tokens_per_second"), aggregate=True)
            sheet.row("output_tps", number_of(record, "output_tokens_per_second"), aggregate=True)
            sheet.fact(num_prompts=number_of(record, "num_requests"), model=text_of(record, "model", "model_id"))
    return sheet if sheet.rows else None


def read_latency(lines: list[str], records: list) -> Sheet | None:
    """`vllm bench latency`: seconds for one static batch, prompt and output together."""
    sheet = Sheet("vllm")
    facts: dict = {}
    for line in lines:
        if "Namespace(" in line:
            for key, pattern in (
                ("model", r"\bmodel='([^']{1,200})'"),
                ("batch", r"\bbatch_size=(\d+)"),
                ("n_prompt", r"\binput_len=(\d+)"),
                ("n_gen", r"\boutput_len=(\d+)"),
                ("tp", r"\btensor_parallel_size=(\d+)"),
                ("quant", r"\bquantization='(\w+)'"),
                ("dtype", r"\bdtype='(\w+)'"),
            ):
                if (m := re.search(pattern, line)) and m[1] not in ("None", "auto"):
                    facts[key] = _plain_value(m[1])
        elif m := re.match(rf"\W*Avg latency:\s*({NUMBER})\s*(ms|s(?:ec(?:onds)?)?)\b", line):
            sheet.row(
                "latency_s", number(m[1], decimal_mark([m[1]])), f"{m[1]} {m[2]}", scale=1e-3 if m[2] == "ms" else 1.0, stat="mean", **facts
            )
        elif m := re.match(rf"\W*(\d+)% percentile latency:\s*({NUMBER})\s*seconds", line):
            sheet.row(
                "latency_s",
                number(m[2], decimal_mark([m[2]])),
                f"{m[2]} seconds",
                into="more",
                stat="median" if m[1] == "50" else f"p{m[1]}",
            )
    for record in records:
        if isinstance(record, dict) and "avg_latency" in record and ("latencies" in record or "percentiles" in record):
            runs = record.get("latencies")
            sheet.row(
                "latency_s",
                number_of(record, "avg_latency"),
                stat="mean",
                repetitions=len(runs) if isinstance(runs, list) else None,
                batch=number_of(record, "batch_size"),
                n_prompt=number_of(record, "input_len"),
                n_gen=number_of(record, "output_len"),
            )
            sheet.fact(model=text_of(record, "model", "model_id"))
            for p, value in (record.get("percentiles") or {}).items() if isinstance(record.get("percentiles"), dict) else ():
                sheet.row(
                    "latency_s", value if isinstance(value, (int, float)) else None, into="more", stat="median" if p == "50" else f"p{p}"
                )
    return sheet if sheet.rows else None
