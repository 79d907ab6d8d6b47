"""One model on several chips, and how it moves on one of them as the batch grows: two charts for a slide or a paper.

    python examples/chips_compared.py [FOLDER]
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # not needed once the package is installed

from roofline.plot import compare, sweep
from roofline.report import evaluate
from roofline.scenario import Scenario


def main(folder: str = ".") -> None:
    asked = Scenario(model="llama-3.1-8b", hardware="h100-sxm", batch=16, prompt=2048, output=256)
    chips = compare([evaluate(asked.replace(hardware=chip)) for chip in ("h100-sxm", "b200-sxm", "mi300x")])
    for row in chips.rows:
        print(f"{row['scenario']:28} {row['phase']:8} {row['bound by']:8} {row['at least']}")
    print(chips.save(Path(folder) / "chips.svg"))  # .png and .html work alike
    path = sweep(asked, "batch", [1, 2, 4, 8, 16, 32, 64, 128, 256], theme="dark")
    print(path.save(Path(folder) / "batch.svg"))


if __name__ == "__main__":
    main(*sys.argv[1:2])
