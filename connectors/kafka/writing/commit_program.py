"""The program of the process that commits: serves requests from its parent on a pipe, and ends when the parent has ended or sends
no more.

Frames are msgpack maps. The first request says where to write. Each further request is a checkpoint. The response is any number
of `{}`, which show that the process is working, and then `{"done": True}` or `{"error": text}`.
"""

from __future__ import annotations

import os
import select
from collections.abc import Iterator, Sequence
from functools import partial
from threading import Thread
from typing import Any

import msgpack
import pyarrow as pa

from ....engine.errors import ConnectorError, shown
from ....state.errors import CorruptStateError, EvenflowError
from ...pipes import read_message, write_message
from ...staged.staging import StagedFile, Staging
from ..cluster import KafkaCluster
from .producing import Chunk, Committer, TopicTarget
from .upserts import NetChunks

IDLE_SECONDS = 60.0
"""Seconds after which an idle process ends; its parent starts another on demand."""


class Commits:
    """The commits of one sink."""

    def __init__(self, opening: dict[str, Any], answers: int) -> None:
        self._operator = opening["cluster"]["operator"]
        self._staging = Staging(opening["staging"])
        self._committer = Committer(
            KafkaCluster(**opening["cluster"]), TopicTarget(**opening["target"]), alive=partial(write_message, answers, msgpack.packb({}))
        )

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Commit a checkpoint and return the response."""
        try:
            files = [[StagedFile.of(entry) for entry in entries] for entries in request["chunks"]]
            chunks: Sequence[Chunk] = [partial(self._messages, part) for part in files]
            if request["upserts"]:
                chunks = NetChunks(partial(self._messages, [file for part in files for file in part]), self._operator)
            self._committer.commit(request["run"], request["checkpoint"], chunks, begun=request["begun"])
        except EvenflowError as error:
            return {"error": str(error)}
        except Exception as error:  # noqa: BLE001 -- the parent is to hear of it
            return {"error": f"operator `{self._operator}`: {shown(error)}"}
        return {"done": True}

    def _messages(self, files: list[StagedFile]) -> Iterator[pa.RecordBatch]:
        try:
            for file in files:
                yield from self._staging.read(file)
        except CorruptStateError as error:
            raise ConnectorError(
                f"operator `{self._operator}`: messages that wait for their checkpoint can't be committed: {error}. All nodes must access "
                "that folder: give CheckpointConfig(dir=...) a folder that they share"
            ) from error


def main() -> None:
    """Serve one sink until the parent closes its pipe, or sends nothing for `IDLE_SECONDS`."""
    requests, answers = os.dup(0), os.dup(1)
    os.dup2(2, 1)  # output of a library must not be taken for a response
    Thread(target=_end_with_parent, args=(requests, os.getppid()), daemon=True).start()
    opening = read_message(requests)
    commits = Commits(msgpack.unpackb(opening), answers) if opening is not None else None
    while commits is not None and select.select([requests], [], [], IDLE_SECONDS)[0]:
        request = read_message(requests)
        if request is None:
            break
        write_message(answers, msgpack.packb(commits.answer(msgpack.unpackb(request))))
    os._exit(0)  # a producer's destructor might wait for a broker


def _end_with_parent(requests: int, parent: int) -> None:
    """Exit as soon as the parent has ended, even within a transaction: the next committer determines its outcome."""
    hang_up = select.poll()
    hang_up.register(requests, 0)
    while not hang_up.poll(1000) and os.getppid() == parent:
        pass
    os._exit(1)


if __name__ == "__main__":
    main()
