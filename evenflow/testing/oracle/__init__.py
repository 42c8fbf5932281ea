"""The oracle: evaluates a flow sequentially, in plain Python, for comparison with runs of a job.

`oracle.py` evaluates a graph; each other module adds some operators to it.
"""

from __future__ import annotations

from . import list_aggregates, patterns, row_operators, two_windows, windows  # noqa: F401 -- they add operators to the oracle
from .oracle import Records, evaluate, oracle

__all__ = ["Records", "evaluate", "oracle"]
