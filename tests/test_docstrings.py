"""Every public function says what it does, its doctest runs, and quantities name their unit."""

import doctest
import importlib
import inspect
import pkgutil

import pytest

import roofline

OPTIONAL = {"roofline.charts": "bokeh", "roofline.charts_views": "bokeh", "roofline.trace": "torch", "roofline.explore": "numpy", "roofline.explore_chart": "bokeh"}


def modules():
    for info in pkgutil.walk_packages(roofline.__path__, "roofline."):
        if info.name.endswith("__main__"):
            continue
        if info.name in OPTIONAL and importlib.util.find_spec(OPTIONAL[info.name]) is None:
            continue
        yield info.name


@pytest.mark.parametrize("name", list(modules()))
def test_module(name):
    module = importlib.import_module(name)
    assert module.__doc__, f"{name} has no docstring"
    for key, thing in vars(module).items():
        if key.startswith("_") or getattr(thing, "__module__", None) != name or not (inspect.isfunction(thing) or inspect.isclass(thing)):
            continue
        # A family's description is named after the family and is its own explanation.
        assert thing.__doc__ or name.startswith("roofline.families."), f"{name}.{key} has no docstring"
    result = doctest.testmod(module)
    assert result.failed == 0
