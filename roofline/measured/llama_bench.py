"""llama-bench in all its forms: Markdown (console, HTML, hand-edited), CSV, JSON, JSON lines, SQL; also compare tables."""

from __future__ import annotations

import math
import re

from .devices import logged_devices, logged_model
from .reading import Sheet
from .tables import Table, as_records, delimited, misfit, pipe_tables
from .values import COUNTS, decimal_mark, number, several, split_model_type, whole

_TEST = re.compile(r"(?:pp|tg|pg|n_?prompt|n_?gen)\s*\d", re.I)
_TEST_PART = re.compile(r"\b(pp|tg)\s*(\d+)\s*([kK]?)(?![\w.])")
_RATE = re.compile(r"^(?:avg\s+|mean\s+)?(?:t|tok|tokens?)\s*/\s*s(?:ec|econd)?\b(.*)$", re.I)
_FACT_COLUMNS = {
    "ngl": "ngl",
    "n_gpu_layers": "ngl",
    "gpu layers": "ngl",
    "threads": "threads",
    "n_threads": "threads",
    "th": "threads",
    "n_batch": "n_batch",
    "batch": "n_batch",
    "n_ubatch": "n_ubatch",
    "ubatch": "n_ubatch",
    "type_k": "type_k",
    "ctk": "type_k",
    "type_v": "type_v",
    "ctv": "type_v",
    "fa": "fa",
    "flash_attn": "fa",
    "sm": "split_mode",
    "split_mode": "split_mode",
    "n_cpu_moe": "n_cpu_moe",
    "ncmoe": "n_cpu_moe",
    "dev": "devices",
    "devices": "devices",
    "ts": "tensor_split",
    "mmap": "mmap",
    "nkvo": "no_kv_offload",
    "rtr": "repack",
    "fmoe": "fused_moe",
    "mla": "mla",
    "amb": "amb",
    "concurrency": "concurrency",
    "model_filename": "model_file",
    "gpu": "hardware",
    "hardware": "hardware",
    "device": "hardware",
    "chip": "hardware",
    "cpu": "cpu",
    "cpu_info": "cpu",
    "quant": "quant",
    "quantization": "quant",
    "quant type": "quant",
}


def _plain_header(name: str) -> str:
    return " ".join(name.lower().replace("\\_", "_").split())


def is_bench_header(row: list[str]) -> bool:
    """A header with a test column and at least one rate column, or with rate columns per test ("pp512 t/s")."""
    names = [_plain_header(c) for c in row]
    rates = [n for n in names if _RATE.match(n)]
    if "test" in names and rates:
        return True
    return len(names) > 1 and any(_TEST_PART.search(n) and re.search(r"t/s|tok", n) for n in names)


def read_markdown(lines: list[str], counts: dict[str, int] | None = None) -> Sheet | None:
    """Rows of every llama-bench table in the text, whatever stands around it."""
    tables = pipe_tables(lines, is_bench_header, counts)
    if not tables:
        aligned = lambda row: len(row) > 3 and is_bench_header(row) and "model" in [_plain_header(c) for c in row]
        tables = delimited(lines, aligned) or delimited([re.sub(r" {2,}", "\t", line.strip()) for line in lines], aligned)
    if not any(t.rows for t in tables):
        return None
    sheet = Sheet("llama-bench")
    if any({"ms/t", "throughput/s"} & {_plain_header(c) for c in t.header} for t in tables):
        sheet.tool = "mistral.rs"
    rates = [
        c for t in tables for _, row, n in t.rows for name, c in zip(t.header, row, strict=False) if n and _RATE.match(_plain_header(name))
    ]
    mark = decimal_mark(rates[:400])
    for table in tables:
        for line, found in table.misfits[:20]:
            sheet.warn(f"row_cell_count_mismatch:line {line}", misfit(found, table))
        _markdown_rows(sheet, table, mark)
    _file_facts(sheet, lines)
    return sheet


