"""The last resort: tables, JSON and "label: value" lines of tools that have no reader of their own.

Only labels whose meaning and unit are certain are taken (see `labels`); plain "tokens/s" is not.
"""

from __future__ import annotations

import re

from .jsonish import text_of, walk
from .labels import classify, words
from .llama_bench import parse_test
from .reading import Sheet
from .tables import as_records, delimited, misfit, pipe_tables
from .values import NUMBER, decimal_mark, number, quant_in_name, whole

_TRAINING = re.compile(
    r"\b(?:grad_norm|learning_rate|train_loss|train_runtime|train_samples_per_second|epoch|optimizer|perplexity|ppl)\b", re.I
)
_FACTS = {
    "isl": "n_prompt",
    "input len": "n_prompt",
    "input length": "n_prompt",
    "prompt length": "n_prompt",
    "input tokens": "n_prompt",
    "prompt tokens": "n_prompt",
    "prefill": "n_prompt",
    "prompt": "n_prompt",
    "osl": "n_gen",
    "output len": "n_gen",
    "output length": "n_gen",
    "output tokens": "n_gen",
    "generated tokens": "n_gen",
    "generation tokens": "n_gen",
    "completion tokens": "n_gen",
    "decode": "n_gen",
    "concurrency": "concurrency",
    "conc": "concurrency",
    "concur": "concurrency",
    "parallel": "concurrency",
    "number of concurrency": "concurrency",
    "max concurrency": "concurrency",
    "users": "concurrency",
    "batch": "batch",
    "batch size": "batch",
    "bs": "batch",
    "bsz": "batch",
    "tp": "tp",
    "n req": "num_prompts",
    "num prompts": "num_prompts",
    "num requests": "num_prompts",
    "threads": "threads",
}
_TEXT_FACTS = {
    "model": "model",
    "model name": "model",
    "model id": "model",
    "gpu": "hardware",
    "hardware": "hardware",
    "accelerator": "hardware",
    "gpu name": "hardware",
    "chip": "hardware",
    "quant": "quant",
    "quantization": "quant",
    "dtype": "dtype",
    "precision": "precision",
    "backend": "backend",
    "engine": "engine",
}
# Tools whose labels say all there is to know, by a text that only they print.
_TOOLS = (
    ("Time taken for tests (s)", "evalscope"),
    ("Tput User (TPS)", "tt-inference-server"),
    ("1st token avg latency", "ipex-llm"),
    ("decode_tokens_per_s", "mlc-llm"),
    ("evalscope", "evalscope"),
)
# Sections of settings and hopes, whose figures nobody measured.
_WISHES = re.compile(
    r"\b(?:slos?|slas?|targets?|limits?|thresholds?|constraints?|goals?|objectives?|budgets?|quotas?|config|configuration|settings|args|"
    r"arguments|params|parameters|expected|estimated?|theoretical|predicted|prediction|roofline|ideal|schema|properties)\b"
)
_ENOUGH = {"prefill_tps", "decode_tps", "output_tps", "total_tps", "input_tps", "ttft_ms", "tpot_ms", "decode_tps_per_user"}


def read_generic(lines: list[str], records: list) -> Sheet | None:
    """Rows from whatever labels are certain; None when there are none, or when the text is about training."""
    head = "\n".join(lines[:2000])
    if len(_TRAINING.findall(head)) >= 2:
        return None
    sheet = Sheet("unknown")
    _tables(sheet, lines)
    if not sheet.rows:
        for record in records[:500]:
            if isinstance(record, dict):
                _record(sheet, record)
    if not sheet.rows:
        _pairs(sheet, [line for line in lines if line.lstrip()[:1] not in ('"', "{", "}", "[", "]")] if records else lines)
    means = {r["metric"] for r in sheet.rows}
    medians = [r for r in sheet.more if r.get("stat") == "median" and r["metric"] not in means and r["metric"] != "e2e_ms"]
    sheet.rows += medians
    sheet.more = [r for r in sheet.more if r not in medians]
    if not any(r["metric"] in _ENOUGH for r in sheet.rows) or len(sheet.rows) == 1 and sheet.rows[0]["metric"].endswith("_ms"):
        return None
    sheet.tool = next((name for mark, name in _TOOLS if mark in head), sheet.tool)
    if sheet.tool != "unknown":
        return sheet
    sheet.warn("tool_not_recognised", "read by its labels alone; check what each figure counts")
    return sheet


