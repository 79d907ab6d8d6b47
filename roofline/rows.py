"""Rows of a measurements file: reading them, and what each one measured (one function: `case_of`).

The columns are those of data/measurements.csv. A row that cannot be mapped raises `Unmapped` with the reason; nothing here
predicts a time. What a row leaves open is assumed and listed in `Case.assumed`.
"""

from __future__ import annotations

import csv
import io
import math
import re
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib import resources

from . import catalogue, formats, hardware, memory
from .calibration import engine_of
from .errors import InputError
from .parallel import Layout
from .scenario import Resolved, Scenario, resolve

COLUMNS = (
    "row_id", "source_id", "source_repo", "source_path", "source_rev", "source_date", "provenance", "model", "model_variant", "hardware", "n_chips",
    "tp", "pp", "ep", "dp", "weight_dtype", "weight_dtype_basis", "weight_bpw", "weight_file_bytes", "kv_dtype", "act_dtype", "engine", "engine_version",
    "batching", "batch", "concurrency", "input_len", "output_len", "context_len", "phase", "metric", "unit", "value", "spec_decode", "note", "flag", "flag_reason",
)
# Without these a row says nothing that can be predicted; the others may be absent.
REQUIRED = ("row_id", "model", "hardware", "weight_dtype", "engine", "batching", "metric", "unit", "value")
MAX_ROWS = 100_000
# Flags under which a row is no evidence: the layout was chosen because of the result, speculation, or formats in dispute.
UNSOUND_FLAGS = ("LAYOUT_INFERRED", "SPEC_DECODE", "dtype_conflict", "above_naive_only")


class Unmapped(Exception):
    """A row that no scenario stands for; the text is the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What one row measured, as a scenario and the quantity the metric is about.

    kind: "step" (one decode step of a static batch), "prefill" (all prompts of a static batch), "request" (prefill and all
    decode steps of a static batch), "tpot" (a step in a running service), "stream" (seconds per output token of the whole
    system), "first" (time to first token under load), "drain" (all requests given at once, until the last is done).
    measured_s [s]; batch: requests running together in one replica, or None where it follows from memory; prompt, cached, output
    [tokens]; requests: of a drain. resolved: for the expectation; floor: the same with the choices that make the least time.
    chunk: tokens of one prefill pass where the row states it. scale: stated file bytes over the bytes of the format. cold: the first
    call of a process is timed.
    """

    row_id: str
    group: str
    kind: str
    measured_s: float
    engine: str
    model: str
    chip: str
    metric: str
    batching: str
    resolved: Resolved
    floor: Resolved
    prompt: float
    least_prompt: float
    output: float
    cached: float = 0.0
    batch: float | None = 1.0
    chunk: float | None = None
    scale: float = 1.0
    cold: bool = False
    version: str = ""
    flag: str = ""
    assumed: tuple = ()
    weights: str = ""
    source: str = ""
    note: str = ""


# ---- reading -------------------------------------------------------------------------------------------------------


def read(text: str, name: str = "data") -> list:
    """The rows of a CSV text as dicts. Raises InputError naming what is malformed.

    One unquoted comma in `weight_dtype_basis` is repaired; any other row of the wrong width keeps the reason under "".
    """
    if not text.strip():
        raise InputError(name, "", "is empty; it needs the columns of data/measurements.csv")
    if "\0" in text:
        raise InputError(name, "binary data", "is not CSV text")
    try:
        table = list(csv.reader(io.StringIO(text.lstrip("\ufeff")), strict=True))
    except csv.Error as error:
        raise InputError(name, "CSV", f"is malformed: {error}") from None
    table = [row for row in table if any(cell.strip() for cell in row)]
    header = [cell.strip() for cell in table[0]] if table else []
    missing = [c for c in REQUIRED if c not in header]
    if missing:
        raise InputError(name, ", ".join(header)[:40], f"lacks the column{'s' if len(missing) > 1 else ''} {', '.join(missing)}")
    if len(set(header)) != len(header):
        raise InputError(name, "header", "names a column twice")
    if len(table) > MAX_ROWS:
        raise InputError(name, f"{len(table):,} rows", f"must have at most {MAX_ROWS:,}")
    return [_row(cells, header) for cells in table[1:]]


