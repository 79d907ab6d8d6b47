"""Chips that talk: bytes and time of collectives over real topologies, and where the network becomes the roof.

Every formula takes plain numbers or arrays. `size` is bytes, `n` chips, bandwidths are bytes/s of one chip in one direction.
"""

from __future__ import annotations

from functools import lru_cache

from .numeric import maximum, minimum, where

# ---- bytes that one chip sends ----------------------------------------------------------------------------------------


def all_gather_bytes(size, n):
    """Bytes each chip sends to gather (or reduce-scatter) an array of `size` bytes over n chips: (n-1)/n x size [bytes].

    size: the whole array [bytes]; n [chips], may be infinite. Source: Patarasuk & Yuan 2009, bandwidth-optimal collectives.

    >>> all_gather_bytes(1e9, 8)
    875000000.0
    """
    return (1.0 - 1.0 / n) * size


def all_reduce_bytes(size, n, in_network: bool = False):
    """Bytes each chip sends to sum an array of `size` bytes over n chips [bytes].

    Ring: 2 (n-1)/n x size. in_network: the switch sums (NVLink SHARP) and each chip sends its array once: size.
    Source: Patarasuk & Yuan 2009; NVIDIA, third-generation NVSwitch (N+1 sends in place of 2N).

    >>> all_reduce_bytes(1e9, 8), all_reduce_bytes(1e9, 8, in_network=True)
    (1750000000.0, 1000000000.0)
    """
    ring = 2.0 * all_gather_bytes(size, n)
    return where(in_network, minimum(ring, size), ring)


def all_to_all_bytes(size, n):
    """Bytes each chip sends when the `size` bytes it holds are for all n chips alike: (n-1)/n x size [bytes].

    >>> all_to_all_bytes(1e9, 8)
    875000000.0
    """
    return (1.0 - 1.0 / n) * size


def hierarchical_all_reduce_bytes(size, inner, outer, in_network: bool = False) -> tuple:
    """Bytes each chip sends (inside its domain, beyond it) to sum `size` bytes over inner x outer chips [bytes].

    Scatter-reduce and gather inside a domain of `inner` chips, and between them a ring over `outer` domains in which each chip
    carries its 1/inner of the array: 2 (m-1)/m x size / inner. Source: scaling book, GPU chapter (cross-node collectives).

    >>> hierarchical_all_reduce_bytes(8e9, 8, 2)
    (14000000000.0, 1000000000.0)
    """
    return all_reduce_bytes(size, inner, in_network), all_reduce_bytes(size / inner, outer)


def dispatch_bytes(tokens, experts_per_token, hidden, element_bytes=1.0, block=None, scale_bytes=4.0):
    """Bytes of the copies that expert parallelism sends out, one for each expert a token picked [bytes].

    tokens x k x (hidden x element_bytes + hidden / block x scale_bytes); block: elements that share a scale, None for no scales.
    Source: DeepEP's low-latency kernels (FP8 out with a 4-byte scale for 128 elements, BF16 back).

    >>> dispatch_bytes(128, 8, 7168, block=128)
    7569408.0
    """
    scales = 0.0 if block is None else hidden / block * scale_bytes
    return tokens * experts_per_token * (hidden * element_bytes + scales)


def tensor_parallel_bytes(tokens, hidden, layers, n, element_bytes=2.0, per_layer=2, in_network: bool = False):
    """Bytes each chip sends for the all-reduces of one pass: layers x per_layer x all-reduce of tokens x hidden [bytes].

    >>> tensor_parallel_bytes(1, 4096, 32, 8)
    917504.0
    """
    return layers * per_layer * all_reduce_bytes(tokens * hidden * element_bytes, n, in_network)


def distinct_domains(experts_per_token, domains):
    """Other domains that a token's experts lie in, if each is equally likely: (m-1) (1 - (1 - 1/m)^k) [domains].

    A token crosses to each of them once and is handed on inside. Source: DeepEP (forwarding from the network to NVLink).

    >>> round(distinct_domains(8, 2), 3)
    0.996
    """
    return (domains - 1.0) * (1.0 - (1.0 - 1.0 / domains) ** experts_per_token)


def distinct_ranks(experts_per_token, near, domains=1):
    """Times a token must be handed to another chip inside a domain, if each chip of near x domains is equally likely: m (n-1) (1 - (1 - 1/nm)^k) [sends].

    A chip that has several of a token's experts needs it once, and sends their sum back once; k (n-1)/n, a copy for every expert, is
    more. Source: DeepEP's normal kernels (is_token_in_rank of get_dispatch_layout); its low-latency kernels send a copy for each.

    >>> round(distinct_ranks(8, 8), 3), round(8 * 7 / 8, 3)
    (4.595, 7.0)
    """
    return domains * (near - 1.0) * (1.0 - (1.0 - 1.0 / (near * domains)) ** experts_per_token)


