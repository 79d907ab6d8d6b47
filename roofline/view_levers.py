"""The Levers view of the page: each lever as an arrow from the old point to the new one under the roof, its gains and what it costs, written out."""

from __future__ import annotations

from . import chart_data, levers, view
from .errors import InputError
from .report import evaluate
from .scenario import Scenario
from .units import format_number, format_quantity

ARROWS = 8  # levers drawn; more would hide each other
GOALS = tuple(name for name in levers.GOALS if name != "smoothness")


def shown(scenario: Scenario, goal: str = "tpot") -> dict:
    """`view.levers` and besides {"chart": roofs, arrows of the best levers, range; "in_use": what the scenario already gains}.

    Arrows are those of the decode point, for the goal "ttft" of the prefill point; places are those of the roofline chart.

    >>> found = shown(Scenario())
    >>> found["chart"]["arrows"][0]["color"], len(found["chart"]["arrows"]) <= ARROWS
    ('memory', True)
    """
    found = levers.levers(scenario, goal)
    answer = view.levers(found)
    used = view.levers({"goal": goal, "levers": found["in_use"], "flips": found["flips"]})["rows"]
    return answer | {
        "chart": chart(scenario, answer["rows"], found["levers"], "prefill" if goal == "ttft" else "decode"),
        "in_use": [{k: row[k] for k in ("id", "title", "change", "gain", "good")} for row in used],
    }


def chart(scenario: Scenario, rows: list, found: list, phase: str) -> dict | None:
    """Roofs of the scenario's chip and arrows for the levers that help, best first; None where the scenario has no point.

    A lever that changes the chip brings a roof of its own. A row that is drawn gets its number as "arrow".
    """
    report = evaluate(scenario).to_dict()
    here = chart_data._phase(report, phase)
    if not here:
        return None
    arrows, roofs = [], {_roof_of(report): ""}
    for row, lever in zip(rows, found, strict=True):
        if len(arrows) == ARROWS:
            break
        if not row["fits"] or row["value"] is None or row["value"] <= 1.005:
            continue
        try:
            other = evaluate(scenario.replace(**lever["change"])).to_dict()
        except InputError:
            continue
        there = chart_data._phase(other, phase)
        if not there or not there["fits"]:
            continue
        row["arrow"] = len(arrows) + 1
        arrows.append(
            {
                "n": row["arrow"],
                "title": row["title"],
                "color": there["role"],
                "x0": here["x"],
                "y0": here["y"],
                "x1": there["x"],
                "y1": there["y"],
                "tip": f"{format_number(there['x'])} FLOP/byte, {format_quantity(there['y'], 'FLOP/s')}",
            }
        )
        roofs.setdefault(
            _roof_of(other), other["hardware"]["name"] if other["hardware"]["id"] != report["hardware"]["id"] else ""
        )
    xs, ys = [here["x"], *(a["x1"] for a in arrows)], [here["y"], *(a["y1"] for a in arrows)]
    x0, x1 = min(xs) / 4, max(xs) * 4
    lines = []
    for i, ((bandwidth, peak), name) in enumerate(roofs.items()):
        ridge = peak / bandwidth
        if x0 < ridge:
            lines.append(
                {
                    "xs": [x0, min(ridge, x1)],
                    "ys": [x0 * bandwidth, min(ridge, x1) * bandwidth],
                    "color": "memory",
                    "own": i == 0,
                    "label": name or format_quantity(bandwidth, "B/s"),
                }
            )
        if x1 > ridge:
            lines.append(
                {
                    "xs": [max(ridge, x0), x1],
                    "ys": [peak, peak],
                    "color": "compute",
                    "own": i == 0,
                    "label": name or format_quantity(peak, "FLOP/s"),
                }
            )
    return {
        "phase": phase,
        "x": here["x"],
        "y": here["y"],
        "role": here["role"],
        "at": f"{format_number(here['x'])} FLOP/byte, {format_quantity(here['y'], 'FLOP/s')}",
        "arrows": arrows,
        "lines": lines,
        "range": {"x0": x0, "x1": x1, "y0": min(ys) / 3, "y1": max(*ys, *(max(line["ys"]) for line in lines if line["own"])) * 2},
    }


def _roof_of(report: dict) -> tuple:
    return report["hardware"]["bandwidth_bytes_per_s"], report["formats"]["compute_peak_flops_per_s"]
