"""Readers of text change no value silently: a number or a time that a column's type can't hold is an error by its name."""

from __future__ import annotations

import gzip
import json
import math
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from bounded_sources import rows
from hypothesis import example, given
from hypothesis import strategies as st

from evenflow.connectors.followed import follow
from evenflow.connectors.formats.csv import read_csv
from evenflow.connectors.formats.file_source import FileSource
from evenflow.connectors.formats.json import read_json
from evenflow.engine.errors import ConnectorError

READ = {"csv": read_csv, "json": read_json}
every_format = pytest.mark.parametrize("form", [*READ])
LARGE = 9_007_199_254_740_993
"""The least integer that a float can't hold."""


def write(path: Path, form: str, texts: list[str], name: str = "x") -> None:
    """Write a file with the numbers `texts` in a column between two others."""
    lines = [f"{row},{text},w" for row, text in enumerate(texts)]
    if form == "json":
        lines = [f'{{"n": {row}, "{name}": {text or "null"}, "t": "w"}}' for row, text in enumerate(texts)]
    path.write_text("\n".join([f"n,{name},t", *lines] if form == "csv" else lines) + "\n")


def values(path: Path, form: str, **options: Any) -> list[Any]:
    return [row["x"] for row in rows(READ[form](path, **options))]


def types(source: FileSource) -> dict[str, pa.DataType]:
    source.start()
    found = source.known_columns().types
    return dict(found)


@every_format
@pytest.mark.parametrize(
    ("kind", "text"), [("float32", "1e300"), ("float32", "-1e39"), ("float32", "3.4028236e38"), ("float32", "1" + "0" * 40)]
)
def test_a_number_that_is_too_large_for_the_declared_float_is_refused_by_name(tmp_path, form, kind, text):
    path = tmp_path / f"a.{form}"
    write(path, form, ["0.5", "", text])
    with pytest.raises(ConnectorError, match=rf"operator `read_{form}`: .*a.{form} can't be read in row 3: column `x`.* too large for"):
        values(path, form, schema={"x": kind})


@every_format
def test_the_error_has_the_value_and_the_type(tmp_path, form):
    path = tmp_path / f"a.{form}"
    write(path, form, ["1e300"])
    with pytest.raises(ConnectorError, match=r"1e\+?300.* too large for.* float;"):
        values(path, form, schema={"x": "float32"})


def test_a_number_that_no_float_can_hold_is_refused(tmp_path):
    path = tmp_path / "a.csv"
    for schema in ({}, {"x": "float64"}, {"x": "float32"}, {"x": pa.dictionary(pa.int32(), pa.float64())}):
        for text in ("1e400", "-1e400", "9" * 400):
            write(path, "csv", ["0.5", text])
            with pytest.raises(ConnectorError, match=r"in row 2: column `x` has -?(1e400|9+), which is too large for its type"):
                values(path, "csv", schema=schema)


@every_format
def test_a_declared_float_rounds(tmp_path, form):
    path = tmp_path / f"a.{form}"
    write(path, form, ["0.1", "16777217", "", "3.4e38", "1e-300"])
    assert values(path, form, schema={"x": "float32"}) == [np.float32(0.1), 16777216.0, None, np.float32(3.4e38), 0.0]
    write(path, form, ["1.5", str(LARGE), "", "1e300"])
    assert values(path, form, schema={"x": "float64"}) == [1.5, float(LARGE), None, 1e300]


@every_format
def test_infinity_and_nan_are_read(tmp_path, form):
    path = tmp_path / f"a.{form}"
    written = {"csv": ["inf", "-INF", "Infinity", "nan", "0.5"], "json": ["Inf", "-Inf", "Infinity", "NaN", "0.5"]}[form]
    write(path, form, written)
    for schema in ({}, {"x": "float64"}, {"x": "float32"}):
        assert list(map(str, values(path, form, schema=schema))) == ["inf", "-inf", "inf", "nan", "0.5"]


@every_format
@pytest.mark.parametrize("text", [str(LARGE), str(-LARGE), str(2**63 + 1), str(10**25), "18446744073709551615"])
def test_an_integer_that_an_inferred_float_would_change_is_refused_by_name(tmp_path, form, text):
    path = tmp_path / f"a.{form}"
    write(path, form, ["1.5", "7", text])
    problem = rf"a.{form} can't be read in row 3: column `x` has {text}, which its inferred type double would change to -?\d+; .*`schema`"
    with pytest.raises(ConnectorError, match=problem):
        values(path, form)


