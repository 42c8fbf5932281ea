"""File sinks on object stores: staged objects, copies whose replies are lost, an overloaded store, and one that denies."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import threading
from collections import Counter
from typing import Any

import fsspec
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from every_store import every_store, on_azure
from patience import patience
from store_proxy import Fault
from store_requests import Request
from store_servers import options_of

import evenflow as ef
from evenflow.connectors.files import copies, remote_parts
from evenflow.connectors.files.upload import Upload
from evenflow.testing import check_sink

TOTAL = 60
DENIED = "(PermissionError|HttpResponseError|RuntimeError|OSError: Forbidden)"
"""The errors of the file systems for status 403."""


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
    files, root = fsspec.core.url_to_fs(url)
    files.invalidate_cache()
    return [path.removeprefix(f"{root}/") for path in files.find(url)]


def numbers(url: str) -> list[int]:
    return sorted(row["n"] for row in rows_of(url, "parquet"))


def rows_of(url: str, kind: str) -> list[dict[str, Any]]:
    files, root = fsspec.core.url_to_fs(url)
    found = [f"{root}/{path}" for path in paths(url) if not path.startswith("_")]
    return ds.dataset(found, filesystem=files, format=kind).to_table(columns=["n"]).to_pylist() if found else []


def is_copy(request: Request) -> bool:
    return request.kind == "copy" and "/part-" in request.name


def writes(request: Request) -> bool:
    return request.kind in ("create", "piece", "copy")


@pytest.mark.slow
@pytest.mark.parametrize("write", [ef.write_parquet, ef.write_csv, ef.write_json], ids=lambda write: write.__name__)
@every_store
def test_sinks_on_object_stores_conform(write, store, url):
    made = 0

    def begin():
        nonlocal made
        made += 1
        here = f"{url}/{made}"

        return write(here), lambda: rows_of(here, write.__name__.removeprefix("write_"))

    check_sink(begin, seeds=range(3))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["lost", "overloaded", "cut"])
@every_store
def test_copy_whose_reply_is_lost_or_that_is_refused_for_now_is_made_once(kind, store, url):
    sink = begun(ef.write_parquet(url))
    parts = prepared(sink, 1, [{"n": 1}])
    store.fault = Fault(kind, is_copy, times=1)
    sink.commit(1, parts)
    assert store.fault.met
    assert numbers(url) == [1]


@pytest.mark.slow
@on_azure
def test_staged_object_stays_until_azure_has_ended_its_copy(store, url, monkeypatch):
    monkeypatch.setattr(copies, "PAUSES", (0.01,) * 50)
    sink = begun(ef.write_parquet(url))
    parts = prepared(sink, 1, [{"n": 1}])
    store.fault = Fault("pending", lambda request: "/part-" in request.name and request.kind in ("copy", "look"), times=10)
    sink.commit(1, parts)
    assert [request.kind for request in store.fault.met] == ["copy"] + ["look"] * 9
    assert numbers(url) == [1]
    assert all("staged" not in path for path in paths(url))


@pytest.mark.slow
@on_azure
def test_commit_gives_up_on_a_copy_that_azure_does_not_end_and_is_repeated(store, url, monkeypatch):
    monkeypatch.setattr(copies, "PAUSES", (0.01,) * 5)
    sink = begun(ef.write_parquet(url))
    parts = prepared(sink, 1, [{"n": 1}])
    store.fault = Fault("pending", lambda request: "/part-" in request.name)
    for _ in range(2):
        with pytest.raises(ef.ConnectorError, match=r"TimeoutError: the store has not ended the copy to bucket/.*/part-00000001"):
            sink.commit(1, parts)
    assert [path for path in paths(url) if path.endswith(".staged")], "the copy still needs its source"
    store.fault = Fault("none", times=0)
    sink.commit(1, parts)
    assert numbers(url) == [1]


@pytest.mark.slow
@on_azure
def test_copy_that_azure_could_not_end_is_made_again(store, url):
    sink = begun(ef.write_parquet(url))
    parts = prepared(sink, 1, [{"n": 1}])
    files, root = fsspec.core.url_to_fs(url)
    files.pipe_file(f"{root}/{parts[0]['final']}", b"")
    store.fault = Fault("failed", lambda request: "/part-" in request.name and request.kind == "look", times=1)
    sink.commit(1, parts)
    assert store.fault.met
    assert numbers(url) == [1]


@pytest.mark.slow
@every_store
def test_commit_that_no_reply_reaches_is_completed_by_another_process(store, url):
    sink = begun(ef.write_parquet(url))
    parts = [*prepared(sink, 1, [{"n": 1}]), *prepared(sink, 1, [{"n": 2}])]
    store.fault = Fault("lost", is_copy)
    with pytest.raises(ef.ConnectorError, match=rf"operator `write_parquet`: checkpoint 1 can't be committed in {url}: .*part-00000001-"):
        sink.commit(1, parts)
    store.fault = Fault("none", times=0)
    pickle.loads(pickle.dumps(sink)).commit(1, parts)
    assert numbers(url) == [1, 2]
    sink.stop()
    assert all(path.startswith("part-") for path in paths(url))


@pytest.mark.slow
@every_store
def test_store_that_denies_is_named_at_the_start_and_at_a_commit(store, url):
    store.fault = Fault("denied", writes)
    with pytest.raises(
        ef.ConnectorError,
        match=rf"operator `write_csv`: {url} can't be used as a folder: .*\.probe: {DENIED}",
    ):
        ef.write_csv(url).start()
    store.fault = Fault("none", times=0)
    sink = begun(ef.write_csv(url))
    parts = prepared(sink, 1, [{"n": 1}])
    store.fault = Fault("denied", is_copy)
    with pytest.raises(
        ef.ConnectorError,
        match=rf"checkpoint 1 can't be committed in {url}: .*{DENIED}",
    ):
        sink.commit(1, parts)
    store.fault = Fault("denied", writes)
    with pytest.raises(
        ef.ConnectorError,
        match=rf"operator `write_csv`: can't write into {url}: .*{DENIED}",
    ):
        prepared(sink, 2, [{"n": 2}])


@every_store
def test_bucket_that_is_not_there_is_named_at_the_start(store):
    with pytest.raises(
        ef.ConnectorError, match=r"operator `write_json`: \w+://nowhere/out can't be used as a folder: .*(bucket|container|b/nowhere)"
    ):
        ef.write_json(f"{store.protocol}://nowhere/out").start()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Sending a large body directly:ResourceWarning")  # aiohttp's, of 8 MiB
@every_store
def test_part_of_several_pieces_is_whole_and_one_that_is_dropped_leaves_nothing(store, url):
    files = fsspec.filesystem(store.protocol)
    for number, ends in enumerate(("finish", "drop")):
        upload = Upload(files.open(f"{url}/{number}", "wb", block_size=5 << 20), url)
        for _ in range(12):
            upload.write(b"x" * (1 << 20))
        getattr(upload, ends)()
    assert paths(url) == ["0"]
    assert files.info(f"{url}/0")["size"] == 12 << 20
    if store.protocol == "s3":
        bucket, prefix = url.removeprefix("s3://").split("/", 1)
        assert [upload for upload in files.list_multipart_uploads(bucket) if upload["Key"].startswith(f"{prefix}/")] == []


@pytest.mark.slow
@every_store
def test_partition_values_with_signs_of_paths_come_back(store, url):
    values = ["a/b", "50%", "a b+c", "\u00e9=?#", None]
    sink = begun(ef.write_parquet(url, partition_by="k"))
    sink.commit(1, prepared(sink, 1, [{"k": value, "n": n} for n, value in enumerate(values)]))
    files, root = fsspec.core.url_to_fs(url)
    table = ds.dataset(root, filesystem=files, partitioning="hive", format="parquet").to_table()
    assert {row["n"]: row["k"] for row in table.to_pylist()} == dict(enumerate(values))


@pytest.mark.slow
@every_store
def test_requests_of_a_commit_grow_with_its_parts_and_not_with_the_folder(store, url, monkeypatch):
    monkeypatch.setattr(remote_parts, "REQUESTS", 1)
    sink = begun(ef.write_parquet(url))
    counts = []
    for checkpoint in range(1, 4):
        parts = [part for n in range(4) for part in prepared(sink, checkpoint, [{"n": n}])]
        store.fault = Fault("counted")
        sink.commit(checkpoint, parts)
        counts.append(Counter(request.kind for request in store.fault.met))
        store.fault = Fault("none", times=0)
    removals = 1 if store.protocol == "s3" else 4
    assert [(count["copy"], count["remove"]) for count in counts] == [(4, removals)] * 3
    # gcsfs looks for an object and a folder at a time, and Azurite asks the proxy for the source of each copy.
    most = {"s3": (8, 1), "abfs": (10, 2), "gs": (8, 6)}[store.protocol]
    assert all(count["look"] <= most[0] and count["list"] <= most[1] for count in counts)


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
@every_store
def test_job_whose_store_fails_for_a_while_goes_on_and_its_rows_are_exact(kind, store, url):
    gate = Gate()
    job = run(url, gate)
    assert gate.reached.wait(patience(30))
    store.fault = Fault(kind, lambda request: "/out/" in request.name and writes(request), times=12)
    gate.open.set()
    job.wait("120s")
    assert store.fault.met
    assert numbers(f"{url}/out") == list(range(TOTAL))
    assert not [path for path in paths(f"{url}/out") if path.startswith("_")]


@pytest.mark.slow
@every_store
def test_job_that_is_ended_before_a_commit_is_resumed_with_exact_rows(store, url):
    gate = Gate()
    job = run(url, gate)
    assert gate.reached.wait(patience(30))
    store.fault = Fault("overloaded", lambda request: is_copy(request) or request.kind == "remove")
    gate.open.set()
    for _ in range(int(patience(60) / 0.05)):
        if store.fault.met:
            break
        threading.Event().wait(0.05)
    assert store.fault.met, "a commit is refused"
    job.cancel()
    job.wait("60s")
    store.fault = Fault("none", times=0)
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
@every_store
def test_program_that_is_killed_between_prepare_and_commit_is_resumed_with_exact_rows(store, url):
    store.fault = Fault("cut", is_copy)
    options = {f"FSSPEC_{store.protocol.upper()}": json.dumps(options_of(store)), "GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT": "false"}
    with subprocess.Popen([sys.executable, "-c", PROGRAM, url], env={**os.environ, **options}) as program:
        for _ in range(int(patience(60) / 0.05)):
            if store.fault.met or program.poll() is not None:
                break
            threading.Event().wait(0.05)
        program.kill()
    assert store.fault.met, "a commit has begun"
    store.fault = Fault("none", times=0)
    assert [path for path in paths(f"{url}/out") if path.endswith(".staged")]
    assert numbers(f"{url}/out") == []
    gate = Gate()
    gate.open.set()
    run(url, gate, resume="required", takeover=True).wait("120s")
    assert numbers(f"{url}/out") == list(range(TOTAL))
    assert not [path for path in paths(f"{url}/out") if path.startswith("_")]
