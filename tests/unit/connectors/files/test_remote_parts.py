"""File sinks on an object store, in memory: staged objects, commits that may be repeated, and what dead starts have left."""

from __future__ import annotations

import pickle
from typing import Any

import fsspec
import msgpack
import pyarrow as pa
import pyarrow.dataset as ds
import pytest

import evenflow as ef
from evenflow.connectors.files.remote_parts import RemoteParts
from evenflow.testing import check_sink

FORMATS = {"parquet": ef.write_parquet, "csv": ef.write_csv, "json": ef.write_json}
READERS = {"parquet": ef.read_parquet, "csv": ef.read_csv, "json": ef.read_json}
URL = "memory://bucket/out"

every_format = pytest.mark.parametrize("kind", FORMATS)


@pytest.fixture(autouse=True)
def files():
    found = fsspec.filesystem("memory")
    yield found
    found.store.clear()
    found.pseudo_dirs[:] = [""]


def batch(**columns: Any) -> ef.Batch:
    return ef.Batch(pa.record_batch(columns))


def begun(sink: Any, *, job: str = "job", checkpoints: str | None = "memory://ck", run: str = "", needed: Any = list) -> Any:
    """Start a sink as a job with a folder for checkpoints does."""
    sink.of_job(job, "out", checkpoints)
    if run:
        sink.of_run(run, continues=False)
    sink.start()
    sink.take_over(f"{job} {checkpoints or ''}", needed)
    return sink


def over_the_wire(committables: Any) -> Any:
    return msgpack.unpackb(msgpack.packb(committables))


def prepared(sink: Any, checkpoint: int, **columns: Any) -> Any:
    writer = pickle.loads(pickle.dumps(sink)).writer(0, 1)
    writer.write(batch(**columns))
    return over_the_wire(writer.prepare(checkpoint))


def rows(kind: str) -> list[dict[str, Any]]:
    """Read what is visible, as evenflow's own sources do."""
    if not any("/part-" in path for path in fsspec.filesystem("memory").find("/bucket/out")):
        return []
    source = READERS[kind](URL)
    source.start()
    reader, found = source.reader(0, 1), []
    while not reader.finished:
        polled = reader.poll(1000)
        found += [] if polled is None else polled.to_rows()
    return found


def names(files: Any) -> list[str]:
    return [path.removeprefix("/bucket/out/") for path in files.find("/bucket/out")]


def staged(files: Any) -> list[str]:
    return [name for name in names(files) if name.endswith(".staged")]


@every_format
def test_nothing_is_visible_before_the_commit_and_nothing_is_staged_behind_it(kind, files):
    sink = begun(FORMATS[kind](URL))
    committables = prepared(sink, 1, n=[1, 2])
    assert rows(kind) == []
    assert len(staged(files)) == 1
    sink.commit(1, committables)
    assert rows(kind) == [{"n": 1}, {"n": 2}]
    assert staged(files) == []
    sink.sweep()
    sink.stop()
    assert [name.partition("-")[0] for name in names(files)] == ["part"]


@every_format
def test_sinks_on_an_object_store_conform(kind, files):
    def begin():
        files.store.clear()

        def read():
            found = [path for path in files.find("/bucket/out") if path.rpartition("/")[2].startswith("part-")]
            return [] if not found else ds.dataset(found, filesystem=files, format=kind).to_table(columns=["n"]).to_pylist()

        return FORMATS[kind](URL), read

    check_sink(begin, seeds=range(4))


@pytest.mark.parametrize("at", ["before the first copy", "between two copies", "before the staged ones are removed", "at the end"])
def test_commit_that_breaks_off_at_any_point_is_completed_when_it_is_repeated(at, files, monkeypatch):
    sink = begun(ef.write_parquet(URL))
    committables = [*prepared(sink, 1, n=[1]), *prepared(sink, 1, n=[2])]
    copy, left = type(files).cp_file, {"before the first copy": 0, "between two copies": 1}.get(at, 2)

    def breaks_off(self, *paths, **options):
        nonlocal left
        if left == 0:
            raise ConnectionResetError("gone")
        left -= 1
        copy(self, *paths, **options)

    with monkeypatch.context() as broken:
        broken.setattr(type(files), "cp_file", breaks_off)
        if at == "before the staged ones are removed":
            broken.setattr(RemoteParts, "remove", lambda self, paths: None)
        if at.startswith(("before the first", "between")):
            with pytest.raises(ef.ConnectorError, match=r"checkpoint 1 can't be committed in memory://bucket/out: .*gone"):
                sink.commit(1, committables)
        else:
            sink.commit(1, committables)
    changed = {path: files.modified(path) for path in files.find("/bucket/out") if "/part-" in path}
    pickle.loads(pickle.dumps(sink)).commit(1, committables)
    assert sorted(row["n"] for row in rows("parquet")) == [1, 2]
    assert staged(files) == []
    assert {path: files.modified(path) for path in changed} == changed, "a visible object is not written again"


