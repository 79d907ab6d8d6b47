"""From limits to expectations: what engines reach of each roof in public measurements.

The expected time of a pass is the sum over its operators of
    norm(FLOPs / (peak x compute), bytes / (bandwidth x share), dequantisation) + kernels x launch
plus collectives (bytes / link + messages x latency) and an overhead per pass and per sequence. `norm` is the p-norm, between the
largest of the times (perfect overlap, p -> infinity) and their sum (none, p = 1). The few parameters are those of an engine, of a
family of chips and of a number format, fitted by `roofline calibrate` and kept in data/calibration.toml with their statistics.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources

from .errors import InputError, nearest
from .hardware import COMPUTE_BITS
from .numeric import any_true, exp, first, maximum, minimum, power, where
from .roof import link_seconds, op_load

# name: (kind, centre, {level: how far that level may move it [standard deviations of a log or logit]}, meaning)
PARAMETERS = {
    "bandwidth": ("fraction", 0.85, {"all": 1.0, "engine": 0.52, "release": 0.39, "family": 0.52, "generation": 0.39}, "share of memory bandwidth when streaming weights"),
    "cache_bandwidth": ("fraction", 0.6, {"all": 1.0, "engine": 1.04, "release": 0.65, "family": 0.65}, "share of memory bandwidth when reading the KV cache"),
    "compute": ("fraction", 0.65, {"all": 1.0, "engine": 0.65, "release": 0.52, "family": 0.78, "generation": 0.65, "roof": 0.65}, "share of the peak of large matrix products"),
    "attention": ("fraction", 0.4, {"all": 1.0, "engine": 0.78, "release": 0.52, "family": 0.65}, "share of the peak in attention over a prompt"),
    "expert": ("fraction", 0.8, {"all": 1.0, "engine": 0.65, "release": 0.39}, "what routed experts reach of that bandwidth share"),
    "link": ("fraction", 0.7, {"all": 1.0, "wire": 0.65}, "share of the chip-to-chip bandwidth"),
    "launch_s": ("positive", 3e-6, {"all": 1.0, "engine": 0.91, "release": 0.91, "family": 0.65}, "seconds each kernel costs besides"),
    "step_s": ("positive", 300e-6, {"all": 1.0, "engine": 1.3, "release": 0.78}, "seconds each pass costs besides"),
    "sequence_s": ("positive", 5e-6, {"all": 1.0, "engine": 1.3}, "seconds each sequence of a pass costs besides"),
    "request_s": ("positive", 300e-6, {"all": 1.0, "engine": 1.3, "release": 0.78}, "seconds each prompt that enters costs besides"),
    "latency": ("positive", 0.7, {"all": 0.7, "wire": 0.52, "engine": 0.52, "release": 0.39}, "latency of a collective over what the fabric's general library takes"),
    "message_s": ("positive", 4e-6, {"all": 1.0, "wire": 0.91, "engine": 0.91, "release": 0.65}, "seconds each collective costs besides the fabric's own latency"),
    "hop_s": ("positive", 50e-6, {"all": 1.0, "engine": 0.65}, "seconds each pipeline hop costs besides"),
    "dequant": ("positive", 4.0, {"all": 1.0, "packing": 0.91, "engine": 0.91, "family": 0.9}, "vector operations to unpack one quantised weight"),
    "spill": ("positive", 1.0, {"all": 1.0, "engine": 1.3}, "bytes moved to unpack one quantised weight before a large product"),
    "mac": ("positive", 3.0, {"all": 1.0, "engine": 0.91, "family": 0.91, "packing": 1.3}, "time of a FLOP in vector kernels over one at the vector peak"),
    "single": ("positive", 1.0, {"all": 0.7, "engine": 0.65, "family": 0.65}, "how much more that costs in the vector kernels of routed experts, which take tokens one by one"),
    "scan": ("positive", 1.0, {"all": 1.0, "engine": 1.3, "release": 1.3, "family": 0.65}, "time of a FLOP of attention on vector units over one at the vector peak"),
    "few": ("positive", 8.0, {"all": 0.7, "engine": 0.91, "release": 1.3}, "queries on one KV head from which attention runs on matrix units"),
    "skew": ("fraction", 0.2, {"all": 0.7, "engine": 0.52}, "how far experts are picked alike: 0 uniform, 1 all tokens the same"),
    "pad": ("positive", 16.0, {"all": 1.0, "engine": 0.91, "family": 0.91}, "rows of a matrix tile, which a product of fewer fills only in part"),
    "tail": ("positive", 30.0, {"all": 1.0, "family": 0.65}, "tiles of 128 x 128 that the last wave of a product leaves idle"),
    "first_s": ("positive", 20e-3, {"all": 1.0, "engine": 1.3}, "seconds before a served request, or the first call of a process, reaches the model"),
    "queue": ("positive", 0.3, {"all": 1.0, "engine": 0.91}, "prompts of others that a served request waits for, over those in flight"),
}
LEVELS = ("all", "engine", "release", "family", "generation", "roof", "wire", "packing")
NORM = 3.0
MANY = 32.0  # rows from which engines unpack quantised weights into memory before a product, if they do
# Engines that add up in FP16 where that is faster (GeForce), so that their peak is the FP16-accumulation one.
FAST_ACCUMULATION = ("llama.cpp", "exllama", "mlc-llm")


@dataclass(frozen=True, slots=True, kw_only=True)
class Efficiency:
    """What real kernels reach of each roof, and what they cost besides.

    compute, bandwidth, cache_bandwidth, attention, expert, link: fractions of peak (compute of `rates` by roof where given);
    launch_s, step_s, sequence_s, message_s, hop_s [s]; dequant, mac [vector operations]; pad [rows]; tail [tiles]; chunk:
    tokens of one prefill pass; norm: p of the p-norm that joins the roofs, None for the largest.
    low, high: multipliers of the expected time that bracket the 10th to 90th percentile of measurements, and the same for prefill.
    """

    compute: float
    bandwidth: float
    cache_bandwidth: float = 0.0
    attention: float = 0.0
    expert: float = 1.0
    link: float = 1.0
    launch_s: float = 0.0
    step_s: float = 0.0
    sequence_s: float = 0.0
    request_s: float = 0.0
    latency: float = 1.0
    message_s: float = 0.0
    hop_s: float = 0.0
    dequant: float = 0.0
    spill: float = 0.0
    mac: float = 0.0
    single: float = 1.0
    scan: float = 0.0
    few: float = 8.0
    skew: float = 0.0
    pad: float = 0.0
    tail: float = 0.0
    first_s: float = 0.0
    queue: float = 0.0
    rates: tuple = ()
    widths: tuple = ()
    packing: tuple = ()
    macs: tuple = ()
    chunk: float = 0.0
    norm: float | None = None
    low: float = 1.0
    high: float = 1.0
    prefill_low: float = 1.0
    prefill_high: float = 1.0
    basis: str = "given by the user"
    points: int = 0

    def __post_init__(self):
        for name in ("compute", "bandwidth", "link", "expert"):
            if not 0 < getattr(self, name) <= 1:
                raise InputError(f"efficiency {name}", getattr(self, name), "must be above 0 and at most 1")

    def rate(self, roof: str) -> float:
        """Share of the peak of one roof that large matrix products reach."""
        for name, value in self.rates:
            if name == roof:
                return value
        return self.compute

    def width(self, roof: str) -> float:
        """Bits of the arithmetic that stands in for a roof on this chip."""
        for name, value in self.widths:
            if name == roof:
                return value
        return COMPUTE_BITS[roof]

    def unpack(self, packing: str) -> float:
        """Vector operations to unpack one weight of a packing."""
        for name, value in self.packing:
            if name == packing:
                return value
        return self.dequant if packing != "native" else 0.0

    def multiply(self, packing: str) -> float:
        """Vector operations of one multiply-add of a small batch, for weights of a packing."""
        for name, value in self.macs:
            if name == packing:
                return value
        return self.mac


def faster(norm, a, b):
    """A smooth minimum of two times: (a^-p + b^-p)^(-1/p), the lesser where norm is None [s].

    >>> faster(None, 1.0, 2.0)
    1.0
    """
    if norm is None:
        return minimum(a, b)
    return power(power(a, -norm) + power(b, -norm), -1.0 / norm)


def natural(kind: str, centre: float, shift):
    """A parameter's value from its centre and the sum of its level effects, on a log (positive) or logit (fraction) scale."""
    if kind == "positive":
        return centre * exp(shift)
    return 1.0 / (1.0 + (1.0 - centre) / centre * exp(-shift))


