"""SGLang's static-batch benches: bench_one_batch and bench_one_batch_server, console, table and JSON lines."""

from __future__ import annotations

import re

from .jsonish import number_of, text_of
from .reading import Sheet
from .tables import as_records, pipe_tables
from .values import NUMBER, number, whole

_PREFILL = re.compile(rf"Prefill\.\s+latency:\s+({NUMBER})\s+s,\s+throughput:\s+({NUMBER})\s+token/s")
_DECODE = re.compile(rf"Decode\s+(\d+)\.\s+(?:Batch size:\s+(\d+),\s+)?latency:\s+({NUMBER})\s+s,\s+throughput:\s+({NUMBER})\s+token/s")
_MEDIAN = re.compile(rf"Decode\.\s+(?:avg|median)\s+latency:\s+({NUMBER})\s+s,\s+(?:avg|median)\s+throughput:\s+({NUMBER})\s+token/s")


def read_one_batch(lines: list[str], records: list) -> Sheet | None:
    """bench_one_batch: the warm-up prints the same lines as the run and is dropped; the "Total" line mixes both phases."""
    sheet = Sheet("sglang")
    for record in records:
        if isinstance(record, dict) and ("prefill_throughput" in record or "median_decode_throughput" in record) and "batch_size" in record:
            batch, prompt, gen = (number_of(record, k) for k in ("batch_size", "input_len", "output_len"))
            facts = {"batch": batch, "aggregate": True, "device": text_of(record, "device")}
            sheet.row("prefill_tps", number_of(record, "prefill_throughput"), n_prompt=prompt, **facts)
            sheet.row("decode_tps", number_of(record, "median_decode_throughput"), n_gen=gen, n_depth=prompt, stat="median", **facts)
            sheet.fact(model=text_of(record, "model", "model_path"))
    start = max((i + 1 for i, line in enumerate(lines) if re.match(r"\W*Benchmark \.\.\.", line)), default=0)
    warm = any(re.match(r"\W*Warmup \.\.\.", line) for line in lines)
    if warm and not start:
        return sheet if sheet.rows else None
    prefill, batch = None, None
    for line in lines[start:]:
        if m := _PREFILL.search(line):
            prefill, batch = m, None
        elif m := _DECODE.search(line):
            batch = int(m[2][:9]) if m[2] else batch
        elif m := _MEDIAN.search(line):
            facts = {"batch": batch, "aggregate": True}
            if prefill:
                spent, rate = number(prefill[1]), number(prefill[2])
                tokens = round(spent * rate / batch) if batch and spent and rate and 0 < spent * rate < 1e12 else None
                sheet.row("prefill_tps", rate, f"{prefill[2]} token/s", n_prompt=tokens, n_prompt_derived=True if tokens else None, **facts)
            sheet.row("decode_tps", number(m[2]), f"{m[2]} token/s", stat="median", **facts)
            prefill = None
    if sheet.rows:
        ranks = {m[1] for line in lines if (m := re.search(r"\bTP(\d+)\]", line))}
        sheet.fact(tp=len(ranks) or None)
    return sheet if sheet.rows else None


def read_one_batch_server(lines: list[str], records: list) -> Sheet | None:
    """bench_one_batch_server: input rate over the TTFT, output rate over the time after it."""
    sheet = Sheet("sglang")
    for record in records:
        if (
            isinstance(record, dict)
            and "batch_size" in record
            and "output_throughput" in record
            and ("latency" in record or "last_gen_throughput" in record)
        ):
            _server_run(
                sheet,
                number_of(record, "batch_size"),
                number_of(record, "input_len"),
                number_of(record, "output_len"),
                number_of(record, "input_throughput"),
                number_of(record, "output_throughput"),
                number_of(record, "ttft", "last_ttft"),
                number_of(record, "acc_length"),
                latency=number_of(record, "latency"),
            )
            sheet.fact(model=text_of(record, "model_name", "model", "model_path"))
    for table in pipe_tables(lines, lambda row: "batch size" in row and any(c.startswith("output throughput") for c in row)):
        for _, record, _n in as_records(table):
            short = {re.sub(r"\s*\(.*", "", k): v for k, v in record.items()}
            _server_run(
                sheet,
                whole(short["batch size"]),
                whole(short.get("input len")),
                whole(short.get("output len")),
                number(short.get("input throughput")),
                number(short.get("output throughput")),
                None,
                number(short.get("acc length")),
            )
    run: dict[str, str] = {}
    for line in [*lines, "batch size: end"]:
        m = re.match(
            rf"\W*(batch size|input_len|output_len|latency|(?:last_)?ttft|last generation throughput|input throughput|output throughput|acc_length|"
            rf"\(input \+ output\) throughput): ({NUMBER}|end)",
            line,
        )
        if not m:
            continue
        if m[1] == "batch size":
            if "output throughput" in run and ("latency" in run or "ttft" in run):
                ttft = number(run.get("ttft") or run.get("last_ttft"))
                _server_run(
                    sheet,
                    whole(run.get("batch size")),
                    whole(run.get("input_len")),
                    whole(run.get("output_len")),
                    number(run.get("input throughput")),
                    number(run["output throughput"]),
                    ttft,
                    number(run.get("acc_length")),
                    latency=number(run.get("latency")),
                    whole_run=ttft is None,
                )
            run = {}
        run[m[1]] = m[2]
    return sheet if sheet.rows else None


def _server_run(
    sheet: Sheet, batch, prompt, gen, input_rate, output_rate, ttft, accept, *, latency=None, whole_run: bool = False
) -> None:
    if latency and output_rate and batch and gen:  # older releases divide by the whole time, prefill included
        whole_run = abs(output_rate * latency / (batch * gen) - 1) < 0.02
    spec = {"speculative": True, "acceptance_length": accept} if accept and accept > 1 else {}
    facts = {"batch": batch, "aggregate": True, **spec}
    if input_rate:
        sheet.row("prefill_tps", input_rate, n_prompt=prompt, **facts)
    sheet.row(
        "output_tps_e2e" if whole_run else "decode_tps",
        output_rate,
        n_gen=gen,
        n_prompt=prompt if whole_run else None,
        n_depth=None if whole_run else prompt,
        **facts,
    )
    if ttft and ttft > 0:
        sheet.row("ttft_ms", ttft, scale=1000, into="more", batch=batch)


def read_offline(records: list) -> Sheet | None:
    """bench_offline_throughput's JSON lines: rates over the whole run."""
    sheet = Sheet("sglang")
    for record in records:
        if not (isinstance(record, dict) and {"total_latency", "successful_requests", "output_throughput"} <= set(record)):
            continue
        done = number_of(record, "successful_requests")
        if done == 0:
            sheet.warn("no_completed_requests", "0 requests succeeded; its rates are no measurement")
            continue
        tokens_in, tokens_out = number_of(record, "total_input_tokens"), number_of(record, "total_output_tokens")
        own = {
            "num_prompts": done,
            "duration_s": number_of(record, "total_latency"),
            "mean_input_len": round(tokens_in / done, 2) if done and tokens_in else None,
            "mean_output_len": round(tokens_out / done, 2) if done and tokens_out else None,
        }
        for metric, key in (
            ("request_tps", "request_throughput"),
            ("input_tps", "input_throughput"),
            ("output_tps", "output_throughput"),
            ("total_tps", "total_throughput"),
        ):
            sheet.row(metric, number_of(record, key), aggregate=None if metric == "request_tps" else True, **own)
    return sheet if sheet.rows or sheet.warnings else None
