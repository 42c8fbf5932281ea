"""The origins of modules: how closely the code of each is compared."""

from __future__ import annotations

import sys
from enum import Enum

ENGINE = __name__.partition(".")[0]


class Origin(Enum):
    """The origin of code. OWN: the user's, compared by value. INSTALLED: packages, by code within a module. FIXED: by name."""

    OWN = "own"
    INSTALLED = "installed"
    FIXED = "fixed"


def origin_of(module: str | None) -> Origin:
    """Return the origin of the code of a module. FIXED: Python's library and evenflow, which all workers of a job share.

    >>> origin_of("json"), origin_of("numpy"), origin_of("__main__")
    (<Origin.FIXED: 'fixed'>, <Origin.INSTALLED: 'installed'>, <Origin.OWN: 'own'>)
    """
    top = (module or "__main__").partition(".")[0]
    if top == "__main__":
        return Origin.OWN
    if top in sys.stdlib_module_names or top == ENGINE:
        return Origin.FIXED
    file = getattr(sys.modules.get(module or ""), "__file__", None) or getattr(sys.modules.get(top), "__file__", None) or ""
    return Origin.INSTALLED if "site-packages" in file or "dist-packages" in file else Origin.OWN


def version_of(module: str | None) -> str:
    """Return the version that the package of a module states, empty without one."""
    package = sys.modules.get((module or "").partition(".")[0])
    version = None if package is None else vars(package).get("__version__")  # without a module's own `__getattr__`, which may warn
    return version if isinstance(version, str) else ""
