"""docs/families.md says what the code does."""

import importlib.util
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_the_table_is_up_to_date():
    spec = importlib.util.spec_from_file_location("make_families", ROOT / "docs" / "make_families.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert (ROOT / "docs" / "families.md").read_text("utf-8") == module.page(), "run python docs/make_families.py"
