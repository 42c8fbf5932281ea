"""Why a process of Ray's has ended, in a line: what Ray says of it takes ten, and guesses at memory first."""

from __future__ import annotations

import re

from ray.exceptions import RayActorError

BY_ITSELF = "a function of yours called os._exit, a library crashed, or the system killed it, perhaps for want of memory"

IMPORTS = (
    "; what a flow's functions import must be on the Python path of all workers: install it there, "
    "or begin with ray.init(runtime_env={'working_dir': ...})"
)

_EXIT_CODE = re.compile(r"exit(?:ed with)? code[ =:]+(-?\d+)")
_ABOUT_THE_ACTOR = re.compile(r"\s*(The actor (died|experienced) .*|class_name|actor_id|pid|name|namespace|ip)(: .*)?")


def why_ended(error: RayActorError) -> str:
    """The cause, without Ray's description of the actor, its advice, and tracebacks of what only passed the error on."""
    text = str(error).strip()
    if error.actor_init_failed:
        last = text.splitlines()[-1]
        return f"its process could not begin: {last}{IMPORTS if last.startswith(('ModuleNotFoundError', 'ImportError')) else ''}"
    if "Worker exit type: SYSTEM_ERROR" in text:
        code = _EXIT_CODE.search(text)
        return f"its process ended by itself{f' with exit code {code[1]}' if code is not None else ''}: {BY_ITSELF}"
    lines = [line.strip() for line in text.splitlines() if line.strip() and not _ABOUT_THE_ACTOR.fullmatch(line)]
    return lines[0] if lines else text.splitlines()[0]
