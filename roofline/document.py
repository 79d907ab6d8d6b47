"""A report to hand round: one scenario as one HTML file, or as Markdown - the answer, charts, what to change, method, sources.

The document is built once as a list of blocks and written twice. The HTML holds its charts as SVG and its styles; it needs no script and
no other file, follows the reader's light or dark setting, and prints.
"""

from __future__ import annotations

from html import escape
from pathlib import Path

from . import levers as lever_engine
from . import view
from .document_text import Block, to_html, to_markdown
from .errors import InputError
from .options import emit, scenario_of, scenario_options
from .plot import from_report, sweep
from .plot.build import title_of
from .plot.draw import scene
from .plot.scene import svg
from .report import Report, evaluate
from .scenario import Scenario
from .units import format_number, format_quantity

GROUP_WORDS = {
    "attention_projection": "attention projections",
    "attention_core": "attention core",
    "mlp": "feed-forward",
    "experts": "routed experts",
    "shared_experts": "shared experts",
    "router": "router",
    "recurrent": "recurrent layers",
    "norm": "norms and biases",
    "elementwise": "residual adds",
    "embedding": "embedding",
    "lm_head": "LM head",
    "collective": "chip-to-chip",
}
BOUNDS = {"memory": "memory-bound", "compute": "compute-bound", "network": "network-bound", "host": "bound by the link to host memory"}
FIGURE_WORDS = {
    "ttft": "time to first token",
    "tpot": "time per output token",
    "user": "tokens/s for each user",
    "total": "tokens/s in all",
    "memory": "memory in use",
    "cost": "per million output tokens, while decoding",
}


def blocks(scenario: Scenario, report: Report | None = None, *, goal: str = "tpot") -> list:
    """The document of a scenario as blocks, in reading order.

    goal: what the levers are ranked by. The report is evaluated unless given.
    """
    report = report or evaluate(scenario)
    data = report.to_dict()
    found = [Block(kind="h1", text=title_of(data)), Block(kind="lead", text=headline(data))]
    found += [Block(kind="note", text=w["text"]) for w in data["warnings"]]
    found.append(Block(kind="table", heads=("", "at most", "to expect"), rows=tuple(figure_rows(data))))
    found += [Block(kind="h2", text="Under the roof"), Block(kind="chart", chart=from_report(data, title="", subtitle=""), text=_chart_words(data))]
    if data["decode"] and data["decode"]["limit_s"] is not None:
        found += _growth(scenario, data)
    for name in ("decode", "prefill"):
        found += _time(data, name)
    found += _memory(data)
    found += _levers(scenario, goal)
    found += _method(data)
    found += _sources(data)
    found += [
        Block(kind="h2", text="The same question again"),
        Block(kind="code", text=scenario.to_cli()),
        Block(kind="p", text="Every figure above comes from this one command; `--json` gives them all as data."),
    ]
    return found


def headline(data: dict) -> str:
    """The answer in one sentence.

    >>> headline(evaluate(Scenario(prompt=1024, output=256)).to_dict()).startswith("Decoding is memory-bound")
    True
    """
    h = view.headline(data)
    if h["state"] == "misfit":
        return f"It does not fit: {h['need']} are needed and {h['have']} are there, so no time is given. {h['min_devices']} such chip{'s' if h['min_devices'] != '1' else ''} hold{'' if h['min_devices'] != '1' else 's'} it."
    if h["state"] == "precision":
        return "The chip lacks the arithmetic that was asked for, so no time is given; work, bytes and memory are."
    many = f", {h['total']} tokens/s in all" if not h["single"] else ""
    return (
        f"Decoding is {BOUNDS.get(h['bound'], h['bound'])}: at most {h['user']} tokens/s for each user{many}, at {h['utilisation']} of peak compute. "
        f"Each step moves {h['bytes']} and takes at least {h['step']}; the first token comes after at least {h['ttft']}."
    )


