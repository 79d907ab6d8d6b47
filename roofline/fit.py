"""Fit the calibration to the measurements: `roofline calibrate`. NumPy is imported here only.

Every row is a weighted sum of passes, every pass a sum of operators, so all operators of all rows are laid out once as arrays and
the formulas of `calibration` are evaluated on them. Least squares on the log of expected over measured, each parameter held near
its centre by a normal prior (ridge), each row weighed down when it is far off (so that one odd source does not steer the rest).
"""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from . import calibration as c
from . import hardware, roof, rows
from .phase import attention_format, operators_of
from .parallel import Layout
from .predict import terms

KERNEL_WEIGHT = 0.15  # of one kernel, against 1 for a group of end-to-end rows
NOISE = 0.15  # a row whose expected time is this far off (log) is ordinary


class Table:
    """All operators of all rows as arrays, in four kinds: products, attention, vector, collectives."""

    def __init__(self, cases, kernels=()):
        self.cases, self.kernels = list(cases), list(kernels)
        self.extra = []
        self.kinds = {k: [] for k in ("product", "attention", "vector", "collective", "pass")}
        self.contexts, self.index = [], {}
        for i, case in enumerate(self.cases):
            self._add(i, case)
        for i, kernel in enumerate(self.kernels, len(self.cases)):
            self._kernel(i, kernel)
        self.arrays = {k: self._stack(v) for k, v in self.kinds.items()}
        self.measured = np.array([row.measured_s for row in (*self.cases, *self.kernels)])

    def _context(self, engine, release, chip, wire, roof_name, packing):
        key = (engine, release, c.family_of(chip), c.generation_of(chip), roof_name, wire, packing)
        if key not in self.index:
            self.index[key] = len(self.contexts)
            self.contexts.append(dict(zip(c.LEVELS, ("", *key), strict=True)))
        return self.index[key]

    def _add(self, i, case):
        r = case.resolved
        roofs = roof.roofs_of(r.chip, r.layout, (r.compute, r.activations.compute, attention_format(r)), r.scenario.network)
        wire, release = c.wire_of(r.chip, r.layout), c.release_of(case.engine, case.version)
        context = lambda name, packing: self._context(case.engine, release, r.chip, wire, name, packing)
        plain = context("bf16", "native")
        for term in terms(case):
            w, rounds, p = term.weight * term.bubble, term.rounds, term.passes
            self.kinds["pass"].append((i, plain, w * rounds, w * p.sequences, term.decode))
            for op in operators_of(r, p):
                self._operator(i, op, w, rounds, r.layout.tp, roofs, r.chip, case.engine, context, case.scale)
        if case.kind == "first":
            self.extra.append((i, plain, case.batch or 1.0))

    def _kernel(self, i, kernel):
        chip = hardware.load(kernel.chip)
        roofs = roof.roofs_of(chip, Layout(), ("bf16", kernel.operators[0].roof))
        context = lambda name, packing: self._context(kernel.engine, "kernels", chip, "fast", name, packing)
        for op in kernel.operators:
            self._operator(i, op, 1.0, 1.0, 1, roofs, chip, kernel.engine, context, 1.0)

    def _operator(self, i, op, w, rounds, tp, roofs, chip, engine, context, scale):
        """One operator of a pass (weight w) as a line of its kind's array."""
        share, shards = (1 if op.replicated else tp), min(tp, op.kv_shards)
        if op.group == "collective":
            self.kinds["collective"].append((i, context("bf16", "native"), w, roof.link_seconds(op, roofs), op.latency_s * rounds, op.messages * rounds, op.name == "pipeline hop"))
            return
        if op.roof == "vector":
            self.kinds["vector"].append((i, context("bf16", "native"), w, (op.weight_bytes * rounds + op.activation_bytes) / share / roofs.bandwidth, op.count * rounds))
            return
        name = chip.roof_of(op.roof)[0]
        peak = roofs.peaks[op.roof] * c.accumulation_gain(engine, chip, name)
        if op.group == "attention_core" or not op.tokens:
            moved = (op.kv_read_bytes + op.kv_write_bytes) / shards + op.activation_bytes / share
            self.kinds["attention"].append((i, context(name, "native"), w, op.flops / share / peak, moved / roofs.bandwidth, c.few_queries(op) / share / roofs.peaks["vector"], op.count * rounds))
            return
        packing = c.packing_of(op, c.COMPUTE_BITS[name])
        self.kinds["product"].append((
            i, context(name, packing), w, op.load * op.flops / share, op.flops / (2 * op.tokens) / share, op.weight_bytes * scale * rounds / share, op.activation_bytes / share,
            op.tokens / rounds, op.inner, op.count / c.mates_of(op.name), rounds, op.group == "experts", packing != "native", 1.0 - 1.0 / op.reach, peak, roofs.peaks["vector"], roofs.bandwidth))

    def _stack(self, entries):
        return [np.array(col, dtype=float) for col in zip(*entries)] if entries else []


class Parameters:
    """The layout of the coefficient vector: one per parameter and level value that the table has."""

    def __init__(self, table):
        self.names, self.sigma, self.slots = [], [], {}
        for name, (_, _, levels, _) in c.PARAMETERS.items():
            for level, sigma in levels.items():
                values = sorted({ctx[level] for ctx in table.contexts})
                ids = {}
                for v in values:
                    ids[v] = len(self.names)
                    self.names.append((name, level, v))
                    self.sigma.append(sigma)
                self.slots[name, level] = np.array([ids[ctx[level]] for ctx in table.contexts])
        self.sigma = np.array(self.sigma)

    def values(self, x):
        """Each parameter by context."""
        out = {}
        for name, (kind, centre, levels, _) in c.PARAMETERS.items():
            total = sum(x[self.slots[name, level]] for level in levels)
            out[name] = c.natural(kind, centre, total)
        return out


