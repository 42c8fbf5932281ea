"""Judges of runs whose rows differ from run to run, or that need other settings."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import evenflow as ef
from evenflow.testing import ACTIONS, check, simulate
from evenflow.testing.actions.measuring import acting_on_load, with_measured_load
from evenflow.testing.simulation.actions import Action, Choice, World

ROWS = 60


def windows_with_late_rows() -> ef.Dataflow:
    """Return rows up to half a second out of order, of a source that promises a tenth; late ones have a sink of their own."""
    flow = ef.Dataflow("late")
    times = [10_000 + number * 100 - (number * 7919) % 500 for number in range(ROWS)]
    rows = flow.read(ef.from_items([{"key": t % 3, "ts": t} for t in times], event_time="ts", max_delay="100ms"))
    windows = rows.key_by("key").window(ef.tumbling("200ms")).aggregate(n=ef.count()).named("windows")
    windows.write(ef.to_list([], name="counts"))
    windows.late.write(ef.to_list([], name="late"))
    return flow


def every_row_is_counted_once_or_late_once(seed: int) -> None:
    """Check that the late rows, which depend on the run, and those in windows are all rows together."""
    result = simulate(windows_with_late_rows(), seed)
    late = len(result.rows["late"])
    assert late == result.late_records["windows"]
    assert sum(row["n"] for row in result.rows["counts"]) + late == ROWS


def exact_by_measured_load(make_flow: Callable[[], ef.Dataflow], *more: Action) -> Callable[[int], None]:
    """Return a judge of runs in which a balancer acts by measured load: the rows must be the oracle's."""

    def judge(seed: int) -> None:
        config = acting_on_load(seed)
        check(make_flow, [seed], parallelism=config.parallelism, config=config, actions=(*with_measured_load(ACTIONS), *more))

    return judge


def only_left_is_dealt(world: World) -> Iterable[Choice]:
    """Check that a join with four times as many rows on the left deals no right rows; an action that does nothing."""
    tables = world.coordinator.core.migrations.tables
    dealt = {route.dealt for table in tables.values() for route in table.splits.values()}
    assert dealt <= {"left"}
    return ()
