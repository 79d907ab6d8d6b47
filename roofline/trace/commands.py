"""`roofline trace` on the command line."""

from __future__ import annotations

from pathlib import Path

from ..errors import InputError
from ..options import emit, read_text
from ..units import format_number, format_quantity, parse_quantity


def add_commands(command) -> None:
    """Add `roofline trace`; command(name, run, text) makes one and returns its parser."""
    p = command("trace", _run, "run a PyTorch program and count its FLOPs and bytes operator by operator (needs torch)")
    add = p.add_argument
    add("target", help="FILE.py:FUNCTION, or a model: catalogue id, hub id or path to a config.json (built by transformers, without its weights)")
    for name, default, text in (
        ("batch", "1", "sequences, for a model"),
        ("prompt", "512", "prompt tokens, for a model"),
        ("phase", "both", "prefill, decode or both, for a model"),
        ("layers", None, "only this many layers of a model"),
        ("device", "meta", "meta (shapes only), cpu or cuda, for a model"),
        ("dtype", "bf16", "bf16, fp16 or fp32, for a model"),
        ("attention", "eager", "eager (every operator seen) or sdpa (one operator), for a model"),
        ("experts", "batched_mm", "how transformers runs experts: batched_mm, grouped_mm or eager"),
        ("fusion", "none", "what runs as one kernel: none, elementwise (chains, norms) or attention (FlashAttention as well)"),
        ("top", "24", "rows to print"),
    ):
        add("--" + name, default=default, help=text)
    add("--grad", action="store_true", help="keep autograd on, to trace a backward pass too")
    add("--compare", action="store_true", help="beside the analytic operators of the same config, line by line")
    add("--time", action="store_true", help="also time every operator (on cpu or cuda, or what FUNCTION uses)")
    add("--repeats", default="5", help="timed runs, of which the median counts")
    add("--best", action="store_true", help="the shortest run counts instead, for a machine that does other work too")
    add("--hardware", help="draw under this chip's roofs")
    add("--ceilings", metavar="FILE", help="draw under the roofs that `roofline ceilings -o FILE` measured")
    from ..plot.commands import _look

    _look(p)


def _run(args) -> None:
    from . import load_function, trace_function

    whole = lambda name, low=1: parse_quantity(getattr(args, name), "tokens", field=name, low=low, high=1e9, whole=True)
    repeats = whole("repeats") if args.time else 0
    comparisons = None
    if ":" in Path(args.target).name and not args.target.endswith(".json"):
        if args.compare:
            raise InputError("compare", args.target, "needs a model whose config the engine knows, not a function")
        traces = trace_function(load_function(args.target), grad=args.grad, repeats=repeats, best=args.best)
        title = args.target
    else:
        traces, comparisons, title = _model(args, whole, repeats)
    if args.json and not args.out:
        return emit(
            {
                "target": args.target,
                "phases": [t.to_dict(args.fusion) for t in traces.values()],
                "comparison": None if comparisons is None else [c.to_dict() for c in comparisons],
            },
        )
    if args.out:
        from ..plot import from_trace
        from ..plot.commands import finish, look

        options = look(args)
        options.setdefault("title", title)
        return finish(from_trace(traces, _roofs(args), fusion=args.fusion, **options), args)
    for t in traces.values():
        _print(t, args.fusion, whole("top"))
    for c in comparisons or ():
        print_comparison(c)
    return None


def _model(args, whole, repeats: int) -> tuple:
    """(traces, comparisons or None, title) of a model built from its config."""
    from . import build_model, trace_model

    config, name = config_of(args.target)
    if args.layers:
        config = shortened(config, whole("layers"))
    if args.time and args.device == "meta":
        raise InputError("device", "meta", "has no time, since nothing runs on it; use --device cpu or cuda")
    if args.phase not in ("prefill", "decode", "both"):
        raise InputError("phase", args.phase, "must be prefill, decode or both")
    phases = ("prefill", "decode") if args.phase == "both" else (args.phase,)
    batch, prompt = whole("batch"), whole("prompt")
    from .targets import require_transformers

    require_transformers().utils.logging.set_verbosity_error()  # its advice on faster kernels is not about what is counted here
    model = build_model(config, device=args.device, dtype=args.dtype, attention=args.attention, experts=args.experts)
    traces = trace_model(model, batch=batch, prompt=prompt, phases=phases, repeats=repeats, best=args.best, facts={"model": name})
    comparisons = None
    if args.compare:
        from ..families import from_hf_config
        from ..operators import Pass
        from .comparison import compare

        if args.dtype != "bf16":
            raise InputError("dtype", args.dtype, "must be bf16 to be compared with the engine's BF16 operators")
        arch = from_hf_config({k: v for k, v in config.items() if k != "quantization_config"}, id=name)
        passes = {"prefill": Pass(sequences=batch, new_tokens=prompt), "decode": Pass(sequences=batch, new_tokens=1, start=prompt, steps=1)}
        comparisons = [compare(t, arch, passes[phase]) for phase, t in traces.items()]
    return traces, comparisons, f"{name}, batch {batch:,}, prompt {prompt:,}, {args.dtype} on {args.device}"


