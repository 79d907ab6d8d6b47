"""The closed forms of the papers: roofline arithmetic, attention, decoding and prefill in one line each.

The engine counts operator by operator; these are what one does on paper, kept here so that a worked example, a flip point and a
notebook use the same line. Every argument may be an array.
"""

from __future__ import annotations

from .numeric import ceil, maximum, where


# ---- time, and what part of a roof was reached ------------------------------------------------------------------------


def stream_time(size, bandwidth, chips=1):
    """Least time to move bytes through memory or over a wire: size / (chips x bandwidth) [s].

    size [bytes]; bandwidth [bytes/s] of one chip.

    >>> round(stream_time(16e9, 820e9) * 1e3, 1)
    19.5
    """
    return size / (chips * bandwidth)


def compute_time(flops, peak, chips=1, mfu=1.0):
    """Time of arithmetic: FLOPs / (chips x peak x share of it reached) [s].

    >>> round(compute_time(2 * 70e9 * 8192, 197e12, 16, mfu=0.4), 2)
    0.91
    """
    return flops / (chips * peak * mfu)


def mfu(flops, seconds, peak, chips=1):
    """Model FLOP utilisation: useful FLOPs / (time x chips x peak) [fraction]. Source: PaLM (arXiv:2204.02311), appendix B.

    >>> round(mfu(2 * 540e9 * 64, 28.5e-3, 275e12, 64), 3)
    0.138
    """
    return flops / (seconds * chips * peak)


def mbu(size, seconds, bandwidth, chips=1):
    """Memory bandwidth utilisation: bytes that must be read / (time x chips x bandwidth) [fraction].

    size: of weights and cache that one step reads; more than 1 means that bytes were counted which nobody read.

    >>> mbu(2 * 7e9, 14e-3, 2e12)
    0.5
    """
    return size / (seconds * chips * bandwidth)


def change(before, after):
    """Relative change: after / before - 1.

    >>> round(change(12929, 17552), 3)
    0.358
    """
    return after / before - 1.0


# ---- where a product turns compute-bound ------------------------------------------------------------------------------


def critical_batch(peak, bandwidth, weight_bytes=2.0, spread=1.0):
    """Tokens a step from which a matrix product is compute-bound: peak / bandwidth x bytes a weight / 2 x spread [tokens].

    A weight of b bytes gives 2 FLOPs a token. weight_bytes: as stored; peak: of the format computed in. spread: experts over
    experts a token uses, since each expert sees that part of the tokens. Source: scaling book, roofline and inference chapters.

    >>> round(critical_batch(197e12, 820e9)), round(critical_batch(197e12, 820e9, 1.0)), round(critical_batch(197e12, 820e9, 2.0, 16 / 2))
    (240, 120, 1922)
    """
    return peak / bandwidth * weight_bytes / 2.0 * spread


def critical_rows(inner, cols, peak, bandwidth, weight_bytes=2.0, in_bytes=2.0, out_bytes=2.0):
    """Rows from which a product is compute-bound when its operands and its result move too; infinite if it never is [rows].

    k n b / (2 k n / ridge - (k in + n out)): `critical_batch` is its limit for large matrices.
    Source: scaling book, TPU chapter, question 4.

    >>> round(critical_rows(4096, 16384, 394e12, 810e9, 1, 1, 1)), critical_rows(8192, 32768, 920e12, 15e9)
    (263, inf)
    """
    left = 2.0 * inner * cols * bandwidth / peak - (inner * in_bytes + cols * out_bytes)
    return where(left > 0, inner * cols * weight_bytes / where(left > 0, left, 1.0), float("inf"))


def tokens_per_expert(tokens, experts, active):
    """Tokens that reach one expert if all are picked alike: tokens x k / E [tokens].

    >>> tokens_per_expert(128 * 144, 256, 8)
    576.0
    """
    return tokens * active / experts


def product_intensity(rows, inner, cols, weight_bytes=2.0, in_bytes=2.0, out_bytes=2.0):
    """FLOPs per byte of rows x inner by inner x cols when operands and result all move: 2 m k n / (m k + k n + m n, in bytes).

    >>> round(product_intensity(64, 4096, 8192), 1)
    62.5
    """
    return 2.0 * rows * inner * cols / (rows * inner * in_bytes + inner * cols * weight_bytes + rows * cols * out_bytes)


def largest_intensity(inner, cols, element_bytes=2.0):
    """What `product_intensity` tends to as the rows grow: 2 k n / ((k + n) x bytes) [FLOP/byte].

    >>> largest_intensity(8192, 32768)
    6553.6
    """
    return 2.0 * inner * cols / ((inner + cols) * element_bytes)


def width_needed(ridge, ratio, element_bytes=2.0):
    """The inner length from which a product with outputs `ratio` times as wide can reach a ridge at any batch: ridge x bytes (1 + r) / (2 r).

    >>> round(width_needed(920e12 / 15e9, 4), 1)
    76666.7
    """
    return ridge * element_bytes * (1.0 + ratio) / (2.0 * ratio)


def product_time(rows, inner, cols, peak, bandwidth, weight_bytes=2.0, in_bytes=2.0, out_bytes=2.0):
    """Least time of a matrix product: the longer of computing and moving it [s].

    >>> round(product_time(64, 4096, 8192, 2.3e15, 8e12) * 1e6, 2), round(product_time(512, 4096, 8192, 2.3e15, 8e12) * 1e6, 2)
    (8.59, 14.94)
    """
    flops = 2.0 * rows * inner * cols
    return maximum(flops / peak, flops / product_intensity(rows, inner, cols, weight_bytes, in_bytes, out_bytes) / bandwidth)


