"""From one forward pass to a service: speculation, queueing, mixed steps, pools. Pure formulas; `report` puts them to use."""

from __future__ import annotations

import math
from dataclasses import dataclass

from .numeric import falling_root, maximum, where


def accepted_tokens(acceptance, draft):
    """Expected tokens per verify step, the model's own included: (1 - a^(g+1)) / (1 - a) [tokens].

    acceptance: a, the chance that one drafted token is accepted, 0..1; draft: g, tokens drafted per step. A rejection ends the
    chain, so the sum is geometric, never a x g + 1. Source: Leviathan et al. 2023 (arXiv:2211.17192), equation 1.

    >>> round(accepted_tokens(0.8, 5), 2)
    3.69
    >>> accepted_tokens(1.0, 3)
    4.0
    """
    same = acceptance == 1
    a = where(same, 0.5, acceptance)
    return where(same, draft + 1.0, (1.0 - a ** (draft + 1)) / (1.0 - a))


def speculative_speedup(acceptance, draft, draft_cost, verify_cost=1.0):
    """Speed of decoding with speculation over without: accepted tokens / (g x c + v).

    draft_cost: c, one draft step over one plain step of the model; verify_cost: v, a verify step over a plain step.
    Source: Leviathan et al. 2023 (arXiv:2211.17192), theorem 3.8.

    >>> round(speculative_speedup(0.75, 7, 0.02), 2)
    3.16
    """
    return accepted_tokens(acceptance, draft) / (draft * draft_cost + verify_cost)


def md1_wait(rate, service_s):
    """Mean wait of a queue with random arrivals and equal service times (M/D/1): R D^2 / (2 (1 - R D)) [s].

    rate: R [requests/s]; service_s: D [s]. Infinite once R D reaches 1. Source: Pollaczek-Khinchine.

    >>> round(md1_wait(5, 0.1), 3)
    0.05
    """
    busy = rate * service_s
    full = busy >= 1
    return where(full, float("inf"), rate * service_s * service_s / (2.0 * (1.0 - where(full, 0.0, busy))))


def pipelined_ttft(rate, service_s, stages: int = 2):
    """Mean TTFT with the model cut into equal pipeline stages: D + R D^2 / (2 n (n - R D)) [s].

    Each of n stages serves a request in D/n, so the queue is M/D/1 with D/n, while the request still takes D in all.
    Source: DistServe (arXiv:2401.09670), section 3.1.

    >>> round(pipelined_ttft(5, 0.1), 4)
    0.1083
    """
    return service_s + md1_wait(rate, service_s / stages)


def tensor_ttft(rate, service_s, speedup):
    """Mean TTFT with the model spread over chips that answer `speedup` times sooner: D/K + M/D/1 wait of D/K [s].

    Source: DistServe (arXiv:2401.09670), section 3.1.

    >>> round(tensor_ttft(5, 0.1, 1.6), 4)
    0.0767
    """
    return service_s / speedup + md1_wait(rate, service_s / speedup)


def steady_context(prompt, output):
    """Mean context of a request in a running service: requests are spread evenly over their generation: P + G/2 [tokens].

    >>> steady_context(8192, 4096)
    10240.0
    """
    return prompt + output / 2.0


def little(rate, residence_s):
    """Requests in flight: rate x time each stays (Little's law) [requests]."""
    return rate * residence_s


def pool_ratio(prefill_s, step_s, batch, output):
    """Prefill instances that keep one decode instance fed.

    A request holds a prefill instance prefill_s [s], and a slot of `batch` in a decode instance for output x step_s [s]:
    ratio = prefill_s / (output x step_s / batch). Source: scaling book, inference chapter (disaggregated serving).

    >>> round(pool_ratio(0.91, 0.019, 32, 512), 2)
    2.99
    """
    return prefill_s / (output * step_s / batch)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompts:
    """What prompts take of an engine: one by itself alone_s [s]; `most` read together share_s each [s] (weights are read once for all)."""

    alone_s: float
    share_s: float
    most: float = 1.0

    def parts(self) -> tuple:
        """(a, b) of the time a + b n of n prompts together [s]."""
        if self.most <= 1:
            return 0.0, self.alone_s
        each = max(0.0, (self.share_s * self.most - self.alone_s) / (self.most - 1.0))
        return max(0.0, self.alone_s - each), each

    def gathered(self, rate, step_s) -> float:
        """Prompts that are read together under random arrivals: those that came during a step and the prompts before it, 1 to `most`.

        n = rate x (a + b n + step).
        """
        a, b = self.parts()
        return self.most if rate * b >= 1 else min(self.most, max(1.0, rate * (a + step_s) / (1.0 - rate * b)))

    def each_s(self, rate, step_s) -> float:
        """What one of them takes of the engine: a / n + b [s]."""
        a, b = self.parts()
        return a / self.gathered(rate, step_s) + b


