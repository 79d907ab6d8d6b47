"""From evaluated blocks to an answer: what meets the question, the front, the best of each chip, and why not the others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..errors import InputError
from ..scenario import needs_host
from ..units import format_number, format_quantity, parse_quantity
from .figures import NAMES
from .grid import FAULTS, Block
from .space import Plan, Space
from .table import PLACE, Table, join, table_of

# Objective: (figure, whether less is better, words).
OBJECTIVES = {
    "cost": ("usd_per_million_output_tokens_all_in", True, "USD per million output tokens, their prompts included"),
    "output-cost": ("usd_per_million_output_tokens", True, "USD per million output tokens, decoding alone"),
    "throughput": ("served_tokens_per_s_per_device", False, "output tokens/s per chip, prefill included"),
    "latency": ("tpot_s", True, "time per output token"),
    "ttft": ("ttft_s", True, "time to first token"),
    "ttft-alone": ("ttft_alone_s", True, "time to first token of a prompt by itself"),
    "energy": ("joules_per_output_token_all_in", True, "joules per output token, prefill included"),
}
# Limit of a Question: (figure, whether the figure must stay below, kind of quantity, unit shown, name).
LIMITS = {
    "tpot": ("tpot_s", True, "s", "s", "TPOT"),
    "ttft": ("ttft_s", True, "s", "s", "TTFT"),
    "ttft_alone": ("ttft_alone_s", True, "s", "s", "the TTFT of a prompt by itself"),
    "user": ("tokens_per_s_per_user", False, "count", "tokens/s", "tokens/s per user"),
    "throughput": ("served_tokens_per_s_per_device", False, "count", "tokens/s", "tokens/s per chip"),
    "requests": ("requests_per_s", False, "count", "requests/s", "requests/s"),
    "budget": ("usd_per_hour", True, "USD", "USD/h", "the budget"),
    "usd_per_million": ("usd_per_million_output_tokens_all_in", True, "USD", "USD", "the price per million tokens"),
    "most_chips": ("devices", True, "count", "chips", "the number of chips"),
    "memory_share": ("memory_share", True, "count", "", "the share of memory"),
    "joules": ("joules_per_output_token_all_in", True, "count", "J", "energy per token"),
}
FRONT = ("tokens_per_s_per_user", "served_tokens_per_s_per_device")
_PRUNE = 200_000  # rows kept between blocks before the dominated ones are dropped


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What an answer must meet and what it should be best at.

    objective: one of OBJECTIVES; limits: (name, value) pairs, names of LIMITS: tpot [s]; ttft, when all
    prompts of the batch arrive at once, as in a Report, and ttft_alone, when one arrives by itself [s]; user, throughput [tokens/s];
    requests [1/s]; budget [USD/h]; usd_per_million [USD]; most_chips; memory_share; joules [J]. Values may be text ("33 ms").
    """

    objective: str = "cost"
    limits: tuple = ()

    def __post_init__(self):
        if self.objective not in tuple(OBJECTIVES):
            raise InputError("objective", self.objective, f"must be one of {', '.join(OBJECTIVES)}")
        if not isinstance(self.limits, dict) and not (isinstance(self.limits, (tuple, list)) and all(isinstance(x, (tuple, list)) and len(x) == 2 for x in self.limits)):
            raise InputError("limits", self.limits, 'must be names with values, such as {"tpot": "33 ms"}')
        read = []
        for name, value in self.limits.items() if isinstance(self.limits, dict) else self.limits:
            if name not in LIMITS:
                raise InputError("limit", name, f"must be one of {', '.join(LIMITS)}")
            if value is not None and value != "":
                read.append((name, float(parse_quantity(value, LIMITS[name][2], field=name, low=1e-12, high=1e15))))
        object.__setattr__(self, "limits", tuple(read))


