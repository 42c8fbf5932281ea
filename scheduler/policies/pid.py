"""PID: a controller that sees the dataflow as a black box with one dial, the number of workers, and one gauge, the latency.

Åström, Hägglund: Advanced PID Control, 2006, equation 3.2, for the error e = ln(latency / target), which weighs twice and half the target
alike:

    u       = Kp * e + Ki * integral of e + Kd * de/dt
    workers = round(workers at the start * exp(u)),    the same factor for every operator

The lecture's verdict holds: it finds no bottleneck, so that all operators grow with the slow one, and it is as good as its gains. Latency
hardly changes over a wide range of workers and jumps at the last one: with large gains, or a target between two numbers of workers, it
swings between them for ever. `band` calls a range of latencies good enough; the error is cut at e = 2 either way, and the integral
stands still while every operator is at a bound, and counts no time in which the controller wasn't asked.

Invariant: within the band of the target, and without derivative gain, the number of workers stays as it is.

>>> from .dataflow.figures import OperatorFigures
>>> from .dataflow.settings import PolicySettings
>>> o = OperatorFigures("o", 4, latency_ms=300)
>>> PidPolicy().decide(DataflowSnapshot((o,), settings=PolicySettings(latency_target_ms=100)), PidMemory())[0].parallelism
{'o': 6}
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, floor, log
from typing import ClassVar

from ...engine.errors import FlowError
from ..checks import MOST, between
from .base import ScalingPolicy
from .bounds import largest, smallest, within_bounds
from .dataflow.snapshot import DataflowSnapshot, sink_latencies
from .decision import ScalingDecision

MOST_ERROR = 2.0
"""A latency over e**2, about 7, times the target is a backlog, which says nothing of how many workers it takes."""


@dataclass(frozen=True, slots=True)
class PidMemory:
    """`base`: the workers that every operator had at the start; `integral`: of the error, in seconds; `error`, `time`: of the
    last look.
    """

    base: tuple[tuple[str, int], ...] = ()
    integral: float = 0.0
    error: float | None = None
    time: float = 0.0


@dataclass(frozen=True, slots=True)
class PidPolicy(ScalingPolicy[PidMemory]):
    """A PID controller of the latency, which gives every operator the same factor. It needs a latency target.

    `proportional`, `integral` (per second) and `derivative` (seconds) are the gains of the error, its integral and its
    derivative. The error is 0 from `band` times the target to the target.

    Raises FlowError, naming the setting, for impossible values.
    """

    name: ClassVar[str] = "pid"

    proportional: float = 0.2
    integral: float = 0.01
    derivative: float = 0.0
    band: float = 0.1

    def __post_init__(self) -> None:
        between(self, 0, MOST, "proportional", "integral", "derivative", "band")

    @property
    def needs_latency(self) -> bool:
        return True

    def start(self) -> PidMemory:
        return PidMemory()

    def decide(self, snapshot: DataflowSnapshot, memory: PidMemory) -> tuple[ScalingDecision, PidMemory]:
        settings = snapshot.settings
        target = settings.latency_target_ms
        if target is None:
            raise FlowError("policy `pid` needs latency_target_ms: the latency that it is to keep")
        latency = max(sink_latencies(snapshot).values(), default=0.0)
        if latency <= 0:
            return ScalingDecision(reason="no operator's latency is known"), memory
        base = _base(snapshot, memory)
        error = _error(latency, target, self.band)
        seconds = settings.interval_s if memory.error is None else min(snapshot.time - memory.time, settings.interval_s)
        slope = 0.0 if memory.error is None or seconds <= 0 else (error - memory.error) / seconds
        integral = memory.integral + error * seconds
        factor = self._factor(error, integral, slope)
        if _at_bounds(snapshot, base, factor, error):
            integral = memory.integral
        wanted = {name: max(1, floor(workers * factor + 0.5)) for name, workers in base.items()}
        changed, notes = within_bounds(snapshot, wanted)
        reason = f"latency is {latency:.1f} ms, the target {target:g} ms: {factor:.2f} times the workers of the start"
        return ScalingDecision(changed, reason="; ".join([reason, *notes])), PidMemory(tuple(base.items()), integral, error, snapshot.time)

    def _factor(self, error: float, integral: float, slope: float) -> float:
        output = self.proportional * error + self.integral * integral + self.derivative * slope
        return exp(min(max(output, -20.0), 20.0))


def _base(snapshot: DataflowSnapshot, memory: PidMemory) -> dict[str, int]:
    """Return the workers at the start, which is now if the operators have changed."""
    dial = _dial(snapshot)
    known = dict(memory.base)
    return known if set(known) == set(dial) else {name: snapshot.operator(name).parallelism for name in dial}


def _dial(snapshot: DataflowSnapshot) -> tuple[str, ...]:
    """Return the operators whose workers are controlled: not the sources, whose latency isn't seen."""
    return tuple(name for name in snapshot.order if snapshot.inputs(name)) or snapshot.order


def _error(latency: float, target: float, band: float) -> float:
    if band * target <= latency <= target:
        return 0.0
    nearest = target if latency > target else band * target
    return min(max(log(latency) - log(nearest), -MOST_ERROR), MOST_ERROR)


def _at_bounds(snapshot: DataflowSnapshot, base: dict[str, int], factor: float, error: float) -> bool:
    """Return True if the controller requests numbers out of bounds for every operator."""
    operators = [snapshot.operator(name) for name in base]
    if error > 0:
        return all(base[operator.name] * factor > largest(operator, snapshot.settings) for operator in operators)
    return error < 0 and all(base[operator.name] * factor < smallest(operator, snapshot.settings) for operator in operators)
