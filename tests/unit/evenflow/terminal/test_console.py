"""Text is drawn as data, even if it looks like markup."""

from __future__ import annotations

import ast
import io
from pathlib import Path

import pytest
from rich.console import Console

from evenflow.terminal.console import DataTable, as_text, complain, console, data
from evenflow.terminal.listing import Listing

ROOT = Path(__file__).parents[4]
NAMES = ["a[/b]c", "count[eu]", "[red]x[/red]", ":cat:", "[link=x]"]


def one_cell(name: str) -> DataTable:
    table = DataTable(f"h {name}", title=f"t {name}")
    table.row(f"c {name}")
    return table


@pytest.mark.parametrize("name", NAMES)
def test_names_are_shown_as_they_are_in_titles_heads_and_cells(name):
    assert [line.strip() for line in as_text(one_cell(name)).splitlines() if name in line] == [f"t {name}", f"h {name}", f"c {name}"]


@pytest.mark.parametrize("name", NAMES)
def test_names_are_shown_unchanged_on_a_console_of_the_user(name):
    screen = io.StringIO()
    Console(file=screen, width=80).print(one_cell(name))
    assert screen.getvalue().count(name) == 3


@pytest.mark.parametrize("name", NAMES)
def test_lines_outside_of_tables_are_shown_unchanged(name, capsys):
    console().print(f"{name} is cancelled")
    complain(f"no job `{name}`")
    assert capsys.readouterr() == (f"{name} is cancelled\n", f"error: no job `{name}`\n")


@pytest.mark.parametrize(("text", "shown"), [("a\x1b[31mb", r"a\x1b[31mb"), ("\ud800", r"\ud800"), ("a\x9bb", r"a\x9bb"), ("a\tb", "a\tb")])
def test_unprintable_characters_are_escaped(text, shown):
    assert data(text).plain == shown


def test_nothing_is_cut_off_where_the_terminal_is_narrow(monkeypatch):
    monkeypatch.setenv("COLUMNS", "30")
    table = DataTable("operator", "records", right=("records",))
    table.row("a_name_that_is_longer_than_the_terminal", "123,456,789,012")
    drawn = as_text(table)
    assert max(map(len, drawn.splitlines())) <= 30
    letters = "".join(drawn.split())
    assert "…" not in letters
    assert sum(map(str.isdigit, letters)) == 12


def test_an_error_is_one_line_however_narrow_the_terminal(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "20")
    complain("a long sentence " * 10)
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_a_listing_is_a_list_that_prints_as_its_table():
    listing = Listing(["a[/b]"], lambda names: one_cell(names[0]))
    assert listing == ["a[/b]"]
    assert "c a[/b]" in str(listing)
    assert repr(listing) == "['a[/b]']"


@pytest.mark.slow
def test_all_modules_draw_with_the_same_console():
    """A `Console` of rich's own takes names for markup."""
    for folder in ("evenflow", "scheduler", "actors", "balancer", "connectors", "bench"):
        for path in (ROOT / folder).rglob("*.py"):
            names = {
                alias.name
                for node in ast.walk(ast.parse(path.read_text()))
                if isinstance(node, ast.ImportFrom) and node.module in {"rich", "rich.console"}
                for alias in node.names
            }
            assert path.name == "console.py" or not names & {"Console", "print", "get_console"}, path
