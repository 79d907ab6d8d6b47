"""What many chips reach of their roofs, as one: an `Efficiency` whose figures are arrays of shape (chips, layouts, 1, 1)."""

from __future__ import annotations

from dataclasses import fields
from types import SimpleNamespace

import numpy as np

from .. import calibration
from ..calibration import Efficiency
from ..hardware import COMPUTE_BITS

# What an engine decides for all its chips alike, and so stays one value.
_COMMON = ("norm", "chunk")


class Reached:
    """Answers what an Efficiency answers, for every chip and layout of a piece; NaN where nothing measured says so.

    each: a list of chips, each a list of Efficiency (or None), one a layout.
    """

    def __init__(self, each: list):
        places = {}
        self._index = np.array([[places.setdefault(id(e), (len(places), e))[0] for e in row] for row in each])
        self._kinds = [e for _, e in places.values()]
        self._first = next((e for e in self._kinds if e is not None), None)
        for f in fields(Efficiency):
            if f.name in _COMMON:
                setattr(self, f.name, getattr(self._first, f.name, None))
            elif f.type == "float":
                setattr(self, f.name, self._stack(lambda e, name=f.name: getattr(e, name)))
        self._kept = {}

    def rate(self, roof: str):
        """Share of the peak of one roof that large matrix products reach."""
        return self._ask("rate", roof)

    def width(self, roof: str) -> float:
        """Bits of the arithmetic that stands in for a roof; the chips of a piece are alike in it, see `space.plan`."""
        return COMPUTE_BITS[roof] if self._first is None else self._first.width(roof)

    def unpack(self, packing: str):
        """Vector operations to unpack one weight of a packing."""
        return self._ask("unpack", packing)

    def multiply(self, packing: str):
        """Vector operations of one multiply-add of a small batch, for weights of a packing."""
        return self._ask("multiply", packing)

    def _ask(self, name: str, argument: str):
        if (name, argument) not in self._kept:
            self._kept[name, argument] = self._stack(lambda e: getattr(e, name)(argument))
        return self._kept[name, argument]

    def _stack(self, read):
        """One figure of all of them; a plain number where all are alike."""
        values = np.array([np.nan if e is None else read(e) for e in self._kinds], dtype=float)
        return values[self._index][:, :, None, None] if (values != values[0]).any() else float(values[0])


def reached(r, chips, layouts, kept: dict) -> Reached:
    """The efficiencies to expect of a resolved scenario of arrays on these chips in these layouts. kept: what was asked before."""

    s = r.scenario
    levers = (s.fused, s.draft, s.routing, s.imbalance, s.offload, s.offload_kv, s.sequence_parallel)
    common = (r.arch.id, id(r.weights), r.activations.name, r.kv.name, *levers)

    def ask(chip, layout):
        # Of the layout, an expectation depends on what its chips talk over.
        key = (*common, chip.id, calibration.wire_of(chip, layout))
        if key not in kept:
            kept[key] = calibration.expectation(
                SimpleNamespace(
                    scenario=s,
                    arch=r.arch,
                    chip=chip,
                    layout=layout,
                    drafter=r.drafter,
                    weights=r.weights,
                    activations=r.activations,
                    kv=r.kv,
                    compute=r.compute,
                    lacks="",
                )
            )
        return kept[key]

    return Reached([[ask(chip, layout) for layout in layouts] for chip in chips])
