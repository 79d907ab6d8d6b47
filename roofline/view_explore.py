"""The Explore view of the page: a design space tried block by block, so that the page can show progress and stop, and the answer written out.

NumPy comes with `roofline.explore`, which is imported only when something is explored.
"""

from __future__ import annotations

from csv import writer
from functools import lru_cache
from io import StringIO
from json import dumps, loads

from .errors import InputError
from .scenario import Scenario
from .units import format_number, format_quantity
from .view import THIN, count, format_label, percent, times

MAX_ROWS = 2_000_000  # configurations of one space: their figures are kept, so that a slider only judges anew
STRIDE = 120_000  # configurations of one step: about a tenth of a second, after which the calculator may have its turn
HUES = 7  # chips told apart by colour; the rest are grey
SHOWN = 12  # chips whose whole front is drawn
COLUMNS = {  # of the table: what they are sorted by
    "user": "tokens_per_s_per_user",
    "throughput": "served_tokens_per_s_per_device",
    "tpot": "tpot_s",
    "ttft_alone": "ttft_alone_s",
    "cost": "usd_per_million_output_tokens_all_in",
    "per_hour": "usd_per_hour",
    "energy": "joules_per_output_token_all_in",
    "memory": "memory_share",
    "devices": "devices",
}


class Run:
    """One space on its way: its blocks as far as they are evaluated."""

    def __init__(self, space):
        from .explore import blocks, plan

        self.space, self.plan = space, plan(space)
        if self.plan.rows > MAX_ROWS:
            raise InputError(
                "space",
                f"{self.plan.rows:,} configurations",
                f"must be at most {MAX_ROWS:,} in the browser; try fewer chips, formats or batches, or the command line",
            )
        self.blocks, self.done, self._rest = [], 0, blocks(space, self.plan)
        self.finished = False

    def advance(self) -> None:
        """Evaluate about STRIDE more configurations."""
        start = self.done
        while self.done < start + STRIDE:
            block = next(self._rest, None)
            if block is None:
                self.finished = True
                return
            self.blocks.append(block)
            self.done += block.rows

    def judge(self, question):
        from .explore import judge

        return judge(self.space, self.plan, self.blocks, question)


@lru_cache(maxsize=1)
def _run(space) -> Run:
    return Run(space)


def step(scenario: Scenario, fields: dict, cell: int = 0) -> dict:
    """One step of an exploration: {"done", "total", "share", "answer"}; the answer is None until all is tried, after which a new question of the same space is answered at once.

    cell: which model and load to show, an index of the answer's "cells".
    """
    from .explore.request import space_of

    space, question = space_of(scenario, fields)
    run = _run(space)
    if not run.finished:
        run.advance()
    answer = shown(run.judge(question), space.basis, cell) if run.finished else None
    share = 1.0 if run.finished else run.done / run.plan.rows
    return {"done": f"{run.done:,}", "total": f"{run.plan.rows:,}", "share": share, "answer": answer}


def opened(scenario: Scenario, fields: dict, at: list) -> Scenario:
    """The configuration that a point or a row of an answer stands for. at: its "at"."""
    from .explore.request import space_of
    from .explore.table import PLACE, Table

    if not isinstance(at, list) or len(at) != len(PLACE) or not all(isinstance(i, int) and i >= 0 for i in at):
        raise InputError("at", at, f"must be {len(PLACE)} whole numbers, as an answer gives them")
    run = _run(space_of(scenario, fields)[0])
    try:
        return Table(run.plan, run.space, {name: [i] for name, i in zip(PLACE, at, strict=True)}).scenario(0)
    except IndexError:
        raise InputError("at", at, "is no configuration of this space; search it again") from None


def csv(scenario: Scenario, fields: dict, cell: int = 0) -> str:
    """The best configuration of each chip with all its figures, as a CSV file."""
    from .explore.request import space_of

    space, question = space_of(scenario, fields)
    run = _run(space)
    while not run.finished:
        run.advance()
    rows = _cell(run.judge(question), cell).best.rows()
    lines = [list(rows[0])] + [["" if v is None else v for v in row.values()] for row in rows] if rows else []
    text = StringIO()
    writer(text, lineterminator="\n").writerows(lines)
    return text.getvalue()


