"""Kills processes of a running job on Ray, one accident after the other, and records what was killed and how soon the job went on.

Nothing but processes of that job is killed, each by a SIGKILL that it sends itself, wherever in the cluster it is. The job needs
`JobConfig(checkpoint_dir=...)`, a short `checkpoint_interval`, and a large `restart_most`.

    with Chaos(job, every="5s", move=["counts"], scale=["counts"]) as chaos:
        time.sleep(60)
    job.stop()
    job.wait()
    print(chaos.table())
"""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from types import TracebackType
from typing import Any, Self

import ray
from ray.exceptions import RayError

from ..actors.process import NAMESPACE
from ..engine.duration import Duration, seconds
from ..engine.errors import EvenflowError, FlowError, JobError
from ..job import Job
from ..scheduler.config import LIVE
from .accidents import Accidents, Kill

COORDINATOR = "coordinator"
WORKER, WORKERS = "worker", "several workers"
KINDS = (WORKER, WORKERS, COORDINATOR)

Killer = Callable[[], str | None]
"""Kills something and says what it was, or None if it wasn't there."""

LOOK_SECONDS = 0.05
DEATH_SECONDS = 10.0
"""How long a process may take to die of a SIGKILL."""

CHANGE_SECONDS = 2.0
"""How long before a kill a change of the job (a move, a scaling) is tried to begin."""

INTO_CHANGE_SECONDS = 0.7
"""It is this long under way at most when something is killed."""


