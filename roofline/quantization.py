"""Read a checkpoint's own `quantization_config`: which tensor is stored how, and what it is multiplied with.

Sources: the readers of each format in transformers 5.24 (utils/quantization_config.py), compressed-tensors,
NVIDIA ModelOpt and the layouts in data/formats.toml. A method not listed in `_READERS` is refused by name.
"""

from __future__ import annotations

from dataclasses import replace

from . import presets
from .blocks import Format, catalogue, name_key
from .errors import InputError, nearest
from .modules import read_patterns
from .published import Group, Published
from .stored import read_stored

_FIELD = "quantization_config"


def read_quantization(config: dict, model: dict | None = None) -> Published | None:
    """Read a `quantization_config` (as a dict) into a Published; None for an empty one.

    Args: config: the dict; model: the whole config.json, which a few methods need (DeepSeek V4 says there that its
    experts are FP4). Raises InputError for a method not known, or a value that breaks its rule.

    >>> read_quantization({"quant_method": "awq", "bits": 4, "group_size": 128}).fmt.bits_per_weight
    4.15625
    """
    if config is None or config == {}:
        return None
    if not isinstance(config, dict):
        raise InputError(_FIELD, config, "must be an object")
    inner = config.get("quantization")
    if isinstance(inner, dict) and ("quant_algo" in inner or "quantized_layers" in inner):  # hf_quant_config.json of ModelOpt
        config = {"quant_method": "modelopt", "producer": config.get("producer"), **inner}
    method = config.get("quant_method")
    if method is None:
        method = ("modelopt" if "quant_algo" in config else "bitsandbytes" if config.get("load_in_4bit") or config.get("load_in_8bit")
                  else "compressed-tensors" if "config_groups" in config else "mlx" if "bits" in config and "group_size" in config else None)
    if not isinstance(method, str) or not method:
        raise InputError(f"{_FIELD}.quant_method", method, "must name the method, such as fp8, awq, gptq or compressed-tensors")
    key = method.lower().replace("_", "-")
    reader = _READERS.get(key) or _READERS.get(key.split("-")[0] if key.startswith(("gptq", "awq", "modelopt", "auto-round")) else "")
    if reader is None:
        raise InputError(f"{_FIELD}.quant_method", method, "is not a method known here" + nearest(method, _READERS))
    return reader(config, model if isinstance(model, dict) else {})


# --- small readers of values -------------------------------------------------------------------------------------------

def _whole(config: dict, key: str, default, low: int, high: int):
    value = config.get(key, default)
    if value is None or isinstance(value, bool) or not isinstance(value, (int, float)) or value != value or not low <= value <= high:
        raise InputError(f"{_FIELD}.{key}", value, f"must be a whole number from {low} to {high}")
    return int(value)


def _group_size(config: dict, default: int = 128, key: str = "group_size") -> int:
    """Columns that share a scale; 0 for the whole row (-1 or null in configs)."""
    value = config.get(key, default)
    if value is None or value == -1 or value == 0:
        return 0
    return _whole({key: value}, key, default, 1, 65536)


def _dict(value, field: str) -> dict:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise InputError(f"{_FIELD}.{field}", value, "must be an object")
    return value


def _int(bits: int, group: int, *, zero_bits: int = 0, column_bytes: int = 0, tensor_bytes: int = 0, scale_bits: int = 16, source: str = "int4") -> Format:
    label = f"int{bits}-" + (f"g{group}" if group else "channel")
    return replace(catalogue()[source], name=label, bits=bits, compute="int8" if bits > 4 else "int4", covers="linear", scale=(1, group),
                   scale_bits=scale_bits, zero_bits=zero_bits, column_bytes=column_bytes, tensor_bytes=tensor_bytes)


def _kv(scheme) -> Format | None:
    """Cache format from a kv_cache_scheme ({"num_bits": 8, "type": "float"}) or a name ("FP8", "NVFP4")."""
    if isinstance(scheme, dict):
        bits, kind = scheme.get("num_bits"), scheme.get("type")
        return catalogue()[{(8, "float"): "fp8", (8, "int"): "int8", (4, "float"): "nvfp4", (4, "int"): "int4"}[(bits, kind)]] \
            if (bits, kind) in ((8, "float"), (8, "int"), (4, "float"), (4, "int")) else None
    name = str(scheme or "").lower()
    return catalogue()[{"fp8": "fp8", "nvfp4": "nvfp4", "int8": "int8"}[name]] if name in ("fp8", "nvfp4", "int8") else None