# ---- time and measured bandwidth --------------------------------------------------------------------------------------

_SENT = {"all_reduce": all_reduce_bytes, "all_gather": all_gather_bytes, "reduce_scatter": all_gather_bytes, "all_to_all": all_to_all_bytes,
         "send": lambda size, n: size, "broadcast": lambda size, n: size}


def collective_time(op: str, size, n, bandwidth, latency_s=0.0, in_network: bool = False):
    """Alpha-beta cost of a collective: latency + bytes each chip sends / bandwidth [s].

    op: all_reduce, all_gather, reduce_scatter, all_to_all, send or broadcast; bandwidth: one chip, one direction [bytes/s];
    latency_s: of the whole collective [s].

    >>> round(collective_time("all_reduce", 1e9, 8, 450e9) * 1e3, 5)
    3.88889
    """
    sent = all_reduce_bytes(size, n, in_network) if op == "all_reduce" else _SENT[op](size, n)
    return latency_s + sent / bandwidth


def algorithm_bandwidth(size, seconds):
    """What a benchmark calls algbw: size / time [bytes/s]."""
    return size / seconds


def bus_bandwidth(size, seconds, n, op: str = "all_reduce"):
    """What a benchmark calls busbw: the link speed a ring would need: bytes each chip sends / time [bytes/s].

    With in-network reduction it can pass the link's own speed. Source: NVIDIA nccl-tests, doc/PERFORMANCE.md.

    >>> round(bus_bandwidth(17179869184, 127997e-6, 8) / 1e9, 2)
    234.89
    """
    return _SENT[op](size, n) / seconds


# ---- shapes -----------------------------------------------------------------------------------------------------------


def mesh_bandwidth(pair, n, most=float("inf")):
    """What one chip can send to the n-1 others when each pair has a link of its own: (n-1) x pair, at most `most` [bytes/s].

    AMD's Infinity Fabric joins 8 chips this way: two of them have a seventh of the whole.

    >>> mesh_bandwidth(64e9, 2), mesh_bandwidth(64e9, 8, 448e9)
    (64000000000.0, 448000000000.0)
    """
    return minimum(pair * (n - 1.0), most)


def axis_ports(length: int, wrap: int | None) -> int:
    """Links of a torus axis that every chip of it can use at once: 2 around a ring, 1 along a line, 0 if there is one chip.

    wrap: the axis closes into a ring if its length is a multiple of this; None: never. Source: scaling book, TPU chapter
    (v5e and v6e close at 16, v4 and v5p at multiples of 4).

    >>> axis_ports(16, 16), axis_ports(4, 16), axis_ports(8, 4), axis_ports(1, 4)
    (2, 1, 2, 0)
    """
    if length <= 1:
        return 0
    return 2 if wrap and length % wrap == 0 else 1


