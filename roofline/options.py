"""What the commands share: the options that make a Scenario, files read within limits, JSON written strictly."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path

from . import catalogue
from .errors import InputError
from .scenario import Scenario

MAX_FILE = 16 * 2**20  # bytes of any file read


def scenario_options(parser, required: bool = True):
    """The options that make a Scenario; every command that asks a question takes them."""
    add = parser.add_argument
    add("--model", required=required, help="catalogue id, hub id or path to a config.json")
    add("--hardware", required=required, help="chip id, or 'custom' with --peak and --bandwidth")
    for name, text in (("devices", "chips in all (default: tp x pp x dp)"), ("tp", "tensor parallel (default: all devices that pp and dp leave)"), ("pp", "pipeline stages"), ("ep", "expert parallel"), ("dp", "replicas; with ep they share the experts (data-parallel attention)"),
                       ("batch", "requests in flight in one replica (default 1)"), ("prompt", "prompt tokens (8k is 8,000; default 1,024)"), ("output", "output tokens (default 256)"),
                       ("cached", "prompt tokens already in the cache"), ("weights", "weight format, such as bf16, fp8, int8, int4, awq, nvfp4, q4_k_m (default: the checkpoint's own, else bf16)"), ("activations", "arithmetic of the quantised matrices (default: what engines use with the weights on the chip)"),
                       ("kv", "KV cache format (default: the checkpoint's own, else bf16)"), ("routing", "expert routing: 0 uniform, 1 all tokens alike"), ("engine", "engine whose measurements give the expected time, any (the default), or none"),
                       ("efficiency-compute", "fraction of peak FLOP/s reached"), ("efficiency-bandwidth", "fraction of bandwidth reached"),
                       ("peak", "FLOP/s of a custom chip"), ("peak-format", "format of --peak"), ("bandwidth", "memory bandwidth"), ("memory", "memory of one chip"),
                       ("overhead", "bytes a chip taken by the framework (default 0)"), ("block", "tokens per KV block"), ("chunk", "chunked prefill: tokens per step"),
                       ("rate", "requests/s arriving at the whole deployment"), ("draft", "speculation: tokens drafted per step"), ("acceptance", "chance that a drafted token is accepted (default 0.7)"),
                       ("draft-model", "catalogue id of the draft model (default: the model's MTP layer)"), ("prefill-hardware", "chip of a separate prefill pool"),
                       ("prefill-devices", "chips of one prefill instance"), ("offload", "share of expert (dense: all) weights in host memory"), ("offload-kv", "share of the KV cache in host memory"),
                       ("host", "host link bandwidth"), ("imbalance", "busiest expert rank over the mean"), ("purchase-usd", "price of buying one chip"), ("years", "years it is written off over"),
                       ("opex", "yearly running cost as a share of the price"), ("usd-per-kwh", "power price"), ("pue", "site power over chip power"), ("api-usd-per-million", "API price of output tokens to beat"),
                       ("link", "chip-to-chip bandwidth, one direction"), ("network", "bandwidth beyond the fast links"), ("utilisation", "share of memory in use (default 1)"),
                       ("usd-per-hour", "price of one chip (default: the catalogue's)"), ("read-as", "read an unknown model_type as this family")):
        add("--" + name, help=text)
    add("--efficiency", help="compute,bandwidth fractions in one, such as 0.7,0.8")
    add("--unfused", action="store_true", help="attention that writes its scores to memory")
    add("--sequence-parallel", action="store_true", default=None, help="norms split over the tensor-parallel ranks")


def scenario_of(args) -> Scenario:
    """The Scenario that parsed options ask for."""
    names = [f.name for f in fields(Scenario) if f.name not in ("model", "config", "fused")]
    values = {n: getattr(args, n) for n in names if getattr(args, n, None) is not None}
    if getattr(args, "unfused", False):
        values["fused"] = False
    if getattr(args, "efficiency", None) is not None:
        parts = args.efficiency.split(",")
        if len(parts) > 2:
            raise InputError("efficiency", args.efficiency, "must be one fraction or two, compute and bandwidth, such as 0.7,0.8")
        values["efficiency_compute"], values["efficiency_bandwidth"] = parts[0], parts[-1]
    if args.model is not None:
        if catalogue.is_path(args.model) and not args.model.endswith(".gguf"):
            values["config"] = read_text(args.model, catalogue.MAX_CONFIG)
            values["model"] = Path(args.model).stem[:120]
        else:
            values["model"] = args.model
    return Scenario(**values)


def read_text(path: str, limit: int) -> str:
    """The text of a file, refused if it is missing, too large or not UTF-8."""
    return read_bytes(path, limit).decode("utf-8-sig", errors="replace")


def read_bytes(path: str, limit: int = MAX_FILE) -> bytes:
    """The bytes of a file, refused if it is missing, a folder or too large."""
    try:
        with open(path, "rb") as file:
            data = file.read(limit + 1)
    except OSError as error:
        raise InputError("file", path, f"cannot be read: {error.strerror or error}") from None
    if len(data) > limit:
        raise InputError("file", path, f"is larger than {limit / 1e6:.0f} MB")
    return data


def emit(value) -> None:
    """One strict JSON object on stdout."""
    print(json.dumps(value, allow_nan=False, ensure_ascii=False, indent=1))
