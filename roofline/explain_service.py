"""The workings of a service: rates over whole requests, arrivals and their waits, chunked prefill, drafts, pools.

Each function takes `explain_times.Asked` and gives the steps of one figure, at the limit or as expected.
"""

from __future__ import annotations

from . import calibration
from .explain_times import Asked, Working, b_, s_, step
from .flips import roofs_for
from .hardware import load
from .phase import decode_pass
from .serving import md1_wait, waits
from .service import draft_operators, arriving, mixed_passes, mtp_share, pool_wire, prefill_side
from .units import format_number, format_quantity
from .view import times, whole

ARRIVALS = ("capacity", "prefill_share", "utilisation", "batch", "tpot", "mean", "p50", "p90", "p99", "e2e")
MIXED = ("chunk", "decode", "step", "saved", "ttft")
POOLS = ("prefill", "transfer", "hidden", "ratio", "chips", "per_device", "rate")
n_ = format_number


def share_(value: float) -> str:
    """A share with as many figures as a logarithm of it needs."""
    return f"{format_number(100 * value, 4)}\u2009%"


# ---- rates over whole requests -------------------------------------------------------------------------------------------


def per_chip(a: Asked) -> list:
    """Output tokens/s of each chip, while decoding."""
    return [step("per_chip", {"total": "total"}, total=n_(a.serving("tokens_per_s")), chips=str(a.report["layout"]["devices"]), result=n_(a.serving("tokens_per_s_per_device")))]


def _request(a: Asked) -> dict:
    """What the time of a request is made of, and what of it opens."""
    s = a.r.scenario
    shared = {"replicas": str(a.r.layout.dp), "batch": whole(s.batch), "tpot": s_(a.serving("tpot_s"))}
    if a.report["serving"]["disaggregated"]:
        return {"opens": {"tpot": "tpot"}, **shared, "output": whole(s.output)}
    return {"opens": {"tpot": "tpot", "ttft": "ttft"}, **shared, "ttft": s_(a.serving("ttft_s")), "rest": whole(s.output - 1)}


def _apart(a: Asked) -> str:
    return ".apart" if a.report["serving"]["disaggregated"] else ""


def requests(a: Asked) -> list:
    """Requests/s of a closed loop."""
    return [step("requests" + _apart(a), **_request(a), result=n_(a.serving("requests_per_s")))]


def sustained_rate(a: Asked, chunked: bool = True) -> float:
    """Output tokens/s over whole requests, prompts included, as `levers.sustained` counts them."""
    s, serving, tpot = a.r.scenario, a.report["serving"], a.serving("tpot_s")
    cycle = s.output * tpot if serving["disaggregated"] else a.serving("ttft_s") + (s.output - 1) * tpot
    if serving["mixed_step"] and chunked and not serving["disaggregated"]:
        mixed, rest, each = _cycle(a)
        cycle = mixed * each + rest * tpot
    return a.r.layout.dp * s.batch * s.output / cycle


def _cycle(a: Asked) -> tuple:
    """(mixed steps, steps without a chunk, time of a mixed step [s]) in which a batch turns over once."""
    s, serving = a.r.scenario, a.report["serving"]
    mixed = s.batch * serving["mixed_step"]["steps_per_prompt"]
    return mixed, max(0, s.output - 1 - mixed), serving["mixed_step"]["step_s"] * a.serving("tpot_s") / serving["tpot_s"]


def sustained(a: Asked) -> list:
    """Output tokens/s over whole requests."""
    s, serving, result = a.r.scenario, a.report["serving"], n_(sustained_rate(a))
    if not serving["mixed_step"] or serving["disaggregated"]:
        return [step("sustained" + _apart(a), **_request(a), **({} if _apart(a) else {"output": whole(s.output)}), result=result)]
    mixed, rest, each = _cycle(a)
    steps = []
    if a.likely:
        steps.append(step("sustained.stretch", {"tpot": "tpot"}, mixed=s_(serving["mixed_step"]["step_s"]), tpot=s_(a.serving("tpot_s")), limit=s_(serving["tpot_s"]), result=s_(each)))
    return [*steps, step("sustained.chunked", {"tpot": "tpot"}, replicas=str(a.r.layout.dp), batch=whole(s.batch), output=whole(s.output), mixed=whole(mixed), each=s_(each), rest=whole(rest), tpot=s_(a.serving("tpot_s")), result=result)]


