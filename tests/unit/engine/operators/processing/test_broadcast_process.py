"""`process` with a broadcast stream: the copy of its rows is the same after a move, a snapshot, and a chain of changes."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from itertools import count, pairwise

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenflow as ef
from evenflow.engine.batch import Batch
from evenflow.engine.broadcast_rows import tagged_rows
from evenflow.engine.errors import ProtocolError, RecordError
from evenflow.engine.keyed_state.kinds.broadcast_copy import BroadcastCopy
from evenflow.engine.operators.processing.broadcast_process import BroadcastProcess
from evenflow.engine.operators.rows.broadcast import Broadcast
from evenflow.engine.protocol.routing import Move
from evenflow.engine.snapshots.chain import resolved
from evenflow.state.backends.settings import StateSettings

JOBS = count()


class Seen(ef.KeyedFunction):
    rows = ef.value_state(0)

    def on_row(self, key, row, context):
        self.rows += 1
        yield {"key": key, "rows": self.rows, "rules": " ".join(f"{name}={rule['over']}" for name, rule in context.broadcast.items())}


OPERATOR = BroadcastProcess(("k",), Seen(), broadcast_keys=("name",))


@pytest.fixture(params=["memory", "lmdb", "server"])
def make(request, drive):
    place = request.getfixturevalue("state_server") if request.param == "server" else request.param
    made, job = [], f"broadcast-{next(JOBS)}"

    def make_one(index=0, *, of=job):
        made.append(drive(OPERATOR, StateSettings(place, job=of), index))
        return made[-1]

    yield make_one
    for step in made:
        step.operator.close()


def rules(*rows, deletes=None):
    """Return (name, over) rows in the form in which they travel."""
    batch = pa.record_batch({"name": [name for name, _ in rows], "over": [over for _, over in rows]})
    return Batch(tagged_rows(batch, None if deletes is None else pa.array(deletes)))


def told(step):
    return step.process([{"k": 1}])[0]["rules"]


def test_rows_replace_and_delete_those_of_their_key_and_keep_their_place(make):
    step = make()
    assert told(step) == ""
    step.process_batch(rules(("a", 1), ("b", 2), ("c", 3)))
    step.process_batch(rules(("a", 4), ("b", None), ("b", 5), deletes=[False, True, False]))
    assert told(step) == "a=4 c=3 b=5"


def test_copy_that_moves_with_keys_replaces_none_and_is_complete(make):
    old, new = make(), make(1)
    new.operator.state.await_copy()
    new.process_batch(rules(("z", 9)))  # before its copy: the old worker has these rows too
    with pytest.raises(ProtocolError, match="worker 1 got rows before the broadcast rows"):
        new.process([{"k": 1}])
    old.process_batch(rules(("a", 1), ("z", 9), ("b", 2)))
    old.process([{"k": 1}])
    state = old.operator.state
    assert not new.operator.state.copies()
    for chunk in state.copies():
        new.operator.state.install(chunk)
    transfer = state.depart(Move(0, 1, groups=tuple(range(16))))
    while (chunk := transfer.next_chunk(10)) is not None:
        new.operator.state.install(chunk)
    assert new.process([{"k": 1}]) == [{"key": 1, "rows": 2, "rules": "a=1 z=9 b=2"}]
    assert told(old) == "a=1 z=9 b=2"


def test_an_empty_copy_is_a_copy(make):
    old, new = make(), make(1)
    new.operator.state.await_copy()
    for chunk in old.operator.state.copies():
        new.operator.state.install(chunk)
    assert told(new) == ""


def test_chain_of_changes_gives_the_copy_of_its_last_checkpoint(make):
    step, files = make(), []
    state = step.operator.state
    for batch in (rules(("a", 1), ("b", 2)), None, rules(("b", None), ("c", 3), deletes=[True, False]), rules(("a", 7))):
        if batch is not None:
            step.process_batch(batch)
        step.process([{"k": len(files)}])
        changes = state.changes()
        files.append([chunk.rows for chunk in (state.snapshot() if not files else state.delta(changes))])
    restored = make(1, of=f"restored-{next(JOBS)}")
    restored.operator.state.await_copy()
    for rows in resolved(reversed(files)):
        restored.operator.state.restore(Batch(rows), "step")
    assert restored.process([{"k": 2}]) == [{"key": 2, "rows": 2, "rules": "a=7 c=3"}]


def test_changes_without_broadcast_rows_save_none(make):
    step = make()
    state = step.operator.state
    step.process_batch(rules(("a", 1)))
    state.changes()
    step.process([{"k": 1}])
    assert [chunk.rows.schema.names for chunk in state.delta(state.changes())] == [["k", "__state"]]


KINDS = {
    "integers": pa.array([1, None, 3], pa.int32()),
    "decimals": pa.array([Decimal("1.50"), None, Decimal("-2.25")], pa.decimal128(9, 2)),
    "zoned times": pa.array([datetime(2026, 1, 1, tzinfo=UTC), None, datetime(1, 1, 1, tzinfo=UTC)], pa.timestamp("us", "UTC")),
    "nested": pa.array([[{"x": 1}], None, []], pa.list_(pa.struct([("x", pa.int8())]))),
    "texts": pa.array(["a", None, "ü"], pa.large_string()),
    "bytes": pa.array([b"a", None, b""], pa.binary()),
    "nulls": pa.nulls(3),
}


@pytest.mark.parametrize("kind", KINDS)
def test_values_of_all_types_are_the_same_in_another_copy(kind):
    copy, other = (BroadcastCopy(("id", "v"), "step") for _ in range(2))
    copy.apply(tagged_rows(pa.record_batch({"id": [1, 2, 3], "v": KINDS[kind]}) if kind != "nested" else _by_id(KINDS[kind]), None))
    for chunk in copy.chunks():
        other.install(chunk.rows)
    assert list(other.rows.items()) == list(copy.rows.items())
    assert [chunk.rows.schema for chunk in other.chunks()] == [chunk.rows.schema for chunk in copy.chunks()]
    assert len(copy) == 3


def _by_id(column):
    """Return rows whose second key column can be a key, and a nested column."""
    return pa.record_batch({"id": [1, 2, 3], "v": [1, 2, 3], "nested": column})


@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 9), st.booleans()), max_size=40, unique_by=lambda row: row[:2]),
    st.booleans(),
    st.data(),
)
def test_copies_are_equal_however_the_stream_is_cut_and_whichever_joined_late(rows, versioned, data):
    batch = pa.record_batch({"name": pa.array([r[0] for r in rows], pa.int64()), "over": pa.array([r[1] for r in rows], pa.int64())})
    tagged = tagged_rows(batch, pa.array([r[2] for r in rows], pa.bool_()))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(rows)), max_size=4)))
    whole, cut, joined = (BroadcastCopy(("name",), "step", "over" if versioned else None) for _ in range(3))
    whole.apply(tagged)
    joined.here = False
    for place, (start, end) in enumerate(pairwise([0, *cuts, len(rows)])):
        cut.apply(tagged.slice(start, end - start))
        joined.apply(tagged.slice(start, end - start))
        if place == len(cuts) // 2:
            for chunk in cut.chunks():
                joined.install(chunk.rows)
    expected = {}
    for name, over, deleted in sorted(rows, key=lambda row: row[1]) if versioned else rows:
        expected.pop(name, None) if deleted else expected.update({name: over})
    for copy in (whole, cut, joined):
        assert {name: row["over"] for name, row in copy.rows.items()} == expected
        assert list(copy.rows) == list(whole.rows)
        assert versioned or list(copy.rows) == list(expected)


def test_a_row_without_a_version_is_refused(drive):
    step = drive(Broadcast(("name",), version="over"))
    with pytest.raises(RecordError, match=r"the version `over` is null: give each row one.*\n.*'name': 'b'"):
        step.process([{"name": "a", "over": 1}, {"name": "b", "over": None}])
