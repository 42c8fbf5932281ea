"""Settings of checkpoints: when a job saves its state, where, and how it handles failures to."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike

from ...engine.time.duration import Duration, seconds
from ..checks import duration, flag, given, refusal, whole


@dataclass(frozen=True, slots=True)
class CheckpointConfig:
    """Checkpoints: with `dir` they hold the whole state, and a job that loses a worker resumes from the last one.

    `dir`: a folder that all workers reach, or a URL that fsspec opens. `interval`: between two commits of the sinks, None for one
    commit at the end. `timeout`: after which a checkpoint is given up; `pause`: least time between two. `kept`: complete
    checkpoints to keep, plus those that a damaged file would leave usable. `tolerable_failures`: in a row; one more ends the job.
    `allow_duplicates`: if the newest checkpoint is damaged, resume from an older one even if a sink can't take back its commits
    since.

    >>> CheckpointConfig("s3://bucket/checkpoints", interval="30s").kept
    3
    """

    dir: str | None = None
    interval: Duration | None = "10s"
    timeout: Duration = "10m"
    pause: Duration = 0
    kept: int = 3
    tolerable_failures: int = 3
    allow_duplicates: bool = False

    def __post_init__(self) -> None:
        if self.dir is not None and (not isinstance(self.dir, (str, PathLike)) or not str(self.dir)):
            raise refusal(self, "dir", "a folder or a URL, or None")
        duration(self, *given(self, "interval"), "timeout", longer_than_zero=True)
        duration(self, "pause")
        whole(self, 1, "kept")
        whole(self, 0, "tolerable_failures")
        flag(self, "allow_duplicates")

    @property
    def saves_state(self) -> bool:
        """True if checkpoints hold the state, so that the job can restart from them."""
        return self.dir is not None

    @property
    def interval_s(self) -> float | None:
        """The interval in seconds."""
        return None if self.interval is None else seconds(self.interval)

    @property
    def timeout_s(self) -> float:
        """The timeout in seconds."""
        return seconds(self.timeout)

    @property
    def pause_s(self) -> float:
        """The pause in seconds."""
        return seconds(self.pause)

    def url(self, job: str) -> str | None:
        """Return the folder of the job's checkpoints."""
        return None if self.dir is None else f"{str(self.dir).rstrip('/')}/{job}"
