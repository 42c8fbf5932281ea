"""NexMark: an online auction's stream of people, auctions and bids, and 23 queries over it (https://github.com/nexmark/nexmark).

>>> sorted(QUERIES, key=lambda name: int(name[1:]))[:3]
['q0', 'q1', 'q2']
"""

from __future__ import annotations

from .queries import QUERIES
from .queries.events import Events

__all__ = ["QUERIES", "Events"]
