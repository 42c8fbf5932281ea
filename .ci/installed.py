"""Installs the wheel in an empty environment of an interpreter, and checks that it works there as a stranger uses it, without Java."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator, Sequence
from email.parser import Parser
from pathlib import Path

FLOW = """
import shutil, sys
import evenflow as ef
import pyarrow.parquet as pq

assert shutil.which("java") is None
flow, (runtime, folder) = ef.Dataflow("installed"), sys.argv[1:]
words = flow.read(ef.from_items([{"word": word} for word in "to be or not to be".split()]))
words.key_by("word").aggregate(n=ef.count(), emit="final").write(ef.write_parquet(folder))
flow.run(runtime=runtime, config=ef.JobConfig(parallelism=2)).wait("20m")
counts = sorted((row["word"], row["n"]) for row in pq.read_table(folder).to_pylist())
assert counts == [("be", 2), ("not", 1), ("or", 1), ("to", 2)], counts
"""

TYPED = "import evenflow as ef\nreveal_type(ef.Dataflow('typed'))\n"
REVEALED = 'Revealed type is "evenflow.dataflow.Dataflow"'


FOREIGN = {"VIRTUAL_ENV", "JAVA_HOME", "RAY_ADDRESS"}
"""Variables that a stranger's shell doesn't set."""


class CommandError(Exception):
    """A command that has failed, with its output."""


def run(*command: str | Path, cwd: Path, variables: dict[str, str] | None = None) -> str:
    """Run a command and return its output. Raises CommandError if it fails."""
    done = subprocess.run(list(map(str, command)), cwd=cwd, env=variables, capture_output=True, text=True, check=False)
    if done.returncode:
        raise CommandError(f"{' '.join(map(str, command))} has failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def extras(wheel: Path) -> list[str]:
    """Return the names of the wheel's extras."""
    with zipfile.ZipFile(wheel) as archive:
        (metadata,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return Parser().parsestr(archive.read(metadata).decode()).get_all("Provides-Extra") or []


class Installed:
    """An environment in `folder` with the wheel and its dependencies only. `options` and `variables` are of `uv pip install`."""

    def __init__(self, folder: Path, wheel: Path, uv: Path, options: Sequence[str | Path], variables: dict[str, str]) -> None:
        self._folder, self._wheel, self._uv, self._options, self._variables = folder, wheel, uv, options, variables
        self._bin = folder / "environment" / "bin"
        self._python = self._bin / "python"

    def check(self, interpreter: Path, constraints: Path) -> Iterator[str]:
        """Yield what was done, step by step. Raises CommandError at the first that fails."""
        begun = time.monotonic()
        run(self._uv, "venv", "--quiet", "--no-project", "--python", interpreter, self._bin.parent, cwd=self._folder)
        constrained: list[str | Path] = ["-c", constraints]
        try:
            self._install(self._wheel, *constrained)
        except CommandError as error:
            self._install(self._wheel)
            constrained = []
            yield f"installed without {constraints.name}, which doesn't hold: {error}"
        else:
            yield f"installed with {constraints.name} in {time.monotonic() - begun:.0f} s"
        alone = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON") and name not in FOREIGN}
        alone["PATH"] = str(self._bin)
        alone["EVENFLOW_WORKER_START_TIMEOUT"] = "10m"  # the first processes compile all modules
        run(self._bin / "evenflow", "--version", cwd=self._folder, variables=alone)
        run(self._bin / "evenflow", "--help", cwd=self._folder, variables=alone)
        yield "evenflow --help"
        for runtime in ("local", "ray"):
            run(self._python, "-I", "-c", FLOW, runtime, self._folder / runtime, cwd=self._folder, variables=alone)
            yield f"a flow on {runtime}"
        names = extras(self._wheel)
        self._resolve(names, constrained)
        yield f"{len(names)} extras resolve"

    def check_types(self) -> Iterator[str]:
        """Yield that mypy finds the types of the package. Raises CommandError if it doesn't."""
        mypy = (sys.executable, "-m", "mypy", "--config-file=", "--cache-dir=/dev/null", "--python-executable", self._python)
        told = run(*mypy, "-c", TYPED, cwd=self._folder)
        if REVEALED not in told:
            raise CommandError(f"mypy sees no types of the installed package:\n{told}")
        yield "types"

    def _install(self, *what: str | Path) -> None:
        run(
            self._uv,
            "pip",
            "install",
            "--quiet",
            "--python",
            self._python,
            *self._options,
            *what,
            cwd=self._folder,
            variables=self._variables,
        )

    def _resolve(self, names: list[str], constrained: Sequence[str | Path]) -> None:
        """Resolve all extras together; if that fails, raise the error of the first that doesn't resolve alone."""
        try:
            self._install("--dry-run", f"{self._wheel}[{','.join(names)}]", *constrained)
        except CommandError:
            for name in names:
                self._install("--dry-run", f"{self._wheel}[{name}]", *constrained)
            raise
