"""Jobs on Ray lose workers, their coordinator, or a step of the way: the output equals that of an undisturbed run.

The rows that a job read are delivered too: they must be the first ones of each source worker, each once, and all other output is
compared with a separate run of those rows.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from contextlib import contextmanager, suppress

import pyarrow.parquet as pq
import pytest
import ray
from comparing import assert_same
from patience import patience
from watching import PATIENCE, actor, actors, figures_of, pid, socket_folders, until

import evenflow as ef
from evenflow.cli import main
from evenflow.scheduler.protocol.effects import JobState
from evenflow.scheduler.protocol.reports import CheckpointState, MigrationState
from evenflow.testing.settings import changed

RATE = 1_000
JOBS = []
SOURCE = {"every": "50ms", "keys": 100, "zipf": 1.0, "string_keys": True, "max_delay": "500ms", "event_rate": 1_000.0}


@pytest.fixture(autouse=True)
def no_job_outlives_a_failed_test(nothing_outlives_its_test):
    yield
    while JOBS:
        JOBS.pop().cancel()


def build(name, source, folder, operators, sources=None):
    """Build a flow whose operators' results are lists, and Parquet files for those of the windows."""

    def number(state, row):  # inside, so that it travels to workers, which don't find this module
        n = (state or 0) + 1
        return n, {"key": row["key"], "n": n}

    flow, results = ef.Dataflow(name), {operator: [] for operator in ("rows", *operators)}
    rows = flow.read(source) if sources is None else flow.read(source).parallelism(sources)
    rows.write(ef.to_list(results["rows"], name="to_rows"))
    keyed = rows.key_by("key")
    if "numbered" in operators:
        keyed.stateful_map(number).named("numbered").write(ef.to_list(results["numbered"], name="to_numbered"))
    if "updates" in operators:
        updates = keyed.aggregate(n=ef.count(), total=ef.sum("value"), high=ef.max("seq"))
        updates.named("updates").write(ef.to_list(results["updates"], name="to_updates"))
    if "totals" in operators:
        totals = keyed.aggregate(emit="final", n=ef.count(), total=ef.sum("value"))
        totals.named("totals").write(ef.to_list(results["totals"], name="to_totals"))
    if "windows" in operators:
        windows = keyed.window(ef.tumbling("500ms")).aggregate(n=ef.count(), total=ef.sum("value"))
        windows.named("windows").write(ef.write_parquet(folder, name="to_windows"))
    return flow, results


def endless(name, tmp_path, operators, **config):
    flow, results = build(name, ef.generate(rate=RATE, **SOURCE), tmp_path / name, operators)
    settings = ef.JobConfig(
        parallelism=2,
        key_groups=16,
        checkpoint=ef.CheckpointConfig(str(tmp_path / "checkpoints"), interval="300ms"),
        restart=ef.RestartConfig(delay="10ms", most=1_000),  # a busy machine may keep a worker silent for longer than `heartbeat_timeout`
        metrics=ef.MetricsConfig(window="200ms"),
    )
    job = flow.run(config=changed(settings, **config))
    JOBS.append(job)
    return job, results


def goes_on(job, results):
    """Wait until rows are committed that it has not read yet."""
    before = max((row["seq"] for row in results["rows"]), default=-1)

    def news():
        assert not job.status().state.final, job.status().error
        return max((row["seq"] for row in results["rows"]), default=-1) > before + RATE / 4

    until(news, f"{job.name} commits new rows")


def stop_and_check(job, results, tmp_path):
    job.stop(drain=True)
    job.wait("60s")
    check(job.name, results, tmp_path)


def check(name, results, tmp_path, sources=2):
    """Compare with an undisturbed run of the same rows."""
    taken = sorted(row["seq"] for row in results["rows"])
    for source in range(sources):
        mine = [seq for seq in taken if seq % sources == source]
        assert mine == list(range(source, source + sources * len(mine), sources)), "each row once, none missing"
    operators = [operator for operator in results if operator != "rows"]
    folder = tmp_path / f"expected of {name}"
    flow, expected = build("expected", ef.from_items(results["rows"], event_time="ts", max_delay="500ms"), folder, operators)
    flow.run(runtime="local").wait("60s")
    if "windows" in operators:
        results["windows"], expected["windows"] = pq.read_table(tmp_path / name).to_pylist(), pq.read_table(folder).to_pylist()
    assert_same(results, expected)


def send(job, sign, *workers):
    """Send a signal to several workers at once; return their processes."""
    pids = [pid(job, worker) for worker in workers]
    for process in pids:
        os.kill(process, sign)
    return pids