def tile_rows(rows, tile):
    """Rows that a kernel working in tiles really computes: ceil(rows / tile) x tile.

    >>> tile_rows(129, 128)
    256
    """
    return ceil(rows / tile) * tile


def tile_waste(rows, tile):
    """Time over what the rows alone would take, at worst: tile_rows / rows. A kernel that is not yet compute-bound wastes less.

    >>> round(tile_waste(129, 128), 3)
    1.984
    """
    return tile_rows(rows, tile) / rows


# ---- attention --------------------------------------------------------------------------------------------------------


def attention_flops(queries, keys, heads, qk_dim, v_dim=None, sequences=1, causal=False):
    """FLOPs of scores and values: 2 x heads x (qk + v) x queries x keys x sequences; half of it if causal over a square [FLOP].

    Causal counts q (q + 1) / 2 pairs of the last q keys and all of the earlier ones.

    >>> attention_flops(1024, 1024, 16, 64, sequences=64) / 1e9
    274.877906944
    """
    v_dim = qk_dim if v_dim is None else v_dim
    pairs = queries * keys
    if causal:
        pairs = queries * (keys - queries) + queries * (queries + 1) / 2.0
    return 2.0 * heads * (qk_dim + v_dim) * pairs * sequences


def unfused_intensity(tokens, head_dim, softmax_flops=3.0, element_bytes=2.0):
    """FLOPs per byte of one head of attention that writes its scores: (4 N^2 d + s N^2) / (bytes x (4 N^2 + 4 N d)).

    Scores and probabilities are written and read (4 N^2), Q, K, V read and O written (4 N d). Source: Baseten, guide to LLM inference.

    >>> round(unfused_intensity(4096, 128), 1)
    62.4
    """
    return (4.0 * head_dim + softmax_flops) * tokens ** 2 / (element_bytes * (4.0 * tokens ** 2 + 4.0 * tokens * head_dim))


def grouped_intensity(queries, keys, group, element_bytes=2.0):
    """FLOPs per byte of fused attention with `group` query heads a KV head: 2 s t g / ((s g + t) x bytes).

    Tends to the group size in decoding (one query, BF16). Source: scaling book, transformers chapter, question 4.

    >>> round(grouped_intensity(1, 8192, 8), 2)
    7.99
    """
    return 2.0 * queries * keys * group / ((queries * group + keys) * element_bytes)


def attention_equals_projections(hidden, causal=False):
    """The prompt at which scores and values take as many FLOPs as the four projections: 4 T D = 8 D^2 a token, so 2 D; causal 4 D [tokens].

    Source: scaling book, transformers chapter, question 5 (24 B T D N H = 12 B T^2 N H, the backward pass included).

    >>> attention_equals_projections(4096), attention_equals_projections(4096, causal=True)
    (8192.0, 16384.0)
    """
    return (4.0 if causal else 2.0) * hidden


def training_flops_per_token(parameters, attention_forward_flops):
    """FLOPs of training on one token: 6 per parameter, and three times the forward attention [FLOP].

    attention_forward_flops: of one token at the mean context. Source: Kaplan et al. 2020 (arXiv:2001.08361).

    >>> training_flops_per_token(1e9, 0.0)
    6000000000.0
    """
    return 6.0 * parameters + 3.0 * attention_forward_flops


# ---- decoding and prefill on paper ------------------------------------------------------------------------------------


def decode_step(weight_bytes, cache_bytes, bandwidth, chips=1, batch=1, parameters=0.0, peak=float("inf")):
    """Least time of a decode step: batch x cache / bandwidth + max(weights / bandwidth, 2 batch parameters / peak) [s].

    cache_bytes: of one sequence. Attention is bound by memory at any batch, so its reading adds to whatever the products take.
    Weights and cache stream through the same memory: their times add, the longer does not hide the other.
    Source: scaling book, inference chapter.

    >>> round(decode_step(26e9, 6.7e9, 820e9, 8, batch=16) * 1e3, 1)
    20.3
    """
    return stream_time(batch * cache_bytes, bandwidth, chips) + maximum(stream_time(weight_bytes, bandwidth, chips), compute_time(2.0 * batch * parameters, peak, chips))


def block_parameters(layers, hidden, multiple=12):
    """Parameters of a plain transformer's blocks: 12 x layers x hidden^2 (4 for attention, 8 for the feed-forward).

    >>> block_parameters(64, 8192) / 1e9
    51.539607552
    """
    return multiple * layers * hidden ** 2


def serial_latency(stage_seconds, stages, hop_s=0.0):
    """Time of one token through pipeline stages: stages x stage + (stages - 1) hops. More stages never shorten it [s].

    stage_seconds: of one stage, which is 1/stages of the model.

    >>> serial_latency(2.0, 4)
    8.0
    """
    return stages * stage_seconds + (stages - 1) * hop_s


def chunk_overhead(prompt, chunk, kv_bytes_per_token, parameters, peak, bandwidth, chips=1, mfu=1.0):
    """Extra time of reading the cache again for every chunk of a prompt, over the time of the prompt's products [fraction].

    Chunk i reads the i - 1 chunks before it; in one piece nothing is read twice, so the excess over one piece is
    chunk x kv x n (n - 1) / 2 bytes for n = prompt / chunk chunks.

    >>> round(chunk_overhead(4096, 512, 245760, 34.4e9, 312e12, 2.039e12, 2, 0.6), 5)
    0.00115
    """
    n = ceil(prompt / chunk)
    again = chunk * kv_bytes_per_token * n * (n - 1) / 2.0
    return stream_time(again, bandwidth, chips) / compute_time(2.0 * parameters * prompt, peak, chips, mfu)

