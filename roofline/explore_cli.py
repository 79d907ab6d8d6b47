"""The commands that explore: `roofline explore`, `roofline fleet` and `roofline sensitivity`. NumPy is loaded only when one of them runs."""

from __future__ import annotations

import sys
from pathlib import Path

from . import catalogue
from .errors import InputError
from .options import emit, read_text, scenario_of, scenario_options
from .scenario import Scenario
from .units import format_number, format_quantity

_FLAGS = {
    "models": "model",
    "vendors": "vendor",
    "kinds": "kind",
    "batches": "batch",
    "prompts": "prompt",
    "outputs": "output",
    "drafts": "draft",
    "prices": "price",
}
_SPACE = {
    "models": "catalogue or hub ids, separated by commas, or the path of one config.json",
    "chips": "chip ids, or all",
    "vendors": "only chips of these vendors",
    "kinds": "only these kinds of chip, such as gpu-datacenter",
    "devices": "chips in one deployment, such as 1,2,4,8",
    "weights": "weight formats, such as bf16,fp8",
    "activations": "arithmetic of the quantised matrices",
    "kv": "KV cache formats",
    "batches": "requests in flight in one replica",
    "prompts": "prompt tokens",
    "outputs": "output tokens",
    "hits": "shares of the prompt already cached, such as 0,0.5",
    "prices": "prices over the catalogue's, such as h100-sxm=2.5 [USD/h of one chip]",
    "pipeline": "try pipeline stages too: yes or no",
    "replicas": "try copies that share nothing too: yes or no",
    "basis": "times as expected from measurements, or limit (what physics allows); default: expected, where every part of the question has it",
}
_MORE = {
    "levers": "further changes, each tried beside none, such as offload=0.5, draft=3+acceptance=0.8",
    "drafts": "drafted tokens of speculative decoding, such as 0,3",
    "prefill": "separate prefill pools to try too, such as same:8 or h100-sxm:4",
}
BASES = {"limit": "at the limit", "expected": "as expected"}
_LIMITS = {
    "tpot": "time per output token, such as 33ms",
    "ttft": "time to first token when all prompts of the batch arrive at once",
    "ttft_alone": "time to first token of a prompt that arrives by itself",
    "user": "tokens/s for a user at least",
    "throughput": "output tokens/s per chip at least, prefill included",
    "requests": "requests/s at least",
    "budget": "USD/h at most",
    "usd_per_million": "USD per million output tokens at most, prompts included",
    "most_chips": "chips at most",
    "memory_share": "share of memory in use at most",
    "joules": "joules per output token at most",
}


def add_commands(command) -> None:
    """Add the exploring commands to the parser of the command line; command(name, run, text) makes one and returns its parser."""
    p = command("explore", _explore, "every chip, count, layout, format and batch: what meets these limits, and what is best")
    _options(p, _SPACE | _MORE | _LIMITS)
    p.add_argument("--objective", default="cost", help="cost, output-cost, throughput, latency, ttft, ttft-alone or energy")
    p.add_argument("--top", type=int, default=15, help="chips to list (default 15)")
    p.add_argument("--csv", metavar="FILE", help="write every configuration that has times")
    p.add_argument("-o", "--out", metavar="FILE.html", help="write the front as one HTML file")
    p = command("fleet", _fleet, "how many chips serve a mix of requests, with headroom, and what they cost")
    _options(p, {k: v for k, v in _SPACE.items() if k not in ("prompts", "outputs", "hits")})
    p.add_argument(
        "--mix",
        required=True,
        help="a preset, or a CSV file with columns prompt, output, requests_per_s (or share) and optionally name, cached, ttft, tpot",
    )
    for name, text in (
        ("rate", "requests/s in all"),
        ("headroom", "share of each engine's time left free (default 0.2)"),
        ("ttft", "time to first token, the mean wait included, at most"),
        ("tpot", "time per output token under load at most"),
        ("budget", "USD/h at most"),
        ("most-chips", "chips at most"),
    ):
        p.add_argument("--" + name, help=text)
    p.add_argument("--objective", default="cost", help="cost, chips or power")
    p.add_argument("--top", type=int, default=15, help="chips to list (default 15)")
    p = command("sensitivity", _sensitivity, "which assumption moves the answer of one scenario most")
    scenario_options(p)
    p.add_argument("--objective", default="cost", help="cost, output-cost, throughput, latency, ttft, ttft-alone or energy")
    p.add_argument("--basis", default="limit", help="limit (what physics allows) or expected")
    p.add_argument("--step", type=float, default=0.2, help="how far each assumption is moved, both ways (default 0.2)")


