"""The environment of apache-flink, in the folder of the data: apart from that of evenflow, because Flink needs an older pyarrow."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from ..harness.benchmark import Say
from ..harness.errors import BenchmarkError

VERSION = "2.3.0"
WAIT = 1_200.0
"""Seconds that the installation may take."""


def install(folder: Path, say: Say) -> Path:
    """Install apache-flink below `folder` unless it is there; returns its interpreter. Raises BenchmarkError if that fails."""
    home = folder / f"flink-{VERSION}"
    python, complete = home / "bin" / "python", home / "complete"
    if not complete.exists():
        say(f"installing Flink {VERSION} in {home}: 300 MB, a few minutes")
        shutil.rmtree(home, ignore_errors=True)
        _run([sys.executable, "-m", "venv", str(home)])
        _run([str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", f"apache-flink=={VERSION}"])
        complete.touch()
    return python


def _run(command: list[str]) -> None:
    try:
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=WAIT)  # noqa: S603 -- our own interpreter and words
    except (OSError, subprocess.SubprocessError) as error:
        said = str(getattr(error, "stderr", None) or error)
        raise BenchmarkError(f"Flink {VERSION} can't be installed for the comparison: `{' '.join(command)}`:\n{said[-2000:]}") from error
