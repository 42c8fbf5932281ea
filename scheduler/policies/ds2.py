"""DS2: the workers that every operator needs for the rates from outside, all at once.

Kalavri, Liagouris, Hoffmann, Dimitrova, Forshaw, Roscoe: Three steps is all you need, OSDI 2018, equations 7 and 8:

    workers(i) = ceil(arriving(i) / (true processing rate(i) / parallelism(i)))

where `arriving` is the demand from outside carried through the dataflow (`demand.py`). If operators scale linearly, one step is
enough: it doesn't overshoot when scaling up nor undershoot when scaling down. Operators of one chain share their workers, so
their needs add up.

Additions, as in the paper's section 4.2: the median of the last `activation_window` suggestions is decided; `target_ratio`
corrects for costs that the measured rates don't show; changes below `min_change` are noise, and so are those that would undo the
last one for next to nothing (`turns.py`); a change that made things worse is rolled back and not repeated while the demand is the
same.

The model averages, so skew defeats it. If the busiest worker gets more than it can process although the operator as a whole has
enough workers, more would not help: the operator is named for a rebalance (`skew.py`), and keeps its workers until that is done.

Invariant: at linear scaling the decision is a fixed point: applied to its own outcome, it changes nothing.

>>> from .dataflow.figures import OperatorFigures
>>> from .dataflow.snapshot import Edge
>>> o2 = OperatorFigures("o2", 2, true_processing_rate=1000, true_output_rate=3800)
>>> snapshot = DataflowSnapshot((OperatorFigures("src", 1, source_rate=2000), o2), (Edge("src", "o2"),))
>>> Ds2().decide(snapshot, Ds2Memory())[0].parallelism
{'o2': 4}
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from statistics import median_high
from typing import ClassVar, Self

from ...balancer.snapshot import LEAST
from ..checks import positive, share, whole
from .base import ScalingPolicy
from .bounds import within_bounds
from .dataflow.demand import arrivals, backlog_over, whole_workers, workers_needed
from .dataflow.figures import OperatorFigures
from .dataflow.shortfall import got_through, slowest_through, total_met, total_offered, total_read
from .dataflow.skew import capacity, hot_operators
from .dataflow.snapshot import DataflowSnapshot
from .decision import ScalingDecision
from .turns import Noise, Turn, after_change, steady

Plan = tuple[tuple[str, int], ...]
"""Operators and their workers, in topological order."""

MOST_CORRECTION = 2.0
"""The largest correction: if the measured rates were further off, more workers would not be the answer."""


MOST_STARVATION = 0.2
"""The share of time that an operator may wait for a CPU. Above it, that wait holds the operator back, and not a lack of
workers.
"""


@dataclass(frozen=True, slots=True)
class AppliedChange:
    """A change of workers whose effect is still judged: the workers `before` and `after`, and rates when it was decided
    (records/s).

    `met`: the satisfied part of the demand; `processed`: the demand that the slowest operator's processing corresponds to, None
    if unknown; `demand`: the whole demand. `worse`: observations in a row since then that were worse.
    """

    before: Plan
    after: Plan
    met: float
    processed: float | None
    demand: float
    worse: int = 0


@dataclass(frozen=True, slots=True)
class Ds2Memory:
    """The state between decisions.

    `suggestions`: since the last change, newest last. `change`: a decision that hasn't been judged. `rolled_back`: the change
    that was rolled back. `correction`: the factor on the demand, for costs that the measured rates don't show. `turns`: the last
    change of each operator.
    """

    suggestions: tuple[Plan, ...] = ()
    change: AppliedChange | None = None
    rolled_back: AppliedChange | None = None
    correction: float = 1.0
    turns: tuple[Turn, ...] = ()


@dataclass(frozen=True, slots=True)
class Ds2(ScalingPolicy[Ds2Memory]):
    """The default policy: the workers that every operator needs for the demand from outside, all at once.

    The median of `activation_window` suggestions is decided; sources that get `target_ratio` of their demand through are fine. A
    change of fewer than `min_change` workers everywhere is noise. So is one that would undo an operator's last change although
    its need has changed by less than `turn_change` (a share) since. A change is rolled back after `rollback_looks` observations
    in a row with at least `rollback_loss` of the rate missing. `skew_tolerance`: a worker with this multiple of the least
    possible load is hot, and a rebalance may help it.

    Raises FlowError, naming the setting, for impossible values.

    >>> Ds2(min_change=2).at_once().activation_window
    1
    """

    name: ClassVar[str] = "ds2"

    activation_window: int = 1
    target_ratio: float = 0.95
    min_change: int = 1
    rollback_loss: float = 0.1
    rollback_looks: int = 2
    turn_change: float = 0.1
    skew_tolerance: float = 1.1

    def __post_init__(self) -> None:
        whole(self, 1, "activation_window", "min_change", "rollback_looks")
        share(self, "target_ratio", "rollback_loss", "turn_change")
        positive(self, "skew_tolerance")

    def start(self) -> Ds2Memory:
        return Ds2Memory()

    def at_once(self) -> Self:
        return replace(self, activation_window=1)

    def decide(self, snapshot: DataflowSnapshot, memory: Ds2Memory) -> tuple[ScalingDecision, Ds2Memory]:
        current = _plan(snapshot.parallelism, snapshot)
        if memory.change is not None and memory.change.after == current:
            worse = _got_worse(snapshot, memory.change, self.rollback_loss)
            change = replace(memory.change, worse=memory.change.worse + 1) if worse else None
            memory = replace(memory, change=None, suggestions=())
            if change is not None:
                return _judged(snapshot, change, memory, self.rollback_looks)
        memory = _corrected(snapshot, memory, self.target_ratio)
        needed, unknown = needs(snapshot, memory.correction)
        hot = hot_operators(snapshot, needed, self.skew_tolerance)
        kept = {name for one in hot for name in snapshot.chained(one)}
        suggestion = _plan({name: whole_workers(need) for name, need in needed.items() if name not in kept}, snapshot)
        memory = replace(memory, suggestions=(*memory.suggestions, suggestion)[-self.activation_window :])
        if len(memory.suggestions) < self.activation_window:
            count = f"{len(memory.suggestions)} of {self.activation_window}"
            return ScalingDecision(reason=f"{count} observations that a decision takes"), memory
        wanted, notes = within_bounds(snapshot, _median(memory.suggestions))
        if not _worth_it(snapshot, wanted, self.min_change):
            wanted, notes = {}, (f"fewer than {self.min_change} workers more or less are noise",)
        wanted, held = steady(memory.turns, wanted, needed, snapshot, Noise(self.turn_change, self.target_ratio))
        notes += (*held, *_told(memory.correction))
        if _was_rolled_back(memory, snapshot, wanted, self.rollback_loss):
            wanted, notes = {}, ("what would be decided was rolled back at this demand",)
        if wanted:
            after = _plan({**snapshot.parallelism, **wanted}, snapshot)
            memory = replace(
                memory,
                change=AppliedChange(current, after, total_met(snapshot), _processed(snapshot), total_offered(snapshot)),
                suggestions=(),
                turns=after_change(memory.turns, wanted, needed, snapshot),
            )
        return ScalingDecision(wanted, rebalance=tuple(hot), reason=_reason(snapshot, needed, wanted, hot, unknown, notes)), memory


def _judged(snapshot: DataflowSnapshot, change: AppliedChange, memory: Ds2Memory, looks: int) -> tuple[ScalingDecision, Ds2Memory]:
    """Roll a change back if things were worse for `looks` observations: one observation may fall into a pause of sources that read in
    bursts.
    """
    worse = f"{_numbers(change.after, change.before)} made it worse, sources read {total_read(snapshot):g} records/s"
    if change.worse < looks:
        reason = f"{worse}; {change.worse} of {looks} observations that a rollback takes"
        return ScalingDecision(reason=reason), replace(memory, change=change)
    back, _ = within_bounds(snapshot, dict(change.before))
    return ScalingDecision(back, reason=f"rolled back: {worse}"), replace(memory, rolled_back=change)


def needs(snapshot: DataflowSnapshot, correction: float = 1.0) -> tuple[dict[str, float], tuple[str, ...]]:
    """Return the unrounded number of workers that every operator needs, and the operators for which it isn't known.

    A source without a known true rate takes any demand; it is in neither result.
    """
    settings = snapshot.settings
    arriving = arrivals(snapshot)
    extra = arrivals(snapshot, backlog_over(settings.catch_up_s)) if settings.catch_up_s is not None else {}
    each: dict[str, float | None] = {}
    for name, rate in arriving.items():
        total = None if rate is None else (rate + (extra.get(name) or 0.0)) * correction
        each[name] = workers_needed(snapshot, snapshot.operator(name), total)
    needed: dict[str, float] = {}
    unknown: list[str] = []
    for name in snapshot.order:
        parts = [each[other] for other in snapshot.chained(name)]
        known = [part for part in parts if part is not None]
        if len(known) == len(parts):
            needed[name] = sum(known)
        elif snapshot.inputs(name) or arriving[name] is None:
            unknown.append(name)
    return needed, tuple(unknown)


def _was_rolled_back(memory: Ds2Memory, snapshot: DataflowSnapshot, wanted: dict[str, int], loss: float) -> bool:
    """Return True if `wanted` was rolled back, and the demand has stayed within `loss`, a share of it, since."""
    if memory.rolled_back is None or not wanted:
        return False
    close = abs(total_offered(snapshot) - memory.rolled_back.demand) <= loss * memory.rolled_back.demand
    return close and _plan({**snapshot.parallelism, **wanted}, snapshot) == memory.rolled_back.after


def _got_worse(snapshot: DataflowSnapshot, change: AppliedChange, loss: float) -> bool:
    """Return True if sources read less than before, by the share `loss`, at a demand that didn't fall, and operators process less.

    Sources alone are not enough: they read in bursts, ahead of rows that then wait in queues.
    """
    offered, processed = total_offered(snapshot), _processed(snapshot)
    reads_less = total_met(snapshot) < (1 - loss) * min(change.met, offered)
    if processed is None or change.processed is None:
        return reads_less
    return reads_less and processed < (1 - loss / 2) * min(change.processed, offered)


def _processed(snapshot: DataflowSnapshot) -> float | None:
    part = slowest_through(snapshot)
    return None if part is None else part * total_offered(snapshot)


def _corrected(snapshot: DataflowSnapshot, memory: Ds2Memory, target_ratio: float) -> Ds2Memory:
    """Raise the correction if the sources wait for credit, and less gets through than the measured rates suggest, skew included.
    `target_ratio` of that is enough.

    If the workers should be enough, the whole shortfall is corrected. If they aren't, DS2 requests more of them anyway; the
    correction ensures that these are not fewer than at the demand for which the workers should just be enough. The shortfall is
    at most the input that the sources would read in the time for which they wait: next to nothing of a stream that has just
    begun. If workers are so many that no correction explains the shortfall, something else holds the stream back.
    """
    through = got_through(snapshot)
    needed, unknown = needs(snapshot, memory.correction)
    if unknown or not needed or through <= 0:
        return memory
    if through >= target_ratio:
        return _refuted(snapshot, memory, needed, through)
    held_back = _held_back(snapshot)
    if not held_back or any(_starved(snapshot.operator(name)) for name in snapshot.order):
        return memory
    enough = min(capacity(snapshot.operator(name), need) * _with_cpu(snapshot.operator(name)) for name, need in needed.items())
    expected, unheld = min(1.0, enough), through / max(1.0 - held_back, LEAST)
    if through >= target_ratio * min(expected, unheld):
        return memory
    if enough > 1 and memory.correction * enough / through > MOST_CORRECTION:
        return memory
    correction = max(1.0, expected * min(expected, unheld) / through)
    return replace(memory, correction=min(MOST_CORRECTION, memory.correction * correction))


def _refuted(snapshot: DataflowSnapshot, memory: Ds2Memory, needed: dict[str, float], through: float) -> Ds2Memory:
    """Lower a correction that is too large: these workers do get that much of the demand through."""
    enough = min(capacity(snapshot.operator(name), need) for name, need in needed.items())
    return replace(memory, correction=max(1.0, memory.correction * min(1.0, enough / through)))


def _held_back(snapshot: DataflowSnapshot) -> float:
    """Return the share of time that a worker of the most blocked source waits for credit."""
    sources = [snapshot.operator(name) for name in snapshot.sources]
    return max((min(1.0, source.backpressure / source.parallelism) for source in sources), default=0.0)


def _told(correction: float) -> tuple[str, ...]:
    return () if correction == 1.0 else (f"needs are {correction:.2f} times those of the measured rates, at which less got through",)


def _starved(operator: OperatorFigures) -> bool:
    return operator.starvation > MOST_STARVATION * operator.parallelism


def _with_cpu(operator: OperatorFigures) -> float:
    """Return the share of time that an operator doesn't wait for a CPU."""
    return 1.0 - operator.starvation / operator.parallelism


