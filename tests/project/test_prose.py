"""Docstrings, comments and messages are plain English: they begin with the usual word, and contain none of the banned ones.

A module's docstring says what it is for, a class's begins with a noun phrase, a function's with a verb, and that of a boolean
property with "True if". A test's name is a sentence of at most 90 characters in the same words.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import pytest
from module_imports import ROOT

CHECKED = (".ci", "actors", "balancer", "bench", "connectors", "docs", "engine", "evenflow", "examples", "scheduler", "state", "tests")
"""The folders of Python files, each with everything below it."""

PLANTED = "tests/project/test_prose.py"
"""The file that isn't checked: its strings are examples of broken rules."""

HEADLESS = frozenset({
    "What", "Whether", "Of", "Who", "Whose", "Whoever", "Whatever", "Those", "As", "From", "By", "That", "How", "Which", "When", "Where",
    "Why", "In", "For", "With", "To", "If", "Than",
})  # fmt: skip
"""Words with which no docstring begins: they lack the noun or the verb that says what is described."""

NOUNS = frozenset(
    {"The", "A", "An", "All", "Any", "Each", "Every", "Its", "This", "These", "It", "One", "No", "None", "Nothing", "Another", "There"}
)
"""Words with which a function's docstring doesn't begin, except for properties and tests: a verb says what the function does."""

BANNED = re.compile(
    r"\b(anew|nobody|whoever|whomever|whereof|of\s+which|what\s+comes\s+out|as\s+far\s+as|by\s+itself|beside|lies|lie\s+in|left\s+out)\b",
    re.IGNORECASE,
)
"""Words and phrases for which there is a usual one, such as recreated, no worker, output, automatically, next to, stored,
dropped.
"""

BANNED_IN_NAMES = re.compile(r"\b(told|tells?|hears?|heard|comes?\s+out|as\s+long\s+as|by\s+themselves|lie|somebody|anybody|everybody)\b")
"""Words for which a test's name has a usual one, such as reports, gets, while, automatically. They are fine in texts."""

HEADLESS_NAMES = frozenset({"what", "who", "whose", "whoever", "whatever", "those", "of", "as"})
"""Words with which no test's name begins: it names its subject."""

LONGEST_NAME = 90
"""Characters of a test's name at most."""

LEAST_WORDS = 3
"""Shorter strings are names and keys, not messages."""


@dataclass(frozen=True)
class Docstring:
    """A docstring. `subject`: module, class, function, test, property, boolean property or attribute."""

    subject: str
    name: str
    line: int
    text: str


def docstrings(tree: ast.Module) -> Iterator[Docstring]:
    """Yield all docstrings, including those below assignments."""
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if not isinstance(body, list):
            continue
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and (
            found := _text(body[0] if body else None)
        ):
            yield Docstring(_subject(node), getattr(node, "name", "module"), found.lineno, found.value)
        for statement, following in pairwise(body):
            if isinstance(statement, ast.Assign | ast.AnnAssign) and (found := _text(following)):
                yield Docstring("attribute", ast.unparse(statement).partition("=")[0].strip(), found.lineno, found.value)


def problems(source: str) -> list[str]:
    """Return what breaks the rules in a module, a line each."""
    tree = ast.parse(source)
    found, texts = [], dict[int, str]()
    for docstring in docstrings(tree):
        problem = _beginning(docstring)
        if problem is not None:
            found.append((docstring.line, f"the docstring of {docstring.name} begins with {problem}"))
        texts[docstring.line] = docstring.text
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            found += [(node.lineno, f"{node.name} {problem}") for problem in _of_name(node.name)]
    if BANNED.search(source):  # few modules have any: most need no second look
        for line, text in (*texts.items(), *_messages(tree), *_comments(source)):
            found += [(line, f"`{word[0]}` in {' '.join(text.split())[:100]!r}") for word in BANNED.finditer(text)]
    return [f"line {line}: {problem}" for line, problem in sorted(found)]


def _beginning(docstring: Docstring) -> str | None:
    """Return the first word of a docstring if it breaks the rules."""
    match = re.match(r"[^\w]*([A-Za-z]+)", docstring.text)
    if match is None:
        return None
    word = match[1]
    if word in HEADLESS or (docstring.subject == "function" and word in NOUNS):
        return f"`{word}`"
    if docstring.subject == "boolean property" and word not in {"True", "False"}:
        return f"`{word}`, not with `True if`"
    return None


def _of_name(name: str) -> Iterator[str]:
    """Yield what breaks the rules in the name of a test."""
    _, *words = name.split("_")
    sentence = " ".join(words)
    for banned in (BANNED, BANNED_IN_NAMES):
        for word in banned.finditer(sentence):
            yield f"contains `{word[0]}`"
    if words[0] in HEADLESS_NAMES:
        yield f"begins with `{words[0]}`"
    if len(name) > LONGEST_NAME:
        yield f"has {len(name)} characters, more than {LONGEST_NAME}"


