"""Plans: which operators share a worker, and which channels they have."""

from __future__ import annotations

import pytest

import evenflow as ef
from evenflow.engine.errors import FlowError, RequestError
from evenflow.engine.operators.aggregation.combine import Combine


def chains(plan):
    return {stage.name: [chained.name for chained in stage.chain] for stage in plan.stages}


def channels(plan):
    return {(channel.sender, channel.receiver) for channel in plan.channels}


def read(flow, **options):
    return flow.read(ef.from_items([{"k": 1, "v": 2}], **options))


def test_operators_without_a_shuffle_share_their_workers():
    flow = ef.Dataflow("f")
    read(flow).map(lambda row: row).filter(lambda row: True).select("k").write(ef.to_list([]))
    plan = flow.plan(3)
    assert chains(plan) == {"from_items": ["from_items", "map", "filter", "select", "to_list"]}
    assert [task.name for task in plan.tasks] == ["from_items-0", "from_items-1", "from_items-2"]
    assert not plan.channels


def test_operator_with_resources_has_workers_of_its_own_that_those_behind_it_share():
    flow = ef.Dataflow("f")
    read(flow).map(lambda row: row).map_batches(lambda rows: rows).resources(gpus=1).map(lambda row: row).write(ef.to_list([]))
    plan = flow.plan(2)
    assert chains(plan) == {"from_items": ["from_items", "map"], "map_batches": ["map_batches", "map_2", "to_list"]}
    assert {name: each.amounts(0.5) for name, each in plan.resources.items()} == {"map_batches": {"CPU": 0.5, "GPU": 1.0}}


def test_operators_with_equal_resources_share_their_workers_and_with_others_do_not():
    flow = ef.Dataflow("f")
    first = read(flow).map(lambda row: row).named("a").resources(memory="2GB").map(lambda row: row).named("b").resources(memory=2 * 10**9)
    first.map(lambda row: row).named("c").resources(memory="2GiB").write(ef.to_list([]))
    assert chains(flow.plan(2)) == {"from_items": ["from_items"], "a": ["a", "b"], "c": ["c", "to_list"]}


def test_keyed_operator_begins_a_stage_with_a_channel_from_every_worker_to_every_worker():
    flow = ef.Dataflow("f")
    read(flow).key_by("k").stateful_map(lambda state, row: (state, row)).parallelism(3).write(ef.to_list([]))
    plan = flow.plan(2)
    assert {("from_items-0", "stateful_map-2"), ("from_items-1", "stateful_map-0")} <= channels(plan)
    assert [output.keys for output in plan.stage_of("from_items").outputs] == [("k",)]


def test_another_parallelism_deals_the_batches_out():
    flow = ef.Dataflow("f")
    read(flow).parallelism(1).map(lambda row: row).parallelism(3).write(ef.to_list([]))
    plan = flow.plan(2)
    assert chains(plan) == {"from_items": ["from_items"], "map": ["map"], "to_list": ["to_list"]}
    assert channels(plan) == {
        *((("from_items-0"), f"map-{i}") for i in range(3)),
        *((f"map-{i}", f"to_list-{j}") for i in range(3) for j in range(2)),
    }


def test_aggregate_is_combined_before_the_shuffle_at_the_end_of_the_stage_above():
    flow = ef.Dataflow("f")
    read(flow).map(lambda row: row).key_by("k").aggregate(n=ef.count()).write(ef.to_list([]))
    plan = flow.plan(2)
    assert chains(plan)["from_items"] == ["from_items", "map", "aggregate.combine"]
    assert isinstance(plan.stage_of("from_items").chain[-1].operator, Combine)
    assert chains(flow.plan(config=ef.JobConfig(combine=False)))["from_items"] == ["from_items", "map"]


def test_late_rows_that_the_flow_reads_are_not_combined_before_the_shuffle():
    flow = ef.Dataflow("f")
    results = read(flow, event_time="v").key_by("k").window(ef.tumbling("1s")).aggregate(n=ef.count())
    results.write(ef.to_list([], name="results"))
    results.late.write(ef.to_list([], name="late"))
    assert chains(flow.plan())["from_items"] == ["from_items"]


def test_union_is_a_stage_that_every_input_feeds_worker_by_worker():
    flow = ef.Dataflow("f")
    left = read(flow).named("left")
    right = read(flow).named("right").parallelism(1)
    left.union(right).write(ef.to_list([]))
    plan = flow.plan(2)
    assert chains(plan) == {"left": ["left"], "right": ["right"], "union": ["union", "to_list"]}
    assert channels(plan) == {("left-0", "union-0"), ("left-1", "union-1"), ("right-0", "union-0"), ("right-0", "union-1")}


def test_stream_in_union_with_itself_has_a_channel_for_each_side():
    flow = ef.Dataflow("f")
    stream = read(flow)
    stream.union(stream).write(ef.to_list([]))
    plan = flow.plan(1)
    assert [(c.sender, c.receiver) for c in plan.channels] == [("from_items-0", "union-0")] * 2


