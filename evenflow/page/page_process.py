"""The process of the page that `flow.run(ui=True)` starts; it ends with the driver."""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
from contextlib import suppress

from ..engine.errors import ClusterError

PATIENCE = 10.0
"""Seconds that the page's process has to end."""


class PageProcess:
    """The page's process for all jobs of this process, on the cluster to which this process is connected."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._address = ""

    def address(self, job: str, cluster: str) -> str:
        """Return the address of a job's page; start the process if it doesn't run. Raises ClusterError if it can't be started."""
        if self._process is None or self._process.poll() is not None:
            command = [sys.executable, "-W", "ignore", "-m", "evenflow", "ui", "--no-open", "--ends-with-input"]
            environment = {**os.environ, "RAY_ADDRESS": cluster}
            self._process = subprocess.Popen(  # noqa: S603 -- our own command
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, text=True, start_new_session=True
            )
            assert self._process.stdout is not None
            atexit.register(self.end)
            self._address = self._process.stdout.readline().strip()
            if not self._address:
                raise ClusterError(f"the page's process has ended with exit code {self._process.wait()}")
        return f"{self._address}&job={job}"

    def end(self) -> None:
        """Stop serving. The page's process also ends when this one is killed, because its input is closed then."""
        if self._process is not None:
            with suppress(subprocess.TimeoutExpired):
                self._process.communicate(timeout=PATIENCE)
            self._process = None


PAGE = PageProcess()
