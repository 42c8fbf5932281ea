"""Consoles and tables.

Invariant: text from a job (names of operators, keys, errors) is shown verbatim, and never interpreted as rich's markup, as the name of an
emoji or as a terminal command. Nothing is cut off on a narrow terminal.

>>> table = DataTable("operator", "key")
>>> table.row("count[eu]", ":cat: [/b]")
>>> print(as_text(table).splitlines()[-1])
count[eu]  :cat: [/b]
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from io import StringIO

from rich.box import SIMPLE_HEAD, Box
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

_WIDTH = 120
"""Columns in a notebook."""

_UNSHOWN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


def console(*, stderr: bool = False) -> Console:
    """Open the terminal. Use no other `Console`: this one doesn't interpret texts."""
    return Console(stderr=stderr, markup=False, emoji=False, highlight=False)


def complain(problem: object) -> None:
    """Print an error to stderr, without line breaks at the terminal's width."""
    console(stderr=True).print(Text.assemble(("error:", "bold red"), " ", data(problem)), soft_wrap=True)


def data(value: object) -> Text:
    """Return the text with characters that no terminal shows (control characters, halves of surrogate pairs) as escapes."""
    return Text(_UNSHOWN.sub(lambda found: found[0].encode("unicode_escape").decode(), str(value)))


def as_text(renderable: RenderableType) -> str:
    """Render as plain text without colours, as wide as the terminal, or 80 columns without one."""
    plain = Console(file=StringIO(), color_system=None, force_terminal=False, markup=False, emoji=False, highlight=False)
    with plain.capture() as captured:
        plain.print(renderable)
    return "\n".join(line.rstrip() for line in captured.get().splitlines()).strip("\n")


def as_html(renderable: RenderableType) -> str:
    """Render for a notebook, with colours, as HTML that refers to no other file."""
    plain = Console(file=StringIO(), record=True, width=_WIDTH, markup=False, emoji=False, highlight=False, force_jupyter=False)
    plain.print(renderable)
    return plain.export_html(inline_styles=True, code_format='<pre style="line-height: 1.25; overflow-x: auto">{code}</pre>')


class DataTable(Table):
    """A table without a frame that shows texts verbatim on any console and folds long cells. `right` names the columns of numbers."""

    def __init__(self, *columns: str, right: Sequence[str] = (), title: str | None = None, box: Box | None = SIMPLE_HEAD) -> None:
        super().__init__(box=box, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
        self._heading = title
        for column in columns:
            self.add_column(data(column), justify="right" if column in right else "left", overflow="fold")

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw the title above the table: it may be wider."""
        if self._heading is not None:
            yield data(self._heading)
        yield from super().__rich_console__(console, options)

    def row(self, *cells: str) -> None:
        """Add a row."""
        self.add_row(*map(data, cells))


def lines(texts: Iterable[str]) -> Text:
    """Join lines of text that follow a table."""
    return data("\n".join(texts))
