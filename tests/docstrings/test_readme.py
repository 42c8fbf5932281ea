"""The README is short, its table agrees with the page that has the sources, and its program runs as it stands there.

The program runs without Ray. Its source gives rows 20 times a second and not 1,000 times, which takes a tenth of the processor time, and
its clock runs twice as fast. The last rows wait for the scaling.
"""

from __future__ import annotations

import re
import time
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import evenflow as ef

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
COMPARISON = ROOT / "docs" / "reference" / "comparison.md"
MOST_WORDS = 900
NOTHING_FOUND = "?"


def prose_of(page: str) -> str:
    """Return a page without its code."""
    return re.sub(r"^    .*$", "", re.sub(r"^```.*?^```$", "", page, flags=re.DOTALL | re.MULTILINE), flags=re.MULTILINE)


def comparison_of(page: str) -> list[list[str]]:
    """Return the cells of the table that compares evenflow with other systems, with its head."""
    (table,) = re.findall(r"^\| \| evenflow \|.*\n(?:\|.*\n)+", page, re.MULTILINE)
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines() if "---" not in line]


class Clock:
    """Twice the time since its creation, which stops at second 20 until `on` is called."""

    def __init__(self) -> None:
        self._begun, self._stood = time.monotonic(), None

    def __call__(self) -> float:
        passed = 2 * (time.monotonic() - self._begun)
        return min(passed, 20.0) if self._stood is None else passed - self._stood

    def on(self) -> None:
        self._stood = max(0.0, 2 * (time.monotonic() - self._begun) - 20.0)


@pytest.fixture
def clock(monkeypatch):
    """Replace the clock of the program's source: on a busy machine the stream would end before a worker has joined."""
    clock, scale = Clock(), ef.Job.scale

    def scaled(*arguments):
        try:
            return scale(*arguments)
        finally:
            clock.on()

    monkeypatch.setattr(ef.Job, "scale", scaled)
    return clock


def test_the_first_dataflow_runs_without_files_of_the_readers(tmp_path, monkeypatch, capsys, clock):
    (block,) = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    assert block.count("flow.run()") == block.count("total=600_000") == 1
    block = block.replace("flow.run()", 'flow.run(runtime="local")').replace("total=600_000", 'total=600_000, every="50ms", clock=clock')
    monkeypatch.chdir(tmp_path)
    exec(block, {"__name__": "__main__", "clock": clock})
    seconds = pq.read_table("clicks").group_by("window_start").aggregate([("n", "sum"), ("largest", "max")])
    rows = ef.generate(total=600_000, rows_per_batch=600_000).reader(0, 1).poll(600_000).rows
    assert len(seconds) == 30
    assert pc.sum(seconds["n_sum"]).as_py() == pc.sum(pc.less(rows["value"], 900)).as_py()
    assert pc.max(seconds["largest_max"]).as_py() == 899.875
    printed = capsys.readouterr().out
    assert "scaling 0 of `aggregate` from 1 to 2 workers done" in printed
    assert "load of 2 workers" in printed
    assert "'key-0'" in printed


def test_the_calls_that_steer_a_job_are_those_of_a_job(tmp_path, monkeypatch):
    calls = re.findall(r"^    >>> (.*)$", README.read_text(), re.MULTILINE)
    assert len(calls) == 5
    flow = ef.Dataflow("hot-keys")
    clicks = flow.read(ef.generate(rate=500, every="10ms", keys=50, string_keys=True)).key_by("key")
    clicks.aggregate(n=ef.count()).write(ef.to_list([]))
    job = flow.run(runtime="local", parallelism=2, config=ef.JobConfig(checkpoint=ef.CheckpointConfig(tmp_path / "saved")))
    monkeypatch.setattr(ef, "connect", {"hot-keys": job}.__getitem__)
    try:
        exec("\n".join(calls).replace("/backup/", f"{tmp_path}/"), {"ef": ef, "new_flow": flow})
    finally:
        job.cancel()
        job.wait("60s")
    assert ef.read_savepoint(tmp_path / "hot-keys").job == "hot-keys"


def test_the_readme_takes_90_seconds_to_read():
    assert len(prose_of(README.read_text()).split()) <= MOST_WORDS


def test_words_are_counted_without_code():
    assert prose_of("one\n\n```python\ntwo\n```\n\n    three\n\nfour | five\n").split() == ["one", "four", "|", "five"]


def test_the_comparison_of_the_readme_is_that_of_the_page_with_the_sources():
    sourced = [[re.sub(r"\[(.*?)\][\[(].*?[\])]", r"\1", cell) for cell in line] for line in comparison_of(COMPARISON.read_text())]
    assert comparison_of(README.read_text()) == sourced


def test_every_cell_of_the_comparison_has_its_source_at_a_commit():
    page = COMPARISON.read_text()
    sources = dict(re.findall(r"^\[([\w-]+)\]: (\S+)$", page, re.MULTILINE))
    (_, *systems), *lines = comparison_of(page)
    assert len(systems) == len(lines) == 8
    for name, ours, *theirs in lines:
        assert re.fullmatch(r"\[\w+\]\([\w/.-]+\.md\)", ours), name
        for system, cell in zip(systems[1:], theirs, strict=True):
            found = re.fullmatch(r"\[\w+\]\[([\w-]+)\]", cell)
            assert cell == NOTHING_FOUND or (found and re.search(r"/[0-9a-f]{40}/", sources[found[1]])), f"{name}: {system}"
