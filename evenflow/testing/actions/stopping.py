"""Stops simulated jobs at random moments and continues them in another run: together, the runs must give the rows of a single run.

>>> import evenflow as ef
>>> def counts():
...     flow = ef.Dataflow("counts")
...     rows = flow.read(ef.from_items([{"key": n % 3, "ts": n} for n in range(30)], event_time="ts", unit="s"))
...     _ = rows.key_by("key").window(ef.tumbling("10s")).aggregate(n=ef.count()).write(ef.to_list([]))
...     return flow
>>> check_stops(counts, seeds=range(5)) > 0
True
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from random import Random

from ...dataflow import Dataflow
from ...scheduler.protocol.effects import JobState
from ...scheduler.protocol.requests import Stop
from ..comparison import compare
from ..oracle.oracle import Row, oracle
from ..settings import changed
from ..simulation.actions import ACTIONS, COORDINATOR, Action, Choice, World
from ..simulation.simulation import SimulationResult, random_config, simulate

RUNS = 3
"""The most runs of a job; the last one is not stopped."""

MOMENTS = 0.3
"""The share of the moments of a run at which it may be stopped."""

SAVEPOINT, SAVEPOINTS = "savepoint", 0.5
"""The path of a savepoint, and the share of the stops that make one."""


def with_stop(actions: Sequence[Action]) -> tuple[Action, ...]:
    """Return `actions` with stops of the job at a barrier, at any moment."""

    def stop(world: World) -> Iterator[Choice]:
        core = world.coordinator.core
        if core.record.stop_asked is None and not core.state.final and world.random.random() < MOMENTS:
            yield Choice(COORDINATOR, "stop", _stop, (world,))

    return *actions, stop


def check_stops(
    make_flow: Callable[[], Dataflow],
    seeds: Iterable[int],
    *,
    parallelism: Sequence[int] = (2,),
    actions: Sequence[Action] = ACTIONS,
    later: Sequence[Callable[[], Dataflow]] = (),
    state: str | None = None,
) -> int:
    """Simulate the flow once for each seed in up to three runs; their rows together must be the oracle's. Return the number of stops.

    Each run but the last is stopped at a random moment, half of them with a savepoint. The next begins from that, or from the last
    checkpoint. `later`: the flow of each later run, a newer version of the program, which then runs with the next number of workers.
    `state`: the state backend, None for that of the configuration. Otherwise as `check`.
    """
    expected, stops = oracle(make_flow()), 0
    for seed in seeds:
        workers = parallelism[seed % len(parallelism)]
        try:
            runs = _runs((make_flow, *later), seed, parallelism, actions, state)
            compare(make_flow(), workers, expected, _together(runs))
        except Exception as error:
            error.add_note(f"run it again: check_stops(make_flow, seeds=[{seed}], parallelism=[{workers}], ...)")
            raise
        stops += len(runs) - 1
    return stops


def _runs(
    flows: Sequence[Callable[[], Dataflow]], seed: int, parallelism: Sequence[int], actions: Sequence[Action], state: str | None
) -> list[SimulationResult]:
    runs: list[SimulationResult] = []
    while not runs or (runs[-1].stopped and runs[-1].state is JobState.FINISHED):
        acts = with_stop(actions) if len(runs) < RUNS - 1 else actions
        number, turn = seed * RUNS + len(runs), min(len(runs), len(flows) - 1)
        flow, workers, after = flows[turn](), parallelism[(seed + turn) % len(parallelism)], runs[-1] if runs else None
        config = None if state is None else changed(random_config(Random(number), workers), state={"backend": state})  # noqa: S311
        runs.append(simulate(flow, number, parallelism=workers, config=config, save_state=True, actions=acts, after=after))
    return runs


def _together(runs: Sequence[SimulationResult]) -> SimulationResult:
    rows: dict[str, list[Row]] = {}
    late: Counter[str] = Counter()
    for run in runs:
        late.update(run.late_records)
        for sink, given in run.rows.items():
            rows.setdefault(sink, []).extend(given)
    return replace(runs[-1], rows=rows, late_records=late, moved=any(run.moved for run in runs))


def _stop(world: World) -> None:
    world.coordinator.ask(Stop(savepoint=SAVEPOINT if world.random.random() < SAVEPOINTS else None))
