"""The state that each worker restores from a manifest: positions, files, the event time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import evenflow as ef
from evenflow.engine.protocol.elements import MIN_TIME
from evenflow.engine.protocol.routing import RoutingTable, even_table
from evenflow.scheduler.protocol.manifest import Manifest, TaskEntry
from evenflow.scheduler.record.restoring.fitting import unmatched
from evenflow.scheduler.record.restoring.restore import fitting_tables, restored_tasks
from evenflow.state.files import StateFile

GROUPS = 8


def plan(parallelism=2, groups=GROUPS, name="count"):
    flow = ef.Dataflow("f")
    rows = flow.read(ef.from_items(range(10))).parallelism(2)
    rows.key_by("item").aggregate(n=ef.count()).named(name).parallelism(parallelism).write(ef.to_list([]))
    return flow.plan(config=ef.JobConfig(key_groups=groups, combine=False))


def entry(worker, **fields):
    return TaskEntry(**{"watermark": 10 + worker, "files": (StateFile(f"count-{worker}.state", 1, "", 1),)} | fields)


def manifest(*, groups=None, keys=None, counts=(0, 1), **fields):
    table = RoutingTable(np.array(groups, np.uint16), keys or {}) if groups else even_table(GROUPS, len(counts))
    sources = (TaskEntry([3, 1], 20), TaskEntry([2, 0], 30))
    tasks = {"from_items": sources, "count": tuple(entry(worker) for worker in counts)}
    return Manifest("f", 5, 0, 0.0, GROUPS, {"count": ("count", "to_list")}, tasks, {"count": table}, {}, **fields)


def files(tasks):
    return {name: [file.path for chain in task.chains for file in chain.files] for name, task in tasks.items() if any(task.chains)}


def test_same_plan_gives_every_worker_its_own():
    tasks = restored_tasks(manifest(), plan(), "folder", 5)
    assert files(tasks) == {"count-0": ["count-0.state"], "count-1": ["count-1.state"]}
    assert [tasks[f"from_items-{i}"].position for i in range(2)] == [[3, 1], [2, 0]]
    assert {(task.url, task.checkpoint) for task in tasks.values()} == {("folder", 5)}


def test_event_time_is_the_least_of_those_that_had_not_finished():
    tasks = restored_tasks(manifest(), plan(), "", 5)
    assert {tasks[name].watermark for name in ("from_items-0", "from_items-1")} == {20}
    assert {tasks[name].watermark for name in ("count-0", "count-1")} == {10}
    found = manifest()
    ended = replace(found, tasks={"from_items": (TaskEntry([3, 1], 0, finished=True), TaskEntry([2, 0], 30))})
    assert restored_tasks(ended, plan(), "", 5)["from_items-0"].watermark == 30
    all_ended = replace(found, tasks={"from_items": (TaskEntry([3, 1], finished=True), TaskEntry([2, 0], finished=True))})
    assert restored_tasks(all_ended, plan(), "", 5)["from_items-0"].watermark == MIN_TIME


def test_worker_without_keys_does_not_hold_event_time_back():
    before = manifest(groups=[0, 0, 0, 0, 1, 1, 1, 1], counts=(0, 1, -5000))
    assert {task.watermark for name, task in restored_tasks(before, plan(3), "", 5).items() if name.startswith("count")} == {10}
    with_a_key = manifest(groups=[1] * 8, keys={2**63: 2}, counts=(-5000, 1, 2))
    assert restored_tasks(with_a_key, plan(3), "", 5)["count-0"].watermark == 11


@pytest.mark.parametrize(
    ("before", "parallelism", "expected"),
    [
        pytest.param({}, 4, {0: [0], 1: [0, 1], 2: [1], 3: [1]}, id="more workers, each from its own and from the one that had its groups"),
        pytest.param({"counts": (0, 1, 2, 3)}, 2, {0: [0, 1], 1: [1, 2, 3]}, id="fewer workers"),
        pytest.param({"counts": (0, 1)}, 1, {0: [0, 1]}, id="one worker from all"),
        pytest.param({"groups": [1, 1, 1, 1, 0, 0, 0, 0]}, 2, {0: [0, 1], 1: [0, 1]}, id="a table that was changed, and isn't any more"),
        pytest.param({"groups": [0] * 8, "keys": {2**63: 1}}, 4, {i: [0, 1] for i in range(4)}, id="keys with a route of their own"),
    ],
)
def test_worker_reads_the_files_that_may_hold_its_keys(before, parallelism, expected):
    tasks = restored_tasks(manifest(**before), plan(parallelism), "", 5)
    assert files(tasks) == {f"count-{worker}": [f"count-{i}.state" for i in owners] for worker, owners in expected.items()}


def test_other_number_of_key_groups_makes_every_worker_read_all():
    tasks = restored_tasks(manifest(), plan(groups=16), "", 5)
    assert files(tasks) == {f"count-{worker}": ["count-0.state", "count-1.state"] for worker in range(2)}


def test_tables_are_kept_where_workers_and_groups_are_the_same():
    changed = manifest(groups=[1] * 8)
    assert fitting_tables(changed, plan()) == dict(changed.tables)
    assert fitting_tables(changed, plan(3)) == {}
    assert fitting_tables(changed, plan(groups=16)) == {}


def test_state_that_fits_nowhere_is_named():
    assert unmatched(manifest(), plan()) == []
    assert unmatched(manifest(), plan(name="totals")) == ["count"]
    empty = replace(manifest(), tasks={"count": (TaskEntry(), TaskEntry())})
    assert unmatched(empty, plan(name="totals")) == []


def test_stage_that_the_checkpoint_does_not_know_begins_without_state():
    tasks = restored_tasks(manifest(), plan(name="totals"), "", 5)
    assert sorted(tasks) == ["from_items-0", "from_items-1"]
