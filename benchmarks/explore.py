"""Configurations per second of `explore`, beside a loop over `evaluate`: `python benchmarks/explore.py`.

Both do the whole thing: times, memory, money and energy of every configuration, and the best of each chip. One core.
Prints medians and ratios; nothing here fails by the clock.
"""

from __future__ import annotations

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import statistics  # noqa: E402
import sys  # noqa: E402
import time  # noqa: E402
import tracemalloc  # noqa: E402
from pathlib import Path  # noqa: E402

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np  # noqa: E402

from roofline import InputError, Scenario, evaluate  # noqa: E402
from roofline.explore import Question, Space, explore, front  # noqa: E402
from roofline.explore.grid import blocks  # noqa: E402
from roofline.explore.space import plan  # noqa: E402
from roofline.explore.table import table_of  # noqa: E402

LOADS = tuple((p, o) for p in (512, 1024, 2048, 4096, 8192, 16384, 32768, 65536) for o in (128, 512, 2048))
CASES = {
    "one question (70B, all chips)": Space(
        base=Scenario(model="llama-3.1-70b", prompt=4096, output=512), weights=("bf16", "fp8", "int4-g128"), kv=("bf16", "fp8")
    ),
    "dense 70B, 24 loads": Space(
        base=Scenario(model="llama-3.1-70b"), weights=("bf16", "fp8", "int4-g128"), kv=("bf16", "fp8"), loads=LOADS
    ),
    "MoE with MLA, 24 loads": Space(
        base=Scenario(model="deepseek-v3"), weights=("fp8", "int4-g128"), devices=(8, 16, 32), loads=LOADS
    ),
    "8B, drafts and prefill pools": Space(
        base=Scenario(model="llama-3.1-8b"), drafts=(0, 3, 5), prefill=(("same", 1), ("same", 4)), loads=LOADS
    ),
}
QUESTION = Question(objective="cost", limits={"tpot": "33 ms", "ttft_alone": "1 s"})


def seconds(run, times: int = 5) -> float:
    """Median processor time of `run()`, all on one core [s]; what else the machine does does not count."""
    taken = []
    for _ in range(times):
        start = time.process_time()
        run()
        taken.append(time.process_time() - start)
    return statistics.median(taken)


def loop_rate(space: Space, most: int = 1500) -> float:
    """Configurations per second of calling `evaluate` for rows spread evenly over the space [1/s]."""
    made = plan(space)
    scenarios = []
    for block in blocks(space, made):
        table = table_of(block, np.arange(0, block.rows, max(1, made.rows // most)), made, space)
        scenarios += [table.scenario(i) for i in range(len(table))]

    def run():
        for s in scenarios:
            try:
                evaluate(s)
            except InputError:
                pass

    return len(scenarios) / seconds(run, 3)


def main() -> None:
    print(f"{'space':32} {'rows':>10} {'explore':>9} {'rows/s':>12} {'evaluate/s':>11} {'ratio':>7} {'peak MB':>8}")
    for name, space in CASES.items():
        rows = plan(space).rows
        explore(space, QUESTION)
        taken = seconds(lambda: explore(space, QUESTION))
        tracemalloc.start()
        explore(space, QUESTION)
        peak = tracemalloc.get_traced_memory()[1] / 1e6
        tracemalloc.stop()
        loop = loop_rate(space)
        print(f"{name:32} {rows:10,} {taken:7.2f} s {rows / taken:12,.0f} {loop:11,.0f} {rows / taken / loop:6,.0f}x {peak:8.1f}")
    x, y = np.random.default_rng(1).random((2, 1_000_000))
    print(
        f"front of 1,000,000 random points: {seconds(lambda: front(x, y)) * 1e3:.0f} ms; of 100,000: {seconds(lambda: front(x[:100_000], y[:100_000])) * 1e3:.0f} ms"
    )


if __name__ == "__main__":
    main()
