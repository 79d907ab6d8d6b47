"""The rest of the llama.cpp family: batched and sweep benches, printed timings, server JSON, ollama, koboldcpp, LM Studio."""

from __future__ import annotations

import re

from .devices import logged_devices, logged_model
from .jsonish import number_of, text_of
from .llama_bench import setting
from .reading import Sheet
from .tables import as_records, misfit, pipe_tables
from .values import NUMBER, decimal_mark, number, quant_in_name, seconds, whole

_SETTINGS = {
    "flash_attn": "fa",
    "n_gpu_layers": "ngl",
    "n_threads": "threads",
    "n_batch": "n_batch",
    "n_ubatch": "n_ubatch",
    "n_kv_max": "n_kv_max",
    "is_pp_shared": "is_pp_shared",
}


# ---- llama-batched-bench and llama-sweep-bench ----------------------------------------------------------


def read_batched(lines: list[str], records: list, damaged: bool = False) -> Sheet | None:
    """S_PP and S_TG of each step: summed over B sequences; without a B column N_KV is the depth before the step (sweep)."""
    tables = pipe_tables(lines, lambda row: {"PP", "TG", "N_KV"} <= set(row) and any(c.startswith("S_TG") for c in row))
    steps = [r for r in records if isinstance(r, dict) and {"pp", "tg", "speed_pp", "speed_tg"} <= set(r)]
    if not steps and not any(t.rows for t in tables):
        return None
    sheet = Sheet("llama-batched-bench")
    for record in steps[:4000]:
        facts = {key: setting(key, record[name]) for name, key in _SETTINGS.items() if record.get(name) is not None}
        _step(
            sheet,
            {
                k: record.get(v)
                for k, v in {
                    "PP": "pp",
                    "TG": "tg",
                    "B": "pl",
                    "N_KV": "n_kv",
                    "S_PP": "speed_pp",
                    "S_TG": "speed_tg",
                    "T_PP": "t_pp",
                    "T_TG": "t_tg",
                }.items()
            },
            ".",
            facts,
        )
    mark = decimal_mark(c for t in tables for _, row, n in t.rows[:400] for c in row if n)
    for table in tables:
        for line, found in table.misfits[:20]:
            sheet.warn(f"row_cell_count_mismatch:line {line}", misfit(found, table))
        for _, record, count in as_records(table)[:4000]:
            short = {k.split()[0]: v for k, v in reversed(record.items())}
            _step(sheet, short, mark, {"count": count} if count > 1 else {})
    for line in lines[:2000]:
        if "n_kv_max" in line and "=" in line:
            found = dict(re.findall(r"(\w+) = (-?\w+)", line))
            sheet.fact(**{key: setting(key, found[name]) for name, key in _SETTINGS.items() if name in found})
    sheet.fact(**logged_devices(lines), **logged_model(lines))
    if damaged and steps:
        sheet.warn("truncated", "the file breaks off inside a record; only whole records are read")
    return sheet


def _step(sheet: Sheet, step: dict, mark: str, facts: dict) -> None:
    prompt, gen, batch, n_kv = (whole(step.get(k), mark) for k in ("PP", "TG", "B", "N_KV"))
    sweep = step.get("B") is None
    depth = n_kv if sweep else prompt
    shared = {"batch": 1} if sweep else {"batch": batch, "aggregate": True}
    for metric, rate, time, tokens, own in (
        ("prefill_tps", "S_PP", "T_PP", prompt, {"n_prompt": prompt, "n_depth": n_kv if sweep else None}),
        ("decode_tps", "S_TG", "T_TG", gen, {"n_gen": gen, "n_depth": depth}),
    ):
        value, spent = number(step.get(rate), mark), number(step.get(time), mark)
        if not tokens:
            continue
        if value and spent and spent > 0.05 and batch and not sweep:
            implied = tokens * batch / spent
            if metric == "decode_tps" and implied > 0 and not 0.8 < value / implied < 1.25:
                sheet.warn("rate_disagrees_with_time", f"{rate} prints {value:g} token/s, {implied:.4g} from tokens and time; left out")
                continue
        sheet.row(metric, value, step.get(rate), **own, **shared, **facts)