def _markdown_rows(sheet: Sheet, table: Table, mark: str) -> None:
    names = [_plain_header(c) for c in table.header]
    rate_columns = [(i, _RATE.match(n)) for i, n in enumerate(names) if _RATE.match(n)]
    wide = [(i, n) for i, n in enumerate(names) if _TEST_PART.search(n) and re.search(r"t/s|tok", n)] if "test" not in names else []
    for line, row, count in table.rows:
        if not count:
            continue
        if sheet.full:
            break
        record = dict(zip(names, row, strict=False))
        facts = _facts_of_cells(record, mark)
        if count > 1:
            facts["count"] = count
        for i, match in rate_columns if not wide else ():
            label = re.sub(r"^\S+/s(?:ec\w*)?\b", "", table.header[i]).strip(" ()-:") if match and match[1] else ""
            rate_facts = dict(facts, build=label) if label and len(rate_columns) > 1 else facts
            _one_rate(sheet, record.get("test", ""), row[i], mark, rate_facts, line)
        for i, name in wide:
            _one_rate(sheet, _TEST_PART.search(name)[0], row[i], mark, facts, line)


def _one_rate(sheet: Sheet, test: str, cell: str, mark: str, facts: dict, line: int) -> None:
    test_facts = parse_test(test)
    if test_facts is None:
        sheet.warn(f"test_not_understood:line {line}", f"{test!r} names no prompt or generation length; the row is left out")
        return
    value, stddev = split_rate(cell, mark)
    if value is None:
        if cell.strip(" -"):
            sheet.warn(f"rate_not_a_number:line {line}", f"{cell[:40]!r} is left out")
        return
    metric = test_facts.pop("metric")
    sheet.row(metric, value, cell, zero_ok=True, stddev=stddev, test=test.strip()[:60], **test_facts, **facts)


def parse_test(test: str) -> dict | None:
    """Read a test's name: "pp512", "tg 128", "pp512+tg128", "tg128 @ d4096".

    >>> parse_test("tg128 @ d4096")
    {'metric': 'decode_tps', 'n_prompt': 0, 'n_gen': 128, 'n_depth': 4096}
    """
    text = test.strip()
    depth = re.search(r"@\s*d\s*(\d+)", text)
    text = text[: depth.start()] if depth else text
    if pair := re.fullmatch(r"pg\s*(\d+)\s*,\s*(\d+)\s*", text):
        text = f"pp{pair[1]}+tg{pair[2]}"
    parts = {m[1]: int(m[2]) * (1024 if m[3] else 1) for m in _TEST_PART.finditer(text) if len(m[2]) < 10}
    if not parts or re.sub(r"\b(pp|tg)\s*\d+\s*[kK]?|[+\s]", "", text):
        return None
    prompt, gen = parts.get("pp", 0), parts.get("tg", 0)
    metric = "combined_tps" if prompt and gen else "prefill_tps" if prompt else "decode_tps"
    return {"metric": metric, "n_prompt": prompt, "n_gen": gen, "n_depth": int(depth[1]) if depth and len(depth[1]) < 10 else 0}


def split_rate(cell: str, mark: str = ".") -> tuple[float | None, float | None]:
    """Split "10741.36 ± 201.12" into value and standard deviation (None when it is not printed).

    >>> split_rate("14.80  ± 0.0"), split_rate("61.20")
    ((14.8, 0.0), (61.2, None))
    """
    pieces = re.split(r"\s*(?:±|\+/-|\?|\+-)\s*", cell.strip(), maxsplit=1)
    first = re.sub(r"\s*(?:t/s|tok/s|tokens?/s(?:ec)?)\s*$", "", pieces[0], flags=re.I)
    return number(first, mark), number(pieces[1], mark) if len(pieces) > 1 else None


def _facts_of_cells(record: dict[str, str], mark: str) -> dict:
    facts: dict = {}
    if record.get("model"):
        facts["model"], facts["quant"] = split_model_type(record["model"])
    if match := re.fullmatch(r"([\d.,]+)\s*([KMGT])(i?)B", record.get("size", "").strip()):
        value = number(match[1], mark)
        if value and match[3] and match[2] in "MG":
            facts["size_gib" if match[2] == "G" else "size_mib"] = value
        elif value:
            facts["size_bytes"] = value * (1024 if match[3] else 1000) ** ("KMGT".index(match[2]) + 1)
    if match := re.fullmatch(r"([\d.,]+)\s*([KMBT])", record.get("params", "").strip()):
        value = number(match[1], mark)
        if value and match[2] in "BM":
            facts["params_b" if match[2] == "B" else "params_m"] = value
        elif value:
            facts["params"] = value * COUNTS[match[2].lower()]
    if record.get("backend", "").strip():
        facts.update(backend_facts(record["backend"]))
    for name, key in _FACT_COLUMNS.items():
        if (cell := record.get(name, "").strip()) and facts.get(key) is None:
            facts[key] = setting(key, cell)
    return {k: v for k, v in facts.items() if v is not None}


