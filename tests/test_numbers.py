"""units and numeric: what is read and written, and that arrays and floats agree."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roofline import numeric
from roofline.errors import InputError
from roofline.units import format_number, format_quantity, parse_quantity


@pytest.mark.parametrize(("text", "kind", "value"), [
    ("3.35 TB/s", "bytes/s", 3.35e12), ("3350 GB/s", "bytes/s", 3.35e12), ("900GB/s", "bytes/s", 9e11), ("819 GBps", "bytes/s", 819e9), ("1 GiB/s", "bytes/s", 2**30),
    ("80 GB", "bytes", 80e9), ("80GiB", "bytes", 80 * 2**30), ("989 TFLOP/s", "FLOP/s", 989e12), ("989 TFLOPS", "FLOP/s", 989e12), ("1.98 PFLOP/s", "FLOP/s", 1.98e15),
    ("400 TOPS", "FLOP/s", 400e12), ("989e12", "FLOP/s", 989e12), ("8k", "tokens", 8000), ("8Ki", "tokens", 8192), ("128k tokens", "tokens", 128000), ("1,024", "tokens", 1024),
    ("33 ms", "s", 0.033), ("12us", "s", 12e-6), ("5 µs", "s", 5e-6), ("2", "s", 2), ("1e3", "count", 1000), ("32", "count", 32), ("295 FLOP/byte", "FLOP/byte", 295),
])
def test_reads_what_people_write(text, kind, value):
    assert parse_quantity(text, kind) == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize(("text", "kind"), [("fast", "bytes/s"), ("", "count"), ("8 ms", "bytes"), ("3 TB", "s"), ("1e400", "count"), ("nan", "count"), ("inf", "FLOP/s"), ("-1", "tokens"),
                                            ("0x10", "count"), ("1" * 70, "count"), ("--3", "count"), (None, "count"), (True, "count"), ("2.5 ms", "count")])
def test_refuses_what_is_no_quantity(text, kind):
    with pytest.raises(InputError) as error:
        parse_quantity(text, kind, field="the field")
    assert "the field" in str(error.value) and "\n" not in str(error.value)


@given(st.floats(1e-9, 1e21))
def test_formatting_keeps_three_figures(x):
    shown = format_quantity(x, "B").replace("\u2009", " ").split(" ")
    scale = {"B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12, "PB": 1e15, "EB": 1e18}[shown[-1]]
    assert float(shown[0].replace(",", "")) * scale == pytest.approx(x, rel=5.01e-3)


def test_formats_edge_values():
    assert format_quantity(None, "s") == "–" and format_number(None) == "–"
    assert format_quantity(999.9e9, "B") == "1.00\u2009TB"
    assert format_quantity(0, "s") == "0\u2009s" and format_number(0) == "0"
    assert format_quantity(0.9999, "s") == "1,000\u2009ms" or format_quantity(0.9999, "s") == "1.00\u2009s"
    assert format_number(1979.6) == "1,980" and format_number(0.0123) == "0.0123"


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=5), st.floats(-1e6, 1e6))
def test_arrays_and_floats_agree(xs, y):
    array = np.array(xs)
    for name in ("maximum", "minimum"):
        f = getattr(numeric, name)
        assert f(array, y).tolist() == [f(x, y) for x in xs]
    assert numeric.ceil(array).tolist() == [numeric.ceil(x) for x in xs]
    assert numeric.where(array > y, array, y).tolist() == [numeric.where(x > y, x, y) for x in xs]
