"""Write docs/traces.md and tests/data/traced.json: whole models traced from their configs, beside the analytic engine.

    python docs/make_traces.py            trace one model of every family (torch and transformers; some minutes) and write both
    python docs/make_traces.py --only=a,b  trace these families again and keep the rest
    python docs/make_traces.py --page     only write the page again from tests/data/traced.json
    python docs/make_traces.py --time     time a small model on this machine's CPU under its own roofs, write docs/traces-cpu.*

tests/test_trace.py holds the analytic side to these figures without torch, so a change of the engine that leaves the reference shows.
"""

import json
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from roofline import catalogue
from roofline.errors import InputError
from roofline.families import from_hf_config
from roofline.model import parameters
from roofline.operators import Pass
from roofline.units import format_number, format_quantity

BATCH, PROMPT = 2, 128
DATA, PAGE, CPU = ROOT / "tests" / "data" / "traced.json", ROOT / "docs" / "traces.md", ROOT / "docs" / "traces-cpu.json"
QUANTITIES = ("flops", "weight_bytes", "activation_bytes", "kv_read_bytes", "kv_write_bytes")
# What each named difference means; the names are those of roofline/trace/comparison.py.
MEANING = {
    "every key for every query, then masked": "The reference multiplies every query with every key and masks the future (and what a window leaves out) afterwards; the engine counts the pairs that are seen, as FlashAttention computes them.",
    "latent expanded again, not absorbed": "Latent attention (MLA): the reference expands the whole cached latent into keys and values of every head at each step; the engine counts the absorbed form that serving engines run.",
    "layers that read another layer's cache run on the last token only": "Gemma 4's small models: the upper layers keep no keys and values, so in a prefill that needs only the last token's logits the reference runs them on that token alone. The engine counts every layer on every token, as an engine without that shortcut does.",
    "index heads weighed by a matrix product": "Sparse attention's indexer: the reference weighs its heads by one more product; the engine counts the scores.",
    "another algorithm for the scan": "Recurrent layers: the reference computes the scan in chunks, or element by element, which is another number of products than the recurrence itself. The engine counts the recurrence.",
    "every expert for every token": "The reference runs all experts on all tokens and keeps the chosen ones' results.",
    "weights of each token's experts read again": "The reference gathers the weights of every token's experts, the same expert again for each token; the engine counts each distinct expert once (an expectation, uniform routing).",
    "biases of the chosen experts only": "The engine reads all experts' biases with the layer; the reference reads those of the chosen ones.",
    "one product for several matrices": "Gate and up projection in one product read their input once; the engine counts the matrices as the checkpoint stores them.",
    "cache grown by copying it": "The reference's cache grows by concatenation: the whole of it is written again at each step. An engine writes the new token.",
    "keys repeated for each query head in the cache": "Falcon's reference repeats its shared keys and values for every query head before it caches them.",
    "mask or bias on the scores read from memory": "The reference reads a mask (or ALiBi's bias) of the size of the scores; a fused kernel computes it.",
    "rotary angles by a matrix product": "Positions times frequencies, as a product with an inner length of one.",
    "router in FP32": "The reference multiplies the router in FP32, twice the bytes of BF16.",
}


def families() -> dict:
    """{model_type: [(entry, config), ...]} of the catalogue, the smallest model of a type first."""
    found: dict = {}
    for entry in catalogue.entries():
        config = {k: v for k, v in catalogue.config_of(entry.id).items() if k != "quantization_config"}
        found.setdefault(config["model_type"], []).append((parameters(from_hf_config(config))["total"], len(found), entry, config))
    return {kind: [(entry, config) for *_, entry, config in sorted(rows, key=lambda row: row[:2])] for kind, rows in sorted(found.items())}


