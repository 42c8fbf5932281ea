from __future__ import annotations

import ast
import importlib
import json
import subprocess
import sys
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import pytest

import evenflow
from evenflow.cli.command_line import COMMANDS, GROUPS, main, parser_of


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_names_a_module_that_adds_arguments_and_runs(name):
    module = importlib.import_module(COMMANDS[name].module)
    assert callable(module.add_arguments)
    assert callable(module.run)


@pytest.fixture
def help_lines(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    return capsys.readouterr().out.splitlines()


def test_help_lists_every_command_once_in_the_group_of_its_purpose(help_lines):
    listed, group = {}, None
    for line in help_lines[help_lines.index("run and check:") :]:
        if line.endswith(":") and not line.startswith(" "):
            group = line.removesuffix(":")
        elif line:
            name = line.split()[0]
            assert name not in listed
            listed[name] = group
    assert listed == {name: title for title, commands in GROUPS.items() for name in commands}


def test_each_command_is_one_line_of_at_most_72_characters(help_lines):
    for name, command in COMMANDS.items():
        (line,) = (line for line in help_lines if line.startswith(f"  {name} "))
        assert line.endswith(f"  {command.help}")
        assert len(line) <= 72


def test_a_missing_package_of_an_extra_is_one_sentence_that_names_the_extra(tmp_path, monkeypatch, capsys):
    (tmp_path / "needs_a_package.py").write_text("import package_of_an_extra\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(COMMANDS, "bench", replace(COMMANDS["bench"], module="needs_a_package"))
    assert main(["bench", "run", "throughput"]) == 1
    assert capsys.readouterr().err == "error: `evenflow bench` needs the package package_of_an_extra: pip install 'evenflow[bench]'\n"


def test_a_missing_module_of_a_command_without_an_extra_is_no_advice_to_install(monkeypatch):
    monkeypatch.setitem(COMMANDS, "jobs", replace(COMMANDS["jobs"], module="evenflow.cli.not_there"))
    with pytest.raises(ModuleNotFoundError):
        main(["jobs"])


@pytest.mark.parametrize("words", [[], ["unknown"], ["status"], ["bench"], ["bench", "run"], ["bench", "run", "unknown"]])
def test_a_wrong_command_line_ends_with_code_2(words, capsys):
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    assert "usage: evenflow" in capsys.readouterr().err


def test_an_error_of_evenflow_s_own_is_a_line_and_code_1(tmp_path, capsys):
    assert main(["bench", "compare", str(tmp_path / "a.json"), str(tmp_path / "b.json")]) == 1
    assert capsys.readouterr().err.startswith("error:")


def test_lists_of_names_and_numbers_are_separated_by_commas():
    arguments = parser_of("bench").parse_args(["bench", "run", "throughput", "--tasks", "t1,t2", "--repeat", "5"])
    assert (arguments.tasks, arguments.repeat) == (["t1", "t2"], 5)
    assert parser_of("bench").parse_args(["bench", "run", "latency", "--rates", "1000,2000"]).rates == [1000, 2000]


def test_the_version_is_that_of_the_package(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"evenflow {version('evenflow')}\n"


AT_ONCE = [
    ["--help"], ["--version"], [], ["unknown"], *([name] for name in COMMANDS if name not in {"jobs", "plan", "bench", "ui", "doctor"}),
    ["ui", "--port", "many"], ["ui", "--port", "65536"],
    ["ui", "clicks", "--replay", "clicks.rec"], ["ui", "--replay", "clicks.rec", "--allow-actions"], ["record", "clicks"],
    ["scale", "shop"], ["migrate", "shop", "count", "--to", "1"], ["load", "shop", "count", "--windows", "many"],
]  # fmt: skip


SLOW = frozenset({"ray", "numpy", "pyarrow", "rich", "pyspark"})

IN_TURN = """
import json, sys
from evenflow.cli.command_line import main, parser_of

told = []
for words in json.loads(sys.argv[1]):
    try:
        code = main(words)
    except SystemExit as ended:
        code = ended.code
    told.append([words, code, sorted(sys.modules)])
for name in json.loads(sys.argv[2]):
    parser_of(name)
    told.append([[name], None, sorted(sys.modules)])
print(json.dumps(told))
"""


@pytest.fixture(scope="module")
def told():
    """Return the exit code and the loaded modules for each command line, then for each command whose parser is made."""
    parsers = [name for name in COMMANDS if name != "bench"]
    command = [sys.executable, "-c", IN_TURN, json.dumps(AT_ONCE), json.dumps(parsers)]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    told = json.loads(lines[-1])
    assert [words for words, _, _ in told] == [*AT_ONCE, *([name] for name in parsers)]
    return told


def test_help_and_wrong_command_lines_wait_for_no_imports(told):
    at_once = told[: len(AT_ONCE)]
    assert [(words, code) for words, code, _ in at_once if code != (0 if words and words[0] in {"--help", "--version"} else 2)] == []
    assert [(words, found) for words, _, modules in at_once if (found := SLOW.intersection(modules))] == []


def test_no_command_imports_ray_before_its_command_line_is_read(told):
    assert [words for words, _, modules in told if "ray" in modules] == []


def test_every_name_of_the_package_is_in_the_module_that_the_package_names():
    assert {name: getattr(evenflow, name) for name in evenflow.__all__}.keys() == set(evenflow.__all__)
    assert set(evenflow._HOMES) == set(evenflow.__all__) <= set(dir(evenflow))
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = evenflow.nothing


def test_type_checkers_see_the_same_names_from_the_same_modules():
    tree = ast.parse(Path(evenflow.__file__).read_text())
    block = next(node for node in tree.body if isinstance(node, ast.If))
    told = {(alias.asname or alias.name): f"{one.module}:{alias.name}" for one in block.body for alias in one.names}
    assert told == {name: home if ":" in home else f"{home}:{name}" for name, home in evenflow._HOMES.items()}
