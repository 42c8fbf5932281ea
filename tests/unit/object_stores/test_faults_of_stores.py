"""The checkpoint store on object stores: exclusive creation, lost replies, and which faults are retried."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import fsspec
import numpy as np
import pyarrow as pa
import pytest
from every_store import every_store
from patience import patience
from store_proxy import Fault

from evenflow.actors.task.saved_state import SavedState
from evenflow.connectors.staged.staging import Staging
from evenflow.scheduler.protocol.manifest import Manifest
from evenflow.scheduler.record.restoring.run_claim import RunClaim
from evenflow.state.errors import StoreRefusedError, StoreUnavailableError
from evenflow.state.store import CheckpointStore

PATIENCE = patience(30)


def puts(text):
    return lambda request: request.kind == "create" and text in request.name


def manifest(checkpoint):
    return Manifest("f", checkpoint, 0, 0.0, 4, {}, {}, {}, {})


@pytest.mark.slow
@every_store
def test_manifests_and_claims_are_created_once(url):
    saved = CheckpointStore(url)
    saved.check_create_only()
    assert (saved.claims(), saved.completed(), saved.names()) == ([], [], [])
    saved.claim(1, b"first")
    saved.complete(3, b"the first")
    for again in (lambda: saved.claim(1, b"second"), lambda: saved.complete(3, b"the second")):
        with pytest.raises(FileExistsError):
            again()
    assert (saved.claims(), saved.claim_of(1), saved.claimed(2), saved.completed(), saved.manifest(3)) == (
        [1], b"first", False, [3], b"the first",
    )  # fmt: skip
    CheckpointStore(url).claim(2, b"second")
    assert saved.claims() == [1, 2], "a listing is never from a cache"


@pytest.mark.slow
@every_store
def test_files_that_another_process_writes_after_a_listing_are_seen(url):
    saved = CheckpointStore(url)
    with saved.writing(3, "count-0") as writer:
        writer.write(pa.record_batch({"key": [1]}))
    assert [*saved.listing()] == [3]
    with ThreadPoolExecutor(1) as another:  # each thread has its own cache of listings, as each process has
        another.submit(lambda: CheckpointStore(url).complete(3, b"complete")).result(PATIENCE)
        another.submit(lambda: CheckpointStore(f"{url}/beside").complete(0, b"complete")).result(PATIENCE)
    saved.discard(3)
    assert saved.completed() == [3]
    assert CheckpointStore(f"{url}/beside").names() == ["manifest"]


@pytest.mark.slow
@every_store
def test_rows_that_a_worker_stages_after_a_listing_are_committed(url):
    rows = pa.record_batch({"n": [1]})
    staging = Staging(url)
    staging.write("killed-0", [rows])
    assert staging.names("run") == []
    with ThreadPoolExecutor(1) as worker:
        file = worker.submit(lambda: Staging(url).write("run-0", [rows])).result(PATIENCE)
    assert [*staging.read(file)] == [rows]
    assert staging.names("run") == [file.name]


@every_store
def test_store_without_the_create_only_condition_is_refused(store, url):
    store.fault = Fault("careless")
    with pytest.raises(StoreRefusedError, match=rf"{url}: this store replaces an object that it should create only if there is none"):
        CheckpointStore(url).check_create_only()


@every_store
def test_lost_reply_of_a_manifest_is_a_manifest_that_was_written(store, url):
    saved = SavedState(url, 3, RunClaim("run"))
    store.fault = Fault("lost", puts("/manifest"), times=1)
    assert saved.complete(manifest(1)) is None
    assert store.fault.met, "the reply was lost"
    assert saved.newest().checkpoint == 1


@pytest.mark.slow
@every_store
def test_manifest_whose_replies_are_all_lost_is_found_by_reading_it(store, url):
    saved = SavedState(url, 3, RunClaim("run"))
    store.fault = Fault("lost", puts("/manifest"))
    assert saved.complete(manifest(1)) is None
    assert len(store.fault.met) > 1


@pytest.mark.slow
@every_store
def test_manifest_of_unknown_fate_is_removed_before_the_job_goes_back_behind_it(store, url):
    saved = SavedState(url, 3, RunClaim("run"))
    assert saved.complete(manifest(1)) is None
    store.fault = Fault("lost", lambda request: "/manifest" in request.name)
    assert "checkpoint-00000002/manifest" in saved.complete(manifest(2))
    with pytest.raises(StoreUnavailableError):
        saved.settle()
    store.fault = Fault("none", times=0)
    saved.settle()
    assert saved.newest().checkpoint == 1


def test_state_file_is_read_once(store, url, monkeypatch):
    monkeypatch.setattr(fsspec.get_filesystem_class("s3"), "default_block_size", 5 << 20)
    saved = CheckpointStore(url)
    with saved.writing(1, "count-0") as writer:
        for _ in range(4):
            writer.write(pa.record_batch({"n": np.arange(6 << 17)}))  # 6 MiB
    store.fault = Fault("none", lambda request: request.kind == "read")
    assert [chunk.num_rows for chunk in saved.chunks(1, writer.finish())] == 4 * [6 << 17]
    assert len(store.fault.met) <= 5


@every_store
def test_overloaded_store_is_asked_again(store, url):
    store.fault = Fault("overloaded", times=1)
    saved = CheckpointStore(url)
    saved.claim(1, b"mine")
    assert store.fault.met
    assert saved.claims() == [1]


@pytest.mark.slow
@every_store
def test_store_that_is_cut_off_is_unavailable_and_clearing_up_never_fails(store, url):
    saved = CheckpointStore(url)
    saved.complete(1, b"manifest")
    store.fault = Fault("cut")
    with pytest.raises(StoreUnavailableError, match=rf"{url}: checkpoint-00000002/manifest: \w+: .+"):
        saved.complete(2, b"manifest")
    for call in (saved.completed, lambda: saved.claimed(1), lambda: saved.manifest(1)):
        with pytest.raises(StoreUnavailableError, match=url):
            call()
    saved.discard(2)
    store.fault = Fault("cut", lambda request: request.kind == "remove")
    saved.keep({}, 1)
    store.fault = Fault("none", times=0)
    assert saved.completed() == [1]


@every_store
def test_store_that_denies_is_a_refusal(store, url):
    store.fault = Fault("denied")
    with pytest.raises(StoreRefusedError, match=rf"{url}: terms/00000001: (PermissionError|HttpResponseError|OSError: Forbidden)"):
        CheckpointStore(url).claim(1, b"mine")
