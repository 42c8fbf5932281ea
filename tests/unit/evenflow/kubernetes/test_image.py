from __future__ import annotations

from importlib.metadata import version

from evenflow.cli.command_line import main
from evenflow.kubernetes.arguments import PROGRAMS
from evenflow.kubernetes.pods import USER


def written(tmp_path, *options):
    assert main(["k8s", "dockerfile", "jobs/clicks.py", *options, "--output", str(tmp_path)]) == 0
    return {path.name: path.read_text() for path in tmp_path.iterdir()}


def test_the_image_has_the_versions_of_this_environment_and_no_root(tmp_path):
    files = written(tmp_path, "--checkpoint", "s3://bucket/jobs")
    assert files["requirements.txt"] == f"evenflow[s3]=={version('evenflow')}\n"
    pins = files["constraints.txt"].splitlines()
    assert f"ray=={version('ray')}" in pins
    assert not [pin for pin in pins if pin.startswith("evenflow")]
    lines = files["Dockerfile"].splitlines()
    assert f"WORKDIR {PROGRAMS}" in lines
    assert "COPY clicks.py ./" in lines
    assert lines[-1] == f"USER {USER}:{USER}"
    assert "--constraint constraints.txt --requirement requirements.txt" in files["Dockerfile"]


def test_a_program_s_own_requirements_stay(tmp_path):
    (tmp_path / "requirements.txt").write_text("evenflow[kafka]\n")
    assert written(tmp_path)["requirements.txt"] == "evenflow[kafka]\n"


def test_checkpoints_on_a_volume_need_no_store_s_package(tmp_path):
    assert written(tmp_path, "--checkpoint", "/shared/jobs")["requirements.txt"] == f"evenflow=={version('evenflow')}\n"
