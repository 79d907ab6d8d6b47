"""Read the output of benchmarks and profilers: `read(data)` finds the tool, the facts and the figures.

Each reader knows one tool's text and adds rows to a Sheet; the order below goes from the formats that cannot be
mistaken to the vocabulary of last resort. A fact that the file does not state stays None.
"""

from __future__ import annotations

import re

from ..errors import InputError
from . import generic, jsonish, kernels, llama_bench, llama_other, loadtests, local, roofs, serving, sglang, torch_profile, trtllm
from .reading import Reading, Sheet
from .text import decode, lines_of, plain

__all__ = ["Reading", "read"]


def read(data: bytes, name: str = "") -> Reading:
    """Read one benchmark or profiler output, whatever its encoding, quoting and noise.

    Args: data: the file [bytes, at most 16 MiB]; name: its name, for messages only.
    Returns a Reading: units of the metrics are token/s, req/s, ms, s, ns, B, GB/s (1e9 B/s), GFLOP/s, %.
    Raises InputError when the text is not a benchmark's, is damaged beyond use, holds no usable figure, or is hostile.

    >>> text = "| model | size | params | backend | ngl | test | t/s |\\n|-|-|-|-|-|-|-|\\n| llama 8B Q4_0 | 4.33 GiB | 8.03 B | CUDA | 99 | tg128 | 131.64 ± 0.42 |"
    >>> r = read(text.encode())
    >>> r.tool, r.common["quant"], r.rows[0]["metric"], r.rows[0]["value"]
    ('llama-bench', 'Q4_0', 'decode_tps', 131.64)
    """
    shown = re.split(r"[\\/]", name)[-1] or "input"
    text = decode(data, shown)
    jsonish.guard(text, shown)
    found = jsonish.find(text, shown)
    cleaned = plain(text)
    lines = lines_of(cleaned)
    if not found.values and ("{" in cleaned or "[" in cleaned) and cleaned != text:
        found = jsonish.find("\n".join(lines), shown)  # JSON inside a quote, a web page or a colour terminal
    sheets = _read_all(cleaned, lines, found)
    sheet = _choose(sheets)
    if sheet is None:
        rule = "breaks off inside its JSON; give the whole file" if found.damaged and not found.values else (
            "is not recognised as the output of a benchmark or profiler; give llama-bench, vLLM, SGLang, TensorRT-LLM, MLPerf, Nsight, PyTorch profiler ... output")
        raise InputError("file", shown, rule)
    if not sheet.rows:
        reason = "; ".join(dict.fromkeys(sheet.warnings)) or "it holds no figure"
        raise InputError("file", shown, f"is {sheet.tool} output without a usable figure ({reason[:300]})")
    if found.damaged and not any(w.startswith("truncated") for w in sheet.warnings) and found.values and text.lstrip()[:1] in "{[":
        sheet.warn("truncated", "the file breaks off inside a record; only whole records are read")
    return sheet.reading()


def _read_all(text: str, lines: list[str], found: jsonish.Json) -> list[Sheet]:
    """Run the readers group by group; a group that finds its tool keeps the later ones from guessing."""
    values, damaged = found.values, found.damaged
    records = [v for v in values if isinstance(v, dict)]
    exact = [
        lambda: torch_profile.read_trace(records),
        lambda: llama_bench.read_records(records, damaged),
        lambda: llama_other.read_batched(lines, records, damaged),
        lambda: llama_other.read_server(records),
        lambda: llama_other.read_ollama(lines, records),
        lambda: sglang.read_one_batch(lines, records),
        lambda: sglang.read_one_batch_server(lines, records),
        lambda: trtllm.read_bench(lines, records),
        lambda: loadtests.read_genai_json(records),
        lambda: loadtests.read_llmperf(records),
        lambda: loadtests.read_guidellm(records),
        lambda: local.read_optimum(records),
        lambda: loadtests.read_mlperf_table(records),
        lambda: roofs.read_ert(lines, records),
        lambda: serving.read_results(records, damaged),
        lambda: serving.read_throughput(lines, records),
        lambda: serving.read_latency(lines, records),
        lambda: llama_bench.read_sql(text),
        lambda: llama_bench.read_csv(lines),
        lambda: llama_bench.read_markdown(lines),
        lambda: llama_other.read_timings(lines),
        lambda: llama_other.read_kobold(lines),
        lambda: llama_other.read_chat_lines(lines, records),
        lambda: serving.read_console(lines),
        lambda: trtllm.read_benchmark_lines(lines),
        lambda: loadtests.read_genai_console(lines),
        lambda: loadtests.read_mlperf(lines, records),
        lambda: loadtests.read_lmdeploy(lines),
        lambda: loadtests.read_tgi(lines),
        lambda: loadtests.read_perf_analyzer(lines),
        lambda: local.read_mlx(lines),
        lambda: local.read_mlc(lines),
        lambda: local.read_exllama(lines),
        lambda: local.read_gpt_fast(lines),
        lambda: local.read_openvino(lines),
        lambda: local.read_onnx(lines, records),
        lambda: local.read_client_summary(lines),
        lambda: kernels.read_ncu_csv(lines),
        lambda: kernels.read_ncu_text(lines),
        lambda: kernels.read_nsys(lines),
        lambda: kernels.read_rocprof(lines),
        lambda: kernels.read_rocprof_compute(lines),
        lambda: torch_profile.read_table(lines),
        lambda: roofs.read_likwid(lines),
        lambda: roofs.read_advisor(lines),
        lambda: roofs.read_stream(lines),
        lambda: roofs.read_clpeak(lines),
        lambda: roofs.read_cuda_bandwidth(lines),
        lambda: roofs.read_mixbench(lines),
    ]
    sheets = [sheet for reader in exact if (sheet := reader()) is not None]
    if not sheets and (logs := serving.read_logs(lines)):
        sheets.append(logs)
    if not sheets and (loose := generic.read_generic(lines, records)):
        sheets.append(loose)
    return sheets


def _choose(sheets: list[Sheet]) -> Sheet | None:
    """One tool's sheet, or several joined when a file holds the outputs of several."""
    useful = [s for s in sheets if s.rows]
    if len(useful) > 1:  # llama.cpp programs print their timings after their own table: the same run again
        useful = [s for s in useful if s.tool != "llama-perf"] or useful
    if not useful:
        return sheets[0] if sheets else None
    first, *others = useful
    for other in others:
        joined = Sheet(first.tool, common={k: v for k, v in first.common.items() if other.common.get(k, v) == v})
        for sheet in (first, other):
            for target, entries in ((joined.rows, sheet.rows), (joined.more, sheet.more)):
                target.extend({**{k: v for k, v in sheet.common.items() if k not in joined.common}, "tool": sheet.tool, **e} if sheet.tool != first.tool or other.tool != first.tool
                              else {**{k: v for k, v in sheet.common.items() if k not in joined.common}, **e} for e in entries)
        joined.warnings = [*first.warnings, *other.warnings]
        if other.tool != first.tool:
            joined.warn("several_tools", f"the file holds output of {first.tool} and {other.tool}; each row names its tool")
        first = joined
    return first