def trace_one(entry, config: dict) -> dict:
    """Both phases of one model: traced figures, what the named differences come to, what is left."""
    from roofline.trace import build_model, compare, trace_model
    arch = from_hf_config(config, id=entry.id)
    traces = trace_model(build_model(config), batch=BATCH, prompt=PROMPT)
    row = {"family": config["model_type"], "model": entry.id, "name": entry.name, "operators_run": {}}
    for phase, p in (("prefill", Pass(sequences=BATCH, new_tokens=PROMPT)), ("decode", Pass(sequences=BATCH, new_tokens=1, start=PROMPT, steps=1))):
        c = compare(traces[phase], arch, p)
        row["operators_run"][phase] = sum(op.kind != "view" for op in traces[phase].ops)
        row[phase] = {q: {**c.total(q), "left": sum(x.open(q) for x in c.lines), "lines": [x.name for x in c.lines if x.open(q)]} for q in QUANTITIES}
        row[phase]["flops"]["counter"] = traces[phase].torch_flops
        row[phase]["bytes"] = {f: sum(k.bytes for k in traces[phase].kernels(f)) for f in ("none", "elementwise", "attention")}
        assert traces[phase].torch_flops == traces[phase].flops, "FlopCounterMode leaves something out"
    return row


def trace_all(only=()) -> dict:
    """Trace one model of every family (of `only`, if given, keeping what the file has of the others); what cannot run is listed with its reason."""
    import torch
    import transformers
    before = json.loads(DATA.read_text("utf-8")) if only else {"models": [], "left_out": []}
    rows, left_out = {r["family"]: r for r in before["models"] if r["family"] not in only}, {r["family"]: r for r in before["left_out"] if r["family"] not in only}
    for kind, models in families().items():
        if only and kind not in only:
            continue
        for entry, config in models[:3]:  # a config that the library cannot build as published: the next larger model of the family
            try:
                rows[kind] = trace_one(entry, config)
                left_out.pop(kind, None)
                print(f"{kind}: {entry.id}", file=sys.stderr)
                break
            except Exception as error:  # a class that cannot run without values, a type the library does not know: said on the page
                said = error.rule if isinstance(error, InputError) else f"{type(error).__name__}: {' '.join(str(error).split())}"
                left_out[kind] = {"family": kind, "model": entry.id, "reason": said[:160]}
                print(f"{kind}: {entry.id} left out, {said[:100]}", file=sys.stderr)
    return {"note": "Traced on torch's meta device from published configs; figures of the reference implementation, not of this engine.", "torch": torch.__version__.split("+")[0],
            "transformers": transformers.__version__, "batch": BATCH, "prompt": PROMPT, "models": [rows[k] for k in sorted(rows)], "left_out": [left_out[k] for k in sorted(left_out)]}


def side(row: dict, phase: str, quantity: str, unit: str) -> str:
    """"1.23 TFLOP, = engine + names" of one cell."""
    q = row[phase][quantity]
    if not q["traced"] and not q["analytic"]:
        return "–"
    exact = "equal" if not q["named"] and not q["open"] else f"{100 * q['analytic'] / q['traced']:.2f} %" if q["traced"] else "–"
    return f"{format_quantity(q['traced'], unit)} ({exact})"


def table(data: dict) -> list:
    lines = ["| family | model | prefill FLOPs (engine) | decode FLOPs (engine) | decode weights read (engine) | named differences | open |", "| --- | --- | --- | --- | --- | --- | --- |"]
    numbers = {name: str(i) for i, name in enumerate(MEANING, 1)}
    for row in data["models"]:
        names = sorted({numbers[n] for phase in ("prefill", "decode") for q in QUANTITIES for n in row[phase][q]["named"]}, key=int)
        left = []
        for q, word in (("flops", "FLOPs"), ("weight_bytes", "weights")):
            worst = max(row[phase][q]["open"] / max(1, row[phase][q]["traced"]) for phase in ("prefill", "decode"))
            if worst:
                left.append(f"{word} {worst:.1g}")
        lines.append(f"| {row['family']} | {row['name']} | {side(row, 'prefill', 'flops', 'FLOP')} | {side(row, 'decode', 'flops', 'FLOP')} | {side(row, 'decode', 'weight_bytes', 'B')} | {' '.join(names)} | {', '.join(left) or 'nothing'} |")
    return lines


def bytes_table(data: dict) -> list:
    lines = ["| family | activations of the products and the core, prefill (engine) | KV read, decode (engine) | KV written, decode (engine) | all bytes, prefill: eager / chains fused / attention fused |", "| --- | --- | --- | --- | --- |"]
    for row in data["models"]:
        every = " / ".join(format_quantity(row["prefill"]["bytes"][f], "B") for f in ("none", "elementwise", "attention"))
        lines.append(f"| {row['family']} | {side(row, 'prefill', 'activation_bytes', 'B')} | {side(row, 'decode', 'kv_read_bytes', 'B')} | {side(row, 'decode', 'kv_write_bytes', 'B')} | {every} |")
    return lines


