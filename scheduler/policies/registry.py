"""The scaling policies by the names that users give them. A policy is loaded when it is first asked for: a job has one, or none.

>>> named("ds2").name
'ds2'
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ...engine.errors import RequestError
from .base import Policy

POLICIES = {
    "ds2": "ds2:Ds2",
    "dhalion": "dhalion:Dhalion",
    "threshold": "threshold:Threshold",
    "queueing": "queueing:Queueing",
    "pid": "pid:Pid",
    "latency": "latency:Latency",
    "stela": "stela:Stela",
}
"""The module and the class of each, the default first."""


def named(name: str) -> Policy[Any]:
    """Return the policy of that name. Raises RequestError for an unknown one."""
    if name not in POLICIES:
        raise RequestError(f"{name!r} is not a scaling policy: use one of {', '.join(POLICIES)}")
    module, _, policy = POLICIES[name].partition(":")
    found: Policy[Any] = getattr(import_module(f"{__package__}.{module}"), policy)()
    return found
