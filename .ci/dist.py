"""`make dist`: builds the sdist and its wheel, and checks the wheel on each tested version of Python that is installed here.

Both are built by the installed setuptools in a copy of the files known to git: they contain nothing else, and the checkout stays
clean. Versions of Python without an interpreter on this machine are named as not tested.
"""

from __future__ import annotations

import os
import shutil
import sys
import tarfile
import tempfile
from itertools import chain
from pathlib import Path

from installed import CommandError, Installed, run
from interpreters import find, tested_versions
from pip_settings import settings

ROOT = Path(__file__).parents[1]
DIST, WHEELS = ROOT / "dist", ROOT / "build" / "wheels"
CONSTRAINTS = ROOT / "constraints.txt"
UV = Path(sys.executable).with_name("uv")
PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check")


def build(what: str, sources: Path, into: Path) -> Path:
    """Build `what`, "sdist" or "wheel", and return the file."""
    program = f"import sys; from setuptools.build_meta import build_{what}; build_{what}(sys.argv[1])"
    run(sys.executable, "-c", program, into, cwd=sources)
    (made,) = into.glob("*.whl" if what == "wheel" else "*.tar.gz")
    return made


def copy_of_sources(folder: Path) -> Path:
    """Copy the files known to git, in their present state."""
    for name in run("git", "ls-files", "-z", cwd=ROOT).split("\0"):
        if name and (ROOT / name).exists():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name, follow_symlinks=False)
    return folder


def build_both(work: Path) -> Path:
    """Build the sdist and, from it, the wheel; return the wheel."""
    sdist = build("sdist", copy_of_sources(work / "sources"), DIST)
    with tarfile.open(sdist) as archive:
        archive.extractall(work / "unpacked", filter="data")
    (unpacked,) = (work / "unpacked").iterdir()
    wheel = build("wheel", unpacked, DIST)
    print(f"built {sdist.relative_to(ROOT)} and, from it, {wheel.relative_to(ROOT)}", flush=True)
    return wheel


def build_spark(work: Path) -> None:
    """Build PySpark's wheel in `build/wheels`, once for all environments: it is published as an sdist of half a gigabyte only."""
    run(*PIP, "wheel", "--quiet", "--no-deps", "-c", CONSTRAINTS, "--find-links", WHEELS, "--wheel-dir", WHEELS, "pyspark", cwd=work)


def main() -> int:
    """Build the wheel and check it; return the exit code: 1 if a check has failed."""
    shutil.rmtree(DIST, ignore_errors=True)
    DIST.mkdir()
    WHEELS.mkdir(parents=True, exist_ok=True)
    failed = 0
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        wheel = build_both(work)
        build_spark(work)
        variables = {**os.environ, **settings(run(*PIP, "config", "list", cwd=work).splitlines(), os.environ)}
        typed = False
        for version in tested_versions((ROOT / "pyproject.toml").read_text(encoding="utf-8")):
            interpreter = find(version, UV)
            if interpreter is None:
                print(f"Python {version}: not tested, no interpreter was found", flush=True)
                continue
            folder = work / version
            folder.mkdir()
            print(f"Python {version}, {interpreter}:", flush=True)
            try:
                installed = Installed(folder, wheel, UV, ["--find-links", WHEELS], variables)
                for done in chain(installed.check(interpreter, CONSTRAINTS), () if typed else installed.check_types()):
                    print(f"  {done}", flush=True)
                typed = True  # the same files for all versions
            except CommandError as error:
                failed = 1
                print(f"  FAILED: {error}", flush=True)
            shutil.rmtree(folder)
    return failed


if __name__ == "__main__":
    try:
        sys.exit(main())
    except CommandError as error:
        sys.exit(str(error))