def figure_rows(data: dict):
    """(words, at the limit, "expected (low to high)" or a dash) of each key figure."""
    batch = data["scenario"].get("batch", 1)
    for row in view.figures(data):
        expected = row.get("expected")
        value = row["value"] + (f" of {row['of']}" if row.get("of") else "")
        words = FIGURE_WORDS.get(row["key"], row["key"])
        if row["key"] == "ttft" and batch > 1 and not data["serving"]["disaggregated"]:
            words += f", all {batch:,} prompts at once"
        yield words, value, f"{expected['value']} ({expected['low']} to {expected['high']})" if expected else "–"


def _chart_words(data: dict) -> str:
    ridge = format_number(data["hardware"]["ridge_flops_per_byte"])
    return (
        f"Left of the ridge ({ridge} FLOP/byte) the chip waits for memory, right of it it is busy computing. Solid marks are what physics allows (square: prefill, circle: decode), "
        "hollow marks with a band what engines reach in measurements; the translucent marks are the operators, as large as their share of the time."
    )


def _growth(scenario: Scenario, data: dict) -> list:
    """How the decode step moves with the batch, around the batch asked for."""
    batch, most = scenario.batch, data["memory"]["max_batch"] or scenario.batch
    values = sorted({1, batch, *(4**i for i in range(1, 12) if 4**i <= max(4 * batch, most))})
    values = [v for v in values if v <= max(batch, most)][:12]
    if len(values) < 2:
        return []
    rows = []
    for value in values:
        r = evaluate(scenario.replace(batch=value)).to_dict()
        s = r["serving"]
        rows.append(
            (
                f"{value:,}" + (" (this one)" if value == batch else ""),
                view.seconds(s["tpot_s"]),
                format_number(s["tokens_per_s_per_user"]),
                format_number(s["tokens_per_s"]),
                BOUNDS.get(r["decode"]["bound"], "–") if s["tpot_s"] else "does not fit",
                view.bytes_(r["memory"]["total_bytes"]),
            )
        )
    return [
        Block(kind="h2", text="As the batch grows"),
        Block(
            kind="chart",
            chart=sweep(scenario, "batch", values, title="", subtitle=""),
            text=f"The decode step from batch {values[0]:,} to {values[-1]:,}; memory holds at most {most:,}.",
        ),
        Block(kind="table", heads=("batch", "a token takes at least", "tokens/s per user", "tokens/s in all", "bound", "memory"), rows=tuple(rows)),
    ]


def _time(data: dict, name: str) -> list:
    phase = data[name]
    if not phase:
        return []
    rows = view.operators(data, name)[:14]
    timed = phase["limit_s"] is not None
    table = tuple(
        (
            r["name"],
            GROUP_WORDS.get(r["group"], r["group"]),
            r["flops"],
            r["bytes"],
            r["intensity"],
            r["bound"] if timed else "–",
            r["time"],
            r["share"],
        )
        for r in rows
    )
    groups = view.time_groups(data, name)
    words = ", ".join(f"{GROUP_WORDS.get(g['group'], g['group'])} {g['share']}" for g in groups["groups"][:4])
    return [
        Block(kind="h2", text=f"Where the time goes: {name}"),
        Block(
            kind="p",
            text=f"{groups['total']} {'expected' if groups['basis'] == 'expected' else 'at least'}: {words}."
            if timed
            else "No time is given; the work and the bytes are.",
        ),
        Block(
            kind="table",
            heads=("operator", "part", "work", "bytes", "FLOP/byte", "bound", "time", "share"),
            rows=table,
            bars=tuple(r["width"] for r in rows),
        ),
    ]


