"""Special properties of state in a server, shown with a real Valkey server."""

from __future__ import annotations

import socket
import threading
from itertools import count

import pytest
from state_server import valkey_server

from evenflow.state.backends.remote import RemoteBackend
from evenflow.state.backends.server_client import ServerClient
from evenflow.state.backends.settings import StateSettings
from evenflow.state.errors import StateBackendError

JOBS = (f"remote-{number}" for number in count())


@pytest.fixture
def job():
    return next(JOBS)


@pytest.fixture
def worker(state_server, job):
    opened = []

    def open_worker(index, attempt=0):
        opened.append(RemoteBackend(StateSettings(state_server, job=job, attempt=attempt), "count", index))
        return opened[-1]

    yield open_worker
    for backend in opened:
        backend.close()


@pytest.fixture
def names(state_server, job):
    client = ServerClient(state_server, "test")
    yield lambda: sorted(name for name in client.run([("KEYS", f"evenflow:{job}:*")])[0] if not name.endswith(b":witness"))
    client.close()


def everything(backend):
    return {key: value for keys, values in backend.snapshot() for key, value in zip(keys, values, strict=True)}


def test_group_that_is_passed_on_belongs_to_the_target_at_once_and_its_keys_are_returned(worker):
    old, new = worker(0), worker(1)
    old.put_many([1, 1, 2, 3], [b"a", b"b", b"c", b"d"], [b"1", b"2", b"3", b"4"])
    told = old.pass_on([1, 2, 5], target=1)
    assert new.get_many([1, 2], [b"b", b"c"]) == [b"2", b"3"]
    assert [sorted(keys) for keys in told] == [[b"a", b"b"], [b"c"]]
    assert everything(old) == {b"d": b"4"}
    new.take_over([1, 2])
    assert everything(new) == {b"a": b"1", b"b": b"2", b"c": b"3"}
    assert (old.count(), new.count()) == (1, 3)


def test_group_goes_to_a_worker_that_has_a_hot_key_of_it_already(worker):
    old, new = worker(0), worker(1)
    keys = [b"%d" % i for i in range(3_000)]
    old.put_many([7] * len(keys), keys, keys)
    new.put_many([7], [b"hot"], [b"here"])
    old.pass_on([7], target=1)
    assert everything(new) == {b"hot": b"here", **{key: key for key in keys}}
    assert everything(old) == {}


def test_hot_key_with_an_owner_of_its_own_is_not_in_the_snapshot_of_its_groups_owner(worker):
    home, guest = worker(0), worker(1)
    home.put_many([7], [b"cold"], [b"1"])
    guest.put_many([7], [b"hot"], [b"2"])
    assert (everything(home), everything(guest)) == ({b"cold": b"1"}, {b"hot": b"2"})


def test_state_of_another_attempt_is_never_seen(worker):
    worker(0).put_many([1], [b"a"], [b"old"])
    assert worker(0, attempt=1).get_many([1], [b"a"]) == [None]


def test_leftovers_of_killed_workers_are_removed_when_the_next_attempt_opens(worker, names):
    for index in (0, 1):
        worker(index).put_many([1], [b"a"], [b"old"])
    assert len(names()) == 2
    worker(0, attempt=1)
    assert names() == [name for name in names() if b":0:1:1" in name], "worker 1 removes its own"
    worker(1, attempt=1)
    assert names() == []


def test_leftovers_of_an_earlier_run_of_the_job_in_the_same_attempt_are_removed(worker, names):
    worker(0).put_many([1], [b"a"], [b"old"])
    assert worker(0).get_many([1], [b"a"]) == [None]
    assert names() == []


def test_late_worker_of_an_older_attempt_does_not_touch_the_newer_one(worker):
    new = worker(0, attempt=2)
    new.put_many([1], [b"a"], [b"new"])
    worker(0, attempt=1).put_many([1], [b"a"], [b"zombie"])
    assert new.get_many([1], [b"a"]) == [b"new"]


