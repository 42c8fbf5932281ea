"""A DataFrame of Spark or pandas as the table of a lookup."""

from __future__ import annotations

import pandas as pd
import pytest

import evenflow as ef


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
