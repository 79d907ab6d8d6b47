"""A Scenario is one question, complete: it converts to and from a dict, a link and a command line without loss."""

from __future__ import annotations

import base64
import binascii
import json
import shlex
import zlib
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from urllib.parse import parse_qsl, urlencode

from . import catalogue, formats, hardware, parallel
from .errors import InputError, nearest
from .fabric import Fabric, fabric_of
from .families import FAMILIES, from_hf_config
from .hardware import COMPUTE_BITS, Accelerator
from .model import Architecture
from .parallel import Layout
from .units import parse_quantity

SCHEMA = 1
MAX_LINK = 200_000  # characters; a pasted config deflates to a few hundred bytes
MAX_CONFIG = catalogue.MAX_CONFIG  # characters of a config once inflated


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One question: this model on these chips under this load.

    model: catalogue or hub id; config: the text of a config.json instead; read_as: family to read an unknown model_type as.
    hardware: chip id, or "custom" with peak [FLOP/s], bandwidth [bytes/s], memory [bytes], link [bytes/s] (peak_format says
    what the peak is for); with a catalogue chip the same fields override its figures.
    devices: chips in all; tp, pp, ep, dp: None means "what is left" (tensor parallel takes it).
    weights: "auto" is the checkpoint's own quantisation, else BF16; activations "auto" is what engines use with those weights
    on that chip; kv "auto" is BF16 unless the checkpoint says otherwise.
    batch: requests in flight in one replica, all of the same length; prompt, output [tokens].
    cached: tokens of the prompt already in the KV cache (prefix caching). routing: 0 uniform experts, 1 all tokens alike.
    fused: FlashAttention. engine: names the calibration for expected times ("any": all engines together, "none": limits only).
    efficiency_compute, efficiency_bandwidth: fractions that replace the calibration. network [bytes/s]: beyond the fast domain.
    utilisation: the share of memory an engine may use; overhead: bytes a chip that graphs and the framework take;
    block: tokens per KV block (a sequence's last block is part empty).
    chunk: prefill goes in pieces of this many tokens that carry the decodes of others (0: prefill and decode apart).
    rate: requests/s arriving at random at the whole deployment; None: a closed loop with `batch` always in flight.
    draft, acceptance: tokens drafted per verify step (0: no speculation) and the chance that one is accepted; draft_model: a
    catalogue id, or "" for the model's own multi-token-prediction layer.
    prefill_hardware, prefill_devices: a separate pool of prefill instances (disaggregated serving); "" means none.
    offload, offload_kv: share of the expert weights (dense: all matrices) and of the cache kept in host memory, over `host` [bytes/s].
    imbalance: tokens of the busiest expert rank over the mean. sequence_parallel: norms split over the tensor-parallel ranks too.
    usd_per_hour: price of one chip, or None for the catalogue's; or purchase_usd with years, opex (share of the price) and
    usd_per_kwh; pue: power of the site over power of the chips; api_usd_per_million: a price per million output tokens to beat.
    """

    model: str = "llama-3.1-8b"
    config: str = ""
    read_as: str = ""
    hardware: str = "h100-sxm"
    peak: float | None = None
    peak_format: str = "bf16"
    bandwidth: float | None = None
    memory: float | None = None
    link: float | None = None
    devices: int | None = None
    tp: int | None = None
    pp: int | None = None
    ep: int | None = None
    dp: int | None = None
    weights: str = "auto"
    activations: str = "auto"
    kv: str = "auto"
    batch: int = 1
    prompt: int = 1024
    output: int = 256
    cached: int = 0
    routing: float = 0.0
    fused: bool = True
    engine: str = "any"
    efficiency_compute: float | None = None
    efficiency_bandwidth: float | None = None
    network: float | None = None
    utilisation: float = 1.0
    overhead: float = 0.0
    block: int = 1
    chunk: int = 0
    rate: float | None = None
    draft: int = 0
    acceptance: float = 0.7
    draft_model: str = ""
    prefill_hardware: str = ""
    prefill_devices: int | None = None
    offload: float = 0.0
    offload_kv: float = 0.0
    host: float | None = None
    imbalance: float = 1.0
    sequence_parallel: bool = False
    usd_per_hour: float | None = None
    purchase_usd: float | None = None
    years: float = 3.0
    opex: float = 0.0
    usd_per_kwh: float = 0.0
    pue: float = 1.0
    api_usd_per_million: float | None = None

    def __post_init__(self):
        for name, (kind, low, high, whole) in _RANGES.items():
            value = getattr(self, name)
            if value is None and _DEFAULTS[name] is None:
                continue
            value = parse_quantity(value, kind, field=name, low=low, high=high, whole=whole)
            object.__setattr__(self, name, value)
        for name in _TEXTS:
            value = getattr(self, name)
            limit = MAX_CONFIG if name == "config" else 120
            if not isinstance(value, str) or len(value) > limit:
                raise InputError(name, value, f"must be text of at most {limit:,} characters")
            if name != "config":
                object.__setattr__(self, name, value.strip() if name == "model" else value.strip().lower())
        for name in ("fused", "sequence_parallel"):
            value = getattr(self, name)
            if not isinstance(value, bool):
                flag = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}.get(str(value).lower())
                if flag is None:
                    raise InputError(name, value, "must be true or false")
                object.__setattr__(self, name, flag)
        if self.cached >= self.prompt:
            raise InputError("cached", self.cached, f"must be less than the prompt of {self.prompt:,} tokens, since the last one is always computed")

    # ---- to and from other shapes -------------------------------------------------------------------------------

    def to_dict(self) -> dict:
        """Every field that differs from the default, and model and hardware always; `from_dict` reads it back."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name in ("model", "hardware") or getattr(self, f.name) != f.default}

    @staticmethod
    def from_dict(values: dict) -> Scenario:
        """Read fields by name; an unknown one is refused with the nearest known.

        >>> Scenario.from_dict({"batch": "1k"}).batch
        1000
        """
        if not isinstance(values, dict):
            raise InputError("scenario", type(values).__name__, "must be an object of named fields")
        for key in values:
            if key not in _DEFAULTS:
                raise InputError("scenario field", key, f"is not known{nearest(key, _DEFAULTS)}")
        return Scenario(**{k: v for k, v in values.items() if v is not None and v != ""} )

    def to_fragment(self) -> str:
        """The part of a link after '#': readable keys, only what differs from the default, a pasted config deflated.

        >>> Scenario(batch=32).to_fragment()
        's=1&model=llama-3.1-8b&hardware=h100-sxm&batch=32'
        """
        pairs = [("s", SCHEMA)]
        for key, value in self.to_dict().items():
            if key == "config":
                packed = zlib.compress(compact_config(value).encode(), 9)
                value = base64.urlsafe_b64encode(packed).decode().rstrip("=")
            pairs.append((key, int(value) if isinstance(value, float) and value.is_integer() else str(value).lower() if isinstance(value, bool) else value))
        return urlencode(pairs, safe="/:.-_")

    @staticmethod
    def from_fragment(text: str) -> tuple:
        """(Scenario, notices): unknown keys are left out and named in a notice, bad values raise InputError.

        >>> Scenario.from_fragment("#s=1&batch=32&colour=red")[1]
        ('the link has a part this version does not know: colour',)
        """
        values, notices = fragment_values(text)
        return Scenario.from_dict(values), notices

    def to_cli(self) -> str:
        """The command that asks the same question.

        >>> Scenario(batch=32).to_cli()
        'roofline estimate --model llama-3.1-8b --hardware h100-sxm --batch 32'
        """
        words = ["roofline", "estimate"]
        for key, value in self.to_dict().items():
            if key == "model" and self.config:
                continue
            if key == "config":
                key, value = "model", "config.json"
            flag = "--" + key.replace("_", "-")
            words += ["--unfused"] if key == "fused" else [flag] if value is True else [flag, _written(value) if isinstance(value, float) else str(value)]
        return shlex.join(words)

    def replace(self, **changes) -> Scenario:
        """A copy with some fields changed."""
        return replace(self, **changes)


_TEXTS = ("model", "config", "read_as", "hardware", "peak_format", "weights", "activations", "kv", "engine", "draft_model", "prefill_hardware")
_RANGES = {
    "peak": ("FLOP/s", 1e6, 1e21, False), "bandwidth": ("bytes/s", 1e6, 1e18, False), "memory": ("bytes", 1e6, 1e18, False),
    "link": ("bytes/s", 1e3, 1e18, False), "network": ("bytes/s", 1e3, 1e18, False),
    "devices": ("count", 1, 1_000_000, True), "tp": ("count", 1, 65536, True), "pp": ("count", 1, 65536, True),
    "ep": ("count", 1, 65536, True), "dp": ("count", 1, 65536, True),
    "batch": ("count", 1, 1_000_000_000, True), "prompt": ("tokens", 1, 100_000_000, True), "output": ("tokens", 1, 100_000_000, True),
    "cached": ("tokens", 0, 100_000_000, True), "routing": ("count", 0, 1, False),
    "efficiency_compute": ("count", 1e-6, 1, False), "efficiency_bandwidth": ("count", 1e-6, 1, False),
    "utilisation": ("count", 0.01, 1, False), "usd_per_hour": ("USD", 0, 1e9, False),
    "overhead": ("bytes", 0, 1e15, False), "block": ("tokens", 1, 65536, True), "chunk": ("tokens", 0, 10_000_000, True), "rate": ("count", 1e-9, 1e9, False),
    "draft": ("tokens", 0, 1000, True), "acceptance": ("count", 0, 1, False), "prefill_devices": ("count", 1, 1_000_000, True),
    "offload": ("count", 0, 1, False), "offload_kv": ("count", 0, 1, False), "host": ("bytes/s", 1e3, 1e18, False), "imbalance": ("count", 1, 1e6, False),
    "purchase_usd": ("USD", 0, 1e12, False), "years": ("count", 0.01, 100, False), "opex": ("count", 0, 100, False), "usd_per_kwh": ("USD", 0, 1000, False),
    "pue": ("count", 1, 10, False), "api_usd_per_million": ("USD", 0, 1e9, False),
}
_DEFAULTS = {f.name: f.default for f in fields(Scenario)}


def _written(value: float) -> str:
    """A number as short as it can be without becoming another.

    >>> _written(4.8e12), _written(1.23456789)
    ('4.8e+12', '1.23456789')
    """
    return f"{value:g}" if float(f"{value:g}") == value else repr(value)


def fragment_values(text: str) -> tuple:
    """({field: text as it stands}, notices) of a link's part after '#', its values unchecked; unknown keys are named in a notice.

    >>> fragment_values("#s=1&batch=-5")
    ({'batch': '-5'}, ())
    """
    if not isinstance(text, str):
        raise InputError("link", type(text).__name__, "must be text, such as '#s=1&batch=32'")
    text = text.lstrip("#")
    if len(text) > MAX_LINK:
        raise InputError("link", f"{len(text):,} characters", f"must be at most {MAX_LINK:,}")
    values, notices = {}, []
    for key, value in parse_qsl(text, keep_blank_values=True):
        if key == "s":
            if value != str(SCHEMA):
                notices.append(f"the link was made by another version (schema {value[:10]}); what is known of it was read")
        elif key == "config":
            values[key] = _inflate(value)
        elif key in _DEFAULTS:
            values[key] = value
        else:
            notices.append(f"the link has a part this version does not know: {key[:40]}")
    return values, tuple(notices)


def compact_config(text: str) -> str:
    """A config's JSON without spaces, so that the link is short."""
    return json.dumps(catalogue.read_config_text(text), separators=(",", ":"), ensure_ascii=False)


def _inflate(value: str) -> str:
    """Undo `to_fragment`'s packing of a config, refusing what is damaged or inflates past the limit."""
    try:
        packed = base64.b64decode(value + "=" * (-len(value) % 4), altchars=b"-_", validate=True)
        worker = zlib.decompressobj()
        text = worker.decompress(packed, MAX_CONFIG)
        if worker.unconsumed_tail or not worker.eof:
            raise InputError("config", value, f"in the link is cut off or longer than {MAX_CONFIG:,} characters")
        return text.decode()
    except (binascii.Error, zlib.error, UnicodeDecodeError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError("config", value, "in the link is damaged; ask for the link again") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """A Scenario with its names looked up and its defaults filled in.

    compute: the format its quantised matrices compute in; lacks: the format the chip was asked for and does not have, or "".
    """

    scenario: Scenario
    arch: Architecture
    chip: Accelerator
    layout: Layout
    drafter: Architecture | None = None
    weights: object
    activations: formats.Format
    kv: formats.Format
    compute: str
    lacks: str = ""

    @property
    def fabric(self) -> Fabric:
        """The network between the chips, with what the scenario says of it."""
        return fabric_of(self.chip, self.scenario.network)


@lru_cache(maxsize=64)
def architecture_of(model: str, config: str, read_as: str) -> Architecture:
    """The model that a scenario names, or the pasted config's."""
    if config:
        return from_hf_config(catalogue.read_config_text(config), id="pasted config", read_as=read_as or None)
    return catalogue.load(model)


def chip_of(s: Scenario) -> Accelerator:
    """The scenario's chip, with the figures typed over the catalogue's."""
    if s.hardware == "custom":
        if s.peak is None or s.bandwidth is None:
            raise InputError("hardware", "custom", "needs a peak and a bandwidth")
        return hardware.custom(peak=s.peak, bandwidth=s.bandwidth, memory=s.memory, link=s.link, format=s.peak_format)
    chip = hardware.load(s.hardware)
    changes = {"bandwidth_bytes_per_s": s.bandwidth, "memory_bytes": s.memory, "link_bytes_per_s": s.link}
    changes = {k: v for k, v in changes.items() if v is not None}
    if s.peak is not None:
        changes["peaks"] = tuple((k, v) for k, v in chip.peaks if k != s.peak_format) + ((s.peak_format, float(s.peak)),)
    return chip.replace(**changes) if changes else chip


def layout_of(s: Scenario) -> Layout:
    """tp x pp x dp = devices: what is not given follows from what is; tensor parallel takes the rest."""
    pp, ep = s.pp or 1, s.ep or 1
    if s.devices is None:
        return Layout(tp=s.tp or 1, pp=pp, ep=ep, dp=s.dp or 1)
    if s.tp is not None:
        rest = s.tp * pp
        dp = s.dp or max(1, s.devices // rest)
    else:
        dp = s.dp or 1
        rest = dp * pp
    tp = s.tp or max(1, s.devices // rest)
    if tp * pp * dp != s.devices:
        raise InputError("devices", s.devices, f"is not tp {tp} x pp {pp} x dp {dp}; use {tp * pp * dp} devices or change one of the factors")
    return Layout(tp=tp, pp=pp, ep=ep, dp=dp)


def resolve(s: Scenario) -> Resolved:
    """Look everything up and check that it goes together. Raises InputError naming the field."""
    if not isinstance(s, Scenario):
        raise InputError("scenario", type(s).__name__, "must be a Scenario; Scenario.from_dict makes one of a dict")
    arch = architecture_of(s.model, s.config, s.read_as)
    chip, layout = chip_of(s), layout_of(s)
    parallel.check(layout, arch)
    _check_names(s)
    if needs_host(s) and (s.host or chip.host_bytes_per_s) is None:
        raise InputError("host", "unknown", f"{chip.name} has no known link to a host's memory; give its speed as host, or offload nothing")
    return Resolved(scenario=s, arch=arch, chip=chip, layout=layout, drafter=catalogue.load(s.draft_model) if s.draft and s.draft_model else None,
                    **formats_of(s, arch, chip))


def _check_names(s: Scenario):
    """Refuse a name that means nothing even where nothing asks for it yet: a typing error is told, never passed over."""
    if s.draft_model:
        catalogue.load(s.draft_model)
    if s.peak_format not in hardware.PEAK_FORMATS:
        raise InputError("peak_format", s.peak_format, f"must be one of {', '.join(hardware.PEAK_FORMATS)}")
    if s.read_as and s.read_as not in FAMILIES:
        raise InputError("read_as", s.read_as, f"is not a known family{nearest(s.read_as, FAMILIES)}")


def needs_host(s):
    """Whether weights or cache come over the host link (an array of them where the shares are arrays)."""
    return s.offload + s.offload_kv > 0


def _arithmetic(name: str) -> formats.Format:
    """The format of activations; 4-bit floating point is arithmetic, and what is stored for it has scales, as in NVFP4."""
    return formats.parse("nvfp4" if name.strip().lower() == "fp4" else name, "activations")


def formats_of(s, arch: Architecture, chip: Accelerator) -> dict:
    """{"weights", "activations", "kv", "compute", "lacks"}: what the scenario's formats become for this model on this chip."""
    weights = arch.quantization if s.weights in ("auto", "published") and arch.quantization else formats.parse("bf16" if s.weights in ("auto", "published") else s.weights)
    wanted = weights.activations if hasattr(weights, "activations") else weights.activations_default
    fmt = getattr(weights, "fmt", weights)
    lacks = ""
    if s.activations == "auto":
        activations = _arithmetic(wanted if chip.peak(wanted) else "bf16")
    else:
        activations = _arithmetic(s.activations)
        if COMPUTE_BITS.get(activations.compute) != round(activations.bits):
            raise InputError("activations", s.activations, f"is not an arithmetic; use one of {', '.join(COMPUTE_BITS)}")
        if COMPUTE_BITS[activations.compute] < 16 and not chip.peak(activations.compute):
            lacks = activations.compute
    # The wider of the two decides which unit runs; at equal width the activations do (INT4 weights with FP4 activations run as FP4).
    compute = activations.compute if COMPUTE_BITS[activations.compute] >= COMPUTE_BITS[fmt.compute] else fmt.compute
    if s.kv == "auto":
        kv = getattr(weights, "kv", None) or formats.parse("bf16", "kv")
    else:
        kv = formats.parse(s.kv, "kv")
    return {"weights": weights, "activations": activations, "kv": kv, "compute": compute, "lacks": lacks}
