"""Fit the calibration to the measurements: `roofline calibrate`. NumPy is imported here only.

Every row is a weighted sum of passes, every pass a sum of operators, so all operators of all rows are laid out once as arrays and
the formulas of `calibration` are evaluated on them. Least squares on the log of expected over measured, each parameter held near
its centre by a normal prior (ridge), each row weighed down when it is far off (so that one odd source does not steer the rest).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from . import calibration as c
from . import hardware, kernels, roof, rows
from .phase import attention_format, operators_of
from .parallel import Layout
from .predict import scaled, terms

KERNEL_WEIGHT = 0.05  # of one kernel, against 1 for a row that is alone in its group
GROUP_WEIGHT = 0.5  # a group (model x chip x format) of n rows weighs n to this power: its rows are hardly independent
NOISE = 0.1  # a row whose expected time is this far off (log) is ordinary
FOLDS = 20
FEW = 5  # groups under which an engine's band is widened
# Rows with these flags are no evidence of what to expect (see the flags' reasons in the data).
NOT_CALIBRATED = ("isl_unknown", "dtype_conflict", "LAYOUT_INFERRED", "SPEC_DECODE", "above_naive_only", "overhead_dominated")
KERNELS = ("gemm", "gemm_max_achievable", "mlp_up_proj", "mlp_down_proj", "moe_ffn")


class Table:
    """All operators of all rows as arrays, in four kinds: products, attention, vector, collectives."""

    def __init__(self, cases, kernels=()):
        self.cases, self.kernels = list(cases), list(kernels)
        self.kinds = {k: [] for k in ("product", "attention", "vector", "collective", "pass", "served")}
        self.contexts, self.index = [], {}
        for i, case in enumerate(self.cases):
            self._add(i, case)
        for i, kernel in enumerate(self.kernels, len(self.cases)):
            self._kernel(i, kernel)
        self.arrays = {k: self._stack(v) for k, v in self.kinds.items()}
        self.measured = np.array([row.measured_s for row in (*self.cases, *self.kernels)])
        self.pairs = self._pairs()

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
            for op in scaled(operators_of(r, p), case.scale):
                self._operator(i, op, w, rounds, r.layout.tp, roofs, r.chip, case.engine, context)
        if case.kind == "first" or case.cold:
            self.kinds["served"].append((i, plain, 0.0 if case.cold else max((case.batch or 1.0) - 1.0, 0.0) / 2.0))

    def _kernel(self, i, kernel):
        chip = hardware.load(kernel.chip)
        roofs = roof.roofs_of(chip, Layout(), ("bf16", kernel.operators[0].roof))
        context = lambda name, packing: self._context(kernel.engine, "kernels", chip, "fast", name, packing)
        for op in kernel.operators:
            self._operator(i, op, 1.0, 1.0, 1, roofs, chip, kernel.engine, context)

    def _operator(self, i, op, w, rounds, tp, roofs, chip, engine, context):
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
            self.kinds["attention"].append((i, context(name, "native"), w, op.flops / share / peak, moved / roofs.bandwidth, op.flops / share / roofs.peaks["vector"], op.tokens if op.group == "attention_core" else 1.0, op.count * rounds))
            return
        packing = c.packing_of(op, c.COMPUTE_BITS[name])
        self.kinds["product"].append((
            i, context(name, packing), w, op.load * op.flops / share, op.flops / (2 * op.tokens) / share, op.weight_bytes * rounds / share, op.activation_bytes / share,
            op.tokens / rounds, op.inner, op.count / c.mates_of(op.name), rounds, op.group == "experts", packing != "native", 1.0 - 1.0 / op.reach, peak, roofs.peaks["vector"], roofs.bandwidth))

    def _pairs(self):
        """({kind: which pair each of its lines belongs to}, row of each pair, context of each): the pairs (row, context) that occur."""
        keys = {kind: columns[0] * len(self.contexts) + columns[1] for kind, columns in self.arrays.items() if columns}
        found, inverse = np.unique(np.concatenate(list(keys.values())), return_inverse=True)
        ends = np.cumsum([len(k) for k in keys.values()])[:-1]
        return dict(zip(keys, np.split(inverse, ends), strict=True)), found // len(self.contexts), found % len(self.contexts)

    def _stack(self, entries):
        columns = [np.array(col, dtype=float) for col in zip(*entries, strict=True)]
        return [columns[0].astype(int), columns[1].astype(int), *columns[2:]] if entries else []


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
                    # An engine without a name has no effect of its own.
                    self.sigma.append(1e-3 if level in ("engine", "release") and v in ("any", "") else sigma)
                self.slots[name, level] = np.array([ids[ctx[level]] for ctx in table.contexts])
        self.sigma = np.array(self.sigma)
        # For each parameter its first coefficient and how many it has.
        self.members = {}
        for name in c.PARAMETERS:
            own = [j for j, (n, _, _) in enumerate(self.names) if n == name]
            self.members[name] = own[0], len(own)

    def value(self, name, x, shift=0.0):
        """One parameter by context, its scale moved by `shift`."""
        kind, centre, levels, _ = c.PARAMETERS[name]
        return c.natural(kind, centre, sum(x[self.slots[name, level]] for level in levels) + shift)

    def values(self, x):
        """Each parameter by context."""
        return {name: self.value(name, x) for name in c.PARAMETERS}


# Which parameters the time of each kind of line depends on.
_DEPENDS = {
    "product": {"bandwidth", "expert", "compute", "dequant", "mac", "single", "spill", "pad", "tail", "launch_s", "skew"}, "attention": {"scan", "few", "attention", "cache_bandwidth", "launch_s"},
    "vector": {"bandwidth", "launch_s"}, "collective": {"latency", "link", "hop_s", "message_s"}, "pass": {"step_s", "sequence_s", "request_s"},
}


def pieces(table, v, only=None):
    """Expected seconds of every operator and overhead, from parameter values by context: {kind: (rows, contexts, seconds)}.

    only: leave out the kinds that do not depend on this parameter.
    """
    a, out = {kind: columns if only is None or only in _DEPENDS.get(kind, ()) else [] for kind, columns in table.arrays.items()}, {}
    if a["product"]:
        i, k, w, flops, elements, stored, acts, tokens, inner, count, rounds, experts, packed, spread, peak, vector, band = a["product"]
        apart = 1.0 - v["skew"][k] * spread
        reach = v["bandwidth"][k] * np.where(experts > 0, v["expert"][k], 1.0)
        out["product"] = (i, k, w * c.product_seconds(flops, elements * apart, stored * apart + acts, tokens / apart, inner, count, peak * v["compute"][k], vector, band * reach, packed * v["dequant"][k],
                                                v["mac"][k] * np.where(experts > 0, v["single"][k], 1.0), packed * (experts == 0) * v["spill"][k], v["pad"][k], v["tail"][k], v["launch_s"][k], rounds, c.NORM))
    if a["attention"]:
        i, k, w, busy, moved, flops, queries, count = a["attention"]
        out["attention"] = (i, k, w * c.attention_seconds(busy, moved, c.on_vector_units(flops, queries, v["few"][k]) * v["scan"][k], v["attention"][k], v["cache_bandwidth"][k], count, v["launch_s"][k], 1.0, c.NORM))
    if a["vector"]:
        i, k, w, moved, count = a["vector"]
        out["vector"] = (i, k, w * (moved / v["bandwidth"][k] + count * v["launch_s"][k]))
    if a["collective"]:
        i, k, w, busy, latency, messages, hop = a["collective"]
        out["collective"] = (i, k, w * c.collective_seconds(busy, latency * v["latency"][k], messages, v["link"][k], np.where(hop > 0, v["hop_s"][k], v["message_s"][k])))
    if a["pass"]:
        i, k, w, sequences, decode = a["pass"]
        out["pass"] = (i, k, w * v["step_s"][k] + sequences * np.where(decode > 0, v["sequence_s"][k], v["request_s"][k]))
    return out


def served(table, v, t):
    """The same with what a served request, or the first call of a process, waits for before its prompt runs."""
    if table.arrays["served"]:
        i, k, others = table.arrays["served"]
        t = t.copy()
        t[i] = t[i] * (1.0 + v["queue"][k] * others) + v["first_s"][k]
    return t


def expected(table, v):
    """Expected seconds of every row, from parameter values by context."""
    t = np.zeros(len(table.measured))
    for i, _, seconds in pieces(table, v).values():
        t += np.bincount(i, seconds, len(t))
    return served(table, v, t)


def slopes(table, parameters, x, step=1e-5):
    """(expected seconds, their derivatives by every coefficient).

    An operator's time depends on the parameters of its own context only, so one evaluation per parameter gives the derivative
    of all operators at once; those of one context are summed, and a coefficient moves the contexts that have its level.
    """
    v, size = parameters.values(x), len(table.measured)
    base, (pairs, row_of, context_of) = pieces(table, v), table.pairs
    t = sum(np.bincount(i, seconds, size) for i, _, seconds in base.values())
    whole = served(table, v, t)
    jacobian = np.zeros((size, len(x)))
    scale = np.ones(size)
    if table.arrays["served"]:
        i, k, others = table.arrays["served"]
        scale[i] = 1.0 + v["queue"][k] * others
    for name in c.PARAMETERS:
        moved = v | {name: parameters.value(name, x, step)}
        by_pair = np.zeros(len(row_of))
        for kind, (_, _, now) in pieces(table, moved, only=name).items():
            by_pair += np.bincount(pairs[kind], now - base[kind][2], len(row_of))
        by_pair *= scale[row_of] / step
        if name in ("queue", "first_s") and table.arrays["served"]:
            i = table.arrays["served"][0]
            by_pair[pairs["served"]] += (served(table, moved, t)[i] - whole[i]) / step
        first, width = parameters.members[name]
        for level in c.PARAMETERS[name][2]:
            column = parameters.slots[name, level][context_of] - first
            jacobian[:, first:first + width] += np.bincount(row_of * width + column, by_pair, size * width).reshape(size, width)
    return whole, jacobian


def row_weights(table):
    """Rows of one group (model x chip x format) say much the same: together they weigh less than their number."""
    groups = [(case.model, case.chip, case.weights) for case in table.cases]
    counts = {g: groups.count(g) for g in set(groups)}
    return np.array([counts[g] ** (GROUP_WEIGHT - 1) for g in groups] + [KERNEL_WEIGHT] * len(table.kernels))


def solve(table, parameters, keep, start=None, steps=60, noise=None):
    """Coefficients that minimise sum of weight x loss(log error) + (coefficient / sigma)^2 over the rows in `keep`.

    The loss is Cauchy's: quadratic near zero, logarithmic far off. Levenberg-Marquardt; deterministic.
    """
    if start is None:
        # From nothing, begin with a loss that listens to everybody.
        start = np.zeros(len(parameters.names))
        for wide in (4 * NOISE, 2 * NOISE):
            start = solve(table, parameters, keep, start, steps=15, noise=wide)
    x, noise = start.copy(), noise or NOISE
    weights, log_measured = row_weights(table) * keep, np.log(table.measured)
    error = lambda t: (np.log(t) - log_measured) / noise
    cost = lambda r, x: float(np.sum(weights * np.log1p(r * r)) + np.sum((x / parameters.sigma) ** 2))
    t, slope = slopes(table, parameters, x)
    r, damping = error(t), 1e-2
    best = cost(r, x)
    for _ in range(steps):
        w = np.sqrt(weights / (1.0 + r * r))
        # A coefficient that no row depends on stays at its prior's centre.
        moves = (slope[weights > 0] != 0.0).any(axis=0)
        jacobian = (slope * (w / t / noise)[:, None])[np.ix_(weights > 0, moves)]
        ridge = 1.0 / parameters.sigma[moves] ** 2
        normal = jacobian.T @ jacobian + np.diag(ridge)
        gradient = jacobian.T @ (w * r)[weights > 0] + x[moves] * ridge
        before = best
        for _ in range(10):
            y = np.zeros(len(x))
            y[moves] = x[moves] + np.clip(np.linalg.solve(normal + damping * np.diag(np.diag(normal)), -gradient), -0.7, 0.7)
            ry = error(expected(table, parameters.values(y)))
            now = cost(ry, y)
            if now < best:
                x, best, damping = y, now, damping / 3
                break
            damping *= 4
        if before - best < 1e-4:
            break
        t, slope = slopes(table, parameters, x)
        r = error(t)
    return x


def folds(table, count=FOLDS):
    """Rows dealt into `count` folds, whole groups (model x chip x format) together, largest group first."""
    groups = {}
    for i, case in enumerate(table.cases):
        groups.setdefault((case.model, case.chip, case.weights), []).append(i)
    bins = [[] for _ in range(count)]
    for key in sorted(groups, key=lambda k: (-len(groups[k]), k)):
        min(bins, key=len).extend(groups[key])
    return [b for b in bins if b]


def evidence(table):
    """1 for rows that may steer the fit, 0 for flagged ones."""
    return np.array([0.0 if case.flag in NOT_CALIBRATED else 1.0 for case in table.cases] + [0.0 if k.unsettled else 1.0 for k in table.kernels])


def cross_validate(table, parameters, keep, parts, progress=None):
    """Expected seconds of every row in `parts` (lists of rows) from a fit that saw none of its part, begun afresh each time."""
    t = np.full(len(table.measured), np.nan)
    for number, held in enumerate(parts, 1):
        mask = keep.copy()
        mask[held] = 0.0
        x = solve(table, parameters, mask)
        t[held] = expected(table, parameters.values(x))[held]
        if progress:
            errors = np.abs(t[held] / table.measured[held] - 1)[keep[held] > 0]
            progress(f"part {number:2} of {len(parts)}: {len(held):3} rows never seen, median error {np.median(errors):.1%}" if len(errors) else f"part {number:2} of {len(parts)}: flagged rows only")
    return t


def calibrate(progress=None):
    """Fit everything to the shipped rows. Returns (contents of calibration.toml as a dict, {row_id: seconds expected unseen})."""
    cases = []
    for row in rows.shipped():
        try:
            cases.append(rows.case_of(row))
        except rows.Unmapped:
            continue
    # What single kernels reach informs the chips and formats; how an engine strings them together does not show in them.
    used = tuple(replace(k, engine=f"{k.engine} kernels") for k in kernels.shipped() if k.op in KERNELS)
    table = Table(cases, used)
    parameters, keep = Parameters(table), evidence(table)
    x = solve(table, parameters, keep)
    fit = expected(table, parameters.values(x))
    if progress:
        progress(f"fitted {len(x)} coefficients to {int(keep.sum())} rows and kernels; cross-validation on groups (model x chip x format) never seen")
    unseen = cross_validate(table, parameters, keep, folds(table, FOLDS), progress)
    if progress:
        progress("cross-validation on engines never seen")
    names = sorted({case.engine for case in cases})
    alien = cross_validate(table, parameters, keep, [[i for i, case in enumerate(cases) if case.engine == name] for name in names], progress)
    size = len(cases)
    judged = [i for i in range(size) if keep[i]]
    return {
        "rows": {level: _count(value(cases[i]) for i in judged) for level, value in (("engine", lambda case: case.engine), ("family", lambda case: c.family_of(case.resolved.chip)))},
        "parameters": _coefficients(parameters, x),
        "bands": _bands(cases, judged, table.measured, unseen, alien),
        "statistics": _statistics(cases, judged, table.measured, fit, unseen, alien, folds(table, FOLDS)),
    }, {case.row_id: float(unseen[i]) for i, case in enumerate(cases)}


def _count(values):
    counts = {}
    for v in values:
        if v != "any":
            counts[v] = counts.get(v, 0) + 1
    return dict(sorted(counts.items()))


def _coefficients(parameters, x):
    table = {}
    for (name, level, value), size in zip(parameters.names, x, strict=True):
        if abs(size) >= 0.005 and not value.endswith(" kernels") and value != "kernels":
            table.setdefault(name, {})["all" if level == "all" else f"{level}:{value}"] = round(float(size), 3)
    return table


def _bands(cases, judged, measured, unseen, alien):
    """{group: {engine: (low, high, rows)}} from errors on groups never seen; "any" from errors on engines never seen.

    An engine with few groups says little about the next one: its band is widened to hold that of engines never seen.
    """
    bands = {}
    for group in dict.fromkeys(c.GROUPS.values()):
        members = [i for i in judged if c.GROUPS[cases[i].kind] == group]
        if not members:
            continue
        low, high = _quantiles(measured[members] / alien[members], _groups(cases, members))
        bands[group] = {"any": [low, high, len(members)]}
        for engine in sorted({cases[i].engine for i in members} - {"any"}):
            own = [i for i in members if cases[i].engine == engine]
            groups = _groups(cases, own)
            own_low, own_high = _quantiles(measured[own] / unseen[own], groups)
            if groups < FEW:
                own_low, own_high = min(own_low, low), max(own_high, high)
            bands[group][engine] = [own_low, own_high, len(own)]
    return bands


def _groups(cases, members):
    """How many groups (model x chip x format) some rows are of."""
    return len({(cases[i].model, cases[i].chip, cases[i].weights) for i in members})


def _quantiles(ratio, groups):
    """The band that should hold 80 % of what comes next: 10th and 90th percentile of measured / expected.

    The k-th of n values leaves a share of k / (n + 1) of what is drawn next below it, and rows of one group are hardly more than
    one draw, so few groups take a more extreme percentile. The band holds the expectation itself, even where all that was left
    out lay to one side of it.
    """
    tail = max(0.0, 0.1 - 0.4 / groups)
    low, high = np.quantile(ratio, (tail, 1.0 - tail), method="hazen")
    return round(min(float(low), 1.0), 3), round(max(float(high), 1.0), 3)


STATIC_DECODE = "decode, single stream and static batch together"


def kind_of(case) -> str:
    """What a row is called in the tables."""
    return {"step": "decode, single stream" if case.batch == 1 else "decode, static batch", "request": "static batch, whole", "prefill": "prefill, static", "tpot": "TPOT in service",
            "stream": "throughput in service", "first": "TTFT under load", "drain": "batch of requests, whole"}[case.kind]


def _statistics(cases, judged, measured, fit, unseen, alien, parts):
    """One entry per kind and engine: rows, median and 90th percentile of the absolute error, and the band's coverage."""
    error = lambda t, rows_: np.abs(t[rows_] / measured[rows_] - 1)
    inside = _coverage(cases, judged, measured, unseen, alien, parts)
    entries = []
    groups = {}
    for i in judged:
        kinds = [kind_of(cases[i])] + ([STATIC_DECODE] if cases[i].kind in ("step", "request") else [])
        for kind in kinds:
            for engine in ("all engines", cases[i].engine):
                groups.setdefault((kind, engine), []).append(i)
    for (kind, engine), members in sorted(groups.items(), key=lambda item: (item[0][0], item[0][1] != "all engines", item[0][1])):
        seen, new, other = error(fit, members), error(unseen, members), error(alien, members)
        entries.append({
            "kind": kind, "engine": engine, "rows": len(members), "groups": _groups(cases, members),
            "median": round(float(np.median(new)), 3), "p90": round(float(np.quantile(new, 0.9)), 3), "median_seen": round(float(np.median(seen)), 3),
            "p90_seen": round(float(np.quantile(seen, 0.9)), 3), "median_engine_unseen": round(float(np.median(other)), 3), "coverage": round(float(np.mean(inside[members])), 3),
        })
    return entries


