"""A program finds all of evenflow from any folder: installed, editable, from a bare clone, and as a submitted job.

Ray's own processes run in an environment with the dependencies and without evenflow, so that workers import the tested code.
"""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from patience import patience
from ports import free_port, listens
from watching import processes_of, socket_folders, until

PATIENCE = patience(240)  # several programs start Ray's processes one after another
pytestmark = [pytest.mark.nightly, pytest.mark.timeout(480)]

ROOT = Path(__file__).parents[3]
NO_SOURCES = shutil.ignore_patterns(".git", ".venv", ".*_cache", ".hypothesis", "__pycache__", "build", "*.egg-info")
PROGRAM = """
import sys
import ray
import evenflow as ef

if sys.argv[1:] == ["here"]:
    ray.init(runtime_env={"py_executable": sys.executable}, log_to_driver=False)
rows = []
numbers = ef.Dataflow("from-a-program").read(ef.from_items(list(range(10))))
numbers.map(lambda row: row).write(ef.to_list(rows))
numbers.flow.run(parallelism=1).wait()
print(len(rows), "rows by", ef.__file__)
"""

ENDLESS = """
import evenflow as ef

flow = ef.Dataflow("submitted")
flow.read(ef.generate(rate=1000, every="50ms", keys=5)).key_by("key").aggregate(n=ef.count()).write(ef.to_list([]))
job = flow.run()
print("running by", ef.__file__, flush=True)
print("ended", job.wait().status().state.value, flush=True)
"""

LOOK = """
import sys
import evenflow as ef
from ray.util.state import list_actors

job = ef.connect("submitted")
status = job.status()
print(status.state.value, *status.workers)
print(*sorted(actor.name for actor in list_actors(address=sys.argv[1]) if actor.state == "ALIVE" and actor.name.startswith("submitted")))
job.stop(drain=True)
print(job.wait().status().state.value)
"""


def environment_without_evenflow(folder: Path) -> Path:
    """Create an environment that sees the installed dependencies, and return its interpreter. Its own paths come first."""
    venv.create(folder, with_pip=False)
    site = Path(sysconfig.get_path("purelib", vars={"base": str(folder)}))
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return folder / "bin/python"


def site_of(python: Path) -> Path:
    return Path(sysconfig.get_path("purelib", vars={"base": str(python.parents[1])}))


@pytest.fixture(scope="module")
def bare(tmp_path_factory) -> Path:
    return environment_without_evenflow(tmp_path_factory.mktemp("environments") / "bare")


@pytest.fixture(scope="module")
def clone(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("clones") / "clone"
    shutil.copytree(ROOT, folder, symlinks=True, ignore=NO_SOURCES)
    (folder / "program.py").write_text(PROGRAM)
    (folder / "endless.py").write_text(ENDLESS)
    return folder


@pytest.fixture(scope="module")
def head(bare: Path, folder: Path) -> Iterator[dict[str, str]]:
    """Provide environment variables of a cluster in the bare environment, with the server for submitted jobs.

    It leaves nothing behind: it and the programs have their own temporary folder.
    """
    own, gcs, dashboard, agent = folder / "head", free_port(), free_port(), free_port()
    own.mkdir()
    variables = os.environ | {"TMPDIR": str(own), "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(16)}
    options = [f"--port={gcs}", f"--dashboard-port={dashboard}", f"--dashboard-agent-listen-port={agent}"]
    options += ["--node-ip-address=127.0.0.1", "--num-cpus=8", f"--object-store-memory={100 << 20}", "--include-dashboard=true"]
    command = [str(bare), "-m", "ray.scripts.scripts", "start", "--head", "--block", *options]
    with (folder / "head.log").open("wb") as log, subprocess.Popen(command, env=variables, stdout=log, stderr=log) as process:
        until(lambda: all(map(listens, (gcs, dashboard, agent))), "the cluster is up", PATIENCE)
        yield variables | {"RAY_ADDRESS": f"127.0.0.1:{gcs}", "RAY_API_SERVER_ADDRESS": f"http://127.0.0.1:{dashboard}"}
        process.terminate()
        process.wait(PATIENCE)
    until(lambda: not processes_of(own), f"no process is left: {processes_of(own)}")
    assert not socket_folders(own)


def run(command: list[str], cwd: Path, variables: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=cwd, env=variables, capture_output=True, text=True, check=False, timeout=PATIENCE)


def run_program(python: Path, cwd: Path, variables: dict[str, str]) -> str:
    finished = run([str(python), "-W", "ignore", "program.py", "here"], cwd, variables)
    assert finished.returncode == 0, finished.stderr
    return finished.stdout


def test_a_bare_clone_runs_from_its_root(head, bare, clone):
    assert f"10 rows by {clone}/evenflow/__init__.py" in run_program(bare, clone, head)


def test_a_submitted_job_brings_the_clone_along_and_another_process_can_join_it(head, bare, clone, tmp_path):
    command = [str(bare), "-m", "ray.scripts.scripts", "job", "submit", "--working-dir", ".", "--", str(bare), "endless.py"]
    log = tmp_path / "submitted"

    def submitted() -> subprocess.Popen[bytes] | None:
        with log.open("wb") as out:
            process = subprocess.Popen(command, cwd=clone, env=head, stdout=out, stderr=out)
        until(lambda: "running by" in log.read_text() or process.poll() is not None, "the job runs", PATIENCE)
        return None if "No available agent" in log.read_text() else process

    process = until(submitted, "the cluster takes jobs", PATIENCE)
    try:
        look = run([sys.executable, "-W", "ignore", "-c", LOOK, head["RAY_API_SERVER_ADDRESS"]], ROOT, head)
        assert look.returncode == 0, look.stderr + log.read_text()
        assert look.stdout.splitlines()[-3:] == [
            "running generate-0 aggregate-0",
            "submitted/aggregate-0 submitted/coordinator submitted/generate-0",
            "finished",
        ]
        assert process.wait(PATIENCE) == 0, log.read_text()
    finally:
        process.kill()
        process.wait(PATIENCE)
    assert "working_dir_files" in log.read_text()
    assert "ended finished" in log.read_text()


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