def _cell(found, cell: int):
    return found.cells[cell if 0 <= cell < len(found.cells) else 0]


def shown(found, basis: str, which: int = 0) -> dict:
    """One cell of an Answer as the page draws it. "at" of a row or a point is what `opened` takes."""
    from .explore.answer import OBJECTIVES
    from .explore.request import line, name_of
    from .explore.request import shown as written

    objective, cell = found.question.objective, _cell(found, which)
    figure, less, words = OBJECTIVES[objective]
    best = [written(cell.best.names(i) | cell.best.figures(i)) for i in range(len(cell.best))]
    over = lambda row: row[figure] / best[0][figure] if best[0][figure] else None
    rows = [
        {
            **{name: row[name] for name in ("hardware", "name", "vendor", "grade", "bound")},
            "at": cell.best.at(i),
            "x": row["tokens_per_s_per_user"],
            "y": row["served_tokens_per_s_per_device"],
            "text": row["text"] | {"over": times(over(row)), "goal": _goal(figure, row[figure])},
            "sort": {"title": row["name"], "over": over(row), **{key: row[name] for key, name in COLUMNS.items()}},
        }
        for i, row in enumerate(best)
    ]
    hues = {row["hardware"]: f"hue{i + 1}" if i < HUES else "plain" for i, row in enumerate(rows[:SHOWN])}
    lines, points = [], []
    for row in rows[:SHOWN]:
        table = cell.fronts[row["hardware"]]
        drawn = {"name": row["name"], "color": hues[row["hardware"]], **line(table)}
        for i, (x, y, title) in enumerate(zip(drawn["x"], drawn["y"], drawn.pop("title"), strict=True)):
            told = {"title": title, "user": format_number(x), "throughput": format_number(y)}
            points.append({"x": x, "y": y, "name": row["name"], "color": drawn["color"], "at": table.at(i), **told})
        lines.append(drawn)
    counts, front = found.counts, cell.front.columns
    tokens = lambda load: {name: f"{n:,}" for name, n in zip(("prompt", "output", "cached"), load, strict=True)}
    return {
        "question": {
            "objective": objective,
            "figure": figure,
            "less_is_better": less,
            "words": words,
            "limits": dict(found.question.limits),
        },
        "basis": basis,
        "rows": rows,
        "points": points,
        "lines": lines,
        "front": {"x": front["tokens_per_s_per_user"].tolist(), "y": front["served_tokens_per_s_per_device"].tolist()},
        "why_not": [
            {"hardware": id, "name": name_of(id), "why": why, "at": cell.nearest[id].at(0) if id in cell.nearest else None}
            for id, why in cell.why_not.items()
        ],
        "refused": [{"why": why, "n": f"{n:,}"} for why, n in counts["refused"].items()],
        "cells": [{"model": c.model, **tokens(c.load)} for c in found.cells],
        "cell": next(i for i, c in enumerate(found.cells) if c is cell),
        "counts": {
            "configurations": f"{counts['configurations']:,}",
            "timed": f"{counts['timed']:,}",
            "met": f"{counts['met']:,}",
            "unfit": f"{counts['faults']['memory']:,}",
            "chips": str(len(rows)),
            "none": str(len(cell.why_not)),
        },
    }


def _goal(figure: str, value) -> str:
    """A figure of an objective, written out.

    >>> _goal("tpot_s", 0.0182).replace("\\u2009", " "), _goal("usd_per_million_output_tokens", 0.749)
    ('18.2 ms', '$0.749')
    """
    if value is None:
        return "–"
    if figure.startswith("usd"):
        return f"${format_number(value)}"
    if figure.startswith("joules"):
        return format_quantity(value, "J")
    return format_quantity(value, "s") if figure.endswith("_s") else f"{format_number(value)} tokens/s"


