"""A task's state on its way into a checkpoint: frozen at the barrier, given out in chunks between later batches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .batch import Batch
from .effects import Prepared


@dataclass(slots=True)
class Saving:
    """What `prepared` will say once all `chunks` are out."""

    prepared: Prepared
    chunks: Iterator[Batch]
