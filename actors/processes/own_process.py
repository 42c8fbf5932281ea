"""Settings of this process: its title, and its garbage collector while it loads modules.

`ps`, `top` and `py-spy` show the processes of a job as `ray::evenflow: JOB aggregate-1`. Ray sets a process's title to the name
of the actor's class whenever a call of the actor begins or ends. So an actor that knows its role gets its own class by that name;
a title set in another way would be replaced by the next call.

>>> class Worker: ...
>>> worker = Worker()
>>> entitle(worker, "hot-keys", "aggregate-1")
>>> type(worker).__name__, isinstance(worker, Worker)
('evenflow: hot-keys aggregate-1', True)
>>> entitle(worker, "hot-keys", "aggregate-2")
>>> type(worker).__name__, len(type(worker).__mro__)
('evenflow: hot-keys aggregate-2', 3)
>>> with uncollected():
...     gc.isenabled()
False
>>> gc.isenabled()
True
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_PREFIX = "evenflow: "

ACTORS = f"ray::{_PREFIX}"
"""The beginning of the titles of all processes of jobs."""

RESTING = "is over, waits for a job"
"""The end of the title of a process that waits for its driver's next job; before it is the name of the last one."""


def entitle(actor: object, job: str, role: str) -> None:
    """Show the actor's process as `role` of the job from the end of the present call on."""
    own, name = type(actor), f"{_PREFIX}{job} {role}"
    if own.__name__ == name:
        return
    base = own.__base__ if own.__name__.startswith(_PREFIX) else own
    assert base is not None
    actor.__class__ = type(name, (base,), {})


@contextmanager
def uncollected() -> Iterator[None]:
    """Disable the process's garbage collector, if it was enabled, while modules are loaded.

    Modules consist of many permanent objects, which the collector would visit again and again during the import: a tenth to a
    fifth of the time. Not for two threads at a time: the first to finish enables it for both.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()
