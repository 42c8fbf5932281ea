"""The process that commits for a Kafka sink, beside the coordinator: producing a million messages must not hold up its heartbeats.

Invariant: it can be lost at any moment, and so can the process that started it. The next one finds out from the marker what is in the
topic. It ends with its parent, when nothing is asked of it for a minute, and when it is closed.
"""

from __future__ import annotations

import os
import select
import subprocess
import sys
from threading import Lock
from typing import Any

from ...engine.errors import ConnectorError
from ..staging import Place
from .frames import read_frame, write_frame

SILENCE_SECONDS = 90.0
"""After which a process that was asked for something and says nothing is taken for lost. At work it says so each second."""

TRIES = 3
"""Processes that may be lost in one commit."""

PROGRAM = "evenflow.connectors.kafka.commit_program"


class CommitProcess:
    """For what is staged at `place`. `opening`: what the program is told first."""

    def __init__(self, operator: str, place: Place, opening: dict[str, Any]) -> None:
        self.place, self._operator, self._opening = place, operator, opening
        self._process: subprocess.Popen[bytes] | None = None
        self._busy, self._closed = Lock(), False

    @property
    def pid(self) -> int | None:
        """Of the process, if there is one."""
        return self._process.pid if self._process is not None else None

    def commit(self, request: dict[str, Any]) -> None:
        """Have a checkpoint committed. Raises ConnectorError."""
        with self._busy:
            for _ in range(TRIES):
                if self._closed:
                    raise ConnectorError(f"operator `{self._operator}`: the process that commits to Kafka was ended in a commit")
                answer = self._ask(request)
                if answer is None:
                    self._end()
                elif "error" in answer:
                    raise ConnectorError(answer["error"])
                else:
                    return
        raise ConnectorError(f"operator `{self._operator}`: the process that commits to Kafka was lost {TRIES} times in one commit")

    def close(self) -> None:
        """End it for good, also in the midst of a commit in another thread, which then fails."""
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
        """The answer, None if the process was lost."""
        try:
            process = self._started()
            assert process.stdin is not None
            assert process.stdout is not None
            requests, answers = process.stdin.fileno(), process.stdout.fileno()
            write_frame(requests, request)
            while select.select([answers], [], [], SILENCE_SECONDS)[0]:
                answer = read_frame(answers)
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
            write_frame(self._process.stdin.fileno(), self._opening)
        return self._process