def sustained_chips(a: Asked) -> float:
    """The chips that a sustained rate is shared by, a prefill pool's share counted."""
    pools = a.report["serving"]["disaggregated"]
    return pools["devices_per_decode_instance"] * a.r.layout.dp if pools else a.r.layout.devices


def sustained_per_chip(a: Asked) -> list:
    """The same for each chip."""
    rate, chips = sustained_rate(a), sustained_chips(a)
    pools, told = a.report["serving"]["disaggregated"], {"rate": n_(rate), "result": n_(rate / chips)}
    if not pools:
        return [*sustained(a), step("sustained.per_chip", chips=str(chips), **told)]
    return [*sustained(a), step("sustained.per_chip.pools", {"each": "pool.chips"}, replicas=str(a.r.layout.dp), each=n_(pools["devices_per_decode_instance"]), **told)]


def served_rate(a: Asked) -> float:
    """Output tokens/s of each chip over whole requests as Explore counts them, without chunks."""
    pools = a.report["serving"]["disaggregated"]
    return pools["tokens_per_s_per_device"] if pools else a.serving("requests_per_s") * a.r.scenario.output / a.r.layout.devices


def served(a: Asked) -> list:
    """The same, worked out."""
    if a.report["serving"]["disaggregated"]:
        return pool(a, "per_device")
    s, rate = a.r.scenario, a.serving("requests_per_s") * a.r.scenario.output
    return [step("sustained", **_request(a), output=whole(s.output), result=n_(rate)), step("sustained.per_chip", rate=n_(rate), chips=str(a.r.layout.devices), result=n_(rate / a.r.layout.devices))]


# ---- random arrivals -----------------------------------------------------------------------------------------------------


