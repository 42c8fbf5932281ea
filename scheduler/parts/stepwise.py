"""Operations in steps: a scaling waits for the migrations and rescales that it begins, and a node scaling for its scalings.

Invariant: an operation takes its next step only once the last one is over; a problem in a step ends the operation.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Generic, TypeVar

from ...state.errors import EvenflowError
from ..policies.nodes.placement import ClusterView
from ..record.job_record import JobRecord
from ..record.operation import Operation, Operations

Op = TypeVar("Op", bound=Operation[Any])


class Stepwise(ABC, Generic[Op]):
    """A part of a job whose operations consist of steps, one operation at a time."""

    def __init__(self, job: JobRecord) -> None:
        self._job = job
        self.operations = Operations[Op]()

    @property
    def busy(self) -> bool:
        """True if an operation is under way."""
        return self.operations.busy

    def advance(self, cluster: ClusterView | None) -> None:
        """Take the next step of the operation under way, unless it waits for one. `cluster`: None where there are no nodes."""
        current = self.operations.current
        if current is None or ((step := self._step(current)) is not None and not step.over):
            return
        try:
            self._next(current, cluster)
        except EvenflowError as error:
            self._end(current, str(error))

    @abstractmethod
    def _step(self, operation: Op) -> Operation[Any] | None:
        """Return the step under way, None if there is none to wait for."""

    @abstractmethod
    def _next(self, operation: Op, cluster: ClusterView | None) -> None:
        """Begin the next step, or end the operation. Raises EvenflowError for a problem that ends it."""

    @abstractmethod
    def _end(self, operation: Op, problem: str | None) -> None:
        """End the operation; `problem`: why it failed."""
