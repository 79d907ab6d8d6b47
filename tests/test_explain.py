"""The workings of the figures: every key has one for every kind of scenario, what stands in each step gives its result by hand, and
what it states is what a hand calculation from outside gives."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from math import exp, floor, log
from pathlib import Path

import pytest

from roofline import calibration, levers, view, view_serving
from roofline.explain import BASES, KEYS, differs, explain, known
from roofline.report import evaluate
from roofline.scenario import Scenario, resolve

WORDS = {lang: json.loads((Path(__file__).resolve().parents[1] / f"site/i18n/views-{lang}.json").read_text("utf-8")) for lang in ("en", "zh")}
SERVE = Scenario(model="llama-3.1-70b", hardware="h200-sxm", devices=2, weights="fp8", batch=32, prompt=8000, output=512)
L8, L70 = {"model": "llama-3.1-8b", "hardware": "h100-sxm"}, {"model": "llama-3.1-70b", "hardware": "h100-sxm"}
V3 = {"model": "deepseek-v3", "hardware": "h200-sxm", "devices": 8, "prompt": 4000}
SCENARIOS = {
    "serve": SERVE, "moe": Scenario(model="deepseek-v3", hardware="h200-sxm", devices=8, draft=2), "misfit": Scenario(model="llama-3.1-405b", hardware="rtx-4090"),
    "windowed": Scenario(model="gpt-oss-20b", hardware="apple-m4-max", kv="q8_0"), "pipeline": Scenario(model="gemma-3-27b", hardware="h100-sxm", devices=4, pp=2),
    "hybrid": Scenario(model="jamba-v0.1", hardware="h100-sxm", devices=2), "recurrent": Scenario(model="falcon-mamba-7b", hardware="h100-sxm"),
    # The page's examples besides "serve".
    "chat": Scenario(model="llama-3.1-8b", hardware="rtx-4090", weights="Q4_K_M", prompt=2000, output=512), "one": Scenario(**L70, weights="int4-g128", batch=4, prompt=4000, output=512),
    "eight": Scenario(**L70, devices=8, batch=64, prompt=4000, output=512), "deepseek": Scenario(**V3, batch=64, output=1000),
    "long": Scenario(**L8, weights="fp8", kv="fp8", batch=4, prompt=120_000, output=1000), "offline": Scenario(**L8, weights="fp8", kv="fp8", batch=512, prompt=1000),
    "laptop": Scenario(model="gpt-oss-20b", hardware="apple-m4-max", prompt=2000, output=512),
    "experts over replicas": Scenario(**V3, tp=1, dp=8, ep=8, batch=32), "experts uneven": Scenario(**V3, tp=1, dp=8, ep=8, batch=32, imbalance=1.4),
    "two nodes": Scenario(**L70, devices=16, batch=32, prompt=4000), "experts over nodes": Scenario(**V3 | {"devices": 16}, tp=1, dp=16, ep=16, batch=32),
    "chunked attention": Scenario(model="llama-4-scout", hardware="h200-sxm", devices=4, batch=8, prompt=100_000, output=1000),
    "sparse": Scenario(model="deepseek-v3.2", hardware="h200-sxm", devices=8, batch=8, prompt=32_000), "linear": Scenario(model="qwen3-next-80b-a3b", hardware="h200-sxm", devices=2, batch=8),
    "gguf": Scenario(model="llama-3.1-8b", hardware="apple-m4-max", weights="Q4_K_M"), "stages": Scenario(**L70, devices=8, tp=2, pp=4, batch=64, prompt=4000),
    "offload": Scenario(model="deepseek-v3", hardware="rtx-4090", weights="Q4_K_M", offload=1.0, host=25e9), "offload half": Scenario(**L70 | {"hardware": "rtx-4090"}, weights="Q4_K_M", offload=0.6),
    "cache with the host": Scenario(**L8, offload_kv=0.5, batch=16, prompt=32_000), "speculation": SERVE.replace(batch=8, draft=4, draft_model="llama-3.2-1b"),
    "pools": SERVE.replace(prefill_hardware="h100-sxm", prefill_devices=4), "cached": SERVE.replace(cached=6000, utilisation=0.9, overhead=2e9, block=16), "alone": Scenario(**L8, prompt=1, output=1),
    "limits": SERVE.replace(engine="none"), "fractions": SERVE.replace(efficiency_compute=0.5, efficiency_bandwidth=0.8), "unmeasured": Scenario(model="llama-3.1-8b", hardware="groq-lpu-v1"),
    "typed": Scenario(model="llama-3.1-8b", hardware="custom", peak=1e14, bandwidth=1e12, memory=64e9), "no memory": Scenario(model="llama-3.1-8b", hardware="xeon-6980p"),
    "overtyped": SERVE.replace(bandwidth=6e12, usd_per_hour=2.0),
    # Services: arrivals at little, middling and near-full load, of long and short prompts, over replicas and stages; chunks, drafts, pools; bills.
    "arrivals": SERVE.replace(rate=0.3, chunk=512, api_usd_per_million=2.0), "busy": SERVE.replace(rate=0.52, cached=4000, purchase_usd=30_000.0, usd_per_kwh=0.15, pue=1.3),
    "short": Scenario(**L8, batch=64, prompt=300, output=200, rate=30.0, dp=2, devices=2, usd_per_hour=2.5, usd_per_kwh=0.2), "full": Scenario(**L8, batch=256, prompt=2000, output=400, rate=9.0),
    "too many": SERVE.replace(rate=50.0), "stages and arrivals": Scenario(**L70, devices=8, tp=2, pp=4, batch=64, prompt=4000, rate=1.0, chunk=256), "one token": Scenario(**L8, prompt=500, output=1, rate=20.0),
    "drafted arrivals": SERVE.replace(batch=8, draft=4, draft_model="llama-3.2-1b", rate=0.3, chunk=1024), "all accepted": SERVE.replace(draft=3, acceptance=1.0),
    "pools of others": SERVE.replace(prefill_hardware="rtx-4090", prefill_devices=8, dp=2, devices=4, batch=16, prompt=900), "pools at work": SERVE.replace(prefill_hardware="h200-sxm", prefill_devices=2, rate=0.3),
    "graphics card": Scenario(model="llama-3.1-8b", hardware="rtx-4090", weights="fp8", batch=4, pue=1.2, rate=0.5),
}
SERVICES = list(SCENARIOS)[list(SCENARIOS).index("arrivals"):]


@lru_cache(maxsize=None)
def working(name: str, key: str, basis: str = "") -> dict:
    return explain(_report(name), key, _resolved(name), basis)


@lru_cache(maxsize=None)
def _resolved(name: str):
    return resolve(SCENARIOS[name])


@lru_cache(maxsize=None)
def _report(name: str) -> dict:
    return evaluate(SCENARIOS[name]).to_dict()


def steps(scenario: Scenario, key: str) -> dict:
    """{step key: its values} of a working; of several alike, the last."""
    r = resolve(scenario)
    found = explain(evaluate(r).to_dict(), key, r)["steps"]
    return {s["key"]: {k: v.replace("\u2009", " ") for k, v in s["values"].items()} for s in found}


def number(text: str) -> float:
    """What a written quantity is worth: "5.14 TFLOP/s" is 5.14e12, "83.0 %" 0.83, "$2.25" 2.25."""
    value, _, unit = text.replace("\u2009", " ").replace(",", "").lstrip("$").partition(" ")
    scale = {"p": 1e-12, "n": 1e-9, "µ": 1e-6, "m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "B": 1e9, "T": 1e12, "P": 1e15, "Q": 1e15, "E": 1e18, "%": 1e-2}
    return float(value) * (1.0 if unit in ("", "s", "FLOP", "FLOP/s", "J", "W", "×") else scale[unit[0]])  # a "B" alone is a billion, as model cards write it


# What each step comes to by the sum that its sentence states, from the values that stand in it.
SUMS = {
    "work.prefill": lambda v: (v.prompts * v.new, v.tokens),
    "work.products": lambda v: (2 * (v.body * v.tokens + v.head * v.sampled), v.result),
    "work.attention": lambda v: (2 * v.heads * v.dims * v.pairs * v.layers, v.result),
    "work.scan": lambda v: (v.each * v.layers * v.tokens, v.result),
    "time.memory": lambda v: ((v.weights + v.kv) / v.chips, v.per_chip, v.per_chip / v.bandwidth, v.result),
    "time.memory.uneven": lambda v: (v.own_weights + v.own_kv, v.per_chip, v.per_chip / v.bandwidth, v.result),
    "time.compute": lambda v: (v.flops / v.chips / v.peak, v.result),
    "time.network": lambda v: (v.bytes / v.bandwidth, v.result),
    "time.network.beyond": lambda v: (v.bytes / v.bandwidth, v.result),
    "time.host": lambda v: (v.bytes / v.host, v.result),
    "accepted": lambda v: ((1 - v.acceptance**v.fed) / (1 - v.acceptance), v.result),
    "speculation": lambda v: ((v.verify + v.drafts * v.each) / v.tokens, v.result, v.drafts * v.each, v.draft),
    "expected.speculation": lambda v: ((v.verify + v.drafts * v.each) / v.tokens, v.result, v.drafts * v.each, v.draft),
    "pools": lambda v: (v.bytes / v.lanes / v.wire, v.transfer, v.prefill + v.transfer, v.result),
    "pools.expected": lambda v: (v.prefill + v.transfer, v.result),
    "expected.total": lambda v: (v.sum + v.besides, v.result),
    "expected.stages": lambda v: ((v.sum + v.besides) * v.share, v.result),
    "user": lambda v: (1 / v.tpot, v.result), "expected.user": lambda v: (1 / v.tpot, v.result),
    "total": lambda v: (v.replicas * v.batch / v.tpot, v.result), "expected.rate": lambda v: (v.replicas * v.batch / v.tpot, v.result),
    "memory.weights": lambda v: (v.parameters * v.bits / 8, v.result),
    "memory.kv": lambda v: (v.sequence * v.batch, v.result),
    "memory.activations": lambda v: ((v.tokens * v.numbers * 2 + v.sampled * v.vocab * 4) * v.stages, v.result),
    "memory.available": lambda v: (v.chips * v.memory * v.share, v.result),
    "ridge": lambda v: (v.peak / v.bandwidth, v.result),
    "bytes": lambda v: (v.weights + v.read + v.written, v.result),
    "utilisation": lambda v: (v.compute / v.time, v.result),
    "kv.layers": lambda v: (v.layers * v.numbers * v.bytes, v.result), "kv.window": lambda v: (v.layers * v.numbers * v.bytes, v.result),
    "kv.sequence": lambda v: (v.sequence / v.tokens, v.result),
    "room.max_context": lambda v: (v.room / v.batch, v.sequence),
    "intensity": lambda v: (v.flops / v.bytes, v.result), "rate": lambda v: (v.flops / v.time, v.result),
    "op.product": lambda v: (2 * v.weights * v.tokens, v.result),
    "op.bytes": lambda v: (v.weights + v.kv + v.activations, v.result),
    "op.intensity": lambda v: (v.flops / v.bytes, v.result),
    "op.memory": lambda v: (v.bytes / v.bandwidth, v.result),
    "cost": lambda v: (v.price * v.chips / (v.rate * 3600) * 1e6, v.result), "expected.cost": lambda v: (v.price * v.chips / (v.rate * 3600) * 1e6, v.result),
    "memory.share": lambda v: (v.total / v.available, v.result), "memory.each": lambda v: (v.total / v.chips, v.result),
    "per_chip": lambda v: (v.total / v.chips, v.result),
    "requests": lambda v: (v.replicas * v.batch / (v.ttft + v.rest * v.tpot), v.result), "requests.apart": lambda v: (v.replicas * v.batch / (v.output * v.tpot), v.result),
    "sustained": lambda v: (v.replicas * v.batch * v.output / (v.ttft + v.rest * v.tpot), v.result), "sustained.apart": lambda v: (v.replicas * v.batch * v.output / (v.output * v.tpot), v.result),
    "sustained.stretch": lambda v: (v.mixed * v.tpot / v.limit, v.result), "sustained.chunked": lambda v: (v.replicas * v.batch * v.output / (v.mixed * v.each + v.rest * v.tpot), v.result),
    "sustained.per_chip": lambda v: (v.rate / v.chips, v.result), "sustained.per_chip.pools": lambda v: (v.rate / (v.replicas * v.each), v.result),
    # What is the difference of two large times is worth no more figures than those are.
    "arrive.prompts": lambda v: ((v.crowd - v.alone) / v.more, v.each, max(0.0, v.alone - v.each) + v.alone, v.first + v.alone),
    "arrive.replica": lambda v: (v.rate / v.replicas, v.result),
    "arrive.gathered": lambda v: (1 - v.rate * v.each + 1, v.spare + 1, min(v.most, max(1.0, v.rate * (v.first + v.step) / v.spare)), v.result),
    "arrive.each": lambda v: (v.first / v.count + v.each, v.result), "arrive.share": lambda v: (v.rate * v.each, v.result),
    "arrive.batch": lambda v: (v.rate * v.rest * v.step / v.free, v.result), "arrive.tpot": lambda v: (v.step / v.free, v.result),
    "arrive.full": lambda v: (v.rate * v.each, v.share), "arrive.busy": lambda v: (v.rate * v.rest * v.step / v.free / v.places, v.result),
    "arrive.capacity": lambda v: (v.places / (v.places * v.each + v.rest * v.step) * v.replicas, v.result), "arrive.e2e": lambda v: (v.mean + v.rest * v.tpot, v.result),
    "wait.own": lambda v: (v.first + v.count * v.each, v.result), "wait.queue": lambda v: (v.rate * v.each**2 / (2 * v.free), v.result),
    "wait.queue.capped": lambda v: (min(v.rate * v.each**2 / (2 * v.free), v.longest / 2), v.result), "wait.step": lambda v: (v.step * v.free * (1 - exp(-v.batch)), v.result),
    "wait.place": lambda v: (v.full + v.spare, 1.0, v.chance * v.full / v.spare / v.rate / 2, v.result), "wait.mean": lambda v: (v.own + v.queue + v.left / 2 + v.place, v.result),
    "late.step": lambda v: (v.share * v.left, v.result), "late.queue": lambda v: (v.queue / v.busy * log(v.busy / v.beyond), v.result), "late.queue.capped": lambda v: (v.share * v.longest, v.result),
    "late.place": lambda v: (v.place / v.chance * log(v.chance / v.beyond), v.result), "late.total": lambda v: (v.own + v.longest, v.result),
    "mixed.saved": lambda v: (v.decode + v.chunk, v.result + v.step), "mixed.ttft": lambda v: (v.steps * v.step, v.result),
    "accepted.all": lambda v: (v.fed, v.result), "draft.layer": lambda v: (v.plain * v.share, v.result), "draft.expected.layer": lambda v: (v.each * v.verify / v.limit, v.result), "draft.all": lambda v: (v.drafts * v.each, v.result),
    "speedup": lambda v: (v.plain / v.tpot, v.result),
    "pool.transfer": lambda v: (v.bytes / v.lanes / v.wire, v.result), "pool.hidden": lambda v: (v.transfer / v.layers, v.result), "pool.share": lambda v: (v.took / v.prompts, v.result),
    "pool.ratio": lambda v: (v.share / (v.output * v.tpot / v.batch), v.result), "pool.inverse": lambda v: (1 / v.ratio, v.result), "pool.chips": lambda v: (v.own + v.ratio * v.each, v.result),
    "pool.per_device": lambda v: (v.batch / v.tpot / v.chips, v.result), "pool.rate": lambda v: (v.fresh / v.share, v.result),
    "price.input": lambda v: (v.price * v.chips / 3600 * v.prefill / (v.batch * v.fresh) * 1e6, v.result), "price.input.pool": lambda v: (v.price * v.chips / 3600 * v.share / v.fresh * 1e6, v.result),
    "price.cached": lambda v: (v.price * v.chips / 3600 * v.longer / (v.batch * v.cached) * 1e6, v.result), "price.all_in": lambda v: (v.out + v.input * v.fresh / v.output, v.result),
    "price.chunked": lambda v: (v.price * v.apart / v.rate, v.result),
    "hour": lambda v: (v.price * v.chips, v.result), "hour.power": lambda v: (v.price + v.watts / 1000 * v.pue * v.kwh, v.result),
    "hour.owned": lambda v: (v.purchase * (1 + v.opex) / (v.years * 8760) + v.watts / 1000 * v.pue * v.kwh, v.result), "hour.pools": lambda v: (v.own + v.ratio * v.replicas * v.chips * v.price, v.result),
    "bought": lambda v: (v.speed * 3600 / v.price, v.result), "even.rate": lambda v: (v.hour / 3600 / v.api * 1e6, v.result), "even.share": lambda v: (v.rate * v.tpot / (v.batch * v.replicas), v.result),
    "energy.watts": lambda v: (v.watts * v.chips * v.pue, v.result), "energy.output": lambda v: (v.watts * v.tpot / v.batch, v.result), "energy.input": lambda v: (v.watts * v.prefill / (v.batch * v.fresh), v.result),
    "energy.input.pool": lambda v: (v.watts * v.pue * v.share / v.fresh, v.result), "energy.all_in": lambda v: (v.out + v.input * v.fresh / v.output, v.result),
    "energy.dram": lambda v: (v.bytes * v.each * 1e-12 / (v.batch * v.tokens), v.result), "energy.compute": lambda v: (v.flops * v.each * 1e-12 / (v.batch * v.tokens), v.result),
    "energy.rest": lambda v: (max(v.total * 1e-9, v.total - (v.dram + v.compute) * v.pue) + v.total, v.result + v.total), "per_joule": lambda v: (v.speed / v.watts, v.result),
}
TOLD = {"untimed", "work.decode", "work.verify", "work.total", "rounds", "time.compute.sum", "time.network.sum", "limit.prefill", "limit.decode", "pools.on", "alone", "alone.limit", "expected.group",
        "expected.rest", "expected.limit", "memory.held", "memory.overhead", "memory.total", "memory.min", "weights.group", "kv.total", "kv.beyond", "kv.state", "room.left", "room.none", "room.max_batch",
        "room.made", "room.unknown", "intensity.ridge", "cost.unknown", "head.work", "head.limit", "head.expected", "op.what", "op.vector", "op.least", "op.free", "op.expected",
        "group.operator", "group.sum", "limit.mixed", "limit.draft", "arrive.none", "arrive.batch.none", "arrive.unstable", "arrive.prompt", "arrive.all", "wait.chance", "wait.place.none", "late.queue.none", "mixed.none", "mixed.piece", "mixed.decodes",
        "draft.none", "draft.model", "draft.expected", "pool.none", "pool.nowire", "pools.on.together", "price.cached.none", "price.cached.longer", "even.none", "energy.unknown", "energy.part.unknown", "energy.compute.sum"}  # sentences without a sum of their own, or checked together below


class Values:
    def __init__(self, values):
        self.values = values

    def __getattr__(self, name):
        return number(self.values[name])


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_step_comes_out_by_hand(name):
    """Within what three significant figures allow."""
    groups = [f"{kind}.{op['group']}" for op in _report(name)["decode"]["operators"] for kind in (("group.decode",) if op["group"] == "collective" else ("group.decode", "energy.dram", "energy.compute"))]
    for key, basis in [(key, basis) for key in KEYS for basis in BASES] + [(key, "") for key in (*dict.fromkeys(groups), *operators_of(name))]:
        found = working(name, key, basis)
        assert found["steps"] and found["constants"], key
        for s in found["steps"]:
            assert all(isinstance(v, str) and v and v not in ("–", "nan", "inf") for v in s["values"].values()), s
            for words in WORDS.values():
                assert set(re.findall(r"\{(\w+)\}", words["explain." + s["key"]])) <= set(s["values"]), s
            if s["key"] in SUMS:
                came = SUMS[s["key"]](Values(s["values"]))
                for mine, shown in zip(came[::2], came[1::2], strict=True):
                    assert mine == pytest.approx(shown, rel=0.012), (key, basis, s)
            else:
                assert s["key"] in TOLD, s["key"]


def operators_of(name: str) -> list:
    """The keys of every operator of both phases."""
    return [f"op.{phase}.{i}" for phase in ("prefill", "decode") for i in range(len(_report(name)[phase]["operators"]))]


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_operator_opens_its_working(name):
    """The row of the table and its working name the same operator, work, traffic and time."""
    for phase in ("prefill", "decode"):
        for row in view.operators(_report(name), phase):
            told = {s["key"]: s["values"] for s in working(name, f"op.{phase}.{row['order']}")["steps"]}
            assert told["op.what"]["name"] == row["name"] and told["op.what"]["group"] == row["group"]
            work = next((told[k]["result"] for k in ("op.product", "op.vector", "work.attention", "work.scan") if k in told), "0\u2009FLOP")
            assert work == row["flops"], row
            assert "op.bytes" not in told or told["op.bytes"]["result"] == row["bytes"]
            if "untimed" not in told:
                time = told.get("op.expected") or told.get("op.least")
                assert time is None or time["result"] == row["time"], row
                assert "op.least" not in told or told["op.least"]["bound"] == row["bound"] or row["bound"] == "memory"


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_steps_add_up_to_the_figure_on_show(name):
    """Parts of the work, roofs, expected groups: their sums and the largest are the totals, and the last result is what the page shows."""
    report = _report(name)
    shown = {row["key"]: row for row in view.figures(report)}
    for key in ("ttft", "tpot", "total", "flops", "memory"):
        all_steps = working(name, key)["steps"]
        of = lambda *names: [number(s["values"]["result"]) for s in all_steps if s["key"] in names]
        if of("work.total"):
            rest = next(number(s["values"]["rest"]) for s in all_steps if s["key"] == "work.total")
            assert sum(of("work.products", "work.attention", "work.scan")) + rest == pytest.approx(of("work.total")[0], rel=0.01)
        if of("time.compute.sum"):
            assert sum(of("time.compute")) == pytest.approx(of("time.compute.sum")[0], rel=0.01)
        if of("time.network.sum"):
            assert sum(of("time.network", "time.network.beyond")) == pytest.approx(of("time.network.sum")[0], rel=0.01)
        limit = of("limit.prefill", "limit.decode")
        if limit:
            roofs = of("time.memory", "time.memory.uneven", "time.host") + (of("time.compute.sum") or of("time.compute")) + (of("time.network.sum") or of("time.network", "time.network.beyond"))
            assert max(roofs) == pytest.approx(limit[0], rel=0.01)
        total = next((s["values"] for s in all_steps if s["key"] in ("expected.total", "expected.stages", "expected.limit")), None)
        if total:
            assert sum(of("expected.group", "expected.rest")) == pytest.approx(number(total["sum"]), rel=0.01)
    parts = [number(s["values"]["result"]) for s in working(name, "memory")["steps"] if s["key"] in ("memory.weights", "memory.held")][-1:]
    parts += [number(s["values"]["result"]) for s in working(name, "memory")["steps"] if s["key"] in ("memory.kv", "memory.activations", "memory.overhead")]
    assert sum(parts) == pytest.approx(report["memory"]["total_bytes"], rel=0.01)
    # The strip of figures: at the limit and as expected.
    last = lambda key, *steps_: [s["values"]["result"] for s in working(name, key)["steps"] if s["key"] in steps_][-1:]
    expected = lambda key: [shown[key]["expected"]["value"]] if "expected" in shown[key] else []
    if shown["tpot"]["value"] != "–":
        spec, pools = report["serving"]["speculation"], report["serving"]["disaggregated"]
        assert last("tpot", *(("speculation",) if spec else ("limit.decode",))) == [shown["tpot"]["value"]]
        assert last("ttft", *(("pools",) if pools else ("limit.prefill",))) == [shown["ttft"]["value"]]
        assert last("tpot", *(("expected.speculation",) if spec else ("expected.total", "expected.stages", "expected.limit"))) == expected("tpot")
        assert last("ttft", *(("pools.expected",) if pools else ("expected.total", "expected.stages", "expected.limit"))) == expected("ttft")
        assert last("user", "user") == [shown["user"]["value"]] and last("user", "expected.user") == expected("user")
        assert last("total", "total") == [shown["total"]["value"]] and last("total", "expected.rate") == expected("total")
        assert last("cost", "cost") in ([], [shown["cost"]["value"]]) and last("cost", "expected.cost") == expected("cost")
        if shown["ttft"].get("alone"):
            alone = next(s for s in working(name, "ttft")["steps"] if s["key"].startswith("alone"))["values"]
            assert shown["ttft"]["alone"]["value"] in alone.values()
    assert last("memory", "memory.total") == [shown["memory"]["value"]]
    mem = view.memory(report)
    for key in ("max_batch", "max_context"):
        found = working(name, key)["steps"]
        if found[-1]["key"] in ("room.max_batch", "room.max_context"):
            v = found[-1]["values"]
            assert v["result"] == mem[key]
            if key == "max_batch":
                assert number(v["room"]) / number(v["sequence"]) == pytest.approx(number(v["result"]) + 0.5, rel=0.012, abs=0.6)
    held = [s["values"] for s in working(name, "kv_token")["steps"] if s["key"] in ("kv.layers", "kv.window")]
    written = [s["values"]["result"] for s in working(name, "kv_token")["steps"] if s["key"] == "kv.total"]
    if held:
        assert sum(number(v["result"]) for v in held) == pytest.approx(number(written[0]), rel=0.01)
    if mem["min_devices"] != "–":
        v = next(s["values"] for s in working(name, "memory")["steps"] if s["key"] == "memory.min")
        assert v["result"] == mem["min_devices"] and floor(number(v["need"]) / number(v["each"]) * 0.99) <= int(v["result"])


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_constant_has_a_source_a_date_and_a_grade(name):
    for key in KEYS:
        for row in working(name, key)["constants"]:
            assert row["source"] and row["value"] and row["value"] != "–", row
            if row["source"] not in ("given", "given by the user", "typed by the user", "purchase, years and power given"):
                assert re.fullmatch(r"20\d\d-\d\d-\d\d", str(row["date"])) and row["grade"], row


def test_what_is_fitted_has_the_day_of_the_fit():
    """As data/calibration.toml says; whoever fits anew writes the day."""
    fit = [row for row in working("serve", "tpot")["constants"] if row["grade"] == "fit"]
    assert len(fit) > 3 and {row["date"] for row in fit} == {calibration.fitted()["fitted"]}
    assert not [row for row in working("serve", "tpot", "limit")["constants"] if row["grade"] == "fit"]


def test_windows_bound_what_a_request_keeps():
    """Llama 4 Scout: 36 of 48 layers keep a block of 8,192 tokens; beyond it a token adds the other 12 layers' 2 x 8 x 128 x 2 bytes."""
    found = steps(SCENARIOS["chunked attention"], "kv_token")
    assert found["kv.beyond"] == {"window": "8,192", "result": "49.2 kB"} and found["kv.total"]["result"] == "197 kB"
    # (36 x 8,192 + 12 x 101,000) tokens x 4,096 bytes
    assert found["kv.sequence"]["sequence"] == "6.17 GB"


