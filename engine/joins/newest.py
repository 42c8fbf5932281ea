"""The look-up of an as-of join: for each probing row, the newest stored row of its key that is not later."""

from __future__ import annotations

from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..aggregates.row_order import has_order, order_keys
from ..batch import Batch, Times
from .block import Block
from .matching import Matcher, plain
from .row_log import RowLog
from .segment import Candidates, Segment

_NONE = np.iinfo(np.int64).min


def newest(
    block: Block, log: RowLog, earliest: Times | None, probing: tuple[str, ...], stored: tuple[str, ...]
) -> tuple[npt.NDArray[np.bool_], pa.RecordBatch | None]:
    """Return a mask of the rows of `block` that have such a row, shape (rows,), and these rows, one for each; None without any.

    `earliest`: the earliest time that it may have, one per row of `block`. `probing`, `stored`: the key columns of both.
    """
    matcher = Matcher(probing, stored)
    times = np.full(len(block), _NONE)
    for segment in log.segments:
        found = _last_of(matcher, block, segment, earliest)
        np.maximum.at(times, found.probed, segment.block.times[found.stored])
    here = times > _NONE
    if not here.any():
        return here, None
    wanted = block.filter(here)
    exact = times[here]
    candidates: list[pa.RecordBatch] = []
    owners: list[npt.NDArray[np.intp]] = []
    for segment in log.segments:
        for found in matcher.found(wanted, segment, (exact, exact)):
            if len(found.probed):
                candidates.append(segment.block.held.reached(found.stored).rows())
                owners.append(found.probed)
    return here, _greatest(Batch.concat([Batch(rows) for rows in candidates]).rows, np.concatenate(owners), len(wanted))


def _last_of(matcher: Matcher, block: Block, segment: Segment, earliest: Times | None) -> Candidates:
    """Return the last candidate of each probing row in a segment, whose rows of one hash are sorted by time."""
    start, end = matcher.ranges(block, segment, (earliest, block.times))
    probed = np.flatnonzero(end > start)
    found = Candidates(probed, end[probed] - 1)
    equal = matcher.equal(block, segment.block, found)
    if equal.all():
        return found
    others = block.take(probed[~equal])  # another key has the same hash
    bounds = None if earliest is None else earliest[probed[~equal]], others.times
    last: dict[int, int] = {}
    for some in matcher.found(others, segment, bounds):
        last.update(zip(probed[~equal][some.probed].tolist(), some.stored.tolist(), strict=True))
    more = np.array([*last.keys()], np.intp), np.array([*last.values()], np.intp)
    return Candidates(np.concatenate([probed[equal], more[0]]), np.concatenate([found.stored[equal], more[1]]))


def superseded(block: Block, keys: tuple[str, ...], watermark: int) -> npt.NDArray[np.bool_]:
    """Return a mask of the rows of a segment's block that can't be the newest at `watermark` or later.

    A later row of their key is in the block.
    """
    mask = np.zeros(len(block), np.bool_)
    earlier = np.flatnonzero(
        (block.hashes[1:] == block.hashes[:-1]) & (block.times[1:] > block.times[:-1]) & (block.times[1:] <= watermark)
    )
    if len(earlier):
        mask[earlier] = Matcher(keys, keys).equal(block, block, Candidates(earlier, earlier + 1))
    return mask


def _rising(column: pa.Array) -> list[npt.NDArray[Any]]:
    """Return sort keys of a column in the order of the aggregates, but with null less than any value."""
    values = order_keys(column, one_zero=True)
    if not column.null_count or pa.types.is_null(column.type):
        return [values]
    return [column.is_valid().to_numpy(zero_copy_only=False), values]


def _greatest(rows: pa.RecordBatch, owners: npt.NDArray[np.intp], count: int) -> pa.RecordBatch:
    """Return the greatest row of each owner in [0, count), compared column by column except nested ones.

    A null is less than any value, and NaN larger than any number.
    """
    if len(owners) == count:
        return rows.take(pa.array(np.argsort(owners)))
    keys = list(chain.from_iterable(_rising(plain(column)) for column in rows.columns if has_order(column.type)))
    order = np.lexsort((*reversed(keys), owners))
    last = np.flatnonzero(np.diff(owners[order], append=count))
    return rows.take(pa.array(order[last]))
