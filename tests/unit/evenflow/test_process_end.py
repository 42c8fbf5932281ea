"""Programs whose process ends while a job runs: nothing is lost silently, and the exit code tells how the job ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from patience import patience

pytestmark = pytest.mark.usefixtures("waiting_for_jobs")

SECONDS = 40
"""Less than the time after which a process whose jobs don't end is left."""


ENDLESS = """
import sys, threading, time
import evenflow as ef

read = threading.Event()

def numbers(partition, position):
    for n in range(position or 0, 50):
        yield {"key": "a", "n": n, "ts": n}, n + 1
    read.set()
    while True:
        yield None

def start(folder, name="endless"):
    flow = ef.Dataflow(name)
    rows = flow.read(ef.from_generator(numbers, event_time="ts", unit="s"))
    rows.key_by("key").window(ef.tumbling("20s")).aggregate(n=ef.count()).write(ef.write_parquet(folder + "/out"))
    config = ef.JobConfig(parallelism=1, checkpoint=ef.CheckpointConfig(folder + "/checkpoints"))
    return flow.run(runtime="local", config=config)
"""

BOUNDED = """
import sys
import evenflow as ef

def start(folder, function=lambda row: row):
    flow = ef.Dataflow("bounded")
    flow.read(ef.from_items([{"n": 1}, {"n": 2}])).map(function).write(ef.write_parquet(folder + "/out"))
    return flow.run(runtime="local", parallelism=1)
"""


def program(code: str, folder: Path, *flags: str) -> subprocess.Popen[str]:
    """Start the program, with its folder as `sys.argv[1]`."""
    path = folder / "program.py"
    path.write_text(textwrap.dedent(code))
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONSTARTUP"}
    words = [sys.executable, *flags, str(path), str(folder)]
    return subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


def ended(code: str, folder: Path, *flags: str) -> tuple[int, str, str]:
    """Run the program; return its exit code and its output on both streams."""
    with program(code, folder, *flags) as process:
        out, err = process.communicate(timeout=patience(SECONDS))
    return process.returncode, out, err


def interrupted(code: str, folder: Path, number: int) -> tuple[int, str, str]:
    """Send a signal to the program once it has printed "ready"; return its exit code and its later output on both streams."""
    with program(code, folder) as process:
        assert process.stdout is not None
        assert process.stdout.readline().strip() == "ready"
        process.send_signal(number)
        out, err = process.communicate(timeout=patience(SECONDS))
    return process.returncode, out, err


def counts(folder: Path) -> list[int]:
    return sorted(row["n"] for row in pq.read_table(folder / "out").to_pylist())


def test_program_without_wait_ends_when_its_job_has(tmp_path):
    goes_on_when_told = """
    told = threading.Event()

    class Stderr:
        def write(self, text):
            sys.__stderr__.write(text)
            told.set()

        def flush(self):
            sys.__stderr__.flush()

    sys.stderr = Stderr()

    def two(partition, position):
        while not told.is_set():
            yield None
        yield {"n": 1}, 1
        yield {"n": 2}, 2

    flow = ef.Dataflow("bounded")
    flow.read(ef.from_generator(two)).write(ef.write_parquet(sys.argv[1] + "/out"))
    flow.run(runtime="local", parallelism=1)
    """
    code, _, err = ended(ENDLESS + textwrap.dedent(goes_on_when_told), tmp_path)
    assert (code, err) == (0, "job `bounded` is still running: waiting for it to end; Ctrl-C cancels it\n")
    assert counts(tmp_path) == [1, 2]


@pytest.mark.slow
def test_program_that_has_waited_says_nothing(tmp_path):
    assert ended(BOUNDED + "start(sys.argv[1]).wait()", tmp_path) == (0, "", "")


@pytest.mark.slow
def test_program_without_wait_prints_the_error_of_its_job_and_does_not_exit_with_0(tmp_path):
    code, out, err = ended(BOUNDED + "import atexit; atexit.register(print, 'bye'); start(sys.argv[1], lambda row: row['m'])", tmp_path)
    assert (code, out) == (1, "bye\n")
    assert "RecordError: operator `map`" in err
    assert "KeyError: 'm'" in err


