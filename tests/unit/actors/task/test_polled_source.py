"""The reader of a source task, while the job is rescaled."""

from __future__ import annotations

from dataclasses import replace

import pytest

import evenflow as ef
from evenflow.actors.task.polled_source import PolledSource
from evenflow.engine.errors import ProtocolError


def spec_of(worker):
    flow = ef.Dataflow("f")
    items = flow.read(ef.from_items([1, 2, 3])).named("items").parallelism(1)
    items.key_by("item").aggregate(n=ef.count()).named("count").write(ef.to_list([]))
    return next(task for task in flow.plan().tasks if task.name == worker)


def test_worker_that_joins_a_running_source_reads_nothing_before_it_is_given_something():
    source = PolledSource(replace(spec_of("items-0"), joining=True))
    source.open()
    assert (source.reader, source.position) == (None, None)
    other = PolledSource(spec_of("items-0"))
    other.open()
    other.reader.poll(1)
    source.take(0, 1, other.position)
    assert source.reader.poll(10).num_rows == 2


def test_reader_is_closed_before_another_takes_its_place():
    source = PolledSource(spec_of("items-0"))
    source.open()
    closed, before = [], source.reader
    before.close = lambda: closed.append(before)
    source.take(0, 1, source.position)
    assert closed == [before]
    assert source.reader is not before
    source.close()
    assert source.reader is None


def test_task_without_a_source_has_no_reader_and_takes_none():
    source = PolledSource(spec_of("count-0"))
    source.open()
    source.seek({"at": 7})
    assert source.reader is None
    with pytest.raises(ProtocolError, match="task count-0 reads no source"):
        source.take(0, 1, None)