def tornado(form: dict, objective: str, by: float) -> dict:
    """What moves the question's own answer most: rows of bars around it, largest first."""
    from .explore.request import explore_request

    found = explore_request({"ask": "sensitivity", "scenario": form, "objective": objective, "step": by})
    base, rows = found["base"], [row for row in found["rows"] if row["swing"] > 1e-6]
    far = max([abs(row[side] / base - 1) for row in rows for side in ("low", "high")] or [1.0])
    change = lambda v: f"{'+' if v > base else '−' if v < base else '±'}{percent(abs(v / base - 1))}"
    return {
        "base": _goal(found["figure"], base),
        "less": found["less_is_better"],
        "step": percent(by),
        "rows": [
            {
                "parameter": row["parameter"],
                "swing": percent(row["swing"]),
                "low": change(row["low"]),
                "high": change(row["high"]),
                "low_at": (row["low"] / base - 1) / far,
                "high_at": (row["high"] / base - 1) / far,
                "low_value": _goal(found["figure"], row["low"]),
                "high_value": _goal(found["figure"], row["high"]),
                "fits": row["high_fits"] and row["low_fits"],
            }
            for row in rows
        ],
    }


@lru_cache(maxsize=1)
def _sizing(asked: str):
    from .explore.request import sizing_of

    form, fields, given = loads(asked)
    return sizing_of(Scenario.from_dict(form), fields, given)


def fleet(form: dict, fields: dict, given: dict) -> dict:
    """One step of sizing chips and money for a mix of requests, as `step`: the answer, a row a chip, is None until all is tried."""
    sizing = _sizing(dumps([{k: v for k, v in form.items() if v not in (None, "")}, fields, given], sort_keys=True))
    start = sizing.done
    while not sizing.finished and sizing.done < start + STRIDE:
        sizing.advance()
    share = 1.0 if sizing.finished else sizing.done / sizing.total
    return {"done": f"{sizing.done:,}", "total": f"{sizing.total:,}", "share": share, "answer": _fleet(sizing.answer()) if sizing.finished else None}


def _fleet(found: dict) -> dict:
    """A fleet as the page shows it."""
    from .explore.request import name_of

    money = lambda v: "–" if v is None else f"${format_number(v)}"
    rows = [
        {
            "hardware": row["hardware"],
            "fragment": row["fragment"],
            "text": {
                "title": f"{row['devices']:,} × {row['name']}",
                "layout": " ".join(f"{n} {row[n]}" for n in ("tp", "pp", "ep", "dp") if row[n] > 1) or "–",
                "replicas": f"{row['replicas']:,.0f}",
                "batch": f"{row['batch']:,}",
                "weights": format_label(row["weights"]),
                "per_hour": money(row["usd_per_hour"]),
                "watts": format_quantity(row["watts"], "W"),
                "busy": percent(row["utilisation"]),
                "tpot": format_quantity(row["tpot_s"], "s"),
                "ttft": format_quantity(max(row["ttft_s"]), "s"),
            },
        }
        for row in found["best"]
    ]
    mix = [
        {
            "name": c["name"],
            "rate": format_number(c["requests_per_s"]),
            "prompt": f"{c['prompt']:,}",
            "output": f"{c['output']:,}",
        }
        for c in found["mix"]
    ]
    return {
        "rows": rows,
        "mix": mix,
        "rate": format_number(found["requests_per_s"]),
        "headroom": percent(found["headroom"]),
        "evaluated": f"{found['evaluated']:,}",
        "why_not": [{"hardware": id, "name": name_of(id), "why": why} for id, why in found["why_not"].items()],
    }


def mixes() -> list:
    """The workload mixes that come with the package."""
    from .explore.fleet import presets

    return [{"id": id, "name": row["name"], "source": row["source"]} for id, row in presets().items()]


def capability(scenario: Scenario) -> dict:
    """Published scores beside active parameters and price per million tokens, on the scenario's chip under its load."""
    from .capability import capability as scored

    found = scored(scenario)
    money = lambda v: "–" if v is None else f"${format_number(v)}"
    rows = [
        {
            "model": m["model"],
            "name": m["name"],
            "by": m["by"],
            "how": m["how"],
            "url": m["url"],
            "reasoning": m["reasoning"],
            "frontier": m["frontier"],
            "devices": None if m["devices"] is None else str(m["devices"]),
            "score": f"{m['score']:g}{THIN}%",
            "active": count(m["active_parameters"]),
            "total": count(m["total_parameters"]),
            "price": money(m["usd_per_million_all_in"]),
            "tpot": format_quantity(m["tpot_s"], "s"),
            "x": m["usd_per_million_all_in"],
            "z": m["active_parameters"],
            "y": m["score"],
        }
        for m in found["models"]
    ]
    return {"benchmark": found["benchmark"], "about": found["about"], "rows": rows}
