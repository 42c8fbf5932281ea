"""JSON values of records change with no type: a record with a number or a time that its column can't hold is undecodable."""

from __future__ import annotations

import pickle
from typing import Any

import pyarrow as pa
import pytest

from evenflow.connectors.kafka.values.decoding import Decoder, JsonValues, decoded

LARGE = 9_007_199_254_740_993


def read(decoder: Decoder, *values: bytes | None) -> tuple[list[dict[str, Any]], list[tuple[int, str]]]:
    refused: list[tuple[int, str]] = []
    rows, _ = decoded(pickle.loads(pickle.dumps(decoder)), values, lambda place, problem: refused.append((place, problem)))
    return rows.to_pylist(), refused


def test_a_number_that_is_too_large_for_the_declared_float():
    decoder = JsonValues(pa.schema({"x": pa.float32(), "h": pa.list_(pa.float16())}))
    rows, refused = read(decoder, b'{"x": 0.5, "h": [1]}', b'{"x": 1e300}', None, b'{"h": [65520]}', b'{"x": 1, "y": 1e300}')
    assert [row["x"] for row in rows] == [0.5, None, 1.0]
    assert [place for place, _ in refused] == [1, 3]
    assert refused[0][1].startswith("column `x`: 1e+300 is too large for float; ")
    assert refused[1][1].startswith("column `h`: 65520.0 is too large for halffloat; ")


def test_an_integer_that_an_inferred_float_would_change():
    decoder = JsonValues(None).inferred(lambda: [b'{"x": 1.5, "l": [0.5]}', b'{"x": 2}'])
    values = [b'{"x": 1e300}', b'{"x": %d}' % LARGE, b'{"x": %d}' % 2**60, b'{"l": [1, %d]}' % LARGE, b'{"x": 1}']
    rows, refused = read(decoder, *values)
    assert [row["x"] for row in rows] == [1e300, 2.0**60, 1.0]
    assert [place for place, _ in refused] == [1, 3]
    assert refused[0][1].startswith(f"column `x` has {LARGE}, which its inferred type double would change to {LARGE - 1}; ")
    assert refused[1][1].startswith(f"column `l[]` has {LARGE}, ")


def test_a_declared_float_rounds():
    rows, refused = read(JsonValues(pa.schema({"x": pa.float64()})), b'{"x": %d}' % LARGE)
    assert (rows, refused) == ([{"x": float(LARGE)}], [])


@pytest.mark.parametrize(("first", "zone"), [("2026-01-31T10:00:00Z", "UTC"), ("2026-01-31T10:00:00", None)])
def test_times_keep_their_zone(first, zone):
    decoder = JsonValues(None).inferred(lambda: [b'{"at": "%s"}' % first.encode()])
    assert decoder.schema == pa.schema({"at": pa.timestamp("s", zone)})
    values = [b'{"at": "2026-01-31T10:00:00+02:00"}', b'{"at": "2026-01-31T10:00:00"}']
    rows, refused = read(decoder, *values)
    assert len(rows) == 1
    assert [place for place, _ in refused] == [0 if zone is None else 1]
    assert "zone offset" in refused[0][1]
