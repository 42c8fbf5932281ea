"""Columns that several NexMark queries compute."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc

DOLLAR = pa.scalar(Decimal("0.908"))
"""In euros."""


def euros(dollars: pa.Array) -> pa.Array:
    """Exact prices in euros, decimal128(23, 3), from whole dollars.

    >>> euros(pa.array([1_000, 1])).to_pylist()
    [Decimal('908.000'), Decimal('0.908')]
    """
    return pc.multiply(dollars.cast(pa.decimal128(19, 0)), DOLLAR)


def day(times: pa.Array) -> pa.Array:
    """The days of timestamps in UTC, as texts.

    >>> day(pa.array([0, 86_400_000], pa.timestamp("ms", "UTC"))).to_pylist()
    ['1970-01-01', '1970-01-02']
    """
    return pc.cast(pc.cast(times, pa.date32()), pa.string())


def minute(times: pa.Array) -> pa.Array:
    """The minutes of timestamps in UTC, from "00:00" to "23:59". Each minute is formatted once.

    >>> minute(pa.array([0, 61_000, 119_999], pa.timestamp("ms", "UTC"))).to_pylist()
    ['00:00', '00:01', '00:01']
    """
    minutes = pc.floor_temporal(times, unit="minute").dictionary_encode()
    return pc.strftime(minutes.dictionary, "%H:%M").take(minutes.indices)
