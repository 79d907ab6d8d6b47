"""Engines people run at home or in research: MLX, MLC, ExLlama, gpt-fast and torchchat, OpenVINO, ONNX Runtime, optimum."""

from __future__ import annotations

import re

from .jsonish import number_of, text_of
from .reading import Sheet
from .values import NUMBER, decimal_mark, number, quant_in_name, whole

# ---- MLX -----------------------------------------------------------------------------------------------------

_TRIAL = re.compile(rf"(Trial\s+\d+|Averages):\s+prompt_tps=({NUMBER}),\s*generation_tps=({NUMBER})(?:,\s*peak_memory=({NUMBER}))?")
_TIMING = re.compile(r"Timing with prompt_tokens=(\d+), generation_tokens=(\d+), batch_size=(\d+)")
_GENERATE = re.compile(
    rf"(\[batch_generate\] |\[WARNING\] )?(Prompt|Generation):\s*(?:(\d+) tokens,\s*)?({NUMBER})\s*(?:tokens-per-sec|tokens/s|tokens per second)"
)


def read_mlx(lines: list[str]) -> Sheet | None:
    """mlx_lm.benchmark (the average over the trials counts) and mlx_lm.generate; batch lines sum over an unstated batch."""
    sheet = Sheet("mlx-lm")
    prompt = gen = batch = None
    trials: list[re.Match] = []
    averaged = False
    for line in lines:
        if m := re.search(r"mlx_lm[.\w]*\s.*?--model[ =](\S+)", line):
            sheet.fact(model=m[1], quant=quant_in_name(m[1]))
        if m := _TIMING.search(line):
            prompt, gen, batch = (int(g[:9]) for g in m.groups())
            trials = []
        elif "prompt_tps=" in line and (m := _TRIAL.search(line)):
            if m[1] == "Averages":
                averaged = True
                _mlx_run(sheet, m, prompt, gen, batch, len(trials) or None)
                trials = []
            else:
                trials.append(m)
    if trials and not averaged:
        sheet.warn("no_average", "the file breaks off before the averages; each trial is a row")
        for m in trials:
            _mlx_run(sheet, m, prompt, gen, batch, 1)
    if sheet.rows:
        sheet.fact(batch=batch)
        return sheet
    last_prompt = None
    for line in lines:
        m = _GENERATE.match(line.strip()) if "ion: " in line or "rompt: " in line else None
        if m:
            many = bool(m[1]) and "batch" in m[1]
            count = int(m[3][:9]) if m[3] else None
            if m[2] == "Prompt":
                last_prompt = None if many else count
                sheet.row("prefill_tps", number(m[4]), m[4], n_prompt=count, **({"aggregate": True} if many else {"batch": 1}))
            else:
                sheet.row(
                    "decode_tps", number(m[4]), m[4], n_gen=count, n_depth=last_prompt, **({"aggregate": True} if many else {"batch": 1})
                )
        elif m := re.match(rf"\W*Peak memory:\s*({NUMBER})\s*GB", line):
            sheet.fact(peak_memory_gb=number(m[1]))
    return sheet if sheet.rows else None


def _mlx_run(sheet: Sheet, m: re.Match, prompt, gen, batch, trials) -> None:
    facts = {"repetitions": trials, "batch": batch, "aggregate": True if batch and batch > 1 else None}
    sheet.row("prefill_tps", number(m[2]), m[2], n_prompt=prompt, **facts)
    sheet.row("decode_tps", number(m[3]), m[3], n_gen=gen, n_depth=prompt, **facts)
    sheet.fact(peak_memory_gb=number(m[4]) if m[4] else None)


# ---- MLC ------------------------------------------------------------------------------------------------------

_MLC = re.compile(
    rf"prefill:\s*({NUMBER})\s*tok(?:ens?)?/s(?:ec)?,\s*decod(?:e|ing):\s*({NUMBER})\s*tok(?:ens?)?/s(?:ec)?", re.I
)
_MLC_STEP = re.compile(rf"\[i: (\d+)\] decoding-time=({NUMBER})ms tok/s: ({NUMBER})\.?\s*$")


