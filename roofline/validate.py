"""The prediction beside the truth: `roofline validate`, its error tables and docs/validation.md.

usage: python -m roofline.validate writes the generated part of docs/validation.md and prints the README's table.
"""

from __future__ import annotations

import json
import sys
from datetime import date
from pathlib import Path
from statistics import median

from . import calibration, predict, rows
from .errors import InputError

MAX_FILE = 64 * 2**20  # bytes of a measurements file
# What the calibration aims at on groups never seen: (median, 90th percentile) of the absolute error, by kind of row.
AIMS = {"decode, single stream and static batch together": (0.10, 0.35), "decode, single stream": (0.10, 0.35), "decode, static batch": (0.10, 0.35), "prefill, static": (0.20, 0.60), "TPOT in service": (0.20, 0.60)}


def predictions(table: list) -> tuple:
    """([(case, expected, low, high, limit)], [{"row_id", "reason"}]) of rows read by `rows.read` [s]."""
    found, unmapped = [], []
    for row in table:
        try:
            case = rows.case_of(row)
            found.append((case, *predict.expected(case), predict.limit(case)))
        except rows.Unmapped as reason:
            unmapped.append({"row_id": row.get("row_id", ""), "reason": str(reason)})
        except InputError as error:
            unmapped.append({"row_id": row.get("row_id", ""), "reason": str(error)})
    return found, unmapped


def validate(table: list) -> dict:
    """What the command prints: rows with their times [s], unmapped rows with the reason, and a summary.

    The expectation is kept at or above the limit where the row is no evidence against it: nothing real beats physics.
    """
    found, unmapped = predictions(table)
    lines = [
        {"row_id": case.row_id, "group": case.group, "measured_s": case.measured_s, "limit_s": limit, "expected_s": max(expected, limit), "low_s": max(low, limit), "high_s": max(high, limit),
         "kind": case.kind, "metric": case.metric, "engine": case.engine, "model": case.model, "hardware": case.chip, "flag": case.flag, "assumed": list(case.assumed)}
        for case, expected, low, high, limit in found
    ]
    return {"rows": lines, "unmapped": unmapped, "summary": summary(lines)}


def summary(lines: list) -> dict:
    """Counts, rows faster than their limit, and errors by kind over the rows without a flag."""
    clean = [row for row in lines if not row["flag"]]
    by = {}
    for row in clean:
        by.setdefault(row["kind"], []).append(row)
    sound = [row for row in lines if not any(flag in row["flag"] for flag in rows.UNSOUND_FLAGS)]
    return {
        "rows": len(lines), "flagged": len(lines) - len(clean), "faster_than_limit": [row["row_id"] for row in sound if row["limit_s"] > row["measured_s"]],
        "median_error": _quantile(_errors(clean), 0.5), "p90_error": _quantile(_errors(clean), 0.9), "coverage": _coverage(clean),
        "by_kind": {kind: {"rows": len(members), "median_error": _quantile(_errors(members), 0.5), "p90_error": _quantile(_errors(members), 0.9), "coverage": _coverage(members)} for kind, members in sorted(by.items())},
    }


def _errors(lines: list) -> list:
    return sorted(abs(row["expected_s"] / row["measured_s"] - 1.0) for row in lines)


def _coverage(lines: list) -> float | None:
    return sum(row["low_s"] <= row["measured_s"] <= row["high_s"] for row in lines) / len(lines) if lines else None


def _quantile(values: list, q: float) -> float | None:
    """Linear between the nearest of sorted values; None of none."""
    if not values:
        return None
    at = q * (len(values) - 1)
    low = int(at)
    return values[low] + (values[min(low + 1, len(values) - 1)] - values[low]) * (at - low)


def points() -> list:
    """Every shipped row that maps, compact, for charts: times [s], names, source and the link's fragment."""
    found, _ = predictions(list(rows.shipped()))
    return [
        {"id": case.row_id, "engine": case.engine, "chip": case.chip, "model": case.model, "kind": case.kind, "metric": case.metric, "weights": case.weights, "measured_s": case.measured_s, "limit_s": limit,
         "expected_s": max(expected, limit), "low_s": max(low, limit), "high_s": max(high, limit), "flag": case.flag, "source": case.source, "fragment": case.resolved.scenario.to_fragment()}
        for case, expected, low, high, limit in found
    ]


