"""Testing flows: a simulated run for every seed, and a plain evaluation of the same flow to compare it with.

>>> import evenflow as ef
>>> from evenflow.testing import check
>>> def squares():
...     flow = ef.Dataflow("squares")
...     flow.read(ef.from_items([1, 2, 3])).map(lambda row: row["item"] ** 2).write(ef.to_list([]))
...     return flow
>>> check(squares, seeds=range(10))
"""

from __future__ import annotations

from .actions.actions import ACTIONS, Action, Choice, World
from .comparison import check
from .order import in_order
from .plain.oracle import oracle
from .simulated.network import SimulationError
from .simulation import SimulationResult, simulate
from .sink_conformance import check_sink
from .source_conformance import ConformanceError, check_source

__all__ = [
    "ACTIONS",
    "Action",
    "Choice",
    "ConformanceError",
    "SimulationError",
    "SimulationResult",
    "World",
    "check",
    "check_sink",
    "check_source",
    "in_order",
    "oracle",
    "simulate",
]
