"""The roofline equation, and the least time a pass can take under all its roofs at once."""

from __future__ import annotations

from dataclasses import dataclass

from .errors import InputError
from .fabric import fabric_of
from .hardware import Accelerator
from .numeric import any_true, maximum, minimum, where
from .parallel import Layout


def attainable(peak, bandwidth, intensity):
    """P = min(peak, bandwidth x intensity) [FLOP/s].

    peak [FLOP/s], bandwidth [bytes/s], intensity [FLOP/byte]. Source: Williams, Waterman, Patterson, CACM 52(4), 2009.

    >>> attainable(989.4e12, 3.35e12, 1.0)
    3350000000000.0
    """
    return minimum(peak, bandwidth * intensity)


def ridge(peak, bandwidth):
    """The intensity at which memory and compute take equally long: peak / bandwidth [FLOP/byte].

    >>> round(ridge(989.4e12, 3.35e12), 1)
    295.3
    """
    return peak / bandwidth


def bare(*, peak: float, bandwidth: float, intensity: float) -> dict:
    """The bare question: three numbers in, ridge, attainable, bound and utilisation out (SI units).

    >>> bare(peak=989e12, bandwidth=3.35e12, intensity=1.0)["bound"]
    'memory'
    """
    for field, value in (("peak", peak), ("bandwidth", bandwidth), ("intensity", intensity)):
        if not (isinstance(value, (int, float)) and 0 < value < 1e30):
            raise InputError(field, value, "must be a number above 0")
    reach = attainable(peak, bandwidth, intensity)
    return {
        "peak_flops_per_s": peak, "bandwidth_bytes_per_s": bandwidth, "intensity_flops_per_byte": intensity,
        "ridge_flops_per_byte": ridge(peak, bandwidth), "attainable_flops_per_s": reach,
        "bound": "compute" if intensity >= ridge(peak, bandwidth) else "memory",
        "compute_utilisation": reach / peak, "bandwidth_utilisation": reach / intensity / bandwidth,
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Roofs:
    """The roofs of one chip that a scenario meets.

    peaks: {compute format asked: FLOP/s it gets}, "vector" included; bandwidth, link, host, network [bytes/s]. link: what one
    chip has inside the domain of the fast links, infinite for one chip; network: what it has beyond.
    """

    peaks: dict
    bandwidth: float
    link: float
    host: float = float("inf")
    network: float = float("inf")


def roofs_of(chip: Accelerator, layout: Layout, compute: tuple, network_bytes_per_s: float | None = None, host_bytes_per_s: float | None = None) -> Roofs:
    """The roofs that `compute` formats meet on a chip; beyond the chips its fast links join, the network's bandwidth holds.

    Raises InputError when chips must talk and neither the chip nor the caller says how fast.
    """
    peaks = {name: chip.roof_of(name)[1] for name in {*compute, "bf16"}}
    # Element-by-element work runs on the vector units at the FP32 rate; a chip whose vector rate is unpublished is not limited by it.
    peaks["vector"] = chip.peak("fp32") or max(v for _, v in chip.peaks)
    fabric = fabric_of(chip, network_bytes_per_s)
    return Roofs(peaks=peaks, bandwidth=chip.bandwidth_bytes_per_s, link=link_of(chip, layout, network_bytes_per_s), host=host_bytes_per_s or chip.host_bytes_per_s or float("inf"),
                 network=fabric.network_bytes_per_s or float("inf"))


def link_of(chip: Accelerator, layout: Layout, network_bytes_per_s: float | None = None):
    """What one chip of a layout can send inside the domain of its fast links [bytes/s]; infinite where no chips must talk.

    The chip's links times the part of them that the layout's largest group reaches (`Fabric.reference`); everything broadcasts.
    Raises InputError where chips must talk and neither the chip nor the user says how fast.
    """
    if not any_true(talks(layout)):
        return float("inf")
    fabric = fabric_of(chip, network_bytes_per_s)
    if fabric.chip_bytes_per_s is None:
        raise InputError("link", "unknown", f"{chip.name} publishes no chip-to-chip bandwidth; give one as link, or use one chip")
    return link_roof(fabric, layout)


def talks(layout: Layout):
    """Whether chips of a layout must talk to make a token."""
    return layout.tp * layout.pp * where(layout.ep > 1, layout.pool, 1) > 1


def link_roof(fabric, layout: Layout):
    """The link roof of a layout on a fabric [bytes/s], see `link_of`."""
    return where(talks(layout), fabric.chip_bytes_per_s * fabric.reference(layout), float("inf"))


def link_seconds(op, roofs: Roofs, least: bool = False):
    """Time of a collective at the full speed of its links [s]: its bytes inside the domain and those beyond travel at once, the longer holds.

    max((link bytes - network bytes) / (link x its share), network bytes / network) x the busiest chip's load. Latency is left out.
    least: without the bytes that the best kernels spare, as a limit must.
    """
    inside = op.link_bytes - op.network_bytes - (op.spared_bytes if least else 0.0)
    return op.load * maximum(inside / (roofs.link * op.link_share), op.network_bytes / roofs.network)


PARTS = ("compute", "memory", "network", "host")


def limit_parts(ops, roofs: Roofs, layout: Layout, stages=1):
    """(compute, memory, network, host) seconds that one pass takes at least [s], on each chip of a tensor-parallel group.

    compute = sum of FLOPs / (tp x peak of its format); memory = (weights / tp + KV / min(tp, KV heads)) / bandwidth;
    network = `link_seconds` of the collectives; host = offloaded bytes / host link. Activations may live on chip and element-by-element work may
    be fused away, so neither counts. The pass cannot be shorter than the largest of the four, see `longest`. stages: pipeline stages
    that work on chunks of the pass at once, so that each computes, sends and caches its share of it; every chunk still waits for the
    weights of all stages in turn.
    """
    work, near, away, network = {}, 0.0, 0.0, 0.0
    for op in ops:
        if op.group == "collective":
            network = network + link_seconds(op, roofs, least=True) / stages
            continue
        flops, here, there = op_load(op, layout.tp, stages)
        # Loads are added before they are divided by the roofs: for arrays of many chips that is far less to do.
        if op.roof != "vector":
            work[op.roof] = work.get(op.roof, 0.0) + flops
        near, away = near + here, away + there
    compute = 0.0
    for name, flops in work.items():
        compute = compute + flops / roofs.peaks[name]
    return compute, near / roofs.bandwidth, network, away / roofs.host


def longest(parts):
    """The largest of the four parts of `limit_parts`: the least time of the pass [s].

    >>> longest((1e-3, 4e-3, 0.0, 0.0))
    0.004
    """
    return maximum(maximum(parts[0], parts[1]), maximum(parts[2], parts[3]))


def op_parts(op, roofs: Roofs, tp, stages=1):
    """(compute, memory, network, host) seconds of one operator at its limit [s]; see `limit_parts`."""
    if op.group == "collective":
        return 0.0, 0.0, link_seconds(op, roofs, least=True) / stages, 0.0
    flops, near, away = op_load(op, tp, stages)
    return 0.0 if op.roof == "vector" else flops / roofs.peaks[op.roof], near / roofs.bandwidth, 0.0, away / roofs.host


def op_load(op, tp, stages=1):
    """What the busiest chip does for one operator: (FLOP, bytes from its own memory, bytes over the host link); see `limit_parts`."""
    share = 1 if op.replicated else tp
    shards = minimum(tp, op.kv_shards)
    cache = op.group in ("attention_core", "recurrent")
    moved = op.read_load * op.weight_bytes / share + (op.kv_read_bytes + op.kv_write_bytes) / (shards * stages)
    away = op.read_load * op.host_bytes / (shards * stages if cache else share)
    return op.load * op.flops / (tp * stages), moved - away, away
