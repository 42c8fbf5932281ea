"""Jobs in this process with their state in files and in a real Valkey server."""

from __future__ import annotations

import socket
import threading
from collections import Counter
from contextlib import ExitStack

import pytest
from patience import patience
from state_server import valkey_server

import evenflow as ef
from evenflow.state.backends.server_client import ServerClient
from evenflow.testing.settings import changed

pytestmark = pytest.mark.usefixtures("waiting_for_jobs")


@pytest.fixture(params=["lmdb", "server"])
def place(request):
    return request.getfixturevalue("state_server") if request.param == "server" else request.param


def counted(state, row):
    return (state or 0) + 1, {"key": row["item"], "n": (state or 0) + 1}


def count_items(items, **config):
    flow, rows = ef.Dataflow("counted"), []
    flow.read(ef.from_items(items)).key_by("item").stateful_map(counted).write(ef.to_list(rows))
    flow.run(runtime="local", config=changed(ef.JobConfig(parallelism=2), **config)).wait(timeout=60)
    return rows


@pytest.mark.parametrize("items", [list(range(500)) * 3, ["x" * 3_000, None, "y" * 3_000, None, "", ""]], ids=["numbers", "long texts"])
def test_job_counts_the_same_in_every_state_backend(place, items, tmp_path):
    settings = {"state": {"backend": place, "dir": str(tmp_path)}}
    found = Counter((row["key"], row["n"]) for row in count_items(items, **settings))
    assert found == Counter((row["key"], row["n"]) for row in count_items(items))
    assert list(tmp_path.iterdir()) == [], "nothing is left behind"


def aggregates(rows, **config):
    """Run a running aggregate, windows and columns of state in one job; return the output of each, in any order."""
    flow, out = ef.Dataflow("aggregated"), ([], [], [])
    keyed = flow.read(ef.from_items(rows, event_time="ts", max_delay="1s")).key_by("key")
    functions = {"n": ef.count(), "total": ef.sum("seq"), "high": ef.max("key"), "different": ef.approx_distinct("seq")}
    keyed.aggregate(**functions, emit="final").write(ef.to_list(out[0], name="final"))
    keyed.window(ef.sliding("40s", every="20s")).aggregate(**functions).write(ef.to_list(out[1], name="windows"))
    keyed.stateful_map_columns(numbered, state={"n": "int64"}).write(ef.to_list(out[2], name="numbers"))
    flow.run(runtime="local", config=changed(ef.JobConfig(parallelism=2, network=ef.NetworkConfig(batch_rows=64)), **config)).wait(
        timeout=60
    )
    return [sorted(map(str, emitted)) for emitted in out]


def numbered(state, rows):
    n = rows.running_count(state["n"])
    return {"n": rows.last(n)}, {"seq": rows["seq"], "n": n}


