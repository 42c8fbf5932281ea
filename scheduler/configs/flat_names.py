"""The flat settings of evenflow 0.1, which `JobConfig` takes for one more version.

Invariant: each of them warns, names the group that has it now, and means what it meant.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, replace
from functools import wraps
from typing import Any, TypeVar

from ...engine.errors import FlowError

T = TypeVar("T")

FLAT = {
    "checkpoint_interval": ("checkpoint", "interval"),
    "checkpoint_dir": ("checkpoint", "dir"),
    "checkpoint_timeout": ("checkpoint", "timeout"),
    "checkpoint_pause": ("checkpoint", "pause"),
    "checkpoints_kept": ("checkpoint", "kept"),
    "tolerable_checkpoint_failures": ("checkpoint", "tolerable_failures"),
    "allow_duplicates": ("checkpoint", "allow_duplicates"),
    "restart_delay": ("restart", "delay"),
    "restart_most": ("restart", "most"),
    "restart_quiet": ("restart", "quiet"),
    "heartbeat_timeout": ("worker", "heartbeat_timeout"),
    "start_timeout": ("worker", "start_timeout"),
    "worker_cpus": ("worker", "cpus"),
    "warm_spares": ("worker", "warm_spares"),
    "placement": ("worker", "placement"),
    "state_backend": ("state", "backend"),
    "state_dir": ("state", "dir"),
    "batch_rows": ("network", "batch_rows"),
    "source_rows": ("network", "source_rows"),
    "linger": ("network", "linger"),
    "credit_batches": ("network", "credit_batches"),
    "credit_bytes": ("network", "credit_bytes"),
    "metrics_window": ("metrics", "window"),
    "latency_interval": ("metrics", "latency_interval"),
    "metrics_port": ("metrics", "port"),
    "balancer": ("balance", "policy"),
    "balance_threshold": ("balance", "threshold"),
    "balance_after": ("balance", "after"),
    "balance_cooldown": ("balance", "cooldown"),
    "balance_rest": ("balance", "rest"),
    "balance_least_busy": ("balance", "least_busy"),
    "balance_max_bytes": ("balance", "max_bytes"),
    "balance_windows": ("balance", "windows"),
    "autoscaler": ("autoscale", "policy"),
    "autoscaler_mode": ("autoscale", "mode"),
    "autoscaler_interval": ("autoscale", "interval"),
    "autoscaler_settings": ("autoscale", "settings"),
    "min_parallelism": ("autoscale", "min_parallelism"),
    "max_parallelism": ("autoscale", "max_parallelism"),
    "latency_target": ("autoscale", "latency_target"),
}
"""By the old name: the group, and the name in it."""

_SAME_NAME = {"restart": (str, "strategy"), "metrics": (bool, "enabled")}
"""Settings whose name is a group's now: the type that they had, and the name in the group."""


def takes_flat_names(config: type[T]) -> type[T]:
    """`config` whose constructor takes the flat names too; the type checker doesn't know them, and so says which are left."""
    groups = {field.name: field.default_factory for field in fields(config) if field.default_factory is not MISSING}  # type: ignore[arg-type]
    construct: Callable[..., None] = config.__init__

    @wraps(construct)
    def construct_from_flat_names(self: T, *arguments: Any, **settings: Any) -> None:
        construct(self, *arguments, **_grouped(settings, groups))

    setattr(config, "__init__", construct_from_flat_names)  # noqa: B010 -- the type checker is to know the groups only
    return config


def _grouped(settings: Mapping[str, Any], groups: Mapping[str, Callable[[], Any]]) -> dict[str, Any]:
    flat = {name: FLAT[name] for name in settings if name in FLAT}
    for name, (old, field) in _SAME_NAME.items():
        if isinstance(settings.get(name), old):
            flat[name] = name, field
    kept = {name: value for name, value in settings.items() if name not in flat}
    changes: dict[str, dict[str, Any]] = {}
    for name, (group, field) in flat.items():
        kind = type(groups[group]()).__name__
        new = f"{group}={kind}({field}=...)"
        warnings.warn(f"JobConfig({name}=...) is {new} now; the next version knows no {name}", DeprecationWarning, stacklevel=3)
        changes.setdefault(group, {})[field] = settings[name]
    for group, fields_of in changes.items():
        base = kept.get(group)
        try:
            kept[group] = replace(groups[group]() if base is None else base, **fields_of)
        except TypeError as error:
            raise FlowError(f"JobConfig: {group} is {base!r}; expected {type(groups[group]()).__name__}(...)") from error
    return kept