# ---- timings printed by llama.cpp programs -----------------------------------------------------------

_TIMING = re.compile(
    rf"(?P<what>prompt eval|sampl\w+|eval|load|total|predict)\s+time\s*=\s*(?P<ms>{NUMBER}|inf|nan)\s*ms(?:\s*/\s*(?P<n>\d+)\s*(?:runs?|tokens?))?"
    rf"(?:\s*[(/]\s*(?P<per>{NUMBER}|inf|-?nan)\s*ms\s+per\s+token(?:,\s*(?P<rate>{NUMBER}|inf|-?nan)\s*(?P<unit>tokens per second|t/s))?)?"
)
_SHORT = re.compile(rf"\[\s*Prompt:\s*({NUMBER})\s*t/s\s*\|\s*Generation:\s*({NUMBER})\s*t/s\s*\]")

_KTRANSFORMERS = re.compile(rf"Performance\(T/s\):\s*prefill\s+({NUMBER}),\s*decode\s+({NUMBER})\.?(?=\s|$)")


def read_timings(lines: list[str]) -> Sheet | None:
    """Prompt and generation rates of llama_print_timings and its successors; sampling, load and total times are no rates of the model."""
    found = [m for line in lines if " time" in line and "ms" in line and (m := _TIMING.search(line))]
    short = [m for line in lines if "Generation:" in line and (m := _SHORT.search(line))]
    short += [m for line in lines if "Performance(T/s)" in line and (m := _KTRANSFORMERS.search(line))]
    if not any(m["what"] in ("eval", "prompt eval", "predict") for m in found) and not short:
        return None
    sheet = Sheet("llama-perf")
    if any(re.match(r"\W*(?:perplexity:|Final estimate: PPL)", line) for line in lines):
        sheet.warn("perplexity_run", "the timings sum many chunks of a perplexity run, so no prompt length belongs to the rate")
        return sheet
    mark = decimal_mark([m[g] for m in found for g in ("ms", "per", "rate") if m[g]])
    for match in found:
        if match["what"] not in ("eval", "prompt eval", "predict"):
            continue
        prompt = match["what"] == "prompt eval"
        metric, count = "prefill_tps" if prompt else "decode_tps", int(match["n"][:9]) if match["n"] else None
        ms, rate = number(match["ms"], mark), number(match["rate"], mark) if match["rate"] else None
        raw, derived = f"{match['rate']} {match['unit']}" if match["rate"] else match["ms"] + " ms", False
        implied = count / ms * 1000 if count and ms and ms > 0 else None
        if rate is None and match["rate"] is None and implied:
            rate, derived = implied, True
        elif match["what"] == "predict" and (per := number(match["per"], mark)):  # the first releases: "11000 ms / 55 ms per token"
            rate, derived = 1000 / per, True
        elif rate and implied and not 0.8 < rate / implied < 1.25 and ms > 5:
            sheet.warn("rate_disagrees_with_time", f"{raw} printed, {implied:.4g} from count and time; left out")
            continue
        if (
            sheet.row(metric, rate, raw, derived=derived, **({"n_prompt": count} if prompt else {"n_gen": count}))
            and prompt
            and count
            and count < 8
        ):
            sheet.warn("prompt_too_short_for_prefill", f"a prompt of {count} tokens measures the start of a run, not prefill")
    for match in short:
        if match.re is _KTRANSFORMERS:
            sheet.tool = "ktransformers"
        prefill, decode = (text.rstrip(".") for text in match.groups())
        mark = decimal_mark([prefill, decode])
        sheet.row("prefill_tps", number(prefill, mark), prefill + " t/s")
        sheet.row("decode_tps", number(decode, mark), decode + " t/s")
    text = "\n".join(lines[:4000])
    for line in lines:
        if m := re.search(rf"draft acceptance(?: rate)?\s*[=:]\s*({NUMBER})\s*\(\s*(\d+) accepted", line):
            sheet.fact(speculative=True, acceptance_rate=number(m[1]))
        elif m := re.match(r"\W*n_accept\s*=\s*(\d+)", line):
            sheet.fact(speculative=True if int(m[1][:9]) else None)
    if match := re.search(r"n_threads = (\d{1,4})\b", text):
        sheet.fact(threads=int(match[1]))
    sheet.fact(**logged_devices(lines), **logged_model(lines))
    if (
        sheet.common.get("hardware") is None
        and re.search(r"BLAS = 0 \|", text)
        and not re.search(r"CUDA|ROCm|Metal|Vulkan|SYCL|offload", text)
    ):
        sheet.fact(backend="CPU")
    if not sheet.rows:
        sheet.warn("no_usable_rate", "no rate is a finite number above 0; the total time includes loading, so none is derived from it")
    return sheet


