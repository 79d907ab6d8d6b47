"""The chip table: complete, sourced, and its peaks re-derived from units x clock and bus x rate where those are known."""

import re

import pytest

from roofline import InputError, hardware

CHIPS = [hardware.load(i) for i in hardware.ids()]
GRADES = {"A", "B", "C", "D", "DOUBTFUL"}


@pytest.mark.parametrize("chip", CHIPS, ids=lambda c: c.id)
def test_every_chip_is_sourced_and_sane(chip):
    assert chip.grade in GRADES and chip.source and chip.retrieved
    assert chip.grade in ("C", "D", "DOUBTFUL") or chip.url.startswith("https://")
    peaks = dict(chip.peaks)
    # A narrower format is never slower, except where a chip dropped it (B300's INT8) and on INT8-only units.
    if {"bf16", "fp8"} <= peaks.keys():
        assert peaks["fp8"] >= peaks["bf16"]
    if {"fp8", "fp4"} <= peaks.keys():
        assert peaks["fp4"] >= peaks["fp8"]


def _value(expression: str) -> float | None:
    """'132SM*4096*1.83' -> 132 * 4096 * 1.83; None if it is prose."""
    factors = []
    for part in expression.split("*"):
        match = re.match(r"\s*([\d.]+)\s*(?:[A-Za-z]*)", part)
        if not match or re.search(r"[+/(]", part):
            return None
        factors.append(float(match[1]))
    product = 1.0
    for f in factors:
        product *= f
    return product if len(factors) >= 2 else None


def test_peaks_and_bandwidths_follow_from_units_and_clocks():
    """Each `check` reads units x FLOP/clock x clock [GHz] = TFLOP/s (in thousandths) or bus bits x Gbit/s = GB/s (in eighths)."""
    compared = 0
    for chip in CHIPS:
        figures = [v / 1e12 for _, v in chip.peaks] + [chip.bandwidth_bytes_per_s / 1e9] + [chip.cache_bandwidth_bytes_per_s / 1e9 if chip.cache_bandwidth_bytes_per_s else 0]
        for claim in chip.check.split(";"):
            left, _, right = claim.partition("=")
            value, stated = _value(left), re.match(r"\s*([\d.]+)", right)
            if value is None or not stated:
                continue
            stated = float(stated[1])
            scale = 1 / 8 if "bit" in left else 1e-3 if ("SM" in left or "CU" in left) else None
            if scale is None:
                continue
            assert value * scale == pytest.approx(stated, rel=6e-3), (chip.id, claim)
            near = min(abs(stated - f) / stated for f in figures if f)
            assert near < 0.025 or "FP4" in right or "TF32" in right, (chip.id, claim, figures)
            compared += 1
    assert compared >= 40


@pytest.mark.parametrize(("chip", "wanted", "got"), [
    ("h100-sxm", "bf16", "bf16"), ("h100-sxm", "fp4", "fp8"), ("a100-80gb-sxm", "fp8", "bf16"), ("a100-80gb-sxm", "int8", "int8"), ("t4", "bf16", "fp16"), ("b200-sxm", "fp4", "fp4"),
    ("apple-m2-ultra", "bf16", "fp32"), ("tpu-v5e", "fp8", "bf16"), ("tpu-v7", "int8", "bf16"), ("h100-sxm", "fp32", "fp32"),
])
def test_a_missing_format_runs_in_the_next_wider(chip, wanted, got):
    assert hardware.load(chip).roof_of(wanted)[0] == got


def test_geforce_rates_are_with_fp32_accumulation():
    """Ada whitepaper v2.02: BF16 165.2 and FP8 330.3 TFLOP/s; 330 and 660 are with FP16 accumulation."""
    card = hardware.load("rtx-4090")
    assert (card.peak("bf16"), card.peak("fp8")) == (165.2e12, 330.3e12)


def test_links_are_one_direction():
    assert hardware.load("h100-sxm").link_bytes_per_s == 450e9
    assert hardware.load("mi300x").pair_bytes_per_s == pytest.approx(64e9)


def test_host_link():
    assert hardware.load("h100-sxm").host_bytes_per_s == pytest.approx(63e9, rel=0.01)


def test_unknown_and_custom():
    with pytest.raises(InputError, match="h100-sxm|h100-pcie"):
        hardware.load("h1000")
    with pytest.raises(InputError, match="peak"):
        hardware.custom(peak="fast", bandwidth="1 TB/s")
    with pytest.raises(InputError, match="FLOP"):
        hardware.custom(peak="3 GB/s", bandwidth="1 TB/s")
    assert hardware.custom(peak="100 TFLOP/s", bandwidth="1 TB/s", memory="24 GB").memory_bytes == 24e9
