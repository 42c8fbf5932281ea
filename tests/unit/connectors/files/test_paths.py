from __future__ import annotations

from pathlib import Path

import pytest

from evenflow.connectors.files.paths import find_files, path_list
from evenflow.engine.errors import ConnectorError, FlowError


def touch(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()


def found(path, folder: Path) -> list[str]:
    return [str(Path(file).relative_to(folder)) for file in find_files(str(path), (".csv",), "read")]


def test_a_file_is_taken_whatever_its_name(tmp_path):
    touch(tmp_path, "_odd.name")
    assert found(tmp_path / "_odd.name", tmp_path) == ["_odd.name"]


def test_a_folder_gives_its_files_at_all_levels_in_order(tmp_path):
    touch(tmp_path, "b.csv", "a/z.csv", "a/y.txt", "a/.hidden.csv", "_log/x.csv", ".trash/x.csv", "_SUCCESS")
    assert found(tmp_path, tmp_path) == ["a/z.csv", "b.csv"]


def test_a_glob_gives_files_and_the_files_of_folders(tmp_path):
    touch(tmp_path, "2025/a.csv", "2026/b.csv", "2026/_c.csv", "other/d.csv")
    assert found(str(tmp_path / "202*"), tmp_path) == ["2025/a.csv", "2026/b.csv"]
    assert found(str(tmp_path / "**" / "*.csv"), tmp_path) == ["2025/a.csv", "2026/b.csv", "other/d.csv"]


def test_a_glob_skips_hidden_files_and_folders_below_its_fixed_part(tmp_path):
    touch(tmp_path, "_in/a.csv", "_in/_staging/b.csv", "_in/_staging/c/d.csv", "_in/.trash/e.csv", "_in/f/g.csv")
    assert found(str(tmp_path / "_in" / "**" / "*.csv"), tmp_path) == ["_in/a.csv", "_in/f/g.csv"]
    assert found(str(tmp_path / "_in" / "*" / "*.csv"), tmp_path) == ["_in/f/g.csv"]


def test_one_path_or_several_become_a_list(tmp_path):
    assert path_list(tmp_path, "read") == (str(tmp_path),)
    assert path_list([tmp_path / "b", str(tmp_path)], "read") == (str(tmp_path / "b"), str(tmp_path))


def test_a_file_name_with_brackets_is_no_glob(tmp_path):
    touch(tmp_path, "a[1].csv")
    assert found(tmp_path / "a[1].csv", tmp_path) == ["a[1].csv"]


def test_relative_paths_become_absolute(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert path_list("a.csv", "read") == (str(tmp_path / "a.csv"),)


@pytest.mark.parametrize(
    ("path", "message"),
    [("none", r"none does not exist"), ("empty", r"empty has no files that end with .csv"), ("*.csv", r"no file matches .*\*.csv")],
)
def test_a_path_without_files_is_an_error(tmp_path, path, message):
    (tmp_path / "empty").mkdir()
    with pytest.raises(ConnectorError, match=message):
        find_files(str(tmp_path / path), (".csv",), "read")


def test_an_empty_list_is_an_error():
    with pytest.raises(FlowError, match="the list of paths is empty"):
        path_list([], "read")