def _publish(method: str, fmt: Format, config: dict, *, skip: tuple = ("modules_to_not_convert",), activations: str = "", label: str = "", **more) -> Published:
    ignored = next((config[k] for k in skip if config.get(k)), ())
    return Published(name=label or f"{method} {fmt.name}", method=method, groups=more.pop("groups", (Group(fmt),)),
                     ignored=read_patterns(ignored, f"{_FIELD}.{skip[0]}"), activations=activations or fmt.activations_default, **more)


# --- one reader a method -----------------------------------------------------------------------------------------------

def _fp8(config: dict, model: dict) -> Published:
    block = config.get("weight_block_size")
    if block is None:
        scalars = 8 if config.get("activation_scheme") == "static" else 4
        fmt = replace(catalogue()["fp8"], tensor_bytes=scalars - 4)
    else:
        if not isinstance(block, (list, tuple)) or len(block) != 2 or not all(isinstance(b, int) and 1 <= b <= 65536 for b in block):
            raise InputError(f"{_FIELD}.weight_block_size", block, "must be two whole numbers, such as [128, 128]")
        # The scales' own type is not in the config: FP32 as DeepSeek published them; BF16 in Qwen's; E8M0 in DeepSeek V4.
        e8m0 = config.get("scale_fmt") == "ue8m0" and bool(model.get("expert_dtype"))
        kind = "fp8-block-e8m0" if e8m0 else "fp8-block-bf16" if str(model.get("model_type", "")).startswith("qwen") else "fp8-block"
        fmt = replace(catalogue()[kind], scale=tuple(block))
    groups = (Group(fmt),)
    if str(model.get("expert_dtype", "")).lower() in ("fp4", "mxfp4"):
        groups = (Group(catalogue()["mxfp4"], read_patterns(["re:.*experts\\.0\\..*"], _FIELD)), *groups)
    return _publish("fp8", fmt, config, skip=("modules_to_not_convert", "ignored_layers"), groups=groups)


def _fbgemm(config: dict, model: dict) -> Published:
    return _publish("fbgemm_fp8", replace(catalogue()["fp8-channel"], scale_bits=32), config)


def _gptq(config: dict, model: dict) -> Published:
    bits, group = _whole(config, "bits", 4, 2, 8), _group_size(config)
    fmt = _int(bits, group, zero_bits=bits, column_bytes=4, source="gptq")
    groups = []
    for pattern, change in _dict(config.get("dynamic"), "dynamic").items():
        change = _dict(change, "dynamic")
        targets = read_patterns(["re:.*(?:" + pattern.lstrip("+-:") + ")"], f"{_FIELD}.dynamic")
        other = None if pattern.startswith("-") else _int(_whole(change, "bits", bits, 2, 8), _group_size(change, group or -1),
                                                          zero_bits=_whole(change, "bits", bits, 2, 8), column_bytes=4, source="gptq")
        groups.append(Group(other, targets))
    inside = config.get("modules_in_block_to_quantize")
    if inside:
        if not isinstance(inside, (list, tuple)):
            raise InputError(f"{_FIELD}.modules_in_block_to_quantize", inside, "must be a list of module names")
        names = [n for part in inside for n in (part if isinstance(part, (list, tuple)) else [part])]
        groups.append(Group(fmt, read_patterns(names, f"{_FIELD}.modules_in_block_to_quantize")))
    else:
        groups.append(Group(fmt))
    return _publish("gptq", fmt, config, groups=tuple(groups), lm_head=config.get("lm_head") is True)


def _awq(config: dict, model: dict) -> Published:
    bits = _whole(config, "bits" if "bits" in config else "w_bit", 4, 2, 8)
    group = _group_size(config, key="group_size" if "group_size" in config else "q_group_size")
    return _publish("awq", _int(bits, group, zero_bits=bits, source="awq"), config)


