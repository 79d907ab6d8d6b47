"""Where the constants of a working are from: figures of the chip, of the model, of the fit and of prices, each with source, date and grade."""

from __future__ import annotations

from . import calibration, catalogue, cost
from .explain_money import chip_hour
from .explain_times import Asked, Working, b_, reached
from .hardware import load
from .scenario import Resolved
from .service import prefill_side
from .units import format_number, format_quantity
from .view import count, format_label

GIVEN = "given"  # the source of a figure that the question itself gives
MONEY = ("cost", "price", "all_in", "bill", "hour", "all_hour", "bought", "even")
# Which phases a working takes apart, by the first part of its key; those that are short sums of other figures take none.
PHASES = {"ttft": ("prefill",), "ttft_alone": ("prefill",), "tpot": ("decode",), "user": ("decode",), "total": ("decode",), "utilisation": ("decode",), "plain": ("decode",), "draft": ("decode",), "arrivals": ("prefill", "decode"), "mixed": ("decode",)}
FITTED = ("ttft", "ttft_alone", "tpot", "user", "total", "op", "plain", "draft", "arrivals")


def constants(a: Asked, key: str) -> list:
    """Rows {"name", "value", "source", "url", "date", "grade", "unsure"} of what the steps of a key used."""
    report, r, what = a.report, a.r, key.split(".")[0]
    rows = []
    for side, name in _phases(a, key):
        w = Working(side, name)
        rows += [*_roofs(a, side, w), *(_fit(a, side, w) if what in FITTED and a.timed and a.basis != "limit" else [])]
    if key == "ridge":
        rows += [_bandwidth(r), *_peaks(r, {r.compute})]
    if key in ("memory", "memory_share", "max_batch", "max_context") and report["hardware"]["memory_bytes"] is not None:
        rows.append(_of_chip(r, "memory", b_(report["hardware"]["memory_bytes"]), "memory_gb", r.scenario.memory))
    if what in MONEY and chip_hour(report) is not None:
        rows += _prices(a, key)
    if what == "bought" or what == "per_joule":
        rows += [_bandwidth(r)] if key.endswith("bytes") else _peaks(r, {max(r.chip.peaks, key=lambda pair: pair[1])[0]})
    if what in ("energy", "per_joule"):
        rows += _energies(a, key)
    known, day = catalogue.grade(r.arch.id)
    rows.append(_row(report["model"]["name"], count(report["model"]["parameters"]["total"]), report["model"]["source"] or GIVEN, day, known))
    return list({(row["name"], row["value"]): row for row in rows}.values())


def _phases(a: Asked, key: str) -> list:
    """(scenario, phase) of each phase that a working takes apart."""
    what, pools = key.split(".")[0], bool(a.r.scenario.prefill_hardware) and a.timed
    if what in ("op", "group", "phase", "rate", "intensity"):
        return [(a.r, key.split(".")[1])]
    if what == "pool" or (what in ("ttft", "ttft_alone") and pools):
        return [(prefill_side(a.r) if pools else a.r, "prefill"), *([(a.r, "decode")] if key in ("pool.ratio", "pool.chips", "pool.per_device") else [])]
    return [(a.r, name) for name in PHASES.get(what, ())]


def _bandwidth(r: Resolved, own: bool = True) -> dict:
    return _of_chip(r, "bandwidth", format_quantity(r.chip.bandwidth_bytes_per_s, "B/s"), "bandwidth_gbs", r.scenario.bandwidth if own else None)


def _peaks(r: Resolved, used: set, own: bool = True) -> list:
    """The peaks of some formats."""
    s = r.scenario
    found = sorted({r.chip.roof_of(x) for x in used}, key=lambda pair: -pair[1])
    return [_of_chip(r, f"peak {format_label(name)}", format_quantity(peak, "FLOP/s"), name, s.peak if own and s.peak_format == name else None) for name, peak in found]


