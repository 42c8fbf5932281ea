from __future__ import annotations

import json
from pathlib import Path

import pytest

from evenflow.connectors.exchange.exchange_folder import EndMarker, ExchangeFolder
from evenflow.engine.errors import ConnectorError


@pytest.fixture
def exchange(tmp_path: Path) -> ExchangeFolder:
    made = ExchangeFolder(tmp_path / "a folder, with 100 % odd čhars")
    made.create()
    return made


def part(exchange: ExchangeFolder, name: str) -> Path:
    path = exchange.folder / f"{name}.parquet"
    path.write_bytes(b"rows")
    return path


def names(exchange: ExchangeFolder, batch: int) -> list[str]:
    return [Path(file.path).stem for file in exchange.added(batch) or ()]


def fill(exchange: ExchangeFolder, batches: int) -> None:
    for batch in range(batches):
        exchange.append([part(exchange, f"{batch}-{number}") for number in range(2)])


def test_a_folder_that_is_not_there_yet_has_no_batches(tmp_path: Path):
    exchange = ExchangeFolder(tmp_path / "later")
    assert (exchange.latest(), exchange.added(0), exchange.end()) == (None, None, None)


def test_batches_are_numbered_densely_and_each_names_its_own_files_also_when_compacted(exchange: ExchangeFolder):
    fill(exchange, 25)
    assert exchange.latest() == 24
    assert all(names(exchange, batch) == [f"{batch}-0", f"{batch}-1"] for batch in range(25))
    assert exchange.added(25) is None
    assert sorted(path.name for path in exchange.log.glob("*.compact")) == ["19.compact", "9.compact"]
    assert [Path(file.path).stem for file in exchange.committed(21)] == [f"{batch}-{number}" for batch in range(22) for number in range(2)]


def test_committing_the_same_files_again_makes_no_new_batch(exchange: ExchangeFolder):
    fill(exchange, 12)
    for reader in (exchange, ExchangeFolder(exchange.folder)):
        assert reader.append([exchange.folder / "9-1.parquet", exchange.folder / "9-0.parquet"]) == 9
        assert reader.append([exchange.folder / "3-0.parquet", exchange.folder / "3-1.parquet"]) == 3
    assert exchange.latest() == 11


def test_committing_half_of_an_earlier_batch_is_refused(exchange: ExchangeFolder):
    fill(exchange, 3)
    with pytest.raises(ConnectorError, match="batch 1 was committed with other files"):
        exchange.append([exchange.folder / "1-0.parquet", part(exchange, "new")])


def test_publishing_a_batch_twice_changes_nothing(exchange: ExchangeFolder):
    files = [part(exchange, "a")]
    exchange.publish(0, files)
    exchange.publish(0, files)
    assert names(exchange, 0) == ["a"]


def test_publishing_other_files_as_the_same_batch_is_refused(exchange: ExchangeFolder):
    exchange.publish(0, [part(exchange, "a")])
    with pytest.raises(ConnectorError, match="does another job write into the same folder"):
        exchange.publish(0, [part(exchange, "b")])


def test_a_batch_can_not_be_published_before_the_one_ahead_of_it(exchange: ExchangeFolder):
    with pytest.raises(ConnectorError, match="batch 1 can't be committed before batch 0"):
        exchange.publish(1, [part(exchange, "a")])


def test_a_missing_file_is_not_committed(exchange: ExchangeFolder):
    with pytest.raises(ConnectorError, match=r"gone\.parquet can't be committed"):
        exchange.append([exchange.folder / "gone.parquet"])
    assert exchange.latest() is None


def test_leftovers_of_a_crash_in_the_log_folder_are_ignored(exchange: ExchangeFolder):
    fill(exchange, 1)
    (exchange.log / ".1.tmp").write_text("v1\nhalf")
    (exchange.log / ".0.crc").write_bytes(b"crc")
    assert exchange.latest() == 0
    assert exchange.added(1) is None


def test_compaction_goes_on_in_the_rhythm_of_a_folder_that_spark_began(exchange: ExchangeFolder):
    fill(exchange, 2)
    entries = [line for batch in range(2) for line in (exchange.log / str(batch)).read_text().split("\n")[1:]]
    third = exchange.append([part(exchange, "2-0")])
    entries += (exchange.log / str(third)).read_text().split("\n")[1:]
    (exchange.log / "2").unlink()
    (exchange.log / "2.compact").write_text("\n".join(["v1", *entries]))
    for batch in range(3, 6):
        exchange.append([part(exchange, f"{batch}-0")])
    assert (exchange.log / "5.compact").exists()
    assert names(exchange, 5) == ["5-0"]


def test_files_that_a_compaction_deleted_are_gone(exchange: ExchangeFolder):
    fill(exchange, 10)
    log = exchange.log / "9.compact"
    lines = log.read_text().split("\n")
    log.write_text("\n".join([*lines, json.dumps(json.loads(lines[1]) | {"action": "delete"})]))
    assert [Path(file.path).stem for file in exchange.committed(9)][:2] == ["0-1", "1-0"]
    assert names(exchange, 9) == ["9-0", "9-1"]


def test_log_files_that_spark_cleaned_up_are_named_when_they_are_needed(exchange: ExchangeFolder):
    fill(exchange, 11)
    (exchange.log / "3").unlink()
    assert len(exchange.committed(10)) == 22
    with pytest.raises(ConnectorError, match=r"3 is missing, though later batches are there.*log.deletion"):
        exchange.added(9)


def test_the_end_is_visible_once_the_writer_has_finished(exchange: ExchangeFolder):
    exchange.finish(EndMarker(3, "no luck"))
    assert exchange.end() == EndMarker(3, "no luck")
    exchange.reopen()
    exchange.reopen()
    assert exchange.end() is None


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"last": null, "failure": null}'])
def test_a_damaged_end_marker_is_named(exchange: ExchangeFolder, text: str):
    (exchange.own / "end.json").write_text(text)
    with pytest.raises(ConnectorError, match=r"end\.json is damaged"):
        exchange.end()


def test_a_folder_that_can_not_be_made_is_named(tmp_path: Path):
    (tmp_path / "file").touch()
    with pytest.raises(ConnectorError, match="file can't be used as an exchange folder"):
        ExchangeFolder(tmp_path / "file").create()