def test_a_state_is_no_cache_of_a_token():
    """Jamba: 4 attention layers x 2 x 8 x 128 x 2 bytes a token; what the other layers write each step is the same state again."""
    found = steps(SCENARIOS["hybrid"], "kv_token")
    assert found["kv.total"]["result"] == "16.4 kB" and found["kv.layers"]["bytes"] == "2.00"
    assert "kv.total" not in steps(SCENARIOS["recurrent"], "kv_token")
    assert steps(Scenario(), "kv_token")["kv.sequence"]["tokens"] == "1,280"  # 1,024 + 256, which nobody typed


def test_waiting_for_the_host_is_told_as_that():
    """One chip has no links between chips to wait for."""
    report = _report("offload")
    assert report["decode"]["bound"] == "network" and view.told(report["decode"]) == view.headline(report)["bound"] == "host"
    # 58 layers x 8 experts x 3 x 7168 x 2048 weights of 4.8 bits over 25 GB/s
    host = steps(SCENARIOS["offload"], "tpot")["time.host"]
    assert number(host["bytes"]) == pytest.approx(58 * 8 * 3 * 7168 * 2048 * 4.82 / 8, rel=0.02) and number(host["result"]) == pytest.approx(number(host["bytes"]) / 25e9, rel=0.01)
    assert {row["bound"] for row in view.operators(report, "decode") if row["group"] == "experts"} == {"host"}
    for op in report["decode"]["operators"]:
        assert op["expected_s"] >= 0.999 * op["limit_s"], op["name"]


