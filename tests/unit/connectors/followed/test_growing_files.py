"""Files to which lines are appended: each complete line once, in order, although files are renamed, truncated, reassigned and
lost.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from test_following import Readers

from evenflow.connectors.followed import follow, growing
from evenflow.connectors.formats.csv import read_csv
from evenflow.connectors.formats.json import read_json
from evenflow.connectors.formats.text import read_text
from evenflow.engine.errors import ConnectorError, FlowError
from evenflow.engine.source import Source

MAX_DELAY = 5
FOLLOWED: dict[str, Any] = {"follow": "lines", "poll_every": "1us"}
TIMED: dict[str, Any] = {**FOLLOWED, "event_time": "ts", "max_delay": MAX_DELAY / 1000, "schema": {"ts": "int64", "n": "int64"}}
KINDS: dict[str, tuple[Callable[..., Source], str, Callable[[int, int], str], dict[str, Any]]] = {
    "csv": (read_csv, "ts,n\n", lambda ts, n: f"{ts},{n}\n", TIMED),
    "json": (read_json, "", lambda ts, n: json.dumps({"ts": ts, "n": n}) + "\n", TIMED),
    "log": (read_text, "", lambda ts, n: f"{n}\n", FOLLOWED),
}
every_kind = pytest.mark.parametrize("kind", [*KINDS])


@pytest.fixture(autouse=True)
def looks_whenever_polled(monkeypatch):
    """Remove the pause after a look that took long, and read blocks of a line or two."""
    monkeypatch.setattr(follow, "LOOKING", 1.0)
    monkeypatch.setattr(growing, "BLOCK", 24)


class Log:
    """A file to which lines are appended, in pieces that need not end with a line."""

    def __init__(self, folder: Path, kind: str, name: str) -> None:
        self.path, self.kind, self.pending = folder / f"{name}.{kind}", kind, ""
        self.begin()

    def begin(self) -> None:
        """Create the file, or truncate it."""
        self.path.write_text(KINDS[self.kind][1])

    def append(self, rows: list[tuple[int, int]], keep_back: int = 0) -> None:
        text = self.pending + "".join(KINDS[self.kind][2](ts, n) for ts, n in rows)
        whole = len(text) - min(keep_back, len(text))
        with self.path.open("a") as file:
            file.write(text[:whole])
        self.pending = text[whole:]

    def rotate(self, name: str) -> None:
        self.append([])
        self.path.rename(self.path.parent / name)
        self.begin()


def started(folder: Path, kind: str, **options: Any) -> Source:
    source = KINDS[kind][0](folder, **{**KINDS[kind][3], **options})
    source.start()
    return source


def run(folder: Path, kind: str, random: random.Random, steps: int) -> tuple[list[list[int]], list[int]]:
    """Append lines to some logs, which are renamed and recreated, while readers are polled, lost and reassigned."""
    logs = [Log(folder, kind, f"log-{number}") for number in range(3)]
    rows: list[list[int]] = [[] for _ in logs]
    files = [*range(len(logs))]
    readers, time = Readers(started(folder, kind), random.randint(1, 3)), 1_000
    for _ in range(steps):
        step, number = random.random(), random.randrange(len(logs))
        if step < 0.4:
            new = list[tuple[int, int]]()
            for _ in range(random.randint(0, 6)):
                time += random.randint(0, 3)
                new.append((time - random.randint(0, MAX_DELAY), 1_000 * files[number] + len(rows[files[number]])))
                rows[files[number]].append(new[-1][1])
            logs[number].append(new, random.choice([0, 0, 2, 7]) if kind == "log" else 0)
        elif step < 0.48:
            logs[number].rotate(f"old-{files[number]}.{kind}")
            files[number] = len(rows)
            rows.append([])
        else:
            readers.disturb(random, polls=0.62, saves=0.13, shares=0.13, most_rows=4)
    for log in logs:
        log.append([])
    return rows, readers.drain()


@pytest.mark.slow
@every_kind
def test_every_line_comes_once_and_in_order_whatever_is_renamed_and_lost_when(kind, tmp_path_factory):
    for seed in range(150 if kind == "log" else 50):
        rows, came = run(tmp_path_factory.mktemp("logs"), kind, random.Random(seed), 60)
        for number, expected in enumerate(rows):
            assert [n for n in came if n // 1_000 == number] == expected, f"seed {seed}"


@every_kind
def test_a_known_file_is_read_to_its_end_under_a_name_that_does_not_match(kind, tmp_path):
    log = Log(tmp_path, kind, "a")
    log.append([(1_000, 1)])
    readers = Readers(started(tmp_path, kind), 2)
    assert readers.drain() == [1]
    log.append([(1_000, 2)])
    log.rotate("a.old")
    log.append([(1_000, 3)])
    readers.share_out(3)
    assert sorted(readers.drain()) == [1, 2, 3]
    with (tmp_path / "a.old").open("a") as file:  # a writer that has it open still
        file.write(KINDS[kind][2](1_000, 4))
    assert sorted(readers.drain()) == [1, 2, 3, 4]


@every_kind
def test_a_log_that_is_given_by_its_name_may_be_missing_while_it_is_renamed(kind, tmp_path):
    log = Log(tmp_path, kind, "a")
    log.append([(1_000, 1)])
    readers = Readers(started(log.path, kind), 2)
    readers.poll(0, 9)
    readers.poll(1, 9)
    log.append([(1_000, 2)])
    log.path.rename(tmp_path / "a.1")
    assert sorted(readers.drain()) == [1, 2]
    log.begin()
    log.append([(1_000, 3)])
    assert sorted(readers.drain()) == [1, 2, 3]


def test_a_line_that_is_not_utf8_is_named(tmp_path):
    (tmp_path / "a.log").write_bytes(b"1\n\xff\n")
    with pytest.raises(ConnectorError, match=rf"{tmp_path}/a\.log before byte 4, line 2 is not UTF-8: b'\\xff'"):
        Readers(started(tmp_path, "log"), 1).drain()


@every_kind
def test_a_line_comes_when_it_is_complete(kind, tmp_path):
    log = Log(tmp_path, kind, "a")
    readers = Readers(started(tmp_path, kind), 1)
    log.append([(1_000, 1), (1_000, 2)], keep_back=2)
    assert readers.drain() == [1]
    readers.share_out(2)
    assert readers.drain() == [1]
    log.append([(1_000, 3)])
    assert readers.drain() == [1, 2, 3]


def test_a_header_is_read_when_it_is_complete(tmp_path):
    (tmp_path / "a.csv").write_text("ts,")
    readers = Readers(started(tmp_path, "csv"), 1)
    assert readers.drain() == []
    (tmp_path / "a.csv").write_text("ts,n\n1000,1\n")
    assert readers.drain() == [1]


@every_kind
@pytest.mark.parametrize("longer", [False, True])
def test_a_file_that_was_read_and_emptied_is_read_from_its_beginning(kind, longer, tmp_path):
    log = Log(tmp_path, kind, "a")
    log.append([(1_000, 1), (1_000, 2)])
    readers = Readers(started(tmp_path, kind), 1)
    assert readers.drain() == [1, 2]
    readers.share_out(2)
    log.begin()
    log.append([(1_000, n) for n in range(3, 9 if longer else 4)])
    assert readers.drain() == [1, 2, *range(3, 9 if longer else 4)]


@every_kind
@pytest.mark.parametrize("longer", [False, True])
def test_a_file_that_is_emptied_before_its_lines_were_read_is_named(kind, longer, tmp_path):
    log = Log(tmp_path, kind, "a")
    log.append([(1_000, n) for n in range(5)])
    readers = Readers(started(tmp_path, kind), 1)
    readers.poll(0, 2)
    readers.share_out(1)
    log.begin()
    log.append([(2_000, n) for n in range(5, 25 if longer else 6)])
    with pytest.raises(ConnectorError, match=f"{log.path} was truncated or replaced before it was read from byte"):
        readers.drain()


@every_kind
def test_a_file_that_is_gone_before_its_lines_were_read_is_named_and_one_that_was_read_may_go(kind, tmp_path):
    log, other = Log(tmp_path, kind, "a"), Log(tmp_path, kind, "b")
    log.append([(1_000, n) for n in range(5)])
    readers = Readers(started(tmp_path, kind), 1)
    assert len(readers.drain()) == 5
    log.path.unlink()
    assert len(readers.drain()) == 5
    [position] = [reader.position() for reader in readers.readers]
    assert len(position["files"]) == 1
    other.append([(1_000, n) for n in range(5)])
    readers.poll(0, 2)
    readers.share_out(1)
    other.path.unlink()
    with pytest.raises(ConnectorError, match=f"{other.path} was removed before it was read from byte"):
        readers.drain()


def test_a_line_longer_than_a_block_is_one_row(tmp_path):
    (tmp_path / "a.log").write_text("1" * 3 * growing.BLOCK + "\n2\n")
    assert Readers(started(tmp_path, "log"), 1).drain() == [int("1" * 3 * growing.BLOCK), 2]


@pytest.mark.parametrize("kind", ["csv", "json"])
def test_a_reader_without_files_does_not_hold_event_time_back(kind, tmp_path, monkeypatch):
    monkeypatch.setattr(growing, "BLOCK", 1_000)
    log = Log(tmp_path, kind, "a")
    readers = Readers(started(tmp_path, kind), 2)
    log.append([(1_000, 1), (2_000, 2)])
    readers.drain()
    readers.drain()
    assert [reader.watermark() for reader in readers.readers] == [(2_000 - MAX_DELAY) * 1_000] * 2


def test_a_line_that_does_not_fit_is_named_with_its_place(tmp_path):
    log = Log(tmp_path, "csv", "a")
    log.append([(1_000, 1)])
    readers = Readers(started(tmp_path, "csv"), 1)
    with log.path.open("a") as file:
        file.write("x,2\n")
    with pytest.raises(ConnectorError, match=rf"{log.path} can't be read before byte 16: .*'x'"):
        readers.drain()


def test_a_file_with_another_header_is_named(tmp_path):
    log, other = Log(tmp_path, "csv", "a"), tmp_path / "b.csv"
    log.append([(1_000, 1)])
    readers = Readers(started(tmp_path, "csv"), 1)
    assert readers.drain() == [1]
    other.write_text("ts,n,more\n1,2,3\n")
    with pytest.raises(ConnectorError, match=rf"{other} has the columns ts, n, more, but the files before it have ts, n"):
        readers.drain()


@pytest.mark.parametrize(
    ("read", "options", "problem"),
    [
        (read_text, {"compression": "gzip"}, "files that grow can't be compressed"),
        (read_csv, {"encoding": "utf-16"}, "files that grow can't be encoded as utf-16"),
    ],
)
def test_files_that_can_not_be_cut_into_lines_are_refused(read, options, problem):
    with pytest.raises(FlowError, match=problem):
        read("in/", follow="lines", **options)
