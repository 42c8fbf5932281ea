from __future__ import annotations

from evenflow.bench.record import Case
from evenflow.bench.small import KEYS, PIECE, BatchSource, verdicts


def test_the_thread_is_measured_at_every_piece_of_batches_behind_those_that_bring_the_keys():
    source = BatchSource(rows=5, batches=2 * PIECE + 1)
    reader = source.reader(0, 1)
    while not reader.finished:
        reader.poll(1_000_000)
    assert len(source.spent) == 3
    assert source.spent == sorted(source.spent)
    assert source.microseconds >= 0.0


def test_every_other_poll_has_a_batch_so_that_each_makes_its_way_alone():
    reader = BatchSource(rows=5, batches=2).reader(0, 1)
    polled = []
    while not reader.finished:
        polled.append(reader.poll(1_000_000))
    assert [batch is None for batch in polled] == [True, False] * (len(polled) // 2)
    keys = {key for batch in polled if batch is not None for key in batch.rows.column("key").to_pylist()}
    assert len(keys) == KEYS


def test_only_what_has_a_target_is_judged():
    cases = [Case("local/1/50", "us", "lower", (200.0,)), Case("local/2/50", "us", "lower", (1.0,))]
    assert [(verdict.target, verdict.met) for verdict in verdicts(cases)] == [(150.0, False)]
