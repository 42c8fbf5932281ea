"""Changes of the settings of a running job: which settings can change, and what becomes of a job's settings.

A setting is named by its group and its field, as in `ef.JobConfig`; `linger` and `log_level` are named alone.

>>> before = JobConfig()
>>> after = changed(before, {"checkpoint.interval": "5s", "linger": "2ms"})
>>> [str(change) for change in differences(before, after)]
['checkpoint.interval: 10s -> 5s', 'linger: 5ms -> 2ms']
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass, replace
from datetime import timedelta
from typing import Any

from ...engine.errors import FlowError, RequestError
from ..policies.base import ScalingPolicy
from ..policies.registry import POLICIES, named, own_settings
from ..protocol.changed_settings import SettingChange
from .autoscale import AutoscaleConfig
from .balance import BalanceConfig
from .job import JobConfig
from .restart import RestartConfig

Path = tuple[str, ...]
"""The place of a setting in a `JobConfig`: its field, perhaps below a group."""

SCALING_POLICY = "autoscale.policy"

_WHOLE = {"balance": BalanceConfig, "autoscale": AutoscaleConfig, "restart": RestartConfig}

LIVE: Mapping[str, Path] = {
    **{f"{group}.{each.name}": (group, each.name) for group, kind in _WHOLE.items() for each in fields(kind)},
    **{f"checkpoint.{name}": ("checkpoint", name) for name in ("interval", "timeout", "pause", "tolerable_failures")},
    "linger": ("network", "linger"),
    "migration_strategy": ("migration_strategy",),
    "log_level": ("log_level",),
}
"""The settings that can change while a job runs, by name."""


def changed(config: JobConfig, wanted: Mapping[str, Any]) -> JobConfig:
    """Return the settings with these changes. Raises RequestError for a setting that is unknown, wrong, or can't change while the
    job runs.
    """
    groups: dict[str, dict[str, Any]] = {}
    alone: dict[str, Any] = {}
    for name, value in wanted.items():
        if name not in LIVE:
            _refuse_change(config, name, value)
            continue
        *group, setting = LIVE[name]
        (groups.setdefault(group[0], {}) if group else alone)[setting] = value
    try:
        replaced = {group: replace(getattr(config, group), **values) for group, values in groups.items()}
        return replace(config, **replaced, **alone)
    except FlowError as error:
        raise RequestError(str(error)) from error


def differences(before: JobConfig, after: JobConfig) -> tuple[SettingChange, ...]:
    """Return the settings that differ, of those that can change."""
    pairs = ((name, _value(before, path), _value(after, path)) for name, path in LIVE.items())
    return tuple(SettingChange(name, old, new) for name, old, new in pairs if old != new)


def to_plain(changes: Iterable[SettingChange]) -> dict[str, Any]:
    """Return the new values as numbers, texts and mappings, without a scaling policy that is not one of evenflow's."""
    return {change.setting: _plain(change.after) for change in changes if not is_foreign(change.after)}


def from_plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values that `to_plain` was given.

    >>> policy = named("ds2", min_change=2)
    >>> from_plain(to_plain([SettingChange("autoscale.policy", "off", policy)]))["autoscale.policy"] == policy
    True
    """
    return {name: named(value["name"], **value["own"]) if isinstance(value, dict) else value for name, value in values.items()}


def is_foreign(value: Any) -> bool:
    """True for a scaling policy of the user's own, which has no name by which another process would find it."""
    return isinstance(value, ScalingPolicy) and not (value.name in POLICIES and type(named(value.name)) is type(value))


def _plain(value: Any) -> Any:
    if isinstance(value, ScalingPolicy):
        return {"name": value.name, "own": dict(own_settings(value))}
    return value.total_seconds() if isinstance(value, timedelta) else value


def _value(config: JobConfig, path: Path) -> Any:
    value: Any = config
    for name in path:
        value = getattr(value, name)
    return value


def _refuse_change(config: JobConfig, name: str, value: Any) -> None:
    """Raise RequestError unless the setting has this value already."""
    path = tuple(name.split("."))
    if path not in _paths(config) or path in LIVE.values():
        raise RequestError(f"there is no setting {name!r:.100} that can change while a job runs: those that can are {', '.join(LIVE)}")
    if str(_value(config, path)) != str(value):
        group = type(getattr(config, path[0])).__name__ if len(path) > 1 else "JobConfig"
        raise RequestError(
            f"{group}({path[-1]}=...) can't change while the job runs, because workers and saved state depend on it: stop the job with a "
            "savepoint, job.stop(savepoint=...), and start it again with the new setting, flow.run(from_savepoint=..., config=...)"
        )


def _paths(config: JobConfig) -> set[Path]:
    """Return the paths of all settings."""
    found: set[Path] = set()
    for each in fields(config):
        value = getattr(config, each.name)
        found |= {(each.name, inner.name) for inner in fields(value)} if is_dataclass(value) else {(each.name,)}
    return found
