"""Put the error table of docs/validation.md into README.md between its markers: `python docs/make_readme.py`."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
START, END = "<!-- errors: written by docs/make_readme.py -->", "<!-- /errors -->"


def table() -> str:
    """The rows for all engines of the generated validation page, without the engine's column."""
    lines = [line for line in (ROOT / "docs" / "validation.md").read_text("utf-8").splitlines() if line.startswith("| ")]
    kept = [lines[0], *(line for line in lines if "| all engines |" in line)]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in kept]
    rows = [row[:1] + row[2:] for row in rows]
    rule = "|---|" + "---:|" * (len(rows[0]) - 1)
    return "\n".join(["| " + " | ".join(rows[0]) + " |", rule, *("| " + " | ".join(row) + " |" for row in rows[1:])])


def readme(text: str) -> str:
    """README with the table in its place."""
    before, rest = text.split(START)
    return before + START + "\n\n" + table() + "\n\n" + END + rest.split(END)[1]


if __name__ == "__main__":
    path = ROOT / "README.md"
    path.write_text(readme(path.read_text("utf-8")), "utf-8")