def _roofs(a: Asked, side: Resolved, w: Working) -> list:
    """The roofs of a phase."""
    s, own = a.r.scenario, side is a.r
    rows = [_bandwidth(side, own), *_peaks(side, {op.roof for op in w.ops if op.group != "collective" and op.roof != "vector" and op.flops}, own)]
    if any(op.link_bytes for op in w.ops):
        if side.chip.link_bytes_per_s:
            rows.append(_of_chip(side, side.chip.link or "link", format_quantity(side.chip.link_bytes_per_s, "B/s"), "link_gbs", s.link if own else None))
        if any(op.network_bytes for op in w.ops):
            fabric = side.fabric
            rows.append(_row("network", format_quantity(fabric.network_bytes_per_s, "B/s"), GIVEN if s.network else fabric.network_source, "" if s.network else side.chip.retrieved, "" if s.network else "C"))
    if w.parts["host"]:
        rows.append(_of_chip(side, "host", format_quantity(w.roofs.host, "B/s"), "pcie", s.host))
    return rows


def _fit(a: Asked, side: Resolved, w: Working) -> list:
    """What engines reach, fitted to measurements on a day, or given."""
    e = a.report["expectation"] or {}
    fitted = bool(e.get("points"))
    return [_row(name, value, e.get("basis", ""), calibration.fitted()["fitted"] if fitted else "", "fit" if fitted else "") for name, value in reached(side, w)]


def _prices(a: Asked, key: str) -> list:
    """What the bill takes for an hour of a chip, and of one of the prefill pool."""
    report, r, s = a.report, a.r, a.r.scenario
    listed = report["cost"]["source"] == report["hardware"]["price_source"]  # else the user gave it
    rows = [_row("price", f"${format_number(chip_hour(report))}/h", report["cost"]["source"], r.chip.retrieved if listed else "", "C" if listed else "")]
    pools = report["serving"]["disaggregated"]
    if pools and key in ("price.input", "all_hour") and pools["prefill_hardware"] != r.chip.id:
        other = load(pools["prefill_hardware"])
        if other.usd_per_hour is not None:
            rows.append(_row("price", f"${format_number(other.usd_per_hour)}/h", other.price_source, other.retrieved, "C"))
    if key in ("hour", "all_hour") and r.chip.tdp_w and s.usd_per_kwh:
        rows.append(_power(r))
    return rows


def _power(r: Resolved) -> dict:
    return _of_chip(r, "tdp", format_quantity(r.chip.tdp_w, "W"), "tdp_w", None)


def _energies(a: Asked, key: str) -> list:
    """Rated power, and what moving a byte or a multiplication takes."""
    r, rows = a.r, []
    what = key.split(".")[1]
    pools = a.report["serving"]["disaggregated"]
    if what not in ("dram", "compute") and r.chip.tdp_w:
        rows.append(_power(r))
    if key == "energy.input" and pools and pools["prefill_watts"]:
        rows = [_power(prefill_side(r))]
    if what == "dram" and a.report["energy"]["dram_pj_per_byte"]:
        source = cost.dram_source(r.chip.memory_type)
        rows.append(_row("pj_per_byte", f"{format_number(source['pj_per_byte'])} pJ/B", source["source"], str(source["retrieved"]), source["grade"]))
    if what == "compute":
        for name in dict.fromkeys(op["roof"] for op in a.report["decode"]["operators"] if op["roof"] != "vector" and op["flops"]):
            each, how = cost.compute_pj_per_flop(r.chip, name)
            if each is None:
                continue
            if how == cost.CEILING:  # the board's own power over its own peak
                rows.append(_power(r))
                rows += _peaks(r, {name})
            else:
                source = cost.compute_source()
                rows.append(_row(f"pj_per_flop {format_label(name)}", f"{format_number(each)} pJ/FLOP", how, str(source["retrieved"]), source["grade"]))
    return rows


def _row(name: str, value: str, source: str, date: str = "", grade: str = "", url: str = "", unsure: bool = False) -> dict:
    return {"name": name, "value": value, "source": source, "url": url, "date": date, "grade": grade, "unsure": unsure}


def _of_chip(r: Resolved, name: str, value: str, field: str, given) -> dict:
    """A figure of the chip, or of the question where it is typed over the chip's."""
    if given is not None:
        return _row(name, value, GIVEN)
    c = r.chip
    return _row(name, value, c.source, str(c.retrieved or ""), c.grade, c.url, field in c.unverified)
