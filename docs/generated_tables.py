"""Generates the reference of commands, settings and metrics as Markdown, from the code that defines them.

A page has `<!-- table: commands -->` where `commands()` goes.
"""

from __future__ import annotations

import os
from argparse import ArgumentParser
from collections.abc import Callable
from dataclasses import MISSING, Field, fields
from inspect import getdoc
from typing import Any

import evenflow as ef
from evenflow.actors.job.prometheus import JobCollector
from evenflow.cli.command_line import COMMANDS, parser_of
from evenflow.scheduler.configs.job import JobConfig
from evenflow.scheduler.policies.registry import POLICIES

SCALING_POLICIES = tuple(name.partition(":")[2] for name in POLICIES.values())


def commands() -> str:
    """Return a section for each command of `evenflow`, with its help."""
    os.environ["COLUMNS"] = "100"  # argparse wraps its help at the terminal's width
    return "\n\n".join(f"## `evenflow {name}`\n\n```text\n{_help(name)}```" for name in COMMANDS)


def _help(name: str) -> str:
    (group,) = (action for action in parser_of(name)._actions if action.dest == "command")  # noqa: SLF001 -- argparse has no public way
    parser: ArgumentParser = dict(group.choices or {})[name]  # type: ignore[arg-type]
    return parser.format_help()


def settings() -> str:
    """Return a section for `JobConfig`, one for each of its groups, and one for each scaling policy."""
    groups = [(field.name, field.default_factory) for field in fields(JobConfig) if isinstance(field.default_factory, type)]
    sections = [_section("JobConfig", JobConfig, without={name for name, _ in groups})]
    sections += [_section(f"{name}={group.__name__}(...)", group) for name, group in groups]
    sections += [_section(f"{name}(...)", getattr(ef, name)) for name in SCALING_POLICIES]
    return "\n\n".join(sections)


def _section(title: str, config: Any, without: set[str] | frozenset[str] = frozenset()) -> str:
    rows = [
        f"| `{field.name}` | {_cell(str(field.type))} | {_cell(_default(field))} |" for field in fields(config) if field.name not in without
    ]
    text = (getdoc(config) or "").partition(">>>")[0].strip()
    return "\n".join([f"## `{title}`", "", text, "", "| setting | type | default |", "| --- | --- | --- |", *rows])


def _default(field: Field[Any]) -> str:
    return "required" if field.default is MISSING and field.default_factory is MISSING else repr(field.default)


def _cell(text: str) -> str:
    return f"`{text}`".replace("|", "\\|")


def _ended_job() -> ef.Job:
    """Run a job to its end: the metrics of a job can be read after it."""
    flow = ef.Dataflow("job")
    flow.read(ef.from_items([{"n": 1}])).write(ef.to_list([]))
    return flow.run(runtime="local").wait("30s")


def metrics() -> str:
    """Return a row for each metric that Prometheus reads."""
    rows = [_metric(family) for family in JobCollector("job", _ended_job()._runtime).collect()]  # noqa: SLF001 -- what a coordinator asks
    return "\n".join(["| metric | type | labels | meaning |", "| --- | --- | --- | --- |", *rows])


def _metric(family: Any) -> str:
    name = f"{family.name}_total" if family.type == "counter" else family.name
    labels = ", ".join(family._labelnames)  # noqa: SLF001 -- the client has no public way
    return f"| `{name}` | {family.type} | {labels} | {family.documentation} |"


TABLES: dict[str, Callable[[], str]] = {"commands": commands, "settings": settings, "metrics": metrics}
