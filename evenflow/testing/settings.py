"""Changes some of a job's settings.

>>> from evenflow.scheduler.configs.job import JobConfig
>>> changed(JobConfig(parallelism=2), checkpoint={"interval": "1s"}).checkpoint.interval
'1s'
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..scheduler.configs.job import JobConfig


def changed(config: JobConfig, **changes: Any) -> JobConfig:
    """Return `config` with these settings; a dict changes single settings of a group."""
    new = {name: replace(getattr(config, name), **value) if isinstance(value, Mapping) else value for name, value in changes.items()}
    return replace(config, **new)
