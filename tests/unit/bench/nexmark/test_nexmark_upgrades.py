"""The check of NexMark's rows while the code is exchanged."""

from __future__ import annotations

from datetime import timedelta

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import evenflow as ef
from evenflow.bench.harness.errors import BenchmarkError
from evenflow.bench.nexmark.live import LiveEvents
from evenflow.bench.nexmark.queries import QUERIES
from evenflow.bench.nexmark.queries.events import Events, side_table
from evenflow.bench.nexmark.upgrades import INPUT, RATE, RESULTS, compare, program
from evenflow.engine.plan.upgrade import comparison

SECONDS, FIRST, LAST, UNTIL = 60, 25.0, 35.0, 55.0


@pytest.mark.parametrize("query", RESULTS)
def test_the_first_upgrade_exchanges_all_workers_and_the_second_those_with_the_results(query, tmp_path):
    versions = ((1, 1), (2, 1), (2, 2))
    first, same, other = (program(query, 0.0, tmp_path, inputs=inputs, results=results).plan(2) for inputs, results in versions)
    everything, results = comparison.compare(first, same, all_changed=True), comparison.compare(same, other)
    assert set(everything.changed_stages) == {stage.name for stage in first.stages}
    assert not everything.needs_restart
    assert not comparison.compare(first, same).needs_restart
    assert results.changed_stages == (first.stages[-1].name,)
    assert not results.needs_restart


@pytest.fixture(scope="module", params=RESULTS)
def events(request, tmp_path_factory):
    """Write events from 1970 on and the rows that a job with two filters would have; return the query, the folder and the rows."""
    folder, query = tmp_path_factory.mktemp(request.param), request.param
    flow, rows = ef.Dataflow(query), []
    for name in INPUT:
        LiveEvents(name, begun=0.0, rate=RATE, events=int(SECONDS * RATE), base_time=0).write(folder / "events" / name)

    def stream(name):
        read = ef.read_parquet(folder / "events" / name, event_time="dateTime", name=name)
        return lambda: flow.read(read).filter(ef.col(INPUT[name]) % 5 != 0)

    QUERIES[query](Events(*map(stream, INPUT), side_table())).write(ef.to_list(rows))
    flow.run(runtime="local", config=ef.JobConfig(checkpoint=ef.CheckpointConfig(interval=None))).wait()
    return query, folder, rows


def end_of(query, row):
    end = row["endtime"] if query == "q11" else row["window_start" if query == "q5" else "starttime"] + timedelta(seconds=10)
    return end.timestamp()


def filtered(query, rows):
    """Return the rows of a job whose filter changes in the middle of the change."""
    column, middle = RESULTS[query].column, (FIRST + LAST) / 2
    return [row for row in rows if row[column] % (2 if end_of(query, row) < middle else 3) != 0]


def compared(query, folder, rows):
    (folder / "out").mkdir(exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows), folder / "out" / "0.parquet")
    return compare(query, folder, (FIRST, LAST), UNTIL)


def test_rows_of_one_filter_and_then_of_the_other_are_right(events):
    query, folder, rows = events
    count, missing, wrong, only_old, only_new = compared(query, folder, filtered(query, rows))
    assert (missing, wrong) == (0, 0)
    assert only_old + only_new > 0
    assert count >= 10


def test_a_row_that_is_missing_twice_or_of_the_wrong_filter_is_found(events):
    query, folder, rows = events
    column, right = RESULTS[query].column, filtered(query, rows)
    both = [row for row in right if row[column] % 6 in (1, 5) and end_of(query, row) < UNTIL]
    late = next(row for row in rows if row[column] % 6 == 3 and LAST < end_of(query, row) < UNTIL)
    early = next(row for row in rows if row[column] % 6 in (2, 4) and end_of(query, row) < FIRST)
    assert compared(query, folder, [row for row in right if row is not both[0]])[1:3] == (1, 0)
    assert compared(query, folder, [*right, both[0]])[1:3] == (0, 1)
    assert compared(query, folder, [*right, late, early])[1:3] == (0, 2)


def test_a_check_whose_rows_are_the_same_with_both_filters_says_so(events):
    query, folder, rows = events
    same = [row for row in filtered(query, rows) if row[RESULTS[query].column] % 6 in (1, 5)]
    with pytest.raises(BenchmarkError, match="tells the filters apart"):
        compared(query, folder, same)
