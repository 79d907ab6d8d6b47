"""Explore: whole design spaces in one broadcast of the engine's formulas (NumPy is imported here and in no other part of the engine).

from roofline.explore import Question, Space, explore
found = explore(Space(base=Scenario(model="llama-3.1-70b", prompt=4096)), Question(objective="cost", limits={"tpot": "33 ms"}))
found.cell.best.row(0), found.cell.why_not["l4"]
"""

from __future__ import annotations

from .answer import FRONT, LIMITS, OBJECTIVES, Answer, Cell, Question, Stopped, front, judge
from .grid import blocks
from .request import explore_request
from .space import Space, plan
from .table import Table

__all__ = [
    "FRONT",
    "LIMITS",
    "OBJECTIVES",
    "Answer",
    "Cell",
    "Question",
    "Space",
    "Stopped",
    "Table",
    "explore",
    "explore_request",
    "front",
]


def explore(space: Space, question: Question | None = None, progress=None) -> Answer:
    """Try every configuration of a space and answer a question of it.

    progress(done, total): called after each block of configurations; returning False stops (`Stopped`). Memory is that of one
    block and of the candidates, however large the space.

    >>> found = explore(Space(chips=("h100-sxm", "h200-sxm"), devices=(1,)), Question(objective="latency"))
    >>> found.cell.best.row(0)["hardware"]
    'h200-sxm'
    """
    made = plan(space)
    return judge(space, made, blocks(space, made), question or Question(), progress)
