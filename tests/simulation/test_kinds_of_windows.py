"""Sessions, count windows, windows without keys and functions of windows in simulated jobs: the rows are those of plain Python.

`EVENFLOW_SEEDS=20000 pytest tests/simulation/test_kinds_of_windows.py` simulates about that many jobs.
"""

from __future__ import annotations

from random import Random

import pytest
from disordered import disordered
from flows_windows import FLOWS, windows_of_rows
from seeds import blocks, proportion

import evenflow as ef
from evenflow.engine.task import handover
from evenflow.testing import check, simulate
from evenflow.testing.actions.crashing import with_crashes, with_damage
from evenflow.testing.actions.failing_storage import with_full_disk
from evenflow.testing.actions.moving import with_moves
from evenflow.testing.actions.scaling import with_scaling
from evenflow.testing.actions.zombies import with_zombies
from evenflow.testing.settings import changed
from evenflow.testing.simulation.simulation import random_config

pytestmark = pytest.mark.timeout(600)  # a block of seeds takes seconds of a core, and a busy machine gives it only a part of one

SEEDS, LATE, PLACES = 1, 3, ("lmdb", "server")
"""Seeds for each flow and kind of accident, or backend, and per test; those of late rows."""
STRATEGIES = ("sudden", "pause", "fluid", "batched", "lazy", "restart")

ACCIDENTS = {
    "none": (),
    "moves": with_moves(),
    "crashes": with_damage(with_crashes(with_moves(5, STRATEGIES))),
    "full disks": with_full_disk(with_damage(with_crashes(with_moves(5, STRATEGIES)))),
    "zombies": with_zombies(with_damage(with_crashes(with_moves(5, STRATEGIES), 2), 1)),
    "scaling": with_scaling(),
    "crashes while it scales": with_crashes(with_scaling()),
}
IN_ORDER = {"scaling": with_scaling(keyed_only=True), "crashes while it scales": with_crashes(with_scaling(keyed_only=True))}
"""Runs for flows that rely on the order of a source's records: a split that moves to another source worker arrives by another
channel.
"""
UNSAVED = ("none", "moves", "scaling")
"""Kinds of runs without losses, which need no checkpoint."""

BLOCKS = blocks(SEEDS, SEEDS, proportion(SEEDS * len(FLOWS) * (len(ACCIDENTS) + len(PLACES))))


@pytest.mark.few(2)
@pytest.mark.parametrize("seeds", BLOCKS)
@pytest.mark.parametrize("accidents", ACCIDENTS)
@pytest.mark.parametrize("make_flow", FLOWS, ids=lambda make_flow: make_flow.__name__)
def test_windows_give_the_rows_of_plain_python_whatever_happens(make_flow, accidents, seeds):
    actions = IN_ORDER.get(accidents, ACCIDENTS[accidents]) if make_flow is windows_of_rows else ACCIDENTS[accidents]
    options = {"actions": actions} if actions else {}
    check(make_flow, seeds, parallelism=(1, 2, 3), save_state=accidents not in UNSAVED, **options)


@pytest.fixture(params=PLACES)
def place(request):
    return request.getfixturevalue("state_server") if request.param == "server" else request.param


@pytest.mark.few(1)
@pytest.mark.parametrize("seeds", BLOCKS)
@pytest.mark.parametrize("make_flow", FLOWS, ids=lambda make_flow: make_flow.__name__)
def test_windows_give_the_rows_of_plain_python_in_every_state_backend(make_flow, seeds, place, monkeypatch):
    for seed in seeds:
        workers = 2 + seed % 2
        monkeypatch.setattr(handover, "CHUNK", 1 if seed % 2 else 2_048)
        config = changed(random_config(Random(seed), workers), state={"backend": place})
        check(make_flow, [seed], parallelism=workers, config=config, save_state=True, actions=with_crashes(with_moves(5, STRATEGIES)))


ROWS = disordered(rows=160)


def rows_that_come_late() -> ef.Dataflow:
    """Read rows out of order from a source that promises order."""
    flow = ef.Dataflow("late")
    rows = flow.read(ef.from_items(ROWS, event_time="ts"))
    keyed = rows.key_by("key")
    windows = {
        "sessions": keyed.window(ef.session("30ms")),
        "all": rows.window(ef.tumbling("100ms")),
        "all_sessions": rows.window(ef.session("20ms")),
    }
    for name, windowed in windows.items():
        counts = windowed.aggregate(seqs=ef.collect("seq")).named(name).write(ef.to_list([], name=f"{name}_counts"))
        counts.late.write(ef.to_list([], name=f"{name}_late"))
    told = windows["sessions"].process(lambda key, window, found: [{"seqs": [row["seq"] for row in found]}]).named("told")
    told.write(ef.to_list([], name="told_counts")).late.write(ef.to_list([], name="told_late"))
    return flow


@pytest.mark.slow
@pytest.mark.parametrize("actions", ["none", "moves", "crashes"])
def test_every_row_is_in_a_window_or_among_the_late_ones(actions):
    late = {"sessions": 0, "all": 0, "all_sessions": 0, "told": 0}
    options = {"actions": ACCIDENTS[actions]} if ACCIDENTS[actions] else {}
    for seed in range(LATE):
        rows = simulate(rows_that_come_late(), seed, parallelism=2, save_state=actions == "crashes", **options).rows
        for name in late:
            in_time = [seq for row in rows[f"{name}_counts"] for seq in row["seqs"]]
            too_late = [row["seq"] for row in rows[f"{name}_late"]]
            assert sorted([*in_time, *too_late]) == list(range(len(ROWS)))
            assert all(row == ROWS[row["seq"]] for row in rows[f"{name}_late"])
            late[name] += len(too_late)
    assert all(late.values())