def read_server(records: list) -> Sheet | None:
    """The "timings" of llama-server answers."""
    sheet = Sheet("llama-server")
    seen = False
    for record in records:
        t = record.get("timings") if isinstance(record, dict) else None
        t = t if isinstance(t, dict) else record if isinstance(record, dict) else {}
        if "predicted_per_second" not in t and "prompt_per_second" not in t:
            continue
        seen = True
        cached = number_of(t, "cache_n")
        spec = bool(number_of(t, "draft_n"))
        sheet.row("prefill_tps", number_of(t, "prompt_per_second"), n_prompt=number_of(t, "prompt_n"), cached_tokens=cached or None)
        sheet.row("decode_tps", number_of(t, "predicted_per_second"), n_gen=number_of(t, "predicted_n"), speculative=spec or None)
        model = text_of(record, "model")  # a server started without an alias calls itself gpt-3.5-turbo
        sheet.fact(model=re.split(r"[\\/]", model)[-1] if model and not model.startswith("gpt-3.5") else None)
    return sheet if seen else None


# ---- ollama ----------------------------------------------------------------------------------------------


def read_ollama(lines: list[str], records: list) -> Sheet | None:
    """`ollama run --verbose` blocks, final API objects (nanoseconds) and `ollama-bench` tables."""
    sheet = Sheet("ollama")
    seen = False
    for record in records:
        if not isinstance(record, dict) or not (
            {"eval_count", "eval_duration"} <= set(record) or {"prompt_eval_duration", "total_duration"} <= set(record)
        ):
            continue
        seen = True
        model = text_of(record, "model")
        facts = {"model": model, "quant": quant_in_name(model) if model else None}
        for metric, kind, length in (("prefill_tps", "prompt_eval", "n_prompt"), ("decode_tps", "eval", "n_gen")):
            count, ns = number_of(record, f"{kind}_count"), number_of(record, f"{kind}_duration")
            if count and ns and ns > 0:
                sheet.row(metric, count / ns * 1e9, f'"{kind}_duration":{ns}', derived=True, **{length: count}, **facts)
            elif count is not None and ns is not None and (ns <= 0 or count <= 0):
                sheet.warn("zero_value", f"{kind}: {count} tokens in {ns} ns gives no rate")
    block: dict[str, str] = {}
    for line in lines:
        if match := re.search(r"\b(prompt eval|eval|total|load)\s+(count|duration|rate):\s*(.+?)\s*$", line):
            block[f"{match[1]} {match[2]}"] = match[3]
            if (match[1], match[2]) == ("eval", "rate"):
                seen = _ollama_block(sheet, block) or seen
                block = {}
    if block.get("eval count") or block.get("prompt eval rate"):
        seen = _ollama_block(sheet, block) or seen
    said = {}
    for line in lines:  # llm-benchmark, which asks an ollama server; its averages over the prompts follow the single ones
        if match := re.match(rf"\W*(Prompt eval|Response|Prompt tokens|Response tokens):\s*({NUMBER})(?:\s*(t/s))?\s*$", line):
            said[match[1], bool(match[3])] = match[2]
    if ("Prompt eval", True) in said and ("Response", True) in said:
        seen = True
        prompt, answer = said["Prompt eval", True], said["Response", True]
        sheet.row("prefill_tps", number(prompt), f"{prompt} t/s", n_prompt=whole(said.get(("Prompt tokens", False))))
        sheet.row("decode_tps", number(answer), f"{answer} t/s", n_gen=whole(said.get(("Response tokens", False))))
    for line in lines:
        if match := re.search(r"\bollama\s+run\s+(?:--?\w+\s+)*([\w./:-]+)", line):
            sheet.fact(model=match[1], quant=quant_in_name(match[1]))
    if not seen:
        return None
    sheet.fact(concurrency=1)
    return sheet