class Settled:
    """One replica under the scenario's arrivals: its prompts, its steps, and the state it settles at."""

    def __init__(self, a: Asked):
        s, which = a.r.scenario, 1 if a.likely else 0
        read, step_of, self.places = arriving(a.r, roofs_for(a.r), calibration.expectation(a.r), a.report["memory"]["max_batch"], a.report["serving"]["tokens_per_step"])
        self.a, self.prompts, self.step_of = a, read[which], lambda batch: step_of(batch)[which]
        self.replicas, self.rest, self.rate = a.r.layout.dp, max(s.output - 1, 0), s.rate / a.r.layout.dp
        self.first, self.each = self.prompts.parts()
        found = a.report["serving"]["arrivals"]
        self.found = found["expected"] if a.likely else found
        # Arrivals are worked out with prompts read on the same chips, which is what the time of a lone prompt is without a pool.
        self.opens = None if a.report["serving"]["disaggregated"] else {"result" if self.prompts.most <= 1 else "alone": "ttft_alone"}

    def read(self) -> list:
        """What prompts take, alone and together."""
        p = self.prompts
        if p.most <= 1:
            steps = [step("arrive.prompt", self.opens, result=s_(p.alone_s))]
        else:
            steps = [step("arrive.prompts", self.opens, alone=format_quantity(p.alone_s, "s", 5), most=whole(p.most), crowd=format_quantity(p.share_s * p.most, "s", 5), more=whole(p.most - 1), each=s_(self.each), first=s_(self.first))]
        return [*steps, *([step("arrive.replica", rate=n_(self.rate * self.replicas), replicas=str(self.replicas), result=n_(self.rate))] if self.replicas > 1 else [])]

    def shared(self, rate: float, batch: float) -> list:
        """How many prompts go together at a rate and a batch, and the time that each takes."""
        took = self.step_of(batch) if self.rest else 0.0
        if self.prompts.most <= 1:
            return []
        spare = 1.0 - rate * self.each
        count = self.prompts.gathered(rate, took)
        gathered = step("arrive.gathered", rate=n_(rate), first=s_(self.first), step=s_(took), each=s_(self.each), spare=n_(spare), most=whole(self.prompts.most), result=n_(count)) if spare > 0 else step("arrive.all", most=whole(count))
        return [gathered, step("arrive.each", first=s_(self.first), count=n_(count), each=s_(self.each), result=s_(self.prompts.each_s(rate, took)))]

    def settled(self) -> list:
        """The share of prompts and the batch it settles at."""
        f, batch = self.found, self.found["batch"]
        took = self.step_of(batch) if self.rest else 0.0
        each, free = self.prompts.each_s(self.rate, took), 1.0 - f["prefill_share"]
        steps = [*self.read(), *self.shared(self.rate, batch), step("arrive.share", rate=n_(self.rate), each=s_(each), result=share_(f["prefill_share"]))]
        return steps if not self.rest else [*steps, step("arrive.batch", rate=n_(self.rate), rest=whole(self.rest), step=s_(took), free=share_(free), result=n_(batch))]

    def busy(self) -> list:
        """How near it is to what it can take."""
        if not self.rest:
            return self.settled()
        took, top = self.step_of(float(self.places)), float(self.places)
        each = self.prompts.each_s(self.rate, took)
        share = self.rate * each
        return [*self.read(), *self.shared(self.rate, top), step("arrive.full", places=whole(top), step=s_(took), rate=n_(self.rate), each=s_(each), share=share_(share)),
                step("arrive.busy", rate=n_(self.rate), rest=whole(self.rest), step=s_(took), free=share_(1.0 - share), places=whole(top), result=share_(self.found["utilisation"]))]

    def capacity(self) -> list:
        """The rate at which the batch is always full."""
        rate, took = self.found["capacity_per_s"] / self.replicas, self.step_of(float(self.places))
        each = self.prompts.each_s(rate, took if self.rest else 0.0)
        return [*self.read()[:1], *self.shared(rate, float(self.places)), step("arrive.capacity", places=whole(self.places), each=s_(each), rest=whole(self.rest), step=s_(took), replicas=str(self.replicas), result=n_(self.found["capacity_per_s"]))]

    def waits(self, what: str) -> list:
        """The time to the first token: its mean, or what a share of the requests stay under."""
        w, f = waits(self.rate, self.prompts, self.step_of, self.places, self.rest + 1, self.found), self.found
        free, mean = 1.0 - f["prefill_share"], md1_wait(self.rate, w.each_s)
        result = s_(f[f"ttft_{what}_s"])
        steps = [*self.settled(), step("wait.own", first=s_(self.first), count=n_(w.count), each=s_(self.each), result=s_(w.own_s))]
        queue = {"rate": n_(self.rate), "each": s_(w.each_s), "free": share_(free)}
        capped = w.longest_s / 2 < mean
        steps.append(step("wait.queue.capped", **queue, longest=s_(w.longest_s), result=s_(w.queue_s)) if capped and what == "mean" else step("wait.queue", **queue, result=s_(mean)))
        if self.rest:
            steps.append(step("wait.step", free=share_(free), batch=n_(f["batch"]), step=s_(self.step_of(f["batch"])), result=s_(w.step_s)))
        if w.place_s > 1e-4 * w.own_s:
            steps += [step("wait.chance", places=whole(self.places), result=share_(w.chance)), step("wait.place", chance=share_(w.chance), full=share_(w.full), spare=share_(1.0 - w.full), rate=n_(self.rate), result=s_(w.place_s))]
        elif self.rest:
            steps.append(step("wait.place.none", places=whole(self.places)))
        own, place = s_(w.own_s), s_(w.place_s if w.place_s > 1e-4 * w.own_s else 0.0)
        if what == "mean":
            return [*steps, step("wait.mean", own=own, queue=s_(w.queue_s), left=s_(w.step_s), place=place, result=result)]
        return [*steps, *self._late(w, int(what[1:]) / 100, mean), step("late.total", own=own, longest=s_(max(w.late(int(what[1:]) / 100))), result=result)]

    def _late(self, w, share: float, mean: float) -> list:
        """The three waits that a share of the requests stay under."""
        left, queue, place = w.late(share)
        told = {"share": f"{100 * share:.0f}\u2009%", "beyond": f"{100 - 100 * share:.0f}\u2009%"}
        busy, steps = self.rate * w.each_s, []
        if self.rest:
            steps.append(step("late.step", share=told["share"], left=s_(w.step_s), result=s_(left)))
        if not queue:
            steps.append(step("late.queue.none", busy=share_(busy), beyond=told["beyond"]))
        elif queue < 0.9999 * share * w.longest_s:
            steps.append(step("late.queue", queue=s_(mean), busy=share_(busy), beyond=told["beyond"], result=s_(queue)))
        else:
            steps.append(step("late.queue.capped", share=told["share"], longest=s_(w.longest_s), result=s_(queue)))
        if place > 1e-4 * w.own_s:
            steps.append(step("late.place", place=s_(w.place_s), chance=share_(w.chance), beyond=told["beyond"], result=s_(place)))
        return steps


