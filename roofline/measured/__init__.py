"""Read the output of benchmarks and profilers: `read(data)` finds the tool, the facts and the figures.

Each reader knows one tool's text and adds rows to a Sheet; the order below goes from the formats that cannot be
mistaken to the vocabulary of last resort. A fact that the file does not state stays None.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from ..errors import InputError
from . import (
    consoles,
    engines,
    generic,
    jsonish,
    kernels,
    llama_bench,
    llama_other,
    loadtests,
    local,
    mlperf,
    roofs,
    serverlogs,
    serving,
    sglang,
    tensorboard,
    torch_profile,
    trtllm,
)
from .devices import listed_device
from .reading import Reading, Sheet
from .text import MAX_LINES, collapse, cut_tail, decode, lines_of, plain

__all__ = ["Reading", "read"]


def read(data: bytes | str, name: str = "") -> Reading:
    """Read one benchmark or profiler output, whatever its encoding, quoting and noise.

    Args: data: the file [bytes, at most 16 MiB], or its text; name: its name, for messages only.
    Returns a Reading: units of the metrics are token/s, req/s, ms, s, ns, B, GB/s (1e9 B/s), GFLOP/s, %.
    Raises InputError when the text is not a benchmark's, is damaged beyond use, holds no usable figure, or is hostile.

    >>> head = "| model | size | params | backend | ngl | test | t/s |\\n|-|-|-|-|-|-|-|\\n"
    >>> r = read((head + "| llama 8B Q4_0 | 4.33 GiB | 8.03 B | CUDA | 99 | tg128 | 131.64 ± 0.42 |").encode())
    >>> r.tool, r.common["quant"], r.rows[0]["metric"], r.rows[0]["value"]
    ('llama-bench', 'Q4_0', 'decode_tps', 131.64)
    """
    shown = re.split(r"[\\/]", name)[-1] or "input"
    if isinstance(data, str):
        data = data.encode("utf-8", "replace")
    if not isinstance(data, (bytes, bytearray)):
        raise InputError("file", type(data).__name__, "must be the bytes or the text of a benchmark's output")
    text = decode(bytes(data), shown)
    short, counts = collapse(text)
    is_json = text.lstrip()[:1] in ("{", "[")
    jsonish.guard(text if is_json else short, shown)
    found = jsonish.find(text if is_json else short, shown)
    cleaned = plain(short)
    cut = None if is_json else cut_tail(cleaned)
    if cut is not None:
        cleaned = cleaned[: len(cleaned) - len(cut)]
    lines = lines_of(cleaned)
    undressed = "\n".join(lines)
    if not found.values and "{" in cleaned and undressed != text:
        found = jsonish.find(undressed, shown)  # JSON inside a quote, a web page or a colour terminal
    if not found.values and re.search("[{,] *[“”„]", cleaned):  # quotes that a word processor bent
        found = jsonish.find(re.sub("[“”„]", '"', undressed), shown)
    records = [v for v in found.values if isinstance(v, dict)]
    counts = {lines_of(plain(line))[0]: n for line, n in list(counts.items())[:2000]}
    document = _Document(text if is_json else cleaned, lines, records, found.damaged, counts)
    sheet = _choose(_read_all(document))
    if sheet is None:
        rule = (
            "breaks off inside its JSON; give the whole file"
            if found.damaged and not found.values
            else (
                "is not recognised as the output of a benchmark or profiler; "
                "give llama-bench, vLLM, SGLang, TensorRT-LLM, MLPerf, Nsight, PyTorch profiler ... output"
            )
        )
        raise InputError("file", shown, rule)
    if not sheet.rows:
        reason = "; ".join(dict.fromkeys(sheet.warnings)) or "it holds no figure"
        raise InputError("file", shown, f"is {sheet.tool} output without a usable figure ({reason[:300]})")
    if found.damaged and not any(w.startswith("truncated") for w in sheet.warnings) and found.values and is_json:
        sheet.warn("truncated", "the file breaks off inside a record; only whole records are read")
    if sheet.common.get("hardware") is None and not any("hardware" in r for r in sheet.rows):
        sheet.fact(hardware=listed_device(lines))
    if cut is not None and not any(w.startswith("truncated") for w in sheet.warnings):
        sheet.warn("truncated", f"the file ends in {cut.strip()[-60:]!r}, which may be cut; that line is left out")
    if not is_json and short.count("\n") + 1 == MAX_LINES * 3 // 2:
        sheet.warn("long_file", f"of a text this long the first {MAX_LINES} lines and the last {MAX_LINES // 2} are read")
    if counts:
        sheet.warn(
            "repeated_lines", f"{len(counts)} lines stand up to {max(counts.values())} times in the file; each is read at most 40 times"
        )
    return sheet.reading()


# Each reader with the words one of which must stand in the text: most files need two or three of these loops over lines.
_READERS = (
    (('"traceEvents"', '"ph"'), lambda d: torch_profile.read_trace(d.records, d.damaged)),
    (("avg_ts", "avg_ns"), lambda d: llama_bench.read_records(d.records, d.damaged)),
    (("N_KV", "speed_tg"), lambda d: llama_other.read_batched(d.lines, d.records, d.damaged)),
    (("_per_second",), lambda d: llama_other.read_server(d.records)),
    (("eval rate", "eval duration", "eval_duration", "eval count", "Prompt eval:"), lambda d: llama_other.read_ollama(d.lines, d.records)),
    (("latency:", "prefill_throughput", "decode_throughput"), lambda d: sglang.read_one_batch(d.lines, d.records)),
    (("batch size", "batch_size"), lambda d: sglang.read_one_batch_server(d.lines, d.records)),
    (("successful_requests",), lambda d: sglang.read_offline(d.records)),
    (("PERFORMANCE ", "GENERAL OVERVIEW", "performance"), lambda d: trtllm.read_bench(d.lines, d.records)),
    (("OP tokens/sec",), lambda d: trtllm.read_core_model(d.lines)),
    (('"avg"',), lambda d: loadtests.read_genai_json(d.records)),
    (("time_to_first_token",), lambda d: loadtests.read_aiperf_records(d.records)),
    (("successes", "aggregated_metrics"), lambda d: engines.read_client_reports(d.records)),
    (("results_",), lambda d: loadtests.read_llmperf(d.records)),
    (("metrics",), lambda d: loadtests.read_guidellm(d.records)),
    (("tput_per_gpu",), lambda d: engines.read_inferencemax(d.records)),
    (("decode",), lambda d: local.read_optimum(d.records)),
    (("Performance_Result", "Units"), lambda d: mlperf.read_mlperf_table(d.records)),
    ((" EMP", "empirical"), lambda d: roofs.read_ert(d.lines, d.records)),
    (("request_throughput", "request_inthroughput"), lambda d: serving.read_results(d.records, d.damaged)),
    (("benchmark_values",), lambda d: serverlogs.read_pytorch_format(d.records)),
    (("Throughput:", "requests_per_second"), lambda d: serving.read_throughput(d.lines, d.records)),
    (("latency:", "avg_latency"), lambda d: serving.read_latency(d.lines, d.records)),
    (("INSERT INTO", "insert into"), lambda d: llama_bench.read_sql(d.text)),
    (("avg_ts",), lambda d: llama_bench.read_csv(d.lines, d.counts)),
    (("/s", "/ s", "/S"), lambda d: llama_bench.read_markdown(d.lines, d.counts)),
    ((" time", "Generation:", "Performance(T/s)"), lambda d: llama_other.read_timings(d.lines)),
    (("Generat", "GenerationSpeed"), lambda d: llama_other.read_kobold(d.lines)),
    (
        ("Output generated in", "T/s", "irst token", "irst Token", "tokens_per_second", "Tokens/Second"),
        lambda d: llama_other.read_chat_lines(d.lines, d.records),
    ),
    (("hroughput", "HROUGHPUT"), lambda d: serving.read_console(d.lines)),
    (("[BENCHMARK]", "token_throughput"), lambda d: trtllm.read_benchmark_lines(d.lines)),
    (("avg", "Value"), lambda d: loadtests.read_genai_console(d.lines)),
    (("Result is", "result_validity"), lambda d: mlperf.read_mlperf(d.lines, d.records)),
    (("Benchmark duration", "completion token", "Profile Throughput", "throughput(output)"), lambda d: engines.read_lmdeploy(d.lines)),
    (("Batch Size",), lambda d: engines.read_tgi(d.lines)),
    (("infer/sec",), lambda d: engines.read_perf_analyzer(d.lines)),
    (("prompt_tps", "Generation:", "Prompt:"), lambda d: local.read_mlx(d.lines)),
    (("decode:", "decoding:", "decoding-time"), lambda d: local.read_mlc(d.lines)),
    (("Benchmarks Stats", "Statistics ("), lambda d: consoles.read_guidellm_console(d.lines)),
    (("Performance Parameters", "Common Metric", "FirstTokenTime"), lambda d: consoles.read_aisbench(d.lines)),
    (("vllm:", "sglang:", "llamacpp:", "tgi:", "trtllm:"), lambda d: consoles.read_prometheus(d.lines)),
    (("** Length", "** Position", "tokens/second", "Length ", "Context "), lambda d: local.read_exllama(d.lines)),
    (("Time for inference", "Average tokens/sec", "Next token throughput"), lambda d: local.read_gpt_fast(d.lines)),
    (("oken latency", "TPOT"), lambda d: local.read_openvino(d.lines)),
    (("Token Generation", "token generation"), lambda d: local.read_onnx(d.lines, d.records)),
    (("Latency Per Token",), lambda d: local.read_client_summary(d.lines)),
    (("AutoRegressive", "AR throughput", "Prefill results", "TFLOPs/sec/device"), lambda d: local.read_maxtext(d.lines)),
    (("token/s",), lambda d: local.read_candle(d.lines)),
    (("tok/s/user",), lambda d: local.read_tt_metal(d.lines)),
    (("ncluding tokenization",), lambda d: local.read_habana(d.lines)),
    (("Kernel Name",), lambda d: kernels.read_ncu_csv(d.lines)),
    (("Section: ",), lambda d: kernels.read_ncu_text(d.lines)),
    (("Total Time", "Duration (", "GPU activities"), lambda d: kernels.read_nsys(d.lines)),
    (("Kernel_Name", "KernelName"), lambda d: kernels.read_rocprof_compute_tables(d.lines)),
    (("Ns", "_Timestamp", "Counter_Name", "FETCH_SIZE"), lambda d: kernels.read_rocprof(d.lines)),
    (("HBMBw",), lambda d: kernels.read_rocprof_compute(d.lines)),
    (("# of Calls",), lambda d: torch_profile.read_table(d.lines)),
    (("MByte", "MFlops/s", "MFLOP/s"), lambda d: roofs.read_likwid(d.lines)),
    (("gflops", "GFLOPS"), lambda d: roofs.read_advisor(d.lines)),
    (("Function",), lambda d: roofs.read_stream(d.lines)),
    (("GBPS", "gbps"), lambda d: roofs.read_clpeak(d.lines)),
    (("Injection Memory Bandwidth",), lambda d: roofs.read_intel_mlc(d.lines)),
    (("HLO op name", "Total Duration (us)"), lambda d: tensorboard.read_xprof(d.lines)),
    (("(GB/s)", "(TFLOPS)"), lambda d: tensorboard.read_triton(d.lines)),
    (("Statistics summary",), lambda d: serverlogs.read_multi_turn(d.lines)),
    (("Bandwidth", "SUM "), lambda d: roofs.read_cuda_bandwidth(d.lines)),
    (("mixbench", "Flops/byte"), lambda d: roofs.read_mixbench(d.lines)),
    (("flops", "FLOPS", "Gflops", "GFLOPs"), lambda d: roofs.read_gemm(d.lines)),
)
# Asked only when none of the above knows the text: the first that answers is used.
_FALLBACKS = (
    lambda d: serverlogs.read_logs(d.lines),
    lambda d: serverlogs.read_progress(d.lines),
    lambda d: generic.read_generic(d.lines if len(d.lines) <= 8_000 else d.lines[:6_000] + d.lines[-2_000:], d.records),
)


@dataclass(frozen=True)
class _Document:
    """One file in the forms the readers want."""

    text: str
    lines: list[str]
    records: list[dict]
    damaged: bool
    counts: dict[str, int]  # how often a line stood in the file, where copies were cut


def _read_all(document: _Document) -> list[Sheet]:
    """Run the readers whose words stand in the text; then look into wrapping objects; then fall back on labels alone."""
    sheets = _known(document)
    if not sheets and document.records:  # a result wrapped in another object
        lists = [x for r in document.records for y in r.values() if isinstance(y, list) for x in y[:1000]]
        inner = [v for v in [*lists, *(v for r in document.records for v in r.values())] if isinstance(v, dict)]
        sheets = _known(replace(document, records=inner, lines=[], damaged=False)) if inner else []
    for reader in _FALLBACKS:
        if not sheets and (sheet := reader(document)) is not None:
            sheets.append(sheet)
    return sheets


def _known(document: _Document) -> list[Sheet]:
    return [sheet for needles, reader in _READERS if any(n in document.text for n in needles) and (sheet := reader(document)) is not None]


def _again(other: Sheet, first: Sheet) -> bool:
    """True if every figure of one sheet stands in another already, but for the digits printed."""
    known = [(r["metric"], r.get("stat"), r["value"]) for r in first.rows[:500]]
    return len(other.rows) <= 500 and all(
        any(metric == r["metric"] and stat == r.get("stat") and abs(value - r["value"]) <= max(0.0051, 1e-4 * value) for metric, stat, value in known)
        for r in other.rows
        if r.get("stat") != "median" and r["metric"] not in ("peak_output_tps", "e2e_ms")
    )


def _choose(sheets: list[Sheet]) -> Sheet | None:
    """One tool's sheet, or several joined when a file holds the outputs of several."""
    useful = [s for s in sheets if s.rows]
    if len(useful) > 1:  # llama.cpp programs print their timings after their own table: the same run again
        useful = [s for s in useful if s.tool != "llama-perf"] or useful
    if not useful:
        return sheets[0] if sheets else None
    first, *others = useful
    for other in others:
        if other.tool == first.tool and _again(other, first):
            first.fact(**other.common)
            first.warn("same_run_twice", "the file states the same figures in two forms; they are read once")
            continue
        joined = Sheet(first.tool, common={k: v for k, v in first.common.items() if other.common.get(k, v) == v})
        for sheet in (first, other):
            for target, entries in ((joined.rows, sheet.rows), (joined.more, sheet.more)):
                target.extend(
                    {**{k: v for k, v in sheet.common.items() if k not in joined.common}, "tool": sheet.tool, **e}
                    if sheet.tool != first.tool or other.tool != first.tool
                    else {**{k: v for k, v in sheet.common.items() if k not in joined.common}, **e}
                    for e in entries
                )
        joined.warnings = [*first.warnings, *other.warnings]
        if other.tool != first.tool:
            joined.warn("several_tools", f"the file holds output of {first.tool} and {other.tool}; each row names its tool")
        first = joined
    return first
