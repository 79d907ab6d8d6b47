"""The network that a chip really has: which links, in what shape, how far they reach, what a message costs (data/links.toml)."""

from __future__ import annotations

import sys
import tomllib
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources

from .hardware import Accelerator
from .network import mesh_bandwidth, torus_ports, torus_shape
from .numeric import ceil, is_array, maximum, minimum, where


@dataclass(frozen=True, slots=True, kw_only=True)
class Fabric:
    """How chips of one kind talk.

    kind: switch, mesh, torus or host. chip_bytes_per_s: all links of a chip, one direction; pair_bytes_per_s: one link of a mesh.
    domain: chips the fast links join (infinite: no limit known). in_network: the switch adds. axes, wrap, longest: of a torus.
    network_bytes_per_s: what one chip has beyond its domain. *_s: time of a small collective, of one message and of one hop [s].
    """

    kind: str = "switch"
    id: str = ""
    chip_bytes_per_s: float | None = None
    pair_bytes_per_s: float | None = None
    domain: float = float("inf")
    in_network: bool = False
    axes: int = 0
    wrap: int | None = None
    longest: int = 1
    host: int | None = None
    network_bytes_per_s: float | None = None
    all_reduce_s: float = 0.0
    gather_s: float = 0.0
    all_to_all_s: float = 0.0
    send_s: float = 0.0
    hop_s: float = 0.0
    network_send_s: float = 0.0
    source: str = ""
    network_source: str = ""

    def inside(self, n):
        """Chips of a group of n that share one domain [chips]."""
        return minimum(n, self.domain)

    def domains(self, n):
        """Domains that a group of n chips spreads over."""
        return ceil(n / self.domain) if self.domain != float("inf") else n // n

    def share(self, n):
        """Part of a chip's links that a collective over n chips of one domain can use.

        Switch: all of it. Mesh: the links to the n-1 others. Torus: the ports of the best shape of n chips (2 an axis that closes
        into a ring, 1 an axis that does not).

        >>> from roofline.hardware import load
        >>> fabric_of(load("mi300x")).share(2), fabric_of(load("tpu-v5e")).share(8)
        (0.14285714285714285, 0.5)
        """
        n = maximum(n, 2)
        if self.kind == "mesh" and self.pair_bytes_per_s:
            return mesh_bandwidth(self.pair_bytes_per_s, n, self.chip_bytes_per_s) / self.chip_bytes_per_s
        if self.kind == "torus":
            return _each(n, lambda k: torus_ports(torus_shape(k, self.axes, self.wrap, self.longest), self.wrap) / (2.0 * self.axes))
        return 1.0

    def reference(self, layout):
        """Part of a chip's links that the largest group of a layout uses inside one domain: the tensor-parallel group, else the experts', else a pair.

        The link roof of a layout is this part of the chip's links.
        """
        group = where(layout.tp > 1, layout.tp, maximum(layout.ep, 2))
        return self.share(self.inside(group))

    def latency(self, op: str, n, outer=1):
        """Time of a small collective over n chips, or of one message [s]: what is paid besides the bytes.

        op: all_reduce, all_gather, all_to_all or send. On a torus a gather takes its hops: half an axis around a ring, all of it
        along a line; an all-reduce twice that. outer: domains; between them a gather takes log2(outer) messages over the network (a
        tree), an all-reduce twice that, an all-to-all one.
        """
        if self.kind == "torus":
            hops = _each(maximum(n, 2), lambda k: sum(a / 2 if self.wrap and a % self.wrap == 0 else a - 1.0 for a in torus_shape(k, self.axes, self.wrap, self.longest)))
            inner = self.hop_s * (1.0 if op == "send" else hops * (2.0 if op == "all_reduce" else 1.0))
        else:
            inner = {"all_reduce": self.all_reduce_s, "all_to_all": self.all_to_all_s, "send": self.send_s}.get(op, self.gather_s)
        levels = _each(outer, lambda m: float((m - 1).bit_length()))
        return inner + self.network_send_s * (minimum(levels, 1.0) if op in ("all_to_all", "send") else levels * (2.0 if op == "all_reduce" else 1.0))


def _each(n, rule):
    """A rule for whole numbers, applied to one number or to every element of an array."""
    if not is_array(n):
        return rule(int(n))
    numpy = sys.modules["numpy"]
    values, places = numpy.unique(n, return_inverse=True)
    return numpy.array([rule(int(k)) for k in values])[places].reshape(n.shape)


@lru_cache(maxsize=1)
def _table() -> dict:
    with resources.files("roofline").joinpath("data/links.toml").open("rb") as file:
        return tomllib.load(file)


def _class_of(link: str) -> dict:
    """The first class of links.toml that a chip's link text belongs to."""
    for entry in _table()["link"]:
        for pattern in entry["match"]:
            if pattern.startswith("*") and pattern.strip("*") in link or not pattern.startswith("*") and link.startswith(pattern):
                return entry
    raise AssertionError("the last class matches everything")


@lru_cache(maxsize=256)
def fabric_of(chip: Accelerator, network_bytes_per_s: float | None = None) -> Fabric:
    """The fabric of a chip; network_bytes_per_s: what the user says one chip has beyond its domain [bytes/s].

    Where neither the chip nor the user says, data/links.toml does (`network_source` tells what was assumed); where it does not
    either, the domain is taken to go on at the link's own speed.

    >>> from roofline.hardware import load
    >>> fabric_of(load("h100-sxm")).in_network, fabric_of(load("tpu-v5e")).wrap
    (True, 16)
    """
    entry = _class_of(chip.link or "")
    torus = _table()["torus"].get(chip.id, {})
    micro = lambda key: entry.get(key, 0.0) * 1e-6
    bytes_per_s = chip.link_bytes_per_s or chip.host_bytes_per_s
    domain = float(chip.domain) if chip.domain else float("inf")
    beyond, source = network_bytes_per_s, "given"
    if entry["kind"] == "host" or not chip.link_bytes_per_s:
        domain = float(entry.get("host", 8))
    if beyond is None:
        default = next((d for d in _table()["network"]["default"] if chip.id in d["chips"]), None)
        if default:
            beyond, source = default["gbs"] * 1e9, default["source"]
        elif (entry.get("beyond") == "host" or domain <= 4) and chip.host_bytes_per_s:
            beyond, source = chip.host_bytes_per_s, f"{chip.pcie} through the host"
        else:
            beyond, source = bytes_per_s, "assumed as fast as the links themselves"
    # Two or four cards joined directly: there is no switch that could add.
    return Fabric(
        kind=entry["kind"] if entry["kind"] != "torus" or torus else "switch", id=entry["id"], chip_bytes_per_s=bytes_per_s, pair_bytes_per_s=chip.pair_bytes_per_s, domain=domain,
        in_network=entry.get("in_network", False) and domain > 4, axes=torus.get("axes", 0), wrap=torus.get("wrap"), longest=torus.get("longest", 1), host=torus.get("host", entry.get("host")),
        network_bytes_per_s=beyond, all_reduce_s=micro("all_reduce_us"), gather_s=micro("gather_us"), all_to_all_s=micro("all_to_all_us"), send_s=micro("send_us"), hop_s=micro("hop_us"),
        network_send_s=_table()["network"]["latency_us"] * 1e-6, source=entry["source"], network_source=source,
    )

