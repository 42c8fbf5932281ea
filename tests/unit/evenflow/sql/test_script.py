"""Scripts of SQL: tables, views, functions, settings and INSERT INTO, as flows; and those that are refused."""

from __future__ import annotations

import json

import pytest

import evenflow as ef
from evenflow.cli.command_line import main
from evenflow.engine.errors import FlowError
from evenflow.sql_translation.script import flow_of

BIDS = """
CREATE TABLE bid (
    auction BIGINT, bidder BIGINT, price BIGINT, channel VARCHAR, dateTime TIMESTAMP(3), p AS PROCTIME(),
    `day` AS DATE_FORMAT(dateTime, 'yyyy-MM-dd'), WATERMARK FOR dateTime AS dateTime - INTERVAL '4' SECOND
) WITH ('connector' = 'nexmark', 'stream' = 'bid', 'events' = '1000', 'event_rate' = '100');
"""


def rows_of(folder):
    return [json.loads(line) for path in sorted(folder.rglob("*.json")) for line in path.read_text().splitlines()]


def test_a_script_reads_tables_and_writes_the_types_of_its_target(tmp_path, waiting_for_jobs):
    text = f"""{BIDS}
    CREATE TABLE counts (d VARCHAR, begins TIMESTAMP(3), n INT, total DECIMAL(20, 2), PRIMARY KEY (d) NOT ENFORCED)
        PARTITIONED BY (d) WITH ('connector' = 'filesystem', 'path' = '{tmp_path}/out', 'format' = 'json');
    CREATE TABLE nothing (a BIGINT, b BIGINT) WITH ('connector' = 'blackhole');
    CREATE VIEW dear AS SELECT * FROM bid WHERE price > 1000;
    INSERT INTO counts SELECT `day`, window_start, COUNT(*), SUM(price)
        FROM TABLE(TUMBLE(TABLE dear, DESCRIPTOR(dateTime), INTERVAL '2' SECOND)) GROUP BY `day`, window_start, window_end;
    INSERT INTO nothing (b, a) SELECT price, price FROM bid;
    """
    flow = flow_of(text, "script")
    flow.run(runtime="local").wait()
    found = rows_of(tmp_path / "out")
    assert len(found) == 5
    prices = ef.nexmark("bid", events=1000, event_rate=100).reader(0, 1).poll(1000).rows["price"].to_pylist()
    assert sum(row["n"] for row in found) == sum(price > 1000 for price in prices)
    assert {len(row["total"].partition(".")[2]) for row in found} == {2}
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["d=2015-07-15"]


def test_a_table_is_read_once_for_all_queries():
    text = (
        BIDS
        + """
    CREATE TABLE a (x BIGINT) WITH ('connector' = 'print');
    CREATE TABLE b (x BIGINT) WITH ('connector' = 'print', 'print-identifier' = 'b');
    INSERT INTO a SELECT price FROM bid; INSERT INTO b SELECT bidder FROM bid;
    """
    )
    assert [node.name for node in flow_of(text, "script").graph.nodes.values()].count("bid") == 1


def test_unbounded_state_needs_the_setting_that_flink_has():
    text = BIDS + "CREATE TABLE a (x BIGINT) WITH ('connector' = 'print'); INSERT INTO a SELECT DISTINCT price FROM bid;"
    with pytest.raises(FlowError, match="SELECT DISTINCT keeps its rows for ever"):
        flow_of(text, "script")
    for value in ("1 d", "0"):
        flow_of(f"SET 'table.exec.state.ttl' = '{value}';{text}", "script")


PRINT = "CREATE TABLE out (x BIGINT) WITH ('connector' = 'print');"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (BIDS, "the script writes nothing"),
        (f"{BIDS}{PRINT} INSERT INTO nope SELECT price FROM bid", "there is no such table; there are: bid, out"),
        (f"{BIDS}{PRINT} INSERT INTO out SELECT price, bidder FROM bid", "the query has 2 columns, the table 1"),
        (f"{BIDS}{PRINT} INSERT INTO out (y) SELECT price FROM bid", "name all columns of the table: x"),
        (f"{BIDS}{PRINT}{PRINT}", "there are two tables or views `out`"),
        (f"{PRINT} INSERT INTO out SELECT x FROM out", "'connector' is 'print'; there are: kafka, filesystem, nexmark"),
        ("CREATE TABLE a (x BIGINT)", "the script writes nothing"),
        (f"CREATE TABLE a (x BIGINT); {PRINT} INSERT INTO out SELECT x FROM a", "table `a` needs the option 'connector'"),
        (
            (
                "CREATE TABLE a (x BIGINT) WITH ('connector' = 'kafka', 'format' = 'json', 'topic' = 't');"
                f"{PRINT} INSERT INTO out SELECT x FROM a"
            ),
            "needs the option 'properties.bootstrap.servers'",
        ),
        (
            BIDS.replace("'events'", "'foo'") + f"{PRINT} INSERT INTO out SELECT price FROM bid",
            "the options 'foo' aren't supported",
        ),
        (
            BIDS.replace("auction BIGINT", "nope BIGINT") + f"{PRINT} INSERT INTO out SELECT price FROM bid",
            "its source has no column `nope`",
        ),
        (
            "CREATE TABLE a (x BIGINT, WATERMARK FOR x AS f(x)) WITH ('connector' = 'print')",
            "WATERMARK FOR x AS f .*expected WATERMARK FOR ts",
        ),
        ("CREATE DATABASE a", "there are CREATE TABLE, CREATE VIEW and CREATE FUNCTION"),
        ("DROP TABLE a", "there are CREATE TABLE"),
        ("SET 'parallelism.default' = '2'", "SET 'parallelism.default': the only setting is 'table.exec.state.ttl'"),
        ("CREATE FUNCTION f AS 'com.example.F'", "expected 'module.function' of a Python function"),
        ("CREATE TABLE a AS SELECT 1", "EXPRESSION isn't supported|expected CREATE TABLE name"),
    ],
)
def test_wrong_scripts_are_refused(text, problem):
    with pytest.raises(FlowError, match=problem):
        flow_of(text, "script")


def test_the_command_explains_and_runs_a_script(tmp_path, capsys, waiting_for_jobs):
    script = tmp_path / "dear.sql"
    out = f"CREATE TABLE out (x BIGINT) WITH ('connector' = 'filesystem', 'path' = '{tmp_path}/out', 'format' = 'json');"
    script.write_text(f"{BIDS}{out} INSERT INTO out SELECT price FROM bid WHERE MOD(auction, 100) = 0")
    assert main(["sql", str(script), "--explain"]) == 0
    assert "Logical plan" in capsys.readouterr().out
    assert not (tmp_path / "out").exists()
    assert main(["sql", str(script), "--runtime", "local"]) == 0
    assert rows_of(tmp_path / "out")


def test_the_command_says_what_is_wrong_with_a_script(tmp_path, capsys):
    script = tmp_path / "wrong.sql"
    script.write_text("SELECT 1")
    assert main(["sql", str(script)]) == 1
    assert "there are CREATE TABLE" in capsys.readouterr().err
    assert main(["sql", str(tmp_path / "none.sql")]) == 1
    assert "none.sql" in capsys.readouterr().err
