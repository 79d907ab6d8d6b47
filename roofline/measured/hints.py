"""What a row of a reading says about the scenario it was measured in, in the names of `Scenario`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from .. import catalogue, formats, hardware
from ..errors import InputError

_ENGINES = {
    "llama-bench": "llama.cpp",
    "llama-batched-bench": "llama.cpp",
    "llama-perf": "llama.cpp",
    "llama-server": "llama.cpp",
    "ollama": "llama.cpp",
    "koboldcpp": "llama.cpp",
    "lm-studio": "",
    "vllm": "vllm",
    "sglang": "sglang",
    "tensorrt-llm": "tensorrt-llm",
    "mlx-lm": "mlx",
    "exllamav2": "exllama",
    "exllamav3": "exllama",
    "mlc-llm": "mlc-llm",
    "lmdeploy": "lmdeploy",
    "gpt-fast": "gpt-fast",
    "tgi": "tgi",
    "maxtext": "maxtext",
}
_SERVED = (
    "request_tps",
    "input_tps",
    "output_tps",
    "total_tps",
    "decode_tps_per_user",
    "output_tps_per_user",
    "output_tps_per_gpu",
    "ttft_ms",
    "tpot_ms",
    "itl_ms",
    "e2e_ms",
)


def scenario_hint(reading, row: Mapping) -> dict:
    """Return the scenario fields that the row (and the facts of its file) state; nothing is assumed but what `assumed` lists.

    Keys as in Scenario: model, hardware, devices, tp, pp, ep, weights, kv, batch, prompt, output, cached, engine; texts that name a
    model or a chip that is not in the catalogue stay in model_text and hardware_text.

    >>> from roofline.measured import read
    >>> head = b"| model | size | params | backend | ngl | test | t/s |\\n|-|-|-|-|-|-|-|\\n"
    >>> r = read(head + b"| llama 8B Q4_0 | 4.33 GiB | 8.03 B | CUDA | 99 | tg128 @ d4096 | 90.0 |")
    >>> {k: v for k, v in scenario_hint(r, r.rows[0]).items() if k in ("weights", "batch", "prompt", "output")}
    {'weights': 'Q4_0', 'batch': 1, 'prompt': 4096, 'output': 128}
    """
    facts = {**reading.common, **row}
    tool = str(facts.get("tool") or reading.tool)
    hint: dict = {}
    assumed: list[str] = []
    _model(hint, facts)
    _chip(hint, facts)
    quant = facts.get("quant")
    if tool.startswith("mlx") and isinstance(quant, str) and re.fullmatch(r"[2-8]bit", quant):
        quant = f"mlx-{quant}"
        assumed.append("MLX quantises in groups of 64 unless told otherwise")
    elif isinstance(quant, str) and (exl := re.fullmatch(r"(EXL[23]) ([\d.]+)bpw", quant)):
        quant = f"{exl[1].lower()}-{exl[2]}"
    if (weights := _format(quant or facts.get("precision") or facts.get("dtype"))) is not None:
        hint["weights"] = weights
    if (kv := _format(facts.get("kv_dtype") or facts.get("type_k") or facts.get("type_kv"))) is not None:
        hint["kv"] = kv
    for key in ("tp", "pp", "ep"):
        if (n := _count(facts.get(key))) is not None:
            hint[key] = n
    if (gpus := _count(facts.get("gpus"))) is not None:
        hint["devices"] = gpus
    elif "devices" not in hint and "tp" in hint:
        hint["devices"] = hint["tp"] * hint.get("pp", 1)
    if hint.get("devices", 1) > 1 and "tp" not in hint and tool.startswith("llama") and facts.get("split_mode", "layer") == "layer":
        hint["pp"] = hint["devices"]
        assumed.append("llama.cpp splits layers over its devices unless told otherwise")
    engine = _ENGINES.get(tool, "")
    if engine:
        hint["engine"] = engine
    _load(hint, facts, row, assumed)
    if assumed:
        hint["assumed"] = assumed
    return hint


def _load(hint: dict, facts: Mapping, row: Mapping, assumed: list[str]) -> None:
    """Batch, prompt, output and cached tokens."""
    metric = row.get("metric")
    batch = _count(facts.get("batch")) or _count(facts.get("concurrency"))
    if metric == "ttft_ms" and _count(facts.get("batch")) is None and batch:
        batch = 1
        assumed.append("a time to first token is held against the prefill of one prompt")
    if batch is None and metric in ("prefill_tps", "decode_tps", "combined_tps") and not row.get("aggregate"):
        batch = 1
    if batch is not None:
        hint["batch"] = batch
    prompt, gen, depth = (_count(facts.get(k), zero=True) for k in ("n_prompt", "n_gen", "n_depth"))
    if metric in _SERVED and not prompt:
        prompt, gen = _count(facts.get("mean_input_len")), _count(facts.get("mean_output_len")) or gen
    if metric == "prefill_tps" and prompt:
        hint["prompt"], hint["output"] = prompt + (depth or 0), 1
        if depth:
            hint["cached"] = depth
    elif metric in ("decode_tps", "tpot_ms") and (gen or depth is not None):
        if depth or prompt:
            hint["prompt"] = depth or prompt
        elif depth == 0:
            hint["prompt"] = 1  # generation started from an empty context
        if gen:
            hint["output"] = gen
    else:
        if prompt:
            hint["prompt"] = prompt + (depth or 0)
        if gen:
            hint["output"] = gen
    if facts.get("mean_input_len") and "prompt" not in hint and (n := _count(facts["mean_input_len"])):
        hint["prompt"] = n
    if facts.get("mean_output_len") and "output" not in hint and (n := _count(facts["mean_output_len"])):
        hint["output"] = n


def _count(value, zero: bool = False) -> int | None:
    """A whole number of things from a count or a mean; None for text and for what is not positive."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value != value or abs(value) > 1e9:
        return None
    n = round(value)
    return n if n > 0 or zero and n == 0 else (1 if 0 < value < 1 else None)


