from __future__ import annotations

import gzip

import pyarrow as pa
import pytest
from bounded_sources import rows

from evenflow.connectors.formats.json import read_json
from evenflow.engine.errors import ConnectorError


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a.json"


def test_a_field_that_an_object_lacks_is_null(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"a":1}\n')
    (tmp_path / "b.ndjson").write_text('{"b":{"c":"x"}}\n')
    assert rows(read_json(tmp_path)) == [{"a": 1, "b": None}, {"a": None, "b": {"c": "x"}}]


def test_types_may_be_given_for_some_columns(path):
    path.write_text('{"n":1,"at":"2026-01-31T10:00:00.5Z","m":null}\n')
    source = read_json(path, schema={"at": pa.timestamp("us", "UTC"), "m": "string"})
    source.start()
    types = dict(zip(source.reader(0, 1).poll(1).rows.schema.names, source.reader(0, 1).poll(1).rows.schema.types, strict=True))
    assert types == {"n": pa.int64(), "at": pa.timestamp("us", "UTC"), "m": pa.string()}


def test_a_compressed_file_is_read(tmp_path):
    (tmp_path / "a.json.gz").write_bytes(gzip.compress(b'{"n":1}\n'))
    assert rows(read_json(tmp_path)) == [{"n": 1}]


@pytest.mark.parametrize("content", ["", "\n \n"])
def test_a_file_without_rows_gives_none(path, content):
    path.write_text(content)
    assert rows(read_json(path)) == []


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        pytest.param('{"a":1}\n{"a":\n', {}, r"a.json can't be read: JSON parse error: Invalid value. in row 1", id="no JSON"),
        pytest.param(
            '{"a":1}\n' * 200_000 + '{"a":"x"}\n', {}, r"after row \d+: .*Column\(/a\) changed from number to string", id="a late type"
        ),
        pytest.param(
            '{"a":1}\n' * 200_000 + '{"b":1}\n', {}, r"has a field `b` in row 200001 .*: schema=\{'b': \.\.\.\}", id="a late field"
        ),
        pytest.param("[1]\n", {}, "a.json can't be read", id="no object"),
        pytest.param('{"a":1}\n', {"event_time": "ts"}, "no event time column `ts`", id="no event time"),
    ],
)
def test_a_file_that_cannot_be_read_is_named(path, content, options, message):
    path.write_text(content)
    with pytest.raises(ConnectorError, match=message):
        rows(read_json(path, **options))


def test_a_late_field_is_read_when_its_type_is_given(path):
    path.write_text('{"a":1}\n' * 200_000 + '{"b":1}\n')
    assert rows(read_json(path, schema={"b": "int64"}))[-1] == {"b": 1, "a": None}