def arrivals(a: Asked, what: str) -> list:
    """One of ARRIVALS under the scenario's rate."""
    found = a.report["serving"]["arrivals"]
    if not found:
        return [step("arrive.none")]
    settled = Settled(a)
    if what == "capacity":
        return settled.capacity()
    if not settled.found["stable"]:
        return [*settled.capacity(), step("arrive.unstable", rate=n_(found["rate_per_s"]), capacity=n_(settled.found["capacity_per_s"]))]
    if what == "utilisation":
        return settled.busy()
    if what == "e2e":
        f = settled.found
        return [step("arrive.e2e", {"mean": "arrivals.mean"} | ({"tpot": "arrivals.tpot"} if f["tpot_s"] else {}), mean=s_(f["ttft_mean_s"]), rest=whole(settled.rest), tpot=s_(f["tpot_s"] or 0.0), result=s_(f["e2e_mean_s"]))]
    if what in ("prefill_share", "batch", "tpot"):
        steps = settled.settled()
        if what == "tpot" and settled.rest:
            steps.append(step("arrive.tpot", step=s_(settled.step_of(settled.found["batch"])), free=share_(1.0 - settled.found["prefill_share"]), result=s_(settled.found["tpot_s"])))
        if what == "prefill_share" and settled.rest:
            steps = steps[:-1]
        if what == "batch" and not settled.rest:
            steps.append(step("arrive.batch.none", result="0"))
        return steps
    return settled.waits(what)


# ---- chunks, drafts, pools -----------------------------------------------------------------------------------------------


def mixed(a: Asked, what: str) -> list:
    """One of MIXED: a step that carries a chunk of a prompt, and its parts, at the limit."""
    m = a.report["serving"]["mixed_step"]
    if not m:
        return [step("mixed.none")]
    if what == "ttft":
        return [step("mixed.ttft", {"step": "mixed.step"}, steps=whole(m["steps_per_prompt"]), step=s_(m["step_s"]), result=s_(m["ttft_s"]))]
    if what == "saved":
        return [step("mixed.saved", {"decode": "mixed.decode", "chunk": "mixed.chunk", "step": "mixed.step"}, decode=s_(m["decode_only_step_s"]), chunk=s_(m["chunk_only_step_s"]), step=s_(m["step_s"]), result=s_(m["saved_s"]))]
    piece, decodes, chunk, _ = mixed_passes(a.r)
    carried = step("mixed.piece", tokens=whole(chunk), start=whole(piece.start))
    fed = step("mixed.decodes", tokens=whole(decodes.tokens))
    steps = {"chunk": [carried], "decode": [fed], "step": [carried, fed]}[what]
    passes = {"chunk": piece, "decode": decodes, "step": (piece, decodes)}[what]
    return [*steps, *Working(a.r, "mixed", p=passes).limit()]


def plain(a: Asked) -> list:
    """A decode step without drafts, which is also its time per token."""
    w = Working(a.r, "decode", p=decode_pass(a.r.scenario, a.r.layout))
    likely = w.expected()[0] if a.likely else []
    return [step("head.work"), *w.work(), step("head.limit"), *w.limit(), *([step("head.expected"), *likely] if likely else [])]