def test_what_a_user_types_is_said_to_be_given():
    rows = {c["name"]: c for c in working("overtyped", "tpot")["constants"]}
    assert rows["bandwidth"]["source"] == "given" and rows["peak FP8"]["grade"] == "B"
    assert {c["name"]: c for c in working("overtyped", "cost")["constants"]}["price"]["source"] == "given"


def test_the_cache_of_a_token():
    # 80 layers x 2 (K and V) x 8 heads x 128 numbers x 2 bytes
    assert steps(SERVE, "kv_token")["kv.total"]["result"] == "328 kB"
    assert steps(SERVE, "kv_token")["kv.layers"] == {"layers": "80", "kind": "full", "numbers": "2,048", "bytes": "2.00", "result": "328 kB"}
    # 61 layers x (512 latent + 64 rope) x 2 bytes, whatever is drafted
    assert steps(SCENARIOS["moe"], "kv_token")["kv.layers"]["result"] == "70.3 kB"
    # 24 layers x 2 x 8 x 64 numbers x 8.5 bits, half of them in windows of 128
    windowed = steps(SCENARIOS["windowed"], "kv_token")
    assert windowed["kv.window"]["window"] == "128" and windowed["kv.window"]["layers"] == windowed["kv.layers"]["layers"] == "12"
    assert windowed["kv.total"]["result"] == "26.1 kB"


