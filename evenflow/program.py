"""Programs as files: runs one up to the start of its job, and takes the flow that it would have started."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from .engine.errors import FlowError, shown
from .state.errors import EvenflowError
from .upgrades import Flow

_WANTED: ContextVar[str | None] = ContextVar("wanted", default=None)


class _FoundError(BaseException):
    """Ends a program at the start of the wanted job; a program must not catch it by mistake."""

    def __init__(self, flow: Flow) -> None:
        super().__init__()
        self.flow = flow


def starts(flow: Flow) -> None:
    """Note that a program starts a job. Ends the program if its flow is wanted, and refuses to start any other meanwhile."""
    wanted = _WANTED.get()
    if wanted is None:
        return
    if flow.name == wanted:
        raise _FoundError(flow)
    raise FlowError(f"the program starts the job `{flow.name}` before `{wanted}`: only its first job can be upgraded")


def flow_of(program: Path, job: str) -> Flow:
    """Run a program up to `flow.run(...)` of the job of that name, and return the flow; nothing is started.

    Raises FlowError if the file can't be read, the program fails, or it starts no such job.
    """
    if not program.is_file():
        raise FlowError(f"the program {program} is no file")
    with _wanting(job, program):
        try:
            runpy.run_path(str(program), run_name="__main__")
        except _FoundError as found:
            return found.flow
        except EvenflowError:
            raise
        except (Exception, SystemExit) as error:
            raise FlowError(f"the program {program} failed before it started job `{job}`: {shown(error)}") from error
    raise FlowError(f"the program {program} starts no job `{job}`: name its flow so, Dataflow({job!r})")


@contextmanager
def _wanting(job: str, program: Path) -> Iterator[None]:
    """Want the flow of a job; the program sees its own folder and its own command line."""
    token, path, words = _WANTED.set(job), list(sys.path), list(sys.argv)
    sys.path.insert(0, str(program.resolve().parent))
    sys.argv = [str(program)]
    try:
        yield
    finally:
        sys.path[:], sys.argv = path, words
        _WANTED.reset(token)