def steady_state(rate, prompts, step_of, max_batch, output):
    """A service under random arrivals at `rate`: the batch it settles at, or None if it cannot keep up.

    prompts: `Prompts`, or the time that every prompt takes from the engine [s]; step_of(batch): one decode step [s]; output [tokens].
    Prefill takes the share u = rate x time of a prompt of the engine's time, so a step takes step_of(B) / (1 - u); by Little's law
    B = rate x (output - 1) x step, which has one solution below max_batch: step_of grows slower than B until the engine is
    saturated. Returns {"batch", "tpot_s", "utilisation", "prefill_share"}. An estimate: it leaves out how engines
    order prefills and decodes, and how requests vary in length.
    """
    prompts = prompts if isinstance(prompts, Prompts) else Prompts(alone_s=prompts, share_s=prompts)
    share_of = lambda b: rate * prompts.each_s(rate, step_of(b) if output > 1 else 0.0)
    top = share_of(float(max_batch))
    if top >= 1:
        return None
    steps = max(output - 1, 0)
    need = lambda b: rate * steps * step_of(b) / max(1e-12, 1.0 - share_of(b))
    if steps == 0:
        return {"batch": 0.0, "tpot_s": None, "utilisation": top, "prefill_share": top}
    if need(max_batch) >= max_batch:
        return None
    batch = falling_root(lambda b: need(b) - b, 0.0, float(max_batch))
    share = share_of(batch)
    return {"batch": batch, "tpot_s": step_of(batch) / (1.0 - share), "utilisation": need(max_batch) / max_batch, "prefill_share": share}


def capacity_of(prompts, step_s, max_batch, steps) -> float:
    """Requests/s at which max_batch of them are always in flight: max_batch / (max_batch x time of a prompt + steps x step)."""
    rate = max_batch / (max_batch * prompts.share_s + steps * step_s)
    for _ in range(50):  # fewer prompts come together at a lower rate, and each then takes longer
        rate = max_batch / (max_batch * prompts.each_s(rate, step_s if steps else 0.0) + steps * step_s)
    return rate


def queue(rate, prompts, step_of, max_batch, output) -> dict:
    """One replica under random arrivals: what it can take, where it settles and how long requests wait (an estimate).

    Arguments as in `steady_state`. capacity_per_s: see `capacity_of`. TTFT is the time of the prompt and of those read with it, and
    three waits, see `Waits`. e2e adds the steps. All None if it cannot keep up.
    """
    prompts = prompts if isinstance(prompts, Prompts) else Prompts(alone_s=prompts, share_s=prompts)
    steps = max(output - 1, 0)
    state = steady_state(rate, prompts, step_of, max_batch, output)
    base = {"capacity_per_s": capacity_of(prompts, step_of(float(max_batch)), max_batch, steps), "stable": state is not None, "prefill_s": prompts.alone_s}
    if state is None:
        return base | dict.fromkeys(("batch", "utilisation", "prefill_share", "tpot_s", "ttft_mean_s", "ttft_p50_s", "ttft_p90_s", "ttft_p99_s", "e2e_mean_s", "place_wait_s"))
    w = waits(rate, prompts, step_of, max_batch, output, state)
    tail = {f"ttft_p{q}_s": w.own_s + max(w.late(q / 100)) for q in (50, 90, 99)}  # the waits rarely meet
    mean = w.own_s + w.queue_s + w.step_s / 2 + w.place_s
    return base | state | tail | {"ttft_mean_s": mean, "e2e_mean_s": mean + (state["tpot_s"] or 0.0) * steps, "place_wait_s": w.place_s}


@dataclass(frozen=True, slots=True, kw_only=True)
class Waits:
    """What the first token of a request waits for in a service that has settled [s].

    own_s: its prompt and the `count` that are read with it. queue_s: for the prompts before them, on average (`md1_wait`, of prompts
    of each_s at `rate`; those that all go with the next pass wait for half of the running one, longest_s / 2). step_s: a step that
    runs, half of which is left on average, times the share of time that one runs. place_s: for a place in the batch, on average over
    all requests, of which a share `chance` find it full (`place_wait`, at the load `full` of a full batch).
    """

    rate: float
    count: float
    each_s: float
    own_s: float
    queue_s: float
    longest_s: float
    step_s: float
    chance: float
    full: float
    place_s: float

    def late(self, share: float) -> tuple:
        """What a request waits at a share of the requests, 0 to 1, for each of the three: (running step, prompts before, place) [s]."""
        place = self.place_s / self.chance * math.log(self.chance / (1 - share)) if self.chance > 1 - share else 0.0
        return share * self.step_s, min(wait_quantile(self.rate, self.each_s, share), share * self.longest_s), place


