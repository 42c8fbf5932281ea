"""Starting jobs on Ray, and finding running ones: the driver's side of the coordinator."""

from __future__ import annotations

import logging
import os
import secrets
import sys
import threading
import time
from collections.abc import Callable, Mapping
from concurrent import futures
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar, cast

import ray
from ray.exceptions import (
    ActorAlreadyExistsError,
    ActorDiedError,
    ActorUnavailableError,
    GetTimeoutError,
    RayActorError,
    RayError,
    RaySystemError,
    RayTaskError,
)
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from ..engine.errors import ClusterError, JobLostError, JobNotRunningError, JobTimeoutError, RequestError, shown
from ..engine.plan.physical import Plan
from ..engine.protocol.ids import WorkerId
from ..engine.time.duration import seconds
from ..scheduler.configs.job import JobConfig
from ..scheduler.protocol.effects import JobState
from ..scheduler.protocol.requests import (
    AnyRequest,
    Cancel,
    Fail,
    Request,
    ShowFigures,
    ShowHistory,
    ShowLoad,
    ShowProgress,
    ShowStatus,
    Stop,
)
from ..scheduler.protocol.status import JobOutcome, JobStatus, Progress
from ..scheduler.record.restoring.run_claim import RunClaim
from ..state.errors import EvenflowError
from .driver.cluster_check import check_reachable
from .driver.driver_workers import DriverWorkers
from .driver.finding import jobs_of, meant
from .driver.named_cluster import environment_names_cluster, note_found, user_names_cluster
from .driver.start_watch import SILENT, StartWatch
from .driver.unpicklable import refusal
from .job.first_manifest import Savepoint
from .job.tracing import variables
from .processes.coordinator_actor import CoordinatorActor
from .processes.packed_call import in_pieces, pack_call
from .processes.placement import lack_of_memory
from .processes.process import LEAVE_TIMEOUT, NAMESPACE, STORAGE_PATIENCE, WorkerActor, why_ended
from .processes.ray_internals import JOINING_LOG, has_ended, head_address, heads_on_this_machine

A = TypeVar("A")

_LOG = logging.getLogger(__name__)

CALL_TIMEOUT = 30.0
THREADS = 64
"""The number of calls that a coordinator answers concurrently; every process that watches a job keeps one waiting."""

FOLLOW_TIMEOUT = 300.0
"""Seconds of silence from a coordinator after which the process that follows its job gives up.

Ray takes up to a minute to notice a lost node, and then restarts the coordinator.
"""

WATCH = 10.0
"""Seconds for which a watcher's call waits for the end of its job."""

COORDINATOR = "EVENFLOW_COORDINATOR"
"""The environment variable that, set to `driver`, keeps coordinators on the driver's node, where Prometheus then finds them. Losing that
node ends the job anyway, and losing another one then costs no coordinator.
"""

_COORDINATOR: Any = ray.remote(CoordinatorActor)
"""Created once, because Ray keeps every actor class that it is given for ever, here and in the cluster."""

WORKERS = DriverWorkers()
"""The worker processes that this driver's jobs reuse."""


_JOINING = threading.Lock()
"""A lock because Ray rejects a second `init`, even while one of another thread is in progress."""

_STARTS = threading.BoundedSemaphore(max(2, os.cpu_count() or 1))
"""Limits concurrent starts of jobs: a start keeps a processor busy for seconds, and too many at once would time out together."""


def start_cluster() -> None:
    """Connect to Ray: to the cluster that this process or RAY_ADDRESS names, else to this user's on this machine, else to a new
    one that ends with this process.

    Workers of a new cluster run at the normal niceness, not at Ray's 15. Raises ClusterError if the cluster can't be joined.
    """
    if ray.is_initialized():
        return
    os.environ.setdefault("RAY_worker_niceness", "0")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    named = os.environ.get("RAY_ADDRESS", "") != ""
    _join(None if named or _would_join() in heads_on_this_machine() else "local")


def _would_join() -> str | None:
    """Return the cluster that `ray.init()` would join by default: the newest of this machine, perhaps another user's."""
    try:
        return head_address(None)
    except (ConnectionError, ValueError):
        return None


