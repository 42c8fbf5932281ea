"""Kills processes of a running job on Ray, one after the other, and records the kills and the recovery times.

Only processes of that job are killed, each by a SIGKILL that it sends itself, on any node of the cluster; or they are stopped, and woken
once they have been declared lost. The job needs `CheckpointConfig(dir=...)`, a short interval of checkpoints, and a large
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
from random import Random
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
from .changes import ChaosChanges
from .sleepers import ANSWER_SECONDS, Sleeper

COORDINATOR, COORDINATORS = "coordinator", "coordinator twice"
WORKER, WORKERS, ZOMBIE = "worker", "several workers", "zombie worker"
KINDS = (WORKER, WORKERS, COORDINATOR, COORDINATORS, ZOMBIE)

Killer = Callable[[], str | None]
"""Kills a process and returns its name, or None if there was none."""

POLL_SECONDS = 0.05
WATCH_SECONDS = 0.2
"""Seconds between two looks at the job's progress: each requests four lists from its coordinator."""

DEATH_SECONDS = 10.0
"""The most seconds that a process takes to die of a SIGKILL."""

CHANGE_SECONDS = 2.0
"""Seconds before a kill in which a change of the job (a move, a scaling) may begin."""

INTO_CHANGE_SECONDS = 2.0
"""The most seconds that a change is in progress before the kill."""

INTO_RECOVERY_SECONDS = 4.0
"""The most seconds after which a recovered coordinator is killed, if it is killed twice."""


class Chaos:
    """A context in which processes of `job` are killed, one `every` so often.

    `kinds`: "worker", "several workers" (at once), "coordinator", "coordinator twice" (again while the job recovers), "zombie worker" (it
    is stopped, and continues once it has been declared lost: the job needs a `WorkerConfig(heartbeat_timeout=...)` of seconds); each
    occurs once before one occurs again. `others`: further kinds by name, functions that kill parts of the job outside Ray. `move`,
    `scale`: operators whose keys are moved, by each strategy in turn, or which are scaled from one worker to `most_workers` or back, just
    before every second kill, which waits up to `patience` until the job has recovered from the last. `seed` decides all random choices.
    `say` gets a line for each kill. Raises FlowError for an unknown kind, ClusterError at the end of the context if no process could be
    killed any more, or the error of one of `others`.
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
        self._changes = ChaosChanges(job, move, scale, most_workers)
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
        """The kinds of accidents."""
        return frozenset(self._killers)

    @property
    def kills(self) -> list[Kill]:
        """The kills, oldest first."""
        return self._accidents.kills

    @property
    def zombies(self) -> int:
        """Workers that continued after they were declared lost."""
        return self._accidents.zombies

    def table(self) -> str:
        """Draw the kills by kind with their recovery times; the changes in progress; restarts, scalings, migrations, and their ends."""
        return self._accidents.table()

    def recovered(self) -> bool:
        """True if the job has completed a checkpoint after the last kill."""
        self._accidents.observe()
        return self._accidents.recovered

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
            while victims is None and kind in KINDS:  # a job that recovers soon has such a process again
                if self._ended.wait(POLL_SECONDS):
                    return
                victims = self._killers[kind]()
            if victims is not None:
                self._say(str(self._accidents.note(kind, victims, change, (name or "") if change else "")))

    def _change_before(self, due: float, step: int, name: str) -> str:
        """Begin a change shortly before the next kill, or once the job has recovered from the last; empty if it has not."""
        self._ended.wait(max(0.0, due - CHANGE_SECONDS - time.monotonic()))
        while time.monotonic() < due + self._patience:
            if self._accidents.recovered:
                with suppress(EvenflowError, TimeoutError):  # it can't be begun now, because the job recovers or moves something
                    return self._changes.begin(name, self._script.chance(step, "change"))
            if self._ended.wait(POLL_SECONDS):
                break
        return ""

    def _watch(self) -> None:
        while not self._ended.wait(WATCH_SECONDS):
            self._accidents.observe()
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
        """Kill the coordinator, and again at any moment of the recovery."""
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
        """List all awake worker processes of the job, including those that join or leave. One that an earlier job had keeps its name."""
        try:
            actors = ray.util.list_named_actors(all_namespaces=True)
        except RayError as error:
            raise ClusterError(f"the cluster of job `{self._job.name}` doesn't answer: {error}") from error
        mine = f"{self._job.name}/"
        names = {actor["name"] for actor in actors if actor["namespace"] == NAMESPACE and actor["name"].startswith(mine)}
        with suppress(EvenflowError):  # its coordinator is being replaced
            names |= {place.process for place in self._job.status().places.values()}
        asleep = {sleeper.name for sleeper in self._sleepers}
        return sorted(name for name in names if name != self._coordinator and name not in asleep)


def _kill_actors(names: Sequence[str]) -> str | None:
    """Kill actors at the same time and wait until they are dead. Return their names, None if there was none."""
    dying: dict[str, Any] = {}
    for name in names:
        with suppress(ValueError, RayError):  # it has ended meanwhile
            dying[name] = ray.get_actor(name, namespace=NAMESPACE).__ray_call__.remote(_die)
    if dying:
        ray.wait(list(dying.values()), num_returns=len(dying), timeout=DEATH_SECONDS)
    return ", ".join(_short(name) for name in dying) or None


def _answers(name: str) -> bool:
    """Wait until the actor answers; return True if it does."""
    deadline = time.monotonic() + ANSWER_SECONDS
    while time.monotonic() < deadline:
        with suppress(ValueError, RayError):
            ray.get(ray.get_actor(name, namespace=NAMESPACE).__ray_call__.remote(lambda _: None), timeout=ANSWER_SECONDS)
            return True
        time.sleep(POLL_SECONDS)
    return False


def _short(name: str) -> str:
    return name.partition("/")[2]


def _die(_: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class Script:
    """The random choices of a chaos run: the order of accidents and changes, and all other draws of each step.

    `kinds` of accidents and `changes` by name: each occurs once before one is repeated. Every step has random numbers of its own,
    so that the number of draws in other steps, which depends on time, has no effect.

    >>> script = Script(7, ("worker", "coordinator"), ("move", "scale"))
    >>> sorted((script.kind(0), script.kind(1))), [script.kind(n) for n in range(9)] == [script.kind(n) for n in range(9)]
    (['coordinator', 'worker'], True)
    """

    def __init__(self, seed: int, kinds: Sequence[str], changes: Sequence[str]) -> None:
        self._seed, self._kinds, self._changes = seed, tuple(kinds), tuple(changes)

    def kind(self, step: int) -> str:
        """Return the kind of accident of a step."""
        return self._dealt("kinds", self._kinds, step)

    def change(self, step: int) -> str | None:
        """Return the change to be under way in a step: one in every second step, if there are changes."""
        return self._dealt("changes", self._changes, step // 2) if step % 2 and self._changes else None

    def chance(self, step: int, what: str) -> Random:
        """Return the random numbers of a step for one purpose; the same each time."""
        return Random(f"{self._seed} {what} {step}")  # noqa: S311 -- what happens is no secret

    def _dealt(self, what: str, deck: tuple[str, ...], number: int) -> str:
        turn, place = divmod(number, len(deck))
        return self.chance(turn, what).sample(deck, len(deck))[place]
