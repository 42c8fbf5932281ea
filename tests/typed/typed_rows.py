"""Programs over typed rows: `mypy --strict` accepts the right ones, and refuses each line with `type: ignore`. Nothing is run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, TypedDict, assert_type

import evenflow as ef


@dataclass(frozen=True, slots=True)
class Bid:
    """A row of a dataclass."""

    item: str
    price: float


class Priced(NamedTuple):
    """A row of a NamedTuple."""

    item: str
    euros: float


class Counted(TypedDict):
    """A row that is a dict with known keys."""

    item: str
    n: int


def priced(bid: Bid) -> Priced:
    return Priced(bid.item, bid.price)


async def fetched(bid: Bid) -> Priced:
    return priced(bid)


def halves(bid: Bid) -> Iterator[Bid]:
    yield Bid(bid.item, bid.price / 2)


class Total(ef.KeyedFunction[Bid]):
    """A function of typed rows."""

    total = ef.value_state(0.0)

    def on_row(self, key: Any, row: Bid, context: ef.KeyContext) -> list[Any]:
        self.total += row.price
        return [{"item": row.item, "total": self.total}]


def right(stream: ef.Stream, sink: ef.Sink) -> None:
    """Accept these."""
    bids = stream.typed(Bid)
    assert_type(bids, ef.Stream[Bid])
    assert_type(bids.filter(lambda bid: bid.price > 1), ef.Stream[Bid])
    assert_type(bids.branch(lambda bid: bid.price > 1)[1], ef.Stream[Bid])
    assert_type(bids.filter(ef.col("price") > 1).union(bids).with_time(lambda bid: bid.price), ef.Stream[Bid])
    assert_type(bids.map(priced), ef.Stream[Priced])
    assert_type(bids.flat_map(halves), ef.Stream[Bid])
    assert_type(bids.map(priced).filter(lambda row: row.euros > 1), ef.Stream[Priced])
    assert_type(bids.map(lambda bid: {"n": bid.price}), ef.Stream)
    assert_type(bids.map(lambda bid: {"item": bid.item, "n": 1}, schema=Counted), ef.Stream[Counted])
    assert_type(bids.map_async(fetched).typed(Priced), ef.Stream[Priced])
    assert_type(bids.select("item"), ef.Stream)
    keyed = bids.key_by(lambda bid: bid.item)
    assert_type(keyed, ef.KeyedStream[Bid])
    assert_type(keyed.filter(lambda bid: bid.price > 1).map(priced), ef.KeyedStream[Priced])
    assert_type(keyed.stateful_map(lambda state, bid: ((state or 0) + bid.price, None)), ef.Stream)
    assert_type(bids.key_by("item").process(Total()), ef.Stream)
    assert_type(stream.typed(Counted).filter(lambda row: row["n"] > 1), ef.Stream[Counted])
    stream.key_by("item").typed(Bid, on_error="skip").deduplicate().write(sink)


def wrong(stream: ef.Stream) -> None:
    """Refuse these: strict mypy reports an ignored error that isn't there."""
    bids = stream.typed(Bid)
    bids.filter(lambda bid: bid.cost > 1)  # type: ignore[attr-defined]
    bids.filter(lambda bid: bid["price"] > 1)  # type: ignore[index]
    bids.map(priced).filter(lambda row: row.price > 1)  # type: ignore[attr-defined]
    bids.key_by(lambda bid: bid.user)  # type: ignore[attr-defined]
    bids.key_by("item").map(lambda bid: {"n": bid.count})  # type: ignore[attr-defined, type-var]
    bids.map(priced).map(priced)  # type: ignore[arg-type]
    stream.filter(lambda row: row.price > 1)  # type: ignore[attr-defined]
    stream.key_by("item").process(Total())  # type: ignore[arg-type]
    stream.typed(Counted).filter(lambda row: row["count"] > 1)  # type: ignore[typeddict-item]
    bids.union(stream)  # type: ignore[arg-type]
