"""Columns that several NexMark queries compute."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc

DOLLAR = pa.scalar(Decimal("0.908"))
"""The price of a dollar in euros."""


def euros(dollars: pa.Array) -> pa.Array:
    """Convert whole dollars to exact prices in euros, decimal128(23, 3).

    >>> euros(pa.array([1_000, 1])).to_pylist()
    [Decimal('908.000'), Decimal('0.908')]
    """
    return pc.multiply(dollars.cast(pa.decimal128(19, 0)), DOLLAR)


def day(times: pa.Array) -> pa.Array:
    """Return the days of timestamps in UTC as texts. Each day is formatted once.

    >>> day(pa.array([0, 86_400_000], pa.timestamp("ms", "UTC"))).to_pylist()
    ['1970-01-01', '1970-01-02']
    """
    days = pc.cast(_without_zone(times), pa.date32()).dictionary_encode()
    return pc.cast(days.dictionary, pa.string()).take(days.indices)


def minute(times: pa.Array) -> pa.Array:
    """Return the minutes of timestamps in UTC, from "00:00" to "23:59". Each minute is formatted once.

    >>> minute(pa.array([0, 61_000, 119_999], pa.timestamp("ms", "UTC"))).to_pylist()
    ['00:00', '00:01', '00:01']
    """
    minutes = pc.floor_temporal(_without_zone(times), unit="minute").dictionary_encode()
    return pc.strftime(minutes.dictionary, "%H:%M").take(minutes.indices)


def _without_zone(times: pa.Array) -> pa.Array:
    """Return timestamps in UTC without their zone, which Arrow would look up for each of them."""
    return times.cast(pa.timestamp(times.type.unit))
