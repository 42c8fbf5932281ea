"""The program of a run is submitted once, followed by whatever process looks, and submitted again only if its cluster was lost."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace

from evenflow.kubernetes.submit import RUN, Follower


@dataclass
class Cluster:
    """A cluster's programs. `ends`: the states that the next programs reach when their log ends; with None their log breaks off."""

    ends: list[str | None]
    programs: list[SimpleNamespace] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)

    def list_jobs(self):
        return list(self.programs)

    def submit_job(self, *, entrypoint, submission_id, metadata):
        assert entrypoint == "python job.py"
        self.add("RUNNING", submission_id, metadata)
        return submission_id

    def add(self, status, submission_id, metadata):
        started = len(self.programs) + 1
        self.programs.append(SimpleNamespace(status=status, submission_id=submission_id, metadata=metadata, start_time=started))

    async def tail_job_logs(self, submission_id):
        (program,) = (each for each in self.programs if each.submission_id == submission_id)
        yield f"log of {submission_id}\n"
        end = self.ends.pop(0)
        if end is None:
            raise RuntimeError("the connection broke off")
        program.status = end


def followed(cluster, connect=None, run="run-1"):
    said = []
    code = Follower(connect or (lambda: cluster), run, "python job.py", said.append, pause=lambda _: None).follow()
    return code, "".join(said)


def test_a_program_that_ends_or_is_stopped_is_a_success():
    for end in ("SUCCEEDED", "STOPPED"):
        cluster = Cluster([end])
        code, said = followed(cluster)
        assert code == 0
        (program,) = cluster.programs
        assert program.metadata == {RUN: "run-1"}
        assert f"log of {program.submission_id}" in said


def test_a_program_that_fails_is_left_to_the_caller():
    cluster = Cluster(["FAILED"])
    assert followed(cluster)[0] == 1
    assert len(cluster.programs) == 1


def test_the_next_process_submits_a_failed_program_again():
    cluster = Cluster(["SUCCEEDED"])
    cluster.add("FAILED", "evenflow-1", {RUN: "run-1"})
    assert followed(cluster)[0] == 0
    assert len(cluster.programs) == 2


def test_the_next_process_follows_a_program_that_runs():
    cluster = Cluster(["SUCCEEDED"])
    cluster.add("RUNNING", "evenflow-1", {RUN: "run-1"})
    code, said = followed(cluster)
    assert (code, len(cluster.programs)) == (0, 1)
    assert "log of evenflow-1" in said


def test_the_next_process_leaves_a_program_that_has_ended():
    cluster = Cluster([])
    cluster.add("SUCCEEDED", "evenflow-1", {RUN: "run-1"})
    assert followed(cluster)[0] == 0
    assert len(cluster.programs) == 1


def test_programs_of_other_runs_and_of_users_do_not_count():
    cluster = Cluster(["SUCCEEDED"])
    cluster.add("RUNNING", "evenflow-1", {RUN: "run-0"})
    cluster.add("RUNNING", "by-hand", None)
    assert followed(cluster)[0] == 0
    assert len(cluster.programs) == 3


def test_a_broken_log_is_followed_again():
    cluster = Cluster([None, "SUCCEEDED"])
    code, said = followed(cluster)
    assert (code, len(cluster.programs)) == (0, 1)
    assert "the connection broke off" in said


def test_a_program_that_was_lost_with_its_cluster_is_submitted_again():
    """The cluster doesn't answer for a while, and then knows of no program."""
    first, second = Cluster([None]), Cluster(["SUCCEEDED"])
    answers = iter([first, ConnectionError("no head"), RuntimeError("no head"), second, second])

    def connect():
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    assert followed(first, connect)[0] == 0
    assert (len(first.programs), len(second.programs)) == (1, 1)
