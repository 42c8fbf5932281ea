"""Programs that are started again: after a kill, a failure, a cancel, an end; with the same flow and with changed ones."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from fsspec.implementations.memory import MemoryFileSystem
from patience import patience

import evenflow as ef
from evenflow.scheduler.record.restoring.run_claim import Owner, RunClaim
from evenflow.state.store import CheckpointStore

pytestmark = pytest.mark.usefixtures("waiting_for_jobs")

NAME = "service"
TOTAL = 40

PROGRAM = """
import sys, evenflow as ef
folder = sys.argv[1]

def numbers(partition, position):
    begin = position or 0
    for n in range(begin, begin + 50):
        yield {"n": n}, n + 1
    while True:
        yield None

flow = ef.Dataflow("service")
flow.read(ef.from_generator(numbers)).write(ef.write_parquet(folder + "/out"))
config = ef.JobConfig(checkpoint=ef.CheckpointConfig(folder + "/ck", interval="100ms"))
job = flow.run(runtime="local", config=config)
print(job.checkpoint().number, flush=True)
job.wait()
"""
"""An unbounded job, which is killed."""


class Gate:
    """A source of numbers: those below `until` come at once, the others once the gate is open."""

    def __init__(self, until=TOTAL // 2):
        self.until, self.open, self.reached = until, threading.Event(), threading.Event()

    def __call__(self, partition, position):
        for n in range(position or 0, TOTAL):
            while n >= self.until and not self.open.is_set():
                self.reached.set()
                yield None
            yield {"n": n, "key": n % 4}, n + 1


def opened():
    gate = Gate()
    gate.open.set()
    return gate


def settings(folder, **more):
    checkpoint = {"interval": "10ms", **more}
    return ef.JobConfig(checkpoint=ef.CheckpointConfig(str(folder), **checkpoint), network=ef.NetworkConfig(source_rows=3, linger=0))


def source(numbers):
    return ef.from_generator(numbers, poll_every="1ms")


def flow_of(numbers, sink, name=NAME):
    flow = ef.Dataflow(name)
    flow.read(source(numbers)).write(sink)
    return flow


def counting(numbers, sink):
    """Build a flow that keeps a running count for each key."""
    flow = ef.Dataflow(NAME)
    rows = flow.read(source(numbers)).key_by("key")
    rows.stateful_map(lambda seen, row: ((seen or 0) + 1, {"n": row["n"], "seen": (seen or 0) + 1})).named("seen").write(sink)
    return flow


def run(flow, folder, config=None, **options):
    return flow.run(runtime="local", config=config if config is not None else settings(folder), **options)


def numbers_in(out):
    return sorted(pq.read_table(out)["n"].to_pylist())


def checkpoints(folder, name=NAME):
    return sorted(path.name for path in Path(folder, name).glob("checkpoint-*"))


def midway(made, sink, folder, gate=None, **options):
    """Start a job that has committed the numbers below its gate, and waits there."""
    gate = gate if gate is not None else Gate()
    job = run(made(gate, sink), folder, **options)
    assert gate.reached.wait(patience(30))
    job.checkpoint()
    return job


def cancelled_midway(made, sink, folder, gate=None):
    job = midway(made, sink, folder, gate)
    job.cancel()
    job.wait("30s")


def test_service_that_is_killed_and_started_again_continues_into_the_same_folder(tmp_path):
    Path(tmp_path, "program.py").write_text(PROGRAM)
    began = []
    for _ in range(2):
        process = subprocess.Popen(
            [sys.executable, str(tmp_path / "program.py"), str(tmp_path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        began.append(int(process.stdout.readline()))
        os.kill(process.pid, signal.SIGKILL)
        said = process.communicate()[1]
        assert ("continues its run from checkpoint" in said) == (len(began) > 1), said
    rows = numbers_in(tmp_path / "out")
    assert rows == list(range(len(rows)))
    assert began == sorted(set(began)), "checkpoints are numbered on"


def test_cancelled_program_continues_exactly_once(tmp_path):
    sink = ef.write_parquet(tmp_path / "out")
    cancelled_midway(flow_of, sink, tmp_path / "ck")
    assert numbers_in(tmp_path / "out") == list(range(TOTAL // 2))
    run(flow_of(opened(), ef.write_parquet(tmp_path / "out")), tmp_path / "ck").wait("30s")
    assert numbers_in(tmp_path / "out") == list(range(TOTAL))


def test_line_of_the_log_says_from_which_checkpoint_and_position_it_continues(tmp_path, caplog):
    cancelled_midway(flow_of, ef.write_parquet(tmp_path / "out"), tmp_path / "ck")
    run(flow_of(opened(), ef.write_parquet(tmp_path / "out")), tmp_path / "ck").wait("30s")
    (line,) = [record.getMessage() for record in caplog.records if "continues" in record.getMessage()]
    assert line.startswith("job `service` continues its run from checkpoint ")
    assert f"s old, in {tmp_path}/ck/service (from_generator at " in line


def test_list_of_the_process_gets_each_row_once(tmp_path):
    rows = []
    cancelled_midway(flow_of, ef.to_list(rows), tmp_path / "ck")
    run(flow_of(opened(), ef.to_list(rows)), tmp_path / "ck").wait("30s")
    assert sorted(row["n"] for row in rows) == list(range(TOTAL))


def test_state_of_keys_continues_on_another_number_of_workers(tmp_path):
    cancelled_midway(counting, ef.write_parquet(tmp_path / "out"), tmp_path / "ck")
    run(counting(opened(), ef.write_parquet(tmp_path / "out")), tmp_path / "ck", parallelism=3).wait("30s")
    seen = {row["n"]: row["seen"] for row in pq.read_table(tmp_path / "out").to_pylist()}
    assert seen == {n: n // 4 + 1 for n in range(TOTAL)}
    assert pq.read_table(tmp_path / "out").num_rows == TOTAL


def test_program_that_failed_continues_once_it_is_mended(tmp_path):
    def refuse(row):
        if row["n"] == TOTAL - 5:
            raise ValueError("not yet")
        return row

    def made(function, numbers):
        flow = ef.Dataflow(NAME)
        flow.read(source(numbers)).map(function).write(ef.write_parquet(tmp_path / "out"))
        return flow

    gate = Gate()
    job = midway(lambda numbers, _: made(refuse, numbers), None, tmp_path / "ck", gate)
    gate.open.set()
    with pytest.raises(ef.RecordError, match="not yet"):
        job.wait("30s")
    run(made(lambda row: row, opened()), tmp_path / "ck").wait("30s")
    assert numbers_in(tmp_path / "out") == list(range(TOTAL))


def test_program_that_died_between_its_last_checkpoint_and_its_commit_only_commits(tmp_path):
    run(flow_of(opened(), ef.write_parquet(tmp_path / "out")), tmp_path / "ck").wait("30s")
    (tmp_path / "ck" / NAME / "terms" / "00000001.ended").unlink()
    run(flow_of(opened(), ef.write_parquet(tmp_path / "out")), tmp_path / "ck").wait("30s")
    assert numbers_in(tmp_path / "out") == list(range(TOTAL))


@pytest.mark.parametrize("harm", [lambda manifest: manifest.write_bytes(b"cut"), Path.unlink], ids=["damaged", "deleted"])
def test_rows_behind_a_checkpoint_that_is_lost_meanwhile_are_removed_and_come_again(tmp_path, harm):
    job = midway(flow_of, ef.write_parquet(tmp_path / "out"), tmp_path / "ck")
    job.checkpoint()
    job.cancel()
    job.wait("30s")
    newest = max((tmp_path / "ck" / NAME).glob("checkpoint-*/manifest"))
    harm(newest)
    run(flow_of(opened(), ef.write_parquet(tmp_path / "out")), tmp_path / "ck").wait("30s")
    assert numbers_in(tmp_path / "out") == list(range(TOTAL))


def test_program_whose_sources_ended_starts_over_and_its_folder_is_refused_as_before(tmp_path):
    run(flow_of(opened(), ef.write_parquet(tmp_path / "out")), tmp_path / "ck").wait("30s")
    kept = checkpoints(tmp_path / "ck")
    with pytest.raises(ef.ConnectorError, match="out is not empty; choose another folder, or say overwrite=True or append=True"):
        run(flow_of(opened(), ef.write_parquet(tmp_path / "out")), tmp_path / "ck")
    run(flow_of(opened(), ef.write_parquet(tmp_path / "out", append=True)), tmp_path / "ck").wait("30s")
    assert numbers_in(tmp_path / "out") == sorted([*range(TOTAL), *range(TOTAL)])
    assert set(kept) < set(checkpoints(tmp_path / "ck")), "the first run's checkpoints are there"


def csv_numbers(out):
    return [int(line.split(",")[0]) for file in out.glob("part-*.csv") for line in file.read_text().splitlines()[1:]]


def json_numbers(out):
    return [json.loads(line)["n"] for file in out.glob("part-*.json*") for line in file.read_text().splitlines()]


def delta_numbers(out):
    return pa.table(DeltaTable(out).to_pyarrow_table())["n"].to_pylist()


def sql_numbers(out):
    with closing(sqlite3.connect(out / "rows.db")) as database:
        return [n for (n,) in database.execute("SELECT n FROM numbers")]


def sql_sink(out):
    out.mkdir(exist_ok=True)
    with closing(sqlite3.connect(out / "rows.db")) as database:
        database.execute("CREATE TABLE IF NOT EXISTS numbers (n INTEGER, key INTEGER)")
        database.commit()
    return ef.write_sql(f"sqlite:///{out}/rows.db", "numbers")


@pytest.mark.parametrize(
    ("sink", "read"),
    [(ef.write_csv, csv_numbers), (ef.write_json, json_numbers), (ef.write_delta, delta_numbers), (sql_sink, sql_numbers)],
    ids=["csv", "json", "delta", "sql"],
)
def test_program_continues_once_into_every_kind_of_sink(tmp_path, sink, read):
    out = tmp_path / "out"
    cancelled_midway(flow_of, sink(out), tmp_path / "ck")
    assert sorted(read(out)) == list(range(TOTAL // 2))
    run(flow_of(opened(), sink(out)), tmp_path / "ck").wait("30s")
    assert sorted(read(out)) == list(range(TOTAL))


def test_overwriting_program_that_continues_keeps_its_own_rows(tmp_path):
    sink = ef.write_parquet(tmp_path / "out", overwrite=True)
    cancelled_midway(flow_of, sink, tmp_path / "ck")
    run(flow_of(opened(), ef.write_parquet(tmp_path / "out", overwrite=True)), tmp_path / "ck").wait("30s")
    assert numbers_in(tmp_path / "out") == list(range(TOTAL))


def test_discarded_run_is_not_continued(tmp_path):
    job = midway(flow_of, ef.write_parquet(tmp_path / "out"), tmp_path / "ck")
    job.cancel(discard=True)
    job.wait("30s")
    run(flow_of(opened(), ef.write_parquet(tmp_path / "again")), tmp_path / "ck").wait("30s")
    assert numbers_in(tmp_path / "again") == list(range(TOTAL))


def test_never_begins_a_new_run_and_leaves_the_checkpoints_of_the_other(tmp_path):
    cancelled_midway(flow_of, ef.write_parquet(tmp_path / "out"), tmp_path / "ck")
    before = checkpoints(tmp_path / "ck")
    with pytest.raises(ef.ConnectorError, match="is not empty"):
        run(flow_of(opened(), ef.write_parquet(tmp_path / "out")), tmp_path / "ck", resume="never")
    job = midway(flow_of, ef.write_parquet(tmp_path / "other"), tmp_path / "ck", resume="never")
    for _ in range(5):
        job.checkpoint()
    job.cancel()
    job.wait("30s")
    assert set(before) < set(checkpoints(tmp_path / "ck"))
    assert (tmp_path / "ck" / NAME / before[-1] / "manifest").exists()


def test_start_that_was_refused_does_not_hide_the_unfinished_run(tmp_path):
    cancelled_midway(flow_of, ef.write_parquet(tmp_path / "out"), tmp_path / "ck")
    with pytest.raises(ef.ConnectorError, match="is not empty"):
        run(flow_of(opened(), ef.write_parquet(tmp_path / "out")), tmp_path / "ck", resume="never")
    run(flow_of(opened(), ef.write_parquet(tmp_path / "out")), tmp_path / "ck").wait("30s")
    assert numbers_in(tmp_path / "out") == list(range(TOTAL))


def test_required_raises_if_there_is_nothing_to_continue(tmp_path):
    flow = flow_of(opened(), ef.to_list([]))
    with pytest.raises(
        ef.RequestError, match=r'there is no unfinished run in .*ck/service that has a complete checkpoint, and resume="required"'
    ):
        run(flow, tmp_path / "ck", resume="required")
    run(flow, tmp_path / "ck").wait("30s")
    with pytest.raises(ef.RequestError, match="there is no unfinished run"):
        run(flow, tmp_path / "ck", resume="required")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"resume": "always"}, "resume='always': expected one of 'auto', 'required', 'never'"),
        ({"resume": "required"}, r'resume="required" continues from a checkpoint: give the folder'),
        ({"resume": "required", "from_savepoint": "there", "config": "saving"}, "choose one of them"),
    ],
)
def test_wishes_that_can_not_be_met_are_refused(tmp_path, options, says):
    config = settings(tmp_path) if options.pop("config", None) else ef.JobConfig()
    with pytest.raises(ef.FlowError, match=says):
        flow_of(opened(), ef.to_list([])).run(runtime="local", config=config, **options)


def test_savepoint_that_is_given_wins_over_the_unfinished_run(tmp_path):
    rows = []
    job = midway(flow_of, ef.to_list([]), tmp_path / "ck")
    savepoint = job.savepoint(tmp_path / "savepoint")
    job.cancel()
    job.wait("30s")
    cancelled_midway(flow_of, ef.to_list([]), tmp_path / "ck", Gate(until=TOTAL // 2 + 5))
    run(flow_of(opened(), ef.to_list(rows)), tmp_path / "ck", from_savepoint=savepoint).wait("30s")
    assert max(row["n"] for row in rows) == TOTAL - 1
    assert min(row["n"] for row in rows) <= TOTAL // 2


def test_flow_without_the_operator_whose_state_is_saved_is_refused(tmp_path):
    cancelled_midway(counting, ef.to_list([]), tmp_path / "ck")
    with pytest.raises(
        ef.FlowError, match=r"begin from its unfinished run in .*ck/service: it has state of .*`seen`, and the flow has no such operator"
    ):
        run(flow_of(opened(), ef.to_list([]), NAME), tmp_path / "ck")
    rows = []
    run(flow_of(opened(), ef.to_list(rows), NAME), tmp_path / "ck", allow_lost_state=True).wait("30s")
    assert rows


def test_source_that_was_lost_with_its_process_is_refused(tmp_path):
    """`from_spark` without a path is such a source: its positions mean nothing in another process."""
    cancelled_midway(flow_of, ef.to_list([]), tmp_path / "ck")
    lost = source(opened())
    lost.lost_with_process = "the temporary folder that Spark writes into: give path="
    flow = ef.Dataflow(NAME)
    flow.read(lost).write(ef.to_list([]))
    with pytest.raises(
        ef.FlowError, match=r"can't continue .*: source `from_generator` has lost the temporary folder .* give path=; or .*never"
    ):
        run(flow, tmp_path / "ck")
    run(flow, tmp_path / "ck", resume="never").wait("30s")


def test_program_continues_from_a_url(tmp_path):
    url = f"memory://{tmp_path.name}/ck"
    cancelled_midway(flow_of, ef.write_parquet(tmp_path / "out"), url)
    run(flow_of(opened(), ef.write_parquet(tmp_path / "out")), url).wait("30s")
    assert numbers_in(tmp_path / "out") == list(range(TOTAL))


def test_second_start_is_refused_with_who_runs_the_job(tmp_path):
    gate = Gate()
    job = run(flow_of(gate, ef.write_parquet(tmp_path / "out")), tmp_path / "ck")
    says = rf"job `service` is already running: process {os.getpid()} on .*, since .* UTC; its last sign of life .*takeover=True"
    with pytest.raises(ef.RequestError, match=says):
        run(flow_of(gate, ef.write_parquet(tmp_path / "other")), tmp_path / "ck")
    gate.open.set()
    job.wait("30s")
    assert numbers_in(tmp_path / "out") == list(range(TOTAL))


def test_run_that_is_taken_over_ends_with_who_did_it_and_commits_nothing_more(tmp_path):
    first = midway(flow_of, ef.write_parquet(tmp_path / "out"), tmp_path / "ck")
    second = run(flow_of(opened(), ef.write_parquet(tmp_path / "out")), tmp_path / "ck", takeover=True)
    with pytest.raises(ef.JobFailedError, match=rf"process {os.getpid()} on .*has taken this job over: this process has lost it"):
        first.wait("30s")
    second.wait("30s")
    assert numbers_in(tmp_path / "out") == list(range(TOTAL))


def test_two_starts_in_one_moment_are_one_run(tmp_path):
    begun, refused = [], []

    def start():
        try:
            begun.append(run(flow_of(Gate(), ef.to_list([])), tmp_path / "ck"))
        except ef.RequestError as error:
            refused.append(str(error))

    threads = [threading.Thread(target=start) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(patience(30))
    assert (len(begun), len(refused)) == (1, 3)
    begun[0].cancel()
    begun[0].wait("30s")


def as_on_another_host(folder, **owner):
    """Change the newest claim into one of a process on another host, which has not said that it ended."""
    store = CheckpointStore(str(folder / NAME))
    term = store.claims()[-1]
    claim = json.loads(store.claim_of(term))
    claim["owner"].update({"host": "another", "machine": "another", **owner})
    path = folder / NAME / "terms" / f"{term:08d}"
    path.write_bytes(json.dumps(claim).encode())
    path.with_name(f"{path.name}.ended").unlink()
    return store, term


def test_run_whose_machine_was_lost_is_continued_once_it_has_been_silent(tmp_path, monkeypatch):
    cancelled_midway(flow_of, ef.write_parquet(tmp_path / "out"), tmp_path / "ck")
    as_on_another_host(tmp_path / "ck")
    looks = []
    monkeypatch.setattr(threading.Event, "wait", quick(looks))
    run(flow_of(opened(), ef.write_parquet(tmp_path / "out")), tmp_path / "ck").wait("30s")
    assert looks.count(1.0) == 20, "seconds without a sign of life"
    assert numbers_in(tmp_path / "out") == list(range(TOTAL))


def test_run_of_another_host_that_gives_a_sign_is_refused(tmp_path, monkeypatch):
    cancelled_midway(flow_of, ef.write_parquet(tmp_path / "out"), tmp_path / "ck")
    store, term = as_on_another_host(tmp_path / "ck", cluster="10.0.0.7:6379")
    looks = []
    monkeypatch.setattr(threading.Event, "wait", quick(looks, lambda: store.note(term, "beat", b"[7, 1.0]")))
    with pytest.raises(ef.RequestError, match=r"is already running: process \d+ on another, since .*, on the Ray cluster 10.0.0.7:6379"):
        run(flow_of(opened(), ef.write_parquet(tmp_path / "out")), tmp_path / "ck")
    assert looks.count(1.0) == 1


def quick(looks, happens=lambda: None):
    """Return a wait for events that skips the wait for a sign of life, and notes it in `looks`."""
    wait = threading.Event.wait

    def waited(event, timeout=None):
        if timeout != 1.0:
            return wait(event, timeout)
        looks.append(timeout)
        happens()
        return False

    return waited


def test_claim_of_a_process_of_this_machine_that_is_gone_is_taken_at_once(tmp_path):
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    cancelled_midway(flow_of, ef.write_parquet(tmp_path / "out"), tmp_path / "ck")
    store = CheckpointStore(str(tmp_path / "ck" / NAME))
    owner = RunClaim.from_bytes(1, store.claim_of(1)).owner
    as_on_another_host(tmp_path / "ck", host=owner.host, machine=owner.machine, pid=process.pid)
    run(flow_of(opened(), ef.write_parquet(tmp_path / "out")), tmp_path / "ck").wait("30s")
    assert numbers_in(tmp_path / "out") == list(range(TOTAL))


class Careless(MemoryFileSystem):
    """An object store that replaces what it was asked to create only if there is none."""

    protocol = "careless"
    store: dict = {}  # noqa: RUF012 -- as its base class has it
    pseudo_dirs = [""]  # noqa: RUF012

    def pipe_file(self, path, value, mode="overwrite", **options):
        super().pipe_file(path, value, mode="overwrite", **options)


def test_store_that_ignores_the_create_only_condition_is_refused(tmp_path):
    fsspec.register_implementation("careless", Careless, clobber=True)
    with pytest.raises(ef.StateError, match=r"careless://.*: this store replaces an object .*If-None-Match.*use one that honours it"):
        run(flow_of(opened(), ef.to_list([])), f"careless://{tmp_path.name}")
    assert not [path for path in Careless.store if "check-" in path], "nothing is left of the check"


def test_names_of_owners_are_read_by_people():
    assert str(Owner("a", "m", 7, "1", 0.0, detached=True)) == "a detached job that process 7 on a started, since 1970-01-01 00:00:00 UTC"
