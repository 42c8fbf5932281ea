"""Finds an interpreter of each version of Python that the package names as tested. None is downloaded.

>>> tested_versions('classifiers = ["Programming Language :: Python :: 3", "Programming Language :: Python :: 3.12"]')
['3.12']
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

CLASSIFIER = re.compile(r'"Programming Language :: Python :: (\d+\.\d+)"')


def tested_versions(pyproject: str) -> list[str]:
    """Return the versions that the classifiers in the text of pyproject.toml name."""
    return CLASSIFIER.findall(pyproject)


def find(version: str, uv: Path) -> Path | None:
    """Return the first interpreter of the version among `candidates`, or None."""
    return next((found for found in candidates(version, uv) if version_of(found) == version), None)


def candidates(version: str, uv: Path) -> Iterator[Path]:
    """Yield paths: next to the running interpreter, what uv finds, pyenv's from the newest, and on the PATH."""
    yield Path(sys.base_prefix, "bin", f"python{version}")
    asked = [str(uv), "python", "find", "--system", "--no-project", "--no-python-downloads", version]
    if path := subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip():
        yield Path(path)
    folder = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions")
    for each in sorted(folder.glob(f"{version}.*"), key=lambda path: [int(part) for part in re.findall(r"\d+", path.name)], reverse=True):
        yield each / "bin" / "python"
    if on_path := shutil.which(f"python{version}"):
        yield Path(on_path)


def version_of(interpreter: Path) -> str | None:
    """Return the version of a program that may be a Python, such as `3.12`, or None."""
    command = [str(interpreter), "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None
