"""A running job looks up in a table that it reads again and again."""

from __future__ import annotations

import threading

import pyarrow as pa
import pytest
from patience import patience

import evenflow as ef

PATIENCE = patience(30)


class Tables:
    """A function that gives one table after the other, and raises those that are errors."""

    def __init__(self, *tables):
        self.tables = list(tables)

    def __call__(self):
        table = self.tables.pop(0) if len(self.tables) > 1 else self.tables[0]
        if isinstance(table, BaseException):
            raise table
        return table


def table(value):
    return pa.table({"k": ["a"], "v": [value]})


@pytest.mark.usefixtures("refused")
def test_running_job_takes_the_new_table_and_shows_what_went_wrong():
    tables, seen = Tables(table("old"), OSError("gone for a moment"), table("new")), []
    flow, found = ef.Dataflow("live"), threading.Event()

    def look(row):
        seen.append(row["v"])
        if row["v"] == "new":
            found.set()

    rows = flow.read(ef.generate(rate=200)).map(lambda row: {"k": "a"})
    rows.lookup(tables, on="k", refresh="20ms").named("look").write(ef.to_callback(look))
    job = flow.run(runtime="local", config=ef.JobConfig(checkpoint=ef.CheckpointConfig(interval="20ms")))
    try:
        assert found.wait(PATIENCE)
        problems = job.status().problems
    finally:
        job.cancel()
        job.wait("60s")
    assert seen[0] == "old"
    assert seen == sorted(seen, reverse=True), "never back to the old table"
    error = "ConnectorError: operator `look`: its table can't be read"
    expected = f"the table could not be read again, so the previous one remains in use: {error}"
    assert any(problem.startswith(f"operator `look`: {expected}") for problem in problems)
    assert problems[0] in str(job.status())
