from __future__ import annotations

from contextlib import suppress

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.actors.channels.headers import MAX_HEADER_BYTES, MAX_NUMBER, number, pack, unpack
from evenflow.engine.errors import ProtocolError

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | st.binary(max_size=20) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=20,
)


@given(st.lists(st.integers(-(2**63), 2**63 - 1) | st.text(max_size=20)))
def test_a_header_comes_back_as_it_was_packed(fields):
    assert unpack(pack(tuple(fields))) == tuple(fields)


@given(st.binary(max_size=200))
def test_random_bytes_are_a_tuple_or_a_protocol_error(frame):
    with suppress(ProtocolError):
        assert isinstance(unpack(frame), tuple)


@given(VALUES)
def test_any_msgpack_value_is_a_tuple_or_a_protocol_error(value):
    with suppress(ProtocolError):
        assert isinstance(unpack(msgpack.packb(value)), tuple)


@pytest.mark.parametrize(
    "frame",
    [
        pytest.param(b"", id="empty"),
        pytest.param(pack((1,)) + b"\x00", id="trailing bytes"),
        pytest.param(pack((1, 2))[:-1], id="cut off"),
        pytest.param(b"\xdd\xff\xff\xff\xff", id="array of 4 billion"),
        pytest.param(b"\x91" * 3000, id="nested 3000 deep"),
        pytest.param(b"\x81\x91\x01\x01", id="map with an array as key"),
        pytest.param(b"\xa2\xff\xff", id="text that is not UTF-8"),
        pytest.param(pack((0,) * (MAX_HEADER_BYTES + 1)), id="too long"),
    ],
)
def test_malformed_headers_are_refused(frame):
    with pytest.raises(ProtocolError):
        unpack(frame)


@pytest.mark.parametrize("value", [-1, MAX_NUMBER + 1, True, 1.0, "1", None])
def test_a_number_is_an_int_within_its_bounds(value):
    with pytest.raises(ProtocolError, match="sequence must be"):
        number(value, "sequence")
