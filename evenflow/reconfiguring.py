"""Settings of a running job, as its user gives them: whole groups in Python, single settings on the command line.

>>> wanted_settings({"checkpoint": CheckpointConfig(interval="5s"), "linger": "2ms"})["checkpoint.interval"]
'5s'
>>> parse_setting("balance.threshold=1.5")
('balance.threshold', 1.5)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from .connectors.files.remote import folder_or_url
from .engine.errors import RequestError
from .scheduler.configs.changes import LIVE
from .scheduler.configs.checkpoint import CheckpointConfig
from .scheduler.configs.job import JobConfig
from .scheduler.protocol.changed_settings import SettingChange
from .scheduler.protocol.requests import ChangeSettings, Responder
from .terminal.listing import Listing

_TRUTH = {"true": True, "false": False}


def reconfigured(runtime: Responder, wanted: Mapping[str, Any]) -> list[SettingChange]:
    """Change these settings of a job, by name; return those that have another value now. Raises as `job.reconfigure` does."""
    from .terminal.reports import settings_table

    return Listing[SettingChange](runtime.ask(ChangeSettings(wanted)), settings_table)


def wanted_settings(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the single settings, by name, in keyword arguments of `job.reconfigure`; None stands for one that was not given.

    A setting of a group that can't change while a job runs counts only if it isn't the default. Raises RequestError for an argument
    of another type than the group.
    """
    defaults = JobConfig()
    groups = {each.name: type(group) for each in fields(defaults) if is_dataclass(group := getattr(defaults, each.name))}
    wanted: dict[str, Any] = {}
    for name, value in given.items():
        if value is None:
            continue
        if name not in groups:
            wanted[name] = value
            continue
        if not isinstance(value, groups[name]):
            raise RequestError(f"reconfigure: {name} is {value!r:.200}; expected ef.{groups[name].__name__}(...)")
        wanted |= _of_group(name, value)
    return wanted


def parse_setting(text: str) -> tuple[str, Any]:
    """Parse NAME=VALUE, where `none` stands for None. Raises RequestError for another text."""
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise RequestError(f"{text!r:.100} is no setting: write NAME=VALUE, for example checkpoint.interval=5s")
    return name, _parse(value, _type_of(name))


def _of_group(name: str, group: Any) -> dict[str, Any]:
    values = {f"{name}.{each.name}": (getattr(group, each.name), each.default) for each in fields(group)}
    wanted = {setting: value for setting, (value, default) in values.items() if setting in LIVE or value != default}
    if isinstance(group, CheckpointConfig) and group.dir is not None:
        wanted["checkpoint.dir"] = folder_or_url(group.dir, "CheckpointConfig(dir=...)")
    return wanted


def _type_of(name: str) -> str:
    """Return the annotation of a setting that can change; empty for others, whose texts the job refuses."""
    owner: Any = JobConfig()
    for part in LIVE.get(name, ()):
        annotation = next(str(each.type) for each in fields(owner) if each.name == part)
        owner = getattr(owner, part)
        if not is_dataclass(owner):
            return annotation
    return ""


def _parse(text: str, annotation: str) -> Any:
    if text == "none" and "None" in annotation:
        return None
    if annotation == "bool":
        return _TRUTH.get(text, text)
    if any(kind in annotation for kind in ("int", "float", "Duration")):
        for number in (int, float):
            try:
                return number(text)
            except ValueError:
                continue
    return text