# ---- the time of one operator; every argument may be an array ---------------------------------------------------------


def joined(norm, *times):
    """(a^p + b^p + ...)^(1/p): the p-norm of the times that overlap; the largest if norm is None [s].

    >>> round(joined(3.0, 1.0, 1.0), 3)
    1.26
    >>> joined(None, 1.0, 2.0)
    2.0
    """
    if norm is None:
        most = times[0]
        for t in times[1:]:
            most = maximum(most, t)
        return most
    return power(sum(power(t, norm) for t in times), 1.0 / norm)


def product_seconds(flops, weights, moved, tokens, inner, count, peak, vector, bandwidth, unpack, mac, spill, pad, tail, launch, rounds, norm):
    """Expected time of one kind of matrix product, summed over its layers [s].

    flops [FLOP]; weights: elements read in one round; moved: bytes in all; tokens: rows of a product in one round; inner: length
    of its dot products; count: products; peak, vector [FLOP/s reached]; bandwidth [bytes/s reached]; unpack, mac, spill: vector
    operations per weight and per multiply-add of the vector kernels, and bytes per weight unpacked first; pad, tail: see
    PARAMETERS; launch [s]; rounds. Engines take the faster of vector kernels (good for a few rows) and matrix units (which fill
    tiles of rows, in part where there are fewer).
    """
    tiles = flops * joined(norm, 1.0, pad / tokens) / peak + count * rounds * tail * 256.0 * minimum(tokens, 128.0) * inner / peak
    rows = where(mac > 0, flops * mac / vector, float("inf"))
    apart = where(tokens > MANY, weights * rounds * spill, 0.0) / bandwidth
    return joined(norm, moved / bandwidth, faster(norm, tiles, rows), weights * rounds * unpack / vector) + apart + count * rounds * launch


