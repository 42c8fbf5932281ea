"""A job's status, the progress that its driver follows, and the results that remain after its end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ...engine.protocol.ids import FIRST_ATTEMPT, Attempt, WorkerId
from ...engine.shown import Shown
from ...state.errors import EvenflowError
from ..load.metrics import OperatorLoad, WorkerFigures
from ..load.wait import Wait
from ..policies.nodes.placement import WorkerPlace
from .effects import JobState
from .storage_answers import Delivery
from .upgrade_progress import UpgradeProgress


@dataclass(frozen=True, slots=True)
class JobStatus(Shown):
    """The state of a job, as `job.status()` shows it; `running_seconds` since all workers started (0.0 before), up to the end.

    `error`: why the job failed or, while it is restarting, why it last restored its last checkpoint. `problems`: those that don't
    stop the job: the newest problems of operators, such as a table that could not be read again; why it restored its last
    checkpoint, until it has completed another; and inputs that have given nothing for 10 s and hold event time back. `waits_for`:
    the causes for which the job stands still, the strongest first: a function that has not returned for 5 s, with its stack, even
    while other workers go on; an input that holds event time back; and after 5 s without rows, a checkpoint, a commit, the credit
    of a worker, or an input without records; and nodes that it has asked for or is leaving. Each has a `kind`, `text`, `seconds`,
    `operator` and `worker`. `restarts`:
    how often it restored its last checkpoint, `restart_causes`: by the class of the error, or `requested`; `attempt` rises each
    time. `next_try`: seconds until the next attempt, None while it doesn't restart. `places`: each worker's process and node,
    `spares`: the warm spares that have started; a local job has neither. `no_progress_seconds`: since the job last took or sent
    rows or completed a checkpoint, 0.0 once it has ended. `upgrade`: the progress of the upgrade under way, None without one.
    `advice`: what a scaling policy that only advises would change now, None if nothing.
    """

    name: str
    state: JobState
    error: EvenflowError | None
    workers: tuple[WorkerId, ...]
    completed_checkpoints: int
    running_seconds: float
    metrics_url: str | None = None
    attempt: Attempt = FIRST_ATTEMPT
    places: Mapping[WorkerId, WorkerPlace] = field(default_factory=dict)
    spares: int = 0
    problems: tuple[str, ...] = ()
    restarts: int = 0
    next_try: float | None = None
    restart_causes: Mapping[str, int] = field(default_factory=dict)
    no_progress_seconds: float = 0.0
    waits_for: tuple[Wait, ...] = ()
    upgrade: UpgradeProgress | None = None
    advice: str | None = None

    def __str__(self) -> str:
        facts = f"job `{self.name}`: {self.state.value}, {self.running_seconds:.1f} s, {self.completed_checkpoints} checkpoints{self.again}"
        problem = () if self.error is None else (f"error: {self.error}", *getattr(self.error, "__notes__", ()))
        workers = f"{len(self.workers)} workers: {', '.join(self.workers)}"
        upgrade = () if self.upgrade is None else (str(self.upgrade),)
        advice = () if self.advice is None else (f"advice: {self.advice}",)
        return "\n".join((facts, workers, *upgrade, *advice, *map(str, self.other_waits), *self.problems, *problem))

    @property
    def other_waits(self) -> tuple[Wait, ...]:
        """The causes in `waits_for` that are not among the `problems`."""
        return tuple(wait for wait in self.waits_for if wait.text not in self.problems)

    @property
    def again(self) -> str:
        """The number of restarts and the time until the next try, as the end of a sentence; empty if there was no restart."""
        if not self.restarts:
            return ""
        times = f", {self.restarts} restart{'s' * (self.restarts > 1)}"
        return times if self.next_try is None else f"{times}, the next try in {self.next_try:.1f} s"


@dataclass(frozen=True, slots=True)
class Progress:
    """The job's state, and the sinks' payloads from a given number on, counted from 0 by each `incarnation`. The driver polls
    it.
    """

    state: JobState
    error: EvenflowError | None
    deliveries: tuple[Delivery, ...]
    incarnation: str = ""


@dataclass(frozen=True, slots=True)
class JobOutcome:
    """The results of a job that has ended: `loads` by operator, and `answers` to the questions that may still be asked."""

    status: JobStatus
    figures: list[WorkerFigures] = field(default_factory=list)
    loads: dict[str, OperatorLoad] = field(default_factory=dict)
    answers: dict[Any, Any] = field(default_factory=dict)
