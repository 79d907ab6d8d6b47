"""Traces: bytes against cases worked out by hand, FLOPs against torch's own counter, whole models against the analytic engine.

What needs torch (or transformers) is skipped where it is not installed; fusion and regions are tested without.
"""

import json
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roofline.errors import InputError
from roofline.trace.data import Op, Trace, region, union_bytes
from roofline.trace.fusion import FUSIONS, fuse

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def torch():
    return pytest.importorskip("torch")


@pytest.fixture(scope="module")
def transformers(torch):
    return pytest.importorskip("transformers")


# ---- regions and fusion, by hand -----------------------------------------------------------------------------------

def test_a_slice_inside_what_is_read_anyway_costs_nothing():
    qkv = region(0, 0, (2, 8, 96), (768, 96, 1), 2)
    q, k = region(0, 0, (2, 8, 32), (768, 96, 1), 2), region(0, 32, (2, 8, 32), (768, 96, 1), 2)
    half = region(0, 16, (2, 8, 16), (768, 96, 1), 2)
    assert union_bytes([q, k], {0: 3072}) == q.size + k.size == 2 * 2 * 8 * 32 * 2
    assert union_bytes([q, half], {0: 3072}) == q.size
    assert union_bytes([half, q, qkv], {0: 3072}) == qkv.size == 3072
    other = region(1, 0, (2, 8, 32), (256, 32, 1), 2)
    assert union_bytes([q, other], {0: 3072, 1: 1024}) == q.size + other.size


def test_overlapping_windows_touch_their_span():
    assert region(0, 0, (7, 4), (1, 1), 4).size == 10 * 4  # unfold of ten elements into windows of four


def op(name, kind, reads, writes, flops=0, **more):
    at = lambda spec: tuple(region(b, 0, (n,), (1,), 1) for b, n in spec)
    return Op(name=f"aten.{name}.default", kind=kind, reads=at(reads), writes=at(writes), flops=flops, torch_flops=flops, **more)


def chain(ops, kept=()):
    sizes = {r.buffer: r.size for o in ops for r in (*o.reads, *o.writes)}
    return Trace(ops=tuple(ops), capacity=sizes, kept=frozenset(kept))


def test_a_chain_reads_its_inputs_and_writes_its_result():
    t = chain([op("mul", "pointwise", [(0, 100), (1, 100)], [(2, 100)]), op("add", "pointwise", [(2, 100), (3, 10)], [(4, 100)]), op("relu", "pointwise", [(4, 100)], [(5, 100)])], kept=[5])
    assert [k.bytes for k in fuse(t, "none")] == [300, 210, 200]
    (kernel,) = fuse(t, "elementwise")
    assert (kernel.read_bytes, kernel.write_bytes) == (210, 100)


def test_what_is_read_elsewhere_is_written_all_the_same():
    t = chain([op("mul", "pointwise", [(0, 100)], [(1, 100)]), op("exp", "pointwise", [(1, 100)], [(2, 100)]), op("mm", "matmul", [(1, 100), (3, 50)], [(4, 20)], 10)], kept=[2, 4])
    fused, product = fuse(t, "elementwise")
    assert (fused.read_bytes, fused.write_bytes) == (100, 200)
    assert (product.read_bytes, product.write_bytes, product.flops) == (150, 20, 10)


def test_a_product_between_two_parts_keeps_them_apart():
    # y = f(x); z = y + mm(y): the sum needs the product, the product needs y, so f and the sum cannot be one kernel.
    t = chain([op("silu", "pointwise", [(0, 100)], [(1, 100)]), op("mm", "matmul", [(1, 100), (2, 100)], [(3, 100)], 7), op("add", "pointwise", [(1, 100), (3, 100)], [(4, 100)])], kept=[4])
    assert [len(k.ops) for k in fuse(t, "elementwise")] == [1, 1, 1]


def test_an_overwritten_buffer_is_not_read_too_early():
    # a = x + 1 reads x; then x is overwritten; then b = a + x reads the new x.
    t = chain([op("add", "pointwise", [(0, 100)], [(1, 100)]), op("fill_", "other", [], [(0, 100)], in_place=True), op("add", "pointwise", [(1, 100), (0, 100)], [(2, 100)])], kept=[0, 2])
    kernels = fuse(t, "elementwise")
    assert [len(k.ops) for k in kernels] == [1, 1, 1] and sum(k.bytes for k in kernels) == 200 + 100 + 300


