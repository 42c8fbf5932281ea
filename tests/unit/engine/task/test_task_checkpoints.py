"""Checkpoints of a task: when they are prepared."""

from __future__ import annotations

import pyarrow as pa

from evenflow.engine.batch import Batch
from evenflow.engine.keyed_state.base import KeyedState
from evenflow.engine.keyed_state.pending import PendingState
from evenflow.engine.protocol.effects import Prepared, SavedChunk
from evenflow.engine.protocol.elements import Barrier
from evenflow.engine.task.task_checkpoints import TaskCheckpoints


class Frozen(KeyedState):
    """A state that returns these chunks at every barrier."""

    nbytes = 0

    def __init__(self, *chunks: Batch) -> None:
        self.chunks = chunks

    def install(self, chunk):
        raise AssertionError

    def depart(self, move):
        raise AssertionError

    def snapshot(self):
        return iter(self.chunks)

    def changes(self):
        return None

    def delta(self, changes):
        raise AssertionError


def _include(checkpoints: TaskCheckpoints, state: Frozen) -> None:
    checkpoints.include(state, PendingState(state, "count"))


CHUNKS = [Batch(pa.record_batch({"key": [n]})) for n in range(3)]


def test_checkpoint_without_state_is_prepared_at_once():
    checkpoints = TaskCheckpoints()
    prepared = Prepared(4, {})
    assert checkpoints.begin(Barrier(4), prepared) is prepared
    assert (checkpoints.passed, checkpoints.saving, checkpoints.next(), list(checkpoints.rest())) == (4, False, None, [])


def test_checkpoint_is_prepared_behind_the_last_chunk_of_its_state():
    checkpoints = TaskCheckpoints()
    _include(checkpoints, Frozen(*CHUNKS))
    prepared = Prepared(4, {})
    assert checkpoints.begin(Barrier(4), prepared) is None
    assert (checkpoints.passed, checkpoints.saving) == (4, True)
    assert checkpoints.next() == SavedChunk(4, CHUNKS[0])
    assert list(checkpoints.rest()) == [SavedChunk(4, CHUNKS[1]), SavedChunk(4, CHUNKS[2]), prepared]
    assert not checkpoints.saving


def test_without_any_state_there_is_no_chunk():
    checkpoints = TaskCheckpoints()
    _include(checkpoints, Frozen())
    prepared = Prepared(4, {})
    checkpoints.begin(Barrier(4), prepared)
    assert list(checkpoints.rest()) == [prepared]