# ---- tables --------------------------------------------------------------------------------------------------------


def statistics() -> list:
    """The fit's statistics: one dict per kind and engine, errors on groups (model x chip x format) never seen in the fit."""
    return calibration.fitted().get("statistics", [])


def table(engine: str | None = "all engines") -> str:
    """A Markdown table of the errors on groups never seen, for all engines together or for each (None)."""
    lines = ["| what | engine | rows | groups | median error | 90th percentile | band holds | median, engine never seen |", "|---|---|---:|---:|---:|---:|---:|---:|"]
    for s in statistics():
        if s["engine"] == engine or (engine is None and s["engine"] != "all engines" and s["kind"] not in AIMS or s["kind"] in ("prefill, static", "TPOT in service") and engine is None and s["engine"] != "all engines"):
            lines.append(f"| {s['kind']} | {s['engine']} | {s['rows']} | {s['groups']} | {s['median']:.1%} | {s['p90']:.1%} | {s['coverage']:.0%} | {s['median_engine_unseen']:.1%} |")
    return "\n".join(lines)


def aims() -> list:
    """One line for each aim of the calibration: what was aimed at and what the last fit reached."""
    found = {s["kind"]: s for s in statistics() if s["engine"] == "all engines"}
    lines = []
    for kind, (middle, tail) in AIMS.items():
        s = found.get(kind)
        reached = "not in the fit's statistics" if s is None else f"reached {s['median']:.1%} / {s['p90']:.1%}{'' if s['median'] <= middle and s['p90'] <= tail else ': missed'}"
        lines.append(f"* {kind}: aim {middle:.0%} / {tail:.0%}, {reached}")
    return lines


def document() -> str:
    """The whole of docs/validation.md."""
    answer = validate(list(rows.shipped()))
    s, reasons = answer["summary"], {}
    for row in answer["unmapped"]:
        reasons.setdefault(row["reason"], []).append(row["row_id"])
    flags = {}
    for row in answer["rows"]:
        if row["flag"]:
            flags[row["flag"]] = flags.get(row["flag"], 0) + 1
    reached = sorted(row["limit_s"] / row["measured_s"] for row in answer["rows"] if not row["flag"])
    parts = [
        "# Validation", "", "Generated by `python -m roofline.validate`; do not edit. The rows are in `roofline/data/measurements.csv` and `kernels.csv` with their sources, the fit in",
        "`roofline/data/calibration.toml`, and `roofline validate --data FILE.csv` does the same for rows of your own.", "",
        "## Limits", "",
        f"{s['rows']} of {s['rows'] + len(answer['unmapped'])} measurements map to a scenario.",
        "None without a flag is faster than its limit." if not s["faster_than_limit"] else f"Faster than their limit: {', '.join(s['faster_than_limit'])}.",
        f"The median reaches {median(reached):.0%} of it, the best {reached[-1]:.0%}.", "",
        "The limit takes the least routing of experts, the smallest cache format a row leaves open, FP16 accumulation where a chip has it, and for a service all requests decoding at once.", "",
        "## Expectations", "", "Errors are |expected / measured - 1| on groups (model x chip x format) that the fit never saw; the last column leaves the whole engine out.",
        "\"Band holds\": share of rows inside the 10th to 90th percentile band, the band taken from other groups.", "", table(), "",
        "Aims, median and 90th percentile on groups never seen:", "", *aims(), "",
        "By engine:", "", "\n".join(line for line in table(None).splitlines() if "all engines" not in line), "",
        "## What the parameters are", "", "Few numbers of an engine, a family of chips, a release or a format shift each of these (`calibration.PARAMETERS`); none belongs to a row or a model.", "",
        "| parameter | centre | levels | meaning |", "|---|---:|---|---|",
        *(f"| `{name}` | {calibration.natural(kind, centre, calibration.fitted()['parameters'].get(name, {}).get('all', 0.0)):.3g} | {', '.join(levels)} | {meaning} |" for name, (kind, centre, levels, meaning) in calibration.PARAMETERS.items()), "",
        "## Flagged rows", "", "Kept, predicted and left out of the fit and of the tables above; the reason is in the row.", "", *(f"* `{flag}`: {n}" for flag, n in sorted(flags.items())), "",
        "## Rows that do not map", "", *(f"* {reason}: {len(ids)} ({', '.join(ids[:8])}{', ...' if len(ids) > 8 else ''})" for reason, ids in sorted(reasons.items())), *([] if reasons else ["None."]), "",
        "## What is not explained", "",
        "* The same engine, model and chip differ by up to 1.8 times between releases and by 1.5 times between layouts that a row does not tell apart; a release class per engine takes part of it.",
        "* Time to first token under load is mostly queueing and scheduling; the expectation has one overhead and one share of queueing per engine.",
        "* Single sources stand alone: the 405B series on MI300X (unfused FP8 products in an early ROCm release) and MLPerf's Llama-2-70B on MI325X are the only served rows on AMD's chips, so left out they are missed by 30 to 50%.",
        "* Some DeepSeek rows in service are twice as fast as their neighbours with the same layout; whether they speculate is not stated.",
        "* llama.cpp on four cards overlaps the prefill of its stages for an 8B model and hardly for a 70B one in 4 bits; no row says why.",
        "* That experts crowd on some of the ranks which share them was tried and left out: engines do not show it, and it made what was never seen worse.", "",
    ]
    return "\n".join(parts)