@pytest.mark.first
def test_lost_workers_do_not_change_the_output(tmp_path):
    job, results = endless("bereaved", tmp_path, ("numbered", "updates", "windows"), worker={"heartbeat_timeout": patience(4)})
    goes_on(job, results)
    for workers in (["numbered-0"], ["generate-1", "updates-0", "windows-1"]):
        send(job, signal.SIGKILL, *workers)
        goes_on(job, results)
    send(job, signal.SIGKILL, "updates-1")
    until(lambda: job.status().state is JobState.RESTARTING, "it recovers")
    send(job, signal.SIGKILL, "generate-0")  # while it recovers
    goes_on(job, results)
    (stopped,) = send(job, signal.SIGSTOP, "windows-0")
    goes_on(job, results)
    with suppress(ProcessLookupError):
        os.kill(stopped, signal.SIGCONT)  # its further reports are of a finished attempt
    goes_on(job, results)
    stop_and_check(job, results, tmp_path)


def test_lost_worker_is_replaced_by_a_spare_that_the_job_keeps_without_being_asked(tmp_path):
    job, results = endless("careful", tmp_path, ("numbered",))
    until(lambda: job.status().spares == 1, "a spare is there")
    loaded = actor(job, "spare-0").__ray_call__
    until(lambda: ray.get(loaded.remote(lambda _: "fsspec" in sys.modules), timeout=PATIENCE), "it has loaded the library of checkpoints")
    send(job, signal.SIGKILL, "numbered-0")
    until(
        lambda: "careful/spare-0" in {place.process for place in job.status().places.values()},
        "the spare takes the place of the lost worker",
    )
    goes_on(job, results)
    stop_and_check(job, results, tmp_path)


def test_worker_lost_during_a_migration_and_the_strategy_restart_do_not_change_the_output(tmp_path):
    job, results = endless("moving", tmp_path, ("numbered", "windows"))
    goes_on(job, results)
    report = job.migrate("numbered", groups=range(16), to=1, strategy="restart")
    assert report.state is MigrationState.DONE
    assert report.groups >= 6
    goes_on(job, results)
    until(lambda: [f.rows_in_per_second > 0 for f in figures_of(job, "numbered")] == [False, True], "one worker has all keys")
    for strategy in ("fluid", "lazy"):
        number = job.migrate("numbered", groups=range(16), to=0, strategy=strategy, timeout=None).number
        send(job, signal.SIGKILL, "numbered-1")
        until(lambda number=number: job.migrations()[number].seconds is not None, "the migration has ended")
        goes_on(job, results)
        until(lambda: job.status().state is JobState.RUNNING, "it runs again")
        job.migrate("numbered", groups=range(16), to=1)
    stop_and_check(job, results, tmp_path)


@pytest.mark.nightly
def test_worker_lost_during_a_scaling_does_not_change_the_output(tmp_path):
    job, results = endless("growing", tmp_path, ("numbered", "windows"))
    goes_on(job, results)
    for workers, victim in ((3, "numbered-0"), (1, "windows-1")):
        before = len(job.scalings())
        job.scale("numbered", workers, timeout=None)
        send(job, signal.SIGKILL, victim)
        until(lambda before=before: job.scalings()[before].seconds is not None, "the scaling has ended, one way or the other")
        goes_on(job, results)
        job.scale("numbered", workers)
    stop_and_check(job, results, tmp_path)


@pytest.mark.first
def test_killed_coordinator_comes_back_and_the_job_goes_on(tmp_path):
    job, results = endless("headed", tmp_path, ("numbered", "windows"), parallelism=1)
    goes_on(job, results)
    os.kill(pid(job, "coordinator"), signal.SIGKILL)
    goes_on(job, results)
    job.stop(drain=True)
    job.wait("60s")
    check("headed", results, tmp_path, sources=1)


