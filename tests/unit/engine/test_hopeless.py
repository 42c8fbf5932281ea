"""Errors that another attempt would meet again, and their remedies."""

from __future__ import annotations

import errno
import pickle

import pytest

from evenflow.engine.errors import ConnectorError, FlowError, JobFailedError, JobLostError, RecordError
from evenflow.engine.hopeless import hopeless, judged
from evenflow.state.errors import CorruptCheckpointError, CorruptStateError, StateBackendError, StateFolderError


def caused(error, cause):
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "remedy"),
    [
        pytest.param(RecordError("parse", "ValueError"), "correct the function or the data", id="a refused record"),
        pytest.param(FlowError("no column `x`"), "correct the program", id="a wrong flow"),
        pytest.param(StateFolderError("count", "/srv/s", "gone", errno.ENOENT), "create /srv/s on every node", id="no folder for state"),
        pytest.param(StateFolderError("count", "/srv/s", "denied", errno.EACCES), "create /srv/s on every node", id="a closed folder"),
        pytest.param(
            caused(JobFailedError("worker a-0 failed"), ModuleNotFoundError("No module named 'polars'", name="polars")),
            "install the module `polars` on every node",
            id="a missing module",
        ),
        pytest.param(
            caused(ConnectorError("sink `out`"), PermissionError(errno.EACCES, "Permission denied", "/srv/out")),
            "give the user that runs Ray access to /srv/out on every node",
            id="a permission",
        ),
        pytest.param(OSError(errno.EROFS, "Read-only", "/srv/out"), "choose another location than /srv/out", id="a read-only disk"),
        pytest.param(OSError(errno.ENOTDIR, "Not a directory", "/a/b"), "a part of this path is a file", id="a file in place of a folder"),
    ],
)
def test_an_error_that_another_attempt_would_meet_again_has_a_remedy(error, remedy):
    assert remedy in hopeless(error)


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(JobLostError("worker a-0 is gone"), id="a lost process"),
        pytest.param(ConnectionResetError(errno.ECONNRESET, "reset"), id="a lost connection"),
        pytest.param(PermissionError("Access Denied"), id="a store that denies for now"),
        pytest.param(OSError(errno.ENOSPC, "No space left on device", "/srv"), id="a full disk"),
        pytest.param(StateFolderError("count", "/srv/s", "full", errno.ENOSPC), id="a full disk for state"),
        pytest.param(StateFolderError("count", "/srv/s", "MDB_PANIC"), id="an error of LMDB"),
        pytest.param(FileNotFoundError(errno.ENOENT, "No such file", "/mnt/in/1.csv"), id="a file of a mount that may come back"),
        pytest.param(StateBackendError("the server can't be reached"), id="a server"),
        pytest.param(CorruptStateError("truncated"), id="a damaged file, which an older one may replace"),
        pytest.param(caused(ConnectorError("source"), TimeoutError("30 s")), id="a timeout"),
    ],
)
def test_an_error_that_may_go_away_is_worth_another_attempt(error):
    assert hopeless(error) is None


def test_the_verdict_survives_the_way_to_another_process():
    error = caused(ConnectorError("sink `out`"), PermissionError(errno.EACCES, "Permission denied", "/srv/out"))
    there = pickle.loads(pickle.dumps(judged(error)))
    assert there.__cause__ is None
    assert hopeless(there) == "give the user that runs Ray access to /srv/out on every node"


def test_causes_in_a_circle_end():
    first, second = ConnectorError("a"), ConnectorError("b")
    first.__cause__, second.__cause__ = second, first
    assert hopeless(first) is None


@pytest.mark.parametrize(
    "error",
    [
        RecordError("parse", "ValueError", key="k", record={"n": "x"}),
        StateFolderError("count", "/srv/s", "gone", errno.ENOENT),
        CorruptCheckpointError("count-0", 7, "truncated"),
        JobLostError("worker a-0 is gone"),
    ],
)
def test_notes_survive_the_way_to_another_process(error):
    error.add_note("The job did not start again.")
    there = pickle.loads(pickle.dumps(judged(error)))
    assert (type(there), str(there), there.__notes__, there.remedy) == (type(error), str(error), error.__notes__, error.remedy)
