"""Every program of docs/asked.md runs as it stands there, in a namespace and a folder of its own, and prints what the page says.

Each question has its asker's issue, one program, and a link to the page that says more.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from test_readme import prose_of
from test_snippets import PYTHON

PAGE = Path(__file__).parents[2] / "docs/asked.md"
MOST_WORDS = 900
UNANSWERED = "Not answered yet"


def sections() -> dict[str, str]:
    """Return the texts of the page's sections by their headings."""
    _, *parts = re.split(r"^## (.+)$", PAGE.read_text(), flags=re.MULTILINE)
    return dict(zip(parts[::2], parts[1::2], strict=True))


QUESTIONS = [heading for heading in sections() if heading != UNANSWERED]
LONG = {
    "How do I add workers without a restart?", "How do I change code without losing state?", "Does a slow function fill the memory?",
}  # fmt: skip
"""Questions whose programs take seconds."""


@pytest.mark.parametrize(
    "question", [pytest.param(question, marks=[pytest.mark.slow] if question in LONG else []) for question in QUESTIONS]
)
@pytest.mark.usefixtures("jobs")
def test_program_runs_alone_and_prints_what_the_page_says(question, capsys):
    ((code, printed),) = PYTHON.findall(sections()[question])
    exec(compile(code, question, "exec", dont_inherit=True), {"__name__": "__main__"})
    assert printed in {"", capsys.readouterr().out}


@pytest.mark.parametrize("question", QUESTIONS)
def test_question_names_its_asker_and_the_page_that_says_more(question):
    answer, *_ = sections()[question].partition("```")
    assert question.endswith("?")
    assert re.search(r"\]\(https://github\.com/[\w-]+/[\w-]+/(issues|pull)/\d+\)", answer)
    assert re.search(r"\]\((how-to|tutorial)/[\w-]+\.md", answer)


def test_page_says_what_is_not_answered():
    assert list(sections())[-1] == UNANSWERED
    assert 15 <= len(QUESTIONS) <= 20


def test_page_is_short():
    assert len(prose_of(PAGE.read_text()).split()) <= MOST_WORDS