@pytest.mark.parametrize("committed", [False, True])
def test_part_that_is_missing_or_cut_short_at_a_commit_is_named(committed, files):
    for cut in (True, False):
        sink = begun(ef.write_parquet(URL, append=True))
        (part,) = prepared(sink, 1, n=[1])
        if committed:
            sink.commit(1, [part])
        path = f"/bucket/out/{part['final' if committed else 'prepared']}"
        if cut:
            files.pipe_file(path, files.cat_file(path)[:-1])
        else:
            files.rm_file(path)
        problem = (
            rf"{path.rpartition('/')[2]} has .* bytes, and .* were written" if cut else r"\.staged is missing from memory://bucket/out"
        )
        with pytest.raises(ef.ConnectorError, match=rf"operator `out`: .*{problem}"):
            sink.commit(1, [part])
        if not committed:
            assert not [name for name in names(files) if name.startswith("part-")], "nothing is visible"


def test_part_that_another_process_commits_at_the_same_time_is_not_missing(files, monkeypatch):
    sink = begun(ef.write_parquet(URL))
    committables = prepared(sink, 1, n=[1])
    check = RemoteParts._check_staged

    def late(self, part):
        check(self, part)
        with monkeypatch.context() as quick:
            quick.setattr(RemoteParts, "_check_staged", check)
            sink.commit(1, committables)

    monkeypatch.setattr(RemoteParts, "_check_staged", late)
    pickle.loads(pickle.dumps(sink)).commit(1, committables)
    assert rows("parquet") == [{"n": 1}]


def test_files_of_later_checkpoints_of_the_run_are_retracted_in_all_partitions(files):
    earlier = begun(ef.write_parquet(URL, partition_by="day"), run="aaaaaaaa")
    earlier.commit(9, prepared(earlier, 9, n=[0], day=["a"]))
    sink = begun(ef.write_parquet(URL, partition_by="day", append=True), run="bbbbbbbb")
    for checkpoint in (1, 2, 3):
        sink.commit(checkpoint, prepared(sink, checkpoint, n=[checkpoint, checkpoint], day=["a", str(checkpoint)]))
    for _ in range(2):
        sink.retract(1)
        assert sorted(row["n"] for row in ds.dataset("/bucket/out", filesystem=files).to_table().to_pylist()) == [0, 1, 1]


def test_removal_that_the_store_carries_out_in_part_is_an_error(files, monkeypatch):
    sink = begun(ef.write_parquet(URL))
    sink.commit(1, prepared(sink, 1, n=[1]))
    monkeypatch.setattr(type(files), "rm", lambda self, paths: None)
    with pytest.raises(ef.ConnectorError, match=r"part-00000001-.* can't be removed from memory://bucket/out; check the right to delete"):
        sink.retract(0)
    with pytest.raises(
        ef.ConnectorError, match=r"`write_parquet`: .* can't be removed from memory://bucket/out; check the right to delete"
    ):
        ef.write_parquet(URL, overwrite=True).start()


def killed(**options: Any) -> tuple[Any, Any]:
    """Simulate a start that was killed after it prepared a part and closed another."""
    sink = begun(ef.write_parquet(URL, append=True, roll_bytes=1), **options)
    part = prepared(sink, 1, n=[1])
    writer = pickle.loads(pickle.dumps(sink)).writer(0, 1)
    writer.write(batch(n=[2]))
    return sink, part


@pytest.mark.parametrize("run", ["bbbbbbbb", "aaaaaaaa"], ids=["another run", "the same run"])
def test_next_start_removes_what_a_dead_one_staged_except_what_a_checkpoint_needs(run, files):
    _, part = killed(run="aaaaaaaa")
    assert len(staged(files)) == 2
    begun(ef.write_parquet(URL, append=True), run=run, needed=lambda: None)
    assert len(staged(files)) == 2, "nothing is known of the checkpoints"
    begun(ef.write_parquet(URL, append=True), run=run, needed=lambda: [*part, {"of": "another sink"}])
    assert staged(files) == [part[0]["prepared"]]
    last = begun(ef.write_parquet(URL, append=True), run=run)
    assert staged(files) == []
    last.stop()
    assert names(files) == []


