"""Evaluations per second of one scenario on CPython: `python benchmarks/engine.py`.

Prints medians and ratios; nothing here fails by the clock.
"""

from __future__ import annotations

import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from roofline import Scenario, evaluate  # noqa: E402
from roofline.scenario import resolve  # noqa: E402

CASES = {
    "80-layer dense, 2 chips": Scenario(model="llama-3.1-70b", hardware="h200-sxm", devices=2, weights="fp8", batch=32, prompt=8192, output=512),
    "61-layer MoE with MLA, 8 chips": Scenario(model="deepseek-v3", hardware="h200-sxm", devices=8, batch=64, prompt=4096, output=512),
    "32-layer dense, 1 chip": Scenario(model="llama-3.1-8b", hardware="h100-sxm"),
}


def median_ms(run, seconds: float = 1.0) -> float:
    """Median wall time of `run()` over about `seconds` [ms]."""
    run()
    times, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e3


def main() -> None:
    print(f"{'scenario':34} {'evaluate':>10} {'resolved':>10} {'to JSON':>10} {'per second':>11}")
    for name, scenario in CASES.items():
        resolved = resolve(scenario)
        report = evaluate(resolved)
        whole, inner, out = median_ms(lambda: evaluate(scenario)), median_ms(lambda: evaluate(resolved)), median_ms(report.to_json)
        print(f"{name:34} {whole:7.3f} ms {inner:7.3f} ms {out:7.3f} ms {1e3 / whole:9,.0f}/s")


if __name__ == "__main__":
    main()
