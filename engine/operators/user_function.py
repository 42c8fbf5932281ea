"""Calling a user's function on every row of a batch, and saying which rows it refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..batch import Batch
from .base import Emit
from .refusals import Refusals, Refused


def call_rows(function: Callable[[dict[str, Any]], Any], batch: Batch, refusals: Refusals, emit: Emit) -> tuple[list[Any], Batch]:
    """`function` of every row, in order, and the rows that gave them: all but those that are refused."""
    results: list[Any] = []
    refused: list[int] = []
    append = results.append
    for piece in batch.pieces():
        rows = iter(piece.to_rows())
        while True:
            try:
                for row in rows:
                    append(function(row))
                break
            except Exception as error:  # noqa: BLE001 -- a user's function may raise anything
                place = len(results) + len(refused)
                refusals.take(Refused(place, error, function), batch, emit)
                refused.append(place)
    return results, batch.take(np.delete(np.arange(batch.num_rows), refused)) if refused else batch