@pytest.mark.parametrize("options", [{"job": "another"}, {"checkpoints": "memory://other"}, {"checkpoints": None}], ids=str)
def test_staged_parts_of_another_job_stay(options, files):
    killed(run="aaaaaaaa", **options)
    begun(ef.write_parquet(URL, append=True), run="bbbbbbbb", **({"checkpoints": None} if options == {"checkpoints": None} else {}))
    assert len(staged(files)) == 2


def test_two_operators_of_a_job_that_write_into_one_folder_leave_each_other_alone(files):
    sinks = [ef.write_parquet(URL, append=True) for _ in range(2)]
    for sink, operator in zip(sinks, ("a", "b"), strict=True):
        sink.of_job("job", operator, "memory://ck")
        sink.of_run("aaaaaaaa", continues=False)
        sink.start()
    parts = [prepared(sink, 1, n=[n]) for n, sink in enumerate(sinks)]
    for sink in sinks:
        sink.take_over("job memory://ck", list)
        sink.commit(1, parts[sinks.index(sink)])
        sink.sweep()
    assert sorted(row["n"] for row in rows("parquet")) == [0, 1]


def test_run_without_a_folder_for_checkpoints_leaves_nothing_staged(files):
    sink, _ = killed(checkpoints=None)
    sink.stop()
    assert names(files) == []


def test_closed_writer_and_a_part_that_can_not_be_begun_leave_nothing_staged(files):
    sink = begun(ef.write_parquet(URL, roll_bytes=1, partition_by="day"))
    writer = sink.writer(0, 1)
    writer.write(batch(n=[1, 2], day=["a", "b"]))
    writer.close()
    assert staged(files) == []


def test_folder_that_is_not_empty_needs_a_decision(files):
    for options, expected in (({}, 1), ({"append": True}, 2), ({"overwrite": True}, 1)):
        sink = begun(ef.write_parquet(URL, **options))
        sink.commit(1, prepared(sink, 1, n=[1]))
        assert len(rows("parquet")) == expected
    with pytest.raises(ef.ConnectorError, match=r"memory://bucket/out is not empty; choose another folder, or say overwrite=True or app"):
        begun(ef.write_parquet(URL))
    files.pipe_file("/bucket/out/thesis.txt", b"")
    with pytest.raises(ef.ConnectorError, match=r"overwrite=True deletes part files only, but .*/out holds `thesis.txt`"):
        begun(ef.write_parquet(URL, overwrite=True))


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("nothing://bucket/out", r"nothing:// can't be used: Protocol not known: nothing"),
        ("memory://bucket/*", r"expected the URL of a folder, without \* \? \[ \] #"),
        ("oss://bucket/out", r"oss:// can't be used: .*pip install"),
    ],
)
def test_url_that_is_no_folder_is_refused(url, message):
    with pytest.raises(ef.FlowError, match=f"operator `write_csv`: .*{message}"):
        ef.write_csv(url)


def test_file_system_that_can_not_copy_is_refused_at_the_start(files, monkeypatch):
    def fails(self, *paths, **options):
        raise NotImplementedError

    monkeypatch.setattr(type(files), "cp_file", fails)
    with pytest.raises(
        ef.ConnectorError, match=r"operator `write_csv`: memory://bucket/out can't be used as a folder: .*NotImplementedErr"
    ):
        ef.write_csv(URL).start()


@pytest.mark.parametrize("path", ["memory://bucket/out", "memory://bucket/**/*", "memory://bucket/*/*"])
def test_readers_skip_staged_objects(path, files):
    for name in ("_staging/run-out/a.txt", "_staging/b.txt", ".part.txt"):
        files.pipe_file(f"/bucket/out/{name}", b"hidden\n")
    files.pipe_file("/bucket/out/c.txt", b"shown\n")
    source = ef.read_text(path)
    source.start()
    reader = source.reader(0, 1)
    assert reader.poll(10).rows["item"].to_pylist() == ["shown"]
    assert reader.poll(10) is None