def _ollama_block(sheet: Sheet, block: dict[str, str]) -> bool:
    got = False
    for metric, kind, length in (("prefill_tps", "prompt eval", "n_prompt"), ("decode_tps", "eval", "n_gen")):
        count = re.match(r"(\d{1,9})", block.get(f"{kind} count", ""))
        rate = re.match(rf"({NUMBER}|\+?Inf|NaN)\s*tokens?/s", block.get(f"{kind} rate", ""))
        spent = seconds(block.get(f"{kind} duration", ""))
        facts = {length: int(count[1])} if count else {}
        if rate:
            got = True
            sheet.row(metric, number(rate[1], decimal_mark([rate[1]])), rate[0], **facts)
        elif count and spent:
            got = True
            sheet.row(metric, int(count[1]) / spent, block[f"{kind} duration"], derived=True, **facts)
    return got


# ---- koboldcpp, text-generation-webui, LM Studio ---------------------------------------------------------

_KOBOLD = re.compile(
    rf"Process(?:ing)?:\s*({NUMBER})\s*s(?:\s*\((?:[\d.]+ms/T\s*=?\s*)?({NUMBER})?\s*(?:T/s)?\))?.{{0,40}}?Generat(?:e|"
    rf"ion):\s*({NUMBER})\s*s\s*\(([^)]{{0,60}})\)"
)
_WEBUI = re.compile(rf"Output generated in ({NUMBER}) seconds \(({NUMBER}) (?:tokens/s|it/s), (\d+) tokens, context (\d+)")
_TABBY = re.compile(
    rf"(\d+) tokens generated in .{{0,80}}?Process: (\d+) cached tokens and (\d+) new tokens at ({NUMBER}) T/s, Generate: ({NUMBER}) T/s, "
    rf"Context: (\d+) tokens"
)
_STUDIO = re.compile(rf"({NUMBER})\s*tok/s(?:ec)?\s*[•·|,-]?\s*(\d+)\s*tokens\s*[•·|,-]?\s*({NUMBER})\s*s\s*to first token", re.I)


def read_kobold(lines: list[str]) -> Sheet | None:
    """koboldcpp's line per request, its benchmark block and its benchmark CSV."""
    sheet = Sheet("koboldcpp")
    block: dict[str, str] = {}
    header: list[str] = []
    for line in lines:
        if "ProcessingSpeed," in line.replace(" ", "") and "GenerationSpeed" in line:
            header = [c.strip() for c in line.split(",")]
            continue
        if match := re.match(
            r"\W*(ProcessingSpeed|GenerationSpeed|MaxCtx|GenAmount|Model|Backend|Layers|ProcessingTime|GenerationTime):\s*(.+?)\s*$", line
        ):
            block[match[1]] = match[2]
        elif "Process" in line and "Generat" in line and (match := _KOBOLD.search(line)):
            counts = re.search(r"Amt:\s*(\d+)/", line)
            limit = re.search(r"Ctx(?:Limit)?:\s*(\d+)/", line)
            gen = int(counts[1]) if counts else None
            prompt = int(limit[1]) - gen if limit and gen is not None and int(limit[1]) > gen else None
            if match[2] and "T/s" in line[match.start(1) : match.end(2) + 5]:
                sheet.row("prefill_tps", number(match[2]), match[2] + "T/s", n_prompt=prompt)
            if rate := re.search(rf"({NUMBER})\s*T/s", match[4]):
                sheet.row("decode_tps", number(rate[1]), rate[0], n_gen=gen, n_depth=prompt)
            elif per := re.search(rf"({NUMBER})\s*ms/T", match[4]):
                if value := number(per[1]):
                    sheet.row("decode_tps", 1000 / value, per[0], derived=True, n_gen=gen)
        elif header and "koboldcpp" in line and line.count(",") >= len(header) - 2:
            _kobold_block(sheet, dict(zip(header, line.split(","), strict=False)))
    _kobold_block(sheet, block)
    return sheet if sheet.rows or block.get("GenerationSpeed") else None


