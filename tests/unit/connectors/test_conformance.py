"""All sources and sinks keep the engine's contract, and the contract's tests find planted faults of a connector."""

from __future__ import annotations

import ast
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from bounded_sources import MAX_DELAY, bids, csv, generated, items, ndjson, number, parquet, text

import evenflow as ef
from evenflow.connectors.exchange.exchange_folder import EndMarker, ExchangeFolder
from evenflow.connectors.files.split_position import SplitPosition
from evenflow.connectors.followed import follow as following
from evenflow.connectors.spark.tail import TailReader, share_out_log
from evenflow.engine.protocol.elements import MAX_TIME
from evenflow.engine.time.event_time import EventTime
from evenflow.testing import ConformanceError, check_sink, check_source

FILES = [
    [{"ts": 1_000 + 100 * file + place - place % 3, "n": 100 * file + place} for place in range(count)]
    for file, count in enumerate([7, 0, 11, 1, 5])
]


@pytest.mark.few(1)
@pytest.mark.parametrize("build", [items, parquet, csv, ndjson, text, generated, bids])
def test_bounded_sources_conform(build, tmp_path):
    check_source(build(tmp_path, FILES))


@pytest.mark.few(1)
@pytest.mark.parametrize("build", [parquet, csv, ndjson, text])
def test_sources_of_files_keep_the_order_within_a_file(build, tmp_path):
    check_source(build(tmp_path, FILES), split=lambda row: number(row) // 100)


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("kind", "follow"), [("parquet", True), *((kind, follow) for kind in ("csv", "json", "txt") for follow in (True, "lines"))]
)
def test_sources_that_follow_files_conform(kind, follow, tmp_path, monkeypatch):
    monkeypatch.setattr(following, "LOOKING", 1.0)
    followed: dict[str, Any] = {"follow": follow, "poll_every": "1us"}
    timed = {**followed, "event_time": "ts", "max_delay": MAX_DELAY / 1000, "schema": {"ts": "int64", "n": "int64"}}
    builds = {"csv": csv, "json": ndjson, "txt": text, "parquet": parquet}
    reads = {"csv": ef.read_csv, "json": ef.read_json, "txt": ef.read_text, "parquet": ef.read_parquet}
    builds[kind](tmp_path, FILES)
    if kind == "csv":
        for path in tmp_path.iterdir():
            path.write_text(path.read_text() + "\n")  # of a growing file only complete lines count
    check_source(reads[kind](tmp_path, **(followed if kind == "txt" else timed)), split=lambda row: number(row) // 100)


def test_generators_conform():
    def rows(partition, position):
        for n in range(position or 0, 12):
            yield [{"partition": partition, "ts": n, "n": n}] * (n % 3), n + 1

    source = ef.from_generator(rows, partitions=3, event_time="ts", poll_every="1us")
    check_source(source, split=lambda row: row["partition"])


class Counting(ef.Source):
    """A source of the numbers to 20, which are also their event times, divided among the readers. `fault`: its planted fault."""

    name = "counting"

    def __init__(self, fault: str = "") -> None:
        self.fault = fault

    def reader(self, index: int, parallelism: int) -> CountingReader:
        return CountingReader(self.fault, list(range(index, 20, parallelism)))

    def share_out(self, positions: Any, parallelism: int) -> list[Any]:
        numbers = sorted(n for position in positions for n in position)
        if self.fault == "share_out loses a row":
            numbers = numbers[1:]
        if self.fault == "share_out changes its positions":
            positions[0].append(1)
        return [numbers[index::parallelism] for index in range(parallelism)]

    def earliest(self, position: Any) -> int:
        if self.fault == "earliest is too late":
            return 7
        return min(position, default=MAX_TIME)


class CountingReader(ef.SourceReader):
    def __init__(self, fault: str, numbers: list[int]) -> None:
        self.fault, self.numbers, self.sought, self.asked = fault, numbers, False, False

    def poll(self, max_rows: int) -> ef.Batch | None:
        if not self.numbers:
            self.asked = True
            return None
        given, self.numbers = self.numbers[:max_rows], self.numbers[max_rows:]
        if self.fault == "rows change their order" and self.sought:
            given.reverse()
        rows = pa.record_batch({"n": given})
        return ef.Batch(rows, rows["n"].to_numpy())

    @property
    def finished(self) -> bool:
        return not self.numbers and not (self.fault == "finished goes back" and self.asked)

    def watermark(self) -> int:
        if self.fault == "the watermark is too late":
            return self.numbers[0] + 1 if self.numbers else MAX_TIME
        if self.fault == "the watermark falls" and self.numbers:
            return -self.numbers[0]
        return self.numbers[0] if self.numbers else MAX_TIME

    def position(self) -> Any:
        if self.fault == "positions can't be packed":
            return {1, 2}
        position = [*self.numbers]
        if self.fault == "asking for a position gives it away":
            self.numbers = self.numbers[1:]
        if self.fault == "a position is one row behind":
            return [self.numbers[0] - 1, *position] if position and self.numbers[0] else position
        return position

    def seek(self, position: Any) -> None:
        self.numbers, self.sought = [*position], True
        if self.fault == "seek forgets a row":
            self.numbers = self.numbers[1:]


def test_a_source_without_faults_passes():
    check_source(Counting(), split=lambda row: row["n"])


@pytest.mark.parametrize(
    ("fault", "problem"),
    [
        ("share_out loses a row", "share_out has changed the earliest time|a row is missing"),
        ("share_out changes its positions", "share_out has changed its positions"),
        ("earliest is too late", "earliest is 7, but the watermark"),
        ("finished goes back", "a reader that had finished went on"),
        ("the watermark is too late", r"came behind the watermark"),
        ("the watermark falls", "the watermark fell"),
        ("positions can't be packed", "can't be packed by msgpack"),
        ("asking for a position gives it away", "has changed the reader"),
        ("a position is one row behind", "a row came twice|share_out has changed the earliest time"),
        ("seek forgets a row", "a row is missing|but the watermark"),
    ],
)
def test_a_source_with_a_fault_is_found(fault, problem):
    with pytest.raises(ConformanceError, match=f"source `counting`, .*({problem})"):
        check_source(Counting(fault))


def test_rows_of_a_split_in_another_order_are_found():
    class Turned(Counting):
        can_be_shared_out = False

        def reader(self, index: int, parallelism: int) -> CountingReader:
            return CountingReader(self.fault, [n for n in range(20) if n // 10 % parallelism == index])

    with pytest.raises(ConformanceError, match="the rows of split 0 came in another order"):
        check_source(Turned("rows change their order"), split=lambda row: row["n"] // 10)


def folders(tmp_path: Path) -> Callable[[], Path]:
    def new() -> Path:
        shutil.rmtree(tmp_path / "out", ignore_errors=True)
        return tmp_path / "out"

    return new


def read_files(folder: Path, extension: str) -> list[dict[str, Any]]:
    parts = sorted(str(path) for path in folder.glob(f"part-*{extension}"))
    function = {".parquet": "read_parquet", ".csv": "read_csv_auto", ".json": "read_json_auto"}[extension]
    return [] if not parts else [{"n": n} for (n,) in duckdb.sql(f"SELECT n FROM {function}({parts})").fetchall()]


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("write", "extension"),
    [(ef.write_parquet, ".parquet"), (ef.write_csv, ".csv"), (ef.write_json, ".json")],
    ids=["parquet", "csv", "json"],
)
def test_sinks_of_files_conform(write, extension, tmp_path):
    new = folders(tmp_path)

    def begin():
        folder = new()
        return write(folder), lambda: read_files(folder, extension)

    check_sink(begin, seeds=range(8))


def test_a_sink_of_files_for_spark_conforms(tmp_path):
    new = folders(tmp_path)

    def begin():
        sink = ef.to_spark(path=new())

        def read():
            latest = sink.exchange.latest()
            files = [] if latest is None else sink.exchange.committed(latest)
            return [row for file in files for row in pq.ParquetFile(file.path).read(["n"]).to_pylist()]

        return sink, read

    check_sink(begin, seeds=range(8))


def test_printed_rows_conform(capsys):
    def begin():
        capsys.readouterr()
        lines: list[str] = []

        def read():
            lines.extend(capsys.readouterr().out.splitlines())
            return map(ast.literal_eval, lines)

        return ef.print(), read

    check_sink(begin, seeds=range(10))


class Exchanged(ef.Source):
    """A source as `from_spark` sends it to the workers: the log of a folder that Spark fills."""

    name = "exchanged"
    spec = EventTime("ts", max_delay=MAX_DELAY * 1_000)

    def __init__(self, folder: Path) -> None:
        self.exchange = ExchangeFolder(folder)

    def reader(self, index: int, parallelism: int) -> TailReader:
        schema = pa.schema({"ts": pa.int64(), "n": pa.int64()})
        return TailReader(self.exchange, schema, operator=self.name, index=index, parallelism=parallelism, event_time=self.spec)

    def share_out(self, positions: Any, parallelism: int) -> list[Any]:
        return share_out_log(positions, parallelism, self.name)

    def earliest(self, position: Any) -> int:
        return SplitPosition.decode(position).earliest


@pytest.mark.few(1)
@pytest.mark.parametrize("ended", [True, False], ids=["ended", "endless"])
def test_the_log_of_a_folder_that_spark_fills_conforms(ended, tmp_path):
    source = Exchanged(tmp_path)
    source.exchange.create()
    schema = pa.schema({"ts": pa.int64(), "n": pa.int64()})
    for batch, files in enumerate([FILES[:2], FILES[2:4], FILES[4:]]):
        paths = [tmp_path / f"{batch}-{place}.parquet" for place in range(len(files))]
        for path, rows in zip(paths, files, strict=True):
            pq.write_table(pa.Table.from_pylist(rows, schema), path)
        source.exchange.publish(batch, paths)
    if ended:
        source.exchange.finish(EndMarker(2))
    check_source(source, split=lambda row: row["n"] // 100)


def test_sinks_into_memory_conform():
    def list_of_rows():
        rows: list[dict[str, Any]] = []
        return ef.to_list(rows), lambda: rows

    check_sink(list_of_rows)


class Place:
    """Rows of this process, shared by copies of a sink as copies share a server."""

    rows: list[dict[str, Any]] = []  # noqa: RUF012 -- shared on purpose
    committed: dict[int, Any] = {}  # noqa: RUF012 -- shared on purpose


@pytest.fixture
def place():
    Place.rows, Place.committed = [], {}
    return Place


def test_sinks_that_call_functions_conform(place):
    def callback():
        place.rows = []
        return ef.to_callback(lambda row: _place().rows.append(row)), lambda: _place().rows

    def function():
        place.committed = {}
        sink = ef.to_function(lambda rows: [row["n"] for row in rows], commit=lambda at, values: _place().committed.update({at: values}))
        return sink, lambda: [{"n": n} for values in _place().committed.values() for value in values for n in value]

    check_sink(callback)
    check_sink(function)


def _place() -> type[Place]:
    """Return the class by its name, which a pickled function looks up."""
    return Place


class Staging(ef.Sink):
    """A sink that stores rows under a number until the commit makes them visible. `fault`: its planted fault."""

    name = "staging"
    staged: dict[str, list[int]] = {}  # noqa: RUF012 -- shared by all copies, as a server would be
    visible: dict[str, int] = {}  # noqa: RUF012 -- the same
    extra: list[int] = []  # noqa: RUF012 -- the same

    def __init__(self, fault: str = "") -> None:
        self.fault = fault
        Staging.staged, Staging.visible, Staging.extra = {}, {}, []

    def writer(self, index: int, parallelism: int) -> StagingWriter:
        return StagingWriter(self.fault)

    def commit(self, checkpoint: int, committables: Any) -> list[Any]:
        for name in committables:
            if self.fault == "a repeated commit counts again" and name in self.visible:
                self.extra += self.staged[name]
            self.visible[name] = checkpoint
        return []

    @property
    def retractable(self) -> bool:
        return True

    def retract(self, after: int) -> list[Any]:
        if self.fault != "retract does nothing":
            for name in [name for name, checkpoint in self.visible.items() if checkpoint > after]:
                del self.visible[name]
        return []

    def sweep(self) -> None:
        if self.fault == "sweep removes what was committed":
            self.visible.clear()

    def stop(self) -> None:
        if self.fault == "stop removes the last":
            self.visible.pop(next(iter(self.visible)))


class StagingWriter(ef.SinkWriter):
    def __init__(self, fault: str) -> None:
        self.fault, self.rows = fault, list[int]()

    def write(self, batch: ef.Batch) -> None:
        self.rows += batch.rows["n"].to_pylist()
        if self.fault == "rows are visible at once":
            Staging.extra += batch.rows["n"].to_pylist()

    def prepare(self, checkpoint: int) -> list[Any]:
        name = f"{checkpoint}-{len(Staging.staged)}"
        Staging.staged[name] = self.rows[1:] if self.fault == "prepare forgets a row" else self.rows
        self.rows = self.rows if self.fault == "rows are prepared twice" else []
        return [{name}] if self.fault == "committables can't be packed" else [name]


def staging(fault: str = "") -> Any:
    def begin():
        return Staging(
            fault
        ), lambda: [{"n": n} for name in Staging.visible for n in Staging.staged[name]] + [{"n": n} for n in Staging.extra]

    return begin


def test_a_sink_without_faults_passes():
    check_sink(staging())


@pytest.mark.parametrize(
    ("fault", "problem"),
    [
        ("a repeated commit counts again", "can be seen 2 times"),
        ("retract does nothing", r"after retract\(\) row \d+ of \d+ can be seen"),
        ("sweep removes what was committed", "can't be seen"),
        ("stop removes the last", r"after stop\(\) row \d+ of \d+ can't be seen"),
        ("rows are visible at once", "can be seen"),
        ("prepare forgets a row", "can't be seen"),
        ("rows are prepared twice", "can be seen 2 times"),
        ("committables can't be packed", "can't be packed by msgpack"),
    ],
)
def test_a_sink_with_a_fault_is_found(fault, problem):
    with pytest.raises(ConformanceError, match=f"sink `staging`, seed .*{problem}"):
        check_sink(staging(fault))
