"""What a model can do against what it costs: published scores beside active parameters and dollars per million tokens."""

from __future__ import annotations

import tomllib
from functools import lru_cache
from importlib import resources

from . import catalogue
from .errors import InputError
from .model import parameters
from .report import evaluate
from .scenario import Scenario


@lru_cache(maxsize=1)
def _table() -> dict:
    with resources.files("roofline").joinpath("data/scores.toml").open("rb") as file:
        return tomllib.load(file)


def scores() -> tuple:
    """(model id, score [%], {"by", "how", "url", "retrieved"}, whether it reasons at length) of every score in data/scores.toml.

    >>> next(row[1] for row in scores() if row[0] == "deepseek-v3")
    75.9
    """
    table = _table()
    return tuple((row["model"], float(row["value"]), {k: str(v) for k, v in table["source"][row["source"]].items()}, row.get("reasoning", False)) for row in table["score"])


def capability(scenario: Scenario, most: int = 64) -> dict:
    """Score, active parameters and price of every scored model under one scenario: {"benchmark", "unit", "about", "models": [...]}.

    Each model runs with the scenario's chip, load and formats, on the fewest chips (up to `most`) that hold it: tensor parallel inside
    the fast links, then pipeline stages of such groups. Its price is the whole bill over the output tokens, expected where there is an expectation, else at the limit.
    A model that reasons at length writes many more tokens for an answer: its price is per token all the same, and `reasoning` says so.
    `frontier`: no other model of its kind (reasoning or not) scores as much for as little, and better in one of the two. Models that
    fit on no such chips have no price.
    """
    rows = []
    for id, value, source, reasoning in scores():
        arch = catalogue.load(id)
        counts = parameters(arch)
        row = {"model": id, "name": arch.name or id, "score": value, "by": source["by"], "how": source["how"], "url": source["url"], "retrieved": source["retrieved"], "reasoning": reasoning,
               "total_parameters": counts["total"], "active_parameters": counts["active"], "devices": None, "usd_per_million_output_tokens": None, "usd_per_million_all_in": None, "tpot_s": None}
        found = _smallest(scenario, id, most)
        if found is not None:
            devices, report = found
            money = lambda key: report.cost["expected_" + key] or report.cost[key]
            row |= {"devices": devices, "usd_per_million_output_tokens": money("usd_per_million_output_tokens"), "usd_per_million_all_in": money("usd_per_million_output_tokens_all_in"),
                    "tpot_s": report.serving["expected_tpot_s"] or report.serving["tpot_s"]}
        rows.append(row)
    for row in rows:
        row["frontier"] = row["usd_per_million_all_in"] is not None and not any(_beats(other, row) for other in rows)
    rows.sort(key=lambda row: -row["score"])
    table = _table()
    return {"benchmark": table["benchmark"], "unit": table["unit"], "about": table["about"], "models": rows}


def _beats(one: dict, two: dict) -> bool:
    """Whether a model scores as much for as little as another of its kind, and is better in one of the two."""
    price, other = one["usd_per_million_all_in"], two["usd_per_million_all_in"]
    if price is None or one["reasoning"] != two["reasoning"]:
        return False
    return one["score"] >= two["score"] and price <= other and (one["score"] > two["score"] or price < other)


def _smallest(scenario: Scenario, id: str, most: int):
    """(chips, Report) of the fewest chips on which a model fits under a scenario, spread as `ways.ways_to_fit` says; None above `most`."""
    alone = {"model": id, "config": "", "read_as": "", "devices": 1, "tp": 1, "pp": 1, "ep": 1, "dp": 1, "prefill_hardware": "", "rate": None}
    try:
        report = evaluate(scenario.replace(**alone))
        more = next((way["change"] for way in report.memory.get("ways", ()) if "devices" in way["change"]), None)
        if more and more["devices"] <= most:
            report = evaluate(scenario.replace(**alone | more))
    except InputError:
        return None
    return None if report.serving["tpot_s"] is None else (report.layout["devices"], report)
