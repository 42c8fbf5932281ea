"""The price search machine: streams of clicks, impressions and searches, and five queries over them that run as one job.

The workload of Schroeck: Building an Optimizer for Dynamic Scaling of Stream Processing Engines (master's thesis, TU Berlin; its code is
github.com/dominikschroeck/auto-scaler).

>>> sorted(QUERIES)
['q1', 'q2', 'q3', 'q4', 'q5']
"""

from __future__ import annotations

from .queries import QUERIES
from .visits import Visits

__all__ = ["QUERIES", "Visits"]