def _auto_round(config: dict, model: dict) -> Published:
    bits, group = _whole(config, "bits", 4, 2, 8), _group_size(config)
    awq = "awq" in str(config.get("packing_format", "")) or "awq" in str(config.get("backend", ""))
    make = lambda b, g: _int(b, g, zero_bits=b, column_bytes=0 if awq else 4, source="awq" if awq else "gptq")
    groups = []
    for name, change in _dict(config.get("extra_config"), "extra_config").items():
        change = _dict(change, "extra_config")
        b = _whole(change, "bits", bits, 2, 32)
        groups.append(Group(None if b >= 16 else make(min(b, 8), _group_size(change, group or -1)), read_patterns([name], f"{_FIELD}.extra_config")))
    return _publish("auto-round", make(bits, group), config, groups=(*groups, Group(make(bits, group))))


def _bitsandbytes(config: dict, model: dict) -> Published:
    if config.get("load_in_8bit") or config.get("_load_in_8bit"):
        fmt = catalogue()["llm-int8"]
    else:
        fmt = catalogue()["nf4" if config.get("bnb_4bit_use_double_quant") else "nf4-single"]
        fmt = replace(fmt, name=str(config.get("bnb_4bit_quant_type", "nf4"))[:8])
    return _publish("bitsandbytes", fmt, config, skip=("llm_int8_skip_modules", "modules_to_not_convert"), vision=True)


def _mxfp4(config: dict, model: dict) -> Published:
    fmt = catalogue()["mxfp4"]
    return _publish("mxfp4", fmt, config, groups=(Group(fmt, experts_only=True),), label="mxfp4 experts",
                    notes=("Weights are MXFP4 and multiplied with BF16 activations, as published.",))


# What ModelOpt's quant_algo stores and computes.
_ALGOS = {
    "fp8": ("fp8", "fp8"), "fp8-per-channel-per-token": ("fp8-channel", "fp8"), "fp8-pb-wo": ("fp8-block", "bf16"), "fp8-pb-real": ("fp8-block", "fp8"),
    "nvfp4": ("nvfp4", "fp4"), "w4a8-nvfp4-fp8": ("nvfp4", "fp8"), "nvfp4-awq": ("nvfp4", "fp4"), "w4a16-nvfp4": ("nvfp4", "bf16"), "mxfp4": ("mxfp4", "bf16"),
    "w4a8-mxfp4-fp8": ("mxfp4", "fp8"), "mxfp8": ("mxfp8", "fp8"), "w8a8-sq-per-channel": ("int8", "int8"), "w8a16": ("int8", "bf16"), "int8": ("int8", "int8"),
    "w4a16": ("int4", "bf16"), "w4a16-awq": ("int4", "bf16"), "int4-awq": ("int4", "bf16"), "w4a8-awq": ("int4", "fp8"), "nvfp4-svdquant": ("nvfp4", "fp4"),
}


def _algorithm(value, row: dict, field: str) -> tuple[Format, str]:
    key = str(value).lower().replace("_", "-")
    if key not in _ALGOS:
        raise InputError(f"{_FIELD}.{field}", value, "is not an algorithm known here" + nearest(key, _ALGOS))
    name, activations = _ALGOS[key]
    fmt = catalogue()[name]
    if row.get("group_size") and fmt.scale and fmt.scale[0] == 1 and fmt.scale[1]:
        fmt = replace(fmt, scale=(1, _group_size(row)))
    return fmt, activations


def _modelopt(config: dict, model: dict) -> Published:
    ignored = config.get("exclude_modules") or config.get("ignore") or ()
    kv = _kv(config.get("kv_cache_scheme")) or _kv(config.get("kv_cache_quant_algo"))
    layers = _dict(config.get("quantized_layers"), "quantized_layers")
    algo = config.get("quant_algo")
    if not algo and config.get("config_groups"):
        return _compressed(config, model)
    if str(algo).upper() != "MIXED_PRECISION":
        fmt, activations = _algorithm(algo, config, "quant_algo")
        groups, label = (Group(fmt),), f"modelopt {algo}"
    else:
        if not layers:
            raise InputError(f"{_FIELD}.quantized_layers", None, "must say what each layer is stored in when quant_algo is MIXED_PRECISION")
        kinds = {}
        for module, row in layers.items():
            row = _dict(row, "quantized_layers")
            kinds.setdefault((str(row.get("quant_algo")), str(row.get("group_size") or "")), (row, []))[1].append(module)
        groups = tuple(Group(_algorithm(k[0], row, "quantized_layers")[0], read_patterns(names, f"{_FIELD}.quantized_layers"))
                       for k, (row, names) in sorted(kinds.items(), key=lambda item: -len(item[1][1])))
        activations = max((_ALGOS[k[0].lower().replace("_", "-")][1] for k in kinds), key=("fp4", "fp8", "int8", "bf16").index)
        label = "modelopt " + " + ".join(sorted({k[0] for k in kinds}))
    return Published(name=label, method="modelopt", groups=groups, ignored=read_patterns(ignored, f"{_FIELD}.exclude_modules"), activations=activations,
                     kv=kv, lm_head=True, vision=True)


