"""A DataFrame of Spark or pandas as the table of a lookup."""

from __future__ import annotations

import threading

import pandas as pd
import pytest
from patience import patience

import evenflow as ef

PATIENCE = patience(60)


@pytest.mark.parametrize("of", ["spark", "pandas"])
def test_data_frame_is_collected_when_the_stream_is_built(spark, of):
    if of == "spark":
        airports = spark.createDataFrame([("JFK", 13), ("LHR", 83)], "code string, feet int")
    else:
        airports = pd.DataFrame({"code": ["JFK", "LHR"], "feet": [13, 83]}, index=[7, 8])
    flow, rows = ef.Dataflow("airports"), []
    flow.read(ef.from_items([{"dest": "LHR"}, {"dest": "XXX"}])).lookup(airports, on={"dest": "code"}).write(ef.to_list(rows))
    flow.run(runtime="local").wait("60s")
    assert rows == [{"dest": "LHR", "feet": 83}, {"dest": "XXX", "feet": None}]


def test_function_gives_what_spark_has_each_time_that_the_table_is_read(spark):
    reads, met = [], threading.Event()

    def airports():
        reads.append(len(reads))
        heights = spark.createDataFrame([("JFK", 13), ("LHR", 83)], "code string, feet int")
        return heights.selectExpr("code", f"feet + {1000 * reads[-1]} AS feet")

    def look(row):
        seen.append(row["feet"])
        if row["feet"] >= 2083:
            met.set()

    flow, seen = ef.Dataflow("airports"), []
    rows = flow.read(ef.generate(rate=200, every="20ms")).map(lambda row: {"dest": "LHR"})
    rows.lookup(airports, on={"dest": "code"}, refresh="20ms").write(ef.to_callback(look))
    job = flow.run(runtime="local")
    try:
        assert met.wait(PATIENCE), job.status().problems
    finally:
        job.cancel()
        job.wait("60s")
    problems = job.status().problems
    assert all("reading the table takes longer than refresh=" in problem for problem in problems), problems
    assert seen[0] == 83
    assert seen == sorted(seen), "never back to an older table"
    assert {feet % 1000 for feet in seen} == {83}
