"""Values of declared types are restored equal and with the same type; others are refused with the expected and the given type."""

from __future__ import annotations

import dataclasses
import enum
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from decimal import Decimal
from typing import Annotated, Any, Literal, NamedTuple, NewType, NotRequired, TypedDict
from uuid import UUID

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from evenflow.engine.typed_rows.field_types import UnfitError
from evenflow.engine.typed_rows.row_classes import UnsupportedError
from evenflow.engine.typed_states.state_annotations import value_type
from evenflow.engine.typed_states.suggestion import annotation_for
from evenflow.engine.typed_states.value_types import NEWEST
from evenflow.state.packing import pack_value, unpack_value


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


@dataclass(frozen=True, order=True)
class Item:
    name: str
    price: float = 1.0


def scalars():
    """Draw scalars of Arrow of several types, null or not."""
    kinds = [pa.int8(), pa.timestamp("ns", "UTC"), pa.string_view(), pa.list_(pa.int16()), pa.struct({"a": pa.int64()})]
    given = [5, 7, "x", [1, None], {"a": 2}]
    full = [pa.scalar(value, kind) for value, kind in zip(given, kinds, strict=True)]
    return st.sampled_from([*full, *(pa.scalar(None, kind) for kind in kinds), pa.array(["a"]).dictionary_encode()[0]])


DTYPES = st.sampled_from([np.dtype(code) for code in ("<f8", ">i4", "u1", "?", "U3", "S2", "M8[ns]", "c16")])
ARRAYS = arrays(DTYPES, array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3))

LEAVES: list[tuple[Any, st.SearchStrategy[Any]]] = [
    (int, st.integers(-(2**70), 2**70)),
    (float, st.floats()),
    (str, st.text(max_size=5)),
    (bytes, st.binary(max_size=5)),
    (bool, st.booleans()),
    (date, st.dates()),
    (time, st.times()),
    (timedelta, st.timedeltas()),
    (Decimal, st.decimals()),
    (datetime, st.datetimes() | st.datetimes(timezones=st.just(UTC))),
    (UUID, st.uuids()),
    (Colour, st.sampled_from(Colour)),
    (Level, st.sampled_from(Level)),
    (Literal["a", "b"], st.sampled_from(["a", "b"])),
    (int | str, st.integers() | st.text(max_size=3)),
    (Item, st.builds(Item, st.text(max_size=3), st.floats(allow_nan=False))),
    (Any, st.integers() | st.lists(st.integers(), max_size=2)),
]
UNHASHABLE: list[tuple[Any, st.SearchStrategy[Any]]] = [(np.ndarray, ARRAYS), (pa.Scalar, scalars())]
HASHABLE = [(kind, values) for kind, values in LEAVES if kind not in (Any, float, Decimal)]


def containers(inner):
    """Draw an annotation around another one, with values for it."""
    kind, values = inner
    return st.sampled_from([
        (list[kind], st.lists(values, max_size=3)),
        (tuple[kind, ...], st.lists(values, max_size=3).map(tuple)),
        (tuple[kind, int], st.tuples(values, st.integers())),
        (kind | None, st.none() | values),
        *((dict[key, kind], st.dictionaries(keys, values, max_size=3)) for key, keys in HASHABLE),
        *((set[key], st.sets(keys, max_size=3)) for key, keys in HASHABLE),
        *((frozenset[key], st.frozensets(keys, max_size=3)) for key, keys in HASHABLE),
    ])  # fmt: skip


@st.composite
def objects(draw, inner):
    """Draw a class with a field of an annotation, and its objects."""
    kind, values = inner
    making = draw(st.sampled_from(["dataclass", "named tuple", "typed dict"]))
    if making == "named tuple":
        made: Any = NamedTuple("Inner", [("a", kind), ("b", int)])
        return made, st.builds(made, values, st.integers())
    if making == "typed dict":
        made = TypedDict("Inner", {"a": kind, "b": NotRequired[int]})  # noqa: UP013 -- the annotation is a variable
        return made, st.fixed_dictionaries({"a": values}, optional={"b": st.integers()})
    options = {name: draw(st.booleans()) for name in ("frozen", "slots", "kw_only")}
    made = dataclasses.make_dataclass("Inner", [("a", kind), ("b", int, field(default=5))], **options)
    return made, st.builds(lambda a, b: made(a=a, b=b), values, st.integers())