def setting(key: str, cell) -> object:
    """A column's value: -1 layers is "all", -1 flash attention is "auto", truth values are 0 and 1.

    >>> setting("ngl", "-1"), setting("fa", True), setting("type_k", "q8_0"), setting("threads", "6 (Default)")
    ('all', 1, 'q8_0', 6)
    """
    if isinstance(cell, bool):
        return int(cell)
    value = whole(cell)
    if value is None:
        text = " ".join(str(cell).split())[:80]
        if key == "fa" and text.lower() in ("on", "off", "true", "false"):
            return int(text.lower() in ("on", "true"))
        return text or None
    if value < 0 and key in ("ngl", "fa"):
        return "all" if key == "ngl" else "auto"
    return value if value >= 0 else None


def backend_facts(cell: str) -> dict:
    """The backend that ran: RPC and BLAS beside a GPU backend are only loaded.

    >>> backend_facts("RPC,Vulkan"), backend_facts("CPU")
    ({'backend': 'Vulkan', 'backends_raw': 'RPC,Vulkan'}, {'backend': 'CPU'})
    """
    cell = " ".join(cell.split())[:80]
    names = [n.strip() for n in re.split(r"[,/+]", cell) if n.strip()]
    if len(names) < 2:
        return {"backend": cell}
    main = [n for n in names if n.upper() not in ("RPC", "CPU", "BLAS")] or names
    return {"backend": main[0] if len(main) == 1 else cell, "backends_raw": cell}


def _file_facts(sheet: Sheet, lines: list[str]) -> None:
    """Hardware, build and compute capability from the lines around the tables."""
    sheet.fact(**logged_devices(lines))
    for line in lines:
        if match := re.search(r"\bbuild:\s*([0-9a-f]{6,40})\s*\((\d+)\)", line):
            sheet.fact(build=f"{match[1]} ({match[2]})")
        elif match := re.match(r"\W*llama-bench.*?--?(?:version|build)[ =](\w+)", line):
            sheet.fact(build=match[1])
    if sheet.common.get("backend") is None:
        sheet.common.pop("backend", None)
    sheet.fact(**{k: v for k, v in logged_model(lines).items() if k == "model_file"})


# ---- CSV, JSON, SQL: one record per test ----------------------------------------------------------------


def is_record(record) -> bool:
    """True for a JSON value that is one llama-bench test."""
    return isinstance(record, dict) and ("avg_ts" in record or "avg_ns" in record) and ("n_prompt" in record or "n_gen" in record)


def read_records(records: list, damaged: bool = False) -> Sheet | None:
    """Rows of JSON or JSON-lines records."""
    mine = [r for r in records if is_record(r)]
    if not mine:
        return None
    sheet = Sheet("llama-bench")
    for i, record in enumerate(mine):
        if sheet.full:
            break
        record_row(sheet, record, ".", f"record {i + 1}")
    if damaged:
        sheet.warn("truncated", "the file breaks off inside a record; only whole records are read")
    return sheet


def read_csv(lines: list[str], counts: dict[str, int] | None = None) -> Sheet | None:
    """Rows of CSV, also saved again by a spreadsheet (semicolons, decimal commas) or under a header that lacks a column."""
    tables = delimited(lines, lambda row: "avg_ts" in row and ("n_prompt" in row or "n_gen" in row), counts)
    if not tables:
        return None
    sheet = Sheet("llama-bench")
    for table in tables:
        records = as_records(table)
        names = [n for n in table.header if n in ("avg_ts", "stddev_ts", "model_size")]
        mark = decimal_mark(r[n] for _, r, _ in records[:200] for n in names)
        for line, record, count in records:
            if sheet.full:
                break
            record_row(sheet, record, mark, f"line {line}", count)
        for line, row, count in table.rows:
            if not count:
                _realigned(sheet, table.header, row, line)
        kept = {line for line, _, count in table.rows if not count}
        for line, _ in table.misfits:
            if line not in kept:
                sheet.warn(f"truncated:line {line}", "the file ends inside the row, which is left out")
    return sheet


