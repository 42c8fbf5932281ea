from __future__ import annotations

import numpy as np

from evenflow.bench.harness.preload import PreloadedSource


def rows_of(reader, batches):
    found = [reader.poll(10_000) for _ in range(batches)]
    return [np.concatenate([batch.rows.column(name).to_numpy() for batch in found]) for name in ("key", "created")]


def test_every_key_comes_once_before_any_comes_again():
    reader = PreloadedSource(20_000, None).reader(0, 1)
    keys, created = rows_of(reader, 3)
    assert keys.tolist() == list(range(20_000))
    assert not created.any()
    keys, created = rows_of(reader, 1)
    assert created.all()
    assert keys.max() < 20_000
    assert not reader.finished


def test_a_reader_resumes_where_another_stopped():
    first = PreloadedSource(20_000, None).reader(0, 1)
    rows_of(first, 4)
    second = PreloadedSource(20_000, None).reader(0, 1)
    second.seek(first.position())
    assert rows_of(first, 1)[0].tolist() == rows_of(second, 1)[0].tolist()