def test_the_place_on_the_chart():
    assert steps(SERVE, "ridge")["ridge"]["result"] == "412"  # 1979e12 / 4.8e12
    intensity = steps(SERVE, "intensity.decode")["intensity"]
    assert intensity["result"] == "32.7" and steps(SERVE, "intensity.decode")["intensity.ridge"]["bound"] == "memory"
    # Half of 5.14 TFLOP in 16.4 ms on each of two chips, against 1979 TFLOP/s
    assert steps(SERVE, "rate.decode")["rate"]["result"] == "157 TFLOP/s"
    # 4.45 TFLOP of FP8 products at 1979 TFLOP/s and 693 GFLOP of attention at half of that, on two chips: 1.49 ms of 16.4
    assert steps(SERVE, "utilisation")["utilisation"] == {"compute": "1.49 ms", "time": "16.4 ms", "result": "9.11 %"}


def test_the_work_and_the_bytes_of_a_step():
    # 2 x (70.55e9 - 1.05e9 of the embedding) x 32 tokens, and 4 x 64 heads x 128 x 8256 x 32 x 80 of attention
    work = steps(SERVE, "flops")
    assert work["work.products"]["result"] == "4.45 TFLOP" and work["work.attention"]["result"] == "693 GFLOP" and work["work.total"]["result"] == "5.14 TFLOP"
    moved = steps(SERVE, "bytes")["bytes"]
    assert moved["weights"] == "70.6 GB" and moved["read"] == "86.6 GB" and moved["result"] == "157 GB"


