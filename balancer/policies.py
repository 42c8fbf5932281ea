"""The balancers by the names that users give them. A balancer is imported when it is first used: a job has one, or none.

>>> named("hotspot").name
'hotspot'
"""

from __future__ import annotations

from importlib import import_module

from ..engine.errors import RequestError
from .base import Balancer

POLICIES = {
    "hotspot": "hotspot:Hotspot",
    "lpt": "lpt:LongestFirst",
}
"""The module and the class of each balancer, the default first."""


def named(name: str) -> Balancer:
    """Return the balancer of that name. Raises RequestError for an unknown one."""
    if name not in POLICIES:
        raise RequestError(f"{name!r} is not a balancer: use one of {', '.join(POLICIES)}")
    module, _, balancer = POLICIES[name].partition(":")
    found: Balancer = getattr(import_module(f"{__package__}.{module}"), balancer)()
    return found
