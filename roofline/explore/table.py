"""Rows of an exploration as columns, and each row as the Scenario it stands for."""

from __future__ import annotations

import numpy as np

from ..scenario import Scenario
from .figures import BOUNDS, NAMES
from .grid import Block
from .space import Plan, Space

PLACE = ("slice", "chip", "layout", "batch", "load", "pool")  # the columns that say which configuration a row is


class Table:
    """Rows of an exploration as columns: `columns[name]` is a NumPy array, one value a row; see NAMES for the figures.

    slice, chip, layout, batch, load, pool say which configuration a row is; `scenario(i)` gives it back as a Scenario.
    """

    def __init__(self, plan: Plan, space: Space, columns: dict):
        self.plan, self.space, self.columns = plan, space, columns

    def __len__(self) -> int:
        return len(self.columns["slice"])

    def take(self, rows) -> Table:
        """Some rows, in that order."""
        return Table(self.plan, self.space, {name: values[rows] for name, values in self.columns.items()})

    def place(self, i: int) -> tuple:
        """(slice, chip, layout, batch, (prompt, output, cached), prefill pool or None) of row i."""
        at = {name: int(self.columns[name][i]) for name in PLACE}
        part = self.plan.slices[at["slice"]]
        return (
            part,
            part.chips[at["chip"]],
            part.layouts[at["layout"]],
            self.space.batches[at["batch"]],
            self.space.loads[at["load"]],
            part.pools[at["pool"]],
        )

    def scenario(self, i: int) -> Scenario:
        """Row i as a Scenario, which `evaluate` answers with the same figures."""
        part, chip, layout, batch, load, pool = self.place(i)
        price = part.prices[int(self.columns["chip"][i])]
        one = lambda n: None if n == 1 else n
        changes = {
            "hardware": chip.id,
            "tp": one(layout.tp),
            "pp": one(layout.pp),
            "ep": one(layout.ep),
            "dp": one(layout.dp),
            "batch": batch,
            "prompt": load[0],
            "output": load[1],
            "cached": load[2],
        }
        if price is not None:
            changes["usd_per_hour"] = price
        if pool:
            changes |= {"prefill_hardware": chip.id if pool[0] == "same" else pool[0], "prefill_devices": pool[1]}
        return part.scenario.replace(**changes)

    def at(self, i: int) -> list:
        """Which configuration row i is, as the numbers of PLACE."""
        return [int(self.columns[name][i]) for name in PLACE]

    def names(self, i: int) -> dict:
        """What row i is, in plain numbers and names: its model, chip, layout, formats, load and prefill pool."""
        part, chip, layout, batch, load, pool = self.place(i)
        weights = part.formats["weights"]
        return {
            "model": part.arch.id,
            "hardware": chip.id,
            "name": chip.name,
            "vendor": chip.vendor,
            "kind": chip.kind,
            "grade": chip.grade,
            "tp": layout.tp,
            "pp": layout.pp,
            "ep": layout.ep,
            "dp": layout.dp,
            "weights": getattr(weights, "name", str(weights)),
            "activations": part.formats["activations"].name,
            "kv": part.formats["kv"].name,
            "batch": batch,
            "prompt": load[0],
            "output": load[1],
            "cached": load[2],
            "draft": part.scenario.draft,
            "prefill_hardware": pool and (chip.id if pool[0] == "same" else pool[0]),
            "prefill_devices": pool and pool[1],
            "bound": BOUNDS[int(self.columns["bound"][i])],
        }

    def figures(self, i: int) -> dict:
        """The figures of row i, see NAMES; unknown ones are None."""
        return {name: _plain(self.columns[name][i]) for name in NAMES if name != "bound"}

    def row(self, i: int) -> dict:
        """Row i in plain numbers and names, with the link's fragment that opens it in the calculator; unknown figures are None."""
        return self.names(i) | self.figures(i) | {"fragment": self.scenario(i).to_fragment()}

    def rows(self) -> list:
        """All rows, see `row`."""
        return [self.row(i) for i in range(len(self))]


def _plain(value):
    value = float(value)
    return value if np.isfinite(value) else None


def table_of(block: Block, flat, plan: Plan, space: Space) -> Table:
    """The configurations with these flat indices of a block, all figures included."""
    figures = block.figures.take(flat, block.shape)
    rows = len(flat)
    columns = {name: np.broadcast_to(np.asarray(figures.get(name), dtype=float), (rows,)) for name in NAMES}
    where = np.unravel_index(flat, block.shape)
    columns |= {name: where[axis] + block.at[axis] for axis, name in enumerate(("chip", "layout", "batch", "load"))}
    columns |= {"slice": np.full(rows, block.number), "pool": np.full(rows, block.pool), "fault": block.fault.reshape(-1)[flat]}
    return Table(plan, space, columns)


def join(tables: list) -> Table:
    """Tables of one plan, one after another."""
    first = tables[0]
    return Table(first.plan, first.space, {name: np.concatenate([t.columns[name] for t in tables]) for name in first.columns})
