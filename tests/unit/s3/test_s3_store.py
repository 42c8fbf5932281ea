"""The checkpoint store on S3: exclusive creation, lost replies, and which faults are retried."""

from __future__ import annotations

import pytest
from s3_proxy import Fault

from evenflow.actors.task.saved_state import SavedState
from evenflow.scheduler.protocol.manifest import Manifest
from evenflow.scheduler.record.restoring.run_claim import RunClaim
from evenflow.state.errors import StoreRefusedError, StoreUnavailableError
from evenflow.state.store import CheckpointStore


def puts(text):
    return lambda method, path: method == "PUT" and text in path


def manifest(checkpoint):
    return Manifest("f", checkpoint, 0, 0.0, 4, {}, {}, {}, {})


def test_manifests_and_claims_are_created_once(url):
    store = CheckpointStore(url)
    store.check_create_only()
    store.claim(1, b"first")
    store.complete(3, b"the first")
    for again in (lambda: store.claim(1, b"second"), lambda: store.complete(3, b"the second")):
        with pytest.raises(FileExistsError):
            again()
    assert (store.claims(), store.claim_of(1), store.claimed(2), store.completed(), store.manifest(3)) == (
        [1], b"first", False, [3], b"the first",
    )  # fmt: skip


def test_store_without_the_create_only_condition_is_refused(s3, url):
    s3.fault = Fault("careless")
    with pytest.raises(StoreRefusedError, match=rf"{url}: this store replaces an object that it should create only if there is none"):
        CheckpointStore(url).check_create_only()


def test_lost_reply_of_a_manifest_is_a_manifest_that_was_written(s3, url):
    saved = SavedState(url, 3, RunClaim("run"))
    s3.fault = Fault("lost", puts("/manifest"), times=1)
    assert saved.complete(manifest(1)) is None
    assert s3.fault.met, "the reply was lost"
    assert saved.newest().checkpoint == 1


@pytest.mark.slow
def test_manifest_whose_replies_are_all_lost_is_found_by_reading_it(s3, url):
    saved = SavedState(url, 3, RunClaim("run"))
    s3.fault = Fault("lost", puts("/manifest"))
    assert saved.complete(manifest(1)) is None
    assert len(s3.fault.met) > 1


@pytest.mark.slow
def test_manifest_of_unknown_fate_is_removed_before_the_job_goes_back_behind_it(s3, url):
    saved = SavedState(url, 3, RunClaim("run"))
    assert saved.complete(manifest(1)) is None
    s3.fault = Fault("lost", lambda method, path: "/manifest" in path)
    assert "checkpoint-00000002/manifest" in saved.complete(manifest(2))
    with pytest.raises(StoreUnavailableError):
        saved.settle()
    s3.fault = Fault("none", times=0)
    saved.settle()
    assert saved.newest().checkpoint == 1


def test_overloaded_store_is_asked_again(s3, url):
    s3.fault = Fault("overloaded", times=1)
    store = CheckpointStore(url)
    store.claim(1, b"mine")
    assert s3.fault.met
    assert store.claims() == [1]


@pytest.mark.slow
def test_store_that_is_cut_off_is_unavailable_and_clearing_up_never_fails(s3, url):
    store = CheckpointStore(url)
    store.complete(1, b"manifest")
    s3.fault = Fault("cut")
    with pytest.raises(StoreUnavailableError, match=rf"{url}: checkpoint-00000002/manifest: ConnectionClosedError"):
        store.complete(2, b"manifest")
    for call in (store.completed, lambda: store.claimed(1), lambda: store.manifest(1)):
        with pytest.raises(StoreUnavailableError, match=url):
            call()
    store.discard(2)
    s3.fault = Fault("cut", lambda method, path: method in ("DELETE", "POST"))
    store.keep({}, 1)
    s3.fault = Fault("none", times=0)
    assert store.completed() == [1]


def test_store_that_denies_is_a_refusal(s3, url):
    s3.fault = Fault("denied")
    with pytest.raises(StoreRefusedError, match=rf"{url}: terms/00000001: PermissionError"):
        CheckpointStore(url).claim(1, b"mine")
