from __future__ import annotations

import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.connectors.formats import text
from evenflow.connectors.formats.text import read_text
from evenflow.engine.errors import ConnectorError

LINES = st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\r\n"), max_size=10))


def lines(source):
    source.start()
    reader, found = source.reader(0, 1), []
    while not reader.finished:
        batch = reader.poll(1000)
        found += [] if batch is None else batch.rows["item"].to_pylist()
    return found


@given(content=LINES, end=st.sampled_from(["\n", "\r\n"]), block=st.integers(1, 20))
def test_every_line_is_a_row_wherever_a_block_ends(tmp_path_factory, content, end, block):
    path = tmp_path_factory.mktemp("text") / "a.txt"
    path.write_bytes("".join(line + end for line in content).encode())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text, "BLOCK", block)
        assert lines(read_text(path)) == content


def test_the_last_line_needs_no_end(tmp_path):
    (tmp_path / "a.txt").write_text("a\n\nb")
    assert lines(read_text(tmp_path)) == ["a", "", "b"]


def test_a_compressed_file_is_read(tmp_path):
    (tmp_path / "a.log.gz").write_bytes(gzip.compress(b"a\nb\n"))
    assert lines(read_text(tmp_path)) == ["a", "b"]


def test_a_line_that_is_not_utf8_is_named(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"a\nb\n\xff\n")
    with pytest.raises(ConnectorError, match=r"operator `read_text`: .*a.txt, line 3 is not UTF-8: b'\\xff'"):
        lines(read_text(tmp_path))