def test_changed_settings_hold_for_workers_and_a_coordinator_that_start_later(tmp_path, capsys):
    def logged(row):
        import logging

        logging.getLogger("prices").info("saw %d", row["seq"])
        return row

    flow, rows = ef.Dataflow("changing"), []
    flow.read(ef.generate(rate=RATE, name="numbers", **SOURCE)).map(logged).write(ef.to_list(rows))
    checkpoint, restart = ef.CheckpointConfig(str(tmp_path), interval="1h"), ef.RestartConfig(delay="10ms")
    job = flow.run(parallelism=1, config=ef.JobConfig(checkpoint=checkpoint, restart=restart))
    JOBS.append(job)

    def newest_logged():
        assert main(["logs", "changing", "numbers-0", "--lines", "20"]) == 0
        found = [int(line.split()[-1]) for line in capsys.readouterr().out.splitlines() if "INFO prices: saw" in line]
        return max(found, default=-1)

    assert (rows, newest_logged()) == ([], -1)
    wanted = {"checkpoint": ef.CheckpointConfig(interval="100ms"), "linger": "1ms", "log_level": "info"}
    changes = job.reconfigure(**wanted)
    assert [change.setting for change in changes] == ["checkpoint.interval", "linger", "log_level"]
    until(lambda: len(rows) > RATE and newest_logged() >= 0, "rows are committed and logged")
    os.kill(pid(job, "coordinator"), signal.SIGKILL)
    before = len(rows)
    until(lambda: len(rows) > before + RATE and newest_logged() > before + RATE, "rows are committed and logged after the loss")
    assert job.reconfigure(**wanted) == []
    job.stop(drain=True)
    job.wait("60s")
    assert sorted(row["seq"] for row in rows) == list(range(len(rows)))


def test_coordinator_of_a_job_with_a_large_plan_comes_back_too(tmp_path):
    table, rows = os.urandom(400_000), []
    flow = ef.Dataflow("large")
    flow.read(ef.generate(rate=RATE, **SOURCE)).map(lambda row: {"seq": row["seq"], "size": len(table)}).write(ef.to_list(rows))
    checkpoint = ef.CheckpointConfig(str(tmp_path), interval="100ms")
    job = flow.run(config=ef.JobConfig(checkpoint=checkpoint, restart=ef.RestartConfig(delay="10ms")))
    try:
        until(lambda: len(rows) > 3 * RATE, "rows are committed")
        for _ in range(4):
            ray.put(bytes(30 << 20))  # more than the object store has room for: unreferenced objects are evicted
        os.kill(pid(job, "coordinator"), signal.SIGKILL)
        before = len(rows)
        until(lambda: len(rows) > before + RATE, "rows are committed after the loss")
        job.stop(drain=True)
        job.wait("60s")
    finally:
        if not job.status().state.final:
            job.cancel()
    assert sorted(row["seq"] for row in rows) == list(range(len(rows)))
    assert {row["size"] for row in rows} == {400_000}


def test_sink_that_fails_once_is_retried(tmp_path):
    failed = tmp_path / "failed"

    class Flaky(type(ef.to_list([]))):
        def commit(self, checkpoint, committables):
            if checkpoint == 2 and not failed.exists():
                failed.touch()
                raise OSError("the disk is gone")
            return super().commit(checkpoint, committables)

    flow, results = build("flaky", ef.generate(rate=RATE, total=5 * RATE, **SOURCE), tmp_path / "flaky", ("numbered",))
    again = []
    flow.read(ef.generate(rate=RATE, total=5 * RATE, **SOURCE)).named("other").write(Flaky(again, "to_flaky"))
    flow.run(
        config=ef.JobConfig(
            checkpoint=ef.CheckpointConfig(str(tmp_path / "checkpoints"), interval="100ms"), restart=ef.RestartConfig(delay="10ms")
        )
    ).wait("60s")
    assert failed.exists()
    assert sorted(row["seq"] for row in again) == list(range(5 * RATE))
    check("flaky", results, tmp_path, sources=1)


def test_restarts_are_given_up_with_the_first_cause_and_a_refused_record_is_not_tried_again(tmp_path):
    tries = tmp_path / "tries"

    class Broken(type(ef.to_list([]))):
        def commit(self, checkpoint, committables):
            with tries.open("a") as file:
                print("commit", file=file)
            raise OSError(f"the disk is gone, {len(tries.read_text().split())}")

    def refuse(row):
        with tries.open("a") as file:
            print("record", file=file)
        raise ValueError(f"no {row['seq']}")

    config = ef.JobConfig(
        checkpoint=ef.CheckpointConfig(str(tmp_path), interval="100ms"), restart=ef.RestartConfig("fixed", delay="10ms", most=2)
    )
    flow = ef.Dataflow("broken")
    flow.read(ef.generate(rate=RATE)).write(Broken([], "to_broken"))
    with pytest.raises(ef.JobError, match="sink `to_broken` could not commit checkpoint 1: OSError: the disk is gone, 1"):
        flow.run(config=config).wait("60s")
    assert tries.read_text().split() == ["commit"] * 3
    flow = ef.Dataflow("refusing")
    flow.read(ef.generate(rate=RATE)).map(refuse).write(ef.to_list([]))
    with pytest.raises(ef.RecordError, match=r"(?s)operator `map`: .*no 0"):
        flow.run(config=config).wait("60s")
    assert tries.read_text().split()[3:] == ["record"]