@every_format
def test_large_numbers_that_a_float_holds_are_read(tmp_path, form):
    path = tmp_path / f"a.{form}"
    written = ["1.5", str(2**53), str(2**60), "1e300", "-1e300", "9007199254740993.0", "", "123456789012345678901e5", str(10**22)]
    write(path, form, written)
    assert values(path, form) == [float(text) if text else None for text in written]


@every_format
def test_the_remedies_of_the_error_work(tmp_path, form):
    path = tmp_path / f"a.{form}"
    write(path, form, ["1.5", str(LARGE)])
    assert values(path, form, schema={"x": "decimal128(38, 6)"}) == [Decimal("1.5"), Decimal(LARGE)]
    assert values(path, form, schema={"x": "float64"}) == [1.5, float(LARGE)]


@every_format
def test_integers_in_one_file_and_floats_in_another(tmp_path, form):
    write(tmp_path / f"a.{form}", form, ["1", str(LARGE)])
    write(tmp_path / f"b.{form}", form, ["1.5"])
    with pytest.raises(ConnectorError, match=rf"a.{form} can't be read in row 2: column `x` has {LARGE}"):
        values(tmp_path, form)
    write(tmp_path / f"a.{form}", form, ["1", str(2**53)])
    assert values(tmp_path, form) == [1.0, 2.0**53, 1.5]


@every_format
def test_integers_alone_stay_integers(tmp_path, form):
    path = tmp_path / f"a.{form}"
    write(path, form, [str(LARGE), str(2**63 - 1)])
    assert values(path, form) == [LARGE, 2**63 - 1]


@pytest.mark.few(1)
@every_format
@pytest.mark.parametrize("packed", [False, True])
def test_a_value_deep_in_a_file_is_named_by_its_row(tmp_path, form, packed):
    texts = [f"{row}.25" for row in range(120_000)]
    for row in (40_000, 40_001, 100_000):
        texts[row] = "1e17"
    path = tmp_path / f"a.{form}"

    def written() -> Path:
        write(path, form, texts)
        if not packed:
            return path
        (tmp_path / f"a.{form}.gz").write_bytes(gzip.compress(path.read_bytes(), 1))
        return tmp_path / f"a.{form}.gz"

    assert values(written(), form) == [float(text) for text in texts]
    texts[110_000] = str(LARGE)
    with pytest.raises(ConnectorError, match=rf"in row 110001: column `x` has {LARGE}"):
        values(written(), form)


@every_format
def test_a_second_column_with_large_numbers_later_in_a_file(tmp_path, form):
    count = 60_000
    large = {"x": {10: "1e17", 50_000: str(LARGE + 1)}, "y": {40_000: "1e17", 50_001: str(LARGE)}}
    columns = {name: [places.get(row, f"{row}.5") for row in range(count)] for name, places in large.items()}
    path = tmp_path / f"a.{form}"
    pairs = list(zip(columns["x"], columns["y"], strict=True))
    csv = ["x,y", *(f"{x},{y}" for x, y in pairs)]
    path.write_text("\n".join(csv if form == "csv" else [f'{{"x":{x},"y":{y}}}' for x, y in pairs]))
    with pytest.raises(ConnectorError, match=rf"in row 50002: column `y` has {LARGE}"):
        values(path, form)


@every_format
def test_growing_files(tmp_path, form, monkeypatch):
    monkeypatch.setattr(follow, "LOOKING", 1.0)  # a look whenever polled
    path = tmp_path / f"a.{form}"
    options = {"follow": "lines", "poll_every": "1us"}
    write(path, form, ["1.5", "1e17", str(2**53)])
    source = READ[form](path, **options)
    source.start()
    reader = source.reader(0, 1)
    batch = reader.poll(10)
    assert [row["x"] for row in batch.to_rows()] == [1.5, 1e17, 2.0**53]
    with path.open("a") as file:
        file.write({"csv": f"3,2.5,w\n4,{LARGE},w\n", "json": f'{{"x": 2.5}}\n{{"x": {LARGE}}}\n'}[form])
    with pytest.raises(ConnectorError, match=rf"a.{form} can't be read after byte \d+, in row 2: column `x` has {LARGE}"):
        reader.poll(10)