def test_what_fits():
    assert steps(SERVE, "max_batch")["room.max_batch"]["result"] == "74"
    assert "room.none" in steps(SCENARIOS["misfit"], "max_batch")
    # With half of the weights in host memory the rest of them is what is there; with tensor parallelism 16 a cache of 8 heads is there twice.
    half = steps(SERVE.replace(devices=1, offload=0.5), "max_batch")["room.left"]
    assert number(half["weights"]) == pytest.approx(70.6e9 / 2 + 1.05e9 * 1.5, rel=0.02)
    twice = steps(SERVE.replace(devices=16), "max_batch")["room.max_batch"]
    assert number(twice["sequence"]) == pytest.approx(2 * 327_680 * 8512, rel=0.01)


def test_weights_are_told_by_kind():
    kinds = [s["values"]["group"] for s in working("moe", "weights")["steps"][:-1]]
    assert {"experts", "shared_experts", "router", "attention_projection"} <= set(kinds)


def test_recurrent_layers_keep_a_state_instead():
    assert "kv.state" in steps(SCENARIOS["recurrent"], "kv_token")


@pytest.mark.parametrize("more, price", [({"usd_per_hour": 2.0, "usd_per_kwh": 0.5, "pue": 1.5}, 2 + 0.7 * 1.5 * 0.5), ({"purchase_usd": 26280.0, "years": 3.0}, 1.0), ({}, None)])
def test_the_bill_is_worked_out_from_the_price_it_uses(more, price):
    """An hour of one chip as billed, power or purchase included, and where that is from; the catalogue's price only where it is used."""
    r = resolve(Scenario(batch=8, dp=2, **more))
    report = evaluate(r).to_dict()
    found = explain(report, "cost", r)
    value = found["steps"][0]["values"]
    row = next(c for c in found["constants"] if c["name"] == "price")
    price = price or report["hardware"]["usd_per_hour"]
    assert value["price"] == f"{price:.3g}" or float(value["price"]) == pytest.approx(price, rel=5e-3)
    assert row["source"] == report["cost"]["source"] and (row["source"].startswith("AWS")) is (not more)
    assert report["cost"]["usd_per_million_output_tokens"] == pytest.approx(price * 2 / 3600 / report["serving"]["tokens_per_s"] * 1e6)


