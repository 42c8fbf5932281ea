from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.actors.channels.frames import MAX_SCHEMAS, ChannelDecoder, ChannelEncoder
from evenflow.actors.channels.headers import pack, unpack
from evenflow.engine.batch import Batch
from evenflow.engine.errors import ProtocolError, RecordError
from evenflow.engine.protocol.elements import Barrier, End, LatencyMark, Watermark

CHANNEL, ATTEMPT = 7, 2
ROWS = 12
COLUMNS = {
    "ints": pa.array(range(ROWS)),
    "floats": pa.array([None if i % 3 == 0 else i / 2 for i in range(ROWS)]),
    "bools": pa.array([None if i % 5 == 0 else i % 2 == 0 for i in range(ROWS)]),
    "texts": pa.array([None if i % 4 == 0 else "é" * i for i in range(ROWS)]),
    "bytes": pa.array([b"x" * i for i in range(ROWS)]),
    "lists": pa.array([["a"] * i if i % 4 else None for i in range(ROWS)]),
    "structs": pa.array([{"a": i, "b": str(i)} for i in range(ROWS)]),
    "maps": pa.array([[(str(i), i)] for i in range(ROWS)], pa.map_(pa.string(), pa.int64())),
    "views": pa.array(["x" * i for i in range(ROWS)], pa.string_view()),
    "list_views": pa.array([[i] * i for i in range(ROWS)], pa.list_view(pa.int64())),
    "runs": pa.RunEndEncodedArray.from_arrays([5, ROWS], ["a", "b"]),
    "nulls": pa.nulls(ROWS),
    "times": pa.array(range(ROWS), pa.timestamp("us", "UTC")),
    "decimals": pa.array(range(ROWS), pa.decimal128(9, 2)),
    "pairs": pa.array([[i, i] for i in range(ROWS)], pa.list_(pa.int64(), 2)),
}


def batch_of(*names, times=False):
    return Batch(pa.record_batch({name: COLUMNS[name] for name in names}), np.arange(ROWS) * 1000 if times else None)


def ends():
    return ChannelEncoder(CHANNEL, ATTEMPT, "map[0]"), ChannelDecoder(CHANNEL, ATTEMPT)


def decode(decoder, message):
    header, *frames = message
    return decoder.decode(unpack(bytes(header)), [pa.py_buffer(bytes(frame)) for frame in frames])


def same(got, sent):
    if type(sent) is not Batch:
        return got == sent
    times = (got.times is None and sent.times is None) or np.array_equal(got.times, sent.times)
    return times and got.rows.equals(sent.rows)


ELEMENTS = st.one_of(
    st.integers(-(2**63) + 1, 2**63 - 1).map(Watermark),
    st.integers(0, 2**63 - 1).map(LatencyMark),
    st.builds(Barrier, st.integers(0, 2**63 - 1), st.integers(0, 2**63 - 1), st.booleans()),
    st.builds(
        lambda names, times, start, length: batch_of(*names, times=times).slice(start, length),
        st.lists(st.sampled_from(sorted(COLUMNS)), unique=True, min_size=1, max_size=3),
        st.booleans(),
        st.integers(0, ROWS),
        st.integers(0, ROWS),
    ),
)


@given(st.lists(ELEMENTS, max_size=40))
def test_every_element_comes_back_in_order(elements):
    encoder, decoder = ends()
    for sent in [*elements, End()]:
        assert same(decode(decoder, encoder.encode(sent)), sent)


def test_a_schema_travels_once_and_may_change_in_mid_channel():
    encoder, decoder = ends()
    elements = [batch_of("ints"), batch_of("ints"), batch_of("texts"), batch_of("ints"), batch_of("texts")]
    messages = [encoder.encode(element) for element in elements]
    assert [len(message) for message in messages] == [3, 2, 3, 2, 2]
    assert all(same(decode(decoder, message), element) for message, element in zip(messages, elements, strict=True))


def test_more_schemas_than_are_remembered_still_come_through():
    encoder, decoder = ends()
    batches = [Batch(pa.record_batch({f"column{i}": [i]})) for i in range(2 * MAX_SCHEMAS + 3)]
    for batch in [*batches, *batches]:
        assert same(decode(decoder, encoder.encode(batch)), batch)