@st.composite
def declared(draw):
    """Draw an annotation and a value of it."""
    found = draw(st.sampled_from([*LEAVES, *UNHASHABLE]))
    for _ in range(draw(st.integers(0, 3))):
        found = draw(st.one_of(containers(found), objects(found)))
    return found[0], draw(found[1])


def same(one: Any, other: Any) -> bool:
    """Return True if two values are equal and of equal types, at any depth."""
    if type(one) is not type(other):
        return False
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()
    if isinstance(one, pa.Scalar):
        return one.type == other.type and one.equals(other)
    if dataclasses.is_dataclass(one):
        return all(same(getattr(one, each.name), getattr(other, each.name)) for each in dataclasses.fields(one))
    if isinstance(one, dict):
        return list(map(type, one)) == list(map(type, other)) and list(one) == list(other) and same([*one.values()], [*other.values()])
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, (set, frozenset)):
        return one == other and {(type(each), each) for each in one} == {(type(each), each) for each in other}
    return repr(one) == repr(other) if isinstance(one, (float, Decimal)) else one == other  # of NaN too


def restored(kind: Any, value: Any) -> Any:
    """Save a value and restore it, by what another process would know of its type."""
    return value_type(kind).value(unpack_value(pack_value(value_type(kind).plain(value))))


@pytest.mark.slow
@given(declared())
def test_values_of_declared_types_are_restored_equal_and_of_equal_type(pair):
    kind, value = pair
    assert same(restored(kind, value), value)
    value_type(kind).plain(value, NEWEST)


@pytest.mark.slow
@given(declared(), declared())
def test_value_of_another_type_is_refused_or_restored_as_it_was(one, other):
    try:
        found = restored(one[0], other[1])
    except UnfitError:
        return
    assert same(found, other[1])


@dataclass
class Counted:
    """A dataclass with code of its own, and a field that is no argument."""

    n: int
    twice: int = field(init=False)
    _calls: list[int] = field(default_factory=list, init=False)

    def __post_init__(self):
        self.twice = self.n * 2
        self.helper = object()
        self.n += 1


@dataclass(init=False)
class Built:
    n: int
    names: list[str] = field(default_factory=list)

    def __init__(self, text: str):
        self.n, self.names = len(text), [text]


class Struct(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    n: int = 3


class Model(pydantic.BaseModel):
    name: str
    names: list[str] = pydantic.Field(default_factory=list)


OwnId = NewType("OwnId", int)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (Counted, Counted(5)),
        (Built, Built("text")),
        (Struct, Struct(name="a")),
        (Model, Model(name="a", names=["b"])),
        (OwnId, OwnId(5)),
        (Annotated[int, "number"], 5),
        (npt.NDArray[np.float64], np.ones((2, 0, 3))),
        (np.ndarray, np.asfortranarray(np.arange(6).reshape(2, 3))),
        (np.float32, np.float32(1.5)),
        (pa.Int64Scalar, pa.scalar(5)),
        (list, [1, {"a": (2,)}]),
        (float, 5),
        (Item | None, None),
        (Literal["a"] | None, None),
    ],
)
def test_types_that_users_declare_are_restored(kind, value):
    assert same(restored(kind, value), value) or restored(kind, value) == value
    assert type(restored(kind, value)) is type(value)


def test_fields_are_restored_although_the_constructor_changes_them():
    found = restored(Counted, Counted(5))
    assert (found.n, found.twice) == (6, 10)
    assert hasattr(found, "helper")


def test_array_can_be_changed_when_it_was_restored():
    found = restored(np.ndarray, np.zeros(2))
    found[0] = 5
    assert found.tolist() == [5, 0]


class Zone(tzinfo):
    """A time zone of the user's."""


