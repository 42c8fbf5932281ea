"""Claims on output folders: a hidden file, locked by the committing process, names the run and the job that write part files
there.

The kernel releases the lock when that process ends, however it ends. A run counts as dead only if its file names the job and no
process holds the lock. On a file system without locks no run counts as dead.

>>> import tempfile
>>> folder = Path(tempfile.mkdtemp())
>>> claim = Claim(folder, "4f6a", "counts")
>>> dead_runs(folder, "counts")
[]
>>> claim.release()
>>> dead_runs(folder, "counts"), dead_runs(folder, "another job")
(['4f6a'], [])
"""

from __future__ import annotations

import fcntl
from contextlib import suppress
from pathlib import Path

_PREFIX, _SUFFIX = ".part-", ".owner"


def owner_file(folder: Path, run: str) -> Path:
    """Return the path of the file that claims a folder for `run`."""
    return folder / f"{_PREFIX}{run}{_SUFFIX}"


class Claim:
    """The claim of `run` of `job` on `folder`, until `release` or the end of this process. Raises OSError if it can't be
    recorded.
    """

    def __init__(self, folder: Path, run: str, job: str) -> None:
        self._file = owner_file(folder, run).open("a+")
        try:
            fcntl.flock(self._file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            if self._file.tell() == 0:  # locked before it names its job: an empty file has no owner
                self._file.write(job)
                self._file.flush()
        except BaseException:
            self._file.close()
            raise

    def release(self) -> None:
        """Release the lock; the file stays."""
        self._file.close()


def dead_runs(folder: Path, job: str) -> list[str]:
    """List the runs of `job` that wrote into `folder` and are dead."""
    return [path.name.removeprefix(_PREFIX).removesuffix(_SUFFIX) for path in folder.glob(f"{_PREFIX}*{_SUFFIX}") if _dead(path, job)]


def _dead(path: Path, job: str) -> bool:
    with suppress(OSError), path.open("r+") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return file.read() == job
    return False