def waits(rate, prompts, step_of, max_batch, output, state: dict) -> Waits:
    """The `Waits` of a service at the state that `steady_state` found; the other arguments are the same."""
    steps = max(output - 1, 0)
    here = step_of(max(1.0, state["batch"])) if steps else 0.0
    each, (a, b) = prompts.each_s(rate, here), prompts.parts()
    count = prompts.gathered(rate, here)
    own = a + b * count
    longest = own if count < prompts.most else math.inf  # prompts that all go with the next pass wait for the running one, and no longer
    wait, step, chance, full, place = min(md1_wait(rate, each), longest / 2), 0.0, 0.0, 0.0, 0.0
    if steps:
        free, settled = 1.0 - state["prefill_share"], state["batch"]
        nodes = sorted({1.0, max(1.0, settled / 2), max(1.0, settled), max(1.0, (settled + max_batch) / 2), float(max_batch)})
        took = [step_of(n) for n in nodes]
        load = lambda n, s: rate * steps * s / (1.0 - rate * prompts.each_s(rate, s)) / n
        full = load(max_batch, took[-1])
        chance, place = place_wait(rate, lambda n: load(n, _between(nodes, took, n)), max_batch)
        step = free * (1.0 - math.exp(-settled)) * here  # of a running one, times the share of time that one runs
    return Waits(rate=rate, count=count, each_s=each, own_s=own, queue_s=wait, longest_s=longest, step_s=step, chance=chance, full=full, place_s=place)


def _between(xs: list, ys: list, x: float) -> float:
    """The broken line through (xs, ys) at x, flat beyond its ends; xs rise."""
    if x <= xs[0]:
        return ys[0]
    for left, right, low, high in zip(xs, xs[1:], ys, ys[1:]):
        if x <= right:
            return low + (high - low) * (x - left) / (right - left)
    return ys[-1]


def place_wait(rate, load, places: int, cells: int = 512) -> tuple:
    """(chance that a request finds the batch full, mean wait for a place over all requests [s]): an estimate.

    The requests in flight as a birth-death chain: they come at `rate` and, with n in flight, leave at rate / load(n), load being rate
    x what n requests take to finish one of them. So p(n) = p(n - 1) load(n) up to `places`, and p(n - 1) load(places) beyond, where
    they queue; by Little's law the wait is their mean number / rate, halved since all requests take as many steps (as M/D/c over
    M/M/c). Against a simulation of an engine that reads prompts first it is within a factor of 3 from 80 to 98 % of capacity.

    >>> [round(x, 4) for x in place_wait(5.0, lambda n: 0.5 / n, 1)]  # one place of 0.1 s: M/D/1 at 50 %
    [0.5, 0.05]
    """
    full = load(places)
    if full >= 1:
        return 1.0, float("inf")
    count = min(places, cells)
    width = places / count
    logs = [0.0]
    for i in range(count):
        logs.append(logs[-1] + width * math.log(load(i * width + (width + 1) / 2)))
    top = max(logs)
    last = math.exp(logs[-1] - top) / (1.0 - full)
    chance = last / (width * sum(math.exp(x - top) for x in logs[:-1]) + last)
    return chance, chance * full / (1.0 - full) / rate / 2.0


def wait_quantile(rate, service_s, quantile):
    """Wait that a share `quantile` of requests stays under, taking the tail as exponential [s].

    The wait is zero with chance 1 - rho, else taken as exponential with mean W / rho (W the M/D/1 mean): an estimate; the form
    is exact for M/M/1.
    """
    busy = rate * service_s
    if busy >= 1:
        return float("inf")
    if 1 - quantile >= busy or busy == 0:
        return 0.0
    return md1_wait(rate, service_s) / busy * math.log(busy / (1 - quantile))


def link_time(size, bandwidth, latency_s=0.0, messages=1):
    """Alpha-beta cost of a transfer: messages x latency + bytes / bandwidth [s].

    >>> round(link_time(1e9, 50e9, 5e-6), 6)
    0.020005
    """
    return messages * latency_s + size / bandwidth


