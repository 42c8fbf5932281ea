"""The state of all keys of a running job is read as a table, in this process: as of its newest checkpoint, by kind of state."""

from __future__ import annotations

import time
from datetime import UTC, datetime

import pyarrow as pa
import pytest
from patience import patience

import evenflow as ef
from evenflow.reads import read_table
from evenflow.scheduler.protocol.requests import ShowTable
from evenflow.testing.settings import changed

pytestmark = pytest.mark.usefixtures("waiting_for_jobs")

ROWS = [
    {"dest": "JFK", "day": 1, "price": 10.5, "item": 0},
    {"dest": "JFK", "day": 2, "price": 2.0, "item": 1},
    {"dest": "LAX", "day": 1, "price": 1.0, "item": 2},
    {"dest": None, "day": 1, "price": 4.0, "item": 3},
    {"dest": "SFO", "day": 3, "price": 0.0, "item": 4},
]
MORE = [{"dest": "SFO", "day": 3, "price": -1.0, "item": 5}, {"dest": "LAX", "day": 4, "price": 2.5, "item": 6}]


class Stops(ef.KeyedFunction):
    days = ef.list_state()
    dest = ef.map_state()
    seen = ef.value_state(0)
    recent = ef.value_state(ttl="2s")

    def on_row(self, key, row, context):
        self.days.append(row["day"])
        self.dest[row["item"]] = row["price"]
        if row["day"] == 1:
            self.recent = row["item"]
        if key == "LAX":
            self.seen += 1
        if row["price"] < 0:
            self.days.clear()
            self.dest.clear()


class Both(ef.CoKeyedFunction):
    n = ef.value_state(0)

    def on_left(self, key, row, context):
        self.n += 1

    def on_right(self, key, row, context):
        self.n += 100


def total(state, row):
    return None if row["price"] < 0 else (state or 0.0) + row["price"], None


def batches(*given):
    """Give each batch when its position says that it is due: one more each time that the test appends to `ready`."""
    ready = [1]

    def rows(partition, position):
        position = position or 0
        while True:
            if position < ready[0]:
                yield given[position], position + 1
                position += 1
            else:
                yield None

    return rows, ready


def make_flow(source):
    flow = ef.Dataflow("flights")
    rows = flow.read(ef.from_generator(source, event_time="item", unit="s", poll_every="10ms")).parallelism(1)
    keyed = rows.key_by("dest")
    totals = keyed.aggregate(n=ef.count(), high=ef.max("price"), emit="update")
    out = {
        "totals": totals,
        "finals": keyed.aggregate(n=ef.count(), price=ef.mean("price"), emit="final"),
        "days": rows.key_by("dest", "day").aggregate(n=ef.count()),
        "by_n": totals.key_by("n").aggregate(keys=ef.count()),
        "prices": keyed.stateful_map(total),
        "stops": keyed.process(Stops()),
        "pairs": keyed.co_process(rows.map(lambda row: {**row, "to": row["dest"]}).key_by("to"), Both()),
        "hours": keyed.window(ef.tumbling("1h")).aggregate(n=ef.count()),
    }
    for name, stream in out.items():
        stream.named(name).write(ef.to_callback(lambda row: None, name=f"to_{name}"))
    return flow


def run(source, folder, **config):
    checkpoint = ef.CheckpointConfig(str(folder), interval=None) if folder is not None else ef.CheckpointConfig(interval=None)
    return make_flow(source).run(runtime="local", config=changed(ef.JobConfig(parallelism=2, checkpoint=checkpoint), **config))


def awaited(job, operator, key, value):
    deadline = time.monotonic() + patience(60)
    while (found := job.read(operator, key)) != value:
        assert time.monotonic() < deadline, f"{operator}: {found}"


def over(job):
    job.cancel()
    job.wait("60s")


