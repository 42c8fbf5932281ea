"""The interface of sources: a description on the driver, and one reader in each source worker.

The driver calls `Source.start` once before the workers start and `Source.stop` once at the end. Each worker calls
`Source.reader(index, parallelism)` once, and then `SourceReader.poll` whenever its output has room. A new reader that seeks to a
reported position must return the same records in the same order.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from .batch import Batch
from .columns import UNKNOWN, Columns
from .configured import Configured
from .errors import FlowError
from .expressions.trees.tree import Tree
from .needed import Needed
from .protocol.elements import MAX_TIME, MIN_TIME


@dataclass(frozen=True, slots=True)
class SplitFigures:
    """The progress of a reader with a split; `job.metrics()` shows it.

    `lag`: available records that were not yet returned, None if unknown. `newest`: the newest returned event time, in
    microseconds. `idle`: whether the split is quiet, so that it doesn't hold event time back. `position`: the number of the next
    record, such as an offset; with `lag` it gives the lag in seconds.
    """

    split: str
    lag: int | None = None
    newest: int | None = None
    idle: bool = False
    position: int | None = None


class Source(Configured, ABC):
    """The description of a source. Plain picklable configuration: it is sent to every worker that reads it."""

    name: str
    """The default name of the operator that reads it, for example `read_parquet`."""

    guarantee: str = "exactly once (seeks to the checkpointed position)"
    """Its guarantee when a job recovers; `explain()` prints it."""

    parallelism: int | None = None
    """The only parallelism that it can run with, or None for any."""

    time_column: str | None = None
    """The column with the event times of its rows, None if there is none or it isn't known."""

    timed: bool | None = None
    """True if its rows have event times, None if that isn't known before it is read."""

    rate: float | None = None
    """The external demand in records per second for all readers together, read or not; None if it isn't known."""

    on_error: Literal["stop", "skip", "dead_letter"] = "stop"
    """The policy for records that can't be decoded; with "dead_letter" its readers have `dead_letters`."""

    table_key: tuple[str, ...] = ()
    """The primary key of a table, if its rows are the table's changes with the columns of `table_changes.py`; else empty."""

    split_word: str = "split"
    """The word for its splits in messages."""

    idle_advice: str = ""
    """Advice in messages about a quiet split that holds event time back; begins with "; " unless empty."""

    driver_part: str | None = None
    """The part of it that runs in the process that starts the job, as long as the job runs; None if there is none."""

    lost_with_process: str | None = None
    """The part of it that is lost with its process; None if there is none.

    Its positions mean nothing in another process.
    """

    may_change: frozenset[str] = frozenset()
    """The settings (`given_settings`, without underscores at the ends) that may differ from those of the source that it `continues`."""

    needed: Needed | None = None
    """The columns that it reads, as `reading` set them; None for all."""

    conditions: tuple[Tree, ...] = ()
    """The conditions of the rows that it reads, as `where` set them."""

    def given_settings(self) -> dict[str, Any]:
        return self.settings_without("needed", "conditions")

    def continues(self, other: Source) -> str | None:
        """Describe why this source can't continue from positions of `other`, which runs now; None if it can.

        Called for a live upgrade, before this source is started: both are of one class, and differ in settings that `may_change`, or
        in the columns and conditions that the flow gave them.
        """
        if self.reads_as(other) or type(self).continuing is not Source.continuing:
            return None
        return "it can't read other columns or rows while the job runs"

    def continuing(self, other: Source) -> Source:
        """Return this source in the state of `other`, which was started, with the same splits: `start` isn't called.

        Called if `continues` found no problem. Overridden by each source that has settings that `may_change`.
        """
        return other

    def reads_as(self, other: Source) -> bool:
        """Return True if the flow needs the same columns and rows of both."""
        return self.needed == other.needed and list(map(repr, self.conditions)) == list(map(repr, other.conditions))

    def reading(self, needed: Needed) -> Source:
        """Return this source, or a copy that skips unneeded columns: it reads those of `needed.among` of its columns.

        A skipped column is as if it did not exist. Everything else, such as splits, positions and event times, must stay the
        same.
        """
        return self

    def where(self, conditions: Sequence[Tree]) -> Source:
        """Return this source, or a copy that skips rows that don't meet all `conditions`: filters behind it drop them anyway.

        Called only for a source without event time. Everything else, such as splits and positions, must stay the same.
        """
        return self

    def describe(self) -> str:
        """Return a few words for `explain()`: the columns that it reads, if those aren't all."""
        return ""

    def start(self) -> None:
        """Check the input, start a Spark query. Called once on the driver before any worker starts.

        Raises ConnectorError if the input can't be read: a missing file or column, a wrong type. Must not wait for data.
        """

    def stop(self) -> None:
        """Release resources. Called once on the driver when the job has ended, in any way. Must not raise."""

    def failure(self) -> str | None:
        """Return a problem outside the workers, or None. Called now and then on the driver while the job runs."""
        return None

    def share_out(self, positions: Sequence[Any], parallelism: int) -> list[Any]:
        """Reassign the splits: return positions for `parallelism` readers that continue where the readers at `positions` were.

        `positions` are those of all readers at one time, of any number. Called on the driver when a job is restored with another
        parallelism, or the source is scaled while the job runs; `start` need not have been called. Pure. Readers made with the
        new index and parallelism seek to the result. In any sequence of reassignments, polls and seeks, every record is returned
        exactly once. Raises FlowError if the splits can't be reassigned, or `positions` are not those of all readers.
        """
        if len(positions) == parallelism:
            return list(positions)
        raise FlowError(
            f"source `{self.name}` can't continue with {parallelism} workers: it had {len(positions)}, and its splits can't be reassigned"
        )

    @property
    def can_be_shared_out(self) -> bool:
        """True if `share_out` supports another number of readers."""
        return type(self).share_out is not Source.share_out

    def earliest(self, position: Any) -> int:
        """Return a lower bound (microseconds) of the event times that a reader at `position` has yet to return.

        `position` may also be one from `share_out`. `MAX_TIME` without event time or if nothing is left, `MIN_TIME` if it isn't
        known. `share_out` keeps the minimum over all positions. Pure, and computed from the position alone.
        """
        return MIN_TIME

    def known_columns(self) -> Columns:
        """Return the known columns of its rows; after `start` often more than before. Pure and cheap."""
        return UNKNOWN

    @abstractmethod
    def reader(self, index: int, parallelism: int) -> SourceReader:
        """Return the reader of worker `index` of `parallelism`; together they return every record exactly once."""