programs_of_any_shape = st.lists(st.tuples(st.sampled_from(["pointwise", "reduction", "copy", "matmul", "gather"]), st.lists(st.integers(0, 7), min_size=1, max_size=3), st.booleans()),
                                 min_size=1, max_size=14)


@settings(max_examples=300, deadline=None)
@given(programs_of_any_shape, st.sets(st.integers(0, 30)))
def test_kernels_can_run_one_after_another_and_never_move_more(program, kept):
    """Whatever is fused, no kernel waits for itself: reads after writes, writes after reads and writes after writes all keep their order."""
    ops, fresh = [], 8
    for kind, reads, in_place in program:
        read = [min(r + max(0, fresh - 12), fresh - 1) for r in reads]
        target = read[0] if in_place else fresh
        fresh += not in_place
        ops.append(op("silu" if kind == "pointwise" else kind, kind, [(b, 10) for b in dict.fromkeys(read)], [(target, 10)], 5 if kind == "matmul" else 0, in_place=in_place))
    t = chain(ops, kept)
    whole = fuse(t, "none")
    for fusion in FUSIONS[1:]:
        kernels = fuse(t, fusion)
        assert sorted(id(o) for k in kernels for o in k.ops) == sorted(id(o) for o in t.ops)
        assert sum(k.bytes for k in kernels) <= sum(k.bytes for k in whole) and sum(k.flops for k in kernels) == t.flops
        of = {id(o): i for i, k in enumerate(kernels) for o in k.ops}
        edges = set()
        for j, later in enumerate(t.ops):
            for earlier in t.ops[:j]:
                touched = {w.buffer for w in earlier.writes} & {r.buffer for r in (*later.reads, *later.writes)} or {r.buffer for r in earlier.reads} & {w.buffer for w in later.writes}
                if touched and of[id(earlier)] != of[id(later)]:
                    edges.add((of[id(earlier)], of[id(later)]))
        TopologicalSorter({b: {a for a, c in edges if c == b} for b in range(len(kernels))}).prepare()  # raises CycleError


def test_unknown_fusion_is_refused():
    with pytest.raises(InputError, match="fusion 'all': must be one of none, elementwise, attention"):
        fuse(chain([]), "all")


# ---- bytes by hand -------------------------------------------------------------------------------------------------

