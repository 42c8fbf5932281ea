"""Decides when to ask a scaling policy, and records the outcome of its decisions: a state machine without a clock.

Invariants: a policy is asked at most once per `interval_s`. Nothing is decided from a decision until it was carried out, for
`warm_up_s` after that, and while the backlog of the change is being worked off, since measurements then belong to two sizes of
the dataflow. In mode `advise` no decision is returned, and advice is recorded when it differs from the last.

>>> from .dataflow.figures import OperatorFigures
>>> from .dataflow.snapshot import Edge
>>> source, count = OperatorFigures("source", 1, source_rate=900), OperatorFigures("count", 1, true_processing_rate=500)
>>> from .ds2 import Ds2
>>> controller = Controller(Ds2())
>>> controller.observe(0.0, DataflowSnapshot((source, count), (Edge("source", "count"),))).parallelism
{'count': 2}
>>> controller.carried_out(1.5)
>>> [(record.time, record.done) for record in controller.history]
[(0.0, 'carried out in 1.5 s')]
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from typing import Any, Literal

from ...engine.errors import RequestError
from ...engine.shown import Shown
from .base import ScalingPolicy
from .dataflow.demand import offered
from .dataflow.shortfall import total_offered, total_read
from .dataflow.snapshot import DataflowSnapshot
from .decision import ScalingDecision

Mode = Literal["act", "advise"]

MODES: tuple[Mode, ...] = ("act", "advise")

UNDER_WAY = "under way"

ADVISED = 'advised only; AutoscaleConfig(mode="act") carries it out'


@dataclass(frozen=True, slots=True)
class DecisionRecord(Shown):
    """A decision of a policy. `time`: seconds; `seen`: its snapshot; `decided`: the change and the reason; `done`: its
    outcome.
    """

    time: float
    policy: str
    seen: DataflowSnapshot
    decided: ScalingDecision
    done: str

    @property
    def changes(self) -> str:
        """The decision, in short: operators with their workers before and after, and those to be rebalanced."""
        before = self.seen.parallelism
        workers = [f"{name} {before[name]} -> {after}" for name, after in self.decided.parallelism.items()]
        return ", ".join([*workers, *(f"{name} rebalanced" for name in self.decided.rebalance)])

    @property
    def advice(self) -> str:
        """The decision, as a sentence about what the policy would do.

        >>> from .dataflow.figures import OperatorFigures
        >>> from .dataflow.snapshot import Edge
        >>> source, count = OperatorFigures("source", 1), OperatorFigures("count", 2)
        >>> seen = DataflowSnapshot((source, count), (Edge("source", "count"),))
        >>> DecisionRecord(0.0, "ds2", seen, ScalingDecision({"count": 4}), "").advice
        'ds2 would give `count` 4 workers (2 now)'
        """
        before = self.seen.parallelism
        parts = [
            f"give `{name}` {count} worker{'s' * (count > 1)} ({before[name]} now)" for name, count in self.decided.parallelism.items()
        ]
        parts += [f"rebalance `{name}`" for name in self.decided.rebalance]
        parts += [] if self.decided.remove_node is None else [f"give node {self.decided.remove_node} back"]
        parts += [f"add {self.decided.add_nodes} nodes"] if self.decided.add_nodes else []
        return f"{self.policy} would {', '.join(parts)}"

    def repeats(self, earlier: DecisionRecord) -> bool:
        """Return True if this is the same advice as an earlier one, for the same numbers of workers."""
        same = replace(self.decided, reason="") == replace(earlier.decided, reason="")
        return same and self.done == earlier.done == ADVISED and self.seen.parallelism == earlier.seen.parallelism

    @property
    def saw(self) -> str:
        """The snapshot, in short: the demand, the part of it that was read, and the operators with their rates per worker.

        >>> from .dataflow.figures import OperatorFigures
        >>> from .dataflow.snapshot import Edge
        >>> source, count = OperatorFigures("source", 1, source_rate=900), OperatorFigures("count", 2, true_processing_rate=500)
        >>> DecisionRecord(0.0, "ds2", DataflowSnapshot((source, count), (Edge("source", "count"),)), ScalingDecision(), "").saw
        '900 of 900 records/s read; source x 1; count x 2, each does 250 records/s'
        """
        seen = self.seen
        parts = [f"{total_read(seen):.4g} of {total_offered(seen):.4g} records/s read"]
        for operator in (seen.operator(name) for name in seen.order):
            each = f", each does {operator.per_instance_rate:.4g} records/s" if operator.per_instance_rate else ""
            waits = f", {operator.queue_records:.4g} wait" if operator.queue_records else ""
            parts.append(f"{operator.name} x {operator.parallelism}{each}{waits}")
        return "; ".join(parts)

    def __str__(self) -> str:
        return f"{self.policy} decided {self.changes or 'nothing'}, {self.done}: {self.decided.reason}; saw {self.saw}"

    def to_dict(self) -> dict[str, Any]:
        """Return the record as JSON values, with the snapshot in short: `before` has the workers of the operators that change."""
        before = {name: self.seen.parallelism[name] for name in self.decided.parallelism}
        return {"time": self.time, "policy": self.policy, "saw": self.saw, "before": before, **self.decided.to_dict(), "done": self.done}


class Controller:
    """The controller of one job. Call `due` as often as you like, `observe` when it is True; then `carried_out` or
    `not_carried_out` for the decision.

    `history`: the last `keep` decisions. It excludes observations without a decision; `last_observation` is the newest
    observation. Raises RequestError for an unknown mode.
    """

    def __init__(self, policy: ScalingPolicy[Any], mode: Mode = "act", keep: int = 1000) -> None:
        if mode not in MODES:
            raise RequestError(f"mode is {mode!r}: a policy can {' or '.join(MODES)}")
        self.mode: Mode = mode
        self.last_observation: DecisionRecord | None = None
        self._policy = policy
        self._memory: Any = policy.start()
        self._history: deque[DecisionRecord] = deque(maxlen=keep)
        self._next = float("-inf")
        self._under_way = False
        self._reconfiguration_s = 0.0
        self._backlog: float | None = None

    @property
    def policy(self) -> str:
        """The name of the policy."""
        return self._policy.name

    @property
    def history(self) -> tuple[DecisionRecord, ...]:
        """The decisions, oldest first."""
        return tuple(self._history)

    @property
    def reconfiguration_s(self) -> float:
        """Seconds that the last change took, 0 before the first."""
        return self._reconfiguration_s

    def due(self, now: float) -> bool:
        """Return True if it is time for an observation, so that a snapshot is needed."""
        return not self._under_way and now >= self._next

    def observe(self, now: float, snapshot: DataflowSnapshot, *, moving: bool = False) -> ScalingDecision | None:
        """Return the decision to carry out now, None if there is none. `moving`: True while keys move for other reasons than a
        decision of this one.
        """
        if not self.due(now):
            return None
        settings = snapshot.settings
        self._next = now + settings.interval_s
        if moving or self._catching_up(snapshot):
            return None
        seen = replace(snapshot, time=now, reconfiguration_s=self._reconfiguration_s or snapshot.reconfiguration_s)
        decision, self._memory = self._policy.decide(seen, self._memory)
        acts = decision.changes and self.mode == "act"
        done = UNDER_WAY if acts else ADVISED if decision.changes else "nothing to do"
        self.last_observation = DecisionRecord(now, self._policy.name, seen, decision, done)
        if decision.changes and not (self._history and self.last_observation.repeats(self._history[-1])):
            self._history.append(self.last_observation)
        if not acts:
            return None
        self._under_way = True
        return decision

    def carried_out(self, now: float) -> None:
        """Note that the decision was carried out. From now on the policy learns how long that took."""
        record = self._finish(f"carried out in {now - self._decided_at():g} s")
        settings = record.seen.settings
        self._reconfiguration_s = now - record.time
        self._next = now + max(settings.warm_up_s, 0.0)
        self._backlog = float("inf")

    def not_carried_out(self, now: float, reason: str) -> None:
        """Note that the decision could not be carried out; the policy is asked again after an interval."""
        record = self._finish(f"refused: {reason}")
        self._next = now + record.seen.settings.interval_s

    def disturbed(self) -> None:
        """Note that the stream stopped, or keys moved, for other reasons than a decision: the backlog from that is not demand
        either.
        """
        self._backlog = float("inf")

    def _catching_up(self, snapshot: DataflowSnapshot) -> bool:
        """Return True while a backlog from a change or a disturbance is above an interval's input, shrinks, and will soon be
        gone.

        Soon is within `catch_up_s`, at the pace since the previous observation; any time if that isn't set.
        """
        if self._backlog is None:
            return False
        before, self._backlog = self._backlog, sum(snapshot.operator(name).queue_records for name in snapshot.sources)
        settings = snapshot.settings
        usual = settings.interval_s * sum(offered(snapshot.operator(name)) or 0.0 for name in snapshot.sources)
        pace = (before - self._backlog) / settings.interval_s
        soon = settings.catch_up_s is None or self._backlog <= pace * settings.catch_up_s
        if usual < self._backlog < before and soon:
            return True
        self._backlog = None
        return False

    def _decided_at(self) -> float:
        if not self._under_way:
            raise RequestError("no scaling decision is under way: observe() gives one, carried_out() or not_carried_out() ends it")
        return self._history[-1].time

    def _finish(self, done: str) -> DecisionRecord:
        self._decided_at()
        self._under_way = False
        self._history[-1] = replace(self._history[-1], done=done)
        return self._history[-1]
