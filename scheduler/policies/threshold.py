"""Target utilisation: every operator is to be busy for a given share of the time, by its busiest instance.

Apache Flink's autoscaler (Flink Kubernetes operator, JobVertexScaler and ScalingMetricEvaluator):

    capacity = arriving / target_utilisation + backlog / catch_up_s + arriving * reconfiguration_s / catch_up_s
    workers  = ceil(parallelism * capacity / rate)
    rate     = sum over instances of their processing rates / utilisation of the busiest instance

An operator is not changed while (arriving + backlog / catch_up_s) / rate is within `utilisation_band` of the target; the upper
end is never over 1. It includes the lessons of its users: the busiest instance counts, not the mean, or skew hides; no scaling
down while a backlog is worked off; fewer workers must have been enough for `scale_down_delay_s`, and the most of that time are
kept; the time of a change is measured, not configured; and if more workers bring next to nothing, no more follow. As in
JobVertexScaler's `detectIneffectiveScaleUp`, every observation judges the last scale-out again, by the present rate, so one bad
observation has no lasting effect:

    effect = (rate now - rate then) / (expected - rate then),   at least `least_effect` (scaling.effectiveness.threshold)

Invariant: while an operator has the workers of its last scale-out, it gets more only if these bring at least `least_effect` of
the expected gain.

>>> from .dataflow.figures import OperatorFigures
>>> o = OperatorFigures("o", 2, source_rate=100, true_processing_rate=40)
>>> ThresholdPolicy(target_utilisation=0.5).decide(DataflowSnapshot((o,)), ThresholdMemory())[0].parallelism
{'o': 10}
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from ...engine.time.duration import Duration, seconds
from ..checks import LEAST_POSITIVE, between, duration, share
from .base import ScalingPolicy
from .bounds import within_bounds
from .dataflow.demand import arrivals, backlog_over, whole_workers
from .dataflow.figures import OperatorFigures
from .dataflow.snapshot import DataflowSnapshot
from .decision import ScalingDecision


@dataclass(frozen=True, slots=True)
class Down:
    """Fewer workers have been enough for `operator` since `since` (seconds): at most `workers` of them."""

    operator: str
    since: float
    workers: int


@dataclass(frozen=True, slots=True)
class Up:
    """A scale-out: `operator` got `workers` at the rate `rate` (records/s), and was expected to reach the rate `expected`. That is the
    capacity asked for, or less where the bounds allow fewer workers.
    """

    operator: str
    workers: int
    rate: float
    expected: float


@dataclass(frozen=True, slots=True)
class ThresholdMemory:
    """`downs`: operators that could do with less; `ups`: the last scale-out of each that still has the workers of it."""

    downs: tuple[Down, ...] = ()
    ups: tuple[Up, ...] = ()


@dataclass(frozen=True, slots=True)
class _Seen:
    """An operator's rate by its busiest instance, its capacity to ask for, and the demand over its rate."""

    rate: float
    capacity: float
    usage: float