def test_job_aggregates_the_same_in_every_state_backend(place, tmp_path):
    rows = [{"key": ("x" * 3_000 if i % 7 == 0 else f"{i % 50}"), "seq": i, "ts": i // 4} for i in range(600)]
    assert aggregates(rows, state={"backend": place, "dir": str(tmp_path)}) == aggregates(rows)
    assert list(tmp_path.iterdir()) == [], "nothing is left behind"


def test_job_whose_state_server_is_not_there_fails_with_one_line_that_says_what_to_do():
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        port = nobody.getsockname()[1]
        with pytest.raises(ef.EvenflowError) as failed:
            count_items([1], state={"backend": f"redis://127.0.0.1:{port}/0"})
    assert type(failed.value) is ef.StateBackendError
    text = str(failed.value)
    assert text.startswith(f"operator `stateful_map`: the state server 127.0.0.1:{port} can't be reached: ")
    assert "start it, or correct StateConfig(backend=...)" in text
    assert "\n" not in text


FLUSH, CUT_OFF = ("FLUSHALL",), ("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
MANY = 2_000


def tell(address, *commands):
    client = ServerClient(address, "the test")
    client.run(commands)
    client.close()


def count_with_an_accident(accident, rows, **config):
    """Count `MANY` items of seven kinds, with `accident` in the middle of a batch.

    Returns the number of calls of the function.
    """
    calls = []

    def counted_until_then(state, row):
        calls.append(row["item"])
        if len(calls) == MANY // 2:
            accident()
        return counted(state, row)

    flow = ef.Dataflow("interrupted")
    items = flow.read(ef.from_items([i % 7 for i in range(MANY)])).key_by("item")
    items.stateful_map(counted_until_then).named("counts").write(ef.to_list(rows))
    often = ef.JobConfig(
        network=ef.NetworkConfig(source_rows=50, batch_rows=50),
        checkpoint=ef.CheckpointConfig(interval="5ms"),
        restart=ef.RestartConfig(delay="10ms"),
    )
    flow.run(runtime="local", config=changed(often, **config)).wait(timeout=60)
    return len(calls)


@pytest.mark.few(1)
@pytest.mark.parametrize("commands", [[FLUSH], [CUT_OFF], [FLUSH, CUT_OFF]], ids=["flushed", "cut off", "both"])
def test_server_that_loses_everything_in_mid_stream_costs_a_restart_and_no_row(tmp_path, commands):
    rows = []
    with valkey_server() as address:
        calls = count_with_an_accident(
            lambda: tell(address, *commands), rows, state={"backend": address}, checkpoint={"dir": str(tmp_path)}
        )
    assert Counter((row["key"], row["n"]) for row in rows) == Counter((i % 7, i // 7 + 1) for i in range(MANY))
    assert calls > MANY, "some rows were processed again"


def test_server_that_goes_away_and_comes_back_empty_costs_restarts_and_no_row(tmp_path):
    rows, again = [], ExitStack()
    with ExitStack() as first, again:
        address = first.enter_context(valkey_server())

        def begin_anew():
            first.close()
            again.enter_context(valkey_server(port=int(address.rpartition(":")[2].partition("/")[0])))

        calls = count_with_an_accident(begin_anew, rows, state={"backend": address}, checkpoint={"dir": str(tmp_path)})
    assert Counter((row["key"], row["n"]) for row in rows) == Counter((i % 7, i // 7 + 1) for i in range(MANY))
    assert calls > MANY, "some rows were processed again"


@pytest.mark.parametrize(
    ("commands", "problem"),
    [([FLUSH], "has lost writes"), ([CUT_OFF], "is gone")],
    ids=["flushed", "cut off"],
)
def test_job_without_checkpoints_ends_with_the_address_of_a_server_that_lost_its_state(commands, problem):
    with valkey_server() as address, pytest.raises(ef.StateBackendError) as failed:
        count_with_an_accident(lambda: tell(address, *commands), [], state={"backend": address})
    server = address.removeprefix("redis://").removesuffix("/0")
    assert f"operator `counts`: the state server {server} {problem}" in str(failed.value)
    assert "Traceback" not in str(failed.value)


def test_job_whose_server_is_gone_when_its_state_is_measured_ends_with_operator_and_address():
    flow, begun = ef.Dataflow("measured"), threading.Event()

    def noted(state, row):
        begun.set()
        return 1, row

    flow.read(ef.generate(rate=1, keys=1)).key_by("key").stateful_map(noted).named("counts").write(ef.to_list([]))
    with ExitStack() as server:
        address = server.enter_context(valkey_server())
        job = flow.run(runtime="local", config=ef.JobConfig(state=ef.StateConfig(address), metrics=ef.MetricsConfig(window="20ms")))
        assert begun.wait(patience(60)), "the first row has come; it is asked long before the next"
        server.close()
        with pytest.raises(ef.StateBackendError, match=r"operator `counts`: the state server .* is gone"):
            job.wait(timeout=60)


@pytest.mark.parametrize("windows", [False, True])
def test_job_whose_aggregates_have_no_place_for_their_state_fails_with_that_alone(windows, tmp_path):
    flow = ef.Dataflow("homeless")
    keyed = flow.read(ef.from_items([{"k": 1, "ts": 1}], event_time="ts", unit="s")).key_by("k")
    (keyed.window(ef.tumbling("1s")) if windows else keyed).aggregate(n=ef.count()).write(ef.to_list([]))
    job = flow.run(runtime="local", config=ef.JobConfig(state=ef.StateConfig("lmdb", dir=str(tmp_path / "missing"))))
    with pytest.raises(ef.StateBackendError, match=r"operator `aggregate` can't store its state in .*missing"):
        job.wait(timeout=60)
    assert not job._runtime._thread.is_alive()
    assert job.status().state.value == "failed"
