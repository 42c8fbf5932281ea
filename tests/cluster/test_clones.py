"""A program finds all of evenflow wherever it is started: installed, editable, from a bare clone, and as a submitted job.

Ray's own processes run in an environment with the dependencies and without evenflow: what a worker imports comes from what is tested.
"""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import subprocess
import sys
import sysconfig
import venv
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from watching import until

PATIENCE = 240.0  # several programs start Ray's processes one after another
pytestmark = pytest.mark.timeout(2 * PATIENCE)

ROOT = Path(__file__).parents[2]
NO_SOURCES = shutil.ignore_patterns(".git", ".venv", ".*_cache", ".hypothesis", "__pycache__", "build", "*.egg-info")
PROGRAM = """
import sys
import ray
import evenflow as ef

if sys.argv[1:] == ["here"]:
    ray.init(runtime_env={"py_executable": sys.executable}, log_to_driver=False)
rows = []
numbers = ef.Dataflow("from-a-program").read(ef.from_items(list(range(10))))
numbers.key_by("item").aggregate(n=ef.count(), emit="final").write(ef.to_list(rows))
numbers.flow.run(parallelism=1).wait("120s")
print(len(rows), "rows by", ef.__file__)
"""


def environment_without_evenflow(folder: Path) -> Path:
    """The interpreter of an environment that sees the installed dependencies. Paths in it win over theirs."""
    venv.create(folder, with_pip=False)
    site = Path(sysconfig.get_path("purelib", vars={"base": str(folder)}))
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return folder / "bin/python"


def site_of(python: Path) -> Path:
    return Path(sysconfig.get_path("purelib", vars={"base": str(python.parents[1])}))


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture(scope="module")
def bare(tmp_path_factory) -> Path:
    return environment_without_evenflow(tmp_path_factory.mktemp("environments") / "bare")


@pytest.fixture(scope="module")
def clone(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("clones") / "clone"
    shutil.copytree(ROOT, folder, symlinks=True, ignore=NO_SOURCES)
    (folder / "program.py").write_text(PROGRAM)
    return folder


@pytest.fixture(scope="module")
def head(bare: Path, folder: Path) -> Iterator[dict[str, str]]:
    """Environment variables by which programs find a cluster of the bare environment, with the server that takes submitted jobs."""
    gcs, dashboard, agent = free_port(), free_port(), free_port()
    variables = os.environ | {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(16)}
    options = [
        f"--port={gcs}",
        f"--dashboard-port={dashboard}",
        f"--dashboard-agent-listen-port={agent}",
        f"--temp-dir={folder / 'ray-of-clones'}",
    ]
    options += ["--node-ip-address=127.0.0.1", "--num-cpus=8", f"--object-store-memory={100 << 20}", "--include-dashboard=true"]
    command = [str(bare), "-m", "ray.scripts.scripts", "start", "--head", "--block", *options]
    with (folder / "ray-of-clones.log").open("wb") as log, subprocess.Popen(command, env=variables, stdout=log, stderr=log) as process:
        until(lambda: all(map(listens, (gcs, dashboard, agent))), "the cluster is up", PATIENCE)
        yield variables | {"RAY_ADDRESS": f"127.0.0.1:{gcs}", "RAY_API_SERVER_ADDRESS": f"http://127.0.0.1:{dashboard}"}
        process.terminate()
        process.wait(PATIENCE)


def run(command: list[str], cwd: Path, variables: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=cwd, env=variables, capture_output=True, text=True, check=False, timeout=PATIENCE)


def run_program(python: Path, cwd: Path, variables: dict[str, str]) -> str:
    finished = run([str(python), "-W", "ignore", "program.py", "here"], cwd, variables)
    assert finished.returncode == 0, finished.stderr
    return finished.stdout


def test_a_bare_clone_runs_from_its_root(head, bare, clone):
    assert f"10 rows by {clone}/evenflow/__init__.py" in run_program(bare, clone, head)


def test_a_submitted_job_brings_the_clone_along(head, bare, clone):
    command = [str(bare), "-m", "ray.scripts.scripts", "job", "submit", "--working-dir", ".", "--", str(bare), "program.py"]
    finished: subprocess.CompletedProcess[str]

    def submitted() -> bool:
        nonlocal finished
        finished = run(command, clone, head)
        return "No available agent" not in finished.stderr

    until(submitted, "the cluster takes jobs", PATIENCE)
    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert "10 rows by" in finished.stdout
    assert "working_dir_files" in finished.stdout


def test_an_installed_package_runs_from_the_clones_root(head, clone, tmp_path):
    python = environment_without_evenflow(tmp_path / "installed")
    build = "from setuptools.build_meta import build_wheel; print(build_wheel('dist'))"
    assert run([sys.executable, "-c", build], clone, head).returncode == 0
    (wheel,) = (clone / "dist").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site_of(python))
    assert f"10 rows by {clone}/evenflow/__init__.py" in run_program(python, clone, head)


def test_an_editable_install_runs_from_elsewhere(head, clone, tmp_path):
    python = environment_without_evenflow(tmp_path / "editable")
    (site_of(python) / "editable.pth").write_text(f"{clone}/src\n")
    (tmp_path / "program.py").write_text(PROGRAM)
    assert f"10 rows by {clone}/src/evenflow/__init__.py" in run_program(python, tmp_path, head)
