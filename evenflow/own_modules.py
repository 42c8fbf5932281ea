"""The modules of the user's program, which travel with a new version of it: the processes of a running job may have imported older ones."""

from __future__ import annotations

import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType


@contextmanager
def by_value() -> Iterator[None]:
    """Pickle functions and classes of own modules with their code, not by their names. Installed packages stay names."""
    from ray import cloudpickle

    registered, installed = [], _installed()
    known = cloudpickle.list_registry_pickle_by_value()  # type: ignore[no-untyped-call]
    for name, module in list(sys.modules.items()):  # libraries put other objects there too
        if isinstance(module, ModuleType) and module.__name__ == name and name not in known and _is_own(module, installed):
            cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
            registered.append(module)
    try:
        yield
    finally:
        for module in registered:
            cloudpickle.unregister_pickle_by_value(module)  # type: ignore[no-untyped-call]


def _is_own(module: ModuleType, installed: set[Path]) -> bool:
    file = getattr(module, "__file__", None)
    package = module.__name__.partition(".")[0]
    if file is None or package in ("__main__", "__mp_main__", "evenflow"):
        return False
    path = Path(file).resolve()
    return not any(path.is_relative_to(folder) for folder in installed)


def _installed() -> set[Path]:
    paths = sysconfig.get_paths()
    return {Path(paths[name]).resolve() for name in ("stdlib", "platstdlib", "purelib", "platlib")}
