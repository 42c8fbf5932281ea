"""A manifest comes back as it was written, or is refused."""

from __future__ import annotations

from contextlib import suppress

import msgpack
import numpy as np
import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from evenflow.engine.protocol.routing import RoutingTable
from evenflow.engine.state_description import StateDescription
from evenflow.scheduler.protocol.manifest import MAGIC, Manifest, TaskEntry
from evenflow.state.errors import CorruptStateError
from evenflow.state.files import StateFile

NAMES = st.text("abc_", min_size=1, max_size=5)
PLAIN = st.none() | st.integers(-(2**63), 2**64 - 1) | st.text(max_size=5)
POSITIONS = st.recursive(PLAIN, lambda inner: st.lists(inner, max_size=3), max_leaves=5)
FILES = st.builds(StateFile, NAMES, st.integers(0, 2**40), st.text("0123456789abcdef", max_size=32), st.integers(0, 2**40))
ENTRIES = st.builds(TaskEntry, POSITIONS, st.integers(-(2**63) + 1, 2**63 - 1), st.lists(FILES, max_size=3).map(tuple), st.booleans())
TABLES = st.builds(
    RoutingTable,
    st.lists(st.integers(0, 2**16 - 1), min_size=8, max_size=8).map(lambda groups: np.array(groups, np.uint16)),
    st.dictionaries(st.integers(0, 2**64 - 1), st.integers(0, 2**16 - 1), max_size=3),
)
MANIFESTS = st.builds(
    Manifest,
    NAMES,
    st.integers(0, 2**31),
    st.integers(0, 2**31),
    st.floats(0, 2e9),
    st.sampled_from((16, 1024)),
    st.dictionaries(NAMES, st.lists(NAMES, max_size=3).map(tuple), max_size=3),
    st.dictionaries(NAMES, st.lists(ENTRIES, max_size=3).map(tuple), max_size=3),
    st.dictionaries(NAMES, TABLES, max_size=2),
    st.dictionaries(NAMES, st.lists(POSITIONS, max_size=3), max_size=2),
    st.lists(st.tuples(NAMES, POSITIONS), max_size=3).map(tuple),
    NAMES,
)
STATE = StateDescription("running aggregates", {"keys": "k"}, {"n": "count()"})
MANIFEST = Manifest(
    "delays", 7, 2, 1_700_000_000.0, 16, {"count": ("count", "to_list")}, {"count": (TaskEntry(None, 5, (StateFile("f", 9, "aa", 3),)),)},
    {"count": RoutingTable(np.zeros(16, np.uint16))}, {"to_list": [b"rows"]}, (("to_list", [6, [b"earlier rows"]]),), "run",
    {"count": STATE},
)  # fmt: skip


@given(MANIFESTS)
def test_manifest_comes_back_as_it_was_written(manifest):
    assert Manifest.from_bytes(manifest.to_bytes()) == manifest


@given(st.data())
def test_manifest_that_was_cut_short_is_refused(data):
    whole = MANIFEST.to_bytes()
    with pytest.raises(CorruptStateError, match=r"the manifest (has another format|is corrupt)"):
        Manifest.from_bytes(whole[: data.draw(st.integers(0, len(whole) - 1))])


@given(st.integers(0, 8 * len(MANIFEST.to_bytes()) - 1))
def test_flipped_bit_of_a_manifest_is_found(bit):
    damaged = bytearray(MANIFEST.to_bytes())
    damaged[bit // 8] ^= 1 << bit % 8
    with pytest.raises(CorruptStateError, match=r"the manifest (has another format|is corrupt|was written by an older version)"):
        Manifest.from_bytes(bytes(damaged))


@given(st.binary(max_size=200))
def test_anything_else_is_refused(content):
    with pytest.raises(CorruptStateError):
        Manifest.from_bytes(content)


def test_manifests_of_older_versions_are_refused_with_the_way_out():
    whole = MANIFEST.to_bytes()
    for older in (b"manifest 1", b"manifest 2"):
        with pytest.raises(CorruptStateError, match=r"older version of evenflow.*finish the job with that version"):
            Manifest.from_bytes(whole.replace(b"manifest 3", older, 1))
    with pytest.raises(CorruptStateError, match="has another format"):
        Manifest.from_bytes(whole.replace(b"manifest 3", b"manifest 4", 1))


def test_own_files_are_those_that_no_other_checkpoint_has():
    chain = (StateFile("../checkpoint-00000006/count-0.state", 900, "aa", 30), StateFile("count-0.state", 9, "aa", 3))
    manifest = Manifest("delays", 7, 0, 0.0, 16, {}, {"count": (TaskEntry(files=chain),)}, {}, {})
    assert (manifest.files, manifest.own_files) == ([*chain], [chain[1]])


def test_files_of_a_savepoint_are_next_to_it_and_it_has_nothing_to_commit():
    entry = TaskEntry(files=(StateFile("../checkpoint-00000006/count-0.state", 9, "aa", 3),))
    savepoint = Manifest("delays", 7, 0, 0.0, 16, {}, {"count": (entry,)}, {}, {"to_list": [b"rows"]}, (("to_list", 1),)).as_savepoint()
    assert [file.path for file in savepoint.files] == ["count-0.state"]
    assert (dict(savepoint.committables), savepoint.undelivered) == ({}, ())


def sealed(body):
    """Return any bytes with the checksum that a manifest of them would have."""
    return MAGIC + xxhash.xxh3_128(body).digest() + body


@given(st.binary(max_size=60))
def test_any_bytes_behind_a_right_checksum_are_refused(body):
    with pytest.raises(CorruptStateError, match="the manifest lacks something"):
        Manifest.from_bytes(sealed(body))


@given(st.data())
def test_field_of_another_type_behind_a_right_checksum_is_refused_or_read(data):
    fields = msgpack.unpackb(MANIFEST.to_bytes()[len(MAGIC) + 16 :], strict_map_key=False)
    name = data.draw(st.sampled_from(sorted(fields)))
    fields[name] = data.draw(
        st.none() | st.integers(0, 9) | st.text(max_size=3) | st.lists(st.integers(0, 9), max_size=2) | st.just({"a": 1})
    )
    with suppress(CorruptStateError):
        assert isinstance(Manifest.from_bytes(sealed(msgpack.packb(fields))), Manifest)
