"""The fabrics of many chips as one, so that one pass of collectives covers them all."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np

from ..fabric import Fabric
from ..parallel import Layout


class Fabrics:
    """Answers what a `Fabric` answers, stacked along the first axis.

    Chips whose networks have the same shape are asked once; answers are kept, since every pass of a block asks the same.
    """

    def __init__(self, each: tuple):
        places = {}
        for i, f in enumerate(each):
            places.setdefault(_shape(f), []).append(i)
        self.kinds, self.rows = tuple(places), [np.array(rows) for rows in places.values()]
        column = lambda values: np.array(list(values)).reshape(-1, 1, 1, 1)
        self.domain = column(f.domain for f in each)
        self.in_network = column(f.in_network for f in each)
        self.chip_bytes_per_s = column(f.chip_bytes_per_s or np.nan for f in each)
        self.network_bytes_per_s = column(f.network_bytes_per_s or np.inf for f in each)
        self.network_send_s = column(f.network_send_s for f in each)
        self.kept = {}

    def inside(self, n):
        """Chips of a group of n that share one domain [chips]."""
        return np.minimum(n, self.domain)

    def domains(self, n):
        """Domains that a group of n chips spreads over."""
        return self._ask("domains", n)

    def share(self, n):
        """Part of a chip's links that a collective over n chips of one domain can use."""
        return self._ask("share", n)

    def reference(self, layout: Layout):
        """Part of a chip's links that the largest group of a layout uses inside one domain."""
        return self._ask("reference", layout)

    def latency(self, op: str, n, outer=1):
        """Time of a small collective over n chips, or of one message [s]."""
        return self._ask("latency", op, n, outer)

    def _ask(self, name: str, *args):
        key = (name, *(_key(a) for a in args))
        if key not in self.kept:
            count = len(self.domain)
            mine = lambda a, rows: a[rows] if isinstance(a, np.ndarray) and len(a) == count else a
            answers = [
                np.asarray(getattr(kind, name)(*(mine(a, rows) for a in args)), dtype=float)
                for kind, rows in zip(self.kinds, self.rows, strict=True)
            ]
            width = max((a.shape[1:] for a in answers if a.ndim), default=(1, 1, 1))
            whole = np.empty((count, *width))
            for rows, answer in zip(self.rows, answers, strict=True):
                whole[rows] = answer
            self.kept[key] = whole
        return self.kept[key]


@lru_cache(maxsize=1024)
def _shape(f: Fabric) -> Fabric:
    """What an answer depends on, without the speeds: bandwidths matter only as the ratio of a mesh's link to all of them."""
    mesh = f.kind == "mesh" and f.pair_bytes_per_s
    return replace(
        f,
        id="",
        chip_bytes_per_s=f.chip_bytes_per_s if mesh else 1.0,
        pair_bytes_per_s=f.pair_bytes_per_s if mesh else None,
        network_bytes_per_s=None,
        in_network=False,
        host=None,
        source="",
        network_source="",
    )


def _key(a):
    if isinstance(a, np.ndarray):
        return a.tobytes(), a.shape
    return (_key(a.tp), _key(a.pp), _key(a.ep)) if isinstance(a, Layout) else a
