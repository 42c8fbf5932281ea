from __future__ import annotations

import importlib

import pytest

from evenflow.cli import COMMANDS, main, parser_of


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_names_a_module_that_adds_arguments_and_runs(name):
    module = importlib.import_module(COMMANDS[name].module)
    assert callable(module.add_arguments)
    assert callable(module.run)


def test_help_lists_every_command(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    shown = capsys.readouterr().out
    assert all(f"\n    {name}" in shown for name in COMMANDS)


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