def _facts(record: dict) -> dict:
    facts: dict = {}
    for name, value in record.items():
        low = re.sub(r"\s*\(.*", "", words(str(name)))
        if low in _FACTS and (n := whole(value if isinstance(value, (int, str)) else None)) is not None and 0 <= n < 1e9:
            facts.setdefault(_FACTS[low], n)
        elif (
            low in _TEXT_FACTS
            and isinstance(value, str)
            and value.strip()
            and value.strip().lower() not in ("none", "null", "n/a", "auto", "-")
        ):
            facts.setdefault(_TEXT_FACTS[low], " ".join(value.split())[:120])
    if facts.get("model") and not facts.get("quant") and (q := quant_in_name(facts["model"])):
        facts["quant"] = q
    return facts


def _add(sheet: Sheet, name: str, value, text, mark: str, facts: dict, allow_plain_time: bool = False) -> None:
    label = classify(name)
    if not label or label.scale is None or label.stat == "std":
        return
    figure = (
        value
        if isinstance(value, (int, float))
        else number(re.sub(r"\s*(?:tok(?:en)?s?/s(?:ec)?|t/s|tps|req/s|ms|s)$", "", str(value).strip(), flags=re.I), mark)
    )
    time = label.metric.endswith("_ms")
    main = label.stat in (None, "mean") and label.metric != "e2e_ms"
    sheet.row(
        label.metric,
        figure,
        text,
        scale=label.scale,
        into="rows" if main else "more",
        stat=label.stat if time or label.stat in ("median",) else None,
        aggregate=True if label.metric in ("output_tps", "total_tps", "input_tps") else None,
        **facts,
    )


def _tables(sheet: Sheet, lines: list[str]) -> None:
    def is_header(row: list[str]) -> bool:
        found = [label for c in row if (label := classify(c)) and label.scale is not None]
        if any("$" in c or re.search(r"\b(?:prices?|costs?|usd|eur)\b", words(c)) for c in row) and not any(f.metric.endswith("_ms") for f in found):
            return False  # a price list that also names a speed
        return (
            len(row) >= 2
            and len(found) >= 1
            and len({f.metric for f in found}) >= (1 if len(row) < 6 else 2)
            and not any(number(c) is not None for c in row)
        )

    for table in [*pipe_tables(lines, is_header), *delimited(lines, is_header)]:
        mark = decimal_mark(
            c for name, *_ in [(0,)] for _, row, n in table.rows for h, c in zip(table.header, row, strict=False) if n and classify(h)
        )
        for line, found in table.misfits[:20]:
            sheet.warn(f"row_cell_count_mismatch:line {line}", misfit(found, table))
        for _, record, _n in as_records(table):
            facts = _facts(record)
            for name, value in record.items():
                if value.strip() and classify(name):
                    _add(sheet, name, value, value, mark, facts)
    if not sheet.rows:  # a table of "metric | value"
        pairs = [
            m.groups()
            for line in lines
            if line.count("|") >= 1 and (m := re.match(rf"^\s*\|?\s*([^|]{{3,70}}?)\s*\|\s*({NUMBER})\s*(?:\|.*)?$", line))
        ]
        said = dict(pairs)
        mark = decimal_mark(said.values())
        facts = _facts(said)
        for name, value in pairs:
            if classify(name):
                _add(sheet, name, value, value, mark, facts)