def cases(torch):
    """(name, call, bytes read, bytes written): FP32 (4 bytes) unless said otherwise, int64 indices (8 bytes)."""
    f = lambda *shape: torch.zeros(shape)
    x, y, w, b = f(8, 16), f(8, 16), f(16, 32), f(32)
    table, ids, cache = f(100, 16), torch.zeros(5, dtype=torch.long), f(2, 50, 16)
    at = torch.tensor([3])
    yield "matrix product", lambda: x @ w, (8 * 16 + 16 * 32) * 4, 8 * 32 * 4
    yield "linear layer with bias", lambda: torch.addmm(b, x, w), (32 + 8 * 16 + 16 * 32) * 4, 8 * 32 * 4
    yield "transposed weight is the same weight", lambda: x @ f(32, 16).t(), (8 * 16 + 32 * 16) * 4, 8 * 32 * 4
    yield "sum of two", lambda: x + y, 2 * 128 * 4, 128 * 4
    yield "broadcast is read once", lambda: x + f(16), (128 + 16) * 4, 128 * 4
    yield "expanded is read once", lambda: f(1, 16).expand(8, 16) + x, (16 + 128) * 4, 128 * 4
    yield "a square reads its input once", lambda: x * x, 128 * 4, 128 * 4
    yield "views move nothing", lambda: x.view(16, 8).t().reshape(8, 16)[2:4].unsqueeze(0).expand(3, 2, 16), 0, 0
    yield "a reshape that cannot be a view copies", lambda: x.t().reshape(-1), 128 * 4, 128 * 4
    yield "in-place sum", lambda: x.add_(y), 2 * 128 * 4, 128 * 4
    yield "in-place on a slice touches the slice", lambda: x[:, :4].mul_(2.0), 32 * 4, 32 * 4
    yield "copy into does not read what it overwrites", lambda: x.copy_(y), 128 * 4, 128 * 4
    yield "zeroing only writes", lambda: x.zero_(), 0, 128 * 4
    yield "a new zero tensor only writes", lambda: torch.zeros(8, 16), 0, 128 * 4
    yield "a new empty tensor moves nothing", lambda: torch.empty(8, 16), 0, 0
    yield "zeros like: the shape is read, not the values", lambda: torch.zeros_like(x), 0, 128 * 4
    yield "concatenation", lambda: torch.cat([x, y]), 256 * 4, 256 * 4
    yield "conversion to BF16", lambda: x.to(torch.bfloat16), 128 * 4, 128 * 2
    yield "embedding reads rows, not the table", lambda: torch.nn.functional.embedding(ids, table), 5 * 8 + 5 * 16 * 4, 5 * 16 * 4
    yield "indexing reads what it picks", lambda: table[ids], 5 * 8 + 5 * 16 * 4, 5 * 16 * 4
    yield "a small table is read whole at most", lambda: f(2, 16)[torch.zeros(9, dtype=torch.long)], 9 * 8 + 2 * 16 * 4, 9 * 16 * 4
    yield "writing one token into a cache leaves the rest", lambda: cache.index_copy_(1, at, f(2, 1, 16)), 8 + 2 * 16 * 4, 2 * 16 * 4
    yield "index_put_ writes its values only", lambda: table.index_put_((ids,), f(5, 16)), 5 * 8 + 5 * 16 * 4, 5 * 16 * 4
    yield "accumulating index_put_ reads them too", lambda: table.index_put_((ids,), f(5, 16), accumulate=True), 5 * 8 + 2 * 5 * 16 * 4, 5 * 16 * 4
    yield "writing into a slice of a cache", lambda: cache[:, 3:4].copy_(f(2, 1, 16)), 2 * 16 * 4, 2 * 16 * 4
    yield "row sums", lambda: x.sum(-1), 128 * 4, 8 * 4
    yield "masking", lambda: x.masked_fill(y > 0, 0.0), 128 * 4 + 128 * (1 + 4), 128 + 128 * 4
    yield "overlapping windows", lambda: f(10).unfold(0, 4, 1) * 1.0, 10 * 4, 7 * 4 * 4
    yield "convolution", lambda: torch.nn.functional.conv1d(f(1, 3, 10), f(5, 3, 2)), (30 + 30) * 4, 5 * 9 * 4


def moved(t, kind="none"):
    kernels = t.kernels(kind)
    return sum(k.read_bytes for k in kernels), sum(k.write_bytes for k in kernels)


def test_bytes_of_every_case_by_hand(torch):
    from roofline.trace import trace
    for name, call, read, written in cases(torch):
        t = trace(call)
        # Making the arguments inside the call (torch.zeros, torch.tensor) is not what the case is about.
        kernels = [k for k in t.kernels() if k.lead.kind != "create" or "zero" in name]
        assert (sum(k.read_bytes for k in kernels), sum(k.write_bytes for k in kernels)) == (read, written), name


def test_bytes_are_the_same_without_values(torch):
    from roofline.trace import trace
    run = lambda device: trace(lambda: torch.softmax(torch.zeros(4, 8, device=device) @ torch.zeros(8, 8, device=device), -1))
    assert moved(run("cpu")) == moved(run("meta"))


def test_fused_attention_reads_q_k_v_and_writes_o(torch):
    from roofline.trace import trace
    q, k, v = (torch.zeros(2, 4, n, 16, device="meta") for n in (8, 24, 24))

    def eager():
        scores = (q @ k.transpose(-1, -2)) * 0.25
        return torch.softmax(scores, -1) @ v

    expected = (2 * 4 * (8 + 24 + 24) * 16 * 4, 2 * 4 * 8 * 16 * 4)
    t = trace(eager)
    assert moved(t, "attention") == expected
    scores = 2 * 4 * 8 * 24 * 4  # unfused: written and read by product, scale, softmax, product
    assert moved(t)[0] == expected[0] + 3 * scores and moved(t)[1] == expected[1] + 3 * scores
    sdpa = trace(lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v))
    assert [o.short for o in sdpa.ops if o.kind != "view"] == ["scaled_dot_product_attention"]
    assert moved(sdpa) == expected and sdpa.flops == t.flops == 2 * 2 * 4 * 8 * 24 * (16 + 16) // 1