def _subject(node: ast.AST) -> str:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        if node.name.startswith("test_"):
            return "test"
        if not any("property" in ast.unparse(decorator) for decorator in node.decorator_list):
            return "function"
        return "boolean property" if node.returns is not None and ast.unparse(node.returns) == "bool" else "property"
    return "class" if isinstance(node, ast.ClassDef) else "module"


def _text(statement: ast.stmt | None) -> ast.Constant | None:
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant) and isinstance(statement.value.value, str):
        return statement.value
    return None


def _messages(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield the strings that are no docstrings, and the parts of f-strings, with their lines."""
    for node in ast.walk(tree):
        strings = [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.Constant) and isinstance(child.value, str)]
        if not isinstance(node, ast.Expr):
            yield from ((string.lineno, string.value) for string in strings if len(string.value.split()) >= LEAST_WORDS)


def _comments(source: str) -> Iterator[tuple[int, str]]:
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def files() -> dict[str, list[str]]:
    """Return the checked files by folder, relative to the project."""
    found: dict[str, list[str]] = {}
    for top in CHECKED:
        for path in sorted((ROOT / top).rglob("*.py")):
            file = path.relative_to(ROOT)
            if str(file) != PLANTED:
                found.setdefault(str(file.parent), []).append(str(file))
    return found


FILES = files()


@pytest.mark.parametrize("folder", FILES)
def test_folder_is_written_in_plain_english(folder):
    assert [f"{file}, {problem}" for file in FILES[folder] for problem in problems((ROOT / file).read_text("utf-8"))] == []


def test_all_folders_of_code_are_checked():
    packages = {path.parent.name for path in ROOT.glob("*/__init__.py")}
    assert packages <= set(CHECKED) == {folder.partition("/")[0] for folder in FILES}


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        pytest.param('"""What a worker does."""', "module begins with `What`", id="a module"),
        pytest.param('class A:\n    """Of one job."""', "A begins with `Of`", id="a class"),
        pytest.param('def f():\n    """Whether it runs."""', "f begins with `Whether`", id="a function"),
        pytest.param('def f():\n    """The number of rows."""', "f begins with `The`", id="a function as a noun"),
        pytest.param('async def f():\n    """Who answers."""', "f begins with `Who`", id="a coroutine"),
        pytest.param('class A:\n    def f(self):\n        """As `g`."""', "f begins with `As`", id="a method"),
        pytest.param('N = 1\n"""How many there are."""', "N begins with `How`", id="an attribute"),
        pytest.param('class A:\n    n: int = 1\n    """By worker."""', "n: int begins with `By`", id="an attribute of a class"),
        pytest.param(
            'class A:\n    @property\n    def f(self) -> bool:\n        """The state is over."""',
            "not with `True if`",
            id="a boolean property",
        ),
        pytest.param('"""Rows that nobody reads."""', "`nobody`", id="a word in a docstring"),
        pytest.param("n = 1  # made anew", "`anew`", id="a word in a comment"),
        pytest.param('raise ValueError(f"worker {name} lies in a folder")', "`lies`", id="a word in a message"),
        pytest.param("def test_rows_that_nobody_reads_are_dropped(): ...", "contains `nobody`", id="a word in a test's name"),
        pytest.param("async def test_failures_are_told(): ...", "contains `told`", id="a word that only names may not have"),
        pytest.param("def test_state_is_kept_as_long_as_a_window_is_open(): ...", "contains `as long as`", id="a phrase in a test's name"),
        pytest.param(
            "class A:\n    def test_what_is_late_is_dropped(self): ...", "begins with `what`", id="a test's name without a subject"
        ),
        pytest.param(f"def test_{'row' * 29}(): ...", "has 92 characters, more than 90", id="a long name of a test"),
        pytest.param('"""A table.\n\nIt has rows, some of which\nare late.\n"""', "`of which`", id="a phrase"),
    ],
)
def test_planted_fault_is_found(source, problem):
    (found,) = problems(source)
    assert problem in found


@pytest.mark.parametrize(
    "source",
    [
        '"""The clock of a job."""',
        'class A:\n    """A clock."""',
        'def f():\n    """Return the time."""',
        'class A:\n    @property\n    def f(self) -> bool:\n        """True if it runs."""',
        'class A:\n    @property\n    def f(self) -> int:\n        """The number of rows."""',
        'def test_f():\n    """The rows come from two sources."""',
        'def f():\n    return {"what lies": 1}',
        "def f():\n    pass",
        "def nobody_told(): ...",
        f"def test_{'row' * 28}s(): ...",
    ],
)
def test_plain_english_is_accepted(source):
    assert problems(source) == []
