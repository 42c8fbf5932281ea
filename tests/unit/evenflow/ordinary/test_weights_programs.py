"""Programs with aggregates over running aggregates: exact however rows are cut into batches, saved, restored, and explained."""

from __future__ import annotations

import threading
from collections import Counter
from typing import Any

import pytest
from patience import patience

import evenflow as ef

pytestmark = pytest.mark.usefixtures("waiting_for_jobs")

VISITS = [
    {"user": user, "place": place, "cents": cents}
    for user, place, cents in (("a", "x", 1), ("b", "x", 5), ("a", "y", 2), ("c", "x", 1), ("b", "y", 9), ("c", "y", 3), ("a", "y", 4))
]


def visits(flow: ef.Dataflow, rows: Any = VISITS) -> ef.Stream:
    return flow.read(ef.from_items(rows))


def users(flow: ef.Dataflow, rows: Any = VISITS) -> ef.Stream:
    newest = visits(flow, [{**row, "at": at} for at, row in enumerate(rows)]).key_by("user")
    return newest.aggregate(place=ef.max_by("place", "at"), cents=ef.max("cents")).named("users")


def run(flow: ef.Dataflow, rows: int = 1, **options: Any) -> None:
    config = ef.JobConfig(network=ef.NetworkConfig(source_rows=rows, linger=0))
    flow.run(runtime="local", config=config, **options).wait("30s")


@pytest.mark.parametrize("rows", [1, 3, 100])
def test_users_are_counted_once_in_the_place_where_they_were_last(rows):
    flow, out = ef.Dataflow("places"), []
    places = users(flow).key_by("place").aggregate(users=ef.count(), cents=ef.sum("cents"), most=ef.max("cents"), emit="final")
    places.write(ef.to_list(out))
    run(flow, rows)
    assert out == [{"place": "y", "users": 3, "cents": 16, "most": 9}]


def test_a_group_that_all_rows_left_has_a_last_row_with_nothing():
    flow, out = ef.Dataflow("places"), []
    users(flow).key_by("place").aggregate(users=ef.count(), cents=ef.sum("cents")).write(ef.to_list(out))
    run(flow)
    assert {row["place"]: row for row in out} == {
        "x": {"place": "x", "users": 0, "cents": None},
        "y": {"place": "y", "users": 3, "cents": 16},
    }


def test_a_third_aggregate_does_not_see_groups_that_are_gone():
    flow, out = ef.Dataflow("sizes"), []
    sizes = users(flow).key_by("place").aggregate(users=ef.count()).key_by("users").aggregate(places=ef.count(), emit="final")
    sizes.write(ef.to_list(out))
    run(flow)
    assert out == [{"users": 3, "places": 1}]


def test_other_readers_get_the_plain_updates():
    flow, total, plain = ef.Dataflow("both"), [], []
    rich = users(flow).filter(ef.col("cents") > 2).rename(cents="most").named("rich")
    rich.write(ef.to_list(plain, name="plain"))
    rich.key_by("place").aggregate(users=ef.count(), most=ef.sum("most"), emit="final").write(ef.to_list(total, name="total"))
    run(flow)
    assert [set(row) for row in plain] == [{"user", "place", "most"}] * 4
    assert total == [{"place": "y", "users": 3, "most": 16}]


def test_functions_between_do_not_see_weights():
    flow, out, seen = ef.Dataflow("seen"), [], set()

    def rich(row: dict[str, Any]) -> bool:
        seen.update(row)
        return bool(row["cents"] > 3)

    pairs = users(flow).filter(rich).map(lambda row: {"place": row["place"], "columns": len(row)})
    pairs.key_by(lambda row: row["place"].upper()).aggregate(columns=ef.sum("columns"), n=ef.count(), emit="final").write(ef.to_list(out))
    run(flow)
    assert seen == {"user", "place", "cents"}
    assert out == [{"key": "Y", "columns": 6, "n": 2}]


def test_updates_and_rows_that_count_can_be_counted_together():
    flow, out = ef.Dataflow("union"), []
    rows = visits(flow).select("user", "cents")
    both = rows.union(users(flow).select("user", "cents"))
    both.key_by("user").aggregate(n=ef.count(), cents=ef.sum("cents"), emit="final").write(ef.to_list(out))
    run(flow)
    assert sorted(map(tuple, map(dict.values, out))) == [("a", 4, 11), ("b", 3, 23), ("c", 3, 7)]


def test_explain_shows_which_streams_are_read_by_weight():
    flow = ef.Dataflow("shown")
    updates = users(flow)
    updates.write(ef.to_list([], name="plain"))
    updates.filter(ef.col("cents") > 2).key_by("place").aggregate(n=ef.count()).named("places").write(ef.to_list([], name="out"))
    lines = {line.split()[0]: " ".join(line.split()) for line in flow.explain().partition("Physical plan")[0].splitlines() if line}
    assert "<- users by weight" in lines["filter"]
    assert "<- filter by weight" in lines["places"]
    assert "by weight" not in lines["plain"] + lines["out"] + lines["users"]


