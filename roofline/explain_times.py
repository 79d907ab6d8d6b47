"""The working of a phase's time: its work, each roof's time from the figures it is made of, the limit, and the time to expect.

Every step is {"key", "values"}, as in `explain`: what stands in a step is enough to do its sum by hand.
"""

from __future__ import annotations

from dataclasses import dataclass

from . import calibration, roof
from .flips import roofs_for
from .operators import Pass
from .phase import bubble, decode_pass, operators_of, prefill_pass
from .scenario import Resolved
from .units import format_number, format_quantity
from .view import count, format_label, whole

CACHES = ("attention_core", "recurrent")
MOST = 6  # operator groups of an expected time that are listed by name


def s_(value) -> str:
    """A time [s] as text."""
    return format_quantity(value, "s")


def b_(value) -> str:
    """A size [bytes] as text."""
    return format_quantity(value, "B")


def f_(value) -> str:
    """Work [FLOP] as text."""
    return format_quantity(value, "FLOP")


def step(key: str, opens: dict | None = None, **values) -> dict:
    """One step of a working. opens: of some of the values, the key of the working that they open in turn."""
    return {"key": key, "values": values} | ({"opens": opens} if opens else {})


@dataclass(frozen=True, slots=True)
class Asked:
    """A question whose figures are worked out: a Report's dict, the scenario it answers, and whether the figure is meant "limit" or
    "expected" (which is the limit where nothing is expected); "" is both, where a working has room for both."""

    report: dict
    r: Resolved
    basis: str = ""

    @property
    def timed(self) -> bool:
        """Whether the model runs, so that there are times."""
        return self.report["serving"]["tpot_s"] is not None

    @property
    def likely(self) -> bool:
        """Whether figures are meant as expected."""
        return self.basis != "limit" and self.report["serving"]["expected_tpot_s"] is not None

    def of(self, part: dict, name: str):
        """A figure of a part of the report: as expected where that is meant, else at the limit."""
        value = part.get("expected_" + name) if self.likely else None
        return part[name] if value is None else value

    def serving(self, name: str):
        """A figure of `serving`."""
        return self.of(self.report["serving"], name)