def test_dictionary_columns_come_as_their_values():
    encoder, decoder = ends()
    rows = pa.record_batch({"city": pa.array(["Ulm", None, "Ulm"]).dictionary_encode(), "n": [1, 2, 3]})
    got = decode(decoder, encoder.encode(Batch(rows)))
    assert got.rows.schema.field("city").type == pa.string()
    assert got.to_rows() == [{"city": "Ulm", "n": 1}, {"city": None, "n": 2}, {"city": "Ulm", "n": 3}]


def test_columns_and_times_of_a_decoded_batch_share_the_memory_of_the_frames():
    encoder, decoder = ends()
    header, body, times, schema = encoder.encode(batch_of("ints", times=True))
    got = decoder.decode(unpack(header), [body, times, schema])
    values = got.rows.column("ints").buffers()[1]
    assert body.address <= values.address < body.address + body.size
    assert got.times.ctypes.data == times.address


def test_a_slice_sends_only_its_own_rows():
    encoder, _ = ends()
    large = Batch(pa.record_batch({"n": np.arange(100_000)}))
    assert encoder.encode(large.slice(10, 5))[1].size < 1000


def test_an_extension_type_is_an_error_that_names_operator_and_column_and_changes_nothing():
    encoder, decoder = ends()
    with pytest.raises(RecordError, match=r"operator `map\[0\]`.*column `id` has the extension type"):
        encoder.encode(Batch(pa.record_batch({"id": pa.array([b"x" * 16], pa.uuid())})))
    assert same(decode(decoder, encoder.encode(batch_of("ints"))), batch_of("ints"))


def test_nothing_may_follow_the_end():
    encoder, decoder = ends()
    decode(decoder, encoder.encode(End()))
    with pytest.raises(ProtocolError, match="after the end"):
        decode(decoder, encoder.encode(Watermark(1)))


def header_of(kind, *fields, channel=CHANNEL, attempt=ATTEMPT, sequence=2):
    return pack((kind, channel, attempt, sequence, *fields))


BODY, TIMES, SCHEMA = ends()[0].encode(batch_of("ints", times=True))[1:]


@pytest.mark.parametrize(
    ("message", "problem"),
    [
        pytest.param([header_of(90)], "kind 90", id="unknown kind"),
        pytest.param([header_of(True, 5)], "kind True", id="kind that is no int"),
        pytest.param([header_of((1,), 5)], "kind", id="kind that is a list"),
        pytest.param([pack((1, CHANNEL, ATTEMPT))], "at least 4 fields", id="short header"),
        pytest.param([header_of(1, 5, channel=8)], "channel 8", id="wrong channel"),
        pytest.param([header_of(1, 5, attempt=1)], "attempt 1", id="older attempt"),
        pytest.param([header_of(1, 5, attempt=3)], "attempt 3", id="newer attempt"),
        pytest.param([header_of(1, 5, sequence=3)], "message 2 should come next, got message 3", id="gap"),
        pytest.param([header_of(1, 5, sequence=1)], "message 2 should come next, got message 1", id="repeat"),
        pytest.param([header_of(1, 5, sequence=-1)], "sequence must be", id="negative sequence"),
        pytest.param([header_of(1, 5, sequence=2.0)], "sequence must be", id="sequence that is no int"),
        pytest.param([header_of(1)], "0 fields", id="field missing"),
        pytest.param([header_of(1, 5, 6)], "2 fields", id="field too many"),
        pytest.param([header_of(3, -5, 0, 0)], "checkpoint must be", id="negative checkpoint"),
        pytest.param([header_of(3, 2**63, 0, 0)], "checkpoint must be", id="oversized checkpoint"),
        pytest.param([header_of(4), b""], "1 frames too many", id="signal with a frame"),
        pytest.param([header_of(0, 1, 0), BODY], "schema 1 is unknown, 1 are known", id="unknown schema"),
        pytest.param([header_of(0, MAX_SCHEMAS, 0), BODY], "schema id must be", id="oversized schema id"),
        pytest.param([header_of(0, -1, 0), BODY], "schema id must be", id="negative schema id"),
        pytest.param([header_of(0, 2, 2), BODY, SCHEMA], "leaves a gap", id="schema id with a gap"),
        pytest.param([header_of(0, 0, 4), BODY], "flags must be", id="unknown flag"),
        pytest.param([header_of(0, 0), BODY], "2 fields", id="batch without flags"),
        pytest.param([header_of(0, 0, 0)], "has 1 frames, got 0", id="batch without body"),
        pytest.param([header_of(0, 0, 0), BODY, TIMES], "has 1 frames, got 2", id="trailing frame"),
        pytest.param([header_of(0, 0, 1), BODY], "has 2 frames, got 1", id="times missing"),
        pytest.param([header_of(0, 0, 1), BODY, bytes(TIMES)[8:]], "bytes of event times", id="times too short"),
        pytest.param([header_of(0, 1, 2), BODY, b"no schema"], "schema", id="corrupt schema"),
        pytest.param([header_of(0, 0, 0), bytes(BODY)[:-100]], "can't be read", id="body cut off"),
        pytest.param([header_of(0, 0, 0), b""], "can't be read", id="empty body"),
        pytest.param([header_of(0, 0, 0), SCHEMA], "can't be read", id="schema as body"),
    ],
)
def test_a_wrong_message_is_refused_and_changes_nothing(message, problem):
    encoder, decoder = ends()
    decode(decoder, encoder.encode(Watermark(1)))
    decode(decoder, encoder.encode(batch_of("ints")))
    with pytest.raises(ProtocolError, match=problem):
        decode(decoder, message)
    assert same(decode(decoder, encoder.encode(batch_of("ints", times=True))), batch_of("ints", times=True))


