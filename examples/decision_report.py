"""A report for a decision meeting: one HTML file with the answer, charts, what to change, method and sources.

    python examples/decision_report.py [FOLDER]
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # not needed once the package is installed

from roofline import document
from roofline.scenario import Scenario


def main(folder: str = ".") -> None:
    asked = Scenario(model="mixtral-8x7b", hardware="h100-sxm", devices=2, batch=32, prompt=2048, output=512)
    for name in ("decision.html", "decision.md"):
        print(*document.save(asked, Path(folder) / name, goal="throughput"))


if __name__ == "__main__":
    main(*sys.argv[1:2])
