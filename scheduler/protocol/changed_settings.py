"""Settings that were changed while a job ran: the answer to the request, and plain data for a coordinator that takes over."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class SettingChange:
    """A changed setting of a running job: its name, and its values `before` and `after`.

    >>> print(SettingChange("checkpoint.interval", "10s", "5s"))
    checkpoint.interval: 10s -> 5s
    """

    setting: str
    before: Any
    after: Any

    def __str__(self) -> str:
        return f"{self.setting}: {self.before} -> {self.after}"


@dataclass(frozen=True, slots=True)
class ChangedSettings:
    """All settings of a job that differ from those that it was started with, as numbers, texts and mappings.

    `values`: by the setting's name; `balancers`: policies that were chosen for single operators.
    """

    values: Mapping[str, Any] = field(default_factory=dict)
    balancers: Mapping[str, str] = field(default_factory=dict)
