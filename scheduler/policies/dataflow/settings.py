"""Settings that all scaling policies have in common: pace, bounds and goals. A policy's own settings are fields of its class.

Invariant: settings that exist can work; each is one number, in the unit that its name ends with, or without unit.

>>> PolicySettings(latency_target_ms=100).interval_s
10.0
"""

from __future__ import annotations

from dataclasses import dataclass

from ....engine.errors import FlowError
from ...checks import MOST, between, given, positive, whole


@dataclass(frozen=True, slots=True)
class PolicySettings:
    """The common settings of all policies.

    When: `interval_s` from one observation of the dataflow to the next, `warm_up_s` after a change before the next observation.

    Bounds: `min_parallelism`, `max_parallelism` (None: the operator's key groups), `max_change` (the most workers that one
    decision adds to or takes from an operator; None for any).

    Goals: `latency_target_ms` end to end (None: policies that keep a latency can't decide), `catch_up_s` in which a backlog is to
    be worked off (None: a backlog is not part of the demand).

    Raises FlowError, naming the setting, for impossible values.
    """

    interval_s: float = 10.0
    warm_up_s: float = 10.0
    min_parallelism: int = 1
    max_parallelism: int | None = None
    max_change: int | None = None
    latency_target_ms: float | None = None
    catch_up_s: float | None = None

    def __post_init__(self) -> None:
        positive(self, "interval_s", *given(self, "latency_target_ms", "catch_up_s"))
        between(self, 0, MOST, "warm_up_s")
        whole(self, 1, "min_parallelism", *given(self, "max_parallelism", "max_change"))
        if self.max_parallelism is not None and self.max_parallelism < self.min_parallelism:
            bounds = f"max_parallelism is {self.max_parallelism}, below min_parallelism, which is {self.min_parallelism}"
            raise FlowError(f"{type(self).__name__}: {bounds}")


DEFAULTS = PolicySettings()
"""The default settings of all policies."""