def test_branches_of_a_stream_stay_in_its_stage():
    flow = ef.Dataflow("f")
    stream = read(flow)
    stream.filter(lambda row: True).write(ef.to_list([], name="a"))
    stream.map(lambda row: row).write(ef.to_list([], name="b"))
    (task,) = flow.plan(1).tasks
    assert [(chained.name, chained.inputs) for chained in task.chain] == [
        ("from_items", ()), ("filter", ((0, "out"),)), ("a", ((1, "out"),)), ("map", ((0, "out"),)), ("b", ((3, "out"),)),
    ]  # fmt: skip


def test_every_channel_has_an_id_of_its_own_that_both_ends_know():
    flow = ef.Dataflow("f")
    read(flow).key_by("k").aggregate(n=ef.count(), emit="final").key_by("n").aggregate(m=ef.count(), emit="final").write(ef.to_list([]))
    plan = flow.plan(3)
    receiving = {(id_, task.name) for task in plan.tasks for id_ in task.inputs}
    sending = {(id_, task.name) for task in plan.tasks for exchange in task.exchanges for id_ in exchange.channels}
    between = [c for c in plan.channels if (c.id, c.receiver) in receiving]
    assert len({channel.id for channel in plan.channels}) == len(plan.channels)
    assert {(c.id, c.sender) for c in between} == sending
    assert {(c.id, c.receiver) for c in between} == receiving


def test_more_workers_than_key_groups_are_refused():
    flow = ef.Dataflow("f")
    read(flow).write(ef.to_list([]))
    with pytest.raises(FlowError, match="parallelism 5 is more than the 4 key groups"):
        flow.plan(config=ef.JobConfig(parallelism=5, key_groups=4))


def test_unknown_operator_is_refused_with_the_names_of_all():
    flow = ef.Dataflow("f")
    read(flow).write(ef.to_list([]))
    with pytest.raises(RequestError, match="no operator `absent`; there are: from_items, to_list"):
        flow.plan().stage_of("absent")


def test_explain_shows_both_plans_and_the_guarantees():
    flow = ef.Dataflow("f")
    read(flow).key_by("k").aggregate(n=ef.count()).write(ef.to_list([]))
    text = flow.explain(2)
    assert "aggregate                <- from_items" in text
    assert "from_items x 2: from_items -> aggregate.combine" in text
    assert "to aggregate by hash of k, 2 x 2 workers" in text
    assert "to_list: exactly once" in text


def test_explain_says_what_is_promised_from_end_to_end():
    flow = ef.Dataflow("f")
    rows = (
        flow.read(ef.from_items([1])).map(lambda row: row, on_error="skip").union(flow.read(ef.generate(total=1)).named("made").drop("ts"))
    )
    rows.write(ef.to_list([]))
    rows.write(ef.print())
    flow.read(ef.from_items([2])).named("other").write(ef.to_list([], name="plain"))
    lines = flow.explain().partition("Guarantees\n")[2].splitlines()
    assert "  end to end, from_items, made to to_list: exactly once, but for the records that map may refuse" in lines
    assert "  end to end, from_items, made to print: at least once, but for the records that map may refuse" in lines
    assert "  end to end, other to plain: exactly once" in lines
    assert lines[-1].startswith("  without CheckpointConfig(dir=...) a job that loses something fails")
    assert "without JobConfig" not in flow.explain(config=ef.JobConfig(checkpoint=ef.CheckpointConfig("checkpoints")))


def test_explain_says_where_the_state_of_each_keyed_operator_is_stored():
    flow = ef.Dataflow("f")
    keyed = read(flow).key_by("k")
    keyed.aggregate(n=ef.count()).write(ef.to_list([]))
    keyed.stateful_map(lambda state, row: (state, row)).write(ef.to_list([], name="rows"))
    assert "  aggregate: in memory\n  stateful_map: in memory\n" in flow.explain()
    assert "  aggregate: in LMDB files below /disk\n" in flow.explain(config=ef.JobConfig(state=ef.StateConfig("lmdb", dir="/disk")))
    text = flow.explain(config=ef.JobConfig(state=ef.StateConfig("redis://me:secret@127.0.0.1:6379/0")))
    assert "  aggregate: in the server 127.0.0.1:6379\n" in text
    assert "secret" not in text


def test_mermaid_shows_the_keys_and_the_late_port():
    flow = ef.Dataflow("f")
    results = read(flow, event_time="v").key_by("k").window(ef.tumbling("1s")).aggregate(n=ef.count())
    results.write(ef.to_list([]))
    results.late.write(ef.to_list([], name="late"))
    text = flow.to_mermaid()
    assert 'n0 -->|"k"| n1' in text
    assert 'n1 -->|"late"| n3' in text
