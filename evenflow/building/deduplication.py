"""Makes `deduplicate`."""

from __future__ import annotations

from typing import Any

from ..engine.errors import FlowError
from ..engine.operators.processing.deduplicate import Deduplicate
from ..engine.time.duration import Duration, microseconds
from .columns import check_columns


def make_deduplicate(keys: tuple[str, ...], columns: tuple[Any, ...], ttl: Duration | None) -> Deduplicate:
    """`keys`: those of the stream, if it has any. Raises FlowError for what is no column or no duration, or for no columns at all."""
    if columns or not keys:
        check_columns(columns, "deduplicate")
    if len(set(columns)) < len(columns):
        raise FlowError(f"deduplicate{columns!r:.200}: give each column once")
    lasting = None if ttl is None else microseconds(ttl, "deduplicate(ttl=...)")
    if lasting == 0:
        raise FlowError(f"deduplicate(ttl={ttl!r}): must be longer than zero; without ttl a row passes once for ever")
    return Deduplicate((*keys, *(name for name in columns if name not in keys)), lasting)
