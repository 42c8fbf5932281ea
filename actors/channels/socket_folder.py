"""The folder of a job's ipc sockets: only its user can enter it, which protects them.

The job's first worker on a node creates it, and the last one removes it.
"""

from __future__ import annotations

import os
import secrets
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

from ...engine.errors import ClusterError

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
"""A file that identifies the running kernel."""

MAX_PATH_BYTES = 107
"""The longest path of a Unix socket."""


class SocketFolder:
    """The folder of job `job` in `temporary`, mode 0700. Raises ClusterError if the existing one can't be trusted.

    `temporary`: by default the temporary folder of this process.
    """

    def __init__(self, job: str, temporary: Path | None = None) -> None:
        self.path = (temporary or Path(tempfile.gettempdir())) / f"evenflow-{os.getuid()}-{job}"

    def open(self) -> None:
        """Create the folder, or check the existing one."""
        try:
            self.path.mkdir(mode=0o700)
        except FileExistsError:
            self._check()
        except OSError as error:
            raise ClusterError(
                f"the socket folder {self.path} can't be created ({error.strerror}); set TMPDIR to a folder that is writable"
            ) from error

    def _check(self) -> None:
        found = self.path.lstat()
        if not stat.S_ISDIR(found.st_mode):
            raise ClusterError(f"the socket folder {self.path} is a link or a file; remove it")
        if found.st_uid != os.getuid():
            raise ClusterError(
                f"the socket folder {self.path} belongs to user {found.st_uid}, not to {os.getuid()}; remove it or set TMPDIR"
            )
        if stat.S_IMODE(found.st_mode) & 0o077:
            raise ClusterError(f"the socket folder {self.path} is open to others (mode {stat.S_IMODE(found.st_mode):04o}); remove it")

    def new_socket(self) -> Path:
        """Return a path for a new socket. Raises ClusterError if it is too long for one."""
        path = self.path / f"{secrets.token_hex(8)}.sock"
        if len(os.fsencode(path)) > MAX_PATH_BYTES:
            raise ClusterError(f"the socket path {path} is longer than {MAX_PATH_BYTES} bytes; set TMPDIR to a shorter folder")
        return path

    def node(self) -> str:
        """Return a name that two processes share only if they see the same folder at the same path (and not each its own
        container's).

        Hosts may have the same name, and small file systems number their files alike.
        """
        found = self.path.lstat()
        return f"{BOOT_ID.read_text().strip()}/{found.st_dev}/{found.st_ino}{self.path}"

    def close(self) -> None:
        """Remove the folder if it has no sockets left."""
        with suppress(OSError):  # others still use it, or the last of them has just removed it
            self.path.rmdir()

    def remove(self) -> None:
        """Remove the folder with the sockets of killed workers: for the end of the job, on its driver's node."""
        if self.path.is_dir() and not self.path.is_symlink():
            for path in self.path.glob("*.sock"):
                path.unlink(missing_ok=True)
            self.close()
