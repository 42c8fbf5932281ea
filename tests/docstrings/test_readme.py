"""The README's first dataflow runs as it stands there, except that it runs without Ray."""

from __future__ import annotations

import datetime as dt
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

README = Path(__file__).parents[2] / "README.md"


def python_blocks() -> list[str]:
    return re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)


def test_the_first_dataflow_runs(tmp_path, monkeypatch, capsys):
    (block,) = [code for code in python_blocks() if "spark" not in code]
    assert block.count("flow.run()") == 1
    (tmp_path / "flights").mkdir()
    times = [dt.datetime(2013, 1, 1, 5, minute, tzinfo=dt.UTC) for minute in (0, 20, 40, 50)]
    rows = {"ts": times, "dest": ["ATL", "ORD", "ATL", "ATL"], "dep_delay": [2, 7, 5, None]}
    pq.write_table(pa.table(rows), tmp_path / "flights/2013.parquet")
    monkeypatch.chdir(tmp_path)
    exec(block.replace("flow.run()", 'flow.run(runtime="local")'), {})
    results = pq.read_table("delays").sort_by("dest").select(["dest", "n", "delay"])
    assert results.to_pylist() == [{"dest": "ATL", "n": 2, "delay": 3.5}, {"dest": "ORD", "n": 1, "delay": 7.0}]
    assert "aggregate: 1 worker" in capsys.readouterr().out


def test_pictures_and_pages_that_it_links_are_there():
    links = re.findall(r"\]\((?!https?:)([^)#]+)", README.read_text())
    assert "docs/images/delays.png" in links
    assert [link for link in links if not (README.parent / link).exists()] == []
