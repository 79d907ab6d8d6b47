"""What does not fit: the nearest single changes that do, each checked before it is named."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from . import formats, memory, parallel
from .errors import InputError
from .fabric import fabric_of
from .scenario import Resolved
from .units import format_quantity


def ways_to_fit(r: Resolved, now: dict | None = None) -> list:
    """Single changes that make a scenario fit: [{"change": Scenario fields, "text"}], the least disturbing first; [] if it fits or is unknown.

    Tried: a smaller batch, a shorter prompt, FP8 and INT4 weights, an FP8 cache, and the fewest chips of which a legal layout of
    one replica fits. now: the scenario's own `memory.footprint`, if it is at hand.
    """
    s = r.scenario
    if r.chip.memory_bytes is None:
        return []

    def asked(answer, batch=s.batch, prompt=s.prompt, weights=r.weights, kv=r.kv, layout=r.layout):
        return answer(r.arch, weights, kv, batch=batch, prompt=prompt, output=s.output, layout=layout, memory_bytes=r.chip.memory_bytes,
                      utilisation=s.utilisation, overhead=s.overhead, block=s.block, offload=s.offload, offload_kv=s.offload_kv, draft=memory.draft_of(r.arch, weights, s.draft, r.drafter))

    fits = partial(asked, memory.fits)
    now = now or asked(memory.footprint)
    if now["fits"]:
        return []
    found = []
    add = lambda change, text: found.append({"change": change, "text": text})
    batch = now["max_batch"] or 0
    if 1 <= batch < s.batch and fits(batch=batch):
        add({"batch": batch}, f"a batch of {batch:,} fits")
    context = _longest_prompt(fits, s.prompt)
    if context:
        add({"prompt": context}, f"prompts of {context:,} tokens fit")
    if r.kv.bits > 8 and fits(kv=formats.parse("fp8", "kv")):
        add({"kv": "fp8"}, "an FP8 cache fits")
    for name in ("fp8", "int4"):
        smaller = formats.parse(name)
        if sum(formats.weight_bytes(r.arch, smaller)) < now["weights_bytes"] and fits(weights=smaller):
            add({"weights": name}, f"{name.upper()} weights fit")
            break
    fewest = _fewest(r, fits, now["min_devices"])
    if fewest:
        tp, pp = fewest.tp, fewest.pp
        add({"devices": fewest.devices, "tp": tp, "pp": pp, "dp": fewest.dp, "ep": None},
            f"{fewest.devices} chips (tensor parallel {tp}{f', pipeline {pp}' if pp > 1 else ''}{f', {fewest.dp} replicas' if fewest.dp > 1 else ''}) fit")
    return found


def _longest_prompt(fits, prompt: int) -> int:
    """The longest prompt below `prompt` that fits; 0 if none does."""
    low, high = 0, prompt
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(prompt=middle) else (low, middle)
    return low


def _fewest(r: Resolved, fits, least: int):
    """The fewest chips of which a layout of one replica fits: tensor parallel inside the fast links first, then pipeline stages of such groups; None if none is found."""
    domain = fabric_of(r.chip, r.scenario.network).domain
    legal = []
    for tp in range(1, int(min(domain, r.arch.heads or 64)) + 1):  # without attention there are no heads to divide
        layout = replace(r.layout, tp=tp, pp=1, ep=1)
        try:
            parallel.check(layout, r.arch)
        except InputError:
            continue
        legal.append(layout)
    whole = legal[-1]
    deep = (replace(whole, pp=n) for n in range(2, min(r.arch.layer_count, 8 * least) + 1))
    return next((layout for layout in (*legal, *deep) if layout.devices // layout.dp >= least and fits(layout=layout)), None)


def chips_that_hold(mem: dict, group: int) -> int:
    """The chips to name where a replica's `group` of them does not hold it: the fewest whose memory is enough, or, where the group has
    as many and a layout stores things twice, the fewest of which a legal layout fits.

    >>> chips_that_hold({"min_devices": 6, "ways": [{"change": {"devices": 16}}]}, 8), chips_that_hold({"min_devices": 6, "ways": []}, 2)
    (16, 6)
    """
    legal = next((way["change"]["devices"] for way in mem.get("ways") or () if "devices" in way["change"]), None)
    return legal if legal and mem["min_devices"] <= group else mem["min_devices"]


def sentence(r: Resolved, mem: dict, ways: list) -> str:
    """The refusal in words: what is needed, what there is, and what would fit."""
    group = r.layout.tp * r.layout.pp
    need, have = format_quantity(mem["total_bytes"], "B"), format_quantity(mem["available_bytes"], "B")
    enough = chips_that_hold(mem, group)
    texts = [f"{enough} such chips hold it", *(way["text"] for way in ways if way["change"].get("devices") != enough)]
    return (f"{r.arch.name or r.arch.id} needs {need} here (weights {format_quantity(mem['weights_bytes'], 'B')}, KV cache {format_quantity(mem['kv_bytes_stored'], 'B')}); "
            f"{group} x {r.chip.name} ha{'s' if group == 1 else 've'} {have}, so no time is given. {'; '.join(texts)}.")