def page(data: dict) -> str:
    """The page as Markdown."""
    exact = sum(all(row[p]["flops"]["open"] == 0 for p in ("prefill", "decode")) for row in data["models"])
    weighed = sum(all(row[p]["weight_bytes"]["open"] == 0 for p in ("prefill", "decode")) for row in data["models"])
    equal = sum(row["decode"]["flops"]["traced"] == row["decode"]["flops"]["analytic"] for row in data["models"])
    scans = sum(any("another algorithm for the scan" in row[p]["flops"]["named"] for p in ("prefill", "decode")) for row in data["models"])
    out = [
        "# Traces: the analytic engine beside the programs themselves",
        "<!-- written by docs/make_traces.py -->",
        "`roofline trace` runs a PyTorch program under the dispatcher and notes every operator: FLOPs, bytes read and written, type, shapes, module. A Hugging Face model is built from its config "
        "on the meta device, where tensors have shapes and no values, so that a model of any size is traced in seconds on any machine.",
        f"Below, one published model of every family in the catalogue, in full size, batch {data['batch']}, prompt {data['prompt']} (prefill), and one decode step after it: "
        f"transformers {data['transformers']} on torch {data['torch']}, every expert's weights gathered (`batched_mm`), eager attention. Beside each traced figure stands the engine's share of it: "
        "`traced = engine + named differences + open`, line by line (each matrix, the attention core, the scan), and an explanation only counts if its own formula gives the difference to the last FLOP "
        "(the scan of recurrent layers apart: that it is another algorithm is a name, not a formula).",
        f"**{len(data['models'])} families. FLOPs: {exact} leave nothing open in both phases ({scans} of them with a scan of another algorithm), {equal} are equal outright in decoding. Weight bytes: {weighed} leave nothing open.** "
        "In every row the traced FLOPs are those of torch's own FlopCounterMode on the same run.",
        "## FLOPs and weights", *["\n".join(table(data))],
        "## Activations, cache, and what fusion saves",
        "Activations are what feeds and leaves each matrix product, and queries, keys, values in and the result out of the attention core (seen as one kernel).",
        "\n".join(bytes_table(data)),
        "## The differences, by number", "\n".join(f"{i}. *{name}*: {text}" for i, (name, text) in enumerate(MEANING.items(), 1)),
    ]
    if data["left_out"]:
        out += ["## Left out", "\n".join(f"* {row['family']} ({row['model']}): {row['reason'].split(': Unrecognized')[0]}" for row in data["left_out"])]
    lines = [(row["family"], phase, sorted({n for q in ("flops", "weight_bytes") for n in row[phase][q]["lines"]})) for row in data["models"] for phase in ("prefill", "decode")]
    lines = [(f, p, names) for f, p, names in lines if names]
    if lines:
        out += ["## What is open", "\n".join(f"* {f}, {p}: {', '.join(names)}" for f, p, names in lines)]
    if CPU.exists():
        out += cpu_section(json.loads(CPU.read_text("utf-8")))
    out += ["## How bytes are counted", "\n".join([
        "* A view moves nothing. A broadcast or expanded tensor is read once, a slice inside what is read anyway costs nothing, the same tensor twice is read once.",
        "* An in-place operator reads and writes what it changes; one that only overwrites (`copy_`, `zero_`, `fill_`) does not read it. Writing a token into a cache writes the token.",
        "* A gather (embedding, indexing) reads as much of its table as comes out, and its indices.",
        "* `none`: every operator reads its inputs and writes its outputs, as eager PyTorch does. `elementwise`: chains of element-by-element operators, copies and row reductions are one kernel. "
        "`attention`: besides, scores, softmax and values are one kernel. A kernel reads what it did not make and writes what anyone else reads, or what outlives the run.",
        "* `scaled_dot_product_attention` is one operator on every device: queries, keys, values and mask in, result out.",
    ])]
    return "\n\n".join(out).replace("\u2009", " ") + "\n"