def _kobold_block(sheet: Sheet, block: dict[str, str]) -> None:
    limit, gen = whole(block.get("MaxCtx")), whole(block.get("GenAmount"))
    facts = {"n_gen": gen}
    prompt = limit - gen if limit and gen and limit > gen else None  # the benchmark fills the context but for what it generates
    for metric, key, own in (
        ("prefill_tps", "ProcessingSpeed", {"n_prompt": prompt}),
        ("decode_tps", "GenerationSpeed", {**facts, "n_depth": prompt}),
    ):
        if block.get(key):
            text = block[key].strip()
            sheet.row(metric, number(re.sub(r"\s*T/s$", "", text)), text, **own)
    if block.get("GenerationSpeed"):
        sheet.fact(
            model=block.get("Model", "").strip() or None,
            quant=quant_in_name(block.get("Model", "")),
            ngl=whole(block.get("Layers")),
            koboldcpp_library=block.get("Backend", "").strip() or None,
        )


def read_chat_lines(lines: list[str], records: list) -> Sheet | None:
    """text-generation-webui, TabbyAPI and LM Studio: a line or a "stats" object per answer."""
    sheet = Sheet("text-generation-webui")
    for line in lines:
        if "Output generated in" in line and (m := _WEBUI.search(line)):
            # Tokens over the whole time, prompt processing included.
            sheet.row("output_tps_e2e", number(m[2]), m[2] + " tokens/s", n_gen=int(m[3][:9]), n_prompt=int(m[4][:9]), batch=1)
        elif "T/s" in line and (m := _TABBY.search(line)):
            sheet.tool = "tabbyapi"
            sheet.row("prefill_tps", number(m[4]), m[4] + " T/s", n_prompt=int(m[3][:9]), cached_tokens=int(m[2][:9]) or None)
            sheet.row("decode_tps", number(m[5]), m[5] + " T/s", n_gen=int(m[1][:9]), n_depth=int(m[6][:9]))
        elif "to first token" in line.lower() and (m := _STUDIO.search(line)):
            sheet.tool = "lm-studio"
            mark = decimal_mark([m[1], m[3]])
            sheet.row("decode_tps", number(m[1], mark), m[1], n_gen=int(m[2][:9]))
            sheet.row("ttft_ms", number(m[3], mark), m[3], scale=1000)
    for record in records:
        stats = record.get("stats") if isinstance(record, dict) else None
        if isinstance(stats, dict) and "tokens_per_second" in stats:
            sheet.tool = "lm-studio"
            usage = record.get("usage") if isinstance(record.get("usage"), dict) else {}
            info = record.get("model_info") if isinstance(record.get("model_info"), dict) else {}
            sheet.row(
                "decode_tps",
                number_of(stats, "tokens_per_second"),
                n_gen=number_of(usage, "completion_tokens"),
                n_depth=number_of(usage, "prompt_tokens"),
            )
            sheet.row("ttft_ms", number_of(stats, "time_to_first_token"), scale=1000, n_prompt=number_of(usage, "prompt_tokens"))
            sheet.fact(model=text_of(record, "model"), quant=text_of(info, "quant"))
    block = dict(
        m.groups()
        for line in lines
        if (m := re.match(rf"\W*(Tokens/Second|Time to First Token|Prompt Tokens|Predicted Tokens):\s*({NUMBER})\s*s?\s*$", line))
    )
    if "Tokens/Second" in block and "Predicted Tokens" in block:
        sheet.tool = "lm-studio"
        sheet.row(
            "decode_tps",
            number(block["Tokens/Second"]),
            block["Tokens/Second"],
            n_gen=whole(block["Predicted Tokens"]),
            n_depth=whole(block.get("Prompt Tokens")),
        )
        sheet.row(
            "ttft_ms",
            number(block.get("Time to First Token")),
            block.get("Time to First Token"),
            scale=1000,
            n_prompt=whole(block.get("Prompt Tokens")),
        )
    return sheet if sheet.rows else None
