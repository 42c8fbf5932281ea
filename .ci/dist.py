"""`make dist`: builds the sdist and its wheel, and runs a flow in an environment with only this wheel and its dependencies.

Both are built by the installed setuptools in a copy of the files known to git: they contain nothing else, and the checkout stays
clean.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
DIST = ROOT / "dist"

FLOW = """
import evenflow as ef
flow, rows = ef.Dataflow("installed"), []
words = flow.read(ef.from_items([{"word": word} for word in "to be or not to be".split()]))
words.key_by("word").aggregate(n=ef.count(), emit="final").write(ef.to_list(rows))
flow.run(runtime="local").wait("60s")
assert sorted((row["word"], row["n"]) for row in rows) == [("be", 2), ("not", 1), ("or", 1), ("to", 2)], rows
print("a flow runs by", ef.__file__)
"""


def run(*command: str | Path, cwd: Path, variables: dict[str, str] | None = None) -> str:
    """Run a command and return its output; exit if it fails."""
    done = subprocess.run(list(map(str, command)), cwd=cwd, env=variables, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))} has failed:\n{done.stdout}{done.stderr}")
    return done.stdout


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


def main() -> None:
    """Build the wheel, install it, and run a flow."""
    shutil.rmtree(DIST, ignore_errors=True)
    DIST.mkdir()
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        sdist = build("sdist", copy_of_sources(work / "sources"), DIST)
        with tarfile.open(sdist) as archive:
            archive.extractall(work / "unpacked", filter="data")
        (unpacked,) = (work / "unpacked").iterdir()
        wheel = build("wheel", unpacked, DIST)
        print(f"built {sdist.relative_to(ROOT)} and, from it, {wheel.relative_to(ROOT)}")

        venv.create(work / "empty", with_pip=False)
        python = work / "empty/bin/python"
        uv = Path(sys.executable).with_name("uv")
        run(uv, "pip", "install", "--quiet", "--python", python, "-c", ROOT / "constraints.txt", wheel, cwd=work)
        alone = {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "VIRTUAL_ENV"}}
        print(run(python, "-I", "-c", FLOW, cwd=work, variables=alone), end="")
        print(run(python.with_name("evenflow"), "--version", cwd=work, variables=alone), end="")


if __name__ == "__main__":
    main()