def _realigned(sheet: Sheet, header: list[str], row: list[str], line: int) -> None:
    """A row longer or shorter than its header: columns right of the file name are safe if times and rates agree."""
    sheet.warn(
        f"cell_count_mismatch:line {line}",
        f"{len(row)} cells under a header of {len(header)}; only the columns that can be told for sure are used",
    )
    if "model_filename" not in header:
        return
    files = [i for i, c in enumerate(row) if re.search(r"\.(?:gguf|bin|ggml)\b", c)]
    after = header[header.index("model_filename") :]
    if len(files) != 1 or len(row) - files[0] != len(after):
        return
    record = dict(zip(after, row[files[0] :], strict=False))
    before = header[: header.index("model_filename")]
    if before[-2:] == ["cpu_info", "gpu_info"] and files[0] >= 2:
        record["cpu_info"], record["gpu_info"] = row[files[0] - 2], row[files[0] - 1]
    if re.fullmatch(r"[0-9a-f]{6,40}", row[0]) and before[:2] == ["build_commit", "build_number"]:
        record["build_commit"], record["build_number"] = row[0], row[1]
    if not re.match(r"\d{4}-\d\d-\d\dT", str(record.get("test_time", ""))):
        return
    tokens, ns, rate = (number(record.get(k)) for k in ("n_gen", "avg_ns", "avg_ts"))
    tokens = (tokens or 0) + (number(record.get("n_prompt")) or 0)
    if not (tokens and ns and rate) or abs(rate * ns / (tokens * 1e9) - 1) > 0.05:
        return  # nothing proves that the columns are the right ones
    record_row(sheet, record, ".", f"line {line}")


_SQL_INSERT = re.compile(r"INSERT INTO\s+[\"`\[]?(\w+)[\"`\]]?\s*(?:\(([^()]{0,4000})\))?\s*VALUES\s*", re.I)
_SQL_CREATE = re.compile(r"CREATE TABLE\s+(?:IF NOT EXISTS\s+)?[\"`\[]?(\w+)[\"`\]]?\s*\(([^;]{0,8000}?)\)\s*;", re.I)
_SQL_VALUE = re.compile(r"\s*('(?:[^']|'')*'|[^,()']+)\s*([,)])")


def read_sql(text: str) -> Sheet | None:
    """Rows of `llama-bench -o sql` and of SQLite dumps of it."""
    if "INSERT INTO" not in text.upper() or "avg_ts" not in text:
        return None
    columns = {m[1]: [c.split()[0].strip('"`[]') for c in m[2].split(",") if c.split()] for m in _SQL_CREATE.finditer(text)}
    sheet = Sheet("llama-bench")
    for number_, insert in enumerate(_SQL_INSERT.finditer(text)):
        names = [c.strip().strip('"`[]') for c in insert[2].split(",")] if insert[2] else columns.get(insert[1], [])
        if "avg_ts" not in names:
            continue
        at = insert.end()
        while text[at : at + 1] == "(" and number_ < 20_000:
            at, values, closed = at + 1, [], False
            while (m := _SQL_VALUE.match(text, at)) and len(values) < 200:
                values.append(m[1][1:-1].replace("''", "'") if m[1].startswith("'") else m[1].strip())
                at, closed = m.end(), m[2] == ")"
                if closed:
                    break
            if not closed or len(values) != len(names):
                sheet.warn("cell_count_mismatch", f"an INSERT has {len(values)} values for {len(names)} columns; it is left out")
                break
            if sheet.full:
                break
            record_row(sheet, dict(zip(names, values, strict=False)), ".", f"insert {number_ + 1}")
            if more := re.compile(r"\s*,\s*(?=\()").match(text, at):
                at = more.end()
    return sheet if sheet.rows or sheet.warnings else None


_FLAGS = (
    ("cuda", "CUDA"),
    ("hip", "ROCm"),
    ("rocm", "ROCm"),
    ("metal", "Metal"),
    ("vulkan", "Vulkan"),
    ("kompute", "Kompute"),
    ("sycl", "SYCL"),
    ("opencl", "OpenCL"),
)


