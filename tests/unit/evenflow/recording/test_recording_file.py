"""The file of a recording: what is written comes back, and what was cut or damaged is read up to there."""

from __future__ import annotations

import pickle
import zlib
from dataclasses import replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from recorded_jobs import BEGIN, finished_job, recorded, view_at
from shown_upgrades import WATCHED, rolled_back, upgrade_report

from evenflow.balancer.plan import BalanceMove, BalancePlan, KeySplit
from evenflow.balancer.verdict import Verdict
from evenflow.engine.dropped_records import DroppedRecord
from evenflow.engine.errors import ConnectorError, RecordError, SnapshotError
from evenflow.engine.protocol.routing import RoutingTable
from evenflow.engine.protocol.split_route import SplitRoute
from evenflow.engine.source import SplitFigures
from evenflow.recording.codec import Types, packed, unpacked
from evenflow.recording.file import BEGINNING, FRAME, MAGIC, WHOLE_EVERY, Recording, RecordingWriter, _frame
from evenflow.recording.packing import ViewPacker, ViewReader
from evenflow.scheduler.load.dropped_records import DroppedRecordAt
from evenflow.scheduler.policies.controller import DecisionRecord
from evenflow.scheduler.policies.dataflow.figures import InstanceFigures, OperatorFigures
from evenflow.scheduler.policies.dataflow.snapshot import DataflowSnapshot, Edge
from evenflow.scheduler.policies.decision import ScalingDecision
from evenflow.scheduler.policies.nodes.placement import ClusterNode, ClusterView, WorkerPlace
from evenflow.scheduler.protocol.failures import failure_of
from evenflow.scheduler.protocol.reports import (
    CheckpointReport,
    CheckpointState,
    MigrationReport,
    MigrationState,
    ScalingReport,
    ScalingState,
)
from evenflow.scheduler.protocol.view import BalanceObservation

KEYS = (
    "JFK", 7, -1, 2**63, None, True, 1.5, b"\x00", ("JFK", 7), date(2026, 1, 31), datetime(2026, 1, 31, 14, 5),
    timedelta(days=-2, microseconds=3), Decimal("1.10"), "\ud800",
)  # fmt: skip


@pytest.fixture(scope="module")
def finished():
    """Made before tests may no longer sleep, as its handle does."""
    return finished_job()


def same(one, other):
    """Return True if two views are equal, with loads rounded to 32 bits."""
    assert len(one.windows) == len(other.windows)
    for window, found in zip(one.windows, other.windows, strict=True):
        assert np.array_equal(window.groups, found.groups)
        assert np.array_equal(window.load.astype(np.float32), found.load.astype(np.float32))
        assert replace(window, groups=0, load=0) == replace(found, groups=0, load=0)
    return replace(one, windows=()) == replace(other, windows=())


def full_view():
    """Return a view that has something of every kind."""
    plan = BalancePlan((BalanceMove(0, 1, group=3), BalanceMove(0, 1, key=("JFK", 7))), 1.8, 1.1, 1.0, 4096, "worker 0 is hot",
                       (KeySplit("ATL", 0, (1,), "left"),), ("LAX",))  # fmt: skip
    migration = MigrationReport(
        number=0, state=MigrationState.DONE, reason="by hand", began_at=BEGIN, seconds=0.5, operator="count", strategy="fluid", plan=plan,
        groups=1, routed_keys=1, steps=1, steps_done=1, keys_moved=9, state_bytes=99, latency_ms=(1.0, 2.0),
    )  # fmt: skip
    scaling = ScalingReport(
        number=0,
        state=ScalingState.FAILED,
        reason="by hand",
        problem="no",
        operator="count",
        before=2,
        after=3,
        keys_moved=0,
        state_bytes=0,
    )
    checkpoint = CheckpointReport(number=1, state=CheckpointState.PENDING, reason="by hand", waits_for=("count-0",))
    seen = DataflowSnapshot(
        (OperatorFigures("read", 1, source_rate=900.0), OperatorFigures("count", 1, instances=(InstanceFigures(5.0),))),
        (Edge("read", "count"),),
    )
    decision = DecisionRecord(BEGIN, "ds2", seen, ScalingDecision({"count": 2}, reason="too slow"), "under way")
    table = RoutingTable(np.array([0, 0, 0, 0, 1, 1, 1, 1], np.uint16), {2**63 + 5: 1}, {7: SplitRoute(0, (1,), "right")})
    view = view_at(3, table=table)
    source, count = view.stages
    count = replace(count, observation=BalanceObservation(1.8, 1.0, Verdict.BRIEF), dealable=("left", "right"), balancer="hotspot")
    read, *others = view.windows
    read = replace(read, splits=(SplitFigures("topic-0", 12, 5_000_000, idle=True),), latencies=(1.5,), watermark=7, backlog=3)
    others[0] = replace(others[0], hot_keys=tuple((key, 10) for key in KEYS), hot_left=(1,) * len(KEYS))
    return replace(
        view, stages=(source, count), windows=(read, *others), migrations=(migration,), scalings=(scaling,), checkpoints=(checkpoint,),
        dropped_records=(DroppedRecordAt(BEGIN, "count-0", DroppedRecord("count", "late", "{'n': 1}")),), worker_cpus=0.5, saves_state=True,
        own_settings={"ds2": {"min_change": 2}, "dhalion": {"blacklist": "5m"}},
        cluster=ClusterView((ClusterNode("a", 4.0, 1.5, 2), ClusterNode("b", 4.0, 4.0)), {"count-0": WorkerPlace("clicks/count-0", "a")}),
        upgrades=(rolled_back(), upgrade_report(number=1)), status=replace(view.status, upgrade=WATCHED),
        decisions=(decision,), observation=decision, failures=(failure_of(RecordError("parse", "no", key="JFK", record={"n": 1}), BEGIN),),
    )  # fmt: skip