def test_close_removes_the_workers_own_state_and_not_the_state_that_it_gave_away(worker, names, job):
    old, new = worker(0), worker(1)
    old.put_many([1, 2], [b"a", b"b"], [b"1", b"2"])
    old.pass_on([1], target=1)
    old.close()
    assert names() == [f"evenflow:{job}:count:0:1:1".encode()]
    assert new.get_many([1], [b"a"]) == [b"1"]


def test_server_that_is_not_there_is_named_with_the_operator():
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        port = nobody.getsockname()[1]
        with pytest.raises(StateBackendError, match=rf"operator `count`: the state server 127\.0\.0\.1:{port} can't be reached"):
            RemoteBackend(StateSettings(f"redis://127.0.0.1:{port}/0", job="j"), "count", 0)


def test_server_that_goes_away_is_named_with_the_operator_and_close_still_works():
    with valkey_server() as address:
        backend = RemoteBackend(StateSettings(address, job="j"), "count", 0)
        backend.put_many([1], [b"a"], [b"1"])
    with pytest.raises(StateBackendError, match=r"operator `count`: the state server 127\.0\.0\.1:\d+ is gone"):
        backend.get_many([1], [b"a"])
    backend.close()


def test_password_and_database_of_the_address_are_used():
    with valkey_server("--requirepass", "s e:c@ret") as address:
        with pytest.raises(StateBackendError, match="refused a command: Authentication required"):
            ServerClient(address, "count")
        client = ServerClient(address.replace("redis://", "redis://:s%20e%3Ac%40ret@").replace("/0", "/3"), "count")
        client.run([("SET", "a", 1)])
        assert b"db=3" in client.run([("CLIENT", "INFO")])[0]
        client.close()


@pytest.fixture
def emptied():
    """Start another server, which the test may flush."""
    with valkey_server() as address:
        client = ServerClient(address, "test")
        yield address, lambda: client.run([("FLUSHALL",)])
        client.close()


OPERATIONS = {
    "get_many": lambda backend: backend.get_many([1], [b"a"]),
    "put_many": lambda backend: backend.put_many([1], [b"b"], [b"2"]),
    "delete_many": lambda backend: backend.delete_many([1], [b"a"]),
    "delete_groups": lambda backend: backend.delete_groups([1]),
    "keys_of": lambda backend: backend.keys_of(1),
    "items_of": lambda backend: backend.items_of([1]),
    "snapshot": lambda backend: list(backend.snapshot()),
    "delta": lambda backend: list(backend.delta({(1, b"a")})),
    "pass_on": lambda backend: list(backend.pass_on([1], target=1)),
    "count": lambda backend: backend.count(),
    "nbytes": lambda backend: backend.nbytes(),
    "clear": lambda backend: backend.clear(),
}


@pytest.mark.parametrize("operation", OPERATIONS)
def test_server_that_was_flushed_is_found_out_by_whatever_comes_next(emptied, operation):
    address, flush = emptied
    backend = RemoteBackend(StateSettings(address, job="j"), "count", 0)
    backend.put_many([1], [b"a"], [b"1"])
    OPERATIONS["get_many"](backend)
    flush()
    with pytest.raises(StateBackendError, match=r"operator `count`: the state server 127\.0\.0\.1:\d+ has lost writes"):
        OPERATIONS[operation](backend)
    with pytest.raises(StateBackendError, match=r"operator `count`: the state server 127\.0\.0\.1:\d+ is gone"):
        OPERATIONS["put_many"](backend)
    backend.close()


def test_server_that_is_flushed_while_a_snapshot_is_read_gives_none_of_what_is_left(emptied):
    address, flush = emptied
    backend = RemoteBackend(StateSettings(address, job="j"), "count", 0)
    groups = [group for group in range(4) for _ in range(3_000)]
    keys = [b"%d" % number for number in range(len(groups))]
    backend.put_many(groups, keys, keys)
    snapshot = backend.snapshot()
    next(snapshot)
    flush()
    with pytest.raises(StateBackendError, match="has lost writes"):
        list(snapshot)
    backend.close()