def test_a_norm_after_a_residual_add_is_one_kernel(torch):
    from roofline.trace import trace
    x, r, w = (torch.zeros(s, dtype=torch.bfloat16, device="meta") for s in ((4, 64), (4, 64), (64,)))

    def block():
        h = x + r
        f = h.float()
        return h, w * (f * torch.rsqrt(f.pow(2).mean(-1, keepdim=True) + 1e-6)).bfloat16()

    (kernel,) = trace(block).kernels("elementwise")
    assert (kernel.read_bytes, kernel.write_bytes) == (2 * 4 * 64 * 2 + 64 * 2, 2 * 4 * 64 * 2)


# ---- FLOPs against torch's own counter -----------------------------------------------------------------------------

def programs(torch):
    nn = torch.nn
    yield "two linear layers", nn.Sequential(nn.Linear(16, 64), nn.GELU(), nn.Linear(64, 8)), (torch.zeros(3, 5, 16),)
    yield "convolutions", nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.ConvTranspose2d(8, 4, 2, stride=2), nn.Conv2d(4, 4, 3, groups=2)), (torch.zeros(2, 3, 12, 12),)
    yield "recurrent cell", nn.GRU(8, 16), (torch.zeros(5, 2, 8),)
    yield "transformer layer", nn.TransformerEncoderLayer(32, 4, 64, batch_first=True).train(), (torch.zeros(2, 6, 32),)


def test_flops_equal_the_flop_counter_on_the_same_run(torch):
    from torch.utils.flop_counter import FlopCounterMode

    from roofline.trace import record
    for name, module, inputs in programs(torch):
        counter = FlopCounterMode(display=False)

        def run(module=module, inputs=inputs, counter=counter):
            with counter:
                return module(*inputs)

        seen, _ = record(run, roots=(module,))
        with FlopCounterMode(display=False) as alone, torch.no_grad():
            module(*inputs)
        assert seen.torch_flops == alone.get_total_flops() > 0, name
        assert seen.flops == seen.torch_flops + sum(seen.extras.values()), name


def test_the_backward_pass_is_counted_too(torch):
    from torch.utils.flop_counter import FlopCounterMode

    from roofline.trace import trace
    module, x = torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8)), torch.zeros(4, 16)
    step = lambda: module(x).sum().backward()
    with FlopCounterMode(display=False) as counter:
        step()
    t = trace(step, grad=True)
    assert t.torch_flops == t.flops == counter.get_total_flops() == 2 * 4 * (16 * 64 + 64 * 8) + 2 * 4 * (16 * 64 + 2 * 64 * 8)


def test_products_that_torch_leaves_out_are_counted_and_said(torch):
    from roofline.trace import trace
    a, v = torch.zeros(8, 16), torch.zeros(16)
    t = trace(lambda: (a @ v, v.dot(v)))
    assert t.torch_flops == 0 and t.flops == 2 * 8 * 16 + 2 * 16 and t.extras == {"mv": 256, "dot": 32}


def test_names_modules_and_parameters(torch):
    from roofline.trace import trace
    nn = torch.nn

    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.layers = nn.Embedding(50, 8), nn.ModuleList([nn.Linear(8, 8, bias=False) for _ in range(2)])

        def forward(self, ids):
            x = self.embed(ids)
            for layer in self.layers:
                x = layer(x)
            return x @ self.embed.weight.t()

    t = trace(Tied(), torch.zeros(3, dtype=torch.long))
    products = [o for o in t.ops if o.flops]
    assert [o.module for o in products] == ["layers.0", "layers.1", ""]
    assert [o.parameter for o in products] == ["layers.0.weight", "layers.1.weight", "embed.weight"]
    (row,) = [r for r in t.to_dict()["operators"] if r["module"] == "layers.*"]
    assert row["count"] == 2 and row["flops"] == 2 * 2 * 3 * 8 * 8 and row["parameter_bytes"] == 2 * 64 * 4 and row["dtype"] == "float32"


def test_every_fusion_keeps_the_flops_and_never_moves_more(torch):
    from roofline.trace import trace
    for name, module, inputs in programs(torch):
        t = trace(module, *inputs)
        totals = [sum(moved(t, kind)) for kind in FUSIONS]
        assert totals == sorted(totals, reverse=True), name
        assert {sum(k.flops for k in t.kernels(kind)) for kind in FUSIONS} == {t.flops}, name
        assert {sum(len(k.ops) for k in t.kernels(kind)) for kind in FUSIONS} == {sum(o.kind != "view" for o in t.ops)}, name


