"""Tests flows: a simulated run for every seed, compared with a plain evaluation of the same flow.

>>> import evenflow as ef
>>> from evenflow.testing import check
>>> def squares():
...     flow = ef.Dataflow("squares")
...     flow.read(ef.from_items([1, 2, 3])).map(lambda row: row["item"] ** 2).write(ef.to_list([]))
...     return flow
>>> check(squares, seeds=range(10))
"""

from __future__ import annotations

from .comparison import check, in_order
from .conformance.sink_conformance import check_sink
from .conformance.source_conformance import ConformanceError, check_source
from .oracle import oracle
from .simulation.actions import ACTIONS, Action, Choice, World
from .simulation.network import SimulationError
from .simulation.simulation import SimulationResult, simulate

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
