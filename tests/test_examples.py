"""Every script in examples/ runs, as its docstring says, and writes what it promises."""

import runpy
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).resolve().parent.parent / "examples").glob("*.py"))
WRITES = {"chips_compared": {"chips.svg", "batch.svg"}, "own_kernels": {"kernels.svg"}, "decision_report": {"decision.html", "decision.md", "decision-1.svg", "decision-2.svg"}}


@pytest.mark.parametrize("script", EXAMPLES, ids=lambda p: p.stem)
def test_example_runs(script, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", [str(script), str(tmp_path)])
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(script), run_name="__main__")
    assert capsys.readouterr().out.strip()
    assert {p.name for p in tmp_path.iterdir()} == WRITES.get(script.stem, set())


def test_there_are_five():
    assert len(EXAMPLES) >= 5
    for script in EXAMPLES:
        assert f"python examples/{script.name}" in script.read_text("utf-8")


def test_the_traced_block_does_what_a_block_does(capsys):
    pytest.importorskip("torch")
    from roofline.trace import load_function, trace_function
    found = trace_function(load_function(f"{EXAMPLES[0].parent / 'trace_a_block.py'}:phases"))
    matrices = 2 * 512 * (3 * 512 + 512 + 4 * 512 + 4 * 512)
    assert found["prompt"].flops == 1024 * matrices + 4 * 1024 * 1024 * 512
    assert found["one token"].flops == 64 * (matrices + 4 * 1 * 512)
