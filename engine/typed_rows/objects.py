"""The rows of a batch as a user's function gets them: dicts, or objects of the stream's class."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any

from ..batch import Batch
from ..errors import RecordError, shown
from .field_types import UnfitError
from .row_type import RowType


def objects_of(batch: Batch, rows: RowType | None, operator: str) -> list[Any]:
    """Return the rows, as dicts if `rows` is None. Raises RecordError, naming the row, if the class refuses one."""
    if rows is None:
        return batch.to_rows()
    try:
        return rows.build(batch.rows)
    except Exception as error:
        for place in range(batch.num_rows):
            one = batch.slice(place, 1)
            try:
                rows.build(one.rows)
            except Exception as problem:  # noqa: BLE001 -- a user's class may raise anything
                raise RecordError(operator, problem_text(problem), record=one.to_rows()[0]) from error
        raise


def iterate_objects(batch: Batch, rows: RowType | None, operator: str) -> Iterator[Any]:
    """Yield the rows, made a piece at a time."""
    return chain.from_iterable(objects_of(piece, rows, operator) for piece in batch.pieces())


def problem_text(error: Exception) -> str:
    """Return the text of an error that a class, or a value for it, caused."""
    return str(error) if isinstance(error, UnfitError) else shown(error)
