"""Published worked examples and natural mistakes against the package's own functions (tests/worked.py says which)."""

import importlib.util
from pathlib import Path

import pytest

from roofline import Scenario, evaluate

ROOT = Path(__file__).parent.parent


def script(path):
    """A Python file of the repository, as a module."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


worked = script(ROOT / "tests" / "worked.py")
CASES, TRAPS, TRAP_ANSWERS, answer = worked.CASES, worked.TRAPS, worked.TRAP_ANSWERS, worked.answer

# Figures that only a run can give; the package predicts the others of the same case.
MEASURED = {
    "spec-04": {"measured"}, "ici-01": {"measured_us"}, "ici-02": {"measured_us"}, "chk-02": {"decode_ms_per_token", "piggyback_ms"},
}


def numbers(row, column):
    return {k: v for k, v in row[column].items() if isinstance(v, (int, float))}


@pytest.mark.parametrize("id", [k for k, row in CASES.items() if not row["test_against"].startswith("bound")])
def test_case(id):
    """Every figure of the column to test against, within the case's tolerance."""
    row, ours = CASES[id], answer(CASES[id])
    column = row["test_against"]
    skip = next((names for key, names in MEASURED.items() if id.startswith(key)), set())
    wanted = {k: v for k, v in numbers(row, column).items() if k not in skip}
    if column == "derived":
        # Diagnostics that the derivation adds beside the published figures are checked where we have them.
        wanted = {k: v for k, v in wanted.items() if k in ours or k in row["published"]}
    if not wanted:
        wanted = {k: v for k, v in numbers(row, "derived").items() if k in ours}
    assert wanted
    for key, value in wanted.items():
        assert ours[key] == pytest.approx(value, rel=max(float(row["tolerance_rel"]), 1e-5)), f"{id} {key}"


@pytest.mark.parametrize("id", [k for k, row in CASES.items() if row["test_against"] == "bound: published>=derived"])
def test_floor_is_not_beaten(id):
    """Measured times are no shorter than our floor."""
    (key, measured), = CASES[id]["published"].items()
    assert measured >= answer(CASES[id])[key]


@pytest.mark.parametrize("id", [k for k, row in CASES.items() if row["test_against"] == "bound: published<=derived"])
def test_ceiling_is_not_beaten(id):
    (key, measured), = CASES[id]["published"].items()
    assert measured <= answer(CASES[id])[key]


def test_transfer_lies_between_one_layer_and_the_whole():
    """Splitwise's residual of 5 ms: more than one layer, less than the whole cache."""
    ours = answer(CASES["dis-13"])
    assert ours["one_layer_ms"] <= CASES["dis-13"]["published"]["residual_ms"] <= ours["serial_ms"]


def test_tile_jump_lies_between_linear_and_whole_tile():
    ours = answer(CASES["chk-05"])
    assert ours["linear_jump"] <= CASES["chk-05"]["published"]["jump"] <= ours["tile_upper_bound"]


def test_every_case_is_answered():
    """No case is left out, and each gives at least one figure of its own columns."""
    for id, row in CASES.items():
        ours = answer(row)
        assert set(ours) & (set(row["published"]) | set(row["derived"])), id


@pytest.mark.parametrize("id", TRAPS)
def test_trap(id):
    """Ours is the right figure, not the natural mistake."""
    row = TRAPS[id]
    ours, right, wrong = TRAP_ANSWERS[id](), float(row["right"]), float(row["wrong"])
    if id == "trap-31":
        # One token over the tile's edge: between the linear share and a whole second tile; 1.32 was measured.
        assert wrong < right < ours
        return
    assert ours == pytest.approx(right, rel=0.003)
    assert abs(ours - right) < abs(ours - wrong)


def test_agreement_table_is_up_to_date():
    """docs/agreement.md is what the package says now; `python docs/make_agreement.py` writes it."""
    assert (ROOT / "docs" / "agreement.md").read_text(encoding="utf-8") == script(ROOT / "docs" / "make_agreement.py").render()


@pytest.mark.parametrize(("batch", "step_ms"), [(1, 4.98), (16, 20.3), (240, 249.09)])
def test_the_engine_on_the_scaling_books_table(batch, step_ms):
    """Llama 2 13B, BF16, 8 x TPU v5e, 8,192 tokens: the engine leaves the embedding (0.33 of 26 GB) unread, at most 1.3 % of a step."""
    r = evaluate(Scenario(model="llama-2-13b", hardware="tpu-v5e", devices=8, bandwidth=820e9, memory=1e12, batch=batch, prompt=8191, output=1))
    assert r.decode.limit_parts_s["memory"] * 1e3 == pytest.approx(step_ms, rel=0.013)