def _options(parser, names: dict) -> None:
    for name, text in names.items():
        parser.add_argument("--" + _FLAGS.get(name, name).replace("_", "-"), dest=name, required=name == "models", help=text)
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="FIELD=VALUE",
        help="any other field of the scenario, such as utilisation=0.9 (may be repeated)",
    )


def _base(args) -> tuple:
    """(base Scenario, flat fields) of parsed options."""
    values = {}
    for pair in args.set:
        key, sign, value = pair.partition("=")
        if not sign:
            raise InputError("set", pair, "must read field=value, such as utilisation=0.9")
        values[key.strip().replace("-", "_")] = value
    fields = {
        name: getattr(args, name) for name in (*_SPACE, *_MORE, *_LIMITS, "objective") if getattr(args, name, None) is not None
    }
    if catalogue.is_path(args.models):
        values |= {"config": read_text(args.models, catalogue.MAX_CONFIG), "model": Path(args.models).stem[:120]}
        del fields["models"]
    else:
        values["model"] = args.models.split(",")[0]
    return Scenario.from_dict(values), fields


def _numpy(name: str):
    """The exploring package, or one sentence where NumPy is missing."""
    try:
        from importlib import import_module

        return import_module(f"roofline.explore.{name}")
    except ModuleNotFoundError as error:
        if error.name != "numpy":
            raise
        raise InputError("explore", "numpy", "is not installed; exploring needs it: pip install numpy") from None


QUIET = 2_000_000  # configurations: fewer are tried before a message could be read


def _progress():
    """A progress function that writes to stderr in steps of 5 %, of long runs only."""
    last = [0]

    def show(done, total):
        step = int(20 * done / total)
        if total >= QUIET and step != last[0]:
            last[0] = step
            end = "\r" if sys.stderr.isatty() and done < total else "\n"
            print(f"{5 * step:3} % of {total:,} configurations", end=end, file=sys.stderr, flush=True)

    return show


def _explore(args):
    request = _numpy("request")
    base, fields = _base(args)
    space, question = request.read(base, fields)
    found = request.answered(space, question, _progress())
    answer = request.to_dict(found, space)
    if args.csv:
        _write(args.csv, request.csv_lines(space, question))
    if args.out:
        if not args.out.lower().endswith((".html", ".htm")):
            raise InputError("out", args.out, "must end in .html")
        from . import explore_chart

        _write(args.out, [explore_chart.to_html(answer)])
    if args.json:
        return emit(answer)
    print(text(answer, args.top))
    return None


def _write(path: str, lines) -> None:
    try:
        with open(path, "w", encoding="utf-8", newline="") as file:
            file.writelines(lines)
    except OSError as error:
        raise InputError("file", path, f"cannot be written: {error.strerror or error}") from None