def cpu_section(cpu: dict) -> list:
    rows = ["| phase | operator | count | share of the time | FLOP/byte | FLOP/s | bytes/s | of its roof |", "| --- | --- | --- | --- | --- | --- | --- | --- |"]
    rows += [f"| {r['phase']} | {r['operator']} | {r['count']} | {r['share']} | {r['FLOP/byte']} | {r['FLOP/s']} | {r['bytes/s']} | {r['of the roof']} |" for phase in ("prefill", "decode") for r in [r for r in cpu["rows"] if r["phase"] == phase][:9]]
    best = {phase: [r["of the roof"] for r in cpu["rows"] if r["phase"] == phase][0] for phase in ("prefill", "decode")}
    best["decode"] = next((r["of the roof"] for r in cpu["rows"] if r["phase"] == "decode" and r["count"] > 1), best["decode"])
    return ["## On a real CPU",
            f"{cpu['model']} in {cpu['dtype']}, random weights, batch {cpu['batch']}, prompt {cpu['prompt']}, on {cpu['device']} ({cpu['threads']} thread{'s' if cpu['threads'] != 1 else ''}), the best of {cpu['runs']} runs for each operator, as for the roofs. Its own roofs, measured by `roofline ceilings`: "
            + ", ".join(f"{k.upper()} products {format_quantity(v, 'FLOP/s')}" for k, v in cpu["peaks"].items()) + "; " + ", ".join(f"{level['name']} {format_quantity(level['bytes_per_s'], 'B/s')}" for level in cpu["levels"]) + ". "
            f"The prefill took {format_quantity(cpu['prefill_s'], 's')} in operators, the decode step {format_quantity(cpu['decode_s'], 's')}; its weights alone take at least {format_quantity(cpu['decode_floor_s'], 's')} through that memory.",
            f"The largest operators of the prefill reach {best['prefill']} of their roof, those of the decode step {best['decode']}. What is above its roof passed from one operator to the next through the cache.",
            "![Operators of a small model under the measured roofs of a CPU](traces-cpu.svg)", "\n".join(rows)]


def time_cpu(model: str = "smollm2-135m", dtype: str = "fp32", prompt: int = 128, repeats: int = 15) -> None:
    """Time a small model on the CPU and write the figure and its table."""
    import torch

    from roofline import ceilings
    from roofline.plot import from_trace, machine_roofs
    from roofline.trace import build_model, trace_model
    torch.set_num_threads(1)  # several threads wait for one another wherever the machine does other work too
    roofs = ceilings.measure("cpu", backend="torch", formats=(dtype,), budget_s=0.5)
    built = build_model(catalogue.config_of(model), device="cpu", dtype=dtype, attention="sdpa")
    traces = trace_model(built, batch=1, prompt=prompt, repeats=repeats, best=True)
    again = ceilings.measure("cpu", backend="torch", formats=(dtype,), budget_s=0.5)  # before and after, the better counts: other work on the machine only lowers them
    best = max((roofs, again), key=lambda r: r["bandwidth_bytes_per_s"])
    best["peak_flops_per_s"] = {k: max(roofs["peak_flops_per_s"][k], again["peak_flops_per_s"][k]) for k in best["peak_flops_per_s"]}
    name = next(e.name for e in catalogue.entries() if e.id == model)
    chart = from_trace(traces, machine_roofs(best), title=f"{name} on this CPU, operator by operator", subtitle=f"{best['device']}, {dtype.upper()}, batch 1, prompt {prompt}; size: share of the phase's time")
    chart.save(ROOT / "docs" / "traces-cpu.svg")
    weights = sum(k.parameter_bytes for k in traces["decode"].kernels())
    CPU.write_text(json.dumps({
        "model": name, "dtype": dtype.upper(), "batch": 1, "prompt": prompt, "device": best["device"], "threads": best["threads"], "runs": repeats, "peaks": best["peak_flops_per_s"], "levels": best["levels"],
        "prefill_s": traces["prefill"].seconds, "decode_s": traces["decode"].seconds, "decode_floor_s": weights / best["bandwidth_bytes_per_s"], "rows": list(chart.rows),
    }, indent=1, ensure_ascii=False))
    print(format_number(traces["decode"].seconds * 1e3), "ms a decode step")


def main(argv: list) -> None:
    if "--time" in argv:
        time_cpu()
    elif "--page" not in argv:
        only = [name for word in argv if word.startswith("--only=") for name in word[7:].split(",")]
        DATA.write_text(json.dumps(trace_all(only), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    PAGE.write_text(page(json.loads(DATA.read_text("utf-8"))), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