def mixed_step(prefill_parts, decode_parts, shared_weights_s):
    """Least time of a step that carries a chunk of prefill and a batch of decodes [s].

    parts: (compute, memory, network) seconds of each alone; shared_weights_s: the weights that both would read and the mixed
    step reads once [s]. max(sum of compute, sum of memory less the shared weights, sum of network). Source: Sarathi-Serve
    (arXiv:2403.02310): decodes ride along in the slack of a compute-bound chunk.

    >>> mixed_step((10e-3, 5e-3, 0), (1e-3, 6e-3, 0), 4.5e-3)
    0.011
    """
    sums = [a + b for a, b in zip(prefill_parts, decode_parts, strict=True)]
    return maximum(maximum(sums[0], sums[1] - shared_weights_s), sums[2])


def chunked_cycle(batch, chunks, output, mixed_s, decode_s):
    """Time in which a batch turns over once when prompts enter in chunks that carry the decodes of the others [s].

    Every request needs `chunks` mixed steps for its prompt and output - 1 steps of decoding; the mixed steps of all serve as
    decode steps too: batch x chunks x mixed + max(0, output - 1 - batch x chunks) x decode.

    >>> round(chunked_cycle(4, 2, 101, 0.02, 0.01), 2)
    1.08
    """
    mixed = batch * chunks
    return mixed * mixed_s + maximum(0.0, output - 1.0 - mixed) * decode_s


# ---- published services, taken apart ----------------------------------------------------------------------------------


def step_overhead(tokens_per_step, speedup):
    """How much longer a speculative step takes than a plain one: tokens per step / speed-up. At least 1: drafting is never free.

    >>> round(step_overhead(4.36, 2.25), 2)
    1.94
    """
    return tokens_per_step / speedup


def tpot_of(batch, tokens_per_s):
    """Time between two tokens of one user when `batch` users share a rate: batch / rate, never 1 / rate [s].

    >>> round(tpot_of(256, 22282 / 8) * 1e3, 1)
    91.9
    """
    return batch / tokens_per_s


def concurrency(tokens_per_s, tokens_per_s_per_user):
    """Users in flight that two published speeds imply (Little's law): rate / rate of one user.

    >>> round(concurrency(14800 / 8, 21), 1)
    88.1
    """
    return tokens_per_s / tokens_per_s_per_user


def queries_per_s(batch, step_s, output, chips=1):
    """Requests finished each second by each chip while decoding: batch / (step x output x chips) [requests/s].

    >>> round(queries_per_s(43, 0.019, 512, 8), 2)
    0.55
    """
    return batch / (step_s * output * chips)


def evicted_tokens(batch, prompt, output):
    """Cached tokens that finished requests give back each step: batch x (prompt + output) / output [tokens].

    >>> evicted_tokens(32, 8192, 4096)
    96.0
    """
    return batch * (prompt + output) / output


def instances_for(tokens, seconds, tokens_per_s):
    """Instances that a stream of tokens keeps busy: tokens / seconds / rate of one instance.

    >>> round(instances_for(168e9, 86400, 14800), 1)
    131.4
    """
    return tokens / seconds / tokens_per_s


def kv_transfer(size, bandwidth, layers=1) -> tuple:
    """(time if sent after the prompt, time if each layer leaves while the next is computed) of a KV cache [s].

    size / bandwidth, and one layer of it: what cannot hide behind the last layer. Source: Splitwise (arXiv:2311.18677), section 4.

    >>> [round(t * 1e3, 3) for t in kv_transfer(327680 * 1500, 50e9, 80)]
    [9.83, 0.123]
    """
    return size / bandwidth, size / layers / bandwidth


def chunk_ratio(chunk, batch):
    """Prompt tokens a decoded token for which every chunk is full of decodes to carry: chunk / (batch - 1).

    Of a batch of B slots one prefills and B - 1 decode. Source: SARATHI (arXiv:2308.16369), section 4.3.

    >>> round(chunk_ratio(256, 18), 1)
    15.1
    """
    return chunk / (batch - 1.0)


def hit_rate(cached, total):
    """Share of the prompt tokens that were in a cache: cached / total.

    >>> hit_rate(342e9, 608e9)
    0.5625
    """
    return cached / total


def computed_tokens(tokens, hit):
    """Prompt tokens that are really computed at a cache hit rate: tokens x (1 - hit).

    >>> round(computed_tokens(73700, 0.5625))
    32244
    """
    return tokens * (1.0 - hit)
