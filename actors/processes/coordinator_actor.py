"""The actor of a job's coordinator: the interface for other processes.

Ray loads the class of an actor in every process that has its handle, and each worker has the coordinator's. So this module
imports almost nothing; the implementation is in `coordinator.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...state.redacted_output import clears_errors, guard_credentials
from .own_process import entitle, uncollected
from .packed_call import unpack_call

if TYPE_CHECKING:
    from ...scheduler.protocol.requests import Request
    from ...scheduler.protocol.status import JobOutcome


@clears_errors
class CoordinatorActor:
    """The actor of one job, named `JOB/coordinator`.

    It is created from the packed arguments of a `Coordinator`, in pieces, and has the coordinator's methods.
    """

    def __init__(self, *pieces: bytes) -> None:
        guard_credentials()
        with uncollected():
            from .coordinator import Coordinator

            arguments = unpack_call(b"".join(pieces))
        plan, *_ = arguments
        entitle(self, plan.name, "coordinator")
        self._coordinator = Coordinator(*arguments)

    def deploy(self, me: Any) -> None:
        self._coordinator.deploy(me)

    def waits_for(self) -> str:
        return self._coordinator.waits_for()

    def report(self, packed: bytes) -> None:
        self._coordinator.report(packed)

    def outcome(self, patience: float) -> JobOutcome:
        return self._coordinator.outcome(patience)

    def ask(self, request: Request[Any]) -> Any:
        return self._coordinator.ask(request)

    def close(self) -> None:
        self._coordinator.close()

    def lingers(self, patience: float) -> bool:
        return self._coordinator.lingers(patience)
