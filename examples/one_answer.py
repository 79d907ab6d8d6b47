"""The answer in a few lines: how fast a model can decode on a chip, what holds it back, and where the time goes.

    python examples/one_answer.py
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # not needed once the package is installed

from roofline.report import evaluate
from roofline.scenario import Scenario
from roofline.units import format_quantity


def main() -> None:
    report = evaluate(Scenario(model="llama-3.1-70b", hardware="h200-sxm", devices=2, weights="fp8", batch=32, prompt=8192, output=512))
    decode = report.decode
    print(f"{report.model['name']} on {report.hardware['devices']} x {report.hardware['name']}: decoding is {decode.bound}-bound,")
    print(f"at least {format_quantity(decode.limit_s, 's')} a token, at most {report.serving['tokens_per_s']:,.0f} tokens/s in all")
    for op in sorted(decode.operators, key=lambda op: -op.share)[:5]:
        print(f"  {op.share:6.1%}  {op.name:22} {format_quantity(op.bytes, 'B'):>9}  {op.bound}-bound")
    # A total always comes with its parts.
    assert abs(sum(op.flops for op in decode.operators) - decode.flops) < 1e-6 * decode.flops


if __name__ == "__main__":
    main()
