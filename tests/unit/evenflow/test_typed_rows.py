"""Functions of typed rows in jobs, and what is refused with which words."""

from __future__ import annotations

import asyncio
from dataclasses import InitVar, dataclass, field
from enum import Enum
from typing import Annotated, Any, NamedTuple, NotRequired, TypedDict

import msgspec
import pyarrow as pa
import pydantic
import pytest

import evenflow as ef

pytestmark = pytest.mark.usefixtures("waiting_for_jobs")


@dataclass(slots=True)
class Bid:
    item: str
    price: float


class Priced(NamedTuple):
    item: str
    euros: Annotated[float, "float32"]


class BidDict(TypedDict):
    item: str
    price: float


class BidStruct(msgspec.Struct):
    item: str
    price: float


class BidModel(pydantic.BaseModel):
    item: str
    price: float = pydantic.Field(gt=0)


class Size(Enum):
    SMALL = "s"


@dataclass
class Sized:
    size: Size


@dataclass
class Doubling:
    price: float

    def __post_init__(self):
        self.price *= 2


@dataclass
class Positive:
    price: float

    def __post_init__(self):
        if self.price < 0:
            raise ValueError("negative")


ROWS = [{"price": 3.0, "item": "tea"}, {"price": 0.5, "item": "milk"}]


def priced(bid: Bid) -> Priced:
    return Priced(bid.item, bid.price)


def twice(bid: Bid) -> list[Priced]:
    return [Priced(bid.item, 1.0), Priced(bid.item, 2.0)]


async def fetched(bid: Bid) -> Priced:
    await asyncio.sleep(0)
    return Priced(bid.item, bid.price)


class Prices:
    def __call__(self, bid: Bid) -> Priced:
        return Priced(bid.item, bid.price)


class Total(ef.KeyedFunction[Bid]):
    total = ef.value_state(0.0)

    def on_row(self, key, row, context):
        self.total += row.price
        yield {"item": row.item, "total": self.total}


def results(make, rows=ROWS, **options) -> list[Any]:
    flow, out = ef.Dataflow("typed"), []
    make(flow.read(ef.from_items(rows, **options))).write(ef.to_list(out))
    flow.run(runtime="local").wait()
    return out


def unknown(stream):
    """Return the stream with columns that aren't known before it runs."""
    return stream.map(lambda row: row)


@pytest.mark.parametrize("cls", [Bid, BidStruct, BidModel])
def test_functions_get_objects_of_the_class(cls):
    seen = []
    assert results(lambda rows: rows.typed(cls).filter(lambda bid: seen.append(bid) or bid.price > 1)) == [{"item": "tea", "price": 3.0}]
    assert seen == [cls(item="tea", price=3.0), cls(item="milk", price=0.5)]


def test_rows_of_a_typed_dict_are_dicts_with_its_keys():
    assert results(lambda rows: rows.typed(BidDict).map(lambda bid: {"n": list(bid)}))[0] == {"n": ["item", "price"]}


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda bids: bids.map(priced), id="map"),
        pytest.param(lambda bids: bids.map(Prices), id="a class in place of a function"),
        pytest.param(lambda bids: bids.map(lambda bid: Priced(bid.item, bid.price), schema=Priced), id="schema"),
        pytest.param(lambda bids: bids.map_async(fetched).typed(Priced), id="map_async"),
        pytest.param(lambda bids: bids.flat_map(twice).filter(lambda row: row.euros < 2), id="flat_map"),
    ],
)
def test_a_function_that_returns_a_class_gives_its_columns_to_the_plan(make):
    flow, out = ef.Dataflow("typed"), []
    stream = make(flow.read(ef.from_items(ROWS)).typed(Bid))
    assert stream.node.columns.schema() == pa.schema({"item": "string", "euros": "float32"})
    stream.map(lambda row: {"kind": type(row).__name__, "item": row.item}).write(ef.to_list(out))
    flow.run(runtime="local").wait()
    assert out == [{"kind": "Priced", "item": "tea"}, {"kind": "Priced", "item": "milk"}]