def read_mlc(lines: list[str]) -> Sheet | None:
    """mlc_chat statistics and the running mean per token, of which the last line counts."""
    sheet = Sheet("mlc-llm")
    steps: list[re.Match] = []
    for line in lines:
        if "decod" in line and (m := _MLC.search(line)):
            sheet.row("prefill_tps", number(m[1]), f"{m[1]} tok/s")
            sheet.row("decode_tps", number(m[2]), f"{m[2]} tok/s")
        elif "decoding-time=" in line and (m := _MLC_STEP.search(line)):
            if steps and int(m[1][:9]) <= int(steps[-1][1][:9]):
                _mlc_last(sheet, steps[-1])
            steps.append(m)
        elif m := re.search(r"([\w.-]+)-(q\d+f\d+(?:_\w+?)?)-(cuda|vulkan|metal|rocm|opencl|webgpu|android|iphone)\b", line):
            sheet.fact(model=m[1], quant=m[2], backend=m[3])
        elif m := re.search(r"/([\w.-]+?)-(q\d+f\d+(?:_\w+?)?)(?:-MLC)?/", line):
            sheet.fact(model=m[1], quant=m[2])
        elif m := re.search(r"HF://[\w.-]+/([\w.-]+?)-(q\d+f\d+(?:_\w+?)?)(?:-MLC)?\b", line):
            sheet.fact(model=m[1], quant=m[2])
    if steps:
        _mlc_last(sheet, steps[-1])
    return sheet if sheet.rows else None


def _mlc_last(sheet: Sheet, m: re.Match) -> None:
    text = m[3].rstrip(".")
    sheet.row("decode_tps", number(text), text, n_gen=int(m[1][:9]) + 1, note="running mean; the last line is final")


# ---- ExLlama --------------------------------------------------------------------------------------------------

_LENGTH = re.compile(rf"\*\*\s*Length\s+(\d+)\s+tokens:\s+({NUMBER})\s*t(?:ok(?:ens)?)?/s")
_SPEED = re.compile(rf"(Length|Context)\s+(\d+):?\s+({NUMBER})\s*tokens/s\s*$")  # ExLlamaV3's eval/perf.py
_POSITION = re.compile(rf"\*\*\s*Position\s+(\d+)\s*\+\s*(\d+)\s+tokens:\s+({NUMBER})\s*t(?:ok(?:ens)?)?/s")


def read_exllama(lines: list[str]) -> Sheet | None:
    """test_inference.py: prompt speed by length, token speed by position; the last speed lines of a generation."""
    sheet = Sheet("exllamav2")
    for line in lines:
        if m := re.match(r"\W*(?:--)?\s*Model:\s*(\S+)\s*$", line):
            name = re.split(r"[\\/]", m[1].rstrip("/\\"))[-1][:120]
            sheet.fact(model=name, quant=quant_in_name(name))
            if "exl3" in name.lower():
                sheet.tool = "exllamav3"
        elif m := _LENGTH.search(line):
            sheet.row("prefill_tps", number(m[2]), f"{m[2]} t/s", n_prompt=int(m[1][:9]))
        elif line.rstrip().endswith("tokens/s") and (m := _SPEED.match(line.strip())):
            sheet.tool = "exllamav3"
            prefill = m[1] == "Length"
            own = {"n_prompt": int(m[2][:9])} if prefill else {"n_depth": int(m[2][:9])}
            sheet.row("prefill_tps" if prefill else "decode_tps", number(m[3]), f"{m[3]} tokens/s", **own)
        elif m := _POSITION.search(line):
            sheet.row("decode_tps", number(m[3]), f"{m[3]} t/s", n_depth=int(m[1][:9]), n_gen=int(m[2][:9]))
        elif (
            "tokens/second" in line
            and (m := re.search(rf"(Prompt|Response)\b.*?({NUMBER}) tokens/second", line))
            and ("processed" in line or "generated" in line)
        ):
            count = re.search(r"(\d+) tokens", line)
            n = int(count[1][:9]) if count else None
            whole_run = "includes prompt eval" in line
            sheet.row(
                "prefill_tps" if m[1] == "Prompt" else "output_tps_e2e" if whole_run else "decode_tps",
                number(m[2]),
                f"{m[2]} tokens/second",
                **({"n_prompt": n} if m[1] == "Prompt" else {"n_gen": n}),
            )
    if sheet.rows:
        sheet.fact(batch=1)
    return sheet if sheet.rows else None