AT_FIRST = {
    "totals": [("JFK", 2, 10.5), ("LAX", 1, 1.0), (None, 1, 4.0), ("SFO", 1, 0.0)],
    "finals": [("JFK", 2, 6.25), ("LAX", 1, 1.0), (None, 1, 4.0), ("SFO", 1, 0.0)],
    "days": [("JFK", 1, 1), ("JFK", 2, 1), ("LAX", 1, 1), (None, 1, 1), ("SFO", 3, 1)],
    "by_n": [(1, 3), (2, 1)],
    "prices": [("JFK", 12.5), ("LAX", 1.0), (None, 4.0), ("SFO", 0.0)],
    "stops": [
        ("JFK", [1, 2], [(0, 10.5), (1, 2.0)], None, None),
        ("LAX", [1], [(2, 1.0)], 1, None),  # `recent` has expired
        (None, [1], [(3, 4.0)], None, 3),
        ("SFO", [3], [(4, 0.0)], None, None),
    ],
    "pairs": [("JFK", 202), ("LAX", 101), (None, 101), ("SFO", 101)],
}
LATER = {
    "totals": [("JFK", 2, 10.5), ("LAX", 2, 2.5), (None, 1, 4.0), ("SFO", 2, 0.0)],
    "by_n": [(1, 1), (2, 3)],  # a row of aggregates over aggregates is taken back when it changes
    "prices": [("JFK", 12.5), ("LAX", 3.5), (None, 4.0)],
    "stops": [
        ("JFK", [1, 2], [(0, 10.5), (1, 2.0)], None, None),
        ("LAX", [1, 4], [(2, 1.0), (6, 2.5)], 2, None),
        (None, [1], [(3, 4.0)], None, None),
    ],
}
COLUMNS = {
    "totals": pa.schema({"dest": pa.string(), "n": pa.int64(), "high": pa.float64()}),
    "by_n": pa.schema({"n": pa.int64(), "keys": pa.int64()}),
    "prices": pa.schema({"dest": pa.string(), "state": pa.float64()}),
    "stops": pa.schema(
        {
            "dest": pa.string(),
            "days": pa.list_(pa.int64()),
            "state.dest": pa.map_(pa.int64(), pa.float64()),  # another name than the key column's
            "seen": pa.int64(),
            "recent": pa.int64(),
        }
    ),
}


def tuples(table):
    return sorted((tuple(row.values()) for row in table.to_pylist()), key=repr)


def same(table, rows):
    return tuples(table) == sorted(rows, key=repr)


@pytest.mark.parametrize("place", ["memory", *(pytest.param(place, marks=pytest.mark.slow) for place in ("lmdb", "server"))])
def test_a_table_has_the_rows_the_state_or_the_states_of_every_key(place, request, tmp_path):
    backend = request.getfixturevalue("state_server") if place == "server" else place
    source, ready = batches(ROWS, MORE)
    job = run(source, tmp_path / "saved", state={"backend": backend, "dir": str(tmp_path)})
    awaited(job, "by_n", 2, {"n": 2, "keys": 1})
    awaited(job, "pairs", "SFO", {"n": 101})
    awaited(job, "stops", "SFO", {"days": [3], "dest": {4: 0.0}})
    job.checkpoint()
    for operator, rows in AT_FIRST.items():
        table = job.table(operator)
        assert same(table, rows), operator
        assert table.schema.equals(COLUMNS.get(operator, table.schema)), operator
        assert table.schema.metadata[b"checkpoint"] == b"1"
        assert datetime.fromisoformat(table.schema.metadata[b"created"].decode()).tzinfo == UTC
    job.migrate("totals", groups=range(64), to=1)
    job.scale("prices", 3)
    ready[0] = 2
    awaited(job, "by_n", 2, {"n": 2, "keys": 3})
    awaited(job, "stops", "SFO", None)
    assert same(job.table("totals"), AT_FIRST["totals"]), "the newest checkpoint is the one before"
    for operator, rows in LATER.items():  # the second checkpoint has the changes since the first, and the keys that are gone
        assert same(job.table(operator, fresh=True), rows), operator
    assert job.checkpoints()[-1].number == 1 + len(LATER)
    over(job)


def test_a_table_may_be_of_some_keys(tmp_path):
    job = run(batches(ROWS)[0], tmp_path)
    awaited(job, "days", ("SFO", 3), {"dest": "SFO", "day": 3, "n": 1})
    some = job.table("days", fresh=True, most=2)
    assert some.num_rows == 2
    assert set(tuples(some)) < set(AT_FIRST["days"])
    for most in (0, True, 1.5):
        with pytest.raises(ef.RequestError, match="it must be a whole number, 1 or more"):
            job.table("days", most=most)
    over(job)


WRONG = [
    ("hours", "operator `hours` has the state of aggregates in windows, in which a key has no one value"),
    (
        "to_totals",
        "operator `to_totals` has no state by key; operators whose keys can be read: totals, finals, days, by_n, prices, stops, pairs",
    ),
    ("nothing", "has no operator `nothing`"),
]


def test_operators_without_a_table_are_refused_with_advice(tmp_path):
    job = run(batches(ROWS)[0], tmp_path)
    for fresh in (False, True):
        for operator, words in WRONG:
            with pytest.raises(ef.RequestError, match=words):
                job.table(operator, fresh=fresh)
    with pytest.raises(
        ef.RequestError,
        match=r"job `flights` has completed no checkpoint since it began: take one with job.checkpoint\(\), or read with fresh=True",
    ):
        job.table("totals")
    assert job.checkpoints() == []
    over(job)
    with pytest.raises(
        ef.JobNotRunningError, match=r"job `flights` is cancelled: ef\.read_savepoint reads the checkpoints that it has left"
    ):
        job.table("totals")


