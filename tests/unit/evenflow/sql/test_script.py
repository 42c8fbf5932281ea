"""Scripts of SQL: tables, views, functions, settings and INSERT INTO, as flows; and those that are refused."""

from __future__ import annotations

import json

import pytest

import evenflow as ef
from evenflow.cli.command_line import main
from evenflow.engine.errors import FlowError
from evenflow.sql_translation.script import flow_of, script_of

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


EVENTS = """
CREATE TABLE events (
    event_type INT, auction ROW<id BIGINT, seller BIGINT>, bid ROW<auction BIGINT, price BIGINT, dateTime TIMESTAMP(3)>,
    person ROW<id BIGINT, dateTime TIMESTAMP(3)>,
    at AS CASE WHEN event_type = 2 THEN bid.dateTime ELSE person.dateTime END, WATERMARK FOR at AS at - INTERVAL '4' SECOND
) WITH ('connector' = 'nexmark', 'next-event.rate' = '100', 'first-event.rate' = '100', 'events.num' = '1000', 'bid.proportion' = '46');
CREATE VIEW bid AS SELECT bid.auction, bid.price, at FROM events WHERE event_type = 2;
"""


def test_events_of_all_kinds_have_the_time_that_the_table_computes(tmp_path, waiting_for_jobs):
    files = f"'connector' = 'filesystem', 'path' = '{tmp_path}/out', 'format' = 'json'"
    out = f"CREATE TABLE out (begins TIMESTAMP(3), n BIGINT, most BIGINT) WITH ({files});"
    windows = "TABLE(TUMBLE(TABLE bid, DESCRIPTOR(at), INTERVAL '2' SECOND))"
    query = f"INSERT INTO out SELECT window_start, COUNT(*), MAX(price) FROM {windows} GROUP BY window_start, window_end;"
    flow_of(EVENTS + out + query, "script").run(runtime="local").wait()
    found = rows_of(tmp_path / "out")
    bids = ef.nexmark("bid", events=1000, event_rate=100).reader(0, 1).poll(1000).rows
    assert len(found) == 5
    assert sum(row["n"] for row in found) == bids.num_rows
    assert max(row["most"] for row in found) == max(bids["price"].to_pylist())


def test_a_table_of_files_is_looked_up_when_a_row_arrives(tmp_path, waiting_for_jobs):
    (tmp_path / "side.csv").write_text("0,even\n1,odd\n")
    text = f"""{BIDS}
    CREATE TABLE side (`key` BIGINT, `value` VARCHAR)
        WITH ('connector.type' = 'filesystem', 'connector.path' = 'file://{tmp_path}/side.csv', 'format.type' = 'csv');
    CREATE TABLE out (auction BIGINT, v VARCHAR) WITH ('connector' = 'filesystem', 'path' = '{tmp_path}/out', 'format' = 'json');
    INSERT INTO out SELECT B.auction, S.`value` FROM (SELECT *, PROCTIME() AS arrived FROM bid) B
        JOIN side FOR SYSTEM_TIME AS OF B.arrived AS S ON MOD(B.auction, 2) = S.`key`;
    """
    flow_of(text, "script").run(runtime="local").wait()
    found = rows_of(tmp_path / "out")
    assert len(found) == 920
    assert all(row["v"] == ("odd" if row["auction"] % 2 else "even") for row in found)


def test_notes_name_options_that_change_nothing():
    text = f"""{BIDS}
    CREATE TABLE out (price BIGINT)
        WITH ('connector' = 'filesystem', 'path' = '/tmp/out', 'format' = 'csv', 'sink.rolling-policy.check-interval' = '1min');
    INSERT INTO out SELECT price FROM bid;
    """
    (note,) = script_of(text, "script").notes
    assert note == "out: files are closed by checkpoints; these options change nothing: sink.rolling-policy.check-interval"


PRINT = "CREATE TABLE out (x BIGINT) WITH ('connector' = 'print');"


def upserts(columns, options):
    selected = ", ".join(["channel"] * columns.count(" STRING"))
    return f"{BIDS}CREATE TABLE t ({columns}) WITH ('connector' = 'upsert-kafka', {options}); INSERT INTO t SELECT {selected} FROM bid;"


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
            (
                "CREATE TABLE a (x STRING) WITH ('connector' = 'kafka', 'format' = 'raw', 'topic' = 't');"
                f"{PRINT} INSERT INTO out SELECT x FROM a"
            ),
            "'format' = 'raw' has one column, `value`",
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
        (
            EVENTS.replace("'46'", "'40'") + f"{PRINT} INSERT INTO out SELECT price FROM bid",
            "'bid.proportion' is '40'; there are: 46",
        ),
        (
            EVENTS.replace("'first-event.rate' = '100'", "'first-event.rate' = '1'") + f"{PRINT} INSERT INTO out SELECT price FROM bid",
            "'first-event.rate' is '1': expected '100'",
        ),
        (
            f"{BIDS}{PRINT} INSERT INTO out SELECT b.price FROM bid b JOIN bid FOR SYSTEM_TIME AS OF PROCTIME() AS c ON b.price = c.price",
            "only a table of files can be looked up",
        ),
        (upserts("x STRING", "'key.format' = 'raw'"), r"upsert-kafka needs PRIMARY KEY \(...\) NOT ENFORCED"),
        (upserts("x STRING, PRIMARY KEY (x) NOT ENFORCED", "'key.format' = 'json'"), "write 'key.format' = 'raw' for a key of one column"),
        (
            upserts("x STRING, y STRING, PRIMARY KEY (x, y) NOT ENFORCED", "'key.format' = 'raw'"),
            "'json' for a key of several columns",
        ),
        (
            upserts("x STRING, PRIMARY KEY (x) NOT ENFORCED", "'key.format' = 'raw', 'value.format' = 'avro'"),
            "'value.format' is 'avro'; there are: json",
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


def test_several_files_are_one_script_and_functions_may_be_given(tmp_path, capsys, monkeypatch, waiting_for_jobs):
    (tmp_path / "words_of_the_test.py").write_text("def twice(price: int) -> int:\n    return 2 * price\n")
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "tables.sql").write_text(BIDS)
    query = tmp_path / "twice.sql"
    out = f"CREATE TABLE out (x BIGINT) WITH ('connector' = 'filesystem', 'path' = '{tmp_path}/out', 'format' = 'json');"
    query.write_text(f"CREATE FUNCTION twice AS 'com.example.Twice'; {out} INSERT INTO out SELECT twice(price) FROM bid")
    command = ["sql", str(tmp_path / "tables.sql"), str(query), "--runtime", "local"]
    assert main([*command, "--function", "twice=words_of_the_test.twice"]) == 0
    assert all(row["x"] % 2 == 0 for row in rows_of(tmp_path / "out"))
    assert main(command) == 1
    assert "--function twice=module.function" in capsys.readouterr().err
    assert main([*command, "--function", "twice"]) == 1
    assert "expected NAME=MODULE.FUNCTION" in capsys.readouterr().err


def test_the_command_says_what_is_wrong_with_a_script(tmp_path, capsys):
    script = tmp_path / "wrong.sql"
    script.write_text("SELECT 1")
    assert main(["sql", str(script)]) == 1
    assert "there are CREATE TABLE" in capsys.readouterr().err
    assert main(["sql", str(tmp_path / "none.sql")]) == 1
    assert "none.sql" in capsys.readouterr().err