def attention_seconds(flops, moved, small, peak, bandwidth, count, launch, rounds, norm):
    """Expected time of attention: FLOPs, cache bytes and, with few queries, vector work, each under its own share [s]."""
    return joined(norm, flops / peak, moved / bandwidth, small) + count * rounds * launch


def collective_seconds(busy, latency, messages, share, each):
    """Expected time of collectives: their least time over the share of it reached + latency of the fabric + messages x overhead [s]."""
    return busy / share + latency + messages * each


def packing_of(op, roof_bits: float) -> str:
    """How a product's weights are packed for the unit that runs it: "native" (as the unit takes them), "byte" or "nibble" (wider
    arithmetic on weights of 7 bits or more, or fewer), from the operator's own bytes. roof_bits: width of the arithmetic [bits]."""
    # Of an array the first will do: bits are a property of the weights, whatever runs through them.
    elements = first(op.flops) / (2.0 * first(op.tokens)) if first(op.tokens) else 0.0
    bits = 8.0 * first(op.weight_bytes) / elements if elements else 16.0
    return "native" if bits * 1.01 >= roof_bits else "byte" if bits > 6.999 else "nibble"  # a mix may make just 7


@lru_cache(maxsize=1024)
def mates_of(name: str) -> int:
    """Matrices that engines run as one product, since they share an input: query, key and value; gate and up.

    >>> mates_of("self_attn.q_proj"), mates_of("mlp.up_proj"), mates_of("mlp.down_proj")
    (3, 2, 1)
    """
    if re.search(r"(^|\.)(q|k|v)_proj$", name):
        return 3
    return 2 if re.search(r"(^|\.)(gate_proj|up_proj|w1|w3|q_a_proj|kv_a_proj_with_mqa)$", name) else 1


def op_expected(op, roofs, tp, e: Efficiency, rounds: float = 1.0):
    """Expected seconds of one operator of a pass [s]. rounds: pieces that a prefill is cut into.

    What lies in host memory comes at the speed of its link, of which no measurement here says how much is reached.
    """
    took = _op_expected(op, roofs, tp, e, rounds)
    return maximum(took, op_load(op, tp)[2] / roofs.host) if any_true(op.host_bytes > 0) else took