def text(answer: dict, top: int = 15) -> str:
    """An exploration's answer as plain text."""
    q, counts = answer["question"], answer["counts"]
    lines = [
        f"{counts['configurations']:,} configurations, {counts['timed']:,} fit and {counts['met']:,} meet the question; best {q['objective']} ({q['words']}) of each chip, times {BASES[answer['basis']]}:"
    ]
    for cell in (answer, *answer["others"]):
        if answer["others"]:
            lines.append(f"{cell['model']}, {cell['prompt']:,} tokens in ({cell['cached']:,} cached), {cell['output']:,} out:")
        lines.append(finding(q, cell["best"]))
        if cell["best"]:
            lines.append(
                f"  {'user tok/s':>10} {'tok/s chip':>10} {'TPOT':>9} {'TTFT':>9} {'USD/h':>8} {'USD/M out':>10} {'J/token':>9}  configuration"
            )
        for row in cell["best"][:top]:
            t = {k: v.replace("\u2009", " ") for k, v in row["text"].items()}
            lines.append(
                f"  {t['user']:>10} {t['throughput']:>10} {t['tpot']:>9} {t['ttft']:>9} {t['per_hour']:>8} {t['cost']:>10} {t['energy']:>9}  {t['title']}"
            )
        if len(cell["best"]) > top:
            lines.append(f"  and {len(cell['best']) - top} more chips (--top)")
        if cell["best"]:
            lines.append("  tok/s chip, USD/M out and J/token count the prompts too; TTFT is that of all prompts of the batch arriving at once")
        if cell["why_not"]:
            unpriced = [row["hardware"] for row in cell["why_not"] if row["why"].startswith("no price is known")]
            lines.append(f"{len(cell['why_not'])} chips do not{f'; --price {unpriced[0]}=2.5 would give one a price' if unpriced else ''}:")
            lines += [f"  {row['hardware']}: {row['why']}" for row in cell["why_not"][:top]]
            if len(cell["why_not"]) > top:
                lines.append(f"  and {len(cell['why_not']) - top} more (--top)")
    if counts["refused"]:
        lines.append("left out: " + "; ".join(f"{n:,} since {why}" for why, n in list(counts["refused"].items())[:5]))
    return "\n".join(lines)


def finding(question: dict, best: list) -> str:
    """The answer in one sentence.

    >>> finding({"figure": "usd", "words": "USD per million output tokens"}, [{"text": {"title": "1 x H100"}, "usd": 0.5}])
    'Best: 1 x H100, 0.500 USD per million output tokens.'
    """
    if not best:
        return "Nothing meets these limits."
    words, value = question["words"], best[0][question["figure"]]
    told = f"{words} {format_quantity(value, 's')}" if question["figure"].endswith("_s") else f"{format_number(value)} {words}"
    return f"Best: {best[0]['text']['title']}, {told}.".replace("\u2009", " ")


def _fleet(args):
    module, request = _numpy("fleet"), _numpy("request")
    base, fields = _base(args)
    space, _ = request.read(base, {k: v for k, v in fields.items() if k in _SPACE})
    mix = module.read_mix(read_text(args.mix, 1_000_000) if args.mix.lower().endswith(".csv") else args.mix, args.rate)
    given = {
        "headroom": args.headroom,
        "ttft_s": args.ttft,
        "tpot_s": args.tpot,
        "budget": args.budget,
        "most_chips": args.most_chips,
    }
    demand = module.Demand(**{k: v for k, v in given.items() if v is not None})
    answer = module.fleet(space, mix, demand, args.objective, _progress())
    if args.json:
        return emit(answer)
    print(
        f"{format_number(answer['requests_per_s'])} requests/s in {len(mix)} classes, {answer['headroom']:.0%} headroom; the smallest fleet of each chip, times {BASES[answer['basis']]}:"
    )
    for row in answer["best"][: args.top]:
        money = "price unknown" if row["usd_per_hour"] is None else f"${format_number(row['usd_per_hour'])}/h"
        print(
            f"  {row['devices']:6,} x {row['name']:28} {money:>14}  {row['replicas']:,} replicas of tp {row['tp']} pp {row['pp']} ep {row['ep']}, batch {row['batch']:,}, busy {row['utilisation']:.0%}, "
            f"TPOT {format_quantity(row['tpot_s'], 's')}, TTFT {' / '.join(format_quantity(t, 's') for t in row['ttft_s'][:4])}"
        )
    for id, why in list(answer["why_not"].items())[: args.top]:
        print(f"  {id}: {why}")
    return None


def _sensitivity(args):
    answer = _numpy("sensitivity").sensitivity(scenario_of(args), args.objective, args.step, args.basis)
    if args.json:
        return emit(answer)
    print(
        f"{answer['words']}: {format_number(answer['base'])}; with each assumption {answer['step']:.0%} (shares: {100 * answer['step']:.0f} points) less and more:"
    )
    for row in answer["rows"]:
        print(f"  {row['words']:40} {format_number(row['low']):>10} {format_number(row['high']):>10}   swing {row['swing']:6.1%}")
    return None