def test_a_view_comes_back_as_it_was(tmp_path):
    view = full_view()
    (found,) = Recording(recorded(tmp_path / "job.rec", [view])).views()
    assert same(found, view)


def test_views_of_a_real_job_come_back(tmp_path, finished):
    _, view = finished
    recording = Recording(recorded(tmp_path / "job.rec", [view]))
    assert same(next(recording.views()), view)
    assert (recording.job, recording.problem) == ("clicks", None)


def test_the_error_of_a_job_comes_back_as_text(tmp_path):
    view = view_at(0)
    error = RecordError("parse", "no number", key="JFK", record={"n": "x"})
    error.add_note("a note")
    path = recorded(tmp_path / "job.rec", [replace(view, status=replace(view.status, error=error))])
    (found,) = Recording(path).views()
    assert str(found.status.error) == str(error)
    assert found.status.error.__notes__ == ["a note"]


def test_windows_that_were_reported_twice_are_in_it_once(tmp_path):
    first, second = view_at(0), view_at(1)
    path = recorded(tmp_path / "job.rec", [first, replace(second, windows=(*first.windows, *second.windows))])
    found = list(Recording(path).views())
    assert [len(view.windows) for view in found] == [3, 3]
    assert {window.start for window in found[1].windows} == {BEGIN}


def test_reading_can_begin_anywhere(tmp_path):
    views = [view_at(second, loads=(second / 1000, 0.1)) for second in range(3 * WHOLE_EVERY)]
    recording = Recording(recorded(tmp_path / "job.rec", views))
    for first in (0, 1, WHOLE_EVERY - 1, WHOLE_EVERY, 2 * WHOLE_EVERY + 7):
        found = list(recording.views(first, first + 3))
        assert [view.now for view in found] == [BEGIN + second for second in range(first, first + 4) if second < len(views)]
        assert all(same(view, views[int(view.now - BEGIN)]) for view in found)
    assert [recording.index_at(BEGIN + at) for at in (-5, 0, 0.5, 1, 9999)] == [0, 0, 0, 1, len(views) - 1]


def test_a_table_that_does_not_change_is_written_once_a_minute(tmp_path):
    table = RoutingTable(np.random.default_rng(1).integers(0, 2, 32_768).astype(np.uint16))
    views = [replace(view_at(second, loads=()), stages=(*view_at(0).stages[:1], replace(view_at(0).stages[1], table=table)))
             for second in range(WHOLE_EVERY)]  # fmt: skip
    one = recorded(tmp_path / "one.rec", views[:1]).stat().st_size
    all_of_them = recorded(tmp_path / "all.rec", views).stat().st_size
    assert all_of_them < 3 * one
    assert all(view.stages[1].table == table for view in Recording(tmp_path / "all.rec").views())


@pytest.fixture(scope="module")
def whole_file(tmp_path_factory):
    return recorded(tmp_path_factory.mktemp("recorded") / "job.rec", [view_at(second) for second in range(4)]).read_bytes()


@pytest.fixture(scope="module")
def frames(whole_file):
    """Return the offset at which each frame ends: that of the header, then those of the views."""
    ends, at = [], len(BEGINNING)
    while at < len(whole_file):
        at += FRAME.size + FRAME.unpack_from(whole_file, at)[0]
        ends.append(at)
    return ends


@pytest.mark.slow
def test_a_file_that_was_cut_anywhere_is_read_up_to_the_last_whole_view(whole_file, frames, tmp_path):
    path = tmp_path / "cut.rec"
    for end in range(len(whole_file) + 1):
        path.write_bytes(whole_file[:end])
        whole = sum(frame <= end for frame in frames) - 1
        if whole < 1:
            with pytest.raises(ConnectorError):
                Recording(path)
            continue
        recording = Recording(path)
        assert len(recording.times) == whole
        if {end, end + 1} & set(frames):  # between these the views are the same bytes
            assert len(list(recording.views())) == whole
        assert (recording.problem is None) == (end in frames)


