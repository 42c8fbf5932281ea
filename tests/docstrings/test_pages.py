"""Files, tests, pages and sections that the documentation names exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [path.relative_to(ROOT).as_posix() for path in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"))]
FAULT_TESTS = ROOT / "docs" / "reference" / "fault-tests.md"
FOLDERS = "engine|state|scheduler|actors|evenflow|connectors|balancer|bench|tests"


def anchors_of(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them, and its explicit ones."""
    text = page.read_text()
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings} | set(
        re.findall(r'<a id="([\w-]+)">', text)
    )


@pytest.mark.parametrize("page", PAGES)
def test_links_of_a_page_lead_somewhere(page):
    links = re.findall(r"\]\((?!https?:)([^)#]*)#?([^)]*)\)", (ROOT / page).read_text())
    targets = [((ROOT / page).parent / path if path else ROOT / page, anchor) for path, anchor in links]
    assert [(path, anchor) for path, anchor in targets if not path.exists() or (anchor and anchor not in anchors_of(path))] == []


@pytest.mark.parametrize("page", PAGES)
def test_files_that_a_page_names_are_there(page):
    named = re.findall(rf"`((?:{FOLDERS})/[\w/]+\.py)", (ROOT / page).read_text())
    assert [name for name in named if not (ROOT / name).exists()] == []


def pages_below(index: Path) -> set[Path]:
    """Return the pages that the navigation in `index` names, by `name` or `Title <name>`, and those below them."""
    entries = [
        line.rpartition("<")[2].rstrip(">")
        for block in re.findall(r"^```{toctree}\n(.*?)^```", index.read_text(), re.DOTALL | re.MULTILINE)
        for line in block.splitlines()
        if line and not line.startswith(":")
    ]
    found = {page for entry in entries for page in index.parent.glob(f"{entry}.md")}
    return found.union(*map(pages_below, found))


def test_every_page_is_in_the_navigation_of_the_site():
    index = ROOT / "docs" / "index.md"
    assert {page.relative_to(ROOT).as_posix() for page in {index} | pages_below(index)} == {
        page for page in PAGES if page.startswith("docs/")
    }


def lines_of(page: str) -> list[str]:
    """Return the first cells of the lines of a page's tables, without their heads."""
    return re.findall(r"^\| (?!(?:subject|what happens|line) \|)([^|-][^|]*) \|", page, re.MULTILINE)


def test_every_line_of_the_guarantees_names_its_tests():
    promised, tested = lines_of((ROOT / "docs/guarantees.md").read_text()), FAULT_TESTS.read_text()
    assert len(promised) > 60
    assert [line for line in promised if line not in lines_of(tested)] == []
    without = [row for row in re.findall(r"^\| .*$", tested, re.MULTILINE) if "`tests/" not in row and "not tested" not in row]
    assert without == ["| line | tests |", "| --- | --- |"] * tested.count("| line | tests |")


def test_tests_that_show_the_guarantees_are_there():
    named = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", FAULT_TESTS.read_text())
    assert len(named) > 100
    assert [f"{file}::{test}" for file, test in named if (test and f"def {test}(") not in (ROOT / file).read_text()] == []


def test_lines_of_tables_are_found_without_their_heads():
    assert lines_of("| what happens | what you get |\n| --- | --- |\n| a `worker` is lost | a new one |\n") == ["a `worker` is lost"]


def test_anchors_are_those_of_the_headings(tmp_path):
    (tmp_path / "page.md").write_text("# What is it?\n\n## Two `words`, and more\n")
    assert anchors_of(tmp_path / "page.md") == {"what-is-it", "two-words-and-more"}