def test_a_layer_that_drafts_is_not_said_to_be_left_out():
    """Without drafts the prediction layer is not there; with them it is in memory and in time, and no note says otherwise."""
    asked = Scenario(**V3, batch=4)
    plain, drafted = (evaluate(asked.replace(draft=n)) for n in (0, 2))
    left_out = lambda report: [w for w in report.warnings if "is not counted" in w["text"]]
    assert left_out(plain) and not left_out(drafted)
    assert drafted.memory["total_bytes"] > plain.memory["total_bytes"] + 11e9


# ---- services, money and energy: what the page shows is what the working ends with ------------------------------------------


def ends(name: str, key: str, basis: str = "") -> str:
    """The result that a working ends with."""
    return working(name, key, basis)["steps"][-1]["values"].get("result", "–")


def agree(shown: str, said: str) -> bool:
    """Whether two writings are of one number, one of them with fewer figures."""
    if shown == said:
        return True
    figures = lambda text: len(re.sub(r"[^\d]", "", text.partition("\u2009")[0]).lstrip("0"))
    return number(said) == pytest.approx(number(shown), rel=0.51 * 10.0 ** (1 - min(figures(shown), figures(said)))) if "–" not in (shown, said) else False


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_working_ends_with_the_number_of_the_view(name):
    """Serving's parts in both columns: figures, arrivals, chunks, drafts, pools, money, energy."""
    load, paid = (view_serving.serving(SCENARIOS[name], part) for part in ("load", "money"))
    rows = []
    names = {"ttft_s": "ttft", "tpot_s": "tpot", "tokens_per_s_per_user": "user", "tokens_per_s": "total", "tokens_per_s_per_device": "per_chip", "requests_per_s": "requests"}
    for row in load["figures"]:
        rows += [(names[row["key"]], basis, row[basis]) for basis in ("limit", "expected")]
    if load["arrivals"]:
        rows.append(("arrivals.capacity", "expected", load["arrivals"]["capacity"]))
        if load["arrivals"]["stable"]:
            rows += [(f"arrivals.{key}", "expected", load["arrivals"][key]) for key in ("utilisation", "prefill_share", "batch")]
            rows += [(f"arrivals.{row['key']}", basis, row[basis]) for row in load["arrivals"]["rows"] for basis in ("limit", "expected")]
    rows += [(f"mixed.{row['key']}", "limit", row["value"]) for row in (load["mixed"] or {"rows": []})["rows"]]
    if load["speculation"]:
        for basis, s in (("limit", load["speculation"]), ("expected", load["speculation"]["expected"])):
            rows += [(key, basis, s[of]) for key, of in (("speedup", "speedup"), ("draft", "draft"), ("plain", "plain"), ("tpot", "tpot")) if s]
        rows += [("accepted", "limit", load["speculation"]["tokens"]), ("phase.decode", "limit", load["speculation"]["verify"])]
    pools = load["pools"]
    if pools and pools["fits"]:
        rows += [("ttft" if row["key"] == "ttft" else f"pool.{row['key']}", "limit", row["value"].rpartition(", ")[2] if row["key"] == "transfer" else row["value"]) for row in pools["rows"]]
        rows += [("pool.chips", "limit", pools["chips"]), ("pool.ratio", "limit", pools["prefill_instances"] if pools["decode_instances"] == "1" else pools["decode_instances"])]
    m, e = paid["money"], paid["energy"]
    prices = {"usd_per_million_input_tokens": "price.input", "usd_per_million_cached_input_tokens": "price.cached", "usd_per_million_output_tokens": "cost", "usd_per_million_output_tokens_all_in": "all_in"}
    rows += [(prices[row["key"]], basis, row[basis]) for row in m["rows"] for basis in ("limit", "expected")]
    rows += [("hour", "", m["per_hour"]), ("bought.flops", "", m["flops"]), ("bought.bytes", "", m["bytes"])]
    if m["even"]:
        rows += [("even.rate", "expected", m["even"]["rate"]), ("even.share", "expected", m["even"]["share"])]
    rows += [("energy.output", "expected", e["output"]), ("energy.input", "expected", e["input"]), ("energy.watts", "", e["watts"]), ("per_joule.flops", "", e["flops"]), ("per_joule.bytes", "", e["bytes"])]
    rows += [(f"energy.{row['key']}", "expected", row["text"]) for row in e["parts"]]
    rows += [(f"energy.{kind}.{row['group']}", "", row[kind]) for row in e["groups"] for kind in ("dram", "compute")]
    told = [row for row in rows if row[2] not in ("–", "0\u2009J")]
    assert len(told) > 5
    for key, basis, shown in told:
        said = ends(name, key, basis)
        assert agree(shown, said), (key, basis, shown, working(name, key, basis)["steps"][-3:])


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_value_that_opens_is_what_its_working_ends_with(name):
    for key in KEYS:
        for basis in BASES[1:]:
            for s in working(name, key, basis)["steps"]:
                for value, inner in s.get("opens", {}).items():
                    assert known(inner), inner
                    assert agree(s["values"][value], ends(name, inner, "limit" if inner.startswith("op.") else basis)), (key, basis, s, working(name, inner, basis)["steps"][-2:])