# ---- gpt-fast and torchchat -----------------------------------------------------------------------------------

_INFERENCE = re.compile(
    rf"Time for inference\s*(\d+)?:\s*({NUMBER})\s*sec total,\s*(?:(\d+) tokens,\s*)?(?:time to first token "
    rf"\(?({NUMBER})\s*sec[^,]{{0,40}},\s*)?({NUMBER})\s*tokens/sec"
)


def read_gpt_fast(lines: list[str]) -> Sheet | None:
    """gpt-fast and torchchat: tokens over the whole time (prefill in it) and the bandwidth that weights times rate implies."""
    sheet = Sheet("gpt-fast")
    average = None
    runs: list[tuple] = []
    bandwidths: list[str] = []
    for line in lines:
        if m := _INFERENCE.search(line):
            runs.append((m, None))
        elif m := re.match(rf"\W*Bandwidth achieved:\s*({NUMBER})\s*GB/s", line):
            bandwidths.append(m[1])
        elif m := re.match(rf"\W*Average tokens/sec(?: \(total\))?:\s*({NUMBER})", line):
            average = m[1]
        elif m := re.match(rf"\W*Memory used:\s*({NUMBER})\s*GB", line):
            sheet.fact(peak_memory_gb=number(m[1]))
        elif m := re.match(r"\W*Using device=([\w:]+)", line):
            sheet.fact(backend=m[1])
        elif m := re.search(
            r"(?:torchchat(?:\.py)?\s+generate|generate\.py)\s.*?(?:--checkpoint_path[ =](\S+)|generate\s+([\w.-]+))", line
        ):
            path = m[1] or m[2]
            parts = [p for p in re.split(r"[\\/]", path) if p and not p.endswith((".pth", ".pt", ".safetensors"))]
            if not path.startswith("-"):
                sheet.fact(model="/".join(parts[-2:]) if m[1] else path)
    if any("Next token throughput" in line for line in lines):
        return _torchchat(sheet, lines)
    if not runs and average is None:
        return None
    for m, _ in runs:
        sheet.row(
            "decode_tps",
            number(m[5]),
            m[5],
            n_gen=int(m[3][:9]) if m[3] else None,
            includes_prefill=True,
            into="rows" if average is None or len(runs) == 1 else "more",
        )
    if average is not None and len(runs) != 1:
        sheet.row("decode_tps", number(average), average, includes_prefill=True, stat="mean", repetitions=len(runs) or None)
    for text in bandwidths if average is None or len(runs) == 1 else bandwidths[-1:]:
        sheet.row("bandwidth_gbs", number(text), text, note="weight bytes times rate, as the tool computes it")
    sheet.fact(batch=1)
    return sheet if sheet.rows else None


_TORCHCHAT = (
    ("ttft_ms", re.compile(rf"Time to first token:\s*({NUMBER})\s*sec"), 1000.0),
    ("output_tps_e2e", re.compile(rf"Total throughput:\s*({NUMBER})\s*tokens/sec"), 1.0),
    ("decode_tps", re.compile(rf"Next token throughput:\s*({NUMBER})\s*tokens/sec"), 1.0),
    ("bandwidth_gbs", re.compile(rf"Bandwidth achieved:\s*({NUMBER})\s*GB/s"), 1.0),
)


