"""Money and energy per token."""

from __future__ import annotations


def cost(r, prefill, decode) -> dict:
    """USD per million tokens at the chip's hourly price; None where no price is known."""
    return {"usd_per_million_input_tokens": None, "usd_per_million_output_tokens": None}


def energy(r, prefill, decode) -> dict:
    """Joules per token; None until sourced."""
    return {"joules_per_output_token": None}