def test_a_job_without_a_checkpoint_folder_has_no_tables(tmp_path):
    job = run(batches(ROWS)[0], None)
    for fresh in (False, True):
        with pytest.raises(ef.RequestError, match=r"give the job CheckpointConfig\(dir=...\); job.read reads single keys without it"):
            job.table("totals", fresh=fresh)
    assert job.checkpoints() == []
    over(job)


def test_files_that_are_gone_are_named_and_those_of_a_newer_checkpoint_are_read(tmp_path):
    job = run(batches(ROWS)[0], tmp_path)
    awaited(job, "totals", "SFO", {"dest": "SFO", "n": 1, "high": 0.0})
    job.checkpoint()
    there = job._runtime.ask(ShowTable("totals"))
    for file in tmp_path.glob("flights/checkpoint-*/totals-*.state"):
        file.unlink()
    with pytest.raises(ef.ConnectorError, match=r"the state of `totals` in checkpoint 1 can't be read: .*totals-"):
        job.table("totals")
    whole = ef.read_savepoint(job.savepoint(tmp_path / "savepoint"))

    class Replaced:
        """A job whose older checkpoint is removed while it is read."""

        asked = 0

        def ask(self, request):
            self.asked += 1
            return there if self.asked == 1 else job._runtime.ask(request)

    assert same(read_table(Replaced(), "flights", "totals"), AT_FIRST["totals"])
    assert whole.operators["totals"].keys == 4
    over(job)


def counted(source, folder, **aggregates):
    """Run a flow with these aggregates, in the folder of an earlier run."""
    flow = ef.Dataflow("counted")
    rows = flow.read(ef.from_generator(source, event_time="item", unit="s", poll_every="10ms"))
    rows.key_by("dest").aggregate(**aggregates).named("totals").write(ef.to_callback(lambda row: None))
    return flow, ef.JobConfig(parallelism=2, checkpoint=ef.CheckpointConfig(str(folder), interval=None))


def test_a_program_with_other_aggregates_reads_the_checkpoint_from_which_it_continues(tmp_path):
    flow, config = counted(batches(ROWS)[0], tmp_path, n=ef.count(), high=ef.max("price"))
    job = flow.run(runtime="local", config=config)
    awaited(job, "totals", "SFO", {"dest": "SFO", "n": 1, "high": 0.0})
    job.checkpoint()
    over(job)
    flow, config = counted(batches(ROWS)[0], tmp_path, low=ef.min("price"), n=ef.count())
    job = flow.run(runtime="local", config=config, allow_new_state=True, allow_lost_state=True)
    assert same(job.table("totals"), [("JFK", None, 2), ("LAX", None, 1), (None, None, 1), ("SFO", None, 1)])
    over(job)


@pytest.mark.slow
def test_a_job_that_begins_from_a_savepoint_has_tables_after_its_first_checkpoint(tmp_path):
    job = run(batches(ROWS)[0], tmp_path / "first")
    awaited(job, "totals", "SFO", {"dest": "SFO", "n": 1, "high": 0.0})
    savepoint = job.savepoint(tmp_path / "savepoint")
    over(job)
    checkpoint = ef.CheckpointConfig(str(tmp_path / "second"), interval=None)
    job = make_flow(batches(ROWS)[0]).run(
        runtime="local", config=ef.JobConfig(parallelism=3, checkpoint=checkpoint), from_savepoint=savepoint
    )
    with pytest.raises(ef.RequestError, match="has completed no checkpoint since it began"):
        job.table("totals")
    assert same(job.table("totals", fresh=True), AT_FIRST["totals"])
    over(job)


def test_values_of_no_common_type_are_shown_as_texts(tmp_path):
    def mixed(state, row):
        return {"JFK": {"a": 1}, "LAX": "one", None: (1, "b")}.get(row["dest"]), None

    flow = ef.Dataflow("mixed")
    rows = flow.read(ef.from_generator(batches(ROWS)[0], poll_every="10ms"))
    rows.key_by("dest").stateful_map(mixed).named("mixed").write(ef.to_callback(lambda row: None))
    job = flow.run(runtime="local", config=ef.JobConfig(checkpoint=ef.CheckpointConfig(str(tmp_path), interval=None)))
    awaited(job, "mixed", None, (1, "b"))
    assert same(job.table("mixed", fresh=True), [("JFK", "{'a': 1}"), ("LAX", "'one'"), (None, "(1, 'b')")])
    over(job)