def _torchchat(sheet: Sheet, lines: list[str]) -> Sheet:
    """torchchat since late 2024: the first token apart from the rest ("first token throughput" is one over its time, no prefill rate)."""
    runs: list[dict] = []
    averages: dict[str, str] = {}
    for line in lines:
        if m := re.match(r"\W*Generated (\d+) tokens\s*$", line):
            runs.append({"n_gen": int(m[1][:9])})
        elif m := re.match(rf"\W*Average tokens/sec \((total|next tokens)\):\s*({NUMBER})", line):
            averages["output_tps_e2e" if m[1] == "total" else "decode_tps"] = m[2]
        for metric, pattern, _ in _TORCHCHAT:
            if m := pattern.search(line):
                if not runs or metric in runs[-1]:
                    runs.append({})
                runs[-1][metric] = m[1]
    several = len(averages) == 2 and len(runs) > 1
    for k, run in enumerate(runs):
        for metric, _, scale in _TORCHCHAT:
            text = run.get(metric)
            last = k == len(runs) - 1
            into = "more" if several and (metric in averages or not last) else "rows"
            sheet.row(metric, number(text), text, scale=scale, into=into, n_gen=run.get("n_gen"))
    for metric, text in averages.items() if several else ():
        sheet.row(metric, number(text), text, stat="mean", repetitions=len(runs))
    sheet.fact(batch=1)
    return sheet


# ---- OpenVINO, ONNX Runtime, optimum, others ------------------------------------------------------------------

_OV_AVG = re.compile(
    rf"\[Average\].*?Input token size:\s*(\d+),\s*1st token latency:\s*({NUMBER})\s*ms(?:/(?:(\d+)tokens|token))?,\s*2nd tokens? "
    rf"latency:\s*({NUMBER})\s*ms/(?:(\d+)tokens|token),\s*2nd tokens? throughput:\s*({NUMBER})\s*tokens?/s"
)
_OV_RUN = re.compile(
    rf"First token latency:\s*({NUMBER})\s*ms(?:/(?:(\d+)tokens|token))?,\s*other tokens latency:\s*({NUMBER})\s*ms/(?:(\d+)tokens|token)"
)


def read_openvino(lines: list[str]) -> Sheet | None:
    """OpenVINO GenAI llm_bench and benchmark_genai: averages where printed, else the runs after the warm-up."""
    sheet = Sheet("openvino")
    for line in lines:
        if "[Average]" in line and (m := _OV_AVG.search(line)):
            facts = {"n_prompt": int(m[1][:9]), "batch": int((m[3] or m[5] or "1")[:6])}
            sheet.row("ttft_ms", number(m[2]), m[2], stat="mean", **facts)
            sheet.row("tpot_ms", number(m[4]), m[4], stat="mean", **facts)
            sheet.row("decode_tps", number(m[6]), m[6], aggregate=True, **facts)
    runs = [(line, m) for line in lines if "First token latency" in line and (m := _OV_RUN.search(line))] if not sheet.rows else []
    kept = [x for x in runs if not re.search(r"\[(?:0|warm-?up)\]", x[0])] or runs
    for line, m in kept:
        facts = {"batch": int((m[2] or m[4] or "1")[:6])}
        sheet.row("ttft_ms", number(m[1]), m[1], **facts)
        sheet.row("tpot_ms", number(m[3]), m[3], **facts)
    pm = {
        m[1]: m
        for line in lines
        if (m := re.match(rf"\W*(TTFT|TPOT|Throughput)\s*:\s*({NUMBER})\s*±\s*({NUMBER})\s*(ms|tokens/s)\s*$", line))
    }
    if not sheet.rows and {"TTFT", "TPOT"} <= set(pm):
        for name, metric in (("TTFT", "ttft_ms"), ("TPOT", "tpot_ms"), ("Throughput", "decode_tps")):
            if name in pm:
                sheet.row(metric, number(pm[name][2]), pm[name][0].split(":", 1)[1], stddev=number(pm[name][3]), stat="mean")
    return sheet if sheet.rows else None


_ORT = re.compile(
    rf"\W*(?:Average )?(Prompt Processing|Token Generation) (Throughput|Latency)[^:|]{{0,40}}?[:|]\s*\**\s*({NUMBER})\s*(tps|ms|s)?", re.I
)


