"""Pages stay short enough to be read: words are counted without code."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_readme import prose_of

DOCS = Path(__file__).parents[2] / "docs"
MOST = {"how-to/*.md": 600, "decisions/*.md": 300, "benchmarks.md": 1_500}
"""The most words of a page."""

MOST_OF_THE_SITE = 45_000
"""The most words of all pages together, without the decisions."""


def words(page: Path) -> int:
    return len(prose_of(page.read_text()).split())


@pytest.mark.parametrize("pages", MOST)
def test_no_page_is_longer_than_its_kind_may_be(pages):
    found = [page for page in DOCS.glob(pages) if page.name != "index.md"]
    assert found
    assert [f"{page.name}: {words(page)}" for page in found if words(page) > MOST[pages]] == []


def test_the_site_stays_short():
    pages = [page for page in DOCS.rglob("*.md") if page.parent.name != "decisions"]
    assert sum(map(words, pages)) <= MOST_OF_THE_SITE
