"""Laws are tried on the same examples in every run, so that a run says something of the change and not of the draw.

ROOFLINE_RANDOM=1 draws anew: for looking for what nobody has met yet.
"""

from __future__ import annotations

import os

from hypothesis import settings

settings.register_profile("repeatable", derandomize=True)
if not os.environ.get("ROOFLINE_RANDOM"):
    settings.load_profile("repeatable")