def _join(address: str | None) -> None:
    """Connect to Ray, unless this process is connected. Raises ClusterError that says what to do."""
    with _JOINING:
        if ray.is_initialized():
            return
        _silence_news()
        check_reachable(address)
        try:
            context: Any = ray.init(address=address, namespace=NAMESPACE, logging_level=logging.WARNING)
        except (ConnectionError, RuntimeError, ValueError, RayError) as error:
            raise ClusterError(f"this process can't join the Ray cluster: {error}") from error
        except Exception as error:  # Ray raises a bare Exception if its processes don't come up in time
            if ray.is_initialized():  # by a user's thread at the same time
                return
            raise ClusterError(
                f"Ray did not start on this machine: {shown(error)}; try again when the machine is less busy, see that it has memory and "
                "room in /tmp (Ray's logs are in /tmp/ray/session_latest/logs), or set RAY_ADDRESS to a cluster that runs"
            ) from error
        if not environment_names_cluster():
            note_found(context.address_info["gcs_address"])


def _silence_news() -> None:
    """Suppress the log line that a cluster asks for a token, which it should; a cluster without one still warns."""
    logging.getLogger(JOINING_LOG).addFilter(_is_news)


def _is_news(record: logging.LogRecord) -> bool:
    return not record.getMessage().startswith("Token authentication is enabled")


def start_job(
    plan: Plan, config: JobConfig, savepoint: Savepoint | None = None, claim: RunClaim | None = None, *, detached: bool = False
) -> RayJob:
    """Start a plan on the cluster; `detached`: as a job that continues when this process ends.

    Raises RequestError if a job of that name is running, or if the workers don't start.
    """
    start_cluster()
    config = replace(config, worker=config.worker.on_cluster(named=user_names_cluster()))
    claim = claim if claim is not None else RunClaim(secrets.token_hex(8), secrets.token_hex(8))
    if not _STARTS.acquire(blocking=False):
        with StartWatch(plan.name, lambda: "other jobs of this process to start"):
            _STARTS.acquire()
    try:
        return _started(plan, config, savepoint, claim, detached=detached)
    finally:
        _STARTS.release()


def _started(plan: Plan, config: JobConfig, savepoint: Savepoint | None, claim: RunClaim, *, detached: bool) -> RayJob:
    if (lack := lack_of_memory(len(plan.tasks))) is not None:
        _LOG.warning("job `%s`: %s", plan.name, lack)
    lent = {} if detached else WORKERS.lend(plan, config.worker)
    try:
        coordinator = _make_coordinator(plan, config, savepoint, claim, lent, detached=detached)
    except BaseException:
        WORKERS.take_back(lent.values(), config.worker)
        raise
    job = RayJob(plan.name, coordinator, lambda: WORKERS.take_back(lent.values(), config.worker))
    try:
        with StartWatch(plan.name, partial(_waits_for, coordinator.waits_for.remote(), coordinator)):
            job.call("deploy", coordinator, timeout=seconds(config.worker.start_timeout) + CALL_TIMEOUT)
    except BaseException:
        job.close()
        raise
    return WatchedJob(plan.name, coordinator) if detached else job


def _waits_for(up: Any, coordinator: Any) -> str:
    """Describe what the start of a job waits for; `up`: a first call, which returns when the coordinator's process runs."""
    if not ray.wait([up], timeout=0)[0]:
        return "the process of its coordinator"
    try:
        waits_for: str = ray.get(coordinator.waits_for.remote(), timeout=SILENT)
    except RayError:  # if it was lost, the start fails with the same error
        return "its coordinator"
    return waits_for