def read_onnx(lines: list[str], records: list) -> Sheet | None:
    """onnxruntime-genai benchmark_e2e: prompt and generation rates; tokenization, sampling and wall clock are not the model's."""
    sheet = Sheet("onnxruntime-genai")
    facts: dict = {}
    for line in lines:
        for m in re.finditer(
            r"\b(Batch Size|Prompt Length|Tokens? Generat(?:ed|ion Length)|Generation Length)\s*[:=|]\s*(\d+)", line, re.I
        ):
            facts[{"b": "batch", "p": "n_prompt"}.get(m[1][0].lower(), "n_gen")] = int(m[2][:9])
        if (m := _ORT.match(line)) and m[2].lower() == "throughput":
            batch = facts.get("batch")
            prompt = m[1].lower().startswith("prompt")
            own = {
                "batch": batch,
                "aggregate": True if batch and batch > 1 else None,
                "n_prompt": facts.get("n_prompt") if prompt else None,
                "n_gen": None if prompt else facts.get("n_gen"),
                "n_depth": None if prompt else facts.get("n_prompt"),
            }
            sheet.row("prefill_tps" if prompt else "decode_tps", number(m[3]), f"{m[3]} {m[4] or ''}", **own)
    return sheet if sheet.rows and len(sheet.rows) >= 2 else None


def read_optimum(records: list) -> Sheet | None:
    """optimum-benchmark reports: {"prefill": {"throughput": {"unit", "value"}}, "decode": ...}."""
    for record in records:
        body = record.get("report") if isinstance(record, dict) and isinstance(record.get("report"), dict) else record
        if not isinstance(body, dict) or not isinstance(body.get("decode"), dict) or not isinstance(body.get("prefill"), dict):
            continue
        sheet = Sheet("optimum-benchmark")
        config = record.get("config") if isinstance(record.get("config"), dict) else {}
        backend = config.get("backend") if isinstance(config.get("backend"), dict) else {}
        scenario = config.get("scenario") or config.get("benchmark")
        shapes = scenario.get("input_shapes") if isinstance(scenario, dict) and isinstance(scenario.get("input_shapes"), dict) else {}
        batch = number_of(shapes, "batch_size")
        for phase, metric in (("prefill", "prefill_tps"), ("decode", "decode_tps")):
            part = body[phase]
            rate = part.get("throughput") if isinstance(part.get("throughput"), dict) else {}
            sheet.row(metric, number_of(rate, "value"), batch=batch, n_prompt=number_of(shapes, "sequence_length"), aggregate=True)
            time = part.get("latency") if isinstance(part.get("latency"), dict) else {}
            if phase == "prefill":
                sheet.row("ttft_ms", number_of(time, "mean"), scale=1000, stat="mean", into="more")
        sheet.fact(model=text_of(backend, "model"), backend=text_of(backend, "name", "device"), dtype=text_of(backend, "torch_dtype"))
        environment = config.get("environment") if isinstance(config.get("environment"), dict) else {}
        gpu = environment.get("gpu")
        sheet.fact(
            hardware=(f"{len(gpu)}x {gpu[0]}" if len(gpu) > 1 else gpu[0])
            if isinstance(gpu, list) and gpu and all(isinstance(g, str) and g == gpu[0] for g in gpu)
            else None
        )
        return sheet if sheet.rows else None
    return None


def read_client_summary(lines: list[str]) -> Sheet | None:
    """JetStream-style and fw-ai style summaries that only their own labels give away."""
    said = dict(
        m.groups()
        for line in lines
        if (
            m := re.match(
                rf"\W*(Time To First Token|Latency Per Token|Total Latency|Prompt Tokens|Num Tokens|Num Requests|Qps|"
                rf"Concurrency)\s*:\s*(?:QPS )?({NUMBER})",
                line,
            )
        )
    )
    if not {"Time To First Token", "Latency Per Token", "Num Requests"} <= set(said):
        return None
    sheet = Sheet("fireworks-benchmark")
    mark = decimal_mark(said.values())
    own = {
        "mean_input_len": number(said.get("Prompt Tokens")),
        "mean_output_len": number(said.get("Num Tokens")),
        "num_prompts": whole(said.get("Num Requests")),
    }
    # This tool prints milliseconds without saying so (its code multiplies by 1,000).
    for name, metric in (("Time To First Token", "ttft_ms"), ("Latency Per Token", "tpot_ms"), ("Qps", "request_tps")):
        sheet.row(metric, number(said.get(name), mark), said.get(name), stat="mean" if metric.endswith("_ms") else None, **own)
    return sheet


