"""How `ps`, `top` and `py-spy` show the processes of a job: `ray::evenflow: JOB aggregate-1`.

Ray sets a process's title whenever a call of its actor begins or ends, and takes the name of the actor's class for it. So an actor that
knows what it is gets a class of its own by that name; a title set in another way would be gone with the next call.

>>> class Worker: ...
>>> worker = Worker()
>>> entitle(worker, "hot-keys", "aggregate-1")
>>> type(worker).__name__, isinstance(worker, Worker)
('evenflow: hot-keys aggregate-1', True)
>>> entitle(worker, "hot-keys", "aggregate-2")
>>> type(worker).__name__, len(type(worker).__mro__)
('evenflow: hot-keys aggregate-2', 3)
"""

from __future__ import annotations

_WHOSE = "evenflow: "

ACTORS = f"ray::{_WHOSE}"
"""How the titles of all processes of jobs begin."""

RESTING = "is over, waits for a job"
"""How the title of a process ends that waits for its driver's next job; before it is the name of the last one."""


def entitle(actor: object, job: str, role: str) -> None:
    """Show the actor's process as `role` of the job from the end of the present call on."""
    own, name = type(actor), f"{_WHOSE}{job} {role}"
    if own.__name__ == name:
        return
    base = own.__base__ if own.__name__.startswith(_WHOSE) else own
    assert base is not None
    actor.__class__ = type(name, (base,), {})
