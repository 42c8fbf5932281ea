"""Settings of a job that its environment gives, so that the same program runs on a laptop and in a cluster.

Invariant: a setting of the program counts. The environment gives only those that the program left at their defaults.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from .engine.errors import FlowError
from .scheduler.configs.job import JobConfig


@dataclass(frozen=True, slots=True)
class Variable:
    """An environment variable: its value is the setting `name` of the `group` of JobConfig, converted by `kind`."""

    group: str
    name: str
    kind: Callable[[str], Any] = str


VARIABLES = {
    "EVENFLOW_CHECKPOINT": Variable("checkpoint", "dir"),
    "EVENFLOW_METRICS_HOST": Variable("metrics", "host"),
    "EVENFLOW_METRICS_PORT": Variable("metrics", "port", int),
    "EVENFLOW_WORKER_CPUS": Variable("worker", "cpus", float),
    "EVENFLOW_WORKER_START_TIMEOUT": Variable("worker", "start_timeout"),
}


def with_environment(config: JobConfig, environment: Mapping[str, str]) -> JobConfig:
    """Return the settings, with those of the environment where the program has given none.

    Raises FlowError for a value that can't be used, with the variable's name.

    >>> with_environment(JobConfig(), {"EVENFLOW_CHECKPOINT": "s3://bucket/jobs"}).checkpoint.dir
    's3://bucket/jobs'
    """
    for variable, setting in VARIABLES.items():
        text = environment.get(variable, "")
        group = getattr(config, setting.group)
        default = {field.name: field.default for field in fields(group)}
        if not text or getattr(group, setting.name) != default[setting.name]:
            continue
        try:
            given = replace(group, **{setting.name: setting.kind(text)})
        except (ValueError, FlowError) as error:
            raise FlowError(f"the environment variable {variable}={text!r} can't be used: {error}") from error
        config = replace(config, **{setting.group: given})
    return config