def test_quoted_and_padded_integers_in_csv(tmp_path):
    for text in (f'"{LARGE}"', f" {LARGE}", f"+{LARGE}", f"{LARGE} ", f"\t{LARGE}"):
        write(tmp_path / "a.csv", "csv", ["1.5", text])
        with pytest.raises(ConnectorError, match=rf"in row 2: column `x` has \+?{LARGE}"):
            values(tmp_path / "a.csv", "csv")


def test_another_encoding_of_csv(tmp_path):
    (tmp_path / "a.csv").write_bytes(f"x,t\n1.5,é\n{LARGE},ü\n".encode("utf-16"))
    with pytest.raises(ConnectorError, match=rf"in row 2: column `x` has {LARGE}"):
        values(tmp_path / "a.csv", "csv", encoding="utf-16")


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        pytest.param('{"a": {"b": %s}}', "a.b", id="struct"),
        pytest.param('{"a": [%s, 2]}', r"a\[\]", id="list"),
        pytest.param('{"a": [[{"b": %s}]]}', r"a\[\]\[\].b", id="lists of structs"),
        pytest.param('{"\\u0061": %s}', "a", id="an escaped name"),
        pytest.param('{"é": %s}', "é", id="another alphabet"),
        pytest.param('{"a.b": %s}', "a.b", id="a dot in the name"),
        pytest.param('{"a"\t: \t%s \t, "b": Inf}', "a", id="space"),
    ],
)
def test_numbers_within_json(tmp_path, line, shown):
    path = tmp_path / "a.json"
    path.write_text("".join(line % text + "\n" for text in ("1.5", "null", "1e300", str(2**60))))
    assert len(rows(read_json(path))) == 4
    path.write_text("".join(line % text + "\n" for text in ("1.5", "null", "1e300", str(LARGE))))
    with pytest.raises(ConnectorError, match=rf"in row 4: column `{shown}` has {LARGE}"):
        rows(read_json(path))


def test_large_integers_elsewhere_in_json_change_nothing(tmp_path):
    (tmp_path / "a.json").write_text(
        f'{{"id": {LARGE}, "x": 1e300, "t": "[{LARGE}]", "l": [{LARGE}]}}\n{{"id": {LARGE}, "x": 9.007199254740992e15}}\n'
    )
    first, second = rows(read_json(tmp_path / "a.json"))
    assert first == {"id": LARGE, "x": 1e300, "t": f"[{LARGE}]", "l": [LARGE]}
    assert (second["id"], second["x"]) == (LARGE, 2.0**53)


def test_objects_that_are_not_one_to_a_line(tmp_path):
    (tmp_path / "a.json").write_text(f'{{"x": 1.5}}{{"x":\n2.5}}\n\n {{"x": 1e17}}\n{{"x": {LARGE}}}')
    with pytest.raises(ConnectorError, match=rf"in row 4: column `x` has {LARGE}"):
        values(tmp_path / "a.json", "json")


def test_floats_in_declared_structs_and_lists_of_json(tmp_path):
    path = tmp_path / "a.json"
    path.write_text('{"a": {"x": 0.1, "y": 1.5, "l": [1, 0.1]}}\n{"a": {"x": 1e300, "y": 1, "l": null}}\n')
    with pytest.raises(ConnectorError, match=r"in row 2: column `a`: 1e\+300 is too large for float"):
        rows(read_json(path, schema={"a": "struct<x: float32>"}))
    path.write_text('{"a": {"x": 0.1, "y": 1.5, "l": [1, 0.1]}}\n{"a": {"x": 1, "y": 1, "l": [1e300]}}\n')
    with pytest.raises(ConnectorError, match=r"in row 2: column `a`: 1e\+300 is too large for float"):
        rows(read_json(path, schema={"a": "struct<l: list<float32>>"}))
    source = read_json(path, schema={"a": "struct<x: float32, l: list<float64>>"})
    assert types(source) == {"a": pa.struct({"x": pa.float32(), "l": pa.list_(pa.float64()), "y": pa.float64()})}
    assert rows(source)[0]["a"]["x"] == np.float32(0.1)