def _make_coordinator(
    plan: Plan, config: JobConfig, savepoint: Savepoint | None, claim: RunClaim, lent: Mapping[WorkerId, WorkerActor], *, detached: bool
) -> Any:
    """Create the coordinator. Raises RequestError if a job of that name is running, FlowError for a flow that can't be sent.

    A coordinator that only reports the end of its job is replaced.
    """
    name = f"{plan.name}/coordinator"
    options = {
        "name": name, "namespace": NAMESPACE, "max_concurrency": THREADS, "num_cpus": 0,
        "enable_task_events": False,  # Ray would keep a record of every call, and a job makes dozens a second
        "runtime_env": {"env_vars": traced} if (traced := variables()) else None,
        "scheduling_strategy": None if detached else _near_the_driver(),
        "max_restarts": -1 if config.checkpoint.dir is not None else 0, "lifetime": "detached" if detached else None,
    }  # fmt: skip
    movable = options["max_restarts"] != 0 and options["scheduling_strategy"] is None
    deadline = time.monotonic() + CALL_TIMEOUT
    while True:
        try:
            arguments = pack_call(plan, config, claim, savepoint, lent, detached, movable)
            return _COORDINATOR.options(**options).remote(*in_pieces(arguments))
        except Exception as error:
            if not isinstance(error, ActorAlreadyExistsError) and (told := refusal(plan)) is not None:
                raise told from None
            if not isinstance(error, ValueError):
                raise
            if time.monotonic() > deadline or not (_made_room(name) or claim.resumes):  # the previous run has ended, or will
                raise RequestError(
                    f"a job `{plan.name}` is running: stop it with ef.connect({plan.name!r}).stop(), or give the flow another name"
                ) from error
        time.sleep(0.1)


def _near_the_driver() -> NodeAffinitySchedulingStrategy | None:
    """Return the strategy that places a coordinator on this node, if the environment asks for it."""
    if os.environ.get(COORDINATOR) != "driver":
        return None
    return NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)


def _made_room(name: str) -> bool:
    """Return True if the coordinator's job has ended, so that its name is or becomes free."""
    try:
        coordinator = ray.get_actor(name, namespace=NAMESPACE)
        if ray.get(coordinator.lingers.remote(CALL_TIMEOUT / 2), timeout=CALL_TIMEOUT):
            ray.kill(coordinator)
            return True
    except (ValueError, RayActorError):
        return True
    except GetTimeoutError:
        return False
    return False


def find_job(name: str) -> WatchedJob:
    """Find the running job of that name, possibly another process's.

    Raises JobNotRunningError, naming the running jobs, if there is none.
    """
    running = running_jobs(name)
    try:
        return WatchedJob(name, ray.get_actor(f"{name}/coordinator", namespace=NAMESPACE))
    except ValueError as error:
        raise JobNotRunningError(f"no job `{name}` runs on this cluster; running: {', '.join(running) or 'none'}") from error


def running_jobs(wanted: str | None = None) -> list[str]:
    """List the jobs of the cluster that this process or RAY_ADDRESS names, or of this user's cluster on this machine that runs
    `wanted`.

    Raises ClusterError if there is no such cluster, or if none or several of this user's clusters run it.
    """
    if not ray.is_initialized():
        named = os.environ.get("RAY_ADDRESS", "auto") not in {"", "auto"}
        _join("auto" if named else meant(wanted, _tell))
    actors = ray.util.list_named_actors(all_namespaces=True)
    return jobs_of([(actor["namespace"], actor["name"]) for actor in actors])


def _tell(text: str) -> None:
    sys.stderr.write(f"{text}\n")


def address() -> str:
    """Return the address by which other processes find this process's cluster."""
    found: str = ray.get_runtime_context().gcs_address
    return found


