"""README's error table has the columns and kinds of the generated page."""

import importlib.util
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def test_the_error_table_has_the_kinds_of_the_generated_page():
    spec = importlib.util.spec_from_file_location("make_readme", ROOT / "docs" / "make_readme.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    text = (ROOT / "README.md").read_text("utf-8")
    shown = text.split(module.START)[1].split(module.END)[0].strip().splitlines()
    made = module.table().splitlines()
    assert [row.split("|")[1] for row in shown] == [row.split("|")[1] for row in made] and len(made) >= 7
    assert all("%" in row for row in shown[2:])
