"""Checkpoint sizes against published files.

tests/data/sizes.csv holds exact or printed sizes with their source; `changes` are the config fields in which that
checkpoint differs from the catalogue model (a larger vocabulary, a sibling of another size). `check` says how: exact
(tensor bytes to the byte), 0.01% (to the byte but for FP32 scalars, or routers of another width), file, repo and
safetensors (a file adds metadata: header, tokenizer), range (the printed figure with its rounding), 0.3% (older
rules) and 1% (rounded card values, memory after loading).
"""

import csv
import json
from collections import defaultdict
from pathlib import Path

import pytest

from roofline import catalogue, formats, presets
from roofline.families import from_hf_config

DATA = Path(__file__).parent / "data"
ROWS = list(csv.DictReader((DATA / "sizes.csv").open(encoding="utf-8")))
LARGEST_METADATA = 14e6  # a tokenizer of 262,144 entries


def changed(config, changes):
    """A config with some fields changed, nested objects field by field."""
    return {**config, **{k: changed(config.get(k, {}), v) if isinstance(v, dict) else v for k, v in changes.items()}}


def model(row):
    return from_hf_config(changed(catalogue.config_of(row["model"]), json.loads(row["changes"] or "{}")), id=row["model"])


def size(row):
    return sum(formats.weight_bytes(model(row), formats.parse(row["format"])))


@pytest.mark.parametrize("row", ROWS, ids=lambda r: f"{r['model_id'][-40:]}-{r['format']}")
def test_size_agrees_with_the_published_file(row):
    ours, low, high = size(row), int(row["bytes_lo"]), int(row["bytes_hi"])
    match row["check"]:
        case "exact":
            assert ours == int(row["bytes"])
        case "file" | "safetensors":
            assert 0 < int(row["bytes"]) - ours < LARGEST_METADATA
        case "repo":
            assert 0 < int(row["bytes"]) - ours < 3 * LARGEST_METADATA
        case "range":
            assert low <= ours <= high
        case bound:
            tolerance = float(bound.rstrip("%")) / 100
            assert low * (1 - tolerance) <= ours <= high * (1 + tolerance)


def test_largest_error_of_each_grade():
    """Whatever the row's own check, nothing is off by more than its grade allows."""
    worst = defaultdict(float)
    for row in ROWS:
        middle = int(row["bytes"] or 0) or (int(row["bytes_lo"]) + int(row["bytes_hi"])) / 2
        worst[row["grade"]] = max(worst[row["grade"]], abs(size(row) / middle - 1))
    print({grade: f"{error:.4%}" for grade, error in sorted(worst.items())})
    assert worst["A2"] == 0 and worst["A1"] < 1.1e-4
    assert worst["B2"] < 1e-4
    assert worst["C"] < 0.003
    assert worst["D"] < 0.01 and worst["E"] < 0.01


TYPES = list(csv.DictReader((DATA / "gguf_types.csv").open(encoding="utf-8")))


@pytest.mark.parametrize("row", TYPES, ids=lambda r: f"{r['model']}-{r['format']}")
def test_block_types_are_those_the_loader_counts(row):
    """llama.cpp prints how many tensors of each type a file holds; norms and biases (f32) aside, the rules give the same."""
    arch, counts = model(row), defaultdict(int)
    for index, kind, _, _, count in presets.types(arch, formats.parse(row["format"])):
        split = 2 if arch.tensors[index].group == "experts" and arch.tensors[index].name.endswith("gate_up_proj") else 1
        counts[kind.removeprefix("ggml-")] += count * split
    counts.pop("f32")
    assert counts == {kind: int(n) for kind, n in (item.split(":") for item in row["counts"].split())}
