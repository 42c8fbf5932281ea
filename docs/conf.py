"""The settings of `make docs`: Sphinx reads the Markdown pages of this folder, and takes the reference from docstrings and code."""

from __future__ import annotations

import re
import sys
from importlib.metadata import version as version_of
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from generated_tables import TABLES

project = "evenflow"
author = "evenflow"
version = release = version_of("evenflow")

extensions = ["myst_parser", "sphinx.ext.autodoc"]
source_suffix = {".md": "markdown"}

# GitHub's anchors, so that the same links work there and here; a link that leads nowhere is a warning, and `make docs` fails of it.
myst_heading_anchors = 4

autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
default_role = "code"
add_module_names = False
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 100

pygments_dark_style = "github-dark"
html_theme = "furo"
html_title = f"evenflow {release}"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_show_sphinx = False
html_show_copyright = False
html_copy_source = False
html_show_search_summary = False  # it would fetch pages, which browsers refuse where a site is opened from a folder


def markdown_to_rst(_app: Any, _what: str, _name: str, _obj: Any, _options: Any, lines: list[str]) -> None:
    """Docstrings have Markdown's single backquotes, and reStructuredText wants two for code. Examples end at an empty line."""
    example = False
    for number, line in enumerate(lines):
        example = bool(line.strip()) and (example or line.lstrip().startswith(">>>"))
        if not example:
            lines[number] = re.sub(r"(?<!`)`([^`]+)`(?!`)", r"``\1``\\ ", line)


def fill_in(_app: Any, name: str, source: list[str]) -> None:
    """Put the tables that are made from code where a page has `<!-- table: NAME -->`, and keep decisions out of the search."""
    if name.startswith("decisions/"):
        source[0] = f"---\nnosearch: true\n---\n\n{source[0]}"
    source[0] = re.sub(r"<!-- table: (\w+) -->", lambda found: TABLES[found[1]](), source[0])


def setup(app: Any) -> None:
    """Called by Sphinx."""
    app.connect("autodoc-process-docstring", markdown_to_rst)
    app.connect("source-read", fill_in)