def test_methods_that_keep_the_columns_keep_the_class():
    def made(rows):
        small, large = rows.typed(Bid).with_time(lambda bid: int(bid.price)).branch(lambda bid: bid.price < 1)
        return (
            small.union(large).filter(ef.col("price") > 0).key_by(lambda bid: bid.item).filter(lambda bid: bid.price > 0).process(Total())
        )

    assert sorted(row["total"] for row in results(made)) == [0.5, 3.0]


def test_a_stateful_map_gets_objects_of_the_class():
    totals = results(lambda rows: rows.typed(Bid).key_by("item").stateful_map(lambda state, bid: (bid.price, {"p": bid.price})))
    assert sorted(row["p"] for row in totals) == [0.5, 3.0]


def test_other_columns_make_rows_dicts_again():
    assert results(lambda rows: rows.typed(Bid).select("item").map(lambda row: row["item"]))[0] == {"item": "tea"}


MISFITS = {
    "a column that the stream lacks": (Priced, ROWS, "no column `euros` for Priced.euros: float; it has price, item"),
    "a column that the class lacks": (Bid, [{"item": "a", "price": 1.0, "n": 1}], r"Bid has no field `n` .*\.drop\('n'\)"),
    "another type": (Bid, [{"item": 1, "price": 1.0}], r"column `item` is int64, and Bid.item is str: .*\.cast\(item='string'\)"),
    "whole numbers in place of floats": (Bid, [{"item": "a", "price": 1}], r"column `price` is int64, and Bid.price is float"),
}


@pytest.mark.parametrize(("cls", "rows", "words"), MISFITS.values(), ids=MISFITS)
def test_columns_that_do_not_fit_are_refused_when_the_flow_is_written(cls, rows, words):
    schema = pa.Table.from_pylist(rows).schema
    stream = ef.Dataflow("typed").read(ef.from_items(rows)).map(lambda row: row, schema=schema)
    with pytest.raises(ef.FlowError, match=f"operator `typed`: .*{words}"):
        stream.typed(cls)


@pytest.mark.parametrize(("cls", "rows", "words"), MISFITS.values(), ids=MISFITS)
def test_columns_that_are_not_known_before_are_refused_at_the_first_batch(cls, rows, words):
    with pytest.raises(ef.RecordError, match=f"operator `typed`: .*{words}"):
        results(lambda stream: unknown(stream).typed(cls), rows)


REFUSED = {
    "a null": (Bid, {"item": None, "price": 1.0}, {"item": "a", "price": 1.0}, r"Bid.item: null, but str allows none: say `str \| None`"),
    "no value of an Enum": (Sized, {"size": "x"}, {"size": "s"}, "Sized.size: 'x' is no value of Size"),
    "an error of the class": (Positive, {"price": -1.0}, {"price": 1.0}, "ValueError: negative"),
    "a class that changes its values": (Doubling, {"price": 1.5}, {"price": 0.0}, "Doubling.price: the class changed 1.5 to 3.0"),
    "an error of a Pydantic model": (BidModel, {"item": "a", "price": -1.0}, {"item": "a", "price": 1.0}, "greater than 0"),
}


@pytest.mark.parametrize(("cls", "bad", "good", "words"), REFUSED.values(), ids=REFUSED)
def test_a_record_that_the_class_refuses_ends_the_job_or_is_a_dead_letter(cls, bad, good, words):
    with pytest.raises(ef.RecordError, match=f"(?s)operator `typed`: .*{words}"):
        results(lambda stream: unknown(stream).typed(cls), [good, bad])
    flow, out, letters = ef.Dataflow("typed"), [], []
    stream = unknown(flow.read(ef.from_items([good, bad, good]))).typed(cls, on_error="dead_letter")
    stream.write(ef.to_list(out))
    stream.dead_letters.write(ef.to_list(letters, name="letters"))
    flow.run(runtime="local").wait()
    assert out == [good, good]
    assert len(letters) == 1


