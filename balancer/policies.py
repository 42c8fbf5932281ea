"""The balancers by the names that users give them.

>>> named("hotspot").name
'hotspot'
"""

from __future__ import annotations

from ..engine.errors import RequestError
from .base import Balancer
from .consistent import Consistent
from .hotspot import Hotspot
from .lpt import LongestFirst
from .static import Static
from .two_choices import TwoChoices

POLICIES: dict[str, type[Balancer]] = {policy.name: policy for policy in (Hotspot, Static, Consistent, TwoChoices, LongestFirst)}
"""The default first."""


def named(name: str) -> Balancer:
    """The balancer of that name. Raises RequestError for an unknown one."""
    if name not in POLICIES:
        raise RequestError(f"{name!r} is not a balancer: use one of {', '.join(POLICIES)}")
    return POLICIES[name]()