def _coverage(cases, judged, measured, unseen, alien, parts):
    """Whether each row lies in its band, the band taken from the rows of the other parts."""
    inside, wanted = np.zeros(len(measured)), set(judged)
    for held in parts:
        others = [i for i in judged if i not in set(held)]
        bands = _bands(cases, others, measured, unseen, alien)
        for i in held:
            if i in wanted and c.GROUPS[cases[i].kind] in bands:
                table = bands[c.GROUPS[cases[i].kind]]
                low, high, _ = table.get(cases[i].engine) or table["any"]
                inside[i] = low <= measured[i] / unseen[i] <= high
    return inside


def to_toml(result, day: str) -> str:
    """The text of data/calibration.toml. day: of the fit, as 2026-11-30."""
    lines = ["# Written by `roofline calibrate` from data/measurements.csv and data/kernels.csv; do not edit.",
             "# parameters: shifts on a log or logit scale, by parameter and level (see calibration.PARAMETERS); bands: 10th and 90th percentile",
             "# (wider where groups are few) of measured / expected on groups never seen in the fit, and rows; statistics: errors on groups (model x chip x format) never seen.",
             "# fitted: the day of the fit.", f'fitted = "{day}"']
    quote = lambda key: key if key.replace("_", "").replace("-", "").isalnum() else f'"{key}"'
    for level, counts in result["rows"].items():
        lines += ["", f"[rows.{level}]", *(f"{quote(k)} = {v}" for k, v in counts.items())]
    for name, table in result["parameters"].items():
        lines += ["", f"[parameters.{name}]", *(f"{quote(k)} = {v}" for k, v in table.items())]
    for group, table in result["bands"].items():
        lines += ["", f"[bands.{quote(group)}]", *(f"{quote(k)} = {list(v)}" for k, v in table.items())]
    for entry in result["statistics"]:
        lines += ["", "[[statistics]]", *(f'{k} = "{v}"' if isinstance(v, str) else f"{k} = {v}" for k, v in entry.items())]
    return "\n".join(lines) + "\n"