def test_times_are_medians_and_fit_into_the_run(torch):
    import time

    from roofline.trace import trace
    module, x = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 64)), torch.zeros(64, 256)
    start = time.perf_counter()
    t = trace(module, x, repeats=3)
    assert 0 < t.seconds < time.perf_counter() - start and t.facts["timed_runs"] == 3
    rows = [r for r in t.to_dict()["operators"] if r["flops"]]
    assert all(r["flops_per_s"] == pytest.approx(r["flops"] / r["seconds"]) and r["bytes_per_s"] > 0 for r in rows)


def test_a_script_function_gives_one_phase_or_several(torch, tmp_path):
    from roofline.trace import load_function, trace_function
    file = tmp_path / "mine.py"
    file.write_text("import torch\n"
                    "def whole():\n    return torch.zeros(4, 8) @ torch.zeros(8, 2)\n"
                    "def phases():\n    w = torch.nn.Linear(8, 2)\n    w(torch.zeros(99, 8))\n    return {'small': (w, (torch.zeros(1, 8),)), 'large': lambda: w(torch.zeros(10, 8))}\n")
    assert trace_function(load_function(f"{file}:whole"))["run"].flops == 2 * 4 * 8 * 2
    found = trace_function(load_function(f"{file}:phases"))
    assert {name: t.flops for name, t in found.items()} == {"small": 2 * 8 * 2, "large": 2 * 10 * 8 * 2}
    with pytest.raises(InputError, match="names no function of that file; it has whole, phases"):
        load_function(f"{file}:other")


def test_without_torch_the_refusal_says_what_to_install():
    code = ("import sys; sys.modules['torch'] = None\n"
            "from roofline.cli import main\nsys.exit(main(['trace', 'llama-3.2-1b']))")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 2 and "pip install torch" in done.stderr and done.stderr.count("\n") == 1


# ---- whole models against the analytic engine ----------------------------------------------------------------------

