"""Consoles with their own kind of table, and counters that servers expose: guidellm, AISBench, Prometheus text."""

from __future__ import annotations

import re

from .reading import Sheet
from .tables import pipe_tables
from .values import NUMBER, decimal_mark, number, whole

# ---- guidellm -------------------------------------------------------------------------------------------------

_GUIDE_TITLE = re.compile(r"\b(?:Benchmarks Stats|Benchmarks Info|Request Latency Statistics|Server Throughput Statistics)\b")
_GUIDE_ORDER = ("request_tps", "input_tps", "output_tps", "total_tps", "ttft_ms", "tpot_ms", "itl_ms", "e2e_ms")


def _spans(line: str) -> list[str]:
    """Spread a header cell over the columns it spans: it is followed by one bar a column.

    >>> _spans("Metadata| Request Stats         || Out Tok/sec| TTFT (ms)          ||")
    ['Metadata', 'Request Stats', 'Request Stats', 'Out Tok/sec', 'TTFT (ms)', 'TTFT (ms)']
    """
    text = line.strip()
    text = text.removeprefix("|")
    text = text if text.endswith("|") else text + "|"
    return [name.strip() for name, bars in re.findall(r"([^|]*)(\|+)", text) for _ in range(len(bars))][:200]


def _guide_metric(name: str) -> tuple[str, str, float] | None:
    """(metric, statistic, scale) of a column, from the words of all its header lines."""
    low = name.lower()
    stat = "mean" if "mean" in low else "median" if re.search(r"\b(?:median|mdn)\b", low) else "other" if re.search(r"\bp\d\d", low) else ""
    for pattern, metric, scale in (
        (r"\bttft\b", "ttft_ms", 1.0),
        (r"\btpot\b", "tpot_ms", 1.0),
        (r"\bitl\b", "itl_ms", 1.0),
        (r"\breq(?:uest)? latency\b", "e2e_ms", 1000.0),
        (r"\bconcurrency\b", "concurrency", 1.0),
        (r"\bprompt tok/req comp\b", "mean_input_len", 1.0),
        (r"\boutput tok/req comp\b", "mean_output_len", 1.0),
        (r"\bout(?:put)? tok(?:ens)?(?:/| per )sec\b", "output_tps", 1.0),
        (r"\btot(?:al)? tok(?:ens)?(?:/| per )sec\b", "total_tps", 1.0),
        (r"\binput tok(?:ens)?(?:/| per )sec\b", "input_tps", 1.0),
        (r"\brequests? (?:stats )?per sec(?:ond)?\b", "request_tps", 1.0),
    ):
        if re.search(pattern, low):
            return metric, stat or "mean", scale
    return None


def read_guidellm_console(lines: list[str]) -> Sheet | None:
    """guidellm's tables, whose headers stand in two or three lines with cells over several columns; a row a load level."""
    runs: list[dict] = []
    for at, line in enumerate(lines):
        if not _GUIDE_TITLE.search(line) or "|" in line:
            continue
        body = []
        for text in lines[at + 1 : at + 400]:
            if "|" in text and not re.fullmatch(r"[\s|=+]+", text):
                body.append(text)
            elif text.strip() and not re.fullmatch(r"[\s|=+-]+", text):
                break
        rule = next((i for i, text in enumerate(body) if re.fullmatch(r"[\s|+:-]+", text) and "-" in text), None)
        if rule is None or not 1 <= rule <= 4:
            continue
        heads = [_spans(text) for text in body[:rule]]
        width = max(len(h) for h in heads)
        names = [" ".join(h[i] for h in heads if i < len(h)) for i in range(width)]
        columns = [(i, found) for i, name in enumerate(names) if (found := _guide_metric(name))]
        for k, text in enumerate(body[rule + 1 :]):
            row = [c.strip() for c in text.strip().strip("|").split("|")]
            if len(row) != width:
                break
            while len(runs) <= k:
                runs.append({"strategy": row[0]})
            for i, (metric, stat, scale) in columns:
                runs[k].setdefault((metric, stat), (row[i], scale))
    runs = runs[:200]
    if not any(metric in _GUIDE_ORDER for run in runs for metric in (k[0] for k in run if isinstance(k, tuple))):
        return None
    sheet = Sheet("guidellm")
    mark = decimal_mark(v[0] for run in runs for k, v in run.items() if isinstance(k, tuple))
    for run in runs:
        own = {}
        for key in ("concurrency", "mean_input_len", "mean_output_len"):
            said = run.get((key, "mean")) or run.get((key, "median"))
            if said and (value := number(said[0], mark)):
                own[key] = value
        for metric in _GUIDE_ORDER:
            stats = [s for s in ("mean", "median") if (metric, s) in run]
            for stat in stats:
                value, scale = run[metric, stat]
                main = stat == stats[0] and metric != "e2e_ms" and not (metric == "itl_ms" and any(k[0] == "tpot_ms" for k in run))
                sheet.row(
                    metric,
                    number(value, mark),
                    value,
                    scale=scale,
                    into="rows" if main else "more",
                    stat=stat if metric.endswith("_ms") or stat == "median" else None,
                    aggregate=True if metric in ("input_tps", "output_tps", "total_tps") else None,
                    **own,
                )
    return sheet


# ---- AISBench (vllm-ascend) -----------------------------------------------------------------------------------