def _worth_it(snapshot: DataflowSnapshot, wanted: dict[str, int], min_change: int) -> bool:
    current = snapshot.parallelism
    return not wanted or max(abs(workers - current[name]) for name, workers in wanted.items()) >= min_change


def _median(suggestions: tuple[Plan, ...]) -> dict[str, int]:
    each: dict[str, list[int]] = {}
    for suggestion in suggestions:
        for name, workers in suggestion:
            each.setdefault(name, []).append(workers)
    newest = dict(suggestions[-1])
    return {name: median_high(workers) for name, workers in each.items() if name in newest}


def _plan(workers: dict[str, int], snapshot: DataflowSnapshot) -> Plan:
    return tuple((name, workers[name]) for name in snapshot.order if name in workers)


def _numbers(after: Plan, before: Plan) -> str:
    was = dict(before)
    return ", ".join(f"{name} {was[name]} -> {workers}" for name, workers in after if workers != was[name])


def _reason(
    snapshot: DataflowSnapshot,
    needed: dict[str, float],
    wanted: dict[str, int],
    hot: dict[str, str],
    unknown: tuple[str, ...],
    notes: tuple[str, ...],
) -> str:
    short = (name for name, need in needed.items() if name not in wanted and whole_workers(need) > snapshot.operator(name).parallelism)
    parts = [
        f"{name} needs {needed[name]:.2f} workers and has {snapshot.operator(name).parallelism}"
        for name in (*wanted, *short)
        if name in needed
    ]
    parts += hot.values()
    if not parts and needed:
        parts = [f"every operator{' whose need is known' if unknown else ''} has the workers that the demand needs"]
    elif not parts and not unknown:
        parts = ["no operator's need is known: none has a true rate"]
    parts += [f"{name} stays unchanged: its true rates, or those of what feeds it, are not known" for name in unknown]
    parts += [f"{name} waits for a CPU; more workers would not add one" for name in snapshot.order if _starved(snapshot.operator(name))]
    return "; ".join([*parts, *notes])