def front(x, y) -> np.ndarray:
    """Indices of the points that no other beats in both, fastest x first: sort by x, keep the running records of y; n log n.

    >>> front(np.array([1.0, 2.0, 3.0, 2.0]), np.array([9.0, 5.0, 1.0, 4.0])).tolist()
    [2, 1, 0]
    """
    order = np.lexsort((-y, -x))
    best = np.maximum.accumulate(np.concatenate(([-np.inf], y[order])))
    return order[y[order] > best[:-1]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """The answer for one model and one load (prompt, output, cached), since others do not compare with it.

    best: the best configuration of each chip that meets the question, best first; front: no configuration that meets it is faster
    for a user and serves more per chip; fronts: the same within each chip {chip id: Table}; why_not: {chip id: sentence} for every
    chip without a configuration, the nearest miss first; nearest: {chip id: Table of one row} the closest that was tried.
    """

    model: str
    load: tuple
    best: Table
    front: Table
    fronts: dict
    why_not: dict
    nearest: dict


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What an exploration found: a Cell for each model and load, in the order asked; counts: of configurations, all cells together."""

    question: Question
    cells: tuple
    counts: dict

    @property
    def cell(self) -> Cell:
        """The first cell, which is the only one of a space with one model and one load."""
        return self.cells[0]


def judge(space: Space, plan: Plan, found, question: Question, progress=None) -> Answer:
    """Judge evaluated blocks by a question.

    found: the blocks, each looked at once, so that a generator of them needs no more memory than one; progress(done, total): called
    after each block; returning False stops with Stopped.
    """
    counts = {
        "evaluated": 0,
        "timed": 0,
        "met": 0,
        "faults": dict.fromkeys(FAULTS, 0),
        "missed": {name: 0 for name, _ in question.limits},
    }
    kept, held = [], 0
    for block in found:
        kept.append(_reduce(block, question, plan, space, counts))
        held += len(kept[-1])
        if held > _PRUNE:
            kept = [_pruned(join(kept), question)]
            held = len(kept[0])
        if progress and progress(counts["evaluated"], plan.rows) is False:
            raise Stopped(counts["evaluated"], plan.rows)
    refused, lost = dict(plan.refused), plan.rows - counts["evaluated"]
    if lost:
        refused["the prefill pool cannot run this model"] = lost
    counts |= {"configurations": counts["evaluated"] + sum(refused.values()), "refused": refused}
    table = join(kept) if kept else Table(plan, space, {name: np.zeros(0, dtype=int) for name in (*PLACE, *NAMES, "fault")})
    return Answer(question=question, cells=_cells(table, question), counts=counts)


class Stopped(Exception):
    """The caller's progress function stopped an exploration; args: configurations done, total."""


def _reduce(block: Block, question: Question, plan: Plan, space: Space, counts: dict) -> Table:
    """Count a block and keep its candidates: for each chip and load its front, its best, and its nearest miss where nothing meets."""
    figures, shape = block.figures, block.shape
    groups, size, loads = shape[0] * shape[3], shape[1] * shape[2], shape[3]
    flat = lambda v: np.moveaxis(np.broadcast_to(v, shape), 3, 1).reshape(groups, size)
    # Back from (group, place within it) to the block's flat index.
    index = lambda group, place: (group // loads * size + place) * loads + group % loads
    timed = flat(block.fault) == 0
    met, worst = timed, None
    counts["evaluated"] += timed.size
    counts["timed"] += int(np.count_nonzero(timed))
    for code, name in enumerate(FAULTS, 1):
        counts["faults"][name] += int(np.count_nonzero(block.fault == code))
    for name, value in question.limits:
        figure, below = LIMITS[name][:2]
        actual = flat(figures.get(figure))
        good = actual <= value if below else actual >= value
        counts["missed"][name] += int(np.count_nonzero(timed & ~good))
        met = met & good
        ratio = actual / value if below else value / actual
        worst = ratio if worst is None else np.fmax(worst, ratio)
    figure, less = OBJECTIVES[question.objective][:2]
    goal = flat(figures.get(figure))
    met = met & np.isfinite(goal)
    counts["met"] += int(np.count_nonzero(met))
    some = met.any(axis=1)
    rows = []
    if some.any():
        best = np.where(met, goal if less else -goal, np.inf).argmin(axis=1)
        y = np.where(met, flat(figures.get(FRONT[1])), -np.inf)
        order = np.argsort(np.where(met, flat(figures.tpot_s), np.inf), axis=1)
        ordered = np.take_along_axis(y, order, axis=1)
        record = np.maximum.accumulate(ordered, axis=1)
        group, at = np.nonzero(ordered > np.concatenate((np.full((groups, 1), -np.inf), record[:, :-1]), axis=1))
        rows += [index(group, order[group, at]), index(np.nonzero(some)[0], best[some])]
    if not some.all():
        none = np.nonzero(~some)[0]
        share = flat(figures.get("memory_share"))[none]
        # Where something has times, the least missed limit; else the least missing memory.
        miss = np.zeros_like(share) if worst is None else worst[none]
        miss = np.where(timed[none].any(axis=1, keepdims=True), np.where(timed[none], miss, np.inf), share)
        rows.append(index(none, np.where(np.isnan(miss), np.inf, miss).argmin(axis=1)))
    return table_of(block, np.unique(np.concatenate(rows)), plan, space)


def judged(table: Table, question: Question) -> tuple:
    """(where all limits and the objective are met, largest ratio by which one is missed, which one) of each row."""
    met = table.columns["fault"] == 0
    ratios = np.zeros((len(question.limits) + 1, len(table)))
    for i, (name, value) in enumerate(question.limits):
        figure, below = LIMITS[name][:2]
        actual = table.columns[figure]
        with np.errstate(all="ignore"):
            ratio = actual / value if below else value / actual
        ratios[i] = np.where(np.isnan(ratio), np.inf, ratio)
        met = met & (ratios[i] <= 1)
    met = met & np.isfinite(table.columns[OBJECTIVES[question.objective][0]])
    return met, ratios.max(axis=0), ratios.argmax(axis=0)


def _groups(table: Table) -> dict:
    """{(model, load index): {chip id: row indices}}."""
    groups = {}
    keys = np.stack([table.columns[name] for name in ("slice", "chip", "load")], axis=1).astype(int)
    unique, inverse = np.unique(keys, axis=0, return_inverse=True)
    order = np.argsort(inverse.reshape(-1), kind="stable")
    ends = np.cumsum(np.bincount(inverse.reshape(-1), minlength=len(unique)))
    for (s, c, load), rows in zip(unique.tolist(), np.split(order, ends[:-1]), strict=True):
        part = table.plan.slices[s]
        groups.setdefault((part.arch.id, load), {}).setdefault(part.chips[c].id, []).append(rows)
    return {cell: {chip: np.concatenate(rows) for chip, rows in chips.items()} for cell, chips in groups.items()}


def _chosen(table: Table, question: Question, rows, met, worst) -> tuple:
    """(best row or None, rows of the front, nearest row or None) of one chip."""
    figure, less = OBJECTIVES[question.objective][:2]
    good = rows[met[rows]]
    if len(good):
        goal = table.columns[figure][good]
        x, y = (table.columns[name][good] for name in FRONT)
        return good[np.lexsort((table.columns["devices"][good], goal if less else -goal))[0]], good[front(x, y)], None
    timed = rows[table.columns["fault"][rows] == 0]
    if len(timed):
        return None, timed[:0], timed[worst[timed].argmin()]
    share = table.columns["memory_share"][rows]
    return None, rows[:0], rows[np.where(np.isnan(share), np.inf, share).argmin()]


def _pruned(table: Table, question: Question) -> Table:
    """Without the rows that cannot be in the answer."""
    met, worst, _ = judged(table, question)
    keep = []
    for chips in _groups(table).values():
        for rows in chips.values():
            best, edge, near = _chosen(table, question, rows, met, worst)
            keep += [edge] + [np.array([i]) for i in (best, near) if i is not None]
    return table.take(np.unique(np.concatenate(keep)))


def _cells(table: Table, question: Question) -> tuple:
    """The answer for each model and load of a table of candidates."""
    space, plan = table.space, table.plan
    met, worst, which = judged(table, question)
    groups, found = _groups(table) if len(table) else {}, []
    figure, less = OBJECTIVES[question.objective][:2]
    for model in dict.fromkeys(part.arch.id for part in plan.slices) or (space.models or (space.base.model,)):
        for load, tokens in enumerate(space.loads):
            chips = groups.get((model, load), {})
            bests, edges, nearest, far = [], {}, {}, {}
            why = {
                id: plan.lacking.get(id) or "no layout of these chips is possible for this model"
                for id in space.chip_ids()
                if id not in chips
            }
            for chip, rows in chips.items():
                best, edge, near = _chosen(table, question, rows, met, worst)
                if best is not None:
                    bests.append(best)
                    edges[chip] = edge
                else:
                    nearest[chip] = table.take(np.array([near]))
                    why[chip] = _reason(nearest[chip], question, worst[near], which[near])
                    # The least missed limit first, then what does not fit by the least, then what cannot be at all.
                    fault, share = (table.columns[name][near] for name in ("fault", "memory_share"))
                    far[chip] = (1, share) if fault else (0, worst[near])
            bests = np.array(bests, dtype=int)
            goal = table.columns[figure][bests]
            every = np.concatenate(list(edges.values())) if edges else np.zeros(0, dtype=int)
            x, y = (table.columns[name][every] for name in FRONT)
            found.append(
                Cell(
                    model=model,
                    load=tokens,
                    best=table.take(bests[np.argsort(goal if less else -goal, kind="stable")]),
                    front=table.take(every[front(x, y)]),
                    fronts={chip: table.take(rows) for chip, rows in edges.items()},
                    why_not=dict(sorted(why.items(), key=lambda x: far.get(x[0], (2, 0.0)))),
                    nearest=nearest,
                )
            )
    return tuple(found)


def _reason(near: Table, question: Question, ratio: float, which: int) -> str:
    """One sentence: why a chip has no configuration that meets the question, told at its nearest one."""
    part, chip, layout, batch, _, _ = near.place(0)
    at = f"{layout.devices} chip{'s' if layout.devices > 1 else ''} (tp {layout.tp}{f', pp {layout.pp}' if layout.pp > 1 else ''}), batch {batch:,}"
    value = lambda name: float(near.columns[name][0])
    fault = int(near.columns["fault"][0])
    if fault:
        if FAULTS[fault - 1] == "link" and needs_host(near.scenario(0)) and chip.host_bytes_per_s is None:
            return f"{chip.name} has no known link to a host's memory"
        if FAULTS[fault - 1] == "link":
            return f"{chip.name} publishes no chip-to-chip bandwidth, and one chip does not hold it"
        if FAULTS[fault - 1] == "unmeasured":
            return f"nothing measured says what {chip.name} reaches"
        need, have = value("total_bytes"), value("available_bytes")
        where = "the prefill pool does not hold the model" if FAULTS[fault - 1] == "prefill" else "does not fit"
        return f"{where}: at best {format_quantity(need, 'B')} are needed and {layout.tp * layout.pp} x {chip.name} ha{'ve' if layout.tp * layout.pp > 1 else 's'} {format_quantity(have, 'B')}"
    if not question.limits or ratio <= 1:
        return f"no {'price' if 'cost' in question.objective else 'figure'} is known for {chip.name}, so {question.objective} cannot be ranked"
    name, limit = question.limits[which]
    figure, below, _, unit, words = LIMITS[name]
    if not np.isfinite(ratio):
        return f"no figure is known for {words} of {chip.name}"
    got, wanted = (_quantity(v, unit) for v in (value(figure), limit))
    return f"misses {words} by {format_number(100 * (ratio - 1), 2)} %: {got} at best where {'at most' if below else 'at least'} {wanted} is asked, with {at}"


def _quantity(value: float, unit: str) -> str:
    return format_quantity(value, unit) if unit in ("s", "B") else f"{format_number(value)} {unit}".strip()
