"""DS2: the workers that every operator needs for the rates from outside, all at once.

Kalavri, Liagouris, Hoffmann, Dimitrova, Forshaw, Roscoe: Three steps is all you need, OSDI 2018, equations 7 and 8:

    workers(i) = ceil(arriving(i) / (true processing rate(i) / parallelism(i)))

where `arriving` is the demand from outside carried through the dataflow (`demand.py`). If operators scale linearly, one step is enough: it
doesn't overshoot when scaling up nor undershoot when scaling down. Operators of one chain share their workers, so their needs add up.

Around it, as in the paper's section 4.2: the median of the last `activation_window` suggestions is decided; `target_ratio` corrects for
what the measured rates don't show; changes below `min_change` are noise, and so is what would undo the last one for next to nothing
(`turns.py`); a change that made things worse is rolled back and not tried again while the demand is the same.

The model averages, so skew defeats it. Where the busiest worker gets more than it can do although the operator as a whole has enough, more
workers would not help: the operator is named for a rebalance (`skew.py`), and keeps its workers until that has been done.

Invariant: at linear scaling the decision is a fixed point: applied to what it leads to, it changes nothing.

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
from typing import ClassVar

from ...balancer.snapshot import LEAST
from .base import Policy
from .bounds import within_bounds
from .dataflow.demand import arrivals, backlog_over, whole_workers, workers_needed
from .dataflow.figures import OperatorFigures
from .dataflow.settings import PolicySettings
from .dataflow.shortfall import got_through, slowest_through, total_met, total_offered, total_read
from .dataflow.skew import capacity, hot_operators
from .dataflow.snapshot import DataflowSnapshot
from .decision import ScalingDecision
from .turns import Turn, after_change, steady

Plan = tuple[tuple[str, int], ...]
"""Operators and their workers, in topological order."""

MOST_CORRECTION = 2.0
"""If the measured rates were off by more than this, more workers would not be the answer."""


MOST_STARVATION = 0.2
"""The part of its time for which an operator may wait for a CPU before that, and not too few workers, is what holds it back."""


@dataclass(frozen=True, slots=True)
class Change:
    """A decision: the workers `before` and `after`; when it was made, records/s of the demand that were met, that the slowest operator's
    processing stands for (None: not known), and that were to be read. `worse`: looks in a row after it at which it had made things worse.
    """

    before: Plan
    after: Plan
    met: float
    processed: float | None
    demand: float
    worse: int = 0


@dataclass(frozen=True, slots=True)
class Ds2Memory:
    """`suggestions`: since the last change, newest last. `change`: a decision that hasn't been judged. `refused`: what was rolled back.
    `correction`: what the demand is multiplied by, for what the measured rates don't show. `turns`: the last change of each operator.
    """

    suggestions: tuple[Plan, ...] = ()
    change: Change | None = None
    refused: Change | None = None
    correction: float = 1.0
    turns: tuple[Turn, ...] = ()


class Ds2(Policy[Ds2Memory]):
    """The default policy."""

    name: ClassVar[str] = "ds2"

    def start(self) -> Ds2Memory:
        return Ds2Memory()

    def at_once(self, settings: PolicySettings) -> PolicySettings:
        return replace(settings, activation_window=1)

    def decide(self, snapshot: DataflowSnapshot, memory: Ds2Memory) -> tuple[ScalingDecision, Ds2Memory]:
        settings, current = snapshot.settings, _plan(snapshot.parallelism, snapshot)
        if memory.change is not None and memory.change.after == current:
            change = replace(memory.change, worse=memory.change.worse + 1) if _got_worse(snapshot, memory.change) else None
            memory = replace(memory, change=None, suggestions=())
            if change is not None:
                return _judged(snapshot, change, memory)
        memory = _corrected(snapshot, memory)
        needed, unknown = needs(snapshot, memory.correction)
        hot = hot_operators(snapshot, needed)
        kept = {name for one in hot for name in snapshot.chained(one)}
        suggestion = _plan({name: whole_workers(need) for name, need in needed.items() if name not in kept}, snapshot)
        memory = replace(memory, suggestions=(*memory.suggestions, suggestion)[-settings.activation_window :])
        if len(memory.suggestions) < settings.activation_window:
            return ScalingDecision(reason=f"{len(memory.suggestions)} of {settings.activation_window} looks that a decision takes"), memory
        wanted, notes = within_bounds(snapshot, _median(memory.suggestions))
        if not _worth_it(snapshot, wanted):
            wanted, notes = {}, (f"fewer than {settings.min_change} workers more or less are noise",)
        wanted, held = steady(memory.turns, wanted, needed, snapshot)
        notes += (*held, *_told(memory.correction))
        if refused(memory, snapshot, wanted):
            wanted, notes = {}, ("what would be decided was rolled back at this demand",)
        if wanted:
            after = _plan({**snapshot.parallelism, **wanted}, snapshot)
            memory = replace(
                memory,
                change=Change(current, after, total_met(snapshot), _processed(snapshot), total_offered(snapshot)),
                suggestions=(),
                turns=after_change(memory.turns, wanted, needed, snapshot),
            )
        return ScalingDecision(wanted, rebalance=tuple(hot), reason=_reason(snapshot, needed, wanted, hot, unknown, notes)), memory


def _judged(snapshot: DataflowSnapshot, change: Change, memory: Ds2Memory) -> tuple[ScalingDecision, Ds2Memory]:
    """Back to what was before, if things were worse for long enough: a single look may fall into a pause of sources that read in bursts."""
    looks = snapshot.settings.rollback_looks
    worse = f"{_numbers(change.after, change.before)} made it worse, sources read {total_read(snapshot):g} records/s"
    if change.worse < looks:
        return ScalingDecision(reason=f"{worse}; {change.worse} of {looks} looks that a rollback takes"), replace(memory, change=change)
    back, _ = within_bounds(snapshot, dict(change.before))
    return ScalingDecision(back, reason=f"rolled back: {worse}"), replace(memory, refused=change)


def needs(snapshot: DataflowSnapshot, correction: float = 1.0) -> tuple[dict[str, float], tuple[str, ...]]:
    """The workers that every operator needs, not rounded, and the operators for which that isn't known.

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