# ---- commands ------------------------------------------------------------------------------------------------------


def add_commands(command) -> None:
    """Add `validate` and `calibrate` to the command line. command: cli.build_parser's helper (name, run, text) -> parser."""
    p = command("validate", _validate, "predictions beside measurements (no file: those that come with the package)")
    p.add_argument("--data", help="CSV with the columns of data/measurements.csv")
    p = command("calibrate", _calibrate, "fit the expected times to the shipped measurements and print the cross-validation")
    p.add_argument("--output", help="where to write; default the package's own data/calibration.toml")


def _validate(args):
    if args.data:
        try:
            data = Path(args.data).read_bytes()
        except OSError as error:
            raise InputError("file", args.data, f"cannot be read: {error.strerror or error}") from None
        if len(data) > MAX_FILE:
            raise InputError("file", args.data, f"is larger than {MAX_FILE / 1e6:.0f} MB")
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise InputError("file", args.data, "is not UTF-8 text") from None
        measured = rows.read(text, Path(args.data).name)
    else:
        measured = list(rows.shipped())
    answer = validate(measured)
    if args.json:
        print(json.dumps(answer, allow_nan=False, ensure_ascii=False, indent=1))
        return
    s = answer["summary"]
    print(f"{s['rows']} rows mapped, {len(answer['unmapped'])} not; {s['flagged']} flagged; faster than the limit: {', '.join(s['faster_than_limit']) or 'none'}")
    for kind, k in s["by_kind"].items():
        print(f"  {kind:8} {k['rows']:5} rows  median error {k['median_error']:6.1%}  90th percentile {k['p90_error']:6.1%}  in the band {k['coverage']:4.0%}")
    for row in answer["unmapped"]:
        print(f"  not mapped: {row['row_id']}: {row['reason']}")
    if not args.data:
        print("These rows were in the fit. On groups (model x chip x format) never seen:")
        print(table(None))


def _calibrate(args):
    try:
        from . import fit
    except ImportError:
        raise InputError("numpy", "missing", "is needed by `roofline calibrate`; install it first") from None
    result, _ = fit.calibrate(lambda line: print(line, file=sys.stderr, flush=True))
    target = Path(args.output) if args.output else Path(__file__).with_name("data") / "calibration.toml"
    try:
        target.write_text(fit.to_toml(result, date.today().isoformat()), "utf-8")
    except OSError as error:
        raise InputError("output", str(target), f"cannot be written: {error.strerror or error}") from None
    calibration.fitted.cache_clear()
    calibration.parameter.cache_clear()
    calibration.efficiency.cache_clear()
    if args.json:
        print(json.dumps({"output": str(target), "statistics": statistics()}, allow_nan=False, ensure_ascii=False, indent=1))
        return
    print(table(None))
    print(f"written to {target}")


def main() -> None:
    """Write docs/validation.md beside the package and print the README's table."""
    Path(__file__).parents[1].joinpath("docs", "validation.md").write_text(document(), "utf-8")
    print(table())


if __name__ == "__main__":
    main()