def test_a_refused_new_schema_is_not_remembered():
    encoder, decoder = ends()
    decode(decoder, encoder.encode(batch_of("ints")))
    header, body, schema = encoder.encode(batch_of("texts"))
    with pytest.raises(ProtocolError):
        decode(decoder, [header, bytes(body)[:-64], schema])
    with pytest.raises(ProtocolError, match="schema 1 is unknown"):
        decode(decoder, [header_of(0, 1, 0, sequence=1), body])
    assert same(decode(decoder, [header, body, schema]), batch_of("texts"))


@given(
    st.lists(st.none() | st.booleans() | st.integers(-5, 5) | st.integers(-(2**63), 2**63 - 1) | st.text(max_size=3), max_size=8), st.data()
)
def test_any_header_is_an_element_or_a_protocol_error(fields, data):
    _, decoder = ends()
    header = (*data.draw(st.sampled_from([(), (0, CHANNEL, ATTEMPT, 0), (1, CHANNEL, ATTEMPT, 0)])), *fields)
    frames = data.draw(st.lists(st.sampled_from([bytes(BODY), bytes(TIMES), bytes(SCHEMA), b""]), max_size=4))
    try:
        decoder.decode(header, frames)
    except ProtocolError:
        encoder, _ = ends()
        assert same(decode(decoder, encoder.encode(batch_of("ints"))), batch_of("ints"))


MUTATIONS = st.lists(st.tuples(st.integers(0, 2**16), st.sampled_from([1, 4, 8]), st.integers(0, 2**64 - 1)), min_size=1, max_size=4)


@given(st.sampled_from(sorted(COLUMNS)), st.sampled_from([1, 2]), MUTATIONS, st.integers(0, 2**16), st.booleans())
def test_a_corrupt_batch_is_refused_or_safe_to_use(name, target, mutations, length, cut):
    encoder, decoder = ends()
    message = [bytearray(bytes(frame)) for frame in encoder.encode(batch_of(name))]
    for index, width, value in mutations:
        place = index % len(message[target])
        message[target][place : place + width] = (value % 2 ** (8 * width)).to_bytes(width, "little")
    if cut:
        del message[target][length % len(message[target]) :]
    try:
        got = decode(decoder, message)
    except ProtocolError:
        return
    got.rows.validate(full=name not in {"times", "bools", "floats", "ints"})
    if got.num_rows < 1000:
        got.rows.equals(got.rows)
        pa.concat_batches([got.rows, got.rows])
        got.rows.serialize()
