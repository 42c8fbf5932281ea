"""The files of an image: a Dockerfile, the packages of the program, and the versions that are installed here."""

from __future__ import annotations

import platform
from collections.abc import Iterable
from importlib.metadata import Distribution, distributions, version
from pathlib import Path
from urllib.parse import urlsplit

TEMPLATE = Path(__file__).with_name("Dockerfile")
EXTRAS = {"s3": "s3", "s3a": "s3", "gs": "gcs", "gcs": "gcs", "abfs": "azure", "abfss": "azure", "az": "azure"}
"""The extra of evenflow that a checkpoint's URL needs, by its scheme."""

REQUIREMENTS = "requirements.txt"
UNPINNED = frozenset({"evenflow", "pip", "setuptools", "wheel"})


def image_files(program: str, checkpoint: str | None, installed: Iterable[Distribution] | None = None) -> dict[str, str]:
    """Return the texts of the files by name.

    >>> files = image_files("clicks.py", "s3://bucket/checkpoints")
    >>> sorted(files), "COPY clicks.py ./" in files["Dockerfile"]
    (['Dockerfile', 'constraints.txt', 'requirements.txt'], True)
    >>> files["requirements.txt"].startswith("evenflow[s3]==")
    True
    """
    dockerfile = TEMPLATE.read_text(encoding="utf-8").replace("PYTHON_VERSION", platform.python_version()).replace("PROGRAM", program)
    pins = constraints(distributions() if installed is None else installed)
    return {"Dockerfile": dockerfile, REQUIREMENTS: requirement(checkpoint), "constraints.txt": pins}


def requirement(checkpoint: str | None) -> str:
    """Return evenflow's requirement, with the extra that the URL of the checkpoints needs."""
    extra = EXTRAS.get(urlsplit(checkpoint or "").scheme)
    return f"evenflow{'' if extra is None else f'[{extra}]'}=={version('evenflow')}\n"


def constraints(installed: Iterable[Distribution]) -> str:
    """Return the versions of all packages that are installed here, one per line."""
    found = {package.name.lower().replace("_", "-"): package.version for package in installed if package.name}
    return "".join(f"{name}=={found[name]}\n" for name in sorted(found) if name not in UNPINNED)
