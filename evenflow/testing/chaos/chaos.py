"""Kills processes of a running job on Ray, one accident after the other, and records what was killed and how soon the job went on.

Nothing but processes of that job is killed, each by a SIGKILL that it sends itself, wherever in the cluster it is; or stopped, and woken
once it was taken for lost. The job needs `CheckpointConfig(dir=...)`, a short interval of checkpoints, and a large
`RestartConfig(most=...)`.

    with Chaos(job, every="5s", move=["counts"], scale=["counts"]) as chaos:
        time.sleep(60)
    job.stop(drain=True)
    job.wait()
    print(chaos.table())
"""

from __future__ import annotations

import itertools
import os
import signal
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

import ray
from ray.exceptions import RayError

from ...actors.processes.process import NAMESPACE
from ...engine.errors import ClusterError, FlowError
from ...engine.time.duration import Duration, seconds
from ...job import Job
from ...state.errors import EvenflowError
from .accidents import Accidents, Kill
from .changes import Changes
from .chaos_script import Script
from .sleepers import ANSWER_SECONDS, Sleeper

COORDINATOR, COORDINATORS = "coordinator", "coordinator twice"
WORKER, WORKERS, ZOMBIE = "worker", "several workers", "zombie worker"
KINDS = (WORKER, WORKERS, COORDINATOR, COORDINATORS, ZOMBIE)

Killer = Callable[[], str | None]
"""Kills something and says what it was, or None if it wasn't there."""

LOOK_SECONDS = 0.05
WATCH_SECONDS = 0.2
"""Time between two looks at how the job goes on: each asks its coordinator for four lists."""

DEATH_SECONDS = 10.0
"""How long a process may take to die of a SIGKILL."""

CHANGE_SECONDS = 2.0
"""How long before a kill a change of the job (a move, a scaling) is tried to begin."""

INTO_CHANGE_SECONDS = 2.0
"""It is this long under way at most when something is killed."""

INTO_RECOVERY_SECONDS = 4.0
"""A coordinator that has come back is killed so soon at the latest, if it is killed twice."""