def expected(table, v):
    """Expected seconds of every row, from parameter values by context."""
    t = np.zeros(len(table.measured))

    def add(rows_, seconds):
        np.add(t, np.bincount(rows_.astype(int), seconds, len(t)), out=t)

    i, k, w, flops, elements, stored, acts, tokens, inner, count, rounds, experts, packed, spread, peak, vector, band = table.arrays["product"]
    k = k.astype(int)
    apart = 1.0 - v["skew"][k] * spread
    reach = v["bandwidth"][k] * np.where(experts > 0, v["expert"][k], 1.0)
    add(i, w * c.product_seconds(flops, elements * apart, stored * apart + acts, tokens / apart, inner, count, peak * v["compute"][k], vector, band * reach, packed * v["dequant"][k], v["mac"][k],
                                 packed * v["spill"][k], v["pad"][k], v["tail"][k], v["launch_s"][k], rounds, c.NORM))
    i, k, w, busy, moved, few, count = table.arrays["attention"]
    k = k.astype(int)
    add(i, w * c.attention_seconds(busy, moved, few * v["scan"][k], v["attention"][k], v["cache_bandwidth"][k], count, v["launch_s"][k], 1.0, c.NORM))
    i, k, w, moved, count = table.arrays["vector"]
    k = k.astype(int)
    add(i, w * (moved / v["bandwidth"][k] + count * v["launch_s"][k]))
    if table.arrays["collective"]:
        i, k, w, busy, latency, messages, hop = table.arrays["collective"]
        k = k.astype(int)
        add(i, w * c.collective_seconds(busy, latency * v["latency"][k], messages, v["link"][k], np.where(hop > 0, v["hop_s"][k], v["message_s"][k])))
    i, k, w, sequences, decode = table.arrays["pass"]
    k = k.astype(int)
    add(i, w * v["step_s"][k] + sequences * np.where(decode > 0, v["sequence_s"][k], v["request_s"][k]))
    for row, k, together in table.extra:
        t[row] = t[row] * (1.0 + v["queue"][k] * max(together - 1.0, 0.0) / 2.0) + v["first_s"][k]
    return t


def row_weights(table):
    """Rows of one group (model x chip x format) say much the same: together they weigh as the square root of their number."""
    groups = [(case.model, case.chip, case.weights) for case in table.cases]
    counts = {g: groups.count(g) for g in set(groups)}
    return np.array([counts[g] ** -0.5 for g in groups] + [KERNEL_WEIGHT] * len(table.kernels))


def solve(table, parameters, keep, start=None, steps=25):
    """Coefficients that minimise sum of weight x loss(log error) + (coefficient / sigma)^2 over the rows in `keep`.

    The loss is Cauchy's: quadratic near zero, logarithmic far off. Levenberg-Marquardt with finite differences; deterministic.
    """
    x = np.zeros(len(parameters.names)) if start is None else start.copy()
    weights = row_weights(table) * keep
    log_measured = np.log(table.measured)
    residual = lambda x: (np.log(expected(table, parameters.values(x))) - log_measured) / NOISE
    cost = lambda r, x: float(np.sum(weights * np.log1p(r * r)) + np.sum((x / parameters.sigma) ** 2))
    r, damping = residual(x), 1e-2
    best = cost(r, x)
    for _ in range(steps):
        jacobian = np.empty((len(r), len(x)))
        for j in range(len(x)):
            y = x.copy()
            y[j] += 1e-4
            jacobian[:, j] = (residual(y) - r) / 1e-4
        w = weights / (1.0 + r * r)
        normal = jacobian.T @ (w[:, None] * jacobian) + np.diag(1.0 / parameters.sigma ** 2)
        gradient = jacobian.T @ (w * r) + x / parameters.sigma ** 2
        improved = False
        for _ in range(8):
            step = np.linalg.solve(normal + damping * np.diag(np.diag(normal)), -gradient)
            y = x + np.clip(step, -0.7, 0.7)
            ry = residual(y)
            now = cost(ry, y)
            if now < best:
                gain, x, r, best, damping, improved = best - now, y, ry, now, damping / 3, True
                break
            damping *= 4
        if not improved or gain < 1e-4 * best:
            break
    return x


def folds(table, count=20):
    """Rows dealt into `count` folds, whole groups (model x chip x format) together, largest group first."""
    groups = {}
    for i, case in enumerate(table.cases):
        groups.setdefault((case.model, case.chip, case.weights), []).append(i)
    bins = [[] for _ in range(count)]
    for key in sorted(groups, key=lambda k: (-len(groups[k]), k)):
        min(bins, key=len).extend(groups[key])
    return [b for b in bins if b]


def cross_validate(table, parameters, keep, start, count=20, progress=None):
    """Expected seconds of every row from a fit that never saw its group (model x chip x format)."""
    t = np.zeros(len(table.measured))
    for number, held in enumerate(folds(table, count), 1):
        mask = keep.copy()
        mask[held] = 0.0
        x = solve(table, parameters, mask, start=start, steps=6)
        t[held] = expected(table, parameters.values(x))[held]
        if progress:
            errors = np.abs(t[held] / table.measured[held] - 1)[keep[held] > 0]
            progress(number, count, float(np.median(errors)) if len(errors) else float("nan"), len(held))
    return t
