"""Missing, truncated or altered files of a chain are found before they give wrong state; unaffected checkpoints can be read."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenflow.actors.task.state_writer import StateWriter
from evenflow.engine.batch import Batch
from evenflow.engine.protocol.effects import Prepared
from evenflow.engine.snapshots.chain import replacing, resolved
from evenflow.state.errors import CorruptStateError
from evenflow.state.store import CheckpointStore, path_from_sibling

CHECKPOINTS = 5


def chunk(checkpoint):
    """Return the rows of a checkpoint: all keys in the first; each later one changes a key, and deletes the previous one."""
    if checkpoint == 1:
        return [pa.record_batch({"k": list(range(100)), "n": [0] * 100})]
    changed = replacing(pa.record_batch({"k": [checkpoint], "n": [checkpoint]}), ["k"])
    return [changed, replacing(pa.record_batch({"k": [checkpoint - 1]}), ["k"])]


def expected(checkpoint):
    values = dict.fromkeys(range(100), 0)
    for number in range(2, checkpoint + 1):
        values[number] = number
        del values[number - 1]
    return values


@pytest.fixture(scope="module")
def chains(tmp_path_factory):
    """Create a store, and by checkpoint the chain of its files relative to its folder."""
    store = CheckpointStore(str(tmp_path_factory.mktemp("chains")))
    writer, chains = StateWriter(store, "count-0"), {0: ()}
    for checkpoint in range(1, CHECKPOINTS + 1):
        for rows in chunk(checkpoint):
            writer.write(checkpoint, Batch(rows))
        writer.finish(Prepared(checkpoint, {}))
        (report,) = writer.flush()
        before = tuple(replace(file, path=path_from_sibling(file.path, checkpoint - 1)) for file in chains[checkpoint - 1])
        chains[checkpoint] = (*before, *report.files)
    writer.close()
    return store, chains


def read(store, chain, checkpoint):
    chunks = resolved(store.chunks(checkpoint, file) for file in reversed(chain))
    return {row["k"]: row["n"] for rows in chunks for row in rows.to_pylist()}


def test_every_checkpoint_of_a_chain_is_read_as_it_was(chains):
    store, by_checkpoint = chains
    for checkpoint in range(1, CHECKPOINTS + 1):
        assert len(by_checkpoint[checkpoint]) == checkpoint
        assert read(store, by_checkpoint[checkpoint], checkpoint) == expected(checkpoint)


@given(st.integers(1, CHECKPOINTS), st.sampled_from(("gone", "cut short", "altered", "another's")), st.data())
@settings(deadline=None)
def test_damage_anywhere_refuses_what_needs_the_file_and_nothing_else(chains, damaged, how, data):
    store, by_checkpoint = chains
    path = next(Path(store.folder(damaged)).glob("*.state"))
    whole = path.read_bytes()
    try:
        if how == "gone":
            path.unlink()
        elif how == "cut short":
            path.write_bytes(whole[: data.draw(st.integers(0, len(whole) - 1))])
        elif how == "altered":
            bit = data.draw(st.integers(0, 8 * len(whole) - 1))
            path.write_bytes(whole[: bit // 8] + bytes([whole[bit // 8] ^ 1 << bit % 8]) + whole[bit // 8 + 1 :])
        else:
            path.write_bytes(next(Path(store.folder(damaged % CHECKPOINTS + 1)).glob("*.state")).read_bytes())
        for checkpoint in range(1, CHECKPOINTS + 1):
            if checkpoint < damaged:
                assert read(store, by_checkpoint[checkpoint], checkpoint) == expected(checkpoint)
            else:
                with pytest.raises(CorruptStateError, match=path.name):
                    read(store, by_checkpoint[checkpoint], checkpoint)
    finally:
        path.write_bytes(whole)
