"""The roofline model of LLM inference: FLOPs, bytes, bounds, latency, throughput, memory fit, cost and levers.

>>> from roofline import Scenario, evaluate
>>> evaluate(Scenario(model="llama-3.1-8b", hardware="h100-sxm", batch=8)).decode.bound
'memory'
"""

from .errors import InputError
from .report import Report, evaluate
from .scenario import Scenario


__version__ = "0.1.0"
__all__ = ["InputError", "Report", "Scenario", "evaluate", "__version__"]