def test_flows_without_such_a_reader_are_planned_as_before():
    flow = ef.Dataflow("plain")
    users(flow).write(ef.to_list([]))
    assert [type(chained.operator).__name__ for stage in flow.plan().stages for chained in stage.chain][-2:] == [
        "AggregateRunning",
        "Write",
    ]


def test_refusal_names_the_aggregates_that_cannot_take_rows_back():
    updates = users(ef.Dataflow("refused")).key_by("place")
    with pytest.raises(ef.FlowError, match=r'take back the rows that were replaced, but these can\'t: all \(collect\("cents"\)\)'):
        updates.aggregate(n=ef.count(), all=ef.collect("cents"))


def test_refusal_names_the_operator_that_does_not_pass_weights_on():
    updates = users(ef.Dataflow("refused")).map_batches(lambda batch: batch).named("mapped").filter(ef.col("cents") > 2)
    with pytest.raises(ef.FlowError, match=r"but not behind `mapped`: only select, drop"):
        updates.key_by("place").aggregate(n=ef.count())


def saved(tmp_path: Any, build: Any) -> str:
    """Return a savepoint of the flow after the first three visits."""
    reached = threading.Event()

    def some(_partition: int, position: int | None) -> Any:
        for n in range(position or 0, 3):
            yield VISITS[n] | {"at": n}, n + 1
        while True:
            reached.set()
            yield None

    job = started(build, some, tmp_path)
    assert reached.wait(patience(30))
    path: str = job.savepoint(tmp_path / "savepoint")
    job.cancel()
    job.wait("30s")
    return path


def rest(_partition: int, position: int | None) -> Any:
    for n in range(position or 0, len(VISITS)):
        yield VISITS[n] | {"at": n}, n + 1


def started(build: Any, visits: Any, tmp_path: Any, out: Any = None, **options: Any) -> ef.Job:
    flow = ef.Dataflow("saved")
    newest = flow.read(ef.from_generator(visits, poll_every="1ms")).key_by("user")
    build(newest.aggregate(place=ef.max_by("place", "at"), cents=ef.max("cents")).named("users")).write(
        ef.to_list([] if out is None else out)
    )
    config = ef.JobConfig(checkpoint=ef.CheckpointConfig(str(tmp_path / "checkpoints"), interval="10ms"))
    return flow.run(runtime="local", config=config, **options)


def counted(users: ef.Stream, **more: Any) -> ef.Stream:
    return users.key_by("place").aggregate(users=ef.count(), cents=ef.sum("cents"), **more).named("places")


def test_rows_of_before_a_savepoint_are_taken_back_after_it(tmp_path):
    out: list[dict[str, Any]] = []
    path = saved(tmp_path, counted)
    started(counted, rest, tmp_path, out, from_savepoint=path).wait("30s")
    assert {row["place"]: (row["users"], row["cents"]) for row in out} == {"x": (0, None), "y": (3, 16)}


def test_a_changelog_that_is_new_at_a_savepoint_has_the_changes_from_then_on(tmp_path):
    changes: list[dict[str, Any]] = []
    path = saved(tmp_path, counted)
    started(lambda users: counted(users).changelog(), rest, tmp_path, changes, from_savepoint=path).wait("30s")
    net = Counter[tuple[str, int]]()
    for change in changes:
        net[change["place"], change["users"]] += {"insert": 1, "delete": -1}[change["op"]]
    rows_of_before, rows_of_now = {("x", 1): 1, ("y", 1): 1}, {("y", 3): 1}
    net.update(rows_of_before)
    assert {row: count for row, count in net.items() if count} == rows_of_now


def test_a_reader_that_has_not_seen_the_saved_rows_is_refused(tmp_path):
    path = saved(tmp_path, lambda users: users)
    with pytest.raises(ef.FlowError, match=r"`places` adds up the rows of `users` by weight, and only `users` has saved state"):
        started(counted, rest, tmp_path, from_savepoint=path)


def test_an_aggregate_that_has_not_seen_the_saved_rows_is_refused(tmp_path):
    path = saved(tmp_path, counted)
    with pytest.raises(ef.FlowError, match=r"aggregate `most` .* is new, and would take back rows that it never added"):
        started(lambda users: counted(users, most=ef.max("cents")), rest, tmp_path, from_savepoint=path, allow_new_state=True)


def test_another_filter_in_front_of_a_reader_with_saved_rows_is_refused(tmp_path):
    path = saved(tmp_path, counted)
    with pytest.raises(ef.FlowError, match=r"the saved state is of rows `users` by weight, the operator's of rows filter"):
        started(lambda users: counted(users.filter(ef.col("cents") > 2)), rest, tmp_path, from_savepoint=path)