def _row(cells: list, header: list) -> dict:
    if len(cells) == len(header) + 1 and "weight_dtype_basis" in header:
        i = header.index("weight_dtype_basis")
        joined = [*cells[:i], f"{cells[i]},{cells[i + 1]}", *cells[i + 2:]]
        if _number(joined[header.index("value")]) is not None:
            cells = joined
    row = {h: c.strip() for h, c in zip(header, cells, strict=False)}
    row = dict.fromkeys(COLUMNS, "") | row
    if len(cells) != len(header):
        row[""] = f"the row has {len(cells)} cells where the header has {len(header)}"
    return row


@lru_cache(maxsize=1)
def shipped() -> tuple:
    """The rows that come with the package."""
    text = resources.files("roofline").joinpath("data/measurements.csv").read_text("utf-8")
    return tuple(read(text, "data/measurements.csv"))


def _number(text: str) -> float | None:
    """A positive or zero finite number at the start of a cell ("2 (TensorCores of one chip)" is 2), or None."""
    match = re.match(r"\s*(\d[\d_]*\.?\d*(?:[eE][+-]?\d+)?)(?![\w.])", text.replace(",", "") if text else "")
    value = float(match[1]) if match else None
    return value if value is not None and math.isfinite(value) else None


# ---- names ---------------------------------------------------------------------------------------------------------

# What the files call a model -> its catalogue id, where the catalogue does not find it itself.
_MODELS = {
    "deepseek-r1/v3": "deepseek-v3", "llama-1-30b/33b": "llama-1-33b", "llama-1-30b": "llama-1-33b", "mistral-7b": "mistral-7b-v0.1", "llama-3-405b": "llama-3.1-405b",
    "gpt-j-6b": "gpt-j-6b", "gptj": "gpt-j-6b", "mistral-nemo": "mistral-nemo-12b", "llama-4-maverick": "llama-4-maverick", "llama-4-scout": "llama-4-scout",
    "codellama-34b": "codellama-34b", "llama-1-7b": "llama-1-7b", "kimi-k2.5": "kimi-k2.5", "kimi-k2": "kimi-k2", "yi-34b": "yi-34b",
}


@lru_cache(maxsize=1024)
def model_of(model: str, variant: str = "") -> str:
    """The catalogue id of a model as a row names it; raises Unmapped.

    >>> model_of("DeepSeek-R1/V3"), model_of("Llama-3-8B", "Meta-Llama-3 8B Q4_K_M")
    ('deepseek-v3', 'llama-3-8b')
    """
    key = re.sub(r"[\s_]+", "-", model.strip().lower())
    tries = [_MODELS.get(key), model, re.sub(r"^(meta-|ggml-org/|openai/|qwen/)", "", key), re.sub(r"-(instruct|chat|it|hf|base|gguf|fp8|fp4|nvfp4|awq|gptq|bf16)\b", "", key)]
    if "/" in variant and " " not in variant.strip():
        tries.append(variant)
    tries.append(re.sub(r"\s*(\(.*\)|q\d\w*|f16|awq \w+|w:.*|exl2.*|gptq.*|int\d)\s*$", "", variant.strip().lower(), flags=re.IGNORECASE))
    for text in tries:
        if not text:
            continue
        try:
            return catalogue.find(text)
        except InputError:
            continue
    raise Unmapped(f"the model {model or variant!r} is not in the catalogue")


