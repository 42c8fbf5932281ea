"""When to ask a scaling policy, and what became of its decisions: a state machine without a clock.

Invariants: a policy is asked once per `interval_s` at most; from a decision until it was carried out, `warm_up_s` after it, and while a
backlog that the change left is being worked off, nothing is decided, for what is measured then belongs to two sizes of the dataflow; in
mode `advise` nothing is ever handed out.

>>> from .dataflow.figures import OperatorFigures
>>> from .dataflow.snapshot import Edge
>>> source, count = OperatorFigures("source", 1, source_rate=900), OperatorFigures("count", 1, true_processing_rate=500)
>>> controller = Controller("ds2")
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
from .dataflow.demand import offered
from .dataflow.shortfall import total_offered, total_read
from .dataflow.snapshot import DataflowSnapshot
from .decision import ScalingDecision
from .registry import named

Mode = Literal["act", "advise"]

MODES: tuple[Mode, ...] = ("act", "advise")

UNDER_WAY = "under way"


@dataclass(frozen=True, slots=True)
class DecisionRecord(Shown):
    """`time`: seconds, when it was decided; `policy`: by which; `seen`: on what; `decided`: what, and why; `done`: what became of it."""

    time: float
    policy: str
    seen: DataflowSnapshot
    decided: ScalingDecision
    done: str

    @property
    def changes(self) -> str:
        """What was decided, in short: operators with their workers before and after, and those to be rebalanced."""
        before = self.seen.parallelism
        workers = [f"{name} {before[name]} -> {after}" for name, after in self.decided.parallelism.items()]
        return ", ".join([*workers, *(f"{name} rebalanced" for name in self.decided.rebalance)])

    @property
    def saw(self) -> str:
        """What was seen, in short: the demand, how much of it was read, and the operators with what they do, by worker.

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
        """As JSON holds it, with what was seen in short: `before` has the workers of the operators that change."""
        before = {name: self.seen.parallelism[name] for name in self.decided.parallelism}
        return {"time": self.time, "policy": self.policy, "saw": self.saw, "before": before, **self.decided.to_dict(), "done": self.done}


class Controller:
    """One per job. Ask `due` as often as you like, `observe` when it is; then `carried_out` or `refused` for what `observe` gave.

    `history`: the last `keep` decisions. Looks without a decision are not in it; `last_look` is the newest look. Raises RequestError for an
    unknown policy or mode.
    """

    def __init__(self, policy: str = "ds2", mode: Mode = "act", keep: int = 1000) -> None:
        if mode not in MODES:
            raise RequestError(f"mode is {mode!r}: a policy can {' or '.join(MODES)}")
        self.mode: Mode = mode
        self.last_look: DecisionRecord | None = None
        self._policy = named(policy)
        self._memory: Any = self._policy.start()
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
        """How long the last change took, 0 before the first."""
        return self._reconfiguration_s

    def due(self, now: float) -> bool:
        """Whether it is time for a look, so that a snapshot is needed."""
        return not self._under_way and now >= self._next

    def observe(self, now: float, snapshot: DataflowSnapshot, *, moving: bool = False) -> ScalingDecision | None:
        """What the caller must carry out now, if anything. `moving`: keys are on their way for other reasons than a decision from here."""
        if not self.due(now):
            return None
        settings = snapshot.settings
        self._next = now + settings.interval_s
        if moving or self._catching_up(snapshot):
            return None
        seen = replace(snapshot, time=now, reconfiguration_s=self._reconfiguration_s or snapshot.reconfiguration_s)
        decision, self._memory = self._policy.decide(seen, self._memory)
        acts = decision.changes and self.mode == "act"
        done = UNDER_WAY if acts else "advised only" if decision.changes else "nothing to do"
        self.last_look = DecisionRecord(now, self._policy.name, seen, decision, done)
        if decision.changes:
            self._history.append(self.last_look)
        if not acts:
            return None
        self._under_way = True
        return decision

    def carried_out(self, now: float) -> None:
        """The decision was carried out. The time it took is shown to the policy from now on."""
        record = self._ended(f"carried out in {now - self._decided_at():g} s")
        settings = record.seen.settings
        self._reconfiguration_s = now - record.time
        self._next = now + max(settings.warm_up_s, 0.0)
        self._backlog = float("inf")

    def refused(self, now: float, why: str) -> None:
        """The decision could not be carried out: the policy is asked again after an interval."""
        record = self._ended(f"refused: {why}")
        self._next = now + record.seen.settings.interval_s

    def disturbed(self) -> None:
        """The stream stood still, or keys moved, for other reasons than a decision: the backlog that this leaves is not demand either."""
        self._backlog = float("inf")

    def _catching_up(self, snapshot: DataflowSnapshot) -> bool:
        """After a change or a disturbance: whether sources have more to read than an interval brings, less than before, and soon none.

        Soon is within `catch_up_s`, at the pace since the look before; any time where it isn't set.
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
            raise RequestError("no scaling decision is under way: observe() gives one, carried_out() or refused() ends it")
        return self._history[-1].time

    def _ended(self, done: str) -> DecisionRecord:
        self._decided_at()
        self._under_way = False
        self._history[-1] = replace(self._history[-1], done=done)
        return self._history[-1]