def refused(memory: Ds2Memory, snapshot: DataflowSnapshot, wanted: dict[str, int]) -> bool:
    """Whether `wanted` is what was rolled back, while the demand is what it was then, give or take `rollback_loss`."""
    if memory.refused is None or not wanted:
        return False
    close = abs(total_offered(snapshot) - memory.refused.demand) <= snapshot.settings.rollback_loss * memory.refused.demand
    return close and _plan({**snapshot.parallelism, **wanted}, snapshot) == memory.refused.after


def _got_worse(snapshot: DataflowSnapshot, change: Change) -> bool:
    """Whether sources read less than before, at a demand that didn't fall, and operators process less.

    Sources alone don't tell: they read in bursts, ahead of what then waits in queues.
    """
    offered, loss, processed = total_offered(snapshot), snapshot.settings.rollback_loss, _processed(snapshot)
    reads_less = total_met(snapshot) < (1 - loss) * min(change.met, offered)
    if processed is None or change.processed is None:
        return reads_less
    return reads_less and processed < (1 - loss / 2) * min(change.processed, offered)


def _processed(snapshot: DataflowSnapshot) -> float | None:
    part = slowest_through(snapshot)
    return None if part is None else part * total_offered(snapshot)


def _corrected(snapshot: DataflowSnapshot, memory: Ds2Memory) -> Ds2Memory:
    """With a larger correction where the sources wait for credit, and less gets through than the measured rates say, skew included.

    Where the workers should be enough, all that is missing is corrected. Where they are not, DS2 asks for more of them anyway; the
    correction sees to it that these are not fewer than it would ask for at the demand for which the workers should just be enough.
    No more is missing than what the sources would read in the time for which they wait: of a stream that has just begun, hardly anything.
    Where workers are so many that no correction explains why less gets through, something else holds the stream back.
    """
    through = got_through(snapshot)
    needed, unknown = needs(snapshot, memory.correction)
    if unknown or not needed or through <= 0:
        return memory
    if through >= snapshot.settings.target_ratio:
        return _refuted(snapshot, memory, needed, through)
    held_back = _held_back(snapshot)
    if not held_back or any(_starved(snapshot.operator(name)) for name in snapshot.order):
        return memory
    enough = min(capacity(snapshot.operator(name), need) * _with_cpu(snapshot.operator(name)) for name, need in needed.items())
    expected, unheld = min(1.0, enough), through / max(1.0 - held_back, LEAST)
    if through >= snapshot.settings.target_ratio * min(expected, unheld):
        return memory
    if enough > 1 and memory.correction * enough / through > MOST_CORRECTION:
        return memory
    correction = max(1.0, expected * min(expected, unheld) / through)
    return replace(memory, correction=min(MOST_CORRECTION, memory.correction * correction))


def _refuted(snapshot: DataflowSnapshot, memory: Ds2Memory, needed: dict[str, float], through: float) -> Ds2Memory:
    """With a correction that is no larger than it can be: these workers do get that much of the demand through."""
    enough = min(capacity(snapshot.operator(name), need) for name, need in needed.items())
    return replace(memory, correction=max(1.0, memory.correction * min(1.0, enough / through)))


def _held_back(snapshot: DataflowSnapshot) -> float:
    """The part of its time for which a worker of the source that waits most waits for credit."""
    sources = [snapshot.operator(name) for name in snapshot.sources]
    return max((min(1.0, source.backpressure / source.parallelism) for source in sources), default=0.0)


def _told(correction: float) -> tuple[str, ...]:
    return () if correction == 1.0 else (f"needs are {correction:.2f} times those of the measured rates, at which less got through",)


def _starved(operator: OperatorFigures) -> bool:
    return operator.starvation > MOST_STARVATION * operator.parallelism


def _with_cpu(operator: OperatorFigures) -> float:
    """The part of its time for which it doesn't wait for a CPU."""
    return 1.0 - operator.starvation / operator.parallelism


def _worth_it(snapshot: DataflowSnapshot, wanted: dict[str, int]) -> bool:
    current = snapshot.parallelism
    return not wanted or max(abs(workers - current[name]) for name, workers in wanted.items()) >= snapshot.settings.min_change


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
    parts += [f"{name} is left as it is: its true rates, or those of what feeds it, are not known" for name in unknown]
    parts += [f"{name} waits for a CPU; more workers would not add one" for name in snapshot.order if _starved(snapshot.operator(name))]
    return "; ".join([*parts, *notes])
