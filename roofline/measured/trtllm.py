"""TensorRT-LLM: trtllm-bench (report and JSON), gptManagerBenchmark, gptSessionBenchmark, benchmark.py."""

from __future__ import annotations

import re

from .jsonish import number_of, text_of
from .labels import classify
from .reading import Sheet
from .tables import as_records, delimited, pipe_tables
from .values import NUMBER, decimal_mark, number, whole

_PAIR = re.compile(rf"^\W{{0,20}}?([A-Za-z][^:|]{{2,80}}?)\s*:\s*\|?\s*({NUMBER}|inf|nan|N/A|None)\s*\|?\s*$")
_TEXT_FACTS = {"model": "model", "dtype": "dtype", "kv cache dtype": "kv_dtype", "quantization": "quant"}
_RATES = ("output_tps", "output_tps_per_gpu", "ttft_ms", "tpot_ms", "decode_tps_per_user")


def read_bench(lines: list[str], records: list) -> Sheet | None:
    """trtllm-bench: total, per-user and per-GPU rates are three different figures; GB of memory are GiB here."""
    sheet = Sheet("tensorrt-llm")
    for record in records:
        if (
            isinstance(record, dict)
            and isinstance(record.get("performance"), dict)
            and ("world_info" in record or "request_info" in record)
        ):
            _report(sheet, record)
    starts = [i for i, line in enumerate(lines) if re.search(r"=\s*(?:PERFORMANCE OVERVIEW|PERFORMANCE STATISTICS|GENERAL OVERVIEW)", line)]
    if not starts and not sheet.rows and not sheet.warnings:
        return None
    before = 0
    for i, start in enumerate(starts):
        end = starts[i + 1] if i + 1 < len(starts) else len(lines)
        _overview(sheet, lines[before:start], lines[start:end])
        before = start
    return sheet


def _overview(sheet: Sheet, head: list[str], body: list[str]) -> None:
    facts: dict = {}
    for line in [*head, *body]:
        if m := re.match(r"\W*([A-Za-z][\w ]+?):[ \t]+(\S[^\n]*?)\s*$", line):
            key, value = m[1].lower().strip(), m[2]
            if key in _TEXT_FACTS and value.lower() not in ("none", "n/a", "null", "auto"):
                facts.setdefault(_TEXT_FACTS[key], value[:200])
            elif key in ("tp size", "pp size", "ep size") and (n := whole(value)):
                facts[key[:2]] = n
            elif key == "max runtime batch size" and (n := whole(value)):
                facts["max_batch_size"] = n
            elif key == "number of concurrent requests":
                facts["concurrency"] = number(value)
            elif key in ("number of requests", "number of total requests"):
                facts["num_prompts"] = whole(value)
        if m := re.match(rf"\W*Average (Input|Output) (?:Sequence )?Length \(tokens\):\s*({NUMBER})", line):
            facts["mean_input_len" if m[1] == "Input" else "mean_output_len"] = number(m[2])
        if m := re.match(rf"\W*((?:NVIDIA|AMD|Tesla|Quadro|GeForce)[^,:=]{{2,60}}?),\s*memory\s*({NUMBER})\s*GB", line):
            facts["hardware"], facts["mem_gb"] = m[1].strip(), number(m[2])
        if m := re.match(rf"\W*\[AL\] AVERAGE\s*:\s*({NUMBER})", line):
            facts["speculative"], facts["acceptance_length"] = True, number(m[1])
    if facts.get("hardware") and (facts.get("tp") or facts.get("pp")):
        facts["gpus"] = (facts.get("tp") or 1) * (facts.get("pp") or 1)
    _figures(sheet, [(m[1], m[2]) for line in body if (m := _PAIR.match(line)) and not line.lstrip().startswith("[")], facts)


def _figures(sheet: Sheet, pairs: list[tuple[str, str]], facts: dict) -> None:
    facts = {k: v for k, v in facts.items() if v is not None}
    mark = decimal_mark(v for _, v in pairs)
    found: dict[str, tuple] = {}
    for name, value in pairs:
        label = classify(name.replace("w/ ctx", "ctx"))
        if label and label.scale is not None and label.stat in (None, "mean"):
            found.setdefault(label.metric, (value, label.scale))
        elif re.fullmatch(r"token throughput \(tokens?/sec\)", name.lower()):  # releases before 0.17 count generated tokens here
            found.setdefault("output_tps", (value, 1.0))
    _generated_only(found, facts, mark)
    streaming = "ttft_ms" in found or "tpot_ms" in found
    if "itl_ms" in found and "tpot_ms" not in found:  # the low-latency benchmark of 2024: one request at a time
        if facts.get("max_batch_size") == 1:
            facts.setdefault("concurrency", 1)
        rows = ("request_tps", "output_tps", "decode_tps", "ttft_ms", "itl_ms")
    else:
        rows = _RATES if streaming else ("request_tps", "output_tps", "total_tps", "output_tps_per_gpu")
    for metric in (*rows, *(m for m in found if m not in rows)):
        if metric in found:
            value, scale = found[metric]
            sheet.row(
                metric,
                number(value, mark),
                value,
                scale=scale,
                into="rows" if metric in rows else "more",
                stat="mean" if metric.endswith("_ms") else None,
                aggregate=True if metric in ("output_tps", "total_tps") else None,
                **(facts if metric in rows else {}),
            )