def _true(value) -> bool:
    return value is True or str(value).strip().lower() in ("1", "true")


def record_row(sheet: Sheet, record: dict, mark: str, where: str, count: int = 1) -> None:
    """Add the row of one test record; the printed rate must agree with the printed time."""
    value_of = lambda key: number(record.get(key), mark)  # noqa: E731
    prompt, gen, depth = (whole(record.get(k), mark) for k in ("n_prompt", "n_gen", "n_depth"))
    if (prompt or 0) < 0 or (gen or 0) < 0 or not (prompt or gen):
        sheet.warn(f"lengths_unusable:{where}", "prompt and generation lengths must not be negative, nor both 0; the record is left out")
        return
    metric = "combined_tps" if prompt and gen else "prefill_tps" if prompt else "decode_tps"
    rate, ns = value_of("avg_ts"), value_of("avg_ns")
    implied = ((prompt or 0) + (gen or 0)) * 1e9 / ns if ns and ns > 0 and math.isfinite(ns) else None
    raw, derived = record.get("avg_ts"), False
    if rate is None and implied:
        rate, raw, derived = implied, record.get("avg_ns"), True
    elif rate is not None and math.isfinite(rate) and rate > 0 and implied and not 0.6 < rate / implied < 1.7:
        sheet.warn(
            f"rate_disagrees_with_time:{where}", f"{rate:g} token/s printed, {implied:.6g} token/s from the tokens and the time; left out"
        )
        return
    if ns is not None and ns < 0:
        sheet.warn(f"negative_rate:{where}", "the time is negative; the record is left out")
        return
    stddev = value_of("stddev_ts")
    samples = record.get("samples_ts") or record.get("samples_ns")
    facts: dict = {
        "stddev": stddev if stddev is not None and math.isfinite(stddev) and stddev >= 0 else None,
        "n_prompt": prompt or 0,
        "n_gen": gen or 0,
        "n_depth": depth if depth is not None and depth >= 0 else (0 if "n_depth" in record else None),
        "repetitions": len(samples) if isinstance(samples, list) and samples else None,
    }
    if count > 1:
        facts["count"] = count
    if record.get("model_type"):
        facts["model"], facts["quant"] = split_model_type(record["model_type"])
    for key, column in (("size_bytes", "model_size"), ("params", "model_n_params")):
        n = value_of(column)
        if n and n > 0 and math.isfinite(n) and not re.search(r"[eE]", str(record.get(column))):
            facts[key] = int(n)
    for column, key in _FACT_COLUMNS.items():
        if (
            column in record
            and key not in facts
            and key not in ("hardware", "cpu", "concurrency", "devices", "tensor_split")
            and record[column] is not None
        ):
            facts[key] = setting(key, record[column])
    if record.get("f16_kv") is not None and "type_k" not in record:
        facts["type_kv"] = "f16" if _true(record["f16_kv"]) else "f32"
    if isinstance(record.get("backends"), str) and record["backends"].strip():
        facts.update(backend_facts(record["backends"]))
    elif used := [name for flag, name in _FLAGS if _true(record.get(flag))]:
        facts["backend"] = used[0]
    elif any(flag in record for flag, _ in _FLAGS):
        facts["backend"] = "BLAS" if _true(record.get("blas")) else "CPU"
    gpu, cpu = (str(record.get(k) or "").strip()[:200] for k in ("gpu_info", "cpu_info"))
    if gpu:
        facts["hardware"] = several([g.strip() for g in re.split(r"\s*(?:/|, )\s*", gpu)])
    elif cpu and facts.get("backend") in ("CPU", "BLAS"):
        facts["hardware"] = cpu
    facts["cpu"] = cpu or None
    commit, build = (str(record.get(k) or "").strip() for k in ("build_commit", "build_number"))
    if commit and commit != "unknown":
        facts["build"] = f"{commit} ({build})" if build else commit
    if isinstance(record.get("model_filename"), str):
        facts["model_file"] = re.split(r"[\\/]", record["model_filename"])[-1][:120]
    sheet.row(metric, rate, raw, derived=derived, zero_ok=True, **facts)