def _op_expected(op, roofs, tp, e: Efficiency, rounds: float):
    if op.group == "collective":
        return collective_seconds(link_seconds(op, roofs), op.latency_s * rounds * e.latency, op.messages * rounds, e.link, e.hop_s if op.name == "pipeline hop" else e.message_s)
    share = 1 if op.replicated else tp
    shards = minimum(tp, op.kv_shards)
    if op.roof == "vector":
        return (op.weight_bytes * rounds + op.activation_bytes) / share / (roofs.bandwidth * e.bandwidth) + op.count * rounds * e.launch_s
    if op.group == "attention_core" or not any_true(op.tokens > 0):
        moved = (op.kv_read_bytes + op.kv_write_bytes) / shards + op.activation_bytes / share
        return attention_seconds(op.flops / share, moved, on_vector_units(op.flops, op.tokens, e.few) / share * e.scan / roofs.peaks["vector"], roofs.peaks[op.roof] * where(e.attention > 0, e.attention, e.compute),
                                 roofs.bandwidth * where(e.cache_bandwidth > 0, e.cache_bandwidth, e.bandwidth), op.count, e.launch_s, rounds, e.norm)
    packing = packing_of(op, e.width(op.roof))
    apart = 1.0 - e.skew * (1.0 - 1.0 / op.reach)
    weights = op.flops / (2.0 * op.tokens) / share * apart
    moved = (op.read_load * op.weight_bytes * rounds * apart + op.activation_bytes) / share
    spilled = packing != "native" and op.group != "experts"
    return product_seconds(op.load * op.flops / share, weights, moved, op.tokens / rounds / apart, op.inner, op.count / mates_of(op.name), roofs.peaks[op.roof] * e.rate(op.roof), roofs.peaks["vector"],
                           roofs.bandwidth * e.bandwidth * (e.expert if op.group == "experts" else 1.0), e.unpack(packing), e.multiply(packing) * (e.single if op.group == "experts" else 1.0), e.spill if spilled else 0.0, e.pad, e.tail, e.launch_s, rounds, e.norm)


def on_vector_units(flops, queries, few):
    """The FLOPs of attention that run on vector units: all of them up to `few` queries a KV head, a falling share above [FLOP]."""
    return flops * minimum(1.0, few / maximum(queries, 1.0))


def rounds_of(e: Efficiency, p) -> float:
    """Pieces that a prefill pass is cut into: tokens / chunk, at least 1 (1 for a decode step)."""
    return 1.0 if p.decodes or not e.chunk else maximum(1.0, p.tokens / e.chunk)


def overhead(e: Efficiency, p, rounds: float = 1.0):
    """Seconds a pass costs besides its operators [s]: each of its rounds, and each of its sequences."""
    return e.step_s * rounds + (e.sequence_s if p.decodes else e.request_s) * p.sequences


def expected_time(ops, roofs, layout, e: Efficiency, p, rounds: float = 1.0):
    """Expected seconds of one pass: its operators and its overheads [s]."""
    total = overhead(e, p, rounds)
    for op in ops:
        total = total + op_expected(op, roofs, layout.tp, e, rounds)
    return total


# ---- which parameters a scenario takes --------------------------------------------------------------------------------


def family_of(chip) -> str:
    """The family of chips that share parameters: vendor and kind of memory."""
    vendor, memory = chip.vendor.lower(), chip.memory_type.upper()
    if chip.kind == "cpu" or vendor in ("ampere", "broadcom"):
        return "cpu"
    if vendor in ("nvidia", "amd"):
        return f"{vendor}-{'hbm' if 'HBM' in memory else 'unified' if 'LPDDR' in memory else 'gddr'}"
    return {"apple": "apple", "google": "tpu", "tenstorrent": "tenstorrent", "intel": "intel"}.get(vendor, "other")


def generation_of(chip) -> str:
    """A finer class: what the chip's arithmetic can do tells NVIDIA's generations apart, the year the others'."""
    family = family_of(chip)
    if not family.startswith("nvidia"):
        return f"{family}-{chip.year}"
    if chip.peak("fp4"):
        return f"{family}-blackwell"
    if chip.peak("fp8"):
        return f"{family}-{'hopper' if 'hbm' in family else 'ada'}"
    return f"{family}-{'ampere' if chip.peak('bf16') else 'older'}"


