"""The environment of an operator instance, and the function with which it emits batches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from ..state.backends.settings import StateSettings
from .batch import Batch
from .keys.load import KeyLoad


class Emit(Protocol):
    """A function that passes a batch to the readers of the operator's port."""

    def __call__(self, batch: Batch, port: str = "out") -> None: ...


@dataclass(frozen=True, slots=True)
class Context:
    """The environment of an operator instance: its name, its index among `parallelism` instances, its load and state settings.

    `now()`: the arrival of the current batch, in microseconds since the epoch; it never goes back.
    """

    name: str
    index: int
    parallelism: int
    key_groups: int
    load: KeyLoad
    state: StateSettings = field(default_factory=StateSettings)
    now: Callable[[], int] = int
