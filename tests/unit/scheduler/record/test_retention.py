"""One damaged file costs at most the checkpoints of its chain, with any chains of a job's workers."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from evenflow.scheduler.protocol.manifest import Manifest, TaskEntry
from evenflow.scheduler.record.restoring.retention import Needs, retained
from evenflow.state.files import StateFile
from evenflow.state.store import path_from_sibling


@st.composite
def histories(draw):
    """Draw which workers write a whole file at each checkpoint: all do at the first, and when their number changes."""
    checkpoints, workers = [], 0
    for _ in range(draw(st.integers(1, 30))):
        before, workers = workers, draw(st.sampled_from((workers, workers, workers, 1, 2, 4))) or 1
        checkpoints.append([workers != before or draw(st.integers(0, 4)) == 0 for _ in range(workers)])
    return checkpoints


def chains_of(history):
    """Return the chains of all workers, at each checkpoint."""
    chains = []
    for checkpoint, wholes in enumerate(history, 1):
        files = [f"../checkpoint-{checkpoint:08d}/count-{worker}.state" for worker in range(len(wholes))]
        chains = [(file,) if whole else (*chains[worker], file) for worker, (file, whole) in enumerate(zip(files, wholes, strict=True))]
        yield checkpoint, chains


def needs_of(chains):
    return Needs(frozenset(path for chain in chains for path in chain), frozenset(chain[0] for chain in chains))


@given(histories(), st.integers(1, 3))
def test_a_checkpoint_from_before_the_chain_of_any_damaged_file_remains(history, kept):
    needs, stay = {}, set()
    for newest, chains in chains_of(history):
        needs[newest] = needs_of(chains)
        before, stay = stay, retained({number: needs[number] for number in {*stay, newest}}, kept)
        assert stay <= {*before, newest}
        assert set(range(max(1, newest - kept + 1), newest + 1)) <= stay
        assert len(stay) <= kept + len(chains)
        for chain in chains:
            without = [number for number in range(1, newest) if chain[0] not in needs[number].files]
            assert not without or max(without) in stay
            assert not without or not needs[max(without)].files.intersection(chain)


def test_needs_are_the_same_for_paths_relative_to_any_folder():
    first = (StateFile("a.state", 1, "", 1),)
    second = (StateFile(path_from_sibling("a.state", 1), 1, "", 1), StateFile("b.state", 1, "", 1))
    ones, twos = (
        Needs.of(Manifest("f", n, 0, 0.0, 4, {}, {"count": (TaskEntry(files=files), TaskEntry())}, {}, {}))
        for n, files in ((1, first), (2, second))
    )
    assert ones.files == ones.wholes == twos.wholes
    assert ones.files < twos.files
