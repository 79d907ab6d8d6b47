"""Write docs/agreement.md: our figures beside published worked examples.

    python docs/make_agreement.py

The cases, their sources and why some published figures are off are in tests/data/worked_cases.csv; tests/worked.py says which
function of the package answers each. tests/test_worked.py checks that the table is up to date.
"""

import importlib.util
import re
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from roofline import Scenario, evaluate  # noqa: E402

_spec = importlib.util.spec_from_file_location("worked", ROOT / "tests" / "worked.py")
worked = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(worked)

TITLES = {
    "roofline": "Roofline", "attention_io": "Attention", "kv_cache": "KV cache", "memory_fit": "What fits", "decode_latency": "Decoding", "prefill": "Prefill",
    "moe_coverage": "Mixture of experts", "expert_parallel": "Expert parallel", "collectives_gpu": "Collectives, GPUs", "collectives_tpu": "Collectives, TPUs",
    "parallel_bounds": "Bounds of parallelism", "speculative": "Speculation", "chunked_prefill": "Chunked prefill", "prefix_cache": "Prefix caching",
    "disaggregation": "Separate pools", "serving": "Serving", "cost": "Money", "energy": "Energy",
}


def link(source: str) -> str:
    """A Markdown link to where a case was published."""
    source = source.replace(" (Feb 2025; gpus.md Aug 2025)", "")
    chapter = re.search(r"scaling-book ([a-z-]+)\.md", source)
    paper = re.search(r"arXiv (\d{4}\.\d{5})(?: \(([^)]*)\))?", source)
    if source.startswith("jax-ml/scaling-book") and chapter:
        return f"[scaling book, {chapter[1]}](https://jax-ml.github.io/scaling-book/{chapter[1]})"
    if paper:
        return f"[{paper[2] or 'arXiv ' + paper[1]}](https://arxiv.org/abs/{paper[1]})"
    repository = re.match(r"([\w.-]+/[\w.-]+) ([\w./-]+\.md)?", source)
    if repository and not source.startswith("own"):
        return f"[{repository[1]}](https://github.com/{repository[1]})"
    if source.startswith("own"):
        return "derived here"
    return source.split(" (")[0]


def show(value) -> str:
    return f"{value:,.0f}" if 1e3 <= abs(value) < 1e7 else f"{value:.4g}"


def off(ours: float, theirs: float) -> str:
    return "exact" if ours == theirs else f"{(ours / theirs - 1) * 100:+.1f} %" if theirs else ""


def case_lines() -> list:
    """One row for each published figure, by topic."""
    lines, topic = [], None
    for row in sorted(worked.CASES.values(), key=lambda row: list(TITLES).index(row["topic"])):
        ours = worked.answer(row)
        keys = [k for k in row["published"] if k in ours and isinstance(row["published"][k], (int, float))]
        if not keys:
            continue
        if row["topic"] != topic:
            topic = row["topic"]
            lines += ["", f"## {TITLES[topic]}", "", "| case | what | published | here | off | source |", "|---|---|---:|---:|---:|---|"]
        units = row["unit"].strip('"').split("; ")
        for key in keys:
            unit = units[list(row["published"]).index(key)] if len(units) == len(row["published"]) else row["unit"].strip('"')
            theirs = row["published"][key]
            bound = row["test_against"].startswith("bound")
            why = "a bound, held" if bound else off(ours[key], theirs)
            if row["test_against"] == "derived" and row["agreement"].startswith("differs"):
                why += " (1)"
            lines.append(f"| {row['id']} | {key} [{unit}] | {show(theirs)} | {show(ours[key])} | {why} | {link(row['source'])} |")
    return lines


def notes() -> list:
    """Why some published figures are not ours."""
    lines = ["", "(1) The published figure is off, by its own inputs:", ""]
    for row in worked.CASES.values():
        if row["test_against"] == "derived" and row["agreement"].startswith("differs"):
            lines.append(f"* {row['id']}: {row['agreement'].removeprefix('differs: ')}.")
    return lines


# The scaling book's tables: batch, step [ms], tokens/s; Llama 2 13B in BF16 on eight TPU v5e at 8,192 tokens, with its own 40 KV heads and with 8.
BOOK = {"llama-2-13b": {1: (4.98, 200.61), 16: (20.3, 787.99), 240: (249.09, 963.53)}}


def book_lines() -> list:
    """The whole engine on the scaling book's serving table, operator by operator."""
    lines = ["", "## The whole engine on one published table", "",
             "Llama 2 13B in BF16 on 8 x TPU v5e (820 GB/s), 8,192 tokens of context; memory roof of one decode step, from "
             "[the scaling book's inference chapter](https://jax-ml.github.io/scaling-book/inference). The book streams 26 GB of weights; the engine leaves out the input "
             "embedding (0.33 GB, a gather) and counts the cache to the byte, so it stands a little lower at batch 1.", "",
             "| batch | step, published [ms] | step, engine [ms] | off | tokens/s, published | tokens/s, engine |", "|---:|---:|---:|---:|---:|---:|"]
    for batch, (step, rate) in BOOK["llama-2-13b"].items():
        r = evaluate(Scenario(model="llama-2-13b", hardware="tpu-v5e", devices=8, bandwidth=820e9, memory=1e12, batch=batch, prompt=8191, output=1))
        ours = r.decode.limit_parts_s["memory"]
        lines.append(f"| {batch} | {step} | {ours * 1e3:.2f} | {off(ours * 1e3, step)} | {rate} | {batch / ours:,.1f} |")
    return lines


def render() -> str:
    """The whole page."""
    head = ["# Agreement with published worked examples", "",
            "Written by `python docs/make_agreement.py`; do not edit. Each figure comes from a function of the package (`tests/worked.py`), never from arithmetic in a test.",
            "Bounds: what was measured must not pass them."]
    return "\n".join([*head, *book_lines(), *case_lines(), *notes(), ""])


if __name__ == "__main__":
    Path(__file__).with_name("agreement.md").write_text(render(), encoding="utf-8")