def _memory(data: dict) -> list:
    m = view.memory(data)
    words = {"weights": "weights", "kv": "KV cache", "activations": "activations", "overhead": "framework"}
    rows = tuple((words.get(p["key"], p["key"]), p["text"], p["share"]) for p in m["parts"])
    fits = {True: f"{m['free']} are left.", False: f"{m['free']} too much.", None: "How much memory there is depends on what is plugged in."}[
        m["fits"]
    ]
    return [
        Block(kind="h2", text="Memory"),
        Block(
            kind="p",
            text=f"{m['total']} of {m['available']}: {fits} Largest batch {m['max_batch']}, longest context {m['max_context']} tokens, fewest such chips {m['min_devices']}.",
        ),
        Block(kind="table", heads=("what", "bytes", "share"), rows=rows, bars=tuple(p["width"] for p in m["parts"])),
    ]


def _levers(scenario: Scenario, goal: str) -> list:
    try:
        rows = [r for r in lever_engine.levers(scenario, goal)["levers"] if r["fits"] is not False and (r["gain"][goal] or 0) > 1.02][:8]
    except InputError:
        return []
    if not rows:
        return []
    table = tuple(
        (r["title"], view.gain(r["gain"][goal]), view.seconds(r["figures"]["tpot_s"]), format_number(r["figures"]["tokens_per_s"]), r["price"])
        for r in rows
    )
    return [
        Block(kind="h2", text="What to change"),
        Block(
            kind="p",
            text="Each row is the whole calculation again with that one change, ranked by "
            + {"tpot": "time per output token", "ttft": "time to first token"}.get(goal, goal)
            + ".",
        ),
        Block(kind="table", heads=("change", "gain", "time per token", "tokens/s in all", "its price"), rows=table),
    ]


def _method(data: dict) -> list:
    h, f = data["hardware"], data["formats"]
    items = [
        f"A pass is a list of operators. Each takes at least max(FLOPs / peak, bytes / bandwidth); a phase cannot be shorter than its total FLOPs / peak, its total bytes / bandwidth, or the bytes its chips send / link. "
        f"Peak here is {format_quantity(f['compute_peak_flops_per_s'], 'FLOP/s')} ({f['compute_roof'].upper()}), bandwidth {format_quantity(h['bandwidth_bytes_per_s'], 'B/s')}, both for one chip.",
        "A matrix product of T tokens with a rows x cols matrix does 2 x T x rows x cols FLOPs (a multiply-add is 2) and reads its weights once. Causal attention over S tokens does half the square.",
        "The bytes of a limit are weights and KV cache; activations may stay on the chip, so a limit does not count them and an expectation does.",
        "Experts are taken as picked evenly unless the routing says otherwise: E (1 - (1 - k/E)^T) of them are read for T tokens. Tokens that pick alike read fewer, down to k.",
        '"At most" (and "at least" for a time) is what physics allows: no engine beats it with this scenario. "To expect" multiplies the roofs by what engines reached in published measurements, with the 10th to 90th percentile as its band.',
        "All GB are 1e9 bytes; peaks are dense; prices are list prices where they are known.",
    ]
    e = data["expectation"]
    if e:
        items.append(
            f"The expectation here: {e['basis']}; {view.percent(e['compute'])} of peak compute and {view.percent(e['bandwidth'])} of bandwidth, from {e['points']} measurements."
        )
    return [Block(kind="h2", text="Method"), Block(kind="list", items=tuple(items))]