def _scheme(weights: dict, style: str, field: str) -> Format:
    """Format from a compressed-tensors (or Quark) weight description."""
    bits, kind = _whole(weights, "num_bits", 8, 2, 16), weights.get("type", "int")
    strategy, group = weights.get("strategy"), _group_size(weights, -1)
    if bits == 16:
        return catalogue()["bf16"]
    if kind == "float" and bits == 8:
        if strategy == "block" or weights.get("block_structure"):
            block = weights.get("block_structure") or [128, 128]
            if not isinstance(block, (list, tuple)) or len(block) != 2 or not all(isinstance(b, int) and b > 0 for b in block):
                raise InputError(f"{_FIELD}.{field}.block_structure", block, "must be two whole numbers, such as [128, 128]")
            return replace(catalogue()["fp8-block-bf16"], scale=tuple(block))
        if strategy == "group" and group:
            return catalogue()["mxfp8"] if group == 32 else replace(catalogue()["fp8-channel"], scale=(1, group))
        return catalogue()["fp8-channel" if strategy == "channel" else "fp8"]
    if kind == "float" and bits == 4:
        return catalogue()["mxfp4"] if group == 32 or "mxfp4" in style else replace(catalogue()["nvfp4"], scale=(1, group or 16))
    if kind != "int":
        raise InputError(f"{_FIELD}.{field}.type", kind, "must be int (2 to 8 bits) or float (4 or 8 bits)")
    packed = "pack" in style or "marlin" in style
    asymmetric = weights.get("symmetric") is False
    return _int(bits, group if strategy in ("group", None, "tensor_group") else 0, zero_bits=bits if asymmetric else 0,
                column_bytes=4 if weights.get("actorder") in ("group", True) else 0, tensor_bytes=16 if packed else 0)


def _compressed(config: dict, model: dict) -> Published:
    rows = _dict(config.get("config_groups"), "config_groups")
    if not rows:
        raise InputError(f"{_FIELD}.config_groups", config.get("config_groups"), "must describe at least one group of modules")
    groups, activations = [], []
    for row in rows.values():
        row = _dict(row, "config_groups")
        weights, inputs = row.get("weights"), row.get("input_activations")
        targets = row.get("targets", ["Linear"])
        targets = [targets] if isinstance(targets, str) else targets if isinstance(targets, list) else ["Linear"]
        fmt = _scheme(_dict(weights, "config_groups.weights"), str(row.get("format") or config.get("format") or ""), "config_groups.weights") if weights else None
        everything = any(t in ("Linear", "Embedding") or str(t).startswith("re:.*") and len(str(t)) == 5 for t in targets)
        groups.append(Group(fmt, None if everything else read_patterns([t for t in targets], f"{_FIELD}.config_groups.targets")))
        if fmt:
            activations.append(_activation(inputs))
    groups.sort(key=lambda g: g.targets is None)
    first = next(g.fmt for g in groups if g.fmt) if any(g.fmt for g in groups) else catalogue()["bf16"]
    label = f"{config.get('quant_method') or 'compressed-tensors'} {first.name}"
    return Published(name=label, method="compressed-tensors", groups=tuple(groups), ignored=read_patterns(config.get("ignore"), f"{_FIELD}.ignore"),
                     activations=max(activations or ["bf16"], key=("fp4", "int4", "fp8", "int8", "bf16").index), kv=_kv(config.get("kv_cache_scheme")),
                     lm_head=True, vision=True)


def _activation(inputs) -> str:
    if not isinstance(inputs, dict):
        return "bf16"
    return {(8, "float"): "fp8", (8, "int"): "int8", (4, "float"): "fp4", (4, "int"): "int4"}.get((inputs.get("num_bits"), inputs.get("type", "int")), "bf16")


