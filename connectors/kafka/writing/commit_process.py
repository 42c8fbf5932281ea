"""The process that commits for a Kafka sink, separate from the coordinator, whose heartbeats must not wait for a million
messages.

Invariant: this process and its parent can be lost at any moment. The next one reads from the marker what the topic contains. The
process ends with its parent, after a minute without a request, and when it is closed.
"""

from __future__ import annotations

import os
import select
import subprocess
import sys
from threading import Lock
from typing import Any

import msgpack

from ....engine.errors import ConnectorError
from ...pipes import read_message, write_message
from ...staged.staging import StagingPlace

SILENCE_SECONDS = 90.0
"""Seconds without a message after which a process that has a request counts as lost. A busy process reports each second."""

TRIES = 3
"""The number of processes that may be lost in one commit."""

PROGRAM = "evenflow.connectors.kafka.writing.commit_program"


class CommitProcess:
    """A process that commits the messages staged at `place`. `opening`: the first message that it receives."""

    def __init__(self, operator: str, place: StagingPlace, opening: dict[str, Any]) -> None:
        self.place, self._operator, self._opening = place, operator, opening
        self._process: subprocess.Popen[bytes] | None = None
        self._busy, self._closed = Lock(), False

    @property
    def pid(self) -> int | None:
        """The id of the process, if there is one."""
        return self._process.pid if self._process is not None else None

    def commit(self, request: dict[str, Any]) -> None:
        """Commit a checkpoint. Raises ConnectorError."""
        with self._busy:
            for _ in range(TRIES):
                if self._closed:
                    raise ConnectorError(f"operator `{self._operator}`: the process that commits to Kafka was closed during a commit")
                answer = self._ask(request)
                if answer is None:
                    self._end()
                elif "error" in answer:
                    raise ConnectorError(answer["error"])
                else:
                    return
        raise ConnectorError(f"operator `{self._operator}`: the process that commits to Kafka was lost {TRIES} times in one commit")

    def close(self) -> None:
        """End the process permanently. A commit in progress in another thread fails."""
        self._closed = True
        process = self._process
        if process is not None:
            process.kill()
        with self._busy:
            self._end()

    def _end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            for pipe in (self._process.stdin, self._process.stdout):
                if pipe is not None:
                    pipe.close()
            self._process = None

    def _ask(self, request: dict[str, Any]) -> dict[str, Any] | None:
        """Send a request and return the response, or None if the process was lost."""
        try:
            process = self._started()
            assert process.stdin is not None
            assert process.stdout is not None
            requests, answers = process.stdin.fileno(), process.stdout.fileno()
            write_message(requests, msgpack.packb(request))
            while select.select([answers], [], [], SILENCE_SECONDS)[0]:
                message = read_message(answers)
                answer: dict[str, Any] | None = None if message is None else msgpack.unpackb(message)
                if answer is None or answer:
                    return answer
        except BrokenPipeError:
            pass
        return None

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            self._process = subprocess.Popen(  # noqa: S603 -- our own program
                [sys.executable, "-m", PROGRAM],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                bufsize=0,
                start_new_session=True,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
            )
            assert self._process.stdin is not None
            write_message(self._process.stdin.fileno(), msgpack.packb(self._opening))
        return self._process