def config_of(target: str) -> tuple:
    """(config, name) of a catalogue id, hub id or path to a config.json."""
    from .. import catalogue

    if catalogue.is_path(target):
        return catalogue.read_config_text(read_text(target, catalogue.MAX_CONFIG)), Path(target).stem
    found = catalogue.find(target)
    return catalogue.config_of(found), found


def shortened(config: dict, layers: int) -> dict:
    """A config with fewer layers, whatever the family calls them; lists with an entry a layer are cut too."""
    inner = next((config[k] for k in ("text_config", "llm_config") if isinstance(config.get(k), dict)), None)
    if inner is not None:
        key = next(k for k in ("text_config", "llm_config") if isinstance(config.get(k), dict))
        return {**config, key: shortened(inner, layers)}
    name = next((k for k in ("num_hidden_layers", "n_layer", "n_layers", "num_layers") if k in config), None)
    if name is None:
        raise InputError("layers", layers, "cannot be set: the config does not say how many there are")
    before = config[name]
    cut = {k: v[:layers] if isinstance(v, list) and len(v) == before else v for k, v in config.items()}
    return {**cut, name: min(layers, before)}


def _roofs(args) -> list:
    from ..plot import chip_roofs, machine_roofs
    from ..plot.commands import read_ceilings

    if args.ceilings:
        return machine_roofs(read_ceilings(args.ceilings))
    if args.hardware:
        return chip_roofs(args.hardware)
    raise InputError(
        "roof", "none", "is given to draw under; add --hardware ID or --ceilings FILE (`roofline ceilings -o FILE` measures this machine)"
    )


def _print(trace, fusion: str, top: int) -> None:
    d = trace.to_dict(fusion)
    totals = d["bytes"][fusion]
    took = f", {format_quantity(d['seconds'], 's')} in operators" if d["seconds"] is not None else ""
    print(
        f"{d['phase']}: {format_quantity(d['flops'], 'FLOP')} in products, {format_quantity(d['vector_flops'], 'FLOP')} element by element; "
        f"{format_quantity(totals['read_bytes'], 'B')} read ({format_quantity(totals['parameter_bytes'], 'B')} of weights), {format_quantity(totals['write_bytes'], 'B')} written{took}"
    )
    print(
        f"  {d['operators_run']} operators and {d['views']} views; kernels and bytes: "
        + ", ".join(f"{name} {b['kernels']}, {format_quantity(b['read_bytes'] + b['write_bytes'], 'B')}" for name, b in d["bytes"].items())
    )
    for name, flops in d["not_counted_by_torch"].items():
        print(f"  FlopCounterMode leaves out {name}: {format_quantity(flops, 'FLOP')}")
    if d.get("values_taken_as_zero"):
        print(f"  {d['values_taken_as_zero']} values that the program asked of tensors without values were taken as zero")
    cost = lambda row: row["seconds"] if row["seconds"] is not None else row["flops"] / 300 + row["read_bytes"] + row["write_bytes"]
    rows = sorted(d["operators"], key=cost, reverse=True)
    for row in rows[:top]:
        where = (row["parameter"] or row["module"]).removesuffix(".weight")
        speed = (
            f"  {format_quantity(row['seconds'], 's'):>9} {format_quantity(row['flops_per_s'], 'FLOP/s'):>14} {format_quantity(row['bytes_per_s'], 'B/s'):>11}"
            if row["seconds"]
            else ""
        )
        print(
            f"  {row['count']:5} x {row['name']:14} {format_quantity(row['flops'] or row['vector_flops'], 'FLOP'):>12} {format_quantity(row['read_bytes'], 'B'):>9} in {format_quantity(row['write_bytes'], 'B'):>9} out{speed}  {where}"
        )
    if len(rows) > top:
        print(f"  ... and {len(rows) - top} more kinds of operator (--top, or --json for all)")


def print_comparison(c) -> None:
    """Both sides of every line, and the names of what differs."""
    print(f"{c.phase} beside the analytic operators (traced = analytic + named differences + open):")
    for line in c.lines:
        for q, unit in (("flops", "FLOP"), ("weight_bytes", "B"), ("activation_bytes", "B"), ("kv_read_bytes", "B"), ("kv_write_bytes", "B")):
            a, b = line.traced[q], line.analytic[q]
            if a or b:
                why = "; ".join(f"{name} {'+' if amount > 0 else '-'}{format_quantity(abs(amount), unit)}" for name, amount in line.differences[q])
                left = line.open(q)
                print(
                    f"  {line.name[:44]:44} {q:16} {format_quantity(a, unit):>12} {format_quantity(b, unit):>12}  {'equal' if not why and not left else why}{'  OPEN ' + format_quantity(left, unit) if left else ''}"
                )
    for q in ("flops", "weight_bytes"):
        t = c.total(q)
        print(
            f"  in all: {q} {format_number(t['traced'])} traced, {format_number(t['analytic'])} analytic, open {format_number(t['open']) if t['open'] else 'nothing'}"
        )
