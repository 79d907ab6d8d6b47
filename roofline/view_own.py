"""Your own measurements on the page: the output of a benchmark or profiler read and placed under the roof, or one number typed."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import lru_cache

from . import catalogue, chart_data
from .errors import InputError
from .model import parameters
from .report import evaluate
from .scenario import Scenario
from .units import format_number, format_quantity
from .view import percent

MAX_ROWS = 300  # rows shown; a file with more says so
MAX_BASES = 12  # models and chips in one file
# What one number can be: (metric of a Reading, unit), and the facts that go with it.
METRICS = {"user": "decode_tps_per_user", "total": "decode_tps", "tpot": "tpot_ms", "ttft": "ttft_ms", "prefill": "prefill_tps"}


def place_text(text: str, name: str, scenario: Scenario, in_flight: int | None = None) -> dict:
    """Read a benchmark's output and place each row: {"tool", "facts", "rows", "points", "chart", "warnings", "assumed", "more"}.

    The file's own model and chip are used where it names them and the catalogue knows them, else those of the scenario; `assumed`
    says which. in_flight: requests in flight where the file does not say. Raises InputError for text that is no benchmark's.
    """
    from . import measured
    from .measured.hints import scenario_hint
    from .measured.place import placed

    reading = measured.read(text.encode(), name)
    groups = {}
    for row in reading.rows[:MAX_ROWS]:
        hint = scenario_hint(reading, row)
        model, text = hint.get("model"), hint.get("model_text")
        likely = likely_model(text, {**reading.common, **row}.get("params_b")) if text else None
        if in_flight and "batch" not in hint:
            row = {**row, "concurrency": in_flight}
        groups.setdefault(
            (model or likely, text, hint.get("hardware"), hint.get("hardware_text"), "weights" in hint, "kv" in hint), []
        ).append(row)
    rows, assumed, shown = [], [], None
    for (model, model_text, chip, chip_text, *stated), members in list(groups.items())[:MAX_BASES]:
        base = _base(scenario, model, chip, *stated)
        assumed += _assumed(scenario, model, chip, model_text, chip_text)
        answer = placed(replace(reading, rows=tuple(members)), base)
        for entry in answer["rows"]:
            asked = base.replace(**entry.get("asked", {}))
            shown = shown or asked
            rows.append(_row(entry, asked) | {"model": asked.model if len(groups) > 1 else ""})
    facts = [{"name": key, "value": str(value)[:120]} for key, value in sorted(reading.common.items()) if value is not None]
    return {
        "tool": reading.tool,
        "facts": facts,
        "rows": rows,
        "warnings": list(reading.warnings)[:20],
        "assumed": list(dict.fromkeys(assumed)),
        "more": max(0, len(reading.rows) - len(rows)),
        "chart": chart(shown or scenario, rows),
    }


def place_number(metric: str, value, scenario: Scenario) -> dict:
    """Place one measured number of the scenario; metric: one of METRICS; value: text, such as 55 or "18 ms" for a time.

    >>> place_number("user", "100", Scenario(prompt=1, output=2))["rows"][0]["of_limit"].replace("\\u2009", " ")
    '45 %'
    """
    from .measured.place import place
    from .units import parse_quantity

    if metric not in METRICS:
        raise InputError("metric", metric, f"must be one of {', '.join(METRICS)}")
    timed = metric in ("tpot", "ttft")
    number = parse_quantity(value, "s" if timed else "count", field="value", low=1e-9, high=1e12)
    row = {
        "metric": METRICS[metric],
        "value": number * 1e3 if timed else number,
        "unit": "ms" if timed else "token/s",
        "batch": scenario.batch,
        "n_prompt": scenario.prompt,
        "aggregate": metric == "total" or None,
    }
    report = evaluate(scenario).to_dict()
    entry = row | {"place": place(row, report), "asked": {}}
    rows = [_row(entry, scenario)]
    return {"tool": "", "facts": [], "rows": rows, "warnings": [], "assumed": [], "more": 0, "chart": chart(scenario, rows)}


@lru_cache(maxsize=256)
def likely_model(text: str, params_b: float | None = None) -> str | None:
    """The catalogue model that a tool's short name ("llama 8B", "qwen3moe 30B.A3B") most likely stands for, or None.

    params_b: the parameters that the file states [billions]; a model of another size is not taken.

    >>> likely_model("llama 8B Q4_0", 8.03), likely_model("qwen3moe 30B.A3B Q4_K - Medium"), likely_model("llama3.1:8b-instruct-q8_0"), likely_model("gemma3 12B", 1.0)
    ('llama-3.1-8b', 'qwen3-30b-a3b', 'llama-3.1-8b', None)
    """
    found = re.match(r"([a-z]+)-?([\d.]*?)(moe)?[ _:-](\d+(?:\.\d+)?)b(?:\.a(\d+(?:\.\d+)?)b)?(?![\w.])", text.strip().lower())
    if not found:
        return None
    family, version, _, size, active = found.groups()
    tail = f"-{size}b" + (f"-a{active}b" if active else "")
    versions = [version] if version else ["3.1", "3.2", "3.3", "2", "1"] if family == "llama" else [""]
    ids = {entry.id for entry in catalogue.entries()}
    for v in versions + (["2.5"] if (family, version) == ("qwen", "2") else []):
        for id in (f"{family}{v}{tail}", f"{family}-{v}{tail}"):
            if id in ids and (params_b is None or abs(parameters(catalogue.load(id))["total"] / 1e9 / params_b - 1) < 0.05):
                return id
    return None


def _base(scenario: Scenario, model, chip, weights: bool, kv: bool) -> Scenario:
    """The scenario that rows of one model and chip are placed in: the question's own only for what the file leaves out."""
    keep = {}
    if model is None:
        keep |= {
            "model": scenario.model,
            "config": scenario.config,
            "read_as": scenario.read_as,
            **({} if weights else {"weights": scenario.weights}),
            **({} if kv else {"kv": scenario.kv}),
        }
    if chip is None:
        keep |= {name: getattr(scenario, name) for name in ("hardware", "peak", "peak_format", "bandwidth", "memory", "link")}
    return Scenario(**({"model": model} if model else {}) | ({"hardware": chip} if chip else {}) | keep)