def test_half_floats_of_json(tmp_path):
    path = tmp_path / "a.json"
    path.write_text('{"x": 0.5}\n{"x": 65504}\n')
    assert values(path, "json", schema={"x": "float16"}) == [0.5, 65504.0]
    path.write_text('{"x": 0.5}\n{"x": 65520}\n')
    with pytest.raises(ConnectorError, match=r"in row 2: column `x`: 65520\.0 is too large for halffloat"):
        values(path, "json", schema={"x": "float16"})


def test_half_floats_of_csv_are_refused_with_advice(tmp_path):
    write(tmp_path / "a.csv", "csv", ["0.5"])
    with pytest.raises(ConnectorError, match="halffloat is not supported; declare float32 in `schema`, and cast it"):
        values(tmp_path / "a.csv", "csv", schema={"x": "float16"})


ZONED = ["2026-01-31T10:00:00Z", "2026-01-31T10:00:00+02:00"]


def test_times_of_json_keep_their_zone(tmp_path):
    path = tmp_path / "a.json"
    path.write_text("".join(f'{{"at": "{text}", "in": [{{"at": "{text}"}}]}}\n' for text in ZONED))
    zoned = pa.timestamp("s", "UTC")
    assert types(read_json(path)) == {"at": zoned, "in": pa.list_(pa.struct({"at": zoned}))}
    assert [row["at"] for row in rows(read_json(path))] == [datetime(2026, 1, 31, 10, tzinfo=UTC), datetime(2026, 1, 31, 8, tzinfo=UTC)]
    path.write_text('{"at": null}\n{"at": "2026-01-31T10:00:00"}\n')
    assert types(read_json(path)) == {"at": pa.timestamp("s")}
    assert rows(read_json(path))[1] == {"at": datetime(2026, 1, 31, 10)}


def test_times_of_json_with_and_without_a_zone_are_refused_unless_their_type_is_declared(tmp_path):
    path = tmp_path / "a.json"
    path.write_text('{"at": "2026-01-31T10:00:00"}\n{"at": "2026-01-31T10:00:00+02:00"}\n')
    with pytest.raises(ConnectorError, match=r"in row 2: column `at`: .*2026-01-31T10:00:00\+02:00.* expected no zone offset; .*`schema`"):
        rows(read_json(path))
    assert len(rows(read_json(path, schema={"at": "string"}))) == 2
    assert rows(read_json(path, schema={"at": "timestamp[us, UTC]"}))[1]["at"] == datetime(2026, 1, 31, 8, tzinfo=UTC)
    assert rows(read_json(path, schema={"at": "timestamp[us]"}))[1]["at"] == datetime(2026, 1, 31, 8)


numbers = st.one_of(
    st.integers(-(2**70), 2**70),
    st.integers(2**53 - 3, 2**53 + 3),
    st.floats(allow_nan=False, allow_infinity=False),
    st.floats(width=32, allow_nan=False, allow_infinity=False),
    st.none(),
)


@every_format
@example(kind=None, written=[1.5, LARGE])
@example(kind="float32", written=[1e300])
@given(kind=st.sampled_from([None, "float32", "float64"]), written=st.lists(numbers, min_size=1, max_size=6))
def test_a_number_arrives_as_it_was_or_as_its_declared_type_rounds_it(form, kind, written, tmp_path_factory):
    path = tmp_path_factory.mktemp("numbers") / f"a.{form}"
    write(path, form, ["" if value is None else json.dumps(value) for value in written])
    there = [value for value in written if value is not None]
    if kind == "float32":
        with np.errstate(over="ignore"):
            expected = [None if value is None else float(np.float32(float(value))) for value in written]
        lost = any(math.isinf(value) for value in expected if value is not None)
    else:
        expected = [value if value is None or kind is None else float(value) for value in written]
        floats = any(isinstance(value, float) for value in there) or any(not -(2**63) <= value < 2**63 for value in there)
        lost = kind is None and floats and any(value != int(float(value)) for value in there if isinstance(value, int))
    if lost:
        with pytest.raises(ConnectorError, match=r"can't be read in row \d+: column `x`"):
            values(path, form, schema=kind and {"x": kind})
    else:
        assert values(path, form, schema=kind and {"x": kind}) == expected
