"""The input of a NexMark query: an auction house's three streams, and a side table."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, Literal, TypeAlias

import pyarrow as pa

import evenflow as ef

SIDE_ROWS = 10_000

Given: TypeAlias = ef.Stream | Callable[[], ef.Stream]
"""A stream, or a function that adds it to the flow. It is called once, if the query reads the stream: a flow may have no unread ones."""


class Events:
    """Streams whose event time is their `dateTime`; `seq` is the number of the event, ascending over all of them.

    `person`: id, name, emailAddress, creditCard, city, state, dateTime, extra, seq. `auction`: id, itemName, description, initialBid,
    reserve, dateTime, expires, seller, category, extra, seq. `bid`: auction, bidder, price, channel, url, dateTime, extra, seq. `side`: the
    table that q13 looks up, key and value.
    """

    def __init__(self, person: Given, auction: Given, bid: Given, side: pa.Table) -> None:
        self._person, self._auction, self._bid, self.side = person, auction, bid, side

    @classmethod
    def generated(cls, flow: ef.Dataflow, **arguments: Any) -> Events:
        """Return the events of `ef.nexmark(stream, **arguments)`, and the side table. Each source has the name of its stream.

        >>> flow, rows = ef.Dataflow("people"), []
        >>> _ = Events.generated(flow, events=100).person.select("id").write(ef.to_list(rows))
        >>> _ = flow.run(runtime="local").wait()
        >>> rows
        [{'id': 1000}, {'id': 1001}]
        """

        def stream(name: Literal["person", "auction", "bid"]) -> Callable[[], ef.Stream]:
            return lambda: flow.read(ef.nexmark(name, name=name, **arguments))

        return cls(stream("person"), stream("auction"), stream("bid"), side_table())

    @cached_property
    def person(self) -> ef.Stream:
        """People who join the auction house."""
        return _begun(self._person)

    @cached_property
    def auction(self) -> ef.Stream:
        """Auctions that are opened."""
        return _begun(self._auction)

    @cached_property
    def bid(self) -> ef.Stream:
        """Bids in these auctions, and in some that open a little later."""
        return _begun(self._bid)


Query: TypeAlias = Callable[[Events], ef.Stream]


def side_table() -> pa.Table:
    """Return the side input of q13, which has a row for every bid: `key` from 0 on, and the same number as a text, `value`."""
    return pa.table({"key": range(SIDE_ROWS), "value": map(str, range(SIDE_ROWS))})


def _begun(stream: Given) -> ef.Stream:
    return stream if isinstance(stream, ef.Stream) else stream()
