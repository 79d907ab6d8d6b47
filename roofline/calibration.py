"""From limits to expectations: what engines reach of each roof in public measurements."""

from __future__ import annotations

from .roof import Efficiency


def expectation(r) -> Efficiency | None:
    """The efficiency to expect for a resolved scenario, or None where nothing measured says so."""
    s = r.scenario
    if s.engine == "none" or (s.efficiency_compute is None and s.efficiency_bandwidth is None):
        return None
    return Efficiency(compute=s.efficiency_compute or 1.0, bandwidth=s.efficiency_bandwidth or 1.0)
