"""`evenflow plan`: from a file to a plan, without a cluster."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from copy import deepcopy

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from recorded_jobs import recorded, view_at

from evenflow.balancer.policies import POLICIES
from evenflow.balancer.snapshot_json import snapshot_from_json, snapshot_to_json
from evenflow.cli import main
from evenflow.scheduler.policies.registry import POLICIES as SCALING

SNAPSHOT = {
    "workers": 4,
    "key_groups": [
        {"group": 0, "worker": 1, "load": 0.13, "state_bytes": 4096},
        {"group": 2, "worker": 0, "load": 0.12, "state_bytes": 4096},
        {"group": 3, "worker": 2, "load": 0.12, "state_bytes": 4096},
        {"group": 4, "worker": 3, "load": 0.13, "state_bytes": 4096},
        {"group": 5, "worker": 1, "load": 0.5, "state_bytes": 4096},
    ],
    "hot_keys": [{"key": "JFK", "group": 5, "load": 0.3, "state_bytes": 64}],
}


DATAFLOW = {
    "operators": [
        {"name": "src", "parallelism": 1, "source_rate": 2000, "backpressure": 0.5},
        {"name": "o2", "parallelism": 2, "true_processing_rate": 1000, "true_output_rate": 3800, "latency_ms": 300},
    ],
    "edges": [["src", "o2"]],
    "policy": {"latency_target_ms": 100},
}


@pytest.fixture
def snapshot(tmp_path):
    path = tmp_path / "load.json"
    path.write_text(json.dumps(SNAPSHOT))
    return str(path)


JOIN = {
    "workers": 4,
    "key_groups": [{"group": group, "worker": group % 4, "load": 0.1} for group in range(8)] + [{"group": 8, "worker": 0, "load": 0.6}],
    "hot_keys": [{"key": "ATL", "group": 8, "load": 0.6, "left": 0.58}],
    "dealable": ["left", "right"],
}


def assert_one_line(shown, message: str = "") -> None:
    """Assert that one error, and nothing else, was printed."""
    assert shown.out == ""
    assert message in shown.err
    assert shown.err.startswith("error: ")
    assert len(shown.err.splitlines()) == 1


def plan(capsys, *words: str) -> dict:
    assert main(["plan", "balance", *words]) == 0
    return json.loads(capsys.readouterr().out)


def test_plan_for_a_join_splits_its_hot_key_and_says_why(capsys, tmp_path):
    path = tmp_path / "join.json"
    path.write_text(json.dumps(JOIN))
    found = plan(capsys, "--snapshot", str(path))
    assert found["splits"] == [{"key": "ATL", "home": 0, "others": [1, 2], "dealt": "left"}]
    assert found["reason"].startswith("hot key 'ATL' alone has 1.71 times the mean load, which no placement of whole keys divides")
    assert "splits" not in plan(capsys, "--snapshot", str(path), "--whole-keys")
    path.write_text(json.dumps({**JOIN, "dealable": []}))
    assert "splits" not in plan(capsys, "--snapshot", str(path))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"dealable": ["top"]}, "dealable has 'top'"),
        ({"dealable": "left"}, "dealable is 'left'"),
        ({"hot_keys": [{"key": "ATL", "group": 8, "load": 0.6, "left": 0.7}]}, "hot_keys[0].left is 0.7"),
        ({"hot_keys": [{"key": "ATL", "group": 8, "load": 0.6, "left": "all"}]}, "hot_keys[0].left is 'all'"),
        ({"split_keys": [{"key": "ATL"}]}, "split_keys[0].group is missing"),
        (
            {"split_keys": [{"key": "ATL", "group": 8, "dealt": "left", "workers": [0, 1], "loads": [0.1, 0.1]}]},
            "split_keys[0].key is 'ATL', which is listed twice",
        ),
        (
            {"split_keys": [{"key": "LAX", "group": 8, "dealt": "up", "workers": [0, 1], "loads": [0.1, 0.1]}]},
            "split_keys[0].dealt is 'up'",
        ),
        (
            {"split_keys": [{"key": "LAX", "group": 8, "dealt": "left", "workers": [0, 9], "loads": [0.1, 0.1]}]},
            "split_keys[0].workers[1] is 9",
        ),
        ({"split_keys": [{"key": "LAX", "group": 8, "dealt": "left", "workers": [0, 0], "loads": [0.1, 0.1]}]}, "list each worker once"),
        ({"split_keys": [{"key": "LAX", "group": 8, "dealt": "left", "workers": [0], "loads": [0.1, 0.1]}]}, "list each worker once"),
        ({"split_keys": [{"key": "LAX", "group": 8, "dealt": "left", "workers": [0, 1], "loads": [0.1, -1]}]}, "loads[1] is -1"),
        ({"split_keys": [{"key": "LAX", "group": 9, "dealt": "left", "workers": [0, 1], "loads": [0.1, 0.1]}]}, "group is 9, which is not"),
        ({"split_keys": [{"key": "LAX", "group": 8, "dealt": "left", "workers": 0, "loads": [0.1]}]}, "split_keys[0].workers is 0"),
    ],
)
def test_impossible_splits_are_refused_by_the_field(capsys, tmp_path, wrong, message):
    path = tmp_path / "join.json"
    path.write_text(json.dumps({**JOIN, **wrong}))
    assert main(["plan", "balance", "--snapshot", str(path)]) == 2
    assert_one_line(capsys.readouterr(), message)


def test_snapshot_with_split_keys_is_written_as_it_is_read(tmp_path):
    split = {"key": ["LAX", 1], "group": 8, "dealt": "left", "workers": [0, 1], "loads": [0.1, 0.1], "copied": 0.05}
    found = snapshot_from_json(json.dumps({**JOIN, "split_keys": [split]}))
    assert snapshot_from_json(snapshot_to_json(found)) == found
    assert found.split_keys[0].whole_load == pytest.approx(0.15)


def test_it_prints_the_plan_as_json(snapshot, capsys):
    shown = plan(capsys, "--policy", "hotspot", "--snapshot", snapshot)
    assert list(shown) == ["moves", "imbalance_before", "imbalance_after", "floor", "state_bytes", "reason"]
    assert shown["imbalance_before"] == pytest.approx(2.52)
    assert shown["imbalance_after"] == pytest.approx(1.2)
    assert shown["floor"] == pytest.approx(1.2)
    assert {"key": "JFK", "source": 1, "target": 0} in shown["moves"]


@pytest.mark.parametrize("policy", POLICIES)
def test_every_policy_plans(policy, snapshot, capsys):
    assert plan(capsys, "--policy", policy, "--snapshot", snapshot)["reason"]


def test_hotspot_is_the_default(snapshot, capsys):
    assert plan(capsys, "--snapshot", snapshot) == plan(capsys, "--policy", "hotspot", "--snapshot", snapshot)


def test_limits_are_heeded(snapshot, capsys):
    assert plan(capsys, "--snapshot", snapshot, "--tolerance", "3")["moves"] == []
    assert plan(capsys, "--snapshot", snapshot, "--max-bytes", "100")["state_bytes"] <= 100


def test_a_snapshot_comes_from_standard_input_too(snapshot, capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO(json.dumps(SNAPSHOT)))
    assert plan(capsys, "--snapshot", "-") == plan(capsys, "--snapshot", snapshot)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--policy", "best"], "'best' is not a balancer"),
        (["--tolerance", "0.5"], "tolerance is 0.5"),
        (["--snapshot", "/nowhere/load.json"], "the load snapshot /nowhere/load.json can't be read"),
    ],
)
def test_a_mistake_is_one_line_and_code_2(words, message, snapshot, capsys):
    assert main(["plan", "balance", "--snapshot", snapshot, *words]) == 2
    assert_one_line(capsys.readouterr(), message)


@pytest.mark.parametrize(("what", "given"), [("balance", "snapshot"), ("scale", "dataflow")])
def test_it_needs_neither_ray_nor_spark(what, given, request):
    code = "import sys; from evenflow.cli import main; main(sys.argv[1:]); print(sorted({'ray', 'pyspark', 'zmq'} & set(sys.modules)))"
    words = [sys.executable, "-c", code, "plan", what, "--snapshot", request.getfixturevalue(given)]
    shown = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    assert shown.splitlines()[1] == "[]"


@pytest.fixture
def dataflow(tmp_path):
    path = tmp_path / "dataflow.json"
    path.write_text(json.dumps(DATAFLOW))
    return str(path)


def test_scale_prints_the_decision_as_json(dataflow, capsys):
    assert main(["plan", "scale", "--policy", "ds2", "--snapshot", dataflow]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown == {"parallelism": {"o2": 4}, "remove_node": None, "rebalance": [], "reason": "o2 needs 4.00 workers and has 2"}


@pytest.mark.parametrize("policy", SCALING)
def test_every_scaling_policy_decides(policy, dataflow, capsys):
    assert main(["plan", "scale", "--policy", policy, "--snapshot", dataflow]) == 0
    assert json.loads(capsys.readouterr().out)["parallelism"]["o2"] > 2


def test_ds2_is_the_default(dataflow, capsys):
    assert main(["plan", "scale", "--snapshot", dataflow]) == 0
    assert json.loads(capsys.readouterr().out)["parallelism"] == {"o2": 4}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--policy", "best"], "'best' is not a scaling policy"),
        (["--snapshot", "/nowhere/dataflow.json"], "the dataflow snapshot /nowhere/dataflow.json can't be read"),
    ],
)
def test_a_mistake_of_scale_is_one_line_and_code_2(words, message, dataflow, capsys):
    assert main(["plan", "scale", "--snapshot", dataflow, *words]) == 2
    assert_one_line(capsys.readouterr(), message)


def test_a_dataflow_with_a_cycle_is_refused(tmp_path, capsys):
    path = tmp_path / "cycle.json"
    path.write_text(json.dumps(DATAFLOW | {"edges": [["src", "o2"], ["o2", "src"]]}))
    assert main(["plan", "scale", "--snapshot", str(path)]) == 2
    assert_one_line(capsys.readouterr(), "there is a cycle through src, o2")


def given_text(monkeypatch, text: str) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))


NAMES = ["a[/b]b", "count[eu]", "[red]", ":cat:", "\u001b[31m", "a\nb", "\ud800", "x" * 5000]
ODD_NUMBERS = [5e-324, 1e308, 10**30, 10**400, -1, 0, True, "NaN", "1", None, [], {}]


@pytest.mark.parametrize("name", NAMES)
def test_names_are_shown_as_they_are(name, monkeypatch, capsys):
    o2 = DATAFLOW["operators"][1] | {"name": name}
    given_text(monkeypatch, json.dumps(DATAFLOW | {"operators": [DATAFLOW["operators"][0], o2], "edges": [["src", name]]}))
    assert main(["plan", "scale", "--snapshot", "-"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["parallelism"] == {name: 4}
    assert shown["reason"] == f"{name} needs 4.00 workers and has 2"
    given_text(monkeypatch, json.dumps(DATAFLOW | {"operators": [o2 | {"source_rate": -1}], "edges": []}))
    assert main(["plan", "scale", "--snapshot", "-"]) == 2
    assert_one_line(capsys.readouterr(), "source_rate is -1: it must be a finite number" if len(name) > 100 else "")


@pytest.mark.parametrize(
    "text",
    [
        "", "{", "[]", "7", "[" * 5000 + "]" * 5000, '{"operators": ' + "[" * 5000, "\x00",
        '{"operators": [{"name": "a", "parallelism": 1e999}]}',
        json.dumps(DATAFLOW | {"operators": [DATAFLOW["operators"][0] | {"chain": []}]}),
        json.dumps(DATAFLOW | {"time": 10**400}), json.dumps(DATAFLOW | {"time": float("nan")}),
        json.dumps(DATAFLOW | {"reconfiguration_s": float("inf")}),
    ],
)  # fmt: skip
@pytest.mark.parametrize("kind", ["scale", "balance"])
def test_a_wrong_snapshot_is_one_line_and_code_2(kind, text, monkeypatch, capsys):
    given_text(monkeypatch, text)
    assert main(["plan", kind, "--snapshot", "-"]) == 2
    assert_one_line(capsys.readouterr())


def test_bytes_that_are_no_text_are_one_line_and_code_2(tmp_path, capsys):
    path = tmp_path / "load.json"
    path.write_bytes(b"\xff\xfe{}")
    assert main(["plan", "balance", "--snapshot", str(path)]) == 2
    assert_one_line(capsys.readouterr(), "can't be read")


@pytest.mark.parametrize(
    ("policy", "setting"),
    [
        ("ds2", "activation_window=100000000"), ("latency", "violations=100000000"), ("threshold", "scale_down_delay=3650000d"),
        ("queueing", "processors=100000000"), ("dhalion", "blacklist=3650000d"),
    ],
)  # fmt: skip
def test_extreme_settings_of_a_policy_take_no_time(policy, setting, monkeypatch, capsys):
    """It would take hours to replay every look, or to give away one processor after the other."""
    given_text(monkeypatch, json.dumps(DATAFLOW | {"policy": DATAFLOW["policy"] | {"interval_s": 1e-9}}))
    assert main(["plan", "scale", "--policy", policy, "--snapshot", "-", "--set", setting]) == 0
    assert json.loads(capsys.readouterr().out)["reason"]


def test_policy_has_the_settings_of_its_own_that_are_set(dataflow, capsys):
    words = ["plan", "scale", "--policy", "stela", "--snapshot", dataflow]
    assert main([*words, "--set", "slots=3"]) == 0
    assert json.loads(capsys.readouterr().out)["parallelism"] == {"o2": 4}
    assert main([*words, "--set", "slots=3", "--set", "congestion=1.5"]) == 0
    assert json.loads(capsys.readouterr().out)["parallelism"] == {"o2": 3}


@pytest.mark.parametrize(
    ("policy", "setting", "message"),
    [
        ("ds2", "slots=1", "ds2 has no setting 'slots': its own settings are activation_window, target_ratio, min_change"),
        ("ds2", "name=x", "ds2 has no setting 'name'"),
        ("ds2", "max_change=1", "ds2 has no setting 'max_change'"),
        ("ds2", "min_change=0", "Ds2: min_change is 0; expected a whole number of at least 1"),
        ("ds2", "min_change=lots", "Ds2: min_change is 'lots'; expected a whole number of at least 1"),
        ("ds2", "min_change=" + "9" * 5000, "Ds2: min_change is inf; expected a whole number"),
        ("ds2", "target_ratio=nan", "Ds2: target_ratio is nan; expected a number from 0 to 1"),
        ("dhalion", "blacklist=soon", "Dhalion: blacklist 'soon' is not a duration"),
        ("stela", "remove_nodes=2", "Stela: remove_nodes is 2"),
        ("ds2", "min_change", "--set 'min_change': write NAME=VALUE"),
        ("ds2", "=2", "--set '=2': write NAME=VALUE"),
        ("ds2", "min_change=", "--set 'min_change=': write NAME=VALUE"),
    ],
)
def test_wrong_setting_is_one_line_that_names_it(policy, setting, message, dataflow, capsys):
    assert main(["plan", "scale", "--policy", policy, "--snapshot", dataflow, "--set", setting]) == 2
    assert_one_line(capsys.readouterr(), message)


def places(document):
    """Yield every place in a document that could hold another value: its object or list, and the key or index in it."""
    for at in document if isinstance(document, dict) else range(len(document)):
        yield document, at
        if isinstance(document[at], (dict, list)):
            yield from places(document[at])


def not_json(text: str) -> None:
    raise AssertionError(f"{text} is not JSON")


@pytest.mark.slow
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
@pytest.mark.parametrize(("kind", "whole", "policies"), [("scale", DATAFLOW, SCALING), ("balance", SNAPSHOT, POLICIES)])
def test_every_snapshot_gives_a_plan_or_one_line_of_error(kind, whole, policies, monkeypatch, capsys, data):
    document = deepcopy(whole)
    for _ in range(data.draw(st.integers(1, 4))):
        holder, at = data.draw(st.sampled_from(list(places(document))))
        holder[at] = data.draw(st.sampled_from([*NAMES, *ODD_NUMBERS]) | st.floats(0, 1e6) | st.integers(1, 5))
    given_text(monkeypatch, json.dumps(document))
    code = main(["plan", kind, "--policy", data.draw(st.sampled_from(list(policies))), "--snapshot", "-"])
    shown = capsys.readouterr()
    if code == 0:
        assert json.loads(shown.out, parse_constant=not_json)["reason"]
    else:
        assert code == 2
        assert_one_line(shown)


@pytest.fixture
def recording(tmp_path):
    return str(recorded(tmp_path / "job.rec", [view_at(second) for second in range(30)]))


def test_a_plan_from_a_recording_is_that_of_the_moment(capsys, recording):
    shown = plan(capsys, "--snapshot", f"{recording}@12")
    assert shown["imbalance_before"] == pytest.approx(1.8)
    assert shown["moves"]
    assert shown == plan(capsys, "--snapshot", f"{recording}@12", "--operator", "count")
    assert main(["plan", "scale", "--policy", "ds2", "--snapshot", f"{recording}@12"]) == 0
    assert json.loads(capsys.readouterr().out)["reason"]


def test_plan_from_a_recording_has_the_jobs_own_settings_unless_others_are_set(capsys, tmp_path):
    own = {"ds2": {"min_change": 3}}
    views = [view_at(second, loads=(0.05, 0.05), own_settings=own) for second in range(30)]
    path = str(recorded(tmp_path / "own.rec", views))
    for at in ("@12", "@all"):
        assert main(["plan", "scale", "--snapshot", path + at]) == 0
        shown = capsys.readouterr().out
        assert "fewer than 3 workers more or less are noise" in " ".join(shown.split())
        assert main(["plan", "scale", "--snapshot", path + at, "--set", "min_change=1"]) == 0
        assert "noise" not in capsys.readouterr().out
        assert main(["plan", "scale", "--snapshot", path + at, "--set", "slots=1"]) == 2
        assert_one_line(capsys.readouterr(), "ds2 has no setting 'slots'")


def test_a_table_has_what_a_policy_would_have_done_all_the_time(capsys, recording):
    assert main(["plan", "balance", "--policy", "lpt", "--snapshot", f"{recording}@all"]) == 0
    shown = capsys.readouterr().out
    assert "lpt, replayed on recorded data" in shown
    assert shown.count("1.80") == 24
    assert main(["plan", "scale", "--policy", "threshold", "--snapshot", f"{recording}@all"]) == 0
    assert "threshold, replayed on recorded data" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("at", "message"),
    [("", "name a moment of it"), ("@31", "no second 31"), ("@noon", "is no time"), ("@", "is no time")],
)
def test_a_wrong_moment_is_one_line(capsys, recording, at, message):
    assert main(["plan", "balance", "--snapshot", f"{recording}{at}"]) == 2
    assert_one_line(capsys.readouterr(), message)


def test_a_damaged_recording_is_a_line(capsys, tmp_path, recording):
    cut = tmp_path / "cut.rec"
    cut.write_bytes((tmp_path / "job.rec").read_bytes()[:200])
    assert main(["plan", "balance", "--snapshot", f"{cut}@1"]) == 2
    assert_one_line(capsys.readouterr(), "has no view")
