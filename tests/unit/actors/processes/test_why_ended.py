"""The reason why a process has ended, in one line."""

from __future__ import annotations

import pytest
from ray.exceptions import RayActorError

from evenflow.actors.processes.process import why_ended

ACTOR = "The actor died unexpectedly before finishing this task.\n\tclass_name: Worker\n\tactor_id: 45\n\tpid: 7\n\tip: 192.0.2.2\n"
EXIT = "The actor is dead because its worker process has died. Worker exit type: SYSTEM_ERROR Worker exit detail: it exits with a "


@pytest.mark.parametrize(
    ("text", "told"),
    [
        pytest.param(
            f"{ACTOR}{EXIT}connection error code 2. End of file. Some common causes include: (1) the OOM killer",
            r"its process ended unexpectedly: a function of yours called os\._exit, a library crashed, or the system killed it",
            id="an end of file",
        ),
        pytest.param(
            f"{ACTOR}{EXIT}n exit code 3.", "its process ended unexpectedly with exit code 3: a function of yours", id="an exit code"
        ),
        pytest.param(f"{ACTOR}The actor is dead because its node has died.", "The actor is dead because its node has died.", id="a node"),
        pytest.param("The actor died unexpectedly before finishing this task.", "The actor died unexpectedly", id="nothing more"),
    ],
)
def test_the_cause_is_one_line(text, told):
    why = why_ended(RayActorError("45", text))
    assert "\n" not in why
    with pytest.raises(AssertionError, match=told):
        raise AssertionError(why)


def test_the_error_for_a_missing_module_says_what_to_do():
    trace = "The actor died because of an error raised in its creation task\nModuleNotFoundError: No module named 'mine'"
    why = why_ended(RayActorError("45", trace, actor_init_failed=True))
    assert why.startswith(
        "its process could not start: ModuleNotFoundError: No module named 'mine'; what a flow's functions import must be"
    )
