"""Every Python snippet of the documentation runs as it stands there, and prints what the page says.

The snippets of a page are one program: what one defines, those below it can use. They run in a folder of their own, and jobs run in this
process. A block of `text` right below a snippet is what it prints. Blocks of `py` are programs of other engines.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from test_readme import prose_of

import evenflow as ef
from evenflow.bench.nexmark import Events

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PYTHON = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.DOTALL | re.MULTILINE)

RUN_ELSEWHERE = {
    "asked.md": "tests/docstrings/test_asked_page.py",
    "how-to/chaos.md": "tests/cluster/views/test_pages_on_ray.py",
    "how-to/connectors.md": "tests/docstrings/test_connectors_page.py",
    "how-to/debezium.md": "tests/unit/connectors/kafka/test_kafka_page.py",
    "how-to/kafka-avro.md": "tests/unit/connectors/kafka/test_kafka_page.py",
    "how-to/kafka-sink.md": "tests/unit/connectors/kafka/test_kafka_page.py",
    "how-to/kafka.md": "tests/unit/connectors/kafka/test_kafka_page.py",
    "how-to/service.md": "tests/cluster/connectors/test_service_example.py",
    "how-to/spark.md": "tests/spark/test_spark_page.py",
    "tutorial/4-on-ray.md": "tests/cluster/views/test_pages_on_ray.py",
    "tutorial/5-a-live-job.md": "tests/cluster/views/test_pages_on_ray.py",
}
"""Pages whose snippets need Ray, Spark, a broker or a server, or are programs of their own, and the tests that run them."""

NEEDS_NODES = "job.scale_out(nodes=1)"
"""A call that needs nodes. `tests/support/cluster/several_nodes.py` has some; here calls are only checked."""


def snippets(page: str) -> list[tuple[str, str | None]]:
    """Return the Python blocks of a page, each with the output that the page shows, if any."""
    return [(code, printed or None) for code, printed in PYTHON.findall((DOCS / page).read_text())]


PAGES = sorted(page for path in DOCS.rglob("*.md") if snippets(page := path.relative_to(DOCS).as_posix()))


def clicks(flow: ef.Dataflow, name: str = "generate") -> ef.Stream:
    """Return an unbounded stream."""
    return flow.read(ef.generate(rate=500, every="10ms", keys=50, string_keys=True, name=name))


def counting(name: str = "delays") -> tuple[ef.Dataflow, list[dict[str, Any]]]:
    """Return an unbounded flow with the operators `count` and `joined`, and its output."""
    flow, rows = ef.Dataflow(name), list[dict[str, Any]]()
    keyed = clicks(flow).key_by("key")
    keyed.aggregate(n=ef.count()).named("count").write(ef.to_list(rows))
    keyed.join(clicks(flow, "others").key_by("key"), ef.between(0, "1ms")).named("joined").write(ef.to_list([], name="pairs"))
    return flow, rows


def running(name: str = "delays", parallelism: int = 4) -> dict[str, Any]:
    """Start a job of `counting`, and wait for its first results."""
    flow, rows = counting(name)
    job = flow.run(parallelism=parallelism, config=ef.JobConfig(checkpoint=ef.CheckpointConfig("saved/", interval="50ms")))
    while not rows:  # waits, because a busy loop would keep the interpreter from the job's thread, and its load would look uneven
        with suppress(ef.JobTimeoutError):
            job.wait(0.05)
            raise AssertionError(job.status())
    return {"job": job, "flow": flow}


def written() -> dict[str, Any]:
    """Return the names of a flow that is not run."""
    flow = ef.Dataflow("written")
    stream = clicks(flow)
    return {
        "flow": flow,
        "clicks": stream.rename(key="user"),
        "prices": stream.rename(key="item"),
        "lines": stream,
        "source": ef.generate(),
    }


def snapshot() -> dict[str, Any]:
    """Return the JSON of the page."""
    (text,) = re.findall(r"^```json\n(.*?)^```", (DOCS / "reference/scaling-snapshot.md").read_text(), re.DOTALL | re.MULTILINE)
    return {"text": text}


PREPARED: dict[str, Callable[[], dict[str, Any]]] = {
    "concepts/migration.md": running,
    "how-to/cluster.md": running,
    "how-to/delta.md": written,
    "how-to/iceberg.md": written,
    "how-to/scaling.md": lambda: running(parallelism=1) | {"source": ef.generate()},
    "how-to/split-key.md": running,
    "how-to/tables.md": written,
    "how-to/windows.md": written,
    "nexmark.md": lambda: {"events": Events.generated(ef.Dataflow("events"), events=10)},
    "reference/errors.md": lambda: {"flow": counting()[0]},
    "reference/refused-records.md": lambda: written() | {"parse": dict, "update": lambda state, row: (state, row)},
    "reference/scaling-snapshot.md": snapshot,
}
"""The names that the snippets of a page use without defining them, because the page is about something else."""

LONG = {
    "concepts/migration.md", "how-to/cluster.md", "how-to/restart.md", "how-to/savepoints.md", "how-to/scaling.md", "how-to/split-key.md",
    "how-to/state-versions.md", "how-to/upgrade.md", "reference/errors.md",
}  # fmt: skip
"""Pages whose snippets take seconds."""


@pytest.mark.parametrize(
    "page", [pytest.param(page, marks=[pytest.mark.slow] if page in LONG else []) for page in PAGES if page not in RUN_ELSEWHERE]
)
@pytest.mark.usefixtures("jobs")
def test_snippets_run_and_print_what_the_page_says(page, capsys):
    space = {"__name__": "__main__", "ef": ef} | PREPARED.get(page, dict)()
    for code, printed in snippets(page):
        if NEEDS_NODES in code:
            assert all(hasattr(ef.Job, called) for called in re.findall(r"job\.(\w+)", code))
            continue
        capsys.readouterr()
        exec(compile(code, page, "exec", dont_inherit=True), space)
        assert printed in {None, capsys.readouterr().out}


def test_the_program_of_bytewax_gives_the_same():
    testing = pytest.importorskip("bytewax.testing", reason="has no wheel for this Python")
    (code,) = re.findall(r"^```py\n(.*?)^```", (DOCS / "moving-from/bytewax.md").read_text(), re.DOTALL | re.MULTILINE)
    space: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(code, "moving-from/bytewax.md", "exec"), space)
    testing.run_main(space["flow"])
    assert sorted(space["found"]) == [("ann", (0, 2)), ("ann", (1, 1)), ("bob", (0, 1))]


@pytest.mark.parametrize("chapter", sorted((DOCS / "tutorial").glob("*.md")), ids=lambda path: path.stem)
def test_chapter_of_the_tutorial_is_short(chapter):
    assert len(prose_of(chapter.read_text()).split()) <= 600


def test_snippets_of_other_tests_are_run_in_those_tests():
    assert set(RUN_ELSEWHERE) <= set(PAGES)
    assert [test for page, test in RUN_ELSEWHERE.items() if page not in (ROOT / test).read_text()] == []


def test_a_snippet_that_prints_something_else_is_found():
    assert PYTHON.findall("```python\nprint(1)\n```\n\n```text\n2\n```\n") == [("print(1)\n", "2\n")]