def _generated_only(found: dict, facts: dict, mark: str) -> None:
    """The "total" token rate of some releases counts generated tokens alone; requests times lengths tell which it is."""
    value = lambda metric: number(found[metric][0], mark) if metric in found else None  # noqa: E731
    requests, total, generated = value("request_tps"), value("total_tps"), facts.get("mean_output_len")
    if requests and total and generated and "output_tps" not in found and abs(total / (requests * generated) - 1) < 0.05:
        found["output_tps"] = found.pop("total_tps")


def _speculation(stats: dict) -> dict:
    """Whether the run drafted tokens, and how many a step kept."""
    lengths = stats.get("acceptance_length_percentiles")
    return {"speculative": True, "acceptance_length": number_of(lengths if isinstance(lengths, dict) else {}, "average")} if stats else {}


def _report(sheet: Sheet, record: dict) -> None:
    part = lambda key: record[key] if isinstance(record.get(key), dict) else {}  # noqa: E731
    engine, world, request, perf, stream = (part(k) for k in ("engine", "world_info", "request_info", "performance", "streaming_metrics"))
    machine = part("machine") or part("machine_details")
    facts = {
        "model": text_of(engine, "model", "engine_dir"),
        "dtype": text_of(engine, "dtype"),
        "kv_dtype": text_of(engine, "kv_cache_dtype"),
        "quant": text_of(engine, "quantization"),
        "hardware": text_of(machine, "name"),
        "tp": number_of(world, "tp_size"),
        "pp": number_of(world, "pp_size"),
        "ep": number_of(world, "ep_size"),
        "gpus": number_of(world, "world_size"),
        "max_batch_size": number_of(world, "max_batch_size"),
        "num_prompts": number_of(request, "num_requests"),
        "concurrency": number_of(request, "avg_num_concurrent_requests"),
        "mem_gb": number_of(machine, "memory.total"),
        **_speculation(part("decoding_stats")),
        "mean_input_len": number_of(request, "avg_input_length"),
        "mean_output_len": number_of(request, "avg_output_length"),
    }
    facts = {k: v for k, v in facts.items() if v is not None}
    sheet.row("request_tps", number_of(perf, "request_throughput_req_s"), into="more" if stream else "rows", **({} if stream else facts))
    sheet.row("output_tps", number_of(perf, "system_output_throughput_tok_s"), aggregate=True, **facts)
    sheet.row(
        "total_tps",
        number_of(perf, "system_total_throughput_tok_s"),
        aggregate=True,
        into="more" if stream else "rows",
        **({} if stream else facts),
    )
    sheet.row("output_tps_per_gpu", number_of(perf, "output_throughput_per_gpu_tok_s"), **facts)
    sheet.row("ttft_ms", number_of(stream, "avg_ttft_ms"), stat="mean", **facts)
    sheet.row("tpot_ms", number_of(stream, "avg_tpot_ms"), stat="mean", **facts)
    sheet.row("decode_tps_per_user", number_of(stream, "token_output_speed_tok_s"), **facts)
    sheet.row("e2e_ms", number_of(perf, "avg_request_latency_ms"), stat="mean", into="more")
    sheet.row("output_tps_per_user", number_of(perf, "output_throughput_per_user_tok_s"), into="more")


# ---- [BENCHMARK] lines ----------------------------------------------------------------------------------------

_KEY_VALUE = re.compile(r"([A-Za-z_]\w*(?:\([^()]{1,40}\))?)\s+(\S+)")


