"""Answers as plain text for a terminal. What to show comes from `view` and `document`, as on the page; here it is only laid out."""

from __future__ import annotations

from . import view
from .document import BOUNDS, GROUP_WORDS, figure_rows, headline
from .measured.place import summary
from .scenario import architecture_of
from .units import format_number, format_quantity

COMPARED = {
    "tpot_s": "time per output token", "ttft_s": "time to first token", "tokens_per_s": "tokens/s in all", "tokens_per_s_per_device": "tokens/s a chip",
    "sustained_tokens_per_s": "tokens/s over whole requests", "usd_per_million_output_tokens": "per million output tokens, while decoding", "total_bytes": "memory in use",
    "max_batch": "largest batch", "max_context": "longest context",
}


def table(rows: list, heads: tuple = (), left: tuple = (0,), indent: str = "  ") -> list:
    """Rows of text as aligned lines; `left`: columns that start at their left edge, the rest end at their right.

    >>> table([("a", "1"), ("bcd", "22")], ("x", "y"))
    ['  x     y', '  a     1', '  bcd  22']
    """
    cells = [[str(c).replace("\u2009", " ") for c in row] for row in ([heads] if heads else []) + rows]
    widths = [max(len(row[i]) for row in cells) for i in range(len(cells[0]))]
    return [(indent + "  ".join(c.ljust(w) if i in left else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True)))).rstrip() for row in cells]


def estimate(report) -> str:
    """A Report: the finding, the figures at the limit and as expected, the two phases, memory, notes."""
    data = report.to_dict()
    h, s, mem, layout = data["hardware"], data["scenario"], data["memory"], data["layout"]
    spread = ", ".join(f"{words} {layout[k]}" for k, words in (("tp", "tensor parallel"), ("pp", "pipeline"), ("ep", "expert parallel"), ("dp", "replicas")) if layout[k] > 1)
    batch, prompt, output = s.get("batch", 1), s.get("prompt", 1024), s.get("output", 256)
    lines = [f"{data['model']['name']} in {data['formats']['weights']} on {h['devices']} x {h['name']}{f' ({spread})' if spread else ''}, batch {batch:,}, {prompt:,} tokens in, {output:,} out",
             headline(data).replace("\u2009", " "), ""]
    lines += table(list(figure_rows(data)), ("", "at most", "to expect"), left=(0, 2)) + [""]
    phases = [(name, p["flops"], p["bytes"], p["intensity"].replace("FLOP/B", ""), BOUNDS.get(p["bound"], "no time"), p["limit"], p["expected"])
              for name, p in ((p["phase"], p) for p in view.points(data))]
    lines += table(phases, ("", "work", "moves, activations too", "FLOP/byte", "", "at least", "to expect"), left=(0, 4)) + [""]
    copies = f" in {mem['kv_bytes_stored'] / mem['kv_bytes']:.3g} copies" if mem["kv_bytes_stored"] > 1.001 * mem["kv_bytes"] else ""
    fit = {True: "fits", False: "does not fit", None: "unknown fit"}[mem["fits"]]
    room = [f"{words} {view.whole(mem[key])}" for key, words in (("max_batch", "largest batch"), ("max_context", "longest context"), ("min_devices", "fewest chips")) if mem[key]]
    lines.append(f"memory: {view.bytes_(mem['total_bytes'])} of {view.bytes_(mem['available_bytes'])}, {fit} (weights {view.bytes_(mem['weights_bytes'])}, KV cache {view.bytes_(mem['kv_bytes_stored'])}{copies})"
                 .replace("\u2009", " ") + (f"; {', '.join(room)}" if room else ""))
    every = data["model"]["kv_bytes_per_token"] * batch * (prompt + output)  # in 16 bits
    arch = architecture_of(s["model"], s.get("config", ""), s.get("read_as", ""))
    if data["formats"]["kv"] in ("bf16", "fp16") and mem["kv_bytes"] < 0.9 * every and any(a.window for a in arch.attentions):
        lines.append(f"windows: layers with a sliding window or chunks keep only those; an engine that keeps every token takes {format_quantity(every, 'B')} for the cache".replace("\u2009", " "))
    lines += _arrivals(data["serving"]["arrivals"])
    lines += [f"note: {w['text']}" for w in data["warnings"]]
    return "\n".join(lines)


def _arrivals(a: dict | None) -> list:
    if not a:
        return []
    which, words = (a["expected"], "expected") if a["expected"] else (a, "at the limits")
    capacity = f"{format_number(which['capacity_per_s'])} requests/s can be taken"
    if not which["stable"]:
        return [f"arrivals ({words}): {capacity}, fewer than the {format_number(a['rate_per_s'])} that arrive, so the queue grows without end"]
    quantiles = ", ".join(f"{q} % under {format_quantity(which[f'ttft_p{q}_s'], 's')}" for q in (50, 90, 99))
    return [f"arrivals ({words}): {capacity}; at {format_number(a['rate_per_s'])} the service is {which['utilisation']:.0%} busy with {format_number(which['batch'])} requests at once, "
            f"{format_quantity(which['tpot_s'], 's')} a token; first token: {quantiles} (an estimate: random arrivals, equal requests)"]


