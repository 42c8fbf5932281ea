"""The settings of scaling policies: goals, bounds and patience.

Invariant: settings that exist can work; each is one number, in the unit that its name ends with, or without unit.

>>> PolicySettings(latency_target_ms=100, slots=1).activation_window
1
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from ....balancer.outside_json import shown
from ....balancer.snapshot import MOST
from ....engine.errors import FlowError

LEAST_SETTING = 1e-9

_COUNTS = {
    "min_parallelism": 1, "max_parallelism": 1, "max_change": 1, "activation_window": 1, "rollback_looks": 1, "min_change": 1,
    "processors": 1, "violations": 1, "slowest": 1, "window_step": 1, "slots": 0, "add_nodes": 0, "remove_nodes": 0,
}  # fmt: skip
"""Whole numbers, and the least of each."""

_SHARES = (
    "target_ratio", "rollback_loss", "turn_change", "scale_down_factor", "target_utilisation", "utilisation_band", "least_effect",
    "cluster_load",
)  # fmt: skip
"""Numbers from 0 to 1."""

_OVER_ZERO = ("interval_s", "latency_target_ms", "catch_up_s", "target_utilisation", "congestion", "skew_tolerance")


@dataclass(frozen=True, slots=True)
class PolicySettings:
    """All policies' settings; each policy reads the settings that concern it.

    When: `interval_s` from one observation of the dataflow to the next, `warm_up_s` after a change before the next observation.

    Bounds of every policy: `min_parallelism`, `max_parallelism` (None: the operator's key groups), `max_change` (the most workers
    that one decision adds to or takes from an operator; None for any).

    Goals: `latency_target_ms` end to end (`queueing`, `pid`, `latency`), `catch_up_s` in which a backlog is to be worked off
    (`ds2`, `threshold`; None: it is not part of the demand).

    `ds2`: the median of `activation_window` suggestions is decided; sources that get `target_ratio` of their demand through are
    fine. A change of fewer than `min_change` workers everywhere is noise. So is one that would undo an operator's last change
    although its need has changed by less than `turn_change` (a share) since. A change is rolled back after `rollback_looks`
    observations in a row with at least `rollback_loss` of the rate missing. `skew_tolerance`: a worker with this multiple of the
    least possible load is hot, and a rebalance may help it.

    `dhalion`: an idle operator goes to `scale_down_factor` of its workers; an action that didn't help is not repeated for
    `blacklist_s`.

    `threshold`: operators are to be busy for `target_utilisation` of the time, and are not changed within `utilisation_band` of
    it; fewer workers must have been enough for `scale_down_delay_s`; if more workers brought less than `least_effect` of the
    expected gain, no more are added.

    `queueing`: `processors` is the number of workers to assign (None: as many as `latency_target_ms` takes).

    `pid`: gains of the error (`pid_proportional`), its integral (`pid_integral`, per second) and derivative (`pid_derivative`,
    seconds). The error is 0 from `pid_band` times the target to the target.

    `latency`: after `violations` observations in a row over the target the `slowest` operators get more: windows and joins
    `window_step` workers; a node is requested when the nodes' mean load is over `cluster_load`.

    `stela`: `slots` workers to add, or `add_nodes` nodes' worth of them, or `remove_nodes` (0 or 1) to take; without any, one
    where an operator is congested: it gets more than `congestion` times what it processes.

    Raises FlowError, naming the setting, for impossible values.
    """

    interval_s: float = 10.0
    warm_up_s: float = 10.0
    min_parallelism: int = 1
    max_parallelism: int | None = None
    max_change: int | None = None
    latency_target_ms: float | None = None
    catch_up_s: float | None = None
    activation_window: int = 1
    target_ratio: float = 0.95
    min_change: int = 1
    rollback_loss: float = 0.1
    rollback_looks: int = 2
    turn_change: float = 0.1
    skew_tolerance: float = 1.1
    scale_down_factor: float = 0.8
    blacklist_s: float = 600.0
    target_utilisation: float = 0.7
    utilisation_band: float = 0.3
    scale_down_delay_s: float = 60.0
    least_effect: float = 0.1
    processors: int | None = None
    pid_proportional: float = 0.2
    pid_integral: float = 0.01
    pid_derivative: float = 0.0
    pid_band: float = 0.1
    violations: int = 3
    slowest: int = 1
    window_step: int = 2
    cluster_load: float = 0.7
    slots: int | None = None
    add_nodes: int = 0
    remove_nodes: int = 0
    congestion: float = 1.2

    def __post_init__(self) -> None:
        for name in (field.name for field in fields(self)):
            _check(name, getattr(self, name))
        if self.max_parallelism is not None and self.max_parallelism < self.min_parallelism:
            raise FlowError(f"policy: max_parallelism is {self.max_parallelism}, below min_parallelism, which is {self.min_parallelism}")
        if self.remove_nodes > 1 or (self.remove_nodes and (self.add_nodes or self.slots)):
            raise FlowError("policy: remove_nodes is 0 or 1, and 0 where add_nodes or slots ask for more: scale in one node at a time")


def _check(name: str, value: Any) -> None:
    if value is None and name in {"max_parallelism", "max_change", "latency_target_ms", "catch_up_s", "processors", "slots"}:
        return
    if name in _COUNTS:
        if isinstance(value, bool) or not isinstance(value, int) or value < _COUNTS[name]:
            raise FlowError(f"policy: {name} is {shown(value)}: it must be a whole number, {_COUNTS[name]} or more")
        return
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= MOST:
        raise FlowError(f"policy: {name} is {shown(value)}: it must be a finite number, 0 or more and at most {MOST:g}")
    if name in _SHARES and value > 1:
        raise FlowError(f"policy: {name} is {shown(value)}: it is a part of a whole, 0 to 1")
    if name in _OVER_ZERO and value < LEAST_SETTING:
        raise FlowError(f"policy: {name} is {shown(value)}: it must be more than 0, at least {LEAST_SETTING:g}")


DEFAULTS = PolicySettings()
"""The default settings of all policies."""