def test_a_pydantic_model_converts_each_row_once():
    class Counted(pydantic.BaseModel):
        n: int

        @pydantic.field_validator("n")
        @classmethod
        def more(cls, value):
            return value + 1

    assert results(lambda rows: rows.typed(Counted).filter(lambda row: row.n == 4).filter(lambda row: row.n == 4), [{"n": "3"}]) == [
        {"n": 4}
    ]


def test_narrow_columns_get_the_types_of_the_class():
    rows = [{"item": "a", "price": 0.5}]
    stream = lambda rows: rows.map(lambda row: row, schema={"item": "large_string", "price": "float32"}).typed(Bid)  # noqa: E731 -- one line
    assert results(stream, rows) == rows


RETURNS = {
    "another class": (lambda bid: bid, "expected an object of Priced, got Bid"),
    "a value of another type": (lambda bid: Priced(bid.price, 1.0), "column `item` is string in schema, got 3.0 .float."),
    "a value that changes": (lambda bid: Priced("a", 0.1), "column `euros` is float in schema, got 0.1 .float."),
    "a null": (lambda bid: Priced(None, 1.0), "Priced.item: None, but str allows none"),
}


@pytest.mark.parametrize(("function", "words"), RETURNS.values(), ids=RETURNS)
def test_results_that_the_class_does_not_allow_are_refused(function, words):
    with pytest.raises(ef.RecordError, match=f"operator `map`: .*{words}"):
        results(lambda rows: rows.typed(Bid).map(function, schema=Priced))


@pytest.mark.parametrize("value", [Bid("a", 1.0), Priced("a", 1.0), BidStruct("a", 1.0)])
def test_objects_from_a_function_that_does_not_say_so_are_refused(value):
    with pytest.raises(ef.RecordError, match=rf"returned an object of {type(value).__name__}: annotate it"):
        results(lambda rows: rows.map(lambda row: value))


def test_streams_of_two_classes_have_no_union():
    stream = ef.Dataflow("typed").read(ef.from_items(ROWS))
    with pytest.raises(ef.FlowError, match="union of rows of two classes, Bid and dicts"):
        stream.typed(Bid).union(stream)


class Optional(TypedDict):
    a: NotRequired[int]


@dataclass
class Empty:
    pass


@dataclass
class Computed:
    a: int
    b: int = field(init=False)


@dataclass
class Initial:
    a: int
    b: InitVar[int]


@dataclass
class Recursive:
    a: int
    inner: Recursive | None


class Aliased(pydantic.BaseModel):
    a: int = pydantic.Field(alias="b")


def one(annotation: Any) -> type:
    return dataclass(type("One", (), {"__annotations__": {"a": annotation}}))


@pytest.mark.parametrize(
    ("cls", "words"),
    [
        (dict, "expected a dataclass, NamedTuple"),
        (7, "expected a dataclass, NamedTuple"),
        (Optional, "need not have the key `a`"),
        (Empty, "has no fields"),
        (Computed, "b is no argument of the constructor"),
        (Initial, "has an InitVar"),
        (Recursive, "contains itself"),
        (Aliased, "a has an alias"),
        (one(object), "One.a: object is no type of a column; use int"),
        (one(int | str), "has several types"),
        (one(list), "list is no type of a column"),
        (one(tuple[int, str]), "no type of a column"),
        (one(dict[list[int], int]), "the keys of"),
        (one(Annotated[int, "text"]), "unknown"),
        (one(Annotated[int, "string"]), "int can't be in a column of the type string"),
        (one("Nowhere"), "can't be read .*Nowhere"),
    ],
)
def test_a_class_that_stands_for_no_columns_is_refused(cls, words):
    with pytest.raises(ef.FlowError, match=rf"typed\(.*\): .*{words}"):
        ef.Dataflow("typed").read(ef.from_items(ROWS)).typed(cls)
