"""The Yahoo streaming benchmark gives DuckDB's counts, and a count that is wrong or missing is found."""

from __future__ import annotations

import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import evenflow as ef
from evenflow.bench.papers.yahoo import views_by_campaign
from evenflow.bench.papers.yahoo.check import connect, differences
from evenflow.bench.papers.yahoo.events import ADS_PER_CAMPAIGN, CAMPAIGNS, ad_events, campaigns

EVENTS = 60_000
ARGUMENTS = {"event_rate": 1_500.0}
"""Four windows."""


pytestmark = pytest.mark.usefixtures("waiting_for_jobs")


@pytest.fixture(scope="module")
def database():
    with connect(EVENTS, **ARGUMENTS) as database:
        yield database


@pytest.fixture(scope="module")
def counts(tmp_path_factory):
    folder = tmp_path_factory.mktemp("views")
    flow = ef.Dataflow("yahoo")
    events = flow.read(ad_events(events=EVENTS, rows_per_batch=700, **ARGUMENTS)).parallelism(2)
    views_by_campaign(events).write(ef.write_parquet(folder))
    config = ef.JobConfig(parallelism=2, checkpoint=ef.CheckpointConfig(interval=None))
    flow.run(runtime="local", config=config).wait()
    return folder


def test_counts_are_duckdbs(database, counts):
    rows, missing, wrong = differences(database, counts)
    assert (rows, missing, wrong) == (4 * CAMPAIGNS, 0, 0)


@pytest.mark.parametrize(
    ("fault", "missing_wrong"),
    [
        pytest.param(lambda table: table.slice(1), (1, 0), id="a count is missing"),
        pytest.param(lambda table: pa.concat_tables([table, table.slice(3, 1)]), (0, 1), id="a count came twice"),
        pytest.param(
            lambda table: table.set_column(1, "views", pa.array([table["views"][0].as_py() + 1, *table["views"].to_pylist()[1:]])),
            (1, 1),
            id="a count is one too high",
        ),
    ],
)
def test_a_fault_is_found(database, counts, tmp_path, fault, missing_wrong):
    pq.write_table(fault(pq.read_table(counts).select(["campaign_id", "views", "window_start"])), tmp_path / "faulty.parquet")
    assert differences(database, tmp_path)[1:] == missing_wrong


def test_events_are_drawn_uniformly_and_depend_on_their_number_alone():
    whole = ad_events(events=9_000, rows_per_batch=9_000).reader(0, 1).poll(9_000).rows
    parts = [ad_events(events=9_000, rows_per_batch=9_000).reader(index, 3).poll(9_000).rows for index in range(3)]
    assert all(whole.take(pa.array(np.arange(index, 9_000, 3))).equals(part) for index, part in enumerate(parts))
    shares = {one["values"]: one["counts"] / 9_000 for one in whole["event_type"].value_counts().to_pylist()}
    assert shares == pytest.approx({"view": 1 / 3, "click": 1 / 3, "purchase": 1 / 3}, abs=0.03)
    assert set(whole["ad_id"].to_pylist()) <= set(campaigns()["ad_id"].to_pylist())


def test_every_advertisement_belongs_to_one_campaign_and_each_campaign_has_ten():
    table = campaigns()
    assert len(set(table["ad_id"].to_pylist())) == CAMPAIGNS * ADS_PER_CAMPAIGN
    assert {one["counts"] for one in table["campaign_id"].value_counts().to_pylist()} == {ADS_PER_CAMPAIGN}


def test_a_punctual_event_is_due_at_its_event_time():
    soon = int((time.time() + 3_600) * 1000)
    assert ad_events(rate=1_000.0, base_time=soon, punctual=True).reader(0, 1).poll(10) is None
    ago = int((time.time() - 60) * 1000)
    reader = ad_events(rate=1_000.0, base_time=ago, punctual=True).reader(0, 1)
    assert 59_000 < reader.backlog() < 3_600_000
    assert reader.poll(10).rows["event_time"][0].value == ago


def test_a_row_of_a_campaign_without_advertisement_in_the_table_is_dropped():
    flow, rows = ef.Dataflow("unknown"), []
    batch = ad_events(events=3_000, rows_per_batch=3_000).reader(0, 1).poll(3_000).rows.to_pylist()
    unknown = [{**row, "ad_id": "none of ours", "event_type": "view"} for row in batch[:5]]
    views_by_campaign(flow.read(ef.from_items([*batch, *unknown], event_time="event_time"))).write(ef.to_list(rows))
    flow.run(runtime="local", config=ef.JobConfig(checkpoint=ef.CheckpointConfig(interval=None))).wait()
    assert sum(row["views"] for row in rows) == sum(row["event_type"] == "view" for row in batch)
