"""Programs over typed rows and states: `mypy --strict` accepts the right ones, and refuses lines with `type: ignore`. Nothing is run."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping, MutableSequence
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


class Bids(ef.KeyedFunction[Bid]):
    """A function with states of declared types."""

    newest = ef.value_state(type=Bid)
    best = ef.value_state(Bid("none", 0.0), type=Bid, ttl="1h")
    bids = ef.list_state(type=Bid)
    by_item = ef.map_state(keys=str, type=Bid)
    counts = ef.map_state(type=int)

    def on_row(self, key: Any, row: Bid, context: ef.KeyContext) -> list[Any]:
        assert_type(self.newest, Bid | None)
        assert_type(self.best, Bid)
        assert_type(self.bids, MutableSequence[Bid])
        assert_type(self.by_item, MutableMapping[str, Bid])
        assert_type(self.counts, MutableMapping[Any, int])
        return []


def written(function: Bids, row: Bid) -> None:
    function.newest, function.bids, function.by_item = row, [*function.bids, row], {row.item: row}
    del function.best


def wrongly_written(function: Bids, row: Bid) -> None:
    function.newest = 5  # type: ignore[assignment]
    function.bids.append("text")  # type: ignore[arg-type]
    function.by_item[row.item] = 5  # type: ignore[assignment]
    function.best.cost  # type: ignore[attr-defined]  # noqa: B018 -- only its type matters


def newest(state: Bid | None, bid: Bid) -> tuple[Bid | None, dict[str, Any] | None]:
    return bid, None if state is None else {"item": state.item}


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
    assert_type(keyed.stateful_map(newest, state=Bid), ef.Stream)
    assert_type(bids.key_by("item").process(Total()), ef.Stream)
    assert_type(bids.key_by("item").process(Bids()), ef.Stream)
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
    bids.key_by("item").stateful_map(newest, state=Priced)  # type: ignore[arg-type]
    bids.map(priced).map(priced)  # type: ignore[arg-type]
    stream.filter(lambda row: row.price > 1)  # type: ignore[attr-defined]
    stream.key_by("item").process(Total())  # type: ignore[arg-type]
    stream.typed(Counted).filter(lambda row: row["count"] > 1)  # type: ignore[typeddict-item]
    bids.union(stream)  # type: ignore[arg-type]