@pytest.mark.parametrize(
    ("kind", "value", "problem"),
    [
        (int, True, r"expected int, got True \(bool\)"),
        (float, np.float64(1), r"expected float, got np.float64\(1.0\) \(float64\)"),
        (Item, Item(1), r"Item.name: expected str, got 1 \(int\)"),  # type: ignore[arg-type]
        (list[Item], [Item("a"), {}], r"list\[Item\]: expected Item, got \{\} \(dict\)"),
        (dict[str, Item], {1: Item("a")}, r"dict\[str, Item\]: expected str, got 1"),
        (tuple[int, str], (1,), r"expected tuple\[int, str\], got \(1,\)"),
        (Colour, "red", "expected Colour, got 'red'"),
        (Literal["a"], "b", "expected .*'b'"),
        (set[int], {1, "a"}, "expected int, got 'a'"),
        (np.ndarray, np.array([None]), "got one of object"),
        (np.ndarray, np.zeros(1, [("a", "i4")]), "of numbers, times or texts of fixed length"),
        (np.ndarray, np.ma.masked_array([1]), "MaskedArray"),
        (npt.NDArray[np.float64], np.zeros(1, "i4"), "expected ndarray of float64, got one of int32"),
        (pa.Int64Scalar, pa.scalar(1.5), "expected pa.Int64Scalar"),
        (datetime, datetime(2026, 1, 1, tzinfo=Zone()), "has a time zone of"),
        (Any, Item("a"), "`the value` is a Item"),
        (list, [bytearray()], "is a bytearray"),
        (Built, Built.__new__(Built), "Built.n is not set"),
    ],
)
def test_wrong_value_is_refused_with_the_expected_and_the_given_type(kind, value, problem):
    with pytest.raises(UnfitError, match=problem):
        value_type(kind).plain(value)


def test_typed_dict_needs_its_keys_and_takes_no_others():
    kind = value_type(TypedDict("Entry", {"a": int, "b": NotRequired[int]}))
    assert kind.plain({"a": 1}) == {"a": 1}
    for wrong in ({}, {"a": 1, "c": 2}):
        with pytest.raises(UnfitError, match=r"Entry with the keys \['a', 'b'\], got"):
            kind.plain(wrong)


def test_check_of_a_large_container_looks_at_its_newest_parts():
    kind = value_type(list[int])
    kind.plain(["old", *range(NEWEST)], NEWEST)
    for examined in ([*range(NEWEST * 2), "new"], ["few"]):
        with pytest.raises(UnfitError):
            kind.plain(examined, NEWEST)


@dataclass
class Node:
    inner: list[Node]


@dataclass
class WithInitVar:
    n: dataclasses.InitVar[int]
    m: int = 0


class Open(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="allow")
    a: int


class Aliased(pydantic.BaseModel):
    a: int = pydantic.Field(alias="b")


class Mixed(enum.Enum):
    ONE = 1
    TWO = "two"


@pytest.mark.parametrize(
    ("kind", "problem"),
    [
        (complex, "complex can't be saved"),
        (bytearray, "bytearray can't be saved"),
        ("Item", "'?Item'? can't be saved"),
        (Item | int, "has several types"),
        (list[Any | Item], "has several types"),
        (Mixed, "must be all texts, or all whole numbers"),
        (Node, "Node.inner: Node contains itself"),
        (dataclasses.make_dataclass("None_", []), "has no fields"),
        (WithInitVar, "has an InitVar"),
        (dataclasses.make_dataclass("Outer", [("deep", list[complex])]), "Outer.deep: complex can't be saved"),
        (Open, "allows extra fields"),
        (Aliased, "Aliased.a has an alias"),
    ],
)
def test_annotation_whose_values_can_not_be_saved_is_refused(kind, problem):
    with pytest.raises(UnsupportedError, match=problem):
        value_type(kind)


@pytest.mark.parametrize("making", ["call", "own", "tuple", "struct", "model"])
def test_missing_field_takes_its_default_and_one_without_is_refused(making):
    kinds = {
        "call": (Item, Item("a", 1.0)),
        "own": (Built, None),
        "tuple": (NamedTuple("Pair", [("name", str)]), None),
        "struct": (Struct, Struct(name="a")),
        "model": (Model, Model(name="a")),
    }
    kind, expected = kinds[making]
    if expected is not None:
        assert value_type(kind).value({"name": "a", "gone": 5}) == expected
    with pytest.raises(UnfitError, match="has no default"):
        value_type(kind).value({})


@pytest.mark.parametrize("bad", [5, [], {"name": 5, "price": 1.0}, {"name": "a", "price": "b"}])
def test_saved_value_of_another_type_is_refused(bad):
    with pytest.raises(UnfitError, match="expected"):
        value_type(Item).value(bad)


@pytest.mark.parametrize(
    ("value", "annotation"),
    [
        (Item("a"), "Item"),
        ([1, Item("a")], "list[Item]"),
        ({"a": (Item("a"),)}, "dict[str, tuple[Item, ...]]"),
        (np.zeros(1), "np.ndarray"),
        (pa.scalar(1), "pa.Int64Scalar"),
        ([bytearray()], None),
        (np.array([None]), None),
    ],
)
def test_error_suggests_an_annotation(value, annotation):
    assert annotation_for(value) == annotation