@pytest.mark.parametrize("name", ["serve", "eight", "speculation", "pools", "arrivals", "pools at work", "stages", "limits", "misfit"])
def test_a_lever_and_a_comparison_show_both_sides(name):
    """The gain that the Levers view shows is what the working ends with, and its sides are the two questions' own figures."""
    base, r = SCENARIOS[name], _resolved(name)
    keys = {"tpot": "tpot", "ttft": "ttft", "throughput": "sustained", "per_chip": "sustained_per_chip", "cost": "bill", "memory": "chip_memory"}
    found = levers.levers(base)
    assert len(found["levers"]) > 3
    for row in (*found["levers"][:8], *(x for x in found["levers"] if x["id"] in ("disaggregate", "chunked", "speculate-3"))):
        changed = resolve(base.replace(**row["change"]))
        report = evaluate(changed).to_dict()
        for goal, key in keys.items():
            last = explain(report, key, changed, "expected", (_report(name), r), "gain")["steps"][-1]
            if row["gain"][goal] is None:
                assert last["key"] == "beside.none"
                continue
            assert last["values"]["result"] == view.gain(row["gain"][goal]), (row["id"], goal, last)
            v = Values(last["values"])
            assert (v.after / v.before if last["key"] == "beside.more" else v.before / v.after) == pytest.approx(v.ratio, rel=0.012)
        assert {d["field"] for d in differs(changed, r)}
    other = resolve(base.replace(batch=base.batch * 2))
    answer = levers.compare(base, other.scenario)
    for key, figure in (("tpot", "tpot_s"), ("ttft", "ttft_s"), ("total", "tokens_per_s"), ("per_chip", "tokens_per_s_per_device"), ("cost", "usd_per_million_output_tokens"), ("memory", "total_bytes"), ("max_batch", "max_batch")):
        last = explain(evaluate(other).to_dict(), key, other, "expected", (_report(name), r), "ratio")["steps"][-1]
        assert last["values"].get("result", "–") == view.times(answer["ratio"][figure]) or not answer["ratio"][figure], key


