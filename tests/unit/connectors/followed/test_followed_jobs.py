"""Jobs in one process that follow a folder: files appear while the job runs, and the next job resumes from its checkpoint."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from patience import patience

import evenflow as ef

PATIENCE = patience(60)


WAYS = pytest.mark.parametrize(("follow", "appended"), [(True, False), ("lines", False), ("lines", True)])


def write(folder: Path, number: int, *, appended: bool) -> None:
    """Write ten more rows: a new file, or lines appended to one of two files."""
    lines = "".join(f"{n}\n" for n in range(10 * number, 10 * number + 10))
    if appended:
        with (folder / f"{number % 2}.txt").open("a") as file:
            file.write(lines)
    else:
        (folder / ".next").write_text(lines)
        (folder / ".next").rename(folder / f"{number}.txt")


def started(folder, rows, follow, workers, enough, **options):
    """Start a job; return it with an event that is set when `enough` rows have been emitted."""
    flow, came, lines = ef.Dataflow("followed"), threading.Event(), set()

    def look(row):
        lines.add(row["item"])
        if len(lines) >= enough:
            came.set()

    stream = flow.read(ef.read_text(folder, follow=follow, poll_every="1ms")).parallelism(workers)
    stream.write(ef.to_list(rows))
    stream.write(ef.to_callback(look))
    return flow.run(runtime="local", **options), came


@pytest.mark.usefixtures("waiting_for_jobs")
@WAYS
def test_a_job_goes_on_from_the_checkpoint_of_another_with_more_workers(follow, appended, tmp_path):
    folder, before, again = tmp_path / "in", [], []
    folder.mkdir()
    for number in range(5):
        write(folder, number, appended=appended)
    saved = ef.JobConfig(checkpoint=ef.CheckpointConfig(str(tmp_path / "saved"), interval=None))
    job, came = started(folder, before, follow, 2, 100, config=saved)
    for number in range(5, 10):
        write(folder, number, appended=appended)
    assert came.wait(PATIENCE)
    checkpoint = job.checkpoint()
    job.cancel()
    job.wait(f"{PATIENCE}s")
    for number in range(10, 15):
        write(folder, number, appended=appended)
    path = tmp_path / "saved" / job.name / f"checkpoint-{checkpoint.number:08d}"
    assert path.is_dir()
    job, came = started(folder, again, follow, 3, 50, from_savepoint=path, config=ef.JobConfig())
    assert came.wait(PATIENCE)
    job.stop()
    job.wait(f"{PATIENCE}s")
    came_again = {row["item"] for row in before} & {row["item"] for row in again}
    assert came_again in (set(), {str(n) for n in range(100)}), "the rows of the last checkpoint, which may not have been committed"
    assert sorted(int(row["item"]) for row in again if row["item"] not in came_again) == list(range(100, 150))
    assert sorted(int(row["item"]) for row in before) == list(range(100))
