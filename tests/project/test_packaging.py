"""All files of the folders are in the wheel, below one import root."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Iterator
from email.parser import Parser
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
LINKED = sorted(path.name for path in (ROOT / "evenflow").iterdir() if path.is_symlink())
FOLDERS = {"evenflow": "evenflow", **{f"evenflow.{name}": name for name in LINKED}}


def installed_files() -> set[str]:
    """Return the paths that the source files must have once installed, for example `evenflow/engine/batch.py`."""
    return {
        "/".join((*package.split("."), *path.relative_to(ROOT / folder).parts))
        for package, folder in FOLDERS.items()
        for path in (ROOT / folder).rglob("*.py")
    }


def page_files() -> set[str]:
    """Return the page's files for browsers, with the licences of third-party ones."""
    folder = ROOT / "evenflow" / "page" / "static"
    return {f"evenflow/page/static/{path.relative_to(folder)}" for path in folder.rglob("*") if path.is_file()}


def grafana_files() -> set[str]:
    """Return the dashboards, alert rules and configuration that `evenflow grafana` copies."""
    folder = ROOT / "evenflow" / "grafana"
    return {f"evenflow/grafana/{path.relative_to(folder)}" for end in ("json", "yml") for path in folder.rglob(f"*.{end}")}


def kubernetes_files() -> set[str]:
    """Return the templates of `evenflow k8s`."""
    folder = ROOT / "evenflow" / "kubernetes"
    return {f"evenflow/kubernetes/{path.name}" for path in folder.iterdir() if path.is_file() and path.suffix != ".py"}


def test_every_folder_of_code_is_linked_below_the_import_root():
    with_code = {path.parent.name for path in ROOT.glob("*/__init__.py")} - {"evenflow"}
    assert with_code == set(LINKED), "add a link: ln -s ../FOLDER evenflow/FOLDER"
    assert all((ROOT / "evenflow" / name).resolve() == ROOT / name for name in LINKED)


def test_every_package_has_an_init_file():
    packages = {name.rpartition("/")[0] for name in installed_files()}
    assert {f"{package}/__init__.py" for package in packages} <= installed_files()


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    """Build wheel and sdist from a copy of the sources, without network, and return their folder; the checkout stays clean."""
    copy = tmp_path_factory.mktemp("sources")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy)
    for folder in ("src", *FOLDERS.values()):
        shutil.copytree(ROOT / folder, copy / folder, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    build = "from setuptools.build_meta import build_sdist, build_wheel; build_wheel('dist'); build_sdist('dist')"
    finished = subprocess.run([sys.executable, "-c", build], cwd=copy, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stderr
    return copy / "dist"


@pytest.fixture(scope="module")
def wheel(built) -> Iterator[zipfile.ZipFile]:
    (path,) = built.glob("*.whl")
    with zipfile.ZipFile(path) as archive:
        yield archive


@pytest.mark.slow
def test_wheel_carries_every_source_file_and_nothing_else(wheel):
    files = {name for name in wheel.namelist() if ".dist-info/" not in name}
    assert files == installed_files() | page_files() | grafana_files() | kubernetes_files() | {"evenflow/py.typed"}


def test_wheel_brings_the_command_and_the_licence(wheel):
    (entry_points,) = (name for name in wheel.namelist() if name.endswith("entry_points.txt"))
    assert "evenflow = evenflow.cli:main" in wheel.read(entry_points).decode()
    assert any(name.endswith("/LICENSE") for name in wheel.namelist())


def test_the_sdist_has_all_that_the_wheel_is_made_of(built, wheel):
    (path,) = built.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        files = {member.name.partition("/")[2] for member in archive.getmembers() if member.isfile()}
    sources = {f"src/{name}" for name in wheel.namelist() if ".dist-info/" not in name}
    assert sources | {"pyproject.toml", "README.md", "LICENSE", "PKG-INFO"} <= files
    assert not [
        name for name in files if name.startswith("src/") and name.removeprefix("src/") not in wheel.namelist() and "egg-info" not in name
    ]


def test_the_metadata_says_what_it_is_for_whom(wheel):
    (metadata,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    fields = Parser().parsestr(wheel.read(metadata).decode())
    assert {"Typing :: Typed", "Operating System :: POSIX :: Linux", "Programming Language :: Python :: 3.11"} <= set(
        fields.get_all("Classifier")
    )
    assert (fields["License-Expression"], fields["Requires-Python"]) == ("MIT", ">=3.11")
    assert fields.get_payload().startswith("#")


def test_the_table_of_extras_in_the_documentation_has_them_all():
    (table,) = re.findall(r"\| extra \| for \|\n(.*?)\n\n", (ROOT / "docs" / "index.md").read_text(), re.DOTALL)
    told = [name for line in table.splitlines() for name in re.findall(r"`(\w+)`", line.split("|")[1])]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert sorted(told) == sorted(project["optional-dependencies"])