class RayJob:
    """A job on Ray that this process started, represented by its coordinator. `over`: called when the coordinator has ended."""

    owned = True

    def __init__(self, name: str, coordinator: Any, over: Callable[[], None] = lambda: None) -> None:
        self._name, self._coordinator, self._over = name, coordinator, over
        self._last: JobOutcome | None = None

    def ask(self, request: Request[A]) -> A:
        if self._last is not None:
            return cast(A, self._afterwards(self._last, cast(AnyRequest, request)))
        answer: A = self.call("ask", request, timeout=FOLLOW_TIMEOUT if isinstance(request, ShowProgress) else CALL_TIMEOUT)
        return answer

    def _afterwards(self, last: JobOutcome, request: AnyRequest) -> Any:
        """Answer a request to a job that has ended; a stop or a failure has no effect."""
        match request:
            case ShowStatus():
                return last.status
            case ShowFigures():
                return last.figures
            case ShowLoad(operator) if operator in last.loads:
                return last.loads[operator]
            case ShowLoad(operator):
                there = ", ".join(last.loads) or "none, because its coordinator was lost"
                raise RequestError(f"the job `{self._name}` has no operator `{operator}`; there are: {there}")
            case Stop() | Cancel() | Fail():
                return None
        if isinstance(request, ShowHistory) and request in last.answers:
            return last.answers[request]
        raise JobNotRunningError(f"the job `{self._name}` has ended: it is {last.status.state}")

    def close(self) -> None:
        """End the job's actors; its last status, figures and loads stay."""
        if self._last is not None:
            return
        try:
            self.call("close", timeout=LEAVE_TIMEOUT + STORAGE_PATIENCE + CALL_TIMEOUT)
            self._last = self.call("outcome", 0.0)
        except Exception as problem:  # noqa: BLE001 -- whatever a coordinator answers, its processes must be ended and given back
            own = isinstance(problem, EvenflowError)
            error = problem if own else JobLostError(f"job `{self._name}`: its coordinator failed: {shown(problem)}")
            assert isinstance(error, EvenflowError)
            self._last = JobOutcome(JobStatus(self._name, JobState.FAILED, error, (), 0, 0.0))
        finally:
            try:
                ray.kill(self._coordinator)
            finally:
                self._over()

    def call(self, method: str, *args: Any, timeout: float = CALL_TIMEOUT) -> Any:
        """Call the coordinator. Raises its errors, or JobLostError if it was lost, JobTimeoutError if it doesn't answer."""
        deadline = time.monotonic() + timeout
        while True:
            try:
                return self._ask(method, args, max(0.1, deadline - time.monotonic()))
            except (ActorUnavailableError, ActorDiedError) as error:
                # Ray restarts the coordinator, which then continues from the newest checkpoint.
                if isinstance(error, ActorDiedError) and has_ended(self._coordinator):
                    raise JobLostError(f"job `{self._name}`: its coordinator was lost: {why_ended(error)}") from None
                if time.monotonic() > deadline:
                    raise JobLostError(f"job `{self._name}`: its coordinator was lost and has not returned within {timeout:g} s") from error
            time.sleep(0.2)

    def _ask(self, method: str, args: tuple[Any, ...], timeout: float) -> Any:
        try:
            return self._answer(getattr(self._coordinator, method).remote(*args), timeout)
        except (ActorUnavailableError, ActorDiedError):
            raise
        except GetTimeoutError as error:
            called = type(args[0]).__name__ if method == "ask" else method
            raise JobTimeoutError(f"job `{self._name}`: the coordinator did not answer `{called}` within {timeout:g} s") from error
        except RayActorError as error:
            raise JobLostError(f"job `{self._name}`: its coordinator was lost: {why_ended(error)}") from None
        except RaySystemError as error:
            problem = str(error).partition("\n")[0].removeprefix("System error: ")
            advice = "it may need a module of the program that started the job"
            raise RequestError(f"job `{self._name}`: this process can't read the answer ({problem}): {advice}") from None
        except RayTaskError as error:
            if isinstance(error.cause, EvenflowError):
                raise error.cause from None
            raise

    def _answer(self, question: Any, timeout: float) -> Any:
        """Wait for an answer in a way that Ray's own waiting doesn't allow.

        Ray ends a process at once, with its own exit code, if a thread waits in Ray at the end.
        """
        answer = question.future()
        if not futures.wait([answer], timeout).done:
            raise GetTimeoutError(str(question))
        return answer.result()


class WatchedJob(RayJob):
    """A job that another process started, and that survives this handle: the handle shows and steers it, but takes no results."""

    owned = False

    def ask(self, request: Request[A]) -> A:
        match request:
            case ShowProgress():
                return cast(A, self._wait_for_end())
            case Fail():  # a problem of this process is none of the job's
                return cast(A, None)
        return super().ask(request)

    def close(self) -> None:
        """Stop following the job, which its owner ends."""

    def _wait_for_end(self) -> Progress:
        """Wait a while for the job's end. Raises JobLostError if the job's processes are lost before."""
        outcome: JobOutcome = self.call("outcome", WATCH, timeout=FOLLOW_TIMEOUT)
        if outcome.status.state.final:
            self._last = outcome
        return Progress(outcome.status.state, outcome.status.error, ())