def _sources(data: dict) -> list:
    f, m = view.facts(data), data["model"]
    chip, rows = f["hardware"], []
    rows.append(
        (
            "model",
            f"{m['name']}: {f['model']['total']} parameters, {f['model']['active']} used by a token, KV cache {f['model']['kv']} a token in BF16",
            m.get("source") or "the config given",
        )
    )
    dated = f", retrieved {chip['retrieved']}" if chip["retrieved"] else ""
    rows.append(
        (
            "chip",
            f"{chip['name']}: {chip['bandwidth']}, {chip['memory']}, " + ", ".join(f"{p['format'].upper()} {p['value']}" for p in chip["peaks"]),
            f"{chip['source']}{dated} (grade {chip['grade']})",
        )
    )
    rows.append(
        (
            "formats",
            f"weights {f['formats']['weights']}, activations {f['formats']['activations']}, KV cache {f['formats']['kv']}; products run in {f['formats']['compute_roof']}",
            "the scenario, or what engines use with these weights",
        )
    )
    if data["cost"].get("usd_per_hour") is not None:
        rows.append(
            (
                "price",
                f"${format_number(data['cost']['usd_per_hour'] / data['layout']['devices'])} an hour for one chip",
                "given by the user" if data["cost"]["source"] == "given" else data["cost"]["source"],
            )
        )
    if data["expectation"]:
        rows.append(("expectation", f"{data['expectation']['points']} measurements", data["expectation"]["basis"]))
    rows += [("assumed", f"{a['field']} = {a['value']}", a["source"]) for a in m["assumed"]]
    found = [Block(kind="h2", text="Sources"), Block(kind="table", heads=("what", "figures", "source"), rows=tuple(rows))]
    if chip["unverified"]:
        found.append(Block(kind="p", text=f"Less sure than the rest: {', '.join(chip['unverified'])} of {chip['name']}."))
    return found


def document(scenario: Scenario, *, kind: str = "html", goal: str = "tpot") -> str:
    """The report of a scenario as text: kind "html" (one self-contained file) or "md".

    >>> document(Scenario(), kind="md").startswith("# ")
    True
    """
    if kind not in ("html", "md"):
        raise InputError("output", kind, "must be html or md")
    report = evaluate(scenario)
    parts = blocks(scenario, report, goal=goal)
    return to_html(parts, parts[0].text) if kind == "html" else to_markdown(parts)


def save(scenario: Scenario, path, *, goal: str = "tpot") -> list:
    """Write the report of a scenario; returns the paths. A Markdown file gets its charts as SVG files beside it."""
    path = Path(path)
    kind = {".html": "html", ".htm": "html", ".md": "md"}.get(path.suffix.lower())
    if kind is None:
        raise InputError("output", str(path), "must end in .html or .md")
    parts = blocks(scenario, goal=goal)
    written = [path]
    try:
        if kind == "html":
            path.write_text(to_html(parts, parts[0].text), encoding="utf-8")
        else:
            charts = [b.chart for b in parts if b.kind == "chart"]
            name = lambda i: f"{path.stem}-{i + 1}.svg"
            path.write_text(to_markdown(parts, name), encoding="utf-8")
            for i, chart in enumerate(charts):
                written.append(path.with_name(name(i)))
                written[-1].write_text(svg(scene(chart)), encoding="utf-8")
    except OSError as error:
        raise InputError("output", str(path), f"cannot be written: {error.strerror or error}") from None
    return [str(p) for p in written]


def notebook(report: Report) -> str:
    """What a notebook shows for a Report: the sentence, the chart and the key figures."""
    data = report.to_dict()
    chart = from_report(data, width=880, height=480)
    rows = "".join(f"<tr><td>{escape(a)}</td><td>{escape(b)}</td><td>{escape(c)}</td></tr>" for a, b, c in figure_rows(data))
    return f"<div><p>{escape(headline(data))}</p>{chart.svg()}<table><thead><tr><th></th><th>at most</th><th>to expect</th></tr></thead><tbody>{rows}</tbody></table></div>"


def add_commands(command) -> None:
    """Add `roofline report` to the command line."""

    def run(args):
        scenario = scenario_of(args)
        if args.out:
            paths = save(scenario, args.out, goal=args.goal)
            emit({"written": paths}) if args.json else print("wrote " + ", ".join(paths))
        elif args.json:
            emit(evaluate(scenario).to_dict())
        else:
            print(document(scenario, kind="md", goal=args.goal), end="")

    p = command("report", run, "a report to hand round: answer, charts, what to change, method, sources, in one HTML file (or Markdown)")
    scenario_options(p)
    p.add_argument("--goal", default="tpot", help="what the changes are ranked by: tpot, ttft, throughput, cost or memory")
    p.add_argument("-o", "--out", metavar="FILE", help="report.html, or report.md with its charts beside it (default: Markdown on the screen)")
