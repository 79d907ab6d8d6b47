"""How one model is spread over chips, and what its collectives cost.

Tensor parallel (tp) splits every matrix; pipeline (pp) splits the layers; expert parallel (ep) splits the experts over the
chips of one or several replicas; data parallel (dp) makes replicas. devices = tp x pp x dp.
"""

from __future__ import annotations

from dataclasses import dataclass

from .errors import InputError
from .fabric import Fabric
from .model import Architecture
from .network import all_reduce_bytes, all_to_all_bytes, distinct_domains, distinct_ranks, hierarchical_all_reduce_bytes
from .numeric import any_true, is_array, maximum, minimum, where
from .operators import Operator, block_count, routed_layers, totals


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """tp, pp, ep, dp [chips]. ep counts chips that share one set of experts: it divides tp, or spans ep / tp replicas.

    Each may be a NumPy array, for many layouts at once; only whole numbers are checked here.
    """

    tp: int = 1
    pp: int = 1
    ep: int = 1
    dp: int = 1

    def __post_init__(self):
        for name in ("tp", "pp", "ep", "dp"):
            value = getattr(self, name)
            if is_array(value):
                continue
            if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= 65536:
                raise InputError(name, value, "must be a whole number from 1 to 65,536")

    @property
    def devices(self) -> int:
        return self.tp * self.pp * self.dp

    @property
    def pool(self) -> int:
        """Replicas whose tokens share one set of experts."""
        return maximum(1, self.ep // self.tp)


def check(layout: Layout, arch: Architecture) -> None:
    """Raise InputError if this model cannot be spread like this, naming the nearest setting that can.

    Rules: tp divides the query heads, and divides or is a multiple of the KV heads; pp is at most the layers; ep divides the
    experts, and ep and tp divide one another; replicas come in whole expert groups.
    """
    tp = layout.tp
    if tp > 1 and not _splits(tp, arch):
        legal = [n for n in range(1, arch.heads + 1) if _splits(n, arch)] or [1]
        below = max((n for n in legal if n < tp), default=None)
        above = min((n for n in legal if n > tp), default=None)
        options = " or ".join(str(n) for n in (below, above) if n)
        core = next((a for a in arch.attentions if a.heads % tp), None)
        why = f"does not divide the {core.heads} attention heads" if core else "neither divides nor is a multiple of the KV heads"
        raise InputError("tp", tp, f"{why} of {arch.id}; use {options}")
    if layout.pp > arch.layer_count:
        raise InputError("pp", layout.pp, f"is more stages than the {arch.layer_count} layers of {arch.id}; use at most {arch.layer_count}")
    if layout.ep > 1:
        experts = max((t.copies for t in arch.tensors if t.group == "experts"), default=0)
        if not experts:
            raise InputError("ep", layout.ep, f"needs a mixture of experts, and {arch.id} has none; use 1")
        if experts % layout.ep:
            below = max(n for n in range(1, layout.ep) if experts % n == 0)
            raise InputError("ep", layout.ep, f"does not divide the {experts} experts of {arch.id}; use {below}")
        if layout.ep % tp and tp % layout.ep:
            raise InputError("ep", layout.ep, f"must divide tp {tp} or be a multiple of it; use {tp}")
        if layout.dp % layout.pool:
            raise InputError("ep", layout.ep, f"spans {layout.pool} replicas, but there are {layout.dp}; use dp {layout.pool} or ep {tp}")


def layouts(devices: int, moe: bool):
    """Every way to factor `devices` chips into tp x pp x dp, with experts held whole, split over tp, or over the replicas too (if `moe`).

    >>> [(x.tp, x.pp, x.dp) for x in layouts(2, moe=False)]
    [(1, 1, 2), (1, 2, 1), (2, 1, 1)]
    """
    divisors = [n for n in range(1, devices + 1) if devices % n == 0]
    for tp in divisors:
        for pp in (n for n in divisors if devices % (tp * n) == 0):
            dp = devices // (tp * pp)
            for ep in sorted({1, *((tp, tp * dp) if moe else ())}):
                yield Layout(tp=tp, pp=pp, ep=ep, dp=dp)


def _splits(tp: int, arch: Architecture) -> bool:
    cores = [a for a in arch.attentions if a.kind != "cross"]
    return all(a.heads % tp == 0 and (a.kv_heads % tp == 0 or tp % a.kv_heads == 0) for a in cores)


def ring_bytes(size, n):
    """Bytes each chip sends in a ring all-reduce of `size` bytes over n chips, see `network.all_reduce_bytes` [bytes].

    >>> ring_bytes(1e9, 8)
    1750000000.0
    """
    return all_reduce_bytes(size, n)


def collectives(arch: Architecture, p, layout: Layout, activation_bytes: float = 2.0, fabric: Fabric | None = None, imbalance: float = 1.0) -> tuple:
    """The operators that only move data between chips, per replica; `link_bytes` is what one chip sends.

    fabric: the chips' network; None: one switch for all that cannot add. activation_bytes: of what is sent to the experts
    [bytes/element]. imbalance: what the busiest expert rank receives over the mean.
    Tensor parallel: one all-reduce of tokens x hidden per residual block (two a layer), and an all-gather of the logits; beyond a
    domain of fast links each chip carries its part of the sum over the network. Expert parallel: tokens x k x hidden out and back,
    (ep-1)/ep of it to other chips; a token crosses to another domain once, however many of its experts are there, and a limit counts
    it once for a chip too (`network.distinct_ranks`). Its layers
    need no second all-reduce: the tokens stay scattered between the two. Pipeline: tokens x hidden per hop.
    """
    fabric = fabric or Fabric()
    ops = []
    tp, ep, hidden = layout.tp, layout.ep, arch.hidden
    _, tokens, sampled = totals(p)
    share = lambda n: fabric.share(fabric.inside(n)) / fabric.reference(layout)

    def collective(name, count, inside, beyond, kind, group, messages, load=1.0, spared=0.0):
        outer = fabric.domains(group)
        ops.append(Operator(name=name, group="collective", count=count, roof="link", link_bytes=inside + beyond, network_bytes=beyond, link_share=share(group),
                            messages=messages, latency_s=messages * fabric.latency(kind, fabric.inside(group), outer), load=load, spared_bytes=spared))

    # Within one tp group every rank holds all tokens, so only experts beyond it need a dispatch of this rank's share of them.
    spans = layout.pool > 1
    layers, k = routed_layers(arch)
    if any_true(tp > 1):
        blocks = block_count(arch)
        times = where(tp > 1, blocks - where(spans, layers, 0), 0)
        inside, beyond = hierarchical_all_reduce_bytes(tokens * hidden * 2.0, fabric.inside(tp), fabric.domains(tp), fabric.in_network)
        collective("all-reduce", blocks, inside * times, beyond * times, "all_reduce", tp, times)
        # The logits' shards are whole tokens' words: each rank sends its own, and what leaves a domain leaves it once.
        inside, beyond = hierarchical_all_reduce_bytes(sampled * arch.vocab * 2.0, fabric.inside(tp), fabric.domains(tp))
        collective("all-gather logits", 1, inside / 2, beyond / 2, "all_gather", tp, where(tp > 1, 1, 0))
    if any_true(spans):
        near, domains = fabric.inside(ep), fabric.domains(ep)
        sent = where(spans, tokens / tp * hidden, 0.0) * layers
        inside, beyond = all_to_all_bytes(sent * k, near), sent * distinct_domains(k, domains)
        messages = where(spans, layers, 0)
        twice = maximum(0.0, inside - sent * distinct_ranks(k, near, domains))  # further copies to a chip that has the token
        collective("all-to-all dispatch", layers, inside * activation_bytes, beyond * activation_bytes, "all_to_all", ep, messages, imbalance, twice * activation_bytes)
        collective("all-to-all combine", layers, inside * 2.0, beyond * 2.0, "all_to_all", ep, messages, imbalance, twice * 2.0)
    if any_true(layout.pp > 1):
        hops = layout.pp - 1
        each = tokens * hidden * 2.0 / tp
        # Stages lie side by side, so only those at the edge of a domain send beyond it.
        away = minimum(hops, fabric.domains(tp * layout.pp) - fabric.domains(tp))
        ops.append(Operator(name="pipeline hop", group="collective", count=hops, roof="link", link_bytes=each * hops, network_bytes=each * away, link_share=share(2),
                            messages=hops, latency_s=(hops - away) * fabric.latency("send", 2) + away * fabric.network_send_s))
    return tuple(ops)