def _record(sheet: Sheet, record: dict) -> None:
    if "scenario" in record and "warnings" in record and "schema" in record:
        return  # a prediction of this program
    flat: dict = {}
    for path, value in walk(record):
        if any(_WISHES.search(words(part)) for part in path[:-1]):
            continue
        if len(flat) > 3000:
            break
        if isinstance(value, (int, float, str)) and not isinstance(value, bool):
            flat.setdefault(path[-1] if not path[-1].isdigit() else ".".join(path[-2:]), (value, path))
    facts = _facts({k: v for k, (v, p) in flat.items() if len(p) <= 3})
    facts.setdefault("model", text_of(record, "model", "model_id", "model_name"))
    facts = {k: v for k, v in facts.items() if v is not None}
    for key, (value, path) in flat.items():
        if isinstance(value, str) or not classify(" ".join(path[-2:]) if len(path) > 1 and not classify(key) else key):
            continue
        _add(sheet, key if classify(key) else " ".join(path[-2:]), value, None, ".", facts)


_IN_LINE = re.compile(
    rf"(?:^|[,;|]|\s{{2,}})\s*([A-Za-z][A-Za-z /-]{{2,30}})\s*[:=]\s*({NUMBER})\s*(tok(?:en)?s?\s*/\s*s(?:ec(?:ond)?)?|t/s|tps|ms|s)\b"
)


def _pairs(sheet: Sheet, lines: list[str]) -> None:
    found = []
    wish = None  # the indentation of a heading whose lines are wishes
    for line in lines:
        indent = len(line) - len(line.lstrip())
        if wish is not None and line.strip() and indent <= wish:
            wish = None
        if wish is None and line.rstrip().endswith(":") and len(line) < 80 and _WISHES.search(words(line)):
            wish = indent
        if wish is not None:
            continue
        if len(line) < 300 and (
            m := re.match(
                rf"^\W{{0,20}}?([A-Za-z][^:=]{{1,70}}?)\W{{0,3}}\s*[:=][\s*\x22'`|]{{0,6}}({NUMBER})\s*([kK]?tok(?:en)?s?\s*/\s*s(?:ec(?:ond)?)?|"
                rf"tokens per second|t/s|tps|ms(?:/tok(?:en)?)?|s(?:ec(?:onds?)?)?(?:/tok(?:en)?)?|us|ns|req/s)?\W{{0,3}}$",
                line,
                re.I,
            )
        ):
            found.append(
                (
                    f"{m[1]} ({re.sub('/tok.*', '', m[3])})" if m[3] and not re.search(r"\((?:ms|s|tok|t/s|tps|req)", m[1]) else m[1],
                    m[2],
                    m[0],
                )
            )
        elif len(line) < 300:  # several in one line, each with its unit: "Prefill: 1234.5 t/s | Decode: 56.7 t/s"
            parts = _IN_LINE.findall(line)
            found += [(f"{name} ({unit})", value, line) for name, value, unit in parts if len(parts) > 1]
    mark = decimal_mark(v for _, v, _ in found)
    facts = _facts({name: value for name, value, _ in found})
    for line in lines:
        if m := re.match(r"\W*(?:[Mm]odel(?: [Nn]ame| ID)?)\W{0,4}:\s*\W{0,2}([\w./-]{3,120})\W{0,2}$", line):
            facts.setdefault("model", m[1])
    for name, value, line in found:
        # llama.cpp's names of its tests, as people write them down: "pp512: 120.5 t/s"
        if (test := parse_test(name.split("(")[0])) and re.search(r"(?:tok(?:en)?s?|t)\s*/\s*s", line):
            metric = test.pop("metric")
            sheet.row(metric, number(value, mark), value, **{**facts, **test, "test": name.split("(")[0].strip()})
        elif not any(r["raw"] == value and (label := classify(name)) and label.metric == r["metric"] for r in sheet.rows[:50]):
            _add(sheet, name, value, value, mark, facts)  # the same figure under two names counts once