_TORCHAO = (
    ("float8dynamic", "fp8-channel", "fp8"), ("float8static", "fp8", "fp8"), ("float8weight", "fp8-channel", "bf16"), ("int8dynamicactivationint4", "int4", "int8"),
    ("int8dynamicactivationintx", "int4", "int8"), ("int8dynamic", "int8", "int8"), ("int8weight", "int8", "bf16"), ("int4weight", "int4", "bf16"), ("nvfp4", "nvfp4", "fp4"),
    ("mx", "mxfp8", "fp8"), ("uintx", "int4", "bf16"), ("intx", "int4", "bf16"),
)


def _torchao(config: dict, model: dict) -> Published:
    kind, data = config.get("quant_type"), config.get("quant_type_kwargs") or {}
    if isinstance(kind, dict):
        kind = kind.get("default", kind)
        kind, data = (kind.get("_type"), _dict(kind.get("_data"), "quant_type")) if isinstance(kind, dict) else (kind, {})
    key = str(kind).lower().replace("_", "")
    found = next(((name, act) for start, name, act in _TORCHAO if key.startswith(start)), None)
    if found is None:
        raise InputError(f"{_FIELD}.quant_type", kind, "is not a torchao type known here; int4_weight_only, int8_weight_only and float8_weight_only are")
    fmt = catalogue()[found[0]]
    if found[0] == "int4":
        fmt = _int(4, _group_size(_dict(data, "quant_type_kwargs"), 128), zero_bits=16)
    return _publish("torchao", fmt, config, activations=found[1], lm_head=config.get("include_input_output_embeddings") is True,
                    embedding=config.get("include_input_output_embeddings") is True, vision=True)


def _quanto(config: dict, model: dict) -> Published:
    kind = str(config.get("weights", "int8"))
    fmt = {"int8": catalogue()["int8"], "float8": catalogue()["fp8-channel"], "int4": _int(4, 128, zero_bits=16), "int2": _int(2, 128, zero_bits=16)}.get(kind)
    if fmt is None:
        raise InputError(f"{_FIELD}.weights", kind, "must be int8, int4, int2 or float8")
    activations = {"int8": "int8", "float8": "fp8"}.get(str(config.get("activations")), "bf16")
    return _publish("quanto", fmt, config, activations=activations, vision=True)


def _hqq(config: dict, model: dict) -> Published:
    inner = _dict(config.get("quant_config"), "quant_config")
    inner = inner if "weight_quant_params" in inner else next((v for v in inner.values() if isinstance(v, dict)), {})
    weights = _dict(inner.get("weight_quant_params"), "quant_config") or config
    bits = _whole(weights, "nbits", 4, 1, 8)
    return _publish("hqq", _int(bits, _group_size(weights, 64), zero_bits=16), config, skip=("skip_modules",), vision=True)


def _exl(config: dict, model: dict) -> Published:
    bits = config.get("bits")
    if isinstance(bits, bool) or not isinstance(bits, (int, float)) or not 1 <= bits <= 8:
        raise InputError(f"{_FIELD}.bits", bits, "must be from 1 to 8 bits a weight")
    fmt = Format(name=f"{config['quant_method']}-{bits:g}", bits=bits, compute="bf16", covers="linear", source=catalogue()["exl3"].source)
    head = config.get("head_bits") if isinstance(config.get("head_bits"), (int, float)) else 6
    return _publish(str(config["quant_method"]), fmt, config, lm_head=True,
                    groups=(Group(replace(fmt, bits=min(max(head, 1), 16)), read_patterns(["lm_head"], _FIELD)), Group(fmt)))


def _mlx(config: dict, model: dict) -> Published:
    def one(row: dict) -> Format:
        mode, bits = row.get("mode", config.get("mode", "affine")), _whole(row, "bits", config.get("bits", 4), 2, 8)
        if mode != "affine" and f"mlx-{mode}" in catalogue():
            return catalogue()[f"mlx-{mode}"]
        base = catalogue().get(f"mlx-{bits}bit")
        if base is None:
            raise InputError(f"{_FIELD}.bits", bits, "must be 2, 3, 4, 5, 6 or 8")
        return replace(base, scale=(1, _group_size(row, config.get("group_size", 64))))
    kinds = {}
    for module, row in config.items():
        if isinstance(row, dict) or row is False:
            key = None if row is False else (str(row.get("mode")), str(row.get("bits")), str(row.get("group_size")))
            kinds.setdefault(key, (row, []))[1].append(module)
    fmt = one(config)
    groups = [Group(None if key is None else one(row), read_patterns(names, f"{_FIELD}.quantization")) for key, (row, names) in kinds.items()]
    return Published(name=f"mlx {fmt.name}", method="mlx", groups=(*groups, Group(fmt)), ignored=read_patterns((), _FIELD), lm_head=True, embedding=True)