def read_benchmark_lines(lines: list[str]) -> Sheet | None:
    """[BENCHMARK] lines of gptManagerBenchmark (one figure a line), gptSessionBenchmark and benchmark.py (one run a line)."""
    joined: list[str] = []
    width = 0
    for line in lines:
        if "[BENCHMARK]" in line:
            joined.append(line[line.index("[BENCHMARK]") + 11 :])
            width = len(line)
        elif (
            joined
            and width >= 60
            and line
            and not re.match(r"\s*[\[\n]|Benchmarking done", line)
            and re.search(r"\bmodel_name\b|\bbatch_size\b", joined[-1])
            and len(line) <= width + 2
        ):
            joined[-1] += line  # the terminal broke the line anywhere, even inside a word
            width = width if len(line) >= width - 2 else 0
        else:
            width = 0
    sheet = Sheet("tensorrt-llm")
    manager: dict[str, str] = {}
    for text in dict.fromkeys(joined):
        pairs = dict(_KEY_VALUE.findall(text.replace("total_generated_tokens", " total_generated_tokens")))
        if "batch_size" in pairs and ("tokens_per_sec" in pairs or "tokensPerSec" in pairs or "latency(ms)" in pairs):
            _run(sheet, pairs)
        elif m := re.match(rf"\s*(\w+\([^()]*\)|\w+)\s+({NUMBER})\s*$", text):
            manager.setdefault(m[1], m[2])
    _manager(sheet, manager)
    for table in delimited(lines, lambda row: "token_throughput(token/sec)" in [c.strip() for c in row]):
        for _, record, _n in as_records(table):
            _manager(sheet, record)
    return sheet if sheet.rows else None


def _run(sheet: Sheet, p: dict[str, str]) -> None:
    get = lambda *names: next((p[n] for n in names if n in p), None)  # noqa: E731
    quant = p.get("quantization")
    facts = {
        "model": p.get("model_name"),
        "precision": p.get("precision"),
        "gpus": whole(p.get("world_size")),
        "batch": whole(p.get("batch_size")),
        "n_prompt": whole(p.get("input_length")),
        "n_gen": whole(p.get("output_length")),
        "compute_cap": p.get("compute_cap"),
        "quant": quant if quant and not quant.startswith("QuantMode.0") and quant.lower() != "none" else None,
    }
    facts = {k: v for k, v in facts.items() if v is not None}
    rate = get("tokens_per_sec", "tokensPerSec")
    spent, size, made = number(p.get("latency(ms)")), facts.get("batch"), facts.get("n_gen")
    implied = size * made / spent * 1000 if spent and size and made else None
    if implied and (printed := number(rate)) and not 0.8 < printed / implied < 1.25:
        sheet.warn("rate_disagrees_with_time", f"{rate} token/s printed, {implied:.4g} from tokens and time; left out")
        rate = None
    sheet.row("output_tps_e2e", number(rate), rate, aggregate=True, **facts)
    rate = get("generation_tokens_per_second", "generationTokensPerSec", "generation_tokens_per_sec")
    sheet.row("decode_tps", number(rate), rate, aggregate=True, **facts)
    for key, metric in (("latency(ms)", "e2e_ms"),):
        sheet.row(metric, number(p.get(key)), p.get(key), into="more", batch=facts.get("batch"))


def _manager(sheet: Sheet, p: dict[str, str]) -> None:
    if not any(k.startswith(("seq_throughput", "token_throughput")) for k in p):
        return
    get = lambda start: next((v for k, v in p.items() if k.startswith(start)), None)  # noqa: E731
    sheet.fact(num_prompts=whole(p.get("num_samples")))
    sheet.row("request_tps", number(get("seq_throughput")), get("seq_throughput"))
    sheet.row("output_tps", number(get("token_throughput")), get("token_throughput"), aggregate=True)
    for start, metric in (
        ("avg_time_to_first_token", "ttft_ms"),
        ("avg_inter_token_latency", "itl_ms"),
        ("avg_sequence_latency", "e2e_ms"),
    ):
        sheet.row(metric, number(get(start)), get(start), stat="mean", into="more" if metric == "e2e_ms" else "rows")
    accepted = number(get("avg_acceptance_rate"))
    if accepted and accepted > 1:
        sheet.fact(speculative=True, acceptance_length=accepted)


def read_core_model(lines: list[str]) -> Sheet | None:
    """benchmark_core_model.py of the Triton backend: a table of "Stat" and "Value"; OP tokens are generated ones."""
    said = {
        table_row[0].strip().lower(): table_row[1].strip()
        for table in pipe_tables(lines, lambda row: [c.strip() for c in row] == ["Stat", "Value"])
        for _, table_row, n in table.rows
        if n
    }
    if not {"requests/sec", "op tokens/sec"} <= set(said):
        return None
    sheet = Sheet("tensorrt-llm")
    requests = whole(said.get("total requests"))
    own = {
        "mean_input_len": number(said.get("avg. ip tokens per request")),
        "mean_output_len": number(said.get("avg. op tokens per request")),
        "concurrency": number(said.get("avg. inflight requests")),
        "num_prompts": requests,
    }
    own = {k: v for k, v in own.items() if v is not None}
    sheet.row("request_tps", number(said["requests/sec"]), said["requests/sec"], **own)
    sheet.row("output_tps", number(said["op tokens/sec"]), said["op tokens/sec"], aggregate=True, **own)
    sheet.row("e2e_ms", number(said.get("avg. latency (ms)")), said.get("avg. latency (ms)"), stat="mean", into="more")
    return sheet