def levers(answer: dict) -> str:
    """Levers, best first: what each gives to the goal, where it leads and what it costs besides; then where the answer turns."""
    base, goal = answer["base"], answer["goal"]
    now = f"now: {format_quantity(base['tpot_s'], 's')} a token, {format_number(base['tokens_per_s'])} tokens/s in all, TTFT {format_quantity(base['ttft_s'], 's')}"
    rows = [(row["title"], "does not fit" if row["fits"] is False else view.gain(row["gain"][goal]), format_quantity(row["figures"]["tpot_s"], "s"), format_number(row["figures"]["tokens_per_s"]),
             format_quantity(row["figures"]["ttft_s"], "s"), row["price"]) for row in answer["levers"]]
    flips, turns = answer["flips"], []
    for op in flips["operators"]:
        if all(op["group"] != group for group, _ in turns):
            turns.append((op["group"], op["batch"]))
    lines = [now, f"ranked by {goal}:", *table(rows, ("change", goal, "a token", "tokens/s", "TTFT", "its price"), left=(0, 5))]
    if turns:
        lines.append("turns compute-bound at batch: " + ", ".join(f"{GROUP_WORDS.get(g, g)} {format_number(b)}" for g, b in turns))
    if flips["kv_passes_weights_context"]:
        lines.append(f"reads more cache than weights from a context of {format_number(flips['kv_passes_weights_context'])} tokens")
    return "\n".join(lines)


def layouts(answer: dict) -> str:
    """Layouts, best first."""
    shown = view.layouts(answer)
    rows = [(*(row[k] for k in ("tp", "pp", "ep", "dp", "batch", "tpot", "user", "total", "ttft")), BOUNDS.get(row["bound"], row["bound"])) for row in shown["rows"]]
    head = f"{shown['devices']} chips, {shown['flight']} requests in flight, ranked by {answer['goal']}{' over whole requests, prompts included' if answer['goal'] == 'throughput' else ''}:"
    return "\n".join([head, *table(rows, ("tp", "pp", "ep", "dp", "batch", "a token", "tokens/s/user", "tokens/s", "TTFT", ""), left=(9,)),
                      f"{answer['tried']} tried: {answer['refused']} impossible, {answer['unfit']} do not fit{_too_large(answer['too_large'])}"])


def _too_large(rows: list) -> str:
    """The layouts that came nearest to fitting, and by how much a replica's chips were short."""
    told = [f"{' '.join(f'{k} {row[k]}' for k in ('tp', 'pp', 'ep', 'dp') if row[k] > 1)} ({format_quantity(row['needs_bytes'], 'B')} of {format_quantity(row['has_bytes'], 'B')})"
            for row in rows[:4] if row["needs_bytes"] and row["has_bytes"]]
    return f", such as {'; '.join(told)}" if told else ""


def compare(answer: dict) -> str:
    """Two scenarios side by side, and which group of operators moved each phase."""
    shown = view.compare(answer)
    changed = {k: v for k, v in answer["b"]["scenario"].items() if answer["a"]["scenario"].get(k) != v}
    lines = ["second: " + (", ".join(f"{k} {v}" for k, v in changed.items()) or "the same"), *table([(COMPARED.get(r["key"], r["key"]), r["a"], r["b"], r["ratio"]) for r in shown["rows"]], ("", "first", "second", "ratio"))]
    for p in shown["phases"]:
        lines += ["", f"{p['phase']}: at least {p['a']} ({p['a_bound']}-bound) against {p['b']} ({p['b_bound']}-bound); by operator, what moved most first".replace("\u2009", " ")]
        lines += table([(GROUP_WORDS.get(g["group"], g["group"]), g["a"], g["b"]) for g in p["groups"]])
    return "\n".join(lines)


def measured(answer: dict) -> str:
    """What a file says, each row with its place under the roof where a scenario was given."""
    rows = [(row["metric"], f"{row['value']:,.6g}", row["unit"], summary(row["place"]) if row.get("place") else "") for row in answer["rows"]]
    lines = [f"{answer['tool']}: {len(rows)} rows", *(table(rows, left=(0, 2, 3)) if rows else [])]
    return "\n".join(lines + [f"note: {w}" for w in answer["warnings"]])


def capability(answer: dict) -> str:
    """Published scores beside active parameters and money, best first; * where no other model of its kind scores as much for as little."""
    rows = [("*" if row["frontier"] else "", row["name"] + (" (reasons at length)" if row["reasoning"] else ""), format_number(row["score"]), format_quantity(row["active_parameters"], ""),
             "–" if row["devices"] is None else str(row["devices"]), "–" if row["usd_per_million_all_in"] is None else f"${format_number(row['usd_per_million_all_in'])}", row["by"]) for row in answer["models"]]
    return "\n".join([f"{answer['benchmark']} [{answer['unit']}]. {answer['about']}",
                      *table(rows, ("", "model", "score", "active", "chips", "USD/M out, all in", "score by"), left=(0, 1, 6))])
