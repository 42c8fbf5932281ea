"""Testing flows: a simulated run for every seed, and a plain evaluation of the same flow to compare it with.

>>> import evenflow as ef
>>> from evenflow.testing import simulate
>>> flow = ef.Dataflow("squares")
>>> _ = flow.read(ef.from_items([1, 2, 3])).map(lambda row: row["item"] ** 2).write(ef.to_list([]))
>>> sorted(row["item"] for row in simulate(flow, seed=1).rows["to_list"])
[1, 4, 9]
"""

from .actions import ACTIONS, Action, Choice, World
from .network import SimulationError
from .simulation import SimulationResult, simulate

__all__ = ["ACTIONS", "Action", "Choice", "SimulationError", "SimulationResult", "World", "simulate"]
