"""File sinks on S3: staged objects, copies whose replies are lost, an overloaded store, and one that denies."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import threading
from typing import Any

import fsspec
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from patience import patience
from s3_proxy import Fault

import evenflow as ef
from evenflow.connectors.files import remote_parts
from evenflow.connectors.files.upload import Upload
from evenflow.testing import check_sink

TOTAL = 60


def batch(rows: Any) -> ef.Batch:
    return ef.Batch(pa.RecordBatch.from_pylist(rows))


def begun(sink: Any) -> Any:
    sink.of_job("job", "out", "memory://ck")
    sink.start()
    sink.take_over("job memory://ck", list)
    return sink


def prepared(sink: Any, checkpoint: int, rows: Any) -> Any:
    writer = pickle.loads(pickle.dumps(sink)).writer(0, 1)
    writer.write(batch(rows))
    return writer.prepare(checkpoint)


def paths(url: str) -> list[str]:
    files = fsspec.filesystem("s3")
    files.invalidate_cache()
    return [path.removeprefix(url.removeprefix("s3://") + "/") for path in files.find(url)]


def numbers(url: str) -> list[int]:
    found = [f"{url.removeprefix('s3://')}/{path}" for path in paths(url) if not path.startswith("_")]
    return sorted(ds.dataset(found, filesystem=fsspec.filesystem("s3"), format="parquet").to_table()["n"].to_pylist()) if found else []


def copies(method: str, path: str) -> bool:
    return method == "PUT" and "/part-" in path


@pytest.mark.slow
@pytest.mark.parametrize("write", [ef.write_parquet, ef.write_csv, ef.write_json], ids=lambda write: write.__name__)
def test_sinks_on_s3_conform(write, s3, url):
    made = 0

    def begin():
        nonlocal made
        made += 1
        here = f"{url}/{made}"

        def read():
            found = [f"{here.removeprefix('s3://')}/{path}" for path in paths(here) if not path.startswith("_")]
            kind = write.__name__.removeprefix("write_")
            return ds.dataset(found, filesystem=fsspec.filesystem("s3"), format=kind).to_table(columns=["n"]).to_pylist() if found else []

        return write(here), read

    check_sink(begin, seeds=range(3))


@pytest.mark.few(1)
@pytest.mark.parametrize("kind", ["lost", "overloaded", "cut"])
def test_copy_whose_reply_is_lost_or_that_is_refused_for_now_is_made_once(kind, s3, url):
    sink = begun(ef.write_parquet(url))
    parts = prepared(sink, 1, [{"n": 1}])
    s3.fault = Fault(kind, copies, times=1)
    sink.commit(1, parts)
    assert s3.fault.met
    assert numbers(url) == [1]


@pytest.mark.slow
def test_commit_that_no_reply_reaches_is_completed_by_another_process(s3, url):
    sink = begun(ef.write_parquet(url))
    parts = [*prepared(sink, 1, [{"n": 1}]), *prepared(sink, 1, [{"n": 2}])]
    s3.fault = Fault("lost", copies)
    with pytest.raises(ef.ConnectorError, match=rf"operator `write_parquet`: checkpoint 1 can't be committed in {url}: .*part-00000001-"):
        sink.commit(1, parts)
    s3.fault = Fault("none", times=0)
    pickle.loads(pickle.dumps(sink)).commit(1, parts)
    assert numbers(url) == [1, 2]
    sink.stop()
    assert all(path.startswith("part-") for path in paths(url))


@pytest.mark.slow
def test_store_that_denies_is_named_at_the_start_and_at_a_commit(s3, url):
    s3.fault = Fault("denied", lambda method, path: method == "PUT")
    with pytest.raises(ef.ConnectorError, match=rf"operator `write_csv`: {url} can't be used as a folder: .*\.probe: PermissionError"):
        ef.write_csv(url).start()
    s3.fault = Fault("none", times=0)
    sink = begun(ef.write_csv(url))
    parts = prepared(sink, 1, [{"n": 1}])
    s3.fault = Fault("denied", copies)
    with pytest.raises(ef.ConnectorError, match=rf"checkpoint 1 can't be committed in {url}: .*PermissionError"):
        sink.commit(1, parts)
    s3.fault = Fault("denied", lambda method, path: method == "PUT")
    with pytest.raises(ef.ConnectorError, match=rf"operator `write_csv`: can't write into {url}: .*PermissionError"):
        prepared(sink, 2, [{"n": 2}])


def test_bucket_that_is_not_there_is_named_at_the_start(s3):
    with pytest.raises(ef.ConnectorError, match=r"operator `write_json`: s3://nowhere/out can't be used as a folder: .*bucket"):
        ef.write_json("s3://nowhere/out").start()


def test_part_of_several_pieces_is_whole_and_one_that_is_dropped_leaves_nothing(s3, url):
    files = fsspec.filesystem("s3")
    for number, ends in enumerate(("finish", "drop")):
        upload = Upload(files.open(f"{url}/{number}", "wb", block_size=5 << 20), url)
        for _ in range(12):
            upload.write(b"x" * (1 << 20))
        getattr(upload, ends)()
    assert paths(url) == ["0"]
    assert files.info(f"{url}/0")["size"] == 12 << 20
    assert files.list_multipart_uploads(url.split("/")[2]) == []


def test_partition_values_with_signs_of_paths_come_back_from_s3(s3, url):
    values = ["a/b", "50%", "a b+c", "\u00e9=?#", None]
    sink = begun(ef.write_parquet(url, partition_by="k"))
    sink.commit(1, prepared(sink, 1, [{"k": value, "n": n} for n, value in enumerate(values)]))
    table = ds.dataset(url.removeprefix("s3://"), filesystem=fsspec.filesystem("s3"), partitioning="hive", format="parquet").to_table()
    assert {row["n"]: row["k"] for row in table.to_pylist()} == dict(enumerate(values))


@pytest.mark.slow
def test_requests_of_a_commit_grow_with_its_parts_and_not_with_the_folder(s3, url, monkeypatch):
    monkeypatch.setattr(remote_parts, "REQUESTS", 1)
    sink = begun(ef.write_parquet(url))
    counts = []
    for checkpoint in range(1, 4):
        parts = [part for n in range(4) for part in prepared(sink, checkpoint, [{"n": n}])]
        s3.fault = Fault("counted")
        sink.commit(checkpoint, parts)
        counts.append([request.split()[0] for request in s3.fault.met])
        s3.fault = Fault("none", times=0)
    assert counts[0] == counts[1] == counts[2]
    assert {method: counts[0].count(method) for method in ("PUT", "POST")} == {"PUT": 4, "POST": 1}


class Gate:
    """A source of numbers: those from the middle on wait until the gate is open."""

    def __init__(self) -> None:
        self.open, self.reached = threading.Event(), threading.Event()

    def __call__(self, partition: int, position: Any) -> Any:
        for n in range(position or 0, TOTAL):
            while n >= TOTAL // 2 and not self.open.is_set():
                self.reached.set()
                yield None
            yield {"n": n, "k": n % 3}, n + 1


def run(url: str, gate: Gate, **options: Any) -> Any:
    flow = ef.Dataflow("jobs")
    flow.read(ef.from_generator(gate, poll_every="1ms")).write(ef.write_parquet(f"{url}/out", partition_by="k"))
    checkpoint = ef.CheckpointConfig(f"{url}/ck", interval="50ms", tolerable_failures=1000)
    config = ef.JobConfig(checkpoint=checkpoint, restart=ef.RestartConfig("fixed", delay="10ms", most=1000))
    return flow.run(runtime="local", config=config, **options)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["overloaded", "cut", "lost", "denied"])
def test_job_whose_store_fails_for_a_while_goes_on_and_its_rows_are_exact(kind, s3, url):
    gate = Gate()
    job = run(url, gate)
    assert gate.reached.wait(patience(30))
    s3.fault = Fault(kind, lambda method, path: "/out/" in path and method in ("PUT", "POST"), times=12)
    gate.open.set()
    job.wait("120s")
    assert s3.fault.met
    assert numbers(f"{url}/out") == list(range(TOTAL))
    assert not [path for path in paths(f"{url}/out") if path.startswith("_")]


@pytest.mark.slow
def test_job_that_is_ended_before_a_commit_is_resumed_with_exact_rows(s3, url):
    gate = Gate()
    job = run(url, gate)
    assert gate.reached.wait(patience(30))
    s3.fault = Fault("overloaded", lambda method, path: copies(method, path) or "delete" in path)
    gate.open.set()
    for _ in range(int(patience(60) / 0.05)):
        if s3.fault.met:
            break
        threading.Event().wait(0.05)
    assert s3.fault.met, "a commit is refused"
    job.cancel()
    job.wait("60s")
    s3.fault = Fault("none", times=0)
    again = Gate()
    again.open.set()
    run(url, again, resume="required").wait("120s")
    assert numbers(f"{url}/out") == list(range(TOTAL))
    assert not [path for path in paths(f"{url}/out") if path.startswith("_")]


PROGRAM = """
import sys
import evenflow as ef

