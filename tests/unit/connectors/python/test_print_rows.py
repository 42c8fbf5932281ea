from __future__ import annotations

import pyarrow as pa

from evenflow.connectors.python.print_rows import print_rows
from evenflow.engine.batch import Batch


def test_rows_are_printed_behind_the_prefix(capsys):
    writer = print_rows("> ").writer(0, 1)
    writer.write(Batch(pa.record_batch({"n": [1, 2]})))
    writer.write(Batch(pa.record_batch({"item": [3]})))
    assert capsys.readouterr().out == "> {'n': 1}\n> {'n': 2}\n> 3\n"
    assert writer.prepare(1) == []


def test_it_promises_no_more_than_at_least_once():
    assert "at least once" in print_rows().guarantee