def _format(text) -> str | None:
    """A number format that `formats` knows by this name, or None ("4bit" names no layout and stays unknown)."""
    if not isinstance(text, str) or not text.strip():
        return None
    name = text.strip()
    name = {"float16": "fp16", "f16": "fp16", "bfloat16": "bf16", "float32": "fp32", "f32": "fp32", "none": "", "auto": ""}.get(
        name.lower(), name
    )
    if re.fullmatch(r"q4f16_\d", name.lower()):
        return "int4-g32"
    try:
        return formats.parse(name).name if name else None
    except InputError:
        return None


def _model(hint: dict, facts: Mapping) -> None:
    text = facts.get("model") or facts.get("model_file")
    if not isinstance(text, str):
        return
    bare = re.sub(
        r"[-_.:](?:gguf|exl2|exl3|awq|gptq|fp8|nvfp4|mlx|hf|instruct-[qf]\w+|[2-8]bit|i?q\d\w*|f16|bf16|\d\.\d+bpw).*$",
        "",
        text.rsplit("/", 1)[-1],
        flags=re.I,
    )
    found = _known(text) or _known(bare)
    hint["model" if found else "model_text"] = found or text


@lru_cache(maxsize=256)
def _known(name: str) -> str | None:
    """The catalogue id of a name, or None; kept, since a file repeats its model on every row and a miss is slow to find."""
    try:
        return catalogue.find(name)
    except InputError:
        return None


def _chip(hint: dict, facts: Mapping) -> None:
    text = facts.get("hardware")
    if not isinstance(text, str) or not text.strip():
        return
    if many := re.match(r"(\d+)x (.+)$", text):
        hint["devices"], text = int(many[1]), many[2]
    elif " + " in text:
        hint["hardware_text"] = text
        return
    memory = facts.get("mem_gb") or (facts["vram_mib"] / 953.7 if isinstance(facts.get("vram_mib"), int) else None)
    found = chip_named(text, memory if isinstance(memory, (int, float)) else None)
    hint["hardware" if found else "hardware_text"] = found or text