def test_an_operator_group_is_the_sum_of_its_operators():
    """Compare's rows: decode's MLP reads 3 x 8192 x 28672 x 80 bytes of FP8 weights on two chips of 4.8 TB/s."""
    last = steps(SERVE, "group.decode.mlp")
    assert number(last["group.sum"]["result"]) == pytest.approx(3 * 8192 * 28672 * 80 / 2 / 4.8e12, rel=0.01)
    for name in ("serve", "deepseek", "stages"):
        for phase in ("prefill", "decode"):
            for group in {op["group"] for op in _report(name)[phase]["operators"]}:
                found = working(name, f"group.{phase}.{group}")["steps"]
                told = sum(op["limit_s"] for op in _report(name)[phase]["operators"] if op["group"] == group)
                assert told == 0 or number(found[-1]["values"]["result"]) == pytest.approx(told, rel=0.01)


def test_waits_by_hand():
    """M/D/1 of a prompt that takes 316 ms at 0.3 a second: 0.3 x 0.316^2 / (2 x (1 - 0.0948)) = 16.5 ms."""
    found = steps(SCENARIOS["arrivals"], "arrivals.mean")
    each = number(found["arrive.prompt"]["result"])
    limit = {s["key"]: s["values"] for s in working("arrivals", "arrivals.mean", "limit")["steps"]}
    d = number(limit["arrive.prompt"]["result"])
    assert d < each and number(limit["wait.queue"]["result"]) == pytest.approx(0.3 * d * d / 2 / (1 - 0.3 * d), rel=0.01)


def test_what_differs_is_said_field_by_field():
    r = _resolved("serve")
    changed = resolve(SERVE.replace(hardware="b200-sxm", batch=64, bandwidth=9.6e12, fused=False, prefill_hardware="h100-sxm"))
    assert {d["field"]: d["value"].replace("\u2009", " ") for d in differs(changed, r)} == {
        "hardware": "NVIDIA B200 SXM 180GB" if changed.chip.name.startswith("NVIDIA") else changed.chip.name, "batch": "64", "bandwidth": "9.60 TB/s", "fused": "false", "prefill_hardware": resolve(SERVE.replace(hardware="h100-sxm")).chip.name}
    assert differs(r, r) == [] and differs(resolve(SERVE.replace(tp=2)), r) == []  # what "auto" became is no difference