class SourceReader(ABC):
    """One worker's part of a source. Used by one thread."""

    @abstractmethod
    def poll(self, max_rows: int) -> Batch | None:
        """Return the next batch of at most about `max_rows` rows, or None when nothing is ready now.

        It may take the time to decode the batch, but must not wait for data that isn't available. Event times are set if the
        source has an event time. Raises ConnectorError naming the file and the problem.
        """

    @property
    @abstractmethod
    def finished(self) -> bool:
        """True if no more records will follow. Changes only from False to True."""

    def watermark(self) -> int:
        """Return a lower bound (microseconds) of the event times of all records that `poll` has yet to return.

        Called after each poll. It may stay, never fall. `MAX_TIME` if the stream has no event time.
        """
        return MAX_TIME

    @abstractmethod
    def position(self) -> Any:
        """Return the position of the next poll, as a msgpack-able value. Called between polls."""

    @abstractmethod
    def seek(self, position: Any) -> None:
        """Continue from a position that an earlier reader of this index and parallelism reported, or that `Source.share_out`
        returned.

        Called before the first poll. The watermark is then a lower bound of all records that follow, and may be lower than an
        earlier reader's.
        """

    def backlog(self) -> int | None:
        """Return the available rows that it has not returned yet, None if unknown. Called between polls, about every second."""
        return None

    def dead_letters(self) -> Batch | None:
        """Return the records that it refused, in the columns of `error_policy.DEAD_LETTER`. Called after each poll.

        They have event times if rows have. Its position is behind them.
        """
        return None

    @property
    def skipped_records(self) -> int:
        """Return the number of records that it dropped because they can't be decoded, dead letters too."""
        return 0

    def split_figures(self) -> Sequence[SplitFigures]:
        """Return the progress with each of its splits, if it has few and knows. Called between polls, about every second."""
        return ()

    def ready_in(self) -> float:
        """Return, after a poll that returned None, the seconds until the next poll may return a batch.

        The worker sleeps that long.
        """
        return 0.01

    def close(self) -> None:
        """Release resources. Called once when the worker ends. Must not raise."""