def _quark(config: dict, model: dict) -> Published:
    def one(row: dict) -> tuple[Format | None, str]:
        weight = row.get("weight")
        if not isinstance(weight, dict):
            return None, "bf16"
        kind = str(weight.get("dtype", "")).lower()
        group = _group_size(weight, -1)
        if kind.startswith("fp8"):
            fmt, act = catalogue()["fp8-channel" if "channel" in str(weight.get("qscheme")) else "fp8"], "fp8"
        elif kind in ("fp4", "mxfp4"):
            fmt, act = catalogue()["mxfp4" if (group or 32) == 32 else "nvfp4"], "fp4"
        elif kind in ("int8", "uint8"):
            fmt, act = catalogue()["int8"], "int8"
        elif kind in ("int4", "uint4"):
            fmt, act = _int(4, group or 128, zero_bits=4), "int4"
        else:
            raise InputError(f"{_FIELD}.global_quant_config.weight.dtype", kind, "is not a type known here; fp8_e4m3, fp4, int8 and int4 are")
        return fmt, act if isinstance(row.get("input_tensors"), dict) else "bf16"
    fmt, activations = one(_dict(config.get("global_quant_config"), "global_quant_config"))
    groups = [Group(one(_dict(row, "layer_quant_config"))[0], read_patterns([name], f"{_FIELD}.layer_quant_config"))
              for name, row in _dict(config.get("layer_quant_config"), "layer_quant_config").items()]
    if fmt is None:
        raise InputError(f"{_FIELD}.global_quant_config", None, "must describe the weights")
    return Published(name=f"quark {fmt.name}", method="quark", groups=(*groups, Group(fmt)), activations=activations,
                     ignored=read_patterns(config.get("exclude"), f"{_FIELD}.exclude"), lm_head=True, vision=True,
                     kv=catalogue()["fp8"] if "fp8" in str(config.get("kv_cache_quant_config") or "") else None)


def _plain(name: str, activations: str = "bf16"):
    return lambda config, model: _publish(name, catalogue()[name] if name in catalogue() else _int(8, 0), config, activations=activations)


def _gguf(config: dict, model: dict):
    """What `gguf_config.to_config` writes: a whole file's bytes by group, or only the preset it names."""
    if "bytes" in config:
        return read_stored(config)
    return presets.parse(name_key(str(config.get("preset"))[:60]), f"{_FIELD}.preset", str(config.get("preset"))[:60])


def _bitnet(config: dict, model: dict) -> Published:
    fmt = replace(catalogue()["int8"], name="ternary", bits=2, scale=(0, 0), scale_bits=16)
    return _publish("bitnet", fmt, config, activations="int8")


_READERS = {
    "fp8": _fp8, "finegrained-fp8": _fp8, "deepgemm": _fp8, "fbgemm-fp8": _fbgemm, "gptq": _gptq, "gptqmodel": _gptq, "awq": _awq, "auto": _auto_round,
    "auto-round": _auto_round, "intel/auto-round": _auto_round, "bitsandbytes": _bitsandbytes, "bnb": _bitsandbytes, "mxfp4": _mxfp4, "modelopt": _modelopt,
    "modelopt-fp4": _modelopt, "nvfp4": lambda c, m: _modelopt({"quant_algo": "NVFP4", **c}, m), "compressed-tensors": _compressed, "compressed": _compressed, "sparseml": _compressed,
    "torchao": _torchao, "quanto": _quanto, "hqq": _hqq, "exl2": _exl, "exl3": _exl, "mlx": _mlx, "quark": _quark, "eetq": _plain("int8"),
    "bitnet": _bitnet, "gguf": _gguf, "experts-int8": lambda c, m: _publish("experts_int8", catalogue()["int8"], c, activations="bf16", groups=(Group(catalogue()["int8"], experts_only=True),)),
}