_CHIPS = {
    "a100 80gb": "a100-80gb-sxm", "a100 sxm 80gb": "a100-80gb-sxm", "a100 pcie 80gb": "a100-80gb-pcie", "a100 sxm 40gb": "a100-40gb-sxm", "a100 pcie 40gb": "a100-40gb-pcie",
    "a100": "a100-80gb-sxm", "h100": "h100-sxm", "h100 sxm5 80gb": "h100-sxm", "h100 sxm 80gb": "h100-sxm", "h100 80gb": "h100-sxm", "h100 pcie 80gb": "h100-pcie", "h200": "h200-sxm",
    "b200": "b200-sxm", "b300": "b300-sxm", "gb10": "dgx-spark-gb10", "dgx spark": "dgx-spark-gb10", "gh200": "gh200-96gb", "gh200 144gb": "gh200-144gb", "gh200 96gb": "gh200-96gb", "gb200 nvl72": "gb200", "gb300 nvl72": "gb300",
    "rtx pro 6000 blackwell se 96gb": "rtx-pro-6000-se", "rtx pro 6000 blackwell ws 96gb": "rtx-pro-6000-ws", "rtx pro 6000": "rtx-pro-6000-se",
    "jetson agx orin 64gb": "jetson-agx-orin-64gb", "jetson orin 64gb": "jetson-agx-orin-64gb", "jetson orin": "jetson-agx-orin-64gb", "jetson agx orin": "jetson-agx-orin-64gb", "jetson orin nano": "jetson-orin-nano-8gb",
    "mi250x 64gb": "mi250x-gcd", "mi250x": "mi250x-gcd", "tpu v7x": "tpu-v7", "tpu v6e": "tpu-v6e", "wormhole": "wormhole-n150", "blackhole p100 28gb": "blackhole-p100",
    "blackhole p150": "blackhole-p150", "blackhole": "blackhole-p150", "cpu 2x xeon gnr": "xeon-6980p", "cpu core i9-13900k ddr5-6400": "core-i9-13900k", "cpu raspberry pi 5": "raspberry-pi-5",
    "cpu ampereone a192-32x": "ampereone-a192-32x", "cpu ampere altra max": "ampere-altra-max-128", "cpu ampere altra max m128-30": "ampere-altra-max-128", "cpu radxa orion o6": "radxa-orion-o6", "cpu core ultra 265k": "core-ultra-265k", "cpu ampereone a192-26x": "ampereone-a192-26x",
    "cpu 2x xeon 8480+": "xeon-8480plus", "gaudi 2": "gaudi2", "gaudi 3": "gaudi3", "rtx 3080 12gb": "rtx-3080-12gb", "strix halo": "strix-halo-395", "ryzen ai max+ 395": "strix-halo-395",
    "radeon 8060s": "strix-halo-395", "rtx 3060 12gb": "rtx-3060-12gb", "rtx 3060": "rtx-3060-12gb", "arc pro b60 24gb": "arc-pro-b60", "t4": "t4", "v100": "v100-sxm2-32gb", "trillium": "tpu-v6e",
}
_FILLER = {"nvidia", "geforce", "amd", "radeon", "instinct", "apple", "intel", "the", "gpu", "chip", "sxm", "sxm5", "sxm4", "blackwell", "cpu", "tesla", "board", "one", "class", "sxm2", "gpus", "generation"}


def _words(text: str) -> frozenset:
    low = re.sub(r"(\d+)-core gpu", r"\1c", text.lower())
    words = re.findall(r"[a-z0-9+.]+", low)
    return frozenset(w for w in words if w not in _FILLER and not re.fullmatch(r"\d+g[bi]?b?", w))


@lru_cache(maxsize=1)
def _chip_words() -> tuple:
    return tuple((id, _words(hardware.load(id).name), _words(id.replace("-", " ").replace("apple ", "")), re.findall(r"(\d+)\s?GB", hardware.load(id).name)) for id in hardware.ids())


@lru_cache(maxsize=1024)
def chip_of(text: str) -> str:
    """The chip id of a name as a row gives it; raises Unmapped.

    >>> chip_of("RTX 3070 8GB"), chip_of("M2 Ultra (76-core GPU) 192GB"), chip_of("A100 80GB (form factor not stated)")
    ('rtx-3070', 'apple-m2-ultra', 'a100-80gb-sxm')
    """
    low = text.strip().lower()
    bare = re.sub(r"\s+", " ", re.sub(r"\([^)]*\)", " ", low)).strip()
    if low in hardware.ids():
        return low
    for key in dict.fromkeys((low, bare, re.sub(r"\s*\d+ ?gb\b", "", bare).strip())):
        if key in _CHIPS:
            return _CHIPS[key]
    sizes = re.findall(r"(\d+)\s?gb", low)
    wanted, wanted_bare = _words(low), _words(bare)
    best = None
    for id, name_words, id_words, chip_sizes in _chip_words():
        for words in (wanted, wanted_bare):
            if words and (words == name_words or words == id_words or (words <= (name_words | id_words) and words & id_words and len(words) >= len(id_words))):
                score = (words == name_words or words == id_words, bool(set(sizes) & set(chip_sizes)), words is wanted)
                if best is None or score > best[0]:
                    best = (score, id)
    if best:
        return best[1]
    raise Unmapped(f"the hardware {text!r} is not in the catalogue")


# ---- one row -> one case -------------------------------------------------------------------------------------------

_PLAIN = {"bf16": "bf16", "fp16": "bf16", "f16": "bf16", "float16": "bf16", "bfloat16": "bf16", "": ""}