@lru_cache(maxsize=4096)
def torus_shape(n: int, axes: int, wrap: int | None, longest: int = 1_000_000) -> tuple:
    """The shape of n chips on a torus of `axes` axes with the most links per chip; among those the most even.

    >>> torus_shape(16, 2, 16, 16), torus_shape(64, 3, 4), torus_shape(8, 2, 16, 16)
    ((4, 4), (4, 4, 4), (2, 4))
    """
    def shapes(left, parts, least=1):
        if parts == 1:
            return [(left,)] if least <= left <= longest else []
        return [(a, *rest) for a in range(least, int(round(left ** (1 / parts))) + 1) if left % a == 0 for rest in shapes(left // a, parts - 1, a)]

    found = shapes(n, axes) or [(1,) * (axes - 1) + (n,)]
    return max(found, key=lambda s: (sum(axis_ports(a, wrap) for a in s), -max(s)))


def torus_ports(shape: tuple, wrap: int | None) -> int:
    """Links that every chip of the shape can use at once; on lines it is the corner chip's count.

    >>> torus_ports((4, 4), 16), torus_ports((16, 16), 16)
    (2, 4)
    """
    return sum(axis_ports(a, wrap) for a in shape)


def axis_gather_time(size, n, port, wraps: bool = True, hop_s=0.0):
    """Gather (or reduce-scatter) `size` bytes over one torus axis of n chips [s].

    Each hop passes size/n bytes on, both ways around a ring (n/2 hops) or one way along a line (n-1 hops), and takes at least
    hop_s. port: one link, one direction [bytes/s]. Source: scaling book, sharding chapter.

    >>> round(axis_gather_time(2 * 2048 * 8192, 4, 45e9) * 1e6, 1), round(axis_gather_time(2 * 2048 * 8192, 4, 45e9, wraps=False) * 1e6, 1)
    (372.8, 559.2)
    """
    hops = n / 2.0 if wraps else n - 1.0
    return hops * maximum(hop_s, size / n / port)


def torus_gather_time(size, ports, port, n=float("inf")):
    """Gather `size` bytes over several axes at once, `ports` links a chip: (n-1)/n x size / (ports x port) [s].

    >>> round(torus_gather_time(2 * 1024 * 4096, 4, 45e9) * 1e6, 1)
    46.6
    """
    return all_gather_bytes(size, n) / (ports * port)


def axis_all_to_all_time(size, n, port, wraps: bool = True):
    """All-to-all of an array of `size` bytes (over all chips) on one torus axis of n chips [s].

    A quarter of the gather around a ring: each of n chips keeps 1/n^2-sized pieces moving n/4 hops on average both ways:
    size / (8 x port); along a line the middle link carries size/4 one way. Source: scaling book, sharding chapter.

    >>> round(axis_all_to_all_time(1e9, 16, 45e9) / axis_gather_time(1e9, 16, 45e9), 3)
    0.25
    """
    return size / (8.0 if wraps else 4.0) / port


def point_to_point_time(size, ports, port, hops=1, hop_s=0.0):
    """Send `size` bytes from one chip to another over `ports` disjoint ways of `hops` hops: hops x hop_s + size / (ports x port) [s].

    >>> round(point_to_point_time(2 * 8 * 128 * 8192, 2, 45e9, hops=6, hop_s=1e-6) * 1e6, 1)
    192.4
    """
    return hops * hop_s + size / (ports * port)


def gather_to_one_time(size, n, ports, port):
    """Bring an array of `size` bytes, spread over n chips, to one of them with `ports` links: (n-1)/n x size / (ports x port) [s].

    >>> round(gather_to_one_time(2 ** 34, 16, 2, 45e9) * 1e3, 1)
    179.0
    """
    return all_gather_bytes(size, n) / (ports * port)


def latency_bound_below(n, port, hop_s):
    """The array size below which hops, not bytes, set the time of a gather over n chips: n x port x hop_s [bytes].

    >>> latency_bound_below(8, 45e9, 1e-6)
    360000.0
    """
    return n * port * hop_s


def level_bandwidth(uplink, degree):
    """What a level of a tree of switches gives a gather, over all it holds: uplink x degree / (degree - 1) [bytes/s].

    uplink: of one child of that level, one direction [bytes/s]; degree: children.

    >>> round(level_bandwidth(450e9, 8) / 1e9, 1)
    514.3
    """
    return uplink * degree / (degree - 1.0)


def tree_bandwidth(levels) -> float:
    """The narrowest level of a tree of switches: min over levels of `level_bandwidth` [bytes/s].

    levels: (degree, uplink [bytes/s]) of node, leaf, spine ... Source: scaling book, GPU chapter.

    >>> round(tree_bandwidth([(8, 450e9), (32, 400e9), (4, 12.8e12)]) / 1e9, 1)
    412.9
    """
    return min(level_bandwidth(uplink, degree) for degree, uplink in levels)


def all_to_all_time(total, nodes, per_node, chip, node=None):
    """All-to-all of `total` bytes, spread over nodes x per_node chips [s].

    One node: each chip sends (n-1)/n of its total/n. Several: each node sends (M-1)/M of its total/M over its own uplinks, and
    the narrower of the two levels holds. chip, node: bandwidth of a chip inside and of a node outside, one direction [bytes/s].

    >>> round(all_to_all_time(1e9, 2, 8, 450e9, 400e9) / all_to_all_time(1e9, 1, 8, 450e9), 3)
    2.571
    """
    inside = all_to_all_bytes(total / (nodes * per_node), per_node) / chip
    if node is None:
        return inside
    return maximum(inside, all_to_all_bytes(total / nodes, nodes) / node)


def switch_bandwidth(switches, ports, port):
    """What a set of switches can pass, one direction: switches x ports x port [bytes/s].

    >>> switch_bandwidth(4, 64, 25e9)
    6400000000000.0
    """
    return switches * ports * port


def injection_bandwidth(chips, links, link):
    """What `chips` chips can send at once, one direction: chips x links x link [bytes/s]. Between two halves, both ways, as much.

    >>> injection_bandwidth(4, 18, 50e9)
    3600000000000.0
    """
    return chips * links * link


# ---- the network as a roof --------------------------------------------------------------------------------------------


def network_ridge(peak, link):
    """FLOPs a chip must do for every byte it sends before the network stops being the limit: peak / link [FLOP/byte].

    Also the tokens per chip from which data parallelism hides its gather of the weights. Source: scaling book (alpha = C/W).

    >>> network_ridge(990e12, 450e9)
    2200.0
    """
    return peak / link


def overlap_batch(peak, link, groups=float("inf")):
    """Tokens per chip from which computing covers the traffic of data parallelism over `groups` nodes: peak / link x (X-1)/X [tokens].

    >>> overlap_batch(990e12, 400e9, 2)
    1237.5
    """
    return network_ridge(peak, link) * (1.0 - 1.0 / groups)


def max_useful_tp(inner, peak, link, axes=1):
    """Tensor-parallel chips beyond which the network takes longer than the products: axes x inner / (peak / link) [chips].

    inner: the feed-forward width; axes: torus axes used at once. Source: scaling book, training chapter (Y < F / alpha).

    >>> round(max_useful_tp(28672, 990e12, 450e9), 2)
    13.03
    """
    return axes * inner / network_ridge(peak, link)


def one_axis_time(tokens, hidden, link, axes=1, element_bytes=2.0):
    """Network time of a feed-forward block split over its inner width: gather and scatter of tokens x hidden [s].

    2 x tokens x hidden x bytes / (axes x link); it does not fall with more chips. Source: Pope et al. 2022 (arXiv:2211.05102), section 3.2.

    >>> one_axis_time(1, 8192, 90e9, axes=3) * 1e9 < 1000
    True
    """
    return 2.0 * tokens * hidden * element_bytes / (axes * link)


def two_axis_time(tokens, hidden, inner, n, link, axes=(1, 2), element_bytes=2.0):
    """Network time of a feed-forward block whose matrices are cut both ways over n chips, at the best cut [s].

    a/X + b/Y with a = 2 tokens x hidden x bytes / (axes[0] link), b = 2 tokens x inner x bytes / (axes[1] link), X x Y = n:
    least at 2 sqrt(a b / n), so it falls with the square root of n. Source: Pope et al. 2022 (arXiv:2211.05102), section 3.2.2.

    >>> two_axis_time(1, 8192, 32768, 16, 90e9, axes=(1, 1)) == one_axis_time(1, 8192, 90e9)
    True
    """
    a = one_axis_time(tokens, hidden, link, axes[0], element_bytes)
    b = one_axis_time(tokens, inner, link, axes[1], element_bytes)
    return 2.0 * (a * b / n) ** 0.5


def two_axes_pay_from(ratio, axes_one=1, axes_two=(1, 1)):
    """Chips from which cutting the matrices both ways sends less than cutting one: 4 r a^2 / (a1 a2) [chips].

    ratio: inner / hidden; axes_one, axes_two: torus axes each way of cutting can use.

    >>> two_axes_pay_from(4), two_axes_pay_from(4, 3, (1, 2))
    (16.0, 72.0)
    """
    return 4.0 * ratio * axes_one ** 2 / (axes_two[0] * axes_two[1])


def best_ffn_tp(hidden, inner, tokens, kept=0.0):
    """The tensor-parallel degree that needs the least memory for a gated feed-forward block: sqrt(N / ((1 + k) H)) [chips].

    N = 3 hidden x inner weights are divided, H = tokens x inner activations are not; kept: k, further such buffers held.
    Source: SGLang, large-scale expert parallelism (2025-05-05).

    >>> round(best_ffn_tp(7168, 18432, 2048), 2)
    3.24
    """
    return (3.0 * hidden * inner / ((1.0 + kept) * tokens * inner)) ** 0.5


def experts_per_chip(experts, chips, redundant=0):
    """Experts that one chip of an expert-parallel group keeps: (experts + redundant) / chips.

    >>> experts_per_chip(256, 144, 32)
    2.0
    """
    return (experts + redundant) / chips


def balancedness(loads) -> float:
    """How even the ranks of an expert-parallel group are loaded: mean / largest, which is also what throughput is left.

    >>> balancedness([1.0, 1.0, 2.0])
    0.6666666666666666
    """
    loads = list(loads)
    return sum(loads) / len(loads) / max(loads)