def test_damage_ends_the_reading_and_is_reported(whole_file, frames, tmp_path):
    path = tmp_path / "damaged.rec"
    for at in range(frames[1], len(whole_file), 7):
        damaged = bytearray(whole_file)
        damaged[at] ^= 0x41
        path.write_bytes(damaged)
        recording = Recording(path)
        assert len(recording.times) == sum(frame <= at for frame in frames) - 1
        assert recording.problem is not None


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "is no recording"),
        (b"{}", "is no recording"),
        (MAGIC + b"2\n" + bytes(100), "version 2, and this evenflow reads version 1"),
        (BEGINNING, "has no view"),
        (BEGINNING + _frame(0.0, packed([1]), whole=True) + _frame(0.0, b"", whole=True), "its header can't be read"),
    ],
)
def test_a_file_that_is_no_recording_of_this_version_is_refused(tmp_path, data, message):
    (tmp_path / "other").write_bytes(data)
    with pytest.raises(ConnectorError, match=message):
        Recording(tmp_path / "other")


def test_a_recording_does_not_replace_a_file(tmp_path):
    path = recorded(tmp_path / "job.rec", [view_at(0)])
    with pytest.raises(ConnectorError, match="exists already"):
        recorded(path, [])
    with pytest.raises(ConnectorError, match="can't be written"):
        recorded(tmp_path / "nowhere" / "job.rec", [])


class Planted:
    """Runs code when it is unpickled."""

    def __reduce__(self):
        return pytest.fail, ("it was unpickled",)


@pytest.mark.parametrize("body", [
    pickle.dumps(Planted()), zlib.compress(pickle.dumps(Planted())), zlib.compress(packed({"": {"now": pickle.dumps(Planted())}})),
    zlib.compress(packed({"": {}})), zlib.compress(packed([])), zlib.compress(packed({"": {"now": packed("soon")}})), b"",
])  # fmt: skip
def test_a_body_that_is_no_view_is_refused_and_never_unpickled(whole_file, frames, tmp_path, body):
    (tmp_path / "odd.rec").write_bytes(whole_file[: frames[0]] + _frame(BEGIN, body, whole=True))
    with pytest.raises(SnapshotError, match="can't be read"):
        list(Recording(tmp_path / "odd.rec").views())


def test_another_version_may_have_more_fields_and_fewer():
    types = Types()
    types.of(BalanceObservation)
    written = {**types.fields, "BalanceObservation": ("new", "floor", "imbalance", "verdict")}
    assert Types(written).of(BalanceObservation).unpack([9, 1.0, 1.5, Verdict.EVEN.value]) == BalanceObservation(1.5, 1.0, Verdict.EVEN)
    fewer = {"SplitFigures": ("split",)}
    assert Types(fewer).of(SplitFigures).unpack(["a"]) == SplitFigures("a")


def test_a_recording_from_before_there_were_upgrades_can_be_read():
    view, packer = full_view(), ViewPacker()
    parts = unpacked(zlib.decompress(packer.pack(view, whole=True)))
    names = packer.fields["JobStatus"]
    status = dict(zip(names, unpacked(parts[""]["status"]), strict=True))
    del parts[""]["upgrades"], status["upgrade"]
    parts[""]["status"] = packed(list(status.values()))
    fields = {name: listed for name, listed in packer.fields.items() if not name.startswith("Upgrade")} | {"JobStatus": tuple(status)}
    found = ViewReader(fields).read(zlib.compress(packed(parts)))
    assert same(found, replace(view, upgrades=(), status=replace(view.status, upgrade=None)))


PLAIN = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary()
TEMPORAL = st.dates() | st.times() | st.datetimes() | st.timedeltas() | st.decimals(allow_nan=False, allow_infinity=False)


@given(st.recursive(PLAIN | TEMPORAL, lambda inner: st.tuples(inner, inner)))
def test_keys_come_back_as_they_were(key):
    pack, unpack = Types().of(BalanceMove)
    found = unpack(unpacked(packed(pack(BalanceMove(0, 1, key=key))))).key
    assert found == (key if not isinstance(key, int) or -(2**63) <= key < 2**64 else str(key))


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device that is always full")
def test_a_full_disk_ends_the_recording_with_a_reason(tmp_path):
    path = tmp_path / "job.rec"
    with RecordingWriter(path, "clicks", BEGIN) as writer:
        writer.add(view_at(0))
        with Path("/dev/full").open("wb", buffering=0) as full:
            writer._file, kept = full, writer._file
            with pytest.raises(ConnectorError, match="No space left"):
                writer.add(view_at(1))
        writer._file = kept
    assert len(Recording(path).times) == 1