def test_worker_that_is_stuck_in_a_users_function_is_replaced(tmp_path):
    begun = tmp_path / "begun"

    def stuck(row):
        import threading

        if not begun.exists():
            begun.touch()
            threading.Event().wait(300)
        return row

    flow, rows = ef.Dataflow("stuck"), []
    numbers = flow.read(ef.generate(rate=RATE, every="50ms", total=RATE // 4)).parallelism(2)
    numbers.map(stuck).named("slow").parallelism(1).write(ef.to_list(rows))
    job = flow.run(
        config=ef.JobConfig(restart=ef.RestartConfig(delay="10ms"), checkpoint=ef.CheckpointConfig(str(tmp_path / "checkpoints")))
    )
    until(begun.exists, "the function is stuck")
    send(job, signal.SIGKILL, "generate-1")
    job.wait("60s")
    assert sorted(row["seq"] for row in rows) == list(range(RATE // 4))


SCRIPT = """
import sys
import threading
import evenflow as ef

flow = ef.Dataflow("interrupted")
flow.read(ef.generate(rate=1000, every="50ms", keys=5)).key_by("key").aggregate(n=ef.count()).write(ef.to_list([]))
flow.run(config=ef.JobConfig(checkpoint=ef.CheckpointConfig(sys.argv[1], interval="100ms"), restart=ef.RestartConfig(delay="60s"))).wait()
"""


def test_ctrl_c_during_recovery_leaves_nothing_behind(cluster, folder, tmp_path):
    command = [sys.executable, "-W", "ignore", "-c", SCRIPT, str(tmp_path)]
    environment = os.environ | {"RAY_ADDRESS": cluster}
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True, start_new_session=True) as process:
        until(lambda: "interrupted/coordinator" in actors() or process.poll() is not None, "the job starts")
        job = ef.connect("interrupted")
        until(lambda: job.status().completed_checkpoints, "there is something to go back to")
        os.kill(pid(job, "aggregate-0"), signal.SIGKILL)
        until(lambda: job.status().state is JobState.RESTARTING, "it recovers")
        os.killpg(process.pid, signal.SIGINT)
        assert process.wait(PATIENCE) != 0
        assert "KeyboardInterrupt" in process.stderr.read()
    assert job.wait("60s").status().state is JobState.CANCELLED
    until(lambda: not actors(), "no actor is left")
    assert not socket_folders(folder)


def test_job_goes_on_from_a_savepoint_with_other_workers_and_on_another_runtime(tmp_path):
    source = {"rate": RATE, "total": 4 * RATE, **SOURCE}
    slow = ef.generate(**{**source, "rate": RATE / 8})  # it doesn't end before the savepoint
    flow, before = build("first", slow, tmp_path / "first", ("numbered", "totals"), sources=1)
    config = ef.JobConfig(parallelism=2, key_groups=16, checkpoint=ef.CheckpointConfig(str(tmp_path / "checkpoints"), interval=None))
    job = flow.run(config=config)
    until(lambda: sum(figures.rows_in for figures in job.metrics()) > RATE, "it has state")
    savepoint = job.savepoint(tmp_path / "savepoint")
    assert job.checkpoints()[0].keys > 50
    job.cancel()
    job.wait("60s")
    for runtime, options in (("ray", {"parallelism": 1, "key_groups": 64}), ("local", {"parallelism": 3, "key_groups": 16})):
        flow, after = build("second", ef.generate(**source), tmp_path / runtime, ("numbered", "totals"), sources=1)
        config = changed(ef.JobConfig(checkpoint=ef.CheckpointConfig(str(tmp_path / f"checkpoints on {runtime}"))), **options)
        flow.run(runtime=runtime, config=config, from_savepoint=savepoint).wait("60s")
        both = {operator: [*before[operator], *rows] for operator, rows in after.items()}
        assert len(both["rows"]) == 4 * RATE > len(after["rows"]) > 0
        check("second", both, tmp_path / runtime, sources=1)


def test_job_without_room_for_checkpoints_says_so_and_continues_until_too_many_have_failed(tmp_path):
    job, results = endless("crowded", tmp_path, ("numbered",), checkpoint={"tolerable_failures": 1_000, "interval": "100ms"})
    goes_on(job, results)
    in_the_way, moved = tmp_path / "checkpoints" / "crowded", tmp_path / "moved"
    in_the_way.rename(moved)
    in_the_way.touch()
    failed = until(lambda: [report for report in job.checkpoints() if report.state is CheckpointState.FAILED], "one has failed")
    assert "crowded" in (failed[0].problem or "")
    in_the_way.unlink()
    moved.rename(in_the_way)
    goes_on(job, results)
    stop_and_check(job, results, tmp_path)
    job, _ = endless("hopeless", tmp_path, ("numbered",), checkpoint={"tolerable_failures": 2, "interval": "100ms"})
    (tmp_path / "checkpoints" / "hopeless").rename(moved)
    (tmp_path / "checkpoints" / "hopeless").touch()
    with pytest.raises(ef.JobError, match=r"job `hopeless`: 3 checkpoints in a row have failed; the last, \d+: .*hopeless"):
        job.wait("60s")


@pytest.fixture
def small_disk(tmp_path):
    """Mount a folder with room for 4 MB, which needs root."""
    folder = tmp_path / "checkpoints"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4m", "evenflow", str(folder)], check=False, capture_output=True, text=True
    )
    if mounted.returncode:
        pytest.skip(f"this user may not mount a file system: {mounted.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


@contextmanager
def kept_full(disk):
    """Keep a disk full for the block: what a failed checkpoint gives back is taken again within milliseconds."""
    filler, over = disk / "filler", threading.Event()

    def fill():
        with filler.open("wb", buffering=0) as file:
            while not over.wait(0.005):
                with suppress(OSError):
                    while True:
                        file.write(bytes(4096))

    filling = threading.Thread(target=fill, daemon=True)
    filling.start()
    try:
        yield
    finally:
        over.set()
        filling.join()
        filler.unlink()


def test_disk_that_is_full_for_a_while_when_a_worker_or_the_coordinator_dies_changes_nothing(folder, tmp_path, small_disk):
    job, results = endless("full", tmp_path, ("numbered",), checkpoint={"tolerable_failures": 1_000, "interval": "100ms"})
    goes_on(job, results)
    for victim in ("numbered-0", "coordinator"):

        def is_said():
            return [report for report in job.checkpoints() if "No space left on device" in (report.problem or "")]

        with kept_full(small_disk):
            until(is_said, "it says that the disk is full")
            send(job, signal.SIGKILL, victim)
            if victim == "coordinator":  # the next one has to write that it has begun
                until(lambda: says_in_its_log(folder, "its coordinator was lost, and the next one can't continue yet"), "it waits for room")
            else:
                until(lambda: job.status().state is JobState.RUNNING, "it has gone back")
                until(is_said, "it says so still")
        goes_on(job, results)
    stop_and_check(job, results, tmp_path)


def says_in_its_log(folder, words):
    """Return True if a process of the cluster has logged these words. Logs that Ray renames meanwhile are read the next time."""
    for log in folder.glob("ray/session_latest/logs/worker-*.err"):
        with suppress(FileNotFoundError):
            if words in log.read_text(errors="replace"):
                return True
    return False


def test_damaged_checkpoints_are_skipped_for_the_previous_one(tmp_path):
    job, results = endless("damaged", tmp_path, ("totals",), checkpoint={"interval": None})
    until(lambda: job.status().state is JobState.RUNNING, "it runs")
    for _ in range(3):
        job.checkpoint()
    folder = tmp_path / "checkpoints" / "damaged"
    cut = max((folder / "checkpoint-00000003").glob("totals-*.state"))
    cut.write_bytes(cut.read_bytes()[:-1])
    flipped = max((folder / "checkpoint-00000002").glob("totals-*.state"))
    data = flipped.read_bytes()
    flipped.write_bytes(data[:-20] + bytes([data[-20] ^ 1]) + data[-19:])
    send(job, signal.SIGKILL, "totals-0")
    unreadable = until(lambda: [r for r in job.checkpoints() if r.state is CheckpointState.UNREADABLE][1:], "both are found out")
    assert "totals" in unreadable[0].problem
    before = len({row["seq"] for row in results["rows"]})

    def has_caught_up():
        return job.status().state is JobState.RUNNING and job.checkpoint() and len({row["seq"] for row in results["rows"]}) > before

    until(has_caught_up, "it runs again, and has read more than before")
    job.stop(drain=True)
    job.wait("60s")
    rows = {row["seq"]: row["key"] for row in results["rows"]}
    assert len(results["rows"]) == len(rows), "what was committed with the damaged ones was taken back before it came again"
    assert {row["key"]: row["n"] for row in results["totals"]} == Counter(rows.values())