TINY = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 96, "vocab_size": 128, "max_position_embeddings": 256}
SMALL = {"vocab_size": 128}
FAMILIES = {
    "llama": TINY,
    "mistral": {**TINY, "sliding_window": 16},
    "qwen2": TINY,
    "qwen3": {**TINY, "head_dim": 32},
    "gemma2": {**TINY, "head_dim": 32, "sliding_window": 16},
    "gemma3_text": {**TINY, "head_dim": 32, "sliding_window": 16},
    "phi3": {**TINY, "pad_token_id": 0},
    "granite": TINY,
    "olmo2": TINY,
    "starcoder2": {**TINY, "sliding_window": None},
    "cohere": {k: v for k, v in TINY.items()},
    "stablelm": TINY,
    "gpt2": {**SMALL, "n_embd": 64, "n_layer": 2, "n_head": 4, "n_positions": 256},
    "gpt_neox": {**SMALL, "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 96, "max_position_embeddings": 256},
    "opt": {**SMALL, "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "ffn_dim": 96, "max_position_embeddings": 256, "word_embed_proj_dim": 64},
    "falcon": {**SMALL, "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "num_kv_heads": 2, "new_decoder_architecture": True},
    "bloom": {**SMALL, "hidden_size": 64, "n_layer": 2, "n_head": 4},
    "mixtral": {**TINY, "num_local_experts": 4, "num_experts_per_tok": 2},
    "qwen3_moe": {**TINY, "head_dim": 16, "num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 32},
    "olmoe": {**TINY, "num_experts": 8, "num_experts_per_tok": 2},
    "gpt_oss": {**TINY, "head_dim": 16, "num_local_experts": 4, "num_experts_per_tok": 2, "sliding_window": 16},
    "deepseek_v3": {**TINY, "num_key_value_heads": 4, "kv_lora_rank": 32, "q_lora_rank": 48, "qk_rope_head_dim": 8, "qk_nope_head_dim": 16, "v_head_dim": 16, "n_routed_experts": 8,
                    "num_experts_per_tok": 2, "moe_intermediate_size": 32, "n_shared_experts": 1, "first_k_dense_replace": 1, "n_group": 2, "topk_group": 1},
}
ALWAYS = {"every key for every query, then masked"}
LATENT = {"latent expanded again, not absorbed"}


def compared(config, batch=2, prompt=24):
    from roofline.families import from_hf_config
    from roofline.operators import Pass
    from roofline.trace import build_model, compare, trace_model
    traces = trace_model(build_model(config), batch=batch, prompt=prompt)
    arch = from_hf_config(config)
    return traces, {"prefill": compare(traces["prefill"], arch, Pass(sequences=batch, new_tokens=prompt)),
                    "decode": compare(traces["decode"], arch, Pass(sequences=batch, new_tokens=1, start=prompt, steps=1))}


@pytest.mark.parametrize("family", FAMILIES)
def test_traced_flops_and_weights_are_the_analytic_ones_and_every_difference_has_a_name(transformers, family):
    traces, found = compared({"model_type": family, **FAMILIES[family]})
    latent = family == "deepseek_v3"
    for phase, c in found.items():
        flops, weights = c.total("flops"), c.total("weight_bytes")
        assert traces[phase].flops == traces[phase].torch_flops == flops["traced"], phase
        assert flops["open"] == 0 and weights["open"] == 0, (phase, [x.name for x in c.lines if x.open("flops") or x.open("weight_bytes")])
        assert set(flops["named"]) == (ALWAYS if phase == "prefill" else LATENT if latent else set()), phase
        # Matrix by matrix: what feeds and leaves each product is what the engine says.
        for line in c.lines:
            if line.group in ("attention_projection", "mlp", "lm_head", "shared_experts") and not latent:
                assert line.traced["activation_bytes"] == line.analytic["activation_bytes"] > 0, (phase, line.name)
    decode = found["decode"]
    core = next(x for x in decode.lines if x.name == "attention core")
    if not latent and family != "falcon":  # falcon repeats its keys before it caches them, and says so
        assert core.traced["kv_read_bytes"] == core.analytic["kv_read_bytes"] > 0
    assert core.open("kv_read_bytes") == 0 and core.open("kv_write_bytes") == 0


def test_a_published_config_in_full_size(transformers):
    from roofline import catalogue
    config = dict(catalogue.config_of("qwen2.5-0.5b"))
    traces, found = compared(config, batch=1, prompt=64)
    assert found["decode"].total("flops") == {"traced": traces["decode"].torch_flops, "analytic": traces["decode"].torch_flops, "named": {}, "open": 0}
    assert found["decode"].total("weight_bytes")["traced"] == found["decode"].total("weight_bytes")["analytic"]
    assert found["prefill"].total("flops")["open"] == 0


def test_attention_fused_or_seen_in_parts_does_the_same_work(transformers):
    from roofline.trace import build_model, trace_model
    config = {"model_type": "llama", **TINY}
    parts, whole = (trace_model(build_model(config, attention=a), prompt=16) for a in ("eager", "sdpa"))
    for phase in ("prefill", "decode"):
        assert parts[phase].flops == whole[phase].flops
        assert sum(moved(parts[phase], "attention")) <= sum(moved(parts[phase], "elementwise")) < sum(moved(parts[phase]))


def test_every_way_to_run_experts_does_the_same_work(transformers):
    """Gathered, grouped (which FlopCounterMode leaves out) and one by one: the same FLOPs; one by one reads only the experts that are reached."""
    from roofline.trace import build_model, trace_model
    config = {"model_type": "qwen3_moe", **FAMILIES["qwen3_moe"]}
    found = {(device, experts): trace_model(build_model(config, device=device, experts=experts), batch=2, prompt=24)
             for device, experts in (("meta", "batched_mm"), ("meta", "grouped_mm"), ("cpu", "grouped_mm"), ("cpu", "eager"))}
    for phase in ("prefill", "decode"):
        assert len({t[phase].flops for t in found.values()}) == 1
        grouped = found["meta", "grouped_mm"][phase]
        assert set(grouped.extras) == {"_grouped_mm"} and grouped.flops == grouped.torch_flops + grouped.extras["_grouped_mm"]
    weights = {way: sum(k.parameter_bytes for k in t["decode"].kernels()) for way, t in found.items()}
    assert weights["cpu", "eager"] <= weights["meta", "grouped_mm"] == weights["meta", "batched_mm"]


def test_a_model_on_the_cpu_can_be_timed(transformers):
    from roofline.trace import build_model, trace_model
    config = {"model_type": "llama", **TINY}
    real, shapes = trace_model(build_model(config, device="cpu", dtype="fp32"), prompt=16, repeats=2), trace_model(build_model(config, dtype="fp32"), prompt=16)
    for phase in ("prefill", "decode"):
        assert real[phase].seconds > 0
        assert real[phase].flops == shapes[phase].flops
        weights = lambda t: sum(k.parameter_bytes for k in t.kernels())
        assert weights(real[phase]) == weights(shapes[phase])


def test_the_command_line(transformers, tmp_path, capsys):
    from roofline.cli import main
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"model_type": "llama", **TINY}))

    def run(*words):
        code = main(["trace", *words])
        return code, *capsys.readouterr()

    code, out, _ = run(str(config), "--prompt", "16", "--compare", "--json")
    answer = json.loads(out)
    assert code == 0 and [p["phase"] for p in answer["phases"]] == ["prefill", "decode"]
    assert all(c["totals"]["flops"]["open"] == 0 for c in answer["comparison"])
    assert answer["phases"][0]["bytes"]["attention"]["read_bytes"] < answer["phases"][0]["bytes"]["none"]["read_bytes"]
    code, out, _ = run(str(config), "--prompt", "16", "--phase", "decode", "--layers", "1")
    assert code == 0 and out.startswith("decode: ") and "prefill" not in out
    code, _, _ = run(str(config), "--prompt", "16", "--hardware", "h100-sxm", "--fusion", "attention", "-o", str(tmp_path / "t.svg"))
    assert code == 0 and (tmp_path / "t.svg").read_text().startswith("<svg")
    for words, message in (((str(config), "--device", "tpu"), "device 'tpu': must be one of meta, cpu, cuda"), (("nothing-like-it",), "model 'nothing-like-it'"),
                           ((str(config), "--time"), "device 'meta': has no time"), (("nothing.py:f",), "target 'nothing.py:f': must be FILE.py:FUNCTION")):
        code, out, err = run(*words)
        assert code == 2 and message in err and not out


# ---- the table of docs/traces.md -----------------------------------------------------------------------------------

TABLE = Path(__file__).parent / "data" / "traced.json"
TRACED = json.loads(TABLE.read_text("utf-8")) if TABLE.exists() else {"models": []}


@pytest.mark.parametrize("row", TRACED["models"], ids=lambda row: row["family"])
def test_the_analytic_side_of_the_table_is_what_the_engine_says_today(row):
    """Traced figures come from the reference implementation; analytic = traced - named - open must hold as the engine changes."""
    from roofline import catalogue, formats
    from roofline.families import from_hf_config
    from roofline.operators import Pass, forward
    config = {k: v for k, v in catalogue.config_of(row["model"]).items() if k != "quantization_config"}
    arch, bf16, batch, prompt = from_hf_config(config), formats.parse("bf16"), TRACED["batch"], TRACED["prompt"]
    for phase, p in (("prefill", Pass(sequences=batch, new_tokens=prompt)), ("decode", Pass(sequences=batch, new_tokens=1, start=prompt, steps=1))):
        operators = [o for o in forward(arch, p, weights=bf16, kv=bf16, compute="bf16") if o.group != "elementwise"]
        flops = sum(o.flops for o in operators if o.roof != "vector")
        kept = row[phase]
        assert flops == pytest.approx(kept["flops"]["traced"] - sum(kept["flops"]["named"].values()) - kept["flops"]["left"], rel=1e-9), phase
        weights = sum(o.weight_bytes for o in operators)
        assert weights == pytest.approx(kept["weight_bytes"]["traced"] - sum(kept["weight_bytes"]["named"].values()) - kept["weight_bytes"]["left"], rel=1e-9), phase


def test_the_table_shows_what_was_traced():
    page = (ROOT / "docs" / "traces.md").read_text("utf-8")
    exact = [row for row in TRACED["models"] if all(row[phase]["flops"]["open"] == 0 for phase in ("prefill", "decode"))]
    assert len(exact) >= 40 and all(f"| {row['family']} | {row['name']} |" in page for row in TRACED["models"])
    assert sum(all(row[phase]["weight_bytes"]["open"] == 0 for phase in ("prefill", "decode")) for row in TRACED["models"]) >= 40