def read_maxtext(lines: list[str]) -> Sheet | None:
    """MaxText's inference_microbenchmark: prefill per length, autoregressive steps of the whole batch, per device figures."""
    sheet = Sheet("maxtext")
    length = None
    step: dict[str, str] = {}
    for line in lines:
        if m := re.search(r"Prefill (?:benchmark )?results for length (\d+)", line):
            length = int(m[1][:9])
        elif m := re.match(rf"\W*Prefill (?:step )?average time:\s*({NUMBER})\s*ms", line):
            sheet.row("ttft_ms", number(m[1]), m[1], stat="mean", n_prompt=length)
        elif m := re.match(rf"\W*Prefill TFLOPs/sec/device:\s*({NUMBER})", line):
            sheet.row("gflops", number(m[1]), m[1], scale=1000, phase="prefill", n_prompt=length, per_device=True)
        elif m := re.match(
            rf"\W*(?:AR |AutoRegressive )(step average time|global batch size|throughput|(?:memory )?bandwidth per device):\s*({NUMBER})",
            line,
            re.I,
        ):
            step[m[1].lower()] = m[2]
    batch = whole(step.get("global batch size"))
    sheet.row("decode_tps", number(step.get("throughput")), step.get("throughput"), batch=batch, aggregate=True)
    bandwidth = step.get("memory bandwidth per device") or step.get("bandwidth per device")
    sheet.row("bandwidth_gbs", number(bandwidth), bandwidth, phase="decode", per_device=True, batch=batch)
    return sheet if sheet.rows else None


_TT_SPEED = re.compile(rf"Average speed:\s*({NUMBER})\s*ms @ ({NUMBER}) tok/s/user(?: \(({NUMBER}) tok/s throughput\))?")


def read_tt_metal(lines: list[str]) -> Sheet | None:
    """tt-metal's demos: "Average speed: 29.24ms @ 34.2 tok/s/user (1094.4 tok/s throughput)"."""
    sheet = Sheet("tt-metal")
    for line in lines:
        if m := re.search(rf"Average Time to First Token \(TTFT\):\s*({NUMBER})\s*ms", line):
            sheet.row("ttft_ms", number(m[1]), m[1], stat="mean")
        elif m := _TT_SPEED.search(line):
            sheet.row("tpot_ms", number(m[1]), m[1], stat="mean")
            sheet.row("decode_tps_per_user", number(m[2]), m[2])
            sheet.row("decode_tps", number(m[3]), m[3], aggregate=True)
    return sheet if sheet.rows else None


_HABANA = re.compile(rf"\W*Throughput \((?:including|excluding) tokenization\)\s*=\s*({NUMBER})\s*tokens/second")


def read_habana(lines: list[str]) -> Sheet | None:
    """optimum-habana's run_generation: new tokens of the whole batch over the whole time."""
    sheet = Sheet("optimum-habana")
    for line in lines:
        if m := _HABANA.match(line):
            sheet.row("output_tps_e2e", number(m[1]), f"{m[1]} tokens/second", aggregate=True)
        elif sheet.rows and (m := re.match(rf"\W*Average (first|rest) token latency\s*=\s*({NUMBER})\s*ms", line)):
            sheet.row("ttft_ms" if m[1] == "first" else "tpot_ms", number(m[2]), m[2], stat="mean")
    return sheet if sheet.rows else None


def read_candle(lines: list[str]) -> Sheet | None:
    """candle's examples: "100 prompt tokens processed: 55.3 token/s", "99 tokens generated: 33.2 token/s"."""
    sheet = Sheet("candle")
    for line in lines:
        if m := re.match(rf"\W*(\d+) prompt tokens processed:\s*({NUMBER}) token/s", line):
            sheet.row("prefill_tps", number(m[2]), f"{m[2]} token/s", n_prompt=int(m[1][:9]))
        elif sheet.rows and (m := re.match(rf"\W*(\d+) tokens generated:\s*({NUMBER}) token/s", line)):
            sheet.row("decode_tps", number(m[2]), f"{m[2]} token/s", n_gen=int(m[1][:9]))
    return sheet if sheet.rows else None
