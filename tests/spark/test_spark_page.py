from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs/how-to/spark.md"


def test_the_example_runs_as_it_stands_without_ray(spark, tmp_path, monkeypatch, capsys):
    (block,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert block.count("flow.run()") == 1
    assert block.count('parquet("') == 3
    monkeypatch.chdir(tmp_path)
    # Spark's working directory is that of the process that started it.
    block = block.replace('parquet("', f'parquet("{tmp_path}/').replace("flow.run()", 'flow.run(runtime="local")')
    exec(block, {})
    rows = spark.read.parquet(str(tmp_path / "worst")).groupBy("dest").sum("n").orderBy("dest").collect()
    assert [tuple(row) for row in rows] == [("ATL", 33_334), ("LAX", 33_333), ("ORD", 33_333)]
    assert "ATL" in capsys.readouterr().out
