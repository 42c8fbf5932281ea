"""An error in a worker's process, or on the way to it, is one error of evenflow's, without Ray's tracebacks and advice."""

from __future__ import annotations

import os
import sys
import threading

import pytest

import evenflow as ef

ROWS = [{"k": "a", "v": 1}, {"k": "b", "v": 2}]


def numbered(by):
    """Create a function where it is used: workers can't import a module of tests."""
    return lambda state, row: ((state or 0) + by, None)


def interrupted():
    def interrupt(row):
        raise KeyboardInterrupt

    return interrupt


def demanding():
    class Demanding(ef.EvenflowError):
        """Can't be unpickled: a pickle has no arguments for it."""

        def __init__(self, code, text):
            super().__init__(text)
            self.code = code

    def demand(row):
        raise Demanding(1, "code 1")

    return demand


def locked():
    held = threading.Lock()

    def look_up(row):
        with held:
            return row

    return look_up


def ended(build, **options):
    """Return the error of a job whose rows go through `build(stream)`."""
    flow = ef.Dataflow("wrong")
    build(flow.read(ef.from_items(ROWS))).write(ef.to_list([]))

    def run():
        flow.run(**options).wait("60s")

    with pytest.raises(ef.EvenflowError) as caught:
        run()
    return caught.value


@pytest.mark.first
@pytest.mark.parametrize(
    ("build", "said"),
    [
        pytest.param(lambda s: s.map(lambda row: sys.exit(3)), ("`map`", "SystemExit: 3; a function can't end", "'v': 1"), id="sys.exit"),
        pytest.param(lambda s: s.map(interrupted()), ("`map`", "raised KeyboardInterrupt"), id="an interrupt"),
        pytest.param(lambda s: s.map(demanding()), ("`map`", "raised Demanding: code 1"), id="an error that can't be unpickled"),
        pytest.param(lambda s: s.map(locked()), ("`map` can't be sent", "the variable `held` of the function `locked.<loc"), id="a lock"),
    ],
)
def test_errors_of_functions_read_as_they_do_in_one_process(build, said):
    message = str(ended(build))
    for part in said:
        assert part in message
    assert "Traceback" not in message


def test_error_of_a_process_that_exits_names_its_operators():
    message = str(ended(lambda s: s.map(lambda row: os._exit(3)).named("last")))
    assert "worker from_items-0, which runs from_items, last, to_list," in message
    assert "its process ended unexpectedly" in message
    assert "a function of yours called os._exit, a library crashed, or the system killed it" in message
    assert "\n" not in message


def test_savepoint_that_does_not_fit_is_refused_in_one_line(tmp_path):
    flow = ef.Dataflow("right")
    flow.read(ef.generate(rate=100, keys=3)).key_by("key").stateful_map(numbered(1)).named("counts").write(ef.to_list([]))
    job = flow.run(config=ef.JobConfig(checkpoint=ef.CheckpointConfig(str(tmp_path / "checkpoints"))))
    job.savepoint(tmp_path / "savepoint", timeout="60s")
    job.cancel()
    job.wait("60s")
    errors = [
        ended(lambda s: s.map(lambda row: row), from_savepoint=tmp_path / "savepoint"),
        ended(lambda s: s.map(lambda row: row), from_savepoint=tmp_path / "nowhere"),
    ]
    assert "has state of `counts`, `generate`, and the flow has no such operator: name it with .named(...)" in str(errors[0])
    assert str(errors[1]).endswith("manifest is gone")
    for error in errors:
        assert isinstance(error, ef.FlowError)
        assert "\n" not in str(error)