def _activations(text: str, weights: str) -> str:
    """The arithmetic of the quantised matrices as a row states it, or "" where it does not."""
    low = text.lower()
    if low in _PLAIN:
        return _PLAIN[low]
    if "wo" in low.split("_") or low.endswith("_wo"):
        return "bf16"
    if low.startswith("mixed") or low.startswith("fp8") or low.startswith("bfp8"):
        return "fp8"
    if low.startswith("int8"):
        return "int8"
    # gpt-oss: NVFP4 in a source's column stands for the MXFP8 activations that go with MXFP4 weights.
    if low in ("nvfp4", "fp4", "mxfp4"):
        return "fp8" if weights == "mxfp4" else "nvfp4"
    return ""


def _kv(text: str, act: str, engine: str) -> tuple:
    """(cache format to expect, cache format of the limit, True if assumed)."""
    low = text.lower()
    if low.startswith(("fp8", "bfp8")):
        return "fp8", "fp8", "not" in low
    if low.startswith("int4"):
        return "int4-gnone", "int4-gnone", False
    if low.startswith("int8"):
        return "int8", "int8", False
    if low.startswith(("fp16", "bf16", "auto", "f16")):
        return "bf16", "bf16", False
    if low.startswith("q8"):
        return "q8_0", "q8_0", False
    # Not stated: TensorRT-LLM takes the FP8 cache its FP8 and FP4 checkpoints ask for, others only where told to; the limit allows it.
    eight = "fp8 typical" in low or (engine == "tensorrt-llm" and act in ("fp8", "nvfp4"))
    return ("fp8" if eight else "bf16"), "fp8", True


def _weights(row: dict, engine: str, assumed: list) -> tuple:
    """(format name to expect, format name of the limit)."""
    name, low = row["weight_dtype"], row["weight_dtype"].lower()
    bpw = _number(row["weight_bpw"])
    if "assumed" in row["weight_dtype_basis"].lower() or "conflict" in row["weight_dtype_basis"].lower():
        assumed.append(f"weights {name}: {row['weight_dtype_basis']}")
    if low.startswith("exl"):
        return f"exl2-{bpw:g}" if bpw else "exl2", f"exl2-{bpw:g}" if bpw else "exl2-2"
    if low == "mxfp4" and engine == "llama.cpp":
        return "MXFP4_MOE", "MXFP4_MOE"
    if low == "bfp4":
        assumed.append("block floating point of 4.5 bits taken as nvfp4")
        return "nvfp4", "nvfp4"
    if low == "int4" and engine in ("mlc-llm", "autoawq", "lmdeploy", "tinychat"):
        return "int4-g128", "int4-g128"
    if low in ("bf16", "fp16") and bpw and bpw < 12:
        # The row itself takes a smaller floor: the engine may quantise as it loads.
        return low, "fp8"
    try:
        formats.parse(name)
    except InputError:
        raise Unmapped(f"the weight format {name!r} is not known") from None
    return name, "int4-gnone" if low == "int4" else name


def _layout(row: dict, chips: int, assumed: list) -> dict:
    """tp, pp, ep, dp of a row, made to agree with its number of chips; {} where the row says nothing."""
    tp, pp, ep, dp = (_number(row[k]) for k in ("tp", "pp", "ep", "dp"))
    if "attention-dp" in row["dp"].lower():
        return {"tp": 1, "pp": 1, "dp": chips, "ep": chips}
    if tp is None and pp is None and dp in (None, 1):
        return {}
    tp, pp, dp, ep = int(tp or 1), int(pp or 1), int(dp or 1), int(ep or 1)
    if "tensorcore" in row["tp"].lower():
        tp = chips // (pp * dp) or 1
    if tp * pp * dp != chips:
        if pp * dp and chips % (pp * dp) == 0:
            assumed.append(f"tp {tp} x pp {pp} x dp {dp} is not {chips} chips: tp {chips // (pp * dp)} assumed")
            tp = chips // (pp * dp)
        else:
            raise Unmapped(f"tp {tp} x pp {pp} x dp {dp} is not {chips} chips")
    return {"tp": tp, "pp": pp, "dp": dp, "ep": ep}


