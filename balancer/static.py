"""Static hashing: every key group stays where the first routing table has it, as in a job without a balancer.

>>> from .snapshot import GroupLoad
>>> Static().plan(LoadSnapshot(2, [GroupLoad(group, 0, 1.0) for group in range(4)])).imbalance_after
1.0
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from ..engine.protocol.routing import even_table
from .base import ANY_STATE, Balancer, Limits
from .placement import plan_to, with_their_groups
from .plan import BalancePlan
from .snapshot import LoadSnapshot


class Static(Balancer):
    """A balancer that assigns contiguous ranges of the groups, as evenly as possible.

    The number of groups is the next power of two above those listed.
    """

    name: ClassVar[str] = "static"

    def plan(self, snapshot: LoadSnapshot, limits: Limits = ANY_STATE) -> BalancePlan:
        key_groups = 1 << int(snapshot.group_ids.max(initial=0)).bit_length()
        groups = even_table(key_groups, snapshot.workers).groups[snapshot.group_ids].astype(np.int64)
        reason = f"the first routing table of {key_groups} key groups over {snapshot.workers} workers"
        return plan_to(snapshot, groups, with_their_groups(snapshot, groups), reason)