def draft(a: Asked) -> list:
    """What drafting takes before each verify step."""
    s, found, r = a.r.scenario, a.report["serving"]["speculation"], a.r
    if not found:
        return [step("draft.none")]
    each = found["draft_s"] / s.draft
    if r.drafter is None:
        steps = [step("draft.layer", {"plain": "plain"} if not a.likely else None, plain=s_(found["plain_tpot_s"]), share=share_(mtp_share(r.arch)), result=s_(each))]
    else:
        one = decode_pass(s, r.layout)
        steps = [step("draft.model", name=r.drafter.name or r.drafter.id), *Working(r, "draft", p=one, ops=draft_operators(r, one)).limit()]
    total = found["draft_s"]
    if a.likely:
        total = found["expected_draft_s"]
        steps.append(step("draft.expected.layer", each=s_(each), verify=s_(found["expected_verify_s"]), limit=s_(found["verify_s"]), result=s_(total / s.draft)) if r.drafter is None else step("draft.expected", result=s_(total / s.draft)))
    return [*steps, step("draft.all", drafts=str(s.draft), each=s_(total / s.draft), result=s_(total))]


def accepted(a: Asked) -> list:
    """Tokens that a verify step yields."""
    s = a.r.scenario
    if not s.draft:
        return [step("draft.none")]
    if s.acceptance == 1:
        return [step("accepted.all", fed=str(s.draft + 1), result=n_(s.draft + 1.0))]
    return [step("accepted", acceptance=n_(s.acceptance), fed=str(s.draft + 1), result=n_(a.report["serving"]["tokens_per_step"]))]


def speedup(a: Asked) -> list:
    """How many times as fast as without drafts."""
    found = a.report["serving"]["speculation"]
    if not found:
        return [step("draft.none")]
    return [step("speedup", {"plain": "plain", "tpot": "tpot"}, plain=s_(a.of(found, "plain_tpot_s")), tpot=s_(a.serving("tpot_s")), result=times(a.of(found, "speedup")))]


def pool(a: Asked, what: str) -> list:
    """One of POOLS: prefill on chips of its own, at the limit."""
    r, s, p = a.r, a.r.scenario, a.report["serving"]["disaggregated"]
    if not p:
        return [step("pool.none")]
    q = prefill_side(r)
    if what == "prefill":
        w = Working(q, "prefill")
        return [step("pools.on", devices=str(q.layout.devices), hardware=q.chip.name), step("head.work"), *w.work(), step("head.limit"), *w.limit()]
    if what in ("transfer", "hidden"):
        wire, lanes = pool_wire(q.chip, load(s.hardware) if s.hardware != "custom" else r.chip, s.network), min(q.layout.tp, r.layout.tp)
        if wire == float("inf"):
            return [step("pool.nowire")]
        steps = [step("pool.transfer", bytes=b_(p["kv_transfer_bytes"]), lanes=str(lanes), wire=format_quantity(wire, "B/s"), result=s_(p["transfer_s"]))]
        return steps if what == "transfer" else [*steps, step("pool.hidden", transfer=s_(p["transfer_s"]), layers=str(r.arch.layer_count), result=s_(p["transfer_hidden_s"]))]
    w = Working(q, "prefill", sequences=p["prompts_together"])
    together = [step("pools.on.together", devices=str(q.layout.devices), hardware=q.chip.name, prompts=whole(p["prompts_together"])), step("head.work"), *w.work(), step("head.limit"), *w.limit(),
                step("pool.share", took=s_(w.limit_s), prompts=whole(p["prompts_together"]), result=s_(p["prefill_share_s"]))]
    if what == "rate":
        return [*together, step("pool.rate", fresh=whole(s.prompt - s.cached), share=s_(p["prefill_share_s"]), result=n_(p["prefill_tokens_per_s"]))]
    limit, ratio = a.report["serving"]["tpot_s"], p["prefill_instances_per_decode"]
    if limit is None:
        return [step("untimed")]
    told = [*together, step("pool.ratio", share=s_(p["prefill_share_s"]), output=whole(s.output), tpot=s_(limit), batch=whole(s.batch), result=n_(ratio))]
    own = r.layout.devices // r.layout.dp
    if what == "ratio":
        return told if ratio >= 1 else [*told, step("pool.inverse", ratio=n_(ratio), result=n_(1 / ratio))]
    chips = step("pool.chips", own=str(own), ratio=n_(ratio), each=str(q.layout.devices), result=n_(p["devices_per_decode_instance"]))
    if what == "chips":
        return [*told, chips]
    return [*told, chips, step("pool.per_device", batch=whole(s.batch), tpot=s_(limit), chips=n_(p["devices_per_decode_instance"]), result=n_(p["tokens_per_s_per_device"]))]