@dataclass(frozen=True, slots=True)
class ThresholdPolicy(ScalingPolicy[ThresholdMemory]):
    """A policy that keeps every operator busy for a share of the time, by the rules of Flink's autoscaler.

    Operators are to be busy for `target_utilisation` of the time, and are not changed within `utilisation_band` of it; fewer
    workers must have been enough for `scale_down_delay`; if more workers brought less than `least_effect` of the expected gain,
    no more are added.

    Raises FlowError, naming the setting, for impossible values.
    """

    name: ClassVar[str] = "threshold"

    target_utilisation: float = 0.7
    utilisation_band: float = 0.3
    scale_down_delay: Duration = "1m"
    least_effect: float = 0.1

    def __post_init__(self) -> None:
        between(self, LEAST_POSITIVE, 1, "target_utilisation")
        share(self, "utilisation_band", "least_effect")
        duration(self, "scale_down_delay")

    def start(self) -> ThresholdMemory:
        return ThresholdMemory()

    def at_once(self) -> Self:
        return replace(self, scale_down_delay=0)

    def decide(self, snapshot: DataflowSnapshot, memory: ThresholdMemory) -> tuple[ScalingDecision, ThresholdMemory]:
        seen, delay = _seen(snapshot, self.target_utilisation), seconds(self.scale_down_delay)
        low = self.target_utilisation - self.utilisation_band
        high = min(1.0, self.target_utilisation + self.utilisation_band)
        ups = {up.operator: up for up in memory.ups if snapshot.parallelism.get(up.operator) == up.workers}
        wanted: dict[str, int] = {}
        notes: list[str] = []
        downs: list[Down] = []
        for name, figures in seen.items():
            now = snapshot.operator(name).parallelism
            workers = whole_workers(now * figures.capacity / figures.rate)
            busy = f"{name} would be busy for {figures.usage:.0%} of the time with its {now} workers"
            if figures.usage > high * (1 + 1e-9) and workers > now:
                if name in ups and _in_vain(ups[name], figures.rate, self.least_effect):
                    notes.append(f"{busy}, but more of them brought next to nothing")
                else:
                    wanted[name] = workers
                    notes.append(busy)
            elif figures.usage < low and workers < now:
                down = _since(memory, name, snapshot.time, workers)
                downs.append(down)
                if snapshot.time - down.since >= delay and not _backlog(snapshot):
                    wanted[name] = down.workers
                waited = f"have been enough for {snapshot.time - down.since:g} s" if delay else "are enough"
                notes.append(f"{busy}, {down.workers} {waited}")
        changed, clipped = within_bounds(snapshot, wanted)
        for name, workers in changed.items():
            now = snapshot.operator(name).parallelism
            if name in seen and workers > now:
                rate = seen[name].rate
                ups[name] = Up(name, workers, rate, min(seen[name].capacity, rate * workers / now))
        memory = ThresholdMemory(tuple(down for down in downs if down.operator not in changed), tuple(ups.values()))
        notes = notes or [f"no operator needs more workers, or fewer, to be busy for {max(low, 0.0):.0%} to {high:.0%} of the time"]
        return ScalingDecision(changed, reason="; ".join([*(notes if seen else ()), *clipped, *_unknown(snapshot, seen)])), memory


def busiest_rate(operator: OperatorFigures) -> float | None:
    """Return the rate (records/s) of an operator whose busiest instance is busy all the time; None if unknown."""
    busiest = max((one.utilisation for one in operator.instances if one.utilisation is not None), default=0.0)
    if busiest > 0 and operator.observed_processing_rate:
        return operator.observed_processing_rate / busiest
    return operator.true_processing_rate


def _seen(snapshot: DataflowSnapshot, target_utilisation: float) -> dict[str, _Seen]:
    settings, seen = snapshot.settings, {}
    arriving = arrivals(snapshot)
    backlog = arrivals(snapshot, backlog_over(settings.catch_up_s)) if settings.catch_up_s is not None else {}
    for name in snapshot.order:
        rate, steady, extra = busiest_rate(snapshot.operator(name)), arriving[name], backlog.get(name) or 0.0
        if not rate or steady is None:
            continue
        missed = steady * snapshot.reconfiguration_s / settings.catch_up_s if settings.catch_up_s is not None else 0.0
        seen[name] = _Seen(rate, steady / target_utilisation + extra + missed, (steady + extra) / rate)
    return seen


def _unknown(snapshot: DataflowSnapshot, seen: Mapping[str, _Seen]) -> list[str]:
    """Return a note for each operator that can't be judged; sources that count no input take any demand, and need none unless
    they are alone.
    """
    arriving = arrivals(snapshot)
    unknown = [name for name in snapshot.order if name not in seen and (snapshot.inputs(name) or arriving[name] is None or not seen)]
    return [f"{name} stays unchanged: its demand or its rate is not known" for name in unknown]


def _in_vain(up: Up, rate: float, least_effect: float) -> bool:
    """Return True if an operator's last scale-out has gained too little, by its present rate."""
    return rate - up.rate < least_effect * (up.expected - up.rate)


def _since(memory: ThresholdMemory, name: str, time: float, workers: int) -> Down:
    before = next((down for down in memory.downs if down.operator == name), None)
    return Down(name, time, workers) if before is None else Down(name, before.since, max(before.workers, workers))


def _backlog(snapshot: DataflowSnapshot) -> bool:
    """Return True if sources have a backlog above an interval's input."""
    arriving = arrivals(snapshot)
    return any(snapshot.operator(name).queue_records > snapshot.settings.interval_s * (arriving[name] or 0.0) for name in snapshot.sources)