class Chaos:
    """While the context lasts, something of `job` is killed `every` so often.

    `kinds`: "worker", "several workers" (at once), "coordinator"; each comes once before one comes again, in an order that `seed` gives.
    `others`: further kinds by name, functions that kill what belongs to the job outside Ray. `move`, `scale`: operators of which keys are
    moved, or which get another number of workers (1 to `most_workers`), just before every second kill. `say` gets a line for each kill.
    Raises FlowError for a kind that is not known, JobError at the end of the context if no process of the job could be killed any more.
    """

    def __init__(
        self,
        job: Job,
        *,
        every: Duration = "5s",
        kinds: Sequence[str] = KINDS,
        others: Mapping[str, Killer] | None = None,
        move: Sequence[str] = (),
        scale: Sequence[str] = (),
        most_workers: int = 4,
        seed: int = 0,
        say: Callable[[str], object] | None = None,
    ) -> None:
        unknown = [kind for kind in kinds if kind not in KINDS]
        if unknown:
            raise FlowError(f"Chaos: {unknown[0]!r} can't be killed; expected some of {', '.join(KINDS)}, or a function in `others`")
        self._job, self._every, self._say = job, seconds(every, "Chaos: every"), say
        self._killers: dict[str, Killer] = {kind: getattr(self, f"_kill_{kind.replace(' ', '_')}") for kind in kinds} | dict(others or {})
        self._changes = [*(partial(self._move, name) for name in move), *(partial(self._scale, name) for name in scale)]
        self._most_workers, self._random = most_workers, random.Random(seed)  # noqa: S311 -- what is killed is no secret
        self._ended = threading.Event()
        self._failure: BaseException | None = None
        self._accidents = Accidents(job)
        self._threads = [
            threading.Thread(target=self._guarded, args=(work,), name="chaos", daemon=True) for work in (self._run, self._watch)
        ]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join()
        if error is None and self._failure is not None:
            raise self._failure

    @property
    def kinds(self) -> frozenset[str]:
        """What may be killed."""
        return frozenset(self._killers)

    @property
    def kills(self) -> list[Kill]:
        """What was killed, oldest first."""
        return self._accidents.kills

    def table(self) -> str:
        """Kills by kind with the times until the job went on; restarts, scalings and migrations, whatever became of them."""
        return self._accidents.table()

    def recovered(self) -> bool:
        """Whether the job has completed a checkpoint after the last kill."""
        self._accidents.look()
        return self._accidents.gone_on

    def _guarded(self, work: Callable[[], None]) -> None:
        try:
            work()
        except EvenflowError as error:
            self._failure = self._failure or error
            self._ended.set()

    def _run(self) -> None:
        deck: list[str] = []
        due = time.monotonic()
        while True:
            due = max(due + self._every, time.monotonic())
            change = self._change_before(due) if self._changes and len(self.kills) % 2 else ""
            if self._ended.wait(self._random.uniform(0, INTO_CHANGE_SECONDS) if change else max(0.0, due - time.monotonic())):
                return
            deck = deck or self._random.sample(list(self._killers), len(self._killers))
            kind = deck.pop()
            victims = self._killers[kind]()
            if victims is not None:
                kill = self._accidents.note(kind, victims, change)
                if self._say is not None:
                    self._say(str(kill))

    def _change_before(self, due: float) -> str:
        """Begin a change in the time before a kill that is due, once the job has gone on after the last; empty if it has not."""
        self._ended.wait(max(0.0, due - CHANGE_SECONDS - time.monotonic()))
        while time.monotonic() < due:
            if self._accidents.gone_on and (change := self._begin_change()):
                return change
            if self._ended.wait(LOOK_SECONDS):
                break
        return ""

    def _watch(self) -> None:
        while not self._ended.wait(LOOK_SECONDS):
            self._accidents.look()

    def _begin_change(self) -> str:
        """Whatever can't be begun now, because the job recovers or moves something, is not."""
        with suppress(EvenflowError):
            return self._random.choice(self._changes)()
        return ""

    def _move(self, operator: str) -> str:
        strategy = self._random.choice(LIVE)
        workers = sum(name.startswith(f"{operator}-") for name in self._job.status().workers)
        groups = [group.group for group in self._job.snapshot(operator).key_groups]
        moved = self._random.sample(groups, len(groups) // 2)
        self._job.migrate(operator, groups=moved, to=self._random.randrange(workers), strategy=strategy, timeout=None)
        return f"half of the keys of {operator} move ({strategy})"

    def _scale(self, operator: str) -> str:
        now = sum(name.startswith(f"{operator}-") for name in self._job.status().workers)
        wanted = self._random.choice([n for n in range(1, self._most_workers + 1) if n != now])
        self._job.scale(operator, wanted, timeout=None)
        return f"{operator} goes from {now} to {wanted} workers"

    def _kill_worker(self) -> str | None:
        return self._kill(1)

    def _kill_several_workers(self) -> str | None:
        return self._kill(self._random.randint(2, max(2, len(self._workers()))))

    def _kill_coordinator(self) -> str | None:
        return _kill_actors([f"{self._job.name}/{COORDINATOR}"])

    def _kill(self, count: int) -> str | None:
        workers = self._workers()
        return _kill_actors(self._random.sample(workers, min(count, len(workers))))

    def _workers(self) -> list[str]:
        """All of the job's worker processes, also those that join or leave."""
        try:
            actors = ray.util.list_named_actors(all_namespaces=True)
        except RayError as error:
            raise JobError(f"the cluster of job `{self._job.name}` doesn't answer: {error}") from error
        mine = f"{self._job.name}/"
        names = [actor["name"] for actor in actors if actor["namespace"] == NAMESPACE and actor["name"].startswith(mine)]
        return sorted(name for name in names if name != f"{mine}{COORDINATOR}")


def _kill_actors(names: Sequence[str]) -> str | None:
    """Kill them at one time and wait until they are dead; who it was, None if nobody was there."""
    dying: dict[str, Any] = {}
    for name in names:
        with suppress(ValueError, RayError):  # it has ended meanwhile
            dying[name] = ray.get_actor(name, namespace=NAMESPACE).__ray_call__.remote(_die)
    if dying:
        ray.wait(list(dying.values()), num_returns=len(dying), timeout=DEATH_SECONDS)
    return ", ".join(name.partition("/")[2] for name in dying) or None


def _die(_: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)
