"""The roofline model of LLM inference."""

__version__ = "0.1.0"