def _assumed(scenario: Scenario, model, chip, model_text, chip_text) -> list:
    notes = []
    for found, text, own, what in ((model, model_text, scenario.model, "model"), (chip, chip_text, scenario.hardware, "chip")):
        if found is not None and text:
            notes.append(f"The file names the {what} {text}, taken as {found}.")
        if found is None:
            notes.append(
                f"The file names the {what} {text}, which the catalogue does not know; {own} of the question was used."
                if text
                else f"The file names no {what}; {own} of the question was used."
            )
    return notes


def _row(entry: dict, asked: Scenario) -> dict:
    """One placed row, written out."""
    place = entry["place"]
    share = lambda value: "–" if value is None else percent(value / 100)
    what = [str(entry[k]) for k in ("test", "kernel", "op") if entry.get(k)][:1] or [
        f"{format_number(entry[k], 9) if isinstance(entry[k], int) else entry[k]} {word}"
        for k, word in (("n_prompt", "in"), ("n_gen", "out"), ("batch", "requests"), ("concurrency", "in flight"))
        if entry.get(k)
    ]
    tp = asked.tp or asked.devices or 1
    y = place["achieved_flops_per_s"]
    return {
        "metric": entry["metric"],
        "stat": str(entry.get("stat") or ""),
        "what": ", ".join(what)[:80],
        "value": f"{format_number(entry['value'], 4)} {entry.get('unit') or ''}".strip(),
        "phase": place["phase"] or "",
        "bandwidth": format_quantity(place["achieved_bandwidth_bytes_per_s"], "B/s"),
        "flops": format_quantity(y, "FLOP/s"),
        "of_limit": share(place["percent_of_limit"]),
        "of_expected": share(place["percent_of_expectation"]),
        "bound": place["bound"] or "plain",
        "above": bool(place["above_roof"]),
        "verdict": place["verdict"]
        .replace("give it with --batch", "type it above")
        .replace("give it with --prompt", "the question's prompt does not count here"),
        "culprits": place["culprits"],
        "limit": format_quantity(place["limit_s"], "s"),
        "measured": format_quantity(place["measured_s"], "s"),
        "x": place["intensity_flops_per_byte"],
        "y": None if y is None else y / tp,
        "top": None
        if place["attainable_flops_per_s"] is None
        else place["attainable_flops_per_s"] / (tp if place["phase"] == "whole run" else 1),
        "fragment": asked.to_fragment(),
    }


def chart(scenario: Scenario, rows: list) -> dict | None:
    """The roofs of the scenario's chip with a range that holds the rows' points; None if no row has a place."""
    points = [row for row in rows if row["x"] and row["y"]]
    if not points:
        return None
    hardware = evaluate(scenario.replace(batch=1, rate=None)).to_dict()["hardware"]
    bandwidth, peaks = hardware["bandwidth_bytes_per_s"], hardware["peak_flops_per_s"]
    top = max(peaks.values())
    xs, ys = [row["x"] for row in points], [y for row in points for y in (row["y"], row["top"]) if y]
    x0, x1 = min(*xs, 1.0) / 2, max(*xs, top / bandwidth) * 3
    shown = {v: k for k, v in sorted(peaks.items()) if v > 0.02 * top}
    return {
        "name": hardware["name"],
        "range": {"x0": x0, "x1": x1, "y0": min([x0 * bandwidth, *ys]) / 1.5, "y1": max([top, *ys]) * 3},
        "memory": {"xs": [x0, top / bandwidth], "ys": [x0 * bandwidth, top], "label": format_quantity(bandwidth, "B/s")},
        "roofs": [
            {
                "xs": [value / bandwidth, x1],
                "ys": [value, value],
                "label": f"{chart_data.FORMAT_LABELS.get(name, name.upper())} {format_quantity(value, 'FLOP/s')}",
            }
            for value, name in sorted(shown.items())
        ],
    }
