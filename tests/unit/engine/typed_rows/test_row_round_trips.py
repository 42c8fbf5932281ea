"""Values of typed rows become columns and come back equal, or there is an error."""

from __future__ import annotations

import dataclasses
import enum
import operator
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Literal, NamedTuple, TypedDict
from uuid import UUID

import msgspec
import pydantic
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenflow.engine.errors import RecordError
from evenflow.engine.functions.rows_encoder import RowsEncoder
from evenflow.engine.typed_rows.annotations import row_type


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


LEAVES: list[tuple[Any, st.SearchStrategy[Any]]] = [
    (int, st.integers(-(2**70), 2**70) | st.integers(-5, 5)),
    (float, st.floats(allow_nan=False)),
    (str, st.text(max_size=5)),
    (bytes, st.binary(max_size=5)),
    (bool, st.booleans()),
    (date, st.dates()),
    (time, st.times()),
    (timedelta, st.timedeltas()),
    (Decimal, st.decimals(allow_nan=False) | st.decimals(-1000, 1000, places=2)),
    (datetime, st.datetimes() | st.datetimes(timezones=st.just(UTC))),
    (UUID, st.uuids()),
    (Colour, st.sampled_from(Colour)),
    (Level, st.sampled_from(Level)),
    (Literal["a", "b"], st.sampled_from(["a", "b"])),
]
"""Annotations, and values for them: some are beyond what any column holds."""

FOREIGN = st.sampled_from([None, 1, 2.5, "x", b"x", True, Decimal(1), date(2026, 1, 1), [1], (1,), {1}, {"a": 1}, Colour.RED, "red"])
"""Values that most annotations don't allow."""


def wider(inner: tuple[Any, st.SearchStrategy[Any]]) -> st.SearchStrategy[tuple[Any, st.SearchStrategy[Any]]]:
    """Draw an annotation around another one, with values for it."""
    kind, values = inner
    hashable = [(key, keys) for key, keys in LEAVES if key in (int, str, date)]
    made = [
        (list[kind], st.lists(values, max_size=3)),
        (tuple[kind, ...], st.lists(values, max_size=3).map(tuple)),
        (kind | None, st.none() | values),
        *((dict[key, kind], st.dictionaries(keys, values, max_size=3)) for key, keys in hashable),
    ]
    if kind in (int, str, Colour, UUID):
        made.append((set[kind], st.sets(values, max_size=3)))
    return st.sampled_from(made)


def nested(inner):
    """Return a class with a field of an annotation, and its objects."""
    made = dataclasses.make_dataclass("Inner", [("a", inner[0]), ("b", int)], frozen=True)
    return made, st.builds(made, inner[1], st.integers(0, 3))


@st.composite
def annotations(draw, depth=2):
    inner = draw(st.sampled_from(LEAVES))
    for _ in range(draw(st.integers(0, depth))):
        inner = nested(inner) if draw(st.integers(0, 4)) == 0 else draw(wider(inner))
    return inner


def make_class(form: str, fields: dict[str, Any]) -> type:
    """Return a class of rows with these annotations."""
    if form == "dataclass":
        return dataclasses.make_dataclass("Row", list(fields.items()), slots=True)
    if form == "named":
        return NamedTuple("Row", list(fields.items()))
    if form == "dict":
        return TypedDict("Row", fields)
    if form == "struct":
        return msgspec.defstruct("Row", list(fields.items()))
    return pydantic.create_model("Row", **{name: (kind, ...) for name, kind in fields.items()})


def make_row(form: str, cls: Any, values: dict[str, Any]) -> Any:
    return cls.model_construct(**values) if form == "model" else cls(**values)


FORMS = ["dataclass", "named", "dict", "struct", "model"]


def same(left: Any, right: Any) -> bool:
    """Return True for equal values of the same types, with tuples and lists apart."""
    if isinstance(left, (list, tuple)):
        return type(left) is type(right) and len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, dict):
        return isinstance(right, dict) and list(left) == list(right) and all(same(left[name], right[name]) for name in left)
    return left == right and (left is None) == (right is None)


def columns_back(rows: list[Any], cls: type) -> list[Any] | None:
    """Return the rows after they were columns, None if they were refused."""
    kind = row_type(cls, "typed")
    try:
        columns = RowsEncoder("map", results=kind, function="f").encode(rows)
    except RecordError:
        return None
    kind.check_rows(columns)
    assert kind.converted(columns).equals(columns)
    return kind.build(columns)


@pytest.mark.slow
@settings(deadline=None, max_examples=150)
@given(st.data(), st.sampled_from(FORMS))
def test_rows_of_random_classes_come_back_equal_or_are_refused(data, form):
    kinds = data.draw(st.lists(annotations(), min_size=1, max_size=4))
    fields = {f"f{place}": kind for place, (kind, _) in enumerate(kinds)}
    cls = make_class(form, fields)
    values = st.fixed_dictionaries({f"f{place}": drawn for place, (_, drawn) in enumerate(kinds)})
    rows = [make_row(form, cls, each) for each in data.draw(st.lists(values, min_size=1, max_size=5))]
    back = columns_back(rows, cls)
    assert back is None or [type(row) for row in back] == [type(row) for row in rows]
    for given_row, got in zip(rows, back or rows, strict=True):
        get = operator.getitem if form == "dict" else getattr
        assert all(same(get(given_row, name), get(got, name)) for name in fields)


@pytest.mark.slow
@settings(deadline=None, max_examples=150)
@given(st.sampled_from(LEAVES), FOREIGN)
def test_a_value_of_another_type_is_refused_or_equal(leaf, foreign):
    cls = make_class("dataclass", {"a": leaf[0]})
    back = columns_back([cls(foreign)], cls)
    assert back is None or back[0].a == foreign


@pytest.mark.parametrize("form", FORMS)
def test_each_kind_of_class_comes_back_equal(form):
    cls = make_class(form, {"n": int, "names": list[str], "colour": Colour | None})
    rows = [make_row(form, cls, {"n": n, "names": ["a"] * n, "colour": colour}) for n, colour in ((0, None), (2, Colour.RED))]
    assert columns_back(rows, cls) == rows


def test_column_of_an_optional_class_with_a_uuid_may_have_nulls_only():
    cls = make_class("dataclass", {"inner": dataclasses.make_dataclass("Inner", [("a", UUID)]) | None})
    assert columns_back([cls(None)], cls) == [cls(None)]


def test_values_at_the_limits_of_their_types_come_back_equal():
    cls = make_class("dataclass", {"i": int, "f": float, "at": datetime, "d": timedelta})
    rows = [
        cls(-(2**63), float("inf"), datetime.min, timedelta(microseconds=-1)),
        cls(2**63 - 1, 5e-324, datetime.max, timedelta(days=100_000)),
    ]
    assert columns_back(rows, cls) == rows