class Chaos:
    """While the context lasts, something of `job` is killed `every` so often.

    `kinds`: "worker", "several workers" (at once), "coordinator", "coordinator twice" (again while the job recovers), "zombie worker" (it
    is stopped, and goes on once it was taken for lost: the job needs a `WorkerConfig(heartbeat_timeout=...)` of seconds); each comes once
    before one comes again. `others`: further kinds by name, functions that kill what belongs to the job outside Ray. `move`, `scale`:
    operators of which keys are moved, by each strategy in turn, or which get `most_workers` in place of one or the other way round, just
    before every second kill, which waits up to `patience` until the job has gone on after the last. `seed` decides all that is drawn. `say`
    gets a line for each kill. Raises FlowError for a kind that is not known, ClusterError at the end of the context if no process could be
    killed any more, or what one of `others` raised.
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
        patience: Duration = "20s",
        seed: int = 0,
        say: Callable[[str], object] | None = None,
    ) -> None:
        unknown = [kind for kind in kinds if kind not in KINDS]
        if unknown:
            raise FlowError(f"Chaos: {unknown[0]!r} can't be killed; expected some of {', '.join(KINDS)}, or a function in `others`")
        self._job, self._every, self._say = job, seconds(every, "Chaos: every"), say if say is not None else lambda _: None
        self._patience = seconds(patience, "Chaos: patience")
        self._killers: dict[str, Killer] = {kind: getattr(self, f"_kill_{kind.replace(' ', '_')}") for kind in kinds} | dict(others or {})
        self._changes = Changes(job, move, scale, most_workers)
        self._script = Script(seed, list(self._killers), self._changes.names)
        self._chance = self._script.chance(0, "step")
        self._ended = threading.Event()
        self._failure: BaseException | None = None
        self._accidents = Accidents(job)
        self._sleepers: list[Sleeper] = []
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
        for sleeper in self._sleepers:
            sleeper.wake()
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

    @property
    def zombies(self) -> int:
        """Workers that have gone on after they were taken for lost."""
        return self._accidents.zombies

    def table(self) -> str:
        """Kills by kind with the times until the job went on; what was under way; restarts, scalings, migrations, and their ends."""
        return self._accidents.table()

    def recovered(self) -> bool:
        """Whether the job has completed a checkpoint after the last kill."""
        self._accidents.look()
        return self._accidents.gone_on

    def _guarded(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception as error:  # noqa: BLE001 -- `others` are the user's: whatever they raise, the end of the context must tell
            self._failure = self._failure or error
            self._ended.set()

    def _run(self) -> None:
        due = time.monotonic()
        for step in itertools.count():
            due = max(due + self._every, time.monotonic())
            self._chance = self._script.chance(step, "step")
            name = self._script.change(step)
            change = self._change_before(due, step, name) if name is not None else ""
            if self._ended.wait(self._chance.uniform(0, INTO_CHANGE_SECONDS) if change else max(0.0, due - time.monotonic())):
                return
            kind = self._script.kind(step)
            victims = self._killers[kind]()
            if victims is not None:
                self._say(str(self._accidents.note(kind, victims, change, (name or "") if change else "")))

    def _change_before(self, due: float, step: int, name: str) -> str:
        """Begin a change in the time before a kill that is due, or once the job has gone on after the last; empty if it has not."""
        self._ended.wait(max(0.0, due - CHANGE_SECONDS - time.monotonic()))
        while time.monotonic() < due + self._patience:
            if self._accidents.gone_on:
                with suppress(EvenflowError, TimeoutError):  # it can't be begun now, because the job recovers or moves something
                    return self._changes.begin(name, self._script.chance(step, "change"))
            if self._ended.wait(LOOK_SECONDS):
                break
        return ""

    def _watch(self) -> None:
        while not self._ended.wait(WATCH_SECONDS):
            self._accidents.look()
            for sleeper in [sleeper for sleeper in self._sleepers if sleeper.lost]:
                self._sleepers.remove(sleeper)
                sleeper.wake()
                self._say(self._accidents.note_zombie(_short(sleeper.name)))

    def _kill_worker(self) -> str | None:
        return self._kill(1)

    def _kill_several_workers(self) -> str | None:
        return self._kill(self._chance.randint(2, max(2, len(self._workers()))))

    def _kill_coordinator(self) -> str | None:
        return _kill_actors([self._coordinator])

    def _kill_coordinator_twice(self) -> str | None:
        """Again at any moment of the recovery."""
        killed = _kill_actors([self._coordinator])
        if killed is None or not _answers(self._coordinator):
            return killed
        later = self._chance.uniform(0, INTO_RECOVERY_SECONDS)
        self._ended.wait(later)
        again = _kill_actors([self._coordinator])
        return killed if again is None else f"{killed}, and again {later:.1f} s after it was back"

    def _kill_zombie_worker(self) -> str | None:
        workers = self._workers()
        if not workers:
            return None
        try:
            sleeper = Sleeper(self._chance.choice(workers))
        except (ValueError, RayError):  # it has ended meanwhile
            return None
        self._sleepers.append(sleeper)
        return f"{_short(sleeper.name)} sleeps"

    @property
    def _coordinator(self) -> str:
        return f"{self._job.name}/{COORDINATOR}"

    def _kill(self, count: int) -> str | None:
        workers = self._workers()
        return _kill_actors(self._chance.sample(workers, min(count, len(workers))))

    def _workers(self) -> list[str]:
        """All of the job's worker processes that are awake, also those that join or leave."""
        try:
            actors = ray.util.list_named_actors(all_namespaces=True)
        except RayError as error:
            raise ClusterError(f"the cluster of job `{self._job.name}` doesn't answer: {error}") from error
        mine = f"{self._job.name}/"
        names = [actor["name"] for actor in actors if actor["namespace"] == NAMESPACE and actor["name"].startswith(mine)]
        asleep = {sleeper.name for sleeper in self._sleepers}
        return sorted(name for name in names if name != self._coordinator and name not in asleep)


def _kill_actors(names: Sequence[str]) -> str | None:
    """Kill them at the same time and wait until they are dead. Returns what was killed, None if there was nothing to kill."""
    dying: dict[str, Any] = {}
    for name in names:
        with suppress(ValueError, RayError):  # it has ended meanwhile
            dying[name] = ray.get_actor(name, namespace=NAMESPACE).__ray_call__.remote(_die)
    if dying:
        ray.wait(list(dying.values()), num_returns=len(dying), timeout=DEATH_SECONDS)
    return ", ".join(_short(name) for name in dying) or None


def _answers(name: str) -> bool:
    """Wait until the actor is there (again); whether it is."""
    deadline = time.monotonic() + ANSWER_SECONDS
    while time.monotonic() < deadline:
        with suppress(ValueError, RayError):
            ray.get(ray.get_actor(name, namespace=NAMESPACE).__ray_call__.remote(lambda _: None), timeout=ANSWER_SECONDS)
            return True
        time.sleep(LOOK_SECONDS)
    return False


def _short(name: str) -> str:
    return name.partition("/")[2]


def _die(_: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)
