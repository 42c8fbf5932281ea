"""All uses of Ray's internals, for which Ray has no public interface.

Invariant: no other module imports `ray._private`; each function says what the public interface lacks.
`docs/decisions/017-ray-internals.md` has more.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any

from ray._private import services, worker
from ray._private.authentication import authentication_token_setup
from ray._private.gcs_utils import create_gcs_channel
from ray._private.internal_api import get_memory_info_reply, get_state_from_address
from ray._private.state import available_resources_per_node, state
from ray.core.generated import gcs_service_pb2

_HEAD_FLAG = "--gcs-address"

JOINING_LOG = "ray._private.authentication.authentication_token_setup"
"""The logger that reports tokens whenever a process joins a cluster."""


def head_address(address: str | None) -> str | None:
    """Return the head that `ray.init(address)` would join; None if it would start one. Raises ConnectionError or ValueError.

    `ray.init` finds and joins it in one step, and waits for an unreachable head for minutes.
    """
    canonical: Any = services.canonicalize_bootstrap_address
    found: str | None = canonical(address)
    return found


def heads_on_this_machine() -> list[str]:
    """List the heads of this user's clusters with a node on this machine. Ray's own list has those of all users."""
    found = set[str]()
    internals: Any = services
    is_raylet = internals._is_raylet_process  # noqa: SLF001
    for process in internals.psutil.process_iter(["cmdline", "uids"]):
        words, users = process.info["cmdline"], process.info["uids"]
        if users is not None and users.real == os.getuid() and is_raylet(words):
            flags = [flag for word in words for flag in word.split(" ") if flag.startswith(f"{_HEAD_FLAG}=")]
            found.update(address for flag in flags if (address := flag.partition("=")[2]) not in ("", "None"))
    return sorted(found)


def named_actors(head: str, timeout: float) -> list[tuple[str, str]]:
    """List the namespaces and names of a cluster's actors without joining it: a process can join one cluster only.

    Raises RayError or grpc.RpcError.
    """
    messages: Any = gcs_service_pb2
    with channel_to(head) as channel:
        question: Any = channel.unary_unary(
            "/ray.rpc.ActorInfoGcsService/ListNamedActors", response_deserializer=messages.ListNamedActorsReply.FromString
        )
        reply = question(messages.ListNamedActorsRequest(all_namespaces=True).SerializeToString(), timeout=timeout)
    return [(actor.ray_namespace, actor.name) for actor in reply.named_actors_list]


def channel_to(head: str) -> AbstractContextManager[Any]:
    """Open a gRPC channel to a cluster's head, with the certificates and the token that Ray uses; a plain one would have neither.

    Raises RayError if the token can't be read.
    """
    # A process with a token shows it by default. Older versions of Ray lack this.
    getattr(authentication_token_setup, "maybe_enable_token_auth_if_token_available", lambda **_: None)(warn_if_disabled=False)
    channel: AbstractContextManager[Any] = create_gcs_channel(head)
    return channel


def free_resources() -> Mapping[str, Mapping[str, float]]:
    """Return free resources by node; `ray.available_resources()` has only the cluster's sum, `ray.nodes()` only totals."""
    free: Mapping[str, Mapping[str, float]] = available_resources_per_node()  # type: ignore[no-untyped-call]
    return free


def nodes_are_starting() -> bool:
    """Return True if the cluster's autoscaler (version 2) starts nodes now; `ray status` prints it.

    False too if nothing is known of an autoscaler.
    """
    from ray.autoscaler.v2.sdk import get_cluster_status  # loads much, which no process needs before it lacks room

    context: Any = worker.global_worker
    try:
        status = get_cluster_status(context.gcs_client.address)
    except Exception:  # noqa: BLE001 -- what an older autoscaler says can't be read
        return False
    return bool(status.pending_launches or status.pending_nodes)


def draining_nodes() -> Mapping[str, float | None]:
    """Return the nodes that Ray drains because they are about to go, and when it ends them: seconds since the epoch, None if it isn't told.

    `ray.nodes()` doesn't tell them from others.
    """
    return {node: deadline / 1000 if deadline else None for node, deadline in state.get_draining_nodes().items()}


def has_ended(actor: Any) -> bool:
    """Return True if Ray does not restart this actor. `ActorDiedError` doesn't tell: calls also fail with it, several in a row, while Ray
    restarts an actor that has left a node which drains; and `ray.get_actor` finds actors that have ended.
    """
    found = state.actor_table(actor._actor_id.hex())  # noqa: SLF001
    return bool(found.get("State", "DEAD") == "DEAD")


def started_by_this_process() -> bool:
    """Return True if this process has started the cluster to which it is connected; `ray.init` doesn't say which it did."""
    node: Any = worker._global_node  # noqa: SLF001
    return node is not None and bool(node.head)


def references() -> int:
    """Return how many objects and actors this process refers to; for benchmarks that look for leaks."""
    process: Any = worker.global_worker
    return len(process.core_worker.get_all_reference_counts())


def object_store(head: str) -> tuple[int, int]:
    """Return the number of objects in the cluster's object store and their bytes, as `ray memory` does; for leak benchmarks."""
    state = get_state_from_address(head)  # type: ignore[no-untyped-call]
    reply = get_memory_info_reply(state)  # type: ignore[no-untyped-call]
    return reply.store_stats.num_local_objects, reply.store_stats.object_store_bytes_used
