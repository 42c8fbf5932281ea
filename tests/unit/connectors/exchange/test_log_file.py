from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.connectors.exchange.log_file import LogFile, compact_interval, read_log, write_log
from evenflow.engine.errors import ConnectorError

ENTRY = '{"path":"file:///a.parquet","size":1,"isDir":false,"modificationTime":2,"blockReplication":1,"blockSize":3,"action":"add"}'

names = st.text(st.characters(blacklist_characters="/\x00", blacklist_categories=("Cs",)), min_size=1)


@given(st.lists(st.builds(LogFile, names.map("/data/{}".format), st.integers(0, 2**62), st.integers(0, 2**62))))
def test_rows_that_were_written_are_read_back(tmp_path_factory: pytest.TempPathFactory, files: list[LogFile]):
    path = tmp_path_factory.mktemp("log") / "0"
    write_log(path, files)
    assert read_log(path) == [("add", file) for file in files]


def test_a_log_file_is_never_overwritten(tmp_path: Path):
    write_log(tmp_path / "0", [])
    with pytest.raises(ConnectorError, match="just committed by another writer"):
        write_log(tmp_path / "0", [LogFile("/b", 1, 2)])
    assert read_log(tmp_path / "0") == []
    assert [path.name for path in tmp_path.iterdir()] == ["0"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "begins with '', expected 'v1'"),
        ("v2\n", "begins with 'v2', expected 'v1'"),
        (f"v1\n{ENTRY}\n{ENTRY[:-5]}", "line 3: not an entry"),
        ("v1\n[1]", "line 2: not an entry"),
        ("v1\nnull", "line 2: not an entry"),
        (f"v1\n{ENTRY.replace('add', 'replace')}", "line 2: not an entry"),
        (f"v1\n{ENTRY.replace('1,', 'null,', 1)}", "line 2: not an entry"),
        (f"v1\n{ENTRY.replace('file:///', 's3://bucket/')}", "s3://bucket/a.parquet is not a local file"),
    ],
)
def test_a_damaged_log_is_named_with_its_line(tmp_path: Path, text: str, problem: str):
    (tmp_path / "7").write_text(text)
    with pytest.raises(ConnectorError, match=problem) as caught:
        read_log(tmp_path / "7")
    assert str(tmp_path / "7") in str(caught.value)


def test_bytes_that_are_no_text_are_named(tmp_path: Path):
    (tmp_path / "7").write_bytes(b"v1\n\xff\xfe")
    with pytest.raises(ConnectorError, match="7 can't be read as a log"):
        read_log(tmp_path / "7")


def test_a_missing_log_file_is_none(tmp_path: Path):
    assert read_log(tmp_path / "0") is None


@pytest.mark.parametrize(
    ("compacted", "interval"), [([], 10), ([2], 3), ([9], 10), ([19], 20), ([29], 10), ([22], 23), ([9, 19], 10), ([4, 9, 14], 5)]
)
def test_the_interval_of_compaction_is_derived_as_spark_does(compacted: list[int], interval: int):
    assert compact_interval(compacted) == interval
