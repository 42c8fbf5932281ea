"""Search for a cluster if the process names none: the one of this user's clusters on this machine that runs the job.

Invariant: clusters of other users are ignored, and if several clusters match, none is chosen.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ray.exceptions import RayError

from ...engine.errors import ClusterError
from ..processes.process import NAMESPACE
from ..processes.ray_internals import heads_on_this_machine, named_actors

PATIENCE = 5.0
"""Seconds within which a cluster must list its jobs."""

COORDINATOR = "/coordinator"
"""The suffix of the name of a job's coordinator."""


def jobs_of(actors: Sequence[tuple[str, str]]) -> list[str]:
    """Return the jobs among the actors, which are pairs of namespace and name.

    >>> jobs_of([("evenflow", "delays/coordinator"), ("evenflow", "delays/count-0"), ("mine", "other/coordinator")])
    ['delays']
    """
    return sorted(name.removesuffix(COORDINATOR) for space, name in actors if space == NAMESPACE and name.endswith(COORDINATOR))


def meant(job: str | None, say: Callable[[str], None]) -> str:
    """Return the head of the cluster that runs `job`, or any job if it is None. A single cluster is returned even without the job.

    `say` gets a line if one was chosen of several. Raises ClusterError that lists the clusters.
    """
    heads = heads_on_this_machine()
    return heads[0] if len(heads) == 1 else chosen(job, {head: _jobs_at(head) for head in heads}, say)


def chosen(job: str | None, clusters: Mapping[str, Sequence[str] | None], say: Callable[[str], None]) -> str:
    """Choose the cluster that `meant` returns. `clusters`: the jobs of each, None for one that doesn't answer.

    >>> chosen("delays", {"127.0.0.1:1": ["delays"], "127.0.0.1:2": None}, print)
    the job `delays` runs on the Ray cluster at 127.0.0.1:1, one of 2 on this machine
    '127.0.0.1:1'
    """
    what = f"the job `{job}`" if job is not None else "a job"
    fitting = [head for head, jobs in clusters.items() if jobs and (job is None or job in jobs)]
    if len(fitting) == 1:
        say(f"{what} runs on the Ray cluster at {fitting[0]}, one of {len(clusters)} on this machine")
        return fitting[0]
    if not clusters:
        raise ClusterError(
            f"no Ray cluster of yours runs on this machine: set RAY_ADDRESS to that of {what}, for example RAY_ADDRESS=10.0.0.1:6379"
        )
    there = "; ".join(f"{head} {_has(jobs)}" for head, jobs in clusters.items())
    runs = f"runs on {len(fitting)}" if fitting else "runs on none"
    raise ClusterError(
        f"{what} {runs} of your {len(clusters)} Ray clusters on this machine: {there}; set RAY_ADDRESS to the one that you mean, "
        f"for example RAY_ADDRESS={(fitting or list(clusters))[0]}"
    )


def _has(jobs: Sequence[str] | None) -> str:
    return "does not answer" if jobs is None else f"has {', '.join(jobs)}" if jobs else "has no job"


def _jobs_at(head: str) -> list[str] | None:
    import grpc  # type: ignore[import-untyped]

    try:
        return jobs_of(named_actors(head, PATIENCE))
    except (RayError, grpc.RpcError):
        return None