def wire_of(chip, layout) -> str:
    """What the chips of a replica talk over: "fast" (NVLink, Infinity Fabric, ICI) or "pcie"."""
    fast = chip.link and "pcie" not in chip.link.lower() and "bridge" not in chip.link.lower() and (chip.domain or 1) >= layout.tp
    return "fast" if fast else "pcie"


def accumulation_gain(engine: str, chip, roof: str) -> float:
    """Peak with FP16 accumulation over the plain one, for an engine that uses it (1 for every other)."""
    plain = chip.peak(roof)
    return max(1.0, chip.fast_peak(roof) / plain) if engine in FAST_ACCUMULATION and plain else 1.0


# Releases of an engine that differ: (engine, pattern in its version, name), first match wins; the newest is last and is the default.
_RELEASES = (
    ("tensorrt-llm", r"^0\.[0-7]\b|\b0\.[56]\b", "early"), ("tensorrt-llm", r"^0\.[89]\b", "0.9"), ("tensorrt-llm", r"^0\.", "engines"), ("tensorrt-llm", r"^TensorRT", "mlperf"), ("tensorrt-llm", "", "pytorch"),
    ("llama.cpp", r"2023|May 2024|\b2024-0[1-6]", "before MMQ"), ("llama.cpp", "", "recent"), ("vllm", r"\b0\.[12]\.\d|2023", "before graphs"), ("vllm", r"0\.6\.[0-3]\S* \(ROCm\)", "early ROCm"), ("vllm", r"\b0\.[1-7]\b|\b0\.[1-7]\.\d|2024", "v0"), ("vllm", "", "v1"),
)


def release_of(engine: str, version: str = "") -> str:
    """The class of releases that a version of an engine belongs to; the newest for an empty version.

    >>> release_of("tensorrt-llm", "0.14.0"), release_of("vllm"), release_of("mlc-llm", "1")
    ('tensorrt-llm engines', 'vllm v1', 'mlc-llm')
    """
    for name, pattern, label in _RELEASES:
        if name == engine and re.search(pattern, version):
            return f"{engine} {label}"
    return engine


# Engines by what their name contains, first match wins; "any" is all of them together.
_ENGINES = (
    ("vllm (tpu)", "vllm-tpu"), ("vllm-tpu", "vllm-tpu"), ("tensorrt", "tensorrt-llm"), ("trt", "tensorrt-llm"), ("llmboost", "vllm"), ("vllm", "vllm"), ("sglang", "sglang"), ("ollama", "llama.cpp"),
    ("llama.cpp", "llama.cpp"), ("llamacpp", "llama.cpp"), ("llama-bench", "llama.cpp"), ("ggml", "llama.cpp"), ("autoawq", "autoawq"), ("tinychat", "tinychat"), ("gpt-fast", "gpt-fast"),
    ("gpt_fast", "gpt-fast"), ("mlc", "mlc-llm"), ("qserve", "qserve"), ("exllama", "exllama"), ("lmdeploy", "lmdeploy"), ("turbomind", "lmdeploy"), ("tt-metal", "tt-metal"),
    ("transformers", "transformers"), ("hugging", "transformers"),
)
# Engines known by another name only in measurements (a whole word would catch too much): see rows.py.


def engine_of(text: str) -> str:
    """The calibration's name of an engine; "any" for one it has never seen.

    >>> engine_of("TensorRT-LLM"), engine_of("ollama or llama.cpp"), engine_of("Frobnicator")
    ('tensorrt-llm', 'llama.cpp', 'any')
    """
    low = text.lower()
    return next((name for part, name in _ENGINES if part in low), "any")


# ---- the fitted values ------------------------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def fitted() -> dict:
    """The calibration file: coefficients by parameter and level, bands and statistics."""
    return tomllib.loads(resources.files("roofline").joinpath("data/calibration.toml").read_text("utf-8"))


def engines() -> tuple:
    """The engines that the calibration knows, in alphabetical order."""
    return tuple(sorted(fitted()["rows"]["engine"]))


@lru_cache(maxsize=4096)
def parameter(name: str, **levels) -> float:
    """One parameter for the levels given ("engine", "family" ...); a level never measured leaves it where the others put it."""
    kind, centre, own, _ = PARAMETERS[name]
    table = fitted()["parameters"].get(name, {})
    shift = table.get("all", 0.0) + sum(table.get(f"{level}:{levels[level]}", 0.0) for level in own if level in levels)
    return natural(kind, centre, shift)