def numbers(partition, position):
    for n in range(position or 0, 30):
        yield {"n": n, "k": n % 3}, n + 1
    while True:
        yield None

url = sys.argv[1]
flow = ef.Dataflow("jobs")
flow.read(ef.from_generator(numbers, poll_every="1ms")).write(ef.write_parquet(f"{url}/out", partition_by="k"))
checkpoint = ef.CheckpointConfig(f"{url}/ck", interval="50ms", tolerable_failures=1000)
config = ef.JobConfig(checkpoint=checkpoint, restart=ef.RestartConfig("fixed", delay="10ms", most=1000))
flow.run(runtime="local", config=config).wait()
"""


@pytest.mark.slow
def test_program_that_is_killed_between_prepare_and_commit_is_resumed_with_exact_rows(s3, url):
    s3.fault = Fault("cut", copies)
    options = json.dumps({**fsspec.config.conf["s3"], "config_kwargs": {"retries": {"max_attempts": 1, "mode": "standard"}}})
    with subprocess.Popen([sys.executable, "-c", PROGRAM, url], env={**os.environ, "FSSPEC_S3": options}) as program:
        for _ in range(int(patience(60) / 0.05)):
            if s3.fault.met or program.poll() is not None:
                break
            threading.Event().wait(0.05)
        program.kill()
    assert s3.fault.met, "a commit has begun"
    s3.fault = Fault("none", times=0)
    assert [path for path in paths(f"{url}/out") if path.endswith(".staged")]
    assert numbers(f"{url}/out") == []
    gate = Gate()
    gate.open.set()
    run(url, gate, resume="required", takeover=True).wait("120s")
    assert numbers(f"{url}/out") == list(range(TOTAL))
    assert not [path for path in paths(f"{url}/out") if path.startswith("_")]
