"""Support for Spark sessions: settings that hold during a write, and errors without the JVM's stack.

Settings are counted per session: the first user sets them, and the last one restores the earlier values.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WRITE_SETTINGS = {
    # Spark's default, INT96, has no statistics, and the watermark of unread files comes from these.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # A reader that resumes from a checkpoint needs the complete log; its files are small.
    "spark.sql.streaming.fileSink.log.deletion": "false",
}

TASK_POLL_SECONDS = 0.02

_lock = threading.Lock()
_held: dict[int, tuple[int, dict[str, str | None]]] = {}


class WriteSettings:
    """A hold on `WRITE_SETTINGS` in a session from `hold` to `release`; both may be called once."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def hold(self) -> None:
        with _lock:
            count, before = _held.get(id(self._spark), (0, {}))
            if count == 0:
                before = {key: self._spark.conf.get(key, None) for key in WRITE_SETTINGS}
                for key, value in WRITE_SETTINGS.items():
                    self._spark.conf.set(key, value)
            _held[id(self._spark)] = (count + 1, before)

    def release(self) -> None:
        with _lock:
            count, before = _held.pop(id(self._spark))
            if count > 1:
                _held[id(self._spark)] = (count - 1, before)
                return
            for key, value in before.items():
                if value is None:
                    self._spark.conf.unset(key)
                else:
                    self._spark.conf.set(key, value)


def problem_of(error: BaseException, limit: int = 2_000) -> str:
    """Return Spark's error message without the JVM's stack trace."""
    text = str(error).split("JVM stacktrace:")[0].split("\n\tat ")[0].strip()
    return f"{type(error).__name__}: {text[:limit]}"


def finishes_within(seconds: float, call: Callable[[], object]) -> bool:
    """Run `call` in its own thread, for calls into Spark without a time-out; return True if it returned or raised in time."""

    def quiet() -> None:
        try:
            call()
        except Exception:  # noqa: BLE001 -- the session may have ended already, which is as good
            return

    thread = threading.Thread(target=quiet, name="evenflow-spark-call", daemon=True)
    thread.start()
    thread.join(seconds)
    return not thread.is_alive()


def wait_for_tasks(spark: SparkSession, group: str, seconds: float) -> None:
    """Return when no task of the job group is running, or after `seconds`.

    Spark declares a job finished when it has told its tasks to end. Until they do, they may still write files, and recreate their
    folders.
    """
    deadline = time.monotonic() + seconds
    while _at_work(spark, group) and time.monotonic() < deadline:
        time.sleep(TASK_POLL_SECONDS)


def _at_work(spark: SparkSession, group: str) -> bool:
    tracker = spark.sparkContext.statusTracker()
    jobs = [job for id_ in tracker.getJobIdsForGroup(group) if (job := tracker.getJobInfo(id_)) is not None]
    stages = [stage for job in jobs for id_ in job.stageIds if (stage := tracker.getStageInfo(id_)) is not None]
    return any(job.status == "RUNNING" for job in jobs) or any(stage.numActiveTasks for stage in stages)
