"""State files return exactly the written chunks or raise."""

from __future__ import annotations

import io
from dataclasses import replace

import pyarrow as pa
import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from evenflow.state.errors import CorruptStateError
from evenflow.state.files import StateFile, StateFileWriter, read_chunks

CHUNK = st.lists(st.tuples(st.integers(-(2**63), 2**63 - 1), st.binary(max_size=20)), max_size=5)
CHUNKS = st.lists(CHUNK, max_size=4)


def chunk_of(rows):
    return pa.record_batch({"key": pa.array([key for key, _ in rows], pa.int64()), "state": pa.array([s for _, s in rows], pa.binary())})


def written(chunks):
    file = io.BytesIO()
    writer = StateFileWriter(file, "count-0.state")
    for rows in chunks:
        writer.write(chunk_of(rows))
    return file.getvalue(), writer.finish()


def read(data, entry):
    return [list(zip(*chunk.to_pydict().values(), strict=True)) for chunk in read_chunks(io.BytesIO(data), entry)]


@given(CHUNKS)
def test_chunks_come_back_as_they_were_written(chunks):
    data, entry = written(chunks)
    assert entry == StateFile("count-0.state", len(data), entry.checksum, sum(map(len, chunks)))
    assert read(data, entry) == chunks


@given(CHUNKS, st.data())
def test_file_that_was_cut_short_is_refused_before_its_first_chunk(chunks, data):
    whole, entry = written(chunks)
    length = data.draw(st.integers(0, len(whole) - 1))
    with pytest.raises(CorruptStateError, match=rf"count-0.state has {length:,} bytes, and {len(whole):,} were written"):
        next(read_chunks(io.BytesIO(whole[:length]), entry))


@given(CHUNKS, st.data())
def test_flipped_bit_is_found_and_no_damaged_chunk_is_returned(chunks, data):
    whole, entry = written(chunks)
    bit = data.draw(st.integers(0, 8 * len(whole) - 1))
    damaged = bytearray(whole)
    damaged[bit // 8] ^= 1 << bit % 8
    found = []
    with pytest.raises(CorruptStateError, match=r"count-0.state (has another checksum|is not a state file)"):
        found.extend(read_chunks(io.BytesIO(bytes(damaged)), entry))
    assert found == [chunk_of(rows) for rows in chunks[: len(found)]]


@given(CHUNKS, st.binary(min_size=1, max_size=50))
def test_file_that_has_grown_is_refused(chunks, more):
    whole, entry = written(chunks)
    with pytest.raises(CorruptStateError, match=r"count-0.state has"):
        next(read_chunks(io.BytesIO(whole + more), entry))


@given(st.lists(CHUNK, min_size=2, max_size=4, unique_by=str))
def test_chunks_in_another_order_are_refused(chunks):
    _, entry = written(chunks)
    other, of_other = written(chunks[::-1])
    with pytest.raises(CorruptStateError, match=r"count-0.state has"):
        list(read_chunks(io.BytesIO(other), replace(of_other, checksum=entry.checksum)))


def in_the_first_format(chunks):
    """Return a file as the first format has it, and its entry."""
    data = b"evenflow state 1\n"
    for rows in chunks:
        stream = pa.BufferOutputStream()
        with pa.ipc.new_stream(stream, chunk_of([]).schema) as writer:
            writer.write_batch(chunk_of(rows))
        data += stream.tell().to_bytes(4, "little") + stream.getvalue().to_pybytes()
    return data, StateFile("old.state", len(data), xxhash.xxh3_128_hexdigest(data), sum(map(len, chunks)))


@given(CHUNKS, st.data())
def test_file_of_the_first_format_is_read_and_a_flipped_bit_is_found_before_its_first_chunk(chunks, data):
    whole, entry = in_the_first_format(chunks)
    assert read(whole, entry) == chunks
    bit = data.draw(st.integers(0, 8 * len(whole) - 1))
    damaged = bytearray(whole)
    damaged[bit // 8] ^= 1 << bit % 8
    with pytest.raises(CorruptStateError, match=r"old.state (has another checksum|is not a state file)"):
        list(read_chunks(io.BytesIO(bytes(damaged)), entry))


@given(st.binary(max_size=300))
def test_file_of_another_kind_is_refused(content):
    whole = b"evenflow state 3\n" + content
    entry = replace(written([])[1], size=len(whole))
    with pytest.raises(CorruptStateError, match=r"count-0.state is not a state file of this version of evenflow"):
        next(read_chunks(io.BytesIO(whole), entry))


@given(st.binary(max_size=100))
def test_chunk_that_is_no_arrow_stream_is_refused(content):
    file = io.BytesIO()
    writer = StateFileWriter(file, "odd.state")
    writer.append(memoryview(content))
    with pytest.raises(CorruptStateError, match=r"odd.state holds a chunk that can't be read"):
        list(read_chunks(io.BytesIO(file.getvalue()), writer.finish()))


@given(CHUNKS)
def test_columns_of_a_chunk_begin_at_addresses_that_processors_read_fast(chunks):
    data, entry = written(chunks)
    begin = pa.py_buffer(data).address
    for chunk in read_chunks(Kept(data), entry):
        assert all((buffer.address - begin) % 8 == 0 for column in chunk.columns for buffer in column.buffers() if buffer and buffer.size)


class Kept(io.BytesIO):
    """A file whose reads are views of its content."""

    def __init__(self, data):
        super().__init__(data)
        self._view = memoryview(data)

    def read(self, size):
        begin = self.tell()
        return self._view[begin : self.seek(min(begin + size, len(self._view)))]
