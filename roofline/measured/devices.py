"""Find the device, the model file and its facts in the log lines of llama.cpp and its relatives."""

from __future__ import annotations

import re

from .values import several, split_model_type

# Each pattern names one device a line; the first family that matches anything is used, as a log repeats itself.
_DEVICES = (
    re.compile(r"^\W*Device (\d+): ([^,|]{3,80}?), compute capability (\d+\.\d+)"),
    re.compile(r"^\W*Device (\d+): ([^,|]{3,80}?), (gfx\w+)\b"),
    re.compile(r"^\s*ggml_vulkan: (?:Vulkan)?(\d+)(?: =|:) ([^|]{3,120}?)()(?: \||$)"),
    re.compile(
        r"^\W*(?:ggml_metal_init|ggml_metal_device_init|ggml_metal_load): (?:GPU name|found device|picking default device):()\s+([^\n]{3,60})()"
    ),
    re.compile(r"^\s*ggml_opencl: (?:(?:selecting|selected|using) )?device:?()\s+'?([^'\n]{2,60})'?()"),
    re.compile(r"^\s*\|\s*(\d+)\s*\|\s*\[(?:level_zero|opencl):gpu:\d+\]\s*\|\s*([^|]{3,80}?)\s*\|()"),
    re.compile(r"using device \w+?(\d+) \(([^)]{3,80})\)()(?: \([^)]*\))? - \d+ MiB free"),
)
_PARENS = re.compile(
    r"\s*\((?:[^()]*(?:driver|OpenCL \d|RADV|radv|Mesa|NVIDIA|AMDVLK|Intel open-source|MoltenVK|LLVM)[^()]*(?:\([^()]*\))?[^()]*)\)"
)


def logged_devices(lines: list[str]) -> dict:
    """Return {"hardware", "compute_capability", "gfx", "vram_mib"} as far as the log states them.

    >>> logged_devices(["  Device 0: NVIDIA GeForce RTX 4090, compute capability 8.9, VMM: yes"])
    {'hardware': 'NVIDIA GeForce RTX 4090', 'compute_capability': '8.9'}
    """
    facts: dict = {}
    head = [
        line
        for line in dict.fromkeys(lines[:20_000])
        if "evice" in line or "ggml_" in line or "gpu:" in line or "GPU name" in line or "VRAM" in line
    ]
    for pattern in _DEVICES:
        names: dict[str, str] = {}
        for line in head:
            if match := pattern.search(line):
                name = " ".join(_PARENS.sub("", match[2]).split())
                names.setdefault(match[1], name)
                if match[3]:
                    facts.setdefault("gfx" if match[3].startswith("gfx") else "compute_capability", match[3])
        if names:
            facts["hardware"] = several(list(names.values()))
            break
    for line in head:
        if (match := re.search(r"\bVRAM: (\d+) MiB", line)) and "vram_mib" not in facts:
            facts["vram_mib"] = int(match[1])
    return dict(sorted(facts.items(), key=lambda kv: kv[0] != "hardware"))


_PRINT_META = re.compile(
    r"(?:llm_load_print_meta|print_info|llama_model_load_internal): (model type|model ftype|file type|model size|file size|model params|"
    r"general\.name)\s*= ([^\n]{1,120})"
)

_FILE = re.compile(
    r"(?:(?:^|\s)(?:-m|--model)[ =]|loaded meta data with .{0,80} from |^Loaded model |loading model (?:from )?['\"]?)(\S+\.gguf)\b"
)


def logged_model(lines: list[str]) -> dict:
    """Return the model facts that llama.cpp logs when it loads: quant, size, parameters, layers on the GPU, file name.

    >>> logged_model(["print_info: file type   = Q4_K - Medium", "load_tensors: offloaded 33/33 layers to GPU"])
    {'quant': 'Q4_K_M', 'ngl': 33}
    """
    facts: dict = {}
    files: set[str] = set()
    for line in dict.fromkeys(lines[:20_000]):
        for found in _FILE.finditer(line) if ".gguf" in line else ():
            files.add(re.split(r"[\\/]", found[1])[-1][:120])
        if match := _PRINT_META.search(line):
            key, value = match[1], match[2].strip()
            if key == "general.name":
                facts.setdefault("model", value[:120])
            elif key in ("model ftype", "file type"):
                facts.setdefault("quant", split_model_type("m " + value)[1])
            elif key in ("model size", "file size") and (size := re.match(r"(\d{1,9}(?:\.\d{1,9})?) (GiB|MiB)", value)):
                facts.setdefault("size_gib" if size[2] == "GiB" else "size_mib", float(size[1]))
            elif key == "model params" and (count := re.match(r"(\d{1,9}(?:\.\d{1,9})?) ([BM])\b", value)):
                facts.setdefault("params_b" if count[2] == "B" else "params_m", float(count[1]))
        elif match := re.search(r"offloaded (\d+)/\d+ layers to GPU", line):
            facts.setdefault("ngl", int(match[1]))
        elif match := re.search(r"general\.name\s+str\s+= ([^\n]{1,120})", line):
            facts.setdefault("model", match[1].strip())
    if len(files) == 1:
        facts["model_file"] = files.pop()
    return {k: v for k, v in facts.items() if v is not None}


_LISTED = (
    re.compile(r"^\W*GPU \d+: (.{3,60}?) \(UUID: GPU-"),  # nvidia-smi -L
    re.compile(r"^\|\s+\d+\s+((?:NVIDIA|Tesla|Quadro|GeForce) [\w .-]{1,50}?)\s+(?:On|Off|N/A|WDDM|TCC)\s*\|"),  # its table
)


def listed_device(lines: list[str]) -> str | None:
    """The one kind of GPU that an nvidia-smi listing pasted beside a result names; how many of them ran it does not say.

    >>> listed_device(["GPU 0: NVIDIA L4 (UUID: GPU-1)", "GPU 1: NVIDIA L4 (UUID: GPU-2)"]), listed_device(["an NVIDIA L4 would do"])
    ('NVIDIA L4', None)
    """
    names = {m[1].strip() for line in lines[:4000] if "GPU" in line[:8] or line[:1] == "|" for p in _LISTED if (m := p.match(line))}
    return names.pop() if len(names) == 1 else None
