"""The Explore view of the page: a design space tried block by block, so that the page can show progress and stop, and the answer written out.

NumPy comes with `roofline.explore`, which is imported only when something is explored.
"""

from __future__ import annotations

from functools import lru_cache

from .errors import InputError
from .scenario import Scenario
from .units import format_number, format_quantity
from .view import THIN, count, percent, times

MAX_ROWS = 2_000_000  # configurations of one space: their figures are kept, so that a slider only judges anew
HUES = 7  # chips told apart by colour; the rest are grey


class Run:
    """One space on its way: its blocks as far as they are evaluated."""

    def __init__(self, space):
        from .explore import blocks, plan

        self.plan = plan(space)
        if self.plan.rows > MAX_ROWS:
            raise InputError(
                "space",
                f"{self.plan.rows:,} configurations",
                f"must be at most {MAX_ROWS:,} in the browser; try fewer chips, formats or batches, or the command line",
            )
        self.blocks, self.done, self._rest = [], 0, blocks(space, self.plan)
        self.finished = False

    def advance(self) -> None:
        """Evaluate one more block."""
        block = next(self._rest, None)
        self.finished = block is None
        if block is not None:
            self.blocks.append(block)
            self.done += block.rows


@lru_cache(maxsize=1)
def _run(space) -> Run:
    return Run(space)


def step(scenario: Scenario, fields: dict) -> dict:
    """One step of an exploration: {"done", "total", "share", "answer"}; the answer is None until the last block, after which a new question of the same space is answered at once."""
    from .explore import judge
    from .explore.request import space_of, to_dict

    space, question = space_of(scenario, fields)
    run = _run(space)
    if not run.finished:
        run.advance()
        return {"done": f"{run.done:,}", "total": f"{run.plan.rows:,}", "share": run.done / max(1, run.plan.rows), "answer": None}
    return {
        "done": f"{run.done:,}",
        "total": f"{run.plan.rows:,}",
        "share": 1.0,
        "answer": shown(to_dict(judge(space, run.plan, run.blocks, question), space)),
    }


def shown(answer: dict) -> dict:
    """An answer of `explore_request` as the page draws it."""
    best, figure = answer["best"], answer["question"]["figure"]
    rows = []
    for row in best:
        rows.append(
            {
                "hardware": row["hardware"],
                "name": row["name"],
                "vendor": row["vendor"],
                "grade": row["grade"],
                "bound": row["bound"],
                "fragment": row["fragment"],
                "text": row["text"] | {"over": times(row["over_best"])},
                "sort": {
                    "title": row["name"],
                    "user": row["tokens_per_s_per_user"],
                    "throughput": row["served_tokens_per_s_per_device"],
                    "tpot": row["tpot_s"],
                    "ttft_alone": row["ttft_alone_s"],
                    "cost": row["usd_per_million_output_tokens_all_in"],
                    "per_hour": row["usd_per_hour"],
                    "energy": row["joules_per_output_token_all_in"],
                    "memory": row["memory_share"],
                    "devices": row["devices"],
                    "over": row["over_best"],
                },
            }
        )
    hues = {f["hardware"]: f"hue{i + 1}" if i < HUES else "plain" for i, f in enumerate(answer["fronts"])}
    points = [
        {
            "x": x,
            "y": y,
            "name": f["name"],
            "color": hues[f["hardware"]],
            "title": title,
            "fragment": fragment,
            "user": format_number(x),
            "throughput": format_number(y),
        }
        for f in answer["fronts"]
        for x, y, title, fragment in zip(f["x"], f["y"], f["title"], f["fragment"], strict=True)
    ]
    lines = [{"name": f["name"], "color": hues[f["hardware"]], "x": f["x"], "y": f["y"]} for f in answer["fronts"]]
    counts = answer["counts"]
    return {
        "question": answer["question"],
        "basis": answer["basis"],
        "rows": rows,
        "points": points,
        "lines": lines,
        "front": {
            "x": [row["tokens_per_s_per_user"] for row in answer["front"]],
            "y": [row["served_tokens_per_s_per_device"] for row in answer["front"]],
        },
        "why_not": answer["why_not"],
        "model": answer["model"],
        "load": {"prompt": f"{answer['prompt']:,}", "output": f"{answer['output']:,}", "cached": f"{answer['cached']:,}"},
        "counts": {
            "configurations": f"{counts['configurations']:,}",
            "timed": f"{counts['timed']:,}",
            "met": f"{counts['met']:,}",
            "unfit": f"{counts['faults']['memory']:,}",
            "chips": str(len(rows)),
            "none": str(len(answer["why_not"])),
        },
        "winner": None if not best else best[0]["text"] | {"goal": _goal(figure, best[0][figure])},
        "more": len(answer["others"]),
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


def fleet(form: dict, fields: dict, given: dict) -> dict:
    """Chips and money for a mix of requests, a row a chip."""
    from .explore.request import explore_request

    found = explore_request({"ask": "fleet", "scenario": form, "explore": fields, **given})
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
                "weights": row["weights"].upper() if row["weights"].islower() else row["weights"],
                "per_hour": money(row["usd_per_hour"]),
                "watts": format_quantity(row["watts"], "W"),
                "busy": percent(row["utilisation"]),
                "tpot": format_quantity(row["tpot_s"], "s"),
                "ttft": format_quantity(max(row["ttft_s"]), "s"),
            },
        }
        for row in found["best"]
    ]
    from .hardware import load

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
        "why_not": [
            {"hardware": id, "name": load(id).name if id != "custom" else "custom chip", "why": why, "fragment": None}
            for id, why in found["why_not"].items()
        ],
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
