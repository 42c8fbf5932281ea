"""A check that a Ray cluster answers, made before joining it: `ray.init` itself tries an unreachable or hanging head for minutes.

Invariant: within `PATIENCE` seconds the head has answered, or a ClusterError names the problem and what to do.
"""

from __future__ import annotations

import os
from typing import Any

from ray.exceptions import RayError

from ...engine.errors import ClusterError
from ..processes.ray_internals import channel_to, head_address

PATIENCE = 15.0

_QUESTION = "/ray.rpc.NodeInfoGcsService/GetClusterId"
"""The first request of every process to the head; an empty message is the request."""

_WHAT_TO_SET = (
    "set RAY_AUTH_MODE=token, and RAY_AUTH_TOKEN to the cluster's token or RAY_AUTH_TOKEN_PATH to the file that has it; "
    "`ray get-auth-token` shows it on a machine of the cluster"
)


def check_reachable(address: str | None) -> None:
    """Check that the head answers that `ray.init(address)` would join, if any. Raises ClusterError if it doesn't."""
    if "://" in os.environ.get("RAY_ADDRESS", ""):
        return  # Ray Client has its own time-outs
    try:
        head = head_address(address)
    except (ConnectionError, ValueError) as error:
        raise ClusterError(f"there is no Ray cluster to find: {error}") from error
    if head is not None:
        _ask(head)


def _ask(head: str) -> None:
    import grpc  # type: ignore[import-untyped]

    try:
        with channel_to(head) as channel:
            question: Any = channel.unary_unary(_QUESTION)
            question(b"", timeout=PATIENCE)
    except RayError as error:
        raise ClusterError(f"the Ray cluster at {head} can't be joined: {error}; {_WHAT_TO_SET}") from error
    except grpc.RpcError as error:
        code = error.code()
        if code in {grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED}:
            raise ClusterError(f"the Ray cluster at {head} rejects this process's token: {_WHAT_TO_SET}") from error
        if code == grpc.StatusCode.DEADLINE_EXCEEDED:
            raise ClusterError(
                f"the Ray cluster at {head} has not answered within {PATIENCE:g} s: its head hangs, or another program listens there; "
                "check the head, or set RAY_ADDRESS to another cluster"
            ) from error
        raise ClusterError(
            f"no Ray cluster answers at {head} ({code.name}): start one, for example with `ray start --head`, or set RAY_ADDRESS to "
            "the address of one that runs; one with TLS answers only to those with RAY_USE_TLS=1 and a certificate of its authority"
        ) from error