@pytest.mark.slow
def test_error_that_wait_has_raised_is_not_printed_again(tmp_path):
    tells = """
    try:
        start(sys.argv[1], lambda row: row['m']).wait()
    except ef.RecordError as error:
        print(type(error).__name__)
    """
    assert ended(BOUNDED + textwrap.dedent(tells), tmp_path) == (0, "RecordError\n", "")


@pytest.mark.slow
def test_error_that_ends_the_program_cancels_its_job(tmp_path):
    code, _, err = ended(ENDLESS + "start(sys.argv[1]); read.wait(); raise ValueError('mine')", tmp_path)
    assert code == 1
    assert "ValueError: mine" in err
    assert "job `endless` is cancelled: an error has ended the program" in err


@pytest.mark.slow
def test_interactive_session_cancels_its_job_at_its_end(tmp_path):
    code, _, err = ended(ENDLESS + "job = start(sys.argv[1]); read.wait()", tmp_path, "-i")
    assert code == 0
    assert "job `endless` is cancelled: this session ends" in err


@pytest.mark.slow
def test_ctrl_c_cancels_a_job_that_is_waited_for_at_the_end_of_the_program(tmp_path):
    with program(ENDLESS + "start(sys.argv[1])", tmp_path) as process:
        assert process.stderr is not None
        assert "job `endless` is still running: waiting for it to end; Ctrl-C cancels it" in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=patience(SECONDS))
    assert (process.returncode, err) == (130, "job `endless` is cancelled: Ctrl-C\n")


WAITS = {
    "in wait": "job = start(sys.argv[1]); read.wait(); print('ready', flush=True); job.wait(); print('not reached')",
    "elsewhere": "start(sys.argv[1]); read.wait(); print('ready', flush=True)\nwhile True: time.sleep(60)",
    "at the end": "start(sys.argv[1]); read.wait(); print('ready', flush=True)",
}


@pytest.mark.few(1)
@pytest.mark.parametrize("where", WAITS)
def test_sigterm_stops_the_job_in_order_wherever_the_program_is(where, tmp_path):
    code, out, err = interrupted(ENDLESS + WAITS[where], tmp_path, signal.SIGTERM)
    assert (code, out) == (0, ""), err
    assert "job `endless` is stopping because of a SIGTERM; another one cancels it" in err
    assert counts(tmp_path) == [20, 20], "a window that is open is not emitted"
    assert len(list((tmp_path / "checkpoints/endless").glob("checkpoint-*/manifest"))) >= 2


@pytest.mark.slow
def test_second_sigterm_cancels_a_job_that_does_not_stop_and_a_third_waits_no_longer(tmp_path):
    stuck = """
    runs, begun = threading.Event(), threading.Event()

    def one(partition, position):
        while not runs.is_set():
            yield None
        yield {"n": 1}, 1

    def stuck(row):
        begun.set()
        threading.Event().wait()

    flow = ef.Dataflow("stuck")
    flow.read(ef.from_generator(one)).map(stuck).write(ef.print())
    job = flow.run(runtime="local", parallelism=1)
    runs.set()
    begun.wait()
    print("ready", flush=True)
    job.wait()
    """
    with program(ENDLESS + textwrap.dedent(stuck), tmp_path) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline().strip() == "ready"
        for said in ("job `stuck` is stopping because of a SIGTERM", "job `stuck` is cancelled: it was to end at once"):
            process.send_signal(signal.SIGTERM)
            assert said in process.stderr.readline()
        process.send_signal(signal.SIGTERM)
        assert process.wait(patience(SECONDS)) == 143


@pytest.mark.slow
def test_handler_of_the_program_itself_is_left_alone(tmp_path):
    own = """
    import signal
    signal.signal(signal.SIGTERM, lambda *_: print("mine", flush=True) or job.stop())
    job = start(sys.argv[1]); read.wait(); print("ready", flush=True); job.wait(); print(job.status().state.value)
    """
    assert interrupted(ENDLESS + textwrap.dedent(own), tmp_path, signal.SIGTERM) == (0, "mine\nfinished\n", "")


@pytest.mark.slow
def test_sigterm_behind_the_end_of_a_job_ends_the_process_as_always(tmp_path):
    says = "start(sys.argv[1]).wait(); print('ready', flush=True)\nimport time; time.sleep(60)"
    assert interrupted(BOUNDED + says, tmp_path, signal.SIGTERM) == (-signal.SIGTERM, "", "")
