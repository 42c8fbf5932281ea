"""The input of the price search machine's queries."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import evenflow as ef

from .source import STREAMS, visits


@dataclass(frozen=True, slots=True)
class Visits:
    """Streams whose event time is their `timestamp`; `seq` is the number of the turn.

    `click`: timestamp, category, product, owner, price, seq. `impression`: timestamp, category, product, seq. `search`: timestamp,
    category, product, rank, seq.
    """

    click: ef.Stream
    impression: ef.Stream
    search: ef.Stream

    @classmethod
    def generated(cls, flow: ef.Dataflow, **arguments: Any) -> Visits:
        """Return the streams of `visits(stream, **arguments)`. A source has one worker, so that a product's clicks come in order."""
        return cls(*(flow.read(visits(stream, **arguments)).parallelism(1, fixed=True) for stream in STREAMS))


Query: TypeAlias = Callable[[Visits], ef.Stream]
