from __future__ import annotations

import pytest

from evenflow.bench.nexmark.changelog import write_final_rows
from evenflow.bench.nexmark.check import compare, connect
from evenflow.bench.nexmark.data import make


@pytest.fixture
def database(tmp_path):
    with connect(make(tmp_path, 5_000, lambda _: None).folder / "parquet") as connection:
        yield connection


def lines_of(database, query):
    return [f"+I[{', '.join(map(str, row))}]" for row in database.execute(query).fetchall()]


def written(database, name, lines, folder):
    (folder / "changes.txt").write_text("\n".join(["Picked up JAVA_TOOL_OPTIONS: -Xmx6g", *lines, ""]))
    write_final_rows(database, name, folder / "changes.txt", folder)
    return compare(database, name, folder)


def test_printed_rows_are_compared_with_the_oracle(database, tmp_path):
    lines = lines_of(database, "SELECT auction, bidder, price, \"dateTime\" AT TIME ZONE 'UTC', extra FROM bid")
    assert written(database, "q0", lines, tmp_path) == (4_600, 0, 0)


def test_workers_put_their_number_before_a_row(database, tmp_path):
    lines = lines_of(database, "SELECT auction, price FROM bid WHERE auction % 123 = 0")
    assert written(database, "q2", [f"{place % 2 + 1}> {line}" for place, line in enumerate(lines)], tmp_path) == (len(lines), 0, 0)


def test_rows_that_are_taken_back_do_not_count(database, tmp_path):
    lines = lines_of(database, "SELECT bidder, count(*) FROM bid GROUP BY bidder")
    old = lines[0].replace("+I[", "").removesuffix("]")
    changed = [f"+I[{old}]", f"-U[{old}]", "+U[1, 1]", "-D[1, 1]", *lines]
    assert written(database, "q12", changed, tmp_path) == (len(lines), 0, 0)


def test_missing_and_wrong_rows_are_counted(database, tmp_path):
    lines = lines_of(database, "SELECT auction, price FROM bid WHERE auction % 123 = 0")
    assert written(database, "q2", [*lines[1:], "+I[123, 5]", lines[1]], tmp_path) == (len(lines) + 1, 1, 2)