class Working:
    """One phase of a resolved scenario taken apart. name: "prefill" or "decode"; sequences: of the prefill, if not the batch.

    p: another pass, or several that share a step; ops: other operators than the model's own in it; name then says whose limit is told.
    """

    def __init__(self, r: Resolved, name: str, sequences: float | None = None, p=None, ops=None):
        s, layout = r.scenario, r.layout
        self.r, self.name, self.decodes = r, name, name == "decode"
        if p is not None:
            self.p = p
        elif self.decodes:
            self.p = decode_pass(s, layout, s.draft + 1)
        elif sequences is None:
            self.p = prefill_pass(s, layout)
        else:
            self.p = Pass(sequences=sequences, new_tokens=1.0 * (s.prompt - s.cached), start=1.0 * s.cached, pool=layout.pool)
        # A decode step is a round for each micro-batch, and the times are those of one; in prefill all stages compute at once.
        self.rounds = min(layout.pp, s.batch) if self.decodes else 1
        self.stages = layout.pp if name == "prefill" else 1
        self.chips = layout.tp * self.stages
        self.roofs = roofs_for(r)
        self.ops = ops or operators_of(r, self.p)
        self.parts = dict(zip(roof.PARTS, roof.limit_parts(self.ops, self.roofs, layout, self.stages), strict=True))
        self.limit_s = max(self.parts.values())

    # ---- the work ---------------------------------------------------------------------------------------------------

    def work(self) -> list:
        """What is multiplied: weights x tokens, attention's pairs, recurrent layers, and the rest."""
        products = [op for op in self.ops if op.group not in (*CACHES, "collective") and op.roof != "vector"]
        head = sum(op.flops for op in products if op.group == "lm_head")
        body = sum(op.flops for op in products) - head
        tokens, sampled = self.p.tokens, self.p.sequences * self.p.sampled
        steps = [step("work.products", body=count(body / 2 / tokens), tokens=whole(tokens * self.rounds), head=count(head / 2 / sampled), sampled=whole(sampled * self.rounds),
                      result=f_((body + head) * self.rounds))]
        steps += [*self._attention(), *(self._scan(op) for op in self.ops if op.group == "recurrent")]
        rest = sum(op.flops for op in self.ops if op.roof == "vector")
        return [*steps, step("work.total", rest=f_(rest * self.rounds), result=f_(sum(op.flops for op in self.ops) * self.rounds))]

    def _attention(self) -> list:
        """One step for each operator that reads caches, in the order they have in the pass."""
        cores, steps = iter([op for op in self.ops if op.group == "attention_core"]), []
        for a in self.r.arch.attentions:
            if a.kind == "cross":
                continue
            dims = (a.decode_qk_dim or a.qk_dim) + (a.decode_v_dim or a.v_dim) if self.decodes else a.qk_dim + a.v_dim
            steps.append(self._pairs(next(cores), a.kind, a.heads, dims))
            if a.index_heads:
                steps.append(self._pairs(next(cores), "indexer", a.index_heads, a.index_dim))
        return steps

    def _scan(self, op) -> dict:
        tokens = self.p.tokens
        return step("work.scan", kind=op.name, each=f_(op.flops / op.count / tokens), layers=str(op.count), tokens=whole(tokens * self.rounds), result=f_(op.flops * self.rounds))

    def _pairs(self, op, kind: str, heads: int, dims: int) -> dict:
        flops = op.flops * self.rounds
        return step("work.attention", kind=kind, heads=str(heads), dims=str(dims), pairs=format_quantity(flops / (2.0 * heads * dims * op.count)), layers=str(op.count), result=f_(flops))

    # ---- the limit --------------------------------------------------------------------------------------------------

    def limit(self) -> list:
        """The time of each roof, and the longest."""
        steps = [step("rounds", rounds=str(self.rounds))] if self.rounds > 1 else []
        return [*steps, self.memory(), *self.compute(), *self._links(), *self._host(), step(f"limit.{self.name}", bound=self.bound, result=s_(self.limit_s))]

    @property
    def bound(self) -> str:
        """The roof that takes longest, the host link by its own name."""
        return max(("memory", "compute", "network", "host"), key=lambda k: self.parts[k])

    def memory(self) -> dict:
        """What the busiest chip reads and writes; in equal shares where that is what the chips have."""
        tp, bandwidth = self.r.layout.tp, self.roofs.bandwidth
        weights, cache = (sum(op.weight_bytes for op in self.ops), sum(op.kv_read_bytes + op.kv_write_bytes for op in self.ops))
        near = [(op.group in CACHES, roof.op_load(op, tp, self.stages)[1]) for op in self.ops if op.group != "collective"]
        own_cache = sum(size for is_cache, size in near if is_cache)
        own_weights = sum(size for is_cache, size in near if not is_cache)
        values = {"weights": b_(weights), "kv": b_(cache), "own_weights": b_(own_weights), "own_kv": b_(own_cache), "per_chip": b_(own_weights + own_cache),
                  "bandwidth": format_quantity(bandwidth, "B/s"), "result": s_(self.parts["memory"])}
        even = abs(own_weights * tp - weights) < 0.01 * weights and (not cache or abs(own_cache * tp - cache) < 0.01 * cache)
        return step("time.memory" if even else "time.memory.uneven", chips=str(tp), **values)

    def compute(self) -> list:
        """The products at the peak of each format they run in."""
        work = {}
        for op in self.ops:
            if op.group != "collective" and op.roof != "vector":
                work[op.roof] = work.get(op.roof, 0.0) + op.load * op.flops
        rows = [step("time.compute", flops=f_(flops), chips=str(self.chips), format=format_label(self.r.chip.roof_of(name)[0]), peak=format_quantity(self.roofs.peaks[name], "FLOP/s"),
                     result=s_(flops / self.chips / self.roofs.peaks[name])) for name, flops in work.items() if flops]
        return rows if len(rows) < 2 else [*rows, step("time.compute.sum", result=s_(self.parts["compute"]))]

    def _links(self, ops=None) -> list:
        """What a chip sends: over its links or, where that takes longer, beyond them. ops: some of the operators, not all."""
        sent = {}
        for op in ops or self.ops:
            if op.group != "collective" or not op.link_bytes:
                continue
            link = self.roofs.link * op.link_share
            inside = (op.link_bytes - op.network_bytes - op.spared_bytes) * op.load / self.stages
            beyond = op.network_bytes * op.load / self.stages
            far = beyond / self.roofs.network > inside / link
            key = ("time.network.beyond", self.roofs.network) if far else ("time.network", link)
            sent[key] = sent.get(key, 0.0) + (beyond if far else inside)
        rows = [step(key, bytes=b_(size), bandwidth=format_quantity(speed, "B/s"), **({"link": self.r.chip.link or "–"} if key == "time.network" else {}), result=s_(size / speed))
                for (key, speed), size in sent.items() if size]
        return rows if len(rows) < 2 else [*rows, step("time.network.sum", result=s_(self.parts["network"]))]

    def _host(self) -> list:
        away = sum(roof.op_load(op, self.r.layout.tp, self.stages)[2] for op in self.ops if op.group != "collective")
        return [step("time.host", bytes=b_(away), host=format_quantity(self.roofs.host, "B/s"), result=s_(self.parts["host"]))] if away else []

    # ---- one operator -----------------------------------------------------------------------------------------------

    def operator(self, index: int, timed: bool) -> list:
        """One operator of the pass: its work, its traffic, the least it takes and what to expect."""
        op, n = self.ops[index], self.rounds
        steps = [step("op.what", name=op.name, group=op.group, count=whole(op.count)), *self._operator_work(op, index)]
        if op.bytes:
            steps.append(step("op.bytes", weights=b_(op.weight_bytes * n), kv=b_((op.kv_read_bytes + op.kv_write_bytes) * n), activations=b_(op.activation_bytes * n), result=b_(op.bytes * n)))
            if op.flops:
                steps.append(step("op.intensity", flops=f_(op.flops * n), bytes=b_(op.bytes * n), result=format_number(op.flops / op.bytes)))
        if not timed:
            return [*steps, step("untimed")]
        if n > 1:
            steps.append(step("rounds", rounds=str(n)))
        parts = dict(zip(roof.PARTS, roof.op_parts(op, self.roofs, self.r.layout.tp, self.stages), strict=True))
        if op.group == "collective":
            steps += self._links((op,))
        else:
            _, near, away = roof.op_load(op, self.r.layout.tp, self.stages)
            if parts["compute"]:
                steps.append(step("time.compute", flops=f_(op.load * op.flops), chips=str(self.chips), format=format_label(self.r.chip.roof_of(op.roof)[0]), peak=format_quantity(self.roofs.peaks[op.roof], "FLOP/s"),
                                  result=s_(parts["compute"])))
            if near:
                steps.append(step("op.memory", bytes=b_(near), bandwidth=format_quantity(self.roofs.bandwidth, "B/s"), result=s_(parts["memory"])))
            if away:
                steps.append(step("time.host", bytes=b_(away), host=format_quantity(self.roofs.host, "B/s"), result=s_(parts["host"])))
        least = max(parts.values())
        steps.append(step("op.least", bound=max(parts, key=parts.get), result=s_(least)) if least else step("op.free"))
        e = calibration.expectation(self.r)
        if e is not None:
            steps.append(step("op.expected", result=s_(calibration.op_expected(op, self.roofs, self.r.layout.tp, e, calibration.rounds_of(e, self.p)))))
        return steps

    def _operator_work(self, op, index: int) -> list:
        if op.group == "attention_core":
            before = sum(1 for other in self.ops[:index] if other.group == "attention_core")
            return [self._attention()[before]]
        if op.group == "recurrent":
            return [self._scan(op)]
        if op.group == "collective" or not op.flops:
            return []
        if op.roof == "vector":
            return [step("op.vector", result=f_(op.flops * self.rounds))]
        fed = self.p.sequences * self.p.sampled if op.group == "lm_head" else self.p.tokens
        return [step("op.product", weights=count(op.flops / 2 / fed), tokens=whole(fed * self.rounds), result=f_(op.flops * self.rounds))]

    # ---- the expectation --------------------------------------------------------------------------------------------

    def expected(self) -> tuple:
        """(steps, time, (low, high)) to expect of the pass [s]; no steps and None where nothing is expected."""
        e = calibration.expectation(self.r)
        if e is None:
            return [], None, None
        rounds = calibration.rounds_of(e, self.p)
        groups = {}
        for op in self.ops:
            row = groups.setdefault(op.group, [0.0, 0.0])
            row[0] += max(roof.op_parts(op, self.roofs, self.r.layout.tp, self.stages))
            row[1] += calibration.op_expected(op, self.roofs, self.r.layout.tp, e, rounds)
        rows = sorted(((g, *t) for g, t in groups.items() if t[1]), key=lambda row: -row[2])
        steps = [step("expected.group", group=group, least=s_(least), result=s_(took)) for group, least, took in rows[:MOST]]
        if rows[MOST:]:
            steps.append(step("expected.rest", result=s_(sum(row[2] for row in rows[MOST:]))))
        busy, besides = sum(row[2] for row in rows), calibration.overhead(e, self.p, rounds)
        share = bubble(self.p.tokens, self.stages)
        serial = (busy + besides) * share
        took = max(self.limit_s, serial)
        low, high = (e.low, e.high) if self.decodes else (e.prefill_low, e.prefill_high)
        band = max(self.limit_s, took * low), max(self.limit_s, took * high)
        values = {"sum": s_(busy), "besides": s_(besides), "low": s_(band[0]), "high": s_(band[1]), "result": s_(took)}
        if took > serial:
            steps.append(step("expected.limit", **values))
        else:
            steps.append(step("expected.total" if share == 1 else "expected.stages", **values, **({} if share == 1 else {"stages": str(self.stages), "share": f"{format_number(100 * share)}\u2009%"})))
        return steps, took, band


def reached(r: Resolved, working: Working) -> list:
    """(name, value) of the fitted figures that an expected time uses most."""
    e = calibration.expectation(r)
    if e is None:
        return []
    percent = lambda x: f"{format_number(100 * x)}\u2009%"
    rows = [("reached.bandwidth", percent(e.bandwidth)), ("reached.compute", percent(e.rate(r.compute)))]
    if e.points:  # fractions that the user gives come with none of the rest
        rows += [("reached.cache", percent(e.cache_bandwidth)), *([] if working.decodes else [("reached.attention", percent(e.attention))]), ("reached.launch", s_(e.launch_s)), ("reached.step", s_(e.step_s))]
        if any(op.group == "collective" for op in working.ops):
            rows += [("reached.link", percent(e.link)), ("reached.message", s_(e.message_s))]
    return rows
