"""Write docs/families.md: every family that can be read, the parts its layers have, and what proves it.

    python docs/make_families.py

Parts are read off a built model, so the table cannot say what the code does not do. tests/test_families_table.py checks that
the table is up to date.
"""

import csv
import json
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from roofline import catalogue  # noqa: E402
from roofline.families import FAMILIES, from_hf_config  # noqa: E402
from roofline.families.others import PLAIN  # noqa: E402
from roofline.families.reader import table  # noqa: E402
from roofline.model import parameters  # noqa: E402

ATTENTION = {
    "full": "attention",
    "sliding": "sliding-window attention",
    "chunked": "chunked attention",
    "mla": "latent attention (MLA)",
    "sparse": "sparse attention with an indexer",
    "compressed": "compressed cache",
    "cross": "cross-attention to images",
}


def parts(arch) -> str:
    """What the layers of a built model have, in a few words."""
    found = []
    for a in arch.attentions:
        name = ATTENTION[a.kind]
        if a.kind in ("full", "sliding", "chunked") and a.kv_heads < a.heads:
            name = ("multi-query " if a.kv_heads == 1 else "grouped-query ") + name
        if a.kind in ("full", "sliding") and not a.kv_elements:
            name += " on another layer's cache"
        found.append(name)
    found += [r.kind for r in arch.recurrents]
    names = " ".join(t.name for t in arch.tensors)
    mixer = [t for t in arch.tensors if t.group == "attention_projection"]
    if any(t.kind == "vector" and t.name.endswith(".bias") for t in mixer):
        found.append("attention biases")
    if any(s in names for s in ("q_norm", "q_layernorm", "query_layernorm")):
        found.append("query and key norms")
    if "sinks" in names:
        found.append("attention sinks")
    mlp = [t for t in arch.tensors if t.group == "mlp" and t.kind == "linear"]
    if mlp:
        layer = mlp[0].layers[0]
        here = [t for t in mlp if layer in t.layers]
        down = max((t for t in here if t.rows == arch.hidden), key=lambda t: t.cols, default=here[-1])
        gated = sum(t.rows for t in here if t is not down and t.cols == arch.hidden) >= 2 * down.cols
        found.append("gated MLP" if gated else "plain MLP")
    experts = [t for t in arch.tensors if t.group == "experts" and t.kind == "linear"]
    if experts:
        found.append(
            f"experts ({experts[0].copies}, {experts[0].active} a token)"
            + (", shared expert" if any(t.group == "shared_experts" for t in arch.tensors) else "")
        )
    if any(t.group == "embedding" and t.name in ("wpe", "decoder.embed_positions", "embed_positions") for t in arch.tensors):
        found.append("position table")
    if any(t.group == "other" and t.kind == "linear" for t in arch.tensors):
        found.append("further projections")
    if any(t.group == "vision" for t in arch.tensors):
        found.append("vision or audio tower (memory only)")
    if arch.tied:
        found.append("tied embeddings")
    return ", ".join(dict.fromkeys(found))


def proofs() -> dict:
    """model_type -> (Architecture, sentence): the reference count that a test compares it with."""
    data = ROOT / "tests" / "data"
    counted = {row["id"]: row for row in csv.DictReader((data / "models_truth.csv").open(encoding="utf-8"))}
    found: dict = {}
    published = {row["id"] for row in csv.DictReader((data / "published_totals.csv").open(encoding="utf-8"))}
    rank = {
        "verbatim": 0,
        "verbatim-embedded": 1,
        "verbatim-transcribed": 2,
        "partial-transcribed": 3,
        "converted": 4,
        "recalled": 5,
        "library-default": 6,
    }
    for entry in sorted(catalogue.entries(), key=lambda e: (e.id not in counted, e.id not in published, rank[e.provenance])):
        arch = catalogue.load(entry.id)
        total = f"{parameters(arch)['total']:,}"
        said = f"{entry.id}: {total}" + (
            ", as counted" if entry.id in counted else ", as published" if entry.id in published else ", no outside count"
        )
        found.setdefault(arch.family, (arch, said))
        config = catalogue.config_of(entry.id)
        inner = config.get("text_config")
        if isinstance(inner, dict) and isinstance(inner.get("model_type"), str):
            found.setdefault(inner["model_type"], (arch, f"inside {entry.id}"))
    for case in json.loads((data / "family_truth.json").read_text("utf-8"))["cases"]:
        arch = from_hf_config(case["config"])
        exact = "as counted" if case["truth"]["total"] == parameters(arch)["total"] else "language part as counted"
        found.setdefault(arch.family, (arch, f"class defaults: {parameters(arch)['total']:,}, {exact}"))
        inner = case["config"].get("text_config")
        if isinstance(inner, dict):
            found.setdefault(inner.get("model_type"), (arch, f"inside the class defaults of {arch.family}"))
    return found


def page() -> str:
    known, lines = proofs(), []
    for kind in sorted(FAMILIES):
        arch, said = known.get(kind, (None, None))
        if arch is None and kind in PLAIN:
            said = f"a wrapper around {PLAIN[kind][0]} or whatever its text_config says; no count to compare with"
        elif arch is None:
            twin = next((t for t in sorted(known) if t in FAMILIES and FAMILIES[t] is FAMILIES[kind]), None)
            if twin:
                arch, said = known[twin][0], f"read like {twin}"
        lines.append(
            f"| {kind} | {parts(arch) if arch else ''} | {said or 'from its published code; no count to compare with'} |"
        )
    return (
        "\n".join(
            [
                "# Families",
                "",
                "Written by `python docs/make_families.py`; do not edit. A model is read by its `model_type`; one that is not here is refused, with the closest name, or read",
                'as one that is (`--read-as`). "As counted": a test compares total, split, active parameters, cache and FLOPs with a count of the reference implementation\'s own',
                f'tensors ({table()["source"]}, meta device), to the last parameter; towers of multimodal models within 2 %. "As published": with the published total.',
                "",
                f"{len(FAMILIES)} model types. Fields a config leaves out take the class's default (`roofline/data/families.json`) and are listed in the report.",
                "",
                "| model_type | parts | proof |",
                "|---|---|---|",
                *lines,
            ]
        )
        + "\n"
    )


if __name__ == "__main__":
    (ROOT / "docs" / "families.md").write_text(page(), encoding="utf-8")