_AIS = {
    "ttft": "ttft_ms",
    "tpot": "tpot_ms",
    "itl": "itl_ms",
    "e2el": "e2e_ms",
    "request throughput": "request_tps",
    "input token throughput": "input_tps",
    "output token throughput": "output_tps",
    "total token throughput": "total_tps",
}
_MINDIE = {  # the same table with MindIE's names
    "firsttokentime": "ttft",
    "decodetime": "tpot",
    "generatetime": "e2el",
    "throughput": "request throughput",
    "generatespeed": "output token throughput",
    "generatedtokens": "outputtokens",
    "returned": "success requests",
    "failed": "failed requests",
}


def read_aisbench(lines: list[str]) -> Sheet | None:
    """AISBench: latencies with their unit in the cell, and totals under "Common Metric"; its prefill rate is one request's."""
    tables = pipe_tables(
        lines,
        lambda row: (
            row[0] in ("Performance Parameters", "Common Metric", "Metric") and (row[1:2] in (["Stage"], ["average"]) or row[1:] == ["Value"])
        ),
    )
    said: dict[str, tuple[str, str]] = {}
    for table in tables:
        for _, row, n in table.rows:
            cell = re.sub(r"[(\[].*", "", row[2 if table.header[1] == "Stage" and len(row) > 2 else 1]).strip()  # without "( 100.0% )"
            if n and (m := re.fullmatch(rf"({NUMBER})\s*(ms|us|s|req/s|tokens?/s)?", cell)):
                name = row[0].strip().lower()
                said.setdefault(_MINDIE.get(name, name), (m[1], m[2] or ""))
    if not {"ttft", "e2el", "output token throughput"} & set(said):
        return None
    sheet = Sheet("mindie" if any(t.rows and t.rows[0][1][0] == "FirstTokenTime" for t in tables) else "aisbench")
    get = lambda key: number(said[key][0]) if key in said else None  # noqa: E731
    count = lambda key: whole(said[key][0]) if key in said else None  # noqa: E731
    if get("success requests") == 0:
        sheet.warn("no_completed_requests", "0 requests succeeded; its rates are no measurement")
        return sheet
    own = {
        "concurrency": get("concurrency"),
        "max_concurrency": count("max concurrency"),
        "num_prompts": count("success requests") or count("total requests"),
        "failed": count("failed requests"),
        "mean_input_len": get("inputtokens"),
        "mean_output_len": get("outputtokens"),
    }
    own = {k: v for k, v in own.items() if v is not None}
    for key in ("request throughput", "input token throughput", "output token throughput", "total token throughput", "ttft", "tpot", "itl", "e2el"):
        if key in said:
            metric, (text, unit) = _AIS[key], said[key]
            scale = {"us": 1e-3, "s": 1000.0}.get(unit, 1.0) if metric.endswith("_ms") else 1.0
            sheet.row(
                metric,
                number(text),
                text,
                scale=scale,
                into="more" if metric == "e2e_ms" or metric == "itl_ms" and "tpot" in said else "rows",
                stat="mean" if metric.endswith("_ms") else None,
                aggregate=True if metric in ("input_tps", "output_tps", "total_tps") else None,
                **own,
            )
    return sheet


# ---- Prometheus -----------------------------------------------------------------------------------------------

_SAMPLE = re.compile(rf"(vllm|sglang|llamacpp|tgi|trtllm):(\w+?)(\{{[^{{}}]{{0,500}}\}})?\s+({NUMBER})\s*$")
_HISTOGRAMS = (
    ("time_to_first_token_seconds", "ttft_ms"),
    ("time_per_output_token_seconds", "tpot_ms"),
    ("request_time_per_output_token_seconds", "tpot_ms"),
    ("inter_token_latency_seconds", "itl_ms"),
    ("e2e_request_latency_seconds", "e2e_ms"),
)


def read_prometheus(lines: list[str]) -> Sheet | None:
    """The text of a server's /metrics: means since it started (sum over count); counters without their time give no rate."""
    found: dict[str, dict[str, float]] = {}
    kind, model = "", None
    for line in lines:
        if ":" not in line[:12] or not (m := _SAMPLE.match(line.strip())) or "_bucket" in m[2]:
            continue
        kind = kind or m[1]
        if m[1] != kind:
            continue
        if m[3] and (named := re.search(r'model_name="([^"]{1,200})"', m[3])):
            model = model or named[1]
        value = number(m[4])
        if value is not None:
            found.setdefault(m[2], {})[m[3] or ""] = value
    if not found:
        return None
    total = lambda key: sum(found[key].values()) if key in found else None  # noqa: E731
    sheet = Sheet({"llamacpp": "llama-server"}.get(kind, kind), common={"model": model})
    since = {"note": "mean since the server started"}
    if kind == "llamacpp":
        for metric, gauge in (("prefill_tps", "prompt_tokens_seconds"), ("decode_tps", "predicted_tokens_seconds")):
            sheet.row(metric, total(gauge), **since)
    for name, metric in _HISTOGRAMS:
        count, spent = total(f"{name}_count"), total(f"{name}_sum")
        if count and spent and not any(r["metric"] == metric for r in sheet.rows):
            tpot = any(r["metric"] == "tpot_ms" for r in sheet.rows)
            into = "more" if metric == "e2e_ms" or metric == "itl_ms" and tpot else "rows"
            sheet.row(metric, spent / count * 1e3, f"{spent:g} s / {count:g}", derived=True, stat="mean", into=into, **since)
    if not sheet.rows:
        sheet.warn("counters_only", "the counters hold no completed request and no rate")
    else:
        sheet.warn("server_lifetime", "means over all requests since the server started, whatever their load")
    return sheet
