"""The scaling policies by the names that users give them.

>>> named("ds2").name
'ds2'
"""

from __future__ import annotations

from typing import Any

from ...engine.errors import RequestError
from .base import Policy
from .dhalion import Dhalion
from .ds2 import Ds2
from .latency import Latency
from .pid import Pid
from .queueing import Queueing
from .stela import Stela
from .threshold import Threshold

POLICIES: dict[str, type[Policy[Any]]] = {policy.name: policy for policy in (Ds2, Dhalion, Threshold, Queueing, Pid, Latency, Stela)}
"""The default first."""


def named(name: str) -> Policy[Any]:
    """The policy of that name. Raises RequestError for an unknown one."""
    if name not in POLICIES:
        raise RequestError(f"{name!r} is not a scaling policy: use one of {', '.join(POLICIES)}")
    return POLICIES[name]()
