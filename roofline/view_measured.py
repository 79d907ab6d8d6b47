"""The Measured view of the page: every shipped measurement beside its limit and its expectation, as columns made at build time."""

from __future__ import annotations

import re
from statistics import median

from . import catalogue, hardware, predict, rows, validate
from .units import format_quantity
from .view import percent, times

# What each kind of row measures; the page words them.
KINDS = ("step", "prefill", "request", "tpot", "stream", "first", "drain")


def measured(expected=predict.expected) -> dict:
    """{"columns": one list a column, "tables": errors by engine, kind and chip, "unseen": errors on groups the fit never saw, "summary", "unmapped"}.

    expected: a function from a `rows.Case` to (expected, low, high) [s], or None to show limits only. Everything is written out.
    """
    found, unmapped = [], []
    for row in rows.shipped():
        try:
            case = rows.case_of(row)
        except rows.Unmapped as reason:
            unmapped.append({"id": row["row_id"], "why": str(reason)})
            continue
        found.append(_point(row, case, expected(case) if expected else (None, None, None)))
    basis = "expected" if expected else "limit"
    return {
        "columns": {name: [p[name] for p in found] for name in found[0]},
        "basis": basis,
        "unmapped": unmapped,
        "tables": {key: _table(found, key) for key in ("engine", "kind", "chip")},
        "unseen": _unseen() if expected else [],
        "summary": _summary(found),
    }


def _point(row: dict, case: rows.Case, guess: tuple) -> dict:
    limit = predict.limit(case)
    expected, low, high = (None if value is None else max(value, limit) for value in guess)
    batch = case.batch if case.batch is not None else predict.running(case)
    scenario = case.resolved.scenario.replace(batch=max(1, round(batch / 1.0)) if batch < 1e9 else 1)
    url = source_url(row)
    return {
        "id": case.row_id,
        "engine": case.engine,
        "chip": case.chip,
        "model": case.model,
        "kind": case.kind,
        "weights": case.weights or row["weight_dtype"],
        "chips": case.resolved.layout.devices,
        "measured": _short(case.measured_s),
        "limit": _short(limit),
        "expected": _short(expected),
        "low": _short(low),
        "high": _short(high),
        "said": f"{row['value']} {row['unit']}",
        "metric": row["metric"],
        "text": format_quantity(case.measured_s, "s"),
        "limit_text": format_quantity(limit, "s"),
        "expected_text": format_quantity(expected, "s"),
        "of_limit": percent(limit / case.measured_s),
        "off": "–" if expected is None else times(case.measured_s / expected),
        "sure": case.flag == "",
        "batching": case.batching,
        "version": case.version,
        "source": f"{row['source_repo']} {row['source_path']}".strip(),
        "url": url,
        "date": row["source_date"],
        "note": row["note"],
        "flag": case.flag,
        "assumed": "; ".join(case.assumed),
        "fragment": scenario.to_fragment(),
    }


def _short(value):
    """Six digits are more than a chart can show."""
    return None if value is None else float(f"{value:.6g}")


def source_url(row: dict) -> str:
    """Where a row's figure can be read, or "" where the source is no file of a public repository.

    >>> source_url({"source_repo": "a/b (fork of c/d)", "source_path": "docs/x.md", "source_rev": "0123abc"})
    'https://github.com/a/b/blob/0123abc/docs/x.md'
    """
    repo = re.match(r"[\w.-]+/[\w.-]+", row["source_repo"])
    if not repo or not re.fullmatch(r"[0-9a-f]{7,40}", row["source_rev"]):
        return ""
    return f"https://github.com/{repo[0]}/blob/{row['source_rev']}/{row['source_path']}"


def _errors(points: list) -> list:
    """|expected / measured - 1|, least first."""
    return sorted(abs(p["expected"] / p["measured"] - 1) for p in points)


def _unseen() -> list:
    """Errors by cross-validation: on groups (model x chip x format) that the fit never saw, all engines first."""
    found = sorted(validate.statistics(), key=lambda s: (s["engine"] != "all engines", s["kind"], -s["rows"]))
    return [
        {
            "kind": s["kind"],
            "engine": s["engine"],
            "all": s["engine"] == "all engines",
            "points": f"{s['rows']:,}",
            "groups": f"{s['groups']:,}",
            "median": percent(s["median"]),
            "p90": percent(s["p90"]),
            "inside": percent(s["coverage"]),
            "engine_unseen": percent(s["median_engine_unseen"]),
        }
        for s in found
    ]


def _table(found: list, key: str) -> list:
    """How far prediction and measurement are apart, by one column, the largest groups first."""
    groups = {}
    for p in found:
        groups.setdefault(p[key], []).append(p)
    result = []
    for name, points in sorted(groups.items(), key=lambda item: (-len(item[1]), item[0])):
        label = hardware.load(name).name if key == "chip" else name
        reached = sorted(p["limit"] / p["measured"] for p in points)
        row = {
            "name": name,
            "label": label,
            "points": f"{len(points):,}",
            "reached": percent(median(reached)),
            "best": percent(reached[-1]),
        }
        told = [p for p in points if p["expected"] is not None]
        if told:
            errors = _errors(told)
            inside = sum(p["low"] <= p["measured"] <= p["high"] for p in told)
            row |= {
                "median": percent(median(errors)),
                "p90": percent(validate._quantile(errors, 0.9)),
                "bias": times(median(p["measured"] / p["expected"] for p in told)),
                "inside": percent(inside / len(told)),
            }
        result.append(row)
    return result


def _summary(found: list) -> dict:
    """The figures of the view's first sentence."""
    reached = [p["limit"] / p["measured"] for p in found]
    told = [p for p in found if p["expected"] is not None]
    errors = _errors(told)
    unseen = {s["kind"]: percent(s["median"]) for s in validate.statistics() if s["engine"] == "all engines"}
    return {
        "decode": unseen.get("decode, single stream", "–"),
        "prefill": unseen.get("prefill, static", "–"),
        "tpot": unseen.get("TPOT in service", "–"),
        "points": f"{len(found):,}",
        "above": f"{sum(r > 1 for r in reached):,}",
        "reached": percent(median(reached)),
        "engines": str(len({p["engine"] for p in found})),
        "chips": str(len({p["chip"] for p in found})),
        "models": str(len({p["model"] for p in found})),
        "median": percent(median(errors)) if errors else "–",
        "p90": percent(validate._quantile(errors, 0.9)) if errors else "–",
        "inside": percent(sum(p["low"] <= p["measured"] <= p["high"] for p in told) / len(told)) if told else "–",
    }


def names(columns: dict) -> dict:
    """{id: name} of the chips and models that the columns mention."""
    return {
        **{id: hardware.load(id).name for id in sorted(set(columns["chip"]))},
        **{id: catalogue.load(id).name or id for id in sorted(set(columns["model"]))},
    }
