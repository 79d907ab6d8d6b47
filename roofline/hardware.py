"""Accelerators: what a chip can do, and where each figure comes from (data/hardware.toml)."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib import resources

from .errors import InputError, nearest
from .units import parse_quantity

# Bits per element of every format a compute roof can have; the order is the order of preference within one width.
COMPUTE_BITS = {"fp32": 32, "bf16": 16, "fp16": 16, "fp8": 8, "int8": 8, "fp4": 4, "int4": 4}
PEAK_FORMATS = (*COMPUTE_BITS, "tf32")
# One lane of PCI Express, one direction, after line coding [bytes/s]: PCI-SIG base specifications, gen 3 to 6.
_PCIE_LANE = {"Gen3": 0.985e9, "Gen4": 1.969e9, "Gen5": 3.938e9, "Gen6": 7.563e9}


@dataclass(frozen=True, slots=True, kw_only=True)
class Accelerator:
    """One chip (or board) as software sees it.

    peaks: ((format, FLOP/s), ...) dense, FP32 accumulation; fast_peaks: the same with FP16 accumulation, where that differs
    (only bounds on measurements use them). memory_bytes [bytes] or None where it depends on what is
    plugged in (CPUs). bandwidth_bytes_per_s: main memory. link_bytes_per_s: one direction, all links of the chip summed;
    pair_bytes_per_s: between two chips where that is less than the sum. domain: chips the fast links join.
    grade: A to D or DOUBTFUL, `unverified` names the fields below it.
    """

    id: str
    name: str
    peaks: tuple
    bandwidth_bytes_per_s: float
    memory_bytes: float | None = None
    vendor: str = ""
    kind: str = "custom"
    year: int | None = None
    memory_type: str = ""
    cache_bytes: float | None = None
    cache_bandwidth_bytes_per_s: float | None = None
    link: str = ""
    link_bytes_per_s: float | None = None
    pair_bytes_per_s: float | None = None
    link_vendor_figure: str = ""
    domain: int | None = None
    pcie: str = ""
    tdp_w: float | None = None
    list_price_usd: float | None = None
    usd_per_hour: float | None = None
    price_source: str = ""
    grade: str = ""
    unverified: tuple = ()
    check: str = ""
    source: str = ""
    url: str = ""
    retrieved: str = ""
    note: str = ""
    fast_peaks: tuple = ()

    def __post_init__(self):
        if not self.peaks:
            raise InputError("hardware", self.id, "has no published dense peak, so there is no compute roof to stand under")
        for name, value in self.peaks:
            if not 1e6 <= value <= 1e21:
                raise InputError(f"peak {name}", value, "must be from 1e6 to 1e21 FLOP/s")
        if not 1e6 <= self.bandwidth_bytes_per_s <= 1e18:
            raise InputError("bandwidth", self.bandwidth_bytes_per_s, "must be from 1e6 to 1e18 bytes/s")

    def peak(self, name: str) -> float | None:
        """Dense peak of one format [FLOP/s], None if the chip lacks it."""
        for key, value in self.peaks:
            if key == name:
                return value
        return None

    def fast_peak(self, name: str) -> float:
        """Dense peak of one format with FP16 accumulation [FLOP/s]; 0 where none is known.

        >>> load("rtx-4090").fast_peak("bf16")
        330300000000000.0
        """
        return max((value for key, value in self.fast_peaks if key == name or (key, name) == ("fp16", "bf16")), default=0.0)

    @property
    def host_bytes_per_s(self) -> float | None:
        """PCI Express bandwidth to the host, one direction [bytes/s], or None."""
        words = self.pcie.split()
        if len(words) != 2 or words[0] not in _PCIE_LANE or not words[1].startswith("x"):
            return None
        return _PCIE_LANE[words[0]] * int(words[1][1:])

    def roof_of(self, wanted: str) -> tuple:
        """(format, FLOP/s) of the unit that runs arithmetic of format `wanted`.

        The format itself if the chip has it, else the narrowest wider one (FP4 on H100 runs at its FP8 rate, W4A16 on any
        chip at its 16-bit rate). Never a narrower one, whatever the bytes.

        >>> load("h100-sxm").roof_of("fp4")
        ('fp8', 1978900000000000.0)
        >>> load("apple-m2-ultra").roof_of("bf16")
        ('fp32', 27200000000000.0)
        """
        own = self.peak(wanted)
        if own:
            return wanted, own
        integer, bits = wanted.startswith("int"), COMPUTE_BITS[wanted]
        # FP8 and INT8 are different arithmetic, so there is no swap at the same width below 16 bits; FP16 and BF16 do swap.
        # Floating-point work never runs on an integer unit; integer work may be widened to either.
        wider = [n for n, b in COMPUTE_BITS.items() if self.peak(n) and (b > bits or b == bits == 16) and (integer or not n.startswith("int"))]
        wider.sort(key=lambda n: (COMPUTE_BITS[n], n.startswith("int") != integer))
        if wider:
            return wider[0], self.peak(wider[0])
        raise InputError("hardware", self.id, f"has no compute roof for {wanted} or anything wider")

    def replace(self, **changes) -> Accelerator:
        """A copy with some figures changed."""
        return replace(self, **changes)


def _from_entry(id: str, entry: dict) -> Accelerator:
    """Build one chip from its table in hardware.toml (GB/s and TFLOP/s become SI)."""
    giga = lambda key: entry[key] * 1e9 if key in entry else None
    mega = entry.get("cache_mb")
    return Accelerator(
        id=id, name=entry["name"], vendor=entry["vendor"], kind=entry["kind"], year=entry["year"],
        peaks=tuple((k, float(round(v * 1e12))) for k, v in entry["peaks"].items() if k in PEAK_FORMATS),
        memory_bytes=giga("memory_gb"), memory_type=entry.get("memory_type", ""), bandwidth_bytes_per_s=giga("bandwidth_gbs"),
        cache_bytes=mega * 1e6 if mega else None, cache_bandwidth_bytes_per_s=giga("cache_bandwidth_gbs"),
        link=entry.get("link", ""), link_bytes_per_s=giga("link_gbs"), pair_bytes_per_s=giga("pair_gbs"),
        link_vendor_figure=entry.get("link_vendor_figure", ""), domain=entry.get("domain"), pcie=entry.get("pcie", ""),
        tdp_w=entry.get("tdp_w"), list_price_usd=entry.get("list_price_usd"), usd_per_hour=entry.get("cloud_usd_per_hour"),
        price_source=entry.get("cloud_price_source", ""), grade=entry["grade"], unverified=tuple(entry.get("unverified", ())),
        check=entry.get("check", ""), source=entry["source"], url=entry["url"], retrieved=str(entry["retrieved"]), note=entry.get("note", ""),
        fast_peaks=tuple((k.removesuffix("_accum_fp16"), float(round(v * 1e12))) for k, v in entry["peaks"].items() if k.endswith("_accum_fp16")),
    )


@lru_cache(maxsize=1)
def _table() -> dict:
    with resources.files("roofline").joinpath("data/hardware.toml").open("rb") as file:
        return tomllib.load(file)


@lru_cache(maxsize=1)
def ids() -> tuple:
    """The ids of all chips that have a compute roof, in the order of the data file."""
    return tuple(id for id, entry in _table().items() if entry["peaks"])


def load(id: str) -> Accelerator:
    """The chip with this id (see `ids`), or InputError naming the nearest.

    >>> load("h100-sxm").bandwidth_bytes_per_s
    3350000000000.0
    """
    key = str(id).strip().lower()
    if key not in _table():
        close = [i for i in _table() if key and i.startswith(key)] if len(key) <= 80 else []
        hint = f"; did you mean one of {', '.join(close[:6])}?" if len(close) > 1 else f"; did you mean {close[0]!r}?" if close else nearest(key, _table())
        raise InputError("hardware", id, "is not in the catalogue" + (hint or "; take one of the list of chips, or 'custom' with a peak and a bandwidth"))
    return _known(key)


@lru_cache(maxsize=None)
def _known(key: str) -> Accelerator:
    return _from_entry(key, _table()[key])


def custom(*, peak, bandwidth, memory=None, link=None, peaks: dict | None = None, name: str = "custom chip", format: str = "bf16") -> Accelerator:
    """A chip typed by hand.

    peak [FLOP/s, or text such as "989 TFLOP/s"] for `format`; bandwidth [bytes/s or text]; memory [bytes or text] or None;
    link [bytes/s or text] or None; peaks: further formats.

    >>> custom(peak="989 TFLOP/s", bandwidth="3.35 TB/s").peak("bf16")
    989000000000000.0
    """
    rows = {format: peak, **(peaks or {})}
    for key in rows:
        if key not in PEAK_FORMATS:
            raise InputError("peak format", key, f"must be one of {', '.join(PEAK_FORMATS)}")
    return Accelerator(
        id="custom", name=str(name)[:60],
        peaks=tuple((k, float(parse_quantity(v, "FLOP/s", field=f"peak {k}", low=1e6, high=1e21))) for k, v in rows.items()),
        bandwidth_bytes_per_s=float(parse_quantity(bandwidth, "bytes/s", field="bandwidth", low=1e6, high=1e18)),
        memory_bytes=None if memory in (None, "") else float(parse_quantity(memory, "bytes", field="memory", low=1e6, high=1e18)),
        link_bytes_per_s=None if link in (None, "") else float(parse_quantity(link, "bytes/s", field="link", low=1e3, high=1e18)),
        grade="typed", source="typed by the user",
    )