def _smallest(scenario: Scenario, chips: int) -> dict:
    """The fewest chips in a tensor-parallel group that hold the weights in 60 % of their memory; replicas for the rest."""
    for tp in sorted(n for n in range(1, chips + 1) if chips % n == 0):
        try:
            r = resolve(scenario.replace(tp=tp, pp=1, dp=chips // tp))
        except InputError:
            continue
        if r.chip.memory_bytes is None or memory.weights_per_device(r.arch, r.weights, Layout(tp=tp)) <= 0.6 * r.chip.memory_bytes or tp == chips:
            return {"tp": tp, "pp": 1, "dp": chips // tp, "ep": 1}
    return {"tp": 1, "pp": 1, "dp": chips, "ep": 1}


# Mean prompt of the MLPerf data sets, tokens, recalled (the rows leave it out): the limit counts one token instead.
_MLPERF_PROMPTS = {"gpt-j-6b": 870, "llama-2-70b": 200, "mixtral-8x7b": 250, "llama-3.1-405b": 9400, "llama-3.1-8b": 870, "llama-3-8b": 870, "deepseek-v3": 800, "deepseek-r1": 800}
_METRICS = {"decode_tok_s", "decode_tok_s_per_user", "prefill_tok_s", "tpot_ms", "ttft_ms", "total_output_tok_s", "e2e_latency_s"}


def case_of(row: dict) -> Case:
    """Map one row to a Case. Raises Unmapped with the reason.

    The only place that knows what a column means. Times: decode tok/s of a batch -> seconds of a step (batch / value); prefill
    tok/s -> seconds for all prompts; total output tok/s of a static batch -> seconds for the whole batch (prefill included), of a
    service -> seconds per output token of the system; latencies as they are.
    """
    if row.get(""):
        raise Unmapped(row[""])
    metric, value = row["metric"], _number(row["value"])
    if metric not in _METRICS:
        raise Unmapped(f"the metric {metric!r} is not one of {', '.join(sorted(_METRICS))}")
    if not value:
        raise Unmapped(f"the value {row['value']!r} is not a number above 0")
    assumed: list = []
    engine, batching = engine_of(row["engine"]), row["batching"].lower()
    model, chip = model_of(row["model"], row["model_variant"]), chip_of(row["hardware"])
    likely = chip
    if "form factor not stated" in row["hardware"]:
        likely = "a100-80gb-pcie" if "PCIe only" in row["note"] else chip
        assumed.append(f"A100 80GB: {likely} expected, the SXM module in the limit")
    chips = int(_number(row["n_chips"]) or 1)
    if row["hardware"].lower().startswith("cpu 2x"):
        chips *= 2
    weights, least_weights = _weights(row, engine, assumed)
    act = _activations(row["act_dtype"], row["weight_dtype"].lower())
    kv, least_kv, guessed = _kv(row["kv_dtype"], act, engine)
    if guessed:
        assumed.append(f"cache {row['kv_dtype'] or 'not stated'}: {kv} expected, {least_kv} in the limit")
    batch, concurrency = _number(row["batch"]), _number(row["concurrency"])
    prompt, output, context = _number(row["input_len"]), _number(row["output_len"]), _number(row["context_len"])
    kind, measured, batch, cached, prompt, least_prompt, output = _quantity(row, metric, value, batching, batch, concurrency, prompt, output, context, model, assumed)
    # AutoAWQ's fused modules write out the scores of a prompt, as llama.cpp does unless told otherwise.
    fused = engine != "autoawq" and not (engine == "llama.cpp" and "fa=1" not in row["note"] and not row["engine_version"].startswith("build"))
    common = dict(model=model, hardware=chip, batch=1, prompt=max(1, round(prompt + cached)), output=max(1, round(output)), cached=round(cached), engine=engine if engine else "any", fused=fused)
    scenario = Scenario(weights=_safe(weights), activations=act or "auto", kv=kv, **(common | {"hardware": likely}))
    least = Scenario(weights=_safe(least_weights), activations="auto" if not act else act, kv=least_kv, routing=1.0, **(common | {"fused": True}))
    try:
        layout = _layout(row, chips, assumed) or (_smallest(scenario, chips) if chips > 1 else {"tp": 1, "pp": 1, "dp": 1, "ep": 1})
        r = _exact(resolve(scenario.replace(**layout)), weights)
        floor = _exact(resolve(least.replace(**layout)), least_weights)
    except InputError as error:
        raise Unmapped(str(error)) from None
    if not row["tp"] and chips > 1:
        assumed.append(f"layout not stated: tp {layout['tp']} x dp {layout['dp']} expected")
    if batch is not None:
        batch = batch / layout["dp"] if kind in ("tpot", "stream", "first", "drain") else batch
    scale = 1.0
    stated = _number(row["weight_file_bytes"])
    if stated and stated > 1e6:
        ours = sum(formats.weight_bytes(r.arch, r.weights))
        if not 0.6 < stated / ours < 1.6:
            assumed.append(f"the stated file of {stated:.4g} bytes is {stated / ours:.2f} of what {weights} takes")
        else:
            scale = stated / ours
    # AutoAWQ's benchmark loads the model afresh for every line and times its first call.
    cold = engine == "autoawq" and kind == "prefill"
    chunk = re.search(r"ubatch(?:=| )(\d+)", row["note"].replace("default ubatch", "")) or re.search(r"batched-bench()", row["note"])
    return Case(
        row_id=row["row_id"], group=f"{row['model']} | {row['hardware']} | {row['weight_dtype']}", kind=kind, measured_s=measured, engine=engine, model=model, chip=chip, metric=metric,
        batching=row["batching"], resolved=r, floor=floor,
        prompt=prompt, least_prompt=least_prompt, output=output, cached=cached, batch=batch, chunk=float(chunk[1] or 2048) if chunk else None, scale=scale, cold=cold, version=row["engine_version"], flag=row["flag"], assumed=tuple(assumed),
        weights=row["weight_dtype"], source=f"{row['source_repo']} {row['source_path']}@{row['source_rev'][:12]}", note=row["note"],
    )


def _safe(weights: str) -> str:
    return "exl2" if weights.startswith("exl2") else weights


def _exact(r: Resolved, weights: str) -> Resolved:
    """EXL2 stores any average width: put the row's own into the format."""
    if not weights.startswith("exl2-"):
        return r
    return replace(r, weights=replace(r.weights, name=weights, bits=float(weights[5:])))


def _quantity(row, metric, value, batching, batch, concurrency, prompt, output, context, model, assumed):
    """(kind, seconds, batch, cached, prompt, prompt of the limit, output): the workload behind a metric. Raises Unmapped."""
    serving = batching.startswith(("in-flight", "offline", "mlperf"))
    if metric == "ttft_ms" or metric == "prefill_tok_s":
        if not prompt:
            raise Unmapped("the prompt length is not in the row")
        cached = max(0.0, (context or prompt) - prompt) if metric == "prefill_tok_s" else 0.0
        if serving:
            return "first", value / 1e3, batch or concurrency, 0.0, prompt, prompt, max(output or 1.0, 1.0)
        # Tenstorrent's table gives the time of one prompt, whatever the batch that decodes later.
        together = 1.0 if metric == "ttft_ms" else batch or 1.0
        return "prefill", value / 1e3 if metric == "ttft_ms" else together * prompt / value, together, cached, prompt, prompt, 1.0
    if metric in ("decode_tok_s", "decode_tok_s_per_user") or (metric == "tpot_ms" and not serving):
        batch = batch or concurrency or 1.0
        seconds = value / 1e3 if metric == "tpot_ms" else 1.0 / value if metric.endswith("per_user") else batch / value
        if prompt is None or (not prompt and not output):
            if context is None:
                raise Unmapped("neither prompt nor context length is in the row")
            return "step", seconds, batch, 0.0, max(context - 1.0, 0.0), max(context - 1.0, 0.0), 1.0
        return "step", seconds, batch, 0.0, prompt, prompt, output or 1.0
    if metric == "tpot_ms":
        if not (batch or concurrency):
            raise Unmapped("the number of requests in flight is not in the row")
        if prompt is None or not output:
            raise Unmapped("the prompt and output lengths are not in the row")
        return "tpot", value / 1e3, batch or concurrency, 0.0, prompt, prompt, output
    if not output:
        raise Unmapped("the output length is not in the row")
    least = prompt
    if prompt is None:
        prompt, least = float(_MLPERF_PROMPTS.get(model, 0)), 1.0
        if not prompt or not batching.startswith("mlperf"):
            raise Unmapped("the prompt length is not in the row")
        assumed.append(f"mean prompt of the MLPerf data set, {prompt:g} tokens, recalled; the limit counts 1")
    if metric == "e2e_latency_s":
        if not batch:
            raise Unmapped("the number of requests is not in the row")
        return ("drain" if serving else "request"), value, batch, 0.0, prompt, least, output
    if batching.startswith("static") and batch:
        return "request", output * batch / value, batch, 0.0, prompt, least, output
    fixed = batch or (concurrency if "fixed" in batching else None)
    cap = re.search(r"max-num-seqs (\d+)", row["concurrency"])
    if cap:
        fixed = float(cap[1])
    if fixed is None:
        assumed.append("running batch not stated: what fits in memory is expected")
    return "stream", 1.0 / value, fixed, 0.0, prompt, least, output