# What drivers and tools print, in words of `_words`, for chips whose id they do not spell.
_PRINTED = {
    "rtx pro 6000 blackwell workstation edition": "rtx-pro-6000-ws",
    "rtx pro 6000 blackwell server edition": "rtx-pro-6000-se",
    "rtx pro 6000 blackwell max q workstation edition": "rtx-pro-6000-maxq",
    "gb10": "dgx-spark-gb10",
    "dgx spark": "dgx-spark-gb10",
    "thor": "jetson-thor-t5000",
    "pro w7900": "w7900",
    "pro w7700": "w7700",
    "ai pro r9700": "r9700",
    "mi250x mi250": "mi250x-gcd",  # the driver shows each half as a device
    "8060s": "strix-halo-395",
    "ryzen ai max 395 w 8060s": "strix-halo-395",
    "ryzen 9 7950x": "ryzen-7950x",
    "core i9 13900k": "core-i9-13900k",
    "xeon 8480": "xeon-8480plus",
    "xeon 8480c": "xeon-8480plus",
    "core ultra 7 265k": "core-ultra-265k",
    "tpu v5 lite": "tpu-v5e",
    "tpu v6 lite": "tpu-v6e",
    "gaudi 2": "gaudi2",
    "gaudi 3": "gaudi3",
    "hl 225": "gaudi2",
    "hl 325": "gaudi3",
}


def _words(text: str) -> list[str]:
    low = re.sub(r"\((?:r|tm|c)\)|@ ?[\d.]+ ?ghz|\b\d+-core\b|\b\d+mib\b|\b\d+th gen\b|\(bmg g\d+\)", "", text.lower())
    low = re.sub(
        r"\b(?:nvidia|amd|intel|apple|tesla|quadro|geforce|radeon|instinct|graphics|gpu|accelerator|tensor core|google|hbm\d*e?|generation|processor|cpu|platinum|trt|dynamo|sglang|vllm)\b",
        " ",
        low,
    )
    return re.findall(r"[a-z]+\d*[a-z]*|\d+[a-z]*", low.replace("-", " "))


def chip_named(text: str, memory_gb: float | None = None) -> str | None:
    """The catalogue id of a device's printed name, or None unless exactly one chip fits.

    >>> chip_named("NVIDIA GeForce RTX 4090"), chip_named("NVIDIA H200"), chip_named("Apple M2 Max"), chip_named("NVIDIA A100-SXM4-80GB")
    ('rtx-4090', 'h200-sxm', 'apple-m2-max', 'a100-80gb-sxm')
    """
    words = [re.sub(r"^sxm\d$", "sxm", w) for w in _words(text)]
    gigabytes = next((int(m[1]) for w in words if (m := re.fullmatch(r"(\d+)gb", w))), None) or (round(memory_gb) if memory_gb and 0 < memory_gb < 1e6 else None)
    core = [w for w in words if not re.fullmatch(r"\d+gb", w)]
    if (printed := _PRINTED.get(" ".join(core))) in hardware.ids():
        return printed
    fits = []
    for id in hardware.ids():
        own = [re.sub(r"^sxm\d$", "sxm", w) for w in _words(id.replace("strix-halo-395", "ryzen ai max 395"))]
        size = next((int(m[1]) for w in own if (m := re.fullmatch(r"(\d+)gb", w))), None)
        own = [w for w in own if not re.fullmatch(r"\d+gb", w)]
        if sorted(own) == sorted(core) and (size is None or gigabytes is None or abs(size - gigabytes) <= 0.1 * size):
            fits.append(id)
    if not fits and "sxm" not in core and (re.search(r"\bhbm3e?\b", text.lower()) or core in (["h200"], ["b200"], ["b300"])):
        return chip_named(f"{' '.join(core)} sxm", memory_gb or gigabytes)  # the driver names the SXM modules without their form
    return fits[0] if len(fits) == 1 else None
