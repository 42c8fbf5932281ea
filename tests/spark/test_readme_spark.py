from __future__ import annotations

import datetime as dt
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

README = Path(__file__).parents[2] / "README.md"


def test_the_dataflow_with_spark_runs(spark, tmp_path, monkeypatch, capsys):
    (block,) = [code for code in re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL) if "spark" in code]
    assert block.count("flow.run()") == 1
    assert block.count('parquet("') == 2
    (tmp_path / "flights").mkdir()
    times = pa.array([dt.datetime(2013, 1, 1, hour, tzinfo=dt.UTC) for hour in (5, 6, 7)], pa.timestamp("us", tz="UTC"))
    flights = pa.table({"ts": times, "dest": ["ATL", "ORD", "ATL"], "dep_delay": pa.array([2, 7, 5], pa.int32())})
    pq.write_table(flights, tmp_path / "flights/2013.parquet")
    monkeypatch.chdir(tmp_path)
    # Spark's working directory is that of the process that started it.
    block = block.replace('parquet("', f'parquet("{tmp_path}/').replace("flow.run()", 'flow.run(runtime="local")')
    exec(block, {"spark": spark})
    rows = spark.read.parquet(str(tmp_path / "worst")).orderBy("dest").select("dest", "n", "worst").collect()
    assert [tuple(row) for row in rows] == [("ATL", 2, 5), ("ORD", 1, 7)]
    assert "ATL" in capsys.readouterr().out