def test_another_job_of_the_same_name_is_found_out(state_server, worker):
    first = worker(0)
    first.put_many([1], [b"a"], [b"1"])
    second = worker(0)
    assert second.get_many([1], [b"a"]) == [None]
    with pytest.raises(StateBackendError, match="or another job of this name uses it"):
        first.get_many([1], [b"a"])


@pytest.mark.parametrize("policy", ["allkeys-lru", "allkeys-lfu", "allkeys-random"])
def test_server_that_forgets_keys_is_refused_at_the_start_and_at_the_next_checkpoint(policy):
    with valkey_server("--maxmemory-policy", policy) as address:
        with pytest.raises(StateBackendError, match=rf"operator `count`.*\(maxmemory-policy {policy}\).*: set maxmemory-policy noeviction"):
            RemoteBackend(StateSettings(address, job="j"), "count", 0)
        client = ServerClient(address, "test")
        client.run([("CONFIG", "SET", "maxmemory-policy", "volatile-lru")])  # state doesn't expire
        backend = RemoteBackend(StateSettings(address, job="j"), "count", 0)
        backend.put_many([1], [b"a"], [b"1"])
        for checkpoint in (backend.snapshot, lambda: backend.delta({(1, b"a")})):
            list(checkpoint())
        client.run([("CONFIG", "SET", "maxmemory-policy", policy)])
        with pytest.raises(StateBackendError, match="evicts keys"):
            backend.snapshot()
        client.close()


@pytest.mark.parametrize("name", ["a*", "a[b]", "a:b", "a?", "\\*", "count é"])
def test_names_of_operators_are_no_patterns_and_keys_of_others_are_not_touched(state_server, job, name):
    def opened(operator, job=job):
        return RemoteBackend(StateSettings(state_server, job=job), operator, 0)

    foreign = [f"evenflow:{job}:count:mine:0:1", f"evenflow:{job}:count:0:0:mine", f"evenflow:{job}:count:0:0:1:2", f"evenflow:{job}:count"]
    client = ServerClient(state_server, "test")
    client.run([("HSET", each, "a", "1") for each in foreign])
    others = [opened("ab"), opened("b", job=f"{job}:a"), opened("count")]
    for other in others:
        other.put_many([1], [b"a"], [b"1"])
    backend = opened(name)
    backend.put_many([1], [b"a"], [b"2"])
    backend.clear()
    assert [other.get_many([1], [b"a"]) for other in others] == [[b"1"]] * 3
    for other in (*others, backend):
        other.close()
    assert client.run([("HGET", each, "a") for each in foreign]) == [b"1"] * 4
    client.run([("UNLINK", *foreign)])
    client.close()


def test_server_that_is_full_refuses_and_says_why():
    with valkey_server("--maxmemory", "4mb", "--maxmemory-policy", "noeviction") as address:
        backend = RemoteBackend(StateSettings(address, job="j"), "count", 0)
        with pytest.raises(StateBackendError, match=r"operator `count`.* refused a command: .*maxmemory"):
            backend.put_many([1], [b"a"], [b"x" * 8_000_000])
        backend.close()


@pytest.mark.parametrize("answer", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"$x\r\n", b"", b"*1\r\n$3\r\nab"], ids=repr)
def test_server_that_speaks_something_else_is_refused(answer):
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer_once():
            connection, _ = server.accept()
            with connection:
                connection.recv(1_000)
                connection.sendall(answer)

        thread = threading.Thread(target=answer_once, daemon=True)
        thread.start()
        with pytest.raises(StateBackendError, match=r"operator `count`: the state server .* (is gone|doesn't speak the Redis protocol)"):
            ServerClient(f"redis://127.0.0.1:{server.getsockname()[1]}/0", "count")
        thread.join(timeout=10)


def test_more_commands_than_fit_into_any_buffer_are_answered_in_order(state_server):
    client = ServerClient(state_server, "count")
    replies = client.run([("ECHO", b"%d" % i * 20_000) for i in range(1_000)])
    assert [len(reply) for reply in replies] == [len(b"%d" % i) * 20_000 for i in range(1_000)]
    client.close()
