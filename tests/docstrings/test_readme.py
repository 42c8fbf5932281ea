"""The README's first dataflow runs as it stands there, except that it runs without Ray."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq

import evenflow as ef

README = Path(__file__).parents[2] / "README.md"


def python_blocks() -> list[str]:
    return re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)


def test_the_first_dataflow_runs_without_files_of_the_readers(tmp_path, monkeypatch, capsys):
    (block,) = [code for code in python_blocks() if "spark" not in code]
    assert block.count("flow.run()") == 1
    monkeypatch.chdir(tmp_path)
    exec(block.replace("flow.run()", 'flow.run(runtime="local")'), {"__name__": "__main__"})
    seconds = pq.read_table("clicks").group_by("window_start").aggregate([("n", "sum"), ("largest", "max")])
    rows = ef.generate(total=100_000, rows_per_batch=100_000).reader(0, 1).poll(100_000).rows
    assert len(seconds) == 5
    assert pc.sum(seconds["n_sum"]).as_py() == pc.sum(pc.less(rows["value"], 900)).as_py()
    assert pc.max(seconds["largest_max"]).as_py() == 899.875
    assert "key-0" in capsys.readouterr().out


def test_pictures_and_pages_that_it_links_are_there():
    links = re.findall(r"\]\((?!https?:)([^)#]+)", README.read_text())
    assert "docs/images/delays.png" in links
    assert [link for link in links if not (README.parent / link).exists()] == []