# What is bracketed together: kinds of rows whose errors are alike.
GROUPS = {"step": "decode", "request": "decode", "prefill": "prefill", "tpot": "service", "stream": "service", "first": "first token", "drain": "service"}


def band(group: str, engine: str, family: str = "") -> tuple:
    """(low, high, rows): multipliers of an expected time that bracket the 10th to 90th percentile of what was measured.

    Of the engine where the group has it; otherwise that of engines left out of the fit. A family of chips that no
    row has widens it: the errors of an unknown engine and an unknown chip are taken as independent.
    """
    table = fitted()["bands"].get(group) or fitted()["bands"]["decode"]
    low, high, rows = table.get(engine) or table["any"]
    if family and family not in fitted()["rows"]["family"]:
        low, high = low ** 1.4, high ** 1.4
    return low, high, rows


@lru_cache(maxsize=2048)
def efficiency(engine: str, release: str, chip, wire: str) -> Efficiency:
    """The efficiency to expect of an engine ("any": all together) on a chip whose replicas talk over `wire`."""
    family, generation = family_of(chip), generation_of(chip)
    levels = {"engine": engine, "release": release, "family": family, "generation": generation, "wire": wire}
    get = lambda name, **more: parameter(name, **levels, **more)
    rates, widths = [], []
    for name in COMPUTE_BITS:
        try:
            stands_in = chip.roof_of(name)[0]
        except InputError:
            continue
        rates.append((name, get("compute", roof=stands_in) * accumulation_gain(engine, chip, stands_in)))
        widths.append((name, float(COMPUTE_BITS[stands_in])))
    low, high, rows = band("decode", engine, family)
    prefill_low, prefill_high, prefill_rows = band("prefill", engine, family)
    measured = fitted()["rows"]
    own = measured["engine"].get(engine)  # rows of this engine; a range of its own needs enough of them in one group
    where_from = f"{engine if own else 'all engines'} on {family if family in measured['family'] else 'chips of other families'}"
    borrowed = ", range of all engines" if own and engine not in fitted()["bands"]["decode"] else ""
    plain = {name: get(name) for name in PARAMETERS if name not in ("compute", "attention", "dequant", "mac")}
    return Efficiency(
        compute=min(1.0, dict(rates)["bf16"]), attention=get("attention") * accumulation_gain(engine, chip, chip.roof_of("bf16")[0]), rates=tuple(rates), widths=tuple(widths),
        packing=tuple((p, get("dequant", packing=p)) for p in ("byte", "nibble")), macs=tuple((p, get("mac", packing=p)) for p in ("native", "byte", "nibble")),
        dequant=get("dequant", packing="byte"), mac=get("mac", packing="native"), chunk=PREFILL_CHUNKS.get(engine, PREFILL_CHUNK), norm=NORM,
        low=low, high=high, prefill_low=prefill_low, prefill_high=prefill_high, points=own or rows + prefill_rows,
        basis=f"{where_from}, {own or rows + prefill_rows} measurements{borrowed}", **plain,
    )


PREFILL_CHUNK = 8192.0  # tokens that an engine runs through the model at once in prefill
PREFILL_CHUNKS = {"llama.cpp": 512.0}  # its default micro-batch


def expectation(r) -> Efficiency | None:
    """The efficiency to expect for a resolved scenario; None where the scenario asks for limits only.

    Fractions given in the scenario replace the calibration. Raises InputError for an engine that no measurement has.
    """
    s = r.scenario
    if s.efficiency_compute is not None or s.efficiency_bandwidth is not None:
        return Efficiency(compute=s.efficiency_compute or 1.0, bandwidth=s.efficiency_bandwidth or 1.0)
    if s.engine == "none":
        return None
    engine = s.engine if s.engine == "any" or s.engine in engines() else engine_of(s.engine)
    if engine == "any" and s.engine != "any":
        raise InputError("engine", s.engine, f"has no measurements here{nearest(s.engine, engines())}; use any, none, or one of {', '.join(engines())}")
    return efficiency(engine, release_of(engine) if engine != "any" else "", r.chip, wire_of(r.chip, r.layout))
