"""Which function describes which model_type."""

from __future__ import annotations

FAMILIES: dict = {}  # model_type -> the function that adds its parts to a Build


def family(*model_types: str):
    """Register a description for these model_types."""

    def register(describe):
        for model_type in model_types:
            assert model_type not in FAMILIES, model_type  # which one counts would hang on the order of imports
            FAMILIES[model_type] = describe
        return describe

    return register
